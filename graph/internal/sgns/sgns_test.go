package sgns

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func fill(x []float32, name string) []float32 {
	s := rng.New(1, name)
	for i := range x {
		x[i] = float32(s.Normal(uint64(i)))
	}
	return x
}

// Both kernels against their definition in float64, with and without repeated
// rows.
func TestKernels(t *testing.T) {
	for name, k := range map[string]Kernel{"go": Go, kernels.ISA(): For(kernels.ISA())} {
		for _, d := range []int{32, 64, 160} {
			for _, idx := range [][]int32{{}, {0}, {3, 1, 4, 0, 2, 6}, {5, 5, 2, 5}} {
				rows, c := fill(make([]float32, 7*d), "rows"), fill(make([]float32, d), "c")
				g := fill(make([]float32, len(idx)), "g")
				s := make([]float32, len(idx))
				k.Scores(s, c, rows, idx)
				for j, i := range idx {
					want := 0.0
					for q := range d {
						want += float64(c[q]) * float64(rows[int(i)*d+q])
					}
					if !(math.Abs(want-float64(s[j])) <= 1e-4) {
						t.Errorf("%s: d %d, rows %v: score %d is %v, want %v", name, d, idx, j, s[j], want)
					}
				}
				wantC, wantRows := make([]float64, d), make([]float64, len(rows))
				for q := range c {
					wantC[q] = float64(c[q])
				}
				for q := range rows {
					wantRows[q] = float64(rows[q])
				}
				for j, i := range idx {
					for q := range d {
						at := int(i)*d + q
						wantC[q] += float64(g[j]) * wantRows[at]
						wantRows[at] += float64(g[j]) * float64(c[q])
					}
				}
				k.Update(g, c, rows, idx)
				for q := range c {
					if !(math.Abs(wantC[q]-float64(c[q])) <= 1e-4) {
						t.Fatalf("%s: d %d, rows %v: c[%d] = %v, want %v", name, d, idx, q, c[q], wantC[q])
					}
				}
				for q := range rows {
					if !(math.Abs(wantRows[q]-float64(rows[q])) <= 1e-4) {
						t.Fatalf("%s: d %d, rows %v: rows[%d] = %v, want %v", name, d, idx, q, rows[q], wantRows[q])
					}
				}
			}
		}
	}
}

func BenchmarkStep(b *testing.B) {
	for _, isa := range []string{"go", kernels.ISA()} {
		b.Run(isa, func(b *testing.B) {
			k := For(isa)
			rows, c := fill(make([]float32, 512*128), "rows"), fill(make([]float32, 128), "c")
			idx := []int32{3, 100, 400, 0, 222, 90}
			s, g := make([]float32, 6), make([]float32, 6)
			for b.Loop() {
				k.Scores(s, c, rows, idx)
				k.Update(g, c, rows, idx)
			}
		})
	}
}

// The same bits with and without assembly, whatever the width and the rows.
func TestSameBits(t *testing.T) {
	for _, d := range []int{32, 64, 160} {
		for _, idx := range [][]int32{{}, {0}, {3, 1, 4, 0, 2, 6}, {5, 5, 2, 5}} {
			var scores, columns, all [2][]float32
			for n, k := range []Kernel{Go, For(kernels.ISAs()[0])} {
				rows, c := fill(make([]float32, 7*d), "rows"), fill(make([]float32, d), "c")
				s := make([]float32, len(idx))
				k.Scores(s, c, rows, idx)
				k.Update(fill(make([]float32, len(idx)), "g"), c, rows, idx)
				scores[n], columns[n], all[n] = s, c, rows
			}
			if !slices.Equal(scores[0], scores[1]) || !slices.Equal(columns[0], columns[1]) || !slices.Equal(all[0], all[1]) {
				t.Errorf("d %d, rows %v: assembly and Go differ", d, idx)
			}
		}
	}
}
