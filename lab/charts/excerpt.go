package charts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
)

// AdjacencyExcerpt is [Adjacency] of some nodes of the graph, as few as can be told
// apart: of each class the node that gained the most neighbours, and those that are
// reached from it in the fewest steps over both graphs.
func AdjacencyExcerpt(run *gsrc.Run, nodes int) *Chart {
	if run.Data == nil {
		return nil
	}
	before, after := graphs(run)
	pick := around(before, after, run.Data.Labels, nodes)
	ds := &data.Dataset{Graph: &graph.Graph{N: len(pick)}, Classes: run.Data.Classes, ClassNames: run.Data.ClassNames}
	for _, v := range pick {
		ds.Labels = append(ds.Labels, run.Data.Labels[v])
	}
	if after != nil {
		after = among(after, pick)
	}
	c := adjacency(ds, among(before, pick), after)
	if c != nil {
		c.Name += fmt.Sprintf("-%d", len(pick))
		c.Caption = fmt.Sprintf("%d nodes: of each class the one that gained the most neighbours, and what is nearest to it. ", len(pick)) + c.Caption
	}
	return c
}

// around returns up to count nodes in ascending order: an even share for each class,
// found breadth first from the node of the class with the most new neighbours. after
// may be nil; then that is the node with the most neighbours.
func around(before, after *graph.Graph, labels []int32, count int) []int32 {
	next := make([][]int32, before.N)
	gained := make([]int, before.N)
	for _, g := range []*graph.Graph{before, after} {
		if g == nil {
			continue
		}
		for _, e := range g.Edges {
			if g == before || !before.Has(e[0], e[1]) {
				next[e[0]], next[e[1]] = append(next[e[0]], e[1]), append(next[e[1]], e[0])
				if after == nil || g == after {
					gained[e[0]]++
					gained[e[1]]++
				}
			}
		}
	}
	order := make([]int32, before.N)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(gained[b], gained[a]) })
	var starts []int32 // the first of each class
	had := map[int32]bool{}
	for _, v := range order {
		if !had[labels[v]] {
			had[labels[v]] = true
			starts = append(starts, v)
		}
	}
	seen := make([]bool, before.N)
	var found []int32
	for i, start := range starts {
		end := len(found) + (count-len(found))/(len(starts)-i)
		add := func(v int32) {
			if !seen[v] && len(found) < end {
				seen[v] = true
				found = append(found, v)
			}
		}
		head := len(found)
		add(start)
		for ; head < len(found); head++ {
			for _, v := range next[found[head]] {
				add(v)
			}
		}
	}
	slices.Sort(found)
	return found
}

// among is the part of g between the given nodes, in ascending order, numbered anew.
func among(g *graph.Graph, nodes []int32) *graph.Graph {
	part := &graph.Graph{N: len(nodes)}
	if g.Weights != nil {
		part.Weights = []float32{}
	}
	for i, e := range g.Edges {
		u, okU := slices.BinarySearch(nodes, e[0])
		v, okV := slices.BinarySearch(nodes, e[1])
		if okU && okV {
			part.Edges = append(part.Edges, [2]int32{int32(u), int32(v)})
			if g.Weights != nil {
				part.Weights = append(part.Weights, g.Weights[i])
			}
		}
	}
	return part
}
