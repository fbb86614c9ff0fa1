package charts

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
)

// degrees draws which share of the nodes has at least that many neighbours. after is
// nil where nothing was refined.
func degrees(before, after *graph.Graph) *Chart {
	if before.NumEdges() == 0 && (after == nil || after.NumEdges() == 0) {
		return nil
	}
	caption := "Share of the nodes that have at least so many neighbours, on logarithmic axes; edge weights do not count."
	panel := Panel{X: "degree (number of neighbours)", Y: "share of nodes", LogX: true, LogY: true}
	for i, g := range []*graph.Graph{before, after} {
		if g == nil {
			continue
		}
		l, isolated := atLeast(g)
		l.Name, l.Plain = []string{"data", "refined"}[i], true
		panel.Lines = append(panel.Lines, l)
		caption += fmt.Sprintf(" %s: mean degree %.2f, largest %s, %s nodes without a neighbour.", l.Name, meanDegree(g), count(int(slices.Max(g.Degrees()))), count(isolated))
	}
	panel.Range = func(lo, _ float64) (float64, float64) { return min(lo, 0.5), 1 }
	return Lines("degree", "Degrees", caption, []Panel{panel})
}

func meanDegree(g *graph.Graph) float64 { return 2 * float64(g.NumEdges()) / float64(g.N) }

// atLeast returns, for every degree that occurs but 0, the share of nodes with at
// least this degree, and how many nodes have none.
func atLeast(g *graph.Graph) (l Line, isolated int) {
	d := g.Degrees()
	slices.Sort(d)
	for i, v := range d {
		if v == 0 {
			isolated++
		} else if i == 0 || d[i-1] != v {
			share := float64(len(d)-i) / float64(len(d))
			if len(l.Values) == 0 && v > 1 { // as many have at least one
				l.Values = append(l.Values, Value{X: 1, Y: share})
			}
			l.Values = append(l.Values, Value{X: float64(v), Y: share})
		}
	}
	return l, isolated
}

// homophily draws the share of edges that join nodes of one class, of the data, of
// the refined graph and of what became of the edges. x is nil where nothing was
// refined; the chart is nil where no edge joins labelled nodes.
func homophily(ds *data.Dataset, before, after *graph.Graph, x *graph.Refined) *Chart {
	panel := Panel{X: "share of edges within a class"}
	line := Line{Name: "share", Points: true}
	add := func(name string, g *graph.Graph, share float64) {
		text := "none"
		if finite(share) {
			text = fmt.Sprintf("%.3f", share)
			line.Values = append(line.Values, Value{X: share, Y: float64(len(panel.Rows))})
		}
		panel.Rows = append(panel.Rows, fmt.Sprintf("%s, %s edges: %s", name, count(g.NumEdges()), text))
	}
	caption := "Share of the edges that join two nodes of one class; edges with an unlabelled end do not count."
	add("data", before, before.Homophily(ds.Labels))
	if after != nil {
		caption += " In the refined graph each edge counts with its weight, in the other rows as one."
		add("refined", after, after.WeightedHomophily(ds.Labels))
		for _, s := range []struct{ status, name string }{{graph.StatusOld, "kept"}, {graph.StatusNew, graph.StatusNew}, {graph.StatusRemoved, graph.StatusRemoved}} {
			part := &graph.Graph{N: before.N}
			for i, e := range x.Candidates.Edges {
				if x.Status(i) == s.status {
					part.Edges = append(part.Edges, e)
				}
			}
			add(s.name, part, part.Homophily(ds.Labels))
		}
	}
	if line.Values == nil {
		return nil
	}
	panel.Lines = []Line{line}
	return Lines("homophily", "Homophily", caption, []Panel{panel})
}
