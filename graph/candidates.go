package graph

import (
	"fmt"
	"slices"
)

// Candidates is the set of edges that a structure learner may choose from: the
// existing ones and those to near neighbours. They are undirected.
type Candidates struct {
	N        int
	Edges    [][2]int32 // [C] {u, v} with u < v, sorted
	Existing []bool     // [C] whether the graph has the edge

	// Scratch of Rebuild.
	pairs  [][2]int32
	ends   []int32
	sorter edgeSorter
}

// NewCandidates joins the edges of g (taken as undirected) with those to each
// node's nearest neighbours. knnIdx is [N, k] as [KNN] returns it; entries of
// -1 are skipped. With mutual, two nodes that are no edge of g become a
// candidate only if each is among the other's k nearest. It is an error if
// knnIdx has another length or names other nodes.
func NewCandidates(g *Graph, knnIdx []int32, k int, mutual bool) (*Candidates, error) {
	c := &Candidates{}
	if err := c.Rebuild(g, knnIdx, k, mutual); err != nil {
		return nil, err
	}
	return c, nil
}

// Rebuild makes c what [NewCandidates] returns, in its own memory: what was read
// from c before is overwritten. On an error c is left as it was.
func (c *Candidates) Rebuild(g *Graph, knnIdx []int32, k int, mutual bool) error {
	if k < 0 || len(knnIdx) != g.N*k {
		return fmt.Errorf("graph: nearest neighbours have %d entries, want %d (%d for each of %d nodes)", len(knnIdx), g.N*k, k, g.N)
	}
	// From which end a pair was proposed: both are needed where mutual.
	const fromLower, fromUpper = 1, 2
	pairs, ends := slices.Grow(c.pairs[:0], len(knnIdx)), slices.Grow(c.ends[:0], len(knnIdx))
	for i, v := range knnIdx {
		u := int32(i / k)
		switch {
		case v < -1 || int(v) >= g.N:
			return fmt.Errorf("graph: nearest neighbour %d of node %d is %d, but nodes are numbered 0..%d", i%k, u, v, g.N-1)
		case v == -1 || v == u:
			continue
		case u < v:
			pairs, ends = append(pairs, [2]int32{u, v}), append(ends, fromLower)
		default:
			pairs, ends = append(pairs, [2]int32{v, u}), append(ends, fromUpper)
		}
	}
	c.pairs, c.ends = c.sorter.sort(g.N, pairs, ends)
	pairs, ends = c.pairs, c.ends
	near := pairs[:0]
	for i := 0; i < len(pairs); {
		e, from := pairs[i], int32(0)
		for ; i < len(pairs) && pairs[i] == e; i++ {
			from |= ends[i]
		}
		if !mutual || from == fromLower|fromUpper {
			near = append(near, e)
		}
	}

	old := g.Undirected().Edges
	c.N = g.N
	c.Edges = slices.Grow(c.Edges[:0], len(old)+len(near))
	c.Existing = slices.Grow(c.Existing[:0], len(old)+len(near))
	for i, j := 0, 0; i < len(old) || j < len(near); {
		exists := j == len(near) || i < len(old) && !edgeLess(near[j], old[i])
		if exists {
			if j < len(near) && near[j] == old[i] {
				j++
			}
			c.Edges = append(c.Edges, old[i])
			i++
		} else {
			c.Edges = append(c.Edges, near[j])
			j++
		}
		c.Existing = append(c.Existing, exists)
	}
	return nil
}

// Free gives up the memory that [Candidates.Rebuild] would use again.
func (c *Candidates) Free() { c.pairs, c.ends, c.sorter = nil, nil, edgeSorter{} }

// CopyFrom makes c equal to other, in its own memory.
func (c *Candidates) CopyFrom(other *Candidates) {
	c.N = other.N
	c.Edges = append(c.Edges[:0], other.Edges...)
	c.Existing = append(c.Existing[:0], other.Existing...)
}

// Starts returns the number of the first candidate of each of several graphs that stand
// one after another without edges between them, and behind these the number of
// candidates: graph g, of the nodes offset[g] ≤ v < offset[g+1], has the candidates
// Starts[g] to Starts[g+1], not included. It writes to dst where that has room.
func (c *Candidates) Starts(dst, offset []int32) []int32 {
	dst = slices.Grow(dst[:0], len(offset))
	at := 0
	for _, v := range offset {
		n, _ := slices.BinarySearchFunc(c.Edges[at:], v, func(e [2]int32, v int32) int { return int(e[0]) - int(v) })
		at += n
		dst = append(dst, int32(at))
	}
	return dst
}

// Graph returns the graph of all candidates, without weights. Its edges are the
// candidates in the same order, in memory of its own.
func (c *Candidates) Graph() *Graph {
	return &Graph{N: c.N, Edges: slices.Clone(c.Edges)}
}

// Select returns the graph of the candidates for which keep is true. weights,
// one per candidate, become its weights; nil means none. It is an error if a
// length differs from the number of candidates.
func (c *Candidates) Select(keep []bool, weights []float32) (*Graph, error) {
	if len(keep) != len(c.Edges) || weights != nil && len(weights) != len(c.Edges) {
		return nil, fmt.Errorf("graph: selection has %d marks and %d weights for %d candidates", len(keep), len(weights), len(c.Edges))
	}
	return (&Graph{N: c.N, Edges: c.Edges, Weights: weights}).only(keep), nil
}

// Pairs returns the ends of the candidates as gather indices, Edges[i] =
// {u[i], v[i]}.
func (c *Candidates) Pairs() (u, v []int64) {
	u, v = make([]int64, len(c.Edges)), make([]int64, len(c.Edges))
	for i, e := range c.Edges {
		u[i], v[i] = int64(e[0]), int64(e[1])
	}
	return u, v
}
