package passes

import "github.com/gsrc-dev/gsrc/ir"

func lowerGNN(m *ir.Module, _ Facts) error {
	// Layers expand into other layers' operations (gcn_conv into sym_norm), so
	// the table is applied until nothing changes.
	for _, f := range m.Funcs {
		for again := true; again; {
			again = false
			rewrite(m, f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
				lower := gnnLowerings[op.Name()]
				if lower == nil {
					return nil
				}
				again = true
				return lower(b, op)
			})
		}
	}
	return nil
}

var gnnLowerings = map[string]lowering{
	"gnn.linear": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		return one(biasAct(b, op, b.MatMul(op.Operands[0], op.Operands[1]), op.Operands[2]))
	},
	"gnn.sym_norm": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		g, w := op.Operands[0], op.Operands[1]
		if w == nil {
			w = b.One("edge_ones", nil, g)
		}
		deg := b.Shift(b.One("edge_sum", ir.Attrs{"side": "dst"}, g, w), 1)
		dinv := b.One("rsqrt", nil, deg)
		at := func(side string) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, g, dinv) }
		return []*ir.Value{b.Mul(w, b.Mul(at("dst"), at("src"))), b.One("square", nil, dinv)}
	},
	"gnn.gcn_conv": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		g, w, x, weight, bias := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4]
		norm := b.Op("gnn.sym_norm", nil, g, w)
		h := b.One("spmm", nil, g, norm[0], norm[1], b.MatMul(x, weight))
		return one(biasAct(b, op, h, bias))
	},
	"gnn.sage_conv": func(b *ir.Builder, op *ir.Op) []*ir.Value {
		g, w, x, self, neigh, bias := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4], op.Operands[5]
		ones := w
		if ones == nil {
			ones = b.One("edge_ones", nil, g)
		}
		deg := b.One("maximum", nil, b.One("edge_sum", ir.Attrs{"side": "dst"}, g, ones), b.Const(1e-12))
		// The product first: it is narrower than the features.
		mean := b.Div(b.One("spmm", nil, g, w, nil, b.MatMul(x, neigh)), b.One("unsqueeze", nil, deg))
		return one(biasAct(b, op, b.Add(b.MatMul(x, self), mean), bias))
	},
}

func biasAct(b *ir.Builder, op *ir.Op, y, bias *ir.Value) *ir.Value {
	if bias != nil {
		y = b.Add(y, bias)
	}
	if act := op.Str("act"); act != "none" {
		y = b.One(act, nil, y)
	}
	return y
}
