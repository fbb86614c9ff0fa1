package gsrc_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/exporttest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/lab/demo"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// haveRuntime tells whether onnxruntime is on this machine.
var haveRuntime = ort.Doctor(context.Background()).Problem == ""

// quick are options that train in no time.
var quick = []string{"synthetic.nodes=120", "synthetic.features=16", "train.pretrain_steps=4", "train.epochs=6", "train.joint_every=3", "model.encoder.hidden=8", "model.encoder.projection=8", "model.edges.judge=embedding"}

func quickTrain(t *testing.T, o gsrc.TrainOptions) *gsrc.Run {
	t.Helper()
	o.Data = data.Synthetic
	o.Set = append(slices.Clone(quick), o.Set...)
	run, err := gsrc.Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// A run that is opened again exports the same bytes as the one in memory, and
// predicts the training graph as the training did.
func TestRunIsWhatItsDirectoryHolds(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	dir := t.TempDir()
	for _, set := range [][]string{nil, {"deepwalk.width=4", "deepwalk.length=10"}, {"candidates.structure=raw"}, {"model.edges.mode=threshold", "model.edges.threshold=0.3"}, {"model.edges.judge=embedding"}} {
		name := "plain"
		if set != nil {
			name = strings.NewReplacer("=", "-", ".", "-").Replace(set[0])
		}
		out := filepath.Join(dir, name)
		run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: out, Set: set, Seed: 2})
		opened, err := gsrc.OpenRun(out)
		if err != nil {
			t.Fatal(err)
		}
		var manifests [2][]byte
		for i, r := range []*gsrc.Run{run, opened} {
			dist := filepath.Join(dir, name+"-dist"+string(rune('0'+i)))
			if _, err := r.Build(ctx, dist, gsrc.BuildOptions{Library: &lib, Unverified: set != nil}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if manifests[i], err = os.ReadFile(filepath.Join(dist, "manifest.json")); err != nil {
				t.Fatal(err)
			}
		}
		if string(manifests[0]) != string(manifests[1]) {
			t.Errorf("%s: the opened run exports something else:\n%s\n%s", name, manifests[0], manifests[1])
		}
		c := run.Trained.Config.Synthetic.CSBM(2)
		p, err := gsrc.Predict(ctx, filepath.Join(dir, name+"-dist0"), data.Synthetic, "", gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: 2, Synthetic: &c}})
		if err != nil {
			t.Fatal(err)
		}
		if !p.TrainingGraph || p.Report == nil || p.Report.Nodes != 120 || p.Unknown != 0 {
			t.Errorf("%s: training graph %v, report %+v, %d unknown labels", name, p.TrainingGraph, p.Report, p.Unknown)
		}
		for i, want := range run.Trained.Probabilities {
			if d := p.Probabilities[i] - want; !(d <= 1e-5 && d >= -1e-5) {
				t.Fatalf("%s: probability %d is %g, in training it was %g", name, i, p.Probabilities[i], want)
			}
		}
	}
}

// A run on a corrupted graph finds the same graph again, from its directory and,
// where the data are given, from its export; a clean graph is another one.
func TestCorruptedRun(t *testing.T) {
	lib := orttest.Need(t)
	ctx := context.Background()
	dir := t.TempDir()
	out, dist := filepath.Join(dir, "run"), filepath.Join(dir, "dist")
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: out, Seed: 2, Set: []string{"data.add_edges=0.3", "data.remove_edges=0.5"}})
	opened, err := gsrc.OpenRun(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.Build(ctx, dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	if opened.Data.Checksum != run.Data.Checksum || !slices.Equal(opened.Data.Graph.Edges, run.Data.Graph.Edges) {
		t.Error("the opened run has another graph")
	}
	c := run.Trained.Config.Synthetic.CSBM(2)
	o := gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: 2, Synthetic: &c}}
	for _, corrupted := range []bool{false, true} {
		if corrupted { // by the caller
			o.Load.AddEdges, o.Load.RemoveEdges = 0.3, 0.5
		}
		p, err := gsrc.Predict(ctx, dist, data.Synthetic, "", o)
		if err != nil {
			t.Fatal(err)
		}
		if !p.TrainingGraph {
			t.Error("the training graph was not recognised")
		}
		for i, want := range run.Trained.Probabilities {
			if d := p.Probabilities[i] - want; !(d <= 1e-5 && d >= -1e-5) {
				t.Fatalf("probability %d is %g, in training it was %g", i, p.Probabilities[i], want)
			}
		}
	}
	o.Load.AddEdges = 0.4
	if p, err := gsrc.Predict(ctx, dist, data.Synthetic, "", o); err != nil || p.TrainingGraph {
		t.Errorf("another corruption is taken for the training's (error %v)", err)
	}
	// Each seed damages the data again.
	s, err := gsrc.Prepare(gsrc.TrainOptions{Model: "gcn", Data: data.Synthetic, Set: []string{"data.add_edges=0.3"}})
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.WithSeed(1)
	if err != nil {
		t.Fatal(err)
	}
	if other.Data.Corruption == nil || other.Data.Corruption.Seed != 1 {
		t.Errorf("seed 1 has the corruption %+v", other.Data.Corruption)
	}
}

