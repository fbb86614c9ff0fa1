package graph

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// plantedPartition has classes of equal size with edges mostly inside, and a
// last node without edges.
func plantedPartition(t testing.TB, n, classes, edges int, inside float32, seed uint64) (*Graph, []int32) {
	t.Helper()
	s := rng.New(seed, "test.planted")
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i % classes)
	}
	var src, dst []int32
	for i := uint64(0); len(src) < edges; i++ {
		u := s.Intn(3*i, n-1)
		v := s.Intn(3*i+1, n-1)
		if s.Uniform(i) < inside {
			v = v/classes*classes + int(labels[u])
		}
		if v < n-1 {
			src, dst = append(src, int32(u)), append(dst, int32(v))
		}
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return g, labels
}

// centroidAccuracy classifies by the class mean of the first perClass nodes of
// each class that is nearest by cosine, and returns the rate of right answers
// among the other nodes. Zero rows do not take part.
func centroidAccuracy(x []float32, dim int, labels []int32, classes, perClass int) float64 {
	row := func(i int) []float64 {
		r, norm := make([]float64, dim), 0.0
		for k := range r {
			r[k] = float64(x[i*dim+k])
			norm += r[k] * r[k]
		}
		for k := range r {
			r[k] /= math.Sqrt(norm)
		}
		return r
	}
	means, seen := make([][]float64, classes), make([]int, classes)
	for c := range means {
		means[c] = make([]float64, dim)
	}
	right, all := 0, 0
	for i, y := range labels {
		if x[i*dim] == 0 {
			continue
		}
		r := row(i)
		if seen[y] < perClass {
			seen[y]++
			for k, v := range r {
				means[y][k] += v
			}
			continue
		}
		best, at := math.Inf(-1), 0
		for c, m := range means {
			dot, norm := 0.0, 0.0
			for k, v := range r {
				dot += v * m[k]
				norm += m[k] * m[k]
			}
			if dot /= math.Sqrt(norm); dot > best {
				best, at = dot, c
			}
		}
		all++
		if at == int(y) {
			right++
		}
	}
	return float64(right) / float64(all)
}

func TestDeepWalkSeparatesCommunities(t *testing.T) {
	g, labels := plantedPartition(t, 201, 4, 900, 0.85, 1)
	o := DeepWalkOptions{Dim: 24, WalkLength: 25, Seed: 5}
	var first []float32
	for _, threads := range []int{0, 2, 3} {
		var pool *kernels.Pool
		if threads > 0 {
			pool = kernels.NewPool(threads)
		}
		x, err := DeepWalk(pool, g, o)
		if pool != nil {
			pool.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = x
		}
		if !slices.Equal(first, x) {
			t.Errorf("%d threads give another embedding", threads)
		}
	}
	if acc := centroidAccuracy(first, o.Dim, labels, 4, 10); acc < 0.95 {
		t.Errorf("nearest class mean is right for %.3f of the nodes, want 0.95", acc)
	}
	// The isolated node is on no walk.
	for k, v := range first[200*o.Dim:] {
		if v != 0 {
			t.Fatalf("isolated node has %v in column %d", v, k)
		}
	}
	// A graph without communities must not separate: the test could not fail
	// otherwise.
	r, _ := plantedPartition(t, 201, 4, 900, 0, 1)
	x, err := DeepWalk(nil, r, o)
	if err != nil {
		t.Fatal(err)
	}
	if acc := centroidAccuracy(x, o.Dim, labels, 4, 10); acc > 0.4 {
		t.Errorf("without communities, nearest class mean is right for %.3f of the nodes", acc)
	}
	o.Seed++
	if x, _ := DeepWalk(nil, g, o); slices.Equal(first, x) {
		t.Error("two seeds give the same embedding")
	}
}

func TestDeepWalkSmall(t *testing.T) {
	for _, c := range []struct {
		name string
		g    Graph
		zero []bool // per node
	}{
		{"empty", Graph{}, nil},
		{"one node", Graph{N: 1}, []bool{true}},
		{"no edges", Graph{N: 3}, []bool{true, true, true}},
		{"one edge", Graph{N: 3, Edges: [][2]int32{{0, 2}}}, []bool{false, true, false}},
		{"directed to a sink", Graph{N: 3, Edges: [][2]int32{{0, 1}, {1, 0}, {2, 1}}, Directed: true}, []bool{false, false, false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := DeepWalk(nil, &c.g, DeepWalkOptions{Dim: 5})
			if err != nil {
				t.Fatal(err)
			}
			if len(x) != 5*c.g.N {
				t.Fatalf("%d values", len(x))
			}
			for i, want := range c.zero {
				row := x[i*5 : i*5+5]
				if zero := !slices.ContainsFunc(row, func(v float32) bool { return v != 0 }); zero != want {
					t.Errorf("node %d has %v", i, row)
				}
				if slices.ContainsFunc(row, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }) {
					t.Errorf("node %d has %v", i, row)
				}
			}
		})
	}
}

