package graph

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Rows are the attributes of nodes: sparse with the columns Col[RowPtr[i]:RowPtr[i+1]]
// of row i, ascending, or dense, row-major, where RowPtr is nil.
type NodeFeatures struct {
	Cols        int
	RowPtr, Col []int32
	Val, Dense  []float32
}

// CalibrateEdges tells how likely each edge of an undirected graph is an edge at all, by
// attributes alone: p [E], and the share π₀ of edges that are none.
//
// The two ends of an edge are compared by the cosine s of their neighbourhoods, each
// the sum of a node's and its neighbours' attributes, without what came over the edge
// itself: message passing makes the ends of any edge alike, so that an edge could not
// be doubted otherwise. Rows are scaled to length 1, columns by how rare they are
// (inverse document frequency).
//
// What a cosine is worth follows from pairs of nodes drawn at random, which are what
// an edge without meaning is: p = 1 − π₀ f₀(s)/f(s), one minus the local false
// discovery rate (Efron et al. 2001), with the density f₀ of the random pairs and f of
// the edges. Their ratio is the most likely one that falls with s (isotonic
// regression); π₀ is estimated at the median of the random pairs (Storey 2002). In
// each round but the first, neighbours count by the p of the round before.
//
// The same stream gives the same pairs, and so the same result, for any number of
// threads. The calibration is for edges of other graphs.
func CalibrateEdges(pool *kernels.Pool, g *Graph, x NodeFeatures, rounds int, s rng.Stream) (p []float32, c *Calibration) {
	p, c = ones(len(g.Edges)), &Calibration{}
	pairs := RandomPairs(g, len(g.Edges), false, s)
	if len(pairs) == 0 || x.Cols == 0 { // nothing to compare with
		return p, c
	}
	c.Columns = x.Rarity(g.N)
	n := newNeighbourhoods(g, x, c.Columns)
	edges, null := make([]float32, len(g.Edges)), make([]float32, len(pairs))
	for range rounds {
		n.sum(pool, p)
		n.compare(pool, edges, p)
		parallel(pool, len(null), 256, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				null[i] = n.cosine(pairs[i], 0)
			}
		})
		var steps Steps
		steps, c.NullFraction = discover(edges, null)
		for i, s := range edges {
			p[i] = steps.At(s)
		}
		c.Rounds = append(c.Rounds, steps)
	}
	return p, c
}

// Calibration is what [CalibrateEdges] has learned from a whole graph. With it the
// probability of an edge depends on the attributes within as many hops of its ends as there are rounds,
// and on nothing else.
type Calibration struct {
	// Columns scale the attributes, [D].
	Columns []float64 `json:"columns"`
	// Rounds say for each round what a cosine is worth. Without any, edges are not doubted.
	Rounds []Steps `json:"rounds"`
	// NullFraction is π₀ of the last round, the share of edges that are none.
	NullFraction float64 `json:"share"`
}

// Steps is a function that rises in steps: P[i] from From[i] on, and P[0] below From[0].
type Steps struct {
	From []float32 `json:"from"` // ascending
	P    []float32 `json:"p"`
}

// At returns the value at s.
func (f *Steps) At(s float32) float32 {
	i := sort.Search(len(f.From), func(i int) bool { return !(f.From[i] <= s) })
	return f.P[max(i-1, 0)]
}

// Validate reports what makes the calibration useless for attributes of that many columns.
func (c *Calibration) Validate(columns int) error {
	if len(c.Rounds) > 0 && len(c.Columns) != columns {
		return fmt.Errorf("graph: the calibration of edges has %d columns, want %d", len(c.Columns), columns)
	}
	for i, v := range c.Columns {
		if !(v > 0) || math.IsInf(v, 0) {
			return fmt.Errorf("graph: the calibration of edges scales column %d by %v", i, v)
		}
	}
	for r, f := range c.Rounds {
		if len(f.From) == 0 || len(f.P) != len(f.From) {
			return fmt.Errorf("graph: round %d of the calibration of edges has %d steps and %d values", r, len(f.From), len(f.P))
		}
		for i, p := range f.P {
			if !(p >= 0 && p <= 1) || i > 0 && !(f.From[i] > f.From[i-1] && p >= f.P[i-1]) {
				return fmt.Errorf("graph: step %d of round %d of the calibration of edges does not rise within [0, 1]", i, r)
			}
		}
	}
	if !(c.NullFraction >= 0 && c.NullFraction <= 1) {
		return fmt.Errorf("graph: the calibration of edges has the share %v", c.NullFraction)
	}
	return nil
}

