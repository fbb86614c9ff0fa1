package ir

// wantSame checks that two operands are float matrices of one type.
func (c *InferCtx) wantSame(i, j int) {
	c.wantRank(i, 2)
	c.wantFloat(i)
	if !c.In(i).Equal(c.In(j)) {
		fail("operands %s and %s differ in type", c.Op.operandName(i), c.Op.operandName(j))
	}
}

// wantLogits checks operands 0 and 1: logits [B,C] and labels i64[B].
func (c *InferCtx) wantLogits() {
	c.wantRank(0, 2)
	c.wantFloat(0)
	c.wantDType(1, I64)
	c.wantDims(1, c.In(0).Dims[0])
}

var fusedOps = []OpDef{
	{
		Name: "grad", Doc: "∂y/∂x for each x; resolved by the autodiff pass", Results: []string{"grad"},
		Operands: []OperandSpec{{Name: "y"}, {Name: "x", Variadic: true}},
		NoGrad:   "resolved before the enclosing gradient is taken; its results are constants there",
		Infer: func(c *InferCtx) []Type {
			if c.In(0).Rank() != 0 || !c.In(0).DType.IsFloat() {
				fail("y is %s, want a float scalar", c.In(0))
			}
			if len(c.Op.Operands) < 2 {
				fail("there is no x to differentiate by")
			}
			var ts []Type
			for i := 1; i < len(c.Op.Operands); i++ {
				c.wantFloat(i)
				ts = append(ts, c.In(i))
			}
			return ts
		},
		Eval: func(c *EvalCtx) {
			if c.detached() {
				return
			}
			if err := c.gradient(); err != nil {
				fail("%w", err)
			}
		},
	},
	{
		Name:     "cross_entropy",
		Doc:      "y = −mean over rows b of ln softmax(logits_b)[labels_b]; 0 of no rows",
		Operands: operands("logits", "labels"), Results: []string{"xent"},
		Infer: func(c *InferCtx) []Type {
			c.wantLogits()
			return one(c.In(0).WithDims())
		},
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{c.One("cross_entropy_grad", nil, c.X(0), c.X(1), c.Ct[0]), nil}
		},
		Eval: func(c *EvalCtx) {
			x, labels, y := c.T(0), c.T(1), c.New(0)
			for b := range x.Rows() {
				l := label(c.Op, labels, b, x.Cols())
				y.Data[0] += (logSumExp(x.Row(b)) - x.Row(b)[l]) / float64(x.Rows())
			}
		},
	},
	{
		Name:     "cross_entropy_grad",
		Doc:      "dlogits_b = dy·(softmax(logits_b) − onehot(labels_b))/rows",
		Operands: []OperandSpec{{Name: "logits", InPlace: true}, {Name: "labels"}, {Name: "dy", Linear: true}}, Results: []string{"dlogits"},
		NoGrad: "a gradient itself; nothing differentiates twice",
		Infer: func(c *InferCtx) []Type {
			c.wantLogits()
			c.wantOneDType(0, 2)
			c.wantDims(2)
			return one(c.In(0))
		},
		Eval: func(c *EvalCtx) {
			x, labels, dy, dx := c.T(0), c.T(1), c.T(2), c.New(0)
			for b := range x.Rows() {
				l := label(c.Op, labels, b, x.Cols())
				softmaxRow(dx.Row(b), x.Row(b))
				dx.Row(b)[l]--
				for k := range dx.Row(b) {
					dx.Row(b)[k] *= dy.Data[0] / float64(x.Rows())
				}
			}
		},
	},
}

func label(op *Op, labels *Tensor, b, classes int) int {
	l := int(labels.Data[b])
	if l < 0 || l >= classes {
		fail("%s: label %d of row %d is outside 0..%d", op.Name(), l, b, classes-1)
	}
	return l
}
