package ir

import (
	"math"
	"slices"
	"strings"
)

// PadValue is what is known of the elements that padding appends to a value: nothing,
// that they are finite, or that all are one number. The zero value is nothing, which
// includes NaN and what was in the memory before.
type PadValue struct {
	Kind  PadKind
	Value float64 // of constants
}

// PadKind orders PadValues by how much is known.
type PadKind uint8

// The kinds.
const (
	PadUnknown PadKind = iota
	PadFinite
	PadConstant
)

var padZero = PadValue{Kind: PadConstant}

func (v PadValue) finite() bool { return v.Kind != PadUnknown }
func (v PadValue) zero() bool   { return v == padZero }

// join is what is known of elements of which some are like v and some like w.
func (v PadValue) join(w PadValue) PadValue {
	if v == w {
		return v
	}
	return PadValue{Kind: min(v.Kind, w.Kind, PadFinite)}
}

// Padding is a dataflow analysis of programs to whose values rows are appended, so that
// steps of many sizes run in a few: it follows what the appended rows hold, by what the
// operation table says. Operations that compute rows apart from each other keep
// appended rows apart from the others; where rows are summed up, the appended ones must
// be zero. Entries that are appended to a graph belong to none of its nodes.
type Padding struct {
	// Grows tells the dimensions that rows are appended along.
	Grows func(Dim) bool
	// Masks, if set, tells which values the program can set to zero in their appended
	// rows, and count the other rows of. Zeroed then has the operands that must be.
	Masks  func(*Value) bool
	Zeroed map[*Op][]int

	Of map[*Value]PadValue // of values that rows are appended to
}

// Long reports whether rows are appended to a value.
func (p *Padding) Long(v *Value) bool {
	return v != nil && slices.ContainsFunc(v.Type.Dims, p.Appended)
}

// Appended reports whether a dimension, or a term of a sum, is appended to.
func (p *Padding) Appended(d Dim) bool {
	return slices.ContainsFunc(strings.Split(string(d), "+"), func(term string) bool { return p.Grows(Dim(term)) })
}

// Rows reports whether a value has its first dimension appended to and no other, which
// is no sum.
func (p *Padding) Rows(v *Value) bool {
	for k, d := range v.Type.Dims {
		if p.Appended(d) != (k == 0 && p.Grows(d)) {
			return false
		}
	}
	return true
}

// value is what a value has appended. What nothing is appended to is finite: else the
// run is lost anyway.
func (p *Padding) value(v *Value) PadValue {
	switch {
	case v == nil:
		return PadValue{Kind: PadFinite}
	case p.Long(v) && v.Type.Layout == CSR: // no entries
		return padZero
	case p.Long(v):
		return p.Of[v]
	case v.Def != nil && v.Def.Def.Pad != nil && len(v.Def.Operands) == 0: // a constant
		return v.Def.Def.Pad(p, v.Def)[0]
	}
	return PadValue{Kind: PadFinite}
}

// Visit finds what the results of an operation have appended, operands first. It
// reports false of an operation that would mix appended rows with others.
func (p *Padding) Visit(op *Op) bool {
	touched := false
	for _, v := range slices.Concat(op.Operands, op.Results) {
		if p.Long(v) {
			touched = true
			if !v.Type.IsGraph() && !p.Rows(v) {
				return false
			}
		}
	}
	if !touched || op.Def.Sizes {
		return true
	}
	var out []PadValue
	switch {
	case op.Def.Pad != nil:
		out = op.Def.Pad(p, op)
	case len(op.Results) == 1:
		out = p.byRow(op)
	}
	for k, v := range out {
		if p.Long(op.Results[k]) {
			p.Of[op.Results[k]] = v
		}
	}
	return out != nil
}

// byRow is the [OpDef.Pad] of operations with one result that compute each row from the
// same rows of the operands.
func (p *Padding) byRow(op *Op) []PadValue {
	x := make([]PadValue, len(op.Operands))
	for i, v := range op.Operands {
		if x[i] = p.value(v); p.Long(v) && !op.ReadsSameRow(i) {
			return nil
		}
	}
	return []PadValue{op.Def.padded(x, op.Attrs)}
}

// padded is what a row of the result holds if those of the operands hold x.
func (d *OpDef) padded(x []PadValue, attrs Attrs) PadValue {
	all, constant := PadValue{Kind: PadFinite}, true
	var moved []PadValue
	for i, v := range x {
		if !v.finite() {
			all = PadValue{}
		}
		constant = constant && v.Kind == PadConstant
		if d.operand(i).Moved {
			moved = append(moved, v)
		}
	}
	if len(moved) > 0 {
		y := moved[0]
		for _, v := range moved[1:] {
			y = y.join(v)
		}
		return y
	}
	if constant && d.Elementwise() && !d.Random {
		in := make([]float64, len(x))
		for i, v := range x {
			in[i] = v.Value
		}
		y, ok := d.Scalar(attrs, in...)
		if !ok || math.IsNaN(y) || math.Abs(y) > math.MaxFloat32 {
			return PadValue{}
		}
		return PadValue{PadConstant, y}
	}
	for i, v := range x {
		if d.operand(i).Linear && v.zero() && all.finite() && d.Finite != FiniteSometimes {
			return v
		}
	}
	switch d.Finite {
	case FiniteAlways:
		return PadValue{Kind: PadFinite}
	case FiniteIfOperands:
		return all
	}
	return PadValue{}
}

