// Package fmath holds elementary functions of float64 that give the same bits on every
// processor. Those of package math do not: some are assembly on one architecture, and
// where the rest are compiled for a processor that can fuse x*y+z into one rounding, as
// arm64's, the compiler does so.
//
// Here every product that is added to something is rounded first, by a conversion, or
// fused by math.FMA, which rounds once on every processor. Of package math only what IEEE
// 754 defines to the last bit is called: Abs, Floor, Copysign, Sqrt, FMA, Ldexp, Frexp and
// their like.
//
// Errors are below one unit in the last place of the result for [Exp], [Exp2], [Log] and
// [Pow], and below three for the others. What is infinite, zero or NaN is as in package
// math.
package fmath

import "math"

// ln 2 in two parts: the first has 32 bits, so that its products with exponents are exact.
const (
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = math.Ln2 - ln2Hi
)

// expTaylor are 1/n!, from n = 2 on. For |r| ≤ ln(2)/2 what they leave out is below 2^-57.
var expTaylor = [...]float64{1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880,
	1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800}

// poly returns c[0] + c[1]·x + c[2]·x² + …
func poly(x float64, c []float64) float64 {
	y := 0.0
	for i := len(c) - 1; i >= 0; i-- {
		y = float64(y*x) + c[i]
	}
	return y
}

// expm1Of returns exp(r+lo) − 1 for |r| ≤ ln(2)/2 and lo tiny beside it.
func expm1Of(r, lo float64) float64 {
	rest := float64(float64(r*r) * poly(r, expTaylor[:]))
	return r + (rest + float64(lo*(1+(r+rest))))
}

// expOf returns exp(x+lo), for lo tiny beside x.
func expOf(x, lo float64) float64 {
	switch {
	case x != x || x > 800:
		return x * math.Inf(1) // NaN or +Inf
	case x < -800:
		return 0
	}
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	r := x - float64(k*ln2Hi)
	low := float64(k * ln2Lo)
	hi := r - low
	return math.Ldexp(1+expm1Of(hi, lo+((r-hi)-low)), int(k))
}

// Exp returns e^x.
func Exp(x float64) float64 { return expOf(x, 0) }

// Exp2 returns 2^x.
func Exp2(x float64) float64 {
	if !(math.Abs(x) < 2000) {
		return expOf(x, 0)
	}
	k := math.Floor(x + 0.5)
	r := timesDouble(ln2, x-k)
	return math.Ldexp(1+expm1Of(r.hi, r.lo), int(k))
}

// Expm1 returns e^x − 1, accurate also where x is near zero.
func Expm1(x float64) float64 {
	switch {
	case x == 0 || x != x:
		return x
	case x < -40:
		return -1
	case x > 40:
		return Exp(x) // one is less than half a unit in the last place
	}
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	if k == 0 {
		return expm1Of(x, 0)
	}
	r := x - float64(k*ln2Hi)
	low := float64(k * ln2Lo)
	hi := r - low
	t, scale := expm1Of(hi, (r-hi)-low), math.Ldexp(1, int(k))
	return float64(scale*t) + (scale - 1)
}

// split returns k and f with x = 2^k·(1+f) and 1+f between √½ and √2. x is positive and finite.
func split(x float64) (k, f float64) {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	return float64(e), m - 1
}

// logTaylor are 2/(2n+1) from n = 1 on: with s = f/(2+f), ln(1+f) = 2s + s·Σ 2/(2n+1) s²ⁿ.
// For |s| ≤ 0.172 what they leave out is below 2^-60.
var logTaylor = [...]float64{2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21, 2. / 23, 2. / 25}

// Log returns ln x.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	k, f := split(x)
	// 2s = f − s·f, and s·f = f²/2 − s·f²/2: what is rounded is small beside f.
	s := f / (2 + f)
	square := float64(s * s)
	half := float64(float64(0.5*f) * f)
	small := float64(s*(half+float64(square*poly(square, logTaylor[:])))) + float64(k*ln2Lo)
	return float64(k*ln2Hi) - ((half - small) - f)
}

// double is a number of about 106 bits, the sum of a float64 and what is left of it.
type double struct{ hi, lo float64 }

var ln2 = double{math.Ln2, 0x1.abc9e3b39803fp-56}

// sum returns a+b where |a| ≥ |b|.
func sum(a, b float64) double {
	hi := a + b
	return double{hi, b - (hi - a)}
}

func addDouble(a, b double) double {
	r := sum(a.hi, b.hi)
	return sum(r.hi, r.lo+(a.lo+b.lo))
}

func timesDouble(a double, b float64) double {
	hi := float64(a.hi * b)
	return sum(hi, math.FMA(a.hi, b, -hi)+float64(a.lo*b))
}

func mulDouble(a, b double) double {
	hi := float64(a.hi * b.hi)
	cross := float64(a.hi*b.lo) + float64(a.lo*b.hi)
	return sum(hi, math.FMA(a.hi, b.hi, -hi)+cross)
}

