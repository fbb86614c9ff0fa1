package passes

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// constant returns the value of a fill.
func constant(v *ir.Value) (float64, bool) {
	if v == nil || v.Def == nil || v.Def.Name() != "fill" {
		return 0, false
	}
	return v.Def.Float("value"), true
}

func isConst(v *ir.Value, want float64) bool { c, ok := constant(v); return ok && c == want }

// made returns the operand of the unary operation that defines v, or nil.
func made(v *ir.Value, by string) *ir.Value {
	if v.Def == nil || v.Def.Name() != by {
		return nil
	}
	return v.Def.Operands[0]
}

// simplify applies algebraic identities until none applies.
func simplify(m *ir.Module, _ DataInfo) error {
	for _, f := range m.Funcs {
		for changed := true; changed; {
			changed = false
			rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
				v := identity(b, op)
				if v == nil || v.Def == op {
					return nil
				}
				changed = true
				return one(v)
			})
		}
	}
	return nil
}

// identity returns a simpler value that equals the operation's, or nil.
func identity(b *ir.Builder, op *ir.Op) *ir.Value {
	if len(op.Results) != 1 {
		return nil
	}
	t := op.Result().Type
	same := func(v *ir.Value) bool { return v.Type.Equal(t) }
	switch op.Name() {
	case "stop_gradient", "scale_grad":
		return op.Operands[0]
	case "dropout":
		if op.Float("rate") == 0 {
			return op.Operands[0]
		}
	case "neg":
		return made(op.Operands[0], "neg")
	case "unsqueeze":
		return made(op.Operands[0], "squeeze")
	case "squeeze":
		return made(op.Operands[0], "unsqueeze")
	case "broadcast_to":
		x := op.Operands[0]
		if same(x) {
			return x
		}
		if c, ok := constant(x); ok {
			return b.Fill(c, t)
		}
	}
	if op.Def.Broadcasts {
		return binaryIdentity(b, op, same)
	}
	return nil
}

func binaryIdentity(b *ir.Builder, op *ir.Op, same func(*ir.Value) bool) *ir.Value {
	x, y := op.Operands[0], op.Operands[1]
	switch op.Name() {
	case "add":
		switch {
		case isConst(y, 0) && same(x):
			return x
		case isConst(x, 0) && same(y):
			return y
		}
		if n := made(y, "neg"); n != nil {
			return b.Sub(x, n)
		}
		// [p, 0] + [0, q] = [p, q]: the gradients of two ranges of columns.
		for _, v := range [][2]*ir.Value{{x, y}, {y, x}} {
			if v[0].Def != nil && v[0].Def.Name() == "concat" && v[1].Def != nil && v[1].Def.Name() == "concat" {
				p, q := v[0].Def.Operands, v[1].Def.Operands
				if isConst(p[1], 0) && isConst(q[0], 0) && p[0].Type.Equal(q[0].Type) && p[1].Type.Equal(q[1].Type) {
					return b.Concat(p[0], q[1])
				}
			}
		}
	case "sub":
		switch {
		case isConst(y, 0) && same(x):
			return x
		case x == y:
			return b.Fill(0, op.Result().Type)
		}
	case "mul":
		switch {
		case isConst(y, 1) && same(x):
			return x
		case isConst(x, 1) && same(y):
			return y
		case isConst(x, -1) && same(y):
			return b.One("neg", nil, y)
		case isConst(y, -1) && same(x):
			return b.One("neg", nil, x)
		}
		// c·(d·z) = (cd)·z
		if c, ok := constant(y); ok && y.Type.Rank() == 0 && x.Def != nil && x.Def.Name() == "mul" {
			if d, ok := constant(x.Def.Operands[1]); ok && x.Def.Operands[1].Type.Rank() == 0 {
				return b.Scale(x.Def.Operands[0], c*d)
			}
		}
	case "div":
		if isConst(y, 1) && same(x) {
			return x
		}
	}
	// A repeated operand need not be stored: the operation repeats it itself.
	for i, v := range op.Operands {
		narrow := made(v, "broadcast_to")
		if c, ok := constant(v); ok && v.Type.Rank() > 0 {
			narrow = b.Fill(c, ir.T(v.Type.DType))
		}
		if narrow == nil {
			continue
		}
		ops := slices.Clone(op.Operands)
		ops[i] = narrow
		other := ops[1-i].Type
		if !other.SameShape(op.Result().Type) {
			continue // the other operand does not give the shape alone
		}
		return b.One(op.Name(), nil, ops...)
	}
	return nil
}
