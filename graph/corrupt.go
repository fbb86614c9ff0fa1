package graph

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/gsrc-dev/gsrc/rng"
)

// RemoveRandom returns a copy of g without round(ratio·E) edges, drawn evenly
// from all, and the removed edges (sorted). ratio is in [0, 1]. The same stream
// gives the same edges.
func (g *Graph) RemoveRandom(ratio float64, s rng.Stream) (*Graph, [][2]int32, error) {
	if !(ratio >= 0 && ratio <= 1) {
		return nil, nil, fmt.Errorf("graph: share of edges to remove is %v, want 0..1", ratio)
	}
	m := len(g.Edges)
	count := int(math.Round(ratio * float64(m)))
	keep := slices.Repeat([]bool{true}, m)
	removed := make([][2]int32, 0, count)
	for _, i := range sampleInts(int64(m), count, s) {
		keep[i] = false
		removed = append(removed, g.Edges[i])
	}
	return g.only(keep), removed, nil
}

// AddRandom returns a copy of g with round(ratio·E) more edges, drawn evenly
// from all pairs of different nodes that have none, and the added edges
// (sorted). ratio is at least 0; it is an error if the graph has no room for as
// many. New edges have weight 1 if g has weights.
func (g *Graph) AddRandom(ratio float64, s rng.Stream) (*Graph, [][2]int32, error) {
	if !(ratio >= 0) || math.IsInf(ratio, 0) {
		return nil, nil, fmt.Errorf("graph: share of edges to add is %v, want a number of at least 0", ratio)
	}
	want := math.Round(ratio * float64(len(g.Edges)))
	free := g.pairs() - int64(len(g.Edges))
	if want > float64(free) || want > math.MaxInt32 {
		return nil, nil, fmt.Errorf("graph: cannot add %.0f edges (%v of %d): only %d pairs of the %d nodes have none", want, ratio, len(g.Edges), free, g.N)
	}
	taken := make([]int64, len(g.Edges))
	for i, e := range g.Edges {
		taken[i] = g.pairCode(e)
	}
	var added [][2]int32
	for _, code := range sampleOutside(g.pairs(), taken, int(want), s) {
		added = append(added, g.pairOf(code))
	}
	return g.with(added), added, nil
}

// Kind says how the ends of edges that are added to a graph are drawn.
type Kind string

const (
	Random  Kind = "random"  // evenly from all pairs that have no edge
	Degrees Kind = "degrees" // each in proportion to its degree
	Similar Kind = "similar" // the most alike of 20 pairs drawn evenly
)

// Kinds lists the kinds of added edges.
var Kinds = []Kind{Random, Degrees, Similar}

// similarOf is of how many pairs that of the kind Similar is the most alike.
const similarOf = 20

// AddKind is [Graph.AddRandom] with ends drawn in another way, one of [Kinds]. alike tells
// how alike two nodes are, for the kind Similar, and may be nil for others.
func (g *Graph) AddKind(kind Kind, ratio float64, alike func(u, v int32) float64, s rng.Stream) (*Graph, [][2]int32, error) {
	switch {
	case !slices.Contains(Kinds, kind):
		return nil, nil, fmt.Errorf("graph: no kind %q of edges to add: choose one of %q", kind, Kinds)
	case kind == Similar && alike == nil:
		return nil, nil, errors.New("graph: edges of the kind similar need to be told how alike two nodes are, and alike is nil")
	case kind == Random:
		return g.AddRandom(ratio, s)
	}
	if !(ratio >= 0) || math.IsInf(ratio, 0) {
		return nil, nil, fmt.Errorf("graph: share of edges to add is %v, want a number of at least 0", ratio)
	}
	var draws uint64
	intn := func(n int) int { draws++; return s.Intn(draws, n) }
	propose := func() (e [2]int32) {
		for i := range e {
			if kind == Degrees {
				e[i] = g.Edges[intn(len(g.Edges))][intn(2)]
			} else {
				e[i] = int32(intn(g.N))
			}
		}
		if !g.Directed && e[0] > e[1] {
			e[0], e[1] = e[1], e[0]
		}
		return e
	}
	taken := make(map[[2]int32]bool, len(g.Edges))
	for _, e := range g.Edges {
		taken[e] = true
	}
	want, added := int(math.Round(ratio*float64(len(g.Edges)))), [][2]int32(nil)
	for len(added) < want {
		var best [2]int32
		pairs := 1
		if kind == Similar {
			pairs = similarOf
		}
		top := math.Inf(-1)
		for tries := 0; pairs > 0; tries++ {
			if tries == 100_000 {
				return nil, nil, fmt.Errorf("graph: found room for %d of %d edges of the kind %s only: too few pairs have none", len(added), want, kind)
			}
			e := propose()
			if e[0] == e[1] || taken[e] {
				continue
			}
			pairs--
			like := 0.0
			if kind == Similar {
				like = alike(e[0], e[1])
			}
			if like > top {
				best, top = e, like
			}
		}
		taken[best] = true
		added = append(added, best)
	}
	slices.SortFunc(added, compareEdges)
	return g.with(added), added, nil
}

