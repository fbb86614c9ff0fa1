package ir

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// float operands of the tensor tables.
func operands(names ...string) []OperandSpec {
	var s []OperandSpec
	for _, n := range names {
		s = append(s, OperandSpec{Name: n})
	}
	return s
}

func sparseOK(name string) OperandSpec { return OperandSpec{Name: name, Sparse: true} }

func sameAsFirst(c *InferCtx) []Type {
	c.wantFloat(0)
	return one(c.In(0))
}

// broadcastDims follows NumPy: shapes are aligned at the right, and a missing
// or 1-sized dimension is repeated.
func broadcastDims(a, b []Dim) ([]Dim, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := make([]Dim, len(a))
	off := len(a) - len(b)
	for i := range a {
		out[i] = a[i]
		if i < off {
			continue
		}
		switch d := b[i-off]; {
		case d == a[i] || d == "1":
		case a[i] == "1":
			out[i] = d
		default:
			return nil, fmt.Errorf("dimensions %v and %v do not broadcast", a, b)
		}
	}
	return out, nil
}

func inferBinary(c *InferCtx) []Type {
	a, b := c.In(0), c.In(1)
	c.wantOneDType(0, 1)
	dims, err := broadcastDims(a.Dims, b.Dims)
	if err != nil {
		fail("%w", err)
	}
	t := a.WithDims(dims...)
	// A sparse matrix keeps its zeros under scaling by rows, columns or a number.
	if a.Layout == CSR {
		if c.Op.Name() != "mul" && c.Op.Name() != "div" || !t.SameShape(a) || b.Rank() == 2 && b.Dims[1] != "1" && b.Dims[0] != "1" {
			fail("a sparse operand can only be scaled; put to_dense before it")
		}
		t.Layout = CSR
	}
	return one(t)
}

// broadcaster returns the index into an operand for an index into the result.
func broadcaster(out, in []int) func(i int) int {
	if len(out) == 2 {
		cols := max(out[1], 1)
		r, cl := 0, 0 // strides
		switch len(in) {
		case 2:
			if in[0] != 1 {
				r = in[1]
			}
			if in[1] != 1 {
				cl = 1
			}
		case 1:
			if in[0] != 1 {
				cl = 1
			}
		}
		return func(i int) int { return i/cols*r + i%cols*cl }
	}
	if len(in) == 0 || len(in) == 1 && in[0] == 1 {
		return func(int) int { return 0 }
	}
	return func(i int) int { return i }
}

func binaryOp(name, doc string, f func(a, b float64) float64, vjp func(c *VJPCtx, g *Value) []*Value) OpDef {
	d := OpDef{
		Name: name, Doc: doc, Operands: elementOf("a", "b"), Results: []string{name}, Infer: inferBinary, Broadcasts: true,
		VJP: func(c *VJPCtx) []*Value {
			gs := vjp(c, c.Ct[0])
			for i, g := range gs {
				if g != nil {
					gs[i] = c.unbroadcast(g, c.X(i).Type)
				}
			}
			return gs
		},
		Eval: func(c *EvalCtx) {
			a, b, y := c.T(0), c.T(1), c.New(0)
			ia, ib := broadcaster(y.Shape, a.Shape), broadcaster(y.Shape, b.Shape)
			for i := range y.Data {
				y.Data[i] = f(a.Data[ia(i)], b.Data[ib(i)])
			}
		},
	}
	if name == "mul" || name == "div" {
		d.Operands[0].Sparse = true
	}
	return d
}

// pick returns {f(), g()} with the products that are not read left out.
func (c *VJPCtx) pick(fs ...func() *Value) []*Value {
	out := make([]*Value, len(fs))
	for i, f := range fs {
		if c.needs(i) && f != nil {
			out[i] = f()
		}
	}
	return out
}

func unaryOp(name, doc string, f func(x float64) float64, vjp func(c *VJPCtx, g *Value) *Value) OpDef {
	return OpDef{
		Name: name, Doc: doc, Operands: elementOf("x"), Results: []string{name}, Infer: sameAsFirst,
		VJP:  func(c *VJPCtx) []*Value { return []*Value{vjp(c, c.Ct[0])} },
		Eval: evalUnary(func(_ *Op) func(float64) float64 { return f }),
	}
}

