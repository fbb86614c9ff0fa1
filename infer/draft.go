package infer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/gsrc-dev/gsrc/graph"
)

// Update is a change to an online graph: nodes and edges are added and deleted, and
// features changed, all of it or nothing. Nodes are named as the data name them, by
// their numbers where the data have no names.
//
// New nodes come first, then changed features, deleted edges, new edges, and at last
// deleted nodes, which lose their edges. A node that is deleted may not occur in the
// rest of the update.
type Update struct {
	// X are the features of new nodes, [new, D], row after row.
	X []float32
	// IDs name the new nodes. Where the data have no names they may be left out; given
	// ones must be the next numbers. A name is never used again.
	IDs []string
	// Sources and Targets name the ends of new edges, old nodes or new ones. Edges that are
	// there already and self-loops are left out.
	Sources, Targets []string
	// Weights are those of the new edges, as in the data, where a transform of the training
	// comes after; nil is ones. They are for models that read weights.
	Weights []float32
	// DeleteSources and DeleteTargets name the ends of edges that are deleted; those
	// that are not there are left out.
	DeleteSources, DeleteTargets []string
	// ChangeNodes are nodes whose features become the rows of ChangeX, [changed, D].
	ChangeNodes []string
	ChangeX     []float32
	// DeleteNodes are deleted with their edges. Their numbers stay free.
	DeleteNodes []string
	// Key, if not empty, has the update made once, however often it is asked for: for
	// the same key and content [Graph.Update] returns what it returned the first time.
	Key string
}

// clone has slices of its own.
func (u Update) clone() Update {
	for _, list := range []*[]float32{&u.X, &u.Weights, &u.ChangeX} {
		*list = slices.Clone(*list)
	}
	for _, list := range []*[]string{&u.IDs, &u.Sources, &u.Targets, &u.DeleteSources, &u.DeleteTargets, &u.ChangeNodes, &u.DeleteNodes} {
		*list = slices.Clone(*list)
	}
	return u
}

// UpdateError says what is wrong with an [Update].
type UpdateError struct{ Reason string }

func (e *UpdateError) Error() string { return e.Reason }

func badUpdate(format string, args ...any) error { return &UpdateError{fmt.Sprintf(format, args...)} }

// edit is an [Update] that was held against a version, by rows; in a journal by numbers.
type edit struct {
	x       []float32 // of new nodes
	ids     []string  // of new nodes; nil where nodes are called by their numbers
	add     [][2]int32
	weights []float32 // of add; nil is ones
	remove  [][2]int32
	change  []int32
	changeX []float32
	drop    []int32 // deleted nodes
}

// changes are what a version has that the one before has not, and the reverse. Nodes are
// rows; lists are ascending.
type changes struct {
	nodes   []int32    // new nodes, and those whose features are others
	deleted []int32    // nodes
	added   [][2]int32 // edges as [graph.Graph] lists them
	removed [][2]int32 // edges, those of deleted nodes included
}

// none tells that a version is as the one before.
func (c *changes) none(old, next *Snapshot) bool {
	return len(c.nodes)+len(c.deleted)+len(c.added)+len(c.removed) == 0 && next.next == old.next
}

// draft is a version in the making. It shares with the version before what it has not
// changed. New names are appended behind those of the version before, whose readers do
// not look there; so only one draft of a version is made at a time.
type draft struct {
	old     *Snapshot
	x       matrix
	own     map[int]bool // blocks of x that are the draft's alone; −1 is the list of them
	ids     []string
	names   map[string]int32 // rows of new nodes
	deleted bitset
	numbering
	changed map[int32]bool // nodes with other features, new ones included
	dropped []int32        // deleted nodes
	// edges that were added (true) or deleted (false), as the graph lists them.
	edges   map[[2]int32]bool
	weights map[[2]int32]float32 // of added edges; others weigh 1
}

func newDraft(old *Snapshot) *draft {
	return &draft{old: old, x: old.x, own: map[int]bool{}, ids: old.ids, names: map[string]int32{},
		deleted: old.deleted, numbering: old.numbering, changed: map[int32]bool{}, edges: map[[2]int32]bool{}, weights: map[[2]int32]float32{}}
}

// find returns the row of a node of the draft by its name, though it be deleted: −1 where it has none.
func (d *draft) find(name string) (row int32, ok bool) {
	if row, ok = d.names[name]; ok {
		return row, true
	}
	v, ok := d.old.numberOf(name)
	if d.ids == nil {
		v, ok = numbered(name, d.next)
	}
	if !ok {
		return 0, false
	}
	return int32(d.row(v)), true
}

// gone tells whether a row, or −1, is of a deleted node.
func (d *draft) gone(row int32) bool { return row < 0 || d.deleted.has(int(row)) }

