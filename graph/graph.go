// Package graph holds the graphs that models run on and refine: how an edge
// list is cleaned up, what structure the kernels execute on, and every
// algorithm on graphs that is not itself trained.
//
// # A newcomer's map
//
//   - [Graph] is an edge list: what data sets are read into and what a refined
//     graph is written from. [Build] makes one from raw node ids and repairs
//     what raw files get wrong.
//   - [Structure] is the same graph as the kernels want it: two CSR matrices
//     over directed entries, which can be rebuilt in linear time when the edges
//     change during training.
//   - [KNN] finds each node's nearest neighbours without storing an N×N matrix,
//     [Neighbors] does so again and again, by an index where nodes are many, and
//     [Candidates] is the set of edges that a structure learner may choose
//     from: those that exist and those to the nearest neighbours.
//   - [EdgeSampler] and [Structure.Neighborhood] draw batches for
//     contrastive training.
//   - [DeepWalk] embeds nodes by skip-gram over random walks.
//   - [Graph.RemoveRandom] and [Graph.AddRandom] corrupt a graph for
//     experiments on robustness; [Generate] makes a contextual stochastic block
//     model whose wrong and hidden edges are known, and [EdgeQuality] says how
//     many of them were found.
//
// # Conventions
//
// Nodes are numbered 0..N-1 as int32. Matrices are row-major float32. All
// randomness is drawn from package rng, and every result is the same bit for
// bit for any number of threads.
package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A Graph is a list of edges over N nodes, without duplicates or self-loops.
//
// Edges of an undirected graph (Directed false) are held once each, as {u, v}
// with u < v. Those of a directed graph are {source, target}. Both are sorted
// by first node, then second.
type Graph struct {
	N        int        // number of nodes
	Edges    [][2]int32 // [E] pairs of node numbers, sorted
	Weights  []float32  // [E], or nil if every edge has weight 1
	Directed bool
}

// Repairs counts what [Build] dropped from the raw edges.
type Repairs struct {
	// Duplicates is the number of edges that were listed before; in an
	// undirected graph the opposite direction of a listed edge counts too.
	Duplicates int
	// SelfLoops is the number of edges from a node to itself.
	SelfLoops int
}

// Build makes a graph of n nodes from edges src[i] → dst[i]. w holds a weight
// for each edge, or is nil. Self-loops are dropped; of edges that are listed
// more than once (in an undirected graph: in either direction) the first one's
// weight is kept. It is an error if lengths differ, a node is outside 0..n-1 or
// a weight is not finite.
func Build(n int, src, dst []int32, w []float32, directed bool) (*Graph, Repairs, error) {
	var rep Repairs
	if n < 0 || n > math.MaxInt32 {
		return nil, rep, fmt.Errorf("graph: number of nodes is %d, want 0..%d", n, math.MaxInt32)
	}
	if len(src) != len(dst) {
		return nil, rep, fmt.Errorf("graph: %d edge sources but %d targets; both need one per edge", len(src), len(dst))
	}
	if w != nil && len(w) != len(src) {
		return nil, rep, fmt.Errorf("graph: %d edge weights for %d edges; give one per edge or none", len(w), len(src))
	}
	if len(src) > math.MaxInt32/2 {
		return nil, rep, fmt.Errorf("graph: %d edges are more than the %d supported", len(src), math.MaxInt32/2)
	}
	g := &Graph{N: n, Directed: directed}
	edges := make([][2]int32, 0, len(src))
	var index []int32 // raw position of each kept edge, where weights are given
	if w != nil {
		index = make([]int32, 0, len(src))
	}
	for i, u := range src {
		v := dst[i]
		if u < 0 || int(u) >= n || v < 0 || int(v) >= n {
			return nil, rep, fmt.Errorf("graph: edge %d goes from node %d to node %d, but nodes are numbered 0..%d", i, u, v, n-1)
		}
		if w != nil && (math.IsNaN(float64(w[i])) || math.IsInf(float64(w[i]), 0)) {
			return nil, rep, fmt.Errorf("graph: edge %d (from node %d to node %d) has weight %v; weights must be finite", i, u, v, w[i])
		}
		if u == v {
			rep.SelfLoops++
			continue
		}
		if !directed && u > v {
			u, v = v, u
		}
		edges = append(edges, [2]int32{u, v})
		if w != nil {
			index = append(index, int32(i))
		}
	}
	edges, index = sortEdges(n, edges, index)
	g.Edges, g.Weights = distinct(edges, w, index)
	rep.Duplicates = len(src) - rep.SelfLoops - len(g.Edges)
	return g, rep, nil
}

