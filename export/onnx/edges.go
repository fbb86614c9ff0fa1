package onnx

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
)

// Lowering is the way in which message passing is written.
type Lowering string

const (
	// DegreeBuckets sorts the edges by target inside the model and sums nodes of like
	// degree together: gathers and row sums only, no scatter of features, the
	// same sums for any number of threads.
	DegreeBuckets Lowering = "degree-buckets"
	// PrecomputedBuckets is DegreeBuckets with the tables as inputs, which the host
	// builds once for a graph ([BuildTables]).
	PrecomputedBuckets Lowering = "precomputed-buckets"
	// Scatter is one ScatterElements over a flattened index: fewer nodes, several
	// times slower.
	Scatter Lowering = "scatter"
	// Dense multiplies with an adjacency matrix that replaces edge_index: for
	// small graphs, and for runtimes without gather and scatter.
	Dense Lowering = "dense"
	// Auto takes Scatter where few numbers travel along edges in the sample given (at
	// most 2^18, over all layers), and DegreeBuckets elsewhere. export.Build resolves it;
	// what is written says which it was.
	Auto Lowering = "auto"
)

// filed are the words for lowerings in manifests and in models' metadata: those of
// earlier versions, which read no others.
var filed = map[Lowering]string{DegreeBuckets: "buckets", PrecomputedBuckets: "host-buckets", Scatter: "flat"}

// Filed returns the word for the lowering in files.
func (l Lowering) Filed() string {
	if word, ok := filed[l]; ok {
		return word
	}
	return string(l)
}

// MarshalText writes the lowering as files have it.
func (l Lowering) MarshalText() ([]byte, error) { return []byte(l.Filed()), nil }

// UnmarshalText reads either word. One that is unknown stays as it is.
func (l *Lowering) UnmarshalText(text []byte) error {
	*l = Lowering(text)
	if known, err := ParseLowering(string(text)); err == nil {
		*l = known
	}
	return nil
}

// ParseLowering reads a lowering's name, or that of an earlier version: buckets,
// host-buckets and flat. The empty string is DegreeBuckets.
func ParseLowering(s string) (Lowering, error) {
	switch l := Lowering(s); l {
	case "":
		return DegreeBuckets, nil
	case Auto, DegreeBuckets, PrecomputedBuckets, Scatter, Dense:
		return l, nil
	}
	for l, word := range filed {
		if s == word {
			return l, nil
		}
	}
	return "", fmt.Errorf("unknown lowering %q: choose auto, degree-buckets, precomputed-buckets, scatter or dense", s)
}

// aggregation sums over the edges of one graph. An edge goes from a source to a
// target; weight (nil for ones) has one element an edge, in the order in which
// edges() lists them.
type aggregation interface {
	// sum returns [N,F]: Σ over edges e into i of w_e·h_src(e).
	sum(h tensor, weight *tensor) tensor
	// degree returns how many edges enter each node (with weight: the sum of
	// their weights), [N,1] as float32.
	degree(weight *tensor) tensor
	// total returns [N,F]: Σ over edges e into i of m_e, m [E',F].
	total(m tensor) tensor
	// largest returns [N,F]: the maxima over edges into i of m_e, m [E',F]; the
	// lowest number where there is no edge.
	largest(m tensor) tensor
}

// edgeList is the graph as the model reads it: all edges in the order given,
// duplicates too. Self-loops do not count: they enter a node that there is not.
type edgeList struct {
	b        *builder
	src, dst tensor // int64 [E]
	into     tensor // targets, N for self-loops: where an edge counts
	loop     tensor // tells self-loops, bool [E]; no name where there are none
	nodes    tensor // int64 [1]: N, of the targets
	sources  tensor // int64 [1]: rows that sources are numbers of; N but for batches
	nodeDim  dim
	// entry is where an edge of edge_index is in the list, its length for self-loops,
	// int64 [num_edges]; no name where all of edge_index is listed in its order.
	entry tensor
	// lower and upper are the ends of the edges of a list that has them in both directions, first all
	// in one; no names where a list is another.
	lower, upper tensor
}