// Probabilities returns how likely the edges of an undirected graph are edges, [E]. Of the
// graph that was learned from it is what [CalibrateEdges] gave.
func (c *Calibration) Probabilities(pool *kernels.Pool, g *Graph, x NodeFeatures) []float32 {
	p := ones(len(g.Edges))
	if len(c.Rounds) == 0 {
		return p
	}
	n := newNeighbourhoods(g, x, c.Columns)
	edges := make([]float32, len(g.Edges))
	for _, steps := range c.Rounds {
		n.sum(pool, p)
		n.compare(pool, edges, p)
		for i, s := range edges {
			p[i] = steps.At(s)
		}
	}
	return p
}

// EdgePrior is what the edges of a graph are multiplied by: for each the probability that
// it is an edge at all, by attributes, raised to a power. Its values lie within [0.01, 1]:
// of a probability of 0 no sample could be drawn.
//
// The power is 1 + strength·π₀: many doubtful edges together weigh more than their few
// messages that are right are worth, so where many are doubtful each counts less than its
// probability.
type EdgePrior struct {
	Graph       *Graph       // undirected
	P           []float32    // [E] of its edges
	Calibration *Calibration // nil where P is evidence that package train has joined
}

// NullFraction returns the share of edges that are none, as far as P tells beside what the
// edges count ([EdgePrior.Count]), [E] or nil.
func (e *EdgePrior) NullFraction(counts []float32) float64 {
	if e.Calibration != nil {
		return e.Calibration.NullFraction
	}
	sum := 0.0
	for i, p := range e.P {
		if counts != nil {
			p = min(1, p/counts[i])
		}
		sum += 1 - float64(p)
	}
	return sum / float64(max(1, len(e.P)))
}

const leastPrior = 0.01

// NewEdgePrior estimates the prior of a graph's edges from the graph itself, as a run with
// this seed does. x are the attributes of its nodes.
func NewEdgePrior(pool *kernels.Pool, g *Graph, x NodeFeatures, rounds int, strength float64, seed uint64) *EdgePrior {
	e := &EdgePrior{Graph: g.Undirected()}
	e.P, e.Calibration = CalibrateEdges(pool, e.Graph, x, rounds, rng.New(seed, "evidence"))
	return e.weigh(strength)
}

// Prior estimates the prior of the edges of another graph than the calibration is of. It is
// an error if the graph has other attributes.
func (c *Calibration) Prior(pool *kernels.Pool, g *Graph, x NodeFeatures, strength float64) (*EdgePrior, error) {
	if err := c.Validate(x.Cols); err != nil {
		return nil, err
	}
	e := &EdgePrior{Graph: g.Undirected(), Calibration: c}
	e.P = c.Probabilities(pool, e.Graph, x)
	return e.weigh(strength), nil
}

func (e *EdgePrior) weigh(strength float64) *EdgePrior {
	for i, p := range e.P {
		e.P[i] = e.Calibration.Weight(p, strength)
	}
	return e
}

// Weight returns the prior of an edge of probability p, see [EdgePrior].
func (c *Calibration) Weight(p float32, strength float64) float32 {
	if power := 1 + float64(strength*c.NullFraction); power != 1 {
		p = float32(fmath.Pow(float64(p), power))
	}
	return max(p, leastPrior)
}

// Count multiplies the prior by what the edges count, [E]; nil is ones.
func (e *EdgePrior) Count(counts []float32) {
	for i, c := range counts {
		e.P[i] *= c
	}
}

// OfEntries returns the prior of each entry of the structure of g, the weights of
// the encoder's messages, in the memory of dst where that is large enough. g is the
// graph that the prior is of, or a part of it whose node i was the node nodes[i].
func (e *EdgePrior) OfEntries(dst []float32, g *Graph, st *Structure, nodes []int32) []float32 {
	dst = dst[:0]
	for _, k := range st.EdgeOf {
		u, v := g.Edges[k][0], g.Edges[k][1]
		if nodes != nil {
			u, v = nodes[u], nodes[v]
		}
		at, _ := e.Graph.Find(u, v)
		dst = append(dst, e.P[at])
	}
	return dst
}

// OfCandidates returns the prior of each candidate, 1 for new ones, in the memory
// of dst where that is large enough.
func (e *EdgePrior) OfCandidates(dst []float32, c *Candidates) []float32 {
	dst = dst[:0]
	at := 0
	for _, existing := range c.Existing {
		if !existing {
			dst = append(dst, 1)
			continue
		}
		dst = append(dst, e.P[at]) // both are sorted alike
		at++
	}
	return dst
}

