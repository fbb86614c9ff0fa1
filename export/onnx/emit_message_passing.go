package onnx

import "github.com/gsrc-dev/gsrc/ir"

// The lines of the table that pass messages along edges.

func emitSpMM(e *emitter, op *ir.Op) value {
	v := &edgeValue{}
	if op.Operands[1] != nil {
		v = e.edge(op, 1)
	}
	if e.normalized(op, v) {
		return value{t: e.normalizedSum(op, v)}
	}
	h := e.operand(op, 3)
	if op.Operands[1] != nil && op.Operands[1].Type.Rank() == 2 || op.Operands[2] != nil && op.Operands[2].Type.Rank() == 2 {
		return e.headProduct(op, v, h)
	}
	y := e.aggregate(op, v, &h, op.Bool("transpose"))
	if op.Operands[2] == nil {
		return value{t: y}
	}
	s := e.operand(op, 2)
	return value{t: e.binary("Add", y, e.scaleRows(h, e.column(s)))}
}

// normalized tells GCN's normalisation: the factors of both ends of an edge are the
// same d, and a node's own is d².
func (e *emitter) normalized(op *ir.Op, v *edgeValue) bool {
	if v.dst == nil || v.src == nil || v.dst.name != v.src.name || op.Operands[2] == nil {
		return false
	}
	own := op.Operands[2].Def
	if own == nil || own.Name() != "square" && (own.Name() != "mul" || own.Operands[0] != own.Operands[1]) {
		return false
	}
	d, ok := e.values[own.Operands[0]]
	return ok && d.edge == nil && d.per == nil && d.sparse == nil && d.t.name == v.dst.name
}

// normalizedSum writes d∘(Σ w·(d∘h) + d∘h) for Σ w·d·d·h + d²∘h: a pass over all
// values less. Rows of h that are still to be divided are scaled once.
func (e *emitter) normalizedSum(op *ir.Op, v *edgeValue) tensor {
	d := e.column(*v.dst)
	h, first := e.values[op.Operands[3]], d
	if h.per != nil && h.sparse == nil {
		first = e.binary("Div", d, *h.per)
	} else {
		h.t = e.operand(op, 3)
	}
	x := e.scaleRows(h.t, first)
	if h.far != nil {
		x = h.far.put(e.builder, x, e.scaleRows(h.far.unit, e.gather(d, h.far.rows)))
	}
	y := e.aggregate(op, &edgeValue{base: v.base}, &x, op.Bool("transpose"))
	return e.scaleRows(e.binary("Add", y, x), d)
}

func emitSDDMM(e *emitter, op *ir.Op) value {
	p := e.operand(op, 1)
	q := e.operand(op, 2)
	dst, src := e.list.dst, e.list.src
	// The same bits in both directions: a sum of a row has others in another place.
	once := p.name == q.name && e.list.lower.name != ""
	if once {
		dst, src = e.list.lower, e.list.upper
	}
	product := e.binary("Mul", e.gather(p, dst), e.gather(q, src))
	sum := e.rowSum
	if heads := op.Int("heads"); heads > 0 {
		sum = func(t tensor) tensor { return e.groupSum(t, heads) }
	}
	t := sum(product)
	if once {
		t = e.concat(0, t, t)
	}
	return value{t: t}
}

// emitEdgePairs lists the edges as edge_index does, with self-loops: what is made of
// these belongs to no node.
func emitEdgePairs(e *emitter, op *ir.Op) value {
	return value{t: e.concat(0, e.unsqueeze(e.list.dst, 0), e.unsqueeze(e.list.src, 0))}
}

func emitEdgeGather(e *emitter, op *ir.Op) value {
	v := e.operand(op, 1)
	if op.Str("side") == "src" {
		return value{edge: &edgeValue{src: &v}}
	}
	return value{edge: &edgeValue{dst: &v}}
}

func emitEdgeSum(e *emitter, op *ir.Op) value {
	v := e.edge(op, 1)
	if op.Operands[1].Type.Rank() == 2 {
		return value{t: e.aggregation(op.Str("side") == "src").total(e.perEdge(v))}
	}
	return value{t: e.vector(e.aggregate(op, v, nil, op.Str("side") == "src"))}
}

// emitEdgeKth sorts the entries by value, and what comes of that by target: an entry's rank is its
// place less that of the first of its target.
func emitEdgeKth(e *emitter, op *ir.Op) value {
	b, l := e.builder, e.list
	w := e.perEdge(e.edge(op, 1))
	size := b.sizeOf(w, 0)
	list := tensor{dtype: Int64Type, dims: []dim{unknown}}
	falling := b.multi("TopK", []tensor{{dtype: float32Type, dims: list.dims}, list}, []tensor{w, size}, intAttr("axis", 0), intAttr("largest", 1), intAttr("sorted", 1))
	// N is the target of what does not count, and comes last.
	keys := b.binary("Add", b.binary("Mul", b.gather(l.into, falling[1]), size), b.span(b.squeeze(size, 0)))
	order := b.gather(falling[1], b.ascending(keys, size)[1])
	count := b.cast(b.squeeze(countDegree(l), 1), Int64Type)
	at := b.binary("Add", b.cumSum(count, true), b.binary("Sub", b.binary("Min", count, b.int64Const(int64(op.Int("k")))), b.int64Const(1)))
	none := b.compare("Equal", count, b.int64Const(0))
	// A node without entries reads the number behind all.
	kth := b.gather(b.concat(0, b.gather(w, order), b.floats("const", []float32{0}, 1)), b.op("Where", Int64Type, count.dims, []tensor{none, size, at}))
	return value{t: kth}
}
