package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"pgregory.net/rapid"
)

func TestEdgeSamplerCoversAnEpoch(t *testing.T) {
	g := randomGraph(t, 60, 150, 4)
	e, err := NewEdgeSampler(g, SamplerOptions{Edges: 16, Hops: 1}, rng.New(1, "test"))
	if err != nil {
		t.Fatal(err)
	}
	var first [2][]int32
	for epoch := range 2 {
		seen := make([]bool, g.NumEdges())
		for b := range e.opt.BatchesPerEpoch {
			for _, i := range e.Batch(uint64(epoch*e.opt.BatchesPerEpoch + b)).Seeds {
				if seen[i] {
					t.Fatalf("epoch %d draws edge %d twice", epoch, i)
				}
				seen[i] = true
				first[epoch] = append(first[epoch], i)
			}
		}
		if len(first[epoch]) != g.NumEdges() {
			t.Errorf("epoch %d draws %d of %d edges", epoch, len(first[epoch]), g.NumEdges())
		}
	}
	if slices.Equal(first[0], first[1]) {
		t.Error("two epochs draw edges in the same order")
	}
}

func TestEdgeSamplerBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		if g.NumEdges() == 0 {
			return
		}
		opt := SamplerOptions{
			Edges:  rapid.IntRange(1, 8).Draw(t, "edges"),
			Hops:   rapid.IntRange(0, 3).Draw(t, "hops"),
			FanOut: rapid.IntRange(0, 3).Draw(t, "fanout"),
		}
		step := rapid.Uint64Range(0, 20).Draw(t, "step")
		s := rng.New(2, "test")
		e, err := NewEdgeSampler(g, opt, s)
		if err != nil {
			t.Fatal(err)
		}
		b := e.Batch(step)
		if err := b.Graph.Validate(); err != nil {
			t.Fatal(err)
		}
		// A step's batch does not depend on the batches before it.
		other, _ := NewEdgeSampler(g, opt, s)
		other.Batch(step + 7)
		c := other.Batch(step)
		if !slices.Equal(b.Seeds, c.Seeds) || !slices.Equal(b.Nodes, c.Nodes) || !slices.Equal(b.Graph.Edges, c.Graph.Edges) {
			t.Fatal("a batch depends on what was drawn before")
		}
		// Anchors are exactly the seeds' endpoints.
		ends := map[int32]bool{}
		for _, i := range b.Seeds {
			ends[g.Edges[i][0]], ends[g.Edges[i][1]] = true, true
		}
		if len(ends) != len(b.Anchors) {
			t.Fatalf("%d anchors for %d endpoints", len(b.Anchors), len(ends))
		}
		for _, a := range b.Anchors {
			if !ends[b.Nodes[a]] {
				t.Fatalf("anchor %d is no endpoint", b.Nodes[a])
			}
		}
		// The subgraph is induced: all edges among its nodes, and only these.
		in := 0
		for _, edge := range g.Edges {
			_, u := slices.BinarySearch(b.Nodes, edge[0])
			_, v := slices.BinarySearch(b.Nodes, edge[1])
			if u && v {
				in++
			}
		}
		if in != b.Graph.NumEdges() {
			t.Fatalf("%d edges among the nodes, subgraph has %d", in, b.Graph.NumEdges())
		}
		for i, edge := range b.Graph.Edges {
			if want := g.Edges[b.EdgeOf[i]]; b.Nodes[edge[0]] != want[0] || b.Nodes[edge[1]] != want[1] {
				t.Fatalf("edge %v of the subgraph is said to be %v", edge, want)
			}
		}
		// Without a cap the nodes are those within the hops.
		if opt.FanOut == 0 {
			dist := map[int32]int{}
			for v := range ends {
				dist[v] = 0
			}
			for h := 1; h <= opt.Hops; h++ {
				for _, edge := range g.Edges {
					for d := range 2 {
						if d == 1 && g.Directed {
							continue
						}
						from, to := edge[1-d], edge[d]
						if at, ok := dist[from]; ok && at < h {
							if _, ok := dist[to]; !ok {
								dist[to] = h
							}
						}
					}
				}
			}
			if len(dist) != len(b.Nodes) {
				t.Fatalf("%d nodes, %d are within %d hops", len(b.Nodes), len(dist), opt.Hops)
			}
		}
	})
}

func TestFanOutCaps(t *testing.T) {
	g := &Graph{N: 41}
	for v := int32(1); v < 41; v++ {
		g.Edges = append(g.Edges, [2]int32{0, v})
	}
	st := g.Structure()
	for _, c := range []struct{ hops, fan, want int }{{0, 0, 1}, {1, 0, 41}, {1, 7, 8}, {2, 7, 8}, {1, 40, 41}, {1, 100, 41}} {
		if got := len((&neighborhood{st: st}).around(nil, []int32{0, 0}, c.hops, c.fan, 1)); got != c.want {
			t.Errorf("%d hops, fan-out %d: %d nodes, want %d", c.hops, c.fan, got, c.want)
		}
	}
}

func TestNewEdgeSamplerErrors(t *testing.T) {
	g := randomGraph(t, 10, 20, 1)
	for name, c := range map[string]struct {
		g   *Graph
		opt SamplerOptions
	}{
		"no edges":         {&Graph{N: 3}, SamplerOptions{}},
		"negative hops":    {g, SamplerOptions{Hops: -1}},
		"too many batches": {g, SamplerOptions{Edges: 5, BatchesPerEpoch: 10}},
		"overflow":         {g, SamplerOptions{Edges: math.MaxInt, BatchesPerEpoch: math.MaxInt}},
	} {
		if _, err := NewEdgeSampler(c.g, c.opt, 1); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// Both ways of drawing give the same subset.
func TestSampleFew(t *testing.T) {
	for n := 1; n < 40; n++ {
		for count := 0; count <= n; count++ {
			s := rng.New(uint64(n), "test").At(uint64(count))
			var want []int32
			for _, x := range sampleInts(int64(n), count, s) {
				want = append(want, int32(x))
			}
			if got := sampleFew(nil, n, count, s); !slices.Equal(got, want) {
				t.Fatalf("%d of %d: %v, want %v", count, n, got, want)
			}
		}
	}
}
