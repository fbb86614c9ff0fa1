package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Result is the outcome of a run; its JSON form is the line that gsrc train
// --json prints. Accuracies are in percent, homophily is a share of edges;
// edges are undirected and without self-loops. What was not measured is null.
type Result struct {
	Model string `json:"model"`
	Data  string `json:"data"`
	Seed  int    `json:"seed"`
	Split string `json:"split"`
	// TestAcc is the accuracy on the test nodes at the kept epoch; null if the
	// split has none.
	TestAcc    *float64 `json:"test_acc"`
	ValAcc     float64  `json:"val_acc"`      // 0 where Val is nil, and null there as [Result.JSON] writes it
	BestEpoch  int      `json:"best_epoch"`   // from 1; 0 where nothing was judged
	WallS      float64  `json:"wall_s"`       // earlier parts of a resumed run included
	PeakRSSMiB *float64 `json:"peak_rss_mib"` // of the process so far; null where the system does not say

	// TestCurve is, where graphs are classified, the accuracy on the test graphs at
	// each evaluation: GIN's protocol (Xu et al. 2019) takes the epoch that is best
	// on average over the folds. Nothing else is chosen by it.
	TestCurve []float64 `json:"test_curve,omitempty"`

	EdgesBefore int `json:"edges_before"`
	// EdgesAfter counts the edges of the refined graph; null where nothing was
	// refined.
	EdgesAfter      *int     `json:"edges_after"`
	HomophilyBefore *float64 `json:"homophily_before"` // null without edges between labelled nodes
	// HomophilyAfter is that of the refined graph, each edge counted with its
	// weight.
	HomophilyAfter *float64 `json:"homophily_after"`
	// NullFraction is the share of existing edges that attributes or evidence speak against
	// (π₀); only where model.edges.judge asks for it.
	NullFraction *float64 `json:"doubted,omitempty"`

	// Val and Test say more about the predictions at the kept epoch than accuracy;
	// Test is null where TestAcc is.
	Val  *metrics.Report `json:"val"`
	Test *metrics.Report `json:"test"`

	// Calibration is the temperature that an export divides logits by; null where it
	// does not differ from 1, the split has too few validation nodes, or the program does
	// something else with its logits.
	Calibration *Calibration `json:"calibration,omitempty"`

	// Scale is what the figures are held against, and Warnings says in a sentence each what
	// is doubtful about them.
	Scale    *Scale   `json:"scale,omitempty"`
	Warnings []string `json:"warnings,omitempty"`

	// Hash is that of the weights and the refined graph, [Model.Hash]: a repeated run has
	// the same one on every processor.
	Hash string `json:"hash"`

	// Quality says how well the refined graph undoes known damage; only for
	// generated data.
	Quality *Quality `json:"quality,omitempty"`

	// Trained is the model itself.
	Trained *Model `json:"-"`
}

// Judged is whether ValAcc was measured: the run had labelled validation nodes.
func (r *Result) Judged() bool { return r.Val != nil || r.BestEpoch > 0 } // results of early versions have no Val

// JSON returns what gsrc train --json and run.json write: the result or, of a run without labels, one whose
// val_acc is null. It is no MarshalJSON, which would write structs that embed a result without their other fields.
func (r *Result) JSON() any {
	if r == nil || r.Judged() {
		return r
	}
	return struct {
		*Result
		ValAcc *float64 `json:"val_acc"`
	}{Result: r}
}

// Quality holds a refined graph against the truth of a generated one. Values
// are shares; null where nothing was dropped, recovered, wrong or hidden.
type Quality struct {
	DroppedPrecision   *float64 `json:"dropped_precision"`   // of the dropped edges, how many were wrong
	DroppedRecall      *float64 `json:"dropped_recall"`      // of the wrong edges, how many were dropped
	RecoveredPrecision *float64 `json:"recovered_precision"` // of the new edges, how many were hidden ones
	RecoveredRecall    *float64 `json:"recovered_recall"`    // of the hidden edges, how many were recovered
}

// Summary is the last line that gsrc train --runs R --json prints.
type Summary struct {
	Summary     bool     `json:"summary"` // true: tells the line from a run's
	Runs        int      `json:"runs"`
	TestAccMean *float64 `json:"test_acc_mean"` // null if a run has no test accuracy
	TestAccStd  *float64 `json:"test_acc_std"`  // of the sample (divisor R − 1); 0 for one run
	ValAccMean  *float64 `json:"val_acc_mean"`  // null if a run has no labels
}

// Summarize summarises runs of one task. It needs at least one.
func Summarize(runs []*Result) Summary {
	s := Summary{Summary: true, Runs: len(runs)}
	n, val, test, judged, complete := float64(len(runs)), 0.0, 0.0, true, true
	for _, r := range runs {
		val += r.ValAcc / n
		judged = judged && r.Judged()
		if complete = complete && r.TestAcc != nil; complete {
			test += *r.TestAcc / n
		}
	}
	if judged {
		s.ValAccMean = &val
	}
	if !complete || len(runs) == 0 {
		return s
	}
	dev := 0.0
	for _, r := range runs {
		dev += float64((*r.TestAcc - test) * (*r.TestAcc - test))
	}
	dev = math.Sqrt(dev / math.Max(1, n-1))
	s.TestAccMean, s.TestAccStd = &test, &dev
	return s
}

