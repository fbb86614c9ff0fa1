package passes

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// unrollSGLD replaces gsr.sgld_sample by its K steps (Eq 3):
//
//	ν ← ν − (λ/2)·clip(∂E/∂ν) + σω
//
// with the energy function inlined in each and its gradient left to autodiff.
// The result is detached, as are the steps' gradients.
func unrollSGLD(m *ir.Module, _ DataInfo) error {
	energies := map[string]bool{}
	for _, f := range m.Funcs {
		var err error
		rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
			if op.Name() != "gsr.sgld_sample" || err != nil {
				return nil
			}
			energy := m.Func(op.FuncRef("energy"))
			energies[energy.Name] = true
			var nu *ir.Value
			if nu, err = unroll(b, op, energy); err != nil {
				err = fmt.Errorf("@%s: %w", f.Name, err)
				return nil
			}
			return one(nu)
		})
		if err != nil {
			return err
		}
	}
	for name := range energies {
		m.RemoveFunc(name) // inlined everywhere; nothing calls it any more
	}
	return nil
}

func unroll(b *ir.Builder, op *ir.Op, energy *ir.Func) (*ir.Value, error) {
	if len(energy.Args) != len(op.Operands) {
		return nil, fmt.Errorf("%s: @%s takes %d arguments, got %d", op.Name(), energy.Name, len(energy.Args), len(op.Operands))
	}
	if len(energy.Results) != 1 || energy.Results[0].Value.Type.Rank() != 0 {
		return nil, fmt.Errorf("%s: @%s must return one scalar", op.Name(), energy.Name)
	}
	nu := b.Stop(op.Operands[0])
	captured := op.Operands[1:]
	for k := range op.Int("steps") {
		step := fmt.Sprintf("sgld%d", k)
		restore := b.Named(step)
		e := b.Inline(energy, append([]*ir.Value{nu}, captured...)...)[0]
		g := b.One("grad", nil, e, nu)
		if clip := op.Float("clip"); clip > 0 {
			norm := b.One("sqrt", nil, b.One("reduce_sum", ir.Attrs{"axis": "1", "keep": true}, b.One("square", nil, g)))
			scale := b.One("minimum", nil, b.Const(1), b.Div(b.Const(clip), b.One("maximum", nil, norm, b.Const(1e-12))))
			g = b.Mul(g, scale)
		}
		nu = b.Add(nu, b.Scale(g, -op.Float("step")/2))
		if noise := op.Float("noise"); noise != 0 {
			omega := b.OneTyped("normal", ir.Attrs{"stream": fmt.Sprintf("%s.%d", op.Str("stream"), k)}, nu.Type)
			nu = b.Add(nu, b.Scale(omega, noise))
		}
		nu = b.Stop(nu)
		restore()
	}
	return nu, nil
}