// resolve holds an update against the draft, which does not change.
func (d *draft) resolve(u *Update) (*edit, error) {
	e := &edit{x: u.X, changeX: u.ChangeX}
	width := d.x.cols
	if width == 0 || len(u.X)%width != 0 {
		return nil, badUpdate("%d numbers are no rows of %d features", len(u.X), width)
	}
	count := len(u.X) / width
	if len(u.IDs) != 0 && len(u.IDs) != count || len(u.IDs) == 0 && d.ids != nil && count > 0 {
		return nil, badUpdate("%d names for %d new nodes", len(u.IDs), count)
	}
	if d.next+count > math.MaxInt32 || len(d.old.graph.Edges)+len(d.edges)+len(u.Sources) > math.MaxInt32/2 {
		return nil, badUpdate("%d more nodes and %d more edges are too many: a graph has at most %d nodes and %d edges", count, len(u.Sources), math.MaxInt32, math.MaxInt32/2)
	}
	if len(u.ChangeX) != len(u.ChangeNodes)*width {
		return nil, badUpdate("%d numbers for the features of %d nodes; each has %d", len(u.ChangeX), len(u.ChangeNodes), width)
	}
	if len(u.Sources) != len(u.Targets) || len(u.DeleteSources) != len(u.DeleteTargets) {
		return nil, badUpdate("%d sources and %d targets, and %d and %d of edges to delete: an edge has one of each", len(u.Sources), len(u.Targets), len(u.DeleteSources), len(u.DeleteTargets))
	}
	if info := &d.old.r.p.info; u.Weights != nil {
		switch {
		case !info.ReadsWeights():
			return nil, badUpdate("the model does not read weights of edges, and the update gives %d", len(u.Weights))
		case d.old.graph.Weights == nil:
			return nil, badUpdate("the edges of these data have no weights, and the update gives %d", len(u.Weights))
		case len(u.Weights) != len(u.Sources):
			return nil, badUpdate("%d weights for %d new edges", len(u.Weights), len(u.Sources))
		}
		for i, w := range u.Weights {
			if !(w >= 0 && w <= graph.MaxWeight) {
				return nil, badUpdate("the weight of edge %d is %v; weights are numbers from 0 to %g", i, w, graph.MaxWeight)
			}
		}
	}
	if count+len(u.Sources)+len(u.DeleteSources)+len(u.ChangeNodes)+len(u.DeleteNodes) == 0 {
		return nil, badUpdate("there is nothing to add, to delete or to change")
	}
	for _, rows := range []struct {
		x    []float32
		node func(i int) string
	}{
		{u.X, func(i int) string { return fmt.Sprintf("new node %d", i) }},
		{u.ChangeX, func(i int) string { return fmt.Sprintf("the node %.200q", u.ChangeNodes[i]) }},
	} {
		if i := slices.IndexFunc(rows.x, func(v float32) bool { return v-v != 0 }); i >= 0 {
			return nil, badUpdate("feature %d of %s is %v; features are finite", i%width, rows.node(i/width), rows.x[i])
		}
		if i := tooLarge(width, rows.x); i >= 0 {
			return nil, badUpdate("the features of %s %s", rows.node(i), tooLargeText)
		}
	}
	fresh := make(map[string]int32, count)
	for i := range count {
		name := strconv.Itoa(d.next + i)
		if len(u.IDs) > 0 {
			if d.ids == nil && u.IDs[i] != name {
				return nil, badUpdate("new node %d is called %.200q; the nodes of these data are called by their numbers, and the next is %s", i, u.IDs[i], name)
			}
			name = u.IDs[i]
		}
		if d.ids != nil {
			if err := checkName(name); err != nil {
				return nil, badUpdate("new node %d is called %.200q: %v", i, name, err)
			}
			if v, taken := d.find(name); taken && d.gone(v) {
				return nil, badUpdate("new node %d is called %.200q: that was a node that is deleted, and names are not used again", i, name)
			} else if _, again := fresh[name]; taken || again {
				return nil, badUpdate("new node %d is called %.200q: another node has that name", i, name)
			}
			e.ids = append(e.ids, name)
		}
		fresh[name] = int32(d.x.rows + i)
	}
	gone := make(map[int32]bool, len(u.DeleteNodes))
	find := func(what string, i int, name string) (int32, error) {
		v, ok := fresh[name]
		if !ok {
			if v, ok = d.find(name); !ok {
				return 0, badUpdate("%s %d is %.200q, and there is no such node", what, i, name)
			}
		}
		if d.gone(v) {
			return 0, badUpdate("%s %d is %.200q, and that node was deleted", what, i, name)
		}
		if gone[v] {
			return 0, badUpdate("%s %d is %.200q, which the update deletes", what, i, name)
		}
		return v, nil
	}
	for i, name := range u.DeleteNodes {
		v, err := find("node to delete", i, name)
		if err != nil {
			return nil, err
		}
		if _, both := fresh[name]; both {
			return nil, badUpdate("the new node %.200q is deleted by the same update", name)
		}
		gone[v] = true
		e.drop = append(e.drop, v)
	}
	if d.x.rows+count-d.deleted.count-len(gone) == 0 {
		return nil, badUpdate("no node would be left; a graph has one at least")
	}
	ends := func(what string, sources, targets []string, weights []float32) (list [][2]int32, w []float32, err error) {
		for i := range sources {
			u, err := find("source of "+what, i, sources[i])
			if err != nil {
				return nil, nil, err
			}
			v, err := find("target of "+what, i, targets[i])
			if err != nil {
				return nil, nil, err
			}
			if u > v && !d.old.graph.Directed {
				u, v = v, u
			}
			if u != v {
				list = append(list, [2]int32{u, v})
				if weights != nil {
					w = append(w, d.old.r.p.info.Weights.Of(weights[i]))
				}
			}
		}
		return list, w, nil
	}
	var err error
	if e.add, e.weights, err = ends("edge", u.Sources, u.Targets, u.Weights); err != nil {
		return nil, err
	}
	if e.remove, _, err = ends("edge to delete", u.DeleteSources, u.DeleteTargets, nil); err != nil {
		return nil, err
	}
	seen := make(map[int32]bool, len(u.ChangeNodes))
	for i, name := range u.ChangeNodes {
		v, err := find("node to change", i, name)
		if err != nil {
			return nil, err
		}
		if seen[v] {
			return nil, badUpdate("the features of the node %.200q are changed twice", name)
		}
		seen[v] = true
		e.change = append(e.change, v)
	}
	return e, nil
}

