package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
)

// UnsupportedError reports an operation that cannot be written.
type UnsupportedError struct {
	Func, Op string
	Lowering Lowering
	Reason   string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("@%s: operation %s cannot be written to ONNX with the %s lowering: %s", e.Func, e.Op, e.Lowering, e.Reason)
}

// value is what an IR value became.
type value struct {
	t    tensor
	edge *edgeValue // set for values f32[E] over the graph's edges, t is then not set
	// per, where it is set, divides the rows of t: [rows,1]. A product with t
	// divides its own narrower rows instead; any other reader gets the quotient.
	per *tensor
	// far, beside per, are the rows whose quotient is not that of t.
	far *farRows
	// sparse is set for features that are given sparsely, t is then not set.
	sparse *sparseRows
}

// edgeValue is a value of every edge, kept as a product so that factors that
// depend on one end alone never become a multiplication per edge:
// v_e = base_e · dst_target(e) · src_source(e), absent parts are ones. GCN's
// normalisation is such a product, and scales nodes instead.
type edgeValue struct {
	base     *tensor // [E'], in the order of the kept edges; the adjacency matrix in the dense form
	dst, src *tensor // one factor a node
}

// emitter writes one IR function as an ONNX graph.
type emitter struct {
	*builder
	fn       *ir.Func
	lowering Lowering
	values   map[*ir.Value]value
	params   map[string][]float32
	layers   layers
	dims     map[ir.Dim]string // names of the symbolic dimensions
	graph    *ir.Value         // the graph argument, nil if there is none
	batch    *ir.Value         // the argument from nodes to graphs, nil if there is none
	members  *bucketSum        // over its entries

	sorted *sortedEdges            // of the list, made when first used
	shared map[string]*sharedEdges // by name of a list of pairs

	list     *edgeList
	forward  aggregation // sums over entering edges
	backward aggregation // over leaving edges, made when first used
	nodes    *tensor     // int64 [1]: number of nodes
	nodeOnes *tensor     // dense form: ones [N,1]
	weight   *tensor     // the input edge_weight, nil if there is none
	weighted bool        // dense form: the adjacency matrix holds edge weights
	columns  map[string]tensor

	sums []emittedSum

	precision Precision
	rounded   map[string][]tensor // by name of a value: what rounds it to 8 bits gives
}

func newEmitter(b *builder, fn *ir.Func, params map[string][]float32, o ModelOptions) *emitter {
	return &emitter{
		builder: b, fn: fn, lowering: o.Lowering, precision: o.Precision, params: params, layers: layersOf(fn),
		values: map[*ir.Value]value{}, columns: map[string]tensor{}, rounded: map[string][]tensor{},
		dims: map[ir.Dim]string{"N": "num_nodes", "E": "num_edges", "P": "num_pairs"},
	}
}

func (e *emitter) dense() bool { return e.lowering == Dense }

func (e *emitter) nodeDim() ir.Dim {
	if e.graph != nil {
		return e.graph.Type.Dims[0]
	}
	return "N"
}

func (e *emitter) overEdges(v *ir.Value) bool { return e.graph != nil && OverEdges(v, e.graph) }

func (e *emitter) dim(d ir.Dim) dim {
	if n, ok := d.Size(); ok {
		return fixed(n)
	}
	if name, ok := e.dims[d]; ok {
		return named(name)
	}
	return unknown
}

// shape gives the ONNX dimensions of an IR type. The dense form keeps every
// value a matrix: a vector over the nodes is a column, any other a row.
func (e *emitter) shape(t ir.Type) []dim {
	dims := make([]dim, t.Rank())
	for i, d := range t.Dims {
		dims[i] = e.dim(d)
	}
	if !e.dense() {
		return dims
	}
	switch {
	case t.Rank() == 0:
		return []dim{fixed(1), fixed(1)}
	case t.Rank() == 1 && t.Dims[0] == e.nodeDim():
		return []dim{dims[0], fixed(1)}
	case t.Rank() == 1:
		return []dim{fixed(1), dims[0]}
	}
	return dims
}

func dtypeOf(d ir.DType) (onnxpb.TensorProto_DataType, error) {
	switch d {
	case ir.F32:
		return float32Type, nil
	case ir.I64:
		return Int64Type, nil
	}
	return 0, fmt.Errorf("element type %s is not written to ONNX (f32 and i64 are)", d)
}

// emitError is the panic by which emission ends.
type emitError struct{ error }

func emitErrorf(format string, args ...any) emitError {
	return emitError{fmt.Errorf(format, args...)}
}

// emitted makes the error that emission ended by that of the function that defers it.
func emitted(err *error) {
	if p := recover(); p != nil {
		bad, ok := p.(emitError)
		if !ok {
			panic(p)
		}
		*err = ir.Placed(bad.error)
	}
}

