package train

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
)

// nodeTask classifies the nodes of one graph.
type nodeTask struct{ *data.Dataset }

// Nodes is the task of classifying the nodes of a data set.
func Nodes(ds *data.Dataset) Task { return nodeTask{ds} }

func (n nodeTask) Info() TaskInfo {
	d := n.Dataset
	return TaskInfo{About: About{Name: d.Name, Source: d.Source, Format: d.Format, Checksum: d.Checksum, Nodes: d.Graph.N, Edges: d.Graph.NumEdges(), Features: d.X.Cols, Classes: d.Classes, ClassNames: d.ClassNames, Corruption: d.Corruption, Rewired: d.Rewired, Columns: d.Columns, Roles: d.Roles, Merge: d.Merge},
		Directed: d.Graph.Directed, Features: d.X, Labels: d.Labels, Item: "node", Structural: d.Structural, Seeded: d.Seeded(), itemName: d.NodeID}
}

func (n nodeTask) Split(seed uint64) (data.Split, string, error) {
	s, err := n.SplitFor(seed)
	switch {
	case err != nil:
		return s, "", err
	case n.SplitSpec != nil:
		return s, n.SplitSpec.String(), nil
	case n.Roles.Split != "" && len(n.Splits) == 1:
		return s, "of the column " + n.Roles.Split, nil
	case len(n.Splits) == 1:
		return s, "public", nil
	}
	return s, fmt.Sprint(seed % uint64(len(n.Splits))), nil
}

// NoLabels is the error of data without labels for a model that learns by them.
func NoLabels(source, model string) error {
	return fmt.Errorf("%s has no labels, so there is nothing for %s to learn: name the column that has them with --label, add one, or train ecl-gsr, which learns an encoder and a refined graph without labels", source, model)
}

func (n nodeTask) Module(model string, cfg *config.Config) (*ir.Module, error) {
	m, err := models.Open(model)
	if err != nil {
		return nil, err
	}
	o := n.modelOptions(m, cfg)
	if n.Classes == 0 && (m.Learner == nil || !m.Learner.Unlabelled) {
		return nil, NoLabels(cmp.Or(n.Source, n.Name), model)
	}
	if n.Classes == 0 && o.Edges.SameClass {
		return nil, fmt.Errorf("%s has no labels, so no classifier tells which edges join nodes of one class: leave model.edges.same_class = false", cmp.Or(n.Source, n.Name))
	}
	return m.Program(o, false)
}

// modelOptions are those of a model of the zoo for the data.
func (n nodeTask) modelOptions(m *models.Model, cfg *config.Config) models.Options {
	o := cfg.Model
	o.Features, o.Classes, o.StructWidth = n.X.Cols, n.Classes, cfg.DeepWalk.Width
	o.EdgeWeights = len(n.Graph.Weights) > 0 && (!m.Refines && m.Name != "gat" || n.Graph.WeightsDiffer())
	o.Directed, o.Marks = n.Graph.Directed, marks(n.Dataset)
	o.Dense = len(n.Graph.Edges) >= n.Graph.N*models.SpectrumDegree/2
	return o
}

// marks is how many columns of x only tell nodes apart.
func marks(ds *data.Dataset) int {
	if !ds.Structural {
		return 0
	}
	return max(0, ds.X.Cols-graph.PlacesWidth)
}

func (n nodeTask) check(m *ir.Module) error {
	if f := m.Func("classify"); f != nil && f.Arg("batch") != nil {
		return fmt.Errorf("train: module @%s classifies graphs in batches, and the data are one graph", m.Name)
	}
	return checkSignatures(m, "N", map[string]ir.Type{
		"x": ir.T(ir.F32, "N", "D"), "g": ir.GraphType("N", "E"), "w": ir.T(ir.F32, "E"), "ramp": ir.T(ir.F32),
		"train_idx": ir.T(ir.I64, "T"), "labels": ir.T(ir.I64, "T"), "targets": ir.T(ir.F32, "T", "C"),
		models.OuterIdx: ir.T(ir.I64, "V"), models.OuterLabels: ir.T(ir.I64, "V"),
		models.KnownLabels: ir.T(ir.F32, "N", "C"), models.TrainLabels: ir.T(ir.F32, "N", "C"), models.SelfLoops: ir.T(ir.F32, "N"),
	})
}

