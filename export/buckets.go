package export

import (
	"fmt"
	"math"
	"slices"
)

// Buckets have the capacities 1, 2, 4, … 2^maxBucket; one more takes whatever
// is above. Rows longer than chunk are summed in two steps, so that a hub's sum
// uses all threads and loses no precision.
const (
	maxBucket = 20
	chunk     = 1024
)

// bucketSum is the lowering Buckets. Edges are sorted by target; a node of
// degree d goes into the bucket of the next power of two, and a bucket is a
// matrix of positions in the sorted edges, padded with a position that leads to
// a row of zeros. The tables are built once and serve every layer.
//
// Rows are summed by products with a row of weights or ones: onnxruntime's
// ReduceSum is no faster, and adds up in another order for another number of
// threads.
type bucketSum struct {
	*edgeList
	count    tensor // edges into each node, int64 [N]
	order    tensor // positions of the edges sorted by target, int64 [E']
	buckets  []bucket
	restore  tensor // for each node its row among the buckets' rows, int64 [N]
	weighted map[string][]tensor
}

type bucket struct {
	name   string
	single bool   // capacity 1: no sum needed
	rows   tensor // nodes, int64 [R]
	at     tensor // positions in the sorted edges, int64 [R], [R,C] or chunked [R·C/chunk, chunk]
	source tensor // source nodes, in the shape of at
	ones   tensor // [R,1,C] or [R·C/chunk,1,chunk]
	// Chunks a row, int64 [1], and ones [R,1,chunks]; no names where rows are not chunked.
	chunks, chunkOnes tensor
}

func newBuckets(l *edgeList) *bucketSum {
	s := &bucketSum{edgeList: l, weighted: map[string][]tensor{}}
	l.b.in("buckets", s.build)
	return s
}

func (s *bucketSum) build() {
	b := s.b
	s.count = b.rename(countEdges(s.edgeList), "buckets/degree", "number of edges into each node, without self-loops")
	sorted := b.multi("TopK", []tensor{{dtype: int64Type, dims: s.dst.dims}, {dtype: int64Type, dims: s.dst.dims}},
		[]tensor{s.dst, b.sizeOf(s.dst, 0)}, intAttr("axis", 0), intAttr("largest", 0), intAttr("sorted", 1))
	s.order = sorted[1]
	first := b.op("CumSum", int64Type, s.count.dims, []tensor{s.count, b.int64Const(0)}, intAttr("exclusive", 1))
	// Position E' is the padding; its source, one above the last, is the row of
	// zeros.
	padding := b.sizeOf(s.dst, 0)
	sources := b.concat(0, b.gather(s.src, s.order), s.sources)
	// 0, 1, … up to the largest degree, in whole chunks: no bucket needs more
	// columns than that, whatever its capacity.
	largest := b.op("ReduceMax", int64Type, []dim{fixed(1)}, []tensor{b.concat(0, s.count, b.int64s(1))}, intAttr("keepdims", 1), intsAttr("axes", 0))
	up := b.binary("Div", b.binary("Add", largest, b.int64Const(chunk-1)), b.int64Const(chunk))
	columns := b.unsqueeze(b.span(b.squeeze(b.binary("Mul", up, b.int64Const(chunk)), 0)), 0)

	var rows []tensor
	for i := range maxBucket + 2 {
		var k bucket
		low, high := int64(1)<<i>>1, int64(1)<<i
		k.name = fmt.Sprintf("upto%d", high)
		if i == maxBucket+1 {
			high = math.MaxInt64
			k.name = "rest"
		}
		b.in(k.name, func() {
			in := b.compare("LessOrEqual", s.count, b.int64Const(high))
			in = b.op("And", boolType, in.dims, []tensor{b.compare("Greater", s.count, b.int64Const(low)), in})
			k.rows = b.nonZero(in)
			row := k.rows.dims[0]
			start := b.unsqueeze(b.gather(first, k.rows), 1)
			if high == 1 {
				k.single = true
				k.at = b.squeeze(start, 1)
				k.source = b.gather(sources, k.at)
				return
			}
			width := unknown
			if high <= chunk {
				width = fixed(int(high))
			}
			column := b.op("Slice", int64Type, []dim{fixed(1), width}, []tensor{columns, b.int64s(0), b.int64s(high), b.int64s(1)})
			real := b.compare("Less", column, b.unsqueeze(b.gather(s.count, k.rows), 1))
			k.at = b.op("Where", int64Type, []dim{row, width}, []tensor{real, b.binary("Add", start, column), padding})
			if high > chunk {
				k.at = b.reshape(k.at, b.int64s(-1, chunk), unknown, fixed(chunk))
				k.chunks = b.binary("Div", b.sizeOf(column, 1), b.int64Const(chunk))
				k.chunkOnes = b.filledFloat(b.concat(0, b.sizeOf(k.rows, 0), b.int64s(1), k.chunks), 1, row, fixed(1), unknown)
				width = fixed(chunk)
			}
			k.source = b.gather(sources, k.at)
			k.ones = b.filledFloat(b.concat(0, b.sizeOf(k.source, 0), b.int64s(1, int64(width.n))), 1, k.source.dims[0], fixed(1), width)
		})
		s.buckets = append(s.buckets, k)
		rows = append(rows, k.rows)
	}
	all := b.concat(0, rows...)
	used := b.sizeOf(all, 0)
	// Nodes without edges read the row of zeros behind the last bucket.
	none := b.op("Expand", int64Type, []dim{s.nodeDim}, []tensor{used, s.nodes})
	s.restore = b.op("ScatterElements", int64Type, []dim{s.nodeDim}, []tensor{none, all, b.span(b.squeeze(used, 0))}, intAttr("axis", 0))
	s.restore = b.rename(s.restore, "buckets/restore", "row of each node in the buckets one after the other")
}

