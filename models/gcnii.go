package models

import (
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/ir"
)

// gcnii is a deep graph convolutional network whose layers keep a part of the
// first one's result (initial residual) and change their input little, the less
// the deeper they are (identity mapping; Chen et al. 2020):
//
//	h₀ = relu(x·W_in + b_in)
//	h_l = relu(((1 − α)·Â·h_{l−1} + α·h₀)·((1 − β_l)·I + β_l·W_l)),  β_l = ln(λ/l + 1)
//	y = h_L·W_out + b_out
//
// The dense layers have the usual weight decay, the others their own.
type gcnii struct {
	GCNII
	act     string
	in, out affine
	weights []*ir.Value
}

func declareGCNII(m *ir.Module, s shape, o Options) network {
	n := &gcnii{GCNII: o.GCNII, act: s.act}
	n.in = affine{s.weight(m, 0, "weight", s.in, s.hidden), s.bias(m, 0, "bias", s.hidden)}
	conv := s
	conv.decay, conv.decayFirst = o.GCNII.WeightDecay, false
	for l := range s.layers {
		n.weights = append(n.weights, conv.weight(m, l+1, "weight", s.hidden, s.hidden))
	}
	n.out = affine{s.weight(m, s.layers+1, "weight", s.hidden, s.out), s.bias(m, s.layers+1, "bias", s.out)}
	return n
}

func (n *gcnii) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	norm := b.Op("gnn.sym_norm", nil, g, w)
	first := b.One("gnn.linear", ir.Attrs{"act": n.act}, drop.apply(b, 0, x), n.in.weight, n.in.bias)
	kept := b.Scale(first, n.Alpha)
	h := first
	for l, weight := range n.weights {
		beta := fmath.Log(n.Lambda/float64(l+1) + 1)
		h = b.One("spmm", nil, g, norm[0], norm[1], drop.apply(b, l+1, h))
		h = b.Add(b.Scale(h, 1-n.Alpha), kept)
		h = b.Add(b.Scale(b.MatMul(h, weight), beta), b.Scale(h, 1-beta))
		h = b.One(n.act, nil, h)
	}
	return b.One("gnn.linear", nil, drop.apply(b, len(n.weights)+1, h), n.out.weight, n.out.bias)
}
