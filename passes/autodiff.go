package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Differentiate is the function attribute that names the result whose
// gradients autodiff appends: one result "grad.NAME" for every parameter that
// the result depends on.
const Differentiate = "differentiate"

// GradPrefix starts the names of the results that autodiff appends.
const GradPrefix = "grad."

// autodiff resolves grad operations from the top of a function down, so that
// an inner gradient (a sampler's step) is plain operations by the time an
// outer one is taken, and then the gradients of the function's loss.
func autodiff(m *ir.Module, _ DataInfo) error {
	for _, f := range m.Funcs {
		if err := resolveGrads(m, f); err != nil {
			return fmt.Errorf("@%s: %w", f.Name, err)
		}
		if f.Attrs.Str(Differentiate) == "" {
			continue
		}
		if err := appendParamGrads(m, f); err != nil {
			return fmt.Errorf("@%s: %w", f.Name, err)
		}
	}
	return nil
}

func resolveGrads(m *ir.Module, f *ir.Func) (err error) {
	rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if op.Name() != "grad" || err != nil {
			return nil
		}
		var grads []*ir.Value
		grads, err = gradients(b, op.Operands[0], op.Operands[1:])
		return grads
	})
	return err
}

func appendParamGrads(m *ir.Module, f *ir.Func) error {
	loss := f.Result(f.Attrs.Str(Differentiate)) // a scalar: [ir.Verify] has looked
	b := ir.NewBuilder(m, f).At(len(f.Body))
	params := f.Params(m)
	grads, err := gradients(b, loss, params)
	if err != nil {
		return err
	}
	for i, p := range params {
		if grads[i].Def == nil || grads[i].Def.Name() != "fill" { // a parameter that the loss does not depend on
			b.Return(GradPrefix+p.Name, grads[i])
		}
	}
	delete(f.Attrs, Differentiate)
	return nil
}

// gradients appends the reverse sweep from y to the xs at the builder's place
// and returns ∂y/∂x; a zero fill where y does not depend on x.
func gradients(b *ir.Builder, y *ir.Value, xs []*ir.Value) ([]*ir.Value, error) {
	restore := b.Named("d")
	defer restore()
	defer placing(b)

	// Forward: what depends on an x. Nothing flows through a stopped value. Nothing
	// before the first x depends on one; a sampler's steps are long, and many.
	depends := map[*ir.Value]bool{}
	made := 0 // xs that operations make
	for _, x := range xs {
		if !depends[x] && x.Def != nil {
			made++
		}
		depends[x] = true
	}
	from := 0
	if made == len(depends) {
		from = b.Pos()
		for found := 0; found < made && from > 0; {
			from--
			for _, r := range b.Func.Body[from].Results {
				if depends[r] {
					found++
				}
			}
		}
	}
	before := slices.Clone(b.Func.Body[from:b.Pos()])
	for _, op := range before {
		if op.Name() == "stop_gradient" || !slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return v != nil && depends[v] }) {
			continue
		}
		for _, r := range op.Results {
			depends[r] = true
		}
	}

	// Backward: only through operations between the xs and y.
	ct := map[*ir.Value]*ir.Value{}
	if depends[y] {
		ct[y] = b.Fill(1, y.Type)
	}
	for _, op := range slices.Backward(before) {
		c := &ir.VJPCtx{Builder: b, Op: op}
		live := false
		for _, r := range op.Results {
			c.Ct = append(c.Ct, ct[r])
			live = live || ct[r] != nil
		}
		if !live {
			continue
		}
		reach := false
		for _, v := range op.Operands {
			c.Need = append(c.Need, v != nil && depends[v])
			reach = reach || v != nil && depends[v]
		}
		if !reach {
			continue
		}
		if op.Def.VJP == nil {
			return nil, ir.At(op, fmt.Errorf("%s has no gradient (%s), but the gradient of %s flows through %q", op.Name(), op.Def.NoGrad, y.Name, op))
		}
		b.From(op)
		for i, g := range op.Def.VJP(c) {
			if g == nil || !c.Need[i] {
				continue
			}
			v := op.Operands[i]
			if !g.Type.SameShape(v.Type) {
				return nil, ir.At(op, fmt.Errorf("gradient rule of %s: the product for operand %d is %s, want %s", op.Name(), i, g.Type, v.Type))
			}
			if old := ct[v]; old != nil {
				g = b.Add(old, g)
			}
			ct[v] = g
		}
	}
	out := make([]*ir.Value, len(xs))
	for i, x := range xs {
		if out[i] = ct[x]; out[i] == nil {
			out[i] = b.Fill(0, ir.T(x.Type.DType, x.Type.Dims...))
		}
	}
	return out, nil
}
