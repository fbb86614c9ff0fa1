package train

import (
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime"
)

// When new candidates turn out to be none, nothing of those before is weighed.
func TestCandidatesMayVanish(t *testing.T) {
	ds := synthetic(t, 1)
	for name, d := range map[string]runtime.Device{"cpu": nil, "remote": remote(t)} {
		t.Run(name, func(t *testing.T) {
			tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr"), Options{Device: d})
			defer tr.close()
			p := tr.steps.(*nodeSteps)
			for _, g := range []*graph.Graph{ds.Graph.Undirected(), {N: ds.Graph.N}} {
				cand, err := graph.NewCandidates(g, nil, 0, false)
				if err != nil {
					t.Fatal(err)
				}
				if err := p.set(cand); err != nil {
					t.Fatal(err)
				}
				values := make([]float32, len(cand.Edges))
				for i := range values {
					values[i] = 0.2 // below the threshold
				}
				if err := p.give(values, 0, 1); err != nil {
					t.Fatal(err)
				}
				_, w, changed, err := p.evaluated()
				if err != nil {
					t.Fatal(err)
				}
				if !changed || w.Dims[0] != 2*len(values) || p.count() != len(values) {
					t.Errorf("%d candidates have %d weights of entries, changed: %v", len(values), w.Dims[0], changed)
				}
			}
		})
	}
}

// A node has no more neighbours than there are other nodes, however many are asked for.
func TestMoreNeighboursThanNodes(t *testing.T) {
	ds := synthetic(t, 1)
	count := func(option string, k int) int {
		tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr", option+"="+strconv.Itoa(k)), Options{})
		defer tr.close()
		steps := tr.steps.(*nodeSteps)
		if err := errors.Join(steps.begin(), steps.choose()); err != nil {
			t.Fatal(err)
		}
		return steps.count()
	}
	if all, more := count("candidates.k", ds.Graph.N-1), count("candidates.k", math.MaxInt32); all != more || all != ds.Graph.N*(ds.Graph.N-1)/2 {
		t.Errorf("%d candidates of all nodes, and %d where more are asked for", all, more)
	}
	if all, more := count("candidates.two_step", ds.Graph.N), count("candidates.two_step", math.MaxInt32); all != more {
		t.Errorf("%d candidates of all nodes two steps away, and %d where more are asked for", all, more)
	}
}