func evalUnary(f func(*Op) func(float64) float64) func(*EvalCtx) {
	return func(c *EvalCtx) {
		y, g := c.New(0), f(c.Op)
		for i, x := range c.T(0).Data {
			y.Data[i] = g(x)
		}
	}
}

// gradOp is a helper of a VJP: dx from a saved tensor and the cotangent. bySaved is its own
// gradient by the saved tensor, nil where that is 0.
func gradOp(name, doc string, f func(o *Op, saved, dy float64) float64, bySaved func(c *VJPCtx) *Value, attrs ...AttrSpec) OpDef {
	d := OpDef{
		Name: name, Doc: doc, Operands: elementOf("saved", "dy"), Attrs: attrs, Results: []string{"dx"},
		Finite: FiniteIfOperands,
		VJP: func(c *VJPCtx) []*Value {
			var first func() *Value
			if bySaved != nil {
				first = func() *Value { return bySaved(c) }
			}
			return c.pick(first, func() *Value { return c.One(name, c.Op.Attrs, c.X(0), c.Ct[0]) })
		},
		Infer: func(c *InferCtx) []Type {
			if !c.In(0).Equal(c.In(1)) {
				fail("operand types differ")
			}
			return sameAsFirst(c)
		},
		Eval: func(c *EvalCtx) {
			y, dy := c.New(0), c.T(1).Data
			for i, s := range c.T(0).Data {
				y.Data[i] = f(c.Op, s, dy[i])
			}
		},
	}
	return d.linear(1)
}

var slopeAttr = AttrSpec{Name: "slope", Kind: FloatAttr, Default: 0.2, Doc: "slope for negative x"}

