package pyg

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
)

func paramName(layer int, name string) string { return fmt.Sprintf("classifier.%d.%s", layer, name) }

// Module returns the program: @classify (x, g, w) → logits, probabilities. Layer k
// of the stack has the parameters classifier.k.weight, .bias and so on. An edge
// weight of 1, which is what exports take if none is given, is PyG's model; another
// multiplies the edge's message (and counts in the degrees of GCNConv, as there).
// With loops @classify takes [models.SelfLoops] behind w.
func (s *Stack) Module(name string, loops bool) *ir.Module {
	m := ir.NewModule(name)
	params := map[string]*ir.Value{}
	for i := range s.Layers {
		for _, p := range s.Layers[i].parameters() {
			var dims []ir.Dim
			for _, d := range p.dims {
				dims = append(dims, ir.D(d))
			}
			name := paramName(i, p.name)
			params[name] = m.AddParam(name, ir.T(ir.F32, dims...), p.init, 0, "classifier")
		}
	}
	b := m.NewFunc("classify")
	g := ir.GraphType("N", "E")
	x := b.Arg("x", ir.T(ir.F32, "N", ir.D(s.In())))
	e := emitter{Builder: b, g: b.Arg("g", g), w: b.Arg("w", ir.T(ir.F32, g.Dims[1]))}
	if loops {
		e.loops = b.Arg(models.SelfLoops, ir.T(ir.F32, "N"))
	}
	if s.Features != "none" {
		x = b.One(s.Features+"_normalize", nil, x)
	}
	for i := range s.Layers {
		l := &s.Layers[i]
		e.param = func(name string) *ir.Value { return params[paramName(i, name)] }
		restore := b.Named(identifier(l.Name))
		x = e.layer(l, x)
		x = e.activate(s.ActivationBehind(i), x)
		restore()
	}
	b.Return("logits", x)
	b.Return("probabilities", b.One("softmax", nil, x))
	return m
}

// identifier makes a layer's name one that the IR can write.
func identifier(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			return r
		}
		return '_'
	}, name)
	if clean[0] == '.' || clean[0] >= '0' && clean[0] <= '9' {
		clean = "layer" + clean
	}
	return clean
}

// ActivationBehind returns what is applied behind layer i: of a BatchNorm the activation of
// the layer before it, which has none itself.
func (s *Stack) ActivationBehind(i int) string {
	if i+1 < len(s.Layers) && s.Layers[i+1].Kind == BatchNorm {
		return "none"
	}
	for i > 0 && s.Layers[i].Kind == BatchNorm {
		i--
	}
	return s.Layers[i].Activation
}

// emitter writes layers; param gives the parameters of the current one, nil for
// those that it has not.
type emitter struct {
	*ir.Builder
	g, w  *ir.Value
	loops *ir.Value // nil where self-loops have no weights of their own
	param func(name string) *ir.Value
}

func (e *emitter) layer(l *Layer, x *ir.Value) *ir.Value {
	switch l.Kind {
	case GCN:
		return e.gcn(l, x)
	case GAT:
		return e.gat(l, x)
	case SAGE:
		return e.sage(l, x)
	case Linear:
		return e.One("gnn.linear", nil, x, e.param("weight"), e.param("bias"))
	}
	return e.Add(e.Mul(x, e.param("scale")), e.param("shift"))
}

