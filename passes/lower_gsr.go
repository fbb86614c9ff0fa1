package passes

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// A lowering builds the results of one operation from lower ones.
type lowering func(b *ir.Builder, op *ir.Op) []*ir.Value

func one(v *ir.Value) []*ir.Value { return []*ir.Value{v} }

func lowerGSR(m *ir.Module, _ DataInfo) error {
	err := rewriteAll(m, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if lower := gsrLowerings[op.Name()]; lower != nil {
			return lower(b, op)
		}
		return nil
	})
	if err == nil {
		lowerSamplers(m) // when energy functions are lowered
	}
	return err
}

// lowerSamplers has the steps of samplers (Eq 3) unrolled,
//
//	ν ← ν − (λ/2)·clip(∂E/∂ν) + σω
//
// detached, so that no gradient flows through the chain.
func lowerSamplers(m *ir.Module) {
	steps, energies := map[string]*ir.Func{}, map[string]bool{}
	for _, f := range slices.Clone(m.Funcs) {
		rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
			if op.Name() != "gsr.sgld_sample" {
				return nil
			}
			energies[op.FuncRef("energy")] = true
			attrs := op.Attrs.Clone()
			delete(attrs, "steps")
			key := fmt.Sprint(attrs)
			step := steps[key]
			if step == nil {
				step = samplerStep(m, op)
				steps[key] = step
			}
			return b.Op("unroll", ir.Attrs{"step": ir.FuncRef(step.Name), "steps": op.Int("steps"), "detach": true}, op.Operands...)
		})
	}
	for name := range energies {
		m.RemoveFunc(name) // inlined in the steps; nothing else calls it
	}
}

// samplerStep declares the step of a sampler.
func samplerStep(m *ir.Module, op *ir.Op) *ir.Func {
	energy := m.Func(op.FuncRef("energy"))
	name := "sgld"
	for i := 1; m.Func(name) != nil; i++ {
		name = fmt.Sprintf("sgld.%d", i)
	}
	b := m.NewFunc(name)
	var args []*ir.Value
	for _, a := range energy.Args {
		args = append(args, b.Arg(a.Name, a.Type))
	}
	nu := args[0]
	g := b.One("grad", nil, b.Inline(energy, args...)[0], nu)
	if clip := op.Float("clip"); clip > 0 {
		norm := b.One("sqrt", nil, b.One("reduce_sum", ir.Attrs{"axis": "1", "keep": true}, b.One("square", nil, g)))
		scale := b.One("minimum", nil, b.Const(1), b.Div(b.Const(clip), b.One("maximum", nil, norm, b.Const(1e-12))))
		g = b.Mul(g, scale)
	}
	nu = b.Add(nu, b.Scale(g, -op.Float("step")/2))
	if noise := op.Float("noise"); noise != 0 {
		nu = b.Add(nu, b.Scale(b.OneTyped("normal", ir.Attrs{"stream": op.Str("stream")}, nu.Type), noise))
	}
	b.Return(args[0].Name, nu)
	return b.Func
}

// gsrLowerings covers every gsr operation but sgld_sample, which lowerSamplers takes.
var gsrLowerings = map[string]lowering{
	"gsr.gaussian_blur": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		x := op.Operands[0]
		eps := b.OneTyped("normal", ir.Attrs{"stream": op.Str("stream")}, ir.T(x.Type.DType, x.Type.Dims...))
		return one(b.Add(x, b.Scale(eps, op.Float("sigma"))))
	},
	"gsr.mask_features": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		x := op.Operands[0]
		u := b.OneTyped("uniform", ir.Attrs{"stream": op.Str("stream")}, ir.T(x.Type.DType, x.Type.Dims[1]))
		return one(b.Mul(x, b.One("greater_equal", nil, u, b.Const(op.Float("rate")))))
	},
	"gsr.drop_edges": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		u := b.One("edge_uniform", ir.Attrs{"stream": op.Str("stream")}, op.Operands[0])
		return one(b.One("greater_equal", nil, u, b.Const(op.Float("rate"))))
	},
	"gsr.energy":      func(b *ir.Builder, op *ir.Op) []*ir.Value { return one(energy(b, op, op.Operands[0], op.Operands[1])) },
	"gsr.ecl_loss":    lowerECL,
	"gsr.refine":      lowerRefine,
	"gsr.consistency": lowerConsistency,
	"gsr.edge_probability": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		g, h, old, lo, hi := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4]
		n := b.One("l2_normalize", nil, h)
		cos := b.One("sddmm", nil, g, n, n)
		least := b.One("reduce_min", ir.Attrs{"axis": "all"}, b.Stop(cos))
		most := b.One("reduce_max", ir.Attrs{"axis": "all"}, b.Stop(cos))
		given := lo != nil
		if !given {
			lo, hi = least, most
		}
		t := normalised(b, cos, lo, hi, given)
		pOld, pNew := interval(b, op, t, "old_lo", "old_hi"), interval(b, op, t, "new_lo", "new_hi")
		return []*ir.Value{b.Add(b.Mul(old, pOld), b.Mul(b.Shift(b.One("neg", nil, old), 1), pNew)), lo, hi}
	},
	"gsr.pair_probability": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		cos := b.One("pair_dot", nil, b.One("l2_normalize", nil, op.Operands[0]), op.Operands[1])
		t := normalised(b, cos, op.Operands[2], op.Operands[3], true)
		return []*ir.Value{cos, interval(b, op, t, "new_lo", "new_hi"), interval(b, op, t, "old_lo", "old_hi")}
	},
	"gsr.relaxed_bernoulli": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		g, p := op.Operands[0], op.Operands[1]
		u := b.One("edge_uniform", ir.Attrs{"stream": op.Str("stream")}, g)
		u = b.One("minimum", nil, b.One("maximum", nil, u, b.Const(1e-6)), b.Const(1-1e-6))
		logit := func(x *ir.Value) *ir.Value {
			return b.Sub(b.One("log", nil, x), b.One("log", nil, b.Shift(b.One("neg", nil, x), 1)))
		}
		soft := b.One("sigmoid", nil, b.Scale(b.Add(logit(p), logit(u)), 1/op.Float("temperature")))
		hard := b.One("greater", nil, soft, b.Const(0.5))
		// Straight through: the value is hard, the gradient is that of soft.
		return one(b.Add(hard, b.Sub(soft, b.Stop(soft))))
	},
}

