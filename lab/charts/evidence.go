package charts

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/metrics"
)

// extremes is how many of the least and of the most probable edges are shown with what each
// source says of them, and bins how many intervals of probabilities there are.
const extremes, bins = 10, 10

// shown are the sources of evidence that are drawn of single edges: one of each kind.
var shown = []string{"features", "mean", "neighbours", "adamic_adar", "walks"}

// probabilities draws, where the truth is known, which share of the edges with a
// probability are edges; nil elsewhere.
func probabilities(ds *data.Dataset, x *graph.Refined) *Chart {
	if x == nil || x.Raw || ds.Truth.Undamaged() == nil {
		return nil
	}
	panel := Panel{X: "probability of an old or a new edge", Y: "share that are edges", Lines: []Line{
		{Name: "as they should be", Values: []Value{{}, {X: 1, Y: 1}}, Reference: true, Plain: true}}}
	truth := ds.Truth.Undamaged().Undirected()
	caption := "Edges by their probability, in ten intervals: how many of them the generator knows as edges. Calibration error:"
	for _, old := range []bool{true, false} {
		var p []float32
		var is []bool
		for i, e := range x.Candidates.Edges {
			if x.Candidates.Existing[i] == old {
				p, is = append(p, x.Probability[i]), append(is, truth.Has(e[0], e[1]))
			}
		}
		if len(p) == 0 {
			continue
		}
		name := "new"
		if old {
			name = "old"
		}
		caption += panel.reliability(name, p, is, bins)
	}
	return Lines("probability", "Probabilities of edges", caption, []Panel{panel})
}

// reliability adds a line of how often what has a probability is so, and returns its calibration
// error for the caption.
func (p *Panel) reliability(name string, probability []float32, is []bool, intervals int) string {
	line := Line{Name: name}
	list := metrics.Reliability(probability, is, intervals)
	for _, b := range list {
		if n := float64(b.Count); n > 0 {
			line.Values = append(line.Values, Value{X: b.Sum / n, Y: b.True / n})
		}
	}
	p.Lines = append(p.Lines, line)
	return fmt.Sprintf(" %s %.3f.", name, metrics.CalibrationError(list))
}

// evidence draws what sources say of the least and of the most probable old edges; nil
// where nothing is known of sources.
func evidence(ds *data.Dataset, x *graph.Refined) *Chart {
	if x == nil || len(x.Evidence) == 0 {
		return nil
	}
	var old []int
	for i, existing := range x.Candidates.Existing {
		if existing {
			old = append(old, i)
		}
	}
	if len(old) == 0 {
		return nil
	}
	slices.SortStableFunc(old, func(a, b int) int { return cmp.Compare(x.Probability[a], x.Probability[b]) })
	n := min(extremes, len(old))
	panels := []Panel{{Title: "least probable edges"}, {Title: "most probable edges"}}
	for i, part := range [][]int{old[:n], old[len(old)-n:]} {
		p := &panels[i]
		p.X = "share of all edges of which the source says less"
		for _, k := range part {
			e := x.Candidates.Edges[k]
			p.Rows = append(p.Rows, fmt.Sprintf("%s – %s: %.3f", ds.NodeID(int(e[0])), ds.NodeID(int(e[1])), x.Probability[k]))
		}
		for _, source := range x.Evidence {
			if !slices.Contains(shown, source.Source) {
				continue
			}
			sorted := make([]float32, len(old))
			for j, k := range old {
				sorted[j] = source.Values[k]
			}
			slices.Sort(sorted)
			line := Line{Name: source.Source, Points: true}
			for row, k := range part {
				at, _ := slices.BinarySearch(sorted, source.Values[k])
				line.Values = append(line.Values, Value{X: float64(at) / float64(len(sorted)), Y: float64(row)})
			}
			p.Lines = append(p.Lines, line)
		}
	}
	return Lines("evidence", "Evidence for edges", "What sources say of single edges, beside their probabilities: for each source, the share of the edges of which it says less. An edge is judged without itself.", panels)
}
