package fmath

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

const prec = 240 // bits of the references

func bigOf(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

func newBig() *big.Float { return new(big.Float).SetPrec(prec) }

// bigExp is the Taylor series at x/2^40, squared 40 times.
func bigExp(x *big.Float) *big.Float {
	r := newBig().SetMantExp(x, -40)
	sum, term := bigOf(1), bigOf(1)
	for n := 1; n < 12; n++ {
		term.Mul(term, r)
		term.Quo(term, bigOf(float64(n)))
		sum.Add(sum, term)
	}
	for range 40 {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog is Newton's method on bigExp.
func bigLog(x *big.Float) *big.Float {
	near, _ := x.Float64()
	y := bigOf(math.Log(near))
	for range 3 {
		e := bigExp(newBig().Neg(y))
		e.Mul(e, x)
		y.Add(y, e.Sub(e, bigOf(1)))
	}
	return y
}

var bigPi, _ = newBig().SetString("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")

func bigCos(x *big.Float) *big.Float {
	sum, term, square := bigOf(1), bigOf(1), newBig().Mul(x, x)
	for n := 1.0; n < 60; n++ {
		term.Mul(term, square)
		term.Quo(term, bigOf(-(2*n)*(2*n-1)))
		sum.Add(sum, term)
	}
	return sum
}

// ulps returns how far got is from the truth, in units of the last place of the truth.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	if w == got {
		w = math.Nextafter(w, math.Inf(1))
	}
	unit := math.Max(math.Abs(math.Nextafter(w, math.Inf(1))-w), 0x1p-1074)
	d, _ := newBig().Quo(newBig().Sub(bigOf(got), want), bigOf(unit)).Float64()
	return math.Abs(d)
}

// unary are the functions of one number, with arguments for each.
var unary = []struct {
	name string
	f    func(float64) float64
	most float64 // units in the last place
	arg  func(r *rand.Rand) float64
	want func(x float64) *big.Float
}{
	{"exp", Exp, 1, within(-700, 700), func(x float64) *big.Float { return bigExp(bigOf(x)) }},
	{"exp near 0", Exp, 1, scaled(-30, 1), func(x float64) *big.Float { return bigExp(bigOf(x)) }},
	{"exp2", Exp2, 1, within(-1000, 1000), func(x float64) *big.Float {
		return bigExp(newBig().Mul(bigOf(x), bigLog(bigOf(2))))
	}},
	{"expm1", Expm1, 3, within(-45, 45), func(x float64) *big.Float { return newBig().Sub(bigExp(bigOf(x)), bigOf(1)) }},
	{"expm1 near 0", Expm1, 3, scaled(-60, 1), func(x float64) *big.Float { return newBig().Sub(bigExp(bigOf(x)), bigOf(1)) }},
	{"log", Log, 1, positive(-1000, 1000), func(x float64) *big.Float { return bigLog(bigOf(x)) }},
	{"log near 1", Log, 1, within(0.5, 2), func(x float64) *big.Float { return bigLog(bigOf(x)) }},
	{"sigmoid", Sigmoid, 3, within(-40, 40), func(x float64) *big.Float {
		e := bigExp(newBig().Neg(bigOf(x)))
		return newBig().Quo(bigOf(1), e.Add(e, bigOf(1)))
	}},
	{"tanh", Tanh, 3, within(-25, 25), func(x float64) *big.Float {
		e := bigExp(newBig().Mul(bigOf(2), bigOf(x)))
		return newBig().Quo(newBig().Sub(e, bigOf(1)), newBig().Add(e, bigOf(1)))
	}},
	{"cosine of turns", CosTurns, 3, within(-2, 2), func(x float64) *big.Float {
		return bigCos(newBig().Mul(newBig().Mul(bigOf(2), bigPi), bigOf(x)))
	}},
	{"quantile", NormalQuantile, 3, within(1e-4, 1-1e-4), nil},
	{"quantile of little", NormalQuantile, 3, positive(-1000, -1), nil},
}

func within(lo, hi float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return lo + float64(r.Float64()*(hi-lo)) }
}

// positive has all magnitudes between 2^lo and 2^hi, and scaled both signs.
func positive(lo, hi int) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Ldexp(1+r.Float64(), lo+r.IntN(hi-lo)) }
}

func scaled(lo, hi int) func(*rand.Rand) float64 {
	p := positive(lo, hi)
	return func(r *rand.Rand) float64 { return math.Copysign(p(r), r.Float64()-0.5) }
}

func TestUnary(t *testing.T) {
	for _, c := range unary {
		if c.want == nil {
			continue
		}
		r := rand.New(rand.NewPCG(1, 2))
		worst, at := 0.0, 0.0
		for range 400 {
			x := c.arg(r)
			if d := ulps(c.f(x), c.want(x)); d > worst {
				worst, at = d, x
			}
		}
		t.Logf("%s: at most %.2f units in the last place, at %v", c.name, worst, at)
		if !(worst < c.most) {
			t.Errorf("%s(%v) is %v units in the last place away, want fewer than %v", c.name, at, worst, c.most)
		}
	}
}

