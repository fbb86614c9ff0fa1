package run

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/export/onnx"
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
