package onnx

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/ir"
)

// sortedEdges are the edges by target, then source; behind them self-loops, whose target
// is N, and one entry that ends the list.
type sortedEdges struct {
	key    tensor // target·N + source, int64 [E+1]
	order  tensor // the edges' positions, E of the last, int64 [E+1]
	source tensor // int64 [E+1]
	place  tensor // numbers the different keys from 0, int64 [E+1]
	// first and count are of the edges into each node, of self-loops, and of none, int64 [N+2].
	first, count tensor
	weights      map[string]placeWeights // by name of the edges' weights, "" of none
}

// placeWeights are weights in the order of [sortedEdges], f32 [E+1], and their sums over
// edges with the same ends, by place.
type placeWeights struct{ each, sum tensor }

// SharedEdges is the scope of the values whose sizes are those of lists of common neighbours.
const SharedEdges = "shared_edges"

// NearEdges begins the scope of the values whose sizes are those of lists of the neighbours of
// pairs; behind it stands how many of a node there are at most.
const NearEdges = "near_edges_"

// sharedEdges are what both nodes of a pair have an edge from: one element for each edge
// into one node of a pair, whose source has edges into the other node too. int64 [M]
type sharedEdges struct {
	pair, node tensor
	edge       tensor // number of the edge into the one, in the order of sortedEdges
	place      tensor // of the edges into the other
}

func (e *emitter) sortEdges() *sortedEdges {
	if e.sorted != nil {
		return e.sorted
	}
	b, l := e.builder, e.list
	s := &sortedEdges{weights: map[string]placeWeights{}}
	b.in("sorted_edges", func() {
		list := []dim{unknown}
		keys := b.binary("Add", b.binary("Mul", l.into, l.nodes), l.src)
		keys = b.concat(0, keys, b.binary("Mul", l.nodes, b.binary("Add", l.nodes, b.int64Const(1))))
		size := b.sizeOf(keys, 0)
		sorted := b.ascending(keys, size)
		s.key, s.order = sorted[0], sorted[1]
		s.source = b.gather(b.concat(0, l.src, b.int64s(0)), s.order)
		before := b.op("Slice", Int64Type, list, []tensor{b.concat(0, b.int64s(-1), s.key), b.int64s(0), size, b.int64s(0)})
		other := b.op("Not", boolType, list, []tensor{b.compare("Equal", s.key, before)})
		s.place = b.binary("Sub", b.cumSum(b.cast(other, Int64Type), false), b.int64Const(1))
		nodes := b.filledInt(b.binary("Add", l.nodes, b.int64Const(2)), 0, unknown)
		s.count = b.scatterAdd(nodes, l.into, b.filledInt(b.sizeOf(l.into, 0), 1, l.into.dims...))
		s.first = b.cumSum(s.count, true)
	})
	e.sorted, e.shared = s, map[string]*sharedEdges{}
	return s
}

// of returns the weights of edges, nil for ones, as [placeWeights].
func (s *sortedEdges) of(e *emitter, weight *tensor) placeWeights {
	name := ""
	if weight != nil {
		name = weight.name
	}
	if w, ok := s.weights[name]; ok {
		return w
	}
	var w placeWeights
	e.in("sorted_edges", func() {
		size := e.sizeOf(s.key, 0)
		if weight == nil {
			w.each = e.filledFloat(size, 1, unknown)
		} else {
			w.each = e.gather(e.concat(0, *weight, e.floats("const", []float32{0}, 1)), s.order)
		}
		w.sum = e.scatterAdd(e.filledFloat(size, 0, unknown), s.place, w.each)
	})
	s.weights[name] = w
	return w
}

// shareEdges finds the edges that the nodes of pairs share. The edges into the node with
// fewer are listed for every pair, and those of the other node looked up by sorting the
// keys that they would have in among the keys that there are.
func (e *emitter) shareEdges(pairs tensor) *sharedEdges {
	s := e.sortEdges()
	if m, ok := e.shared[pairs.name]; ok {
		return m
	}
	b, nodes := e.builder, e.list.nodes
	m := &sharedEdges{}
	b.in(SharedEdges, func() {
		list := []dim{unknown}
		one := b.int64Const(1)
		x, y := e.pairEnd(pairs, 0), e.pairEnd(pairs, 1)
		fewer := b.compare("LessOrEqual", b.gather(s.count, x), b.gather(s.count, y))
		// One pair more, of the node that has no edges, so that nothing is ever empty.
		pick := func(x, y tensor) tensor {
			return b.concat(0, b.op("Where", Int64Type, x.dims, []tensor{fewer, x, y}), b.binary("Add", nodes, one))
		}
		from, to := pick(x, y), pick(y, x)
		pair, number, total := b.each(b.gather(s.count, from))
		// The pair more has no edge, but one element, which has the number of an edge.
		edge := b.binary("Min", b.binary("Add", b.gather(b.gather(s.first, from), pair), number), b.binary("Sub", b.sizeOf(s.key, 0), one))
		wanted := b.binary("Add", b.binary("Mul", b.gather(to, pair), nodes), b.gather(s.source, edge))

		// An even number for each edge, the odd one above it for who asks.
		two := b.int64Const(2)
		have := b.sizeOf(s.key, 0)
		all := b.concat(0, b.binary("Mul", s.key, two), b.binary("Add", b.binary("Mul", wanted, two), one))
		sorted := b.ascending(all, b.sizeOf(all, 0))
		asks := b.compare("GreaterOrEqual", sorted[1], have)
		below := b.cumSum(b.cast(b.op("Not", boolType, list, []tensor{asks}), Int64Type), false)
		at := b.nonZero(asks)
		last := b.binary("Max", b.binary("Sub", b.gather(below, at), one), b.int64Const(0))
		same := b.compare("Equal", b.binary("Add", b.binary("Mul", b.gather(s.key, last), two), one), b.gather(sorted[0], at))
		asker := b.binary("Sub", b.gather(sorted[1], at), have)
		real := b.compare("Less", asker, total)
		found := b.nonZero(b.op("And", boolType, list, []tensor{same, real}))

		asker = b.gather(asker, found)
		m.pair = b.gather(pair, asker)
		m.edge = b.gather(edge, asker)
		m.node = b.gather(s.source, m.edge)
		m.place = b.gather(s.place, b.gather(last, found))
	})
	e.shared[pairs.name] = m
	return m
}

