package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/ir"
)

// restrict computes, where of a stack of graph layers only some rows are read,
// only the rows that reach them: the last layer for the anchors, the one before
// for their neighbours, and so on, as long as that leaves out enough.
//
//	gather(Â·h, anchors)   →   Â₁·gather(h, s₁)
//
// with Â₁ the rows of Â for the anchors, whose columns are the sources s₁ that a
// sample_block finds at every step; if h is itself made by graph layers, its
// gather goes on in the same way. Values of nodes and edges that are made
// otherwise, from features or noise, are computed for all and gathered. A layer
// that stands on fewer rows than it reads aggregates first, (Âh)W in place of
// Â(hW), where that is less work.
//
// What each row is computed from does not change, nor the order in which it is
// summed.
func restrict(m *ir.Module, info DataInfo) error {
	for _, f := range m.Funcs {
		for _, idx := range indices(f) {
			r := &restriction{m: m, f: f, idx: idx, info: info}
			if !r.plan() {
				if n := r.attentive(); n > 0 {
					info.say("restrict", f, fmt.Sprintf("%d aggregations compute all rows, though %%%s reads some: their weights are trained", n, idx.Name))
				}
				continue
			}
			r.rewrite()
			pruneBody(f)
			info.say("restrict", f, fmt.Sprintf("%d aggregations compute only the rows that reach %%%s%s", r.layers, idx.Name, r.estimate()))
		}
	}
	return nil
}

// indices returns the arguments by which rows are gathered.
func indices(f *ir.Func) []*ir.Value {
	var idx []*ir.Value
	for _, op := range f.Body {
		if op.Name() == "gather" && op.Result().Type.Rank() == 2 && op.Operands[1].Def == nil && !slices.Contains(idx, op.Operands[1]) {
			idx = append(idx, op.Operands[1])
		}
	}
	return idx
}

// restriction is the work on the rows that one index reaches in one function.
type restriction struct {
	m    *ir.Module
	f    *ir.Func
	idx  *ir.Value
	info DataInfo

	graph   *ir.Value                  // of the layers
	nodes   ir.Dim                     // its number of nodes
	deep    map[*ir.Value]bool         // made by graph layers
	trained map[*ir.Value]bool         // depends on a parameter
	uses    map[*ir.Value]int          // readers
	wanted  map[*ir.Value]map[int]bool // levels at which a value is read
	whole   map[*ir.Value]bool         // read for all nodes too
	swap    map[*ir.Op]*ir.Op          // aggregation: the product that goes after it
	layers  int
}

// most is the share of the nodes from which on leaving out the others brings
// nothing: rows must be gathered and the structure found at every step.
const most = 0.8

// coverage estimates the share of the nodes that level k reads: level 0 the
// index itself, level k its k-hop neighbourhood, if neighbours were drawn at
// random. It is 0 where sizes are not known.
func (r *restriction) coverage(k int) float64 {
	n, e, b := r.info.Dims[string(r.nodes)], r.info.Dims[string(r.graph.Type.Entries())], r.info.Dims[string(r.idx.Type.Dims[0])]
	if n == 0 || b == 0 {
		return 0
	}
	share := min(1, float64(b)/float64(n))
	for range k {
		share = 1 - fmath.Pow(1-share, 1+float64(e)/float64(n))
	}
	return share
}

// estimate says how many rows that is.
func (r *restriction) estimate() string {
	if r.coverage(0) == 0 {
		return ""
	}
	var s []string
	for k := range r.deepest() + 2 {
		s = append(s, fmt.Sprintf("%.0f %%", 100*r.coverage(k)))
	}
	return fmt.Sprintf(" (by hop about %s of the nodes)", strings.Join(s, ", "))
}

