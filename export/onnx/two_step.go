package onnx

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
)

// TwoStepWalks is how many walks are followed from a node.
const TwoStepWalks = graph.TwoStepWalks

// twoStep finds the nodes two steps away, as graph.TwoStep does: of each node the k that
// share the rarest neighbours with it. Sums of rarities are exact in any order, so what is
// found is the same in every runtime. The nodes are looked at in [NearestBlocks] parts: what
// is alive at a time are the sums of one part with all nodes, and its walks.
func (s *search) twoStep(k int) (from, to tensor) {
	b := s.b
	one := b.int64Const(1)
	list := []dim{unknown}
	slice := func(t, from, to tensor) tensor {
		return b.op("Slice", t.dtype, list, []tensor{t, from, to, b.int64s(0)})
	}
	var found []tensor
	b.in("two_step", func() {
		// Each edge once in both directions, without self-loops, by target and source.
		// Behind them is one into node N, so that nothing is ever empty.
		u, v := b.concat(0, s.list.src, s.list.dst, b.int64s(0)), b.concat(0, s.list.dst, s.list.src, s.nodes)
		key := b.binary("Add", b.binary("Mul", v, s.nodes), u)
		key = b.ascending(key, b.sizeOf(key, 0))[0]
		size := b.sizeOf(key, 0)
		before := slice(b.concat(0, b.int64s(-1), key), b.int64s(0), size)
		dst := b.binary("Div", key, s.nodes)
		src := b.binary("Sub", key, b.binary("Mul", dst, s.nodes))
		not := func(x tensor) tensor { return b.op("Not", boolType, list, []tensor{x}) }
		both := func(x, y tensor) tensor { return b.op("And", boolType, list, []tensor{x, y}) }
		at := b.nonZero(both(not(b.compare("Equal", key, before)), not(b.compare("Equal", src, dst))))
		src, dst = b.gather(src, at), b.gather(dst, at)
		size = b.sizeOf(at, 0)

		zeros := func() tensor { return b.filledInt(b.binary("Add", s.nodes, one), 0, unknown) }
		degree := b.scatterAdd(zeros(), dst, b.filledInt(size, 1, unknown)) // [N+1]
		first := b.cumSum(degree, true)                                     // [N+1]
		ofSource := b.gather(degree, src)

		// Walks over the rarest neighbours first, whole ones, until there are too many.
		scale := b.binary("Add", s.nodes, one)
		order := b.ascending(b.binary("Add", b.binary("Mul", b.binary("Add", b.binary("Mul", dst, scale), ofSource), scale), src), size)[1]
		via, end := b.gather(src, order), b.gather(dst, order)
		others := b.binary("Sub", b.gather(degree, via), one)
		walks := b.cumSum(others, false)
		total := b.concat(0, b.int64s(0), walks)
		followed := b.binary("Sub", walks, b.gather(b.gather(total, first), end))
		at = b.nonZero(b.compare("LessOrEqual", followed, b.int64Const(TwoStepWalks)))
		via, end = b.gather(via, at), b.gather(end, at)
		begin := b.cumSum(b.scatterAdd(zeros(), end, b.filledInt(b.sizeOf(end, 0), 1, unknown)), true)
		// From a source, to look up when walks are listed.
		fan, place := b.gather(degree, via), b.gather(first, via)
		rarity := b.gather(b.floats("rarity", graph.TwoStepRarity(MaxPipelineNodes), MaxPipelineNodes+1), fan)

		rows := b.binary("Div", b.binary("Add", s.nodes, b.int64Const(NearestBlocks-1)), b.int64Const(NearestBlocks))
		rows = b.binary("Max", rows, one)
		count := b.binary("Min", b.int64s(int64(k)), s.nodes)
		for i := range int64(NearestBlocks) {
			b.in(fmt.Sprintf("block%d", i), func() {
				lo := b.binary("Mul", rows, b.int64s(i))
				part := func(starts tensor) (from, to tensor) {
					bound := func(v tensor) tensor { return b.gather(starts, b.binary("Min", v, s.nodes)) }
					return bound(lo), bound(b.binary("Mul", rows, b.int64s(i+1)))
				}
				from, to := part(begin)
				of := func(t tensor) tensor { return slice(t, from, to) }
				// And one walk more, which counts nothing.
				more := func(t tensor, v int64) tensor { return b.concat(0, t, b.int64s(v)) }
				fan, row, place := more(of(fan), 1), more(b.binary("Sub", of(end), lo), 0), more(of(place), 0)
				rarity := b.concat(0, of(rarity), b.floats("const", []float32{0}, 1))
				starts := b.cumSum(fan, true)
				sum := b.reduceOp("ReduceSum", fan, []int64{0}, true, fixed(1))
				marks := b.filledInt(b.binary("Add", sum, one), 0, unknown)
				marks = b.scatterAdd(marks, starts, b.filledInt(b.sizeOf(starts, 0), 1, unknown))
				walk := slice(b.binary("Sub", b.cumSum(marks, false), one), b.int64s(0), sum)
				step := b.binary("Sub", b.span(b.squeeze(sum, 0)), b.gather(starts, walk))
				node := b.gather(src, b.binary("Add", b.gather(place, walk), step))
				cell := b.binary("Add", b.binary("Mul", b.gather(row, walk), s.nodes), node)

				// Neighbours, and the node itself, are none.
				from, to = part(first)
				near := b.binary("Add", b.binary("Mul", b.binary("Sub", of(dst), lo), s.nodes), of(src))
				each := b.span(b.squeeze(rows, 0))
				own := b.binary("Min", b.binary("Add", b.binary("Mul", each, s.nodes), b.binary("Add", each, lo)),
					b.binary("Sub", b.binary("Mul", rows, s.nodes), one)) // of rows behind the last node any
				grid := b.filledFloat(b.binary("Mul", rows, s.nodes), 0, unknown)
				none := func(t tensor) tensor { return b.filledFloat(b.sizeOf(t, 0), -1<<20, unknown) }
				grid = b.scatterAdd(grid, b.concat(0, cell, near, own), b.concat(0, b.gather(rarity, walk), none(near), none(own)))
				dims := []dim{unknown, unknown}
				top := b.multi("TopK", []tensor{{dtype: float32Type, dims: dims}, {dtype: Int64Type, dims: dims}},
					[]tensor{b.reshape(grid, b.concat(0, rows, s.nodes), dims...), count}, intAttr("axis", 1), intAttr("largest", 1), intAttr("sorted", 1))
				found = append(found, b.op("Where", Int64Type, dims, []tensor{b.compare("Less", b.floatConst(0), top[0]), top[1], b.int64Const(-1)}))
			})
		}
		all := b.concat(0, found...)
		index := b.unsqueeze(b.span(b.squeeze(b.sizeOf(all, 0), 0)), 1)
		flat := func(t tensor) tensor { return b.reshape(t, b.int64s(-1), unknown) }
		some := b.nonZero(flat(b.compare("Less", b.int64Const(-1), all)))
		from = b.gather(flat(b.op("Expand", Int64Type, all.dims, []tensor{index, b.op("Shape", Int64Type, []dim{fixed(2)}, []tensor{all})})), some)
		to = b.rename(b.gather(flat(all), some), "two_step/node", "nodes two steps away")
	})
	return from, to
}
