package ir

import (
	"math"
	"slices"
)

// Edge values may be vectors, one number an entry, or matrices of a column a
// head: f32[E,H] beside f32[N,H]. A matrix of node rows then has H blocks of
// columns, and head h belongs to the h-th.

// HeadsOf returns H of a value [E,H] or [N,H], and 0 of a vector or of nothing.
func HeadsOf(v *Value) int {
	if v == nil || v.Type.Rank() != 2 {
		return 0
	}
	n, _ := v.Type.Dims[1].Size()
	return n
}

// wantBlocks checks that columns divide into blocks of one width.
func wantBlocks(blocks int, columns Dim) {
	n, ok := columns.Size()
	if !ok || blocks < 1 || n%blocks != 0 {
		fail("%s columns do not divide into %d blocks", columns, blocks)
	}
}

// wantHeads checks that operand i, where present, is [rows] or [rows,H] with H
// blocks in that many columns.
func (c *InferCtx) wantHeads(i int, rows, columns Dim) {
	if !c.Has(i) {
		return
	}
	t := c.In(i)
	if t.Rank() != 2 {
		c.wantDims(i, rows)
		return
	}
	c.wantDims(i, rows, t.Dims[1])
	n, ok := t.Dims[1].Size()
	if !ok {
		fail("operand %s is %s, want a fixed number of heads", c.Op.operandName(i), t)
	}
	wantBlocks(n, columns)
}

// moveRows gives operand i, a vector or matrix of from rows, with to rows.
func (c *InferCtx) moveRows(i int, from, to Dim) []Type {
	t := c.In(i)
	if t.Rank() != 2 {
		c.wantDims(i, from)
		return one(t.WithDims(to))
	}
	c.wantDims(i, from, t.Dims[1])
	return one(t.WithDims(to, t.Dims[1]))
}

// width returns the columns of a matrix, 1 of a vector.
func width(t *Tensor) int {
	if len(t.Shape) == 2 {
		return t.Shape[1]
	}
	return 1
}

// head returns the element of row i that belongs to column k of a given number.
func (t *Tensor) head(i, k, columns int) float64 {
	h := width(t)
	if h == 1 { // the division takes most of the time of sums over edges
		return t.Data[i]
	}
	return t.Data[i*h+k*h/columns]
}

// farthest bounds e_e − m in the gradient by the weight of an entry that weighs
// nothing and whose score exceeds all that count: beyond, it would overflow.
const farthest = 60

// edgeSoftmax returns a and s as edge_softmax defines them, and a without w.
func edgeSoftmax(g *Graph, e, self, w *Tensor) (a, s, bare *Tensor) {
	heads := width(self)
	a, s, bare = NewTensor(e.Shape...), NewTensor(self.Shape...), NewTensor(e.Shape...)
	top, total := self.Clone(), NewTensor(self.Shape...)
	each := func(f func(k, at, to int)) {
		for k, i := range g.Row {
			for h := range heads {
				f(k, k*heads+h, i*heads+h)
			}
		}
	}
	each(func(k, at, to int) {
		if entryWeight(w, k) != 0 {
			top.Data[to] = math.Max(top.Data[to], e.Data[at])
		}
	})
	for i, m := range top.Data {
		if math.IsInf(m, -1) {
			top.Data[i] = 0
		}
		total.Data[i] = math.Exp(self.Data[i] - top.Data[i])
		s.Data[i] = total.Data[i]
	}
	each(func(k, at, to int) {
		bare.Data[at] = math.Exp(math.Min(e.Data[at]-top.Data[to], farthest))
		a.Data[at] = entryWeight(w, k) * bare.Data[at]
		total.Data[to] += a.Data[at]
	})
	for i, v := range total.Data {
		if v == 0 {
			total.Data[i] = math.Inf(1) // of nothing, nothing
		}
	}
	each(func(_, at, to int) {
		a.Data[at] /= total.Data[to]
		bare.Data[at] /= total.Data[to]
	})
	for i, v := range total.Data {
		s.Data[i] /= v
	}
	return a, s, bare
}

// wantEdgeSoftmax checks graph, e, s and w, which edge_softmax and its gradient
// begin with.
func (c *InferCtx) wantEdgeSoftmax() {
	c.wantOneDType(1, 2, 3)
	e, s := c.In(1), c.In(2)
	if e.Rank() < 1 || e.Rank() > 2 || s.Rank() != e.Rank() {
		fail("operands e and s are %s and %s, want [E] and [N], or [E,H] and [N,H]", e, s)
	}
	c.wantDims(1, append([]Dim{c.edges()}, e.Dims[1:]...)...)
	c.wantDims(2, append([]Dim{c.In(0).Targets()}, e.Dims[1:]...)...)
	c.wantDims(3, c.edges())
}

var edgeSoftmaxOperands = []OperandSpec{{Name: "graph", Kind: GraphOperand}, {Name: "e", Read: ReadEntries}, {Name: "s", Read: ReadTarget}, {Name: "w", Optional: true, Read: ReadEntries}}

