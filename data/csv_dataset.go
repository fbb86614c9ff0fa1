package data

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// Names of the files in a user's folder.
const (
	edgesFile = "edges.csv"
	nodesFile = "nodes.csv"
	npyFile   = "features.npy"
	npzFile   = "features.npz"
)

// folder reads a user's own data: edges.csv with nodes.csv, features.npy or
// features.npz, as docs/data.md describes. Either table may be a Parquet file.
func (l *loader) folder(dir string, names []string) (*Dataset, error) {
	has := func(n string) bool { return slices.Contains(names, n) }
	path := func(n string) string { return filepath.Join(dir, n) }
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	ds := &Dataset{Name: filepath.Base(abs), Source: dir, Format: "folder"}
	if has(npyFile) && has(npzFile) {
		return nil, badFile(dir, "has both %s and %s", npyFile, npzFile).hint("keep one of them")
	}
	if has("nodes.tsv") || has("edges.tsv") {
		return nil, badFile(dir, "has a .tsv file beside %s", edgesFile).hint("save it as CSV with commas")
	}

	edges, err := l.tableFile(dir, names, edgesFile)
	if err != nil {
		return nil, err
	}
	nodes := &nodeTable{}
	nodeFile, err := l.tableFile(dir, names, nodesFile)
	if err != nil {
		return nil, err
	}
	if nodeFile.path != "" {
		if nodes, err = readNodes(nodeFile, l.mem); err != nil {
			return nil, err
		}
		l.done(nodeFile.bytes)
	}
	var featureFile string
	switch {
	case has(npyFile):
		featureFile = npyFile
	case has(npzFile):
		featureFile = npzFile
	}
	if featureFile != "" {
		if nodes.features != nil {
			return nil, badFile(dir, "features are given twice: in columns of %s and in %s", nodesFile, featureFile).hint("keep one of them")
		}
		if nodes.features, err = l.featureFile(path(featureFile)); err != nil {
			return nil, err
		}
	}
	if nodes.features == nil {
		return nil, badFile(dir, "there are no node features").hint("add number columns to %s, or %s, or %s with one row for each node", nodesFile, npyFile, npzFile)
	}
	ds.X = nodes.features
	n := ds.X.Rows
	if n == 0 {
		return nil, badFile(dir, "%v", errNoNodes)
	}
	if nodes.ids != nil && len(nodes.ids) != n {
		return nil, badFile(path(featureFile), "has %d rows, %s has %d nodes", n, nodesFile, len(nodes.ids)).hint("row i of the features belongs to row i of %s", nodesFile)
	}
	ds.NodeIDs = nodes.ids
	if numbered(nodes.ids) {
		ds.NodeIDs = nil
	}
	if err := l.mem.Grow(4 * int64(n)); err != nil {
		return nil, err
	}
	ds.Labels, ds.ClassNames = nodes.labelClasses(n)
	ds.Classes = len(ds.ClassNames)
	if nodes.split != nil {
		ds.Splits = []Split{*nodes.split}
	}

	list, err := readEdges(edges, nodes, n, l.mem)
	if err != nil {
		return nil, err
	}
	l.done(edges.bytes)
	if ds.Graph, err = list.build(n, l.opts.Directed, false, &ds.Repairs, l.mem); err != nil {
		return nil, fileFault(edges.path, err)
	}
	list.done(l.mem)
	return ds, nil
}

