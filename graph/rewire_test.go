package graph

import (
	"cmp"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// countsOf draws attributes, one in so many not 0, sparse and dense; node 0 has none.
func countsOf(n, cols, one int, seed uint64) (sparse, dense NodeFeatures) {
	s := rng.New(seed, "counts")
	sparse, dense = NodeFeatures{Cols: cols, RowPtr: []int32{0}}, NodeFeatures{Cols: cols, Dense: make([]float32, n*cols)}
	for i := range n {
		for c := range cols {
			if at := i*cols + c; i > 0 && s.Intn(uint64(at), one) == 0 {
				dense.Dense[at] = float32(1 + at%4)
				sparse.Col, sparse.Val = append(sparse.Col, int32(c)), append(sparse.Val, dense.Dense[at])
			}
		}
		sparse.RowPtr = append(sparse.RowPtr, int32(len(sparse.Col)))
	}
	return sparse, dense
}

// Edges are those that cosines of all pairs give, for attributes held either way and any
// number of threads.
func TestRewiring(t *testing.T) {
	t.Run("in all columns", func(t *testing.T) { testRewiring(t, 24, 3) })
	t.Run("in common columns", func(t *testing.T) { testRewiring(t, 96, 12) })
}

func testRewiring(t *testing.T, cols, one int) {
	const n = 60
	sparse, dense := countsOf(n, cols, one, 3)
	if sparse.comparedDense(n) != (one < 8) || !dense.comparedDense(n) {
		t.Error("rows are compared in another way than the test is for")
	}
	columns := sparse.Rarity(n)
	cosine := func(u, v int) float64 {
		sum, uu, vv := 0.0, 0.0, 0.0
		for c := range cols {
			a, b := float64(dense.Dense[u*cols+c])*columns[c], float64(dense.Dense[v*cols+c])*columns[c]
			sum, uu, vv = sum+a*b, uu+a*a, vv+b*b
		}
		if uu*vv == 0 {
			return 0
		}
		return sum / math.Sqrt(uu*vv)
	}
	var src, dst []int32
	var w []float32
	for i := range int32(n) {
		for _, step := range []int32{1, 7, 11} {
			src, dst, w = append(src, i), append(dst, (i+step)%n), append(w, float32(2+i%3))
		}
	}
	g, _, err := Build(n, src, dst, w, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"raw", "none", "cut:0.4", "knn:4", "raw+knn:3", "cut:0.4+knn:200"} {
		r, err := ParseRewiring(text)
		if err != nil {
			t.Fatal(err)
		}
		want := map[[2]int32]float32{}
		for i, e := range g.Edges {
			if !r.None && (r.Cut == 0 || cosine(int(e[0]), int(e[1])) >= r.Cut) {
				want[e] = g.Weights[i]
			}
		}
		kept := len(want)
		for u := range n {
			var others []int
			for v := range n {
				if v != u && cosine(u, v) > 0 {
					others = append(others, v)
				}
			}
			slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(cosine(u, b), cosine(u, a)) })
			for _, v := range others[:min(r.K, len(others))] {
				if e := [2]int32{int32(min(u, v)), int32(max(u, v))}; want[e] == 0 {
					want[e] = 1
				}
			}
		}
		for _, x := range []NodeFeatures{sparse, dense} {
			for _, threads := range []int{1, 3} {
				pool := kernels.NewPool(threads)
				got, dropped, added, err := r.Apply(pool, g, x, columns, nil)
				pool.Close()
				if err != nil {
					t.Fatal(err)
				}
				edges := map[[2]int32]float32{}
				for i, e := range got.Edges {
					edges[e] = got.Weights[i]
				}
				if err := got.Validate(); err != nil || !reflect.DeepEqual(edges, want) || dropped != len(g.Edges)-kept || added != len(want)-kept {
					t.Errorf("%s, sparse %v, %d threads: %d edges of which %d were dropped and %d added, want %d, %d, %d (%v)", text, x.RowPtr != nil, threads, len(edges), dropped, added, len(want), len(g.Edges)-kept, len(want)-kept, err)
				}
			}
		}
	}
	directed := &Graph{N: n, Directed: true, Edges: g.Edges}
	if _, _, _, err := (Rewiring{K: 2}).Apply(nil, directed, sparse, nil, nil); err == nil {
		t.Error("neighbours of a directed graph were accepted")
	}
	if out, dropped, _, err := (Rewiring{Cut: 0.4}).Apply(nil, directed, sparse, nil, nil); err != nil || dropped == 0 || !out.Directed {
		t.Errorf("a directed graph that is cut: %v, %d edges dropped", err, dropped)
	}
}

