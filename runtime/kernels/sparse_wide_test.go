package kernels

import (
	"slices"
	"testing"
)

// A product by blocks of columns has the bits of the one by rows, which is made where there are
// two heads of the same values.
func TestSpMMByBlocks(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		for _, threads := range []int{1, 3} {
			p := NewPool(threads)
			defer p.Close()
			const n = 90
			for _, f := range []int{4 * wideColumns, 5*wideColumns + 22} {
				s := randomGraph(n, wideReads)
				if !byBlocks(s.Rows, s.Cols, s.NNZ(), f, 1) {
					t.Fatalf("%d entries and %d columns are not by blocks", s.NNZ(), f)
				}
				twice := func(x []float32) (y []float32) {
					for _, v := range x {
						y = append(y, v, v)
					}
					return y
				}
				h, add, bias, diag := normals(1, n*f), normals(2, n*f), normals(3, f), normals(4, n)
				for i, s := range []*CSR{s, Transpose(s)} {
					for j, epi := range []Epilogue{{}, {Bias: bias, Act: Relu}, {Add: add}, {Accumulate: true}} {
						for k, diag := range [][]float32{nil, diag} {
							vals := normals(5, s.NNZ())
							want, got := normals(6, n*f), normals(6, n*f)
							p.SpMMHeads(want, s, twice(vals), twice(diag), h, f, 2, epi)
							p.SpMM(got, s, vals, diag, h, f, epi)
							if !slices.Equal(got, want) {
								t.Errorf("%d threads, %d columns, structure %d, epilogue %d, diagonal %d: the bits differ", threads, f, i, j, k)
							}
						}
					}
					ones, want, got := make([]float32, s.NNZ()), junk(n*f), junk(n*f)
					fill(ones, 1)
					p.SpMM(want, s, ones, nil, h, f, Epilogue{})
					p.SpMM(got, s, nil, nil, h, f, Epilogue{})
					if !slices.Equal(got, want) {
						t.Errorf("%d columns, structure %d: without values the bits differ", f, i)
					}
				}
			}
		}
	})
}
