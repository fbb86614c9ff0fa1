package train

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
)

// What the steps of a program must be for batches of drawn neighbours, and what they are compiled to.

// fanOutsOf reads train.fanouts, which is by layer, in the order of hops from the seeds.
// An encoder takes as many from the last one's on as it has layers, the first one's again for more.
func fanOutsOf(c *config.Config, hops int, of, model string) ([]int, error) {
	if c.Train.FanOuts == "" {
		return slices.Repeat([]int{c.Train.FanOut}, hops), nil
	}
	var list []int
	for _, s := range strings.Split(c.Train.FanOuts, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 0 {
			return nil, fmt.Errorf("train: train.fanouts is %q: give a number for each layer, such as 15,10,5", c.Train.FanOuts)
		}
		list = append(list, n)
	}
	slices.Reverse(list)
	if of == "encode" {
		for len(list) < hops {
			list = append(list, list[len(list)-1])
		}
		list = list[:hops]
	}
	if len(list) != hops {
		return nil, fmt.Errorf("train: %s reads neighbours %d steps away, for each of which train.fanouts needs a number: it has %d", model, hops, len(list))
	}
	return list, nil
}

// noSampling is the error of a model that the sampler's batches cannot train.
func noSampling(t *trainer, sampler, why string) error {
	return fmt.Errorf("train: train.sampler=%s does not work for %s: %s; take full", sampler, t.job.Model, why)
}

// takesSeedEdges reports whether contrastive steps may read a sub-graph around seed edges: they have
// samples, and no candidates, which are the whole graph's.
func takesSeedEdges(m *ir.Module) bool {
	f := m.Func("pretrain")
	return f != nil && f.Arg("anchors") != nil && f.Arg("c") == nil
}

// drawnBy returns how many neighbours are drawn of a node in the steps of a function, by hop from
// the seeds: those of the graph for the encoder, or else those that predictions read ([stepHops]), or of
// these the ones by which the function is divided: a loss may read no neighbours that smooth predictions.
func drawnBy(t *trainer, name string) (fanouts []int, err error) {
	of := "classify"
	if name == "pretrain" || name == "encode" {
		of = "encode"
	}
	p, err := compiler.Compile(t.module, compiler.Options{Target: compiler.Inference, Funcs: []string{of}})
	if err != nil {
		return nil, err
	}
	hops, err := compiledHops(p.Module.Func(of))
	if err != nil {
		return nil, noSampling(t, neighbors, err.Error())
	}
	return fanOutsOf(t.cfg, stepHops(t.prog.Module, name, hops), of, t.job.Model)
}

// stepHops is how many steps away from the seeds nodes are drawn for a function, where predictions read
// so many: as many as it is divided by, or else what a program's loss reads, if that is more.
func stepHops(prog *ir.Module, name string, predicted int) int {
	if n := divided(prog.Func(name)); n > 0 || name != "train" {
		return cmp.Or(n, predicted)
	}
	f := passes.WithSetup(prog, name).Func(name)
	hops := hopsOf(f)
	for _, r := range f.Results {
		if r.Value.Type.Rank() == 0 && !strings.HasPrefix(r.Name, passes.GradPrefix) {
			predicted = max(predicted, hops[r.Value])
		}
	}
	return predicted
}

// divided is by how many hops a function is, or 0.
func divided(f *ir.Func) (hops int) {
	if f == nil {
		return 0
	}
	for k := range f.Args {
		if f.Arg(passes.HopGraph(k)) != nil {
			hops = k + 1
		}
	}
	return hops
}

// drawing returns the functions whose steps draw, of those that training runs.
func drawing(m *ir.Module, cfg *config.Config) (names []string) {
	for _, x := range runs(m, cfg) {
		if slices.Contains([]string{"train", "pretrain", "fit", "joint"}, x.name) {
			names = append(names, x.name)
		}
	}
	return names
}