// distinct keeps the first of equal ones of sorted edges, in their memory, and gives each its weight of w,
// where that is not nil: at the place that index has.
func distinct(edges [][2]int32, w []float32, index []int32) (out [][2]int32, weights []float32) {
	if w != nil {
		weights = []float32{}
	}
	out = edges[:0]
	for i, e := range edges {
		if i > 0 && e == out[len(out)-1] {
			continue
		}
		if w != nil {
			weights = append(weights, w[index[i]])
		}
		out = append(out, e)
	}
	return slices.Clip(out), weights
}

// sortEdges sorts edges by first node, then second, and keeps equal ones in
// their order. index, if not nil, goes with its edge.
func sortEdges(n int, edges [][2]int32, index []int32) ([][2]int32, []int32) {
	return new(edgeSorter).sort(n, edges, index)
}

// edgeSorter is the scratch memory of sorting.
type edgeSorter struct {
	start, index []int32
	edges        [][2]int32
}

// sort is [sortEdges] by a radix sort with one counting pass per end. There are
// two, so the result is in the memory of its arguments.
func (s *edgeSorter) sort(n int, edges [][2]int32, index []int32) ([][2]int32, []int32) {
	sorted := true
	for i := 1; i < len(edges) && sorted; i++ {
		sorted = !edgeLess(edges[i], edges[i-1])
	}
	if sorted {
		return edges, index
	}
	s.start = resize(s.start, n+1)
	s.edges = slices.Grow(s.edges[:0], len(edges))[:len(edges)]
	start, tmp := s.start, s.edges
	var tmpIndex []int32
	if index != nil {
		s.index = resize(s.index, len(index))
		tmpIndex = s.index
	}
	for _, end := range [2]int{1, 0} {
		clear(start)
		for _, e := range edges {
			start[e[end]+1]++
		}
		for i := range n {
			start[i+1] += start[i]
		}
		for i, e := range edges {
			p := start[e[end]]
			start[e[end]]++
			tmp[p] = e
			if index != nil {
				tmpIndex[p] = index[i]
			}
		}
		edges, tmp = tmp, edges
		index, tmpIndex = tmpIndex, index
	}
	return edges, index
}

func edgeLess(a, b [2]int32) bool {
	return a[0] < b[0] || a[0] == b[0] && a[1] < b[1]
}

func compareEdges(a, b [2]int32) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}

// only returns the graph of the edges for which keep is true, with their weights.
func (g *Graph) only(keep []bool) *Graph {
	n := 0
	for _, yes := range keep {
		if yes {
			n++
		}
	}
	out := &Graph{N: g.N, Directed: g.Directed, Edges: make([][2]int32, 0, n)}
	if g.Weights != nil {
		out.Weights = make([]float32, 0, n)
	}
	for i, yes := range keep {
		if yes {
			out.Edges = append(out.Edges, g.Edges[i])
			if g.Weights != nil {
				out.Weights = append(out.Weights, g.Weights[i])
			}
		}
	}
	return out
}

// NumEdges returns the number of edges; an undirected edge counts once.
func (g *Graph) NumEdges() int { return len(g.Edges) }

