package ir

import (
	"fmt"
	"maps"
	"math"
	"slices"
)

var (
	transposeAttr = AttrSpec{Name: "transpose", Kind: BoolAttr, Default: false, Doc: "along reversed entries"}
	sideAttr      = AttrSpec{Name: "side", Kind: StringAttr, OneOf: []string{"dst", "src"}, Doc: "dst: the entry's target, src: its source"}
)

func graphThen(specs ...OperandSpec) []OperandSpec {
	return append([]OperandSpec{{Name: "graph", Kind: GraphOperand}}, specs...)
}

func (c *InferCtx) edges() Dim { return c.In(0).Entries() }

// side returns the number of nodes at one end of the entries.
func (c *InferCtx) side(side string) Dim {
	if side == "src" {
		return c.In(0).Sources()
	}
	return c.In(0).Targets()
}

// end returns the node of entry e on one side.
func (g *Graph) end(e int, side string) int {
	if side == "src" {
		return g.Col[e]
	}
	return g.Row[e]
}

func inferSpMM(c *InferCtx) []Type {
	c.wantRank(3, 2)
	c.wantOneDType(1, 2, 3)
	for i, rows := range []Dim{c.edges(), c.In(0).Targets()} {
		c.wantHeads(i+1, rows, c.In(3).Dims[1])
	}
	if c.Has(1) && c.Has(2) && !slices.Equal(c.In(1).Dims[1:], c.In(2).Dims[1:]) {
		fail("operands a and s are %s and %s, want as many heads in both", c.In(1), c.In(2))
	}
	from, to := c.In(0).Sources(), c.In(0).Targets()
	if c.Op.Bool("transpose") {
		from, to = to, from
	}
	c.wantDims(3, from, c.In(3).Dims[1])
	return one(c.In(3).WithDims(to, c.In(3).Dims[1]))
}

func evalSpMM(g *Graph, a, s, h, y *Tensor, transpose bool) {
	for e := range g.Row {
		i, j := g.Row[e], g.Col[e]
		if transpose {
			i, j = j, i
		}
		row := y.Row(i)
		for k, v := range h.Row(j) {
			w := 1.0
			if a != nil {
				w = a.head(e, k, h.Cols())
			}
			row[k] += w * v
		}
	}
	if s != nil {
		for i := range s.Shape[0] {
			for k, v := range h.Row(i) {
				y.Row(i)[k] += s.head(i, k, h.Cols()) * v
			}
		}
	}
}

// aggregated are the operands of a sum over entries, which is the result or goes into
// an expression.
func aggregated(result bool) []OperandSpec {
	return graphThen(OperandSpec{Name: "a", Optional: true, Read: ReadEntries}, OperandSpec{Name: "s", Optional: true, Read: ReadRow},
		OperandSpec{Name: "h", Read: ReadSources, Linear: result})
}