func TestParseRewiring(t *testing.T) {
	for text, want := range map[string]Rewiring{
		"": {}, "raw": {}, "none": {None: true}, "knn:5": {None: true, K: 5}, "raw+knn:2": {K: 2}, "cut:0.05": {Cut: 0.05}, "cut:1+knn:3": {Cut: 1, K: 3}, "cut:training": {Training: true}, "cut:training+knn:2": {Training: true, K: 2},
	} {
		if got, err := ParseRewiring(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"knn", "knn:0", "knn:x", "cut:0", "cut:2", "cut:NaN", "cut:-1", "knn:2+raw", "none+knn:2", "raw+none", "raw+raw", "knn:2+knn:3", "raw+", "mean", "cut:0.1+cut:0.2", "cut:train", "cut:training+cut:0.1", "raw+cut:training"} {
		if r, err := ParseRewiring(text); err == nil {
			t.Errorf("%q was read as %+v", text, r)
		}
	}
}

// Of edges that were added at training nodes, between unlike nodes, most are cut, and few others; where none was
// added none is.
func TestCutAtTrainingNodes(t *testing.T) {
	const n, topics, words = 600, 6, 20
	s := rng.New(5, "cut")
	x := NodeFeatures{Cols: topics * words, RowPtr: []int32{0}}
	for v := range n {
		for c := range topics * words {
			often := 20
			if c/words == v%topics {
				often = 2
			}
			if s.Sub("x").Intn(uint64(v*topics*words+c), often) == 0 {
				x.Col, x.Val = append(x.Col, int32(c)), append(x.Val, 1)
			}
		}
		x.RowPtr = append(x.RowPtr, int32(len(x.Col)))
	}
	var src, dst, training []int32
	for v := range int32(n) {
		for _, step := range []int32{1, 5, 17} {
			src, dst = append(src, v), append(dst, (v+step*topics)%n)
		}
		if v%10 < 1 {
			training = append(training, v)
		}
	}
	clean, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	r := Rewiring{Training: true}
	if out, dropped, added, err := r.Apply(nil, clean, x, nil, training); err != nil || dropped+added != 0 || len(out.Edges) != len(clean.Edges) {
		t.Errorf("of a graph as it is %d edges were dropped and %d added (%v)", dropped, added, err)
	}
	for _, v := range training {
		for i := range int32(5) {
			src, dst = append(src, v), append(dst, (v+1+i+topics*(7+11*i))%n)
		}
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	out, dropped, _, err := r.Apply(nil, g, x, nil, training)
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(g *Graph) int { return len(Difference(g, clean)) }
	if found := wrong(g) - wrong(out); found < wrong(g)*8/10 || dropped > found*13/10 {
		t.Errorf("%d of %d edges that were added were dropped, and %d others", found, wrong(g), dropped-found)
	}
	for _, e := range Difference(clean, out) {
		if e[0]%10 >= 1 && e[1]%10 >= 1 {
			t.Errorf("the edge %v was dropped, which has no training node", e)
		}
	}
	pool := kernels.NewPool(3)
	defer pool.Close()
	if again, _, _, err := r.Apply(pool, g, x, nil, training); err != nil || !slices.Equal(again.Edges, out.Edges) {
		t.Errorf("another number of threads cut other edges (%v)", err)
	}
	if _, dropped, _, err := r.Apply(nil, g, x, nil, nil); err != nil || dropped != 0 {
		t.Errorf("without training nodes %d edges were dropped (%v)", dropped, err)
	}
	none := NodeFeatures{RowPtr: make([]int32, n+1)}
	if _, dropped, _, err := r.Apply(nil, g, none, nil, training); err != nil || dropped != 0 {
		t.Errorf("without features %d edges were dropped (%v)", dropped, err)
	}
}
