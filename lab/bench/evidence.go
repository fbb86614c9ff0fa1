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
	for _, name := range []string{"cora", "amazon_cs", "1M"} {
		cases = append(cases, Case{Name: "evidence/" + name, Doc: "evidence for all edges and for candidates, fitted, with two epochs of a linear classifier behind it", Alone: true,
			Heavy: name != "cora", workload: FindWorkload(name), run: judgeEdges})
	}
	return cases
}

func judgeEdges(e *env) (Result, error) {
	cfg, err := config.Load("ecl-gsr", "", "", []string{"model.classifier=linear", "train.pretrain_steps=0", "train.joint_every=0", "train.epochs=2"})
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
