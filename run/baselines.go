package run

import (
	"context"
	"fmt"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/train"
)

// Baselines says what a run trains beside its model, for its result to be held against: the
// same classifier without edges and, where the model refines the graph and classifies by the
// features, on the graph as it is, without directions.
type Baselines string

const (
	NoBaselines Baselines = "off"
	// OwnTables trains them where the data are tables, as of one's own.
	OwnTables Baselines = "auto"
	// AllBaselines trains them for any data.
	AllBaselines Baselines = "on"
)

// compare trains what b asks for, in memory, and enters it in a run's result.
func (s *Setup) compare(ctx context.Context, b Baselines, r *Run, o train.Options) error {
	if b == "" || b == NoBaselines || b == OwnTables && s.task.Info().Columns == nil || r.Result.Val == nil {
		return nil
	}
	observer := o.Observer
	o = train.Options{NewExecutor: o.NewExecutor, Device: o.Device, Memory: o.Memory}
	failed := func(model, what string, err error) error {
		return fmt.Errorf("the run has ended, and its baseline, %s (%s), which --baselines off leaves out, failed: %w", model, what, err)
	}
	fit := func(model, what string, m *ir.Module, c *config.Config) (*train.Baseline, error) {
		if observer != nil {
			o.Observer = renamed{observer, what}
		}
		res, err := train.Train(ctx, train.Job{Model: model, Module: m, Task: s.task}, c, o)
		if err != nil {
			return nil, failed(model, what, err)
		}
		return res.Baseline(), nil
	}
	var noEdges, rawGraph *train.Baseline
	const without = "mlp"
	if s.Model != without && s.Model != "linear" {
		c := s.Config.Clone()
		c.Model.Smooth.Alpha, c.Model.Smooth.Correct = 0, 0
		c.Model.KnownLabels, c.Model.Encoder.Cut = 0, 0
		c.Train.FanOuts = ""
		m, err := s.task.Module(without, c)
		if err != nil {
			return failed(without, "no edges", err)
		}
		if noEdges, err = fit(without, "no edges", m, c); err != nil {
			return err
		}
	}
	if s.reading().learns && !models.ClassifiesEmbedding(s.Module) {
		c := s.Config.Clone()
		c.Candidates.Structure, c.Candidates.Keep = "raw", 1
		var err error
		if rawGraph, err = fit(s.Model, "raw graph", s.Module, c); err != nil {
			return err
		}
		rawGraph.Undirected = s.task.Info().Directed
	}
	r.Result.Against(noEdges, rawGraph)
	if r.Dir == "" {
		return nil
	}
	return train.WriteResult(r.Dir, r.Result)
}

// renamed tells an observer of a baseline's steps.
type renamed struct {
	train.Observer
	phase string
}

func (r renamed) Observe(e train.Event) {
	e.Phase = r.phase
	r.Observer.Observe(e)
}
