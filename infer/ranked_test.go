package infer

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

// Probabilities that differ in the last bit alone are ranked.
func TestRankedByWhatIsWritten(t *testing.T) {
	c := &graph.Candidates{N: 4, Edges: [][2]int32{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}}, Existing: []bool{true, true, true, true, false, true}}
	x := &graph.Refined{Candidates: c, Probability: []float32{0.9725984, 0.97259825, 2e-12, 1e-12, 0.75, 0.125}, Mode: "expected", Threshold: 0.25}
	o := RefineOptions{Ranked: true}
	g, err := o.table(x, unrefined{g: c.Graph()})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float32{1e-12, 2e-12, 0.125, 0.75, 0.97259825, 0.9725984} {
		if got := g.Edges[i].Probability; got != want {
			t.Errorf("row %d has the probability %g, want %g", i, got, want)
		}
	}
}

// Where edges count by their weights they are ranked by their probability without these; one that weighs nothing
// comes first of those that are kept, as its probability is not known.
func TestRankedWithoutWeights(t *testing.T) {
	c := &graph.Candidates{N: 4, Edges: [][2]int32{{0, 1}, {0, 2}, {0, 3}, {1, 2}}, Existing: []bool{true, true, true, false}}
	raw := &graph.Graph{N: 4, Edges: [][2]int32{{0, 1}, {0, 2}, {0, 3}}, Weights: []float32{0.25, 2, 0}}
	x := &graph.Refined{Candidates: c, Probability: []float32{0.25, 0.5, 1e-3, 0.75}, Mode: "expected"}
	o := RefineOptions{Ranked: true, WeightUnit: 1}
	g, err := o.table(x, unrefined{g: raw})
	if err != nil {
		t.Fatal(err)
	}
	own := g.Evidence[len(g.Evidence)-1]
	if own.Source != graph.Judged || !slices.Equal(own.Values, []float32{1, 0.5, 1e-3, 0.75}) {
		t.Errorf("%s is %v", own.Source, own.Values)
	}
	for i, want := range []int{3, 2, 1, 0} { // new, and kept
		if got := g.Edges[i].Candidate; got != want {
			t.Errorf("row %d is pair %d, want %d", i, got, want)
		}
	}
}
