package ir

import (
	"fmt"
	"math"
)

var tauAttr = AttrSpec{Name: "tau", Kind: FloatAttr, Doc: "temperature τ > 0"}

// wantTau checks the temperature attribute.
func (c *InferCtx) wantTau() error {
	if t := c.Op.Float("tau"); !(t > 0) {
		return fmt.Errorf("tau is %g, want > 0", t)
	}
	return nil
}

// wantSame checks that two operands are float matrices of one type.
func (c *InferCtx) wantSame(i, j int) error {
	if err := c.wantRank(i, 2); err != nil {
		return err
	}
	if err := c.wantFloat(i); err != nil {
		return err
	}
	if !c.In(i).Equal(c.In(j)) {
		return fmt.Errorf("operands %s and %s differ in type", c.Op.operandName(i), c.Op.operandName(j))
	}
	return nil
}

// wantLogits checks operands 0 and 1: logits [B,C] and labels i64[B].
func (c *InferCtx) wantLogits() error {
	if err := c.wantRank(0, 2); err != nil {
		return err
	}
	if err := c.wantFloat(0); err != nil {
		return err
	}
	if err := c.wantDType(1, I64); err != nil {
		return err
	}
	return c.wantDims(1, c.In(0).Dims[0])
}

func sqDist(a, b []float64) float64 {
	s := 0.0
	for k := range a {
		s += (a[k] - b[k]) * (a[k] - b[k])
	}
	return s
}