// about, deferred, has the error that emission ends by be one about an operation or argument.
func about(at any) {
	if p := recover(); p != nil {
		if bad, ok := p.(emitError); ok {
			p = emitError{ir.At(at, bad.error)}
		}
		panic(p)
	}
}

func (e *emitter) unsupported(op *ir.Op, format string, args ...any) emitError {
	return emitError{&UnsupportedError{Func: e.fn.Name, Op: op.Name(), Lowering: e.lowering, Reason: fmt.Sprintf(format, args...)}}
}

// run emits the operations that the results need.
func (e *emitter) run() {
	for _, op := range neededOps(e.fn, e.fn.Results, nil) {
		e.emit(op)
	}
}

func (e *emitter) emit(op *ir.Op) {
	defer about(op)
	line, ok := opEmitters[op.Name()]
	if !ok {
		reason := "the table in export has no line for it"
		if op.Def.Level != ir.TensorLevel {
			reason = "it must be lowered to tensor operations first (passes lower-gsr and lower-gnn)"
		} else if op.Draws() {
			reason = "it draws random numbers"
		}
		panic(e.unsupported(op, "%s", reason))
	}
	if e.dense() && !line.dense {
		panic(e.unsupported(op, "the dense form has matrix products and elementwise operations alone; take the degree-buckets, precomputed-buckets or scatter lowering"))
	}
	if e.dense() && slices.ContainsFunc(slices.Concat(op.Operands, op.Results), func(v *ir.Value) bool { return v != nil && v.Type.Rank() == 2 && e.overEdges(v) }) {
		panic(e.unsupported(op, "every edge has several values, and there is one adjacency matrix; take the degree-buckets, precomputed-buckets or scatter lowering"))
	}
	var result value
	emit := line.emit
	if len(op.Operands) > 0 && e.overBatch(op) {
		emit = (*emitter).readout
	}
	before := len(e.builder.graph.Node)
	path := e.layers.path(op)
	e.in(path, func() { result = emit(e, op) })
	v := op.Results[0]
	if result.edge == nil && result.per == nil && result.sparse == nil {
		if e.overEdges(v) {
			result = value{edge: &edgeValue{base: new(result.t)}}
		} else if len(e.builder.graph.Node) > before { // or else it is an operand, as of to_dense
			was := result.t.name
			result.t = e.rename(result.t, path, line.doc(op))
			e.renamed(op, was, result.t)
		}
	}
	e.values[v] = result
}

// renamed tells later readers of an operand the name of what was made for it, its quotient
// or its column, where that is also the result of the operation.
func (e *emitter) renamed(op *ir.Op, was string, t tensor) {
	for _, v := range op.Operands {
		x := e.values[v]
		if c, ok := e.columns[x.t.name]; ok && c.name == was {
			e.columns[x.t.name] = t
		}
		if x.t.name == was {
			x.t = t
			e.values[v] = x
		}
	}
}

// operand returns operand i as a tensor; edge values are multiplied out.
func (e *emitter) operand(op *ir.Op, i int) tensor {
	v := e.lookup(op.Operands[i])
	if v.edge != nil {
		if e.dense() {
			panic(e.unsupported(op, "it reads single edges, which an adjacency matrix does not have"))
		}
		return e.perEdge(v.edge)
	}
	return v.t
}

// lookup returns what an IR value became; parameters become initialisers when
// they are first read.
func (e *emitter) lookup(v *ir.Value) value {
	if got, ok := e.values[v]; ok {
		if got.sparse != nil {
			got.t, got.sparse = got.sparse.dense(), nil
			e.values[v] = got
		}
		if got.per != nil {
			got = value{t: got.far.put(e.builder, e.binary("Div", got.t, *got.per), got.far.quotient())}
			e.values[v] = got
		}
		return got
	}
	if !v.Param {
		panic(emitErrorf("@%s: value %%%s is not defined before its use", e.fn.Name, v.Name))
	}
	data, ok := e.params[v.Name]
	if !ok {
		panic(emitErrorf("@%s: parameter $%s was not given", e.fn.Name, v.Name))
	}
	size, dims := 1, []int{}
	for _, d := range e.shape(v.Type) {
		if !d.isFixed() {
			panic(emitErrorf("parameter $%s has type %s; only fixed sizes can be written", v.Name, v.Type))
		}
		size *= int(d.n)
		dims = append(dims, int(d.n))
	}
	if len(data) != size {
		panic(emitErrorf("parameter $%s is %s, got %d numbers", v.Name, v.Type, len(data)))
	}
	for i, x := range data {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			panic(emitErrorf("parameter $%s is %g at position %d", v.Name, x, i))
		}
	}
	var got value
	if e.precision == FP16 && v.Type.Rank() > 1 {
		t := e.halves(v.Name, e.layers.param(v.Name), data, dims...)
		got.t = t
	} else {
		got.t = e.floats(e.layers.param(v.Name), data, dims...)
	}
	e.values[v] = got
	return got
}

