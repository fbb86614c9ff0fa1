package models

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// Argument types that the models share.
func features(o Options) ir.Type { return ir.T(ir.F32, "N", ir.D(o.Features)) }

var (
	rawGraph   = ir.GraphType("N", "E")
	candidates = ir.GraphType("N", "M")
	trainIdx   = ir.T(ir.I64, "T")
)

// prepare normalises the rows of a classifier's features, and weights them as it wants.
func (o Options) prepare(b *ir.Builder, n network, x *ir.Value) *ir.Value {
	x = normalise(b, o, x)
	if s, ok := n.(scaler); ok {
		x = s.scale(b, x)
	}
	return x
}

// scaler is a network that weights its features.
type scaler interface {
	scale(*ir.Builder, *ir.Value) *ir.Value
}

// normalise applies the classifier's row normalisation.
func normalise(b *ir.Builder, o Options, x *ir.Value) *ir.Value {
	if o.Norm == "none" {
		return x
	}
	return b.One(o.Norm+"_normalize", nil, x)
}

func classifier(m *ir.Module, a *Architecture, o Options) network {
	return a.declare(m, o.classifierShape(), o)
}

func (o Options) classifierShape() shape {
	return shape{
		name: "classifier", group: "classifier", act: "relu",
		in: o.Features + o.labelColumns(), hidden: o.Hidden, layers: o.Layers, out: o.Classes,
		decay: o.WeightDecay, decayFirst: o.DecayFirst,
	}
}

// classifierPart makes a classifier, on a graph or nil, one that a program may replace.
func (o Options) classifierPart(m *ir.Module, n network, x ir.Type, graph *ir.Type) network {
	drop := o.dropouts("classifier")
	if o.KnownLabels > 0 {
		drop.input = 0 // [Options.learn] drops the features, and no labels
	}
	return o.replaceable(m, "classifier", "logits", n, x, graph, drop)
}

// classifierInput is the type of what a classifier reads of the nodes.
func (o Options) classifierInput() ir.Type {
	return ir.T(ir.F32, "N", ir.D(o.Features+o.labelColumns()))
}

func (o Options) dropouts(prefix string) *dropouts {
	return &dropouts{o.InputDropout, o.Dropout, prefix}
}

func labelled(b *ir.Builder, logits, idx *ir.Value) *ir.Value {
	return b.One("gather", nil, logits, idx)
}

// supervision declares the numbers of the labelled nodes and what their logits are held against: their
// classes, or with class weights or known labels targets [T,C], which have the weight of node b,
// all weights adding up to 1, in the column of its class and 0 in the others.
func supervision(b *ir.Builder, o Options) (idx, answers *ir.Value) {
	idx = b.Arg("train_idx", trainIdx)
	if o.ClassWeights == "balanced" || o.KnownLabels > 0 {
		return idx, b.Arg("targets", ir.T(ir.F32, "T", ir.D(o.Classes)))
	}
	return idx, b.Arg("labels", trainIdx)
}

// crossEntropy is that of the labelled nodes' logits and their answers.
func crossEntropy(b *ir.Builder, logits, answers *ir.Value) *ir.Value {
	if answers.Type.DType == ir.I64 {
		return b.One("cross_entropy", nil, logits, answers)
	}
	return b.Scale(b.Sum(b.Mul(b.One("log_softmax", nil, logits), answers)), -1)
}

func returnPrediction(b *ir.Builder, logits *ir.Value) {
	b.Return("logits", logits)
	b.Return("probabilities", b.One("softmax", nil, logits))
}

// sampledLoss returns the mean cross-entropy of several samples' logits and
// the consistency of their predictions, 0 where the option switches it off. run
// gives the logits of the sample of a name; idx nil says that all of them are
// labelled.
func sampledLoss(b *ir.Builder, o Options, idx, answers *ir.Value, run func(sample string) *ir.Value) (xent, consistency *ir.Value) {
	var logits []*ir.Value
	for k := range o.Edges.Samples {
		name := fmt.Sprintf("sample%d", k)
		restore := b.Named(name)
		l := run(name)
		logits = append(logits, l)
		if idx != nil {
			l = labelled(b, l, idx)
		}
		xent = b.Plus(xent, crossEntropy(b, l, answers))
		restore()
	}
	xent = b.Scale(xent, 1/float64(len(logits)))
	if o.Edges.Consistency > 0 && len(logits) > 1 {
		return xent, b.One("gsr.consistency", ir.Attrs{"temperature": o.Edges.Sharpen, "confidence": o.Edges.Confidence}, logits...)
	}
	return xent, b.Const(0)
}

