package ir

import (
	"fmt"
	"math"
)

var actAttr = AttrSpec{Name: "act", Kind: StringAttr, Default: "none", OneOf: []string{"none", "relu", "elu"}, Doc: "activation"}

const lowered = "lowered to tensor operations before gradients are taken"

// activate applies an activation by its attribute value.
func activate(act string, x float64) float64 {
	switch act {
	case "relu":
		return math.Max(x, 0)
	case "elu":
		return elu(x)
	}
	return x
}

// wantEdgeWeights checks that operand i, where present, is f32[E].
func (c *InferCtx) wantEdgeWeights(i int) error {
	if err := c.wantWhole(); err != nil {
		return err
	}
	if !c.Has(i) {
		return nil
	}
	if err := c.wantDType(i, F32); err != nil {
		return err
	}
	return c.wantDims(i, c.edges())
}

// wantNodeRows checks that operand i is a matrix with one row a node.
func (c *InferCtx) wantNodeRows(i int) error {
	if err := c.wantRank(i, 2); err != nil {
		return err
	}
	return c.wantDims(i, c.In(0).Targets(), c.In(i).Dims[1])
}

// inferLinear checks x·W + b (b −1: no such operand) and gives the type of the
// result.
func (c *InferCtx) inferLinear(x, w, b int) ([]Type, error) {
	for _, i := range []int{x, w} {
		if err := c.wantRank(i, 2); err != nil {
			return nil, err
		}
	}
	shared := []int{x, w}
	if b >= 0 {
		shared = append(shared, b)
	}
	if err := c.wantOneDType(shared...); err != nil {
		return nil, err
	}
	if c.In(x).Dims[1] != c.In(w).Dims[0] {
		return nil, fmt.Errorf("%s columns of %s do not fit %s rows of %s", c.In(x).Dims[1], c.Op.operandName(x), c.In(w).Dims[0], c.Op.operandName(w))
	}
	if b >= 0 {
		if err := c.wantDims(b, c.In(w).Dims[1]); err != nil {
			return nil, err
		}
	}
	return one(T(c.In(x).DType, c.In(x).Dims[0], c.In(w).Dims[1]))
}

// addBias adds b (absent: nothing) and applies the activation in place.
func addBias(y, b *Tensor, act string) {
	for i := range y.Rows() {
		for j := range y.Row(i) {
			if b != nil {
				y.Row(i)[j] += b.Data[j]
			}
			y.Row(i)[j] = activate(act, y.Row(i)[j])
		}
	}
}

// symNorm gives Â = D^-½(A + I)D^-½ as edge values and self values.
func symNorm(g *Graph, w *Tensor) (a, s []float64) {
	deg := make([]float64, g.N)
	for i := range deg {
		deg[i] = 1
	}
	at := func(e int) float64 {
		if w == nil {
			return 1
		}
		return w.Data[e]
	}
	for e, i := range g.Row {
		deg[i] += at(e)
	}
	a, s = make([]float64, len(g.Row)), make([]float64, g.N)
	for e := range a {
		a[e] = at(e) / math.Sqrt(deg[g.Row[e]]*deg[g.Col[e]])
	}
	for i := range s {
		s[i] = 1 / deg[i]
	}
	return a, s
}

var optionalW = OperandSpec{Name: "w", Optional: true}

