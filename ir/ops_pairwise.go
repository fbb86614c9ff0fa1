package ir

import "math"

var tauAttr = AttrSpec{Name: "tau", Kind: FloatAttr, Range: positive, Doc: "temperature τ > 0"}

func sqDist(a, b []float64) float64 {
	s := 0.0
	for k := range a {
		s += (a[k] - b[k]) * (a[k] - b[k])
	}
	return s
}

// pairLogits returns ln Σ_{k≠skip} e^(−d(k)/τ) over k < n.
func pairLogits(n, skip int, tau float64, d func(k int) float64) float64 {
	var l []float64
	for k := range n {
		if k != skip {
			l = append(l, -d(k)/tau)
		}
	}
	return logSumExp(l)
}

// wantPair checks operands p and q, of one type, and vectors of their rows from
// operand first on.
func (c *InferCtx) wantPair(q, first, last int) {
	c.wantSame(0, q)
	for i := first; i <= last; i++ {
		c.wantOneDType(0, i)
		c.wantDims(i, c.In(0).Dims[0])
	}
}

var pairwiseOps = []OpDef{
	{
		Name:     "pairwise_reduce",
		Doc:      "with d_ij = ‖p_i − q_j‖²: row_i = ln Σ_{j≠i} e^(−d_ij/τ), col_j likewise over i ≠ j, diag_i = d_ii, sumsq = Σ_{i≠j} d_ij²",
		Operands: operands("p", "q"), Attrs: []AttrSpec{tauAttr}, Results: []string{"row", "col", "diag", "sumsq"},
		Infer: func(c *InferCtx) []Type {
			c.wantSame(0, 1)
			v := c.In(0).WithDims(c.In(0).Dims[0])
			return []Type{v, v, v, c.In(0).WithDims()}
		},
		VJP: func(c *VJPCtx) []*Value {
			return c.Builder.Op("pairwise_reduce_grad", Attrs{"tau": c.Op.Float("tau")},
				c.X(0), c.X(1), c.Y(0), c.Y(1), c.Ct[0], c.Ct[1], c.Ct[2], c.Ct[3])
		},
		Eval: func(c *EvalCtx) {
			p, q, tau := c.T(0), c.T(1), c.Op.Float("tau")
			row, col, diag, sumsq := c.New(0), c.New(1), c.New(2), c.New(3)
			n := p.Shape[0]
			for i := range n {
				row.Data[i] = pairLogits(n, i, tau, func(j int) float64 { return sqDist(p.Row(i), q.Row(j)) })
				col.Data[i] = pairLogits(n, i, tau, func(j int) float64 { return sqDist(p.Row(j), q.Row(i)) })
				diag.Data[i] = sqDist(p.Row(i), q.Row(i))
				for j := range n {
					if d := sqDist(p.Row(i), q.Row(j)); j != i {
						sumsq.Data[0] += d * d
					}
				}
			}
		},
	},
	{
		Name: "pairwise_reduce_grad",
		Doc:  "dp_i = Σ_j 2δ_ij(p_i − q_j), dq_j = Σ_i 2δ_ij(q_j − p_i), δ_ij = −(drow_i·e^(−d_ij/τ−row_i) + dcol_j·e^(−d_ij/τ−col_j))/τ + 2d_ij·dsumsq for i ≠ j, δ_ii = ddiag_i",
		Operands: append(operands("p", "q", "row", "col"), OperandSpec{Name: "drow", Optional: true}, OperandSpec{Name: "dcol", Optional: true},
			OperandSpec{Name: "ddiag", Optional: true}, OperandSpec{Name: "dsumsq", Optional: true}),
		Attrs: []AttrSpec{tauAttr}, Results: []string{"dp", "dq"},
		NoGrad: "a gradient itself; the sampler's chain is detached",
		Infer: func(c *InferCtx) []Type {
			c.wantSame(0, 1)
			c.wantOneDType(0, 1, 2, 3, 4, 5, 6, 7)
			for i := 2; i < 7; i++ {
				c.wantDims(i, c.In(0).Dims[0])
			}
			c.wantDims(7)
			return []Type{c.In(0), c.In(1)}
		},
		Eval: func(c *EvalCtx) {
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
		},
	},
	{
		Name:     "pairwise_mean",
		Doc:      "row and diag of pairwise_reduce, and the mean that a row sees: mean_i = Σ_{j≠i} e^(−d_ij/τ−row_i) q_j; p_i where there is no other row",
		Operands: operands("p", "q"), Attrs: []AttrSpec{tauAttr}, Results: []string{"row", "diag", "mean"},
		NoGrad: "made by the pass streaming, which runs when gradients exist",
		Infer: func(c *InferCtx) []Type {
			c.wantPair(1, 2, 1)
			v := c.In(0).WithDims(c.In(0).Dims[0])
			return []Type{v, v, c.In(0)}
		},
		Eval: func(c *EvalCtx) {
			p, q, tau := c.T(0), c.T(1), c.Op.Float("tau")
			row, diag, mean := c.New(0), c.New(1), c.New(2)
			n := p.Shape[0]
			for i := range n {
				d := func(j int) float64 { return sqDist(p.Row(i), q.Row(j)) }
				row.Data[i], diag.Data[i] = pairLogits(n, i, tau, d), d(i)
				if n == 1 {
					copy(mean.Row(i), p.Row(i))
				}
				for j := range n {
					if j != i {
						for k, v := range q.Row(j) {
							mean.Row(i)[k] += math.Exp(-d(j)/tau-row.Data[i]) * v
						}
					}
				}
			}
		},
	},
	{
		Name:     "pairwise_mean_grad",
		Doc:      "the gradient of pairwise_mean's row and diag by p: dp_i = −(2/τ)·drow_i·(p_i − mean_i) + 2·ddiag_i·(p_i − q_i)",
		Operands: append(rowsOf("p", "q", "mean", "drow"), OperandSpec{Name: "ddiag", Optional: true, Read: ReadRow}),
		Attrs:    []AttrSpec{tauAttr}, Results: []string{"dp"},
		NoGrad: "a gradient itself; the sampler's chain is detached",
		Infer: func(c *InferCtx) []Type {
			c.wantPair(1, 3, 4)
			c.wantSame(0, 2)
			return one(c.In(0))
		},
		Eval: func(c *EvalCtx) {
			p, q, mean, drow, ddiag, dp := c.T(0), c.T(1), c.T(2), c.T(3), c.T(4), c.New(0)
			for i := range p.Shape[0] {
				for k, v := range p.Row(i) {
					dp.Row(i)[k] = -2 / c.Op.Float("tau") * drow.Data[i] * (v - mean.Row(i)[k])
					if ddiag != nil {
						dp.Row(i)[k] += 2 * ddiag.Data[i] * (v - q.Row(i)[k])
					}
				}
			}
		},
	},
	{
		Name:     "pairwise_self",
		Doc:      "row of pairwise_reduce for the distances of the rows of p among themselves: row_i = ln Σ_{j≠i} e^(−‖p_i − p_j‖²/τ)",
		Operands: operands("p"), Attrs: []AttrSpec{tauAttr}, Results: []string{"row"},
		Infer: func(c *InferCtx) []Type {
			c.wantPair(0, 1, 0)
			return one(c.In(0).WithDims(c.In(0).Dims[0]))
		},
		VJP: func(c *VJPCtx) []*Value {
			return c.Builder.Op("pairwise_self_grad", Attrs{"tau": c.Op.Float("tau")}, c.X(0), c.Y(0), c.Ct[0])
		},
		Eval: func(c *EvalCtx) {
			p, row := c.T(0), c.New(0)
			for i := range p.Shape[0] {
				row.Data[i] = pairLogits(p.Shape[0], i, c.Op.Float("tau"), func(j int) float64 { return sqDist(p.Row(i), p.Row(j)) })
			}
		},
	},
	{
		Name:     "pairwise_self_grad",
		Doc:      "dp_i = −(2/τ)·Σ_{j≠i} (drow_i·e^(−d_ij/τ−row_i) + drow_j·e^(−d_ij/τ−row_j))·(p_i − p_j)",
		Operands: append(operands("p", "row"), OperandSpec{Name: "drow", Linear: true}), Attrs: []AttrSpec{tauAttr}, Results: []string{"dp"},
		NoGrad: "a gradient itself; the sampler's chain is detached",
		Infer: func(c *InferCtx) []Type {
			c.wantPair(0, 1, 2)
			return one(c.In(0))
		},
		Eval: func(c *EvalCtx) {
			p, row, drow, dp, tau := c.T(0), c.T(1), c.T(2), c.New(0), c.Op.Float("tau")
			for i := range p.Shape[0] {
				for j := range p.Shape[0] {
					if i == j {
						continue
					}
					d := sqDist(p.Row(i), p.Row(j))
					g := drow.Data[i]*math.Exp(-d/tau-row.Data[i]) + drow.Data[j]*math.Exp(-d/tau-row.Data[j])
					for k, v := range p.Row(i) {
						dp.Row(i)[k] -= 2 / tau * g * (v - p.Row(j)[k])
					}
				}
			}
		},
	},
}
