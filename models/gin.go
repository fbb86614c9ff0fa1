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

// declareGINLayer declares a layer of GIN with a batch normalisation of its own between its
// two products, as graphs are classified with.
func declareGINLayer(m *ir.Module, s shape, o Options) graphLayer {
	first := declareAffine(m, s.name+".inner", s.in, s.out, s.decay)
	inner := declareNorm(m, s.name+".inner.norm", s.out)
	second := declareAffine(m, s.name+".outer", s.out, s.out, s.decay)
	return func(b *ir.Builder, g, w, x *ir.Value, seen *statistics) *ir.Value {
		h := b.One("gnn.gin_conv", ir.Attrs{"eps": o.GIN.Eps}, g, w, x, first.weight, first.bias)
		h = b.One("relu", nil, inner.apply(b, h, seen))
		return b.One("gnn.linear", nil, h, second.weight, second.bias)
	}
}