// apply makes an edit that was resolved for the draft as it is.
func (d *draft) apply(e *edit) {
	for i, at := d.x.rows, 0; at < len(e.x); i, at = i+1, at+d.x.cols {
		d.x.append(e.x[at:at+d.x.cols], d.own)
		d.add()
		d.changed[int32(i)] = true
		if d.ids != nil {
			d.names[e.ids[at/d.x.cols]] = int32(i)
		}
	}
	d.ids = append(d.ids, e.ids...)
	for i, v := range e.change {
		if row := e.changeX[i*d.x.cols : (i+1)*d.x.cols]; !slices.Equal(row, d.x.row(int(v))) {
			d.x.set(int(v), row, d.own)
			d.changed[v] = true
		}
	}
	for _, pair := range e.remove {
		if d.has(pair) {
			d.edges[pair] = false
		}
	}
	for i, pair := range e.add {
		if !d.has(pair) {
			d.edges[pair] = true
			d.weights[pair] = d.old.r.p.info.Weights.Of(1)
			if e.weights != nil {
				d.weights[pair] = e.weights[i]
			}
		}
	}
	for _, v := range e.drop {
		d.deleted = d.deleted.with(int(v), len(d.dropped) == 0)
		d.dropped = append(d.dropped, v)
	}
}

func (d *draft) has(pair [2]int32) bool {
	if there, ok := d.edges[pair]; ok {
		return there
	}
	return d.old.graph.Has(pair[0], pair[1])
}

// finish makes the draft a version without answers, and tells what it has changed.
func (d *draft) finish() (*Snapshot, *changes) {
	c := &changes{}
	for v := range d.changed {
		if !d.deleted.has(int(v)) {
			c.nodes = append(c.nodes, v)
		}
	}
	slices.Sort(c.nodes)
	for _, v := range d.dropped {
		if int(v) < d.old.rows() { // others were never there
			c.deleted = append(c.deleted, v)
		}
	}
	slices.Sort(c.deleted)
	s := &Snapshot{Version: d.old.Version + 1, r: d.old.r, x: d.x, ids: d.ids, deleted: d.deleted, numbering: d.numbering}
	s.graph = d.merge(c)
	return s, c
}

