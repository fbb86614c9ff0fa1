package kernels

import "math"

// goSet is the instruction set every processor has. Its loops are also the
// specification of the assembly: the same sums in another order of adding.
var goSet = kernelSet{
	name: "go", lanes: 4,
	unary: [unaryCount]func(dst, x []float32, c float32){
		Neg:       func(dst, x []float32, _ float32) { mapGo(dst, x, func(v float32) float32 { return -v }) },
		Exp:       func(dst, x []float32, _ float32) { mapGo(dst, x, exp32) },
		Log:       func(dst, x []float32, _ float32) { mapGo(dst, x, log32) },
		Sqrt:      func(dst, x []float32, _ float32) { mapGo(dst, x, sqrt32) },
		Rsqrt:     func(dst, x []float32, _ float32) { mapGo(dst, x, func(v float32) float32 { return 1 / sqrt32(v) }) },
		Sigmoid:   func(dst, x []float32, _ float32) { mapGo(dst, x, sigmoid32) },
		ReluOp:    func(dst, x []float32, _ float32) { mapGo(dst, x, relu32) },
		EluOp:     func(dst, x []float32, _ float32) { mapGo(dst, x, elu32) },
		Tanh:      func(dst, x []float32, _ float32) { mapGo(dst, x, tanh32) },
		Abs:       func(dst, x []float32, _ float32) { mapGo(dst, x, abs32) },
		Square:    func(dst, x []float32, _ float32) { mapGo(dst, x, func(v float32) float32 { return v * v }) },
		LeakyRelu: leakyGo,
		Pow:       powGo,
	},
	vv: [binaryCount]func(dst, a, b []float32){
		Add: func(dst, a, b []float32) { zipGo(dst, a, b, add32) },
		Sub: func(dst, a, b []float32) { zipGo(dst, a, b, sub32) },
		Mul: func(dst, a, b []float32) { zipGo(dst, a, b, mul32) },
		Div: func(dst, a, b []float32) { zipGo(dst, a, b, div32) },
		Max: func(dst, a, b []float32) { zipGo(dst, a, b, max32) },
		Min: func(dst, a, b []float32) { zipGo(dst, a, b, min32) },
	},
	vs: [binaryCount]func(dst, a []float32, b float32){
		Add: func(dst, a []float32, b float32) { zipScalarGo(dst, a, b, add32) },
		Sub: func(dst, a []float32, b float32) { zipScalarGo(dst, a, b, sub32) },
		Mul: func(dst, a []float32, b float32) { zipScalarGo(dst, a, b, mul32) },
		Div: func(dst, a []float32, b float32) { zipScalarGo(dst, a, b, div32) },
		Max: func(dst, a []float32, b float32) { zipScalarGo(dst, a, b, max32) },
		Min: func(dst, a []float32, b float32) { zipScalarGo(dst, a, b, min32) },
	},
	sv: [binaryCount]func(dst []float32, a float32, b []float32){
		Add: func(dst []float32, a float32, b []float32) { scalarZipGo(dst, a, b, add32) },
		Sub: func(dst []float32, a float32, b []float32) { scalarZipGo(dst, a, b, sub32) },
		Mul: func(dst []float32, a float32, b []float32) { scalarZipGo(dst, a, b, mul32) },
		Div: func(dst []float32, a float32, b []float32) { scalarZipGo(dst, a, b, div32) },
		Max: func(dst []float32, a float32, b []float32) { scalarZipGo(dst, a, b, max32) },
		Min: func(dst []float32, a float32, b []float32) { scalarZipGo(dst, a, b, min32) },
	},
	axpby: axpbyGo, bias: biasGo, act: actGo, reluGrad: reluGradGo, eluGrad: eluGradGo, leakyGrad: leakyGradGo,
	sum: sumGo, sumAbs: sumAbsGo, max: maxGo, min: minGo, dot: dotGo, sqDist: sqDistGo,
	sumExp: sumExpGo, expTo: expToGo, accExp: accExpGo, adam: adamGo, pairWeights: pairWeightsGo, pairNearest: pairNearestGo,
	spmm: spmmGo, sddmm: sddmmGo, spmmHead: spmmHeadGo, sddmmHead: sddmmHeadGo, edgeSoftmax: edgeSoftmaxGo, edgeSoftmaxGrad: edgeSoftmaxGradGo, reach: reachGo,
	wide: micro{mr: 4, nr: 4, f: microGo}, narrow: micro{mr: 4, nr: 4, f: microGo}, packCols: packColsGo, packRows: packRowsGo, fetchRows: func([]float32, int, int, int) {},
	uniform: uniformGo, normal: normalGo, dropout: dropoutGo, uniformAt: uniformAtGo, uniformPair: uniformPairGo,
}

