package graph

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Rows are the attributes of nodes: sparse with the columns Col[RowPtr[i]:RowPtr[i+1]]
// of row i, ascending, or dense, row-major, where RowPtr is nil.
type Rows struct {
	Cols        int
	RowPtr, Col []int32
	Val, Dense  []float32
}

// Evidence tells how likely each edge of an undirected graph is an edge at all, by
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
// threads.
func Evidence(pool *kernels.Pool, g *Graph, x Rows, rounds int, s rng.Stream) (p []float32, share float64) {
	p = make([]float32, len(g.Edges))
	for i := range p {
		p[i] = 1
	}
	pairs := randomPairs(g, len(g.Edges), s)
	if len(pairs) == 0 || x.Cols == 0 { // nothing to compare with
		return p, 0
	}
	n := newNeighbourhoods(g, x)
	edges, null := make([]float32, len(g.Edges)), make([]float32, len(pairs))
	for range rounds {
		n.sum(pool, p)
		parallel(pool, len(edges), 256, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				edges[i] = n.cosine(g.Edges[i], float64(p[i]))
			}
		})
		parallel(pool, len(null), 256, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				null[i] = n.cosine(pairs[i], 0)
			}
		})
		share = discover(p, edges, null)
	}
	return p, share
}

// randomPairs draws pairs of different nodes without an edge. A graph that has nearly
// all edges may have fewer than are wanted.
func randomPairs(g *Graph, want int, s rng.Stream) (pairs [][2]int32) {
	for i := uint64(0); len(pairs) < want && i < 20*uint64(want); i++ {
		u, v := int32(s.Intn(2*i, g.N)), int32(s.Intn(2*i+1, g.N))
		if u != v && !g.Has(u, v) {
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
			sum += float64(a.val[i]) * float64(b.val[j])
			i, j = i+1, j+1
		}
	}
	return sum
}

// neighbourhoods are the sums of nodes' and their neighbours' attributes.
type neighbourhoods struct {
	st   *Structure
	cols int
	rows []sparseRow // [N] scaled attributes
	sums []sparseRow // [N]
	// By node, the squared lengths of both, and their product.
	rowLen, sumLen, both []float64
}

func newNeighbourhoods(g *Graph, x Rows) *neighbourhoods {
	n := &neighbourhoods{st: g.Structure(), cols: x.Cols, rows: make([]sparseRow, g.N), sums: make([]sparseRow, g.N),
		rowLen: make([]float64, g.N), sumLen: make([]float64, g.N), both: make([]float64, g.N)}
	count := make([]float64, x.Cols)
	for i := range n.rows {
		n.rows[i] = x.row(i)
		for _, c := range n.rows[i].col {
			count[c]++
		}
	}
	for i, r := range n.rows {
		length := 0.0
		for k, c := range r.col {
			v := float64(r.val[k]) * (1 + math.Log((1+float64(g.N))/(1+count[c])))
			r.val[k] = float32(v)
			length += v * v
		}
		if length > 0 {
			for k := range r.val {
				r.val[k] *= float32(1 / math.Sqrt(length))
			}
			n.rowLen[i] = 1
		}
	}
	return n
}

// row copies row i without its zeros.
func (x *Rows) row(i int) (r sparseRow) {
	if x.RowPtr != nil {
		lo, hi := x.RowPtr[i], x.RowPtr[i+1]
		return sparseRow{x.Col[lo:hi:hi], slices.Clone(x.Val[lo:hi])}
	}
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
		at := make([]float32, n.cols)
		seen := make([]bool, n.cols)
		for u := lo; u < hi; u++ {
			cols := n.sums[u].col[:0]
			add := func(r sparseRow, w float32) {
				for k, c := range r.col {
					if !seen[c] {
						seen[c] = true
						cols = append(cols, c)
					}
					at[c] += w * r.val[k]
				}
			}
			add(n.rows[u], 1)
			for k := n.st.In.RowPtr[u]; k < n.st.In.RowPtr[u+1]; k++ {
				add(n.rows[n.st.In.Col[k]], weights[n.st.EdgeOf[k]])
			}
			slices.Sort(cols)
			vals := slices.Grow(n.sums[u].val[:0], len(cols))[:len(cols)]
			for i, c := range cols {
				vals[i] = at[c]
				at[c], seen[c] = 0, false
			}
			n.sums[u] = sparseRow{cols, vals}
			n.sumLen[u], n.both[u] = n.sums[u].dot(n.sums[u]), n.sums[u].dot(n.rows[u])
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
		across += -w*(n.both[u]+n.both[v]) + w*w*n.rows[u].dot(n.rows[v])
		a += -2*w*uv + w*w*n.rowLen[v]
		b += -2*w*vu + w*w*n.rowLen[u]
	}
	const least = 1e-6 // nothing is left but rounding: a node without attributes of its own
	if a < least || b < least {
		return 0
	}
	return float32(across / math.Sqrt(a*b))
}

// discover sets p to one minus the local false discovery rate of each edge, and
// returns π₀.
func discover(p, edges, null []float32) (share float64) {
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
		if b.edges == 0 {
			continue
		}
		belongs := max(0, 1-scale*(float64(b.count)-b.edges)/b.edges)
		for _, i := range order[b.first : b.first+b.count] {
			if int(i) < n {
				p[i] = float32(belongs)
			}
		}
	}
	return share
}