// tables returns the weights laid out as the buckets are, made once for each
// vector of weights: [R,1] for single edges, else [R,1,C] or [R·C/chunk,1,chunk].
func (s *bucketSum) tables(weight tensor) []tensor {
	if t, ok := s.weighted[weight.name]; ok {
		return t
	}
	b := s.b
	var ts []tensor
	b.in("weights", func() {
		sorted := b.concat(0, b.gather(weight, s.order), b.floats("const", []float32{0}, 1))
		for _, k := range s.buckets {
			ts = append(ts, b.unsqueeze(b.gather(sorted, k.at), 1))
		}
	})
	s.weighted[weight.name] = ts
	return ts
}

func (s *bucketSum) sum(h tensor, weight *tensor) (tensor, error) {
	b, width := s.b, h.width()
	var tables []tensor
	if weight != nil {
		tables = s.tables(*weight)
	}
	padded := b.concat(0, h, b.floats("const", make([]float32, width), 1, width))
	return s.rows(width, 0, func(i int, k bucket) tensor {
		part := b.gather(padded, k.source)
		switch {
		case k.single && weight != nil:
			return b.binary("Mul", part, tables[i])
		case k.single:
			return part
		case weight != nil:
			return s.chunked(k, b.squeeze(b.matmul(tables[i], part), 1), s.addChunks)
		}
		return s.chunked(k, b.squeeze(b.matmul(k.ones, part), 1), s.addChunks)
	}), nil
}

func (s *bucketSum) total(m tensor) tensor {
	sorted := s.sorted(m, 0)
	return s.rows(m.width(), 0, func(_ int, k bucket) tensor {
		part := s.b.gather(sorted, k.at)
		if k.single {
			return part
		}
		return s.chunked(k, s.b.squeeze(s.b.matmul(k.ones, part), 1), s.addChunks)
	})
}

func (s *bucketSum) largest(m tensor) tensor {
	sorted := s.sorted(m, -math.MaxFloat32)
	reduce := func(_ bucket, x tensor) tensor {
		return s.b.op("ReduceMax", x.dtype, []dim{x.dims[0], x.dims[2]}, []tensor{x}, intsAttr("axes", 1), intAttr("keepdims", 0))
	}
	return s.rows(m.width(), -math.MaxFloat32, func(_ int, k bucket) tensor {
		part := s.b.gather(sorted, k.at)
		if k.single {
			return part
		}
		return s.chunked(k, reduce(k, part), reduce)
	})
}

// sorted returns a row of every edge in the order of the targets, and one more
// that the padding leads to.
func (s *bucketSum) sorted(m tensor, padding float32) tensor {
	return s.b.concat(0, s.b.gather(m, s.order), s.b.floats("const", slices.Repeat([]float32{padding}, m.width()), 1, m.width()))
}

// chunked brings the results of a bucket's chunks, [R·chunks,F], together.
func (s *bucketSum) chunked(k bucket, parts tensor, together func(bucket, tensor) tensor) tensor {
	if k.chunks.name == "" {
		return parts
	}
	shape := s.b.concat(0, s.b.int64s(-1), k.chunks, s.b.int64s(int64(parts.width())))
	return together(k, s.b.reshape(parts, shape, unknown, unknown, fixed(parts.width())))
}

func (s *bucketSum) addChunks(k bucket, x tensor) tensor {
	return s.b.squeeze(s.b.matmul(k.chunkOnes, x), 1)
}

// rows returns a row for each node from the rows of its bucket, and one of a
// number for nodes without edges.
func (s *bucketSum) rows(width int, none float32, of func(i int, k bucket) tensor) tensor {
	var parts []tensor
	for i, k := range s.buckets {
		s.b.in(k.name, func() { parts = append(parts, of(i, k)) })
	}
	parts = append(parts, s.b.floats("const", slices.Repeat([]float32{none}, width), 1, width))
	return s.b.gather(s.b.concat(0, parts...), s.restore)
}

func (s *bucketSum) degree(weight *tensor) (tensor, error) {
	b := s.b
	if weight == nil {
		return b.unsqueeze(b.cast(s.count, float32Type), 1), nil
	}
	return s.sum(b.filledFloat(b.concat(0, s.sources, b.int64s(1)), 1, unknown, fixed(1)), weight)
}
