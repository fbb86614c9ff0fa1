package kernels

import (
	"math"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// goSet is the instruction set every processor has. Its loops are also the
// specification of the assembly, which gives the same bits; see the package comment.
var goSet = kernelSet{
	name: "go", lanes: 16,
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
		Square:    func(dst, x []float32, _ float32) { mapGo(dst, x, func(v float32) float32 { return float32(v * v) }) },
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
	spmm: spmmGo, scatter: scatterGo, sddmm: sddmmGo, spmmHead: spmmHeadGo, sddmmHead: sddmmHeadGo, edgeSoftmax: edgeSoftmaxGo, edgeSoftmaxGrad: edgeSoftmaxGradGo, reach: reachGo, entries: entriesGo, codeDots: codeDotsGo,
	wide: microGo(16), narrow: microGo(8), packCols: packColsGo, packRows: packRowsGo, fetchRows: func([]float32, int, int, int) {},
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
func mul32(a, b float32) float32 { return float32(a * b) }
func div32(a, b float32) float32 { return a / b }

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
		dst[i] = float32(fmath.Pow(float64(v), float64(e)))
	}
}

func axpbyGo(dst, x []float32, a, b float32) {
	for i, v := range x {
		dst[i] = fma32(v, a, float32(b*dst[i]))
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
			dst[i] = float32(dy[i] * (v + 1))
		}
	}
}

func leakyGradGo(dst, x, dy []float32, slope float32) {
	for i, v := range x {
		d := dy[i]
		if !(v > 0) {
			d *= slope
		}
		dst[i] = d
	}
}

// sumGo adds over 64 lanes while there are 64 elements, then over the first 16.
func sumGo(x []float32) float32 {
	var s [64]float32
	n := len(x)
	for ; len(x) >= 64; x = x[64:] {
		for l, v := range x[:64] {
			s[l] += v
		}
	}
	for i, v := range x {
		s[i&15] += v
	}
	return fold64(&s, n)
}

func sumAbsGo(x []float32) float32 {
	var s [64]float32
	n := len(x)
	for ; len(x) >= 64; x = x[64:] {
		for l, v := range x[:64] {
			s[l] += abs32(v)
		}
	}
	for i, v := range x {
		s[i&15] += abs32(v)
	}
	return fold64(&s, n)
}

func dotGo(a, b []float32) float32 {
	var s [64]float32
	n := len(a)
	b = b[:n]
	for ; len(a) >= 64; a, b = a[64:], b[64:] {
		y := b[:64]
		for l, v := range a[:64] {
			s[l] = fma32(v, y[l], s[l])
		}
	}
	for i, v := range a {
		s[i&15] = fma32(v, b[i], s[i&15])
	}
	return fold64(&s, n)
}

func sqDistGo(a, b []float32) float32 {
	var s [64]float32
	n := len(a)
	b = b[:n]
	for ; len(a) >= 64; a, b = a[64:], b[64:] {
		y := b[:64]
		for l, v := range a[:64] {
			d := v - y[l]
			s[l] = fma32(d, d, s[l])
		}
	}
	for i, v := range a {
		d := v - b[i]
		s[i&15] = fma32(d, d, s[i&15])
	}
	return fold64(&s, n)
}

// dot16Go is the inner product over 16 lanes that sampled products have.
func dot16Go(a, b []float32) float32 {
	var s [16]float32
	b = b[:len(a)]
	for i, v := range a {
		s[i&15] = fma32(v, b[i], s[i&15])
	}
	return fold16(&s)
}

// fold64 adds the lanes of a sum of n elements; with fewer than 64, those behind
// the first 16 are 0.
func fold64(s *[64]float32, n int) float32 {
	t := (*[16]float32)(s[:])
	if n >= 64 {
		for l := range t {
			t[l] = (s[l] + s[l+16]) + (s[l+32] + s[l+48])
		}
	}
	return fold16(t)
}

// fold16 adds 16 lanes: halves, then neighbours. The 0 makes a sum of nothing but
// −0 positive, which depends on how many lanes there were else.
func fold16(s *[16]float32) float32 {
	var t [8]float32
	for l := range t {
		t[l] = s[l] + s[l+8]
	}
	return ((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7])) + 0
}

// maxGo and minGo have no −0: of zeros of both signs it would depend on the order
// which one is left.
func maxGo(x []float32) float32 {
	m := negInf
	for _, v := range x {
		m = max(m, v)
	}
	return m + 0
}

func minGo(x []float32) float32 {
	m := posInf
	for _, v := range x {
		m = min(m, v)
	}
	return m + 0
}

// sumExpGo and expToGo add over 16 lanes.
func sumExpGo(x []float32, shift float32) float32 {
	var s [16]float32
	for i, v := range x {
		s[i&15] += expFlush(v - shift)
	}
	return fold16(&s)
}

func expToGo(dst, x []float32, shift float32) float32 {
	var s [16]float32
	for i, v := range x {
		e := expFlush(v - shift)
		dst[i] = e
		s[i&15] += e
	}
	return fold16(&s)
}

func accExpGo(s, x, m []float32) {
	for i, v := range x {
		s[i] += expFlush(v - m[i])
	}
}

var (
	posInf = float32(math.Inf(1))
	negInf = float32(math.Inf(-1))
)