// expressionOps are the elementwise operations that fused kernels have steps for.
var expressionOps = inExpressions([]OpDef{
	binaryOp("add", "y = a + b, broadcast", func(a, b float64) float64 { return a + b },
		func(c *VJPCtx, g *Value) []*Value {
			return c.pick(func() *Value { return g }, func() *Value { return g })
		}).finite(),
	binaryOp("sub", "y = a − b, broadcast", func(a, b float64) float64 { return a - b },
		func(c *VJPCtx, g *Value) []*Value {
			return c.pick(func() *Value { return g }, func() *Value { return c.One("neg", nil, g) })
		}).finite(),
	binaryOp("mul", "y = a·b, elementwise, broadcast", func(a, b float64) float64 { return a * b },
		func(c *VJPCtx, g *Value) []*Value {
			return c.pick(func() *Value { return c.Mul(g, c.X(1)) }, func() *Value { return c.Mul(g, c.dense(c.X(0))) })
		}).finite().linear(0, 1),
	binaryOp("div", "y = a/b, elementwise, broadcast", func(a, b float64) float64 { return a / b },
		func(c *VJPCtx, g *Value) []*Value {
			return c.pick(func() *Value { return c.Div(g, c.X(1)) },
				func() *Value { return c.One("neg", nil, c.Div(c.Mul(g, c.dense(c.Y(0))), c.X(1))) })
		}).linear(0).pads(padQuotient),
	binaryOp("maximum", "y = max(a, b), broadcast; the gradient goes to a where a ≥ b", math.Max,
		func(c *VJPCtx, g *Value) []*Value { return selectGrad(c, g, "greater_equal") }).finite(),
	binaryOp("minimum", "y = min(a, b), broadcast; the gradient goes to b where a ≥ b", math.Min,
		func(c *VJPCtx, g *Value) []*Value { return selectGrad(c, g, "less") }).finite(),
	compareOp("greater", "y = a > b, broadcast, 1 or 0 in the type of a", func(a, b float64) bool { return a > b }),
	compareOp("greater_equal", "y = a ≥ b, broadcast, 1 or 0 in the type of a", func(a, b float64) bool { return a >= b }),
	compareOp("less", "y = a < b, broadcast, 1 or 0 in the type of a", func(a, b float64) bool { return a < b }),

	unaryOp("neg", "y = −x", func(x float64) float64 { return -x },
		func(c *VJPCtx, g *Value) *Value { return c.One("neg", nil, g) }).finite().linear(0),
	unaryOp("exp", "y = eˣ", fmath.Exp, func(c *VJPCtx, g *Value) *Value { return c.Mul(g, c.Y(0)) }),
	unaryOp("log", "y = ln x", fmath.Log, func(c *VJPCtx, g *Value) *Value { return c.Div(g, c.X(0)) }),
	unaryOp("sqrt", "y = √x", math.Sqrt, func(c *VJPCtx, g *Value) *Value { return c.Scale(c.Div(g, c.Y(0)), 0.5) }),
	unaryOp("rsqrt", "y = 1/√x", func(x float64) float64 { return 1 / math.Sqrt(x) },
		func(c *VJPCtx, g *Value) *Value { return c.Scale(c.Mul(g, c.Div(c.Y(0), c.X(0))), -0.5) }),
	unaryOp("square", "y = x²", func(x float64) float64 { return x * x },
		func(c *VJPCtx, g *Value) *Value { return c.Scale(c.Mul(g, c.X(0)), 2) }).finite(),
	unaryOp("sigmoid", "y = 1/(1 + e⁻ˣ)", fmath.Sigmoid,
		func(c *VJPCtx, g *Value) *Value { return c.Mul(g, c.Sub(c.Y(0), c.One("square", nil, c.Y(0)))) }).finite(),
	unaryOp("tanh", "y = tanh x", fmath.Tanh,
		func(c *VJPCtx, g *Value) *Value { return c.Sub(g, c.Mul(g, c.One("square", nil, c.Y(0)))) }).finite(),
	unaryOp("relu", "y = max(x, 0)", func(x float64) float64 { return math.Max(x, 0) },
		func(c *VJPCtx, g *Value) *Value { return c.One("relu_grad", nil, c.Y(0), g) }).finite(),
	unaryOp("elu", "y = x where x > 0, eˣ − 1 elsewhere", elu,
		func(c *VJPCtx, g *Value) *Value { return c.One("elu_grad", nil, c.Y(0), g) }).finite(),
	{
		Name: "leaky_relu", Doc: "y = x where x > 0, slope·x elsewhere", Operands: elementOf("x"), Finite: FiniteIfOperands, Attrs: []AttrSpec{slopeAttr}, Results: []string{"leaky_relu"}, Infer: sameAsFirst,
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{c.One("leaky_relu_grad", Attrs{"slope": c.Op.Float("slope")}, c.X(0), c.Ct[0])}
		},
		Eval: evalUnary(func(o *Op) func(float64) float64 {
			s := o.Float("slope")
			return func(x float64) float64 { return math.Max(x, 0) + float64(s*math.Min(x, 0)) }
		}),
	},
	{
		Name: "pow", Doc: "y = x^exponent for x > 0", Operands: elementOf("x"), Results: []string{"pow"}, Infer: sameAsFirst,
		Attrs: []AttrSpec{{Name: "exponent", Kind: FloatAttr, Doc: "the exponent"}},
		VJP: func(c *VJPCtx) []*Value {
			p := c.Op.Float("exponent")
			return []*Value{c.Scale(c.Mul(c.Ct[0], c.Div(c.Y(0), c.X(0))), p)}
		},
		Eval: evalUnary(func(o *Op) func(float64) float64 {
			p := o.Float("exponent")
			return func(x float64) float64 { return fmath.Pow(x, p) }
		}),
	},
	gradOp("relu_grad", "dx = dy where y > 0, else 0, from y = relu(x)", func(_ *Op, y, dy float64) float64 {
		if y > 0 {
			return dy
		}
		return 0
	}, nil),
	gradOp("elu_grad", "dx = dy where y > 0, dy·(y + 1) elsewhere, from y = elu(x)", func(_ *Op, y, dy float64) float64 {
		if y > 0 {
			return dy
		}
		return dy * (y + 1)
	}, func(c *VJPCtx) *Value {
		inside := c.Shift(c.One("neg", nil, c.One("greater", nil, c.X(0), c.Fill(0, T(c.X(0).Type.DType)))), 1)
		return c.Mul(c.Mul(c.Ct[0], c.X(1)), inside)
	}),
	gradOp("leaky_relu_grad", "dx = dy where x > 0, slope·dy elsewhere", func(o *Op, x, dy float64) float64 {
		if x > 0 {
			return dy
		}
		return o.Float("slope") * dy
	}, nil, slopeAttr),
})

