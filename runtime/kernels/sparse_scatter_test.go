package kernels

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// features is a structure of n rows with each entries in rising columns.
func features(n, cols, each int) *CSR {
	s := &CSR{Rows: n, Cols: cols, RowPtr: []int32{0}}
	draw := rand.New(rand.NewPCG(1, 2))
	for range n {
		for _, c := range slices.Sorted(slices.Values(draw.Perm(cols)[:each])) {
			s.Col = append(s.Col, int32(c))
		}
		s.RowPtr = append(s.RowPtr, int32(len(s.Col)))
	}
	return s
}

// A product along the rows of the other structure has the bits of the one along its own, which is
// made where there are two heads of the same values.
func TestSpMMAlongRows(t *testing.T) {
	of := features(scatterEntries/64, 200, 64)
	s := Transpose(of)
	unsorted := &CSR{Rows: of.Rows, Cols: of.Cols, RowPtr: of.RowPtr, Col: slices.Clone(of.Col)}
	slices.Reverse(unsorted.Col[:64])
	if byRows(Transpose(unsorted), 16) || byRows(of, 16) || !byRows(s, 130) || byRows(s, 1+scatterResult/200) {
		t.Fatal("which products are made along rows")
	}
	vals := normals(5, s.NNZ())
	var twice []float32
	for _, v := range vals {
		twice = append(twice, v, v)
	}
	eachISA(t, func(t *testing.T) {
		for _, threads := range []int{1, 3} {
			p := NewPool(threads)
			defer p.Close()
			for _, f := range []int{2, 16, 130} {
				h, add, bias := normals(1, of.Rows*f), normals(2, s.Rows*f), normals(3, f)
				for i := range of.Rows {
					if i%3 > 0 {
						clear(h[i*f:][:f])
					}
				}
				for j, epi := range []Epilogue{{}, {Bias: bias, Act: Relu}, {Add: add}, {Accumulate: true}} {
					want, got := normals(6, s.Rows*f), normals(6, s.Rows*f)
					p.SpMMHeads(want, s, twice, nil, h, f, 2, epi)
					p.SpMM(got, s, vals, nil, h, f, epi)
					if !slices.Equal(got, want) {
						t.Errorf("%d threads, %d columns, epilogue %d: the bits differ", threads, f, j)
					}
				}
			}
		}
	})
}

// BenchmarkSpMMTransposed is the product with features in a gradient, of a third of 767 columns as
// amazon_cs has them, or of few.
func BenchmarkSpMMTransposed(b *testing.B) {
	for _, c := range []struct {
		name             string
		rows, cols, each int
	}{{"dense", 13752, 767, 267}, {"wide", 34493, 8415, 32}} {
		s := Transpose(features(c.rows, c.cols, c.each))
		vals := normals(1, s.NNZ())
		for _, f := range []int{10, 16, 64} {
			h, dst := normals(2, s.Cols*f), make([]float32, s.Rows*f)
			for _, way := range []string{"rows", "entries"} {
				b.Run(fmt.Sprintf("%s/%s/%d", c.name, way, f), func(b *testing.B) {
					p := NewPool(1)
					defer p.Close()
					x := *s
					if way == "entries" {
						x.of = nil
					}
					for b.Loop() {
						p.SpMM(dst, &x, vals, nil, h, f, Epilogue{})
					}
				})
			}
		}
	}
}
