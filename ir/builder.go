package ir

import (
	"fmt"
	"slices"
	"strings"
)

// NewModule returns an empty module.
func NewModule(name string) *Module { return &Module{Name: name, Attrs: Attrs{}} }

// AddParam declares a parameter. init is "glorot", "zeros", "ones" or
// "normal"; decay is the L2 weight decay that the optimizer applies; group
// names the optimizer group ("encoder", "classifier", ...), "" none.
func (m *Module) AddParam(name string, t Type, init string, decay float64, group string) *Value {
	if m.Param(name) != nil {
		panic(fmt.Sprintf("ir: parameter $%s is declared twice", name))
	}
	p := &Value{Name: name, Type: t, Param: true, Attrs: Attrs{"init": init}}
	if group != "" {
		p.Attrs["group"] = group
	}
	if decay != 0 {
		p.Attrs["decay"] = decay
	}
	m.Params = append(m.Params, p)
	return p
}

// Builder appends operations to a function. Its methods panic on a type error,
// with the operation and the operand types: models are Go code, and a wrong one
// is a programming error. The parser reports the same errors as values.
type Builder struct {
	Module *Module
	Func   *Func
	names  map[string]int
	insert int // position of the next operation, or -1 for the end
	prefix string
	from   *Op // see From
}

// NewFunc adds a function to the module and returns its builder.
func (m *Module) NewFunc(name string) *Builder {
	f := &Func{Name: name, Attrs: Attrs{}}
	m.Funcs = append(m.Funcs, f)
	return NewBuilder(m, f)
}

// NewBuilder returns a builder that appends to an existing function.
func NewBuilder(m *Module, f *Func) *Builder {
	b := &Builder{Module: m, Func: f, names: map[string]int{}, insert: -1}
	for _, a := range f.Args {
		b.names[a.Name] = 1
	}
	for _, op := range f.Body {
		for _, r := range op.Results {
			b.names[r.Name] = 1
		}
	}
	return b
}

// At makes the builder insert before position i of the body, and keeps its
// place behind what it inserts. A negative i means the end.
func (b *Builder) At(i int) *Builder { b.insert = i; return b }

// Pos returns the position of the next operation.
func (b *Builder) Pos() int {
	if b.insert < 0 {
		return len(b.Func.Body)
	}
	return b.insert
}

// Named makes the next operations' results carry a prefix, so that printed
// programs show where an operation comes from. It returns a function that
// restores the former prefix.
func (b *Builder) Named(prefix string) func() {
	old := b.prefix
	b.prefix = prefix
	return func() { b.prefix = old }
}

// Arg declares an argument that keeps its value from step to step, such as
// the features.
func (b *Builder) Arg(name string, t Type) *Value {
	v := &Value{Name: b.unique(name), Type: t}
	b.Func.Args = append(b.Func.Args, v)
	return v
}

// Fixed is the attribute, true, of a parameter that keeps its value from call to call, or of a
// function whose parameters all do: what depends on them is hoisted as what depends on arguments is.
const Fixed = "fixed"

// DynamicArg declares an argument that changes from step to step, such as the
// anchors of a batch; what depends on it is not hoisted.
func (b *Builder) DynamicArg(name string, t Type) *Value {
	v := b.Arg(name, t)
	v.Attrs = Attrs{"dynamic": true}
	return v
}

// Return adds a named result.
func (b *Builder) Return(name string, v *Value) {
	b.Func.Results = append(b.Func.Results, Result{name, v})
}

// From makes the next operations have the place of op, which they are made of, and errors of the
// builder be about it: see [Builder.Failed].
func (b *Builder) From(op *Op) { b.from = op }

// Failed returns what the builder, or what called it, panicked with as an error about the
// operation of [Builder.From].
func (b *Builder) Failed(r any) error {
	err, ok := r.(error)
	if !ok {
		err = fmt.Errorf("%v", r)
	}
	return At(b.from, err)
}

func (b *Builder) unique(name string) string {
	if b.names[name] == 0 {
		b.names[name] = 1
		return name
	}
	for {
		b.names[name]++
		s := fmt.Sprintf("%s_%d", name, b.names[name])
		if b.names[s] == 0 {
			b.names[s] = 1
			return s
		}
	}
}

// Op appends an operation and returns its results.
func (b *Builder) Op(name string, attrs Attrs, operands ...*Value) []*Value {
	return b.op(name, attrs, nil, operands)
}

// OpTyped appends an operation whose result types are declared, not inferred.
func (b *Builder) OpTyped(name string, attrs Attrs, types []Type, operands ...*Value) []*Value {
	return b.op(name, attrs, types, operands)
}

// One appends an operation with one result.
func (b *Builder) One(name string, attrs Attrs, operands ...*Value) *Value {
	return b.op(name, attrs, nil, operands)[0]
}

