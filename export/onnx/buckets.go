package onnx

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/lists"
)

// bucketSum is the lowering DegreeBuckets: sums over rows of like width. The tables are
// built once, or are inputs, and serve every layer.
//
// Rows of few entries are summed entry by entry. Wider ones are summed by products
// with a row of weights or ones, which take time for each row, however narrow:
// onnxruntime's ReduceSum is no faster, and adds up in another order for another
// number of threads.
type bucketSum struct {
	*edgeList
	tables
	at       []tensor            // positions of edges by class, int64 [R,C]; E where filled up
	source   []tensor            // their sources, one above the last where filled up
	segment  []tensor            // by class, [R,C]
	weighted map[string][]tensor // by name of the weights, [R,1,C]
	ones     map[string]tensor   // by name of a table of rows, [R,1,C]
	entries  map[string][]tensor // by name of a table of rows: its columns, [R,1]
}

// newBuckets builds the tables inside the model.
func newBuckets(l *edgeList) *bucketSum {
	return bucketsOver(l, func() tables { return buildTables(l) })
}

// newPrecomputedBuckets reads the tables from the model's inputs.
func newPrecomputedBuckets(l *edgeList, docs map[string]string) *bucketSum {
	return bucketsOver(l, func() tables { return tableInputs(l, docs) })
}

func bucketsOver(l *edgeList, make func() tables) *bucketSum {
	s := &bucketSum{edgeList: l, weighted: map[string][]tensor{}, ones: map[string]tensor{}, entries: map[string][]tensor{}}
	l.b.in("tables", func() {
		s.tables = make()
		s.segment = s.split(s.segments, s.segmentRows, segmentWidths)
	})
	return s
}

// edgeTables returns positions of edges by class, [R,C].
func (s *bucketSum) edgeTables() []tensor {
	if s.at == nil {
		s.b.in("tables", func() { s.at = s.split(s.order, s.orderRows, s.widths) })
	}
	return s.at
}

// split cuts entries of all classes into the rows of each, [R,C].
func (s *bucketSum) split(entries, rows tensor, widths []int) []tensor {
	b := s.b
	parts := slices.Repeat([]tensor{{dtype: entries.dtype, dims: []dim{unknown}}}, len(widths))
	parts = b.multi("Split", parts, []tensor{entries, b.binary("Mul", rows, b.widths(widths))}, intAttr("axis", 0))
	for i, w := range widths {
		parts[i] = b.reshape(parts[i], b.int64s(-1, int64(w)), unknown, fixed(w))
	}
	return parts
}

// sourceTables returns the sources of the edges in the form of edgeTables.
func (s *bucketSum) sourceTables() []tensor {
	if s.source == nil {
		s.b.in("tables", func() {
			s.source = s.split(s.b.gather(s.b.concat(0, s.src, s.sources), s.order), s.orderRows, s.widths)
		})
	}
	return s.source
}

// weightTables returns weights of edges in the form of the rows, [R,1,C], made once for
// each vector of weights.
func (s *bucketSum) weightTables(weight tensor) []tensor {
	if t, ok := s.weighted[weight.name]; ok {
		return t
	}
	var ts []tensor
	s.b.in("weights", func() {
		ts = s.split(s.b.gather(s.b.concat(0, weight, s.b.floats("const", []float32{0}, 1)), s.order), s.orderRows, s.widths)
		for i := range ts {
			ts[i] = s.b.unsqueeze(ts[i], 1)
		}
	})
	s.weighted[weight.name] = ts
	return ts
}

func (s *bucketSum) sum(h tensor, weight *tensor) tensor {
	first := func(_ int, h, index tensor) tensor { return s.add(h, index) }
	if weight != nil {
		weights := s.weightTables(*weight)
		first = func(class int, h, index tensor) tensor {
			rows := s.b.gather(h, index)
			if rows.dims[1].isOne() {
				return s.b.binary("Mul", rows, weights[class])
			}
			return s.b.matmul(weights[class], rows)
		}
	}
	return s.reduce(h, s.sourceTables(), 0, 0, first, s.add)
}

func (s *bucketSum) total(m tensor) tensor {
	return s.reduce(m, s.edgeTables(), 0, 0, func(_ int, m, index tensor) tensor { return s.add(m, index) }, s.add)
}

