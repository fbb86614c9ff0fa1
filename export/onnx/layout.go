package onnx

import "fmt"

// The classes of nodes by their number of entering edges, the same for tables
// built inside the model and for those that the host builds ([BuildTables]):
// rows of 1, 2, 4, … 64 entries. A node with more edges than the widest row has
// takes several of those, and the rows are summed in rows of 4, 16 or 64; a node
// with more than 64² edges takes several of these, and a third level sums
// whatever there is.
var (
	rowWidths     = []int{1, 2, 4, 8, 16, 32, 64}
	segmentWidths = []int{4, 16, 64}
	// featureWidths are those of rows of sparse features, which are mostly of some
	// tens of entries: less is filled up.
	featureWidths = []int{1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64}
)

const widestRow = 64

// sortChunks is how many parts of the edges are sorted each by itself, by several
// threads and with less to compare, before they are merged by counting.
const sortChunks = 16

// tables say which rows are summed for each node.
type tables struct {
	count tensor // edges into each node, int64 [N]
	// order holds positions of edges, row after row of each class; E where a row
	// is filled up. int64 [P]
	order tensor
	// orderRows is the number of rows of each class, int64 [7], and widths are theirs:
	// rowWidths, or featureWidths.
	orderRows tensor
	widths    []int
	// segments holds numbers of rows of the widest class, S (one above the last)
	// where a row is filled up, int64 [Q], and segmentRows the number of rows of
	// each class, int64 [3].
	segments, segmentRows tensor
	// rest holds numbers of rows of the widest class of segments, int64 [R,W].
	rest tensor
	// restore is for each node its row among all: the rows of each class, one row
	// of zeros, the rows of segments, those of rest. int64 [N]
	restore tensor
}

// classes is the part of the tables' making that all levels share: items, each
// with a count of entries, are laid out by class.
type classes struct {
	start tensor // first entry of each item, int64 [n]
	size  tensor // entries in all, int64 [1]
	rows  tensor // rows of each class, int64 [classes]
	row   tensor // first row of each item, int64 [n], with the rows of class after class counted on
	// wide is the first row of the widest class, int64 [1].
	wide tensor
}

// layOut assigns items of the given counts to classes. Items of count 0 take no
// entries, and their row is 0.
func layOut(b *builder, count tensor, widths []int) classes {
	k := len(widths)
	widest := int64(widths[k-1])
	// What an item of each count up to the widest takes.
	class, room := make([]int64, widest+1), make([]int64, widest+1)
	for n := int64(1); n <= widest; n++ {
		for int64(widths[class[n]]) < n {
			class[n]++
		}
		room[n] = int64(widths[class[n]])
	}
	n := b.sizeOf(count, 0)
	short := b.binary("Min", count, b.int64Const(widest))
	of := b.gather(b.ints("class", class, len(class)), short)
	many := b.binary("Mul", b.binary("Div", b.binary("Add", count, b.int64Const(widest-1)), b.int64Const(widest)), b.int64Const(widest))
	take := b.op("Where", Int64Type, count.dims, []tensor{b.compare("Greater", count, b.int64Const(widest)), many, b.gather(b.ints("room", room, len(room)), short)})
	// Entries class by class, and within a class item by item.
	at := b.binary("Add", b.binary("Mul", of, n), b.span(b.squeeze(n, 0)))
	at.dims = count.dims
	all := b.binary("Add", b.binary("Mul", n, b.int64Const(int64(k))), b.int64Const(1))
	entries := b.op("ScatterElements", Int64Type, []dim{unknown}, []tensor{b.filledInt(all, 0, unknown), at, take}, intAttr("axis", 0))
	first := b.op("CumSum", Int64Type, []dim{unknown}, []tensor{entries, b.int64Const(0)}, intAttr("exclusive", 1))
	c := classes{start: b.gather(first, at)}
	borders := b.gather(first, b.binary("Mul", b.ints("const", upTo(k+1), k+1), n)) // [k+1]
	cut := func(from, to int64) tensor {
		return b.op("Slice", Int64Type, []dim{fixed(int(to - from))}, []tensor{borders, b.int64s(from), b.int64s(to), b.int64s(0)})
	}
	c.size = cut(int64(k), int64(k+1))
	widthOf := b.widths(widths)
	c.rows = b.binary("Div", b.binary("Sub", cut(1, int64(k+1)), cut(0, int64(k))), widthOf)
	before := b.op("CumSum", Int64Type, []dim{fixed(k)}, []tensor{c.rows, b.int64Const(0)}, intAttr("exclusive", 1))
	within := b.binary("Div", b.binary("Sub", c.start, b.gather(borders, of)), b.gather(widthOf, of))
	c.row = b.binary("Add", b.gather(before, of), within)
	c.wide = b.op("Slice", Int64Type, []dim{fixed(1)}, []tensor{before, b.int64s(int64(k - 1)), b.int64s(int64(k)), b.int64s(0)})
	return c
}

