package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/train"
)

// learnerEpochs is how many epochs of a structure learner are timed: a multiple of what
// train.joint_every and train.refresh_every are by default.
const learnerEpochs = 60

// learnerCases time training as gsrc train has it: what searches candidates and evaluates
// between the steps included.
func learnerCases() []Case {
	var cases []Case
	for _, model := range []string{"grcn", "idgl", "sublime", "prognn"} {
		doc := "an epoch with its evaluation, searches between epochs included; mean of 60"
		if model == "sublime" {
			doc = "an epoch of its contrastive training, searches between epochs included; mean of 60"
		}
		cases = append(cases, Case{Name: "epoch/" + model + "/cora", Doc: doc, Alone: true, Heavy: true, workload: FindWorkload("cora"),
			run: func(e *env) (Result, error) { return learnerEpoch(e, model) }})
	}
	return cases
}

func learnerEpoch(e *env, model string) (r Result, err error) {
	phase, sets := "fit", []string(nil)
	if model == "sublime" { // the learner of the baseline
		sets = []string{"model.encoder.kind=gcn", "train.refresh_every=20"}
	}
	cfg, err := config.Load(model, e.ds.Name, "", sets)
	if err != nil {
		return r, err
	}
	cfg.Train.Threads, cfg.Train.Epochs = e.Threads, learnerEpochs+1
	if cfg.Train.PretrainSteps > 0 {
		phase, cfg.Train.Epochs, cfg.Train.PretrainSteps = "pretrain", 1, learnerEpochs+1
	}
	split := trainSplit(e.ds)
	r.Rounds = 1
	at := &stopwatch{phase: phase}
	_, err = train.Train(context.Background(), train.Job{Model: model, Task: train.Nodes(e.ds), Split: &split}, cfg, train.Options{Observer: at})
	if err == nil && (at.first.IsZero() || at.last.IsZero()) {
		err = fmt.Errorf("%s has no phase %s of %d steps", model, phase, learnerEpochs+1)
	}
	r.MS = at.last.Sub(at.first).Seconds() * 1e3 / learnerEpochs
	r.MinMS, r.MaxMS = r.MS, r.MS
	r.PeakMiB = peakMiB()
	return r, err
}

// stopwatch takes the times of the first and the last step of a phase.
type stopwatch struct {
	phase       string
	first, last time.Time
}

func (s *stopwatch) Observe(e train.Event) {
	switch {
	case e.Phase != s.phase:
	case e.Step == 1:
		s.first = time.Now()
	case e.Step == e.Total:
		s.last = time.Now()
	}
}
