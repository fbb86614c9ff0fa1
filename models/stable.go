package models

import "github.com/gsrc-dev/gsrc/ir"

// stable builds STABLE (Li et al. 2022), for graphs under attack. Without labels, a layer of
// graph convolution learns representations h that tell nodes from nodes with others' features
// (Deep Graph Infomax), on the graph without the edges whose ends share few features, and
// against summaries of views in which some of these edges have come back. Then edges whose
// ends have unlike h are dropped, each node gets edges to those with the likest h, and a graph
// convolutional network that weighs neighbours by their degree classifies h.
func stable(o Options) *ir.Module {
	m := ir.NewModule("stable")
	hidden := o.Encoder.Hidden
	e := &stableModel{Options: o,
		weight:   m.AddParam("encoder.weight", ir.T(ir.F32, ir.D(o.Features), ir.D(hidden)), "glorot", o.Encoder.WeightDecay, "encoder"),
		bias:     m.AddParam("encoder.bias", ir.T(ir.F32, ir.D(hidden)), "zeros", 0, "encoder"),
		slope:    m.AddParam("encoder.slope", ir.T(ir.F32, ir.D(1)), "ones", 0, "encoder"),
		bilinear: m.AddParam("discriminator.weight", ir.T(ir.F32, ir.D(hidden), ir.D(hidden)), "glorot", o.Encoder.WeightDecay, "encoder"),
		offset:   m.AddParam("discriminator.bias", ir.T(ir.F32, ir.D(1)), "zeros", 0, "encoder"),
	}
	if o.Classes > 0 {
		s := o.classifierShape()
		s.in = hidden
		e.classifier = declareStack(m, s, "gnn.linear")
	}

	e.pretrain(m)
	b := m.NewFunc("encode")
	x, g := b.Arg("x", features(o)), b.Arg("g", rawGraph)
	b.Return("embedding", e.embed(b, g, e.shares(b, g, x), b.MatMul(normalise(b, o, x), e.weight)))
	e.probability(m)
	o.refine(m)

	if o.Classes == 0 {
		return m
	}
	net := o.classifierPart(m, e, e.embeddingType(), &candidates)
	b = m.NewFunc("fit")
	h, c := b.Arg("embedding", e.embeddingType()), b.Arg("c", candidates)
	p := b.Arg("p", ir.T(ir.F32, "M"))
	idx, answers := supervision(b, o)
	b.Func.Attrs["differentiate"] = "loss"
	b.Return("loss", crossEntropy(b, labelled(b, net.run(b, c, p, h, o.dropouts("classifier")), idx), answers))

	b = m.NewFunc("classify")
	h, g = b.Arg("embedding", e.embeddingType()), b.Arg("g", candidates)
	w := b.Arg("w", ir.T(ir.F32, "M"))
	o.returnSmoothed(b, g, w, nil, net.run(b, g, w, h, nil))
	return m
}

type stableModel struct {
	Options
	weight, bias, slope, bilinear, offset *ir.Value
	classifier                            *stack
}

func (e *stableModel) embeddingType() ir.Type { return ir.T(ir.F32, "N", ir.D(e.Encoder.Hidden)) }

// shares returns 1 for entries whose ends share enough features, by the Jaccard index of the
// columns that are not 0, and 0 for others.
func (e *stableModel) shares(b *ir.Builder, g, x *ir.Value) *ir.Value {
	defer b.Named("shares")()
	x = b.One("to_dense", nil, x)
	has := b.One("greater", nil, b.One("maximum", nil, x, b.One("neg", nil, x)), b.Const(0))
	both := b.One("sddmm", nil, g, has, has)
	number := b.One("reduce_sum", ir.Attrs{"axis": "1"}, has)
	at := func(side string) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, g, number) }
	either := b.Sub(b.Add(at("dst"), at("src")), both)
	return b.One("greater_equal", nil, both, b.Scale(either, e.STABLE.Jaccard)) // also where both have none
}