var graphOps = []OpDef{
	{
		Name: "spmm", Doc: "y_i = Σ over entries e into i of a_e·h_src(e) + s_i·h_i; a absent: ones, s absent: no self term; with a [E,H], s [N,H] one value for each of H blocks of columns", Attrs: []AttrSpec{transposeAttr}, Results: []string{"spmm"},
		Operands: aggregated(true), Finite: FiniteIfOperands, Pad: padAggregated,
		Infer: inferSpMM,
		VJP: func(c *VJPCtx) []*Value {
			g, a, s, h, dy, tr := c.X(0), c.X(1), c.X(2), c.X(3), c.Ct[0], c.Op.Bool("transpose")
			return c.pick(nil, func() *Value {
				heads := Attrs{"heads": HeadsOf(a)}
				if tr {
					return c.One("sddmm", heads, g, h, dy)
				}
				return c.One("sddmm", heads, g, dy, h)
			}, func() *Value {
				x, y := dy, h
				if g.Type.IsBlock() { // of the sources only the targets, which are the first
					t := h.Type.WithDims(g.Type.Targets())
					first := func(v *Value) *Value {
						return c.One("spmm", nil, g, c.Fill(0, t.WithDims(g.Type.Entries())), c.Fill(1, t), v)
					}
					if tr {
						x = first(x)
					} else {
						y = first(y)
					}
				}
				if n := HeadsOf(s); n > 0 {
					return c.One("group_sum", Attrs{"groups": n}, c.Mul(x, y))
				}
				return c.One("reduce_sum", Attrs{"axis": "1"}, c.Mul(x, y))
			}, func() *Value {
				return c.One("spmm", Attrs{"transpose": !tr}, g, a, s, dy)
			})
		},
		Eval: func(c *EvalCtx) {
			evalSpMM(c.G(0), c.T(1), c.T(2), c.T(3), c.New(0), c.Op.Bool("transpose"))
		},
	},
	{
		Name: "sddmm", Doc: "y_e = ⟨p_dst(e), q_src(e)⟩; with heads H > 0 one product for each of H blocks of columns, [E,H]", Results: []string{"sddmm"},
		Attrs:    []AttrSpec{{Name: "heads", Kind: IntAttr, Default: int64(0), Doc: "blocks of columns; 0: one product, [E]"}},
		Operands: graphThen(OperandSpec{Name: "p", Read: ReadTarget, Linear: true}, OperandSpec{Name: "q", Read: ReadSources, Linear: true}), Finite: FiniteIfOperands, Pad: padUnknown,
		Infer: func(c *InferCtx) []Type {
			c.wantOneDType(1, 2)
			for i := 1; i <= 2; i++ {
				c.wantRank(i, 2)
				c.wantDims(i, c.side([]string{"dst", "src"}[i-1]), c.In(1).Dims[1])
			}
			heads := c.Op.Int("heads")
			if heads == 0 {
				return one(c.In(1).WithDims(c.edges()))
			}
			wantBlocks(heads, c.In(1).Dims[1])
			return one(c.In(1).WithDims(c.edges(), D(heads)))
		},
		VJP: func(c *VJPCtx) []*Value {
			return c.pick(nil,
				func() *Value { return c.One("spmm", nil, c.X(0), c.Ct[0], nil, c.X(2)) },
				func() *Value {
					return c.One("spmm", Attrs{"transpose": true}, c.X(0), c.Ct[0], nil, c.X(1))
				})
		},
		Eval: func(c *EvalCtx) {
			g, p, q, y := c.G(0), c.T(1), c.T(2), c.New(0)
			heads := max(1, c.Op.Int("heads"))
			for e := range g.Row {
				for k, v := range p.Row(g.Row[e]) {
					y.Data[e*heads+k/(p.Cols()/heads)] += v * q.Row(g.Col[e])[k]
				}
			}
		},
	},
	{
		Name: "edge_gather", Doc: "y_e = v at the entry's target (side dst) or source (side src); v a vector, or a matrix of a row a node", Attrs: []AttrSpec{sideAttr}, Results: []string{"at"},
		Operands: graphThen(OperandSpec{Name: "v", Linear: true, Moved: true}), Pad: padUnknown,
		Reads: func(op *Op, i int) Read {
			switch {
			case i == 0:
				return ReadAll
			case op.Str("side") == "src":
				return ReadSources
			}
			return ReadTarget
		},
		Infer: func(c *InferCtx) []Type {
			c.wantFloat(1)
			return c.moveRows(1, c.side(c.Op.Str("side")), c.edges())
		},
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{nil, c.One("edge_sum", Attrs{"side": c.Op.Str("side")}, c.X(0), c.Ct[0])}
		},
		Eval: func(c *EvalCtx) {
			g, v, y := c.G(0), c.T(1), c.New(0)
			heads := width(v)
			for e := range g.Row {
				i := g.end(e, c.Op.Str("side"))
				copy(y.Data[e*heads:(e+1)*heads], v.Data[i*heads:])
			}
		},
	},
	{
		Name: "edge_sum", Doc: "y_i = Σ of w_e over entries whose target (side dst) or source (side src) is i; w a vector, or a matrix of a row an entry", Attrs: []AttrSpec{sideAttr}, Results: []string{"deg"},
		Operands: graphThen(OperandSpec{Name: "w", Linear: true}), Finite: FiniteIfOperands, Pad: padEmpty,
		Reads: func(op *Op, i int) Read {
			if i == 1 && op.Str("side") == "dst" {
				return ReadEntries
			}
			return ReadAll
		},
		Infer: func(c *InferCtx) []Type {
			c.wantFloat(1)
			return c.moveRows(1, c.edges(), c.side(c.Op.Str("side")))
		},
		VJP: func(c *VJPCtx) []*Value {
			return []*Value{nil, c.One("edge_gather", Attrs{"side": c.Op.Str("side")}, c.X(0), c.Ct[0])}
		},
		Eval: func(c *EvalCtx) {
			g, w, y := c.G(0), c.T(1), c.New(0)
			heads := width(w)
			for k, v := range w.Data {
				y.Data[g.end(k/heads, c.Op.Str("side"))*heads+k%heads] += v
			}
		},
	},
	{
		Name: "edge_kth", Doc: "y_i = the k-th largest of w_e over entries into i; the least where there are fewer, 0 of none", Results: []string{"kth"},
		Attrs:    []AttrSpec{{Name: "k", Kind: IntAttr, Range: Range{Min: 1, Max: MaxSize}, Doc: "how many entries are at least as large, the k-th included"}},
		Operands: graphThen(OperandSpec{Name: "w"}), Finite: FiniteIfOperands,
		NoGrad: "it is what entries are compared with, to take the largest",
		Reads: func(_ *Op, i int) Read {
			if i == 1 {
				return ReadEntries
			}
			return ReadAll
		},
		Infer: func(c *InferCtx) []Type {
			c.wantRank(1, 1)
			c.wantFloat(1)
			return c.moveRows(1, c.edges(), c.side("dst"))
		},
		Eval: func(c *EvalCtx) {
			g, w, y := c.G(0), c.T(1), c.New(0)
			into := make([][]float64, len(y.Data))
			for e, v := range w.Data {
				into[g.Row[e]] = append(into[g.Row[e]], v)
			}
			for i, v := range into {
				if slices.Sort(v); len(v) > 0 {
					y.Data[i] = v[max(0, len(v)-c.Op.Int("k"))]
				}
			}
		},
	},
	{
		Name: "edge_ones", Doc: "a one for every entry", Results: []string{"ones"}, ShapeOnly: true, Pad: padWith(PadValue{PadConstant, 1}),
		Operands: graphThen(),
		Infer:    func(c *InferCtx) []Type { return one(T(F32, c.edges())) },
		VJP:      func(*VJPCtx) []*Value { return []*Value{nil} },
		Eval: func(c *EvalCtx) {
			y := c.New(0)
			for e := range y.Data {
				y.Data[e] = 1
			}
		},
	},
	{
		Name: "sample_block", Formerly: "receptive_field", Doc: "what a layer reads that computes the nodes targets only: a block whose entries are those of graph into the targets, its sources (the targets, then their other neighbours as met), and each entry's place in graph",
		Results: []string{"block", "sources", "entries"}, Operands: graphThen(operands("targets")...),
		Sizes:  true,
		Int64:  true,
		NoGrad: "its results are integers",
		Infer: func(c *InferCtx) []Type {
			c.wantWhole()
			c.wantRank(1, 1)
			c.wantDType(1, I64)
			d := c.Declared
			if len(d) != 3 || !d[0].IsBlock() || d[0].Targets() != c.In(1).Dims[0] {
				fail("declare the results as graph<%s,e,s>, i64[s], i64[e]", c.In(1).Dims[0])
			}
			given := append(slices.Clone(c.In(0).Dims), c.In(1).Dims...)
			if e, s := d[0].Entries(), d[0].Sources(); e == s || slices.Contains(given, e) || slices.Contains(given, s) {
				fail("the sizes %s and %s are found when it runs; give each a name of its own", e, s)
			}
			return []Type{d[0], T(I64, d[0].Sources()), T(I64, d[0].Entries())}
		},
		Eval: func(c *EvalCtx) {
			g, targets := c.G(0), c.T(1)
			block := &Graph{N: len(targets.Data)}
			at := map[int]int{} // place of a node among the sources
			var sources, entries []float64
			for i, v := range targets.Data {
				r := int(v)
				if r < 0 || r >= g.N {
					fail("sample_block: target %d at position %d is outside 0..%d", r, i, g.N-1)
				}
				if _, ok := at[r]; !ok {
					at[r] = len(sources)
				}
				sources = append(sources, v)
			}
			for i, v := range targets.Data {
				for e, row := range g.Row {
					if row != int(v) {
						continue
					}
					k, ok := at[g.Col[e]]
					if !ok {
						k = len(sources)
						at[g.Col[e]] = k
						sources = append(sources, float64(g.Col[e]))
					}
					block.Row, block.Col = append(block.Row, i), append(block.Col, k)
					entries = append(entries, float64(e))
				}
			}
			block.Sources = len(sources)
			c.Out[0] = Val{G: block}
			c.Set(1, &Tensor{Shape: []int{len(sources)}, Data: sources})
			c.Set(2, &Tensor{Shape: []int{len(entries)}, Data: entries})
		},
	},
	{
		Name: "pair_dot", Doc: "y_k = ⟨p_i, q_j⟩ for the pairs (i, j) = pairs[0,k], pairs[1,k]; q absent: p", Results: []string{"dot"},
		Operands: []OperandSpec{{Name: "p", Read: ReadPairs}, {Name: "pairs"}, {Name: "q", Optional: true, Read: ReadPairs, Linear: true}}, Finite: FiniteIfOperands,
		NoGrad: onlyInference,
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 2)
			c.wantOneDType(0, 2)
			c.wantPairs(1)
			c.wantDims(2, c.In(0).Dims...)
			return one(c.In(0).WithDims(c.In(1).Dims[1]))
		},
		Eval: func(c *EvalCtx) {
			p, q, y := c.T(0), c.T(0), c.New(0)
			if len(c.In) > 2 && c.T(2) != nil {
				q = c.T(2)
			}
			c.eachPair(1, p.Shape[0], func(k, i, j int) {
				for f, v := range p.Row(i) {
					y.Data[k] += v * q.Row(j)[f]
				}
			})
		},
	},
	{
		Name: "pair_gather", Doc: "y_k = v at the first or the second node of each pair, pairs[0,k] or pairs[1,k]", Results: []string{"at"},
		Attrs:    []AttrSpec{{Name: "end", Kind: StringAttr, OneOf: []string{"first", "second"}, Doc: "which node of a pair"}},
		Operands: []OperandSpec{{Name: "v", Read: ReadPairs, Linear: true, Moved: true}, {Name: "pairs"}},
		NoGrad:   onlyInference,
		Infer: func(c *InferCtx) []Type {
			c.wantRank(0, 1)
			c.wantFloat(0)
			c.wantPairs(1)
			return one(c.In(0).WithDims(c.In(1).Dims[1]))
		},
		Eval: func(c *EvalCtx) {
			v, y := c.T(0), c.New(0)
			c.eachPair(1, v.Shape[0], func(k, i, j int) {
				if c.Op.Str("end") == "second" {
					i = j
				}
				y.Data[k] = v.Data[i]
			})
		},
	},
	{
		Name: "edge_pairs", Doc: "the entries as pairs of nodes, in their order: row 0 the targets, row 1 the sources", Results: []string{"pairs"}, Int64: true,
		Operands: graphThen(),
		NoGrad:   "its results are integers",
		Infer: func(c *InferCtx) []Type {
			c.wantWhole()
			return one(T(I64, "2", c.edges()))
		},
		Eval: func(c *EvalCtx) {
			g, y := c.G(0), c.New(0)
			for e := range g.Row {
				y.Row(0)[e], y.Row(1)[e] = float64(g.Row[e]), float64(g.Col[e])
			}
		},
	},
	{
		Name: "common_neighbors", Doc: "y_k = Σ over nodes w other than i and j of A_iw·A_jw·v_w for the pairs (i, j) = pairs[0,k], pairs[1,k], where A_iw is the sum of a over the entries from w into i; a absent: ones", Results: []string{"common"},
		Operands: graphThen(OperandSpec{Name: "a", Optional: true, Read: ReadPairs}, OperandSpec{Name: "v", Read: ReadPairs, Linear: true}, OperandSpec{Name: "pairs"}), Finite: FiniteIfOperands,
		NoGrad: onlyInference,
		Infer: func(c *InferCtx) []Type {
			c.wantWhole()
			c.wantRank(2, 1)
			c.wantOneDType(1, 2)
			c.wantDims(1, c.edges())
			c.wantDims(2, c.In(0).Targets())
			c.wantPairs(3)
			return one(c.In(2).WithDims(c.In(3).Dims[1]))
		},
		Eval: func(c *EvalCtx) {
			g, a, v, y := c.G(0), c.T(1), c.T(2), c.New(0)
			rows := make([]map[int]float64, g.N)
			for e, i := range g.Row {
				if rows[i] == nil {
					rows[i] = map[int]float64{}
				}
				rows[i][g.Col[e]] += entryWeight(a, e)
			}
			c.eachPair(3, g.N, func(k, i, j int) {
				for _, w := range slices.Sorted(maps.Keys(rows[i])) {
					if x, ok := rows[j][w]; ok && w != i && w != j {
						y.Data[k] += rows[i][w] * x * v.Data[w]
					}
				}
			})
		},
	},
	{
		Name: "neighbor_kernel", Doc: "y_k = Σ over nodes w other than i and j of a_jw·κ(x_i, x_w) + a_iw·κ(x_j, x_w) for the pairs (i, j) = pairs[0,k], pairs[1,k], where κ(u, v) = exp((u·v − 1)/tau) and a_jw are the entries from w into j; a absent: ones. Of n > most entries of a row, those from itself left out, those at ⌊t·n/most⌋ count", Results: []string{"density"},
		Attrs:    []AttrSpec{tauAttr, {Name: "most", Kind: IntAttr, Range: count, Doc: "entries of a row that count"}},
		Operands: graphThen(OperandSpec{Name: "a", Optional: true, Read: ReadPairs, Linear: true}, OperandSpec{Name: "x", Read: ReadPairs}, OperandSpec{Name: "pairs"}),
		NoGrad:   onlyInference,
		Infer: func(c *InferCtx) []Type {
			c.wantWhole()
			c.wantRank(2, 2)
			c.wantOneDType(1, 2)
			c.wantDims(1, c.edges())
			c.wantDims(2, c.In(0).Targets(), c.In(2).Dims[1])
			c.wantPairs(3)
			return one(c.In(2).WithDims(c.In(3).Dims[1]))
		},
		Eval: func(c *EvalCtx) {
			g, a, x, y := c.G(0), c.T(1), c.T(2), c.New(0)
			tau, most := c.Op.Float("tau"), c.Op.Int("most")
			into := make([][]int, g.N)
			for e, i := range g.Row {
				if g.Col[e] != i {
					into[i] = append(into[i], e)
				}
			}
			c.eachPair(3, g.N, func(k, i, j int) {
				for _, end := range [][2]int{{i, j}, {j, i}} {
					row := into[end[1]]
					count := min(len(row), most)
					for t := range count {
						e := row[t*len(row)/count]
						w := g.Col[e]
						if w == end[0] {
							continue
						}
						dot := 0.0
						for f, v := range x.Row(end[0]) {
							dot += v * x.Row(w)[f]
						}
						y.Data[k] += entryWeight(a, e) * math.Exp((dot-1)/tau)
					}
				}
			})
		},
	},
}