// featureFile reads features.npy, or features.npz with a dense array or the
// arrays that scipy.sparse.save_npz writes.
func (l *loader) featureFile(path string) (*Features, error) {
	b, err := l.file(path)
	if err != nil {
		return nil, err
	}
	defer l.done(b)
	if strings.HasSuffix(path, ".npy") {
		arr, err := parseNPY(b)
		if err == nil {
			arr.mem = l.mem
			var f *Features
			if f, err = denseFeatures(arr); err == nil {
				return f, nil
			}
		}
		return nil, fileFault(path, err)
	}
	a, err := l.openNPZ(path, b)
	if err != nil {
		return nil, err
	}
	if a.has("indptr") || a.has("format") {
		if a.has("format") {
			arr, err := a.array("format")
			if err != nil {
				return nil, err
			}
			// Python 3 writes b'csr', a [] array of type S3.
			if arr.dtype.kind != 'S' || strings.TrimRight(string(arr.data), "\x00") != "csr" {
				return nil, badFile(path, "the sparse matrix is not in CSR form").hint("write it with scipy.sparse.save_npz(%q, matrix.tocsr())", npzFile)
			}
		}
		c, err := a.csr("")
		if err != nil {
			return nil, err
		}
		f, err := c.features()
		if err != nil {
			return nil, fileFault(path, err)
		}
		return f, nil
	}
	if len(a.names) != 1 {
		return nil, badFile(path, "holds %s", nameList(a.names)).hint("expected one dense array, or what scipy.sparse.save_npz writes for a CSR matrix")
	}
	arr, err := a.array(a.names[0])
	if err != nil {
		return nil, err
	}
	f, err := denseFeatures(arr)
	if err != nil {
		return nil, a.fault(a.names[0], err)
	}
	return f, nil
}

// numbered reports whether the ids are 0, 1, 2, …
func numbered(ids []string) bool {
	for i, id := range ids {
		if id != strconv.Itoa(i) {
			return false
		}
	}
	return true
}

// nodeTable is what nodes.csv says.
type nodeTable struct {
	ids      []string // in the file's order; nil if there is no file
	index    map[string]int32
	labels   []string // nil if there is no label column
	split    *Split   // nil if there is no split column
	features *Features
}

// unknownLabel reports whether a label cell says that the label is not known.
func unknownLabel(s string) bool {
	switch strings.ToLower(s) {
	case "", "?", "-1", "na", "nan", "none", "null":
		return true
	}
	return false
}

// readNodes reads nodes.csv: a header with the column id, optionally label and
// split, and feature columns under any other names.
func readNodes(from tableFile, mem *budget.Reservation) (*nodeTable, error) {
	file := from.path
	t, err := newTable(from, mem)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if _, err := t.next(); err != nil {
		return nil, err
	}
	if len(t.row) > maxCols {
		return nil, t.fault(0, "the header has %d columns; at most %d are supported", len(t.row), maxCols)
	}
	if err := mem.Grow(200 * int64(len(t.row))); err != nil { // their names, a map of them, and numbers
		return nil, fileFault(file, err)
	}
	header := slices.Clone(t.row)
	idCol, labelCol, splitCol := -1, -1, -1
	var featureCols []int
	seen := map[string]bool{}
	for i, name := range header {
		low := strings.ToLower(name)
		if name == "" {
			return nil, t.fault(i, "column %d of the header has no name", i+1).hint("nodes.csv starts with a header such as id,label,split,f0,f1")
		}
		if seen[low] {
			return nil, t.fault(i, "the header names this column twice")
		}
		seen[low] = true
		switch low {
		case "id":
			idCol = i
		case "label":
			labelCol = i
		case "split":
			splitCol = i
		default:
			featureCols = append(featureCols, i)
		}
	}
	if idCol < 0 {
		e := t.fault(0, "the header has no id column").hint("nodes.csv starts with a header such as id,label,split,f0,f1")
		if len(header) == 1 {
			e.Hint = separatorHint(header[0])
		}
		return nil, e
	}

	nt := &nodeTable{ids: []string{}, index: map[string]int32{}}
	if labelCol >= 0 {
		nt.labels = []string{}
	}
	if splitCol >= 0 {
		nt.split = &Split{}
	}
	f := &Features{Cols: len(featureCols), RowPtr: []int32{0}}
	lines := []int{}
	for {
		ok, err := t.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if len(t.row) != len(header) {
			return nil, t.fault(min(len(t.row), len(header)), "the row has %d fields, the header has %d", len(t.row), len(header)).hint("a last row that is too short means a truncated file")
		}
		id := t.row[idCol]
		if id == "" {
			return nil, t.fault(idCol, "the id is empty")
		}
		// The id, as a string, in a list and in the map of them; its line, its place in
		// the split, and where its features begin. Lists have room to grow.
		claim := 200 + 2*int64(len(id))
		if labelCol >= 0 {
			claim += 64 + 2*int64(len(t.row[labelCol]))
		}
		if err := mem.Grow(claim); err != nil {
			e := fileFault(file, err)
			e.Line = t.line()
			return nil, e
		}
		id = strings.Clone(id) // the reader's buffer holds the whole row
		if prev, ok := nt.index[id]; ok {
			return nil, t.fault(idCol, "the same id as in line %d", lines[prev])
		}
		v := int32(len(nt.ids))
		nt.index[id] = v
		nt.ids = append(nt.ids, id)
		lines = append(lines, t.line())
		if labelCol >= 0 {
			nt.labels = append(nt.labels, strings.Clone(t.row[labelCol]))
		}
		if splitCol >= 0 {
			if err := nt.split.add(t, splitCol, v); err != nil {
				return nil, err
			}
		}
		for j, c := range featureCols {
			x, err := strconv.ParseFloat(t.row[c], 32)
			if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
				e := t.fault(c, "the feature %s of node %s is not a finite number", quote(header[c]), quote(id))
				e.Hint = "write a number; text columns other than id, label and split have to be encoded as numbers first"
				return nil, e
			}
			if float32(x) != 0 {
				if f.Col, err = room(mem, f.Col, 1); err == nil {
					f.Val, err = room(mem, f.Val, 1)
				}
				if err != nil {
					return nil, fileFault(file, err)
				}
				f.Col = append(f.Col, int32(j))
				f.Val = append(f.Val, float32(x))
			}
		}
		if len(f.Col) > math.MaxInt32 || len(nt.ids) >= math.MaxInt32 {
			return nil, badFile(file, "more than %d values", math.MaxInt32)
		}
		f.RowPtr = append(f.RowPtr, int32(len(f.Col)))
	}
	if len(nt.ids) == 0 {
		return nil, badFile(file, "has a header but no nodes")
	}
	if f.Cols > 0 {
		f.Rows = len(nt.ids)
		if nt.features, err = f.compact(mem); err != nil {
			return nil, fileFault(file, err)
		}
	}
	return nt, nil
}

