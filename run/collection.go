package run

import (
	"encoding/json"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/train"
)

// sampledGraphs is how many graphs an export is checked on.
const sampledGraphs = 32

// graphSample is a batch of graphs, evenly from the whole collection and then those
// of the test split, as exported models take it.
func graphSample(t *train.Trained, c *data.Collection, test []int32) (parity.ExampleInputs, error) {
	var graphs []int32
	n := min(sampledGraphs, len(c.Graphs))
	for i := range n {
		graphs = append(graphs, int32(i*len(c.Graphs)/n))
	}
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

// describeGraphs is inference.json of a classifier of graphs.
func describeGraphs(t *train.Trained, c *data.Collection) ([]byte, error) {
	info := infer.Info{SchemaVersion: 1, Graph: "raw", RawWeight: 1, Features: c.FeatureNames, NodeFeatures: t.Config.Data.NodeFeatures}
	info.Data.Name, info.Data.Checksum, info.Data.Nodes = c.Name, c.Checksum, c.Nodes()
	describeRefinement(&info, t)
	text, err := json.MarshalIndent(info, "", "  ")
	return append(text, '\n'), err
}
