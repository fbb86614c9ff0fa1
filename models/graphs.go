package models

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// Graphs that are classified as wholes come in batches: the union of the batch's
// graphs, without edges between them, as g, and batch, the block graph<G,N,N> that
// leads from each node to its graph.
var membership = ir.BlockType("G", "N", "N")

// graphNet classifies graphs as GIN does (Xu et al. 2019): layers of message
// passing, each with batch normalisation; a readout of every layer, the features
// included; and the sum of a linear layer on each of them.
//
//	h_0 = x    h_k = relu(norm(layer_k(h_{k−1})))    logits = Σ_k readout(h_k)·W_k + b_k
type graphNet struct {
	Options
	arch     *Architecture
	layers   []graphLayer
	norms    []norm // behind each layer
	readouts []affine
}

// graphLayer applies one layer of a [graphNet], before its normalisation, to x [N, in] over a
// graph (nil: none) with edge weights w (nil: ones) and returns [N, out]. seen nil is evaluation.
type graphLayer func(b *ir.Builder, g, w, x *ir.Value, seen *statistics) *ir.Value

// single makes layers of an architecture's networks: each is a network of one layer, within
// which nothing is dropped.
func single(declare func(*ir.Module, shape, Options) network) func(*ir.Module, shape, Options) graphLayer {
	return func(m *ir.Module, s shape, o Options) graphLayer {
		n := declare(m, s, o)
		return func(b *ir.Builder, g, w, x *ir.Value, _ *statistics) *ir.Value { return n.run(b, g, w, x, nil) }
	}
}

// affine is x·W + b.
type affine struct{ weight, bias *ir.Value }

func declareAffine(m *ir.Module, name string, in, out int, decay float64) affine {
	return affine{
		m.AddParam(name+".weight", ir.T(ir.F32, ir.D(in), ir.D(out)), "glorot", decay, "classifier"),
		m.AddParam(name+".bias", ir.T(ir.F32, ir.D(out)), "zeros", 0, "classifier"),
	}
}

func declareGraphNet(m *ir.Module, o Options, a *Architecture) *graphNet {
	n := &graphNet{Options: o, arch: a}
	in := o.Features
	n.readouts = append(n.readouts, declareAffine(m, "classifier.readout0", in, o.Classes, o.WeightDecay))
	for k := 1; k <= o.Layers; k++ {
		s := shape{name: fmt.Sprintf("classifier.%d", k), group: "classifier", act: "relu", in: in, hidden: o.Hidden, layers: 1, out: o.Hidden, decay: o.WeightDecay}
		n.layers = append(n.layers, a.layer(m, s, o))
		n.norms = append(n.norms, declareNorm(m, s.name+".norm", o.Hidden))
		n.readouts = append(n.readouts, declareAffine(m, fmt.Sprintf("classifier.readout%d", k), o.Hidden, o.Classes, o.WeightDecay))
		in = o.Hidden
	}
	return n
}

// run returns the logits [G, classes] of a batch. seen gets the statistics of batch
// normalisation; drop and seen nil are evaluation.
func (n *graphNet) run(b *ir.Builder, g, w, batch, x *ir.Value, drop *dropouts, seen *statistics) *ir.Value {
	x = normalise(b, n.Options, x)
	mode := ir.Attrs{"mode": n.Readout}
	// The readout of the features stands behind their product, which is narrow.
	logits := b.One("gnn.readout", mode, batch, b.MatMul(x, n.readouts[0].weight))
	logits = b.Add(logits, n.readouts[0].bias)
	for k, l := range n.layers {
		x = drop.apply(b, k, x)
		x = b.One("relu", nil, n.norms[k].apply(b, l(b, g, w, x, seen), seen))
		r := b.One("gnn.readout", mode, batch, x)
		if drop != nil && n.ReadoutDropout > 0 {
			r = b.One("dropout", ir.Attrs{"rate": n.ReadoutDropout, "stream": fmt.Sprintf("%s.readout%d", drop.prefix, k+1)}, r)
		}
		logits = b.Add(logits, b.One("gnn.linear", nil, r, n.readouts[k+1].weight, n.readouts[k+1].bias))
	}
	return logits
}

// graphModel builds the model of an architecture for collections of graphs: @train
// (x, g, batch, labels) and @classify (x, g, w, batch). It is nil for architectures
// that are for nodes only.
func graphModel(a *Architecture) func(Options) *ir.Module {
	if a.layer == nil {
		return nil
	}
	return func(o Options) *ir.Module {
		m := ir.NewModule(a.Model)
		n := declareGraphNet(m, o, a)
		b := m.NewFunc("train")
		x := b.DynamicArg("x", features(o))
		var g *ir.Value
		if a.readsGraph(o) {
			g = b.DynamicArg("g", rawGraph)
		}
		batch := b.DynamicArg("batch", membership)
		answers := graphAnswers(b, o)
		seen := &statistics{}
		logits := n.run(b, g, nil, batch, x, o.dropouts("classifier"), seen)
		seen.returnMeans(b)
		b.Return("loss", crossEntropy(b, logits, answers))
		b.Func.Attrs["differentiate"] = "loss"
		n.classify(m, rawGraph)
		return m
	}
}

// graphAnswers declares what the logits of a batch's graphs are held against: their
// classes, or with class weights targets [G,C], as [answers] has them, the weights of
// all training graphs adding up to as many as there are, over the batch's number.
func graphAnswers(b *ir.Builder, o Options) *ir.Value {
	if o.ClassWeights == "balanced" {
		return b.DynamicArg("targets", ir.T(ir.F32, "G", ir.D(o.Classes)))
	}
	return b.DynamicArg("labels", ir.T(ir.I64, "G"))
}

// classify declares @classify over graphs with edge weights.
func (n *graphNet) classify(m *ir.Module, graph ir.Type) {
	b := m.NewFunc("classify")
	x := b.DynamicArg("x", features(n.Options))
	var g, w *ir.Value
	if n.arch.readsGraph(n.Options) {
		g = b.DynamicArg("g", graph)
		w = b.DynamicArg("w", ir.T(ir.F32, graph.Dims[1]))
	}
	batch := b.DynamicArg("batch", membership)
	returnPrediction(b, n.run(b, g, w, batch, x, nil, nil))
}
