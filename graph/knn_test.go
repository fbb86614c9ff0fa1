package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"pgregory.net/rapid"
)

// drawRows draws small integers, so that equal similarities and zero rows
// occur, and cosines are exact enough to compare.
func drawRows(t *rapid.T, n, f int) []float32 {
	x := make([]float32, n*f)
	for i := range x {
		x[i] = float32(rapid.IntRange(-1, 2).Draw(t, "x"))
	}
	return x
}

func TestKNN(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		n, f, k := rapid.IntRange(0, 20).Draw(t, "n"), rapid.IntRange(0, 4).Draw(t, "f"), rapid.IntRange(0, 6).Draw(t, "k")
		x := drawRows(t, n, f)
		if n > 0 && f > 0 && rapid.Bool().Draw(t, "NaN") {
			x[0] = float32(math.NaN())
		}
		idx, sim := KNN(pool, x, n, f, k)
		if len(idx) != n*k || len(sim) != n*k {
			t.Fatalf("%d indices, %d similarities", len(idx), len(sim))
		}
		cosine := func(i, j int) (float64, bool) {
			var ii, jj, ij float64
			for c := range f {
				a, b := float64(x[i*f+c]), float64(x[j*f+c])
				ii, jj, ij = ii+a*a, jj+b*b, ij+a*b
			}
			return ij / math.Sqrt(ii*jj), ii > 0 && jj > 0
		}
		for i := range n {
			var all []float64
			for j := range n {
				if s, ok := cosine(i, j); ok && i != j {
					all = append(all, s)
				}
			}
			slices.SortFunc(all, func(a, b float64) int { return cmp.Compare(b, a) })
			seen := map[int32]bool{}
			for q := range k {
				j, s := idx[i*k+q], sim[i*k+q]
				if q >= len(all) {
					if j != -1 || s != 0 {
						t.Fatalf("node %d, place %d: %d, %v; want none", i, q, j, s)
					}
					continue
				}
				if j < 0 || int(j) == i || seen[j] {
					t.Fatalf("node %d has neighbours %v", i, idx[i*k:i*k+k])
				}
				seen[j] = true
				if c, _ := cosine(i, int(j)); !(math.Abs(c-float64(s)) <= 1e-6) || !(math.Abs(c-all[q]) <= 1e-6) {
					t.Fatalf("node %d, place %d: %d at %v, want similarity %v", i, q, j, s, all[q])
				}
				if q > 0 && (s > sim[i*k+q-1] || s == sim[i*k+q-1] && j < idx[i*k+q-1]) {
					t.Fatalf("node %d: places %d and %d are out of order: %v, %v", i, q-1, q, idx[i*k:i*k+k], sim[i*k:i*k+k])
				}
			}
		}
	})
}

// More than one tile each way; equal rows far apart must tie exactly.
func TestKNNTilesAndThreads(t *testing.T) {
	const n, f, k = 2185, 19, 7
	x := make([]float32, n*f)
	s := rng.New(1, "test")
	for i := range x {
		x[i] = float32(s.Normal(uint64(i)))
	}
	copy(x[3*f:4*f], x[2000*f:2001*f])
	copy(x[1100*f:1101*f], x[2000*f:2001*f])
	clear(x[9*f : 10*f])
	var first []int32
	for _, threads := range []int{0, 1, 2, 3} {
		var pool *kernels.Pool
		if threads > 0 {
			pool = kernels.NewPool(threads)
		}
		idx, _ := KNN(pool, x, n, f, k)
		if pool != nil {
			pool.Close()
		}
		if first == nil {
			first = idx
		}
		if !slices.Equal(first, idx) {
			t.Errorf("%d threads give other neighbours", threads)
		}
	}
	for node, want := range map[int][]int32{3: {1100, 2000}, 1100: {3, 2000}, 2000: {3, 1100}, 9: {-1, -1}} {
		if got := first[node*k : node*k+2]; !slices.Equal(got, want) {
			t.Errorf("node %d has nearest %v, want %v", node, got, want)
		}
	}
	if slices.Contains(first, 9) {
		t.Error("a zero row is a neighbour")
	}
	// Every tenth node against a search in float64.
	for i := 0; i < n; i += 10 {
		best, at := math.Inf(-1), 0
		for j := range n {
			var ij, jj float64
			for c := range f {
				ij += float64(x[i*f+c]) * float64(x[j*f+c])
				jj += float64(x[j*f+c]) * float64(x[j*f+c])
			}
			if v := ij / math.Sqrt(jj); j != i && v > best+1e-9 {
				best, at = v, j
			}
		}
		if int(first[i*k]) != at {
			t.Errorf("node %d has nearest %d, want %d", i, first[i*k], at)
		}
	}
}