var elementwiseOps = []OpDef{
	binaryOp("logaddexp", "y = ln(eᵃ + eᵇ), broadcast", func(a, b float64) float64 { return logSumExp([]float64{a, b}) },
		func(c *VJPCtx, g *Value) []*Value {
			share := func(i int) func() *Value {
				return func() *Value { return c.Mul(g, c.One("exp", nil, c.Sub(c.X(i), c.Y(0)))) }
			}
			return c.pick(share(0), share(1))
		}).finite(),
	{
		Name: "stop_gradient", Doc: "y = x, without a gradient", Operands: []OperandSpec{{Name: "x", Sparse: true, Read: ReadElement, Linear: true, Moved: true}}, View: whole, Int64: true, Results: []string{"stop"}, Infer: sameAsFirst,
		VJP: func(c *VJPCtx) []*Value { return []*Value{nil} },
		Eval: func(c *EvalCtx) {
			if !c.detached() { // that of the outermost point, where gradients are taken within gradients
				c.Set(0, c.T(0).Clone())
			}
		},
	},
	{
		Name: "scale_grad", Doc: "y = x, with dx = factor·dy (μ of Eq 19 acts here)", Operands: []OperandSpec{{Name: "x", Read: ReadElement, Linear: true, Moved: true}}, View: whole, Results: []string{"scale_grad"}, Infer: sameAsFirst,
		Attrs: []AttrSpec{{Name: "factor", Kind: FloatAttr, Doc: "factor of the cotangent"}},
		VJP:   func(c *VJPCtx) []*Value { return []*Value{c.Scale(c.Ct[0], c.Op.Float("factor"))} },
		Eval: func(c *EvalCtx) {
			x, at, y, factor := c.T(0), c.atBase(0), c.New(0), c.Op.Float("factor")
			from := at
			if c.Base != nil { // which an outer gradient has moved less than the operand
				from = c.baseOut[0].T
			}
			for i, v := range at.Data {
				y.Data[i] = from.Data[i] + float64(factor*(x.Data[i]-v))
			}
		},
	},
	{
		Name: "fill", Doc: "every element is value; the type is declared", Results: []string{"c"}, ShapeOnly: true, Int64: true,
		Pad:   func(_ *Padding, op *Op) []PadValue { return []PadValue{{PadConstant, op.Float("value")}} },
		Attrs: []AttrSpec{{Name: "value", Kind: FloatAttr, Doc: "the value"}},
		Infer: declaredTensor,
		VJP:   func(*VJPCtx) []*Value { return nil },
		Eval: func(c *EvalCtx) {
			y, v := c.New(0), c.Op.Float("value")
			for i := range y.Data {
				y.Data[i] = v
			}
		},
	},
}

func elu(x float64) float64 {
	if x > 0 {
		return x
	}
	return fmath.Expm1(x)
}

// declaredTensor is the type rule of operations whose type must be written.
func declaredTensor(c *InferCtx) []Type {
	if len(c.Declared) != 1 || c.Declared[0].Layout != Dense {
		fail("the result type must be declared, a dense tensor")
	}
	return c.Declared
}

func compareOp(name, doc string, f func(a, b float64) bool) OpDef {
	d := binaryOp(name, doc, func(a, b float64) float64 {
		if f(a, b) {
			return 1
		}
		return 0
	}, func(*VJPCtx, *Value) []*Value { return []*Value{nil, nil} })
	d.Finite = FiniteAlways
	return d
}

// selectGrad sends the cotangent to the operand that compare picks.
func selectGrad(c *VJPCtx, g *Value, compare string) []*Value {
	toA := c.Mul(g, c.One(compare, nil, c.X(0), c.X(1)))
	return c.pick(func() *Value { return toA }, func() *Value { return c.Sub(g, toA) })
}
