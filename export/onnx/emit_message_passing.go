package onnx

import "github.com/gsrc-dev/gsrc/ir"

// The lines of the table that pass messages along edges.

func emitSpMM(e *emitter, op *ir.Op) (value, error) {
	v := &edgeValue{}
	if op.Operands[1] != nil {
		var err error
		if v, err = e.edge(op, 1); err != nil {
			return value{}, err
		}
	}
	if e.normalized(op, v) {
		y, err := e.normalizedSum(op, v)
		return value{t: y}, err
	}
	h, err := e.operand(op, 3)
	if err != nil {
		return value{}, err
	}
	if op.Operands[1] != nil && op.Operands[1].Type.Rank() == 2 || op.Operands[2] != nil && op.Operands[2].Type.Rank() == 2 {
		return e.headProduct(op, v, h)
	}
	y, err := e.aggregate(op, v, &h, op.Bool("transpose"))
	if err != nil || op.Operands[2] == nil {
		return value{t: y}, err
	}
	s, err := e.operand(op, 2)
	if err != nil {
		return value{}, err
	}
	return value{t: e.binary("Add", y, e.scaleRows(h, e.column(s)))}, nil
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
func (e *emitter) normalizedSum(op *ir.Op, v *edgeValue) (tensor, error) {
	d := e.column(*v.dst)
	h, first := e.values[op.Operands[3]], d
	if h.per != nil && h.sparse == nil {
		first = e.binary("Div", d, *h.per)
	} else {
		t, err := e.operand(op, 3)
		if err != nil {
			return tensor{}, err
		}
		h.t = t
	}
	x := e.scaleRows(h.t, first)
	y, err := e.aggregate(op, &edgeValue{base: v.base}, &x, op.Bool("transpose"))
	if err != nil {
		return tensor{}, err
	}
	return e.scaleRows(e.binary("Add", y, x), d), nil
}

func emitSDDMM(e *emitter, op *ir.Op) (value, error) {
	p, err := e.operand(op, 1)
	if err != nil {
		return value{}, err
	}
	q, err := e.operand(op, 2)
	if err != nil {
		return value{}, err
	}
	product := e.binary("Mul", e.gather(p, e.list.dst), e.gather(q, e.list.src))
	if heads := op.Int("heads"); heads > 0 {
		return value{t: e.groupSum(product, heads)}, nil
	}
	return value{t: e.rowSum(product)}, nil
}

func emitEdgeOnes(*emitter, *ir.Op) (value, error) { return value{edge: &edgeValue{}}, nil }

// emitEdgePairs lists the edges as edge_index does, with self-loops: what is made of
// these belongs to no node.
func emitEdgePairs(e *emitter, op *ir.Op) (value, error) {
	return value{t: e.concat(0, e.unsqueeze(e.list.dst, 0), e.unsqueeze(e.list.src, 0))}, nil
}

func emitEdgeGather(e *emitter, op *ir.Op) (value, error) {
	v, err := e.operand(op, 1)
	if op.Str("side") == "src" {
		return value{edge: &edgeValue{src: &v}}, err
	}
	return value{edge: &edgeValue{dst: &v}}, err
}

func emitEdgeSum(e *emitter, op *ir.Op) (value, error) {
	v, err := e.edge(op, 1)
	if err != nil {
		return value{}, err
	}
	if op.Operands[1].Type.Rank() == 2 {
		return value{t: e.aggregation(op.Str("side") == "src").total(e.perEdge(v))}, nil
	}
	sum, err := e.aggregate(op, v, nil, op.Str("side") == "src")
	return value{t: e.vector(sum)}, err
}