func (n nodeTask) DataInfo(_ runtime.Device, cfg *config.Config, split data.Split) passes.DataInfo {
	entries := len(n.Graph.Edges)
	if !n.Graph.Directed {
		entries *= 2
	}
	f := passes.DataInfo{Dims: map[string]int{"N": n.Graph.N, "E": entries, "T": len(split.Train), "V": len(split.Outer)}}
	if split.Outer == nil {
		f.Dims["V"] = len(split.Halved().Outer)
	}
	if n.X.IsSparse() {
		f.SparseArgs = []string{"x"}
	}
	if cfg.Train.SelfTraining > 0 { // rounds have other numbers of training nodes
		delete(f.Dims, "T")
	}
	switch c := cfg.Train; {
	case c.Sampler == "edges": // steps have sub-graphs, of sizes of their own
		delete(f.Dims, "N")
	case c.Anchors == 0:
		f.Dims["B"] = n.Graph.N
	default:
		f.Dims["B"] = min(c.Anchors, n.Graph.N)
	}
	return f
}

func (n nodeTask) searched(cfg *config.Config) int64 { return nearest(cfg, n.Graph.N) }

// advice names what the program reads, and the samplers that its steps can take.
func (n nodeTask) advice(t *trainer) string {
	m, c := t.prog.Module, t.cfg
	learned := t.edges != nil && !t.edges.fixed
	anchors := learned && t.prog.takes("anchors")
	wide := func(group string, width int) bool {
		return slices.ContainsFunc(m.Params, func(p *ir.Value) bool {
			return p.Attrs.Str("group") == group && slices.Contains(p.Type.Dims, ir.D(width))
		})
	}
	full := c.Train.Sampler == "full"
	draws := full && checkDrawing(t) == nil && !slices.ContainsFunc(drawing(m, c), func(name string) bool {
		if name == "joint" { // draws as @fit does
			return false
		}
		_, err := drawnBy(t, name)
		return err != nil
	})
	joint := t.module.Func("joint")
	var lower, ways []string
	for _, x := range []struct {
		option string
		helps  bool
	}{
		{"train.batch_nodes", c.Train.Sampler == neighbors}, {"train.fanouts", c.Train.Sampler == neighbors},
		{"train.batch_edges", anchors && c.Train.Sampler == "edges"}, {"train.fanout", anchors && c.Train.Sampler == "edges"},
		{"train.anchors", anchors && c.Train.Sampler != "edges" && c.Train.Anchors > 0},
		{"candidates.k", learned && c.Candidates.K > 0},
		{"model.lds.steps", learned && joint != nil && slices.ContainsFunc(joint.Body, func(op *ir.Op) bool { return op.Name() == "unroll" })},
		{"model.encoder.hidden", learned && wide("encoder", c.Model.Encoder.Hidden)},
		{"model.hidden", wide("classifier", c.Model.Hidden)},
	} {
		if x.helps {
			lower = append(lower, x.option)
		}
	}
	if last := len(lower) - 1; last > 0 {
		lower = []string{strings.Join(lower[:last], ", ") + " or " + lower[last]}
	}
	for _, option := range lower {
		ways = append(ways, "lower "+option)
	}
	for _, x := range []struct {
		way   string
		helps bool
	}{
		{"set train.anchors to some hundreds", anchors && full && c.Train.Anchors == 0},
		{"take train.sampler=edges", learned && full && takesSeedEdges(m)},
		{"take train.sampler=neighbors, which trains on batches", draws},
		{"leave joint steps out by train.joint_every=0", learned && c.Train.Sampler == neighbors && c.Train.JointEvery > 0},
		{"take less data", len(ways) == 0},
	} {
		if x.helps {
			ways = append(ways, x.way)
		}
	}
	return strings.Join(ways, ", or ")
}

