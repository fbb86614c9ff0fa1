// Package half converts between float32 and IEEE 754 binary16.
package half

import "math"

// Max is the greatest finite number of IEEE 754 binary16.
const Max = 65504

// From rounds to binary16, ties to even. What is beyond its range becomes infinite.
func From(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	switch b &= 0x7fffffff; {
	case b > 0x7f800000:
		return sign | 0x7e00 // NaN
	case b >= 0x47800000: // from 2¹⁶
		return sign | 0x7c00
	case b < 0x38800000: // below 2⁻¹⁴: multiples of 2⁻²⁴, which the addition rounds to
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
	}
	b += 0xfff + b>>13&1 // 13 bits are dropped; a carry goes into the exponent
	return sign | uint16((b-0x38000000)>>13)
}

// To is the number that a binary16 stands for.
func To(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, mantissa := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch exponent {
	case 0:
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}
