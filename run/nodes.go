package run

import (
	"bytes"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/export"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
)

// nodeTask is a model that classifies the nodes of one graph.
type nodeTask struct {
	train.Task
	ds *data.Dataset
}

func (n nodeTask) data() (*data.Dataset, *data.Collection) { return n.ds, nil }

// ownNodes is the largest graph that has the defaults for data without defaults of their own: they
// were chosen on graphs of up to 7,600 nodes, and take several times the steps of the general ones.
const ownNodes = 50_000

func (n nodeTask) defaults() loadConfig {
	load := n.general()
	switch {
	case n.tables():
		return load
	case fewLabels(n.ds):
		load = config.LoadFew
	}
	own := n.ds.Classes > 0 && n.ds.Graph.N <= ownNodes
	return func(model, dataset, path string, sets []string) (*config.Config, error) {
		if own && !config.Tuned(model, dataset) {
			return config.LoadOwn(model, dataset, path, sets, neighbours(n.ds))
		}
		return load(model, dataset, path, sets)
	}
}

// neighbours tells what edges between training nodes say of classes: [config.Alike], or that most join
// nodes of different classes, or no more than chance would. Where nearly all nodes are of one class, as
// where a few are fraudulent, edges can say little of classes and much of what is wrong. The split is the first one, so that all
// seeds have the same defaults.
func neighbours(ds *data.Dataset) config.Neighbours {
	split, err := ds.SplitFor(0)
	if err != nil {
		return config.Alike
	}
	switch share, chance := ds.TrainHomophily(split.Train); {
	case share-chance < 0.1*(1-chance) && chance < 0.7: // adjusted homophily, Platonov et al. 2023
		return config.Unrelated
	case share < 0.5:
		return config.Unlike
	}
	return config.Alike
}

// general are defaults for any number of labels.
func (n nodeTask) general() loadConfig {
	if n.tables() {
		return config.LoadTables
	}
	return config.Load
}

func (n nodeTask) tables() bool { return n.ds.Columns != nil && n.ds.Columns.Prepared() }

// fewLabels tells whether training nodes are a tenth of the nodes at most, so that there are others
// to learn from, and fewer than the 20 of each class that public splits have. A share drawn anew
// (ratio:…) may have more: a data set's own defaults were chosen for the training nodes it comes with.
func fewLabels(ds *data.Dataset) bool {
	if s := ds.SplitSpec; s != nil && s.Ratio > 0 {
		return s.Ratio <= 0.1
	}
	split, err := ds.SplitFor(0) // how many there are does not depend on the seed
	return err == nil && len(split.Train) < 20*ds.Classes && 10*len(split.Train) <= ds.Graph.N
}

func (n nodeTask) refined(o *infer.RefineOptions, x *graph.Refined) (*infer.RefinedGraph, error) {
	return o.Dataset(x, n.ds)
}

func (n nodeTask) encoderInputs(t *train.Model) (map[string]ort.Tensor, error) {
	s := n.sample(t)
	inputs := map[string]ort.Tensor{"x": s.X, "edge_index": s.Edges}
	if s.EdgeWeights != nil {
		inputs["edge_weight"] = *s.EdgeWeights
	}
	if s.Struct != nil {
		inputs["x_struct"] = *s.Struct
	}
	return inputs, nil
}

// weighted reports whether a classifier of the graph as it is reads the weights that edges
// have in the data.
func weighted(t *train.Model) bool { return t.Refined == nil && t.Module.Attrs.Bool(models.Weighted) }

// countsWeights reports whether a model that refines counts edges by their weights.
func countsWeights(t *train.Model) bool {
	x := t.Refined
	return x != nil && t.Module.Attrs.Bool(models.Weighted) && (!x.Raw || x.Mode == "expected")
}

