package store

import (
	"math"
	"sync"
)

// ToHalf rounds to float16, to even at ties. ok is false where x is beyond its range.
func ToHalf(x float32) (h uint16, ok bool) {
	b := math.Float32bits(x)
	sign, b := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case b >= 0x477ff000: // rounds to 65520 or more, or is no number
		return sign | 0x7c00, false
	case b >= 0x38800000: // normal
		b += 0xfff + b>>13&1
		return sign | uint16(b>>13-112<<10), true
	case b < 0x33000000: // below half of the least
		return sign, true
	}
	// The significand with its leading bit, shifted to units of 2⁻²⁴.
	shift := 126 - b>>23
	m := b&0x7fffff | 0x800000
	m += 1<<(shift-1) - 1 + m>>shift&1
	return sign | uint16(m>>shift), true
}

// halves are all values of float16.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	var t [1 << 16]float32
	for h := range t {
		e, m := h>>10&31, float64(h&0x3ff)
		v := math.Ldexp(1024+m, e-25)
		switch e {
		case 0:
			v = math.Ldexp(m, -24)
		case 31:
			v = math.Inf(1)
			if m != 0 {
				v = math.NaN()
			}
		}
		if h>>15 != 0 {
			v = -v
		}
		t[h] = float32(v)
	}
	return &t
})

// FromHalf makes dst the values of float16s.
func FromHalf(dst []float32, src []uint16) {
	t := halves()
	for i, h := range src {
		dst[i] = t[h]
	}
}