// known is nil for NaN.
func known(v float64) *float64 {
	if math.IsNaN(v) {
		return nil
	}
	return &v
}

// finish restores the kept state, judges it on the test nodes and writes what a
// run leaves.
func (t *trainer) finish() (*Result, error) {
	if err := restoreBest(t); err != nil {
		return nil, err
	}
	res := &Result{Model: t.job.Model, Data: t.info.Name, Seed: t.cfg.Train.Seed, Split: t.splitName, BestEpoch: t.state.BestEpoch, ValAcc: t.state.BestAcc,
		TestCurve: t.state.TestCurve}
	if t.edges != nil && t.edges.prior != nil && t.cfg.Model.Edges.Judge != models.JudgeEmbedding {
		res.NullFraction = new(t.edges.prior.NullFraction(t.edges.counts))
	}
	run := &Model{Model: t.job.Model, Module: t.module, Config: t.cfg, Params: map[string][]float32{}, Split: t.split}
	for _, p := range t.optim.Params {
		run.Params[p.Name] = p.Value.F32
	}
	if t.edges != nil {
		var err error
		if run.Refined, err = t.refined(); err != nil {
			return nil, err
		}
	}
	logits, probs, err := t.steps.final(run)
	if err != nil {
		return nil, err
	}
	if logits != nil {
		if err := judge(t, res, run, logits, probs); err != nil {
			return nil, err
		}
	}
	for name := range t.prog.fns { // what is left is to be written
		if t.prog.held(name) >= large {
			t.prog.drop(name)
		}
	}
	learned := run.Refined
	if learned != nil && learned.Raw {
		learned = nil
	}
	if learned != nil {
		res.EdgesAfter = new(learned.NumEdges())
	}
	t.job.Task.compare(res, learned)
	res.Trained, res.Hash = run, run.Hash()
	res.WallS = math.Ceil(t.elapsed().Seconds()*1e3) / 1e3
	if mib := float64(rss.Peak()) / (1 << 20); mib > 0 {
		res.PeakRSSMiB = known(math.Round(mib*10) / 10)
	}
	if t.dir == nil {
		return res, nil
	}
	if err := run.write(t.opts.Dir, t.job.Task); err != nil {
		return nil, err
	}
	return res, t.describe(res)
}

// judge enters in a result what the kept model's predictions are worth.
func judge(t *trainer, res *Result, run *Model, logits, probs *runtime.Buffer) error {
	defer rss.Leave(rss.Enter("judging predictions"))
	if acc := accuracy(logits, t.info.Labels, t.split.Val); acc != t.state.BestAcc {
		return fmt.Errorf("train: the kept state has the validation accuracy %v, at its epoch it had %v: this is a bug, please report it", acc, t.state.BestAcc)
	}
	if len(t.split.Test) > 0 {
		res.TestAcc = known(accuracy(logits, t.info.Labels, t.split.Test))
	}
	predicted := metrics.Argmax(logits.F32, t.info.Classes)
	res.Val = metrics.Evaluate(predicted, probs.F32, t.info.Classes, t.info.Labels, t.split.Val)
	res.Test = metrics.Evaluate(predicted, probs.F32, t.info.Classes, t.info.Labels, t.split.Test)
	judged := t.split.Test
	if len(judged) == 0 {
		judged = t.split.Val
	}
	fixed := len(t.module.Params) == 0
	v := verdict{info: &t.info, split: t.split, balanced: fixed || t.cfg.Model.ClassWeights == "balanced", selected: fixed || t.cfg.Train.Select == "macro_f1", last: t.state.BestAcc, restart: t.cfg.Train.Restart}
	if last := t.state.ValAcc; last != nil {
		v.last = *last
	}
	res.Scale = &Scale{}
	res.Scale.MajorityClass, res.Scale.Majority = v.majority(judged)
	res.Warnings = v.warnings(res, predicted, judged)
	if models.CanTemper(t.module) {
		if t.chunk > 0 { // memory lacks room for values of all nodes
			dir, err := scratch.Dir(t.opts.Dir)
			if err != nil {
				return fmt.Errorf("train: %w", err)
			}
			room, free, err := scratch.Floats(dir, len(logits.F32))
			if err != nil {
				return fmt.Errorf("train: %w", err)
			}
			defer func() { _ = free() }() // it goes with the process at the latest
			v.room = room
		}
		res.Calibration = v.calibrate(logits.F32, probs.F32, predicted)
	}
	if run.Logits, run.Probabilities = logits.F32, probs.F32; t.chunk == 0 { // or else leaveFiles has
		run.Logits, run.Probabilities = slices.Clone(logits.F32), slices.Clone(probs.F32)
	}
	return nil
}
