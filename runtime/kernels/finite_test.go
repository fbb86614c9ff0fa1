package kernels

import (
	"math"
	"testing"
)

func TestFinite(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for _, n := range []int{0, 1, 15, 70, elemChunk, elemChunk + 9} {
			x := normals(1, n)
			if !Finite(x) {
				t.Fatalf("%d normal numbers are finite", n)
			}
			for at := 0; at < n; at += max(1, n/5) {
				for _, bad := range []float32{nan, inf, -inf} {
					was := x[at]
					if x[at] = bad; Finite(x) {
						t.Errorf("%v among %d numbers is not finite", bad, n)
					}
					x[at] = was
				}
			}
			fill(x, -math.MaxFloat32)
			if !Finite(x) {
				t.Errorf("%d of the largest numbers are finite, though their sum is not", n)
			}
		}
	})
}
