package runtime

import (
	"math/bits"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Padder is a [Device] that may want the sizes that programs find themselves, those
// of receptive fields, rounded up: steps whose samples differ then mostly have the
// same sizes, and what was recorded for one is replayed for the others. How far is
// decided by the exact size alone, so that a step's bits depend on its samples and
// not on the steps before it.
//
// Rows that are appended hold copies of others or zeros. They are appended only in
// programs where they can be shown to change nothing; see program.paddable.
type Padder interface {
	Device
	Pads() bool
}

// roundUp returns the next of so many evenly spaced sizes in each octave, multiples
// of least.
func roundUp(n, steps, least int) int {
	if n == 0 {
		return 0
	}
	unit := max(least, 1<<bits.Len(uint(n-1))/(2*steps))
	return (n + unit - 1) / unit * unit
}

// PaddedRows is the number of rows that fields and batches of n rows are padded to:
// each costs work in every layer, so at most an eighth is added to many.
func PaddedRows(n int) int { return roundUp(n, 8, 64) }

// PaddedEntries is the number of entries that n are padded to: only their weights are
// computed, so at most a half is added to many.
func PaddedEntries(n int) int { return roundUp(n, 2, 256) }

// fill is what padding appends to a value along its first dimension.
type fill uint8

const (
	numbers fill = iota // finite numbers; also of what has nothing appended
	zeros
)

// paddable reports whether the program computes the same where rows and entries are
// appended to its receptive fields. Every operation that such rows reach must
// compute its rows apart from each other and stay finite, or add up rows of which
// the appended ones are zero, as gradients are that come back from where nothing
// reads them.
func (p *program) paddable() bool {
	a := appended{p: p, found: map[int]bool{}, of: map[*ir.Value]fill{}}
	for _, s := range p.sizers {
		for _, c := range s.out {
			for _, d := range c.dims {
				for _, t := range d.terms {
					a.found[t] = true
				}
			}
		}
	}
	for _, in := range p.inputs {
		for _, d := range in.dims { // the samples' own number is exact
			for _, t := range d.terms {
				delete(a.found, t)
			}
		}
	}
	for _, o := range p.ops {
		if !a.see(o.Op) {
			return false
		}
	}
	for _, r := range p.fn.Results {
		if a.long(r.Value) {
			return false
		}
	}
	return true
}

// appended is the walk over a program that finds what its values have appended.
type appended struct {
	p     *program
	found map[int]bool // symbols of sizes that are rounded up
	of    map[*ir.Value]fill
}

// size reports whether dimension k of a value is rounded up.
func (a *appended) size(v *ir.Value, k int) bool {
	return slices.ContainsFunc(a.p.cells[v].dims[k].terms, func(t int) bool { return a.found[t] })
}

// long reports whether any dimension of a value is rounded up.
func (a *appended) long(v *ir.Value) bool {
	for k := range v.Type.Dims {
		if a.size(v, k) {
			return true
		}
	}
	return false
}

// see finds what the results of an operation have appended, and reports whether
// the operation is one of those that bear it.
func (a *appended) see(op *ir.Op) bool {
	if op.Def.Sizes {
		return true
	}
	touched := false
	for _, v := range slices.Concat(op.Operands, op.Results) {
		if v == nil || !a.long(v) {
			continue
		}
		touched = true
		if v.Type.Layout == ir.Structure {
			continue
		}
		// Rows are appended, nothing else, and not to sums of sizes.
		for k := range v.Type.Dims {
			if a.size(v, k) && (k > 0 || len(a.p.cells[v].dims[k].terms) > 1 || a.p.cells[v].dims[k].fixed > 0) {
				return false
			}
		}
	}
	if !touched {
		return true
	}
	if len(op.Results) != 1 || op.Draws() {
		return false
	}
	f, ok := a.rule(op)
	if y := op.Result(); a.long(y) {
		a.of[y] = f
	}
	return ok
}

// rule is the fill of an operation's result.
func (a *appended) rule(op *ir.Op) (fill, bool) {
	x, y := op.Operands, op.Result()
	switch name := op.Name(); name {
	case "gather":
		return numbers, !a.long(x[0])
	case "scatter_add":
		return numbers, a.of[x[0]] == zeros && !a.long(y)
	case "spmm":
		return a.aggregated(op), true
	case "spmm_fused":
		return a.expr(op, 5, a.plus(a.aggregated(op), x[4]))
	case "matmul", "matmul_fused":
		product := a.of[x[0]]
		if op.Bool("ta") {
			// A sum over rows, which are appended to both factors or to none.
			if a.long(x[0]) && product != zeros && a.of[x[1]] != zeros {
				return numbers, false
			}
			product = numbers
		} else if a.long(x[1]) {
			return numbers, false
		}
		if name == "matmul" {
			return product, true
		}
		return a.expr(op, 3, a.plus(product, x[2]))
	case "reduce_sum":
		return a.of[x[0]], op.Str("axis") == "1" || a.of[x[0]] == zeros
	case "fused_elementwise":
		return a.expr(op, 0, numbers)
	case "stop_gradient", "scale_grad", "unsqueeze", "squeeze", "columns", "l1_normalize", "l2_normalize":
		return a.of[x[0]], a.long(y)
	case "softmax", "log_softmax":
		return numbers, a.long(y)
	case "l2_normalize_grad":
		return a.of[x[2]], a.long(y)
	default:
		if !ir.Pointwise(name) {
			return numbers, false
		}
		args := make([]fill, len(x))
		for i, v := range x {
			args[i] = a.of[v]
		}
		return pointwiseFill(name, args)
	}
}

// aggregated is the fill of an aggregation along a block. Rows that are appended to
// its targets have no entries, and those appended to its sources are in none: only
// their own term reaches them, and that of a source is its target's.
func (a *appended) aggregated(op *ir.Op) fill {
	if op.Bool("transpose") && (!a.long(op.Operands[3]) || a.of[op.Operands[3]] == zeros) {
		return zeros
	}
	return numbers
}

// plus is the fill of a product that operand c, which may be absent, is added to.
func (a *appended) plus(product fill, c *ir.Value) fill {
	if c == nil {
		return product
	}
	return min(product, a.of[c])
}

// expr is the fill of a fused operation's expression, whose operands begin at first.
func (a *appended) expr(op *ir.Op, first int, product fill) (fill, bool) {
	e := op.Expr()
	steps := make([]fill, len(e.Steps))
	arg := func(x ir.ExprArg) fill {
		switch x.Kind {
		case ir.ExprOperand:
			return a.of[op.Operands[first+x.Index]]
		case ir.ExprResult:
			return steps[x.Index]
		case ir.ExprProduct:
			return product
		}
		if x.Value == 0 {
			return zeros
		}
		return numbers
	}
	for i, s := range e.Steps {
		args := make([]fill, len(s.Args))
		for k, x := range s.Args {
			args[k] = arg(x)
		}
		var ok bool
		if steps[i], ok = pointwiseFill(s.Def.Name, args); !ok {
			return numbers, false
		}
	}
	return arg(e.Out), true
}

// pointwiseFill is the fill of a pointwise operation's result. It reports false of
// those that may make something else than a finite number of finite ones.
func pointwiseFill(name string, x []fill) (fill, bool) {
	switch name {
	case "add", "sub", "maximum", "minimum":
		return min(x[0], x[1]), true
	case "mul":
		return max(x[0], x[1]), true
	case "neg", "square", "relu", "elu", "leaky_relu", "tanh":
		return x[0], true
	case "relu_grad", "elu_grad", "leaky_relu_grad":
		return x[1], true
	case "greater", "greater_equal", "less", "sigmoid":
		return numbers, true
	}
	return numbers, false
}
