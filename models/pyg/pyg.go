// Package pyg reads models that were trained in PyTorch Geometric: the state dict
// of a stack of GCNConv, GATConv, SAGEConv, Linear and BatchNorm layers becomes a
// module of the IR that classifies nodes, with its parameters.
//
// The names and shapes of the tensors say which layers there are, how wide they
// are, how many heads they have, and whether they have a bias, a root weight or a
// residual. What they do not say (activations, and arguments of the layers that
// have no tensor) is a [Setting]; every one has PyG's own default.
//
//	stack, err := pyg.Read(tensors, pyg.Options{Settings: []pyg.Setting{{"activation", "elu"}}})
//	module, params := stack.Module("pyg", false), stack.Params
package pyg

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Tensor is one entry of a state dict: float32 elements, row-major.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// The kinds of layers.
const (
	GCN       = "GCNConv"
	GAT       = "GATConv"
	SAGE      = "SAGEConv"
	Linear    = "Linear"
	BatchNorm = "BatchNorm"
)

// Layer is one layer of a stack.
type Layer struct {
	Name    string // as in the state dict, such as convs.0
	Kind    string // GCNConv, GATConv, SAGEConv, Linear or BatchNorm
	In, Out int    // columns of what it reads and gives

	// Activation of the layer's result, behind the BatchNorm that follows it if one
	// does: none, relu, elu, leaky_relu (slope 0.01), sigmoid or tanh.
	Activation string

	Bias bool
	// Normalize of GCNConv is the symmetric normalisation, of SAGEConv that of the
	// result's rows by their Euclidean norm.
	Normalize bool
	// SelfLoops of GCNConv: a self-loop a node is added; Improved gives it weight 2.
	SelfLoops, Improved bool
	// Heads, Concat, Slope and Residual are GATConv's heads, concat, negative_slope
	// and residual.
	Heads    int
	Concat   bool
	Slope    float64
	Residual bool
	// Root and Aggregate are SAGEConv's root_weight and aggr: mean, sum or max.
	Root      bool
	Aggregate string
	// Eps is BatchNorm's.
	Eps float64

	tensors map[string]*Tensor // by suffix
}

// Stack is a model: layers in the order in which they run.
type Stack struct {
	Layers []Layer
	// Features is how rows of x are normalised before the first layer: none, l1
	// (PyG's NormalizeFeatures, for features that are not negative) or l2.
	Features string
	// Params are the parameters of the module by name, row-major.
	Params map[string][]float32
}

// In returns the number of features, Out that of classes.
func (s *Stack) In() int { return s.Layers[0].In }

// Out returns the number of classes.
func (s *Stack) Out() int { return s.Layers[len(s.Layers)-1].Out }

// Setting says what tensors do not. Key is "features", the name of an argument for
// all layers that have it, such as "activation" (which leaves the last layer
// alone), or that of one layer: "conv2.activation".
type Setting struct{ Key, Value string }

// Options say what the tensors leave open.
type Options struct {
	Settings []Setting // later ones override earlier ones
	// Order names the layers in the order in which they run; nil takes the numbers
	// in their names.
	Order []string
}

// Read makes a stack of a state dict. It is an error if a tensor belongs to no layer
// that it knows, if the layers do not fit each other, or if their order is not clear.
func Read(tensors []Tensor, o Options) (*Stack, error) {
	layers, err := group(tensors)
	if err != nil {
		return nil, err
	}
	s := &Stack{Layers: layers, Features: "none", Params: map[string][]float32{}}
	for i := range layers {
		if err := layers[i].identify(); err != nil {
			return nil, err
		}
	}
	if err := s.order(o.Order); err != nil {
		return nil, err
	}
	if err := s.apply(o.Settings); err != nil {
		return nil, err
	}
	if err := s.chain(o.Settings); err != nil {
		return nil, err
	}
	for i := range s.Layers {
		for _, p := range s.Layers[i].parameters() {
			s.Params[paramName(i, p.name)] = p.data
		}
	}
	return s, nil
}

// chain checks that the layers fit each other, and finds what their neighbours say
// of attention layers without a bias.
func (s *Stack) chain(settings []Setting) error {
	for i := range s.Layers {
		l := &s.Layers[i]
		if l.Kind == GAT && !l.Bias && l.Heads > 1 && !l.Residual && !set(settings, l.Name, "concat") {
			if err := s.guessConcat(i); err != nil {
				return err
			}
		}
		if l.Kind == GAT {
			l.Out = len(l.tensors["att_src"].Data)
			if !l.Concat {
				l.Out /= l.Heads
			}
			if b := l.tensors["bias"]; b != nil && len(b.Data) != l.Out {
				return fmt.Errorf("%s has %d heads of %d columns with concat=%v, which is %d; its bias has %d", l.Name, l.Heads, len(l.tensors["att_src"].Data)/l.Heads, l.Concat, l.Out, len(b.Data))
			}
			if r := l.tensors["res.weight"]; r != nil && r.Shape[0] != l.Out {
				return fmt.Errorf("%s gives %d columns with concat=%v; its res.weight has %d", l.Name, l.Out, l.Concat, r.Shape[0])
			}
		}
		if i > 0 && l.In != s.Layers[i-1].Out {
			return fmt.Errorf("%s takes %d columns, but %s, which is taken to come before it, gives %d; say the order of the layers (%s)", l.Name, l.In, s.Layers[i-1].Name, s.Layers[i-1].Out, s.names())
		}
	}
	return nil
}