func (s *bucketSum) largest(m tensor) tensor {
	return s.reduce(m, s.edgeTables(), -math.MaxFloat32, -math.MaxFloat32, func(_ int, m, index tensor) tensor { return s.top(m, index) }, s.top)
}

// max returns the largest of the rows of h, column by column, over the entries
// into each target; 0 where there are none.
func (s *bucketSum) max(h tensor) tensor {
	return s.reduce(h, s.sourceTables(), float32(math.Inf(-1)), 0, func(_ int, h, index tensor) tensor { return s.top(h, index) }, s.top)
}

// entryByEntry tells which rows are summed so: the bounds are where that is faster
// than a product, in onnxruntime on rows of 2708 and 7600 nodes.
func entryByEntry(entries int64, width int) bool {
	return entries <= 4 || entries <= 8 && width <= 64
}

// add sums the rows of h [N,F] that a table [R,C] names, [R,1,F]. (onnxruntime
// refuses to spread a row of ones over no rows.)
func (s *bucketSum) add(h, index tensor) tensor {
	c := index.dims[1]
	if c.isOne() {
		return s.b.gather(h, index)
	}
	if c.isFixed() && entryByEntry(c.n, h.width()) {
		parts := lists.Map(s.columns(index), func(column tensor) tensor { return s.b.gather(h, column) })
		return s.b.op("Sum", h.dtype, parts[0].dims, parts)
	}
	rows := s.b.gather(h, index)
	ones, ok := s.ones[index.name]
	if !ok {
		shape := s.b.concat(0, s.b.sizeOf(index, 0), s.b.int64s(1), s.b.sizeOf(index, 1))
		ones = s.b.filledFloat(shape, 1, rows.dims[0], fixed(1), c)
		s.ones[index.name] = ones
	}
	return s.b.matmul(ones, rows)
}

// columns cuts a table [R,C] into columns [R,1].
func (s *bucketSum) columns(index tensor) []tensor {
	list, ok := s.entries[index.name]
	if !ok {
		c := int(index.dims[1].n)
		list = slices.Repeat([]tensor{{dtype: index.dtype, dims: []dim{index.dims[0], fixed(1)}}}, c)
		list = s.b.multi("Split", list, []tensor{index, s.b.ints("const", slices.Repeat([]int64{1}, c), c)}, intAttr("axis", 1))
		s.entries[index.name] = list
	}
	return list
}

// top is the largest of the rows of h that a table names, [R,1,F].
func (s *bucketSum) top(h, index tensor) tensor {
	rows := s.b.gather(h, index)
	if rows.dims[1].isOne() {
		return rows
	}
	return s.b.reduceOp("ReduceMax", rows, []int64{1}, true, rows.dims[0], fixed(1), rows.dims[2])
}

// reduce brings the rows of h that tables name together for each node: over rows
// of the narrow classes by first, and over those results by then. filler stands
// where a row is filled up, none is the result of nodes without edges.
func (s *bucketSum) reduce(h tensor, index []tensor, filler, none float32, first func(class int, h, index tensor) tensor, then func(h, index tensor) tensor) tensor {
	b, width := s.b, h.width()
	row := func(v float32, dims ...int) tensor {
		return b.floats("const", slices.Repeat([]float32{v}, width), dims...)
	}
	padded := b.concat(0, h, row(filler, 1, width))
	var parts []tensor
	for i, w := range s.widths {
		b.in(rowName(w), func() { parts = append(parts, first(i, padded, index[i])) })
	}
	above := func(t tensor) tensor { return b.concat(0, b.squeeze(t, 1), row(filler, 1, width)) }
	wide := above(parts[len(parts)-1])
	parts = append(parts, row(none, 1, 1, width))
	for i, w := range segmentWidths {
		b.in(fmt.Sprintf("segments%d", w), func() { parts = append(parts, then(wide, s.segment[i])) })
	}
	b.in("rest", func() { parts = append(parts, then(above(parts[len(parts)-1]), s.rest)) })
	return b.squeeze(b.gather(b.concat(0, parts...), s.restore), 1)
}

func (s *bucketSum) degree(weight *tensor) tensor {
	b := s.b
	if weight == nil {
		return b.unsqueeze(b.cast(s.count, float32Type), 1)
	}
	return s.sum(b.filledFloat(b.concat(0, s.edgeList.sources, b.int64s(1)), 1, unknown, fixed(1)), weight)
}
