package ir

// The readouts of a batch of graphs: one row for each graph, from the rows of its
// nodes. Which node is of which graph is a block graph<G,N,N>, whose entry e leads
// from node e to its graph; so a sum is a sum over entries like any other.

var spmaxOps = []OpDef{
	{
		Name: "spmax", Doc: "y_i = max over entries e into i of h_src(e), column by column; 0 where there is none", Results: []string{"spmax"},
		Operands: graphThen(OperandSpec{Name: "h", Read: ReadSources}), Pad: padEmpty,
		Infer: func(c *InferCtx) []Type {
			c.wantSources(1)
			return one(c.In(1).WithDims(c.In(0).Targets(), c.In(1).Dims[1]))
		},
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{nil, c.One("spmax_grad", nil, c.X(0), c.X(1), c.Y(0), c.Ct[0])}
		},
		Eval: func(c *EvalCtx) {
			g, h, y := c.G(0), c.T(1), c.New(0)
			seen := make([]bool, g.N)
			for e, i := range g.Row {
				for k, v := range h.Row(g.Col[e]) {
					if !seen[i] || v > y.Row(i)[k] {
						y.Row(i)[k] = v
					}
				}
				seen[i] = true
			}
		},
	},
	{
		Name: "spmax_grad", Doc: "dh_j = Σ of dy_i over the i whose maximum y_i is h_j, column by column; of equal ones the first entry's", Results: []string{"dh"},
		Operands: graphThen(OperandSpec{Name: "h"}, OperandSpec{Name: "y"}, OperandSpec{Name: "dy", Linear: true}), Pad: padEmpty,
		NoGrad: "a gradient itself; nothing differentiates twice",
		Infer: func(c *InferCtx) []Type {
			c.wantSources(1)
			c.wantOneDType(1, 2, 3)
			for i := 2; i <= 3; i++ {
				c.wantRank(i, 2)
				c.wantDims(i, c.In(0).Targets(), c.In(1).Dims[1])
			}
			return one(c.In(1))
		},
		Eval: func(c *EvalCtx) {
			g, h, y, dy, dh := c.G(0), c.T(1), c.T(2), c.T(3), c.New(0)
			done := make([]bool, len(y.Data))
			for e, i := range g.Row {
				for k, v := range h.Row(g.Col[e]) {
					if at := i*y.Cols() + k; v == y.Data[at] && !done[at] {
						dh.Row(g.Col[e])[k] += dy.Data[at]
						done[at] = true
					}
				}
			}
		},
	},
}

// wantSources checks that operand i is a float matrix with a row for each source
// of the graph.
func (c *InferCtx) wantSources(i int) {
	c.wantRank(i, 2)
	c.wantFloat(i)
	c.wantDims(i, c.In(0).Sources(), c.In(i).Dims[1])
}

// Readouts are the ways to make one row of many.
var Readouts = []string{"sum", "mean", "max"}

var readoutOps = []OpDef{{
	Name: "gnn.readout", Level: GNNLevel, Doc: "y_g = sum, mean or max of the rows h_v of the nodes v of graph g, which batch tells; 0 of none",
	Attrs:   []AttrSpec{{Name: "mode", Kind: StringAttr, Default: "sum", OneOf: Readouts, Doc: "sum, mean or max"}},
	Results: []string{"readout"}, NoGrad: lowered,
	Operands: []OperandSpec{{Name: "batch", Kind: GraphOperand}, {Name: "h"}},
	Infer: func(c *InferCtx) []Type {
		if !c.In(0).IsBlock() || c.In(0).Entries() != c.In(0).Sources() {
			fail("operand batch is %s, want graph<G,N,N>, with an entry for each node", c.In(0))
		}
		c.wantSources(1)
		return one(c.In(1).WithDims(c.In(0).Targets(), c.In(1).Dims[1]))
	},
	Eval: func(c *EvalCtx) {
		g, h, y := c.G(0), c.T(1), c.New(0)
		if c.Op.Str("mode") == "max" {
			spmaxOps[0].Eval(c)
			return
		}
		evalSpMM(g, nil, nil, h, y, false)
		if c.Op.Str("mode") == "sum" {
			return
		}
		count := make([]float64, g.N)
		for _, i := range g.Row {
			count[i]++
		}
		for i, n := range count {
			for k := range y.Row(i) {
				y.Row(i)[k] /= max(n, 1)
			}
		}
	},
}}
