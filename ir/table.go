package ir

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// Level is the dialect of an operation.
type Level uint8

// The levels, from the paper's words to what a kernel does.
const (
	TensorLevel Level = iota
	GNNLevel
	GSRLevel
)

func (l Level) String() string { return [...]string{"tensor", "gnn", "gsr"}[l] }

// OperandKind says what an operand is.
type OperandKind uint8

// The operand kinds.
const (
	TensorOperand OperandKind = iota
	GraphOperand
	AnyOperand
)

func (k OperandKind) String() string {
	return [...]string{"a tensor", "a graph", "a tensor or a graph"}[k]
}

// OperandSpec describes one operand.
type OperandSpec struct {
	Name     string
	Kind     OperandKind
	Optional bool // may be absent, "_" in the text form
	Variadic bool // the last operand only: zero or more
	Sparse   bool // a CSR tensor is accepted
	// Read is the part that one row of the results is computed from.
	Read Read
	// InPlace operands are read by kernels at each place, or row, before that of the
	// result is written, which may therefore lie over them.
	InPlace bool
	// Linear operands are those in which the operation is linear while the others stay
	// the same: where they are zero, so are the results.
	Linear bool
	// Moved operands are those whose elements the results consist of.
	Moved bool
}

// AttrKind is the type of an attribute.
type AttrKind uint8

// The attribute kinds.
const (
	FloatAttr AttrKind = iota
	IntAttr
	BoolAttr
	StringAttr
	FuncAttr
)

func (k AttrKind) String() string {
	return [...]string{"a float", "an integer", "a boolean", "a string", "a function"}[k]
}

func (k AttrKind) holds(v any) bool {
	switch v.(type) {
	case float64:
		return k == FloatAttr
	case int64:
		return k == IntAttr
	case bool:
		return k == BoolAttr
	case string:
		return k == StringAttr
	case FuncRef:
		return k == FuncAttr
	}
	return false
}

// normalAttr turns Go's plain numbers into what attributes hold.
func normalAttr(v any, k AttrKind) any {
	if i, ok := v.(int); ok {
		v = int64(i)
	}
	if i, ok := v.(int64); ok && k == FloatAttr {
		v = float64(i)
	}
	return v
}

// AttrSpec describes one attribute. A nil Default makes it required.
type AttrSpec struct {
	Name    string
	Kind    AttrKind
	Default any
	OneOf   []string // of a string attribute: the legal values
	Range   Range    // of a number: its legal values
	Doc     string
}

// Range is the legal values of a number: from Min to Max, without Min where Above, without
// Max where Below. The zero value is all numbers; a Max of +Inf is none.
type Range struct {
	Min, Max     float64
	Above, Below bool
}

// The ranges of attributes, and of the options that become attributes.
var (
	positive    = Range{Min: 0, Max: math.Inf(1), Above: true}
	nonNegative = Range{Min: 0, Max: math.Inf(1)}
	share       = Range{Min: 0, Max: 1, Below: true}
	probability = Range{Min: 0, Max: 1, Above: true, Below: true}
	unrolled    = Range{Min: 0, Max: MaxUnroll}
	count       = Range{Min: 1, Max: MaxSize}
)

// Holds reports whether v is in the range.
func (r Range) Holds(v float64) bool {
	return r == Range{} || v > r.Min && v < r.Max || v == r.Min && !r.Above || v == r.Max && !r.Below && !math.IsInf(v, 0)
}

// String says what a number must be, such as "at least 0".
func (r Range) String() string {
	switch {
	case r == Range{}:
		return "a number"
	case math.IsInf(r.Max, 1) && r.Above:
		return fmt.Sprintf("greater than %g", r.Min)
	case math.IsInf(r.Max, 1):
		return fmt.Sprintf("at least %g", r.Min)
	case r.Above && r.Below:
		return fmt.Sprintf("within (%g, %g)", r.Min, r.Max)
	case r.Below:
		return fmt.Sprintf("within [%g, %g)", r.Min, r.Max)
	}
	return fmt.Sprintf("between %.0f and %.0f", r.Min, r.Max)
}

// Attr returns what the table says of an operation's attribute, such as
// "gsr.sgld_sample.steps"; nil if there is none of that name.
func Attr(name string) *AttrSpec {
	dot := strings.LastIndexByte(name, '.')
	if d := Lookup(name[:max(dot, 0)]); d != nil {
		return attrNamed(d.Attrs, name[dot+1:])
	}
	return nil
}