// Package math's erfc, which has errors of its own, leads back.
func TestNormalQuantile(t *testing.T) {
	for _, p := range []float64{1e-300, 1e-20, 1e-9, 1e-3, 0.05, 0.074, 0.076, 0.3, 0.5, 0.7, 0.925, 0.999} {
		x := NormalQuantile(p)
		if back := math.Erfc(-x/math.Sqrt2) / 2; !(math.Abs(back/p-1) <= 1e-15*(4+x*x)) {
			t.Errorf("the quantile of %v is %v, of which the probability is %v", p, x, back)
		}
	}
}

func TestPow(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	worst := 0.0
	for range 1000 {
		x := math.Ldexp(1+r.Float64(), r.IntN(60)-30)
		y := (r.Float64() - 0.5) * 40
		if r.IntN(2) == 0 {
			x = 0.9 + 0.2*r.Float64()
			y *= 100
		}
		want := bigExp(newBig().Mul(bigOf(y), bigLog(bigOf(x))))
		d := ulps(Pow(x, y), want)
		if worst = max(worst, d); !(d < 1) {
			t.Fatalf("%v^%v is %v, %v units in the last place away", x, y, Pow(x, y), d)
		}
	}
	t.Logf("at most %.2f units in the last place", worst)
	for x := -9.0; x < 10; x++ { // exact
		if x != 0 && (Pow(x, 2) != x*x || Pow(x, 3) != x*x*x || Pow(x, -1) != 1/x) || Pow(x*x, 0.5) != math.Abs(x) {
			t.Errorf("powers of %v are not exact", x)
		}
	}
}

// What is special is as in package math.
func TestSpecialValues(t *testing.T) {
	inf := math.Inf(1)
	special := []float64{0, math.Copysign(0, -1), 1, -1, inf, -inf, math.NaN(), 2, -2, 3, -3, 0.5, -0.5, 1e300, -1e300, 1e-300, 0x1p53, 0x1p53 + 2, -0x1p60, 0x1p65}
	// Where both are ordinary numbers the last bits may differ.
	same := func(got, want float64) bool {
		if want != 0 && !math.IsInf(want, 0) && !math.IsNaN(want) {
			return math.Abs(got/want-1) < 1e-14 || math.Abs(got-want) < 1e-322
		}
		return math.Float64bits(got) == math.Float64bits(want) || got != got && want != want
	}
	for _, c := range []struct {
		name       string
		ours, math func(float64) float64
	}{
		{"exp", Exp, math.Exp}, {"exp2", Exp2, math.Exp2}, {"expm1", Expm1, math.Expm1}, {"log", Log, math.Log}, {"tanh", Tanh, math.Tanh},
		{"sigmoid", Sigmoid, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }},
		{"quantile", NormalQuantile, func(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }},
	} {
		for _, x := range append(special, 709, 709.8, -700, -745.2, 1024, -1074, -1075) {
			if c.name == "quantile" && x > 0 && x < 1e-3 {
				continue // where 2p−1 is −1
			}
			if got, want := c.ours(x), c.math(x); !same(got, want) {
				t.Errorf("%s(%v) is %v, want %v", c.name, x, got, want)
			}
		}
	}
	for _, x := range special {
		for _, y := range special {
			if got, want := Pow(x, y), math.Pow(x, y); !same(got, want) {
				t.Errorf("%v^%v is %v, want %v", x, y, got, want)
			}
		}
	}
	for _, x := range []float64{inf, -inf, math.NaN()} {
		if got := CosTurns(x); got == got {
			t.Errorf("the cosine of %v turns is %v, want NaN", x, got)
		}
	}
	for i, want := range []float64{1, 0, -1, 0, 1} {
		if got := CosTurns(float64(i) / 4); got != want {
			t.Errorf("the cosine of %d quarter turns is %v, want %v", i, got, want)
		}
	}
}

// The same bits on every processor: "make bits-arm64" runs this as arm64 code.
func TestBits(t *testing.T) {
	sum := func(draw func(*rand.Rand) float64) string {
		h, r := fnv.New64a(), rand.New(rand.NewPCG(5, 6))
		for range 20000 {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(draw(r)))
			h.Write(b[:])
		}
		return fmt.Sprintf("%016x", h.Sum64())
	}
	got := map[string]string{
		"pow": sum(func(r *rand.Rand) float64 { return Pow(positive(-20, 20)(r), within(-30, 30)(r)) }),
	}
	for _, c := range unary {
		got[c.name] = sum(func(r *rand.Rand) float64 { return c.f(c.arg(r)) })
	}
	for name, want := range bits {
		if got[name] != want {
			t.Errorf("%q: %q,", name, got[name])
		}
	}
	if len(got) != len(bits) {
		t.Errorf("%d functions, want %d: %v", len(bits), len(got), got)
	}
}

var bits = map[string]string{
	"exp":                "b3e05257fe8144bb",
	"exp near 0":         "d03728773a2d20ba",
	"exp2":               "5ca105cc4882f99e",
	"expm1":              "a2d0de067c9e7d22",
	"expm1 near 0":       "944fe07437e20c32",
	"log":                "d4cb758822d33b64",
	"log near 1":         "a4f980d7c958e451",
	"sigmoid":            "08bb2006fec3f515",
	"tanh":               "a03e49406905243a",
	"cosine of turns":    "64919f77b7ac6e21",
	"quantile":           "f7444e2a4b8abae2",
	"quantile of little": "fd26b02600be4bcd",
	"pow":                "3b573c31cdce4586",
}
