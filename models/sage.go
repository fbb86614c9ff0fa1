package models

import "github.com/gsrc-dev/gsrc/ir"

// leastWeight is what all edges of a node together weigh at least: nodes whose edges weigh
// nothing have no neighbours.
const leastWeight = 1e-30

// sage is GraphSAGE with the mean aggregator (Hamilton et al. 2017): a node's
// own features and the mean of its neighbours' have weights of their own, the
// halves of one matrix.
type sage struct {
	*stack
	weighted bool // edges have weights of any size
}

func declareSAGE(m *ir.Module, s shape, o Options) network {
	return &sage{declareStack(m, s, "gnn.sage_conv"), o.EdgeWeights}
}

func (n *sage) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	if n.weighted && w != nil { // shares of their sum, which the layer takes for at least 0.5
		total := b.One("maximum", nil, b.One("edge_sum", ir.Attrs{"side": "dst"}, g, w), b.Const(leastWeight))
		w = b.Div(w, b.One("edge_gather", ir.Attrs{"side": "dst"}, g, total))
	}
	return n.stack.run(b, g, w, x, drop)
}
