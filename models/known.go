package models

import "github.com/gsrc-dev/gsrc/ir"

func (o Options) labels() ir.Type { return ir.T(ir.F32, "N", ir.D(o.Classes)) }

// labelColumns is how many columns known labels have beside the features.
func (o Options) labelColumns() int {
	if o.KnownLabels > 0 {
		return o.Classes
	}
	return 0
}

// reveal gives a training step known labels [N,C], as UniMP does (Shi et al. 2021): those of
// a share of the training nodes, redrawn in each step; nil where labels are no input. The
// others' are what the step learns, so that no node is given its own: hidden are the targets
// [T,C] without those of the nodes whose labels are shown, and add up to 1.
func (o Options) reveal(b *ir.Builder, idx, targets *ir.Value) (shown, hidden *ir.Value) {
	if o.KnownLabels == 0 {
		return nil, targets
	}
	known := b.Arg(KnownLabels, o.labels())
	defer b.Named("known")()
	show := b.One("reduce_sum", ir.Attrs{"axis": "1", "keep": true}, known) // 1 of known nodes
	show = b.One("dropout", ir.Attrs{"rate": min(1-o.KnownLabels, 1-1e-6), "stream": "known_labels"}, show)
	show = b.One("minimum", nil, show, b.Const(1)) // dropout scales what it keeps
	hidden = b.Mul(targets, b.Sub(b.Const(1), labelled(b, show, idx)))
	sum := b.One("maximum", nil, b.Sum(hidden), b.Const(1e-9)) // none hidden, nothing to learn
	return b.Mul(known, show), b.Div(hidden, sum)
}

// learn runs a network in training, with labels beside its features where some are shown:
// dropout on the features leaves them.
func (o Options) learn(b *ir.Builder, n network, g, w, x, shown *ir.Value, prefix string) *ir.Value {
	d := o.dropouts(prefix)
	if shown != nil {
		x = b.Concat(d.apply(b, 0, x), shown)
		d.input = 0
	}
	return n.run(b, g, w, x, d)
}
