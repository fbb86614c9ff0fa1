package half

import (
	"math"
	"testing"
)

// TestHalf takes every binary16 to float32 and back, and rounds the numbers halfway
// between two of them, and those next to these.
func TestHalf(t *testing.T) {
	known := map[uint16]float32{0: 0, 1: 0x1p-24, 0x3ff: 1023 * 0x1p-24, 0x400: 0x1p-14, 0x3c00: 1, 0x3c01: 1 + 0x1p-10, 0x7bff: Max, 0xc000: -2}
	for h, want := range known {
		if got := To(h); got != want {
			t.Errorf("%#04x stands for %g, want %g", h, got, want)
		}
	}
	for h := uint16(0); h < 0x7c00; h++ {
		v := To(h)
		if From(v) != h || From(-v) != h|0x8000 {
			t.Fatalf("%g becomes %#04x, and its negative %#04x; want %#04x", v, From(v), From(-v), h)
		}
		if h == 0x7bff {
			break
		}
		middle := (v + To(h+1)) / 2
		even := h + h&1
		if got := From(middle); got != even {
			t.Fatalf("%g, halfway between %#04x and the next, becomes %#04x", middle, h, got)
		}
		below, above := math.Nextafter32(middle, 0), math.Nextafter32(middle, 1e9)
		if From(below) != h || From(above) != h+1 {
			t.Fatalf("next to %g: %#04x and %#04x, want %#04x and %#04x", middle, From(below), From(above), h, h+1)
		}
	}
	for v, want := range map[float32]uint16{65519: 0x7bff, 65520: 0x7c00, 1e30: 0x7c00, float32(math.Inf(-1)): 0xfc00, 1e-30: 0} {
		if got := From(v); got != want {
			t.Errorf("%g becomes %#04x, want %#04x", v, got, want)
		}
	}
	if got := To(From(float32(math.NaN()))); !math.IsNaN(float64(got)) {
		t.Errorf("NaN becomes %g", got)
	}
}
