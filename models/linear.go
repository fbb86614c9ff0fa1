package models

import "github.com/gsrc-dev/gsrc/ir"

// linear is multinomial logistic regression: no hidden layer, on the features or on what
// is left of them after propagation with restart,
//
//	h₀ = x·W    h_k = 0.9·Â·h_{k−1} + 0.1·h₀    y = h_steps + b
//
// The product comes first: classes are fewer than features, and both are linear. Counts
// are weighted by how rare their column is in the training graph (tf-idf); the weights
// are a parameter that nothing trains, so that another graph is read alike.
type linear struct {
	Linear
	rarity, weight, bias *ir.Value
	rows                 bool // rows have length 1
}

// Rarity is the parameter [features] that columns are multiplied by. It begins as ones, and
// the training loop sets it where features are counts.
const Rarity = "classifier.rarity"

// restart is the share of its own features that a node keeps in each step.
const restart = 0.1

func declareLinear(m *ir.Module, s shape, o Options) network {
	rarity := m.AddParam(Rarity, ir.T(ir.F32, ir.D(o.Features)), "ones", 0, statisticsGroup)
	rarity.Attrs[ir.Fixed] = true
	return &linear{o.Linear, rarity,
		s.weight(m, 0, "weight", s.in, s.out), s.bias(m, 0, "bias", s.out), o.Norm != "none"}
}

// scale weights the features; known labels beside them are none.
func (n *linear) scale(b *ir.Builder, x *ir.Value) *ir.Value {
	x = b.Mul(x, b.Stop(n.rarity))
	if n.rows {
		x = b.One("l2_normalize", nil, x)
	}
	return x
}

func (n *linear) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	h := b.MatMul(drop.apply(b, 0, x), n.weight)
	if n.Steps > 0 {
		norm, kept := b.Op("gnn.sym_norm", nil, g, w), b.Scale(h, restart)
		for range n.Steps {
			h = b.Add(b.Scale(b.One("spmm", nil, g, norm[0], norm[1], h), 1-restart), kept)
		}
	}
	return b.Add(h, n.bias)
}
