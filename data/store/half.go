package store

import (
	"sync"

	"github.com/gsrc-dev/gsrc/internal/half"
)

// ToHalf rounds to float16, to even at ties. ok is false where x is beyond its range.
func ToHalf(x float32) (h uint16, ok bool) {
	h = half.From(x)
	return h, h&0x7c00 != 0x7c00
}

// halves are all values of float16: reading them is twice as fast as computing them.
var halves = sync.OnceValue(func() *[1 << 16]float32 {
	var t [1 << 16]float32
	for h := range t {
		t[h] = half.To(uint16(h))
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