func (n nodeTask) compare(res *Result, refined *graph.Refined) {
	raw := n.Graph.Undirected()
	res.EdgesBefore, res.HomophilyBefore = raw.NumEdges(), known(raw.Homophily(n.Labels))
	if refined == nil {
		return
	}
	g := refined.Graph()
	res.HomophilyAfter = known(g.WeightedHomophily(n.Labels))
	if truth := n.Truth.Undamaged(); truth != nil {
		q := graph.EdgeQuality(raw, truth.Undirected(), g)
		res.Quality = &Quality{known(q.Dropped.Precision()), known(q.Dropped.Recall()), known(q.Recovered.Precision()), known(q.Recovered.Recall())}
	}
}

// start gives the functions of a run what the data set decides.
func (n nodeTask) start(t *trainer) (steps, error) {
	ds, in := n.Dataset, t.prog.inputs
	x, err := FeatureBuffer(ds.X)
	if err != nil {
		return nil, err
	}
	in["x"] = x
	s := &nodeSteps{trainer: t, ds: ds, sampled: map[string]*sampled{}, chunked: map[string]*runtime.Chunked{}}
	if t.chunk > 0 {
		s.files = &scratch.Files{Near: t.opts.Dir}
	}
	st, err := n.structure(t.cfg, t.prog.Module)
	if err != nil {
		return nil, err
	}
	in["g"] = runtime.Graph(st)
	switch {
	case !t.module.Attrs.Bool(models.Weighted):
		if f := t.module.Func("train"); f != nil && f.Arg("w") != nil && t.edges == nil {
			return nil, ir.Placed(ir.At(f.Arg("w"), fmt.Errorf("@train reads weights of edges, %%w, of which the module does not tell: write \"module @%s {edge_weights=true}\"", t.module.Name)))
		}
	case t.edges != nil:
		g := ds.Graph.Undirected()
		t.edges.counts, t.edges.unit = g.Counts(), g.WeightUnit()
	default:
		w, err := ds.ForwardWeights(st)
		if err != nil {
			return nil, err
		}
		if w == nil && t.chunk == 0 { // chunks have ones of their own
			w = st.Spread(nil, nil)
		}
		if w != nil {
			in["w"] = runtime.F32(w, len(w))
		}
	}
	if err := s.learn(nil); err != nil {
		return nil, err
	}
	for _, name := range []string{models.KnownLabels, models.TrainLabels} {
		if !t.prog.takes(name) {
			continue
		}
		known := runtime.Zeros(ds.Graph.N, ds.Classes)
		for _, v := range t.split.Train {
			known.F32[int(v)*ds.Classes+int(ds.Labels[v])] = 1
		}
		in[name] = known
	}
	if t.prog.takes(models.OuterIdx) {
		outer := t.split.Outer
		in[models.OuterIdx], in[models.OuterLabels] = runtime.I64(numbers(nil, outer), len(outer)), runtime.I64(answers(nil, ds.Labels, outer), len(outer))
	}
	if t.prog.takes(models.SelfLoops) {
		loops := ds.Loops
		if loops == nil {
			loops = slices.Repeat([]float32{-1}, ds.Graph.N)
		}
		in[models.SelfLoops] = runtime.F32(loops, len(loops))
	}
	if p := t.optim.Lookup(models.Rarity); p != nil && ds.X.Counts() {
		a := ds.X.Attributes()
		for c, r := range a.Rarity(ds.X.Rows) {
			p.Value.F32[c], p.Best.F32[c] = float32(r), float32(r)
		}
	}
	return s, nil
}

// structure is the graph's for a run: where only batches need gradients, that for functions
// without them, unless edges of the graph are judged.
func (n nodeTask) structure(cfg *config.Config, m *ir.Module) (*graph.Structure, error) {
	if cfg.Train.Sampler == neighbors && !(refines(m) && weighsEdges(cfg, m)) {
		return n.Forward()
	}
	return n.Graph.Structure(), nil
}

func (n nodeTask) refining() []string { return []string{"encode", "probability"} }
