package kernels

import "math"

// The float32 functions, operation by operation as the assembly has them. Where
// they return or pass on a product it is converted, so that no compiler fuses it
// with a sum elsewhere.

// bigger32 and smaller32 are x86's MAXPS and MINPS: b where the two are equal or
// either is NaN.
func bigger32(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

func smaller32(a, b float32) float32 {
	if a < b {
		return a
	}
	return b
}

// max32 and min32 are NaN where either operand is, and b where they are equal.
func max32(a, b float32) float32 {
	if a != a || a > b {
		return a
	}
	return b
}

func min32(a, b float32) float32 {
	if a != a || a < b {
		return a
	}
	return b
}

func sqrt32(v float32) float32 { return float32(math.Sqrt(float64(v))) }

func abs32(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// round32 is the nearest integer, the even one of two.
func round32(v float32) float32 { return float32(math.RoundToEven(float64(v))) }

// ln 2 in two parts, so that n·ln2Hi is exact for the n that occur.
const (
	ln2Hi = 0.693359375
	ln2Lo = -2.12194440e-4
)

// power2 is 2ⁿ for −127 ≤ n ≤ 128, the ends being 0 and +Inf.
func power2(n int32) float32 { return math.Float32frombits(uint32(n+127) << 23) }

// reduceExp splits x, limited to [low, high], into n·ln 2 + r and returns n and
// eʳ − 1.
func reduceExp(x, low, high float32) (n int32, p float32) {
	r := smaller32(high, bigger32(low, x))
	k := round32(float32(r * log2E))
	r = fma32(-k, ln2Hi, r)
	r = fma32(-k, ln2Lo, r)
	t := float32(1.9875691500e-4)
	t = fma32(t, r, 1.3981999507e-3)
	t = fma32(t, r, 8.3334519073e-3)
	t = fma32(t, r, 4.1665795894e-2)
	t = fma32(t, r, 1.6666665459e-1)
	t = fma32(t, r, 5.0000001201e-1)
	return int32(k), fma32(float32(t*r), r, r)
}

// exp32 is eˣ over the whole range, subnormal results included.
func exp32(x float32) float32 {
	n, p := reduceExp(x, -104, 89)
	half := n >> 1
	y := float32((p + 1) * power2(half))
	return float32(y * power2(n-half))
}

// expFlush is eˣ with results below 2⁻¹²⁶ as 0 and above 2^127.5 as +Inf: the
// exponential of sums and softmaxes.
func expFlush(x float32) float32 {
	n, p := reduceExp(x, -88, 88.8)
	return float32((p + 1) * power2(n))
}

// expm1of is eˣ − 1 for x ≤ 80.
func expm1of(x float32) float32 {
	n, p := reduceExp(x, -88, 80)
	t := power2(n)
	return fma32(t, p, t-1)
}

func elu32(v float32) float32 {
	if v > 0 {
		return v
	}
	return expm1of(v)
}

func relu32(v float32) float32 { return bigger32(0, v) } // NaN stays NaN

func sigmoid32(v float32) float32 { return 1 / (expFlush(-v) + 1) }

func tanh32(v float32) float32 {
	a := smaller32(10, abs32(v))
	m := expm1of(a + a)
	return withSign(m/(m+2), v)
}

// withSign is x ≥ 0 with the sign of s.
func withSign(x, s float32) float32 {
	return math.Float32frombits(math.Float32bits(x) ^ math.Float32bits(s)&(1<<31))
}

// exp2Tile is 2ᵗ for t < 127, 0 below −127.5, and unspecified, but the same
// everywhere, above: the exponential of the pairwise kernels.
func exp2Tile(t float32) float32 {
	const magic = 3<<22 + 128
	t = bigger32(-128, t)
	n := math.Float32bits(t+magic) << 23
	r := t - round32(t)
	r2 := float32(r * r)
	y := fma32(.5*1.3399931e-3, r, .5*9.618489e-3)
	y = fma32(float32(.5*1.5345811e-4), r2, y)
	z := fma32(.5*5.5503286e-2, r, .5*2.4022646e-1)
	y = fma32(y, r2, z)
	z = fma32(.5*6.9314718e-1, r, .5)
	y = fma32(y, r2, z)
	return float32(y * math.Float32frombits(n))
}

// log32 is the natural logarithm: x = m·2ᵉ with m in [√½, √2).
func log32(x float32) float32 {
	switch {
	case x != x || x > math.MaxFloat32:
		return x
	case x == 0:
		return negInf
	case x < 0:
		return float32(math.NaN())
	}
	v, down := x, float32(0)
	if x < 0x1p-126 {
		v, down = float32(x*(1<<23)), 23
	}
	b := math.Float32bits(v) - logSplit
	e := float32(int32(b)>>23) - down
	f := math.Float32frombits(b&0x7fffff+logSplit) - 1
	z := float32(f * f)
	y := logPoly[0]
	for _, c := range logPoly[1:] {
		y = fma32(y, f, c)
	}
	y = float32(float32(y*f) * z)
	y = fma32(e, ln2Lo, y)
	y = fma32(-z, 0.5, y)
	y += f
	return fma32(e, ln2Hi, y)
}