// checkDrawing returns an error if the steps of a model cannot draw.
func checkDrawing(t *trainer) error {
	if !refines(t.prog.Module) {
		return nil
	}
	if t.opts.Device != nil {
		return noSampling(t, neighbors, "what it computes of all nodes and candidates is on the CPU")
	}
	encode := t.prog.Func("encode")
	own := encode == nil || encode.Arg("p") != nil || encode.Result(models.AlsoEmbedding) != nil
	for _, f := range t.module.Funcs {
		samples := slices.ContainsFunc(f.Body, func(op *ir.Op) bool { return op.Name() == "gsr.relaxed_bernoulli" })
		own = own || !samples && (f.Name == "fit" || f.Name == "joint") || f.Name == "similar" || slices.ContainsFunc(f.Results, func(r ir.Result) bool { return strings.HasPrefix(r.Name, models.NextPrefix) })
	}
	if own && !t.edges.fixed {
		return noSampling(t, neighbors, "it learns edges, in steps that read all nodes")
	}
	if t.cfg.Model.Encoder.Cut > 0 && !t.edges.fixed {
		return noSampling(t, neighbors, "what is drawn of a node's edges weighs together what all do, and model.encoder.cut asks what each counts")
	}
	return nil
}

// numbering are arguments of steps that number nodes, in a batch those of the batch.
var numbering = []string{"train_idx", "anchors", passes.DrawnSeeds}

// readsWhole returns an operation of a function that reads a value of all nodes, or of all entries,
// of which a batch has some; nil if there is none. In a step it may take rows by their numbers.
func readsWhole(f *ir.Func, step bool) (*ir.Op, *ir.Value) {
	var rows []ir.Dim
	for _, a := range f.Args {
		if a.Type.IsGraph() {
			rows = append(rows, a.Type.Dims...)
		} else if a.Name == "x" {
			rows = append(rows, a.Type.Dims[0])
		}
	}
	ofRows := func(v *ir.Value) bool {
		return v != nil && !v.Type.IsGraph() && v.Type.Rank() > 0 && slices.Contains(rows, v.Type.Dims[0])
	}
	for _, op := range f.Body {
		if op.Name() == "spmm" && op.Bool("transpose") { // entries out of a node are drawn by chance
			return op, op.Operands[3]
		}
		if step && (op.Name() == "grad" || op.Name() == "gather" && !ofRows(op.Result()) && slices.Contains(numbering, op.Operands[1].Name)) {
			continue
		}
		for i, v := range op.Operands {
			if ofRows(v) && (op.Reads(i) == ir.ReadAll || op.Reads(i) == ir.ReadPairs) {
				return op, v
			}
		}
	}
	return nil, nil
}

// compiledHops is how many steps away the nodes are that a function reads for one of them.
func compiledHops(f *ir.Func) (int, error) {
	if op, _ := readsWhole(f, false); op != nil {
		return 0, fmt.Errorf("%s gives every node something of the whole graph", op.Name())
	}
	hops := 0
	for _, n := range hopsOf(f) {
		hops = max(hops, n)
	}
	return hops, nil
}

// hopsOf is by value how many steps away the nodes are that are read for one of its rows.
func hopsOf(f *ir.Func) map[*ir.Value]int {
	depth := map[*ir.Value]int{}
	for _, op := range f.Body {
		d := 0
		for i, v := range op.Operands {
			if v == nil || v.Type.IsGraph() {
				continue
			}
			switch op.Reads(i) {
			case ir.ReadSources:
				d = max(d, depth[v]+1)
			case ir.ReadEntries:
				if v.Def != nil && !(f.Name == "encode" && v.Def.Name() == "edge_ones") { // which batches weigh
					d = max(d, depth[v], 1)
				}
			default:
				d = max(d, depth[v])
			}
		}
		for _, r := range op.Results {
			depth[r] = d
		}
	}
	return depth
}

// sampledModule is the model on weighted edges as far as it counts them: that of the zoo as it is built for
// these, a program as [passes.WeighDrawn] has it.
func (n nodeTask) sampledModule(t *trainer, names []string) *ir.Module {
	if m, err := models.Lookup(t.job.Model); err == nil {
		o := n.modelOptions(m, t.cfg)
		if zoo, err := m.Program(o, false); err == nil && zoo.String() == t.module.String() {
			o.EdgeWeights = true
			if weighted, err := m.Program(o, false); err == nil && n.Graph.Weights == nil {
				return weighted
			}
			return t.module // it has no place for weights, or reads those of the data
		}
	}
	given := t.module
	for _, name := range names {
		var all bool
		if given, all = passes.WeighDrawn(given, name); !all && t.opts.Warn != nil && !t.opts.Resume {
			if t.module.Func(name).Arg("w") != nil {
				t.opts.Warn(fmt.Sprintf("@%s sums over neighbours with values that %%w does not reach, or not once as a factor: in %%w each of the edges that train.sampler = neighbors draws weighs what it stands for, and these sums are not those of the whole graph; multiply what is summed by %%w once", name))
				continue
			}
			t.opts.Warn(fmt.Sprintf("@%s sums over neighbours with values that no weight of edges reaches, or more than one might: in these sums each of the edges that train.sampler = neighbors draws counts as one, and they are not those of the whole graph; give it the argument %%w: f32[E], multiply the values by it once, and write {edge_weights=true} behind the name of the module", name))
		}
	}
	return given
}

