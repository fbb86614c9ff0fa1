package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/models/pyg"
	"github.com/gsrc-dev/gsrc/train"
)

// ImportOptions say what weights are and for what data. Weights and Train.Data are
// required.
type ImportOptions struct {
	// Weights is a safetensors file: a state dict of PyTorch Geometric, or, where
	// Train.Model names a model of the zoo, what gsrc's own runs call
	// weights.safetensors.
	Weights string
	// Spec is a TOML file of settings; empty is none. Settings are single ones, as
	// key=value, and override it; Order names the layers in the order in which they
	// run, where their names do not say it. See package models/pyg.
	Spec     string
	Settings []string
	Order    []string
	// Expect is a safetensors file with a tensor logits [N, classes]: what the
	// model gave for the data where it was trained. The import fails where gsrc
	// computes something else by more than 1e-5 + 1e-4·max|b|.
	Expect string
	// Train has the data, the configuration and the run directory. Its Model is
	// empty for a state dict of PyTorch Geometric.
	Train TrainOptions
	Log   func(format string, args ...any) // gets what was read; may be nil
}

// ImportedModel is the name of the models that [Import] makes of state dicts.
const ImportedModel = "pyg"

// Import makes a run of weights that were trained elsewhere, which [Run.Build],
// [Open] and the commands take like one of [Train].
func Import(ctx context.Context, o ImportOptions) (*Run, error) {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Weights == "" {
		return nil, errors.New("there are no weights to import: name their file in Weights")
	}
	file, err := safetensors.ReadFile(o.Weights)
	if err != nil {
		if strings.Contains(err.Error(), "are not supported; F32") {
			err = fmt.Errorf("%w; save float32: {k: v.float() for k, v in model.state_dict().items()}", err)
		}
		return nil, err
	}
	var stack *pyg.Stack
	if o.Train.Model == "" {
		if stack, err = o.stack(file); err != nil {
			return nil, fmt.Errorf("%s: %w", o.Weights, err)
		}
		if o.Log("%s", describeStack(stack)); o.Expect == "" {
			o.Log("warning: tensors do not tell all arguments, and nothing compares the logits: say with --layer what differs above, and prove it with --expect")
		}
	} else if o.Spec != "" || len(o.Settings) > 0 || len(o.Order) > 0 {
		return nil, errors.New("settings and an order of layers are for state dicts of PyTorch Geometric; the model's own are options (--set)")
	}
	setup, params, err := o.prepare(file, stack)
	if err != nil {
		return nil, err
	}
	t := o.Train
	finish := func(dir string) (*Run, error) {
		res, err := train.FromPretrained(ctx, train.Job{Model: setup.Model, Module: setup.Module, Task: setup.task}, setup.Config, params, train.Options{Dir: dir, Force: t.Force, Version: version.String()})
		if err != nil {
			return nil, err
		}
		return newRun(dir, res, setup.task), nil
	}
	if o.Expect != "" { // nothing is written before it holds
		run, err := finish("")
		if err == nil {
			err = o.compare(run)
		}
		if err != nil {
			return nil, err
		}
	}
	return finish(t.Out)
}

// stack reads a state dict.
func (o *ImportOptions) stack(file *safetensors.File) (*pyg.Stack, error) {
	var tensors []pyg.Tensor
	for _, t := range file.Tensors {
		data, ok := t.Data.([]float32)
		if !ok && !strings.HasSuffix(t.Name, "num_batches_tracked") {
			return nil, fmt.Errorf("tensor %q holds %T, and parameters are float32", t.Name, t.Data)
		}
		tensors = append(tensors, pyg.Tensor{Name: t.Name, Shape: t.Shape, Data: data})
	}
	settings, order, err := readSpec(o.Spec)
	if err != nil {
		return nil, err
	}
	for _, text := range o.Settings {
		key, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, &OptionError{fmt.Errorf("--layer %s: write it as key=value, for example activation=elu or conv2.concat=false", text)}
		}
		settings = append(settings, pyg.Setting{Key: strings.TrimSpace(key), Value: strings.TrimSpace(value)})
	}
	if len(o.Order) > 0 {
		order = o.Order
	}
	return pyg.Read(tensors, pyg.Options{Settings: settings, Order: order})
}

// readSpec reads a TOML file of settings: keys for all layers, a table for each
// layer that has its own, and order, a list of layers.
func readSpec(path string) (settings []pyg.Setting, order []string, err error) {
	if path == "" {
		return nil, nil, nil
	}
	text, err := budget.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	tree, _, err := config.Decode(string(text))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	// What is said for all layers comes before what is said for one.
	var walk func(prefix string, tree map[string]any) error
	walk = func(prefix string, tree map[string]any) error {
		var tables []string
		for _, k := range slices.Sorted(maps.Keys(tree)) {
			switch v := tree[k].(type) {
			case map[string]any:
				tables = append(tables, k)
			case []any:
				if prefix != "" || k != "order" {
					return fmt.Errorf("%s: %s%s is a list; only order is one", path, prefix, k)
				}
				for _, name := range v {
					order = append(order, fmt.Sprint(name))
				}
			default:
				settings = append(settings, pyg.Setting{Key: prefix + k, Value: fmt.Sprint(v)})
			}
		}
		for _, k := range tables {
			if err := walk(prefix+k+".", tree[k].(map[string]any)); err != nil {
				return err
			}
		}
		return nil
	}
	err = walk("", tree)
	return settings, order, err
}

