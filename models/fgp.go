package models

import "github.com/gsrc-dev/gsrc/ir"

// EncoderFGP is the value of Encoder.Kind that only sublime has: in place of a learner each
// candidate has a parameter θ of its own, and the weight elu(θ) + 1, as SLAPS and SUBLIME have
// for all pairs (full graph parameterization). It begins as the nearest neighbours by features.
//
// Candidates change with data, so θ is no parameter of the program but handed from step to step,
// with the moments of Adam beside it. Both entries of a candidate have the same.
const EncoderFGP = "fgp"

// fgpLeast is the weight that pairs begin with which are not nearest neighbours: θ = −6.
const fgpLeast = -6

func freeWeights(b *ir.Builder, theta *ir.Value) *ir.Value {
	return b.Shift(b.One("elu", nil, theta), 1)
}

// beginFree returns what the first step reads: of weights up to 1 θ is the logarithm.
func (e *sublimeModel) beginFree(b *ir.Builder, c *ir.Value) {
	x := b.One("to_dense", nil, b.Arg("x", features(e.Options)))
	cos := cosines(b, c, x)
	weight := b.Mul(e.nearest(b, c, cos), b.One("greater", nil, cos, b.Const(0)))
	theta := b.One("log", nil, b.One("maximum", nil, weight, b.One("exp", nil, b.Const(fgpLeast))))
	none := b.Scale(theta, 0)
	freeState{theta, none, none, b.Const(1), b.Const(1)}.handOn(b)
}

// freeState is θ, and what Adam keeps of its gradients: moments, and powers of their decays.
type freeState struct{ theta, m, v, power1, power2 *ir.Value }

func (s freeState) handOn(b *ir.Builder) {
	for i, v := range []*ir.Value{s.theta, s.m, s.v, s.power1, s.power2} {
		b.Return(NextPrefix+[]string{"theta", "theta.m", "theta.v", "theta.power1", "theta.power2"}[i], v)
	}
}

// step makes a step of Adam along the gradient of the loss.
func (s freeState) step(b *ir.Builder, loss *ir.Value, lr float64) {
	g := b.One("grad", nil, loss, s.theta)
	s.power1, s.power2 = b.Scale(s.power1, adamDecay[0]), b.Scale(s.power2, adamDecay[1])
	s.m = b.Add(b.Scale(s.m, adamDecay[0]), b.Scale(g, 1-adamDecay[0]))
	s.v = b.Add(b.Scale(s.v, adamDecay[1]), b.Scale(b.One("square", nil, g), 1-adamDecay[1]))
	root := b.One("sqrt", nil, b.Div(s.v, b.Sub(b.Const(1), s.power2)))
	s.theta = b.Sub(s.theta, b.Scale(b.Div(b.Div(s.m, b.Sub(b.Const(1), s.power1)), b.Shift(root, adamEpsilon)), lr))
	s.handOn(b)
}
