package models

import "github.com/gsrc-dev/gsrc/ir"

// acm is adaptive channel mixing (Luan et al. 2022, ACM-GCN). Each layer has
// three channels, and each node weighs them for itself, so that neighbours of
// another class can be distinguished from (high pass) where averaging with them
// (low pass) would blur:
//
//	low  H_L = relu(Â·x·W_L)    high  H_H = relu((I − Â)·x·W_H)    identity  H_I = relu(x·W_I)
//	α = softmax(σ[H_L·v_L, H_H·v_H, H_I·v_I]·M/T)    y = 3·(α_L·H_L + α_H·H_H + α_I·H_I)
//
// with T = 3. The factor 3 is that of the authors' program; it makes equal
// weights the plain sum.
type acm struct{ layers []acmLayer }

type acmLayer struct {
	weights, gates [3]*ir.Value // of the channels: low, high, identity
	mix            *ir.Value    // M [3,3]
}

var channels = [3]string{"low", "high", "identity"}

func declareACM(m *ir.Module, s shape, _ Options) network {
	n := &acm{}
	w := s.widths()
	for i := range s.layers {
		var l acmLayer
		for c, name := range channels {
			l.weights[c] = s.weight(m, i, name+".weight", w[i], w[i+1])
		}
		for c, name := range channels {
			l.gates[c] = s.weight(m, i, name+".gate", w[i+1], 1)
		}
		l.mix = s.weight(m, i, "mix", len(channels), len(channels))
		n.layers = append(n.layers, l)
	}
	return n
}

func (n *acm) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	norm := b.Op("gnn.sym_norm", nil, g, w)
	for i, l := range n.layers {
		x = l.run(b, g, norm, drop.apply(b, i, x))
	}
	return x
}

func (l *acmLayer) run(b *ir.Builder, g *ir.Value, norm []*ir.Value, x *ir.Value) *ir.Value {
	var h [3]*ir.Value
	var scores *ir.Value
	for c, channel := range channels {
		own := b.MatMul(x, l.weights[c])
		h[c] = own
		if channel != "identity" {
			h[c] = b.One("spmm", nil, g, norm[0], norm[1], own)
		}
		if channel == "high" {
			h[c] = b.Sub(own, h[c])
		}
		h[c] = b.One("relu", nil, h[c])
		s := b.MatMul(h[c], l.gates[c])
		if scores == nil {
			scores = s
		} else {
			scores = b.Concat(scores, s)
		}
	}
	alpha := b.One("softmax", nil, b.Scale(b.MatMul(b.One("sigmoid", nil, scores), l.mix), 1.0/float64(len(channels))))
	alpha = b.Scale(alpha, float64(len(channels)))
	var y *ir.Value
	for c := range channels {
		part := b.Mul(h[c], b.One("columns", ir.Attrs{"from": c, "width": 1}, alpha))
		y = b.Plus(y, part)
	}
	return y
}
