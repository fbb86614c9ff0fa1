package train

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/graph"
)

// New candidates are those that the parts of candidates.similarity and two_step propose,
// on any number of threads.
func TestProposedCandidates(t *testing.T) {
	ds := synthetic(t, 1)
	choose := func(sets ...string) *graph.Candidates {
		t.Helper()
		tr := started(t, Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr", append([]string{"model.edges.judge=evidence", "candidates.k=3", "candidates.mutual=false"}, sets...)...), Options{})
		defer tr.close()
		p := tr.steps.(*nodeSteps)
		if err := p.begin(); err != nil {
			t.Fatal(err)
		}
		if err := p.choose(); err != nil {
			t.Fatal(err)
		}
		c, err := p.found.set.Host()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.bindCandidates(); err != nil {
			t.Fatal(err)
		}
		e := tr.cfg.Model.Edges
		likely := map[float32]bool{}
		for i, v := range p.found.perEdge {
			if c.Existing[i] {
				continue
			}
			if likely[v] = true; v < float32(e.NewLo) || v > float32(e.NewHi) {
				t.Fatalf("%v: the new edge %v has the probability %v, outside [%v, %v]", sets, c.Edges[i], v, e.NewLo, e.NewHi)
			}
		}
		if len(likely) < 10 {
			t.Errorf("%v: new edges have only %d different probabilities", sets, len(likely))
		}
		x := &graph.Candidates{}
		x.CopyFrom(c)
		return x
	}
	joined := map[[2]int32]bool{}
	sizes := map[string]int{}
	for _, sets := range [][]string{{"candidates.similarity=embedding"}, {"candidates.similarity=features"}, {"candidates.similarity=evidence"}, {"candidates.k=0", "candidates.two_step=4"}} {
		c := choose(sets...)
		for _, e := range c.Edges {
			joined[e] = true
		}
		sizes[sets[0]] = len(c.Edges)
		existing := len(slices.DeleteFunc(slices.Clone(c.Existing), func(old bool) bool { return !old }))
		if len(c.Edges) <= existing || existing != ds.Graph.Undirected().NumEdges() {
			t.Errorf("%v: %d candidates, %d of them edges", sets, len(c.Edges), existing)
		}
	}
	all := choose("candidates.similarity="+strings.Join([]string{config.SimilarityEmbedding, config.SimilarityFeatures, config.SimilarityEvidence}, "+"), "candidates.two_step=4", "train.threads=3")
	if len(all.Edges) != len(joined) || slices.ContainsFunc(all.Edges, func(e [2]int32) bool { return !joined[e] }) {
		t.Errorf("joined, there are %d candidates, want the %d of all parts: %v", len(all.Edges), len(joined), sizes)
	}
}
