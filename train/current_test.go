package train

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/config"
)

// The embedding is computed once for each state of what it depends on, and a joint step that reads no
// probabilities needs none to be computed for the candidates that it is given.
func TestEmbeddedOnce(t *testing.T) {
	ds := synthetic(t, 3)
	cfg, err := config.Load("grcn", ds.Name, "", []string{"train.joint_every=2", "candidates.k=3", "train.threads=2"})
	if err != nil {
		t.Fatal(err)
	}
	tr := started(t, Job{Model: "grcn", Task: Nodes(ds)}, cfg, Options{})
	defer tr.close()
	s := tr.steps.(*nodeSteps)
	alg := algorithm1{tr, s}
	current := func() bool { return tr.prog.fns["encode"].current }
	check := func(when string, want bool) {
		t.Helper()
		if current() != want {
			t.Errorf("%s: the embedding is that of what it depends on: %v, want %v", when, current(), want)
		}
	}
	epoch := func() {
		t.Helper()
		if _, _, err := alg.epoch(tr.state.Epoch); err != nil {
			t.Fatal(err)
		}
		tr.state.Epoch++
	}
	epoch()
	check("after a step of the classifier", true)
	before := slices.Clone(tr.prog.inputs["embedding"].F32)
	tr.edges.fresh = false
	epoch()
	check("after a joint step", false)
	if tr.edges.fresh {
		t.Error("probabilities were computed that no joint step reads")
	}
	if err := alg.refresh(); err != nil {
		t.Fatal(err)
	}
	check("after a refresh", true)
	after := slices.Clone(tr.prog.inputs["embedding"].F32)
	if slices.Equal(before, after) {
		t.Error("a joint step has not moved the embedding")
	}
	if err := tr.optim.Keep(tr.device); err != nil {
		t.Fatal(err)
	}
	if err := restoreBest(tr); err != nil {
		t.Fatal(err)
	}
	check("after other parameters", false)
	h, err := s.encode()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.F32, after) {
		t.Error("the same parameters have another embedding")
	}
	if err := tr.prog.bind("x", tr.prog.inputs["x"]); err != nil {
		t.Fatal(err)
	}
	check("after other inputs", false)
}
