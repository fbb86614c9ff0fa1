package onnx

import (
	"fmt"
	"slices"
)

// The search for near neighbours and the joining of candidates, as package graph
// does them (graph.KNN, graph.NewCandidates), in operators that every runtime has.

// NearestBlocks is how many parts of the rows are compared with all rows, one part
// after another: what is alive at a time is a part of all similarities.
const NearestBlocks = 16

// search finds candidates for edges.
type search struct {
	b     *builder
	list  *edgeList
	nodes tensor // int64 [1]
}

// boundedNodes returns the number of nodes by way of a Gather that fails above
// MaxPipelineNodes.
func boundedNodes(b *builder, nodes tensor) tensor {
	var n tensor
	b.in("nodes", func() {
		upTo := b.span(b.squeeze(b.binary("Add", b.binary("Min", nodes, b.int64s(MaxPipelineNodes)), b.int64Const(1)), 0))
		n = b.rename(b.gather(upTo, nodes), "num_nodes_is_at_most_32768", "fails where the graph has more nodes: all pairs are compared")
	})
	return n
}

// near are the nearest neighbours of the nodes whose embedding has a direction.
type near struct {
	rows tensor // int64 [V]: their numbers
	idx  tensor // int64 [V,k]: positions in rows of the nearest, the nearest first
}

// nearest finds each row's k nearest by cosine; of equally near ones the lower
// number comes first.
func (s *search) nearest(h, k tensor) near {
	b := s.b
	var out near
	b.in("neighbours", func() {
		col := []dim{h.dims[0], fixed(1)}
		// Scaled by the largest first, so that squares neither over- nor underflow. A
		// row without a direction gives a NaN, which is below nothing.
		scaled := b.binary("Div", h, b.reduceOp("ReduceMax", b.unary("Abs", h), []int64{1}, true, col...))
		length := b.reduceOp("ReduceL2", scaled, []int64{1}, true, col...)
		out.rows = b.rename(b.nonZero(b.squeeze(b.compare("Less", length, b.floatConst(1e30)), 1)), "neighbours/rows", "nodes whose embedding has a direction")
		z := b.binary("Div", b.gather(scaled, out.rows), b.gather(length, out.rows))
		z = b.rename(z, "neighbours/directions", "embeddings of length 1")
		all := b.op("Transpose", float32Type, []dim{z.dims[1], z.dims[0]}, []tensor{z}, intsAttr("perm", 1, 0))
		// Never more than the nodes: so the search waits for the check of their number.
		count := b.binary("Min", b.sizeOf(out.rows, 0), s.nodes)
		// One more than wanted, since every row finds itself.
		more := b.binary("Min", b.binary("Add", k, b.int64Const(1)), count)
		rows := b.binary("Div", b.binary("Add", count, b.int64Const(NearestBlocks-1)), b.int64Const(NearestBlocks))
		// Filled up with rows of zeros: a TopK of no rows brings onnxruntime 1.27 down.
		rest := b.binary("Sub", b.binary("Mul", rows, b.int64Const(NearestBlocks)), count)
		asked := b.concat(0, z, b.filledFloat(b.concat(0, rest, b.int64s(int64(z.width()))), 0, unknown, z.dims[1]))
		var similar, index []tensor
		for i := range int64(NearestBlocks) {
			b.in(fmt.Sprintf("block%d", i), func() {
				at := func(i int64) tensor { return b.binary("Mul", rows, b.int64s(i)) }
				part := b.op("Slice", float32Type, []dim{unknown, z.dims[1]}, []tensor{asked, at(i), at(i + 1), b.int64s(0)})
				grid := []dim{unknown, unknown}
				top := b.multi("TopK", []tensor{{dtype: float32Type, dims: grid}, {dtype: Int64Type, dims: grid}},
					[]tensor{b.matmul(part, all), more}, intAttr("axis", 1), intAttr("largest", 1), intAttr("sorted", 1))
				similar, index = append(similar, top[0]), append(index, top[1])
			})
		}
		b.in("others", func() {
			// Of all rows, also those that filled up, and all neighbours: OpenVINO's
			// GatherElements wants as many indices as elements, and no Slice before it.
			idx := b.concat(0, index...)
			own := b.unsqueeze(b.span(b.squeeze(b.sizeOf(idx, 0), 0)), 1)
			sims := b.op("Where", float32Type, idx.dims, []tensor{b.compare("Equal", idx, own), b.floatConst(-3), b.concat(0, similar...)})
			top := b.multi("TopK", []tensor{{dtype: float32Type, dims: idx.dims}, {dtype: Int64Type, dims: idx.dims}},
				[]tensor{sims, more}, intAttr("axis", 1), intAttr("largest", 1), intAttr("sorted", 1))
			ordered := b.op("GatherElements", Int64Type, idx.dims, []tensor{idx, top[1]}, intAttr("axis", 1))
			fewer := b.binary("Min", k, b.binary("Max", b.binary("Sub", count, b.int64Const(1)), b.int64Const(0)))
			dims := []dim{out.rows.dims[0], unknown}
			out.idx = b.rename(b.op("Slice", Int64Type, dims, []tensor{ordered, b.int64s(0, 0), b.concat(0, count, fewer), b.int64s(0, 1)}), "neighbours/index",
				"positions of each row's nearest neighbours among the rows")
		})
	})
	return out
}