// OneTyped appends an operation with one result of a declared type.
func (b *Builder) OneTyped(name string, attrs Attrs, t Type, operands ...*Value) *Value {
	return b.op(name, attrs, []Type{t}, operands)[0]
}

func (b *Builder) op(name string, attrs Attrs, declared []Type, operands []*Value) []*Value {
	op, err := newOp(name, attrs, declared, operands)
	if err != nil {
		panic(fmt.Sprintf("ir: @%s: %v", b.Func.Name, err))
	}
	for _, r := range op.Results {
		hint := op.Def.resultName(r.Index)
		if b.prefix != "" {
			hint = b.prefix + "." + hint
		}
		r.Name = b.unique(hint)
	}
	b.push(op)
	return op.Results
}

func (b *Builder) push(op *Op) {
	if len(b.Func.Body) >= MaxOps {
		panic(&SizeError{Func: b.Func.Name})
	}
	if op.Place == nil && b.from != nil {
		op.Place = b.from.Place
	}
	if b.insert < 0 {
		b.Func.Body = append(b.Func.Body, op)
		return
	}
	b.Func.Body = slices.Insert(b.Func.Body, b.insert, op)
	b.insert++
}

// MaxOps is how many operations a function may have, and MaxUnroll how often anything is
// repeated in a program, such as a layer or a sampler's step: so that a slip does not
// make one that takes hours to compile.
const (
	MaxOps    = 1 << 16
	MaxUnroll = 1000
)

// SizeError says that a function has too many operations. A Builder panics with it.
type SizeError struct{ Func string }

func (e *SizeError) Error() string {
	return fmt.Sprintf("ir: @%s: the program has more than %d operations in one function; ask for fewer layers, steps or samples", e.Func, MaxOps)
}

// resultName returns a readable name for a result of the operation.
func (d *OpDef) resultName(i int) string {
	if i < len(d.Results) {
		return d.Results[i]
	}
	return d.Name[strings.LastIndexByte(d.Name, '.')+1:]
}

// newOp makes an operation: it checks operands and attributes against the
// table, and infers or checks the result types.
func newOp(name string, attrs Attrs, declared []Type, operands []*Value) (*Op, error) {
	def := Lookup(name)
	if def == nil {
		return nil, fmt.Errorf("unknown operation %q%s", name, nearestOp(name))
	}
	op := &Op{Def: def, Operands: slices.Clone(operands), Attrs: Attrs{}}
	for k, v := range attrs { // defaults are not kept, so that equal operations look equal
		spec := attrNamed(def.Attrs, k)
		if spec != nil {
			v = normalAttr(v, spec.Kind)
		}
		if spec == nil || spec.Default == nil || v != spec.Default {
			op.Attrs[k] = v
		}
	}
	if err := op.checkAttrs(); err != nil {
		return nil, err
	}
	if err := op.checkOperands(); err != nil {
		return nil, err
	}
	types, err := op.infer(declared)
	if err != nil {
		return nil, err
	}
	for i, t := range types {
		op.Results = append(op.Results, &Value{Type: t, Def: op, Index: i})
	}
	return op, nil
}

// checkAttrs checks the attributes against the table.
func (o *Op) checkAttrs() error {
	def := o.Def
	if err := o.Attrs.check(def.Attrs); err != nil {
		return fmt.Errorf("%s: %w", def.Name, err)
	}
	for _, spec := range def.Attrs {
		if spec.Default == nil && o.Attrs[spec.Name] == nil {
			return fmt.Errorf("%s needs the attribute %q (%s)", def.Name, spec.Name, spec.Doc)
		}
	}
	return nil
}

// number returns the value of a numeric attribute.
func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	}
	return 0, false
}

func (o *Op) checkOperands() error {
	def := o.Def
	least, fixed, most := 0, len(def.Operands), len(def.Operands)
	for _, spec := range def.Operands {
		if !spec.Optional && !spec.Variadic {
			least++
		}
		if spec.Variadic {
			fixed, most = fixed-1, -1
		}
	}
	if len(o.Operands) < least || most >= 0 && len(o.Operands) > most {
		return fmt.Errorf("%s takes %s, got %d operands", def.Name, def.Signature(), len(o.Operands))
	}
	for len(o.Operands) < fixed {
		o.Operands = append(o.Operands, nil)
	}
	for i, v := range o.Operands {
		spec := def.operand(i)
		if v == nil {
			if !spec.Optional {
				return fmt.Errorf("%s: operand %s is missing", def.Name, spec.Name)
			}
			continue
		}
		if spec.Kind != AnyOperand && (spec.Kind == GraphOperand) != v.Type.IsGraph() {
			return fmt.Errorf("%s: operand %s is %s, want %s", def.Name, spec.Name, v.Type, spec.Kind)
		}
		if v.Type.Layout == CSR && !spec.Sparse {
			return fmt.Errorf("%s: operand %s is sparse (%s); put to_dense before it", def.Name, spec.Name, v.Type)
		}
	}
	return nil
}

