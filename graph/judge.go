package graph

import (
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Judge keeps the evidence of edges, by a calibration, while the graph changes: to the bit
// what [Calibration.Evidence] gives for the graph as it is.
type Judge struct {
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

// NewJudge judges the edges of an undirected graph, for whose attributes the calibration
// is.
func NewJudge(pool *kernels.Pool, g *Graph, x NodeFeatures, c *Calibration) *Judge {
	j := &Judge{c: c, p: make(map[[2]int32][]float32, len(g.Edges)), a: newAdder(len(c.Columns)), n: &neighbourhoods{}}
	if len(c.Rounds) == 0 {
		return j
	}
	j.n = newNeighbourhoods(g, x, c.Columns)
	p, cos := ones(len(g.Edges)), make([]float32, len(g.Edges))
	all := make([]float32, len(g.Edges)*len(c.Rounds))
	for r, steps := range c.Rounds {
		j.n.sum(pool, p)
		j.n.compare(pool, cos, p)
		for i, s := range cos {
			p[i] = steps.At(s)
			all[i*len(c.Rounds)+r] = p[i]
		}
	}
	for i, e := range g.Edges {
		j.p[e] = all[i*len(c.Rounds) : (i+1)*len(c.Rounds)]
	}
	j.n.st, j.n.edges = nil, nil
	return j
}

// P returns the evidence of the edge {u, v}.
func (j *Judge) P(u, v int32) float32 {
	if len(j.c.Rounds) == 0 {
		return 1
	}
	p := j.p[[2]int32{min(u, v), max(u, v)}]
	return p[len(p)-1]
}

// Change follows the graph: neighbours gives those of a node as they are now, ascending,
// row the attributes, edges were added or removed, nodes have other attributes or are new,
// and n is how many there are now, at least as many as before. It returns the edges with
// other evidence than before, or none before, in no order. [Judge.Undo] takes the last
// change back.
func (j *Judge) Change(n int, nodes []int32, row func(int32) []float32, added, removed [][2]int32, neighbours func(int32) []int32) (changed [][2]int32) {
	if len(j.c.Rounds) == 0 {
		return added
	}
	u := &j.undo
	u.n, u.p, u.rows, u.lens = len(j.n.rows), map[[2]int32][]float32{}, map[int32]sparseRow{}, map[int32]float64{}
	j.resize(n)
	for _, v := range nodes {
		u.rows[v], u.lens[v] = j.n.rows[v], j.n.rowLen[v]
		x := NodeFeatures{Cols: len(j.c.Columns), Dense: row(v)}
		j.n.rows[v], j.n.rowLen[v] = x.scaled(0, j.c.Columns)
	}
	for _, e := range removed {
		u.p[e] = j.p[e]
		delete(j.p, e)
	}
	for _, e := range added {
		if _, ok := u.p[e]; !ok {
			u.p[e] = nil
		}
		j.p[e] = make([]float32, len(j.c.Rounds))
	}
	weight := func(a, b int32, r int) float32 {
		if r == 0 {
			return 1
		}
		return j.p[[2]int32{min(a, b), max(a, b)}][r-1]
	}
	other := slices.Concat(added, removed) // edges that count otherwise in the neighbourhoods
	for r := range j.c.Rounds {
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
			j.a.begin(sparseRow{}, j.n.rows[v])
			for _, w := range neighbours(v) {
				j.a.add(j.n.rows[w], weight(v, w, r))
			}
			j.n.end(int(v), j.a)
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
				p := j.c.Rounds[r].At(j.n.cosine(e, float64(weight(v, w, r))))
				if old := j.p[e]; old[r] != p {
					if _, ok := u.p[e]; !ok {
						u.p[e] = old
						j.p[e] = slices.Clone(old)
					}
					j.p[e][r] = p
					other = append(other, e)
				}
			}
		}
		for v := range summed {
			j.n.sums[v] = sparseRow{}
		}
	}
	last := len(j.c.Rounds) - 1
	for e, old := range u.p {
		if p := j.p[e]; p != nil && (old == nil || old[last] != p[last]) {
			changed = append(changed, e)
		}
	}
	return changed
}

func (j *Judge) resize(n int) {
	s := j.n
	if more := n - len(s.rows); more > 0 {
		s.rows, s.sums = append(s.rows, make([]sparseRow, more)...), append(s.sums, make([]sparseRow, more)...)
		s.rowLen, s.sumLen, s.both = append(s.rowLen, make([]float64, more)...), append(s.sumLen, make([]float64, more)...), append(s.both, make([]float64, more)...)
		return
	}
	s.rows, s.sums, s.rowLen, s.sumLen, s.both = s.rows[:n], s.sums[:n], s.rowLen[:n], s.sumLen[:n], s.both[:n]
}

// Undo makes everything as it was before the last change.
func (j *Judge) Undo() {
	if len(j.c.Rounds) == 0 {
		return
	}
	for e, p := range j.undo.p {
		if p == nil {
			delete(j.p, e)
		} else {
			j.p[e] = p
		}
	}
	for v, r := range j.undo.rows {
		j.n.rows[v], j.n.rowLen[v] = r, j.undo.lens[v]
	}
	j.resize(j.undo.n)
	j.undo.p, j.undo.rows, j.undo.lens = nil, nil, nil
}