// buildTables writes the making of the tables from a list of edges.
func buildTables(l *edgeList) tables {
	b := l.b
	t := tables{widths: rowWidths}
	b.in("sort", func() {
		edges := b.sizeOf(l.into, 0)
		length := b.binary("Add", b.binary("Div", edges, b.int64Const(sortChunks)), b.int64Const(1))
		all := b.binary("Mul", length, b.int64Const(sortChunks))
		// Filled up with targets that no node is.
		keys := b.concat(0, l.into, b.op("Expand", Int64Type, []dim{unknown}, []tensor{l.nodes, b.binary("Sub", all, edges)}))
		shape := b.concat(0, b.int64s(sortChunks), length)
		keys = b.reshape(keys, shape, fixed(sortChunks), unknown)
		grid := []dim{fixed(sortChunks), unknown}
		sorted := b.multi("TopK", []tensor{{dtype: Int64Type, dims: grid}, {dtype: Int64Type, dims: grid}},
			[]tensor{keys, length}, intAttr("axis", 1), intAttr("largest", 0), intAttr("sorted", 1))
		chunk := b.ints("chunk", upTo(sortChunks), sortChunks, 1)
		edge := b.binary("Add", sorted[1], b.binary("Mul", chunk, length))
		// How many edges into each node every chunk has, [N+1, chunks].
		run := b.reshape(b.binary("Add", b.binary("Mul", sorted[0], b.int64Const(sortChunks)), chunk), b.int64s(-1), unknown)
		size := b.binary("Mul", b.binary("Add", l.nodes, b.int64Const(1)), b.int64Const(sortChunks))
		counts := b.reshape(b.scatterAdd(b.filledInt(size, 0, unknown), run, b.filledInt(all, 1, unknown)), b.int64s(-1, sortChunks), unknown, fixed(sortChunks))
		total := b.reduceOp("ReduceSum", counts, []int64{1}, false, unknown)
		t.count = b.op("Slice", Int64Type, []dim{l.nodeDim}, []tensor{total, b.int64s(0), l.nodes, b.int64s(0)})
		t.count = b.rename(t.count, "tables/degree", "number of edges into each node, without self-loops")
		earlier := b.op("CumSum", Int64Type, counts.dims, []tensor{counts, b.int64Const(1)}, intAttr("exclusive", 1))
		lower := b.op("CumSum", Int64Type, counts.dims, []tensor{counts, b.int64Const(0)}, intAttr("exclusive", 1))

		var c classes
		b.in("layout", func() { c = layOut(b, t.count, rowWidths) })
		t.orderRows = b.rename(c.rows, "tables/order_rows", "number of rows of each width")
		// An edge goes to the first entry of its target, behind the edges of earlier
		// chunks, as many as it has before it among the chunk's edges of that target.
		start := b.concat(0, c.start, c.size)
		shift := b.reshape(b.binary("Sub", b.binary("Add", b.unsqueeze(start, 1), earlier), lower), b.int64s(-1), unknown)
		place := b.binary("Add", b.reshape(b.gather(shift, run), shape, grid...), b.span(b.squeeze(length, 0)))
		place = b.reshape(place, b.int64s(-1), unknown)
		// Self-loops and what filled the chunks up lie behind the last entry.
		room := b.op("Expand", Int64Type, []dim{unknown}, []tensor{edges, b.binary("Add", c.size, all)})
		order := b.op("ScatterElements", Int64Type, []dim{unknown}, []tensor{room, place, b.reshape(edge, b.int64s(-1), unknown)}, intAttr("axis", 0))
		t.order = b.op("Slice", Int64Type, []dim{unknown}, []tensor{order, b.int64s(0), c.size, b.int64s(0)})
		t.order = b.rename(t.order, "tables/order", "positions of edges by rows; the number of edges where a row is filled up")
		b.in("hubs", func() { buildSegments(b, &t, c) })
	})
	return t
}