// Scalar evaluates an elementwise operation that draws nothing on numbers.
func (d *OpDef) Scalar(attrs Attrs, x ...float64) (y float64, ok bool) {
	c := &EvalCtx{Op: &Op{Def: d, Attrs: attrs}, Out: make([]Val, 1), Shapes: [][]int{nil}}
	for _, v := range x {
		c.In = append(c.In, Val{T: ScalarTensor(v)})
	}
	if c.eval() != nil {
		return 0, false
	}
	return c.Out[0].T.Data[0], true
}

// zero reports whether operand i has zeros appended, or is given them.
func (p *Padding) zero(op *Op, i int) bool {
	v := op.Operands[i]
	if p.value(v).zero() {
		return true
	}
	if !p.value(v).finite() || p.Masks == nil || !p.Masks(v) {
		return false
	}
	if p.Zeroed == nil {
		p.Zeroed = map[*Op][]int{}
	}
	p.Zeroed[op] = append(p.Zeroed[op], i)
	p.Of[v] = padZero // for all that read it from here on
	return true
}

// The values of OpDef.Pad.

// padWith is of operations whose results have the same appended whatever they read.
func padWith(v PadValue) func(*Padding, *Op) []PadValue {
	return func(*Padding, *Op) []PadValue { return []PadValue{v} }
}

var (
	padUnknown = padWith(PadValue{}) // kernels may go through the rows of the graph only
	padEmpty   = padWith(padZero)    // a sum, or maximum, of no entries
)

// padSum is of sums, which have no row for each, unless each row is summed up.
func padSum(p *Padding, op *Op) []PadValue {
	if op.Reads(0) == ReadRow {
		return p.byRow(op)
	}
	if p.Long(op.Result()) || !p.zero(op, 0) {
		return nil
	}
	return []PadValue{{}}
}

// padCounted is of what divides by the number of rows, or is it.
func padCounted(p *Padding, op *Op) []PadValue {
	if op.Reads(0) == ReadAll && (p.Masks == nil || !p.Masks(op.Operands[0])) {
		return nil
	}
	if op.Def.ShapeOnly {
		return []PadValue{{}}
	}
	return padSum(p, op)
}

// padNormalized is of what keeps rows of zeros.
func padNormalized(p *Padding, op *Op) []PadValue {
	if p.value(op.Operands[0]).zero() {
		return []PadValue{padZero}
	}
	return p.byRow(op)
}

// padQuotient is of division. Where a number by which rows of the batch itself are
// divided is 0, these are lost anyway.
func padQuotient(p *Padding, op *Op) []PadValue {
	x, y := p.value(op.Operands[0]), p.value(op.Operands[1])
	switch {
	case p.Long(op.Operands[1]) && (y.Kind != PadConstant || y.Value == 0) || !x.finite() || !y.finite():
		return []PadValue{{}}
	case x.Kind == PadConstant && y.Kind == PadConstant && y.Value != 0:
		return p.byRow(op)
	case x.zero():
		return []PadValue{padZero}
	}
	return []PadValue{{Kind: PadFinite}}
}

// padProduct is of products of matrices.
func padProduct(p *Padding, op *Op) []PadValue {
	a, b := p.value(op.Operands[0]), p.value(op.Operands[1])
	if !op.Bool("ta") {
		switch {
		case p.Long(op.Operands[1]):
			return nil
		case a.zero():
			return []PadValue{a}
		}
		return []PadValue{{Kind: min(a.Kind, PadFinite)}}
	}
	// A sum over rows, which both factors have.
	if op.Operands[0].Type.Layout == CSR || a.zero() && b.finite() || a.finite() && p.zero(op, 1) {
		return []PadValue{{}}
	}
	return nil
}

// padAggregated is of sums over entries: rows without entries, to which their own term
// may come. In a block, the own term of a source is its target's.
func padAggregated(p *Padding, op *Op) []PadValue {
	s, h := p.value(op.Operands[2]), p.value(op.Operands[3])
	own := op.Operands[2] != nil && !(s.zero() && h.finite() || h.zero() && s.finite())
	if !own || op.Bool("transpose") && !p.Long(op.Operands[3]) {
		return []PadValue{padZero}
	}
	return []PadValue{{Kind: min(s.Kind, h.Kind, PadFinite)}}
}

// padExpression is of operations that compute an expression, of operands from first on,
// of what the product makes, if there is one, plus the operand before them.
func padExpression(first int, product func(*Padding, *Op) []PadValue) func(*Padding, *Op) []PadValue {
	return func(p *Padding, op *Op) []PadValue {
		var made PadValue
		if product != nil {
			y := product(p, op)
			if y == nil {
				return nil
			}
			made = y[0]
			if !p.Long(op.Result()) {
				return y
			}
			if c := op.Operands[first-1]; c != nil {
				made = Lookup("add").padded([]PadValue{made, p.value(c)}, nil)
			}
		}
		e := op.Expr()
		steps := make([]PadValue, len(e.Steps))
		arg := func(a ExprArg) PadValue {
			switch a.Kind {
			case ExprOperand:
				return p.value(op.Operands[first+a.Index])
			case ExprResult:
				return steps[a.Index]
			case ExprProduct:
				return made
			}
			return PadValue{PadConstant, a.Value}
		}
		for i, s := range e.Steps {
			x := make([]PadValue, len(s.Args))
			for k, a := range s.Args {
				x[k] = arg(a)
			}
			steps[i] = s.Def.padded(x, s.Attrs(op.Str("stream")))
		}
		return []PadValue{arg(e.Out)}
	}
}