// guessConcat decides whether the heads of layer i stand side by side by what the
// next layer takes.
func (s *Stack) guessConcat(i int) error {
	l := &s.Layers[i]
	all := len(l.tensors["att_src"].Data)
	if i+1 < len(s.Layers) {
		switch s.Layers[i+1].In {
		case all:
			l.Concat = true
			return nil
		case all / l.Heads:
			l.Concat = false
			return nil
		}
	}
	return fmt.Errorf("%s has %d heads and no bias, so its tensors do not say whether they stand side by side (%d columns) or are averaged (%d): set %s.concat to true or false", l.Name, l.Heads, all, all/l.Heads, l.Name)
}

func (s *Stack) names() string {
	var names []string
	for _, l := range s.Layers {
		names = append(names, l.Name)
	}
	return strings.Join(names, ", ")
}

// set reports whether a setting of one layer, or of all, has the key.
func set(settings []Setting, layer, key string) bool {
	return slices.ContainsFunc(settings, func(x Setting) bool { return x.Key == key || x.Key == layer+"."+key })
}

type param struct {
	name, init string
	dims       []int
	data       []float32 // row-major
}

// parameters are those of the layer, made of its tensors.
func (l *Layer) parameters() (list []param) {
	add := func(name, init string, data []float32, dims ...int) {
		list = append(list, param{name, init, dims, data})
	}
	switch l.Kind {
	case BatchNorm:
		scale, shift := l.affine()
		add("scale", "ones", scale, l.Out)
		add("shift", "zeros", shift, l.Out)
		return list
	case GCN, GAT:
		t := l.tensors["lin.weight"]
		add("weight", "glorot", transpose(t), l.In, t.Shape[0])
	case Linear:
		add("weight", "glorot", transpose(l.tensors["weight"]), l.In, l.Out)
	case SAGE:
		neighbours := transpose(l.tensors["lin_l.weight"])
		if l.joined() {
			add("weight", "glorot", beside(transpose(l.tensors["lin_r.weight"]), neighbours, l.In), l.In, 2*l.Out)
			break
		}
		add("weight", "glorot", neighbours, l.In, l.Out)
		if l.Root {
			add("root", "glorot", transpose(l.tensors["lin_r.weight"]), l.In, l.Out)
		}
	}
	for _, name := range []string{"att_src", "att_dst"} {
		if t := l.tensors[name]; t != nil {
			add(name, "glorot", slices.Clone(t.Data), len(t.Data))
		}
	}
	if t := l.tensors["res.weight"]; t != nil {
		add("residual", "glorot", transpose(t), l.In, l.Out)
	}
	bias := "bias"
	if l.Kind == SAGE {
		bias = "lin_l.bias"
	}
	if t := l.tensors[bias]; t != nil {
		add("bias", "zeros", slices.Clone(t.Data), l.Out)
	}
	return list
}

// joined tells that a SAGEConv is the IR's own gnn.sage_conv, whose two weights lie
// side by side.
func (l *Layer) joined() bool { return l.Root && l.Aggregate == "mean" && !l.Normalize }

// affine gives y = x·scale + shift, what batch normalisation is in evaluation.
func (l *Layer) affine() (scale, shift []float32) {
	mean, variance := l.tensors["running_mean"].Data, l.tensors["running_var"].Data
	scale, shift = make([]float32, l.Out), make([]float32, l.Out)
	for k := range scale {
		a, b := 1/math.Sqrt(float64(variance[k])+l.Eps), 0.0
		if w := l.tensors["weight"]; w != nil {
			a *= float64(w.Data[k])
			b = float64(l.tensors["bias"].Data[k])
		}
		scale[k], shift[k] = float32(a), float32(b-float64(float64(mean[k])*a))
	}
	return scale, shift
}

// transpose turns PyTorch's [out, in] into [in, out].
func transpose(t *Tensor) []float32 {
	rows, cols := t.Shape[0], t.Shape[1]
	out := make([]float32, len(t.Data))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = t.Data[i*cols+j]
		}
	}
	return out
}

// beside puts two matrices of that many rows side by side.
func beside(a, b []float32, rows int) []float32 {
	p, q := len(a)/rows, len(b)/rows
	out := make([]float32, 0, len(a)+len(b))
	for i := range rows {
		out = append(append(out, a[i*p:(i+1)*p]...), b[i*q:(i+1)*q]...)
	}
	return out
}
