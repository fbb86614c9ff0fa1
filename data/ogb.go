package data

import (
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/data/store"
)

// ogb reads a node property task of the Open Graph Benchmark as it is downloaded
// (Hu et al., "Open graph benchmark", NeurIPS 2020): raw/edge.csv.gz,
// raw/node-feat.csv.gz, raw/node-label.csv.gz, raw/num-node-list.csv.gz and
// split/SCHEME/{train,valid,test}.csv.gz, none with a header. Files that were
// unpacked, without .gz, are read too.
func (l *loader) ogb(s *fileSet) (*Dataset, error) {
	ds := &Dataset{Name: strings.ToLower(s.name()), Source: s.root, Format: "ogb"}
	counts, err := readInts(s, ogbName(s, "raw/num-node-list.csv"), "a number of nodes")
	if err != nil {
		return nil, err
	}
	if len(counts) != 1 {
		return nil, badFile(s.root, "holds %d graphs", len(counts)).hint("of OGB's data sets those with one graph (ogbn-…) are read; for collections of graphs there is the TU format")
	}

	if !s.has(ogbName(s, "raw/node-feat.csv")) {
		return nil, badFile(s.root, "the nodes have no features: raw/node-feat.csv.gz is missing").hint("a data set without them, such as ogbn-proteins, needs features from elsewhere; docs/data.md says how a folder of your own looks")
	}
	t := s.open(ogbName(s, "raw/node-feat.csv"))
	defer t.close()
	values, n, cols, err := matrix(t, "a feature of a node", maxCols, (*textFile).float)
	if err != nil {
		return nil, err
	}
	if int64(n) != counts[0] {
		return nil, t.short("describes %d nodes, raw/num-node-list says %d", n, counts[0])
	}
	t.close()
	if ds.X, err = (&Features{Rows: n, Cols: cols, Dense: values}).compact(l.mem); err != nil {
		return nil, fileFault(t.file, err)
	}

	if err := ds.readOGBLabels(s); err != nil {
		return nil, err
	}
	list := &edgeList{}
	err = readOGBEdges(s, n, list, func(rows func() error) (err error) {
		if l.spill != nil {
			ds.Graph, err = l.spill.graph(n, l.opts.Directed, false, &ds.Repairs, func(_ *store.Edges, add store.Add) error {
				list.sink = add
				return rows()
			})
		} else if err = rows(); err == nil {
			ds.Graph, err = list.build(n, l.opts.Directed, false, &ds.Repairs, l.mem)
		}
		return err
	})
	if err != nil {
		return nil, inFile(s.path("raw/edge.csv"), 0, err)
	}
	list.done(l.mem)
	var left []string
	known := []string{"edge.csv", "node-feat.csv", "node-label.csv", "num-node-list.csv", "num-edge-list.csv", "node_year.csv"} // ogbn-arxiv is split by years
	files, _ := s.list("raw")
	for _, file := range files {
		if name := strings.TrimSuffix(file, ".gz"); !slices.Contains(known, name) || ogbName(s, "raw/"+name) != "raw/"+file {
			left = append(left, file)
		}
	}
	if len(left) > 0 {
		ds.Notes = append(ds.Notes, "raw: left out: "+nameList(left))
	}
	return ds, ds.readOGBSplit(s)
}

// ogbName returns what a file is called here: with .gz as downloaded, or without.
func ogbName(s *fileSet, name string) string {
	if !s.has(name+".gz") && s.has(name) {
		return name
	}
	return name + ".gz"
}

// readOGBLabels reads the class of each node; nan is unknown.
func (d *Dataset) readOGBLabels(s *fileSet) error {
	t := s.open(ogbName(s, "raw/node-label.csv"))
	defer t.close()
	var raw []int64
	_, cols, err := t.columns(maxClasses, func() {
		v, err := strconv.ParseFloat(string(t.field()), 64) // some files have 3.0 for 3
		switch {
		case math.IsNaN(v):
			v = -1
		case err != nil || v < 0 || v != math.Trunc(v) || v >= maxClasses:
			t.fail("expected a class, a whole number of 0 or more")
		}
		push(t.mem, &raw, int64(v))
	})
	if err != nil {
		return err
	}
	if cols > 1 {
		return badFile(t.file, "has %d labels for each node", cols).hint("tasks with several labels for each node are not read")
	}
	if len(raw) != d.X.Rows {
		return t.short("has %d labels, there are %d nodes", len(raw), d.X.Rows)
	}
	if d.Labels, d.Classes, err = classLabels(t.mem, raw); err != nil {
		return fileFault(t.file, err)
	}
	return nil
}

// readOGBEdges reads the list of edges of a graph of n nodes into e. Files are opened, and are in the
// checksum, also where into does not call rows, as that of [tableReader.edges].
func readOGBEdges(s *fileSet, n int, e *edgeList, into func(rows func() error) error) error {
	t := s.open(ogbName(s, "raw/edge.csv"))
	defer t.close()
	var counts []int64
	counted := s.has(ogbName(s, "raw/num-edge-list.csv"))
	if counted {
		var err error
		if counts, err = readInts(s, ogbName(s, "raw/num-edge-list.csv"), "a number of edges"); err != nil {
			return err
		}
	}
	return into(func() error {
		defer t.close()
		listed := int64(0)
		err := t.each(func() {
			u, v := t.edge(0, n)
			listed++
			if len(e.src) == math.MaxInt32/2 {
				t.fail("more than %d edges are not supported", math.MaxInt32/2)
			}
			if err := e.add(int32(u), int32(v), 1, t.mem); err != nil {
				panic(failed{err})
			}
		})
		if err == nil && counted && (len(counts) != 1 || counts[0] != listed) {
			err = t.short("has %d edges, raw/num-edge-list says otherwise", listed)
		}
		return err
	})
}

// readOGBSplit reads the split that comes with the data. A folder without any is
// no fault: one can be drawn.
func (d *Dataset) readOGBSplit(s *fileSet) error {
	_, schemes := s.list("split")
	if len(schemes) == 0 {
		return nil
	}
	if len(schemes) > 1 {
		return badFile(s.path("split"), "holds several splits: %s", nameList(schemes)).hint("keep one of them")
	}
	var split Split
	for i, part := range []string{"train", "valid", "test"} {
		t := s.open(ogbName(s, path.Join("split", schemes[0], part+".csv")))
		defer t.close()
		list := split.parts()[i]
		if _, _, err := t.columns(1, func() { push(t.mem, list, int32(t.index("node", 0, d.X.Rows))) }); err != nil {
			return err
		}
		slices.Sort(*list)
	}
	d.Splits = []Split{split}
	return nil
}