func TestDeepWalkOptionErrors(t *testing.T) {
	g := &Graph{N: 2, Edges: [][2]int32{{0, 1}}}
	for _, o := range []DeepWalkOptions{
		{Dim: -1}, {Window: -3}, {WalksPerNode: 1 << 30}, {WalkLength: 1 << 20, Window: 1 << 20},
		{LR: -1}, {LR: 2}, {LR: math.NaN()}, {LR: 0.01, MinLR: 0.02},
	} {
		if _, err := DeepWalk(nil, g, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestDeepWalkProgress(t *testing.T) {
	g, _ := plantedPartition(t, 101, 4, 300, 0.8, 1)
	last, calls := 0, 0
	o := DeepWalkOptions{Dim: 8, WalkLength: 10, Epochs: 2}
	o.Progress = func(done, total int) error {
		if walks := randomWalks(g, 10, o.WalkLength); total != 2*len(walks) {
			t.Errorf("total %d, want twice the %d walks", total, len(walks))
		}
		if done <= last || done > total {
			t.Errorf("%d of %d walks after %d", done, total, last)
		}
		last = done
		calls++
		return nil
	}
	if _, err := DeepWalk(nil, g, o); err != nil || calls < 2 {
		t.Errorf("%d calls: %v", calls, err)
	}
	stop := errors.New("stop")
	o.Progress = func(int, int) error { return stop }
	if _, err := DeepWalk(nil, g, o); !errors.Is(err, stop) {
		t.Errorf("error %v, want the callback's", err)
	}
}

// randomWalks draws the walks that DeepWalk trains on.
func randomWalks(g *Graph, perNode, length int) (walks [][]int32) {
	w := newWalker(g, perNode, length, 0)
	for i := range w.starts {
		walks = append(walks, make([]int32, length))
		w.walk(i, walks[i])
	}
	return walks
}

func TestRandomWalks(t *testing.T) {
	g, _ := plantedPartition(t, 50, 2, 60, 0.8, 3)
	walks := randomWalks(g, 30, 9)
	starts := make([]int, g.N)
	next := map[[2]int32]int{} // how often an edge was walked in a direction
	from := make([]int, g.N)
	for _, w := range walks {
		starts[w[0]]++
		for i, v := range w[1:] {
			if !g.Has(w[i], v) {
				t.Fatalf("walk goes from %d to %d without an edge", w[i], v)
			}
			next[[2]int32{w[i], v}]++
			from[w[i]]++
		}
	}
	degrees := g.Degrees()
	for v, d := range degrees {
		if want := map[bool]int{true: 30}[d > 0]; starts[v] != want {
			t.Errorf("%d walks start at node %d of degree %d, want %d", starts[v], v, d, want)
		}
	}
	// Next nodes are even among neighbours: five standard deviations.
	for _, e := range g.Edges {
		n, p := float64(from[e[0]]), 1/float64(degrees[e[0]])
		if got := float64(next[e]); !(math.Abs(got-n*p) <= 5*math.Sqrt(n*p*(1-p))+1e-9) {
			t.Errorf("edge %v was walked %v times in %v, want about %.1f", e, got, n, n*p)
		}
	}
}

func TestAlias(t *testing.T) {
	for _, weights := range [][]float64{{1}, {1, 1}, {1, 2, 3, 4}, {1e-9, 1}, {5, 0.1, 0.1, 0.1, 7}} {
		a, sum := newAlias(weights), 0.0
		for _, w := range weights {
			sum += w
		}
		// The table's own probabilities, exactly.
		got := make([]float64, len(weights))
		for i, c := range a {
			keep := float64(c.below) / (1 << 32)
			got[i] += keep / float64(len(a))
			got[c.other] += (1 - keep) / float64(len(a))
		}
		for i, w := range weights {
			if !(math.Abs(got[i]-w/sum) <= 1e-8) {
				t.Errorf("weights %v: %d has probability %v, want %v", weights, i, got[i], w/sum)
			}
		}
		for _, w := range []uint32{0, 1, math.MaxUint32 / 2, math.MaxUint32} {
			if x := a.draw(w); x < 0 || int(x) >= len(weights) {
				t.Errorf("weights %v: draw(%d) = %d", weights, w, x)
			}
		}
	}
}

func TestSigmoid(t *testing.T) {
	for x := float32(-8); x < 8; x += 0.01 {
		if want := 1 / (1 + math.Exp(-float64(x))); !(math.Abs(float64(sigmoid(x))-want) <= 0.003) {
			t.Errorf("sigmoid(%v) = %v, want %v", x, sigmoid(x), want)
		}
	}
	if nan := sigmoid(float32(math.NaN())); nan != 0 {
		t.Errorf("sigmoid(NaN) = %v, want 0", nan)
	}
}

// Two walks a node on a graph of Cora's size: a fifth of the default.
func BenchmarkDeepWalk(b *testing.B) {
	g := randomGraph(b, 2708, 5278, 1)
	pool := kernels.NewPool(0)
	defer pool.Close()
	for b.Loop() {
		if _, err := DeepWalk(pool, g, DeepWalkOptions{WalksPerNode: 2}); err != nil {
			b.Fatal(err)
		}
	}
}