// weightUnit is the weight of an edge that counts in full, of a model that refines ds and
// counts edges by their weights there; 0 of others.
func weightUnit(t *train.Model, ds *data.Dataset) float32 {
	if !countsWeights(t) || ds == nil {
		return 0
	}
	return ds.Graph.Undirected().WeightUnit()
}

// inference is what inference needs beside the models, but for files.
func (n nodeTask) inference(t *train.Model) *infer.Info {
	info := &infer.Info{SchemaVersion: 1, Graph: "raw", RawWeight: 1}
	if info.Weighted = weighted(t); info.Weighted {
		info.Loops = readsLoops(t)
	}
	describeRefinement(info, t)
	info.WeightUnit = weightUnit(t, n.ds)
	if info.ReadsWeights() {
		info.Weights = data.EdgeWeights(t.Config.Data.Weights)
	}
	return info
}

// readsLoops reports whether it reads the weights of self-loops, too.
func readsLoops(t *train.Model) bool {
	f := t.Module.Func("classify")
	return f != nil && f.Arg(models.SelfLoops) != nil
}

// sample is the training graph as exported models take it.
func (n nodeTask) sample(t *train.Model) parity.ExampleInputs {
	ds := n.ds
	st := ds.Graph.Structure()
	s := parity.ExampleInputs{X: infer.Features(ds), Edges: infer.EdgeIndex(st), EdgeWeights: n.inference(t).EntryWeights(ds.Graph, st)}
	if t.Struct != nil {
		s.Struct = new(ort.Float32s(t.Struct, int64(ds.Graph.N), int64(t.StructWidth)))
	}
	if weighted(t) {
		w := ort.Float32s(st.Spread(nil, ds.Graph.Weights), int64(st.E))
		s.Weights = &w
		if readsLoops(t) && ds.Loops != nil {
			s.Edges, w = infer.WithLoops(s.Edges, w, ds.Loops)
		}
	}
	if t.Refined != nil {
		edges, weights := infer.WeightedEdges(t.Refined.Graph())
		s.Refined, s.Weights = &edges, &weights
	}
	return s
}

func (n nodeTask) describe(b *export.BuildOptions, t *train.Model, test []int32) error {
	ds := n.ds
	b.Sample = n.sample(t)
	for _, v := range test {
		b.Sample.Test, b.Sample.Labels = append(b.Sample.Test, int(v)), append(b.Sample.Labels, int(ds.Labels[v]))
	}
	if b.Columns = ds.Columns; n.tables() {
		c := *ds.Columns
		c.Gaps, b.Columns = data.Gaps, &c
	}
	info := n.inference(t)
	info.Data.Name, info.Data.Checksum, info.Data.Nodes, info.Data.Edges, info.Data.Corruption, info.Data.Rewired = ds.Name, ds.Checksum, ds.Graph.N, ds.Graph.NumEdges(), ds.Corruption, ds.Rewired
	info.Data.Roles, info.Data.Merge, info.Data.Ignored = ds.Roles, ds.Merge, ds.Ignored
	if ds.Source == data.Synthetic {
		info.Data.Synthetic = LoadOptions(t.Config).Synthetic
	}
	info.Data.Structural, info.Directed = ds.Structural, &ds.Graph.Directed
	if f := t.Module.Func("classify"); f != nil && f.Arg(models.KnownLabels) != nil {
		info.Known = t.Split.Train
	}
	if x := t.Refined; x != nil && !x.Raw {
		var text bytes.Buffer
		if err := ds.WriteWeighed(&text, x); err != nil {
			return err
		}
		b.Files[infer.RefinedFile] = text.Bytes()
	}
	if t.Struct != nil {
		f := safetensors.File{Tensors: []safetensors.Tensor{{Name: "x_struct", Shape: []int{ds.Graph.N, t.StructWidth}, Data: t.Struct}}}
		var text bytes.Buffer
		if err := f.Write(&text); err != nil {
			return err
		}
		b.Files[infer.StructFile] = text.Bytes()
	}
	return addInfo(b, info)
}