var attentionOps = []OpDef{
	{
		Name: "edge_softmax", Doc: "softmax over the entries into each target i and i itself: a_e = w_e·exp(e_e − m_i)/D_i, self_i = exp(s_i − m_i)/D_i, D_i their sum, m_i the largest score that counts; by columns (heads) where e is [E,H]; w ≥ 0, absent: ones, and an entry of weight 0 does not count; s_i −∞: without i itself",
		Results:  []string{"a", "self"},
		Operands: edgeSoftmaxOperands,
		// A row without entries has its own term only.
		Pad: func(p *Padding, op *Op) []PadValue {
			return []PadValue{{}, {Kind: min(p.value(op.Operands[2]).Kind, PadFinite)}}
		},
		Infer: func(c *InferCtx) []Type {
			c.wantEdgeSoftmax()
			return []Type{c.In(1), c.In(2)}
		},
		VJP: func(c *VJPCtx) []*Value {
			d := c.Builder.Op("edge_softmax_grad", nil, c.X(0), c.X(1), c.X(2), c.X(3), c.Y(0), c.Y(1), c.Ct[0], c.Ct[1])
			return c.pick(nil, func() *Value { return d[0] }, func() *Value { return d[1] }, func() *Value { return d[2] })
		},
		Eval: func(c *EvalCtx) {
			a, s, _ := edgeSoftmax(c.G(0), c.T(1), c.T(2), c.T(3))
			c.Set(0, a)
			c.Set(1, s)
		},
	},
	{
		Name: "edge_softmax_grad", Doc: "gradient of edge_softmax: with c_i = Σ a_e·da_e + self_i·dself_i over what i sees, de_e = a_e(da_e − c_i), ds_i = self_i(dself_i − c_i), dw_e = Σ over heads of exp(e_e − m_i)/D_i·(da_e − c_i)",
		Results:  []string{"de", "ds", "dw"},
		Operands: append(slices.Clone(edgeSoftmaxOperands), OperandSpec{Name: "a"}, OperandSpec{Name: "self"}, OperandSpec{Name: "da", Optional: true}, OperandSpec{Name: "dself", Optional: true}),
		Pad: func(p *Padding, op *Op) []PadValue {
			kind := PadFinite
			for _, i := range []int{2, 5, 7} {
				kind = min(kind, p.value(op.Operands[i]).Kind)
			}
			return []PadValue{{}, {Kind: kind}, {}}
		},
		NoGrad: "a gradient itself; nothing differentiates twice",
		Infer: func(c *InferCtx) []Type {
			c.wantEdgeSoftmax()
			for i, like := range []int{1, 2, 1, 2} {
				if c.Has(4+i) && !c.In(4+i).Equal(c.In(like)) {
					fail("operand %s is %s, want %s", c.Op.operandName(4+i), c.In(4+i), c.In(like))
				}
			}
			return []Type{c.In(1), c.In(2), c.In(1).WithDims(c.edges())}
		},
		Eval: func(c *EvalCtx) {
			g, a, self, da, dself := c.G(0), c.T(4), c.T(5), c.T(6), c.T(7)
			_, _, bare := edgeSoftmax(g, c.T(1), c.T(2), c.T(3))
			if da == nil {
				da = NewTensor(a.Shape...)
			}
			if dself == nil {
				dself = NewTensor(self.Shape...)
			}
			de, ds, dw, heads, sum := c.New(0), c.New(1), c.New(2), width(self), NewTensor(self.Shape...)
			for k, v := range a.Data {
				sum.Data[g.Row[k/heads]*heads+k%heads] += v * da.Data[k]
			}
			for i, v := range self.Data {
				sum.Data[i] += v * dself.Data[i]
				ds.Data[i] = v * (dself.Data[i] - sum.Data[i])
			}
			for k, v := range a.Data {
				d := da.Data[k] - sum.Data[g.Row[k/heads]*heads+k%heads]
				de.Data[k] = v * d
				dw.Data[k/heads] += bare.Data[k] * d
			}
		},
	},
	{
		Name: "group_sum", Doc: "y_ig = Σ of x_ij over the columns j of block g, of groups blocks of one width", Operands: []OperandSpec{{Name: "x", Read: ReadRow, Linear: true}}, Finite: FiniteIfOperands, Results: []string{"sums"},
		Attrs: []AttrSpec{{Name: "groups", Kind: IntAttr, Doc: "number of blocks"}},
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			c.wantFloat(0)
			groups := c.Op.Int("groups")
			wantBlocks(groups, c.In(0).Dims[1])
			return one(c.In(0).WithDims(c.In(0).Dims[0], D(groups)))
		},
		VJP: func(c *VJPCtx) []*Value {
			n, _ := c.X(0).Type.Dims[1].Size()
			return []*Value{c.One("group_repeat", Attrs{"times": n / c.Op.Int("groups")}, c.Ct[0])}
		},
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			for i := range x.Rows() {
				for j, v := range x.Row(i) {
					y.Row(i)[j*y.Cols()/x.Cols()] += v
				}
			}
		},
	},
	{
		Name: "group_repeat", Doc: "y_ij = x_ig, g the block of so many (times) columns in which j lies", Operands: []OperandSpec{{Name: "x", Read: ReadRow, Linear: true, Moved: true}}, Results: []string{"repeated"},
		Attrs: []AttrSpec{{Name: "times", Kind: IntAttr, Doc: "columns of each block"}},
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			c.wantFloat(0)
			n, ok := c.In(0).Dims[1].Size()
			times := c.Op.Int("times")
			if !ok || times < 0 {
				fail("operand x is %s and times %d, want a fixed number of columns and 0 times or more", c.In(0), times)
			}
			return one(c.In(0).WithDims(c.In(0).Dims[0], D(n*times)))
		},
		VJP: func(c *VJPCtx) []*Value {
			n, _ := c.X(0).Type.Dims[1].Size()
			return []*Value{c.One("group_sum", Attrs{"groups": n}, c.Ct[0])}
		},
		Eval: func(c *EvalCtx) {
			x, y := c.T(0), c.New(0)
			for i := range y.Rows() {
				for j := range y.Row(i) {
					y.Row(i)[j] = x.Row(i)[j/c.Op.Int("times")]
				}
			}
		},
	},
}
