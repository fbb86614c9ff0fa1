package models

import "github.com/gsrc-dev/gsrc/ir"

// propagation is random propagation (Feng et al. 2020, GRAND): whole nodes are
// dropped, the mean of Â⁰h … Âᴷh is taken, and fully connected layers follow. The
// first of them is linear up to its activation, so it comes before the
// propagation, which then runs on its narrower result.
type propagation struct {
	Propagation
	*stack
}

func declarePropagation(m *ir.Module, s shape, o Options) network {
	return &propagation{o.Propagation, declareStack(m, s, "gnn.linear")}
}

func (n *propagation) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	h := drop.apply(b, 0, x)
	if drop != nil && n.DropNodes > 0 {
		u := b.OneTyped("uniform", ir.Attrs{"stream": drop.prefix + ".nodes"}, ir.T(ir.F32, x.Type.Dims[0], "1"))
		kept := b.One("greater_equal", nil, u, b.Const(n.DropNodes))
		h = b.Mul(h, b.Scale(kept, 1/(1-n.DropNodes)))
	}
	h = b.MatMul(h, n.weights[0])
	norm := b.Op("gnn.sym_norm", nil, g, w)
	sum := h
	for range n.Order {
		h = b.One("spmm", nil, g, norm[0], norm[1], h)
		sum = b.Add(sum, h)
	}
	h = b.Add(b.Scale(sum, 1/float64(n.Order+1)), n.biases[0])
	for i := 1; i < len(n.weights); i++ {
		h = drop.apply(b, i, b.One(n.act, nil, h))
		h = b.One("gnn.linear", nil, h, n.weights[i], n.biases[i])
	}
	return h
}
