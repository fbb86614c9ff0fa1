package run

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/train"
)

// Deployed is a trained model apart from its data: what gsrc's own executor needs to use it on
// other graphs.
type Deployed struct {
	Model  string
	Module *ir.Module           // @encode, @score and @classify, as far as there are, before any pass
	Params map[string][]float32 // by name, row-major; Module has the shapes
	// Judging is the module as it was trained, whose @encode reads what evidence says of edges; nil
	// where it says nothing.
	Judging *ir.Module
	// Constants are arguments of Module that are frozen: the bounds lo and hi of Eq 18.
	Constants map[string]float32
	// Refinement is how graphs are refined; nil for models that classify on the raw graph, whose
	// edges then weigh RawWeight each.
	Refinement *onnx.Refinement
	RawWeight  float32
	Features   int
	Classes    []string // their numbers in runs of earlier versions: see [Run.ClassNames]
	Directed   bool     // edges lead from source to target only
	// Columns names the columns of tables that the features are; nil where these have no names.
	Columns *schema.Schema

	// Of a model that counts edges by their weights: what becomes of these before, and what one weighs
	// that counts in full; that is 0 of others.
	edgeWeights data.EdgeWeights
	unit        float32
}

// Deploy returns the run's model apart from its data, which are not read. It is an error where
// the model works on its training graph alone, reads weights of edges, or reads of others what only a
// whole graph tells.
func (r *Run) Deploy() (*Deployed, error) {
	d, err := r.deploy()
	if err == nil && d.unit > 0 {
		return nil, r.inPartsError(readsWeights)
	}
	return d, err
}

const readsWeights = "it reads the weights of edges; train it with --ignore-weights"

func (r *Run) inPartsError(format string, args ...any) error {
	return fmt.Errorf("%s in %s cannot be used on other graphs in parts: %s", r.Trained.Model, r.Dir, fmt.Sprintf(format, args...))
}

// deploy is [Run.Deploy], also of models that refine and count edges by their weights.
func (r *Run) deploy() (*Deployed, error) {
	if r.info == nil {
		return nil, errors.New("the run is not one that was opened from its directory")
	}
	t, from := r.Trained, &r.info.Data
	refuse := func(format string, args ...any) (*Deployed, error) { return nil, r.inPartsError(format, args...) }
	weights := data.IgnoreWeights
	switch {
	case weighted(t):
		return refuse(readsWeights)
	case !countsWeights(t):
	case from.WeightUnit == 0:
		return refuse("it counts edges by their weights, and a run of an earlier version does not tell what one weighs that counts in full; make an export (gsrc build), or train it again")
	default:
		weights = data.EdgeWeights(t.Config.Data.Weights)
	}
	module := exported(t, nil) // which reads what edges count
	classify := module.Func("classify")
	switch {
	case from.Nodes == 0 || classify != nil && classify.Arg("batch") != nil:
		return refuse("it is one of whole graphs")
	case !r.info.Inductive:
		return refuse("it reads structural attributes, whose columns mean something for its training graph only; train with --set deepwalk.width=0")
	case from.Columns != nil && from.Columns.Prepared():
		return refuse("it was trained on columns of tables that gsrc prepares; train it on features that are numbers as they are")
	case data.NodeFeatures(t.Config.Data.NodeFeatures).Structural():
		return refuse("it reads what describes nodes in its training graph (data.node_features=%s), which means nothing in another", t.Config.Data.NodeFeatures)
	case !from.Rewired.Inductive():
		return refuse("it was trained on edges that take the place of the data's (data.edges=%s)", from.Rewired.Edges)
	case classify != nil && classify.Arg(models.KnownLabels) != nil:
		return refuse("its classifier reads known labels")
	case models.ClassifiesEmbedding(module):
		return refuse("its classifier reads what the encoder makes of the training graph")
	}
	if c := r.Result.Calibration; c != nil {
		module = models.Temper(module, c.Temperature)
	}
	info := infer.Info{RawWeight: 1}
	describeRefinement(&info, t)
	d := &Deployed{Model: t.Model, Module: module, Params: t.Params, Constants: map[string]float32{}, Refinement: refinementOf(t), RawWeight: info.RawWeight,
		Features: from.Features, Classes: infer.ClassNames(from.ClassNames, from.Classes), Directed: t.Config.Data.Directed, Columns: from.Columns,
		edgeWeights: weights, unit: from.WeightUnit}
	if x := t.Refined; x != nil && !x.Raw {
		if t.Module.Func(models.EncodeJudging) != nil {
			d.Judging = t.Module
		}
		d.Constants["lo"], d.Constants["hi"] = x.Lo, x.Hi
	}
	return d, nil
}

// ClassNames returns what the training data call the classes. They are read where the run, of an
// earlier version, does not say.
func (r *Run) ClassNames() ([]string, error) {
	if names := r.info.Data.ClassNames; names != nil {
		return infer.ClassNames(names, r.info.Data.Classes), nil
	}
	if err := r.LoadData(""); err != nil {
		at := r.info.Data.Source
		if _, gone := os.Stat(at); gone != nil {
			err = gone
		}
		return nil, fmt.Errorf("an earlier version made %s, and what its classes are called is in its training data alone: have these where they were, %s, or train it again: %w", r.Dir, at, err)
	}
	info := r.task.Info()
	return infer.ClassNames(info.ClassNames, info.Classes), nil
}

