package kernels

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// Where most elements are 0 the search finds, to the bit, what the products of all elements are: in one
// block of columns or several, where rows have many elements, none or as many as others, and for
// lists in order or not.
func TestNearestZeros(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		for _, c := range []struct{ n, f, k int }{{2, 512, 1}, {65, 520, 70}, {257, 640, 5}, {300, 641, 40}, {530, 1433, 33}} {
			key := rng.New(uint64(c.n), "zeros")
			z := make([]float32, c.n*c.f)
			for i := range c.n {
				share := float32(0.02)
				if i%9 == 4 {
					share = 0.6
				}
				for col := range c.f {
					if at := uint64(i*c.f + col); i%11 != 3 && key.Uniform(at) < share {
						z[at] = key.Sub("v").Uniform(at) - 0.4
					}
				}
				if i%13 == 12 {
					copy(z[i*c.f:(i+1)*c.f], z[(i-3)*c.f:])
				}
			}
			p := NewPool(1)
			s := make([]float32, c.n*c.n)
			p.MatMul(s, z, z, c.n, c.f, c.n, false, true, Epilogue{})
			if !p.findNonZeros(z, c.n, c.f) {
				t.Fatalf("%v: too few zeros", c)
			}
			p.Close()
			wantIdx, wantSim := make([]int32, c.n*c.k), make([]float32, c.n*c.k)
			for i := range c.n {
				all := make([]int32, 0, c.n)
				for j := range c.n {
					if j != i {
						all = append(all, int32(j))
					}
				}
				row := s[i*c.n : (i+1)*c.n]
				slices.SortStableFunc(all, func(a, b int32) int { return cmp.Compare(row[b], row[a]) })
				for q := range c.k {
					wantIdx[i*c.k+q], wantSim[i*c.k+q] = -1, float32(math.Inf(-1))
					if q < len(all) {
						wantIdx[i*c.k+q], wantSim[i*c.k+q] = all[q], row[all[q]]
					}
				}
			}
			for _, threads := range []int{1, 2, 3} {
				p := NewPool(threads)
				idx, sim := make([]int32, c.n*c.k), junk(c.n*c.k)
				for range 2 { // in memory that is used again
					p.Nearest(idx, sim, z, c.n, c.f, c.k)
				}
				if !slices.Equal(idx, wantIdx) {
					t.Fatalf("%v, %d threads: other rows", c, threads)
				}
				sameBits(t, name("products ", c), sim, wantSim)
				if got, most := p.Scratch(), NearestScratch(c.n, c.f, c.k); got.Max(most) != most {
					t.Errorf("%v: %+v of scratch, foreseen %+v", c, got, most)
				}
				p.Close()
			}
		}
	})
}

// Rows with more elements than others cost what dense ones do.
func TestNearestZerosGivesUp(t *testing.T) {
	p := NewPool(1)
	defer p.Close()
	const n, f = 320, 512
	z := make([]float32, n*f)
	for i := range z {
		z[i] = float32(i % 2)
	}
	if p.findNonZeros(z, n, f) {
		t.Error("half of the elements are few")
	}
	clear(z)
	for i := range n {
		if i%5 != 0 { // the rows that are looked at first
			fill(z[i*f:(i+1)*f], 1)
		}
	}
	if p.findNonZeros(z, n, f) {
		t.Error("four fifths of the elements are few")
	}
}

func TestPairsOfBlocks(t *testing.T) {
	for n := range 12 {
		j := nearestRows{turns: make([]*sync.Mutex, n)}
		seen, before := map[[2]int]bool{}, 0
		for pair := range n * (n + 1) / 2 {
			a, b := j.blocks(pair)
			if a < 0 || a > b || b >= n || seen[[2]int{a, b}] || a+b < before {
				t.Fatalf("%d blocks, pair %d: %d and %d", n, pair, a, b)
			}
			seen[[2]int{a, b}], before = true, a+b
		}
	}
}