// normalised returns (cos − lo)/(hi − lo); no gradient reaches the bounds.
// Bounds that are not those of these cosines need the result clamped to
// [0, 1]; clamping always would stop the gradient of the outermost edges.
func normalised(b *ir.Builder, cos, lo, hi *ir.Value, clamp bool) *ir.Value {
	width := b.One("maximum", nil, b.Sub(hi, lo), b.Const(ir.LeastSpread))
	t := b.Div(b.Sub(cos, lo), width)
	if !clamp {
		return t
	}
	return b.One("minimum", nil, b.One("maximum", nil, t, b.Const(0)), b.Const(1))
}

func interval(b *ir.Builder, op *ir.Op, t *ir.Value, lo, hi string) *ir.Value {
	return b.Shift(b.Scale(t, op.Float(hi)-op.Float(lo)), op.Float(lo))
}

// energy is E(ν_n) = −ln(Σ_{m≠n} e^(−d_nm/τ) + e^(−d_nn/τ)).
func energy(b *ir.Builder, op *ir.Op, z, zp *ir.Value) *ir.Value {
	tau := op.Float("tau")
	r := b.Op("pairwise_reduce", ir.Attrs{"tau": tau}, z, zp)
	return b.One("neg", nil, b.One("logaddexp", nil, r[0], b.Scale(r[2], -1/tau)))
}

func lowerECL(b *ir.Builder, op *ir.Op) []*ir.Value {
	z, zp, zs, tau := op.Operands[0], op.Operands[1], op.Operands[2], op.Float("tau")
	attrs := ir.Attrs{"tau": tau}
	cross := b.Op("pairwise_reduce", attrs, z, zp)
	row, col, diag, sumsq := cross[0], cross[1], cross[2], cross[3]
	positive := b.Scale(diag, -1/tau) // −E(ν_n, ν′_n)
	n := b.One("count", ir.Attrs{"axis": "all"}, diag)

	// Eq 15 in both directions: 2(N−1) negatives, over 2N.
	rows, cols := row, col
	if op.Bool("positive") {
		rows, cols = b.One("logaddexp", nil, rows, positive), b.One("logaddexp", nil, cols, positive)
	}
	own := func(v *ir.Value) *ir.Value { return b.One("pairwise_self", attrs, v) }
	rows = b.One("logaddexp", nil, rows, own(z))
	cols = b.One("logaddexp", nil, cols, own(zp))
	perNode := b.Sub(b.Scale(b.Add(rows, cols), 0.5), positive)
	disc := b.Sub(b.Mean(perNode), b.One("log", nil, b.Scale(n, 2)))

	// Eq 13: E(ν) on data against E(ν*) on the sampler's nodes.
	gen := b.Const(0)
	if zs != nil {
		data := b.One("neg", nil, b.One("logaddexp", nil, row, positive))
		gen = b.Sub(b.Mean(data), b.Mean(energy(b, op, zs, zp)))
	}

	// Eq 17, as a mean over n ≠ m of (τE)², or as printed.
	var reg *ir.Value
	if op.Str("reg") == "paper" {
		reg = b.Div(b.Scale(sumsq, 1/(2*tau*tau)), n)
	} else {
		pairs := b.One("maximum", nil, b.Mul(n, b.Shift(n, -1)), b.Const(1))
		reg = b.Div(sumsq, pairs)
	}
	loss := b.Add(b.Scale(gen, op.Float("alpha")), b.Scale(reg, op.Float("beta")))
	if op.Bool("discriminative") {
		loss = b.Add(disc, loss)
	}
	return []*ir.Value{loss, disc, gen, reg}
}

func lowerRefine(b *ir.Builder, op *ir.Op) []*ir.Value {
	if op.Str("mode") == "expected" {
		return one(b.Scale(op.Operands[0], 1))
	}
	return one(b.One("greater_equal", nil, op.Operands[0], b.Const(op.Float("threshold"))))
}

func lowerConsistency(b *ir.Builder, op *ir.Op) []*ir.Value {
	var ps []*ir.Value
	var mean *ir.Value
	for _, logits := range op.Operands {
		p := b.One("softmax", nil, logits)
		ps = append(ps, p)
		mean = b.Plus(mean, p)
	}
	k := float64(len(ps))
	mean = b.Scale(b.Stop(mean), 1/k)
	q := b.One("l1_normalize", nil, b.One("pow", ir.Attrs{"exponent": 1 / op.Float("temperature")}, mean))
	var sure *ir.Value
	if c := op.Float("confidence"); c > 0 {
		sure = b.One("greater_equal", nil, b.One("reduce_max", ir.Attrs{"axis": "1"}, mean), b.Const(c))
	}
	var loss *ir.Value
	for _, p := range ps {
		d := b.One("reduce_sum", ir.Attrs{"axis": "1"}, b.One("square", nil, b.Sub(p, q)))
		if sure != nil {
			d = b.Mul(d, sure)
		}
		loss = b.Plus(loss, b.Mean(d))
	}
	return one(b.Scale(loss, 1/k))
}
