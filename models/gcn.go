package models

import "github.com/gsrc-dev/gsrc/ir"

// stack is a list of layers y = act(f(x)·W + b), where f aggregates over the
// graph (GCN) or does nothing (MLP).
type stack struct {
	weights, biases []*ir.Value
	act             string
	aggregate       bool
}

func declareStack(m *ir.Module, s shape, aggregate bool) *stack {
	n := &stack{act: s.act, aggregate: aggregate}
	w := s.widths()
	for i := range s.layers {
		n.weights = append(n.weights, s.weight(m, i, "weight", w[i], w[i+1]))
		n.biases = append(n.biases, s.bias(m, i, "bias", w[i+1]))
	}
	return n
}

func declareGCN(m *ir.Module, s shape, _ Options) network { return declareStack(m, s, true) }

func declareMLP(m *ir.Module, s shape, _ Options) network { return declareStack(m, s, false) }

func (n *stack) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	for i, weight := range n.weights {
		x = drop.apply(b, i, x)
		if n.aggregate {
			x = b.One("gnn.gcn_conv", n.activation(i), g, w, x, weight, n.biases[i])
		} else {
			x = b.One("gnn.linear", n.activation(i), x, weight, n.biases[i])
		}
	}
	return x
}

// over runs the layers with a the values of entries, and self those of nodes themselves.
func (n *stack) over(b *ir.Builder, g, a, self, x *ir.Value, drop *dropouts) *ir.Value {
	return n.with(b, x, drop, func(h *ir.Value) *ir.Value { return b.One("spmm", nil, g, a, self, h) })
}

// with runs the layers with sum for what a node gets of the products h.
func (n *stack) with(b *ir.Builder, x *ir.Value, drop *dropouts, sum func(h *ir.Value) *ir.Value) *ir.Value {
	for i, weight := range n.weights {
		x = b.Add(sum(b.MatMul(drop.apply(b, i, x), weight)), n.biases[i])
		if i+1 < len(n.weights) {
			x = b.One(n.act, nil, x)
		}
	}
	return x
}

func (n *stack) activation(layer int) ir.Attrs {
	if layer+1 == len(n.weights) {
		return nil
	}
	return ir.Attrs{"act": n.act}
}
