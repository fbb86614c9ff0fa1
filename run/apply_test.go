package run

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// planted writes a graph store.
func planted(t *testing.T, name string, nodes int64, seed uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	o := store.Planted{Nodes: nodes, Edges: 4 * nodes, Classes: 3, Community: 50, Homophily: 0.8, Locality: 0.5, Features: 16, Signal: 0.3, Train: 100, Val: 100, Wrong: 0.05, Seed: seed}
	if err := store.Generate(dir, o, store.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func sameBits(a, b []float32) bool {
	return len(a) > 0 && slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

// A run classifies its training graph over chunks, of whatever size, with the bits of the
// training's evaluation.
func TestPredictWithARun(t *testing.T) {
	path := planted(t, "graph", 1500, 1)
	other := planted(t, "other", 900, 2)
	for model, set := range map[string][]string{
		"sage": {"train.sampler=neighbors", "train.fanouts=5,5", "train.batch_nodes=50"}, "gcn": nil, "gat": nil, "gcnii": nil,
		"ecl-gsr": {"model.edges.judge=embedding", "candidates.similarity=embedding", "candidates.two_step=0", "train.pretrain_steps=5"},
	} {
		out := filepath.Join(t.TempDir(), "run")
		r, err := Train(context.Background(), TrainOptions{Model: model, Data: path, Out: out, Set: append(set, "train.epochs=3")})
		if err != nil {
			t.Fatal(err)
		}
		o := infer.PredictOptions{}
		opened, err := Open(out)
		if err != nil {
			t.Fatal(err)
		}
		var all []float32
		for _, room := range []int{0, 1 << 14, 1 << 18} {
			err := opened.use("", &o, func(a *application) error {
				a.room = room
				p, err := a.predict(nil)
				if err != nil {
					return err
				}
				if all == nil {
					all = slices.Clone(p.Probabilities)
				}
				if r.Result.Calibration == nil && !sameBits(p.Probabilities, r.Trained.Probabilities) || !sameBits(p.Probabilities, all) {
					t.Errorf("%s, chunks of %d bytes: the probabilities are not those of the training", model, room)
				}
				if !p.TrainingGraph || p.Report == nil || p.Report.Nodes != 1500 {
					t.Errorf("%s: %+v", model, p.Report)
				}
				return nil
			})
			if err != nil {
				t.Fatalf("%s: %v", model, err)
			}
		}
		file := filepath.Join(t.TempDir(), "out.csv")
		p, err := Predict(context.Background(), out, other, file, infer.PredictOptions{Nodes: []string{"3", "8"}})
		if err != nil || p.TrainingGraph || len(p.Predicted) != 900 || p.Report.Nodes != 2 {
			t.Fatalf("%s on another graph: %+v, %v", model, p, err)
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.Count(string(text), "\n") != 3 {
			t.Errorf("%s: %q, %v", model, text, err)
		}
		if model == "ecl-gsr" {
			e, err := Embed(context.Background(), out, "", o)
			if err != nil || !sameBits(e.Values, r.Trained.Embedding) {
				t.Errorf("the embedding is not the training's: %v", err)
			}
			g, err := Refine(context.Background(), out, infer.RefineOptions{Data: other})
			if err != nil || g.N != 900 || g.Summary.New == 0 || g.Summary.Kept == 0 {
				t.Errorf("another graph, refined: %+v, %v", g, err)
			}
		}
		var exceeded *budget.ExceededError
		if _, err := Predict(context.Background(), out, other, "", infer.PredictOptions{Load: data.LoadOptions{MaxBytes: 33 << 20}}); !errors.As(err, &exceeded) {
			t.Errorf("%s: with 33 MiB the error is %v", model, err)
		}
	}
}

// What cannot be cut is refused by name, and says what to do.
func TestPredictWithARunRefused(t *testing.T) {
	path := planted(t, "graph", 400, 1)
	out := filepath.Join(t.TempDir(), "run")
	if _, err := Train(context.Background(), TrainOptions{Model: "ecl-gsr", Data: path, Out: out, Set: []string{"train.pretrain_steps=2", "train.epochs=1"}}); err != nil {
		t.Fatal(err)
	}
	if p, err := Predict(context.Background(), out, "", "", infer.PredictOptions{}); err != nil || len(p.Predicted) != 400 {
		t.Errorf("on its training graph: %v", err)
	}
	other := planted(t, "other", 300, 2)
	for what, err := range map[string]error{
		"predict": func() error {
			_, err := Predict(context.Background(), out, other, "", infer.PredictOptions{})
			return err
		}(),
		"embed": func() error { _, err := Embed(context.Background(), out, other, infer.PredictOptions{}); return err }(),
		"refine": func() error {
			_, err := Refine(context.Background(), out, infer.RefineOptions{Data: other})
			return err
		}(),
	} {
		if err == nil {
			t.Errorf("%s of another graph by evidence is no error", what)
		} else if text := err.Error(); !strings.Contains(text, "judges edges by evidence") && !strings.Contains(text, "@encode cannot be cut") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
