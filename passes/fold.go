package passes

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// fold replaces elementwise operations on constants, and what moves the elements of one
// constant, by constants.
func fold(m *ir.Module, _ DataInfo) error {
	return rewriteAll(m, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		var x, moved []float64
		for i, v := range op.Operands {
			c, ok := constant(v)
			if !ok {
				return nil
			}
			if x = append(x, c); op.Def.Operands[min(i, len(op.Def.Operands)-1)].Moved {
				moved = append(moved, c)
			}
		}
		switch y, ok := 0.0, false; {
		case len(moved) > 0 && !slices.ContainsFunc(moved, func(c float64) bool { return c != moved[0] }):
			return one(b.Fill(moved[0], op.Result().Type))
		case len(moved) == 0 && op.Def.Elementwise() && !op.Draws():
			if y, ok = op.Def.Scalar(op.Attrs, x...); ok {
				return one(b.Fill(y, op.Result().Type))
			}
		}
		return nil
	})
}
