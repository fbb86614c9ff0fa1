package passes

import "github.com/gsrc-dev/gsrc/ir"

// The identities below hold anywhere. The pass fuse applies them because they
// free activations of readers, and gradients of what stands between them and the
// product that makes them.

// dropWithoutDraw frees the gradient of dropout after relu of its random draw.
// What was dropped is 0 in z = dropout(relu(x)), and what was not has the sign of
// relu(x): relu_grad(relu(x), dropout(dz)) = relu_grad(z, dz)/(1 − rate). The
// activation itself is then read by the dropout alone.
func dropWithoutDraw(m *ir.Module, f *ir.Func) {
	dropped := map[*ir.Value][]*ir.Op{} // by what is dropped
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		switch op.Name() {
		case "dropout":
			dropped[op.Operands[0]] = append(dropped[op.Operands[0]], op)
		case "relu_grad":
			y, dz := op.Operands[0], op.Operands[1].Def
			if made(y, "relu") == nil || dz == nil || dz.Name() != "dropout" {
				break
			}
			for _, z := range dropped[y] {
				if z.Str("stream") == dz.Str("stream") && z.Float("rate") == dz.Float("rate") {
					return one(b.Scale(b.One("relu_grad", nil, z.Result(), dz.Operands[0]), 1/(1-dz.Float("rate"))))
				}
			}
		}
		return nil
	})
	pruneBody(f)
}

// scatterLate moves what is done to scattered rows before the scattering, where
// there are fewer: the gradient of an activation, which is linear in the incoming
// gradient, where the activation's rows have been gathered anyway, and sums over
// all rows.
func scatterLate(m *ir.Module, f *ir.Func) {
	uses := f.Uses()
	type rows struct{ of, index *ir.Value }
	gathered := map[rows]*ir.Value{}
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		switch d := op.Def; {
		case op.Name() == "gather":
			gathered[rows{op.Operands[0], op.Operands[1]}] = op.Result()
		case d.Elementwise() && len(d.Operands) == 2 && d.Operands[1].Linear && !d.Broadcasts: // an activation's gradient
			s := op.Operands[1].Def
			if s == nil || s.Name() != "scatter_add" || uses[s.Result()] > 1 {
				break
			}
			if y := gathered[rows{op.Operands[0], s.Operands[1]}]; y != nil {
				dx := b.One(op.Name(), op.Attrs, y, s.Operands[0])
				return one(b.OneTyped("scatter_add", nil, op.Result().Type, dx, s.Operands[1]))
			}
		case op.Name() == "reduce_sum":
			if s := op.Operands[0].Def; op.Str("axis") == "0" && s != nil && s.Name() == "scatter_add" {
				return one(b.One("reduce_sum", op.Attrs, s.Operands[0]))
			}
		}
		return nil
	})
	pruneBody(f)
}
