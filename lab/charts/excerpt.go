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
// apart: the node with the most neighbours in the data, and those that are reached
// from it in the fewest steps over both graphs.
func AdjacencyExcerpt(run *gsrc.Run, nodes int) *Chart {
	if run.Data == nil {
		return nil
	}
	before, after := graphs(run)
	pick := around(before, after, nodes)
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
		c.Caption = fmt.Sprintf("The %d nodes around the one with the most neighbours. ", len(pick)) + c.Caption
	}
	return c
}

// around returns up to count nodes in ascending order, found breadth first.
func around(before, after *graph.Graph, count int) []int32 {
	next := make([][]int32, before.N)
	for _, g := range []*graph.Graph{before, after} {
		if g == nil {
			continue
		}
		for _, e := range g.Edges {
			next[e[0]], next[e[1]] = append(next[e[0]], e[1]), append(next[e[1]], e[0])
		}
	}
	degree := before.Degrees()
	order := make([]int32, before.N)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(degree[b], degree[a]) })
	seen := make([]bool, before.N)
	var found []int32
	add := func(v int32) {
		if !seen[v] && len(found) < count {
			seen[v] = true
			found = append(found, v)
		}
	}
	for _, start := range order {
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