func mapGo(dst, x []float32, f func(float32) float32) {
	for i, v := range x {
		dst[i] = f(v)
	}
}

func zipGo(dst, a, b []float32, f func(a, b float32) float32) {
	b = b[:len(a)]
	for i, v := range a {
		dst[i] = f(v, b[i])
	}
}

func zipScalarGo(dst, a []float32, b float32, f func(a, b float32) float32) {
	for i, v := range a {
		dst[i] = f(v, b)
	}
}

func scalarZipGo(dst []float32, a float32, b []float32, f func(a, b float32) float32) {
	for i, v := range b {
		dst[i] = f(a, v)
	}
}

func add32(a, b float32) float32 { return a + b }
func sub32(a, b float32) float32 { return a - b }
func mul32(a, b float32) float32 { return a * b }
func div32(a, b float32) float32 { return a / b }
func max32(a, b float32) float32 { return max(a, b) } // NaN if either is
func min32(a, b float32) float32 { return min(a, b) }

func exp32(v float32) float32  { return float32(math.Exp(float64(v))) }
func log32(v float32) float32  { return float32(math.Log(float64(v))) }
func sqrt32(v float32) float32 { return float32(math.Sqrt(float64(v))) }
func tanh32(v float32) float32 { return float32(math.Tanh(float64(v))) }
func abs32(v float32) float32  { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

func sigmoid32(v float32) float32 { return float32(1 / (1 + math.Exp(-float64(v)))) }

func relu32(v float32) float32 {
	if v < 0 {
		return 0
	}
	return v // NaN stays NaN
}

func elu32(v float32) float32 {
	if v < 0 {
		return float32(math.Expm1(float64(v)))
	}
	return v
}

func leakyGo(dst, x []float32, slope float32) {
	for i, v := range x {
		if v < 0 {
			v *= slope
		}
		dst[i] = v
	}
}

// powGo serves all instruction sets: a power by exp and log in float32 would
// lose digits in proportion to the exponent. [Pool.Unary] sends the common
// exponents elsewhere.
func powGo(dst, x []float32, e float32) {
	for i, v := range x {
		dst[i] = float32(math.Pow(float64(v), float64(e)))
	}
}

func axpbyGo(dst, x []float32, a, b float32) {
	for i, v := range x {
		dst[i] = a*v + b*dst[i]
	}
}

func biasGo(dst, bias []float32, act int) {
	for i, v := range bias {
		dst[i] += v
	}
	actGo(dst, act)
}

func actGo(dst []float32, act int) {
	switch Activation(act) {
	case Relu:
		mapGo(dst, dst, relu32)
	case Elu:
		mapGo(dst, dst, elu32)
	}
}

func reluGradGo(dst, y, dy []float32) {
	for i, v := range y {
		if v > 0 {
			dst[i] = dy[i]
		} else {
			dst[i] = 0
		}
	}
}

func eluGradGo(dst, y, dy []float32) {
	for i, v := range y {
		if v > 0 {
			dst[i] = dy[i]
		} else {
			dst[i] = dy[i] * (v + 1)
		}
	}
}

// sumGo adds in four interleaved strands, which halves the rounding error of one
// long sum and is what the processor can overlap.
func sumGo(x []float32) float32 {
	var s [4]float32
	for ; len(x) >= 4; x = x[4:] {
		s[0] += x[0]
		s[1] += x[1]
		s[2] += x[2]
		s[3] += x[3]
	}
	for i, v := range x {
		s[i] += v
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func sumAbsGo(x []float32) float32 {
	var s [4]float32
	for i, v := range x {
		s[i&3] += abs32(v)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func maxGo(x []float32) float32 {
	m := negInf
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func minGo(x []float32) float32 {
	m := posInf
	for _, v := range x {
		m = min(m, v)
	}
	return m
}

func dotGo(a, b []float32) float32 {
	b = b[:len(a)]
	var s [4]float32
	for ; len(a) >= 4; a, b = a[4:], b[4:] {
		s[0] += a[0] * b[0]
		s[1] += a[1] * b[1]
		s[2] += a[2] * b[2]
		s[3] += a[3] * b[3]
	}
	for i, v := range a {
		s[i] += v * b[i]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func sqDistGo(a, b []float32) float32 {
	var s [4]float32
	for i, v := range a {
		d := v - b[i]
		s[i&3] += d * d
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func sumExpGo(x []float32, shift float32) float32 {
	var s [4]float32
	for i, v := range x {
		s[i&3] += exp32(v - shift)
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func expToGo(dst, x []float32, shift float32) float32 {
	var s [4]float32
	for i, v := range x {
		e := exp32(v - shift)
		dst[i] = e
		s[i&3] += e
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

func accExpGo(s, x, m []float32) {
	for i, v := range x {
		s[i] += exp32(v - m[i])
	}
}

var (
	posInf = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
)