// onlyInference is why operations on pairs of nodes have no gradient.
const onlyInference = "only used in inference, where pairs are asked for"

// eachPair calls f with each of the pairs of nodes that operand at holds, and fails where
// a node is outside 0..n-1.
func (c *EvalCtx) eachPair(at, n int, f func(k, i, j int)) {
	pairs := c.T(at)
	for k := range pairs.Shape[1] {
		i, j := int(pairs.Row(0)[k]), int(pairs.Row(1)[k])
		if min(i, j) < 0 || max(i, j) >= n {
			fail("%s: pair %d is (%d, %d), outside 0..%d", c.Op.Name(), k, i, j, n-1)
		}
		f(k, i, j)
	}
}

// wantWhole checks that the graph is no block, whose nodes have other numbers.
func (c *InferCtx) wantWhole() {
	if c.In(0).IsBlock() {
		fail("the graph is the block %s, want a whole graph", c.In(0))
	}
}

// checkNewDims checks that the sizes which the operation finds have symbols of
// their own, and enters these.
func (o *Op) checkNewDims(symbols map[string]int) error {
	fresh := map[Dim]bool{}
	for _, d := range o.newDims() {
		if !validSymbol(string(d)) {
			return fmt.Errorf("the size %s is found when it runs; give it a name", d)
		}
		if _, known := symbols[string(d)]; known && !fresh[d] {
			return fmt.Errorf("the size %s is found when it runs, but something above has that name; give it another", d)
		}
		fresh[d], symbols[string(d)] = true, 1
	}
	return nil
}

// newDims returns the dimensions of the results that are no operand's.
func (o *Op) newDims() []Dim {
	var old, fresh []Dim
	for _, v := range o.Operands {
		if v != nil {
			old = append(old, v.Type.Dims...)
		}
	}
	for _, r := range o.Results {
		for _, d := range r.Type.Dims {
			if !slices.Contains(old, d) {
				fresh = append(fresh, d)
			}
		}
	}
	return fresh
}
