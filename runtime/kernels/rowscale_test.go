package kernels

import (
	"fmt"
	"math"
	"testing"
)

// Normalised rows are the same from the smallest float32 to the largest, dense and
// sparse; rows of zeros stay zeros.
func TestNormalizeFarRows(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		const cols = 37
		direction := func(c int) float64 { return math.Cos(float64(c * c)) } // within [−1, 1], the first is 1
		scales := []float64{0, math.SmallestNonzeroFloat32, 3e-45, 1e-44, 1e-40, math.MaxFloat32, 3e38}
		for e := -38; e <= 38; e++ {
			scales = append(scales, math.Pow(10, float64(e)))
		}
		rows := len(scales)
		x := make([]float32, rows*cols)
		s := &CSR{Rows: rows, Cols: cols, RowPtr: []int32{0}}
		for r, scale := range scales {
			for c := range cols {
				x[r*cols+c] = float32(direction(c) * scale)
				s.Col = append(s.Col, int32(c))
			}
			s.RowPtr = append(s.RowPtr, int32(len(s.Col)))
		}
		for _, norm := range []int{1, 2} {
			want := make([]float64, len(x))
			for r := range rows {
				n := 0.0
				for _, v := range x[r*cols : (r+1)*cols] {
					n += math.Pow(math.Abs(float64(v)), float64(norm))
				}
				n = math.Pow(n, 1/float64(norm))
				for i := r * cols; i < (r+1)*cols && n > 0; i++ {
					want[i] = float64(x[i]) / n
				}
			}
			dense, sparse := junk(len(x)), junk(len(x))
			if norm == 1 {
				p.L1NormalizeRows(dense, x, rows, cols, 1e-12)
				p.SparseL1Normalize(sparse, x, s, 1e-12)
			} else {
				p.L2NormalizeRows(dense, x, rows, cols, 1e-12)
				p.SparseL2Normalize(sparse, x, s, 1e-12)
			}
			within(t, fmt.Sprintf("dense, norm %d", norm), dense, want, 1e-7, 1e-6)
			within(t, fmt.Sprintf("sparse, norm %d", norm), sparse, want, 1e-7, 1e-6)
		}
	})
}

// Rows between the limits are computed without a scale, to the bit; an eps above
// the lower limit says of small rows that they have no direction; infinities and NaN
// are left to the plain rule.
func TestNormalizePlainRows(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		for _, scale := range []float32{1e-12, 2e-12, 1e-3, 1, 1e9, 9e11, 1e12} {
			for _, cols := range []int{1, 3, 16, 100, 4000} {
				x, dst, want := make([]float32, cols), junk(cols), junk(cols)
				for c := range x {
					x[c] = float32(math.Cos(float64(c*c))) * scale
				}
				x[0] = scale
				p.L2NormalizeRows(dst, x, 1, cols, 1e-12)
				ks.vs[Mul](want, x, 1/max(sqrt32(ks.dot(x, x)), 1e-12))
				sameBits(t, fmt.Sprintf("L2 of %d columns of %g", cols, scale), dst, want)
				p.L1NormalizeRows(dst, x, 1, cols, 1e-12)
				ks.vs[Mul](want, x, 1/max(ks.sumAbs(x), 1e-12))
				sameBits(t, fmt.Sprintf("L1 of %d columns of %g", cols, scale), dst, want)
			}
		}
		dst := junk(2)
		p.L2NormalizeRows(dst, []float32{3e-16, 4e-16}, 1, 2, 1e-6)
		within(t, "a row below eps", dst, []float64{3e-10, 4e-10}, 0, 1e-6)
		inf := float32(math.Inf(1))
		p.L2NormalizeRows(dst, []float32{inf, 3e38}, 1, 2, 1e-12)
		if dst[0] == dst[0] || dst[1] != 0 {
			t.Errorf("a row with an infinity gives %v, want NaN and 0", dst)
		}
	})
}

// The gradient neither overflows nor turns to NaN where the squares do.
func TestNormalizeFarRowsGrad(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		for _, scale := range []float64{1e13, 1e19, 1e20, 1e30} {
			x := []float32{float32(3 * scale), float32(-4 * scale), 0}
			dy := []float32{1, 2, 3}
			dx := junk(3)
			p.L2NormalizeRowsGrad(dx, x, dy, 1, 3, 1e-12)
			inner := 0.6*1 - 0.8*2
			for i, y := range []float64{0.6, -0.8, 0} {
				want := (float64(dy[i]) - y*inner) / (5 * scale)
				if got := float64(dx[i]); !(math.Abs(got-want) <= 1e-5*math.Abs(want)) {
					t.Errorf("at %g element %d of the gradient is %g, want %g", scale, i, got, want)
				}
			}
		}
	})
}

// Rows that have no direction have no gradient, unless eps makes them long enough for one.
func TestNormalizeShortRowsGrad(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(1)
		defer p.Close()
		for _, c := range []struct{ x, eps, want float32 }{{0, 1e-12, 0}, {3e-13, 1e-12, 0}, {0, 0.5, 2}, {0.1, 0.5, 2}} {
			dx := junk(2)
			p.L2NormalizeRowsGrad(dx, []float32{c.x, 0}, []float32{1, 1}, 1, 2, c.eps)
			if dx[0] != c.want || dx[1] != c.want {
				t.Errorf("the gradient at (%g, 0) with eps %g is %v, want %g", c.x, c.eps, dx, c.want)
			}
		}
	})
}