// each lists what there are counts of, int64 [P], of which the last is 0: for each its
// position among the counts and its number there, int64 [M+1], M being their sum, total.
// Behind them stands one element for the last count.
func (b *builder) each(counts tensor) (of, number, total tensor) {
	one := b.int64Const(1)
	begin := b.cumSum(counts, true)
	total = b.gather(begin, b.binary("Sub", b.sizeOf(counts, 0), one))
	starts := b.filledInt(b.binary("Add", total, one), 0, unknown)
	starts = b.scatterAdd(starts, begin, b.filledInt(b.sizeOf(begin, 0), 1, unknown))
	of = b.binary("Sub", b.cumSum(starts, false), one)
	return of, b.binary("Sub", b.span(b.squeeze(b.sizeOf(of, 0), 0)), b.gather(begin, of)), total
}

// pairWeights returns what the edges of an operation on pairs weigh, nil for ones.
func (e *emitter) pairWeights(op *ir.Op) *tensor {
	if op.Operands[1] == nil {
		return nil
	}
	a := e.edge(op, 1)
	if a.base == nil && a.dst == nil && a.src == nil {
		return nil
	}
	return new(e.perEdge(a))
}

// kernelColumns is how many columns of rows are multiplied at a time.
const kernelColumns = 32

// emitNeighborKernel lists, for both nodes of each pair, the edges into the other one.
func emitNeighborKernel(e *emitter, op *ir.Op) value {
	weight := e.pairWeights(op)
	h, pairs := e.operand(op, 2), e.operand(op, 3)
	s := e.sortEdges()
	b, nodes := e.builder, e.list.nodes
	var sum tensor
	b.in(fmt.Sprint(NearEdges, op.Int("most")), func() {
		list, one := []dim{unknown}, b.int64Const(1)
		x, y := e.pairEnd(pairs, 0), e.pairEnd(pairs, 1)
		// One pair more, of a node with a row of zeros and the node that has no edges, so that
		// nothing is ever empty.
		node, other := b.concat(0, x, y, nodes), b.concat(0, y, x, b.binary("Add", nodes, one))
		entries := b.gather(s.count, other)
		counts := b.binary("Min", entries, b.int64Const(int64(op.Int("most"))))
		pair, t, _ := b.each(counts)
		step := b.binary("Div", b.binary("Mul", t, b.gather(entries, pair)), b.binary("Max", b.gather(counts, pair), one))
		edge := b.binary("Min", b.binary("Add", b.gather(b.gather(s.first, other), pair), step), b.binary("Sub", b.sizeOf(s.key, 0), one))
		node = b.gather(node, pair)
		near := b.gather(s.source, edge)
		width := h.width()
		var dot *tensor
		for lo := 0; lo == 0 || lo < width; lo += kernelColumns {
			columns := min(kernelColumns, width-lo)
			part := b.op("Slice", h.dtype, []dim{h.dims[0], fixed(columns)}, []tensor{h, b.int64s(int64(lo)), b.int64s(int64(lo + columns)), b.int64s(1)})
			part = b.concat(0, part, b.floats("const", make([]float32, columns), 1, columns))
			product := e.rowSum(b.binary("Mul", b.gather(part, node), b.gather(part, near)))
			if dot != nil {
				product = b.binary("Add", *dot, product)
			}
			dot = &product
		}
		term := b.unary("Exp", b.binary("Mul", b.binary("Sub", *dot, b.floatConst(1)), b.floatConst(float32(1/op.Float("tau")))))
		term = b.binary("Mul", term, b.cast(b.op("Not", boolType, list, []tensor{b.compare("Equal", near, node)}), h.dtype))
		if weight != nil {
			term = b.binary("Mul", term, b.gather(s.of(e, weight).each, edge))
		}
		count := b.sizeOf(x, 0)
		sums := b.scatterAdd(b.filledFloat(b.binary("Add", b.binary("Add", count, count), one), 0, unknown), pair, term)
		half := func(lo, hi tensor) tensor {
			return b.op("Slice", h.dtype, pairs.dims[1:], []tensor{sums, lo, hi, b.int64s(0)})
		}
		sum = b.binary("Add", half(b.int64s(0), count), half(count, b.binary("Add", count, count)))
	})
	return value{t: sum}
}

func emitCommonNeighbors(e *emitter, op *ir.Op) value {
	weight := e.pairWeights(op)
	v := e.operand(op, 2)
	pairs := e.operand(op, 3)
	m := e.shareEdges(pairs)
	w := e.sorted.of(e, weight)
	terms := e.binary("Mul", e.gather(w.sum, m.place), e.gather(v, m.node))
	if weight != nil {
		terms = e.binary("Mul", terms, e.gather(w.each, m.edge))
	}
	return value{t: e.scatterAdd(e.filledFloat(e.sizeOf(pairs, 1), 0, pairs.dims[1:]...), m.pair, terms)}
}
