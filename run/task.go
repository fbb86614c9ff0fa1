package run

import (
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// task is what runs and exports ask of a task beside training. A further one is a further
// implementation, as with [train.Task].
type task interface {
	train.Task
	// data returns what was read, for the fields of Setup and Run.
	data() (*data.Dataset, *data.Collection)
	// defaults resolves configurations with the defaults of such data.
	defaults() loadConfig
	// describe adds to an export the data, or some of them, as its models take them, with
	// the given part of the test split, and the files that are not models.
	describe(b *export.BuildOptions, t *train.Model, test []int32) error
	// refined lists the edges that were learned.
	refined(o *infer.RefineOptions, x *graph.Refined) (*infer.RefinedGraph, error)
	// encoderInputs are the arguments of @encode.
	encoderInputs(t *train.Model) (map[string]ort.Tensor, error)
}

// loadConfig resolves a configuration: [config.Load], [config.LoadGraphs], [config.LoadTables], [config.LoadFew] or [config.LoadOwn].
type loadConfig func(model, dataset, path string, sets []string) (*config.Config, error)

// loaded is the task of what [data.LoadAny] returns.
func loaded(ds *data.Dataset, c *data.Collection, err error) (task, error) {
	switch {
	case err != nil:
		return nil, err
	case c != nil:
		return graphTask{train.Graphs(c), c}, nil
	}
	return nodeTask{train.Nodes(ds), ds}, nil
}
