package train

import (
	"context"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime"
)

// When new candidates turn out to be none, nothing of those before is weighed.
func TestCandidatesMayVanish(t *testing.T) {
	ds := synthetic(t, 1)
	for name, d := range map[string]runtime.Device{"cpu": nil, "remote": remote(t)} {
		t.Run(name, func(t *testing.T) {
			tr, err := newTrainer(context.Background(), Task{Model: "ecl-gsr", Data: ds}, configure(t, "ecl-gsr"), Options{Device: d})
			if err != nil {
				t.Fatal(err)
			}
			defer tr.close()
			tr.edges = &edges{}
			for _, g := range []*graph.Graph{ds.Graph.Undirected(), {N: ds.Graph.N}} {
				cand, err := graph.NewCandidates(g, nil, 0, false)
				if err != nil {
					t.Fatal(err)
				}
				if err := tr.setCandidates(cand); err != nil {
					t.Fatal(err)
				}
				p := make([]float32, len(cand.Edges))
				for i := range p {
					p[i] = 0.2 // below the threshold
				}
				if err := tr.setProbabilities(p, 0, 1); err != nil {
					t.Fatal(err)
				}
				_, w, changed, err := tr.refinedGraph()
				if err != nil {
					t.Fatal(err)
				}
				if !changed || w.Dims[0] != 2*len(p) || tr.edges.count() != len(p) {
					t.Errorf("%d candidates have %d weights of entries, changed: %v", len(p), w.Dims[0], changed)
				}
			}
		})
	}
}
