package data

import (
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
)

// edgeList collects edges as a file lists them.
type edgeList struct {
	src, dst []int32
	w        []float32 // nil or one for each edge
	merge    string    // what weight equal edges have together: MergeFirst and so on
	loops    []float32 // [n], made by build where edges have weights; see Dataset.Loops
	sink     store.Add // where add puts edges, if not into the list
}

// add appends an edge.
func (e *edgeList) add(u, v int32, w float32, mem *budget.Reservation) error {
	if e.sink != nil {
		return e.sink(u, v, w)
	}
	push(mem, &e.src, u)
	push(mem, &e.dst, v)
	if e.w != nil {
		push(mem, &e.w, w)
	}
	return nil
}

// graph makes the graph of a data set of n nodes of a list that is whole, into memory or into a
// store, and drops the list. symmetric is of [edgeList.build].
func (l *loader) graph(ds *Dataset, e *edgeList, n int, symmetric bool) (err error) {
	if l.spill != nil {
		ds.Graph, err = l.spill.write(e, n, l.opts.Directed, symmetric, &ds.Repairs)
	} else {
		ds.Graph, err = e.build(n, l.opts.Directed, symmetric, &ds.Repairs, l.mem)
	}
	ds.Loops = e.loops
	e.done(l.mem)
	return err
}

// build makes the graph and counts what was repaired. symmetric says that the
// format lists every undirected edge in both directions, so that a missing
// direction is worth a count rather than a second one.
//
// What that takes beside the list is claimed from mem, and the graph's memory kept; the
// list may be dropped with [edgeList.done].
func (e *edgeList) build(n int, directed, symmetric bool, rep *Repairs, mem *budget.Reservation) (g *graph.Graph, err error) {
	defer caught(&err)
	m := int64(len(e.src))
	if e.w == nil && e.merge == MergeSum { // how often an edge is listed
		e.w = filled[float32](mem, len(e.src), 1)
	}
	// The graph; the numbers of edges, three times while they are sorted; offsets by node, twice.
	held := 20*m + 8*int64(n)
	if e.w != nil {
		held += 4 * m
	}
	claim(mem, held)
	defer func() {
		if g != nil {
			held -= graphBytes(g)
		}
		mem.Shrink(held)
	}()
	if symmetric && !directed && e.w == nil {
		if edges, loops, ok := e.mirrored(n); ok {
			rep.SelfLoops += loops
			return &graph.Graph{N: n, Edges: edges}, nil
		}
	}
	if m > math.MaxInt32/2 {
		return nil, fmt.Errorf("%d edges are more than the %d supported", m, math.MaxInt32/2)
	}
	list := lists.Of(len(e.src), func(i int) int32 { return int32(i) })
	// Equal edges come to stand next to each other, those of one direction before those of
	// the other, each in the file's order. Opposite edges of a directed graph are two edges.
	low, high := func(i int32) int32 { return e.src[i] }, func(i int32) int32 { return e.dst[i] }
	if !directed {
		low = func(i int32) int32 { return min(e.src[i], e.dst[i]) }
		high = func(i int32) int32 { return max(e.src[i], e.dst[i]) }
		list = sortBy(list, 2, func(i int32) int32 {
			if e.src[i] > e.dst[i] {
				return 1
			}
			return 0
		})
	}
	list = sortBy(sortBy(list, n, high), n, low)
	g = &graph.Graph{N: n, Directed: directed, Edges: make([][2]int32, 0, len(list))}
	if e.w != nil {
		g.Weights = make([]float32, 0, len(list))
	}
	for i := 0; i < len(list); {
		edge := [2]int32{low(list[i]), high(list[i])}
		j, directions, conflict := i+1, 1, false
		for ; j < len(list) && low(list[j]) == edge[0] && high(list[j]) == edge[1]; j++ {
			switch {
			case e.src[list[j]] != e.src[list[j-1]]:
				directions = 2
			case edge[0] != edge[1] || !symmetric: // both directions of a loop look the same
				rep.DuplicateEdges++
			}
			conflict = conflict || e.w != nil && e.w[list[j]] != e.w[list[j-1]]
		}
		equal := list[i:j]
		i = j
		if u := edge[0]; u == edge[1] {
			rep.SelfLoops++
			if e.w != nil && e.loops == nil {
				e.loops = filled[float32](mem, n, -1)
			}
			if e.w != nil {
				e.loops[u] = e.merged(equal)
			}
			continue
		}
		switch {
		case directed:
		case symmetric && directions == 1:
			rep.OneWayEdges++
		case !symmetric && directions == 2:
			rep.ReversedEdges++
		}
		if conflict {
			rep.WeightConflicts++
		}
		g.Edges = append(g.Edges, edge)
		if e.w != nil {
			g.Weights = append(g.Weights, e.merged(equal))
		}
	}
	g.Edges, g.Weights = slices.Clip(g.Edges), slices.Clip(g.Weights)
	return g, nil
}

// merged is the weight that equal edges have together.
func (e *edgeList) merged(list []int32) float32 {
	return store.MergedWeight(e.merge, e.w[slices.Min(list)], func(yield func(w float32) bool) {
		for _, i := range list {
			if !yield(e.w[i]) {
				return
			}
		}
	})
}

// done gives the memory of the list back.
func (e *edgeList) done(mem *budget.Reservation) {
	mem.Shrink(4 * int64(cap(e.src)+cap(e.dst)+cap(e.w)))
}

// mirrored returns the edges of a list that is ascending and has every edge in
// both directions, and how many loops it has. Most files of formats that list both
// directions are such, and need no sorting then.
func (e *edgeList) mirrored(n int) (edges [][2]int32, loops int, ok bool) {
	if len(e.src) > math.MaxInt32 {
		return nil, 0, false
	}
	edges = make([][2]int32, 0, len(e.src)/2)
	partner := make([]int32, n) // 1 + the place of the node's next edge to a higher one
	met := 0                    // edges to a lower node
	pu, pv := int32(-1), int32(-1)
	for i, u := range e.src {
		v := e.dst[i]
		if u < pu || u == pu && v <= pv {
			return nil, 0, false
		}
		pu, pv = u, v
		switch {
		case u == v:
			loops++
		case u < v:
			if len(edges) == cap(edges) {
				return nil, 0, false
			}
			if partner[u] == 0 {
				partner[u] = int32(i) + 1
			}
			edges = append(edges, [2]int32{u, v})
		default:
			// The edges of v, a lower node, have passed: the first of them to a
			// higher node that has not been met again must be this one.
			k := partner[v] - 1
			if k < 0 || e.src[k] != v || e.dst[k] != u {
				return nil, 0, false
			}
			partner[v]++
			met++
		}
	}
	return edges, loops, len(edges) == met
}

// sortBy sorts list by a key of 0..keys-1 and keeps equal ones in their order:
// one pass of a radix sort.
func sortBy(list []int32, keys int, key func(int32) int32) []int32 {
	start := make([]int32, keys+1)
	for _, i := range list {
		start[key(i)+1]++
	}
	for k := range keys {
		start[k+1] += start[k]
	}
	out := make([]int32, len(list))
	for _, i := range list {
		k := key(i)
		out[start[k]] = i
		start[k]++
	}
	return out
}
