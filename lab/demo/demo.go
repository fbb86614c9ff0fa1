// Package demo shows what refinement does, on generated graphs whose damage is known.
package demo

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// Options say how the demonstration runs.
type Options struct {
	Out   string // folder of runs and exports
	Force bool   // replace what is in it
	Seeds int    // graphs to generate, with the seeds 0, 1, …
	Set   []string
	// Threads to use; 0 is one for each processor. Results do not depend on it.
	Threads  int
	Library  *ort.Library // onnxruntime; nil is what is found or fetched
	Observer train.Observer
	Done     func(Seed)                       // is called after each seed; may be nil
	Log      func(format string, args ...any) // gets a line for each step; may be nil
}

// Seed is the outcome on one generated graph: the same classifier with the
// same sampling on the refined and on the raw graph. Accuracies are in percent.
type Seed struct {
	Seed    int           `json:"seed"`
	Raw     float64       `json:"raw_test_acc"`
	Refined float64       `json:"refined_test_acc"`
	Gain    float64       `json:"gain"`
	Quality train.Quality `json:"quality"`
	// Outputs counts the outputs of exported models that onnxruntime computed as
	// the compiled forward pass does; Worst is the largest difference.
	Outputs int     `json:"outputs_verified"`
	Worst   float64 `json:"max_abs_difference"`
}

// Report is demo.json.
type Report struct {
	Seeds    []Seed        `json:"seeds"`
	MeanGain float64       `json:"mean_gain"`
	Mean     train.Quality `json:"mean_quality"`
	WallS    float64       `json:"wall_s"`
	Runs     string        `json:"runs"`    // folder of the runs
	Exports  string        `json:"exports"` // folder of the exports
}

// Run shows what refinement does on graphs with known damage: for each seed it
// generates a graph with wrong edges added and right ones hidden, trains ecl-gsr
// on it, trains the same classifier on the graph as it is, counts the wrong edges
// that were dropped and the hidden ones that were recovered, exports the model
// and verifies the export.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Out == "" || o.Seeds < 1 {
		return nil, errors.New("a demonstration needs a folder and at least one seed")
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if !o.Force {
		if err := run.CheckEmpty(o.Out); err != nil {
			return nil, err
		}
	}
	var err error
	if o.Library, err = o.Library.OrEnsure(ctx, o.Log); err != nil {
		return nil, err
	}
	start := time.Now()
	r := &Report{Runs: filepath.Join(o.Out, "runs"), Exports: filepath.Join(o.Out, "dist")}
	for seed := range o.Seeds {
		s, err := o.seed(ctx, seed, r)
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed, err)
		}
		r.Seeds = append(r.Seeds, s)
		if o.Done != nil {
			o.Done(s)
		}
	}
	r.summarize()
	r.WallS = time.Since(start).Seconds()
	return r, atomicfile.WriteJSON(filepath.Join(o.Out, "demo.json"), r)
}

// seed does the whole path for one generated graph.
func (o *Options) seed(ctx context.Context, seed int, r *Report) (Seed, error) {
	d := Seed{Seed: seed}
	name := fmt.Sprintf("seed-%d", seed)
	t := gsrc.TrainOptions{Model: "ecl-gsr", Data: data.Synthetic, Seed: seed, Threads: o.Threads, Observer: o.Observer, Force: o.Force,
		Set: append(o.Set[:len(o.Set):len(o.Set)], "candidates.structure=raw"), Out: filepath.Join(r.Runs, name+"-raw")}
	raw, err := gsrc.Train(ctx, t)
	if err != nil {
		return d, err
	}
	t.Set, t.Out = o.Set, filepath.Join(r.Runs, name)
	refined, err := gsrc.Train(ctx, t)
	if err != nil {
		return d, err
	}
	if raw.Result.TestAcc == nil || refined.Result.TestAcc == nil || refined.Result.Quality == nil {
		return d, errors.New("the generated data have no test nodes or no truth")
	}
	d.Raw, d.Refined, d.Quality = *raw.Result.TestAcc, *refined.Result.TestAcc, *refined.Result.Quality
	d.Gain = d.Refined - d.Raw
	dist := filepath.Join(r.Exports, name)
	if _, err := refined.Build(ctx, dist, gsrc.BuildOptions{Library: o.Library, Threads: o.Threads, Log: o.Log}); err != nil {
		return d, err
	}
	_, report, err := gsrc.Verify(ctx, dist, gsrc.VerifyOptions{Library: o.Library, Provider: ort.CPU, Log: o.Log})
	if err != nil {
		return d, err
	}
	for _, c := range report.Cases {
		for _, out := range c.Outputs {
			d.Outputs++
			d.Worst = max(d.Worst, out.MaxAbs)
		}
	}
	return d, nil
}

func (r *Report) summarize() {
	for _, of := range []func(*train.Quality) **float64{
		func(q *train.Quality) **float64 { return &q.DroppedPrecision },
		func(q *train.Quality) **float64 { return &q.DroppedRecall },
		func(q *train.Quality) **float64 { return &q.RecoveredPrecision },
		func(q *train.Quality) **float64 { return &q.RecoveredRecall },
	} {
		var values []float64
		for i := range r.Seeds {
			if v := *of(&r.Seeds[i].Quality); v != nil {
				values = append(values, *v)
			}
		}
		if mean, _ := lab.MeanStd(values); values != nil {
			*of(&r.Mean) = &mean
		}
	}
	for _, s := range r.Seeds {
		r.MeanGain += s.Gain / float64(len(r.Seeds))
	}
}