// candidates are pairs of nodes that may be edges, sorted, each once.
type candidates struct {
	lower, upper tensor // int64 [C]
	existing     tensor // bool [C]: listed in edge_index
	// first is the first position in edge_index of a pair that exists, int64 [C].
	first tensor
	edges tensor // int64 [1]: entries of edge_index
}

// candidates joins the edges of edge_index, in either direction, with the pairs of
// near neighbours, and of each node that many two steps away.
func (s *search) candidates(n near, twoStep int, mutual bool) *candidates {
	b := s.b
	c := &candidates{}
	b.in("candidates", func() {
		c.edges = b.sizeOf(s.list.src, 0)
		// Pairs become numbers that sort as they do: 4·(lower·N + upper), and 0 for an
		// edge, 1 and 2 for a neighbour of the lower and of the upper node. Self-loops
		// come behind everything.
		four := b.int64Const(4)
		code := func(u, v tensor) tensor {
			pair := b.binary("Add", b.binary("Mul", b.binary("Min", u, v), s.nodes), b.binary("Max", u, v))
			return b.binary("Mul", pair, four)
		}
		last := b.binary("Mul", b.binary("Mul", s.nodes, s.nodes), four)
		old := code(s.list.src, s.list.dst)
		if s.list.loop.name != "" {
			old = b.op("Where", Int64Type, old.dims, []tensor{s.list.loop, last, old})
		}
		fresh := func(from, to tensor) tensor {
			end := b.op("Where", Int64Type, to.dims, []tensor{b.compare("Less", from, to), b.int64Const(1), b.int64Const(2)})
			return b.reshape(b.binary("Add", code(from, to), end), b.int64s(-1), unknown)
		}
		lists := []tensor{old, fresh(b.unsqueeze(n.rows, 1), b.gather(n.rows, n.idx))}
		if twoStep > 0 {
			lists = append(lists, fresh(s.twoStep(twoStep)))
		}
		all := b.concat(0, lists...)
		all.dims = []dim{unknown}
		size := b.sizeOf(all, 0)
		list := []dim{unknown}
		sorted := b.ascending(all, size)
		pair := b.binary("Div", sorted[0], four)
		shifted := func(from int64, ts ...tensor) tensor {
			return b.op("Slice", Int64Type, list, []tensor{b.concat(0, ts...), b.int64s(from), b.binary("Add", size, b.int64Const(from)), b.int64s(0)})
		}
		both := func(x, y tensor) tensor { return b.op("And", boolType, x.dims, []tensor{x, y}) }
		kept := both(b.op("Not", boolType, list, []tensor{b.compare("Equal", pair, shifted(0, b.int64s(-1), pair))}), b.compare("Less", sorted[0], last))
		isEdge := b.compare("Equal", b.binary("Mul", pair, four), sorted[0])
		if mutual {
			// A pair comes once or twice for each end, one end after the other: both are there
			// if the last is for another end than the first, which is one or two behind it.
			again := func(by int64) tensor {
				rest := slices.Repeat([]int64{-1}, int(by))
				later := shifted(by, sorted[0], b.int64s(rest...))
				samePair := b.compare("Equal", pair, b.binary("Div", later, four))
				return both(samePair, b.op("Not", boolType, list, []tensor{b.compare("Equal", sorted[0], later)}))
			}
			mutual := again(1)
			if twoStep > 0 {
				mutual = b.either(mutual, again(2))
			}
			kept = both(kept, b.op("Or", boolType, list, []tensor{isEdge, mutual}))
		}
		at := b.nonZero(kept)
		pair = b.gather(pair, at)
		c.lower = b.rename(b.binary("Div", pair, s.nodes), "candidates/lower", "lower nodes of the candidates")
		c.upper = b.rename(b.binary("Sub", pair, b.binary("Mul", c.lower, s.nodes)), "candidates/upper", "upper nodes of the candidates")
		c.existing = b.rename(b.gather(isEdge, at), "candidates/existing", "tells the candidates that edge_index holds")
		c.first = b.gather(sorted[1], at)
	})
	return c
}

// pairs returns the candidates as int64 [2,C].
func (c *candidates) pairs(b *builder) (t tensor) {
	b.in("candidates", func() { t = b.concat(0, b.unsqueeze(c.lower, 0), b.unsqueeze(c.upper, 0)) })
	return t
}

// ofEdges returns values of those candidates that exist, by the first edge that is one of
// them, and of the others what new has. values are of the edges of edge_index.
func (c *candidates) ofEdges(b *builder, values, new tensor) tensor {
	at := b.op("Where", Int64Type, c.first.dims, []tensor{c.existing, c.first, c.edges})
	old := b.gather(b.concat(0, values, b.floats("const", []float32{1}, 1)), at)
	return b.op("Where", float32Type, c.existing.dims, []tensor{c.existing, old, new})
}

// judged multiplies the probabilities of existing edges by the evidence for them.
func (c *candidates) judged(b *builder, p, evidence tensor) tensor {
	at := b.op("Where", Int64Type, c.first.dims, []tensor{c.existing, c.first, c.edges})
	return b.binary("Mul", p, b.gather(b.concat(0, evidence, b.floats("const", []float32{1}, 1)), at))
}

// atLeast drops the candidates whose probability is below the threshold, and returns
// the others' probabilities.
func (c *candidates) atLeast(b *builder, p tensor, threshold float32) tensor {
	kept := b.nonZero(b.compare("GreaterOrEqual", p, b.floatConst(threshold)))
	for _, t := range []*tensor{&c.lower, &c.upper, &c.existing} {
		*t = b.gather(*t, kept)
	}
	return b.gather(p, kept)
}
