package infer

import (
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
