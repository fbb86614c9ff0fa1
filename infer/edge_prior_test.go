package infer

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/exporttest"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// An export takes the edge prior of other graphs from the calibration on the training
// graph, which on that graph is what the training found; one of an earlier version
// calibrates on each graph, as it always has.
func TestExportsKeepTheCalibration(t *testing.T) {
	dir := t.TempDir()
	run := Train(t, filepath.Join(dir, "run"), "ecl-gsr", data.Synthetic, export.BuildOptions{},
		"train.epochs=1", "train.pretrain_steps=2", "train.joint_every=0", "deepwalk.width=0", "synthetic.nodes=150", "model.edges.judge=attributes", "model.edges.prior_strength=2")
	dist := run.Dist
	pool := kernels.NewPool(1)
	defer pool.Close()
	c := run.Config
	prior := func(dist string, seed uint64) *graph.EdgePrior {
		t.Helper()
		load := run.Load
		if seed != 0 {
			other := c.Synthetic.CSBM(seed)
			load = data.LoadOptions{Seed: seed, Synthetic: &other}
		}
		p, err := newPredictor(dist, data.Synthetic, PredictOptions{Load: load})
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.info.Evidence.Prior(pool, p.ds)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	alone := func(e *graph.EdgePrior, seed uint64) *graph.EdgePrior {
		t.Helper()
		other := c.Synthetic.CSBM(seed)
		ds, err := data.Load(data.Synthetic, data.LoadOptions{Seed: seed, Synthetic: &other})
		if err != nil {
			t.Fatal(err)
		}
		return graph.NewEdgePrior(pool, ds.Graph, ds.X.Attributes(), c.Model.Edges.JudgeRounds, c.Model.Edges.PriorStrength, uint64(c.Train.Seed))
	}
	want := graph.NewEdgePrior(pool, run.Data.Graph, run.Data.X.Attributes(), c.Model.Edges.JudgeRounds, c.Model.Edges.PriorStrength, uint64(c.Train.Seed))
	if got := prior(dist, 0); !slices.Equal(got.P, want.P) || got.Calibration.NullFraction != want.Calibration.NullFraction {
		t.Error("the training graph's edges have another prior than in the training")
	}
	got := prior(dist, 7)
	if got.Calibration.NullFraction != want.Calibration.NullFraction {
		t.Errorf("of another graph %v are doubted; the training's share is %v", got.Calibration.NullFraction, want.Calibration.NullFraction)
	}
	if slices.Equal(got.P, alone(got, 7).P) {
		t.Error("the calibration makes no difference, which tests nothing")
	}

	path := filepath.Join(dist, InfoFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := strings.Replace(string(text), ",\n    \"calibration\": \"evidence.json\"", "", 1)
	if before == string(text) {
		t.Fatalf("no calibration in\n%s", text)
	}
	old := filepath.Join(dir, "old")
	if err := os.CopyFS(old, os.DirFS(dist)); err != nil {
		t.Fatal(err)
	}
	exporttest.Rewrite(t, old, InfoFile, before)
	if got := prior(old, 7); !slices.Equal(got.P, alone(got, 7).P) {
		t.Error("an export of an earlier version calibrates on something else than the graph")
	}
	for _, wrong := range []string{`{"columns":[1],"rounds":[{"from":[1],"p":[2]}]}`, `{`, ``} {
		exporttest.Rewrite(t, dist, PriorFile, wrong)
		if _, err := newPredictor(dist, data.Synthetic, PredictOptions{Load: run.Load}); err == nil || !strings.Contains(err.Error(), PriorFile) {
			t.Errorf("the calibration %q: %v", wrong, err)
		}
	}
}
