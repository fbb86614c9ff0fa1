package models

import "github.com/gsrc-dev/gsrc/ir"

// sage is GraphSAGE with the mean aggregator (Hamilton et al. 2017): a node's
// own features and the mean of its neighbours' have weights of their own, the
// halves of one matrix.
type sage struct{ stack }

func declareSAGE(m *ir.Module, s shape, _ Options) network {
	n := &sage{stack{act: s.act}}
	w := s.widths()
	for i := range s.layers {
		n.weights = append(n.weights, s.weight(m, i, "weight", w[i], 2*w[i+1]))
		n.biases = append(n.biases, s.bias(m, i, "bias", w[i+1]))
	}
	return n
}

func (n *sage) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	for i, weight := range n.weights {
		x = b.One("gnn.sage_conv", n.activation(i), g, w, drop.apply(b, i, x), weight, n.biases[i])
	}
	return x
}
