package graph

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func checkSample(t failer, o CSBM, s *Sample) {
	t.Helper()
	for _, g := range []*Graph{s.Graph, s.Truth} {
		if err := g.Validate(); err != nil || g.N != o.Nodes || g.Directed {
			t.Fatalf("%d nodes, directed %v: %v", g.N, g.Directed, err)
		}
	}
	m := int(math.Round(float64(o.Nodes) * o.Degree / 2))
	within := int(math.Round(o.Homophily * float64(m)))
	if s.Truth.NumEdges() != m || len(s.Added) != int(math.Round(o.Wrong*float64(m))) || len(s.Hidden) != int(math.Round(o.Hidden*float64(m))) {
		t.Fatalf("%d true, %d added, %d hidden edges for %+v", s.Truth.NumEdges(), len(s.Added), len(s.Hidden), o)
	}
	same := 0
	for _, e := range s.Truth.Edges {
		if s.Labels[e[0]] == s.Labels[e[1]] {
			same++
		}
	}
	if same != within {
		t.Fatalf("%d true edges inside classes, want %d", same, within)
	}
	if !slices.Equal(Difference(s.Graph, s.Truth), s.Added) || !slices.Equal(Difference(s.Truth, s.Graph), s.Hidden) {
		t.Fatalf("Added or Hidden is not the difference of the graphs")
	}
	for _, e := range s.Added {
		if s.Labels[e[0]] == s.Labels[e[1]] {
			t.Fatalf("wrong edge %v joins nodes of one class", e)
		}
	}
	size := make([]int, o.Classes)
	classOf := map[int32]int32{}
	for v, c := range s.Labels {
		size[c]++
		g := s.Community[v]
		if of, ok := classOf[g]; ok && of != c {
			t.Fatalf("community %d has nodes of classes %d and %d", g, of, c)
		}
		classOf[g] = c
	}
	if o.Nodes > 0 && slices.Max(size)-slices.Min(size) > 1 {
		t.Fatalf("class sizes %v", size)
	}
	if len(s.X) != o.Nodes*o.Features || slices.ContainsFunc(s.X, func(v float32) bool { return v != 0 && v != 1 }) {
		t.Fatalf("X has %d values, or some that are neither 0 nor 1", len(s.X))
	}
}

func TestGenerate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := func(name string) float64 { return rapid.Float64Range(0, 1).Draw(t, name) }
		o := CSBM{
			Nodes: rapid.IntRange(0, 40).Draw(t, "nodes"), Features: rapid.IntRange(0, 5).Draw(t, "features"),
			CommunitySize: rapid.IntRange(0, 12).Draw(t, "size"),
			Locality:      share("locality"), Individuality: share("individuality"), Homophily: share("homophily"), Hidden: share("hidden"),
			Degree: 6 * share("degree"), Wrong: 2 * share("wrong"), Signal: 3 * share("signal"), Density: 0.3,
			Seed: rapid.Uint64().Draw(t, "seed"),
		}
		o.Classes = rapid.IntRange(1, max(1, min(o.Nodes, 5))).Draw(t, "classes")
		s, err := Generate(o)
		if err != nil {
			if !strings.Contains(err.Error(), "there are only") {
				t.Fatal(err)
			}
			return
		}
		checkSample(t, o, s)
	})
}

// With density 1 features are real: a normal variable of the group's mean and unit
// noise, which is cut to 0 and 1 otherwise.
func TestRealFeatures(t *testing.T) {
	o := DefaultCSBM()
	cut, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Density = 1
	s, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Graph.Edges, cut.Graph.Edges) || !slices.Equal(s.Labels, cut.Labels) {
		t.Error("the density of the features changes the graph")
	}
	sum, squares, least := 0.0, 0.0, math.Inf(1)
	for i, v := range s.X {
		sum, squares = sum+float64(v), squares+float64(v)*float64(v)
		if cut.X[i] == 1 {
			least = math.Min(least, float64(v))
		}
	}
	n := float64(len(s.X))
	if mean, variance := sum/n, squares/n; !(math.Abs(mean) <= 0.15) || !(math.Abs(variance-1-o.Signal*o.Signal) <= 0.1) {
		t.Errorf("mean %.3f, variance %.3f, want 0 and %.3f", mean, variance, 1+o.Signal*o.Signal)
	}
	if least < 1 {
		t.Errorf("a value of %.3f was above the threshold of the largest 8 %%", least)
	}
}

