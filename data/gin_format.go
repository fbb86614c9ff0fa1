package data

import (
	"math"
	"strings"
	"unsafe"
)

// ginText reads the text format of "How powerful are graph neural networks" (Xu
// et al., ICLR 2019): the number of graphs; for each graph a line "nodes class", or "nodes" where the class is unknown,
// and for each of its nodes a line "tag degree neighbour…", with neighbours
// numbered from 0 within the graph and, optionally, attributes after them. Where
// no two nodes differ in their tag it says nothing, and degrees take its place unless labels are asked for:
// a model that was trained with tags reads them in other graphs, too.
func (l *loader) ginText(s *fileSet, source, name string) (_ *Collection, err error) {
	t := s.open(name)
	defer t.close()
	defer t.within(&err)
	c := &Collection{Name: strings.ToLower(strings.TrimSuffix(name, ".txt")), Source: source, Format: "gin-text", Offset: []int32{0}}
	if !t.next() {
		return nil, badFile(t.file, "the file is empty")
	}
	count, err := ginCount(t)
	if err != nil {
		return nil, hinted(err, "GIN's text format begins with a line that has the number of graphs alone; for a TU data set give its folder or .zip")
	}
	if count < 1 || count > math.MaxInt32 {
		return nil, t.fault("%d graphs are not supported", count)
	}
	g := ginReader{textFile: t, l: l, c: c}
	for k := range count {
		g.graph(k, count)
	}
	if t.next() {
		return nil, t.fault("the file goes on after the last of its %d graphs", count)
	}
	if c.Labels, c.ClassNames, c.Classes, err = numberClasses(l.mem, g.classes); err != nil {
		return nil, inFile(t.file, t.n, err)
	}
	if len(g.unknown) > 0 {
		known := c.Labels
		c.Labels = zeros[int32](l.mem, len(c.Graphs))
		missing := 0
		for k := range c.Labels {
			if missing < len(g.unknown) && int(g.unknown[missing]) == k {
				c.Labels[k] = -1
				missing++
			} else {
				c.Labels[k] = known[k-missing]
			}
		}
		l.mem.Shrink(4 * int64(len(known)+cap(g.unknown)))
	}

	var d described
	if want := l.opts.NodeFeatures; want == FeaturesLabels || want == FeaturesBoth || len(distinct(l.mem, g.tags, 1, 0)) > 1 {
		d.labels, d.labelCols = g.tags, 1
	}
	if g.attrs != nil {
		d.attrs = &Features{Rows: c.Nodes(), Cols: g.attrCols, Dense: g.attrs}
	}
	if err := c.describe(l.opts.NodeFeatures, d, l.mem); err != nil {
		return nil, err
	}
	if source == s.root { // a folder or a .zip: folds lie beside the text
		err = c.readFolds(s)
	}
	return c, err
}

func ginCount(t *textFile) (count int64, err error) {
	defer t.within(&err)
	count = t.int("the number of graphs")
	t.end("the number of graphs alone")
	return count, nil
}

// ginReader reads one graph after the other.
type ginReader struct {
	*textFile
	l        *loader
	c        *Collection
	list     edgeList
	classes  []int64 // of the graphs that have one
	unknown  []int32 // the others
	tags     []int64
	attrs    []float32
	attrCols int
}

func (r *ginReader) graph(k, count int64) {
	if !r.next() {
		panic(failed{r.short("the file ends after %d of %d graphs", k, count)})
	}
	n := r.int("the number of nodes")
	if n < 1 || n > math.MaxInt32-1-int64(r.c.Nodes()) {
		r.fail("a graph of %d nodes is not supported", n)
	}
	if r.more() {
		push(r.mem, &r.classes, r.int("the class of the graph"))
	} else {
		push(r.mem, &r.unknown, int32(k))
	}
	r.end("the number of nodes and the class of a graph")
	r.list.src, r.list.dst = r.list.src[:0], r.list.dst[:0]
	for v := range n {
		if !r.next() {
			panic(failed{r.short("the file ends after %d of the %d nodes of graph %d", v, n, k)})
		}
		r.node(int32(v), int(n))
	}
	g, err := r.list.build(int(n), r.l.opts.Directed, true, &r.c.Repairs, r.mem)
	if err != nil {
		panic(failed{err})
	}
	claim(r.mem, int64(unsafe.Sizeof(*g)))
	push(r.mem, &r.c.Graphs, g)
	push(r.mem, &r.c.Offset, int32(r.c.Nodes())+int32(n))
}

// node reads the line of node v of a graph of n.
func (r *ginReader) node(v int32, n int) {
	tag, degree := r.int("the tag of a node"), r.int("the number of neighbours")
	if degree < 0 {
		r.fail("a node cannot have %d neighbours", degree)
	}
	for range degree {
		push(r.mem, &r.list.src, v)
		push(r.mem, &r.list.dst, int32(r.index("node", 0, n)))
	}
	cols := 0
	for ; r.more(); cols++ {
		push(r.mem, &r.attrs, r.float("an attribute of a node"))
	}
	if len(r.tags) == 0 {
		r.attrCols = cols
	}
	if cols != r.attrCols {
		panic(failed{r.fault("the node has %d attributes after its neighbours, the first node has %d", cols, r.attrCols).hint("the second number of the line is how many neighbours follow")})
	}
	push(r.mem, &r.tags, tag)
}