// OpDef is one line of the operation table: all that is known of an operation.
type OpDef struct {
	Name     string
	Formerly string // an earlier name, which texts may still have; "" if there is none
	Level    Level
	Doc      string // what it computes, as a formula
	Operands []OperandSpec
	Attrs    []AttrSpec
	Results  []string // names of the results, also the default value names
	// Infer gives the result types, or an error that names the rule broken.
	Infer func(*InferCtx) []Type
	// VJP builds the vector–Jacobian products: given the cotangents of the
	// results (nil where a result has none) it returns the operands' (nil
	// where need is false or the product is zero).
	VJP func(*VJPCtx) []*Value
	// NoGrad is the reason why there is no VJP.
	NoGrad string
	// Eval is the reference evaluation in float64.
	Eval func(*EvalCtx)
	// Random operations draw from the stream that their attribute names: the
	// same stream gives the same numbers within a step, others in the next.
	Random bool
	// Resolved operations are replaced by a pass: there are no kernels for them.
	Resolved bool
	// Sizes operations have results whose sizes depend on the operands'
	// elements: symbols that first occur in the result types stand for them.
	Sizes bool

	// What follows is what passes and executors may rely on; nil, false and 0 are safe.

	// Reads replaces the operands' own Read where attributes decide.
	Reads func(op *Op, i int) Read
	// View operations may give their operand's memory, from which row on.
	View func(op *Op) (from int, ok bool)
	// Finite says when the results are finite numbers.
	Finite Finiteness
	// Broadcasts operations repeat their operands to one shape by NumPy's rule.
	Broadcasts bool
	// InExpr operations may stand in expressions: see Expr.
	InExpr bool
	// ShapeOnly operations have results that depend on sizes and attributes alone.
	ShapeOnly bool
	// Int64 operations have kernels for int64 tensors too.
	Int64 bool
	// Pad finds what the results have appended where operands have: see Padding. nil
	// follows from Read, Linear, Moved and Finite; a nil result says that the operation
	// would mix appended rows with others.
	Pad func(p *Padding, op *Op) []PadValue
}

// Signature returns the operands as text, such as "(graph, values, [diag], x)".
func (d *OpDef) Signature() string {
	if len(d.Operands) == 0 {
		return "no operands"
	}
	return "(" + list(d.Operands, func(o OperandSpec) string {
		switch {
		case o.Variadic:
			return o.Name + "..."
		case o.Optional:
			return "[" + o.Name + "]"
		}
		return o.Name
	}) + ")"
}

// tables are the operation tables, one a file.
var tables = [][]OpDef{expressionOps, elementwiseOps, reduceOps, matrixOps, graphOps, attentionOps, spmaxOps, randomOps, fusedOps, pairwiseOps, exprOps, gnnOps, readoutOps, gsrOps}

var byName, formerly map[string]*OpDef

func init() {
	byName, formerly = map[string]*OpDef{}, map[string]*OpDef{}
	for _, t := range tables {
		for i := range t {
			d := &t[i]
			if byName[d.Name] != nil {
				panic("ir: operation " + d.Name + " is in the table twice")
			}
			byName[d.Name] = d
			if d.Formerly != "" {
				formerly[d.Formerly] = d
			}
		}
	}
}

// Lookup returns the table line of an operation, by its name or the one that it had
// earlier, or nil.
func Lookup(name string) *OpDef {
	if d := byName[name]; d != nil {
		return d
	}
	return formerly[name]
}