// perEdge multiplies an edge value out, [E'].
func (e *emitter) perEdge(v *edgeValue) tensor {
	var out *tensor
	times := func(t tensor) {
		if out != nil {
			t = e.binary("Mul", *out, t)
		}
		out = &t
	}
	if v.base != nil {
		times(*v.base)
	}
	if v.dst != nil {
		times(e.gather(*v.dst, e.list.dst))
	}
	if v.src != nil {
		times(e.gather(*v.src, e.list.src))
	}
	if out == nil {
		times(e.filledFloat(e.sizeOf(e.list.dst, 0), 1, e.list.dst.dims...))
	}
	return *out
}

// edge returns operand i as an edge value.
func (e *emitter) edge(op *ir.Op, i int) *edgeValue {
	return e.lookup(op.Operands[i]).edge
}

// timesEdges multiplies two edge values part by part.
func (e *emitter) timesEdges(op *ir.Op, a, b *edgeValue) *edgeValue {
	if e.dense() && a.base != nil && b.base != nil {
		panic(e.unsupported(op, "it multiplies two edge weights, and there is one adjacency matrix"))
	}
	part := func(x, y *tensor) *tensor {
		if x == nil {
			return y
		}
		if y == nil {
			return x
		}
		return new(e.binary("Mul", *x, *y))
	}
	return &edgeValue{part(a.base, b.base), part(a.dst, b.dst), part(a.src, b.src)}
}

// column views a vector over the nodes as [N,1].
func (e *emitter) column(t tensor) tensor {
	if t.rank() == 2 {
		return t
	}
	c, ok := e.columns[t.name]
	if !ok {
		c = e.unsqueeze(t, 1)
		e.columns[t.name] = c
	}
	return c
}

// vector undoes column where vectors have rank 1.
func (e *emitter) vector(t tensor) tensor {
	if e.dense() {
		return t
	}
	return e.squeeze(t, 1)
}

// aggregation returns the sums over entering edges, or with reverse over
// leaving ones.
func (e *emitter) aggregation(reverse bool) aggregation {
	if !reverse {
		return e.forward
	}
	if e.backward == nil {
		switch f := e.forward.(type) {
		case *denseSum:
			t := e.op("Transpose", float32Type, f.adjacency.dims, []tensor{f.adjacency}, intsAttr("perm", 1, 0))
			e.backward = &denseSum{b: e.builder, adjacency: t, ones: f.ones}
		case *bucketSum:
			e.backward = newBuckets(f.reversed())
		case *scatterSum:
			e.backward = newScatter(f.reversed())
		}
	}
	return e.backward
}

// weights returns the per-edge weights that an aggregation takes, nil for ones.
func (e *emitter) weights(op *ir.Op, v *edgeValue) *tensor {
	if e.dense() && e.weighted && v.base == nil {
		panic(e.unsupported(op, "it counts edges, and the adjacency matrix holds weights"))
	}
	return v.base
}

// aggregate returns Σ over edges of v_e·h at the other end, with the factors of
// the two ends applied to the nodes. A nil h sums v alone, [N,1].
func (e *emitter) aggregate(op *ir.Op, v *edgeValue, h *tensor, reverse bool) tensor {
	here, there := v.dst, v.src
	if reverse {
		here, there = there, here
	}
	if there != nil {
		scaled := e.column(*there)
		if h != nil {
			scaled = e.scaleRows(*h, scaled)
		}
		h = &scaled
	}
	weight := e.weights(op, v)
	var sum tensor
	if h == nil {
		sum = e.aggregation(reverse).degree(weight)
	} else {
		sum = e.aggregation(reverse).sum(*h, weight)
		if !reverse {
			e.sums = append(e.sums, emittedSum{op.Result(), sum, *h, weight})
		}
	}
	if here != nil {
		sum = e.scaleRows(sum, e.column(*here))
	}
	return sum
}

// scaleRows multiplies each row of h with its element of a column.
func (e *emitter) scaleRows(h, column tensor) tensor { return e.binary("Mul", h, column) }

// GraphArg returns the graph argument of a function, or nil; the batch's is
// [BatchArg].
func GraphArg(fn *ir.Func) *ir.Value {
	for _, a := range fn.Args {
		if a.Type.IsGraph() && !a.Type.IsBlock() {
			return a
		}
	}
	return nil
}

// OverEdges reports whether v has a value for each edge of g, or one of each head.
func OverEdges(v, g *ir.Value) bool {
	return !v.Type.IsGraph() && v.Type.Rank() > 0 && v.Type.Dims[0] == g.Type.Dims[1]
}