func TestCandidates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		k := rapid.IntRange(0, 4).Draw(t, "k")
		mutual := rapid.Bool().Draw(t, "mutual")
		idx := make([]int32, g.N*k)
		for i := range idx {
			idx[i] = rapid.Int32Range(-1, int32(g.N-1)).Draw(t, "neighbour")
		}
		c, err := NewCandidates(g, idx, k, mutual)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Graph().Validate(); err != nil {
			t.Fatal(err)
		}
		lists := func(u, v int32) bool { return k > 0 && slices.Contains(idx[int(u)*k:int(u)*k+k], v) }
		u := g.Undirected()
		at, existing := 0, 0
		for a := range int32(g.N) {
			for b := a + 1; b < int32(g.N); b++ {
				near := lists(a, b) || lists(b, a)
				if mutual {
					near = lists(a, b) && lists(b, a)
				}
				if !near && !u.Has(a, b) {
					continue
				}
				if at >= len(c.Edges) || c.Edges[at] != [2]int32{a, b} || c.Existing[at] != u.Has(a, b) {
					t.Fatalf("candidates %v, existing %v lack {%d, %d}", c.Edges, c.Existing, a, b)
				}
				if u.Has(a, b) {
					existing++
				}
				at++
			}
		}
		if at != len(c.Edges) || at != len(c.Existing) || existing != u.NumEdges() {
			t.Fatalf("%d candidates, %d existing; want %d, %d", len(c.Edges), existing, at, u.NumEdges())
		}
		back, err := c.Select(c.Existing, nil)
		if err != nil || !slices.Equal(back.Edges, u.Edges) {
			t.Fatalf("the existing candidates are %v, the graph's edges %v: %v", back.Edges, u.Edges, err)
		}
		from, to := c.Pairs()
		for i, e := range c.Edges {
			if from[i] != int64(e[0]) || to[i] != int64(e[1]) {
				t.Fatalf("pair %d is %d, %d for %v", i, from[i], to[i], e)
			}
		}
	})
}

func TestCandidatesErrors(t *testing.T) {
	g := &Graph{N: 3, Edges: [][2]int32{{0, 1}}}
	for _, idx := range [][]int32{{}, {0, 1}, {1, 0, 3}, {1, 0, -2}} {
		if _, err := NewCandidates(g, idx, 1, false); err == nil {
			t.Errorf("neighbours %v are accepted", idx)
		}
	}
	c, err := NewCandidates(g, []int32{2, -1, 2}, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Select([]bool{true}, nil); err == nil {
		t.Error("a short selection is accepted")
	}
	if _, err := c.Select([]bool{true, true}, []float32{1}); err == nil {
		t.Error("short weights are accepted")
	}
	s, err := c.Select([]bool{false, true}, []float32{0.25, 0.5})
	if err != nil || !slices.Equal(s.Edges, [][2]int32{{0, 2}}) || !slices.Equal(s.Weights, []float32{0.5}) {
		t.Errorf("selected %+v: %v", s, err)
	}
}

// BenchmarkKNN also times the product of all pairs by itself, turn by turn, at
// the sizes of Cora and coauthor_phy, and reports the ratio of the best times.
func BenchmarkKNN(b *testing.B) {
	const f, k, rows = 128, 20, 512
	for _, n := range []int{2708, 34493} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			x := make([]float32, n*f)
			s := rng.New(1, "bench")
			for i := range x {
				x[i] = float32(s.Normal(uint64(i)))
			}
			pool := kernels.NewPool(0)
			defer pool.Close()
			products := make([]float32, rows*n)
			search, product := math.Inf(1), math.Inf(1)
			for b.Loop() {
				start := time.Now()
				KNN(pool, x, n, f, k)
				search = min(search, time.Since(start).Seconds())
				start = time.Now()
				for r := 0; r < n; r += rows {
					m := min(rows, n-r)
					pool.MatMul(products, x[r*f:], x, m, f, n, false, true, kernels.Epilogue{})
				}
				product = min(product, time.Since(start).Seconds())
			}
			b.ReportMetric(search*1e3, "ms/search")
			b.ReportMetric(search/product, "search/product")
		})
	}
}

