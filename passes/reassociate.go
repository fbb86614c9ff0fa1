package passes

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// reassociate rewrites sums and products of matrices to equal ones that cost
// less. Products cost what their sizes say, whatever the data:
//
//	A·B₁ + A·B₂           A·(B₁ + B₂), and so for every operation that is linear in
//	                      one operand and equal in the others
//	[S, D]·W              S·W₁ + D·W₂ where S is stored sparsely, W₁ and W₂ the rows
//	[S, D]ᵀ·Δ             [Sᵀ·Δ; Dᵀ·Δ]   of W: beside a dense matrix S would be dense
//
// The first rule makes one product with the features out of the weight
// gradients of all views; the second keeps the features of X† sparse.
func reassociate(m *ir.Module, info DataInfo) error {
	for _, f := range m.Funcs {
		merged := 0
		for changed := true; changed; { // the terms of a merged sum may merge in their turn
			changed = false
			uses := f.Uses()
			rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
				if changed || op.Name() != "add" || !isSumRoot(f, op, uses) {
					return nil
				}
				v, n := mergeSum(b, op, uses, info)
				if v == nil {
					return nil
				}
				changed, merged = true, merged+n
				return one(v)
			})
			pruneBody(f)
		}
		split := splitConcats(m, f, info)
		if merged+split > 0 {
			info.say("reassociate", f, fmt.Sprintf("%d terms of sums merged into others, %d products with sparse features beside dense ones split", merged, split))
		}
	}
	return nil
}

// isSumRoot reports whether the sum is not itself a term of a larger one.
func isSumRoot(f *ir.Func, op *ir.Op, uses map[*ir.Value]int) bool {
	if uses[op.Result()] != 1 {
		return true
	}
	return !slices.ContainsFunc(f.Body, func(r *ir.Op) bool {
		return r.Name() == "add" && slices.Contains(r.Operands, op.Result()) && r.Result().Type.Equal(op.Result().Type)
	})
}

// linear says which operand an operation is linear in.
var linear = map[string][]int{
	"matmul":      {1, 0},
	"solve_upper": {1},
	"scatter_add": {0},
	"gather":      {0},
	"spmm":        {3},
}

// mergeSum merges the terms of a sum that are the same linear operation with all
// operands but one in common. It returns nil where none are, and else how many
// terms went into others.
func mergeSum(b *ir.Builder, root *ir.Op, uses map[*ir.Value]int, info DataInfo) (*ir.Value, int) {
	var terms []*ir.Value
	var collect func(op *ir.Op)
	collect = func(op *ir.Op) {
		for _, v := range op.Operands {
			if v.Def != nil && v.Def.Name() == "add" && uses[v] == 1 && v.Type.Equal(root.Result().Type) {
				collect(v.Def)
			} else {
				terms = append(terms, v)
			}
		}
	}
	collect(root)
	if slices.ContainsFunc(terms, func(v *ir.Value) bool { return !v.Type.Equal(root.Result().Type) }) {
		return nil, 0
	}
	merged := 0
	for i := 0; i < len(terms); i++ {
		v := terms[i]
		if v.Def == nil || uses[v] != 1 {
			continue
		}
		for _, at := range linear[v.Def.Name()] {
			if at == 0 && v.Def.Name() == "matmul" && isSparse(v.Def.Operands[0], info) {
				continue // a sum of sparse matrices has another structure
			}
			same := []*ir.Value{v}
			for _, w := range terms[i+1:] {
				if w != v && uses[w] == 1 && alikeBut(v.Def, w.Def, at) {
					same = append(same, w)
				}
			}
			if len(same) == 1 {
				continue
			}
			sum := v.Def.Operands[at]
			for _, w := range same[1:] {
				sum = b.Add(sum, w.Def.Operands[at])
			}
			ops := slices.Clone(v.Def.Operands)
			ops[at] = sum
			terms[i] = b.OneTyped(v.Def.Name(), v.Def.Attrs, v.Type, ops...)
			terms = slices.DeleteFunc(terms, func(w *ir.Value) bool { return slices.Contains(same[1:], w) })
			merged += len(same) - 1
			break
		}
	}
	if merged == 0 {
		return nil, 0
	}
	sum := terms[0]
	for _, v := range terms[1:] {
		sum = b.Add(sum, v)
	}
	return sum, merged
}