// add enters a node under the part that a split cell names.
func (s *Split) add(t *table, col int, v int32) error {
	switch strings.ToLower(t.row[col]) {
	case "train":
		s.Train = append(s.Train, v)
	case "val", "valid", "validation":
		s.Val = append(s.Val, v)
	case "test":
		s.Test = append(s.Test, v)
	case "", "none":
	default:
		return t.fault(col, "not a part of the split").hint("write train, val, test or nothing")
	}
	return nil
}

// labelClasses numbers the classes: whole numbers in ascending order, other
// names alphabetically.
func (nt *nodeTable) labelClasses(n int) ([]int32, []string) {
	labels := make([]int32, n)
	for v := range labels {
		labels[v] = -1
	}
	var names []string
	whole := true
	seen := map[string]bool{}
	for _, s := range nt.labels {
		if unknownLabel(s) || seen[s] || len(names) > maxClasses { // Check refuses so many
			continue
		}
		seen[s] = true
		names = append(names, s)
		if _, err := strconv.ParseInt(s, 10, 64); err != nil {
			whole = false
		}
	}
	slices.Sort(names)
	if whole {
		slices.SortStableFunc(names, func(a, b string) int {
			x, _ := strconv.ParseInt(a, 10, 64)
			y, _ := strconv.ParseInt(b, 10, 64)
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		})
	}
	number := make(map[string]int32, len(names))
	for c, s := range names {
		number[s] = int32(c)
	}
	for v, s := range nt.labels {
		if c, ok := number[s]; ok {
			labels[v] = c
		}
	}
	return labels, names
}

// edgeHeader gives the header names that edges.csv may use.
var edgeHeader = map[string]int{
	"source": 0, "src": 0, "from": 0, "u": 0,
	"target": 1, "dst": 1, "to": 1, "v": 1,
	"weight": 2, "w": 2,
}