// plan decides which values are computed at which level and reports whether any
// layer is restricted.
func (r *restriction) plan() bool {
	r.deep, r.trained = map[*ir.Value]bool{}, map[*ir.Value]bool{}
	for _, op := range r.f.Body {
		if op.Name() == "spmm" && !op.Bool("transpose") && r.graph == nil && op.Operands[0].Def == nil && !op.Operands[0].Type.IsBlock() {
			r.graph, r.nodes = op.Operands[0], op.Operands[0].Type.Targets()
		}
		for _, v := range op.Operands {
			for _, w := range op.Results {
				r.trained[w] = r.trained[w] || v != nil && (v.Param || r.trained[v])
			}
		}
	}
	if r.graph == nil {
		return false
	}
	for _, op := range r.f.Body {
		if len(op.Results) == 1 && r.rowwise(op) {
			r.deep[op.Result()] = r.isLayer(op) || slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return v != nil && r.deep[v] })
		}
	}
	r.uses = r.f.Uses()
	r.wanted, r.whole, r.swap = map[*ir.Value]map[int]bool{}, map[*ir.Value]bool{}, map[*ir.Op]*ir.Op{}
	for _, res := range r.f.Results {
		r.whole[res.Value] = true
	}
	for _, op := range slices.Backward(r.f.Body) {
		r.read(op)
	}
	for _, op := range r.f.Body {
		if r.isLayer(op) && r.level(op.Result()) >= 0 {
			r.layers++
		}
	}
	return r.layers > 0
}

// attentive counts the aggregations whose weights are trained.
func (r *restriction) attentive() int {
	n := 0
	for _, op := range r.f.Body {
		if op.Name() == "spmm" && (r.trained[op.Operands[1]] || r.trained[op.Operands[2]]) {
			n++
		}
	}
	return n
}

// level returns the one level at which a value is computed, or −1 where it is
// computed for all nodes.
func (r *restriction) level(v *ir.Value) int {
	if !r.deep[v] || r.whole[v] || len(r.wanted[v]) != 1 {
		return -1
	}
	for k := range r.wanted[v] {
		return k
	}
	return -1
}

// want asks for the rows of level k, or for all where that is no less work.
func (r *restriction) want(v *ir.Value, k int) {
	if k >= 0 && r.deep[v] && r.coverage(k) < most {
		if r.wanted[v] == nil {
			r.wanted[v] = map[int]bool{}
		}
		r.wanted[v][k] = true
		return
	}
	r.whole[v] = true
}

// read says what an operation reads, which depends on how its result is read.
func (r *restriction) read(op *ir.Op) {
	if op.Name() == "gather" && op.Operands[1] == r.idx {
		r.want(op.Operands[0], 0)
		r.whole[r.idx] = true
		return
	}
	if !slices.ContainsFunc(op.Results, func(v *ir.Value) bool { return r.whole[v] || len(r.wanted[v]) > 0 }) {
		return // nobody reads it, or its reader takes what it is made from
	}
	k := r.level(op.Result())
	if k < 0 {
		for _, v := range slices.Concat(op.Operands, op.Results) {
			r.whole[v] = true
		}
		return
	}
	for i, v := range op.Operands {
		switch {
		case v == nil:
		case r.isLayer(op):
			if i == 3 {
				if product := r.after(op, k); product != nil {
					r.swap[op] = product
					r.want(product.Operands[0], k+1)
					r.whole[product.Operands[1]] = true
				} else {
					r.want(v, k+1)
				}
			} else {
				r.whole[v] = true
			}
		case r.isRows(v):
			r.want(v, k)
		default:
			r.whole[v] = true
		}
	}
}

// after returns the product h·W that a layer of level k should do after its
// aggregation, or nil. It is then done for fewer rows, but the aggregation is as
// wide as h.
func (r *restriction) after(op *ir.Op, k int) *ir.Op {
	product := op.Operands[3].Def
	if product == nil || product.Name() != "matmul" || product.Bool("ta") || r.uses[product.Result()] != 1 {
		return nil
	}
	x := product.Operands[0]
	p, okP := x.Type.Dims[1].Size()
	q, okQ := product.Result().Type.Dims[1].Size()
	if !okP || !okQ || isSparse(x, r.info) || holdsSparse(x, r.info) || !r.deep[x] && p > q {
		return nil
	}
	targets, sources := r.coverage(k), r.coverage(k+1)
	n, e := float64(r.info.Dims[string(r.nodes)]), float64(r.info.Dims[string(r.graph.Type.Entries())])
	fewer := float64(p) * float64(q) * (sources - targets) * n
	wider := float64(p-q) * e * targets
	if p > q && wider >= fewer {
		return nil
	}
	return product
}

// isRows reports whether a value has a row, or an element, for each node.
func (r *restriction) isRows(v *ir.Value) bool {
	return (v.Type.Rank() == 1 || v.Type.Rank() == 2) && v.Type.Dims[0] == r.nodes
}

