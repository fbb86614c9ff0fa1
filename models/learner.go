package models

import "github.com/gsrc-dev/gsrc/ir"

// What structure learners have in common.

// learner declares the encoder of a learner by similarities, and the type of its embedding. It
// is one of the networks, or diagonal.
func (o Options) learner(m *ir.Module) (n network, embedding ir.Type) {
	s := shape{name: "encoder", group: "encoder", act: "tanh", in: o.Features, hidden: o.Encoder.Hidden, layers: o.Encoder.Layers, out: o.Encoder.Hidden, decay: o.Encoder.WeightDecay}
	if o.Encoder.Kind == EncoderDiagonal {
		return declareDiagonal(m, s), features(o)
	}
	return architecture(o.Encoder.Kind).declare(m, s, o), ir.T(ir.F32, "N", ir.D(o.Encoder.Hidden))
}

// cosines returns those of the rows of h at the ends of each candidate.
func cosines(b *ir.Builder, c, h *ir.Value) *ir.Value {
	z := b.One("l2_normalize", nil, h)
	return b.One("sddmm", nil, c, z, z)
}

// probabilities are the results of @probability.
var probabilities = []string{"probability", "lo", "hi"}

// returnProbability returns the probability of candidates where no similarity is normalised
// with the bounds of others.
func returnProbability(b *ir.Builder, p *ir.Value) {
	for i, v := range []*ir.Value{p, b.Const(0), b.Const(1)} {
		b.Return(probabilities[i], v)
	}
}

// refine declares @refine.
func (o Options) refine(m *ir.Module) {
	b := m.NewFunc("refine")
	b.Return("w", o.refined(b, b.DynamicArg("p", ir.T(ir.F32, "M"))))
}

// refined returns the weights of the candidates in the refined graph.
func (o Options) refined(b *ir.Builder, p *ir.Value) *ir.Value {
	return b.One("gsr.refine", ir.Attrs{"mode": o.Edges.Mode, "threshold": o.Edges.Threshold}, p)
}

// fit declares @fit of a classifier on the candidates, whose weights are made of their
// probabilities.
func (o Options) fit(m *ir.Module, a *Architecture, n network, weights func(b *ir.Builder, p *ir.Value) *ir.Value) {
	b := m.NewFunc("fit")
	x, c := b.Arg("x", features(o)), b.Arg("c", candidates)
	p := b.Arg("p", ir.T(ir.F32, "M"))
	o.learnOn(b, a, n, c, x, func() *ir.Value { return weights(b, p) })
}

// learnOn declares the loss of a classifier on the candidates with weights.
func (o Options) learnOn(b *ir.Builder, a *Architecture, n network, c, x *ir.Value, weights func() *ir.Value) {
	idx := b.Arg("train_idx", trainIdx)
	answers := answers(b, o)
	supervisedLoss(b, a, o, n, c, weights, x, idx, answers)
}

// asProbabilities has candidates weigh what their probabilities are.
func asProbabilities(_ *ir.Builder, p *ir.Value) *ir.Value { return p }
