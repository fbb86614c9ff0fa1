package graph

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"pgregory.net/rapid"
)

// However a graph changes, its edges have the evidence that they have from the start.
func TestOnlineEdgePriorIsTheCalibration(t *testing.T) {
	o := DefaultCSBM()
	o.Nodes = 120
	s, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	cols := sampleRows(s).Cols
	_, c := CalibrateEdges(nil, s.Graph, sampleRows(s), 2, rng.New(5, "evidence"))
	rapid.Check(t, func(t *rapid.T) {
		g, x := s.Graph, slices.Clone(s.X)
		n := g.N
		j := NewOnlineEdgePrior(nil, g, sampleRows(s), c)
		edges := map[[2]int32]bool{}
		for _, e := range g.Edges {
			edges[e] = true
		}
		check := func(g *Graph) {
			want := c.Probabilities(nil, g, NodeFeatures{Cols: cols, Dense: x})
			for i, e := range g.Edges {
				if p := j.P(e[1], e[0]); p != want[i] {
					t.Fatalf("edge %v has the probability %v, want %v", e, p, want[i])
				}
			}
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			oldX, oldN := slices.Clone(x), n
			var nodes []int32
			var added, removed [][2]int32
			row := func(v int32) []float32 { return x[int(v)*cols : (int(v)+1)*cols] }
			if rapid.Bool().Draw(t, "features") {
				v := int32(rapid.IntRange(0, n-1).Draw(t, "v"))
				nodes = append(nodes, v)
				copy(row(v), row(int32(rapid.IntRange(0, n-1).Draw(t, "like"))))
			}
			if rapid.Bool().Draw(t, "node") {
				nodes = append(nodes, int32(n))
				x = append(x, row(int32(rapid.IntRange(0, n-1).Draw(t, "like")))...)
				n++
			}
			for range rapid.IntRange(0, 4).Draw(t, "edges") {
				u, v := int32(rapid.IntRange(0, n-1).Draw(t, "u")), int32(rapid.IntRange(0, n-1).Draw(t, "v"))
				e := [2]int32{min(u, v), max(u, v)}
				if u == v || slices.Contains(added, e) || slices.Contains(removed, e) {
					continue
				}
				if edges[e] {
					removed = append(removed, e)
				} else {
					added = append(added, e)
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "away") {
				e := g.Edges[rapid.IntRange(0, len(g.Edges)-1).Draw(t, "e")]
				if !slices.Contains(removed, e) {
					removed = append(removed, e)
				}
			}
			for _, e := range added {
				edges[e] = true
			}
			for _, e := range removed {
				delete(edges, e)
			}
			next := &Graph{N: n}
			for e := range edges {
				next.Edges = append(next.Edges, e)
			}
			slices.SortFunc(next.Edges, compareEdges)
			before := map[[2]int32]float32{}
			for _, e := range g.Edges {
				before[e] = j.P(e[0], e[1])
			}
			st := next.Structure()
			changed := j.Change(n, nodes, row, added, removed, func(v int32) []int32 { return st.In.Col[st.In.RowPtr[v]:st.In.RowPtr[v+1]] })
			check(next)
			for _, e := range next.Edges {
				old, was := before[e]
				if other := !was || old != j.P(e[0], e[1]); other != slices.Contains(changed, e) {
					t.Fatalf("edge %v: other %v, said %v", e, other, !other)
				}
			}
			if rapid.Bool().Draw(t, "undo") {
				j.Undo()
				for _, e := range added {
					delete(edges, e)
				}
				for _, e := range removed {
					edges[e] = true
				}
				x, n = oldX, oldN
				check(g)
				continue
			}
			g = next
		}
	})
}
