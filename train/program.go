package train

import (
	"fmt"
	"maps"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// program is a compiled module on a device: its functions, made on first use, with the
// parameters and the inputs that they read.
type program struct {
	*ir.Module
	options runtime.Options
	params  *optim.Set
	fns     map[string]*function
	inputs  map[string]*runtime.Buffer // by the names of arguments
	turns   bool                       // functions take turns
	checked [1]*runtime.Buffer         // for NaN and infinities
}

// function is a function of the program with what training needs of it.
type function struct {
	*runtime.Function
	reads   map[string]bool // its arguments
	learned map[string]bool // the parameters that it reads
	current bool            // its results are those of what it reads, which has not changed since
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
func (p *program) function(name string) (*function, error) {
	if f := p.fns[name]; f != nil {
		return f, nil
	}
	if turn := turns[name]; p.turns && turn != 0 {
		for other := range p.fns {
			if turns[other] != 0 && turns[other] != turn {
				p.drop(other)
			}
		}
	}
	if err := p.params.ToDevice(p.options.Device); err != nil {
		return nil, err
	}
	r, err := runtime.NewFunction(p.Module, name, p.options)
	if err != nil {
		return nil, err
	}
	f := &function{Function: r, reads: map[string]bool{}, learned: map[string]bool{}, padded: p.Func(name).Attrs.Bool(passes.Padded)}
	for _, n := range r.Inputs() {
		b := p.inputs[n]
		if x := p.params.Lookup(n); x != nil {
			b, f.learned[n] = x.Value, true
		} else {
			f.reads[n] = true
		}
		if b != nil {
			if err := r.Bind(n, b); err != nil {
				return nil, err
			}
		}
	}
	if err := f.sort(p.params, p.Func(name)); err != nil {
		return nil, err
	}
	p.fns[name] = f
	return f, nil
}

// runnable says which step function moves nothing, and what the device has no kernel for, of functions that
// run in their turn: else a run would end when it comes to one, or learn nothing.
func (p *program) runnable() error {
	for _, name := range []string{"train", "pretrain", "joint", "fit"} {
		if f := p.Func(name); f != nil && len(p.Params) > 0 && !slices.ContainsFunc(f.Results, moves) {
			return fmt.Errorf(`train: @%s moves no parameter: write {differentiate="loss"} behind its results, and let the loss depend on parameters`, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(turns)) {
		f := p.Func(name)
		if f == nil {
			continue
		}
		for i, op := range f.Body {
			if _, err := p.options.Device.Kernel(op); err != nil {
				return fmt.Errorf("@%s: operation %d, %s: %w", name, i, op, err)
			}
		}
	}
	return nil
}

// moves reports whether a result of a step changes what the next one reads.
func moves(r ir.Result) bool {
	return slices.ContainsFunc([]string{gradPrefix, models.RunningPrefix, models.NextPrefix}, func(prefix string) bool { return strings.HasPrefix(r.Name, prefix) })
}

// run runs a function at a step of the run.
func (p *program) run(name string, step int) (*function, error) {
	f, err := p.function(name)
	if err != nil {
		return nil, err
	}
	return f, f.Run(uint64(step))
}

// turns are functions of which those with the same number are held together, where memory lacks room
// for all: others are freed, and made again when it is their turn, which gives the same bits. What
// they give is copied for others ([settle]).
var turns = map[string]int{"encode": 1, "probability": 1, "joint": 2, "fit": 3, "classify": 3}

// sort sorts a function's results into loss terms and gradients.
func (f *function) sort(params *optim.Set, def *ir.Func) error {
	for _, r := range def.Results {
		if name, ok := strings.CutPrefix(r.Name, models.RunningPrefix); ok {
			p := params.Lookup(name)
			if p == nil {
				return fmt.Errorf("train: @%s has the result %s, which moves no parameter", def.Name, r.Name)
			}
			f.moved = append(f.moved, moved{p, r.Name})
			continue
		}
		name, isGradient := strings.CutPrefix(r.Name, gradPrefix)
		if !isGradient {
			if r.Value.Type.Rank() == 0 && !strings.HasPrefix(r.Name, models.NextPrefix) {
				f.terms = append(f.terms, term{name: r.Name})
			}
			continue
		}
		p := params.Lookup(name)
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
func (p *program) drop(name string) {
	if f := p.fns[name]; f != nil {
		if name == "encode" && !p.estimates() { // which read it for the next graph
			delete(p.inputs, "embedding")
			p.checked[0] = nil
		}
		delete(p.fns, name)
		giveBack(f.Function)
		goruntime.GC() // what comes next takes this memory, instead of more
	}
}

// large is how many bytes are given back to the system at once. They would else be there until
// garbage is next collected, which is when the heap has doubled. Tests give back everything.
var large = 64 << 20

// held returns the bytes of what a function computes, 0 for one that is not made.
func (p *program) held(name string) int {
	if f := p.fns[name]; f != nil {
		return held(f.Function)
	}
	return 0
}

// held returns the bytes of what a function computes.
func held(f *runtime.Function) int {
	n := f.Main().Plan().Bytes
	if s := f.Setup(); s != nil {
		n += s.Plan().Bytes
	}
	return n
}

// giveBack closes a function, to which nothing else refers.
func giveBack(f *runtime.Function) {
	n := held(f)
	f.Close()
	collect(n)
}

// collect gives bytes that nothing refers to any more back to the system, if they are many.
func collect(bytes int) {
	if bytes >= large {
		debug.FreeOSMemory()
	}
}

// bind gives an input its value in every function that reads it, those made
// later included. An input that was changed in place must be bound again.
func (p *program) bind(name string, b *runtime.Buffer) error {
	p.inputs[name] = b
	for fn, f := range p.fns {
		if f.reads[name] && !(fn == "classify" && evaluationInputs[name]) {
			f.current = false
			if err := f.Bind(name, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindVector binds elements that changed, in the buffer that they had.
func (p *program) bindVector(name string, x []float32) error {
	b := p.inputs[name]
	if b == nil {
		b = runtime.F32(x, len(x))
	}
	b.F32, b.Dims[0] = x, len(x)
	return p.bind(name, b)
}

// namedBuffer is a value of an argument.
type namedBuffer struct {
	name string
	*runtime.Buffer
}

// bindRead gives a function those of some arguments that it reads.
func bindRead(f *function, inputs []namedBuffer) error {
	for _, in := range inputs {
		if f.reads[in.name] {
			if err := f.Bind(in.name, in.Buffer); err != nil {
				return err
			}
		}
	}
	return nil
}

// outdate notes that parameters have other values: those that a step of f moves, nil: all.
func (p *program) outdate(f *function) {
	for _, other := range p.fns {
		other.current = other.current && f != nil && !f.moves(other.learned)
	}
}

// moves reports whether a step moves any of some parameters.
func (f *function) moves(some map[string]bool) bool {
	return slices.ContainsFunc(f.updates, func(u update) bool {
		return slices.ContainsFunc(u.params, func(p *optim.Param) bool { return some[p.Name] })
	}) || slices.ContainsFunc(f.moved, func(m moved) bool { return some[m.p.Name] })
}

// evaluationInputs are the arguments of @classify that are not what they are in
// other functions: the graph that the classifier is evaluated on and its
// weights.
var evaluationInputs = map[string]bool{"g": true, "w": true}

// bindScalar gives a scalar input its value.
func (p *program) bindScalar(name string, v float32) error {
	p.inputs[name].F32[0] = v
	return p.bind(name, p.inputs[name])
}

// close frees all functions.
func (p *program) close() {
	for _, f := range p.fns {
		f.Close()
	}
}

// takes reports whether any function has an argument of a name.
func (p *program) takes(name string) bool { return takes(p.Module, name) }

func takes(m *ir.Module, name string) bool {
	return slices.ContainsFunc(m.Funcs, func(f *ir.Func) bool { return f.Arg(name) != nil })
}

// estimates reports whether the graph is estimated by what was learned on the one before, which
// @encode reads as p; that before the first is the data's.
func (p *program) estimates() bool { return estimates(p.Module) }

func estimates(m *ir.Module) bool {
	f := m.Func("encode")
	return f != nil && f.Arg("p") != nil
}

// keepsGraph reports whether the probabilities are those that contrastive steps have handed on.
func (p *program) keepsGraph() bool {
	begin, probability := p.Func("begin"), p.Func("probability")
	return begin != nil && probability != nil && slices.ContainsFunc(probability.Args, func(a *ir.Value) bool {
		return begin.Result(models.NextPrefix+a.Name) != nil
	})
}

// stepsGraph reports whether joint steps move the probabilities of candidates themselves.
func (p *program) stepsGraph() bool {
	f := p.Func("joint")
	return f != nil && f.Result(models.NextPrefix+"p") != nil
}

// numbers appends those of nodes to dst, and answers their labels, as programs read them.
func numbers(dst []int64, nodes []int32) []int64 {
	dst = slices.Grow(dst, len(nodes))
	for _, v := range nodes {
		dst = append(dst, int64(v))
	}
	return dst
}

func answers(dst []int64, labels, nodes []int32) []int64 {
	dst = slices.Grow(dst, len(nodes))
	for _, v := range nodes {
		dst = append(dst, int64(labels[v]))
	}
	return dst
}

// targets returns [len(labels), classes], in the column of each node's class what
// the node counts: as much as any other, or with weights "balanced" as [shares] says.
func targets(labels []int64, classes int, weights string) []float32 {
	share := slices.Repeat([]float64{1 / float64(len(labels))}, classes)
	if weights == "balanced" {
		share = shares(labels, classes)
	}
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

// FeatureBuffer returns features as programs read them, [N,D].
func FeatureBuffer(x *data.Features) (*runtime.Buffer, error) {
	if x.IsSparse() {
		return runtime.Sparse(x.Rows, x.Cols, x.RowPtr, x.Col, x.Val)
	}
	return runtime.F32(x.Dense, x.Rows, x.Cols), nil
}