// isLayer reports whether an operation aggregates along the graph with weights
// that are not trained, whose gradients would have to find their way back.
func (r *restriction) isLayer(op *ir.Op) bool {
	return op.Name() == "spmm" && op.Operands[0] == r.graph && !op.Bool("transpose") &&
		!r.trained[op.Operands[1]] && !r.trained[op.Operands[2]]
}

// rowwise reports whether each row of the result is computed from the same rows
// of the operands, and from what is no row.
func (r *restriction) rowwise(op *ir.Op) bool {
	v := op.Result()
	if !r.isRows(v) || v.Type.Rank() != 2 || op.Draws() {
		return false
	}
	if op.Name() == "spmm" {
		return r.isLayer(op)
	}
	for i, w := range op.Operands {
		if w != nil && r.isRows(w) && !op.ReadsSameRow(i) {
			return false
		}
	}
	return true
}

// rewrite computes every value of one level at that level.
func (r *restriction) rewrite() {
	at := map[*ir.Value]*ir.Value{} // values at their level
	hops := r.fields()
	type place struct {
		v *ir.Value
		k int
	}
	gathered := map[place]*ir.Value{}
	rowsOf := func(b *ir.Builder, v *ir.Value, k int) *ir.Value {
		if r.level(v) == k {
			return at[v]
		}
		if gathered[place{v, k}] == nil {
			gathered[place{v, k}] = b.One("gather", nil, v, hops[k].rows)
		}
		return gathered[place{v, k}]
	}
	rewrite(r.m, r.f, func(b *ir.Builder, op *ir.Op) []*ir.Value {
		if op.Name() == "gather" && op.Operands[1] == r.idx && r.level(op.Operands[0]) == 0 {
			return one(at[op.Operands[0]])
		}
		if len(op.Results) != 1 {
			return nil
		}
		k := r.level(op.Result())
		if k < 0 {
			return nil
		}
		if !r.isLayer(op) {
			ops := slices.Clone(op.Operands)
			for i, v := range ops {
				if r.isRows(v) {
					ops[i] = rowsOf(b, v, k)
				}
			}
			t := op.Result().Type
			at[op.Result()] = b.OneTyped(op.Name(), op.Attrs, t.WithDims(hops[k].rows.Type.Dims[0], t.Dims[1]), ops...)
			return nil
		}
		here := hops[k]
		values := func(v, idx *ir.Value) *ir.Value {
			if v == nil {
				return nil
			}
			return b.One("gather", nil, v, idx)
		}
		h, product := op.Operands[3], r.swap[op]
		if product != nil {
			h = product.Operands[0]
		}
		y := b.One("spmm", nil, here.block, values(op.Operands[1], here.entries), values(op.Operands[2], here.rows), rowsOf(b, h, k+1))
		if product != nil {
			y = b.One("matmul", product.Attrs, y, product.Operands[1])
		}
		at[op.Result()] = y
		return nil
	})
}

// field is a level: its rows, and the block that reads the next level.
type field struct{ rows, block, entries *ir.Value }

// deepest returns the last level that an aggregation computes.
func (r *restriction) deepest() int {
	k := 0
	for _, op := range r.f.Body {
		if r.isLayer(op) {
			k = max(k, r.level(op.Result()))
		}
	}
	return k
}

// fields finds the rows of all levels, at the start of the function.
func (r *restriction) fields() []field {
	b := ir.NewBuilder(r.m, r.f).At(0)
	defer b.Named(r.idx.Name)()
	levels := []field{{rows: r.idx}}
	for k := range r.deepest() + 1 {
		rows := levels[k].rows
		e, s := ir.Dim(fmt.Sprintf("%s_entries%d", symbol(r.idx.Name), k+1)), ir.Dim(fmt.Sprintf("%s_hop%d", symbol(r.idx.Name), k+1))
		out := b.OpTyped("sample_block", nil, []ir.Type{ir.BlockType(rows.Type.Dims[0], e, s), ir.T(ir.I64, s), ir.T(ir.I64, e)}, r.graph, rows)
		levels[k].block, levels[k].entries = out[0], out[2]
		levels = append(levels, field{rows: out[1]})
	}
	return levels
}

// symbol makes a dimension's name of a value's.
func symbol(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' {
			return c
		}
		return '_'
	}, name)
}