// Cut compiles a function of the model and cuts it where it reads neighbours:
// [passes.Cut]. It is an error if the function cannot be cut, or reads more than the graph,
// features x and weights w of entries, which of @encode are what judged edges count, and of
// @probability which candidates exist, old, and the embedding.
func (d *Deployed) Cut(name string, target compiler.Target, about passes.DataInfo) (*passes.Parts, error) {
	m := d.Module
	if name == "encode" && d.Judging != nil {
		m = d.Judging
	}
	if name == "encode" && d.counted() {
		return nil, fmt.Errorf("%s cannot be used in parts of a graph: @encode reads the weights of its edges", d.Model)
	}
	p, err := compiler.Compile(m, compiler.Options{Target: target, Funcs: []string{name}, Data: about})
	if err != nil {
		return nil, err
	}
	parts, err := passes.Cut(p.Module, name)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be used in parts of a graph: %w", d.Model, err)
	}
	known := []string{"x", "w"}
	if name == "probability" {
		known = []string{"x", "old", "embedding"}
	}
	for _, a := range passes.WithSetup(p.Module, name).Func(name).Args {
		if _, ok := d.Constants[a.Name]; !ok && !a.Type.IsGraph() && !slices.Contains(known, a.Name) {
			return nil, fmt.Errorf("%s cannot be used in parts of a graph: @%s reads %%%s, which a graph by itself does not have", d.Model, name, a.Name)
		}
	}
	return parts, nil
}

// Embeds returns an error unless the model has an encoder that was trained.
func (d *Deployed) Embeds() error {
	if d.Refinement == nil || d.Module.Func("encode") == nil {
		return fmt.Errorf("the model %s has no encoder that was trained; ecl-gsr trains one", d.Model)
	}
	return nil
}

func (d *Deployed) refuse(what, option string) error {
	return fmt.Errorf("%s cannot refine a graph in parts: %s; train it with --set %s", d.Model, what, option)
}

// Refines returns an error unless a graph is refined over chunks of nodes.
func (d *Deployed) Refines() error {
	switch r := d.Refinement; {
	case r == nil:
		return fmt.Errorf("the model %s classifies on the graph as it is and refines nothing", d.Model)
	case d.counted():
		return d.refuse("it counts edges by their weights", "data.weights=ignore")
	case d.Module.Func("score") == nil && !r.Together:
		var others []string
		for _, m := range models.All {
			if m.Learner != nil && m.Learner.Inductive {
				others = append(others, m.Name)
			}
		}
		return fmt.Errorf("%s has learned the edges of its training graph one by one, and cannot refine another; these can, but for model.encoder.kind=fgp: %s", d.Model, strings.Join(others, ", "))
	}
	return nil
}

// InParts returns an error unless several machines can refine a graph, as [Deployed.Evidence] says.
func (d *Deployed) InParts() error {
	if r := d.Refinement; r != nil && r.Together {
		return fmt.Errorf("the weight that %s gives an edge depends on the other edges of its ends, and several machines judge pairs apart: refine with gsrc refine", d.Model)
	}
	return d.Refines()
}

// counted reports whether edges that the embedding judges count by their weights.
func (d *Deployed) counted() bool {
	return d.Refinement != nil && d.Module.Attrs.Bool(models.Weighted) && d.Module.Func("score").Arg("embedding") != nil
}

// Evidence is how edges are judged by evidence in parts of a graph, as [train.Judge] judges them.
type Evidence struct {
	// Rows gives those by which candidates are searched, Tables what functions of pairs read of nodes,
	// in a graph whose entries weigh a, and Rounds likewise what those read that weigh edges: one for
	// each round, none where robust evidence says nothing.
	Rows, Tables *passes.Parts
	Rounds       []*passes.Parts
	// Pairs has the functions of pairs. Their arguments are the graph, pairs, a, what is known of
	// pairs, and tables.
	Pairs *ir.Module
}

// Evidence compiles what judges edges, and cuts what it reads of nodes.
func (d *Deployed) Evidence() (*Evidence, error) {
	if d.Judging.Param(models.EvidenceSpectrum) != nil {
		return nil, d.refuse("it was trained on a graph of many edges a node, whose evidence reads eigenvectors of the whole graph (spectrum)", "model.edges.judge=embedding")
	}
	open := d.Params[models.EvidenceGate][0] != 0
	names := train.JudgeFunctions(open)
	p, err := compiler.Compile(d.Judging, compiler.Options{Target: compiler.Training, Funcs: names})
	if err != nil {
		return nil, err
	}
	e := &Evidence{Pairs: p.Module.Clone()}
	cut := func(name string) (parts *passes.Parts) {
		if err == nil {
			parts, err = passes.Cut(p.Module, name)
		}
		return parts
	}
	tables := func(name string) *passes.Parts { return cut(p.Module.Func(name).Attrs.Str(passes.Setup)) }
	e.Rows, e.Tables = cut("rows"), tables(models.SourcesFunc)
	for r := 1; open && r <= models.EvidenceRounds; r++ {
		e.Rounds = append(e.Rounds, tables(models.WeightFunc(r)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s cannot judge edges in parts of a graph: %w", d.Model, err)
	}
	e.Pairs.Funcs = slices.DeleteFunc(e.Pairs.Funcs, func(f *ir.Func) bool { return f.Name == "rows" || !slices.Contains(names, f.Name) })
	for _, f := range e.Pairs.Funcs {
		// All functions compute their tables in the same way, with the same names for these.
		delete(f.Attrs, passes.Setup)
		uses := f.Uses()
		f.Args = slices.DeleteFunc(f.Args, func(a *ir.Value) bool { return a.Name == "x" && uses[a] == 0 })
		for _, a := range f.Args {
			switch given := e.Tables.Results[a.Name]; {
			case !a.Attrs.Bool(passes.Hoisted):
			case a.Type.Dims[0] == f.Arg("g").Type.Entries():
				a.Name = "a" // ones, where the graph is judged as it is
			case given == "":
				return nil, fmt.Errorf("@%s reads %%%s, which is no table of @%s", f.Name, a.Name, models.SourcesFunc)
			}
		}
	}
	return e, nil
}
