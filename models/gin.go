package models

import "github.com/gsrc-dev/gsrc/ir"

// gin is the graph isomorphism network (Xu et al. 2019): each layer is a
// perceptron of two layers on a node's features plus the sum of its neighbours'.
// There is no batch normalisation, which would tie a node's result to the others
// of its batch.
type gin struct {
	eps         float64
	first, then stack
}

func declareGIN(m *ir.Module, s shape, o Options) network {
	n := &gin{eps: o.GIN.Eps, first: stack{act: s.act}, then: stack{act: s.act}}
	w := s.widths()
	for i := range s.layers {
		n.first.weights = append(n.first.weights, s.weight(m, i, "sum.weight", w[i], s.hidden))
		n.first.biases = append(n.first.biases, s.bias(m, i, "sum.bias", s.hidden))
		n.then.weights = append(n.then.weights, s.weight(m, i, "weight", s.hidden, w[i+1]))
		n.then.biases = append(n.then.biases, s.bias(m, i, "bias", w[i+1]))
	}
	return n
}

func (n *gin) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	for i := range n.first.weights {
		x = drop.apply(b, i, x)
		x = b.One("gnn.gin_conv", ir.Attrs{"act": n.first.act, "eps": n.eps}, g, w, x, n.first.weights[i], n.first.biases[i])
		x = b.One("gnn.linear", n.then.activation(i), x, n.then.weights[i], n.then.biases[i])
	}
	return x
}