// third is 1/3.
var third = double{1. / 3, 0x1.5555555555555p-56}

// logDouble returns ln x with some 64 bits. x is positive and finite.
func logDouble(x float64) double {
	k, f := split(x)
	d := sum(2, f)
	s := double{hi: f / d.hi}
	s.lo = (math.FMA(-s.hi, d.hi, f) - float64(s.hi*d.lo)) / d.hi
	square := mulDouble(s, s)
	// ln(1+f) = 2s·(1 + s²/3 + s⁴·Σ 1/(2n+1) s²ⁿ⁻⁴), n from 2
	rest := float64(float64(square.hi*square.hi) * float64(0.5*poly(square.hi, logTaylor[1:])))
	series := addDouble(double{hi: 1}, addDouble(mulDouble(square, third), double{hi: rest}))
	l := mulDouble(double{2 * s.hi, 2 * s.lo}, series)
	if k == 0 {
		return l
	}
	return addDouble(timesDouble(ln2, k), l)
}

// Pow returns x^y.
func Pow(x, y float64) float64 {
	whole := math.Floor(y) == y
	odd := whole && math.Abs(y) < 1<<53 && math.Mod(y, 2) != 0
	switch {
	case y == 0 || x == 1:
		return 1
	case x != x || y != y:
		return math.NaN()
	case math.IsInf(y, 0):
		switch a := math.Abs(x); {
		case a == 1:
			return 1
		case a > 1 == (y > 0):
			return math.Inf(1)
		}
		return 0
	case x == 0 || math.IsInf(x, 0):
		r := 0.0
		if (x == 0) == (y < 0) {
			r = math.Inf(1)
		}
		if odd {
			r = math.Copysign(r, x)
		}
		return r
	case x < 0 && !whole:
		return math.NaN()
	case math.Abs(y) > 0x1p64: // and x is not 1
		if x == -1 {
			return 1
		}
		if math.Abs(x) > 1 == (y > 0) {
			return math.Inf(1)
		}
		return 0
	}
	e := timesDouble(logDouble(math.Abs(x)), y)
	r := expOf(e.hi, e.lo)
	if x < 0 && odd {
		r = -r
	}
	return r
}

// Sigmoid returns 1/(1+e^-x).
func Sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + Exp(-x))
	}
	e := Exp(x)
	return e / (1 + e)
}

// Tanh returns the hyperbolic tangent of x.
func Tanh(x float64) float64 {
	if x == 0 || x != x {
		return x
	}
	var t float64
	switch a := math.Abs(x); {
	case a > 22:
		t = 1
	case a >= 1:
		t = 1 - 2/(Expm1(2*a)+2)
	default:
		t = Expm1(-2 * a)
		t = -t / (t + 2)
	}
	return math.Copysign(t, x)
}

// The Taylor series of (cos x − 1)/x² and (sin x − x)/x³ in x². For |x| ≤ π/4 what they
// leave out is below 2^-58.
var (
	cosTaylor = [...]float64{-1. / 2, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600, -1. / 87178291200, 1. / 20922789888000}
	sinTaylor = [...]float64{-1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800, -1. / 1307674368000}
)

// CosTurns returns the cosine of an angle of t full turns, cos 2πt.
func CosTurns(t float64) float64 {
	t = math.Abs(t)
	t -= math.Floor(t)                               // exact, as are the lines below; NaN for what is infinite
	n := math.Floor(float64(4*t) + 0.5)              // quarter turns
	x := float64((t - float64(n/4)) * (2 * math.Pi)) // within π/4 of zero
	square := float64(x * x)
	var y float64
	if n == 1 || n == 3 {
		y = x + float64(float64(x*square)*poly(square, sinTaylor[:]))
	} else {
		y = 1 + float64(square*poly(square, cosTaylor[:]))
	}
	if n == 1 || n == 2 { // cos(x+π/2) = −sin x, cos(x+π) = −cos x
		return -y
	}
	return y
}

// The rational functions of Wichura, "Algorithm AS 241: the percentage points of the
// normal distribution", Applied Statistics 37 (1988).
var (
	middleTop = [...]float64{3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
		4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3}
	middleBottom = [...]float64{1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
		2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}
	tailTop = [...]float64{1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
		1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4}
	tailBottom = [...]float64{1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}
	farTop = [...]float64{6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
		2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7}
	farBottom = [...]float64{1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}
)

// NormalQuantile returns the x below which a standard normal variable is with the
// probability p, NaN for p outside [0, 1].
func NormalQuantile(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return q * (poly(r, middleTop[:]) / poly(r, middleBottom[:]))
	}
	r := math.Sqrt(-Log(min(p, 1-p)))
	switch {
	case r <= 5:
		r = poly(r-1.6, tailTop[:]) / poly(r-1.6, tailBottom[:])
	case r <= math.MaxFloat64:
		r = poly(r-5, farTop[:]) / poly(r-5, farBottom[:])
	}
	return math.Copysign(r, q)
}