// prepare returns what the parameters are for, and the parameters.
func (o *ImportOptions) prepare(file *safetensors.File, stack *pyg.Stack) (*Setup, map[string][]float32, error) {
	t := o.Train
	if stack == nil {
		if m, err := models.Open(t.Model); err == nil && m.Refines {
			return nil, nil, fmt.Errorf("%s learns a graph, which its weights do not hold; copy its run directory instead", t.Model)
		}
		s, err := Prepare(t)
		if err != nil {
			return nil, nil, err
		}
		params := map[string][]float32{}
		for _, x := range file.Tensors {
			p := s.Module.Param(x.Name)
			data, ok := x.Data.([]float32)
			if p == nil || !ok {
				return nil, nil, fmt.Errorf("%s: the model %s has no float32 parameter %q", o.Weights, t.Model, x.Name)
			}
			if want, err := p.Type.Shape(nil); err != nil || !slices.Equal(want, x.Shape) {
				return nil, nil, fmt.Errorf("%s: tensor %q has the shape %v, the model %s with these options needs %v", o.Weights, x.Name, x.Shape, t.Model, want)
			}
			params[x.Name] = data
		}
		return s, params, nil
	}
	t.Model = "gcn" // for the data; its program is not used
	s, err := Prepare(t)
	if err != nil {
		return nil, nil, err
	}
	info := s.task.Info()
	prepared := preparedColumns(s.task)
	if have, want := info.Features.Cols, stack.In(); have != want {
		return nil, nil, fmt.Errorf("%s has %d features, and %s takes %d%s", info.Name, have, stack.Layers[0].Name, want, prepared)
	}
	if prepared != "" && o.Expect == "" {
		o.Log("warning: the features may be others than those that the weights were trained on%s", prepared)
	}
	if have, want := info.Classes, stack.Out(); have != want {
		return nil, nil, fmt.Errorf("%s has %d classes, and %s gives %d columns", info.Name, have, stack.Layers[len(stack.Layers)-1].Name, want)
	}
	weights := s.Data != nil && s.Data.Graph.Weights != nil
	m := stack.Module(ImportedModel, weights && stack.CountsWeights() && s.Data.Loops != nil)
	switch {
	case weights && stack.CountsWeights():
		m.Attrs[models.Weighted] = true
	case weights:
		o.Log("the weights of edges are not read: of PyTorch Geometric's layers here, GCNConv alone takes them")
	}
	return newSetup(ImportedModel, s.task, s.Config, m), stack.Params, nil
}

// preparedColumns says for a message that features are columns of tables which gsrc prepares; it is empty
// where they are not.
func preparedColumns(t task) string {
	ds, _ := t.data()
	if ds == nil || ds.Columns == nil || !ds.Columns.Prepared() {
		return ""
	}
	return "; gsrc prepares the columns of the table: where the model was trained on them as they are, give --no-prepare (data.prepare=false)"
}

// describeStack is a table of the layers: what was read from the tensors and what is
// taken for granted.
func describeStack(s *pyg.Stack) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "layer\tkind\tcolumns\tactivation\targuments\n")
	for i, l := range s.Layers {
		var args []any // names and values
		switch l.Kind {
		case pyg.GCN:
			args = []any{"bias", l.Bias, "normalize", l.Normalize, "add_self_loops", l.SelfLoops, "improved", l.Improved}
		case pyg.GAT:
			args = []any{"heads", l.Heads, "concat", l.Concat, "add_self_loops", true, "negative_slope", l.Slope, "bias", l.Bias, "residual", l.Residual}
		case pyg.SAGE:
			args = []any{"aggr", l.Aggregate, "bias", l.Bias, "root_weight", l.Root, "normalize", l.Normalize}
		case pyg.Linear:
			args = []any{"bias", l.Bias}
		case pyg.BatchNorm:
			args = []any{"eps", l.Eps}
		}
		var given []string
		for arg := range slices.Chunk(args, 2) {
			given = append(given, fmt.Sprintf("%v=%v", arg...))
		}
		fmt.Fprintf(w, "%s\t%s\t%d → %d\t%s\t%s\n", l.Name, l.Kind, l.In, l.Out, s.ActivationBehind(i), strings.Join(given, " "))
	}
	w.Flush() // to memory: it cannot fail
	if s.Features != "none" {
		fmt.Fprintf(&b, "features are normalised by rows (%s) first\n", s.Features)
	}
	return strings.TrimRight(b.String(), "\n")
}

// compare holds the run's logits against those of another program.
func (o *ImportOptions) compare(run *Run) error {
	f, err := safetensors.ReadFile(o.Expect)
	if err != nil {
		return err
	}
	info := run.task.Info()
	want, err := safetensors.Get[float32](f, "logits", len(info.Labels), info.Classes)
	if err != nil {
		return fmt.Errorf("%s: %w", o.Expect, err)
	}
	worst, at, largest := 0.0, 0, 0.0
	for i, b := range want {
		d := math.Abs(float64(run.Trained.Logits[i]) - float64(b))
		if d > worst || math.IsNaN(d) {
			worst, at = d, i
		}
		largest = math.Max(largest, math.Abs(float64(b)))
	}
	bound := 1e-5 + float64(1e-4*largest)
	if k := info.Classes; !(worst <= bound) {
		hint := ""
		if o.Train.Model == "" { // gsrc's own models are trained on prepared columns
			hint = preparedColumns(run.task)
		}
		return fmt.Errorf("the imported model does not compute what %s says: the logit of %s %d for class %d is %g, there it is %g, and the bound is %.2g; compare the settings with the model's code%s", o.Expect, info.Item, at/k, at%k, run.Trained.Logits[at], want[at], bound, hint)
	}
	o.Log("the logits are those of %s: max |a-b| %.2e, bound %.2e", o.Expect, worst, bound)
	return nil
}
