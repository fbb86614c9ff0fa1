package passes

import "github.com/gsrc-dev/gsrc/ir"

func lowerGNN(m *ir.Module, info DataInfo) error {
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
				return lower(b, op, info)
			})
		}
	}
	return nil
}

var gnnLowerings = map[string]func(b *ir.Builder, op *ir.Op, info DataInfo) []*ir.Value{
	"gnn.linear": func(b *ir.Builder, op *ir.Op, _ DataInfo) []*ir.Value {
		return one(biasAct(b, op, b.MatMul(op.Operands[0], op.Operands[1]), op.Operands[2]))
	},
	"gnn.sym_norm": func(b *ir.Builder, op *ir.Op, _ DataInfo) []*ir.Value {
		g, w := op.Operands[0], op.Operands[1]
		if w == nil {
			w = b.One("edge_ones", nil, g)
		}
		deg := b.Shift(b.One("edge_sum", ir.Attrs{"side": "dst"}, g, w), 1)
		dinv := b.One("rsqrt", nil, deg)
		at := func(side string) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, g, dinv) }
		return []*ir.Value{b.Mul(w, b.Mul(at("dst"), at("src"))), b.One("square", nil, dinv)}
	},
	"gnn.gcn_conv": func(b *ir.Builder, op *ir.Op, info DataInfo) []*ir.Value {
		g, w, x, weight, bias := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4]
		norm := b.Op("gnn.sym_norm", nil, g, w)
		h := aggregate(b, info, x, weight, func(v *ir.Value) *ir.Value { return b.One("spmm", nil, g, norm[0], norm[1], v) })
		return one(biasAct(b, op, h, bias))
	},
	"gnn.readout": func(b *ir.Builder, op *ir.Op, _ DataInfo) []*ir.Value {
		batch, h := op.Operands[0], op.Operands[1]
		switch op.Str("mode") {
		case "max":
			return one(b.One("spmax", nil, batch, h))
		case "mean":
			nodes := b.One("edge_sum", ir.Attrs{"side": "dst"}, batch, b.One("edge_ones", nil, batch))
			nodes = b.One("maximum", nil, nodes, b.Const(1))
			return one(b.Div(b.One("spmm", nil, batch, nil, nil, h), b.One("unsqueeze", nil, nodes)))
		}
		return one(b.One("spmm", nil, batch, nil, nil, h))
	},
	"gnn.sage_conv": func(b *ir.Builder, op *ir.Op, _ DataInfo) []*ir.Value {
		g, w, x, weight, bias := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4]
		ones := w
		if ones == nil {
			ones = b.One("edge_ones", nil, g)
		}
		deg := b.One("maximum", nil, b.One("edge_sum", ir.Attrs{"side": "dst"}, g, ones), b.Const(0.5))
		f, _ := op.Result().Type.Dims[1].Size()
		both := b.MatMul(x, weight)
		half := func(from int) *ir.Value { return b.One("columns", ir.Attrs{"from": from, "width": f}, both) }
		mean := b.Div(b.One("spmm", nil, g, w, nil, half(f)), b.One("unsqueeze", nil, deg))
		return one(biasAct(b, op, b.Add(mean, half(0)), bias))
	},
	"gnn.gin_conv": func(b *ir.Builder, op *ir.Op, info DataInfo) []*ir.Value {
		g, w, x, weight, bias := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4]
		h := aggregate(b, info, x, weight, func(v *ir.Value) *ir.Value {
			return b.One("spmm", nil, g, w, b.Fill(1+op.Float("eps"), ir.T(v.Type.DType, v.Type.Dims[0])), v)
		})
		return one(biasAct(b, op, h, bias))
	},
	"gnn.gat_conv": lowerGAT,
}

func lowerGAT(b *ir.Builder, op *ir.Op, _ DataInfo) []*ir.Value {
	g, w, x, weight, src, dst, bias := op.Operands[0], op.Operands[1], op.Operands[2], op.Operands[3], op.Operands[4], op.Operands[5], op.Operands[6]
	heads := op.Int("heads")
	h := b.MatMul(x, weight)
	score := func(a *ir.Value) *ir.Value { return b.One("group_sum", ir.Attrs{"groups": heads}, b.Mul(h, a)) }
	at := func(side string, v *ir.Value) *ir.Value {
		return b.One("edge_gather", ir.Attrs{"side": side}, g, v)
	}
	leaky := func(v *ir.Value) *ir.Value {
		return b.One("leaky_relu", ir.Attrs{"slope": op.Float("slope")}, v)
	}
	to, from := score(dst), score(src)
	attention := b.Op("edge_softmax", nil, g, leaky(b.Add(at("dst", to), at("src", from))), leaky(b.Add(to, from)), w)
	drop := func(v *ir.Value, end string) *ir.Value {
		if op.Float("rate") == 0 {
			return v
		}
		return b.One("dropout", ir.Attrs{"rate": op.Float("rate"), "stream": op.Str("stream") + end}, v)
	}
	y := b.One("spmm", nil, g, drop(attention[0], ".edges"), drop(attention[1], ".self"), h)
	if n, _ := y.Type.Dims[1].Size(); op.Str("combine") == "mean" && heads > 1 {
		width := n / heads
		var sum *ir.Value
		for i := range heads {
			sum = b.Plus(sum, b.One("columns", ir.Attrs{"from": i * width, "width": width}, y))
		}
		y = b.Scale(sum, 1/float64(heads))
	}
	return one(biasAct(b, op, y, bias))
}

// aggregate computes Â·x·W, whichever of the two products is narrower first. A
// sparse x would become dense if it were aggregated.
func aggregate(b *ir.Builder, info DataInfo, x, weight *ir.Value, along func(*ir.Value) *ir.Value) *ir.Value {
	p, okP := weight.Type.Dims[0].Size()
	q, okQ := weight.Type.Dims[1].Size()
	if okP && okQ && p < q && !isSparse(x, info) && !holdsSparse(x, info) {
		return b.MatMul(along(x), weight)
	}
	return along(b.MatMul(x, weight))
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
