package ir

import (
	"math"
)

var (
	axisAttr = AttrSpec{Name: "axis", Kind: StringAttr, OneOf: []string{"0", "1", "all"}, Doc: "0: over rows, 1: over columns, all: every element"}
	keepAttr = AttrSpec{Name: "keep", Kind: BoolAttr, Default: false, Doc: "keep the reduced dimension with size 1"}
	epsAttr  = AttrSpec{Name: "eps", Kind: FloatAttr, Default: 1e-12, Doc: "lower bound of the norm"}
)

func inferReduce(c *InferCtx) []Type {
	c.wantFloat(0)
	x, keep := c.In(0), attrNamed(c.Op.Def.Attrs, "keep") != nil && c.Op.Bool("keep")
	switch axis := c.Op.Str("axis"); {
	case axis == "all":
		return one(x.WithDims())
	case x.Rank() == 0:
		fail("a scalar has no axis %s", axis)
	case axis == "0" && x.Rank() == 1 && keep:
		return one(x.WithDims("1"))
	case axis == "0" && x.Rank() == 1:
		return one(x.WithDims())
	case axis == "1" && x.Rank() == 1:
		fail("a vector has no axis 1")
	case axis == "0" && keep:
		return one(x.WithDims("1", x.Dims[1]))
	case axis == "0":
		return one(x.WithDims(x.Dims[1]))
	case keep:
		return one(x.WithDims(x.Dims[0], "1"))
	}
	return one(x.WithDims(x.Dims[0]))
}

// groups calls f with the indices of every group of elements that is reduced
// to one result.
func groups(axis string, shape []int, f func(out int, in []int)) {
	rows, cols := 1, 1
	switch len(shape) {
	case 1:
		cols = shape[0]
	case 2:
		rows, cols = shape[0], shape[1]
	}
	number, size, next, apart := 1, rows*cols, 0, 1 // of the groups; where each begins, and how far its elements are apart
	switch {
	case axis == "1":
		number, size, next = rows, cols, cols
	case axis == "0" && len(shape) == 2:
		number, size, next, apart = cols, rows, 1, cols
	}
	for out := range number {
		in := make([]int, size)
		for k := range in {
			in[k] = out*next + k*apart
		}
		f(out, in)
	}
}

// readsAxis is the [OpDef.Reads] of reductions.
func readsAxis(op *Op, _ int) Read {
	if op.Str("axis") == "1" {
		return ReadRow
	}
	return ReadAll
}

func reduceOp(name, doc string, vjp func(c *VJPCtx, g *Value) *Value, f func(x []float64) float64) OpDef {
	d := OpDef{
		Name: name, Doc: doc, Operands: operands("x"), Attrs: []AttrSpec{axisAttr, keepAttr}, Results: []string{name}, Infer: inferReduce, Reads: readsAxis,
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			groups(c.Op.Str("axis"), x.Shape, func(out int, in []int) {
				xs := make([]float64, len(in))
				for k, i := range in {
					xs[k] = x.Data[i]
				}
				y.Data[out] = f(xs)
			})
		},
	}
	if vjp == nil {
		d.NoGrad = "only used for bounds, whose gradient is stopped"
	} else {
		d.VJP = func(c *VJPCtx) []*Value { return []*Value{vjp(c, c.Ct[0])} }
	}
	return d
}

// spread repeats the cotangent of a reduction over the reduced elements.
func (c *VJPCtx) spread(g *Value) *Value {
	x := c.X(0).Type
	if c.Op.Str("axis") == "1" && !c.Op.Bool("keep") {
		g = c.One("unsqueeze", nil, g)
	}
	return c.OneTyped("broadcast_to", nil, T(x.DType, x.Dims...), g)
}

// fold combines start with every number.
func fold(start float64, xs []float64, f func(y, x float64) float64) float64 {
	for _, x := range xs {
		start = f(start, x)
	}
	return start
}

func sum(xs []float64) float64 { return fold(0, xs, func(s, x float64) float64 { return s + x }) }

