package kernels

import (
	"math"
	"testing"
)

// ulps returns by how many units in the last place of a float32 got misses want.
// Where want overflows, the largest number is one unit away; NaN and infinities
// must agree otherwise.
func ulps(got float32, want float64) float64 {
	w := float32(want)
	switch {
	case got == w || got != got && w != w:
		return 0
	case got != got || w != w:
		return math.Inf(1)
	}
	size := math.Abs(want)
	if size > math.MaxFloat32 {
		size = math.MaxFloat32
	}
	_, e := math.Frexp(max(size, 0x1p-126))
	g := float64(got)
	if math.IsInf(g, 0) {
		g = math.Copysign(0x1p128, g)
	}
	return math.Abs(g-math.Max(math.Min(want, 0x1p128), -0x1p128)) / math.Ldexp(1, e-24)
}

// Exp and log are within 2 units in the last place for every exponent, subnormal
// numbers included, and many mantissas, where functions turn, and at the ends.
func TestExpLogAccuracy(t *testing.T) {
	var xs []float32
	step := uint32(1531) // odd: all low bits occur
	if testing.Short() {
		step *= 16
	}
	for b := uint64(0); b < 1<<32; b += uint64(step) {
		xs = append(xs, math.Float32frombits(uint32(b)))
	}
	around := func(v float64) {
		b := math.Float32bits(float32(v))
		for d := range uint32(2000) {
			xs = append(xs, math.Float32frombits(b+d-1000))
		}
	}
	for _, v := range []float64{1, math.Sqrt2, 1 / math.Sqrt2, 88.7228, -87.3365, -103.2789, -103.9721, 0x1p-126, math.MaxFloat32 / 2} {
		around(v)
	}
	for i := -150; i <= 128; i++ { // where the reduced argument changes
		around((float64(i) + 0.5) * math.Ln2)
	}
	inf := math.Inf(1)
	for _, v := range []float64{0, math.Copysign(0, -1), inf, -inf, math.NaN(), 0x1p-149, -0x1p-149, math.MaxFloat32, -math.MaxFloat32} {
		xs = append(xs, float32(v))
	}
	eachISA(t, func(t *testing.T) {
		got := make([]float32, len(xs))
		for _, f := range []struct {
			op   UnaryOp
			want func(float64) float64
		}{{Exp, math.Exp}, {Log, math.Log}} {
			ks.unary[f.op](got, xs, 0)
			worst, at := 0.0, float32(0)
			for i, x := range xs {
				if u := ulps(got[i], f.want(float64(x))); u > worst {
					worst, at = u, x
				}
			}
			t.Logf("%s: %.3f units in the last place at %g", unaryNames[f.op], worst, at)
			if worst > 2 {
				t.Errorf("%s is %.3f units in the last place off at %g (%#x)", unaryNames[f.op], worst, at, math.Float32bits(at))
			}
		}
	})
}