// merge makes the graph of the edges before and the edited ones, and enters what is
// other.
func (d *draft) merge(c *changes) *graph.Graph {
	old := d.old.graph
	g := &graph.Graph{N: d.x.rows, Edges: old.Edges, Weights: old.Weights, Directed: old.Directed}
	if len(d.dropped) > 0 {
		for pair := range d.edges {
			if d.deleted.has(int(pair[0])) || d.deleted.has(int(pair[1])) {
				d.edges[pair] = false
			}
		}
		for _, pair := range old.Edges {
			if d.deleted.has(int(pair[0])) || d.deleted.has(int(pair[1])) {
				d.edges[pair] = false
			}
		}
	}
	if len(d.edges) == 0 {
		return g
	}
	g.Edges = make([][2]int32, 0, len(old.Edges)+len(d.edges))
	if g.Weights != nil {
		g.Weights = make([]float32, 0, cap(g.Edges))
	}
	at := 0 // in the edges before
	keep := func(end int) {
		g.Edges = append(g.Edges, old.Edges[at:end]...)
		if g.Weights != nil {
			g.Weights = append(g.Weights, old.Weights[at:end]...)
		}
		at = end
	}
	for _, pair := range slices.SortedFunc(maps.Keys(d.edges), compareEdges) {
		i, before := slices.BinarySearchFunc(old.Edges[at:], pair, compareEdges)
		keep(at + i)
		weight := float32(1)
		if before {
			if old.Weights != nil {
				weight = old.Weights[at]
			}
			at++
		}
		after, now := d.edges[pair], float32(1)
		if after {
			g.Edges = append(g.Edges, pair)
			if g.Weights != nil {
				now = d.weights[pair]
				g.Weights = append(g.Weights, now)
			}
		}
		same := before && after && weight == now
		if before && !same {
			c.removed = append(c.removed, pair)
		}
		if after && !same {
			c.added = append(c.added, pair)
		}
	}
	keep(len(old.Edges))
	return g
}

// matrix is a matrix of float32 in blocks of rows, so that versions share those that
// are the same in both.
type matrix struct {
	rows, cols int
	block      int // rows of a block
	blocks     [][]float32
	whole      []float32 // all rows in one piece, or nil
}

// blockSize is how many numbers a block has, about.
const blockSize = 1 << 13

// matrixOf makes x, row-major, a matrix in the same memory.
func matrixOf(x []float32, cols int) matrix {
	m := matrix{rows: len(x) / max(1, cols), cols: cols, block: max(1, blockSize/max(1, cols)), whole: x}
	for b := range slices.Chunk(x, m.block*max(1, cols)) {
		m.blocks = append(m.blocks, b[:len(b):len(b)])
	}
	return m
}

func (m *matrix) row(i int) []float32 {
	at := i % m.block * m.cols
	return m.blocks[i/m.block][at : at+m.cols]
}

// write makes block b, and the list of blocks, m's alone. owned are those that are.
func (m *matrix) write(b int, owned map[int]bool) {
	m.whole = nil
	if !owned[-1] {
		m.blocks = slices.Clone(m.blocks)
		owned[-1] = true
	}
	if b == len(m.blocks) {
		m.blocks = append(m.blocks, nil)
	}
	if !owned[b] {
		m.blocks[b] = append(make([]float32, 0, m.block*m.cols), m.blocks[b]...)
		owned[b] = true
	}
}

// set replaces a row.
func (m *matrix) set(i int, row []float32, owned map[int]bool) {
	m.write(i/m.block, owned)
	copy(m.row(i), row)
}

// append adds a row.
func (m *matrix) append(row []float32, owned map[int]bool) {
	b := m.rows / m.block
	m.write(b, owned)
	m.blocks[b] = append(m.blocks[b], row...)
	m.rows++
}

// appendRows appends all rows to dst but those to be left out.
func (m *matrix) appendRows(dst []float32, leave func(int) bool) []float32 {
	dst = slices.Grow(dst, m.rows*m.cols)
	for i := range m.rows {
		if !leave(i) {
			dst = append(dst, m.row(i)...)
		}
	}
	return dst
}

// bitset is a set of numbers.
type bitset struct {
	words []uint64
	count int
}

func (b bitset) has(i int) bool { return i/64 < len(b.words) && b.words[i/64]&(1<<(i%64)) != 0 }

// others returns the numbers below n that are not in the set.
func (b bitset) others(n int) []int32 {
	list := make([]int32, 0, n-b.count)
	for v := range n {
		if !b.has(v) {
			list = append(list, int32(v))
		}
	}
	return list
}

// with returns the set with i, which it lacked, in memory of its own if copied.
func (b bitset) with(i int, copied bool) bitset {
	n := max(len(b.words), i/64+1)
	if copied || n > len(b.words) {
		b.words = append(make([]uint64, 0, n), b.words...)[:n]
	}
	b.words[i/64] |= 1 << (i % 64)
	b.count++
	return b
}

func compareEdges(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }

// checkName refuses names that would not come back from a file.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("a name is not empty")
	case !utf8.ValidString(name):
		return errors.New("names are text in UTF-8")
	}
	runes := []rune(name)
	if unicode.IsSpace(runes[0]) || unicode.IsSpace(runes[len(runes)-1]) || runes[0] == '\ufeff' {
		return errors.New("a name does not begin or end with a space")
	}
	for _, r := range runes {
		if unicode.IsControl(r) {
			return errors.New("a name has no control characters")
		}
	}
	return nil
}