func greatest(xs []float64) float64 { return fold(math.Inf(-1), xs, math.Max) }

func logSumExp(xs []float64) float64 {
	m := greatest(xs)
	if math.IsInf(m, 0) {
		return m
	}
	s := 0.0
	for _, x := range xs {
		s += math.Exp(x - m)
	}
	return m + math.Log(s)
}

func softmaxRow(dst, x []float64) {
	l := logSumExp(x)
	for j := range x {
		dst[j] = math.Exp(x[j] - l)
	}
}

// rowOp is an operation on each row of a matrix.
func rowOp(name, doc string, sparse bool, attrs []AttrSpec, vjp func(c *VJPCtx, g *Value) *Value, f func(o *Op, dst, x []float64)) OpDef {
	return OpDef{
		Name: name, Doc: doc, Operands: []OperandSpec{{Name: "x", Sparse: sparse, Read: ReadRow, InPlace: true}}, Attrs: attrs, Results: []string{name}, Finite: FiniteIfOperands,
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			return sameAsFirst(c)
		},
		VJP: func(c *VJPCtx) []*Value { return []*Value{vjp(c, c.Ct[0])} },
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			for i := range x.Rows() {
				f(c.Op, y.Row(i), x.Row(i))
			}
		},
	}
}

func rowSumKeep(c *VJPCtx, v *Value) *Value {
	return c.One("reduce_sum", Attrs{"axis": "1", "keep": true}, v)
}

// count returns how many elements a reduction adds, as a value.
func (c *VJPCtx) count() *Value {
	return c.One("count", Attrs{"axis": c.Op.Str("axis")}, c.X(0))
}

