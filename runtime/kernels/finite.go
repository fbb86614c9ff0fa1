package kernels

import "math"

// Finite reports whether no element is NaN or infinite.
func Finite(x []float32) bool {
	for len(x) > 0 {
		part := x[:min(len(x), elemChunk)]
		// A sum of absolute values is finite if all are, and they are together not too large.
		if sum := ks.sumAbs(part); !(sum <= math.MaxFloat32) && !eachFinite(part) {
			return false
		}
		x = x[len(part):]
	}
	return true
}

func eachFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
