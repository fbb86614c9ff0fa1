package passes

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// sparsify gives the arguments that DataInfo names a CSR type and carries it
// through every operation that keeps zeros; elsewhere to_dense is inserted.
func sparsify(m *ir.Module, info DataInfo) error {
	if len(info.SparseArgs) == 0 {
		return nil
	}
	for _, f := range m.Funcs {
		sparse := false
		for _, a := range f.Args {
			if slices.Contains(info.SparseArgs, a.Name) && a.Type.Rank() == 2 && a.Type.DType == ir.F32 {
				a.Type.Layout = ir.CSR
				sparse = true
			}
		}
		if !sparse {
			continue
		}
		dense := map[*ir.Value]*ir.Value{}
		toDense := func(b *ir.Builder, v *ir.Value) *ir.Value {
			if dense[v] == nil {
				dense[v] = b.One("to_dense", nil, v)
			}
			return dense[v]
		}
		rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
			if !slices.ContainsFunc(op.Operands, isCSR) || op.Name() == "to_dense" {
				return nil
			}
			ops := slices.Clone(op.Operands)
			if op.Name() == "mul" && isCSR(ops[1]) && !isCSR(ops[0]) {
				ops[0], ops[1] = ops[1], ops[0]
			}
			if isCSR(ops[0]) {
				if _, ok := takesSparse(op, ops); ok {
					return b.Op(op.Name(), op.Attrs, ops...)
				}
			}
			for i, v := range ops {
				if isCSR(v) {
					ops[i] = toDense(b, v)
				}
			}
			return b.OpTyped(op.Name(), op.Attrs, op.ResultTypes(), ops...)
		})
		b := ir.NewBuilder(m, f)
		for i, r := range f.Results {
			if isCSR(r.Value) {
				f.Results[i].Value = toDense(b, r.Value)
			}
		}
	}
	return nil
}

func isCSR(v *ir.Value) bool { return v != nil && v.Type.Layout == ir.CSR }

// takesSparse reports whether an operation takes its first operand stored sparsely, by
// its type rule, and whether the result is then stored sparsely too. A sparse matrix may
// be a product's first operand, and may be scaled, dropped out and row-normalised.
func takesSparse(op *ir.Op, operands []*ir.Value) (result, ok bool) {
	if !op.Def.Operands[0].Sparse || slices.ContainsFunc(operands[1:], isCSR) {
		return false, false
	}
	x := *operands[0]
	x.Type.Layout = ir.CSR
	as := &ir.Op{Def: op.Def, Attrs: op.Attrs, Operands: append([]*ir.Value{&x}, operands[1:]...)}
	ts, err := (&ir.InferCtx{Op: as}).Types()
	return err == nil && ts[0].Layout == ir.CSR, err == nil
}
