package graph

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
)

func TestNeighborSampler(t *testing.T) {
	s, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	st := s.Graph.Structure()
	sampler := NewNeighborSampler(st, []int{2, 3})
	var b NeighborBatch
	seeds := []int32{7, 3, 500}
	hits := make([]float64, st.N) // weight of each drawn neighbour of the first seed
	const draws = 4000
	for step := range uint64(draws) {
		if err := sampler.Sample(&b, seeds, rng.New(1, "x").At(step)); err != nil {
			t.Fatal(err)
		}
		for p := b.In.RowPtr[0]; p < b.In.RowPtr[1]; p++ {
			hits[b.Nodes[b.In.Col[p]]] += float64(b.Weights[p])
		}
	}
	if !slices.Equal(b.Nodes[:3], seeds) {
		t.Errorf("the first nodes are %v", b.Nodes[:3])
	}
	seen := map[int32]bool{}
	for i, v := range b.Nodes {
		if seen[v] {
			t.Fatalf("node %d occurs twice", v)
		}
		seen[v] = true
		row, _, _ := st.Row(v)
		sum := float32(0)
		last := true // whether it is of the last hop
		for p := b.In.RowPtr[i]; p < b.In.RowPtr[i+1]; p++ {
			sum += b.Weights[p]
			if u := b.Nodes[b.In.Col[p]]; u != v {
				last = false
				if !slices.Contains(row, u) {
					t.Fatalf("%d is no neighbour of %d", u, v)
				}
			}
		}
		if math.Abs(float64(sum)-float64(len(row))) > 1e-4 {
			t.Errorf("the entries into %d weigh %v, it has %d", v, sum, len(row))
		}
		if n := int(b.In.RowPtr[i+1] - b.In.RowPtr[i]); !last && n != min(len(row), 2) && n != min(len(row), 3) {
			t.Errorf("of %d neighbours %d were drawn", len(row), n)
		}
	}
	// Every neighbour counts, on average, what it does in the whole graph.
	row, _, _ := st.Row(7)
	for _, u := range row {
		if mean := hits[u] / draws; math.Abs(mean-1) > 0.15 {
			t.Errorf("neighbour %d counts %.3f on average", u, mean)
		}
	}
	// All neighbours of all hops are the rows of the graph.
	if err := NewNeighborSampler(st, []int{0}).Sample(&b, seeds, rng.New(1, "x")); err != nil {
		t.Fatal(err)
	}
	for i, v := range seeds {
		row, _, _ := st.Row(v)
		var got []int32
		for _, c := range b.In.Col[b.In.RowPtr[i]:b.In.RowPtr[i+1]] {
			got = append(got, b.Nodes[c])
		}
		if !slices.Equal(got, row) {
			t.Errorf("node %d has %v, want %v", v, got, row)
		}
	}
	for p, e := range b.Out.Perm { // the transpose is one
		if at := b.Out.Col[p]; e < b.In.RowPtr[at] || e >= b.In.RowPtr[at+1] {
			t.Fatalf("entry %d is not in row %d", e, at)
		}
	}
	for _, bad := range [][]int32{{1, 1}, {-1}, {int32(st.N)}} {
		if err := sampler.Sample(&b, bad, rng.New(1, "x")); err == nil {
			t.Errorf("the seeds %v pass", bad)
		}
	}
}
