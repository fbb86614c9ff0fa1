package models

import (
	"fmt"
	"slices"

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
	readouts []affine
}

// graphLayer is one layer: GIN's perceptron with a normalisation of its own between
// its two products, or else a network of one layer.
type graphLayer struct {
	first  affine
	inner  norm
	second affine
	net    network

	normalise norm
}

// affine is x·W + b.
type affine struct{ weight, bias *ir.Value }

// norm is batch normalisation (Ioffe and Szegedy 2015): with the statistics of the
// batch in training, which move the running ones, and with these in evaluation.
type norm struct{ scale, shift, mean, variance *ir.Value }

// RunningPrefix begins the names of a training function's results that move a
// parameter towards them: the result running.p moves $p.
const RunningPrefix = "running."

const normEps = 1e-5

func declareAffine(m *ir.Module, o Options, name string, in, out int) affine {
	return affine{
		m.AddParam(name+".weight", ir.T(ir.F32, ir.D(in), ir.D(out)), "glorot", o.WeightDecay, "classifier"),
		m.AddParam(name+".bias", ir.T(ir.F32, ir.D(out)), "zeros", 0, "classifier"),
	}
}

func declareNorm(m *ir.Module, name string, width int) norm {
	t := ir.T(ir.F32, ir.D(width))
	return norm{
		scale:    m.AddParam(name+".scale", t, "ones", 0, "classifier"),
		shift:    m.AddParam(name+".shift", t, "zeros", 0, "classifier"),
		mean:     m.AddParam(name+".mean", t, "zeros", 0, "statistics"),
		variance: m.AddParam(name+".variance", t, "ones", 0, "statistics"),
	}
}

func declareGraphNet(m *ir.Module, o Options, a *Architecture) *graphNet {
	n := &graphNet{Options: o, arch: a}
	in := o.Features
	n.readouts = append(n.readouts, declareAffine(m, o, "classifier.readout0", in, o.Classes))
	for k := 1; k <= o.Layers; k++ {
		name := fmt.Sprintf("classifier.%d", k)
		var l graphLayer
		if a.Name == "gin" {
			l.first = declareAffine(m, o, name+".inner", in, o.Hidden)
			l.inner = declareNorm(m, name+".inner.norm", o.Hidden)
			l.second = declareAffine(m, o, name+".outer", o.Hidden, o.Hidden)
		} else {
			l.net = a.declare(m, shape{name: name, group: "classifier", act: "relu", in: in, hidden: o.Hidden, layers: 1, out: o.Hidden, decay: o.WeightDecay}, o)
		}
		l.normalise = declareNorm(m, name+".norm", o.Hidden)
		n.layers = append(n.layers, l)
		n.readouts = append(n.readouts, declareAffine(m, o, fmt.Sprintf("classifier.readout%d", k), o.Hidden, o.Classes))
		in = o.Hidden
	}
	return n
}

// run returns the logits [G, classes] of a batch. drop nil is evaluation.
func (n *graphNet) run(b *ir.Builder, g, w, batch, x *ir.Value, drop *dropouts) *ir.Value {
	x = normalise(b, n.Options, x)
	mode := ir.Attrs{"mode": n.Readout}
	// The readout of the features stands behind their product, which is narrow.
	logits := b.One("gnn.readout", mode, batch, b.MatMul(x, n.readouts[0].weight))
	logits = b.Add(logits, n.readouts[0].bias)
	for k, l := range n.layers {
		x = drop.apply(b, k, x)
		x = b.One("relu", nil, l.normalise.apply(b, n.message(b, l, g, w, x, drop), drop))
		r := b.One("gnn.readout", mode, batch, x)
		if drop != nil && n.ReadoutDropout > 0 {
			r = b.One("dropout", ir.Attrs{"rate": n.ReadoutDropout, "stream": fmt.Sprintf("%s.readout%d", drop.prefix, k+1)}, r)
		}
		logits = b.Add(logits, b.One("gnn.linear", nil, r, n.readouts[k+1].weight, n.readouts[k+1].bias))
	}
	return logits
}

// message is a layer before its normalisation.
func (n *graphNet) message(b *ir.Builder, l graphLayer, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	if l.net != nil {
		return l.net.run(b, g, w, x, nil) // what is dropped is x, by the caller
	}
	h := b.One("gnn.gin_conv", ir.Attrs{"eps": n.GIN.Eps}, g, w, x, l.first.weight, l.first.bias)
	h = b.One("relu", nil, l.inner.apply(b, h, drop))
	return b.One("gnn.linear", nil, h, l.second.weight, l.second.bias)
}

// apply normalises the columns of x.
func (n norm) apply(b *ir.Builder, x *ir.Value, drop *dropouts) *ir.Value {
	mean, variance := n.mean, n.variance
	if drop != nil {
		axis := ir.Attrs{"axis": "0"}
		mean = b.One("reduce_mean", axis, x)
		d := b.Sub(x, mean)
		variance = b.One("reduce_mean", axis, b.One("square", nil, d))
		b.Return(RunningPrefix+n.mean.Name, mean)
		b.Return(RunningPrefix+n.variance.Name, variance)
		x = d
	} else {
		x = b.Sub(x, mean)
	}
	factor := b.Mul(b.One("rsqrt", nil, b.Shift(variance, normEps)), n.scale)
	return b.Add(b.Mul(x, factor), n.shift)
}

// graphLayers are the architectures of which a layer can be one of a [graphNet]:
// those whose layers do not depend on each other.
var graphLayers = []string{"gcn", "mlp", "gat", "sage", "gin"}

// graphModel builds the model of an architecture for collections of graphs: @train
// (x, g, batch, labels) and @classify (x, g, w, batch). It is nil for architectures
// that are for nodes only.
func graphModel(a *Architecture) func(Options) *ir.Module {
	if !slices.Contains(graphLayers, a.Name) {
		return nil
	}
	return func(o Options) *ir.Module {
		m := ir.NewModule(a.Model)
		n := declareGraphNet(m, o, a)
		b := m.NewFunc("train")
		x := b.DynamicArg("x", features(o))
		var g *ir.Value
		if !a.noGraph {
			g = b.DynamicArg("g", rawGraph)
		}
		batch := b.DynamicArg("batch", membership)
		labels := b.DynamicArg("labels", ir.T(ir.I64, "G"))
		logits := n.run(b, g, nil, batch, x, o.dropouts("classifier"))
		b.Return("loss", b.One("cross_entropy", nil, logits, labels))
		b.Func.Attrs["differentiate"] = "loss"
		n.classify(m, rawGraph)
		return m
	}
}

// classify declares @classify over graphs with edge weights.
func (n *graphNet) classify(m *ir.Module, graph ir.Type) {
	b := m.NewFunc("classify")
	x := b.DynamicArg("x", features(n.Options))
	var g, w *ir.Value
	if !n.arch.noGraph {
		g = b.DynamicArg("g", graph)
		w = b.DynamicArg("w", ir.T(ir.F32, graph.Dims[1]))
	}
	batch := b.DynamicArg("batch", membership)
	returnPrediction(b, n.run(b, g, w, batch, x, nil))
}
