package ir

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

var actAttr = AttrSpec{Name: "act", Kind: StringAttr, Default: "none", OneOf: []string{"none", "relu", "elu", "tanh"}, Doc: "activation"}

const lowered = "lowered to tensor operations before gradients are taken"

// activate applies an activation by its attribute value.
func activate(act string, x float64) float64 {
	switch act {
	case "relu":
		return math.Max(x, 0)
	case "elu":
		return elu(x)
	case "tanh":
		return fmath.Tanh(x)
	}
	return x
}

// wantEdgeWeights checks that operand i, where present, is f32[E].
func (c *InferCtx) wantEdgeWeights(i int) {
	c.wantWhole()
	if !c.Has(i) {
		return
	}
	c.wantDType(i, F32)
	c.wantDims(i, c.edges())
}

// wantNodeRows checks that operand i is a matrix with one row a node.
func (c *InferCtx) wantNodeRows(i int) {
	c.wantRank(i, 2)
	c.wantDims(i, c.In(0).Targets(), c.In(i).Dims[1])
}

// inferLinear checks x·W + b (b −1: no such operand) and gives the type of the
// result.
func (c *InferCtx) inferLinear(x, w, b int) []Type {
	for _, i := range []int{x, w} {
		c.wantRank(i, 2)
	}
	shared := []int{x, w}
	if b >= 0 {
		shared = append(shared, b)
	}
	c.wantOneDType(shared...)
	if c.In(x).Dims[1] != c.In(w).Dims[0] {
		fail("%s columns of %s do not fit %s rows of %s", c.In(x).Dims[1], c.Op.operandName(x), c.In(w).Dims[0], c.Op.operandName(w))
	}
	if b >= 0 {
		c.wantDims(b, c.In(w).Dims[1])
	}
	return one(T(c.In(x).DType, c.In(x).Dims[0], c.In(w).Dims[1]))
}

