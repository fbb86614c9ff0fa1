package charts

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// degrees draws which share of the nodes has at least so many neighbours. after is
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

// decades ticks a logarithmic axis at 1, 2 and 5 of every power of ten, or at the
// powers alone where that would crowd it.
type decades struct{}

func (decades) Ticks(lo, hi float64) []plot.Tick {
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		for m := 1; m < 10; m++ {
			v := float64(m) * math.Pow10(e)
			if v < lo*(1-1e-9) || v > hi*(1+1e-9) {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || last-first <= 3 && (m == 2 || m == 5) {
				t.Label = fmt.Sprintf("%.5g", v)
			}
			ticks = append(ticks, t)
		}
	}
	return ticks
}

// homophily draws the share of edges that join nodes of one class, of the data, of
// the refined graph and of what became of the edges. x is nil where nothing was
// refined; the chart is nil where no edge joins labelled nodes.
func homophily(ds *data.Dataset, before, after *graph.Graph, x *graph.Refined) *Chart {
	c := &Chart{Name: "homophily", Title: "Homophily", height: plotHeight,
		Caption: "Share of the edges that join two nodes of one class; edges with an unlabelled end do not count."}
	type bar struct {
		name  string
		edges int
		value float64
	}
	bars := []bar{{"data", before.NumEdges(), before.Homophily(ds.Labels)}}
	if after != nil {
		bars = append(bars, bar{"refined", after.NumEdges(), after.WeightedHomophily(ds.Labels)})
		c.Caption += " In the refined graph each edge counts with its weight, in the other bars as one."
		for _, s := range []string{graph.StatusOld, graph.StatusNew, graph.StatusRemoved} {
			part := &graph.Graph{N: before.N}
			for i, e := range x.Candidates.Edges {
				if x.Status(i) == s {
					part.Edges = append(part.Edges, e)
				}
			}
			name := s
			if s == graph.StatusOld {
				name = "kept"
			}
			bars = append(bars, bar{name, part.NumEdges(), part.Homophily(ds.Labels)})
		}
	}
	p := newPlot("", "", "share of edges within a class")
	g := grid()
	g.Vertical.Width = 0
	p.Add(g)
	var names []string
	var labels plotter.XYLabels
	drawn := false
	for i, b := range bars {
		names = append(names, fmt.Sprintf("%s\n%s edges", b.name, count(b.edges)))
		value, text := b.value, fmt.Sprintf("%.3f", b.value)
		if math.IsNaN(value) {
			value, text = 0, "none"
		} else {
			drawn = true
		}
		chart, err := plotter.NewBarChart(plotter.Values{value}, vg.Points(48))
		if err != nil { // a value that is not finite
			return nil
		}
		chart.XMin, chart.LineStyle.Width, chart.Color = float64(i), 0, []color.NRGBA{vermilion, blue, grey, grey, grey}[i]
		p.Add(chart)
		labels.XYs, labels.Labels = append(labels.XYs, plotter.XY{X: float64(i), Y: value}), append(labels.Labels, text)
	}
	if !drawn {
		return nil
	}
	above, err := plotter.NewLabels(labels)
	if err != nil {
		return nil
	}
	for i := range above.TextStyle {
		above.TextStyle[i].Font, above.TextStyle[i].XAlign = sans(tickSize), draw.XCenter
	}
	above.Offset.Y = 4
	p.Add(above)
	p.NominalX(names...)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.6, float64(len(bars))-0.4, 0, 1.05
	c.draw = func(dc draw.Canvas) { p.Draw(inset(dc)) }
	return c
}
