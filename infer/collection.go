package infer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// errGraphs is the error of what makes sense for nodes of one graph only.
var errGraphs = errors.New("the model classifies whole graphs; this is for models that classify the nodes of one graph")

// newGraphPredictor opens the export of a model of graphs, and reads a collection.
func newGraphPredictor(ctx context.Context, dist, path string, o PredictOptions) (*predictor, *data.Collection, error) {
	p, err := openExport(dist, o)
	if err != nil {
		return nil, nil, err
	}
	p.o.Load.NodeFeatures = data.FeaturesNamed(p.info.Features) // not as these data would have it
	ds, c, err := data.LoadAny(path, p.o.Load)
	if lacking, ok := errors.AsType[data.LackingError](err); ok {
		return nil, nil, fmt.Errorf("%s: %w, and the model in %s was trained on nodes that have; give data with %s", path, lacking, dist, string(lacking))
	}
	if err != nil {
		return nil, nil, err
	}
	if ds != nil {
		return nil, nil, fmt.Errorf("%s is one graph, and the model in %s classifies the graphs of a collection", path, dist)
	}
	if err := p.matchFeatures(c); err != nil {
		return nil, nil, err
	}
	err = p.models(ctx)
	return p, c, err
}

// predictGraphs classifies the graphs of a collection.
func predictGraphs(ctx context.Context, dist, path, out string, o PredictOptions) (*Prediction, error) {
	if o.Nodes != nil {
		return nil, fmt.Errorf("%s: nodes cannot be selected: %w", dist, errGraphs)
	}
	p, c, err := newGraphPredictor(ctx, dist, path, o)
	if err != nil {
		return nil, err
	}
	defer p.close()
	atOnce, err := p.fitsBatches(c, p.answering(p.info.Graph == "refined")...)
	if err != nil {
		return nil, err
	}
	r, err := p.classifyGraphs(ctx, c, atOnce)
	if err != nil || out == "" {
		return r, err
	}
	return r, r.WriteFile(out, p.progressFor("writing"))
}

// matchFeatures brings the columns of X into the order of the training's, by their
// names. What the training did not know, such as a degree that no node had, is
// left out; a label or a degree that no node of the data has is 0 of all of them. Data
// without an attribute, or a column of labels, are refused.
func (p *predictor) matchFeatures(c *data.Collection) error {
	if slices.Equal(c.FeatureNames, p.info.Features) {
		return nil
	}
	at := map[string]int{}
	for i, name := range p.info.Features {
		at[name] = i
	}
	to := make([]int, c.X.Cols)
	for i, name := range c.FeatureNames {
		k, ok := at[name]
		if !ok {
			k = -1
			p.o.Log("the model does not know the feature %q; it is left out", name)
		}
		to[i] = k
	}
	for _, name := range p.info.Features {
		source := featureSource(name)
		if !slices.ContainsFunc(c.FeatureNames, func(has string) bool { return featureSource(has) == source }) {
			return fmt.Errorf("%s: nodes have no %s, and those that the model was trained on have; give data that have it", c.Source, source)
		}
	}
	from := c.X.ToCSR() // batches alone are dense, since all graphs together may be far larger than their file
	x := &data.Features{Rows: from.Rows, Cols: len(p.info.Features), RowPtr: make([]int32, 1, from.Rows+1), Col: make([]int32, 0, len(from.Col)), Val: make([]float32, 0, len(from.Col))}
	for row := range from.Rows {
		for i := from.RowPtr[row]; i < from.RowPtr[row+1]; i++ {
			if k := to[from.Col[i]]; k >= 0 {
				x.Col, x.Val = append(x.Col, int32(k)), append(x.Val, from.Val[i])
			}
		}
		x.RowPtr = append(x.RowPtr, int32(len(x.Col)))
	}
	c.X, c.FeatureNames = x, p.info.Features
	return nil
}

// featureSource is what a feature of nodes was made of: attribute 2 of itself, label 1 = 5 of label 1,
// label 5 and degree 5 of the label and the degree.
func featureSource(name string) string {
	if column, _, ok := strings.Cut(name, " = "); ok {
		return column
	}
	if word, _, _ := strings.Cut(name, " "); word != "attribute" {
		return word
	}
	return name
}

// nodesAtOnce bounds a batch of graphs that are classified.
const nodesAtOnce = 1 << 14

// batched divides the graphs of c among batches of at most so many nodes, or of one graph.
func batched(c *data.Collection, atOnce int) (all [][]int32) {
	nodes := 0
	for g, one := range c.Graphs {
		if nodes += one.N; g == 0 || nodes > atOnce {
			all, nodes = append(all, nil), one.N
		}
		all[len(all)-1] = append(all[len(all)-1], int32(g))
	}
	return all
}

// batches calls f with one batch of graphs after another, until all graphs of c were in
// one.
func batches(ctx context.Context, c *data.Collection, atOnce int, f func(graphs []int32, b *data.Batch) error) error {
	var b *data.Batch
	for _, graphs := range batched(c, atOnce) {
		if err := ctx.Err(); err != nil {
			return err
		}
		var err error
		if b, err = c.Batch(b, graphs); err != nil {
			return err
		}
		if err := f(graphs, b); err != nil {
			return err
		}
	}
	return nil
}

// classifyGraphs runs the classifier on batches of the graphs, refined where the model
// does that.
func (p *predictor) classifyGraphs(ctx context.Context, c *data.Collection, atOnce int) (*Prediction, error) {
	r := &Prediction{Classes: p.manifest.Classes, Graphs: true, TrainingGraph: c.Checksum == p.info.Data.Checksum}
	p.o.Log("classifying %d graphs", len(c.Graphs))
	pool := kernels.NewPool(p.o.Threads)
	defer pool.Close()
	err := batches(ctx, c, atOnce, func(graphs []int32, b *data.Batch) error {
		x, index, weights, ids := BatchInputs(b)
		switch p.info.Graph {
		case "refined":
			refined, err := p.refine(pool, x, b.Graph, b.Offset, nil)
			if err != nil {
				return err
			}
			g := refined.Graph()
			var w ort.Tensor
			index, w = WeightedEdges(g)
			weights = &w
			r.Edges += g.NumEdges()
		default:
			if p.info.RawWeight != 1 {
				n := index.Shape[1]
				weights = new(ort.Float32s(slices.Repeat([]float32{p.info.RawWeight}, int(n)), n))
			}
			r.Edges += b.Graph.NumEdges()
		}
		logits, probabilities, err := p.classify(len(graphs), x, index, weights, &ids)
		if err != nil {
			return err
		}
		if i := notFinite(len(r.Classes), logits, probabilities); i >= 0 {
			return &FiniteError{What: fmt.Sprintf("graph %d", graphs[i]), Largest: largest(b.X, func(row int) string {
				k := b.GraphOf[row]
				return fmt.Sprintf("node %d of graph %d", row-int(b.Offset[k]), graphs[k])
			})}
		}
		r.Probabilities = append(r.Probabilities, probabilities...)
		p.progressFor("classifying")(len(r.Probabilities)/len(r.Classes), len(c.Graphs))
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.choose(c.Labels, ClassNames(c.ClassNames, c.Classes))
	return r, nil
}
