package graph

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBuild(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		src, dst []int32
		w        []float32
		directed bool
		edges    [][2]int32
		weights  []float32
		rep      Repairs
	}{
		{name: "no nodes"},
		{name: "one node", n: 1},
		{name: "one self-loop", n: 1, src: []int32{0}, dst: []int32{0}, rep: Repairs{SelfLoops: 1}},
		{name: "undirected", n: 4, src: []int32{3, 0, 1, 2, 2}, dst: []int32{0, 3, 0, 2, 1},
			edges: [][2]int32{{0, 1}, {0, 3}, {1, 2}}, rep: Repairs{Duplicates: 1, SelfLoops: 1}},
		{name: "first weight wins", n: 3, src: []int32{2, 0, 0, 2}, dst: []int32{0, 2, 1, 0}, w: []float32{5, 6, 7, 8},
			edges: [][2]int32{{0, 1}, {0, 2}}, weights: []float32{7, 5}, rep: Repairs{Duplicates: 2}},
		{name: "directed keeps both directions", n: 3, src: []int32{2, 0, 0, 2}, dst: []int32{0, 2, 1, 0}, w: []float32{5, 6, 7, 8}, directed: true,
			edges: [][2]int32{{0, 1}, {0, 2}, {2, 0}}, weights: []float32{7, 6, 5}, rep: Repairs{Duplicates: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, rep, err := Build(c.n, c.src, c.dst, c.w, c.directed)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(g.Edges, c.edges) || !slices.Equal(g.Weights, c.weights) || rep != c.rep || g.N != c.n || g.Directed != c.directed {
				t.Errorf("got %+v, %+v; want edges %v, weights %v, %+v", g, rep, c.edges, c.weights, c.rep)
			}
			if err := g.Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBuildErrors(t *testing.T) {
	for _, c := range []struct {
		name     string
		n        int
		src, dst []int32
		w        []float32
		want     string
	}{
		{"negative n", -1, nil, nil, nil, "number of nodes is -1"},
		{"lengths", 2, []int32{0}, nil, nil, "1 edge sources but 0 targets"},
		{"weights", 2, []int32{0}, []int32{1}, []float32{}, "0 edge weights for 1 edges"},
		{"id too large", 2, []int32{0, 1}, []int32{1, 2}, nil, "edge 1 goes from node 1 to node 2, but nodes are numbered 0..1"},
		{"negative id", 2, []int32{-1}, []int32{1}, nil, "from node -1"},
		{"NaN", 2, []int32{0}, []int32{1}, []float32{float32(math.NaN())}, "finite"},
	} {
		_, _, err := Build(c.n, c.src, c.dst, c.w, false)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

// drawEdges draws raw edges with duplicates and self-loops.
func drawEdges(t *rapid.T, n int) (src, dst []int32) {
	if n == 0 {
		return nil, nil
	}
	ids := rapid.SliceOfN(rapid.Int32Range(0, int32(n-1)), 0, 60).Draw(t, "ids")
	m := len(ids) / 2
	return ids[:m], ids[m : 2*m]
}

// drawGraph draws a valid graph of up to 12 nodes.
func drawGraph(t *rapid.T) *Graph {
	n := rapid.IntRange(0, 12).Draw(t, "n")
	src, dst := drawEdges(t, n)
	g, _, err := Build(n, src, dst, nil, rapid.Bool().Draw(t, "directed"))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBuildProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "n")
		directed := rapid.Bool().Draw(t, "directed")
		src, dst := drawEdges(t, n)
		w := make([]float32, len(src))
		for i := range w {
			w[i] = float32(i)
		}
		g, rep, err := Build(n, src, dst, w, directed)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		first := map[[2]int32]float32{}
		loops := 0
		for i := range src {
			e := [2]int32{src[i], dst[i]}
			if e[0] == e[1] {
				loops++
				continue
			}
			if !directed && e[0] > e[1] {
				e[0], e[1] = e[1], e[0]
			}
			if _, ok := first[e]; !ok {
				first[e] = w[i]
			}
		}
		if len(first) != g.NumEdges() || rep.SelfLoops != loops || rep.Duplicates != len(src)-loops-len(first) {
			t.Fatalf("%d edges, %+v; want %d edges, %d loops of %d", g.NumEdges(), rep, len(first), loops, len(src))
		}
		for i, e := range g.Edges {
			if first[e] != g.Weights[i] {
				t.Fatalf("edge %v has weight %v, want %v", e, g.Weights[i], first[e])
			}
			if j, ok := g.Find(e[0], e[1]); !ok || j != i {
				t.Fatalf("Find(%v) = %d, %v", e, j, ok)
			}
			if !directed && !g.Has(e[1], e[0]) {
				t.Fatalf("Has(%v reversed) is false", e)
			}
		}
		sum := 0
		for _, d := range g.Degrees() {
			sum += int(d)
		}
		if sum != 2*g.NumEdges() {
			t.Fatalf("degrees sum to %d for %d edges", sum, g.NumEdges())
		}
	})
}

func TestHomophily(t *testing.T) {
	g, _, err := Build(5, []int32{0, 1, 2, 3}, []int32{1, 2, 3, 4}, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		labels []int32
		want   float64
	}{
		{"all same", []int32{1, 1, 1, 1, 1}, 1},
		{"half", []int32{0, 0, 1, 1, 0}, 0.5},
		{"missing label", []int32{0, 0, -1, 1, 0}, 0.5},
		{"short", []int32{0, 0}, 1},
		{"none", nil, math.NaN()},
	} {
		if got := g.Homophily(c.labels); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestWeightedHomophily(t *testing.T) {
	g := &Graph{N: 4, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}, {2, 3}}, Weights: []float32{3, 1, 5, 7}}
	labels := []int32{0, 0, 1, -1}
	if got := g.WeightedHomophily(labels); !(math.Abs(got-3.0/9) <= 1e-12) {
		t.Errorf("with weights %v, want 1/3", got)
	}
	if got := g.WeightedHomophily(labels[:3]); !(math.Abs(got-3.0/9) <= 1e-12) {
		t.Errorf("with a label too few %v, want 1/3", got)
	}
	if got := (&Graph{N: 4, Edges: g.Edges, Weights: make([]float32, 4)}).WeightedHomophily(labels); !math.IsNaN(got) {
		t.Errorf("without weight %v, want NaN", got)
	}
	g.Weights = nil
	if got, want := g.WeightedHomophily(labels), g.Homophily(labels); got != want {
		t.Errorf("without weights %v, want %v", got, want)
	}
}

func TestValidateFindsFaults(t *testing.T) {
	for _, g := range []Graph{
		{N: -1},
		{N: 2, Edges: [][2]int32{{0, 2}}},
		{N: 2, Edges: [][2]int32{{1, 0}}},
		{N: 2, Edges: [][2]int32{{1, 1}}, Directed: true},
		{N: 3, Edges: [][2]int32{{1, 2}, {0, 1}}},
		{N: 3, Edges: [][2]int32{{0, 1}, {0, 1}}},
		{N: 3, Edges: [][2]int32{{0, 1}}, Weights: []float32{}},
	} {
		if g.Validate() == nil {
			t.Errorf("%+v is called valid", g)
		}
	}
}