// readEdges reads edges.csv: source, target and optionally weight, with or
// without a header. Ids are those of nodes.csv, or 0..n-1 without that file.
func readEdges(from tableFile, nodes *nodeTable, n int, mem *budget.Reservation) (*edgeList, error) {
	file := from.path
	t, err := newTable(from, mem)
	if err != nil {
		var fe *FileError
		if errors.As(err, &fe) && fe.Line == 0 && !from.parquet {
			fe.hint("a graph without edges has the header line source,target alone")
		}
		return nil, err
	}
	defer t.close()
	e := &edgeList{}
	if e.src, err = room(mem, e.src, t.most); err == nil {
		e.dst, err = room(mem, e.dst, t.most)
	}
	if err != nil {
		return nil, fileFault(file, err)
	}
	col := [3]int{0, 1, -1}
	fields := 0
	for first := true; ; first = false {
		ok, err := t.next()
		if err != nil {
			return nil, err
		}
		if !ok {
			return e, nil
		}
		if first {
			fields = len(t.row)
			if fields < 2 {
				return nil, t.fault(0, "expected source,target or source,target,weight").hint("%s", separatorHint(t.row[0]))
			}
			isHeader, err := parseEdgeHeader(t, nodes, &col)
			if err != nil {
				return nil, err
			}
			if isHeader {
				if col[2] >= 0 {
					e.w = []float32{}
				}
				continue
			}
			if fields > 3 {
				return nil, t.fault(3, "expected source,target or source,target,weight").hint("give a header if there are other columns")
			}
			if fields == 3 {
				col[2] = 2
				e.w = []float32{}
			}
		}
		if len(t.row) != fields {
			return nil, t.fault(min(len(t.row), fields), "the row has %d fields, the first has %d", len(t.row), fields).hint("a last row that is too short means a truncated file")
		}
		u, err := nodeOf(t, col[0], nodes, n, first)
		if err != nil {
			return nil, err
		}
		v, err := nodeOf(t, col[1], nodes, n, first)
		if err != nil {
			return nil, err
		}
		e.src, e.dst = append(e.src, u), append(e.dst, v)
		if col[2] >= 0 {
			w, err := strconv.ParseFloat(t.row[col[2]], 32)
			if err != nil || checkWeight(float32(w)) != nil {
				return nil, t.fault(col[2], "a weight is a finite number of 0 or more")
			}
			if e.w, err = room(mem, e.w, 1); err != nil {
				return nil, fileFault(file, err)
			}
			e.w = append(e.w, float32(w))
		}
	}
}

// parseEdgeHeader decides whether the first row is a header, and if so fills in
// which columns hold source, target and weight. A row is a header if its first
// two fields are known column names and not both known ids.
func parseEdgeHeader(t *table, nodes *nodeTable, col *[3]int) (bool, error) {
	known := 0
	for _, s := range t.row {
		if _, ok := edgeHeader[strings.ToLower(s)]; ok {
			known++
		}
	}
	_, id0 := nodes.index[t.row[0]]
	_, id1 := nodes.index[t.row[1]]
	if known < 2 || (id0 && id1) {
		return false, nil
	}
	*col = [3]int{-1, -1, -1}
	for i, s := range t.row {
		low := strings.ToLower(s)
		p, ok := edgeHeader[low]
		if !ok {
			e := t.fault(i, "not a column of %s", edgesFile).hint("the columns are source, target and weight; remove others")
			if near := nearest.Of(low, []string{"source", "target", "weight"}); near != "" && len(low) < 32 {
				e.hint("did you mean %s?", near)
			}
			return false, e
		}
		if col[p] >= 0 {
			return false, t.fault(i, "the header has two columns for the same thing")
		}
		col[p] = i
	}
	if col[0] < 0 || col[1] < 0 {
		return false, t.fault(0, "the header needs the columns source and target")
	}
	return true, nil
}

// nodeOf returns the node that a field names.
func nodeOf(t *table, i int, nodes *nodeTable, n int, first bool) (int32, error) {
	s := t.row[i]
	if nodes.ids != nil {
		if v, ok := nodes.index[s]; ok {
			return v, nil
		}
		e := t.fault(i, "%s has no node of this id", nodesFile).hint("add a row for it to %s, or remove the edge", nodesFile)
		if first {
			e.Hint += "; a header line would be source,target"
		}
		if s == "" {
			e.Msg = "the id is empty"
		}
		return 0, e
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, t.fault(i, "not a node number").hint("without %s nodes are called 0 to %d, by the rows of the features", nodesFile, n-1)
	}
	if v < 0 || v >= int64(n) {
		return 0, t.fault(i, "there is no such node: the features have %d rows, so nodes are called 0 to %d", n, n-1)
	}
	return int32(v), nil
}
