package kernels

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

// Small integers: products are exact and many are equal.
func TestNearest(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		key := rng.New(7, "nearest")
		for _, c := range []struct{ n, f, k int }{
			{1, 3, 2}, {2, 1, 1}, {5, 4, 9}, {143, 7, 5}, {144, 16, 1}, {225, 9, 20}, {450, 33, 20}, {700, 330, 4}, {300, 512, 8}, {40, 5, 50}, {450, 33, 60}, {300, 512, 32},
		} {
			z := make([]float32, c.n*c.f)
			for i := range z {
				z[i] = float32(key.Intn(uint64(i), 3) - 1)
			}
			wantIdx, wantSim := make([]int32, 0, c.n*c.k), make([]float32, 0, c.n*c.k)
			for i := range c.n {
				type product struct {
					j int32
					s float32
				}
				all := make([]product, 0, c.n+c.k)
				for j := range c.n {
					if j != i {
						all = append(all, product{int32(j), dotGo(z[i*c.f:(i+1)*c.f], z[j*c.f:(j+1)*c.f])})
					}
				}
				slices.SortStableFunc(all, func(a, b product) int { return cmp.Compare(b.s, a.s) })
				for range c.k {
					all = append(all, product{-1, float32(math.Inf(-1))})
				}
				for _, p := range all[:c.k] {
					wantIdx, wantSim = append(wantIdx, p.j), append(wantSim, p.s)
				}
			}
			for _, threads := range []int{1, 2, 3} {
				p := NewPool(threads)
				idx, sim := make([]int32, c.n*c.k), junk(c.n*c.k)
				p.Nearest(idx, sim, z, c.n, c.f, c.k)
				p.Close()
				if !slices.Equal(idx, wantIdx) || !slices.Equal(sim, wantSim) {
					t.Fatalf("n %d, f %d, k %d, %d threads: other neighbours than a full search finds", c.n, c.f, c.k, threads)
				}
			}
		}
	})
}

func TestLargest(t *testing.T) {
	key := rng.New(9, "largest")
	for n := range 70 {
		x := make([]uint64, n)
		for i, v := range key.At(uint64(n)).Perm(n) {
			x[i] = uint64(v)
		}
		for k := range n + 1 {
			got := slices.Clone(x)
			largest(got, k)
			for i, v := range got {
				if (i < k) != (int(v) >= n-k) {
					t.Fatalf("the %d largest of %v are %v", k, x, got[:k])
				}
			}
		}
	}
}

// The inner loop at every length and where only one of its bounds is reached.
func TestReach(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		x, cols := normals(1, 70), normals(2, 70)
		for n := range x {
			for _, least := range []float32{float32(math.Inf(-1)), 0.5, x[n], float32(math.Inf(1))} {
				var want []uint64
				for i, v := range x[:n] {
					if v >= least || v >= cols[i] {
						want = append(want, uint64(i))
					}
				}
				hits := make([]uint64, n)
				if got := hits[:ks.reach(hits, x[:n], cols[:n], least)]; !slices.Equal(got, want) {
					t.Fatalf("%d elements, least %v: %v, want %v", n, least, got, want)
				}
			}
		}
	})
}

