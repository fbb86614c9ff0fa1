package data

import (
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// tu reads a data set in the text format of the TU collection (Morris et al.,
// "TUDataset: a collection of benchmark datasets for learning with graphs",
// 2020): NAME_A.txt lists edges between nodes that are numbered from 1 through
// all graphs, NAME_graph_indicator.txt says which graph each node is in,
// NAME_graph_labels.txt the class of each graph, which are unknown without; NAME_node_labels.txt,
// NAME_node_attributes.txt and NAME_edge_labels.txt are optional, too.
func (l *loader) tu(s *fileSet, name string) (*Collection, error) {
	c := &Collection{Name: strings.ToLower(name), Source: s.root, Format: "tu"}
	file := func(part string) string { return name + "_" + part + ".txt" }
	for _, part := range []string{"A", "graph_indicator"} {
		if s.has(file(part)) {
			continue
		}
		return nil, badFile(s.path(file(part)), "the file is missing").hint("a TU data set has %s, %s and, where the classes are known, %s", file("A"), file("graph_indicator"), file("graph_labels"))
	}
	if s.has(file("graph_labels")) {
		raw, err := readInts(s, file("graph_labels"), "the class of a graph")
		if err != nil {
			return nil, hinted(err, "a graph has one class; data with real numbers to predict are not read")
		}
		if c.Labels, c.ClassNames, c.Classes, err = numberClasses(l.mem, raw); err != nil {
			return nil, fileFault(s.path(file("graph_labels")), err)
		}
	}

	order, err := c.readIndicator(s, file("graph_indicator"))
	if err != nil {
		return nil, err
	}
	list, err := c.readTUEdges(s, file("A"), order)
	if err != nil {
		return nil, err
	}
	union, err := list.build(len(order), l.opts.Directed, true, &c.Repairs, l.mem)
	if err != nil {
		return nil, fileFault(s.path(file("A")), err)
	}
	if err := l.mem.Grow(int64(unsafe.Sizeof(*union)+8) * int64(len(c.Labels))); err != nil {
		return nil, fileFault(s.path(file("A")), err)
	}
	c.Graphs = cut(union, c.Offset)
	if s.has(file("edge_labels")) {
		if err := c.readEdgeLabels(s, file("edge_labels"), list); err != nil {
			return nil, err
		}
	}

	var d described
	if s.has(file("node_labels")) {
		if d.labels, d.labelCols, err = perNode(s, name, "node_labels", "the label of a node", 1024, order, (*textFile).int); err != nil {
			return nil, err
		}
	}
	if s.has(file("node_attributes")) {
		x := &Features{Rows: len(order)}
		if x.Dense, x.Cols, err = perNode(s, name, "node_attributes", "an attribute of a node", maxCols, order, (*textFile).float); err != nil {
			return nil, err
		}
		d.attrs = x
	}
	if err := c.describe(l.opts.NodeFeatures, d, l.mem); err != nil {
		return nil, err
	}
	for _, part := range []string{"edge_attributes", "graph_attributes"} {
		if s.has(file(part)) {
			c.Unused = append(c.Unused, file(part))
		}
	}
	return c, c.readFolds(s)
}

// readInts reads a file of one whole number a line.
func readInts(s *fileSet, name, what string) ([]int64, error) {
	t := s.open(name)
	defer t.close()
	values, _, _, err := matrix(t, what, 1, (*textFile).int)
	return values, err
}

// perNode reads a file of a line for each node, into the order of their new numbers.
func perNode[T any](s *fileSet, name, part, what string, most int, order []int32, take func(t *textFile, what string) T) (values []T, cols int, err error) {
	t := s.open(name + "_" + part + ".txt")
	defer t.close()
	defer t.within(&err)
	values, rows, cols, err := matrix(t, what, most, take)
	if err != nil {
		return nil, 0, err
	}
	if rows != len(order) {
		return nil, 0, t.short("describes %d nodes, %s_graph_indicator.txt has %d", rows, name, len(order))
	}
	return permute(t.mem, values, cols, order), cols, nil
}

// readIndicator reads which graph each node belongs to, sets Offset, and Labels where there
// are none, and returns the new number of each node: graph by graph, in the file's order
// within one.
func (c *Collection) readIndicator(s *fileSet, name string) (_ []int32, err error) {
	t := s.open(name)
	defer t.close()
	defer t.within(&err)
	var in []int32 // the graph of each node, from 0
	most, last := len(c.Labels), 0
	if c.Labels == nil {
		most = math.MaxInt32 - 1
	}
	err = t.each(func() {
		g := t.index("graph", 1, most+1)
		t.end("the number of one graph")
		if len(in) == math.MaxInt32-1 {
			t.fail("more than %d nodes", math.MaxInt32-1)
		}
		last = max(last, g)
		push(t.mem, &in, int32(g-1))
	})
	if err != nil {
		return nil, err
	}
	if c.Labels == nil {
		if last == 0 || last > len(in) {
			return nil, t.short("lists %d nodes of %d graphs, each of which has one at least", len(in), last)
		}
		c.Labels = filled[int32](t.mem, last, -1)
	}
	claim(t.mem, 8*int64(len(c.Labels)+1))
	c.Offset = make([]int32, len(c.Labels)+1)
	for _, g := range in {
		c.Offset[g+1]++
	}
	for g := range c.Labels {
		if c.Offset[g+1] == 0 {
			return nil, t.short("no node is of graph %d, and a graph of a file needs one; leave the graph out", g+1)
		}
		c.Offset[g+1] += c.Offset[g]
	}
	next := slices.Clone(c.Offset)
	for v, g := range in {
		in[v] = next[g]
		next[g]++
	}
	return in, nil
}

// permute puts row i of a matrix into row order[i] of another, which takes its place in
// mem.
func permute[T any](mem *budget.Reservation, rows []T, cols int, order []int32) []T {
	out := zeros[T](mem, len(rows))
	for i, to := range order {
		copy(out[int(to)*cols:], rows[i*cols:(i+1)*cols])
	}
	mem.Shrink(int64(cap(rows)) * int64(unsafe.Sizeof(*new(T))))
	return out
}

// readTUEdges reads the list of edges and gives nodes their new numbers.
func (c *Collection) readTUEdges(s *fileSet, name string, order []int32) (*edgeList, error) {
	t := s.open(name)
	defer t.close()
	e := &edgeList{}
	g := 0 // the graph of the edge before
	err := t.each(func() {
		u, v := t.edge(1, len(order)+1)
		a, b := order[u-1], order[v-1]
		if a < c.Offset[g] || a >= c.Offset[g+1] {
			g = c.GraphOf(a)
		}
		if b < c.Offset[g] || b >= c.Offset[g+1] {
			t.fail("the edge joins node %d of graph %d and node %d of graph %d", u, g+1, v, c.GraphOf(b)+1)
		}
		push(t.mem, &e.src, a)
		push(t.mem, &e.dst, b)
	})
	return e, err
}

// readEdgeLabels reads a label for each line of the list of edges.
func (c *Collection) readEdgeLabels(s *fileSet, name string, list *edgeList) (err error) {
	defer within(s.path(name), &err)
	labels, err := readInts(s, name, "the label of an edge")
	if err != nil {
		return err
	}
	if len(labels) != len(list.src) {
		return badFile(s.path(name), "has %d lines, the list of edges has %d", len(labels), len(list.src)).hint("line i is the label of the edge in line i")
	}
	claim(s.l.mem, 24*int64(len(c.Graphs))+8*int64(c.NumEdges()))
	c.EdgeLabels = make([][]int64, len(c.Graphs))
	for g, one := range c.Graphs {
		c.EdgeLabels[g] = make([]int64, len(one.Edges))
	}
	for i := len(labels) - 1; i >= 0; i-- { // the first of equal edges is written last
		u, v := list.src[i], list.dst[i]
		g := c.GraphOf(u)
		one, base := c.Graphs[g], c.Offset[g]
		if k, ok := one.Find(u-base, v-base); ok { // a self-loop is not there
			c.EdgeLabels[g][k] = labels[i]
		}
	}
	return nil
}