// newEdgeList reads edge_index [2,E] (row 0 sources, row 1 targets).
func newEdgeList(b *builder, edgeIndex, nodes tensor, nodeDim dim) *edgeList {
	l := &edgeList{b: b, nodes: nodes, sources: nodes, nodeDim: nodeDim}
	b.in("edges", func() {
		l.nodes = l.guarded(edgeIndex)
		l.sources = l.nodes
		// Which row is which comes by way of the guard, so that whatever reads an end
		// of an edge waits for it, and nothing can leave it out.
		first := b.squeeze(b.binary("Mul", l.nodes, b.int64Const(0)), 0)
		row := func(i tensor, name, doc string) tensor {
			return b.rename(b.op("Gather", Int64Type, edgeIndex.dims[1:], []tensor{edgeIndex, i}, intAttr("axis", 0)), name, doc)
		}
		l.src = row(first, "edges/source", "sources of the edges")
		l.dst = row(b.binary("Add", first, b.int64Const(1)), "edges/target", "targets of the edges")
		l.loop = b.compare("Equal", l.src, l.dst)
		l.into = l.counted(l.dst)
	})
	return l
}

// guarded returns the number of nodes, by way of a Gather that fails where an edge
// ends outside of them: what reads node numbers later would not, or would read
// negative ones from the end.
func (l *edgeList) guarded(edgeIndex tensor) tensor {
	b := l.b
	ends := b.concat(0, b.reshape(edgeIndex, b.int64s(-1), unknown), b.int64s(0))
	low := b.reduceOp("ReduceMin", ends, []int64{0}, true, fixed(1))
	high := b.reduceOp("ReduceMax", ends, []int64{0}, true, fixed(1))
	far := b.op("Where", Int64Type, []dim{fixed(1)}, []tensor{b.compare("Less", low, b.int64Const(0)), b.binary("Add", l.nodes, b.int64Const(1)), high})
	all := b.span(b.squeeze(b.binary("Max", l.nodes, b.int64s(1)), 0))
	found := b.op("Gather", Int64Type, []dim{fixed(1)}, []tensor{all, far}, intAttr("axis", 0))
	found = b.rename(found, "edge_index_is_within_the_nodes", "fails where edge_index holds a number that no node has")
	return b.op("Where", Int64Type, []dim{fixed(1)}, []tensor{b.compare("Less", found, b.int64Const(0)), found, l.nodes})
}

// counted returns ends of edges with N in place of those of self-loops.
func (l *edgeList) counted(ends tensor) tensor {
	if l.loop.name == "" {
		return ends
	}
	return l.b.op("Where", Int64Type, ends.dims, []tensor{l.loop, l.nodes, ends})
}

// loopWeights returns the weights [num_nodes] that self-loops of nodes have, -1 where there is
// none.
func (l *edgeList) loopWeights(weight tensor) (t tensor) {
	b := l.b
	b.in("edges", func() {
		at := b.op("Where", Int64Type, l.src.dims, []tensor{l.loop, l.src, l.nodes})
		none := b.filledFloat(b.binary("Add", l.nodes, b.int64Const(1)), -1, unknown)
		t = b.op("ScatterElements", float32Type, []dim{unknown}, []tensor{none, at, weight}, intAttr("axis", 0))
		t = b.rename(l.firstNodes(t), "edges/self_loops", "weight of each node's self-loop in edge_index, -1 where it has none")
	})
	return t
}

// keep returns the rows of values of edges without those of self-loops, which must
// not count where edges are brought together regardless of their ends.
func (l *edgeList) keep(t tensor) tensor {
	if l.loop.name == "" {
		return t
	}
	return l.b.gather(t, l.b.nonZero(l.b.op("Not", boolType, l.loop.dims, []tensor{l.loop})))
}

