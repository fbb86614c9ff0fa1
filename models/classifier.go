package models

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// Argument types that the models share.
func features(o Options) ir.Type { return ir.T(ir.F32, "N", ir.D(o.Features)) }

var (
	rawGraph   = ir.GraphType("N", "E")
	candidates = ir.GraphType("N", "M")
	trainIdx   = ir.T(ir.I64, "T")
)

// normalise applies the classifier's row normalisation.
func normalise(b *ir.Builder, o Options, x *ir.Value) *ir.Value {
	if o.Norm == "none" {
		return x
	}
	return b.One(o.Norm+"_normalize", nil, x)
}

// stack is a list of layers y = act(f(x)·W + b).
type stack struct {
	weights, biases []*ir.Value
	act             string
	propagation     *Propagation // nil: every layer aggregates
}

// declareStack declares the parameters of layers of the given widths.
func declareStack(m *ir.Module, name, group, act string, decay float64, firstOnly bool, widths ...int) stack {
	s := stack{act: act}
	for i := range len(widths) - 1 {
		d := decay
		if firstOnly && i > 0 {
			d = 0
		}
		s.weights = append(s.weights, m.AddParam(fmt.Sprintf("%s.%d.weight", name, i), ir.T(ir.F32, ir.D(widths[i]), ir.D(widths[i+1])), "glorot", d, group))
		s.biases = append(s.biases, m.AddParam(fmt.Sprintf("%s.%d.bias", name, i), ir.T(ir.F32, ir.D(widths[i+1])), "zeros", 0, group))
	}
	return s
}

// widths returns in, hidden × (layers − 1), out.
func widths(in, hidden, layers, out int) []int {
	w := []int{in}
	for range layers - 1 {
		w = append(w, hidden)
	}
	return append(w, out)
}

// dropouts names the streams of a training pass; nil means evaluation.
type dropouts struct {
	input, hidden float64
	prefix        string
}

// classifierDropouts are those of the classifier.
func (o Options) classifierDropouts(prefix string) *dropouts {
	return &dropouts{o.InputDropout, o.Dropout, prefix}
}

// classifierStack declares the classifier's parameters.
func classifierStack(m *ir.Module, o Options) stack {
	s := declareStack(m, "classifier", "classifier", "relu", o.WeightDecay, o.DecayFirst, widths(o.Features, o.Hidden, o.Layers, o.Classes)...)
	if o.Classifier == "propagation" {
		s.propagation = &o.Propagation
	}
	return s
}

func (d *dropouts) apply(b *ir.Builder, layer int, x *ir.Value) *ir.Value {
	if d == nil {
		return x
	}
	rate := d.hidden
	if layer == 0 {
		rate = d.input
	}
	if rate == 0 {
		return x
	}
	return b.One("dropout", ir.Attrs{"rate": rate, "stream": fmt.Sprintf("%s.dropout%d", d.prefix, layer)}, x)
}

// run applies the layers over a graph (nil: none) with edge weights w (nil:
// ones); the last layer has no activation.
func (s stack) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	if s.propagation != nil {
		return s.propagate(b, g, w, x, drop)
	}
	for i, weight := range s.weights {
		x = drop.apply(b, i, x)
		act := ir.Attrs{}
		if i+1 < len(s.weights) {
			act["act"] = s.act
		}
		if g == nil {
			x = b.One("gnn.linear", act, x, weight, s.biases[i])
		} else {
			x = b.One("gnn.gcn_conv", act, g, w, x, weight, s.biases[i])
		}
	}
	return x
}

// propagate is random propagation (Feng et al. 2020, GRAND): whole nodes are
// dropped, the mean of Â⁰h … Âᴷh is taken, and fully connected layers follow. The
// first of them is linear up to its activation, so it comes before the
// propagation, which then runs on its narrower result.
func (s stack) propagate(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	p := s.propagation
	h := drop.apply(b, 0, x)
	if drop != nil && p.DropNodes > 0 {
		u := b.OneTyped("uniform", ir.Attrs{"stream": drop.prefix + ".nodes"}, ir.T(ir.F32, x.Type.Dims[0], "1"))
		kept := b.One("greater_equal", nil, u, b.Const(p.DropNodes))
		h = b.Mul(h, b.Scale(kept, 1/(1-p.DropNodes)))
	}
	h = b.MatMul(h, s.weights[0])
	norm := b.Op("gnn.sym_norm", nil, g, w)
	sum := h
	for range p.Order {
		h = b.One("spmm", nil, g, norm[0], norm[1], h)
		sum = b.Add(sum, h)
	}
	h = b.Add(b.Scale(sum, 1/float64(p.Order+1)), s.biases[0])
	for i := 1; i < len(s.weights); i++ {
		h = drop.apply(b, i, b.One(s.act, nil, h))
		h = b.One("gnn.linear", nil, h, s.weights[i], s.biases[i])
	}
	return h
}

// labelled returns the rows of the labelled nodes.
func labelled(b *ir.Builder, logits, idx *ir.Value) *ir.Value {
	return b.One("gather", nil, logits, idx)
}

func returnPrediction(b *ir.Builder, logits *ir.Value) {
	b.Return("logits", logits)
	b.Return("probabilities", b.One("softmax", nil, logits))
}

// supervised declares @train of a classifier on the raw graph, or without one.
func supervised(m *ir.Module, o Options, s stack, overGraph bool) {
	b := m.NewFunc("train")
	x := b.Arg("x", features(o))
	var g *ir.Value
	if overGraph {
		g = b.Arg("g", rawGraph)
	}
	idx := b.Arg("train_idx", trainIdx)
	labels := b.Arg("labels", trainIdx)
	logits := s.run(b, g, nil, normalise(b, o, x), o.classifierDropouts("classifier"))
	b.Return("loss", b.One("cross_entropy", nil, labelled(b, logits, idx), labels))
	b.Func.Attrs["differentiate"] = "loss"
}

// classify declares @classify over a graph with edge weights, or without one.
func classify(m *ir.Module, o Options, s stack, graph *ir.Type) {
	b := m.NewFunc("classify")
	x := b.Arg("x", features(o))
	var g, w *ir.Value
	if graph != nil {
		g = b.Arg("g", *graph)
		w = b.Arg("w", ir.T(ir.F32, graph.Dims[1]))
	}
	returnPrediction(b, s.run(b, g, w, normalise(b, o, x), nil))
}

func gcn(o Options) *ir.Module {
	m := ir.NewModule("gcn")
	s := classifierStack(m, o)
	supervised(m, o, s, true)
	classify(m, o, s, &rawGraph)
	return m
}

func mlp(o Options) *ir.Module {
	m := ir.NewModule("mlp")
	o.Classifier = "gcn" // without a graph there is nothing to propagate over
	s := classifierStack(m, o)
	supervised(m, o, s, false)
	classify(m, o, s, nil)
	return m
}