// alikeBut reports whether two operations are the same but for operand at, of
// one type.
func alikeBut(x, y *ir.Op, at int) bool {
	if y == nil || x.Def != y.Def || !x.Operands[at].Type.Equal(y.Operands[at].Type) || !maps.Equal(x.Attrs, y.Attrs) {
		return false
	}
	for i := range x.Operands {
		if i != at && x.Operands[i] != y.Operands[i] {
			return false
		}
	}
	return true
}

// isSparse reports whether sparsify will keep a value sparse: an argument that
// DataInfo names, scaled, dropped out or row-normalised.
func isSparse(v *ir.Value, info DataInfo) bool {
	if v.Def == nil {
		return !v.Param && v.Type.Rank() == 2 && slices.Contains(info.SparseArgs, v.Name)
	}
	x := v.Def.Operands
	if len(x) == 0 {
		return false
	}
	if kept, _ := takesSparse(v.Def, x); kept && isSparse(x[0], info) {
		return true
	}
	return v.Def.Name() == "mul" && scales(x[0], v) && isSparse(x[1], info)
}

// scales reports whether a factor is the same along a dimension of the product:
// a scalar, a row, a column.
func scales(factor, product *ir.Value) bool {
	t := factor.Type
	return product.Type.Rank() == 2 && (t.Rank() < 2 || t.Dims[0] == "1" || t.Dims[1] == "1")
}

// splitConcats splits products with [S, D] where S is sparse, and returns how
// many.
func splitConcats(m *ir.Module, f *ir.Func, info DataInfo) int {
	n := 0
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if op.Name() != "matmul" {
			return nil
		}
		x, y := op.Operands[0], op.Operands[1]
		if op.Bool("tb") || !holdsSparse(x, info) {
			return nil
		}
		left, right := sides(b, x)
		n++
		wl, _ := left.Type.Dims[1].Size()
		wr, _ := right.Type.Dims[1].Size()
		if op.Bool("ta") {
			return one(b.One("stack", nil, b.One("matmul", op.Attrs, left, y), b.One("matmul", op.Attrs, right, y)))
		}
		rows := func(from, count int) *ir.Value {
			return b.One("slice", ir.Attrs{"from": from, "count": count}, y)
		}
		return one(b.Add(b.MatMul(left, rows(0, wl)), b.MatMul(right, rows(wl, wr))))
	})
	if n > 0 {
		mergeEqual(f) // the sides of one matrix are taken for each of its products
		pruneBody(f)
	}
	return n
}

// holdsSparse reports whether a value is [a, b] with a sparse side, its columns
// or rows scaled at most.
func holdsSparse(v *ir.Value, info DataInfo) bool {
	if v.Def == nil {
		return false
	}
	switch v.Def.Name() {
	case "concat":
		return slices.ContainsFunc(v.Def.Operands, func(s *ir.Value) bool { return isSparse(s, info) || holdsSparse(s, info) })
	case "mul":
		x, y := v.Def.Operands[0], v.Def.Operands[1]
		return scales(y, v) && holdsSparse(x, info) || scales(x, v) && holdsSparse(y, info)
	}
	return false
}

// sides returns a and b of what holdsSparse knows, scaled each for itself.
func sides(b *ir.Builder, v *ir.Value) (left, right *ir.Value) {
	if v.Def.Name() == "concat" {
		return v.Def.Operands[0], v.Def.Operands[1]
	}
	x, factor := v.Def.Operands[0], v.Def.Operands[1]
	if scales(x, v) {
		x, factor = factor, x
	}
	left, right = sides(b, x)
	wl, _ := left.Type.Dims[1].Size()
	wr, _ := right.Type.Dims[1].Size()
	return b.Mul(left, part(b, factor, v, 0, wl)), b.Mul(right, part(b, factor, v, wl, wr))
}

// part returns the factor of some columns: a row has one for each.
func part(b *ir.Builder, factor, product *ir.Value, from, width int) *ir.Value {
	switch t := factor.Type; {
	case t.Rank() == 1 && t.Dims[0] == product.Type.Dims[1]:
		return b.One("slice", ir.Attrs{"from": from, "count": width}, factor)
	case t.Rank() == 2 && t.Dims[1] == product.Type.Dims[1]:
		return b.One("columns", ir.Attrs{"from": from, "width": width}, factor)
	}
	return factor
}