// Ops returns all operations, by level from gsr to tensor and then by name.
func Ops() []*OpDef {
	var ds []*OpDef
	for _, d := range byName {
		ds = append(ds, d)
	}
	slices.SortFunc(ds, func(a, b *OpDef) int {
		if a.Level != b.Level {
			return int(b.Level) - int(a.Level)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return ds
}

// nearestOp is a hint at the operation that a mistyped name was meant to be, or "".
func nearestOp(name string) string {
	var names []string
	for _, d := range Ops() {
		names = append(names, d.Name)
	}
	return didYouMean(name, names)
}

// didYouMean is a hint at the name that a mistyped one was meant to be, or "".
func didYouMean(name string, known []string) string {
	if n := nearest.Of(name, known); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return ""
}

// InferCtx is what a type rule sees.
type InferCtx struct {
	Op       *Op
	Declared []Type // result types as declared, or nil
}

// In returns the type of operand i.
func (c *InferCtx) In(i int) Type { return c.Op.Operands[i].Type }

// Has reports whether operand i is present.
func (c *InferCtx) Has(i int) bool { return i < len(c.Op.Operands) && c.Op.Operands[i] != nil }

// operandError is the panic by which a type rule or an evaluation ends.
type operandError struct{ error }

func fail(format string, args ...any) { panic(operandError{fmt.Errorf(format, args...)}) }

// failed makes the error of [fail] that of the function that defers it.
func failed(err *error) {
	if p := recover(); p != nil {
		bad, ok := p.(operandError)
		if !ok {
			panic(p)
		}
		*err = bad.error
	}
}

// Types returns the result types by the operation's rule.
func (c *InferCtx) Types() (types []Type, err error) {
	defer failed(&err)
	return c.Op.Def.Infer(c), nil
}

func one(t Type) []Type { return []Type{t} }

// wantRank checks the rank of operand i.
func (c *InferCtx) wantRank(i, rank int) {
	if t := c.In(i); t.Rank() != rank {
		fail("operand %s has rank %d, want %d", c.Op.operandName(i), t.Rank(), rank)
	}
}

func (c *InferCtx) wantFloat(is ...int) {
	for _, i := range is {
		if c.Has(i) && !c.In(i).DType.IsFloat() {
			fail("operand %s is %s, want floats", c.Op.operandName(i), c.In(i).DType)
		}
	}
}

// wantOneDType checks that the present operands have the same float type.
func (c *InferCtx) wantOneDType(is ...int) {
	c.wantFloat(is...)
	first := -1
	for _, i := range is {
		switch {
		case !c.Has(i):
		case first < 0:
			first = i
		case c.In(i).DType != c.In(first).DType:
			fail("operand %s is %s and %s is %s, want one element type", c.Op.operandName(first), c.In(first).DType, c.Op.operandName(i), c.In(i).DType)
		}
	}
}

// wantPairs checks that operand i holds node pairs, i64[2,P].
func (c *InferCtx) wantPairs(i int) {
	if t := c.In(i); t.DType != I64 || t.Rank() != 2 || t.Dims[0] != "2" {
		fail("operand %s is %s, want i64[2,P]", c.Op.operandName(i), t)
	}
}

func (c *InferCtx) wantDType(i int, d DType) {
	if c.In(i).DType != d {
		fail("operand %s is %s, want %s", c.Op.operandName(i), c.In(i).DType, d)
	}
}

// wantDims checks that operand i has exactly these dimensions.
func (c *InferCtx) wantDims(i int, dims ...Dim) {
	if !c.Has(i) {
		return
	}
	if t := c.In(i); !t.SameShape(T(t.DType, dims...)) {
		fail("operand %s is %s, want dimensions %v", c.Op.operandName(i), t, dims)
	}
}

func (o *Op) operandName(i int) string {
	return o.Def.operand(i).Name
}

// VJPCtx is what a gradient rule sees.
type VJPCtx struct {
	*Builder
	Op   *Op
	Ct   []*Value // cotangents of the results, nil where zero
	Need []bool   // which operands' cotangents are read
}

// X returns operand i; Y returns result i.
func (c *VJPCtx) X(i int) *Value { return c.Op.Operands[i] }

// Y returns result i of the operation.
func (c *VJPCtx) Y(i int) *Value { return c.Op.Results[i] }

// needs reports whether operand i's cotangent is read.
func (c *VJPCtx) needs(i int) bool { return i < len(c.Need) && c.Need[i] }

// dense returns v stored densely: the cotangent of a CSR value is a dense
// matrix, and only some operations read CSR.
func (c *VJPCtx) dense(v *Value) *Value {
	if v.Type.Layout == CSR {
		return c.One("to_dense", nil, v)
	}
	return v
}

// unbroadcast sums a cotangent down to the type that was broadcast.
func (c *VJPCtx) unbroadcast(g *Value, to Type) *Value {
	from := g.Type
	switch {
	case from.SameShape(to):
		return g
	case to.Rank() == 0:
		return c.One("reduce_sum", Attrs{"axis": "all"}, g)
	case to.Rank() == 1:
		if from.Rank() == 2 {
			g = c.One("reduce_sum", Attrs{"axis": "0"}, g)
		}
		if !g.Type.SameShape(to) { // [F] broadcast from [1]
			g = c.One("reduce_sum", Attrs{"axis": "0", "keep": true}, g)
		}
		return g
	}
	if to.Dims[0] == "1" && from.Dims[0] != "1" {
		g = c.One("reduce_sum", Attrs{"axis": "0", "keep": true}, g)
	}
	if to.Dims[1] == "1" && from.Dims[1] != "1" {
		g = c.One("reduce_sum", Attrs{"axis": "1", "keep": true}, g)
	}
	return g
}