// The candidates and probabilities that Predict computes for a graph it takes
// for a new one are those of the training, so it predicts the same.
func TestPredictRefinesANewGraph(t *testing.T) {
	for _, judge := range []string{"embedding", "evidence"} {
		t.Run(judge, func(t *testing.T) { predictNew(t, "model.edges.judge="+judge) })
	}
}

func predictNew(t *testing.T, set string) {
	lib := orttest.Need(t)
	ctx := context.Background()
	dir := t.TempDir()
	run := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr", Out: filepath.Join(dir, "run"), Seed: 1, Set: []string{set, "train.joint_every=0"}})
	dist := filepath.Join(dir, "dist")
	if _, err := run.Build(ctx, dist, gsrc.BuildOptions{Unverified: true}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dist, "inference.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), `"checksum": "`, `"checksum": "x`, 1)
	exporttest.Rewrite(t, dist, "inference.json", other)
	c := run.Trained.Config.Synthetic.CSBM(1)
	p, err := gsrc.Predict(ctx, dist, data.Synthetic, "", gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: 1, Synthetic: &c}})
	if err != nil {
		t.Fatal(err)
	}
	if p.TrainingGraph {
		t.Fatal("the graph was recognised")
	}
	if p.Edges < run.Data.Graph.NumEdges()/2 {
		t.Errorf("%d edges of a graph of %d", p.Edges, run.Data.Graph.NumEdges())
	}
	different := 0
	for i, want := range run.Trained.Probabilities {
		if d := p.Probabilities[i] - want; !(d <= 1e-3 && d >= -1e-3) {
			different++
		}
	}
	// Without joint steps the encoder is that which chose the training's candidates.
	if different > 0 {
		t.Errorf("%d of %d probabilities are others than in the training", different, len(run.Trained.Probabilities))
	}
	// An export that judges edges by attributes alone, as earlier versions made them.
	exporttest.Rewrite(t, dist, "inference.json", strings.Replace(other, "{", `{"evidence": {"rounds": 2, "seed": 0},`, 1))
	if _, err = gsrc.Predict(ctx, dist, data.Synthetic, "", gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Seed: 1, Synthetic: &c}}); err == nil || !strings.Contains(err.Error(), "by attributes alone") {
		t.Errorf("evidence of an earlier version: error %v", err)
	}
}

// A program that embeds an online graph bounds its memory.
func TestGraphWithinMemory(t *testing.T) {
	lib := orttest.Need(t)
	ctx, dist := t.Context(), filepath.Join(t.TempDir(), "dist")
	run := quickTrain(t, gsrc.TrainOptions{Model: "gcn"})
	if _, err := run.Build(ctx, dist, gsrc.BuildOptions{Library: &lib, Unverified: true}); err != nil {
		t.Fatal(err)
	}
	c := run.Trained.Config.Synthetic.CSBM(0)
	o := gsrc.GraphOptions{PredictOptions: gsrc.PredictOptions{Library: &lib, Provider: ort.CPU, Load: data.LoadOptions{Synthetic: &c}}}
	x := make([]float32, 20000*run.Data.X.Cols)
	x[0] = 1
	var growth *infer.GrowthError
	for memory, want := range map[int64]func(error) bool{
		-1:       func(err error) bool { return err != nil && !errors.As(err, &growth) },
		1000:     func(err error) bool { return errors.As(err, &growth) },
		10 << 20: func(err error) bool { return errors.As(err, &growth) && growth.Nodes == 20120 },
		1 << 30:  func(err error) bool { return err == nil },
		0:        func(err error) bool { return err == nil },
	} {
		o.Memory, growth = memory, nil
		g, err := gsrc.OpenGraph(ctx, dist, data.Synthetic, o)
		if err == nil {
			_, err = g.Update(ctx, gsrc.Update{X: x})
			g.Close()
		}
		if !want(err) {
			t.Errorf("with %d bytes: %v", memory, err)
		}
	}
}

