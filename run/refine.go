package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// Refine returns the graph that the run has learned. It is an error if the model
// learns none, or if the data cannot be read again.
func (r *Run) Refine(o infer.RefineOptions) (*infer.RefinedGraph, error) {
	if _, err := r.learned(); err != nil {
		return nil, err
	}
	if err := r.LoadData(o.Data); err != nil {
		return nil, err
	}
	x, err := r.Learned(o.Predict.Threads)
	if err != nil {
		return nil, err
	}
	if r.Trained.Config.Model.Edges.SameClass {
		_, p, err := r.calibrated(o.Predict.Threads)
		if err != nil {
			return nil, err
		}
		x = x.OfOneClass(p, r.Data.Classes)
	}
	o.Predict.Load.Weights, o.WeightUnit = data.EdgeWeights(r.Trained.Config.Data.Weights), weightUnit(r.Trained, r.Data)
	return r.task.refined(&o, x)
}

// Learned returns the candidates of the run with their probabilities and, where the model
// judges edges by evidence, what its sources say of them. It is an error if the model learns
// no graph. The data must be loaded.
func (r *Run) Learned(threads int) (*graph.Refined, error) {
	x, err := r.learned()
	if err = cmp.Or(err, ort.CheckThreads(threads)); err != nil {
		return nil, err
	}
	r.evidence.Lock()
	defer r.evidence.Unlock()
	t := r.Trained
	if r.Data == nil || x.Evidence != nil || t.Module.Func(models.EncodeJudging) == nil {
		return x, nil
	}
	f, err := r.forward(threads)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	score := infer.Scorer(func(features, index, pairs ort.Tensor, weight *ort.Tensor) (map[string]ort.Tensor, error) {
		in := map[string]ort.Tensor{"x": features, "edge_index": index, "pairs": pairs}
		if weight != nil {
			in["edge_weight"] = *weight
		}
		return f.Run("score", in)
	})
	_, x.Evidence, err = score.Candidates(infer.Features(r.Data), r.Data.Graph, x.Candidates, nodeTask{train.Nodes(r.Data), r.Data}.inference(t))
	return x, err
}

// learned returns the graph that the run has learned.
func (r *Run) learned() (*graph.Refined, error) {
	switch x := r.Trained.Refined; {
	case x == nil:
		return nil, fmt.Errorf("the model %s classifies on the graph as it is and refines nothing; train one that does, such as ecl-gsr", r.Trained.Model)
	case x.Raw:
		return nil, errors.New("the run was trained on the graph as it is (candidates.structure = raw), so there is no refined one; train without that option")
	default:
		return x, nil
	}
}

// Refine returns the graph that the model in a directory makes of its data. The
// directory is that of a run, see [Run.Refine], or of an export. With an export
// and the training graph the result is the run's; for another graph new candidates
// are found and scored in onnxruntime, which an encoder with structural attributes
// cannot do. A run does so by gsrc's own executor, over chunks of nodes.
func Refine(ctx context.Context, dir string, o infer.RefineOptions) (*infer.RefinedGraph, error) {
	if isExport(dir) {
		return infer.Refine(ctx, dir, o)
	}
	r, err := openWriting(dir, &o.Predict.Load)
	if err != nil {
		return nil, err
	}
	d, whole := r.deploy()
	if whole = r.orExport(whole); whole == nil {
		whole = d.Refines()
	}
	if r.OfGraphs() {
		if _, err := r.learned(); err != nil {
			return nil, err
		}
	}
	var g *infer.RefinedGraph
	err = r.use(ctx, o.Data, &o.Predict, whole, func() (err error) {
		g, err = r.Refine(o)
		return err
	}, func(a *application) error {
		o.Predict.Load.Weights, o.WeightUnit = a.edgeWeights, a.unit
		o.Streamed = o.Streamed && a.unit == 0
		a.listed = o.RowBytes()
		x, err := a.refine()
		if err == nil {
			x, err = a.explained(x)
		}
		if err == nil {
			x, err = a.ofOneClass(x)
		}
		if err == nil {
			g, err = o.Dataset(x, a.ds)
		}
		return err
	})
	return g, err
}