// buildSegments writes the tables of the second and third level.
func buildSegments(b *builder, t *tables, c classes) {
	wide := b.int64Const(widestRow)
	round := func(n tensor) tensor {
		return b.binary("Div", b.binary("Add", n, b.int64Const(widestRow-1)), wide)
	}
	above := func(n tensor) tensor { return b.nonZero(b.compare("Greater", n, wide)) }
	zeroRow := b.reduceOp("ReduceSum", c.rows, []int64{0}, true, fixed(1))
	none := b.compare("Equal", t.count, b.int64Const(0))
	restore := b.op("Where", Int64Type, t.count.dims, []tensor{none, zeroRow, c.row})

	hubs := above(t.count)
	pieces := round(b.gather(t.count, hubs)) // rows of each hub, at least 2
	first := b.binary("Sub", b.gather(c.row, hubs), c.wide)
	d := layOut(b, pieces, segmentWidths)
	t.segmentRows = b.rename(d.rows, "tables/segment_rows", "number of rows of segments of each width")
	// The hub of each of their rows, one hub's rows after another's.
	begin := b.op("CumSum", Int64Type, pieces.dims, []tensor{pieces, b.int64Const(0)}, intAttr("exclusive", 1))
	total := b.reduceOp("ReduceSum", pieces, []int64{0}, true, fixed(1))
	marks := b.scatterAdd(b.filledInt(total, 0, unknown), begin, b.filledInt(b.sizeOf(hubs, 0), 1, hubs.dims...))
	hub := b.binary("Sub", b.op("CumSum", Int64Type, []dim{unknown}, []tensor{marks, b.int64Const(0)}), b.int64Const(1))
	number := b.binary("Sub", b.span(b.squeeze(total, 0)), b.gather(begin, hub))
	row := b.binary("Add", b.gather(first, hub), number)
	place := b.binary("Add", b.gather(d.start, hub), number)
	rows := b.op("Slice", Int64Type, []dim{fixed(1)}, []tensor{c.rows, b.int64s(int64(len(t.widths) - 1)), b.int64s(int64(len(t.widths))), b.int64s(0)})
	t.segments = b.op("ScatterElements", Int64Type, []dim{unknown},
		[]tensor{b.op("Expand", Int64Type, []dim{unknown}, []tensor{rows, d.size}), place, row}, intAttr("axis", 0))
	t.segments = b.rename(t.segments, "tables/segments", "rows of the widest class by rows of segments; their number where one is filled up")
	second := b.binary("Add", zeroRow, b.int64Const(1))
	restore = b.op("ScatterElements", Int64Type, restore.dims, []tensor{restore, hubs, b.binary("Add", d.row, second)}, intAttr("axis", 0))

	huge := above(pieces)
	pieces2 := round(b.gather(pieces, huge))
	first2 := b.binary("Sub", b.gather(d.row, huge), d.wide)
	width := b.reduceOp("ReduceMax", b.concat(0, pieces2, b.int64s(1)), []int64{0}, true, fixed(1))
	column := b.unsqueeze(b.span(b.squeeze(width, 0)), 0)
	rows2 := b.op("Slice", Int64Type, []dim{fixed(1)}, []tensor{d.rows, b.int64s(int64(len(segmentWidths) - 1)), b.int64s(int64(len(segmentWidths))), b.int64s(0)})
	grid := []dim{huge.dims[0], unknown}
	t.rest = b.op("Where", Int64Type, grid, []tensor{b.compare("Less", column, b.unsqueeze(pieces2, 1)), b.binary("Add", b.unsqueeze(first2, 1), column), rows2})
	t.rest = b.rename(t.rest, "tables/rest", "rows of the widest class of segments that are summed; their number where a row is filled up")
	third := b.binary("Add", second, b.reduceOp("ReduceSum", d.rows, []int64{0}, true, fixed(1)))
	at := b.binary("Add", third, b.span(b.squeeze(b.sizeOf(huge, 0), 0)))
	restore = b.op("ScatterElements", Int64Type, restore.dims, []tensor{restore, b.gather(hubs, huge), at}, intAttr("axis", 0))
	t.restore = b.rename(restore, "tables/restore", "row of each node among the rows of all levels")
}

// rowName names a class in the names of values.
func rowName(width int) string { return fmt.Sprintf("rows%d", width) }
