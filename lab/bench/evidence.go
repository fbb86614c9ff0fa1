package bench

import (
	"context"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/train"
)

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