func TestTrainRuns(t *testing.T) {
	var seeds []int
	var sums []string
	o := gsrc.TrainOptions{Model: "gcn", Data: data.Synthetic, Set: quick}
	results, err := gsrc.TrainRuns(context.Background(), o, 3, func(r *gsrc.Run) error {
		seeds, sums = append(seeds, r.Result.Seed), append(sums, r.Data.Checksum)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != 3 || !slices.Equal(seeds, []int{0, 1, 2}) {
		t.Errorf("%d results, seeds %v", len(results), seeds)
	}
	if sums[0] == sums[1] || sums[1] == sums[2] {
		t.Error("seeds share a generated graph")
	}
	// A run of the series is the run of its seed.
	o.Seed = 2
	alone, err := gsrc.Train(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if *alone.Result.TestAcc != *results[2].TestAcc || alone.Result.BestEpoch != results[2].BestEpoch {
		t.Errorf("seed 2 alone gives %v at epoch %d, in the series %v at epoch %d", *alone.Result.TestAcc, alone.Result.BestEpoch, *results[2].TestAcc, results[2].BestEpoch)
	}
	stop := errors.New("enough")
	if r, err := gsrc.TrainRuns(context.Background(), gsrc.TrainOptions{Model: "gcn", Data: data.Synthetic, Set: quick}, 3, func(*gsrc.Run) error { return stop }); !errors.Is(err, stop) || len(r) != 0 {
		t.Errorf("%d results, %v", len(r), err)
	}
}

// stopAfter cancels a context at a step.
type stopAfter struct {
	step   int
	cancel context.CancelFunc
}

func (s stopAfter) Observe(e train.Event) {
	if e.Phase == "fit" && e.Step >= s.step {
		s.cancel()
	}
}

func TestInterruptAndResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	_, err := gsrc.Train(ctx, gsrc.TrainOptions{Model: "ecl-gsr", Data: data.Synthetic, Set: quick, Out: dir, Observer: stopAfter{3, cancel}})
	if !errors.Is(err, train.ErrInterrupted) || !gsrc.IsInterrupted(ctx, err) {
		t.Fatalf("error %v", err)
	}
	if _, err := gsrc.OpenRun(dir); err == nil {
		t.Error("an unfinished run was opened")
	}
	run, err := gsrc.Resume(context.Background(), dir, gsrc.ResumeOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr"})
	for name, w := range want.Trained.Params {
		if !slices.Equal(run.Trained.Params[name], w) {
			t.Errorf("parameter %s differs from the undisturbed run's", name)
		}
	}
}

func TestPrepare(t *testing.T) {
	s, err := gsrc.Prepare(gsrc.TrainOptions{Model: "gcn", Data: data.Synthetic, Set: quick, Seed: 5, Threads: 3})
	if err != nil {
		t.Fatal(err)
	}
	if s.Config.Train.Seed != 5 || s.Config.Train.Threads != 3 || s.Data.Graph.N != 120 || s.Module.Func("train") == nil {
		t.Errorf("seed %d, threads %d, %d nodes", s.Config.Train.Seed, s.Config.Train.Threads, s.Data.Graph.N)
	}
	var unknown *models.UnknownError
	if _, err := gsrc.Prepare(gsrc.TrainOptions{Model: "gcm", Data: data.Synthetic}); !errors.As(err, &unknown) || !strings.Contains(err.Error(), `"gcn"`) {
		t.Errorf("unknown model: %v", err)
	}
	var option *run.OptionError
	for _, set := range []string{"no.such=1", "train.lr=fast", "train.lr=-1", "model.dropout=2"} {
		if _, err := gsrc.Prepare(gsrc.TrainOptions{Model: "gcn", Data: data.Synthetic, Set: []string{set}}); !errors.As(err, &option) {
			t.Errorf("%s: %v", set, err)
		}
	}
	if _, err := gsrc.Prepare(gsrc.TrainOptions{Model: "gcn", Data: filepath.Join(t.TempDir(), "absent")}); err == nil {
		t.Error("absent data were read")
	}
}

// A program in a file trains with the defaults of the model that it began as.
func TestModelFile(t *testing.T) {
	s, err := gsrc.Prepare(gsrc.TrainOptions{Model: "ecl-gsr", Data: data.Synthetic, Set: quick})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.gsr")
	if err := os.WriteFile(file, []byte(s.Module.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	own := quickTrain(t, gsrc.TrainOptions{Model: file})
	zoo := quickTrain(t, gsrc.TrainOptions{Model: "ecl-gsr"})
	if *own.Result.TestAcc != *zoo.Result.TestAcc || own.Trained.Config.Hash() != zoo.Trained.Config.Hash() {
		t.Errorf("from the file %v, from the zoo %v", *own.Result.TestAcc, *zoo.Result.TestAcc)
	}
}

func TestDemo(t *testing.T) {
	lib := orttest.Need(t)
	dir := t.TempDir()
	seeds := 0
	r, err := demo.Run(context.Background(), demo.Options{Out: filepath.Join(dir, "demo"), Seeds: 2, Set: quick, Library: &lib, Done: func(demo.Seed) { seeds++ }})
	if err != nil {
		t.Fatal(err)
	}
	if seeds != 2 || len(r.Seeds) != 2 || r.Seeds[1].Outputs == 0 {
		t.Errorf("%d seeds, %+v", seeds, r.Seeds)
	}
	if want := (r.Seeds[0].Gain + r.Seeds[1].Gain) / 2; r.MeanGain != want {
		t.Errorf("mean gain %g, want %g", r.MeanGain, want)
	}
	if _, err := os.Stat(filepath.Join(r.Exports, "seed-1", "parity.json")); err != nil {
		t.Error(err)
	}
	var exists *checkpoint.ExistsError
	if _, err := demo.Run(context.Background(), demo.Options{Out: filepath.Join(dir, "demo"), Seeds: 1, Library: &lib}); !errors.As(err, &exists) {
		t.Errorf("a second demo in the same folder: %v", err)
	}
}