func (o *Op) infer(declared []Type) ([]Type, error) {
	types, err := (&InferCtx{Op: o, Declared: declared}).Types()
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", o.Def.Name, operandTypes(o.Operands), err)
	}
	if declared != nil {
		if len(declared) != len(types) {
			return nil, fmt.Errorf("%s has %d results, %d types are declared", o.Def.Name, len(types), len(declared))
		}
		for i := range types {
			if !types[i].Equal(declared[i]) {
				return nil, fmt.Errorf("%s%s: result %d is %s, declared %s", o.Def.Name, operandTypes(o.Operands), i, types[i], declared[i])
			}
		}
	}
	return types, nil
}

func operandTypes(vs []*Value) string {
	return "(" + list(vs, func(v *Value) string {
		if v == nil {
			return "_"
		}
		return v.Type.String()
	}) + ")"
}

// Inline appends a copy of the callee's body with its arguments bound to the
// given values, and returns its results. It reads the parameters of the builder's module that
// have the names of the callee's. A nil value leaves out an argument that is [Func.Optional].
func (b *Builder) Inline(callee *Func, args ...*Value) []*Value {
	if len(args) != len(callee.Args) {
		panic(fmt.Sprintf("ir: @%s takes %d arguments, got %d", callee.Name, len(callee.Args), len(args)))
	}
	to := map[*Value]*Value{}
	for i, a := range callee.Args {
		if args[i] != nil && !a.Type.Equal(args[i].Type) {
			panic(fmt.Sprintf("ir: @%s: argument %%%s is %s, got %s", callee.Name, a.Name, a.Type, args[i].Type))
		}
		to[a] = args[i]
	}
	param := func(v *Value) {
		if v != nil && v.Param && to[v] == nil {
			if to[v] = b.Module.Param(v.Name); to[v] == nil {
				to[v] = v
			}
		}
	}
	for _, op := range callee.Body {
		for _, v := range op.Operands {
			param(v)
		}
		c := op.cloneInto(to)
		for _, r := range c.Results {
			name := r.Name
			if b.prefix != "" {
				name = b.prefix + "." + name
			}
			r.Name = b.unique(name)
		}
		b.push(c)
	}
	var out []*Value
	for _, r := range callee.Results {
		param(r.Value)
		out = append(out, to[r.Value])
	}
	return out
}

// The shorthands below cover what models and passes write most.

// Const returns a scalar constant, f32[].
func (b *Builder) Const(v float64) *Value { return b.Fill(v, Scalar()) }

// Fill returns a tensor of one value.
func (b *Builder) Fill(v float64, t Type) *Value {
	return b.OneTyped("fill", Attrs{"value": v}, t)
}

// Add returns x + y with broadcasting; Sub, Mul and Div likewise.
func (b *Builder) Add(x, y *Value) *Value { return b.One("add", nil, x, y) }

// Sub returns x - y.
func (b *Builder) Sub(x, y *Value) *Value { return b.One("sub", nil, x, y) }

// Mul returns the elementwise product.
func (b *Builder) Mul(x, y *Value) *Value { return b.One("mul", nil, x, y) }

// Div returns x / y.
func (b *Builder) Div(x, y *Value) *Value { return b.One("div", nil, x, y) }

// Plus returns sum + x, and x where sum is nil: terms of a sum that begins with none.
func (b *Builder) Plus(sum, x *Value) *Value {
	if sum == nil {
		return x
	}
	return b.Add(sum, x)
}

// Scale returns c·x.
func (b *Builder) Scale(x *Value, c float64) *Value { return b.Mul(x, b.Fill(c, T(x.Type.DType))) }

// Shift returns x + c.
func (b *Builder) Shift(x *Value, c float64) *Value { return b.Add(x, b.Fill(c, T(x.Type.DType))) }

// MatMul returns x·y.
func (b *Builder) MatMul(x, y *Value) *Value { return b.One("matmul", nil, x, y) }

// Sum returns the sum of all elements.
func (b *Builder) Sum(x *Value) *Value { return b.One("reduce_sum", Attrs{"axis": "all"}, x) }

// Mean returns the mean of all elements.
func (b *Builder) Mean(x *Value) *Value { return b.One("reduce_mean", Attrs{"axis": "all"}, x) }

// Stop returns x with its gradient stopped.
func (b *Builder) Stop(x *Value) *Value { return b.One("stop_gradient", nil, x) }

// Concat returns [x, y], side by side.
func (b *Builder) Concat(x, y *Value) *Value { return b.One("concat", nil, x, y) }