func (e *emitter) gcn(l *Layer, x *ir.Value) *ir.Value {
	fill := 0.0 // the self-loop of a node that has none
	switch {
	case l.Normalize && l.SelfLoops && !l.Improved && e.loops == nil:
		return e.One("gnn.gcn_conv", nil, e.g, e.w, x, e.param("weight"), e.param("bias"))
	case !l.Normalize || !l.SelfLoops: // PyG adds self-loops in normalising only
	case l.Improved:
		fill = 2
	default:
		fill = 1
	}
	h := e.MatMul(x, e.param("weight"))
	if !l.Normalize {
		return e.bias(e.One("spmm", nil, e.g, e.w, e.self(fill), h))
	}
	// D^-½(A + L)D^-½ as a scaling of the nodes before and behind the sum.
	deg := e.One("edge_sum", ir.Attrs{"side": "dst"}, e.g, e.w)
	self := e.self(fill)
	var scale *ir.Value
	if self != nil {
		deg = e.Add(deg, self)
	}
	if fill > 0 && e.loops == nil {
		scale = e.One("rsqrt", nil, deg)
	} else {
		// A node without edges has the factor 0.
		some := e.One("greater", nil, deg, e.Const(0))
		scale = e.Mul(some, e.One("rsqrt", nil, e.One("maximum", nil, deg, e.Const(1e-12))))
	}
	scale = e.One("unsqueeze", nil, scale)
	return e.bias(e.Mul(e.One("spmm", nil, e.g, e.w, self, e.Mul(h, scale)), scale))
}

// self returns the weights of self-loops [N]: those listed, and fill of nodes without one; nil
// where all are 0.
func (e *emitter) self(fill float64) *ir.Value {
	if e.loops == nil {
		if fill == 0 {
			return nil
		}
		return e.Fill(fill, ir.T(ir.F32, "N"))
	}
	listed := e.One("greater_equal", nil, e.loops, e.Const(0))
	return e.Add(e.Mul(listed, e.loops), e.Scale(e.Sub(e.Const(1), listed), fill))
}

func (e *emitter) gat(l *Layer, x *ir.Value) *ir.Value {
	attrs := ir.Attrs{"heads": l.Heads, "slope": l.Slope}
	if !l.Concat {
		attrs["combine"] = "mean"
	}
	y := e.One("gnn.gat_conv", attrs, e.g, e.w, x, e.param("weight"), e.param("att_src"), e.param("att_dst"), e.param("bias"))
	if l.Residual {
		y = e.Add(y, e.MatMul(x, e.param("residual")))
	}
	return y
}

func (e *emitter) sage(l *Layer, x *ir.Value) *ir.Value {
	if l.joined() {
		return e.One("gnn.sage_conv", nil, e.g, e.w, x, e.param("weight"), e.param("bias"))
	}
	var y *ir.Value
	switch l.Aggregate {
	case "max": // of the features themselves; no sum, so that their product cannot come first
		y = e.MatMul(e.One("spmax", nil, e.g, x), e.param("weight"))
	case "sum":
		y = e.One("spmm", nil, e.g, e.w, nil, e.MatMul(x, e.param("weight")))
	default:
		y = e.One("spmm", nil, e.g, e.w, nil, e.MatMul(x, e.param("weight")))
		deg := e.One("maximum", nil, e.One("edge_sum", ir.Attrs{"side": "dst"}, e.g, e.w), e.Const(0.5))
		y = e.Div(y, e.One("unsqueeze", nil, deg))
	}
	y = e.bias(y)
	if l.Root {
		y = e.Add(y, e.MatMul(x, e.param("root")))
	}
	if l.Normalize {
		y = e.One("l2_normalize", nil, y)
	}
	return y
}

func (e *emitter) bias(y *ir.Value) *ir.Value {
	if b := e.param("bias"); b != nil {
		return e.Add(y, b)
	}
	return y
}

func (e *emitter) activate(act string, x *ir.Value) *ir.Value {
	switch act {
	case "none":
		return x
	case "leaky_relu":
		return e.One(act, ir.Attrs{"slope": 0.01}, x)
	}
	return e.One(act, nil, x)
}

// CountsWeights reports whether the layers that read edges take their weights, as GCNConv
// alone does in PyTorch Geometric.
func (s *Stack) CountsWeights() bool {
	counts := false
	for i := range s.Layers {
		switch s.Layers[i].Kind {
		case GCN:
			counts = true
		case SAGE, GAT:
			return false
		}
	}
	return counts
}
