package run

import (
	"errors"
	"slices"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// graphTask is a model that classifies the graphs of a collection.
type graphTask struct {
	train.Task
	c *data.Collection
}

func (g graphTask) data() (*data.Dataset, *data.Collection) { return nil, g.c }
func (g graphTask) defaults() loadConfig                    { return config.LoadGraphs }

func (g graphTask) refined(o *infer.RefineOptions, x *graph.Refined) (*infer.RefinedGraph, error) {
	return o.Collection(x, g.c)
}

func (g graphTask) encoderInputs(*train.Model) (map[string]ort.Tensor, error) {
	return nil, errors.New("the model classifies whole graphs, which have no embedding of their own here")
}

// sampledGraphs is how many graphs an export is checked on.
const sampledGraphs = 32

// sample is a batch of graphs, evenly from the whole collection and then those
// of the test split, as exported models take it.
func (g graphTask) sample(t *train.Model, test []int32) (parity.ExampleInputs, error) {
	c := g.c
	n := min(sampledGraphs, len(c.Graphs))
	graphs := lists.Of(n, func(i int) int32 { return int32(i * len(c.Graphs) / n) })
	var s parity.ExampleInputs
	for _, g := range test {
		row := slices.Index(graphs, g)
		if row < 0 {
			row, graphs = len(graphs), append(graphs, g)
		}
		s.Test, s.Labels = append(s.Test, row), append(s.Labels, int(c.Labels[g]))
	}
	b, err := c.Batch(nil, graphs)
	if err != nil {
		return parity.ExampleInputs{}, err
	}
	x, index, weights, ids := infer.BatchInputs(b)
	s.X, s.Edges, s.Weights, s.GraphIDs = x, index, weights, &ids
	if t.Refined != nil {
		edges, w := infer.WeightedEdges(refinedBatch(t.Refined, c, graphs, b))
		s.Refined, s.Weights = &edges, &w
	}
	return s, nil
}

// refinedBatch is a batch of graphs with the edges that a training has learned for them.
func refinedBatch(r *graph.Refined, c *data.Collection, graphs []int32, b *data.Batch) *graph.Graph {
	u := &graph.Graph{N: b.Graph.N, Weights: []float32{}}
	starts, weights := r.Candidates.Starts(nil, c.Offset), r.Weights()
	for k, g := range graphs {
		shift := b.Offset[k] - c.Offset[g]
		for i := starts[g]; i < starts[g+1]; i++ {
			if r.Probability[i] >= float32(r.Threshold) {
				e := r.Candidates.Edges[i]
				u.Edges, u.Weights = append(u.Edges, [2]int32{e[0] + shift, e[1] + shift}), append(u.Weights, weights[i])
			}
		}
	}
	return u
}

func (g graphTask) describe(b *export.BuildOptions, t *train.Model, test []int32) (err error) {
	if b.Sample, err = g.sample(t, test); err != nil {
		return err
	}
	info := &infer.Info{SchemaVersion: 1, Graph: "raw", RawWeight: 1, Features: g.c.FeatureNames, NodeFeatures: string(data.FeaturesNamed(g.c.FeatureNames))}
	info.Data.Name, info.Data.Checksum, info.Data.Nodes, info.Directed = g.c.Name, g.c.Checksum, g.c.Nodes(), &g.c.Graphs[0].Directed
	describeRefinement(info, t)
	return addInfo(b, info)
}

// OfGraphs tells that the run was trained on a collection of graphs. It opens no data.
func (r *Run) OfGraphs() bool {
	return r.Graphs != nil || r.info != nil && r.info.Data.Graphs > 0
}
