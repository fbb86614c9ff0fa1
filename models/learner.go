package models

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

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

func (o Options) refine(m *ir.Module) {
	b := m.NewFunc("refine")
	b.Return("w", o.refined(b, b.DynamicArg("p", ir.T(ir.F32, "M"))))
}

// refined returns the weights of the candidates in the refined graph.
func (o Options) refined(b *ir.Builder, p *ir.Value) *ir.Value {
	return b.One("gsr.refine", ir.Attrs{"mode": o.Edges.Mode, "threshold": o.Edges.Threshold}, p)
}

// fit declares @fit of a classifier on the candidates, whose weights are made of their
// probabilities; arg declares these, which joint steps may move.
func (o Options) fit(m *ir.Module, a *Architecture, n network, arg func(b *ir.Builder, name string, t ir.Type) *ir.Value, weights func(b *ir.Builder, p *ir.Value) *ir.Value) {
	b := m.NewFunc("fit")
	x, c := b.Arg("x", features(o)), b.Arg("c", candidates)
	p := arg(b, "p", ir.T(ir.F32, "M"))
	o.learnOn(b, a, n, c, x, func() *ir.Value { return weights(b, p) })
}

// learnOn declares the loss of a classifier on the candidates with weights.
func (o Options) learnOn(b *ir.Builder, a *Architecture, n network, c, x *ir.Value, weights func() *ir.Value) {
	idx, answers := supervision(b, o)
	supervisedLoss(b, a, o, n, c, weights, x, idx, answers)
}

// asProbabilities has candidates weigh what their probabilities are.
func asProbabilities(_ *ir.Builder, p *ir.Value) *ir.Value { return p }

// similarFeatures declares the rows by which candidates are searched once.
func similarFeatures(m *ir.Module, o Options) {
	b := m.NewFunc("similar")
	b.Return("rows", unitFeatures(b, o))
}

// unitFeatures returns the rows of the features, of length 1 or 0.
func unitFeatures(b *ir.Builder, o Options) *ir.Value {
	return b.One("l2_normalize", nil, b.One("to_dense", nil, b.Arg("x", features(o))))
}

// WeighsTogether reports whether @probability of m gives the candidates of any graph their weights,
// and there is no @score, since these depend on one another.
func WeighsTogether(m *ir.Module) bool {
	f := m.Func("probability")
	known := []string{"c", "embedding", "old", "x"}
	return f != nil && m.Func("score") == nil && f.Arg("c") != nil && !slices.ContainsFunc(f.Args, func(a *ir.Value) bool { return !slices.Contains(known, a.Name) })
}

// ClassifiesEmbedding reports whether the classifier of m reads what an encoder makes of the features.
func ClassifiesEmbedding(m *ir.Module) bool {
	f := m.Func("classify")
	return f != nil && f.Arg("embedding") != nil
}

// symmetric is a graph of candidates whose weights are the same in both directions. What it
// computes is the mean of both directions, which is what either gives, and has the same gradient
// for both.
type symmetric struct {
	b      *ir.Builder
	c, w   *ir.Value
	degree *ir.Value // [N] sums of the weights
}

func newSymmetric(b *ir.Builder, c, w *ir.Value) *symmetric {
	s := &symmetric{b: b, c: c, w: w}
	s.degree = s.mean(b.One("edge_sum", ir.Attrs{"side": "dst"}, c, w), b.One("edge_sum", ir.Attrs{"side": "src"}, c, w))
	return s
}

func (s *symmetric) mean(in, out *ir.Value) *ir.Value { return s.b.Scale(s.b.Add(in, out), 0.5) }

func (s *symmetric) at(side string, v *ir.Value) *ir.Value {
	return s.b.One("edge_gather", ir.Attrs{"side": side}, s.c, v)
}

// root returns (degree + self)^-½.
func (s *symmetric) root(self float64) *ir.Value {
	return s.b.One("pow", ir.Attrs{"exponent": -0.5}, s.b.Shift(s.degree, self))
}

// norm returns the normalised weights of entries, and of nodes themselves, which begin as 1.
func (s *symmetric) norm() (a, self *ir.Value) {
	b, root := s.b, s.root(1)
	return b.Mul(b.Mul(s.w, s.at("dst", root)), s.at("src", root)), b.Mul(root, root)
}

// gcn returns what a graph convolutional network makes of x.
func (s *symmetric) gcn(n *stack, x *ir.Value, drop *dropouts) *ir.Value {
	a, self := s.norm()
	return s.propagate(n, a, self, x, drop)
}

// propagate is gcn with normalised weights.
func (s *symmetric) propagate(n *stack, a, self, x *ir.Value, drop *dropouts) *ir.Value {
	return n.with(s.b, x, drop, func(h *ir.Value) *ir.Value {
		return s.mean(s.b.One("spmm", nil, s.c, a, self, h), s.b.One("spmm", ir.Attrs{"transpose": true}, s.c, a, self, h))
	})
}
