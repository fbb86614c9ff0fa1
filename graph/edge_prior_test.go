package graph

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"pgregory.net/rapid"
)

// sampleRows are the attributes of a generated graph.
func sampleRows(s *Sample) NodeFeatures {
	return NodeFeatures{Cols: len(s.X) / s.Graph.N, Dense: s.X}
}

// Edges that are added at random get less than those that were there, and their share
// is found.
func TestEdgePriorFindsAddedEdges(t *testing.T) {
	o := DefaultCSBM()
	o.Seed = 3
	s, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, added := range []float64{0, 0.5, 1} {
		g, fake, err := s.Truth.AddRandom(added, rng.New(1, "add"))
		if err != nil {
			t.Fatal(err)
		}
		p, c := CalibrateEdges(nil, g, sampleRows(s), 2, rng.New(2, "evidence"))
		share := c.NullFraction
		var sums, counts [2]float64
		for i, e := range g.Edges {
			k := 0
			if _, ok := slices.BinarySearchFunc(fake, e, compareEdges); ok {
				k = 1
			}
			sums[k] += float64(p[i])
			counts[k]++
			if !(p[i] >= 0 && p[i] <= 1) {
				t.Fatalf("edge %v has the probability %v", e, p[i])
			}
		}
		mean := (sums[0] + sums[1]) / (counts[0] + counts[1])
		if math.Abs(1-mean-share) > 0.1 {
			t.Errorf("%v added: edges are doubted with %.3f on average, their share is estimated at %.3f", added, 1-mean, share)
		}
		want := counts[1] / (counts[0] + counts[1])
		if share < want-0.1 || share > want+0.25 { // edges between classes look added, too
			t.Errorf("%v added: the share of false edges is estimated at %.3f, at least %.3f are", added, share, want)
		}
		if added > 0 && sums[1]/counts[1] > 0.6*sums[0]/counts[0] {
			t.Errorf("%v added: they have %.3f on average, the others %.3f", added, sums[1]/counts[1], sums[0]/counts[0])
		}
	}
}

// The result does not depend on threads, nor on how attributes are held.
func TestEdgePriorIsDeterministic(t *testing.T) {
	s, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	x := sampleRows(s)
	sparse := NodeFeatures{Cols: x.Cols, RowPtr: []int32{0}}
	for i := range s.Graph.N {
		for c, v := range x.Dense[i*x.Cols : (i+1)*x.Cols] {
			if v != 0 {
				sparse.Col, sparse.Val = append(sparse.Col, int32(c)), append(sparse.Val, v)
			}
		}
		sparse.RowPtr = append(sparse.RowPtr, int32(len(sparse.Col)))
	}
	values := slices.Clone(sparse.Val)
	want, learned := CalibrateEdges(nil, s.Graph, x, 2, rng.New(5, "evidence"))
	for _, threads := range []int{1, 3} {
		pool := kernels.NewPool(threads)
		got, other := CalibrateEdges(pool, s.Graph, sparse, 2, rng.New(5, "evidence"))
		pool.Close()
		if !slices.Equal(got, want) || !reflect.DeepEqual(other, learned) {
			t.Errorf("%d threads and sparse attributes give something else", threads)
		}
	}
	if !slices.Equal(values, sparse.Val) {
		t.Error("the attributes were changed")
	}
}

// How large attributes are does not matter, up to the largest and down to the smallest float32.
func TestEdgePriorOfFarRows(t *testing.T) {
	s, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	of := func(value float32) NodeFeatures {
		x := sampleRows(s)
		x.Dense = slices.Clone(x.Dense)
		for i, v := range x.Dense {
			x.Dense[i] = 0
			if v > 0.5 {
				x.Dense[i] = value
			}
		}
		return x
	}
	want, learned := CalibrateEdges(nil, s.Graph, of(1), 2, rng.New(5, "evidence"))
	lsa := of(1)
	projected := lsa.LSA(nil, s.Graph.N, 8, rng.New(6, "lsa"))
	for _, e := range []int{127, 60, 41, -41, -60, -126, -149} {
		x := of(float32(math.Ldexp(1, e)))
		got, other := CalibrateEdges(nil, s.Graph, x, 2, rng.New(5, "evidence"))
		if !slices.Equal(got, want) || !reflect.DeepEqual(other, learned) {
			t.Errorf("of attributes times 2^%d the evidence is another", e)
		}
		if !slices.Equal(x.LSA(nil, s.Graph.N, 8, rng.New(6, "lsa")), projected) {
			t.Errorf("of attributes times 2^%d the projection is another", e)
		}
	}
}

