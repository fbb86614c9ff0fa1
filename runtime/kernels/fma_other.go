//go:build !(arm64 || loong64 || ppc64 || ppc64le || riscv64 || s390x)

package kernels

import "math"

// fma32 returns x·y + z, rounded once, where the compiler does not fuse. The
// product is exact in float64. Rounding the sum to float64 and again to float32
// errs only where the first lands in the middle between two float32.
func fma32(x, y, z float32) float32 {
	p := float64(x) * float64(y)
	s := p + float64(z)
	if b := math.Float64bits(s); b<<35 != 1<<63 && b<<1 >= 897<<53 {
		return float32(s)
	}
	return fmaRound(p, float64(z), s)
}

// fmaRound rounds p + z, whose nearest float64 is s, to odd and then to float32:
// an inexact sum gets an odd last bit and so is never in the middle (Boldo and
// Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//
//go:noinline
func fmaRound(p, z, s float64) float32 {
	t := s - p
	e := (p - (s - t)) + (z - t) // what s leaves out, exactly
	b := math.Float64bits(s)
	if e != 0 && b&1 == 0 && s != 0 && s-s == 0 {
		if (e > 0) == (s > 0) {
			b++
		} else {
			b--
		}
	}
	return float32(math.Float64frombits(b))
}
