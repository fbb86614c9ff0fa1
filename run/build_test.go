package run

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
)

// trainSmall trains a structure learner on a generated graph of 60 nodes.
func trainSmall(t *testing.T, model string, set ...string) *Run {
	t.Helper()
	set = append([]string{"synthetic.nodes=60", "train.epochs=2"}, set...)
	r, err := Train(t.Context(), TrainOptions{Model: model, Data: "synthetic", Out: filepath.Join(t.TempDir(), "run"), Set: set})
	if err != nil {
		t.Fatalf("%s %v: %v", model, set, err)
	}
	return r
}

// A run whose candidates are the edges of the graph alone is exported, with a pipeline.
func TestBuildWithoutNeighbours(t *testing.T) {
	lib := orttest.Need(t)
	for _, model := range []string{"grcn", "ecl-gsr", "sublime", "idgl"} {
		r := trainSmall(t, model, "candidates.k=0")
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		if _, err := r.Build(ctx, filepath.Join(t.TempDir(), "dist"), BuildOptions{Library: &lib, Unverified: true}); err != nil {
			t.Errorf("%s: %v", model, err)
		}
		cancel()
	}
}

// A graph without edges, refined or as it is, is exported.
func TestBuildWithoutEdges(t *testing.T) {
	lib := orttest.Need(t)
	for model, set := range map[string]string{"grcn": "model.edges.threshold=1", "ecl-gsr": "model.edges.threshold=1", "gen": "data.remove_edges=1"} {
		r := trainSmall(t, model, set)
		if _, err := r.Build(t.Context(), filepath.Join(t.TempDir(), "dist"), BuildOptions{Library: &lib, Lowering: onnx.Scatter, Unverified: true, TestCases: true}); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
}

// A run that was opened is exported and refined by several goroutines at the same time.
func TestUsedAtTheSameTime(t *testing.T) {
	lib := orttest.Need(t)
	r, err := Open(trainSmall(t, "grcn").Dir)
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = r.Build(t.Context(), filepath.Join(t.TempDir(), "dist"), BuildOptions{Library: &lib, Unverified: true})
			} else {
				_, err = r.Refine(infer.RefineOptions{})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// What sources say of the edges of a run that was opened is computed once, however many ask for it at the same time.
func TestLearnedAtTheSameTime(t *testing.T) {
	r, err := Open(trainSmall(t, "ecl-gsr", "model.edges.judge=evidence").Dir)
	if err == nil {
		err = r.LoadData("")
	}
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var first [4]*graph.Evidence
	for i := range first {
		group.Go(func() {
			x, err := r.Learned(1)
			if err != nil || len(x.Evidence) == 0 {
				t.Errorf("no evidence: %v", err)
				return
			}
			first[i] = &x.Evidence[0]
		})
	}
	group.Wait()
	for _, e := range first[1:] {
		if e != first[0] {
			t.Fatal("the evidence was computed more than once")
		}
	}
}

// An export of a model that does not read the weights of edges lists none with a refined graph, as
// the run does, and says why it refines no other graph.
func TestRefineWithoutWeights(t *testing.T) {
	lib := orttest.Need(t)
	path, other := weightedTable(t, uneven), weightedTable(t, func(i int) float64 { return float64(1 + i) })
	out, dist := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "dist")
	r, err := Train(t.Context(), TrainOptions{Model: "idgl", Data: path, Out: out, Set: []string{"train.epochs=2", "data.weights=ignore", "data.prepare=false", "model.smooth.alpha=0.5"}})
	if err == nil {
		_, err = r.Build(t.Context(), dist, BuildOptions{Library: &lib, Unverified: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{out, dist} {
		if g, err := Refine(t.Context(), dir, infer.RefineOptions{Data: path}); err != nil || g.Weighted {
			t.Errorf("%s: %+v, %v", dir, g, err)
		}
	}
	if _, err = Refine(t.Context(), dist, infer.RefineOptions{Data: other}); err == nil || !strings.Contains(err.Error(), "known labels") {
		t.Errorf("another graph: %v", err)
	}
}
