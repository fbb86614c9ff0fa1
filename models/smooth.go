package models

import "github.com/gsrc-dev/gsrc/ir"

// KnownLabels is the argument [N,C] of functions that read labels: rows of the nodes whose
// labels are known have a one in the column of the class, others are zeros.
const KnownLabels = "known_labels"

// SelfLoops is the argument [N] of an imported @classify: the weights that nodes' self-loops
// have among the edges, -1 of nodes without one. Exports read them from edge_index and edge_weight.
const SelfLoops = "self_loops"

// on reports whether predictions are smoothed in any way.
func (s Smooth) on() bool { return s.Alpha > 0 || s.Correct > 0 }

// smoothed returns smoothed logits: Correct and Smooth (Huang et al. 2020). With
// S = D^-½AD^-½, or D_in^-½AD_out^-½ of directed edges, and steps of r ← a·S·r + (1 − a)·r₀,
// first the errors of the predictions on nodes of known labels are spread and subtracted
// elsewhere, then the predictions with the known labels in their places. Each node's errors
// are scaled as large as the mean known one, but at most a thousandfold.
func (o Options) smoothed(b *ir.Builder, g, w, known, logits *ir.Value) *ir.Value {
	s := o.Smooth
	defer b.Named("smooth")()
	const tiny = 1e-9 // a probability whose logarithm is finite
	rows := ir.Attrs{"axis": "1", "keep": true}
	all := ir.Attrs{"axis": "all"}

	factor := func(side string) *ir.Value { // 0 of nodes without edges
		degree := b.One("edge_sum", ir.Attrs{"side": side}, g, w)
		return b.Mul(b.One("greater", nil, degree, b.Const(0)), b.One("rsqrt", nil, b.One("maximum", nil, degree, b.Const(leastWeight))))
	}
	at := func(side string, r *ir.Value) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, g, r) }
	into := factor("dst")
	out := into
	if o.Directed {
		out = factor("src")
	}
	a := b.Mul(w, b.Mul(at("dst", into), at("src", out)))
	spread := func(r *ir.Value, alpha float64) *ir.Value {
		kept := b.Scale(r, 1-alpha)
		for range s.Steps {
			r = b.Add(b.Scale(b.One("spmm", nil, g, a, nil, r), alpha), kept)
		}
		return r
	}
	size := func(r *ir.Value) *ir.Value { // Σ_j |r_ij|
		return b.One("reduce_sum", rows, b.One("maximum", nil, r, b.One("neg", nil, r)))
	}

	p := b.One("softmax", nil, logits)
	mask := b.One("reduce_sum", rows, known)
	if s.Correct > 0 {
		errors := b.Sub(known, b.Mul(mask, p))
		mean := b.Div(b.One("reduce_sum", all, size(errors)), b.One("maximum", nil, b.One("reduce_sum", all, mask), b.Const(1)))
		errors = spread(errors, s.Correct)
		least := b.Shift(b.Scale(mean, 1e-3), tiny)
		p = b.Add(p, b.Mul(errors, b.Div(mean, b.One("maximum", nil, size(errors), least))))
	}
	if s.Alpha > 0 {
		others := b.Sub(b.Const(1), mask)
		p = spread(b.Add(known, b.Mul(others, p)), s.Alpha)
	}
	return b.One("log", nil, b.One("maximum", nil, p, b.Const(tiny)))
}

// labelPropagation builds the model that spreads known labels over the graph and reads
// nothing else (Zhou et al. 2004): predictions that tell nothing, smoothed. Without
// model.smooth it says of every class that it is as likely as the others.
func labelPropagation(o Options) *ir.Module {
	return alone(&Architecture{Model: "label-propagation", noGraph: always, declare: func(_ *ir.Module, s shape, _ Options) network { return ignorant(s.out) }})(o)
}

// ignorant is a network without parameters whose logits are zeros of that many classes: a
// product, since a fill whose number of rows the data decide has no form in ONNX.
type ignorant int

func (n ignorant) run(b *ir.Builder, _, _, x *ir.Value, _ *dropouts) *ir.Value {
	return b.MatMul(x, b.Fill(0, ir.T(ir.F32, x.Type.Dims[1], ir.D(int(n)))))
}
