package models

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// EncoderDiagonal is the value of Encoder.Kind that only grcn and sublime have: layers that
// scale each column of the features instead of mixing them.
const EncoderDiagonal = "diagonal"

// grcn builds GRCN (Yu et al. 2020). A graph convolutional network embeds the nodes,
// z = GCN_g(A, X), and the classifier reads the revised graph Ã = A + S, where S holds the
// cosines of z between each node and its nearest others, both ways. It is one loss: the
// gradient reaches the encoder through the values of S.
//
// Candidates are the existing edges and those to the candidates.k nearest by z, so S has the
// cosines of all of them, and that of a node with itself, which is 1. Normalisation cancels
// factors, and the classifier adds I to the graph by itself, so a candidate's weight is
// (A + S)/2: within [0, 1] as a probability is. A negative cosine counts as 0, since degrees
// could be negative otherwise.
func grcn(o Options) *ir.Module {
	m := ir.NewModule("grcn")
	e := &grcnModel{Options: o, arch: architecture(o.Classifier)}
	e.encoder, e.embedding = o.learner(m)
	e.encoder = o.replaceable(m, "encoder", "embedding", e.encoder, features(o), &rawGraph, nil)
	e.classifier = o.classifierPart(m, classifier(m, e.arch, o), o.classifierInput(), graphOf(o, &candidates))

	b := m.NewFunc("joint")
	x, g := b.Arg("x", features(o)), b.Arg("g", rawGraph)
	c, old := b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	o.learnOn(b, e.arch, e.classifier, c, x, func() *ir.Value { return e.revised(b, c, e.embed(b, g, x), old) })
	o.fit(m, e.arch, e.classifier, (*ir.Builder).Arg, asProbabilities)

	b = m.NewFunc("encode")
	x, g = b.Arg("x", features(o)), b.Arg("g", rawGraph)
	b.Return("embedding", e.embed(b, g, x))

	b = m.NewFunc("probability")
	h := b.DynamicArg("embedding", e.embedding)
	c, old = b.Arg("c", candidates), b.Arg("old", ir.T(ir.F32, "M"))
	returnProbability(b, e.revised(b, c, h, old))
	o.refine(m)

	b = m.NewFunc("score")
	h = b.DynamicArg("embedding", e.embedding)
	pairs := b.DynamicArg("pairs", ir.T(ir.I64, "2", "P"))
	cos := b.One("pair_dot", nil, b.One("l2_normalize", nil, h), pairs)
	half := b.Scale(b.One("relu", nil, cos), 0.5)
	b.Return("similarity", cos)
	b.Return("probability", half)
	b.Return("probability_existing", b.Shift(half, 0.5))

	classify(m, o, e.classifier, &candidates)
	return m
}

type grcnModel struct {
	Options
	arch                *Architecture
	encoder, classifier network
	embedding           ir.Type
}

func (e *grcnModel) embed(b *ir.Builder, g, x *ir.Value) *ir.Value {
	defer b.Named("encoder")()
	return e.encoder.run(b, g, nil, normalise(b, e.Options, x), nil)
}

// revised returns the weights (A + S)/2 of the candidates, given the embedding.
func (e *grcnModel) revised(b *ir.Builder, c, h, old *ir.Value) *ir.Value {
	args := []value{{"c", candidates, c}, {"embedding", e.embedding, h}, {"old", ir.T(ir.F32, "M"), old}}
	return e.part(b, "edge_probability", probabilities[:1], args, func(b *ir.Builder, v []*ir.Value) []*ir.Value {
		return []*ir.Value{b.Scale(b.Add(v[2], b.One("relu", nil, cosines(b, v[0], v[1]))), 0.5)}
	})[0]
}

// diagonal is a graph convolutional network whose weights are diagonal: layers
// y = act(Â·(x∘w)), without a graph y = act(x∘w). It begins with ones, as the mean over
// neighbourhoods of neighbourhoods.
type diagonal struct {
	scales []*ir.Value
	act    string
}

func declareDiagonal(m *ir.Module, s shape) network {
	n := &diagonal{act: s.act}
	for i := range s.layers {
		n.scales = append(n.scales, m.AddParam(fmt.Sprintf("%s.%d.scale", s.name, i), ir.T(ir.F32, ir.D(s.in)), "ones", s.decayOf(i), s.group))
	}
	return n
}

func (n *diagonal) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	var norm []*ir.Value
	if g != nil {
		norm = b.Op("gnn.sym_norm", nil, g, w)
	}
	for i, scale := range n.scales {
		x = b.Mul(drop.apply(b, i, x), scale)
		if g != nil {
			x = b.One("spmm", nil, g, norm[0], norm[1], x)
		}
		if i+1 < len(n.scales) {
			x = b.One(n.act, nil, x)
		}
	}
	return x
}
