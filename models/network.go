package models

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// network is an architecture whose parameters are declared: what stands behind
// a classifier or an encoder.
type network interface {
	// run applies the layers to x [N, in] over a graph (nil: none) with edge
	// weights w (nil: ones) and returns [N, out]; the last layer has no activation.
	// drop nil is evaluation.
	run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value
}

// shape is what an architecture is asked for.
type shape struct {
	name, group             string // prefix and optimizer group of its parameters
	act                     string // between layers
	in, hidden, layers, out int
	decay                   float64
	decayFirst              bool // weight decay on the first layer only
}

// widths returns in, hidden × (layers − 1), out.
func (s shape) widths() []int {
	w := []int{s.in}
	for range s.layers - 1 {
		w = append(w, s.hidden)
	}
	return append(w, s.out)
}

func (s shape) weight(m *ir.Module, layer int, name string, rows, cols int) *ir.Value {
	return m.AddParam(fmt.Sprintf("%s.%d.%s", s.name, layer, name), ir.T(ir.F32, ir.D(rows), ir.D(cols)), "glorot", s.decayOf(layer), s.group)
}

func (s shape) decayOf(layer int) float64 {
	if s.decayFirst && layer > 0 {
		return 0
	}
	return s.decay
}

func (s shape) bias(m *ir.Module, layer int, name string, cols int) *ir.Value {
	return m.AddParam(fmt.Sprintf("%s.%d.%s", s.name, layer, name), ir.T(ir.F32, ir.D(cols)), "zeros", 0, s.group)
}

// Architecture is a kind of network.
type Architecture struct {
	// Name is the value of the option model.classifier.
	Name string
	Doc  string
	// Model is the name of the model that is this network alone.
	Model string

	declare func(m *ir.Module, s shape, o Options) network
	// layer declares a layer of a network that classifies whole graphs, before its
	// normalisation; nil where layers depend on each other, which is for nodes only.
	layer   func(m *ir.Module, s shape, o Options) graphLayer
	noGraph func(Options) bool // whether it reads the features alone; nil: it does not
	encoder bool               // is one of the encoder's kinds too
	samples bool               // alone, it is trained on several samples with a consistency term
}

// Architectures lists the networks that classify.
var Architectures = []Architecture{
	{Name: "gcn", Model: "gcn", Doc: "graph convolutional network (Kipf & Welling 2017)", declare: declareGCN, layer: single(declareGCN), encoder: true},
	{Name: "mlp", Model: "mlp", Doc: "multi-layer perceptron on the features alone", declare: declareMLP, layer: single(declareMLP), noGraph: always, encoder: true},
	{Name: "propagation", Model: "grand", Doc: "fully connected layers over random propagation, with a consistency term between samples (GRAND, Feng et al. 2020)", declare: declarePropagation, samples: true},
	{Name: "gat", Model: "gat", Doc: "graph attention network (Veličković et al. 2018)", declare: declareGAT, layer: single(declareGAT), encoder: true},
	{Name: "acm", Model: "acm", Doc: "adaptive mixing of low-pass, high-pass and identity channels, for graphs whose neighbours differ (ACM-GCN, Luan et al. 2022)", declare: declareACM, encoder: true},
	{Name: "gcnii", Model: "gcnii", Doc: "deep graph convolutions with initial residual and identity mapping (Chen et al. 2020)", declare: declareGCNII},
	{Name: "sage", Model: "sage", Doc: "GraphSAGE with the mean aggregator, on whole neighbourhoods (Hamilton et al. 2017)", declare: declareSAGE, layer: single(declareSAGE), encoder: true},
	{Name: "gin", Model: "gin", Doc: "graph isomorphism network: perceptrons on sums over neighbourhoods (Xu et al. 2019)", declare: declareGIN, layer: declareGINLayer, encoder: true},
	{Name: "linear", Model: "linear", Doc: "multinomial logistic regression, of propagated features if asked to", declare: declareLinear, noGraph: func(o Options) bool { return o.Linear.Steps == 0 }},
}

// Directional names the models that read the directions of edges where they classify nodes, or whole graphs.
func Directional(graphs bool) (names []string) {
	for i := range Architectures {
		if a := &Architectures[i]; a.readsGraph(Default()) && (!graphs || a.layer != nil) {
			names = append(names, a.Model)
		}
	}
	return names
}

func always(Options) bool { return true }

// readsGraph reports whether the network reads edges.
func (a *Architecture) readsGraph(o Options) bool { return a.noGraph == nil || !a.noGraph(o) }

// graphOf is the graph that the classifier reads, nil where it reads the features alone.
func graphOf(o Options, graph *ir.Type) *ir.Type {
	if architecture(o.Classifier).readsGraph(o) {
		return graph
	}
	return nil
}

// Classifiers lists the values of the option classifier.
func Classifiers() []string { return architecturesThat(func(*Architecture) bool { return true }) }

// Encoders lists the values of the option encoder.kind.
func Encoders() []string { return architecturesThat(func(a *Architecture) bool { return a.encoder }) }

// GraphClassifiers lists the values of the option classifier that classify whole
// graphs.
func GraphClassifiers() []string {
	return architecturesThat(func(a *Architecture) bool { return a.layer != nil })
}

func architecturesThat(have func(*Architecture) bool) (names []string) {
	for i := range Architectures {
		if a := &Architectures[i]; have(a) {
			names = append(names, a.Name)
		}
	}
	return names
}

// architecture returns the one of a name; a name that Validate does not know is
// a programmer's error.
func architecture(name string) *Architecture {
	i := slices.IndexFunc(Architectures, func(a Architecture) bool { return a.Name == name })
	if i < 0 {
		panic(fmt.Sprintf("models: no architecture %q; Options.Validate tells before", name))
	}
	return &Architectures[i]
}

// dropouts names the streams of a training pass; nil means evaluation.
type dropouts struct {
	input, hidden float64
	prefix        string
}

// apply drops elements of a layer's input.
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
