package models

import "github.com/gsrc-dev/gsrc/ir"

// stack is a list of layers y = act(f(x)·W + b), where f aggregates over the
// graph (GCN, GraphSAGE) or does nothing (MLP).
type stack struct {
	weights, biases []*ir.Value
	act             string
	op              string // of a layer: gnn.linear, gnn.gcn_conv or gnn.sage_conv
}

func declareStack(m *ir.Module, s shape, op string) *stack {
	n := &stack{act: s.act, op: op}
	w, halves := s.widths(), 1
	if op == "gnn.sage_conv" { // a node's own features and its neighbours' have weights of their own
		halves = 2
	}
	for i := range s.layers {
		n.weights = append(n.weights, s.weight(m, i, "weight", w[i], halves*w[i+1]))
		n.biases = append(n.biases, s.bias(m, i, "bias", w[i+1]))
	}
	return n
}

func declareGCN(m *ir.Module, s shape, _ Options) network { return declareStack(m, s, "gnn.gcn_conv") }

func declareMLP(m *ir.Module, s shape, _ Options) network { return declareStack(m, s, "gnn.linear") }

func (n *stack) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	for i, weight := range n.weights {
		operands := []*ir.Value{g, w, drop.apply(b, i, x), weight, n.biases[i]}
		if n.op == "gnn.linear" {
			operands = operands[2:]
		}
		x = b.One(n.op, n.activation(i), operands...)
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