func TestGenerateErrors(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(*CSBM)
	}{
		{"Nodes is -1", func(o *CSBM) { o.Nodes = -1 }},
		{"Classes is 0", func(o *CSBM) { o.Classes = 0 }},
		{"Classes is 1201", func(o *CSBM) { o.Classes = 1201 }},
		{"Features is -2", func(o *CSBM) { o.Features = -2 }},
		{"Features is 2147483647", func(o *CSBM) { o.Features = math.MaxInt32 }},
		{"CommunitySize is -1", func(o *CSBM) { o.CommunitySize = -1 }},
		{"Density is 0", func(o *CSBM) { o.Density = 0 }},
		{"Density is 1.1", func(o *CSBM) { o.Density = 1.1 }},
		{"Homophily is 1.5", func(o *CSBM) { o.Homophily = 1.5 }},
		{"Hidden is NaN", func(o *CSBM) { o.Hidden = math.NaN() }},
		{"Wrong is -1", func(o *CSBM) { o.Wrong = -1 }},
		{"inside communities", func(o *CSBM) { o.Degree = 20 }},
		{"between classes", func(o *CSBM) { o.Classes = 1 }},
		{"between communities of a class", func(o *CSBM) { o.CommunitySize = 500 }},
	} {
		o := DefaultCSBM()
		c.change(&o)
		if _, err := Generate(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

// average returns D^-1/2 (A+I) D^-1/2 x, twice.
func average(g *Graph, x []float32, f int) []float32 {
	norm := make([]float32, g.N)
	for v, d := range g.Degrees() {
		norm[v] = float32(1 / math.Sqrt(float64(d+1)))
	}
	for range 2 {
		y := make([]float32, len(x))
		add := func(to, from int32) {
			w := norm[to] * norm[from]
			for k := range f {
				y[int(to)*f+k] += w * x[int(from)*f+k]
			}
		}
		for v := range int32(g.N) {
			add(v, v)
		}
		for _, e := range g.Edges {
			add(e[0], e[1])
			add(e[1], e[0])
		}
		x = y
	}
	return x
}

// The demo's data must leave room for a structure learner: the observed graph
// helps over the features alone, the truth helps much more, and neighbours by
// averaged features are better than the observed ones and find hidden edges.
func TestDefaultsLeaveRoom(t *testing.T) {
	o := DefaultCSBM()
	o.Seed = 3
	s, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	checkSample(t, o, s)
	ones := 0
	for _, v := range s.X {
		ones += int(v)
	}
	if got := float64(ones) / float64(len(s.X)); !(math.Abs(got-o.Density) <= 0.01) {
		t.Errorf("%.3f of the features are 1, want %v", got, o.Density)
	}

	f := o.Features
	accuracy := func(x []float32) float64 {
		centred := slices.Clone(x) // the mean of all nodes says nothing about a class
		for k := range f {
			mean := float32(0)
			for v := range o.Nodes {
				mean += x[v*f+k]
			}
			mean /= float32(o.Nodes)
			for v := range o.Nodes {
				centred[v*f+k] -= mean
			}
		}
		return centroidAccuracy(centred, f, s.Labels, o.Classes, 20)
	}
	observed := average(s.Graph, s.X, f)
	alone, raw, truth := accuracy(s.X), accuracy(observed), accuracy(average(s.Truth, s.X, f))
	t.Logf("nearest class mean: features %.3f, observed graph %.3f, truth %.3f", alone, raw, truth)
	if !(alone > 0.5 && alone < raw && raw > 0.65 && raw < 0.85 && truth > 0.95) {
		t.Errorf("nearest class mean: features %.3f, observed graph %.3f, truth %.3f", alone, raw, truth)
	}

	idx, _ := KNN(nil, observed, o.Nodes, f, 5)
	c, err := NewCandidates(&Graph{N: o.Nodes}, idx, 5, false)
	if err != nil {
		t.Fatal(err)
	}
	near := c.Graph()
	q := EdgeQuality(s.Graph, s.Truth, near)
	t.Logf("homophily: observed %.3f, nearest %.3f; recovered: precision %.3f, recall %.3f", s.Graph.Homophily(s.Labels), near.Homophily(s.Labels), q.Recovered.Precision(), q.Recovered.Recall())
	if near.Homophily(s.Labels) < s.Graph.Homophily(s.Labels)+0.1 || q.Recovered.Recall() < 0.1 {
		t.Errorf("homophily: observed %.3f, nearest %.3f; recall of hidden edges %.3f", s.Graph.Homophily(s.Labels), near.Homophily(s.Labels), q.Recovered.Recall())
	}

	again, _ := Generate(o)
	if !slices.Equal(again.X, s.X) || !slices.Equal(again.Graph.Edges, s.Graph.Edges) {
		t.Error("the same options give another sample")
	}
	o.Wrong, o.Hidden = 0, 0
	if clean, _ := Generate(o); !slices.Equal(clean.Graph.Edges, s.Truth.Edges) {
		t.Error("the truth depends on the damage")
	}
	o.Seed++
	if other, _ := Generate(o); slices.Equal(other.X, s.X) {
		t.Error("two seeds give the same features")
	}
}
