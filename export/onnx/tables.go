package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Tables are the inputs that the lowering [PrecomputedBuckets] has beside those of
// [DegreeBuckets]: how the edges of one graph are summed, all int64. They depend on
// edge_index alone, so they are built once for a graph and serve every call.
//
// The rows of a class are as wide as its name says; they hold positions in
// edge_index, and E where they are filled up. A node with d entering edges, not
// counting self-loops, has one row of the narrowest class of 1, 2, 4, … 64 that d
// fits in; above 64 it is a hub and has ⌈d/64⌉ rows of 64. The rows of a hub are
// summed by a row of segments, of the narrowest of 4, 16 and 64 that they fit in;
// above 64 rows by ⌈rows/64⌉ rows of 64, which one row of rest sums. Within a class
// the rows stand in the order of their nodes, and within a node edges in theirs.
type Tables struct {
	Degree      []int64 // entering edges of each node, [N]
	Order       []int64 // rows of 1, then of 2, … then of 64, one after another, [P]
	OrderRows   []int64 // number of rows of each class, [7]
	Segments    []int64 // rows of 4, of 16, of 64: numbers of rows of 64 of Order, their count where filled up, [Q]
	SegmentRows []int64 // number of rows of each class, [3]
	Rest        []int64 // rows of RestWidth: numbers of rows of 64 of Segments, their count where filled up
	RestWidth   int     // at least 1
	// Restore is where the sum of each node stands among all rows: those of Order, a
	// row of zeros (for nodes without edges), those of Segments, those of Rest. [N]
	Restore []int64
}

// BuildTables builds the tables of a graph of that many nodes, edge_index int64
// [2,E], in O(N + E) steps. The same function exists for other languages in
// tools/conformance/engines/buckets. It refuses node numbers out of range.
func BuildTables(nodes int, edgeIndex ort.Tensor) (*Tables, error) {
	if err := CheckIndices(InputEdgeIndex, edgeIndex, int64(nodes)); err != nil {
		return nil, err
	}
	e := int(edgeIndex.Shape[1])
	src, dst := edgeIndex.I64[:e], edgeIndex.I64[e:]
	t := &Tables{Degree: make([]int64, nodes), RestWidth: 1}
	for i, v := range dst {
		if src[i] != v {
			t.Degree[v]++
		}
	}
	all := rowsOf(t.Degree, rowWidths)
	t.OrderRows, t.Order = all.rows, slices.Repeat([]int64{int64(e)}, int(all.entries))
	next := all.start
	for i, v := range dst {
		if src[i] != v {
			t.Order[next[v]] = int64(i)
			next[v]++
		}
	}
	// What is left of each level's sums: the nodes, how many rows each has, and which
	// is the first of them within the widest class.
	level := func(of []int, counts []int64, r rowPlan) (hubs []int, pieces, first []int64) {
		for k, n := range counts {
			if n > widestRow {
				hubs = append(hubs, of[k])
				pieces = append(pieces, (n+widestRow-1)/widestRow)
				first = append(first, r.row[k]-r.widest)
			}
		}
		return hubs, pieces, first
	}
	zeros := sumOf(all.rows)
	t.Restore = make([]int64, nodes)
	for v, d := range t.Degree {
		if t.Restore[v] = all.row[v]; d == 0 {
			t.Restore[v] = zeros
		}
	}
	hubs, pieces, first := level(lists.Of(nodes, func(v int) int { return v }), t.Degree, all)
	second := rowsOf(pieces, segmentWidths)
	t.SegmentRows, t.Segments = second.rows, slices.Repeat([]int64{all.rows[len(rowWidths)-1]}, int(second.entries))
	for k, v := range hubs {
		for j := range pieces[k] {
			t.Segments[second.start[k]+j] = first[k] + j
		}
		t.Restore[v] = zeros + 1 + second.row[k]
	}
	huge, pieces2, first2 := level(hubs, pieces, second)
	for _, n := range pieces2 {
		t.RestWidth = max(t.RestWidth, int(n))
	}
	t.Rest = slices.Repeat([]int64{second.rows[len(segmentWidths)-1]}, len(huge)*t.RestWidth)
	for k, v := range huge {
		for j := range pieces2[k] {
			t.Rest[int64(k*t.RestWidth)+j] = first2[k] + j
		}
		t.Restore[v] = zeros + 1 + sumOf(second.rows) + int64(k)
	}
	return t, nil
}

// rowPlan says where the rows of items are.
type rowPlan struct {
	start   []int64 // first entry of each item
	row     []int64 // first row of each item, counted over all classes
	rows    []int64 // of each class
	entries int64   // in all
	widest  int64   // rows before the widest class
}

// rowsOf assigns items of the given counts to classes of rows.
func rowsOf(counts []int64, widths []int) rowPlan {
	p := rowPlan{start: make([]int64, len(counts)), row: make([]int64, len(counts)), rows: make([]int64, len(widths))}
	class := make([]int, len(counts))
	// needs is the number of rows that an item takes.
	needs := func(k int) int64 {
		w := int64(widths[class[k]])
		return (counts[k] + w - 1) / w
	}
	for k, n := range counts {
		for class[k] < len(widths)-1 && int64(widths[class[k]]) < n {
			class[k]++
		}
		p.rows[class[k]] += needs(k)
	}
	entry, row := make([]int64, len(widths)), make([]int64, len(widths)) // where each class goes on
	for c := range widths {
		if c == len(widths)-1 {
			p.widest = sumOf(p.rows[:c])
		}
		entry[c], row[c] = p.entries, sumOf(p.rows[:c])
		p.entries += p.rows[c] * int64(widths[c])
	}
	for k := range counts {
		c := class[k]
		p.start[k], p.row[k] = entry[c], row[c]
		entry[c] += needs(k) * int64(widths[c])
		row[c] += needs(k)
	}
	return p
}

