package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"pgregory.net/rapid"
)

// TwoStep finds what a look at every pair finds, on any number of threads.
func TestTwoStep(t *testing.T) {
	pool := kernels.NewPool(3)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		k := rapid.IntRange(0, 5).Draw(t, "k")
		got, sums := TwoStep(nil, g, k)
		if found, other := TwoStep(pool, g, k); !slices.Equal(got, found) || !slices.Equal(sums, other) {
			t.Fatal("three threads find others than one")
		}
		u := g.Undirected()
		degree := u.Degrees()
		for v := range int32(g.N) {
			var want []int32
			score := make([]float64, g.N)
			for w := range int32(g.N) {
				if w == v || u.Has(min(v, w), max(v, w)) {
					continue
				}
				for c := range int32(g.N) {
					if u.Has(min(v, c), max(v, c)) && u.Has(min(w, c), max(w, c)) {
						score[w] += math.Round(512/max(math.Log(float64(degree[c])), 0.7)) / 512
					}
				}
				if score[w] > 0 {
					want = append(want, w)
				}
			}
			of := got[int(v)*k:][:k]
			for i, w := range of {
				sum := sums[int(v)*k+i]
				switch {
				case i >= len(want):
					if w != -1 || sum != 0 {
						t.Fatalf("node %d has %v, but %v are two steps away", v, of, want)
					}
				case !slices.Contains(want, w) || slices.Contains(of[:i], w):
					t.Fatalf("node %d has %v of %v", v, of, want)
				case !(math.Abs(float64(sum)-score[w]) <= 1e-6):
					t.Fatalf("node %d scores node %d %v, want %v", v, w, sum, score[w])
				case i > 0 && (score[w] > score[of[i-1]]+1e-6 || score[w] == score[of[i-1]] && w < of[i-1]):
					t.Fatalf("node %d has %v, with the scores %v, out of order", v, of, score)
				}
			}
			for _, w := range want {
				if k > 0 && k < len(want) && !slices.Contains(of, w) && score[w] > score[of[k-1]]+1e-6 {
					t.Fatalf("node %d has %v without %d: scores %v", v, of, w, score)
				}
			}
		}
	})
}

// Neighbours of a node with too many walks are followed from the rarest on, so that the
// time has a bound.
func TestTwoStepHubs(t *testing.T) {
	const leaves = TwoStepWalks + 10 // of the hub 1
	g := &Graph{N: leaves + 10, Edges: [][2]int32{{0, 1}, {0, 2}, {0, 3}, {2, 4}, {3, 4}, {3, 5}}}
	for v := range int32(leaves) {
		g.Edges = append(g.Edges, [2]int32{1, v + 10})
	}
	slices.SortFunc(g.Edges, func(a, b [2]int32) int {
		if a[0] != b[0] {
			return int(a[0] - b[0])
		}
		return int(a[1] - b[1])
	})
	found, _ := TwoStep(nil, g, 4)
	if got, want := found[:4], []int32{4, 5, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("node 0, a neighbour of the hub, has %v, want %v", got, want)
	}
	if got, want := found[4:8], []int32{2, 3, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("the hub has %v, want %v", got, want)
	}
	if got, want := found[4*10:4*10+4], []int32{-1, -1, -1, -1}; !slices.Equal(got, want) {
		t.Errorf("a leaf of the hub has %v, want %v", got, want)
	}
}

