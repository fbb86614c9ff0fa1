package models

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// GAT holds what only graph attention reads.
type GAT struct {
	Heads            int     `toml:"heads" range:"gnn.gat_conv.heads" doc:"attention heads of the hidden layers, which share the hidden width, rounded up to a multiple of them"`
	OutHeads         int     `toml:"out_heads" range:"gnn.gat_conv.heads" doc:"attention heads of the last layer, which are averaged"`
	AttentionDropout float64 `toml:"attention_dropout" range:"gnn.gat_conv.rate" doc:"dropout of the attention between nodes"`
}

// attention is a list of graph attention layers (Veličković et al. 2018), whose
// heads stand side by side; the mean is taken of those of the last layer.
type attention struct {
	weights, src, dst, biases []*ir.Value
	heads                     []int
	rate                      float64 // dropout of the attention
}

// declareGAT declares layers with ELU between them, as the paper has it.
func declareGAT(m *ir.Module, s shape, o Options) network {
	n := attention{rate: o.GAT.AttentionDropout}
	s.hidden = (s.hidden + o.GAT.Heads - 1) / o.GAT.Heads * o.GAT.Heads
	widths := s.widths()
	for i, out := range widths[1:] {
		heads, columns := o.GAT.Heads, out
		if i == s.layers-1 {
			heads, columns = o.GAT.OutHeads, out*o.GAT.OutHeads
		}
		score := func(name string) *ir.Value {
			return m.AddParam(fmt.Sprintf("%s.%d.%s", s.name, i, name), ir.T(ir.F32, ir.D(columns)), "glorot", s.decayOf(i), s.group)
		}
		n.weights = append(n.weights, s.weight(m, i, "weight", widths[i], columns))
		n.src, n.dst = append(n.src, score("att_src")), append(n.dst, score("att_dst"))
		n.biases = append(n.biases, s.bias(m, i, "bias", out))
		n.heads = append(n.heads, heads)
	}
	return n
}

func (n attention) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	for i, weight := range n.weights {
		x = drop.apply(b, i, x)
		attrs := ir.Attrs{"heads": n.heads[i], "act": "elu"}
		if i == len(n.weights)-1 {
			attrs["act"], attrs["combine"] = "none", "mean"
		}
		if drop != nil && n.rate > 0 {
			attrs["rate"], attrs["stream"] = n.rate, fmt.Sprintf("%s.attention%d", drop.prefix, i)
		}
		x = b.One("gnn.gat_conv", attrs, g, w, x, weight, n.src[i], n.dst[i], n.biases[i])
	}
	return x
}
