package kernels

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// The search by what is stored finds the rows and the products, to the bit, that the search of all entries
// finds, in one block of columns or several, with signs, sums that come back to 0, equal rows and empty ones.
func TestNearestSparse(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		for _, c := range []struct{ n, f, k int }{{1, 5, 3}, {40, 7, 3}, {150, 320, 5}, {300, 700, 40}, {97, 1433, 96}} {
			key := rng.New(uint64(c.f), "sparse")
			z := make([]float32, c.n*c.f)
			for i := range c.n {
				for e := range i % 23 {
					at := uint64(64*i + e)
					v := []float32{0.25, -0.25, key.Sub("v").Uniform(at)}[at%3]
					z[i*c.f+int(float32(c.f)*key.Uniform(at)*key.Uniform(at))] = v // the first columns in most rows
				}
				if i%7 == 6 {
					copy(z[i*c.f:(i+1)*c.f], z[(i-3)*c.f:])
				}
			}
			s, vals := &CSR{Rows: c.n, Cols: c.f, RowPtr: []int32{0}}, []float32(nil)
			for i := range c.n {
				for col, v := range z[i*c.f : (i+1)*c.f] {
					if v != 0 {
						s.Col, vals = append(s.Col, int32(col)), append(vals, v)
					}
				}
				s.RowPtr = append(s.RowPtr, int32(len(s.Col)))
			}
			idx, sim := make([]int32, c.n*c.k), junk(c.n*c.k)
			want, products := make([]int32, c.n*c.k), junk(c.n*c.k)
			p.Nearest(want, products, z, c.n, c.f, c.k)
			p.NearestSparse(idx, sim, s, Transpose(s), vals, c.k)
			if !slices.Equal(idx, want) {
				t.Errorf("%v: other rows", c)
			}
			sameBits(t, name("products ", c), sim, products)
		}
	})
}
