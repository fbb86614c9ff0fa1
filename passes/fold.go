package passes

import "github.com/gsrc-dev/gsrc/ir"

// foldable operations act on each element alone, so that constants in give a
// constant out.
var foldable = map[string]bool{
	"add": true, "sub": true, "mul": true, "div": true, "maximum": true, "minimum": true, "logaddexp": true,
	"greater": true, "greater_equal": true, "less": true,
	"neg": true, "exp": true, "log": true, "sqrt": true, "rsqrt": true, "square": true, "sigmoid": true, "tanh": true,
	"relu": true, "elu": true, "leaky_relu": true, "pow": true, "unsqueeze": true, "squeeze": true,
}

func fold(m *ir.Module, _ Facts) error {
	return rewriteAll(m, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if !foldable[op.Name()] {
			return nil
		}
		c := &ir.EvalCtx{Op: op, Out: make([]ir.Val, 1), Shapes: [][]int{nil}}
		for _, v := range op.Operands {
			x, ok := constant(v)
			if !ok {
				return nil
			}
			c.In = append(c.In, ir.Val{T: ir.ScalarTensor(x)})
		}
		if op.Def.Eval(c) != nil {
			return nil
		}
		return one(b.Fill(c.Out[0].T.Data[0], op.Result().Type))
	})
}