// The bits of a graph with hubs are these, on every machine.
func TestTwoStepBits(t *testing.T) {
	const n, k = 3000, 20
	s := rng.New(1, "two steps")
	var src, dst []int32
	for i := range uint64(20 * n) { // the lower the number, the more neighbours
		x := s.Uniform(2 * i)
		src, dst = append(src, int32(x*x*x*n)), append(dst, int32(s.Intn(2*i+1, n)))
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	pool := kernels.NewPool(2)
	defer pool.Close()
	h := uint64(14695981039346656037) // FNV-1a
	found, _ := TwoStep(pool, g, k)
	for _, v := range found {
		h = (h ^ uint64(uint32(v))) * 1099511628211
	}
	if want := uint64(0x3b576b61028f1102); h != want {
		t.Errorf("the neighbours hash to %#x, want %#x", h, want)
	}
}

func TestJoinNeighbors(t *testing.T) {
	got, k, err := JoinNeighbors(2, []int32{1, 0}, nil, []int32{2, 3, 4, -1})
	if want := []int32{1, 2, 3, 0, 4, -1}; err != nil || k != 3 || !slices.Equal(got, want) {
		t.Errorf("joined %v of %d each, want %v of 3: %v", got, k, want, err)
	}
	if _, _, err := JoinNeighbors(2, []int32{1}); err == nil {
		t.Error("half a list is accepted")
	}
	if _, _, err := JoinNeighbors(0, []int32{1}); err == nil {
		t.Error("neighbours of no node are accepted")
	}
}

func BenchmarkTwoStep(b *testing.B) {
	const n, m = 1_000_000, 5_000_000
	s := rng.New(1, "bench")
	src, dst := make([]int32, m), make([]int32, m)
	for i := range src {
		src[i], dst[i] = int32(s.Intn(uint64(2*i), n)), int32(s.Intn(uint64(2*i+1), n))
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		b.Fatal(err)
	}
	pool := kernels.NewPool(0)
	defer pool.Close()
	for b.Loop() {
		TwoStep(pool, g, 20)
	}
}

// After any changes the same is found as in the whole graph, and taken back it is as before.
func TestOnlineTwoStep(t *testing.T) {
	pool := kernels.NewPool(2)
	defer pool.Close()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t).Undirected()
		k := rapid.IntRange(1, 4).Draw(t, "k")
		n := g.N + 1
		lists := make([][]int32, n)
		set := func(u, v int32, in bool) {
			for _, e := range [][2]int32{{u, v}, {v, u}} {
				i, there := slices.BinarySearch(lists[e[0]], e[1])
				switch {
				case in && !there:
					lists[e[0]] = slices.Insert(slices.Clone(lists[e[0]]), i, e[1])
				case !in && there:
					lists[e[0]] = slices.Delete(slices.Clone(lists[e[0]]), i, i+1)
				}
			}
		}
		for _, e := range g.Edges {
			set(e[0], e[1], true)
		}
		o := NewOnlineTwoStep(pool, n, k, func(v int32) []int32 { return lists[v] })
		compare := func() {
			now := &Graph{N: n}
			for u := range int32(n) {
				for _, v := range lists[u] {
					if u < v {
						now.Edges = append(now.Edges, [2]int32{u, v})
					}
				}
			}
			want, _ := TwoStep(nil, now, k)
			for v := range int32(n) {
				if have, want := o.Of(v), few(want[int(v)*k:][:k]); !slices.Equal(have, want) {
					t.Fatalf("node %d has %v, want %v", v, have, want)
				}
			}
		}
		compare()
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			before, beforeN := slices.Clone(lists), n
			was := make([][]int32, n)
			for v := range was {
				was[v] = slices.Clone(o.Of(int32(v)))
			}
			if rapid.Bool().Draw(t, "a node more") {
				n++
				lists = append(lists, nil)
			}
			var edges [][2]int32
			for range rapid.IntRange(0, 3).Draw(t, "edges") {
				u, v := rapid.Int32Range(0, int32(n-1)).Draw(t, "u"), rapid.Int32Range(0, int32(n-1)).Draw(t, "v")
				if u == v {
					continue
				}
				set(u, v, !slices.Contains(lists[u], v))
				edges = append(edges, [2]int32{u, v})
			}
			changed := o.Change(pool, n, edges)
			compare()
			for v := range int32(beforeN) {
				if !slices.Equal(o.Before(v), was[v]) || slices.Contains(changed, v) == slices.Equal(was[v], o.Of(v)) {
					t.Fatalf("node %d: before %v, was %v, is %v, changed %v", v, o.Before(v), was[v], o.Of(v), changed)
				}
			}
			if rapid.Bool().Draw(t, "undo") {
				o.Undo()
				lists, n = before, beforeN
				compare()
			}
		}
	})
}

func TestNth(t *testing.T) {
	s := rng.New(3, "nth")
	for size := range 40 {
		for n := range size + 1 {
			x := make([]uint64, size)
			for i, v := range s.At(uint64(size*64 + n)).Perm(size) {
				x[i] = uint64(v)
			}
			nth(x, n)
			for i, v := range x {
				if (i < n) != (v < uint64(n)) {
					t.Fatalf("the %d smallest of %d: %v", n, size, x)
				}
			}
		}
	}
}
