package models

import "github.com/gsrc-dev/gsrc/ir"

// leastWeight is what all edges of a node together weigh at least: nodes whose edges weigh
// nothing have no neighbours.
const leastWeight = 1e-30

// sage is GraphSAGE with the mean aggregator (Hamilton et al. 2017): a node's
// own features and the mean of its neighbours' have weights of their own, the
// halves of one matrix.
type sage struct {
	stack
	weighted bool // edges have weights of any size
}

func declareSAGE(m *ir.Module, s shape, o Options) network {
	n := &sage{stack{act: s.act}, o.EdgeWeights}
	w := s.widths()
	for i := range s.layers {
		n.weights = append(n.weights, s.weight(m, i, "weight", w[i], 2*w[i+1]))
		n.biases = append(n.biases, s.bias(m, i, "bias", w[i+1]))
	}
	return n
}

func (n *sage) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	if n.weighted && w != nil { // shares of their sum, which the layer takes for at least 0.5
		total := b.One("maximum", nil, b.One("edge_sum", ir.Attrs{"side": "dst"}, g, w), b.Const(leastWeight))
		w = b.Div(w, b.One("edge_gather", ir.Attrs{"side": "dst"}, g, total))
	}
	for i, weight := range n.weights {
		x = b.One("gnn.sage_conv", n.activation(i), g, w, drop.apply(b, i, x), weight, n.biases[i])
	}
	return x
}