func ones(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// Rarity returns the factor of each column, one plus the inverse document frequency
// among n rows.
func (x *NodeFeatures) Rarity(n int) []float64 {
	count := make([]float64, x.Cols)
	if x.RowPtr != nil {
		for _, c := range x.Col {
			count[c]++
		}
	} else {
		for i, v := range x.Dense {
			if v != 0 {
				count[i%x.Cols]++
			}
		}
	}
	for c, k := range count {
		count[c] = 1 + fmath.Log((1+float64(n))/(1+k))
	}
	return count
}

// RandomPairs draws pairs {u, v}, u < v, of different nodes without an edge of an undirected
// graph: nodes alike, or by degree, each as often as it ends an edge. A graph that has nearly
// all edges may have fewer than are wanted.
func RandomPairs(g *Graph, want int, byDegree bool, s rng.Stream) (pairs [][2]int32) {
	node := func(i uint64) int32 {
		if byDegree {
			end := s.Intn(i, 2*len(g.Edges))
			return g.Edges[end/2][end%2]
		}
		return int32(s.Intn(i, g.N))
	}
	for i := uint64(0); len(pairs) < want && i < 20*uint64(want); i++ {
		if u, v := node(2*i), node(2*i+1); u != v && !g.Has(u, v) {
			pairs = append(pairs, [2]int32{min(u, v), max(u, v)})
		}
	}
	return pairs
}

// sparseRow is a row with ascending columns.
type sparseRow struct {
	col []int32
	val []float32
}

func (a sparseRow) dot(b sparseRow) (sum float64) {
	for i, j := 0, 0; i < len(a.col) && j < len(b.col); {
		switch x, y := a.col[i], b.col[j]; {
		case x < y:
			i++
		case x > y:
			j++
		default:
			sum += float64(float64(a.val[i]) * float64(b.val[j]))
			i, j = i+1, j+1
		}
	}
	return sum
}

// neighbourhoods are the sums of nodes' and their neighbours' attributes.
type neighbourhoods struct {
	st    *Structure
	edges [][2]int32
	cols  int
	rows  []sparseRow // [N] scaled attributes
	sums  []sparseRow // [N]
	// By node, the squared lengths of both, and their product.
	rowLen, sumLen, both []float64
}

func newNeighbourhoods(g *Graph, x NodeFeatures, columns []float64) *neighbourhoods {
	n := &neighbourhoods{st: g.Structure(), edges: g.Edges, cols: x.Cols, rows: make([]sparseRow, g.N), sums: make([]sparseRow, g.N),
		rowLen: make([]float64, g.N), sumLen: make([]float64, g.N), both: make([]float64, g.N)}
	for i := range n.rows {
		n.rows[i], n.rowLen[i] = x.scaled(i, columns)
	}
	return n
}

// scaled returns row i with its columns scaled and then itself, to length 1, and its
// length: 1, or 0 where there is nothing to scale.
func (x *NodeFeatures) scaled(i int, columns []float64) (sparseRow, float64) {
	r := x.row(i)
	if far := kernels.RowScale(r.val); far != 1 { // or else it, or what divides it, overflows
		for k := range r.val {
			r.val[k] *= far
		}
	}
	length := 0.0
	for k, c := range r.col {
		v := float64(r.val[k]) * columns[c]
		r.val[k] = float32(v)
		length += float64(v * v)
	}
	if !(length > 0) {
		return r, 0
	}
	for k := range r.val {
		r.val[k] *= float32(1 / math.Sqrt(length))
	}
	return r, 1
}

// row copies row i without its zeros.
func (x *NodeFeatures) row(i int) (r sparseRow) {
	if x.RowPtr != nil {
		lo, hi := x.RowPtr[i], x.RowPtr[i+1]
		return sparseRow{x.Col[lo:hi:hi], slices.Clone(x.Val[lo:hi])}
	}
	count := 0
	for _, v := range x.Dense[i*x.Cols : (i+1)*x.Cols] {
		if v != 0 {
			count++
		}
	}
	r = sparseRow{make([]int32, 0, count), make([]float32, 0, count)}
	for c, v := range x.Dense[i*x.Cols : (i+1)*x.Cols] {
		if v != 0 {
			r.col, r.val = append(r.col, int32(c)), append(r.val, v)
		}
	}
	return r
}

// sum adds up the neighbourhoods, neighbours by the weights of their edges.
func (n *neighbourhoods) sum(pool *kernels.Pool, weights []float32) {
	parallel(pool, len(n.rows), 512, func(lo, hi int) {
		a := newAdder(n.cols)
		for u := lo; u < hi; u++ {
			a.begin(n.sums[u], n.rows[u])
			for k := n.st.In.RowPtr[u]; k < n.st.In.RowPtr[u+1]; k++ {
				a.add(n.rows[n.st.In.Col[k]], weights[n.st.EdgeOf[k]])
			}
			n.end(u, a)
		}
	})
}

// end takes the sum of a node.
func (n *neighbourhoods) end(u int, a *adder) {
	n.sums[u] = a.sum()
	n.sumLen[u], n.both[u] = n.sums[u].dot(n.sums[u]), n.sums[u].dot(n.rows[u])
}

// adder adds up sparse rows.
type adder struct {
	at   []float32 // [cols]
	seen []bool    // [cols]
	into sparseRow
}

func newAdder(cols int) *adder { return &adder{at: make([]float32, cols), seen: make([]bool, cols)} }

// begin starts a sum with a row, in the memory of into.
func (a *adder) begin(into, r sparseRow) {
	a.into = sparseRow{into.col[:0], into.val[:0]}
	a.add(r, 1)
}

func (a *adder) add(r sparseRow, w float32) {
	for k, c := range r.col {
		if !a.seen[c] {
			a.seen[c] = true
			a.into.col = append(a.into.col, c)
		}
		a.at[c] += float32(w * r.val[k])
	}
}

func (a *adder) sum() sparseRow {
	slices.Sort(a.into.col)
	a.into.val = slices.Grow(a.into.val, len(a.into.col))[:len(a.into.col)]
	for i, c := range a.into.col {
		a.into.val[i] = a.at[c]
		a.at[c], a.seen[c] = 0, false
	}
	return a.into
}

// compare sets dst to the cosines of all edges, which have the weights p.
func (n *neighbourhoods) compare(pool *kernels.Pool, dst, p []float32) {
	parallel(pool, len(dst), 256, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			dst[i] = n.cosine(n.edges[i], float64(p[i]))
		}
	})
}