// inferConv is inferLinear of a layer's operands behind the graph: weights of the edges, a row a
// node, W and, unless b is −1, the bias.
func (c *InferCtx) inferConv(b int) []Type {
	c.wantEdgeWeights(1)
	c.wantNodeRows(2)
	return c.inferLinear(2, 3, b)
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

// entryWeight is the weight of entry e; without weights all are 1.
func entryWeight(w *Tensor, e int) float64 {
	if w == nil {
		return 1
	}
	return w.Data[e]
}

// symNorm gives Â = D^-½(A + I)D^-½ as edge values and self values.
func symNorm(g *Graph, w *Tensor) (a, s []float64) {
	deg := slices.Repeat([]float64{1}, g.N)
	for e, i := range g.Row {
		deg[i] += entryWeight(w, e)
	}
	a, s = make([]float64, len(g.Row)), make([]float64, g.N)
	for e := range a {
		a[e] = entryWeight(w, e) / math.Sqrt(deg[g.Row[e]]*deg[g.Col[e]])
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
		Infer:    func(c *InferCtx) []Type { return c.inferLinear(0, 1, 2) },
		Eval: func(c *EvalCtx) {
			y := c.New(0)
			evalMatMul(c.T(0), c.T(1), y, false, false)
			addBias(y, c.T(2), c.Op.Str("act"))
		},
	},
	{
		Name: "gnn.sym_norm", Level: GNNLevel, Doc: "Â = D^-½(A + I)D^-½ with D the weighted in-degree + 1: edge values a_e and self values s_i (Kipf & Welling 2017)", Results: []string{"a", "s"}, NoGrad: lowered,
		Operands: graphThen(optionalW),
		Infer: func(c *InferCtx) []Type {
			c.wantEdgeWeights(1)
			return []Type{T(F32, c.edges()), T(F32, c.In(0).Targets())}
		},
		Eval: func(c *EvalCtx) {
			a, s := symNorm(c.G(0), c.T(1))
			c.New(0).Data, c.New(1).Data = a, s
		},
	},
	{
		Name: "gnn.gcn_conv", Level: GNNLevel, Doc: "y = act(Â·x·W + b), Â as gnn.sym_norm gives it (Kipf & Welling 2017)", Attrs: []AttrSpec{actAttr}, Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "b", Optional: true}),
		Infer:    func(c *InferCtx) []Type { return c.inferConv(4) },
		Eval: func(c *EvalCtx) {
			g, y := c.G(0), c.New(0)
			a, s := symNorm(g, c.T(1))
			h := NewTensor(y.Shape...)
			evalMatMul(c.T(2), c.T(3), h, false, false)
			evalSpMM(g, &Tensor{[]int{len(a)}, a}, &Tensor{[]int{len(s)}, s}, h, y, false)
			addBias(y, c.T(4), c.Op.Str("act"))
		},
	},
	{
		Name: "gnn.sage_conv", Level: GNNLevel, Doc: "y_i = act(h_i + Σ w_e·n_src / max(Σ w_e, 0.5) + b) with [h, n] = x·W: the left half of W's columns is the node's own, the right half its neighbours' mean's (Hamilton et al. 2017, mean; one W, so that x is read once; 0.5, so that the gradient of a sample without edges is finite)", Attrs: []AttrSpec{actAttr}, Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "b", Optional: true}),
		Infer: func(c *InferCtx) []Type {
			both := c.inferConv(-1)
			cols, ok := both[0].Dims[1].Size()
			if !ok || cols%2 != 0 {
				fail("operand W has %s columns, want an even number: a node's own, then its neighbours'", both[0].Dims[1])
			}
			y := both[0].WithDims(both[0].Dims[0], D(cols/2))
			c.wantOneDType(2, 4)
			c.wantDims(4, y.Dims[1])
			return one(y)
		},
		Eval: func(c *EvalCtx) {
			g, w, y := c.G(0), c.T(1), c.New(0)
			f := y.Cols()
			h := NewTensor(g.N, 2*f)
			evalMatMul(c.T(2), c.T(3), h, false, false)
			deg := make([]float64, g.N)
			for e, i := range g.Row {
				deg[i] += entryWeight(w, e)
			}
			for e, i := range g.Row {
				for k := range f {
					y.Row(i)[k] += entryWeight(w, e) / math.Max(deg[i], 0.5) * h.Row(g.Col[e])[f+k]
				}
			}
			for i := range g.N {
				for k := range f {
					y.Row(i)[k] += h.Row(i)[k]
				}
			}
			addBias(y, c.T(4), c.Op.Str("act"))
		},
	},
	{
		Name: "gnn.gin_conv", Level: GNNLevel, Doc: "y_i = act(((1 + eps)·x_i + Σ w_e·x_src)·W + b), the first layer of GIN's perceptron (Xu et al. 2019)", Attrs: []AttrSpec{actAttr, floatAttr("eps", 0.0, "how much more than a neighbour the node itself counts")}, Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "b", Optional: true}),
		Infer:    func(c *InferCtx) []Type { return c.inferConv(4) },
		Eval: func(c *EvalCtx) {
			g, w, y := c.G(0), c.T(1), c.New(0)
			h := NewTensor(y.Shape...)
			evalMatMul(c.T(2), c.T(3), h, false, false)
			self := slices.Repeat([]float64{1 + c.Op.Float("eps")}, g.N)
			evalSpMM(g, w, &Tensor{[]int{g.N}, self}, h, y, false)
			addBias(y, c.T(4), c.Op.Str("act"))
		},
	},
	{
		Name: "gnn.gat_conv", Level: GNNLevel, Doc: "graph attention (Veličković et al. 2018): with h = x·W in heads blocks of columns and e_ij = leaky_relu(⟨a_dst, h_i⟩ + ⟨a_src, h_j⟩) of every head, y_i = act(Σ_j α_ij·h_j + b), α_i the edge_softmax of e_i over the entries into i and i itself, weighted by w; heads side by side, or their mean; with rate, α is dropped out",
		Attrs: []AttrSpec{
			{Name: "heads", Kind: IntAttr, Default: int64(1), Range: count, Doc: "attention heads"},
			{Name: "slope", Kind: FloatAttr, Default: 0.2, Doc: "slope of leaky_relu below 0"},
			{Name: "combine", Kind: StringAttr, Default: "concat", OneOf: []string{"concat", "mean"}, Doc: "concat: the heads side by side; mean: their mean"},
			{Name: "rate", Kind: FloatAttr, Default: 0.0, Range: share, Doc: "dropout of the attention, 0 ≤ rate < 1"},
			{Name: "stream", Kind: StringAttr, Default: "", Doc: "name of the random stream of the dropout"},
			actAttr,
		},
		Results: []string{"conv"}, NoGrad: lowered,
		Operands: graphThen(optionalW, sparseOK("x"), OperandSpec{Name: "W"}, OperandSpec{Name: "a_src"}, OperandSpec{Name: "a_dst"}, OperandSpec{Name: "b", Optional: true}),
		Infer:    inferGAT,
		Eval:     evalGAT,
	},
}

