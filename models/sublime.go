package models

import "github.com/gsrc-dev/gsrc/ir"

// sublime builds SUBLIME (Liu et al. 2022), which learns a graph without labels. A learner
// embeds the nodes; the learned graph S has the cosines of each node's nearest others that are
// not negative, the mean of both directions. A network on the learned graph and the same on an
// anchor graph tell each node from all others (NT-Xent), with columns of the features masked
// and entries of both graphs dropped. The anchor begins as the data's graph and follows S by a
// moving average. Then a graph convolutional network classifies nodes on S.
//
// The learner is a network of features, as SLAPS has it (Fatemi et al. 2021): diagonal scales
// columns (the authors' attentive learner, SLAPS's MLP-D), mlp mixes them, gcn and the other
// encoders read the data's graph too. With fgp each candidate has a weight of its own, as their
// learner of N² parameters has each pair.
//
// S, and with it the moving average, is kept of candidate edges: the data's and those to the
// candidates.k nearest by the learner, of which each node takes the sublime.k nearest.
func sublime(o Options) *ir.Module {
	m := ir.NewModule("sublime")
	e := &sublimeModel{Options: o}
	if e.free = o.Encoder.Kind == EncoderFGP; !e.free {
		e.learner, e.embedding = o.learner(m)
		var graph *ir.Type
		if e.readsGraph = o.Encoder.Kind != EncoderDiagonal && architecture(o.Encoder.Kind).readsGraph(o); e.readsGraph {
			graph = &rawGraph
		}
		e.learner = o.replaceable(m, "encoder", "embedding", e.learner, features(o), graph, nil)
	}
	s := shape{name: "contrast", group: "encoder", act: "relu", in: o.Features, hidden: o.Encoder.Hidden, layers: 2, out: o.Encoder.Projection, decay: o.Encoder.WeightDecay}
	e.contrasted = &droppingGCN{declareStack(m, s, "gnn.linear"), o.Views.Edges}
	s.name, s.in, s.hidden = "projector", s.out, s.out
	e.projector = declareStack(m, s, "gnn.linear")

	b := m.NewFunc("begin")
	c := b.Arg("c", candidates)
	norm := b.Op("gnn.sym_norm", nil, c, b.Arg("old", ir.T(ir.F32, "M")))
	b.Return(NextPrefix+"anchor", norm[0])
	b.Return(NextPrefix+"anchor_self", norm[1])
	if e.free {
		e.beginFree(b, c)
	}
	e.pretrain(m)

	if e.free {
		similarFeatures(m, o)
		b = m.NewFunc("probability")
		returnProbability(b, freeWeights(b, b.DynamicArg("theta", ir.T(ir.F32, "M"))))
	} else {
		b = m.NewFunc("encode")
		b.Return("embedding", e.embed(b, b.Arg("x", features(o))))
		b = m.NewFunc("probability")
		h := b.DynamicArg("embedding", e.embedding)
		returnProbability(b, e.learned(b, b.Arg("c", candidates), h))
	}
	o.refine(m)
	if o.Classes == 0 {
		return m
	}

	arch := architecture(o.Classifier)
	var classifies network
	if o.Classifier == "gcn" {
		classifies = &droppingGCN{declareStack(m, o.classifierShape(), "gnn.linear"), o.SUBLIME.DropEdges}
	} else {
		classifies = classifier(m, arch, o)
	}
	classifies = o.classifierPart(m, classifies, o.classifierInput(), graphOf(o, &candidates))
	o.fit(m, arch, classifies, (*ir.Builder).Arg, asProbabilities)
	classify(m, o, classifies, &candidates)
	return m
}

type sublimeModel struct {
	Options
	free       bool // candidates have weights of their own, and there is no learner
	learner    network
	readsGraph bool // the learner does
	embedding  ir.Type
	contrasted *droppingGCN
	projector  *stack
}

// embed returns what the learner makes of the features.
func (e *sublimeModel) embed(b *ir.Builder, x *ir.Value) *ir.Value {
	var g *ir.Value
	if e.readsGraph {
		g = b.Arg("g", rawGraph)
	}
	defer b.Named("learner")()
	return e.learner.run(b, g, nil, normalise(b, e.Options, x), nil)
}

// learned returns the weights of the candidates in S, given the embedding.
func (e *sublimeModel) learned(b *ir.Builder, c, h *ir.Value) *ir.Value {
	return e.part(b, "edge_probability", probabilities[:1], []value{{"c", candidates, c}, {"embedding", e.embedding, h}}, func(b *ir.Builder, v []*ir.Value) []*ir.Value {
		cos := cosines(b, v[0], v[1])
		return []*ir.Value{b.Mul(b.One("relu", nil, cos), e.nearest(b, v[0], cos))}
	})[0]
}