// cosine compares the neighbourhoods of two nodes without the edge between them,
// which has the weight w.
func (n *neighbourhoods) cosine(e [2]int32, w float64) float32 {
	u, v := e[0], e[1]
	across := n.sums[u].dot(n.sums[v])
	a, b := n.sumLen[u], n.sumLen[v]
	if w != 0 { // (M_u − w x_v)·(M_v − w x_u)
		uv, vu := n.sums[u].dot(n.rows[v]), n.sums[v].dot(n.rows[u])
		across += float64(float64(w*w)*n.rows[u].dot(n.rows[v])) - float64(w*(n.both[u]+n.both[v]))
		a += float64(float64(w*w)*n.rowLen[v]) - float64(2*w*uv)
		b += float64(float64(w*w)*n.rowLen[u]) - float64(2*w*vu)
	}
	const least = 1e-6 // nothing is left but rounding: a node without attributes of its own
	if a < least || b < least {
		return 0
	}
	return float32(across / math.Sqrt(a*b))
}

// discover returns one minus the local false discovery rate of edges by their cosine,
// and π₀.
func discover(edges, null []float32) (steps Steps, share float64) {
	n := len(edges)
	at := func(i int32) float32 {
		if int(i) < n {
			return edges[i]
		}
		return null[int(i)-n]
	}
	order := make([]int32, n+len(null))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		switch x, y := at(a), at(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return int(a - b)
	})

	// π₀: the edges up to the random pairs' median, over those pairs.
	sorted := slices.Clone(null)
	slices.Sort(sorted)
	median := sorted[(len(sorted)-1)/2]
	var below [2]float64
	for _, i := range order {
		if at(i) > median {
			break
		}
		if int(i) < n {
			below[0]++
		} else {
			below[1]++
		}
	}
	share = min(1, below[0]/float64(n)*float64(len(null))/below[1])

	// Pool adjacent violators; equal values stand in one block.
	type block struct {
		first, count int
		edges        float64
	}
	var blocks []block
	for i := 0; i < len(order); {
		b := block{first: i}
		for x := at(order[i]); i < len(order) && at(order[i]) == x; i++ {
			b.count++
			if int(order[i]) < n {
				b.edges++
			}
		}
		for k := len(blocks) - 1; k >= 0 && blocks[k].edges*float64(b.count) >= b.edges*float64(blocks[k].count); k-- {
			b = block{blocks[k].first, blocks[k].count + b.count, blocks[k].edges + b.edges}
			blocks = blocks[:k]
		}
		blocks = append(blocks, b)
	}
	scale := share * float64(n) / float64(len(null))
	for _, b := range blocks {
		belongs := float32(0)
		if b.edges > 0 {
			belongs = float32(max(0, 1-scale*(float64(b.count)-b.edges)/b.edges))
		}
		if k := len(steps.P); k > 0 && steps.P[k-1] == belongs {
			continue
		}
		steps.From, steps.P = append(steps.From, at(order[b.first])), append(steps.P, belongs)
	}
	return steps, share
}