// Lists of pairs of parts, joined by what they hold, are the lists of all rows, where rows are so
// nearly parallel that rounding takes their similarities beyond 1, too.
func TestKNNOfPartsJoined(t *testing.T) {
	const n, f, k, parts = 240, 7, 5, 3
	x := make([]float32, n*f)
	r := rng.New(3, "parallel")
	for i := range x {
		x[i] = 1e5 + float32(r.Normal(uint64(i)))
	}
	type near struct {
		node int32
		sim  float32
	}
	joined, beyond := make([][]near, n), 0
	for p := range parts {
		for q := range p {
			var nodes []int32
			var rows []float32
			for v := range int32(n) {
				if part := int(v) % parts; part == p || part == q {
					nodes, rows = append(nodes, v), append(rows, x[v*f:(v+1)*f]...)
				}
			}
			idx, sim := KNN(nil, rows, len(nodes), f, k)
			for i, j := range idx {
				v := nodes[i/k]
				joined[v] = append(joined[v], near{nodes[j], sim[i]})
			}
		}
	}
	want, sim := KNN(nil, x, n, f, k)
	for v, list := range joined {
		slices.SortFunc(list, func(a, b near) int {
			return cmp.Or(cmp.Compare(b.sim, a.sim), cmp.Compare(a.node, b.node))
		})
		list = slices.Compact(list)
		for i, u := range want[v*k : (v+1)*k] {
			if list[i].node != u || list[i].sim != sim[v*k+i] {
				t.Fatalf("neighbour %d of node %d is %v of the parts, %d at %v of all rows", i, v, list[i], u, sim[v*k+i])
			}
			if list[i].sim > 1 {
				beyond++
			}
		}
	}
	if beyond == 0 {
		t.Error("no similarity is beyond 1: the test shows nothing")
	}
}

// Candidates and neighbours in used memory are those in fresh memory.
func TestCandidatesRebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c Candidates
		var search Neighbors
		for range 3 {
			g := drawGraph(t)
			f, k := rapid.IntRange(1, 3).Draw(t, "f"), rapid.IntRange(0, 4).Draw(t, "k")
			x := drawRows(t, g.N, f)
			mutual := rapid.Bool().Draw(t, "mutual")
			idx, sim := search.Exact(nil, x, g.N, f, k)
			wantIdx, wantSim := KNN(nil, x, g.N, f, k)
			if !slices.Equal(idx, wantIdx) || !slices.Equal(sim, wantSim) {
				t.Fatalf("neighbours %v at %v, want %v at %v", idx, sim, wantIdx, wantSim)
			}
			want, err := NewCandidates(g, idx, k, mutual)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Rebuild(g, idx, k, mutual); err != nil {
				t.Fatal(err)
			}
			if c.N != want.N || !slices.Equal(c.Edges, want.Edges) || !slices.Equal(c.Existing, want.Existing) {
				t.Fatalf("rebuilt candidates are %v, want %v", c.Edges, want.Edges)
			}
		}
	})
}

// BenchmarkCandidates makes candidates of neighbours that were found, with their
// structure, in used memory: the sizes of coauthor_phy and ogbn-arxiv.
func BenchmarkCandidates(b *testing.B) {
	const k = 5
	for _, size := range []struct{ n, edges int }{{34493, 247962}, {169343, 1166243}} {
		b.Run(fmt.Sprint("n=", size.n), func(b *testing.B) {
			s := rng.New(1, "bench")
			src, dst := make([]int32, size.edges), make([]int32, size.edges)
			for i := range src {
				src[i], dst[i] = int32(s.Intn(uint64(2*i), size.n)), int32(s.Intn(uint64(2*i+1), size.n))
			}
			g, _, err := Build(size.n, src, dst, nil, false)
			if err != nil {
				b.Fatal(err)
			}
			idx := make([]int32, size.n*k)
			for i := range idx {
				idx[i] = int32(s.Sub("near").Intn(uint64(i), size.n))
			}
			var c Candidates
			var st Structure
			for b.Loop() {
				if err := c.Rebuild(g, idx, k, false); err != nil {
					b.Fatal(err)
				}
				st.Rebuild(&Graph{N: c.N, Edges: c.Edges})
			}
			b.ReportMetric(float64(len(c.Edges)), "candidates")
		})
	}
}

// Rows of which few entries are not 0 have the neighbours, and the similarities to the bit, that each
// has when it is multiplied with all others as it is stored.
func TestKNNOfSparseRows(t *testing.T) {
	const n, f, k = 400, 900, 7
	key := rng.New(5, "sparse")
	emb := make([]float32, n*f)
	for i := range n {
		for e := range i % 12 {
			at := uint64(64*i + e)
			emb[i*f+key.Intn(at, f)] = key.Sub("value").Uniform(at) - 0.3
		}
	}
	search := new(Neighbors)
	idx, sim := search.Exact(nil, emb, n, f, k)
	if len(search.values) == 0 || !kernels.SparseNearestPays(&search.rows, &search.columns) {
		t.Fatal("they are not taken for sparse")
	}
	var products kernels.Products
	for i := range n {
		for at, v := range idx[i*k : (i+1)*k] {
			if v < 0 {
				continue
			}
			z := make([]float32, 2*f)
			normalize(z[:f], emb[i*f:(i+1)*f])
			normalize(z[f:], emb[int(v)*f:(int(v)+1)*f])
			var want [1]float32
			products.Of(want[:], z[:f], z[f:], []int32{0})
			if got := sim[i*k+at]; got != max(-1, min(1, want[0])) {
				t.Fatalf("row %d, neighbour %d: %v, want %v", i, v, got, want[0])
			}
		}
	}
}
