package data

import (
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
)

// edgeList collects edges as a file lists them.
type edgeList struct {
	src, dst []int32
	w        []float32 // nil or one for each edge
}

// build makes the graph and counts what was repaired. symmetric says that the
// format lists every undirected edge in both directions, so that a missing
// direction is worth a count rather than a second one.
func (e *edgeList) build(n int, directed, symmetric bool, rep *Repairs) (*graph.Graph, error) {
	g, _, err := graph.Build(n, e.src, e.dst, e.w, directed)
	if err != nil {
		return nil, err
	}
	// graph.Build keeps the first of equal edges; which kind the others are
	// is worked out here: sorted by pair, then direction, then position.
	type entry struct {
		pair     uint64 // smaller end, larger end
		backward bool
		index    int
	}
	list := make([]entry, 0, len(e.src))
	loop := make([]bool, n)
	for i, u := range e.src {
		v := e.dst[i]
		if u == v {
			switch {
			case !loop[u]:
				rep.SelfLoops++
			case !symmetric: // both directions of a loop look the same
				rep.DuplicateEdges++
			}
			loop[u] = true
			continue
		}
		list = append(list, entry{uint64(min(u, v))<<32 | uint64(max(u, v)), u > v, i})
	}
	slices.SortFunc(list, func(a, b entry) int {
		switch {
		case a.pair != b.pair:
			if a.pair < b.pair {
				return -1
			}
			return 1
		case a.backward != b.backward:
			if b.backward {
				return -1
			}
			return 1
		}
		return a.index - b.index
	})
	for i := 0; i < len(list); {
		j, directions := i, 1
		conflict := false
		for ; j < len(list) && list[j].pair == list[i].pair; j++ {
			if j == i {
				continue
			}
			sameWay := list[j].backward == list[j-1].backward
			if sameWay {
				rep.DuplicateEdges++
			} else {
				directions = 2
			}
			// Opposite edges of a directed graph are two edges.
			if e.w != nil && (sameWay || !directed) && e.w[list[j].index] != e.w[list[j-1].index] {
				conflict = true
			}
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
		i = j
	}
	return g, nil
}