var fusedOps = []OpDef{
	{
		Name: "grad", Doc: "∂y/∂x for each x; resolved by the autodiff pass", Results: []string{"grad"},
		Operands: []OperandSpec{{Name: "y"}, {Name: "x", Variadic: true}},
		NoGrad:   "resolved before the enclosing gradient is taken; its results are constants there",
		Infer: func(c *InferCtx) ([]Type, error) {
			if c.In(0).Rank() != 0 || !c.In(0).DType.IsFloat() {
				return nil, fmt.Errorf("y is %s, want a float scalar", c.In(0))
			}
			if len(c.Op.Operands) < 2 {
				return nil, fmt.Errorf("there is no x to differentiate by")
			}
			var ts []Type
			for i := 1; i < len(c.Op.Operands); i++ {
				if err := c.wantFloat(i); err != nil {
					return nil, err
				}
				ts = append(ts, c.In(i))
			}
			return ts, nil
		},
		Eval: func(c *EvalCtx) error {
			if c.detached() {
				return nil
			}
			return c.gradient()
		},
	},
	{
		Name:     "pairwise_reduce",
		Doc:      "with d_ij = ‖p_i − q_j‖²: row_i = ln Σ_{j≠i} e^(−d_ij/τ), col_j likewise over i ≠ j, diag_i = d_ii, sumsq = Σ_{i≠j} d_ij²",
		Operands: operands("p", "q"), Attrs: []AttrSpec{tauAttr}, Results: []string{"row", "col", "diag", "sumsq"},
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantTau(); err != nil {
				return nil, err
			}
			if err := c.wantSame(0, 1); err != nil {
				return nil, err
			}
			v := c.In(0).WithDims(c.In(0).Dims[0])
			return []Type{v, v, v, c.In(0).WithDims()}, nil
		},
		VJP: func(c *VJPCtx) []*Value {
			return c.Builder.Op("pairwise_reduce_grad", Attrs{"tau": c.Op.Float("tau")},
				c.X(0), c.X(1), c.Y(0), c.Y(1), c.Ct[0], c.Ct[1], c.Ct[2], c.Ct[3])
		},
		Eval: func(c *EvalCtx) error {
			p, q, tau := c.T(0), c.T(1), c.Op.Float("tau")
			row, col, diag, sumsq := c.New(0), c.New(1), c.New(2), c.New(3)
			n := p.Shape[0]
			logits := func(f func(k int) float64, skip int) float64 {
				var l []float64
				for k := range n {
					if k != skip {
						l = append(l, -f(k)/tau)
					}
				}
				return logSumExp(l)
			}
			for i := range n {
				row.Data[i] = logits(func(j int) float64 { return sqDist(p.Row(i), q.Row(j)) }, i)
				col.Data[i] = logits(func(j int) float64 { return sqDist(p.Row(j), q.Row(i)) }, i)
				diag.Data[i] = sqDist(p.Row(i), q.Row(i))
				for j := range n {
					if d := sqDist(p.Row(i), q.Row(j)); j != i {
						sumsq.Data[0] += d * d
					}
				}
			}
			return nil
		},
	},
	{
		Name: "pairwise_reduce_grad",
		Doc:  "dp_i = Σ_j 2δ_ij(p_i − q_j), dq_j = Σ_i 2δ_ij(q_j − p_i), δ_ij = −(drow_i·e^(−d_ij/τ−row_i) + dcol_j·e^(−d_ij/τ−col_j))/τ + 2d_ij·dsumsq for i ≠ j, δ_ii = ddiag_i",
		Operands: append(operands("p", "q", "row", "col"), OperandSpec{Name: "drow", Optional: true}, OperandSpec{Name: "dcol", Optional: true},
			OperandSpec{Name: "ddiag", Optional: true}, OperandSpec{Name: "dsumsq", Optional: true}),
		Attrs: []AttrSpec{tauAttr}, Results: []string{"dp", "dq"},
		NoGrad: "a gradient itself; the sampler's chain is detached",
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantTau(); err != nil {
				return nil, err
			}
			if err := c.wantSame(0, 1); err != nil {
				return nil, err
			}
			if err := c.wantOneDType(0, 1, 2, 3, 4, 5, 6, 7); err != nil {
				return nil, err
			}
			for i := 2; i < 7; i++ {
				if err := c.wantDims(i, c.In(0).Dims[0]); err != nil {
					return nil, err
				}
			}
			if err := c.wantDims(7); err != nil {
				return nil, err
			}
			return []Type{c.In(0), c.In(1)}, nil
		},
		Eval: func(c *EvalCtx) error {
			p, q, tau := c.T(0), c.T(1), c.Op.Float("tau")
			dp, dq := c.New(0), c.New(1)
			at := func(i, k int) float64 {
				if t := c.T(i); t != nil {
					return t.Data[k]
				}
				return 0
			}
			n := p.Shape[0]
			for i := range n {
				for j := range n {
					d, delta := sqDist(p.Row(i), q.Row(j)), at(6, i)
					if i != j {
						delta = 2 * d * at(7, 0)
						delta -= (at(4, i)*math.Exp(-d/tau-at(2, i)) + at(5, j)*math.Exp(-d/tau-at(3, j))) / tau
					}
					for k := range p.Row(i) {
						diff := 2 * delta * (p.Row(i)[k] - q.Row(j)[k])
						dp.Row(i)[k] += diff
						dq.Row(j)[k] -= diff
					}
				}
			}
			return nil
		},
	},
	{
		Name:     "cross_entropy",
		Doc:      "y = −mean over rows b of ln softmax(logits_b)[labels_b]; 0 of no rows",
		Operands: operands("logits", "labels"), Results: []string{"xent"},
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantLogits(); err != nil {
				return nil, err
			}
			return one(c.In(0).WithDims())
		},
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{c.One("cross_entropy_grad", nil, c.X(0), c.X(1), c.Ct[0]), nil}
		},
		Eval: func(c *EvalCtx) error {
			x, labels, y := c.T(0), c.T(1), c.New(0)
			for b := range x.Rows() {
				l, err := label(c.Op, labels, b, x.Cols())
				if err != nil {
					return err
				}
				y.Data[0] += (logSumExp(x.Row(b)) - x.Row(b)[l]) / float64(x.Rows())
			}
			return nil
		},
	},
	{
		Name:     "cross_entropy_grad",
		Doc:      "dlogits_b = dy·(softmax(logits_b) − onehot(labels_b))/rows",
		Operands: operands("logits", "labels", "dy"), Results: []string{"dlogits"},
		NoGrad: "a gradient itself; nothing differentiates twice",
		Infer: func(c *InferCtx) ([]Type, error) {
			if err := c.wantLogits(); err != nil {
				return nil, err
			}
			if err := c.wantOneDType(0, 2); err != nil {
				return nil, err
			}
			if err := c.wantDims(2); err != nil {
				return nil, err
			}
			return one(c.In(0))
		},
		Eval: func(c *EvalCtx) error {
			x, labels, dy, dx := c.T(0), c.T(1), c.T(2), c.New(0)
			for b := range x.Rows() {
				l, err := label(c.Op, labels, b, x.Cols())
				if err != nil {
					return err
				}
				softmaxRow(dx.Row(b), x.Row(b))
				dx.Row(b)[l]--
				for k := range dx.Row(b) {
					dx.Row(b)[k] *= dy.Data[0] / float64(x.Rows())
				}
			}
			return nil
		},
	},
}

func label(op *Op, labels *Tensor, b, classes int) (int, error) {
	l := int(labels.Data[b])
	if l < 0 || l >= classes {
		return 0, fmt.Errorf("%s: label %d of row %d is outside 0..%d", op.Name(), l, b, classes-1)
	}
	return l, nil
}