var reduceOps = []OpDef{
	reduceOp("reduce_sum", "y = Σ x over axis", func(c *VJPCtx, g *Value) *Value { return c.spread(g) }, sum).finite().linear(0).pads(padSum),
	reduceOp("reduce_mean", "y = mean of x over axis; 0 of nothing", func(c *VJPCtx, g *Value) *Value {
		return c.spread(c.Div(g, c.count()))
	}, func(x []float64) float64 { return sum(x) / math.Max(1, float64(len(x))) }).finite().linear(0).pads(padCounted),
	reduceOp("reduce_max", "y = max of x over axis; −∞ of nothing", nil, greatest),
	reduceOp("reduce_min", "y = min of x over axis; +∞ of nothing", nil, func(x []float64) float64 { return fold(math.Inf(1), x, math.Min) }),
	reduceOp("logsumexp", "y = ln Σ eˣ over axis; −∞ of nothing", func(c *VJPCtx, g *Value) *Value {
		y := c.Y(0)
		if c.Op.Str("axis") == "1" && !c.Op.Bool("keep") {
			y, g = c.One("unsqueeze", nil, y), c.One("unsqueeze", nil, g)
		}
		return c.Mul(c.One("exp", nil, c.Sub(c.X(0), y)), g)
	}, logSumExp),
	{
		Name: "count", Doc: "y = number of elements that a reduction over axis adds, at least 1", Operands: operands("x"), Attrs: []AttrSpec{axisAttr}, Results: []string{"count"}, Reads: readsAxis, ShapeOnly: true, Finite: FiniteAlways, Pad: padCounted,
		Infer: func(c *InferCtx) []Type {
			inferReduce(c)
			return one(T(c.In(0).DType))
		},
		VJP: func(*VJPCtx) []*Value { return []*Value{nil} },
		Eval: func(c *EvalCtx) {
			x := c.T(0)
			n := len(x.Data)
			switch {
			case c.Op.Str("axis") == "0" && len(x.Shape) == 2:
				n = x.Shape[0]
			case c.Op.Str("axis") == "1":
				n = x.Cols()
			}
			c.New(0).Data[0] = math.Max(1, float64(n))
		},
	},
	{
		Name: "broadcast_to", Doc: "y = x repeated to the declared shape (NumPy's rule)", Operands: []OperandSpec{{Name: "x", Read: ReadElement, Linear: true, Moved: true}}, View: wholeIfSame, Int64: true, Results: []string{"bc"},
		Infer: func(c *InferCtx) []Type {
			ts := declaredTensor(c)
			dims, err := broadcastDims(ts[0].Dims, c.In(0).Dims)
			if err != nil || ts[0].DType != c.In(0).DType || !T(F32, dims...).SameShape(ts[0]) || c.In(0).Rank() > ts[0].Rank() {
				fail("does not broadcast to %s", ts[0])
			}
			return ts
		},
		VJP: func(c *VJPCtx) []*Value { return []*Value{c.unbroadcast(c.Ct[0], c.X(0).Type)} },
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			at := broadcaster(y.Shape, x.Shape)
			for i := range y.Data {
				y.Data[i] = x.Data[at(i)]
			}
		},
	},
	{
		Name: "unsqueeze", Doc: "a vector [n] as a column [n,1]", Operands: []OperandSpec{{Name: "x", Read: ReadRow, Linear: true, Moved: true}}, View: whole, Int64: true, Results: []string{"col"},
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 1)
			return one(c.In(0).WithDims(c.In(0).Dims[0], "1"))
		},
		VJP:  func(c *VJPCtx) []*Value { return []*Value{c.One("squeeze", nil, c.Ct[0])} },
		Eval: func(c *EvalCtx) { c.Set(0, &Tensor{Shape: c.Shapes[0], Data: c.T(0).Clone().Data}) },
	},
	{
		Name: "squeeze", Doc: "a column [n,1] as a vector [n]", Operands: []OperandSpec{{Name: "x", Read: ReadRow, Linear: true, Moved: true}}, View: whole, Int64: true, Results: []string{"vec"},
		Infer: func(c *InferCtx) []Type {
			if x := c.In(0); x.Rank() != 2 || x.Dims[1] != "1" {
				fail("operand x is not a column [n,1]")
			}
			return one(c.In(0).WithDims(c.In(0).Dims[0]))
		},
		VJP:  func(c *VJPCtx) []*Value { return []*Value{c.One("unsqueeze", nil, c.Ct[0])} },
		Eval: func(c *EvalCtx) { c.Set(0, &Tensor{Shape: c.Shapes[0], Data: c.T(0).Clone().Data}) },
	},
	rowOp("softmax", "y_ij = e^x_ij / Σ_k e^x_ik", false, nil, func(c *VJPCtx, g *Value) *Value {
		gy := c.Mul(g, c.Y(0))
		return c.Sub(gy, c.Mul(c.Y(0), rowSumKeep(c, gy)))
	}, func(_ *Op, dst, x []float64) { softmaxRow(dst, x) }),
	rowOp("log_softmax", "y_ij = x_ij − ln Σ_k e^x_ik", false, nil, func(c *VJPCtx, g *Value) *Value {
		return c.Sub(g, c.Mul(c.One("exp", nil, c.Y(0)), rowSumKeep(c, g)))
	}, func(_ *Op, dst, x []float64) {
		l := logSumExp(x)
		for j := range x {
			dst[j] = x[j] - l
		}
	}),
	rowOp("l2_normalize", "y_i = x_i / max(‖x_i‖₂, eps)"+farRows, true, []AttrSpec{epsAttr}, func(c *VJPCtx, g *Value) *Value {
		return c.One("l2_normalize_grad", Attrs{"eps": c.Op.Float("eps")}, c.dense(c.X(0)), c.dense(c.Y(0)), g)
	}, func(o *Op, dst, x []float64) {
		normalizeRow(dst, x, o.Float("eps"), norm2)
	}).pads(padNormalized),
	rowOp("l1_normalize", "y_i = x_i / max(Σ_j |x_ij|, eps)"+farRows, true, []AttrSpec{epsAttr}, func(c *VJPCtx, g *Value) *Value {
		// dx = (g − sign(x)·⟨g, y⟩)/n; the sign is that of y, and n is |x|/|y|'s row sum ratio.
		eps := c.Op.Float("eps")
		x, y := c.dense(c.X(0)), c.dense(c.Y(0))
		constant := func(v float64) *Value { return c.Fill(v, T(x.Type.DType)) }
		abs := c.One("maximum", nil, x, c.One("neg", nil, x))
		raw := rowSumKeep(c, abs)
		zero := constant(0)
		sign := c.Sub(c.One("greater", nil, x, zero), c.One("less", nil, x, zero))
		inside := c.One("greater", nil, raw, constant(eps))
		n := c.One("maximum", nil, raw, constant(eps))
		dot := c.Mul(inside, rowSumKeep(c, c.Mul(g, y)))
		if eps <= shortRow {
			g = c.Mul(inside, g)
		}
		return c.Div(c.Sub(g, c.Mul(sign, dot)), n)
	}, func(o *Op, dst, x []float64) {
		normalizeRow(dst, x, o.Float("eps"), norm1)
	}).pads(padNormalized),
	{
		Name: "l2_normalize_grad", Doc: "dx_i = (dy_i − y_i⟨y_i, dy_i⟩)/‖x_i‖ where ‖x_i‖ > eps; elsewhere dy_i/eps, or 0 where eps ≤ 1e-12: a row of zeros has no direction, and one step along dy_i/eps would be the last that an optimizer makes",
		Operands: append(rowsOf("x", "y"), OperandSpec{Name: "dy", Read: ReadRow, InPlace: true, Linear: true}), Finite: FiniteIfOperands, Attrs: []AttrSpec{epsAttr}, Results: []string{"dx"},
		NoGrad: "a gradient itself; nothing differentiates twice",
		Infer: func(c *InferCtx) []Type {
			if !c.In(0).Equal(c.In(1)) || !c.In(0).Equal(c.In(2)) {
				fail("operand types differ")
			}
			return sameAsFirst(c)
		},
		Eval: func(c *EvalCtx) {
			x, y, dy, dx, eps := c.T(0), c.T(1), c.T(2), c.New(0), c.Op.Float("eps")
			for i := range x.Rows() {
				n, dot := norm2(x.Row(i)), 0.0
				if n <= eps && eps <= shortRow {
					continue
				}
				if n > eps {
					for j, v := range y.Row(i) {
						dot += v * dy.Row(i)[j]
					}
				}
				for j := range dx.Row(i) {
					dx.Row(i)[j] = (dy.Row(i)[j] - y.Row(i)[j]*dot) / math.Max(n, eps)
				}
			}
		},
	},
}

