package graph

import (
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// OnlineEdgePrior keeps the probabilities of edges, by a calibration, while the graph
// changes: to the bit what [Calibration.Probabilities] gives for the graph as it is.
type OnlineEdgePrior struct {
	c *Calibration
	n *neighbourhoods
	p map[[2]int32][]float32 // after each round
	a *adder

	undo struct {
		n    int
		p    map[[2]int32][]float32 // nil where there was none
		rows map[int32]sparseRow
		lens map[int32]float64
	}
}

// NewOnlineEdgePrior starts with the edges of an undirected graph, for whose attributes the calibration
// is.
func NewOnlineEdgePrior(pool *kernels.Pool, g *Graph, x NodeFeatures, c *Calibration) *OnlineEdgePrior {
	o := &OnlineEdgePrior{c: c, p: make(map[[2]int32][]float32, len(g.Edges)), a: newAdder(len(c.Columns)), n: &neighbourhoods{}}
	if len(c.Rounds) == 0 {
		return o
	}
	o.n = newNeighbourhoods(g, x, c.Columns)
	p, cos := ones(len(g.Edges)), make([]float32, len(g.Edges))
	all := make([]float32, len(g.Edges)*len(c.Rounds))
	for r, steps := range c.Rounds {
		o.n.sum(pool, p)
		o.n.compare(pool, cos, p)
		for i, s := range cos {
			p[i] = steps.At(s)
			all[i*len(c.Rounds)+r] = p[i]
		}
	}
	for i, e := range g.Edges {
		o.p[e] = all[i*len(c.Rounds) : (i+1)*len(c.Rounds)]
	}
	o.n.st, o.n.edges = nil, nil
	clear(o.n.sums)
	return o
}

// OnlineEdgePriorBytes is what an [OnlineEdgePrior] holds of each node, whose attributes
// have that many numbers other than 0.
func OnlineEdgePriorBytes(attributes int) int64 { return 2*2*24 + 3*8 + 2*8*int64(attributes) }

// P returns the probability of the edge {u, v}.
func (o *OnlineEdgePrior) P(u, v int32) float32 {
	if len(o.c.Rounds) == 0 {
		return 1
	}
	p := o.p[[2]int32{min(u, v), max(u, v)}]
	return p[len(p)-1]
}

// Change follows the graph: neighbours gives those of a node as they are now, ascending,
// row the attributes, edges were added or removed, nodes have other attributes or are new,
// and n is how many there are now, at least as many as before. It returns the edges with
// another probability than before, or none before, in no order. [OnlineEdgePrior.Undo] takes the last
// change back.
func (o *OnlineEdgePrior) Change(n int, nodes []int32, row func(int32) []float32, added, removed [][2]int32, neighbours func(int32) []int32) (changed [][2]int32) {
	if len(o.c.Rounds) == 0 {
		return added
	}
	u := &o.undo
	u.n, u.p, u.rows, u.lens = len(o.n.rows), map[[2]int32][]float32{}, map[int32]sparseRow{}, map[int32]float64{}
	o.resize(n)
	for _, v := range nodes {
		u.rows[v], u.lens[v] = o.n.rows[v], o.n.rowLen[v]
		x := NodeFeatures{Cols: len(o.c.Columns), Dense: row(v)}
		o.n.rows[v], o.n.rowLen[v] = x.scaled(0, o.c.Columns)
	}
	for _, e := range removed {
		u.p[e] = o.p[e]
		delete(o.p, e)
	}
	for _, e := range added {
		if _, ok := u.p[e]; !ok {
			u.p[e] = nil
		}
		o.p[e] = make([]float32, len(o.c.Rounds))
	}
	weight := func(a, b int32, r int) float32 {
		if r == 0 {
			return 1
		}
		return o.p[[2]int32{min(a, b), max(a, b)}][r-1]
	}
	other := slices.Concat(added, removed) // edges that count otherwise in the neighbourhoods
	for r := range o.c.Rounds {
		moved := map[int32]bool{} // nodes with other neighbourhoods
		for _, v := range nodes {
			moved[v] = true
			for _, w := range neighbours(v) {
				moved[w] = true
			}
		}
		for _, e := range other {
			moved[e[0]], moved[e[1]] = true, true
		}
		summed := map[int32]bool{}
		sum := func(v int32) {
			if summed[v] {
				return
			}
			summed[v] = true
			o.a.begin(sparseRow{}, o.n.rows[v])
			for _, w := range neighbours(v) {
				o.a.add(o.n.rows[w], weight(v, w, r))
			}
			o.n.end(int(v), o.a)
		}
		seen := map[[2]int32]bool{}
		for v := range moved {
			for _, w := range neighbours(v) {
				e := [2]int32{min(v, w), max(v, w)}
				if seen[e] {
					continue
				}
				seen[e] = true
				sum(v)
				sum(w)
				p := o.c.Rounds[r].At(o.n.cosine(e, float64(weight(v, w, r))))
				if old := o.p[e]; old[r] != p {
					if _, ok := u.p[e]; !ok {
						u.p[e] = old
						o.p[e] = slices.Clone(old)
					}
					o.p[e][r] = p
					other = append(other, e)
				}
			}
		}
		for v := range summed {
			o.n.sums[v] = sparseRow{}
		}
	}
	last := len(o.c.Rounds) - 1
	for e, old := range u.p {
		if p := o.p[e]; p != nil && (old == nil || old[last] != p[last]) {
			changed = append(changed, e)
		}
	}
	return changed
}

func (o *OnlineEdgePrior) resize(n int) {
	s := o.n
	if more := n - len(s.rows); more > 0 {
		s.rows, s.sums = append(s.rows, make([]sparseRow, more)...), append(s.sums, make([]sparseRow, more)...)
		s.rowLen, s.sumLen, s.both = append(s.rowLen, make([]float64, more)...), append(s.sumLen, make([]float64, more)...), append(s.both, make([]float64, more)...)
		return
	}
	s.rows, s.sums, s.rowLen, s.sumLen, s.both = s.rows[:n], s.sums[:n], s.rowLen[:n], s.sumLen[:n], s.both[:n]
}

// Undo makes everything as it was before the last change.
func (o *OnlineEdgePrior) Undo() {
	if len(o.c.Rounds) == 0 {
		return
	}
	for e, p := range o.undo.p {
		if p == nil {
			delete(o.p, e)
		} else {
			o.p[e] = p
		}
	}
	for v, r := range o.undo.rows {
		o.n.rows[v], o.n.rowLen[v] = r, o.undo.lens[v]
	}
	o.resize(o.undo.n)
	o.undo.p, o.undo.rows, o.undo.lens = nil, nil, nil
}
