package ir

// The fused operations stand where the pass fuse put them: after gradients, so
// that none of them has a rule for its own.
const fusedNoGrad = "passes write it when gradients exist"

var (
	exprAttrSpec = AttrSpec{Name: "expr", Kind: StringAttr, Doc: "what is computed of every element, see ir.Expr"}
	thenAttrSpec = AttrSpec{Name: "expr", Kind: StringAttr, Default: "p", Doc: "what is computed of every element of the product p, see ir.Expr"}
	drawAttrSpec = AttrSpec{Name: "stream", Kind: StringAttr, Default: "", Doc: "name of the random stream, where the expression draws"}
)

// added is the operand that a product is added to, in whose memory that may be done.
var added = OperandSpec{Name: "c", Optional: true, Read: ReadElement, InPlace: true}

// variadic are the operands x0, x1, … of an expression.
func variadic(specs ...OperandSpec) []OperandSpec {
	return append(specs, OperandSpec{Name: "x", Variadic: true, Read: ReadElement})
}

// wantSum checks the operand that is added to a product of type t.
func (c *InferCtx) wantSum(i int, t Type) {
	if c.Has(i) && !c.In(i).Equal(t) {
		fail("operand %s is %s, want the product's type %s", c.Op.operandName(i), c.In(i), t)
	}
}

// plus adds operand i, where it is present, to a product.
func (c *EvalCtx) plus(y *Tensor, i int) *Tensor {
	if t := c.T(i); t != nil {
		for k, v := range t.Data {
			y.Data[k] += v
		}
	}
	return y
}

var exprOps = []OpDef{
	{
		Name: "fused_elementwise", Doc: "y = expr of the elements of x0, x1, …, broadcast; the type is declared", Operands: []OperandSpec{{Name: "x", Variadic: true, Read: ReadElement, InPlace: true}}, Pad: padExpression(0, nil), Attrs: []AttrSpec{exprAttrSpec, drawAttrSpec},
		Results: []string{"fused"}, NoGrad: fusedNoGrad,
		Infer: func(c *InferCtx) []Type {
			ts := declaredTensor(c)
			if !ts[0].DType.IsFloat() {
				fail("the result is %s, want floats", ts[0])
			}
			c.wantExpr(ts[0], 0, false)
			return ts
		},
		Eval: func(c *EvalCtx) { c.evalExpr(nil, 0) },
	},
	{
		Name: "matmul_fused", Doc: "p = c + op(a)·op(b), c absent: 0; y = expr of the elements of p and of x0, x1, …, broadcast",
		Operands: variadic(append(factors(false), added)...), Attrs: []AttrSpec{taAttr, tbAttr, thenAttrSpec, drawAttrSpec},
		Results: []string{"matmul"}, NoGrad: fusedNoGrad, Reads: readsProduct, Pad: padExpression(3, padProduct),
		Infer: func(c *InferCtx) []Type {
			ts := inferMatMul(c)
			c.wantSum(2, ts[0])
			c.wantExpr(ts[0], 3, true)
			return ts
		},
		Eval: func(c *EvalCtx) {
			p := NewTensor(c.Shapes[0]...)
			evalMatMul(c.T(0), c.T(1), p, c.Op.Bool("ta"), c.Op.Bool("tb"))
			c.evalExpr(c.plus(p, 2), 3)
		},
	},
	{
		Name: "spmm_fused", Doc: "p = c + spmm(graph, a, s, h), c absent: 0; y = expr of the elements of p and of x0, x1, …, broadcast",
		Operands: variadic(append(aggregated(false), added)...),
		Attrs:    []AttrSpec{transposeAttr, thenAttrSpec, drawAttrSpec}, Results: []string{"spmm"}, NoGrad: fusedNoGrad, Pad: padExpression(5, padAggregated),
		Infer: func(c *InferCtx) []Type {
			ts := inferSpMM(c)
			c.wantSum(4, ts[0])
			c.wantExpr(ts[0], 5, true)
			return ts
		},
		Eval: func(c *EvalCtx) {
			p := NewTensor(c.Shapes[0]...)
			evalSpMM(c.G(0), c.T(1), c.T(2), c.T(3), p, c.Op.Bool("transpose"))
			c.evalExpr(c.plus(p, 4), 5)
		},
	},
}