// shortRow is the eps up to which rows that are shorter have no gradient when they are normalised.
const shortRow = 1e-12

// farRows ends the definition of the operations that normalise rows.
const farRows = ". A finite row whose largest magnitude is above 1e12, or is below 1e-12 but not 0 where eps ≤ 1e-12, " +
	"is first scaled by a power of two to where no norm overflows or is below eps, so that its norm becomes 1. Rows of zeros stay zero"

// normalizeRow is the definition of l1_normalize and l2_normalize.
func normalizeRow(dst, x []float64, eps float64, norm func([]float64) float64) {
	top := 0.0
	for _, v := range x {
		top = math.Max(top, math.Abs(v)) // NaN if any is
	}
	n := 0.0
	if top > 1e12 && !math.IsInf(top, 0) || top > 0 && top < 1e-12 && eps <= 1e-12 {
		_, exponent := math.Frexp(top)
		for j, v := range x {
			dst[j] = math.Ldexp(v, -exponent)
		}
		x, n = dst, norm(dst)
	} else {
		n = math.Max(norm(x), eps)
	}
	for j := range x {
		dst[j] = x[j] / n
	}
}

func norm1(x []float64) float64 {
	return fold(0, x, func(s, v float64) float64 { return s + math.Abs(v) })
}

func norm2(x []float64) float64 {
	return math.Sqrt(fold(0, x, func(s, v float64) float64 { return s + v*v }))
}