// reversed returns the graph with every edge turned around.
func (l *edgeList) reversed() *edgeList {
	r := *l
	r.src, r.dst = l.dst, l.src
	r.nodes, r.sources = l.sources, l.nodes
	l.b.in("reversed", func() { r.into = l.counted(l.src) })
	return &r
}

// scatterSum is the lowering Scatter.
type scatterSum struct {
	*edgeList
	index map[int]tensor // by width: target·F + column for every message element
	// sorted has the largest of messages, which operator set 17 cannot scatter;
	// made when first used.
	sorted *bucketSum
}

func newScatter(l *edgeList) *scatterSum { return &scatterSum{edgeList: l, index: map[int]tensor{}} }

func (f *scatterSum) sum(h tensor, weight *tensor) tensor {
	messages := f.b.gather(h, f.src)
	if weight != nil {
		messages = f.b.binary("Mul", messages, f.b.unsqueeze(*weight, 1))
	}
	return f.total(messages)
}

func (f *scatterSum) total(messages tensor) tensor {
	b, width := f.b, messages.width()
	index, ok := f.index[width]
	if !ok {
		start := b.binary("Mul", b.unsqueeze(f.into, 1), b.int64Const(int64(width)))
		index = b.reshape(b.binary("Add", start, b.ints("const", upTo(width), 1, width)), b.int64s(-1), unknown)
		f.index[width] = index
	}
	// One row more, which self-loops go to.
	size := b.binary("Mul", b.binary("Add", f.nodes, b.int64Const(1)), b.int64Const(int64(width)))
	sums := b.scatterAdd(b.filledFloat(size, 0, unknown), index, b.reshape(messages, b.int64s(-1), unknown))
	return f.firstNodes(b.reshape(sums, b.int64s(-1, int64(width)), unknown, fixed(width)))
}

func (f *scatterSum) largest(m tensor) tensor {
	if f.sorted == nil {
		f.sorted = newBuckets(f.edgeList)
	}
	return f.sorted.largest(m)
}

func (f *scatterSum) degree(weight *tensor) tensor {
	if weight == nil {
		return countDegree(f.edgeList)
	}
	return f.sum(f.b.filledFloat(f.b.concat(0, f.sources, f.b.int64s(1)), 1, f.nodeDim, fixed(1)), weight)
}

// firstNodes leaves the last row out.
func (l *edgeList) firstNodes(t tensor) tensor {
	dims := append([]dim{l.nodeDim}, t.dims[1:]...)
	return l.b.op("Slice", t.dtype, dims, []tensor{t, l.b.int64s(0), l.nodes, l.b.int64s(0)})
}

// countDegree counts the edges into each node exactly, as float32 [N,1].
func countDegree(l *edgeList) tensor {
	b := l.b
	size := b.binary("Add", l.nodes, b.int64Const(1))
	counts := b.scatterAdd(b.filledInt(size, 0, unknown), l.into, b.filledInt(b.sizeOf(l.into, 0), 1, l.into.dims...))
	return b.unsqueeze(b.cast(l.firstNodes(counts), onnxpb.TensorProto_FLOAT), 1)
}

// denseSum is the lowering Dense: the adjacency matrix holds the weights, entry
// (i, j) the sum over edges from j to i, and no self-loops.
type denseSum struct {
	b         *builder
	adjacency tensor
	ones      tensor // [N,1]
}

func (d *denseSum) sum(h tensor, _ *tensor) tensor { return d.b.matmul(d.adjacency, h) }

// An adjacency matrix has no single edges, and nothing in its form asks for them.
func (d *denseSum) total(tensor) tensor   { panic("export: the dense form has no single edges") }
func (d *denseSum) largest(tensor) tensor { panic("export: the dense form has no single edges") }

func (d *denseSum) degree(weight *tensor) tensor { return d.sum(d.ones, weight) }
