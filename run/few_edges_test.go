package run

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Where other data have hardly an edge, runs and exports of models that read edges say what to give instead.
func TestFewEdgesAreSaid(t *testing.T) {
	lib := orttest.Need(t)
	path, like, few := planted(t, "graph", 600, 1), plantedEdges(t, "like", 300, 400, 2), plantedEdges(t, "few", 300, 60, 2)
	for model, reads := range map[string]bool{"gcn": true, "mlp": false, "linear": false, "ecl-gsr": true} {
		var set []string
		if model == "ecl-gsr" {
			set = []string{"model.edges.judge=embedding", "candidates.similarity=embedding", "candidates.two_step=0", "train.pretrain_steps=3"}
		}
		dir := t.TempDir()
		out, dist := filepath.Join(dir, "run"), filepath.Join(dir, "dist")
		r, err := Train(t.Context(), TrainOptions{Model: model, Data: path, Out: out, Set: append(set, "train.epochs=2")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Build(t.Context(), dist, BuildOptions{Library: &lib, Unverified: true, Uncalibrated: true}); err != nil {
			t.Fatal(err)
		}
		for _, of := range []string{out, dist} {
			for data, want := range map[string]bool{path: false, like: false, few: reads} {
				said := ""
				o := infer.PredictOptions{Library: &lib, Provider: ort.CPU, Log: func(format string, args ...any) { said += fmt.Sprintf(format, args...) + "\n" }}
				uses := map[string]func() error{"predict": func() error { _, err := Predict(t.Context(), of, data, "", o); return err }}
				if model == "ecl-gsr" {
					uses["refine"] = func() error {
						_, err := Refine(t.Context(), of, infer.RefineOptions{Data: data, Predict: o})
						return err
					}
					uses["embed"] = func() error { _, err := Embed(t.Context(), of, data, o); return err }
				}
				for use, do := range uses {
					if said = ""; do() != nil {
						t.Fatalf("%s, %s: %v", model, use, do())
					}
					if got := strings.Count(said, "few has 0.2 edges a node, and the training had 4.1: "); got > 1 || (got == 1) != want {
						t.Errorf("%s, %s with %s on %s: %q", model, use, filepath.Base(of), filepath.Base(data), said)
					}
				}
			}
		}
	}
}

func TestFewEdgesOfADenseTraining(t *testing.T) {
	few := &data.Dataset{Source: "few", Graph: &graph.Graph{N: 8, Edges: make([][2]int32, 1)}}
	if got, want := infer.FewEdges(few, 10, 1234), "few has 0.12 edges a node, and the training had 120: "; !strings.HasPrefix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
