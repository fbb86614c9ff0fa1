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
		if !(math.Abs(float64(sum)-float64(len(row))) <= 1e-4) {
			t.Errorf("the entries into %d weigh %v, it has %d", v, sum, len(row))
		}
		if n := int(b.In.RowPtr[i+1] - b.In.RowPtr[i]); !last && n != min(len(row), 2) && n != min(len(row), 3) {
			t.Errorf("of %d neighbours %d were drawn", len(row), n)
		}
	}
	// Every neighbour counts, on average, what it does in the whole graph.
	row, _, _ := st.Row(7)
	for _, u := range row {
		if mean := hits[u] / draws; !(math.Abs(mean-1) <= 0.15) {
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

type weighedRows struct {
	*Structure
	w []float32
}

func (r weighedRows) Row(v int32) ([]int32, []float32, error) {
	return r.In.Col[r.In.RowPtr[v]:r.In.RowPtr[v+1]], r.w[r.In.RowPtr[v]:r.In.RowPtr[v+1]], nil
}

// Drawn by their weights, entries count on average what they weigh, and rows always.
func TestNeighborSamplerByWeight(t *testing.T) {
	s, err := Generate(DefaultCSBM())
	if err != nil {
		t.Fatal(err)
	}
	rows := weighedRows{Structure: s.Graph.Structure()}
	for p := range rows.E {
		rows.w = append(rows.w, float32(p%5)) // zeros among them
	}
	sampler := NewNeighborSampler(rows, []int{2})
	sampler.ByWeight = true
	var b NeighborBatch
	v := int32(0)
	for rows.In.RowPtr[v+1]-rows.In.RowPtr[v] < 6 {
		v++
	}
	_, want, _ := rows.Row(v)
	const draws = 4000
	got, total := make([]float64, len(want)), 0.0
	for _, w := range want {
		total += float64(w)
	}
	for step := range uint64(draws) {
		if err := sampler.Sample(&b, []int32{v}, rng.New(1, "x").At(step)); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for p := b.In.RowPtr[0]; p < b.In.RowPtr[1]; p++ {
			got[b.At[p]] += float64(b.Weights[p])
			sum += float64(b.Weights[p])
		}
		if n := b.In.RowPtr[1]; n < 1 || n > 2 || !(math.Abs(sum-total) <= 1e-4) {
			t.Fatalf("%d entries weigh %v, the row weighs %v", n, sum, total)
		}
	}
	for i, w := range want {
		if mean := got[i] / draws; !(math.Abs(mean-float64(w)) <= 0.3) {
			t.Errorf("an entry that weighs %v counts %.3f on average", w, mean)
		}
	}
}