var gnnOps = []OpDef{
	{
		Name: "gnn.linear", Level: GNNLevel, Doc: "y = act(x·W + b)", Attrs: []AttrSpec{actAttr}, Results: []string{"linear"}, NoGrad: lowered,
		Operands: []OperandSpec{sparseOK("x"), {Name: "W"}, {Name: "b", Optional: true}},
		Infer:    func(c *InferCtx) ([]Type, error) { return c.inferLinear(0, 1, 2) },
		Eval: func(c *EvalCtx) error {
			y := c.New(0)
			evalMatMul(c.T(0), c.T(1), y, false, false)
			addBias(y, c.T(2), c.Op.Str("act"))
			return nil
		},
	},
	{
		Name: "gnn.sym_norm", Level: GNNLevel, Doc: "Â = D^-½(A + I)D^-½ with D the weighted in-degree + 1: edge values a_e and self values s_i (Kipf & Welling 2017)", Results: []string{"a", "s"}, NoGrad: lowered,
		Operands: graphThen(optionalW),
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantEdgeWeights(1); err != nil {
				return nil, err
			}
			return []Type{T(F32, c.edges()), T(F32, c.In(0).Targets())}, nil
		},
		Eval: func(c *EvalCtx) error {
			a, s := symNorm(c.G(0), c.T(1))
			c.New(0).Data, c.New(1).Data = a, s
			return nil
		},
	},
	{
		Name: "gnn.gcn_conv", Level: GNNLevel, Doc: "y = act(Â·x·W + b), Â as gnn.sym_norm gives it (Kipf & Welling 2017)", Attrs: []AttrSpec{actAttr}, Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "b", Optional: true}),
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantEdgeWeights(1); err != nil {
				return nil, err
			}
			if err := c.wantNodeRows(2); err != nil {
				return nil, err
			}
			return c.inferLinear(2, 3, 4)
		},
		Eval: func(c *EvalCtx) error {
			g, y := c.G(0), c.New(0)
			a, s := symNorm(g, c.T(1))
			h := NewTensor(y.Shape...)
			evalMatMul(c.T(2), c.T(3), h, false, false)
			for e := range a {
				for k, v := range h.Row(g.Col[e]) {
					y.Row(g.Row[e])[k] += a[e] * v
				}
			}
			for i := range s {
				for k, v := range h.Row(i) {
					y.Row(i)[k] += s[i] * v
				}
			}
			addBias(y, c.T(4), c.Op.Str("act"))
			return nil
		},
	},
	{
		Name: "gnn.sage_conv", Level: GNNLevel, Doc: "y_i = act(h_i + Σ w_e·n_src / max(Σ w_e, 0.5) + b) with [h, n] = x·W: the left half of W's columns is the node's own, the right half its neighbours' mean's (Hamilton et al. 2017, mean; one W, so that x is read once; 0.5, so that the gradient of a sample without edges is finite)", Attrs: []AttrSpec{actAttr}, Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "b", Optional: true}),
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantEdgeWeights(1); err != nil {
				return nil, err
			}
			if err := c.wantNodeRows(2); err != nil {
				return nil, err
			}
			both, err := c.inferLinear(2, 3, -1)
			if err != nil {
				return nil, err
			}
			cols, ok := both[0].Dims[1].Size()
			if !ok || cols%2 != 0 {
				return nil, fmt.Errorf("operand W has %s columns, want an even number: a node's own, then its neighbours'", both[0].Dims[1])
			}
			y := both[0].WithDims(both[0].Dims[0], D(cols/2))
			if err := c.wantOneDType(2, 4); err != nil {
				return nil, err
			}
			if err := c.wantDims(4, y.Dims[1]); err != nil {
				return nil, err
			}
			return one(y)
		},
		Eval: func(c *EvalCtx) error {
			g, w, y := c.G(0), c.T(1), c.New(0)
			f := y.Cols()
			h := NewTensor(g.N, 2*f)
			evalMatMul(c.T(2), c.T(3), h, false, false)
			deg := make([]float64, g.N)
			at := func(e int) float64 {
				if w == nil {
					return 1
				}
				return w.Data[e]
			}
			for e, i := range g.Row {
				deg[i] += at(e)
			}
			for e, i := range g.Row {
				for k := range f {
					y.Row(i)[k] += at(e) / math.Max(deg[i], 0.5) * h.Row(g.Col[e])[f+k]
				}
			}
			for i := range g.N {
				for k := range f {
					y.Row(i)[k] += h.Row(i)[k]
				}
			}
			addBias(y, c.T(4), c.Op.Str("act"))
			return nil
		},
	},
	{
		Name: "gnn.gin_conv", Level: GNNLevel, Doc: "y_i = act(((1 + eps)·x_i + Σ w_e·x_src)·W + b), the first layer of GIN's perceptron (Xu et al. 2019)", Attrs: []AttrSpec{actAttr, floatAttr("eps", 0.0, "how much more than a neighbour the node itself counts")}, Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "b", Optional: true}),
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantEdgeWeights(1); err != nil {
				return nil, err
			}
			if err := c.wantNodeRows(2); err != nil {
				return nil, err
			}
			return c.inferLinear(2, 3, 4)
		},
		Eval: func(c *EvalCtx) error {
			g, w, y := c.G(0), c.T(1), c.New(0)
			h := NewTensor(y.Shape...)
			evalMatMul(c.T(2), c.T(3), h, false, false)
			for i := range g.N {
				for k, v := range h.Row(i) {
					y.Row(i)[k] += (1 + c.Op.Float("eps")) * v
				}
			}
			for e, i := range g.Row {
				we := 1.0
				if w != nil {
					we = w.Data[e]
				}
				for k, v := range h.Row(g.Col[e]) {
					y.Row(i)[k] += we * v
				}
			}
			addBias(y, c.T(4), c.Op.Str("act"))
			return nil
		},
	},
}
