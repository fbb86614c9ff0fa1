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
		Name: "grad", Doc: "∂y/∂x for each x; resolved by the autodiff pass", Results: []string{"grad"}, Resolved: true,
		Operands: []OperandSpec{{Name: "y"}, {Name: "x", Variadic: true}},
		NoGrad:   "resolved before the enclosing gradient is taken, which then flows through what it became",
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
			if err := c.gradient(); err != nil {
				fail("%w", err)
			}
		},
	},
	{
		Name: "unroll", Doc: "state ← step(state..., captured...), steps times; resolved by the unroll pass. A step draws random numbers of its own, and gradients flow through all of them unless it is detached",
		Operands: []OperandSpec{{Name: "x", Kind: AnyOperand, Variadic: true, Sparse: true}}, Results: []string{"state"}, Resolved: true,
		NoGrad: "resolved before gradients are taken, which then flow through its steps",
		Attrs: []AttrSpec{{Name: "step", Kind: FuncAttr, Doc: "function (state..., captured...) → the next state, of the same types; where gradients flow it reads no parameters but as operands"},
			{Name: "states", Kind: IntAttr, Default: int64(1), Range: count, Doc: "how many of the operands are the state; the others are captured"},
			{Name: "steps", Kind: IntAttr, Range: unrolled, Doc: "how many steps"},
			{Name: "detach", Kind: BoolAttr, Default: false, Doc: "no gradient flows into the steps or from one into the one before"}},
		Infer: func(c *InferCtx) []Type {
			n := c.Op.Int("states")
			if n > len(c.Op.Operands) {
				fail("%d of the %d operands cannot be the state", n, len(c.Op.Operands))
			}
			var ts []Type
			for i := range n {
				c.wantFloat(i)
				if c.In(i).Layout != Dense {
					fail("operand %d is %s; the state is dense", i, c.In(i))
				}
				ts = append(ts, c.In(i))
			}
			return ts
		},
		Eval: evalUnroll,
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
		VJP: func(c *VJPCtx) []*Value {
			x := c.X(0)
			p := c.One("softmax", nil, x)
			dy := c.Div(c.X(2), c.One("count", Attrs{"axis": "0"}, x))
			return c.pick(func() *Value {
				g := c.Mul(c.Ct[0], p)
				return c.Mul(c.Sub(g, c.Mul(p, rowSumKeep(c, g))), dy)
			}, nil, func() *Value {
				one := c.Fill(1, c.X(2).Type)
				return c.Sum(c.Mul(c.Ct[0], c.One("cross_entropy_grad", nil, x, c.X(1), one)))
			})
		},
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