// embed returns prelu(Â·x·W + b), given the product x·W and weights of 0 or 1, a node itself
// counting self_weight times as much as a neighbour.
func (e *stableModel) embed(b *ir.Builder, g, w, product *ir.Value) *ir.Value {
	norm := b.Op("gnn.sym_norm", nil, g, b.Scale(w, 1/e.STABLE.SelfWeight))
	h := b.Add(b.One("spmm", nil, g, norm[0], norm[1], product), e.bias)
	negative := b.Mul(b.One("minimum", nil, h, b.Const(0)), b.Scale(e.slope, 0.25)) // 0.25 at first
	return b.Add(b.One("relu", nil, h), negative)
}

// pretrain declares the contrastive loss: the mean over nodes, as they are and with the
// features of others, of the binary cross-entropy of hᵀ·B·(c₁ + c₂) + b, where c₁ and c₂ are
// the sigmoids of the mean representation in two views.
func (e *stableModel) pretrain(m *ir.Module) {
	b := m.NewFunc("pretrain")
	x, g := b.Arg("x", features(e.Options)), b.Arg("g", rawGraph)
	shared := e.shares(b, g, x)
	product := b.MatMul(normalise(b, e.Options, x), e.weight)
	summary := func(name string) *ir.Value {
		defer b.Named(name)()
		back := b.One("less", nil, b.One("edge_uniform", ir.Attrs{"stream": name + ".edges"}, g), b.Const(e.STABLE.Recover))
		h := e.embed(b, g, b.One("maximum", nil, shared, back), product)
		return b.One("sigmoid", nil, b.One("reduce_mean", ir.Attrs{"axis": "0"}, h))
	}
	both := b.Add(summary("view1"), summary("view2"))
	order := b.One("argsort", nil, b.OneTyped("uniform", ir.Attrs{"stream": "permutation"}, ir.T(ir.F32, "N")))
	direction := b.MatMul(e.bilinear, b.One("unsqueeze", nil, both))
	score := func(product *ir.Value) *ir.Value {
		return b.Add(b.MatMul(e.embed(b, g, shared, product), direction), b.Scale(e.offset, 2))
	}
	loss := func(wrong *ir.Value) *ir.Value { // ln(1 + e^wrong)
		return b.One("reduce_mean", ir.Attrs{"axis": "all"}, b.One("logaddexp", nil, wrong, b.Const(0)))
	}
	as := loss(b.One("neg", nil, score(product)))
	permuted := loss(score(b.One("gather", nil, product, order)))
	b.Return("loss", b.Scale(b.Add(as, permuted), 0.5))
	b.Func.Attrs["differentiate"] = "loss"
}

// probability declares which candidates are edges, 1 or 0: existing ones whose ends have a
// cosine above the threshold, and new ones with an end that keeps more than one of these.
func (e *stableModel) probability(m *ir.Module) {
	b := m.NewFunc("probability")
	h := b.DynamicArg("embedding", e.embeddingType())
	c, old := b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	alike := b.One("greater", nil, cosines(b, c, h), b.Const(e.STABLE.Cosine))
	kept := b.Mul(old, alike)
	sound := b.One("greater", nil, b.One("edge_sum", ir.Attrs{"side": "dst"}, c, kept), b.Const(1))
	at := func(side string) *ir.Value { return b.One("edge_gather", ir.Attrs{"side": side}, c, sound) }
	fresh := b.Mul(b.Sub(b.Const(1), old), b.One("maximum", nil, at("dst"), at("src")))
	returnProbability(b, b.Add(kept, fresh))
}

// run runs the classifier, whose layers take means over a node and its neighbours, each
// weighed by its degree to the power degree_power; −0.5 is Kipf and Welling's normalisation.
func (e *stableModel) run(b *ir.Builder, g, w, h *ir.Value, drop *dropouts) *ir.Value {
	in := ir.Attrs{"side": "dst"}
	degree := b.Shift(b.One("edge_sum", in, g, w), 1)
	own := b.One("pow", ir.Attrs{"exponent": e.STABLE.DegreePower}, degree)
	from := b.Mul(w, b.One("edge_gather", ir.Attrs{"side": "src"}, g, own))
	var total *ir.Value
	if e.STABLE.DegreePower == -0.5 {
		total = b.One("sqrt", nil, degree)
	} else {
		total = b.Add(b.One("edge_sum", in, g, from), own)
	}
	from, own = b.Div(from, b.One("edge_gather", in, g, total)), b.Div(own, total)
	return e.classifier.over(b, g, from, own, h, drop)
}
