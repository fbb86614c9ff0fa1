package train

import (
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// inputs are the values that functions are bound to by the names of their
// arguments.
type inputs map[string]*runtime.Buffer

// function is a function of the program with what training needs of it.
type function struct {
	*runtime.Function
	reads   map[string]bool // its arguments
	terms   []term          // scalar results that are not gradients, the loss first
	updates []update        // one for each optimizer group
	moved   []moved         // parameters that follow results
	padded  bool            // it takes batches of graphs that are padded

	// Results where they lie, from the first step on.
	results struct {
		terms  []*runtime.Buffer
		values []float32
		grads  []*runtime.Buffer // of all groups
		names  []string          // of their parameters
		moved  []*runtime.Buffer
	}

	// ahead, if set, is called with the number of the next step when this one is queued:
	// what it prepares takes no time where the device computes meanwhile.
	ahead func(step int) error
}

// term is a part of the loss.
type term struct {
	name  string
	value float32
}

// update is what a step changes in one group.
type update struct {
	group  *optim.Group
	params []*optim.Param
	names  []string // of the results that are the gradients
	adam   []runtime.AdamParam
}

// moved is a parameter that follows a result: p ← 0.9·p + 0.1·result, as the
// statistics of batch normalisation do (momentum 0.1, as PyTorch has it).
type moved struct {
	p      *optim.Param
	result string
}

// gradPrefix begins the names of the results that are gradients.
const gradPrefix = "grad."

// function returns a function of the program, made on first use, with its
// parameters and all known inputs bound.
func (t *trainer) function(name string) (*function, error) {
	if f := t.fns[name]; f != nil {
		return f, nil
	}
	if err := t.giveState(); err != nil {
		return nil, err
	}
	r, err := runtime.NewFunction(t.prog, name, runtime.Options{Device: t.device, NewExecutor: t.opts.NewExecutor, Pool: t.pool, Seed: t.stream("train"), Trace: t.opts.Trace})
	if err != nil {
		return nil, err
	}
	f := &function{Function: r, reads: map[string]bool{}, padded: t.prog.Func(name).Attrs.Bool(passes.Padded)}
	for _, n := range r.Inputs() {
		f.reads[n] = true
	}
	for _, p := range t.optim.Params {
		if f.reads[p.Name] {
			delete(f.reads, p.Name)
			if err := r.Bind(p.Name, p.Value); err != nil {
				return nil, err
			}
		}
	}
	for _, n := range r.Inputs() {
		if b := t.inputs[n]; b != nil && f.reads[n] {
			if err := r.Bind(n, b); err != nil {
				return nil, err
			}
		}
	}
	if err := t.outputs(f, t.prog.Func(name)); err != nil {
		return nil, err
	}
	t.fns[name] = f
	return f, nil
}

// outputs sorts a function's results into loss terms and gradients.
func (t *trainer) outputs(f *function, def *ir.Func) error {
	for _, r := range def.Results {
		if name, ok := strings.CutPrefix(r.Name, models.RunningPrefix); ok {
			p := t.optim.Lookup(name)
			if p == nil {
				return fmt.Errorf("train: @%s has the result %s, which moves no parameter", def.Name, r.Name)
			}
			f.moved = append(f.moved, moved{p, r.Name})
			continue
		}
		if !strings.HasPrefix(r.Name, gradPrefix) {
			if r.Value.Type.Rank() == 0 {
				f.terms = append(f.terms, term{name: r.Name})
			}
			continue
		}
		name := strings.TrimPrefix(r.Name, gradPrefix)
		p := t.optim.Lookup(name)
		if p == nil {
			return fmt.Errorf("train: @%s has the gradient %s of no parameter", def.Name, r.Name)
		}
		k := slices.IndexFunc(f.updates, func(u update) bool { return u.group == p.Group })
		if k < 0 {
			k = len(f.updates)
			f.updates = append(f.updates, update{group: p.Group})
		}
		u := &f.updates[k]
		u.params = append(u.params, p)
		u.names = append(u.names, r.Name)
		u.adam = append(u.adam, runtime.AdamParam{W: p.Value, M: p.M, V: p.V, WeightDecay: p.Decay})
	}
	if at := slices.IndexFunc(f.terms, func(x term) bool { return x.name == "loss" }); at > 0 {
		f.terms[0], f.terms[at] = f.terms[at], f.terms[0]
	}
	return nil
}

// drop frees a function that is not needed any more.
func (t *trainer) drop(name string) {
	if f := t.fns[name]; f != nil {
		f.Close()
		delete(t.fns, name)
		goruntime.GC() // what comes next takes this memory, instead of more
	}
}

// bind gives an input its value in every function that reads it, those made
// later included. An input that was changed in place must be bound again.
func (t *trainer) bind(name string, b *runtime.Buffer) error {
	t.inputs[name] = b
	for fn, f := range t.fns {
		if f.reads[name] && !(fn == "classify" && evaluationInputs[name]) {
			if err := f.Bind(name, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindGraph binds a structure that was rebuilt, in the buffer that it had.
func (t *trainer) bindGraph(name string, st *graph.Structure) error {
	b := t.inputs[name]
	if b == nil {
		b = runtime.Graph(st)
	}
	b.Graph, b.Dims[0], b.Dims[1] = st, st.N, st.E
	return t.bind(name, b)
}

// bindVector binds elements that changed, in the buffer that they had.
func (t *trainer) bindVector(name string, x []float32) error {
	b := t.inputs[name]
	if b == nil {
		b = runtime.F32(x, len(x))
	}
	b.F32, b.Dims[0] = x, len(x)
	return t.bind(name, b)
}

// evaluationInputs are the arguments of @classify that are not what they are in
// other functions: the graph that the classifier is evaluated on and its
// weights.
var evaluationInputs = map[string]bool{"g": true, "w": true}

// bindData provides what the data set decides.
func (t *trainer) bindData() error {
	ds := t.task.Data
	t.inputs = inputs{"ramp": runtime.Scalar(1)}
	if ds == nil { // batches bring their own
		return nil
	}
	x, err := featureBuffer(ds.X)
	if err != nil {
		return err
	}
	idx := make([]int64, len(t.split.Train))
	labels := make([]int64, len(idx))
	for i, v := range t.split.Train {
		idx[i], labels[i] = int64(v), int64(ds.Labels[v])
	}
	t.inputs["x"] = x
	t.inputs["g"] = runtime.Graph(ds.Graph.Structure())
	t.inputs["train_idx"] = runtime.I64(idx, len(idx))
	if slices.ContainsFunc(t.prog.Funcs, func(f *ir.Func) bool { return f.Arg("targets") != nil }) {
		t.inputs["targets"] = runtime.F32(balanced(labels, t.classes), len(labels), t.classes)
	}
	t.inputs["labels"] = runtime.I64(labels, len(labels))
	return nil
}

// balanced returns [len(labels), classes], in the column of each node's class what
// the node counts: see [shares].
func balanced(labels []int64, classes int) []float32 {
	share := shares(labels, classes)
	out := make([]float32, len(labels)*classes)
	for i, c := range labels {
		out[i*classes+int(c)] = float32(share[c])
	}
	return out
}

// shares returns what a member of each class counts: as much together for each class
// that has any, and 1 for all.
func shares(labels []int64, classes int) []float64 {
	counts, present := make([]int, classes), 0
	for _, c := range labels {
		if counts[c] == 0 {
			present++
		}
		counts[c]++
	}
	out := make([]float64, classes)
	for c, n := range counts {
		if n > 0 {
			out[c] = 1 / float64(present*n)
		}
	}
	return out
}

func featureBuffer(x *data.Features) (*runtime.Buffer, error) {
	if x.IsSparse() {
		return runtime.Sparse(x.Rows, x.Cols, x.RowPtr, x.Col, x.Val)
	}
	return runtime.F32(x.Dense, x.Rows, x.Cols), nil
}

// step runs a function at a step of the run and moves the parameters along its
// gradients. It returns the loss; nothing has changed where it fails.
func (t *trainer) step(f *function, step int) (float64, error) {
	if err := f.Run(uint64(step)); err != nil {
		return 0, err
	}
	r := &f.results
	if r.values == nil {
		f.findResults()
	}
	if f.ahead != nil {
		if err := f.ahead(step + 1); err != nil {
			return 0, err
		}
	}
	bad, err := t.device.Finite(r.terms, r.values, r.grads)
	if err != nil {
		return 0, fmt.Errorf("@%s at step %d: %w", f.Name(), step, err)
	}
	for i, v := range r.values {
		f.terms[i].value = v
	}
	if err := t.checkTerms(f, step); err != nil {
		return 0, err
	}
	if bad >= 0 {
		return 0, t.nonFinite(f, step, "the gradient of $"+r.names[bad])
	}
	for _, u := range f.updates {
		g := u.group
		g.Steps++
		if err := t.device.Adam(u.adam, float32(g.LR), optim.Beta1, optim.Beta2, optim.Epsilon, g.Steps); err != nil {
			return 0, err
		}
	}
	for i, m := range f.moved {
		if err := t.device.EMAUpdate(m.p.Value, r.moved[i], 0.1); err != nil {
			return 0, err
		}
	}
	return f.loss()
}

// findResults enters where the function's results lie, which has run.
func (f *function) findResults() {
	r := &f.results
	r.values = make([]float32, len(f.terms))
	for _, x := range f.terms {
		r.terms = append(r.terms, f.Result(x.name))
	}
	for _, u := range f.updates {
		for i, name := range u.names {
			u.adam[i].G = f.Result(name)
			r.grads, r.names = append(r.grads, u.adam[i].G), append(r.names, u.params[i].Name)
		}
	}
	for _, m := range f.moved {
		r.moved = append(r.moved, f.Result(m.result))
	}
}

// loss returns the last step's.
func (f *function) loss() (float64, error) {
	if len(f.terms) == 0 {
		return 0, fmt.Errorf("train: @%s has no loss", f.Name())
	}
	return float64(f.terms[0].value), nil
}

// finite reports whether no element is NaN or infinite: x·0 is 0 for those that
// are finite and NaN for others.
func finite(x []float32) bool {
	var a, b, c, d float32
	for len(x) >= 4 {
		a += float32(x[0] * 0)
		b += float32(x[1] * 0)
		c += float32(x[2] * 0)
		d += float32(x[3] * 0)
		x = x[4:]
	}
	for _, v := range x {
		a += float32(v * 0)
	}
	return a+b+c+d == 0
}
