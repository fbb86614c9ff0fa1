package train

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
)

// graphTask classifies the graphs of a collection.
type graphTask struct{ *data.Collection }

// Graphs is the task of classifying the graphs of a collection.
func Graphs(c *data.Collection) Task { return graphTask{c} }

func (g graphTask) Info() TaskInfo {
	c := g.Collection
	return TaskInfo{About: About{Name: c.Name, Source: c.Source, Format: c.Format, Checksum: c.Checksum, Graphs: len(c.Graphs), Nodes: c.Nodes(), Edges: c.NumEdges(), Features: c.X.Cols, Classes: c.Classes, ClassNames: c.ClassNames},
		Directed: c.Graphs[0].Directed, Features: c.X, Labels: c.Labels, Item: "graph", itemName: strconv.Itoa}
}

func (g graphTask) Split(seed uint64) (data.Split, string, error) {
	s, err := g.SplitFor(seed)
	return s, "fold " + g.FoldName(seed), err
}

func (g graphTask) Module(model string, cfg *config.Config) (*ir.Module, error) {
	m, err := models.Open(model)
	if err != nil {
		return nil, err
	}
	switch {
	case cfg.Data.Split != "":
		return nil, fmt.Errorf("%s is a collection of graphs, which has folds: leave the split %q out; the seed is the fold", g.Name, cfg.Data.Split)
	case !m.ClassifiesGraphs():
		return nil, fmt.Errorf("%s classifies nodes, and %s is a collection of graphs; \"gsrc models\" lists the models that classify graphs", model, g.Name)
	case m.Refines && !slices.Contains(models.GraphClassifiers(), cfg.Model.Classifier):
		return nil, fmt.Errorf("model.classifier=%s classifies nodes, and %s is a collection of graphs; take one of %s", cfg.Model.Classifier, g.Name, strings.Join(models.GraphClassifiers(), ", "))
	case m.Refines && cfg.Model.Edges.Judge != models.JudgeEmbedding:
		return nil, fmt.Errorf("train: evidence judges the edges of one graph, and %s is a collection; leave model.edges.judge = embedding", g.Name)
	case cfg.Model.Edges.SameClass:
		return nil, fmt.Errorf("%s is a collection of graphs, whose nodes have no classes: leave model.edges.same_class = false", g.Name)
	}
	o := cfg.Model
	o.Features, o.Classes, o.StructWidth = g.X.Cols, g.Classes, 0
	return m.Program(o, true)
}

func (g graphTask) check(m *ir.Module) error {
	if f := m.Func("classify"); f != nil && f.Arg("batch") == nil {
		return fmt.Errorf("train: module @%s classifies nodes, and the data are a collection of graphs: its @classify takes no batch", m.Name)
	}
	return checkSignatures(m, "G", map[string]ir.Type{
		"x": ir.T(ir.F32, "N", "D"), "g": ir.GraphType("N", "E"), "w": ir.T(ir.F32, "E"), "ramp": ir.T(ir.F32),
		"batch": ir.BlockType("G", "N", "N"), "labels": ir.T(ir.I64, "G"), "targets": ir.T(ir.F32, "G", "C"),
	})
}

// DataInfo leaves sizes open, since batches differ. Where a device wants it, they are padded:
// see [runtime.Device].
func (g graphTask) DataInfo(d runtime.Device, _ *config.Config, _ data.Split) passes.DataInfo {
	f := passes.DataInfo{Dims: map[string]int{}, PadBatches: d != nil && d.Pads()}
	if g.X.IsSparse() {
		f.SparseArgs = []string{"x"}
	}
	return f
}

func (g graphTask) searched(cfg *config.Config) (pairs int64) {
	for _, one := range g.Graphs {
		pairs += nearest(cfg, one.N)
	}
	return pairs
}

func (g graphTask) advice(*trainer) string {
	return "lower train.batch_graphs or model.hidden"
}

func (g graphTask) compare(res *Result, _ *graph.Refined) { res.EdgesBefore = g.NumEdges() }

func (g graphTask) start(t *trainer) (steps, error) {
	c := g.Collection
	learns := t.edges != nil
	switch {
	case t.cfg.Train.Sampler == neighbors:
		return nil, fmt.Errorf("train: train.sampler=neighbors draws neighbours in one graph, and %s is a collection, whose batches are of graphs; take full", c.Name)
	case t.cfg.Train.SelfTraining > 0:
		return nil, fmt.Errorf("train: self-training adds nodes of one graph to the training nodes, and %s is a collection; leave train.self_training 0", c.Name)
	case learns && t.cfg.DeepWalk.Width > 0:
		return nil, fmt.Errorf("train: structural attributes belong to one graph, and %s is a collection; leave deepwalk.width 0", c.Name)
	case learns && t.cfg.Candidates.TwoStep > 0:
		return nil, fmt.Errorf("train: candidates from two steps away are of one graph, and %s is a collection; leave candidates.two_step 0", c.Name)
	case learns && !t.edges.fixed && t.cfg.Train.PretrainSteps+t.cfg.Train.JointEvery > 0 && min(len(t.split.Train), t.cfg.Train.BatchGraphs) < 2:
		return nil, errors.New("train: a contrastive step compares graphs with each other; train.batch_graphs and the training graphs must be two at least")
	}
	var share []float64
	if t.prog.takes("targets") {
		labels := answers(nil, c.Labels, t.split.Train)
		share = shares(labels, c.Classes)
		for k := range share {
			share[k] *= float64(len(labels))
		}
	}
	s := &graphSteps{trainer: t, c: c, order: epochOrder{epoch: -1, bound: -1}, batch: newGraphBatch(c, share), logits: runtime.Zeros(len(c.Graphs), c.Classes)}
	if !learns {
		return s, nil
	}
	s.undirected, s.rows, s.pairs = c.Union().Undirected(), runtime.Zeros(0, 0), runtime.I64(nil, 2, 0)
	s.batch.refined = newCandidateBatch(&s.collectionEdges)
	s.known = t.edges
	t.prog.inputs["lo"], t.prog.inputs["hi"], t.prog.inputs["p"] = runtime.Scalar(0), runtime.Scalar(0), runtime.Zeros(0)
	return s, nil
}

func (g graphTask) refining() []string { return []string{"encode", "score"} }

func (g graphTask) compileSteps(*trainer) error { return nil }
