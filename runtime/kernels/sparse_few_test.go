package kernels

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// What is not 0 is found at every length: both signs, the smallest and what is no number, but no negative zero.
func TestEntries(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		x := make([]float32, 70)
		negative := float32(math.Copysign(0, -1))
		values := []float32{0, negative, 0, -1.5, 0, math.SmallestNonzeroFloat32, 0, float32(math.NaN()), negative, -math.SmallestNonzeroFloat32, 2}
		for n := range x {
			for shift := range values {
				var want []uint64
				for i := range x[:n] {
					if x[i] = values[(i*i+shift)%len(values)]; x[i] != 0 {
						want = append(want, uint64(math.Float32bits(x[i]))<<32|uint64(i))
					}
				}
				x[n] = 1 // is not read
				hits := make([]uint64, n)
				if got := hits[:ks.entries(hits, x[:n])]; !slices.Equal(got, want) {
					t.Fatalf("%d elements: %x, want %x", n, got, want)
				}
			}
		}
	})
}

// Products of a matrix of which few entries are not 0 have the bits of those by all entries, with
// and without values, diagonal and what a product is added to.
func TestProductsOfFewEntries(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		for _, threads := range []int{1, 3} {
			p := NewPool(threads)
			defer p.Close()
			const n = 120
			s := symmetricCSR(n)
			vals, diag := normals(1, s.NNZ()), normals(2, n)
			for e := range vals {
				if e%3 == 0 {
					vals[e] = 0
				}
			}
			for _, f := range []int{fewColumns, fewColumns + 37, 2*fewColumns + 60} {
				h, key := make([]float32, n*f), rng.New(3, "few")
				for i := range n {
					for e := range i % (f / fewShare) { // the first columns in most rows
						at := uint64(1000*i + e)
						h[i*f+int(float32(f)*key.Uniform(3*at)*key.Uniform(3*at+1))] = key.Uniform(3*at+2) - 0.3
					}
				}
				if _, ok := p.few(h, n, s.NNZ(), f); !ok {
					t.Fatalf("%d columns: %d entries are not few", f, notZero(h))
				}
				add, bias := normals(4, n*f), normals(5, f)
				product := func(s *CSR, vals, diag []float32, epi Epilogue) (dst, want []float32) {
					dst, want = normals(6, n*f), normals(6, n*f)
					p.SpMM(dst, s, vals, diag, h, f, epi)
					job := sparseJob{run: (*sparseJob).product, dst: want, s: s, a: vals, diag: diag, b: h, f: f, heads: 1, epi: epi}
					p.scratch(epi.scratch())
					p.runSparse(job)
					return dst, want
				}
				for i, s := range []*CSR{s, Transpose(s)} {
					for j, epi := range []Epilogue{{}, {Bias: bias, Act: Elu}, {Add: add}, {Accumulate: true}} {
						for k, vals := range [][]float32{nil, vals} {
							for l, diag := range [][]float32{nil, diag, diag[:n/2]} {
								if dst, want := product(s, vals, diag, epi); !slices.Equal(dst, want) {
									t.Errorf("%d threads, %d columns, structure %d, epilogue %d, values %d, diagonal %d: the bits differ", threads, f, i, j, k, l)
								}
							}
						}
					}
				}
				dst, want := junk(s.NNZ()), junk(s.NNZ())
				p.SDDMM(want, s, h, h, f)
				p.SDDMMSelf(dst, s, Transpose(s), h, f)
				sameBits(t, name("inner products, f ", f), dst, want)
			}
		}
	})
}