// sampledTotal adds the terms; ramp, which the training loop raises from 0 to
// 1, lets labels decide before predictions must agree.
func sampledTotal(b *ir.Builder, o Options, xent, consistency, ramp *ir.Value) *ir.Value {
	return b.Add(xent, b.Mul(b.Scale(consistency, o.Edges.Consistency), ramp))
}

// supervised declares @train of a network on the raw graph.
func supervised(m *ir.Module, a *Architecture, o Options, n network) {
	b := m.NewFunc("train")
	x := b.Arg("x", features(o))
	var g *ir.Value
	if a.readsGraph(o) {
		g = b.Arg("g", rawGraph)
	}
	var w *ir.Value
	if g != nil && o.EdgeWeights {
		w = b.Arg("w", ir.T(ir.F32, rawGraph.Dims[1]))
	}
	idx, answers := supervision(b, o)
	supervisedLoss(b, a, o, n, g, func() *ir.Value { return w }, x, idx, answers)
}

// supervisedLoss returns the loss of a network on the labelled nodes, that of several samples
// where the network asks for them. weights gives those of the edges.
func supervisedLoss(b *ir.Builder, a *Architecture, o Options, n network, g *ir.Value, weights func() *ir.Value, x, idx, answers *ir.Value) {
	b.Func.Attrs["differentiate"] = "loss"
	var ramp *ir.Value
	if a.samples {
		ramp = b.DynamicArg("ramp", ir.Scalar())
	}
	w := weights()
	x = o.prepare(b, n, x)
	shown, answers := o.reveal(b, idx, answers)
	if !a.samples {
		logits := o.learn(b, n, g, w, x, shown, "classifier")
		b.Return("loss", crossEntropy(b, labelled(b, logits, idx), answers))
		return
	}
	xent, consistency := sampledLoss(b, o, idx, answers, func(sample string) *ir.Value {
		return o.learn(b, n, g, w, x, shown, sample)
	})
	b.Return("loss", sampledTotal(b, o, xent, consistency, ramp))
	b.Return("xent", xent)
	b.Return("consistency", consistency)
}

// classify declares @classify over a graph with edge weights, or without one, which is
// where predictions are smoothed if the options say so.
func classify(m *ir.Module, o Options, n network, graph *ir.Type) {
	b := m.NewFunc("classify")
	x := b.Arg("x", features(o))
	var g, w *ir.Value
	if graph == nil && o.Smooth.on() {
		graph = &rawGraph
	}
	if graph != nil {
		g = b.Arg("g", *graph)
		w = b.Arg("w", ir.T(ir.F32, graph.Dims[1]))
	}
	x = o.prepare(b, n, x)
	var known *ir.Value
	if o.KnownLabels > 0 || o.Smooth.on() {
		known = b.Arg(KnownLabels, o.labels())
	}
	if o.KnownLabels > 0 {
		x = b.Concat(x, known)
	}
	o.returnSmoothed(b, g, w, known, n.run(b, g, w, x, nil))
}

// returnSmoothed returns a prediction, smoothed if the options say so. known nil is declared
// where it is read.
func (o Options) returnSmoothed(b *ir.Builder, g, w, known, logits *ir.Value) {
	if o.Smooth.on() {
		if known == nil {
			known = b.Arg(KnownLabels, o.labels())
		}
		logits = o.smoothed(b, g, w, known, logits)
	}
	returnPrediction(b, logits)
}

// Weighted is the attribute of modules that are trained and evaluated with the weights that
// the edges have in the data, as w; others take ones, or what refinement gives.
const Weighted = "edge_weights"

// alone builds the model that is one network on the raw graph.
func alone(a *Architecture) func(Options) *ir.Module {
	return func(o Options) *ir.Module {
		m := ir.NewModule(strings.ReplaceAll(a.Model, "-", "_"))
		if o.EdgeWeights && (a.readsGraph(o) || o.Smooth.on()) {
			m.Attrs[Weighted] = true
		}
		graph := &rawGraph
		if !a.readsGraph(o) {
			graph = nil
		}
		n := o.classifierPart(m, classifier(m, a, o), o.classifierInput(), graph)
		supervised(m, a, o, n)
		classify(m, o, n, graph)
		return m
	}
}
