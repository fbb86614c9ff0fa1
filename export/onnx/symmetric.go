package onnx

import (
	"errors"
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Models expect both directions of an undirected edge, each once, which is what PyG's
// data sets have and what data from elsewhere have not. With ModelOptions.Symmetrize
// the file makes it so, as the loader of package data does (graph.Build).

var ErrDenseSymmetric = errors.New("the dense lowering takes an adjacency matrix, which the caller makes symmetric; the edges of edge_index can be made so with degree-buckets, precomputed-buckets and scatter")

// Symmetrize returns the undirected graph of edge_index, int64 [2,E], as a model with
// that option makes it: every edge in both directions, once, in the order of its
// target and then of its source; self-loops are dropped. weight, float32 [E], may be
// nil; of an edge that is listed more than once, in either direction, the first
// weight counts. The tables of [PrecomputedBuckets] are those of the result.
func Symmetrize(nodes int, edgeIndex ort.Tensor, weight *ort.Tensor) (ort.Tensor, *ort.Tensor, error) {
	if err := CheckIndices(InputEdgeIndex, edgeIndex, int64(nodes)); err != nil {
		return ort.Tensor{}, nil, err
	}
	if err := CheckWeights(edgeIndex, weight); err != nil {
		return ort.Tensor{}, nil, err
	}
	e := int(edgeIndex.Shape[1])
	src, dst := make([]int32, e), make([]int32, e)
	for i := range e {
		src[i], dst[i] = int32(edgeIndex.I64[i]), int32(edgeIndex.I64[e+i])
	}
	var w []float32
	if weight != nil {
		w = weight.F32
	}
	g, _, err := graph.Build(nodes, src, dst, w, false)
	if err != nil {
		return ort.Tensor{}, nil, fmt.Errorf("edge_index: %w", err)
	}
	st := g.Structure()
	from, to := st.EdgeIndex()
	index := ort.Int64s(append(from, to...), 2, int64(st.E))
	if weight == nil {
		return index, nil, nil
	}
	return index, new(ort.Float32s(st.Spread(nil, g.Weights), int64(st.E))), nil
}

// symmetric writes Symmetrize: a list of edges and their weights, nil for ones.
func (l *edgeList) symmetric(weight *tensor) (*edgeList, *tensor) {
	b := l.b
	s := &edgeList{b: b, nodes: l.nodes, sources: l.sources, nodeDim: l.nodeDim}
	b.in("symmetrize", func() {
		// Edges become numbers that sort by target and source, each entry that of its
		// edge and of the reverse; self-loops come behind everything.
		last := b.binary("Mul", l.nodes, l.nodes)
		code := func(target, source tensor) tensor {
			n := b.binary("Add", b.binary("Mul", target, l.nodes), source)
			return b.unsqueeze(b.op("Where", Int64Type, n.dims, []tensor{l.loop, last, n}), 1)
		}
		list := []dim{unknown}
		// Side by side, so that of equal ones the first listed comes first.
		all := b.reshape(b.concat(1, code(l.dst, l.src), code(l.src, l.dst)), b.int64s(-1), unknown)
		size := b.sizeOf(all, 0)
		sorted := b.ascending(all, size)
		before := b.op("Slice", Int64Type, list, []tensor{b.concat(0, b.int64s(-1), sorted[0]), b.int64s(0), size, b.int64s(0)})
		first := b.op("Not", boolType, list, []tensor{b.compare("Equal", sorted[0], before)})
		real := b.compare("Less", sorted[0], last)
		kept := b.op("And", boolType, list, []tensor{first, real})
		at := b.nonZero(kept)
		count := b.cumSum(b.cast(kept, Int64Type), false)
		place := b.op("Where", Int64Type, list, []tensor{real, b.binary("Sub", count, b.int64Const(1)), count})
		place = b.op("ScatterElements", Int64Type, list, []tensor{b.filledInt(size, 0, unknown), sorted[1], place}, intAttr("axis", 0))
		s.entry = b.op("Slice", Int64Type, list, []tensor{place, b.int64s(0), size, b.int64s(0), b.int64s(2)})
		edge := b.gather(sorted[0], at)
		s.dst = b.rename(b.binary("Div", edge, l.nodes), "symmetric/target", "targets of the edges in both directions, each once")
		s.src = b.rename(b.binary("Sub", edge, b.binary("Mul", s.dst, l.nodes)), "symmetric/source", "sources of the edges in both directions, each once")
		s.into = s.dst
		if weight != nil {
			entry := b.binary("Div", b.gather(sorted[1], at), b.int64Const(2))
			weight = new(b.rename(b.gather(*weight, entry), "symmetric/weight", "weights of the edges in both directions"))
		}
	})
	return s, weight
}