// nearest returns in how many of both directions a candidate is among a node's nearest, 0, ½ or 1.
func (e *sublimeModel) nearest(b *ir.Builder, c, cos *ir.Value) *ir.Value {
	least := b.One("edge_kth", ir.Attrs{"k": e.SUBLIME.K}, c, b.Stop(cos))
	taken := func(side string) *ir.Value {
		return b.One("greater_equal", nil, b.Stop(cos), b.One("edge_gather", ir.Attrs{"side": side}, c, least))
	}
	return b.Scale(b.Add(taken("dst"), taken("src")), 0.5)
}

// pretrain declares the contrastive loss, and how the anchor graph follows the learned one.
// The cosine of two nodes over a temperature T is, but for a constant, −d²/2T of their distance
// d: ecl.tau is 2T.
func (e *sublimeModel) pretrain(m *ir.Module) {
	b := m.NewFunc("pretrain")
	x, c := b.Arg("x", features(e.Options)), b.Arg("c", candidates)
	var free *symmetric
	var state freeState
	var h *ir.Value
	if e.free {
		of := func(name string) *ir.Value { return b.DynamicArg(name, ir.T(ir.F32, "M")) }
		state = freeState{of("theta"), of("theta.m"), of("theta.v"), b.DynamicArg("theta.power1", ir.Scalar()), b.DynamicArg("theta.power2", ir.Scalar())}
		free = newSymmetric(b, c, freeWeights(b, state.theta))
	} else {
		h = e.embed(b, x)
	}
	anchor, self := b.Arg("anchor", ir.T(ir.F32, "M")), b.Arg("anchor_self", ir.T(ir.F32, "N"))
	nodes := b.DynamicArg("anchors", ir.T(ir.I64, "B"))
	var norm [2]*ir.Value
	if e.free {
		norm[0], norm[1] = free.norm()
	} else {
		norm = [2]*ir.Value(b.Op("gnn.sym_norm", nil, c, e.learned(b, c, h)))
	}
	x = normalise(b, e.Options, x)
	view := func(name string, mask float64, g *symmetric, a, s *ir.Value) *ir.Value {
		defer b.Named(name)()
		x := x
		if mask > 0 {
			x = b.One("gsr.mask_features", ir.Attrs{"rate": mask, "stream": name + ".mask"}, x)
		}
		drop := &dropouts{0, e.Dropout, name}
		var h *ir.Value
		if g != nil {
			h = e.contrasted.symmetric(g, a, s, x, drop)
		} else {
			h = e.contrasted.propagate(b, c, a, s, x, drop)
		}
		return b.One("l2_normalize", nil, e.projector.run(b, nil, nil, b.One("gather", nil, h, nodes), nil))
	}
	z := []*ir.Value{view("anchor_view", e.SUBLIME.MaskAnchor, nil, anchor, self), view("learned_view", e.Views.Mask, free, norm[0], norm[1])}
	tau := e.ECL.Tau
	all := b.Op("pairwise_reduce", ir.Attrs{"tau": tau}, z...) // row, col, diag
	loss := b.Mean(b.Add(b.Scale(b.Add(all[0], all[1]), 0.5), b.Scale(all[2], 1/tau)))
	b.Return("loss", loss)
	for i, old := range []*ir.Value{anchor, self} {
		next := b.Add(b.Scale(old, e.SUBLIME.Momentum), b.Scale(b.Stop(norm[i]), 1-e.SUBLIME.Momentum))
		b.Return(NextPrefix+old.Name, next)
	}
	if e.free {
		state.step(b, loss, e.SUBLIME.LR)
	}
	b.Func.Attrs["differentiate"] = "loss"
}

// droppingGCN is a graph convolutional network that drops entries of the normalised adjacency
// in training, those of nodes to themselves included, and scales the others up.
type droppingGCN struct {
	*stack
	rate float64
}

func (n *droppingGCN) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	norm := b.Op("gnn.sym_norm", nil, g, w)
	return n.propagate(b, g, norm[0], norm[1], x, drop)
}

// propagate runs the layers with a the values of entries, and self those of nodes themselves.
func (n *droppingGCN) propagate(b *ir.Builder, g, a, self, x *ir.Value, drop *dropouts) *ir.Value {
	if drop != nil && n.rate > 0 {
		entries := func(v *ir.Value, what string) *ir.Value {
			return b.One("dropout", ir.Attrs{"rate": n.rate, "stream": drop.prefix + what}, v)
		}
		a, self = entries(a, ".edges"), entries(self, ".self")
	}
	return n.over(b, g, a, self, x, drop)
}

// symmetric is propagate on a symmetric graph, whose entries are dropped in both directions.
func (n *droppingGCN) symmetric(g *symmetric, a, self, x *ir.Value, drop *dropouts) *ir.Value {
	if n.rate > 0 {
		kept := g.b.One("gsr.drop_edges", ir.Attrs{"rate": n.rate, "stream": drop.prefix + ".edges"}, g.c)
		a = g.b.Mul(a, g.b.Scale(kept, 1/(1-n.rate)))
		self = g.b.One("dropout", ir.Attrs{"rate": n.rate, "stream": drop.prefix + ".self"}, self)
	}
	return g.propagate(n.stack, a, self, x, drop)
}