// compileSteps refuses a sampler that the model cannot train by. For a run on batches it puts
// functions of its steps in the place of those on the whole graph: of the model on weighted edges,
// whose weights make up for what is not drawn, with every value computed for the nodes that reach
// the seeds ([passes.ByHop]).
func (n nodeTask) compileSteps(t *trainer) error {
	if t.cfg.Train.Sampler == "edges" && t.edges != nil && !t.edges.fixed && t.prog.takes("anchors") && !takesSeedEdges(t.prog.Module) {
		return noSampling(t, "edges", "its contrastive steps learn edges of all nodes")
	}
	if t.cfg.Train.Sampler != neighbors {
		return nil
	}
	if err := checkDrawing(t); err != nil {
		return err
	}
	names := drawing(t.prog.Module, t.cfg)
	weighted := n.sampledModule(t, names)
	if t.edges != nil && !t.edges.fixed {
		names = append(names, "probability") // over chunks, with bounds of the whole graph
	}
	for _, name := range names {
		if err := n.compileStep(t, name, weighted); err != nil {
			return err
		}
		if _, err := drawnBy(t, name); err != nil {
			return err
		}
	}
	return nil
}

func (n nodeTask) compileStep(t *trainer, name string, from *ir.Module) (err error) {
	seeds := map[string]string{"train": "train_idx", "pretrain": "anchors", "fit": passes.DrawnSeeds}[name]
	if name == "probability" {
		from = t.module
	}
	drawn := from.Clone()
	if err := passes.OnDrawn(drawn, name); err != nil {
		return err
	}
	if t.edges != nil {
		from = drawn
	}
	about := n.DataInfo(t.device, t.cfg, t.split)
	for _, d := range []string{"N", "E", "T", "B"} {
		delete(about.Dims, d)
	}
	o := compiler.Options{Target: compiler.Training, Without: t.opts.Without, Funcs: []string{name}, Data: about, Passes: passes.BeforeHops()}
	lowered, err := compiler.Compile(from, o)
	if err != nil {
		return err
	}
	if name != "probability" {
		o.Passes = append(o.Passes, "dce")
		step, err := compiler.Compile(drawn, o) // also where predictions of all of a batch's nodes are held against each other
		if err != nil {
			return err
		}
		op, v := readsWhole(step.Module.Func(name), true)
		switch {
		case op != nil && op.Name() == "spmm":
			return noSampling(t, neighbors, fmt.Sprintf("@%s sums %%%s over the entries out of a node (spmm {transpose=true}), of which a batch has only those that lead to nodes that it drew; sum over the entries into it, of a graph whose edges are turned round", name, v.Name))
		case op != nil:
			return noSampling(t, neighbors, fmt.Sprintf("@%s reads all rows of %%%s (%s), of which a batch has some; let it read those of training nodes (gather by %%train_idx)", name, v.Name, op.Name()))
		}
	}
	if seeds != "" {
		inHops := lowered.Module.Clone()
		if _, err := passes.ByHop(inHops, name, seeds, about); err == nil { // others compute all rows
			lowered.Module = inHops
		}
	}
	o.Passes = nil
	prog, err := compiler.Compile(lowered.Module, o)
	if err != nil {
		return err
	}
	for _, f := range prog.Module.Funcs {
		for _, a := range f.Args {
			if name != "probability" && !a.Attrs.Bool(passes.Hoisted) && !slices.Contains(drawnInputs, a.Name) && !strings.HasPrefix(a.Name, "hop") {
				return noSampling(t, neighbors, "it reads "+a.Name)
			}
		}
	}
	return t.prog.Module.Take(prog.Module, name, t.prog.Func(name).Attrs.Str(passes.Setup))
}

// drawnInputs are what functions may read of a batch, beside its hops.
var drawnInputs = []string{"x", "g", "w", "c", "p", "old", "evidence", "x_struct", "anchors", "train_idx", "labels", "targets", "ramp", models.SelfLoops,
	passes.DrawnSeeds, passes.DrawnWeights, passes.DrawnLo, passes.DrawnHi}
