package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
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

// evidenceCases time what judging edges takes, in which training has no part.
func evidenceCases() []Case {
	var cases []Case
	for _, name := range []string{"cora", "7600", "amazon_cs", "100k", "1M"} {
		w := FindWorkload(name)
		cases = append(cases,
			Case{Name: "evidence/" + name, Doc: "evidence for all edges and for candidates, fitted, with compilation and two epochs of a linear classifier behind it", Alone: true,
				Heavy: name != "cora", workload: w, run: func(e *env) (Result, error) { return judgeEdges(e) }},
			Case{Name: "evidence/" + name + "/rest", Doc: "the same without evidence and candidates, on the graph as it is", Alone: true,
				Heavy: true, workload: w, run: func(e *env) (Result, error) { return judgeEdges(e, "candidates.structure=raw") }})
	}
	return cases
}

func judgeEdges(e *env, set ...string) (Result, error) {
	cfg, err := config.Load("ecl-gsr", "", "", append([]string{"model.classifier=linear", "train.pretrain_steps=0", "train.joint_every=0", "train.epochs=2"}, set...))
	if err != nil {
		return Result{}, err
	}
	cfg.Train.Threads = e.Threads
	ds := *e.ds
	if ds.SplitSpec, err = data.ParseSplit("random:0.1,0.1,0.8"); err != nil {
		return Result{}, err
	}
	r, err := e.rounds(func() error {
		_, err := train.Train(context.Background(), train.Job{Model: "ecl-gsr", Task: train.Nodes(&ds)}, cfg, train.Options{})
		return err
	})
	r.PeakMiB = peakMiB()
	return r, err
}