// A calibration gives the graph that it was learned from the same evidence, to the bit,
// and judges an edge of another one by what is near it alone.
func TestCalibration(t *testing.T) {
	o := DefaultCSBM()
	o.Seed = 4
	s, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	x := sampleRows(s)
	const rounds = 2
	want, c := CalibrateEdges(nil, s.Graph, x, rounds, rng.New(5, "evidence"))
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var read Calibration
	if err := json.Unmarshal(text, &read); err != nil || read.Validate(x.Cols) != nil {
		t.Fatal(err, read.Validate(x.Cols))
	}
	if got := read.Probabilities(nil, s.Graph, x); !slices.Equal(got, want) {
		t.Error("the graph that was learned from has other probabilities by its calibration")
	}
	// An edge more changes those within the rounds' hops of its ends and no others.
	added := [2]int32{0, int32(s.Graph.N - 1)}
	if s.Graph.Has(added[0], added[1]) {
		t.Fatal("the edge is there")
	}
	edges := append(slices.Clone(s.Graph.Edges), added)
	slices.SortFunc(edges, compareEdges)
	g := &Graph{N: s.Graph.N, Edges: edges}
	near, st := map[int32]bool{added[0]: true, added[1]: true}, g.Structure()
	for range rounds - 1 {
		for _, v := range slices.Collect(maps.Keys(near)) {
			for e := st.In.RowPtr[v]; e < st.In.RowPtr[v+1]; e++ {
				near[st.In.Col[e]] = true
			}
		}
	}
	got := read.Probabilities(nil, g, x)
	far := 0
	for i, e := range g.Edges {
		if at, ok := s.Graph.Find(e[0], e[1]); ok && !near[e[0]] && !near[e[1]] {
			far++
			if got[i] != want[at] {
				t.Fatalf("edge %v has %v, and %v with another edge far away", e, want[at], got[i])
			}
		}
	}
	if far == 0 {
		t.Error("no edge is far from the added one")
	}
	for name, bad := range map[string]Calibration{
		"columns": {Columns: []float64{1}, Rounds: c.Rounds},
		"scale":   {Columns: slices.Repeat([]float64{-1}, x.Cols), Rounds: c.Rounds},
		"values":  {Columns: c.Columns, Rounds: []Steps{{From: []float32{1}, P: nil}}},
		"falling": {Columns: c.Columns, Rounds: []Steps{{From: []float32{0, 1}, P: []float32{1, 0}}}},
		"share":   {Columns: c.Columns, Rounds: c.Rounds, NullFraction: 2},
	} {
		if bad.Validate(x.Cols) == nil {
			t.Errorf("a calibration with wrong %s passes", name)
		}
	}
}

// The cosine of an edge is that of the neighbourhoods on the graph without it.
func TestEdgePriorLeavesTheEdgeOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t).Undirected()
		if len(g.Edges) == 0 {
			return
		}
		const cols = 4
		x := NodeFeatures{Cols: cols, Dense: make([]float32, g.N*cols)}
		for i := range x.Dense {
			x.Dense[i] = float32(rapid.IntRange(0, 2).Draw(t, "x"))
		}
		w := make([]float32, len(g.Edges))
		for i := range w {
			w[i] = float32(rapid.IntRange(1, 4).Draw(t, "w")) / 4
		}
		n := newNeighbourhoods(g, x, x.Rarity(g.N))
		n.sum(nil, w)
		at := rapid.IntRange(0, len(g.Edges)-1).Draw(t, "edge")
		e := g.Edges[at]
		got := float64(n.cosine(e, float64(w[at])))

		var sums [2][cols]float64
		for k, u := range e {
			add := func(v int32, w float64) {
				for i, c := range n.rows[v].col {
					sums[k][c] += w * float64(n.rows[v].val[i])
				}
			}
			add(u, 1)
			for i, other := range g.Edges {
				switch {
				case i == at:
				case other[0] == u:
					add(other[1], float64(w[i]))
				case other[1] == u:
					add(other[0], float64(w[i]))
				}
			}
		}
		var ab, aa, bb float64
		for c := range cols {
			ab, aa, bb = ab+sums[0][c]*sums[1][c], aa+sums[0][c]*sums[0][c], bb+sums[1][c]*sums[1][c]
		}
		want := 0.0
		if aa > 1e-3 && bb > 1e-3 {
			want = ab / math.Sqrt(aa*bb)
		}
		if math.Abs(got-want) > 1e-3 {
			t.Fatalf("edge %v: %v, want %v", e, got, want)
		}
	})
}

// Without anything to compare with, no edge is doubted.
func TestEdgePriorWithoutPairs(t *testing.T) {
	complete := &Graph{N: 3, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}}}
	for name, c := range map[string]struct {
		g *Graph
		x NodeFeatures
	}{
		"a complete graph": {complete, NodeFeatures{Cols: 1, Dense: []float32{1, 0, 1}}},
		"no attributes":    {&Graph{N: 3, Edges: [][2]int32{{0, 1}}}, NodeFeatures{}},
		"no edges":         {&Graph{N: 2}, NodeFeatures{Cols: 1, Dense: []float32{1, 1}}},
		"no nodes":         {&Graph{}, NodeFeatures{Cols: 1}},
	} {
		p, learned := CalibrateEdges(nil, c.g, c.x, 2, rng.New(1, "evidence"))
		share := learned.NullFraction
		if again := learned.Probabilities(nil, c.g, c.x); !slices.Equal(again, p) {
			t.Errorf("%s: %v by the calibration, %v before", name, again, p)
		}
		if share != 0 || len(p) != len(c.g.Edges) || slices.ContainsFunc(p, func(p float32) bool { return p != 1 }) {
			t.Errorf("%s: %v, share %v", name, p, share)
		}
	}
}