// Corrupt returns a copy of g without round(remove·E) of its edges and with
// round(add·E) others of a kind (see [Graph.AddKind]), E being the edges of g; it also
// returns both lists (sorted). New edges join pairs that have none in g, so that no
// removed edge comes back, and with add = remove that share of the edges is replaced. The
// same stream gives the same graph. The shares are those of [Graph.RemoveRandom] and
// [Graph.AddRandom].
func (g *Graph) Corrupt(kind Kind, remove, add float64, alike func(u, v int32) float64, s rng.Stream) (corrupted *Graph, removed, added [][2]int32, err error) {
	left, removed, err := g.RemoveRandom(remove, s.Sub("remove"))
	if err != nil {
		return nil, nil, nil, err
	}
	_, added, err = g.AddKind(kind, add, alike, s.Sub("add"))
	if err != nil {
		return nil, nil, nil, err
	}
	return left.with(added), removed, added, nil
}

// with returns the graph with others of its edges, which are sorted, besides. They have weight 1
// if it has weights.
func (g *Graph) with(added [][2]int32) *Graph {
	n := len(g.Edges) + len(added)
	out := &Graph{N: g.N, Directed: g.Directed, Edges: make([][2]int32, 0, n)}
	if g.Weights != nil {
		out.Weights = make([]float32, 0, n)
	}
	for i, j := 0, 0; i < len(g.Edges) || j < len(added); {
		edge, weight := [2]int32{}, float32(1)
		if j == len(added) || i < len(g.Edges) && edgeLess(g.Edges[i], added[j]) {
			edge = g.Edges[i]
			if g.Weights != nil {
				weight = g.Weights[i]
			}
			i++
		} else {
			edge = added[j]
			j++
		}
		out.Edges = append(out.Edges, edge)
		if g.Weights != nil {
			out.Weights = append(out.Weights, weight)
		}
	}
	return out
}

// pairs returns the number of pairs of different nodes that may have an edge.
func (g *Graph) pairs() int64 {
	n := int64(g.N)
	if g.Directed {
		return n * (n - 1)
	}
	return n * (n - 1) / 2
}

// pairCode numbers the pairs of different nodes in the order of edges.
func (g *Graph) pairCode(e [2]int32) int64 {
	u, v, n := int64(e[0]), int64(e[1]), int64(g.N)
	if !g.Directed {
		return rowStart(u, n) + v - u - 1
	}
	if v > u {
		v--
	}
	return u*(n-1) + v
}

// pairOf is the inverse of pairCode.
func (g *Graph) pairOf(code int64) [2]int32 {
	n := int64(g.N)
	if g.Directed {
		u, v := code/(n-1), code%(n-1)
		if v >= u {
			v++
		}
		return [2]int32{int32(u), int32(v)}
	}
	u := int64(sort.Search(g.N, func(u int) bool { return rowStart(int64(u)+1, n) > code }))
	return [2]int32{int32(u), int32(code - rowStart(u, n) + u + 1)}
}

// rowStart is the number of pairs {a, b} with a < u, a < b < n.
func rowStart(u, n int64) int64 { return u * (2*n - u - 1) / 2 }

// sampleInts draws count different integers of [0, n), every subset with the
// same probability (Floyd's algorithm), and returns them in ascending order.
// count must not exceed n.
func sampleInts(n int64, count int, s rng.Stream) []int64 {
	taken := make(map[int64]struct{}, count)
	out := make([]int64, 0, count)
	for j := n - int64(count); j < n; j++ {
		x := int64(s.Intn(uint64(j), int(j+1)))
		if _, ok := taken[x]; ok {
			x = j
		}
		taken[x] = struct{}{}
		out = append(out, x)
	}
	slices.Sort(out)
	return out
}

// sampleOutside is sampleInts over the integers of [0, n) that are not taken,
// a sorted list without duplicates.
func sampleOutside(n int64, taken []int64, count int, s rng.Stream) []int64 {
	out := sampleInts(n-int64(len(taken)), count, s)
	// Rank r among the free integers is r + the number of taken ones below.
	below := 0
	for i, r := range out {
		for below < len(taken) && taken[below] <= r+int64(below) {
			below++
		}
		out[i] = r + int64(below)
	}
	return out
}
