package data

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
)

// Names of the files in a user's folder.
const (
	edgesFile = "edges.csv"
	nodesFile = "nodes.csv"
	npyFile   = "features.npy"
	npzFile   = "features.npz"
)

// folder reads a user's own data: tables of edges and nodes, features.npy or features.npz,
// and schema.toml, as docs/own-data.md and docs/data.md describe.
func (l *loader) folder(dir string, names []string) (*Dataset, error) {
	has := func(n string) bool { return slices.Contains(names, n) }
	path := func(n string) string { return filepath.Join(dir, n) }
	ds := &Dataset{Name: (&fileSet{root: dir}).name(), Source: dir, Format: "folder"}
	if has(npyFile) && has(npzFile) {
		return nil, badFile(dir, "has both %s and %s", npyFile, npzFile).hint("keep one of them")
	}
	if has("nodes.tsv") || has("edges.tsv") {
		return nil, badFile(dir, "has a .tsv file beside its tables").hint("save it as CSV with commas")
	}
	r := &tableReader{asked: l.opts.Tables, want: l.opts.Columns, was: l.opts.Roles, merged: l.opts.Merge, left: slices.DeleteFunc(slices.Clone(l.opts.Ignored), l.opts.Roles.has), noPrepare: l.opts.NoPrepare, noWeights: l.opts.Weights == IgnoreWeights, mem: l.mem}
	var err error
	if has(SchemaFile) && l.opts.Trained != "" && l.opts.Trained == tablesAlone(dir, names) {
		names = slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == SchemaFile })
		r.note(SchemaFile, "is not read, since it was not there when the model was trained on these tables; training anew reads it")
	}
	if r.file, err = l.readSchema(dir, names); err != nil {
		return nil, err
	}
	edges, err := l.tableFile(dir, names, r.file.Edges.File, "edges")
	if err != nil {
		return nil, err
	}
	if edges.path == "" {
		return nil, badFile(dir, "has no table of edges").hint("it is edges.csv, also .csv.gz, .csv.zst or .parquet, or what %s calls it", SchemaFile)
	}
	nodes := &nodeTable{}
	nodeFile, err := l.tableFile(dir, names, r.file.Nodes.File, "nodes")
	if err != nil {
		return nil, err
	}
	var featureFile string
	switch {
	case has(npyFile):
		featureFile = npyFile
	case has(npzFile):
		featureFile = npzFile
	}
	r.matrix = featureFile != ""
	if nodeFile.path != "" {
		if nodes, err = r.nodes(nodeFile, edges); err != nil {
			return nil, err
		}
		l.done(nodeFile.bytes)
	}
	if featureFile != "" {
		if nodes.features != nil {
			return nil, badFile(dir, "features are given twice: in columns of %s and in %s", nodesFile, featureFile).hint("keep one of them")
		}
		if nodes.features, err = l.featureFile(path(featureFile)); err != nil {
			return nil, err
		}
	}
	// Nodes that are only listed, or whose columns are all left out, are described by their places in the graph.
	structural := nodes.features == nil
	if structural && len(nodes.ids) == 0 {
		return nil, badFile(dir, "there are no node features").hint("add columns to %s, or %s, or %s with one row for each node", nodesFile, npyFile, npzFile)
	}
	ds.X = nodes.features
	n := len(nodes.ids)
	if !structural {
		n = ds.X.Rows
	}
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
	claim(l.mem, 4*int64(n))
	ds.Labels, ds.ClassNames = nodes.labelClasses(n)
	ds.Classes = len(ds.ClassNames)
	if words := nodes.unknownWords(); words != nil {
		r.note(nodeFile.path, "nodes count as unlabelled whose label is %s; write another word where it is a class", nameSome(words))
	}
	r.noteSpellings(nodeFile.path, ds.ClassNames)
	if nodes.split != nil {
		ds.Splits = []Split{*nodes.split}
	}

	list := &edgeList{}
	if l.spill == nil {
		err = r.edges(edges, nodes, n, list, func(rows func() error) error { return rows() })
	} else if structural {
		err = badFile(dir, "the nodes have no features, and their places in the graph are found in memory").hint("add columns to %s, or %s", nodesFile, npyFile)
	} else { // the table goes straight to the disk
		err = r.edges(edges, nodes, n, list, func(rows func() error) (err error) {
			ds.Graph, err = l.spill.graph(n, l.opts.Directed, false, &ds.Repairs, func(o *store.Edges, add store.Add) error {
				o.Weighted, o.Merge, list.sink = list.w != nil, list.merge, add
				return rows()
			})
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	l.done(edges.bytes)
	for _, name := range r.asked.Ignore {
		if !r.seen[strings.ToLower(name)] {
			return nil, badFile(dir, "no table has the column %s, which is to be ignored", quote(name))
		}
	}
	if ds.Graph == nil {
		ds.Graph, err = list.build(n, l.opts.Directed, false, &ds.Repairs, l.mem)
	}
	if err != nil {
		return nil, fileFault(edges.path, err)
	}
	ds.Loops = list.loops
	if ds.Repairs.WeightConflicts > 0 {
		ds.Repairs.Merge = list.merge
	}
	list.done(l.mem)
	if has(TruthFile) && l.spill == nil {
		if err := l.planted(ds, path(TruthFile), nodes.index); err != nil {
			return nil, err
		}
	}
	if structural {
		need := graph.EncodingBytes(n)
		claim(l.mem, need)
		if err := ds.places(); err != nil {
			return nil, err
		}
		l.mem.Shrink(need - int64(4*graph.EncodingWidth(n))*int64(n))
		if l.opts.NodeFeatures != FeaturesRoles {
			r.notes = append(r.notes, fmt.Sprintf("the nodes have no features: degree, random-walk encodings and DeepWalk take their place, %d columns, which say where a node is in this graph and nothing of another one", ds.X.Cols))
		}
	}
	ds.times = nodes.times
	if name := r.asked.time; nodes.schema != nil && slices.ContainsFunc(nodes.schema.Columns, func(c schema.Column) bool { return c.Name == name }) {
		r.note(nodeFile.path, "nodes are split by the column %s, which is a feature too; --ignore %s leaves it out", quote(name), name)
	}
	ds.Roles, ds.Merge, ds.Ignored, ds.Notes, ds.Columns = r.roles, list.merge, r.asked.Ignore, r.notes, nodes.schema
	if ds.Columns != nil {
		ds.Columns.Roles, ds.Columns.Merge = r.roles.byName(), list.merge
	}
	return ds, nil
}

// tablesAlone is the Checksum that a folder has without [SchemaFile]; empty where it cannot be read so.
func tablesAlone(dir string, names []string) string {
	var paths []string
	for _, base := range []string{"edges", "nodes"} {
		if name, _ := tableNamed(dir, names, base); name != "" {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	for _, name := range []string{npyFile, npzFile} {
		if slices.Contains(names, name) {
			paths = append(paths, filepath.Join(dir, name))
		}
	}
	sum, _ := ChecksumOf(paths...)
	return sum
}

// DescribeByPlaces puts what says where nodes are in the graph, [graph.Encodings], in the place of their
// features. Those of a graph store cannot be replaced, and what was done to edges before would be another thing
// by places.
func (d *Dataset) DescribeByPlaces() error {
	switch {
	case d.Structural:
		return nil
	case d.Stored != nil:
		return fmt.Errorf("%s: a graph store keeps its features: leave data.node_features auto", d.called())
	case d.Corruption != nil || d.Rewired != nil:
		return fmt.Errorf("%s: its edges were changed before its features: read it with data.node_features = %s or %s", d.called(), FeaturesPlaces, FeaturesRoles)
	}
	return d.places()
}

// places describes nodes by their places in the graph alone.
func (d *Dataset) places() error {
	x, err := graph.Encodings(d.Graph)
	if err != nil {
		return fmt.Errorf("%s: %w", d.called(), err)
	}
	d.X, d.Structural, d.Columns = &Features{Rows: d.Graph.N, Cols: graph.EncodingWidth(d.Graph.N), Dense: x}, true, nil
	return nil
}

// PlacesAs leaves of places in the graph the first columns: [FeaturesRoles], or what models of versions before
// [graph.Marks] were trained on.
func (d *Dataset) PlacesAs(cols int) {
	if !d.Structural || cols <= 0 || cols >= d.X.Cols {
		return
	}
	x := &Features{Rows: d.X.Rows, Cols: cols}
	for i := range d.X.Rows {
		x.Dense = append(x.Dense, d.X.Dense[i*d.X.Cols:][:cols]...)
	}
	d.X = x
}

// featureFile reads features.npy, or features.npz with a dense array or the
// arrays that scipy.sparse.save_npz writes.
func (l *loader) featureFile(path string) (_ *Features, err error) {
	defer within(path, &err)
	b, err := l.file(path)
	if err != nil {
		return nil, err
	}
	defer l.done(b)
	if strings.HasSuffix(path, ".npy") {
		arr, err := parseNPY(b)
		if err != nil {
			return nil, fileFault(path, err)
		}
		arr.mem = l.mem
		f := l.spill.dense(arr)
		if f != nil {
			err = f.Check()
		} else {
			f, err = denseFeatures(arr)
		}
		if err != nil {
			return nil, fileFault(path, err)
		}
		return f, nil
	}
	a, err := l.openNPZ(path, b)
	if err != nil {
		return nil, err
	}
	if a.has("indptr") || a.has("format") {
		if a.has("format") {
			arr := a.get("format")
			// Python 3 writes b'csr', a [] array of type S3.
			if arr.dtype.kind != 'S' || strings.TrimRight(string(arr.data), "\x00") != "csr" {
				return nil, badFile(path, "the sparse matrix is not in CSR form").hint("write it with scipy.sparse.save_npz(%q, matrix.tocsr())", npzFile)
			}
		}
		f, err := a.csr("").features()
		if err != nil {
			return nil, fileFault(path, err)
		}
		return f, nil
	}
	if len(a.names) != 1 {
		return nil, badFile(path, "holds %s", nameList(a.names)).hint("expected one dense array, or what scipy.sparse.save_npz writes for a CSR matrix")
	}
	f, err := denseFeatures(a.get(a.names[0]))
	a.check(a.names[0], err)
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

// nodeTable is what the table of nodes says.
type nodeTable struct {
	ids      []string // in the file's order; nil if there is no file
	index    map[string]int32
	labels   []string  // nil if there is no label column
	split    *Split    // nil if there is no split column
	times    []float64 // to split by, NaN at gaps; nil if there is no such column
	features *Features
	schema   *schema.Schema // nil without columns of features

	// Of the first pass: the columns, and what is found of those of features.
	header   []string
	at       nodeColumns
	profiles []profile
	form     rowForm
}

// unknownLabel reports whether a label cell says that the label is not known.
func unknownLabel(s string) bool {
	x, err := strconv.ParseFloat(s, 64)
	return gap(s) || err == nil && x == -1
}

// unknownWords lists the texts, and how often they are there, that say that a label is not known.
func (nt *nodeTable) unknownWords() (words []string) {
	counts := map[string]int{}
	for _, s := range nt.labels {
		if s != "" && unknownLabel(s) {
			counts[s]++
		}
	}
	for _, s := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%s (%d nodes)", quote(s), counts[s]))
	}
	return words
}

// add enters a node under the part that a split cell names.
func (s *Split) add(t *table, col int, v int32) *FileError {
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

// mark enters a node under the part whose mask is true.
func (s *Split) mark(t *table, masks [3]int, v int32) *FileError {
	in := -1
	for p, part := range s.parts() {
		if masks[p] < 0 {
			continue
		}
		x, ok := cellValue(schema.Boolean, t.row[masks[p]])
		switch {
		case !ok:
			return t.fault(masks[p], "the mask of a part of the split is not a %s", wants[schema.Boolean])
		case x == 1 && in >= 0:
			return t.fault(masks[p], "the node is in both the %s and the %s part of the split", partNames[in], partNames[p]).hint("a node is in one part, or --ignore leaves the masks out")
		case x == 1:
			in, *part = p, append(*part, v)
		}
	}
	return nil
}

// labelClasses numbers the classes: whole numbers in ascending order, other
// names alphabetically.
func (nt *nodeTable) labelClasses(n int) ([]int32, []string) {
	labels := slices.Repeat([]int32{-1}, n)
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
			return cmp.Compare(x, y)
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