// Degrees returns [N] the number of neighbours of each node; in a directed
// graph, the number of edges that enter or leave it.
func (g *Graph) Degrees() []int32 {
	d := make([]int32, g.N)
	for _, e := range g.Edges {
		d[e[0]]++
		d[e[1]]++
	}
	return d
}

// Homophily returns the fraction of edges whose ends have the same label
// ("edge homophily", Zhu et al. 2020). Edges with an end whose label is
// missing (negative, or beyond the end of labels) do not count. It is NaN if no
// edge counts.
func (g *Graph) Homophily(labels []int32) float64 { return g.homophily(labels, nil) }

// WeightedHomophily is [Graph.Homophily] with each edge counted with its weight.
// It is NaN if no weight counts.
func (g *Graph) WeightedHomophily(labels []int32) float64 { return g.homophily(labels, g.Weights) }

func (g *Graph) homophily(labels []int32, weights []float32) float64 {
	same, all := 0.0, 0.0
	for i, e := range g.Edges {
		if int(e[0]) >= len(labels) || int(e[1]) >= len(labels) {
			continue
		}
		a, b := labels[e[0]], labels[e[1]]
		if a < 0 || b < 0 {
			continue
		}
		w := 1.0
		if weights != nil {
			w = float64(weights[i])
		}
		all += w
		if a == b {
			same += w
		}
	}
	if all == 0 {
		return math.NaN()
	}
	return same / all
}

// Undirected returns g if it is undirected, else the graph with an edge between
// u and v wherever g has one in either direction. Of two directions' weights
// that of the one from the lower node is kept.
func (g *Graph) Undirected() *Graph {
	if !g.Directed {
		return g
	}
	edges := make([][2]int32, len(g.Edges))
	index := make([]int32, len(g.Edges))
	for i, e := range g.Edges {
		edges[i], index[i] = [2]int32{min(e[0], e[1]), max(e[0], e[1])}, int32(i)
	}
	edges, index = sortEdges(g.N, edges, index)
	u := &Graph{N: g.N}
	u.Edges, u.Weights = distinct(edges, g.Weights, index)
	return u
}

// Find returns the position of edge u → v in Edges (of {u, v} in either order
// if the graph is undirected) and whether it is there.
func (g *Graph) Find(u, v int32) (int, bool) {
	if !g.Directed && u > v {
		u, v = v, u
	}
	return slices.BinarySearchFunc(g.Edges, [2]int32{u, v}, compareEdges)
}

// Has reports whether edge u → v (in either direction if the graph is
// undirected) exists.
func (g *Graph) Has(u, v int32) bool {
	_, ok := g.Find(u, v)
	return ok
}

// Validate checks what the rest of the package relies on: node numbers in
// range, no self-loops, edges sorted and unique, u < v if undirected, one
// weight per edge or none. Graphs from this package satisfy it.
func (g *Graph) Validate() error {
	if g.N < 0 || g.N > math.MaxInt32 {
		return fmt.Errorf("graph: number of nodes is %d, want 0..%d", g.N, math.MaxInt32)
	}
	if g.Weights != nil && len(g.Weights) != len(g.Edges) {
		return fmt.Errorf("graph: %d weights for %d edges", len(g.Weights), len(g.Edges))
	}
	for i, e := range g.Edges {
		switch {
		case e[0] < 0 || e[1] < 0 || int(e[0]) >= g.N || int(e[1]) >= g.N:
			return fmt.Errorf("graph: edge %d is %v, but nodes are numbered 0..%d", i, e, g.N-1)
		case e[0] == e[1]:
			return fmt.Errorf("graph: edge %d is a self-loop of node %d", i, e[0])
		case !g.Directed && e[0] > e[1]:
			return fmt.Errorf("graph: edge %d is %v; an undirected edge is held with the lower node first", i, e)
		case i > 0 && !edgeLess(g.Edges[i-1], e):
			return fmt.Errorf("graph: edges %d and %d, %v and %v, are not in ascending order", i-1, i, g.Edges[i-1], e)
		}
	}
	return nil
}