// Groups in turn find the best of all pairs that share a group, whatever is
// found twice; then the neighbours of neighbours are added.
func TestNearestWithinAndAround(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		key := rng.New(8, "nearest")
		for _, c := range []struct{ n, f, k, groups int }{{2, 3, 1, 1}, {40, 5, 3, 4}, {400, 7, 6, 2}, {500, 16, 9, 11}} {
			z := make([]float32, c.n*c.f)
			for i := range z {
				z[i] = float32(key.Intn(uint64(i), 5)-2) / 16 // rows at most of length 1
			}
			product := func(i, j int) float32 { return dotGo(z[i*c.f:(i+1)*c.f], z[j*c.f:(j+1)*c.f]) }
			met := make([]bool, c.n*c.n) // pairs that were compared
			best := func(i int) (idx []int32, sim []float32) {
				for j := range c.n {
					if met[i*c.n+j] {
						idx = append(idx, int32(j))
					}
				}
				slices.SortStableFunc(idx, func(a, b int32) int { return cmp.Compare(product(i, int(b)), product(i, int(a))) })
				for len(idx) < c.k {
					idx = append(idx, -1)
				}
				idx = idx[:c.k]
				for _, j := range idx {
					if j < 0 {
						sim = append(sim, float32(math.Inf(-1)))
					} else {
						sim = append(sim, product(i, int(j)))
					}
				}
				return idx, sim
			}
			p := NewPool(3)
			idx, sim := make([]int32, c.n*c.k), make([]float32, c.n*c.k)
			for i := range idx {
				idx[i], sim[i] = -1, float32(math.Inf(-1))
			}
			check := func(what string) {
				t.Helper()
				for i := range c.n {
					wantIdx, wantSim := best(i)
					if got := idx[i*c.k : (i+1)*c.k]; !slices.Equal(got, wantIdx) || !slices.Equal(sim[i*c.k:(i+1)*c.k], wantSim) {
						t.Fatalf("%s, n %d: row %d has %v, want %v", what, c.n, i, got, wantIdx)
					}
				}
			}
			var order []int32
			for round := range 3 {
				order = order[:0]
				for _, i := range key.At(uint64(round)).Perm(c.n) {
					order = append(order, int32(i))
				}
				start, most := []int32{0}, 0
				for g := range c.groups {
					end := int32((g + 1) * c.n / c.groups)
					group := order[start[g]:end]
					most = max(most, len(group))
					for _, i := range group {
						for _, j := range group {
							met[int(i)*c.n+int(j)] = i != j
						}
					}
					start = append(start, end)
				}
				p.NearestWithin(idx, sim, z, c.n, c.f, c.k, order, start, most)
				check("within")
			}
			var codes Codes
			codes.Set(p, z, c.n, c.f)
			old := slices.Clone(idx)
			for i := range c.n {
				for _, v := range old[i*c.k : (i+1)*c.k] {
					if v < 0 {
						continue
					}
					for _, w := range old[int(v)*c.k : (int(v)+1)*c.k] {
						if w >= 0 && int(w) != i {
							met[i*c.n+int(w)] = true
						}
					}
				}
			}
			p.NearestAround(idx, sim, &codes, c.k, old, order)
			check("around")
			// And of what lists have got since then.
			looked := old
			old = slices.Clone(idx)
			for i := range c.n {
				for _, v := range old[i*c.k : (i+1)*c.k] {
					if v < 0 {
						continue
					}
					for _, w := range old[int(v)*c.k : (int(v)+1)*c.k] {
						if w >= 0 && int(w) != i {
							met[i*c.n+int(w)] = true
						}
					}
				}
			}
			for i, v := range old {
				if row := i / c.k * c.k; v >= 0 && slices.Contains(looked[row:row+c.k], v) {
					old[i] = Known(v)
				}
			}
			p.NearestAround(idx, sim, &codes, c.k, old, order)
			check("around again")
			// Of a graph, and of one with a node before the others that is no row.
			for _, more := range []int32{0, 1} {
				rowPtr, col, nodes, row := make([]int32, 1+more), []int32{}, make([]int32, c.n), slices.Repeat([]int32{-1}, int(more))
				for i := range c.n {
					nodes[i], row = int32(i)+more, append(row, int32(i))
					for _, v := range key.At(uint64(10 + i)).Perm(c.n)[:i] { // itself, and what lists have, too
						col = append(col, int32(v)+more)
						met[i*c.n+v] = met[i*c.n+v] || v != i
					}
					if col = append(col, 0); more == 0 {
						met[i*c.n] = i != 0 || met[i*c.n]
					}
					rowPtr = append(rowPtr, int32(len(col)))
				}
				p.NearestAmong(idx, sim, &codes, c.k, rowPtr, col, nodes, row, order)
				check("among")
			}
			p.Close()
		}
	})
}

// Integers are added exactly, whichever rows are asked for ahead.
func TestCodeDots(t *testing.T) {
	key := rng.New(9, "codes")
	for _, width := range []int{32, 96, 512} {
		const n = 50
		codes, x := make([]int8, n*width), make([]int16, width)
		for i := range codes {
			codes[i] = int8(key.Intn(uint64(i), 2*codeMost+1) - codeMost)
		}
		for i := range x {
			x[i] = int16(key.At(1).Intn(uint64(i), 2*codeX+1) - codeX)
		}
		for i := range width { // the largest sum of all
			codes[i] = codeMost
			if x[i] < 0 {
				codes[i] = -codeMost
			}
		}
		rows := []int32{0, n - 1, 7, 7, 3}
		want, got := make([]int32, len(rows)), make([]int32, len(rows))
		codeDotsGo(want, rows, x, codes, 0)
		eachISA(t, func(t *testing.T) {
			for _, ahead := range []int{0, 1, 16} {
				clear(got)
				if ks.codeDots(got, rows, x, codes, ahead); !slices.Equal(got, want) {
					t.Fatalf("width %d, ahead %d: %v, want %v", width, ahead, got, want)
				}
				ks.codeDots(nil, nil, x, codes, ahead)
			}
		})
	}
}

// Products of rows that lie anywhere have the bits of a product of matrices.
func TestProducts(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		p := NewPool(2)
		defer p.Close()
		var s Products
		for _, f := range []int{1, 7, 128, 320, 321, 700, 1024} {
			const n = 70
			z, all := normals(uint64(f), n*f), make([]float32, n*n)
			p.MatMul(all, z, z, n, f, n, false, true, Epilogue{})
			rows := []int32{}
			for i := range n {
				rows = append(rows, int32(i*37%n))
				got := make([]float32, len(rows))
				s.Of(got, z[i*f:(i+1)*f], z, rows)
				for k, v := range rows {
					if want := all[i*n+int(v)]; got[k] != want {
						t.Fatalf("width %d, rows %d and %d: %v, want %v", f, i, v, got[k], want)
					}
				}
			}
		}
	})
}