func sumOf(list []int64) int64 {
	var sum int64
	for _, v := range list {
		sum += v
	}
	return sum
}

// The names of the tables as inputs.
const (
	InputDegree      = "table_degree"
	InputOrder       = "table_order"
	InputOrderRows   = "table_order_rows"
	InputSegments    = "table_segments"
	InputSegmentRows = "table_segment_rows"
	InputRest        = "table_rest"
	InputRestore     = "table_restore"
)

// Inputs returns the tables by the names of a model's inputs.
func (t *Tables) Inputs() map[string]ort.Tensor {
	vector := func(v []int64) ort.Tensor { return ort.Int64s(v, int64(len(v))) }
	return map[string]ort.Tensor{
		InputDegree: vector(t.Degree), InputOrder: vector(t.Order), InputOrderRows: vector(t.OrderRows),
		InputSegments: vector(t.Segments), InputSegmentRows: vector(t.SegmentRows),
		InputRest:    ort.Int64s(t.Rest, int64(len(t.Rest)/t.RestWidth), int64(t.RestWidth)),
		InputRestore: vector(t.Restore),
	}
}

// AddTables adds the tables of the graph among a model's inputs, or of the undirected
// graph that the model makes of it.
func AddTables(in map[string]ort.Tensor, nodes int, symmetric bool) error {
	index := in[InputEdgeIndex]
	if symmetric {
		var err error
		if index, _, err = Symmetrize(nodes, index, nil); err != nil {
			return err
		}
	}
	t, err := BuildTables(nodes, index)
	if err != nil {
		return err
	}
	maps.Copy(in, t.Inputs())
	return nil
}

// tableInputs declares the tables as inputs of the model, and has the file refuse those
// that name an edge or a row that there is not, or are of another number of nodes. What
// the parts of the tables say among themselves is not looked at: a Split fails where
// entries are not as many as their rows say.
func tableInputs(l *edgeList, docs map[string]string) tables {
	b := l.b
	vector := func(name string, d dim) tensor { return b.input(name, docs[name], Int64Type, d) }
	t := tables{
		widths:      rowWidths,
		count:       vector(InputDegree, named("num_nodes")),
		order:       vector(InputOrder, named("num_entries")),
		orderRows:   vector(InputOrderRows, fixed(len(rowWidths))),
		segments:    vector(InputSegments, named("num_segment_entries")),
		segmentRows: vector(InputSegmentRows, fixed(len(segmentWidths))),
		rest:        b.input(InputRest, docs[InputRest], Int64Type, named("num_rest"), named("rest_width")),
		restore:     vector(InputRestore, named("num_nodes")),
	}
	one := b.int64s(1)
	next := func(n tensor) tensor { return b.binary("Add", n, one) }
	sum := func(rows tensor) tensor { return b.reduceOp("ReduceSum", rows, []int64{0}, true, fixed(1)) }
	widest := func(rows tensor, classes int) tensor { return b.gather(rows, b.int64s(int64(classes-1))) }
	edges := next(b.sizeOf(l.dst, 0))
	rows := b.binary("Add", next(sum(t.orderRows)), b.binary("Add", sum(t.segmentRows), b.sizeOf(t.rest, 0)))
	wrong := b.outside(t.order, edges)
	for _, other := range []tensor{
		b.outside(t.count, edges),
		b.outside(t.segments, next(widest(t.orderRows, len(rowWidths)))),
		b.outside(t.rest, next(widest(t.segmentRows, len(segmentWidths)))),
		b.outside(t.restore, rows),
		b.different(b.sizeOf(t.count, 0), l.nodes),
		b.different(b.sizeOf(t.restore, 0), l.nodes),
	} {
		wrong = b.either(wrong, other)
	}
	zero := b.refusal(wrong, "tables_fit_the_graph", "fails where a table names an edge or a row that there is not, or is of another number of nodes")
	// What reads a table reads it by way of the guard.
	for _, part := range []*tensor{&t.count, &t.order, &t.orderRows, &t.segments, &t.segmentRows, &t.rest, &t.restore} {
		dims := part.dims
		*part = b.binary("Add", *part, zero)
		part.dims = dims
	}
	return t
}

// ChooseLowering is the rule of [Auto]: scatter where few numbers travel along edges,
// so that the making of tables would cost more than it saves, else buckets.
func ChooseLowering(messages int) Lowering {
	if messages <= flatMessages {
		return Scatter
	}
	return DegreeBuckets
}

// flatMessages is how many numbers may travel along edges, layer by layer, for
// [Auto] to take [Scatter].
const flatMessages = 1 << 18

func DenseRefusal(n int) error {
	return fmt.Errorf("the dense lowering is for graphs of up to %d nodes: %d nodes need a matrix of %d MiB; take degree-buckets, precomputed-buckets or scatter", MaxDenseNodes, n, n*n>>18)
}

// MaxDenseNodes bounds the adjacency matrix of the parity check to 400 MB.
const MaxDenseNodes = 10_000
