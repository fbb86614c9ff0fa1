package data

import (
	"bytes"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/data/pickle"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// planetoidParts are the files of a Planetoid data set (Yang, Cohen and
// Salakhutdinov, "Revisiting semi-supervised learning with graph embeddings",
// ICML 2016), in the order in which they are read and hashed.
var planetoidParts = []string{"x", "y", "tx", "ty", "allx", "ally", "graph", "test.index"}

// publicVal is the number of validation nodes of Planetoid's public splits:
// those that follow the training nodes.
const publicVal = 500

// planetoidName returns the NAME of the ind.NAME.* files among names, "" if
// there are none.
func planetoidName(dir string, names []string) (string, error) {
	var sets []string
	for _, n := range names {
		rest, ok := strings.CutPrefix(n, "ind.")
		if !ok {
			continue
		}
		for _, part := range planetoidParts {
			if set, ok := strings.CutSuffix(rest, "."+part); ok && set != "" && !slices.Contains(sets, set) {
				sets = append(sets, set)
			}
		}
	}
	if len(sets) > 1 {
		return "", badFile(dir, "holds several Planetoid data sets: %s", nameList(sets)).hint("put each into a folder of its own")
	}
	if len(sets) == 0 {
		return "", nil
	}
	return sets[0], nil
}

// planetoid reads a Planetoid data set. Rows of x and allx come first; row k of
// tx describes the node that line k of test.index names. Nodes that the index
// skips have neither features nor label.
func (l *loader) planetoid(dir, set string) (*Dataset, error) {
	path := func(part string) string { return filepath.Join(dir, "ind."+set+"."+part) }
	raw := map[string][]byte{}
	for _, part := range planetoidParts {
		b, err := l.file(path(part))
		if err != nil {
			return nil, hinted(err, "a Planetoid data set has the parts %s", strings.Join(planetoidParts, ", "))
		}
		raw[part] = b
	}

	var features [3]*Features
	for i, part := range []string{"allx", "tx", "x"} {
		var err error
		if features[i], err = pickledFeatures(path(part), raw[part], l.mem); err != nil {
			return nil, err
		}
	}
	allx, tx, x := features[0], features[1], features[2]
	if tx.Cols != allx.Cols {
		return nil, badFile(path("tx"), "has %d columns, allx has %d", tx.Cols, allx.Cols)
	}
	if x.Cols != allx.Cols || x.Rows > allx.Rows {
		return nil, badFile(path("x"), "has the shape [%d,%d], which is not a part of allx, [%d,%d]", x.Rows, x.Cols, allx.Rows, allx.Cols)
	}
	var labels [3][]int32
	var classes [3]int
	for i, part := range []string{"ally", "ty", "y"} {
		var err error
		if labels[i], classes[i], err = pickledLabels(path(part), raw[part], l.mem); err != nil {
			return nil, err
		}
	}
	ally, ty, y := labels[0], labels[1], labels[2]
	if classes[1] != classes[0] || classes[2] != classes[0] {
		return nil, badFile(path("ally"), "has %d classes, y has %d and ty has %d", classes[0], classes[2], classes[1])
	}
	if len(ally) != allx.Rows || len(ty) != tx.Rows || len(y) != x.Rows {
		return nil, badFile(path("ally"), "labels do not fit the features: y %d of %d rows, ally %d of %d, ty %d of %d", len(y), x.Rows, len(ally), allx.Rows, len(ty), tx.Rows)
	}
	index, err := testIndex(path("test.index"), raw["test.index"], allx.Rows, tx.Rows, l.mem)
	if err != nil {
		return nil, err
	}

	n := allx.Rows
	for _, v := range index {
		n = max(n, int(v)+1)
	}
	if n == 0 {
		return nil, badFile(dir, "%v", errNoNodes)
	}
	// Labels and rows of tx; the features once more; the lists of the split.
	claim(l.mem, 20*int64(n)+allx.bytes()+tx.bytes())
	ds := &Dataset{Name: set, Source: dir, Format: "planetoid", Classes: classes[0], Labels: slices.Repeat([]int32{-1}, n)}
	ds.Repairs.MissingNodes = n - allx.Rows - len(index)
	copy(ds.Labels, ally)
	row := slices.Repeat([]int32{-1}, n) // row of tx for each node beyond allx, -1 for none
	for k, v := range index {
		row[v] = int32(k)
		ds.Labels[v] = ty[k]
	}
	ds.X = stack(allx, tx, row)

	l.mem.Shrink(allx.bytes() + tx.bytes() + x.bytes())

	list, err := adjacency(path("graph"), raw["graph"], n, l.mem)
	if err != nil {
		return nil, err
	}
	if err := l.graph(ds, list, n, true); err != nil {
		return nil, fileFault(path("graph"), err)
	}

	s := Split{Test: slices.Clone(index)}
	slices.Sort(s.Test)
	for v := range len(y) {
		s.Train = append(s.Train, int32(v))
	}
	for v := len(y); v < min(len(y)+publicVal, allx.Rows); v++ {
		s.Val = append(s.Val, int32(v))
	}
	ds.Splits = []Split{s}
	return ds, nil
}

// stack puts the rows of tx that row asks for under those of allx.
func stack(allx, tx *Features, row []int32) *Features {
	f := &Features{Rows: len(row), Cols: allx.Cols, RowPtr: make([]int32, 0, len(row)+1), Col: slices.Clone(allx.Col), Val: slices.Clone(allx.Val)}
	f.RowPtr = append(f.RowPtr, allx.RowPtr...)
	for _, k := range row[allx.Rows:] {
		if k >= 0 {
			lo, hi := tx.RowPtr[k], tx.RowPtr[k+1]
			f.Col = append(f.Col, tx.Col[lo:hi]...)
			f.Val = append(f.Val, tx.Val[lo:hi]...)
		}
		f.RowPtr = append(f.RowPtr, int32(len(f.Col)))
	}
	return f
}

// pickledFeatures reads a pickled csr_matrix or a dense array, as sparse.
func pickledFeatures(file string, b []byte, mem *budget.Reservation) (_ *Features, err error) {
	defer within(file, &err)
	v, err := unpickle(file, b, mem)
	if err != nil {
		return nil, err
	}
	var f *Features
	switch o := v.(type) {
	case *csrMatrix:
		f, err = o.features()
	case *npArray:
		if o.array == nil {
			return nil, badFile(file, "the array was never filled")
		}
		if f, err = denseFeatures(o.array); err == nil && !f.IsSparse() {
			claim(mem, 4*int64(f.Rows+1)+8*int64(f.NNZ()))
			mem.Shrink(f.bytes())
			f = f.ToCSR()
		}
	default:
		return nil, badFile(file, "holds %s, not a matrix of features", pickle.Describe(v))
	}
	if err != nil {
		return nil, fileFault(file, err)
	}
	return f, nil
}

// pickledLabels reads a pickled array of one-hot labels [N,C]; a row of zeros is
// an unknown label.
func pickledLabels(file string, b []byte, mem *budget.Reservation) (_ []int32, _ int, err error) {
	defer within(file, &err)
	v, err := unpickle(file, b, mem)
	if err != nil {
		return nil, 0, err
	}
	a, ok := v.(*npArray)
	if !ok || a.array == nil {
		return nil, 0, badFile(file, "holds %s, not an array of labels", pickle.Describe(v))
	}
	if err := a.dims(2); err != nil {
		return nil, 0, fileFault(file, err)
	}
	rows, classes := a.shape[0], a.shape[1]
	if classes == 0 || classes > maxClasses {
		return nil, 0, badFile(file, "has %d classes; 1 to %d are supported", classes, maxClasses)
	}
	vals, err := a.float32s()
	if err != nil {
		return nil, 0, fileFault(file, err)
	}
	labels := zeros[int32](mem, rows)
	defer mem.Shrink(4 * int64(cap(vals)))
	for i := range labels {
		labels[i] = -1
		for c, x := range vals[i*classes : (i+1)*classes] {
			switch {
			case x == 0:
			case x == 1 && labels[i] < 0:
				labels[i] = int32(c)
			default:
				return nil, 0, badFile(file, "row %d is not one-hot: it needs a single 1 among zeros", i)
			}
		}
	}
	return labels, classes, nil
}

// testIndex reads test.index: one node number a line, in the order of tx's rows.
func testIndex(file string, b []byte, first, rows int, mem *budget.Reservation) (_ []int32, err error) {
	defer within(file, &err)
	claim(mem, 128*int64(bytes.Count(b, []byte{'\n'}))) // a map and a list
	var index []int32
	seen := map[int64]int{} // the line of each node
	top := int64(first) - 1
	t := newTextFile(file, bytes.NewReader(b), nil, nil)
	err = t.each(func() {
		v, err := strconv.ParseInt(string(t.field()), 10, 64)
		switch {
		case err != nil:
			t.fail("not a node number")
		case v < int64(first) || v > math.MaxInt32-1:
			t.fail("out of range: test nodes follow the %d rows of allx", first)
		case seen[v] != 0:
			t.fail("the same node as in line %d", seen[v])
		}
		seen[v] = t.n
		index = append(index, int32(v))
		top = max(top, v)
		t.end("one node number")
	})
	if err != nil {
		return nil, err
	}
	if len(index) != rows {
		return nil, badFile(file, "names %d nodes, tx has %d rows: one of them is truncated", len(index), rows)
	}
	// Citeseer skips 15 of 1015. A gap wider than all that is listed is a fault,
	// and would let a few bytes ask for gigabytes.
	if gap := top + 1 - int64(first) - int64(rows); gap > int64(first)+int64(rows) {
		return nil, badFile(file, "names node %d, but the files describe only %d", top, first+rows)
	}
	return index, nil
}

// adjacency reads a pickled dict of lists: node → its neighbours.
func adjacency(file string, b []byte, n int, mem *budget.Reservation) (_ *edgeList, err error) {
	defer within(file, &err)
	v, err := unpickle(file, b, mem)
	if err != nil {
		return nil, err
	}
	d, ok := v.(*pickle.Dict)
	if !ok {
		return nil, badFile(file, "holds %s, not a dict of neighbour lists", pickle.Describe(v))
	}
	node := func(v any) int32 {
		i, ok := v.(int64)
		if !ok || i < 0 || i >= int64(n) {
			failf("a node is %s; nodes are the integers 0 to %d", pickle.Describe(v), n-1)
		}
		return int32(i)
	}
	// One list may stand in many places of a hostile file; the file's own size
	// bounds what an honest one can say.
	e := &edgeList{}
	seen := zeros[bool](mem, n)
	defer mem.Shrink(int64(n))
	for i, k := range d.Keys {
		u := node(k)
		if seen[u] {
			return nil, badFile(file, "node %d has two lists of neighbours", u)
		}
		seen[u] = true
		l, ok := d.Vals[i].(*pickle.List)
		if !ok {
			return nil, badFile(file, "the neighbours of node %d are %s, not a list", u, pickle.Describe(d.Vals[i]))
		}
		if len(e.src)+len(l.Items) > len(b) {
			return nil, badFile(file, "lists more neighbours than the file has bytes; refusing to unpack a bomb")
		}
		e.src = room(mem, e.src, len(l.Items))
		e.dst = room(mem, e.dst, len(l.Items))
		for _, x := range l.Items {
			e.src = append(e.src, u)
			e.dst = append(e.dst, node(x))
		}
	}
	return e, nil
}