func inferGAT(c *InferCtx) []Type {
	c.wantEdgeWeights(1)
	c.wantNodeRows(2)
	if c.Op.Float("rate") > 0 && c.Op.Str("stream") == "" {
		fail("attribute rate is %g, which needs a stream", c.Op.Float("rate"))
	}
	ts := c.inferLinear(2, 3, len(c.Op.Operands)) // the bias is as wide as the result, which need not be W
	heads, columns := c.Op.Int("heads"), ts[0].Dims[1]
	wantBlocks(heads, columns)
	for _, i := range []int{4, 5} {
		c.wantDims(i, columns)
	}
	if n, _ := columns.Size(); c.Op.Str("combine") == "mean" {
		ts[0] = ts[0].WithDims(ts[0].Dims[0], D(n/heads))
	}
	c.wantOneDType(2, 4, 5, 6)
	c.wantDims(6, ts[0].Dims[1])
	return ts
}

func evalGAT(c *EvalCtx) {
	g, x, weight, y, heads := c.G(0), c.T(2), c.T(3), c.New(0), c.Op.Int("heads")
	h := NewTensor(x.Rows(), weight.Cols())
	evalMatMul(x, weight, h, false, false)
	score := func(a *Tensor, i, head int) float64 {
		sum, width := 0.0, h.Cols()/heads
		for k := head * width; k < (head+1)*width; k++ {
			sum += h.Row(i)[k] * a.Data[k]
		}
		return sum
	}
	leaky := func(v float64) float64 { return math.Max(v, 0) + c.Op.Float("slope")*math.Min(v, 0) }
	e, s := NewTensor(len(g.Row), heads), NewTensor(g.N, heads)
	for k := range e.Data {
		e.Data[k] = leaky(score(c.T(5), g.Row[k/heads], k%heads) + score(c.T(4), g.Col[k/heads], k%heads))
	}
	for k := range s.Data {
		s.Data[k] = leaky(score(c.T(5), k/heads, k%heads) + score(c.T(4), k/heads, k%heads))
	}
	a, self, _ := edgeSoftmax(g, e, s, c.T(1))
	if rate := c.Op.Float("rate"); rate > 0 {
		for name, t := range map[string]*Tensor{".edges": a, ".self": self} { // in any order: every element has its place in its stream
			for k, v := range t.Data {
				t.Data[k] = 0
				if c.Random.Uniform(c.Op.Str("stream")+name, k) >= rate {
					t.Data[k] = v / (1 - rate)
				}
			}
		}
	}
	all := NewTensor(h.Shape...)
	evalSpMM(g, a, self, h, all, false)
	for i := range all.Rows() {
		for k, v := range all.Row(i) {
			if c.Op.Str("combine") == "mean" {
				v /= float64(heads)
			}
			y.Row(i)[k%y.Cols()] += v
		}
	}
	addBias(y, c.T(6), c.Op.Str("act"))
}
