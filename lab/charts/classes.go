package charts

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/abbrev"
	"github.com/gsrc-dev/gsrc/metrics"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

const (
	// classRows is how many classes have a row of precision and recall, and curves how many
	// a curve: those with the most nodes.
	classRows, curves = 30, 6
	// counted is up to how many classes the cells of the confusion matrix have their counts.
	counted = 12
)

// judged is what is known of a run's predictions on its test split, or on the validation split
// where there is no test split.
type judged struct {
	part    string
	of      string // node or graph
	report  *metrics.Report
	classes []string
	order   []int // classes, those with the most nodes first
}

// judgedOf returns nil for runs that predict nothing. With too many classes for a matrix there are no classes in it.
func judgedOf(run *gsrc.Run) *judged {
	j := &judged{part: "test", of: itemOf(run).name, report: run.Result.Test}
	if j.report == nil {
		j.part, j.report = "validation", run.Result.Val
	}
	if j.report == nil {
		return nil
	}
	if j.report.Confusion == nil {
		return j
	}
	var names []string
	if run.Graphs != nil {
		names = run.Graphs.ClassNames
	} else {
		names = run.Data.ClassNames
	}
	j.classes = infer.ClassNames(names, len(j.report.Confusion))
	for c := range j.classes {
		j.order = append(j.order, c)
	}
	slices.SortStableFunc(j.order, func(a, b int) int { return cmp.Compare(j.nodes(b), j.nodes(a)) })
	return j
}

// nodes counts those of a class.
func (j *judged) nodes(class int) (n int) {
	for _, v := range j.report.Confusion[class] {
		n += v
	}
	return n
}

func (j *judged) confusion() *Chart {
	if j == nil || j.report.Confusion == nil {
		return nil
	}
	k := len(j.classes)
	shares := make([]float64, k*k)
	var text plotter.XYLabels
	for label, row := range j.report.Confusion {
		n := j.nodes(label)
		for predicted, v := range row {
			if n > 0 {
				shares[label*k+predicted] = float64(v) / float64(n)
			}
			text.XYs = append(text.XYs, plotter.XY{X: float64(predicted) + 0.5, Y: float64(k-label) - 0.5})
			text.Labels = append(text.Labels, count(v))
		}
	}
	p := newPlot("", "predicted", "label")
	p.Add(plotter.NewImage(heat(shares, k, 1), 0, 0, float64(k), float64(k)))
	if k <= counted {
		labels, err := plotter.NewLabels(text)
		if err == nil { // one label a point: it cannot fail
			for i := range labels.TextStyle {
				s := &labels.TextStyle[i]
				s.Font, s.XAlign, s.YAlign = sans(8), draw.XCenter, draw.YCenter
				if shares[i] > 0.3 {
					s.Color = shade(0)
				}
			}
			p.Add(labels)
		}
	}
	o := &byClass{rank: make([]int32, k)}
	for c, name := range abbrev.Names(j.classes, tickLetters) {
		o.blocks = append(o.blocks, block{name: name, begin: c, end: c + 1})
	}
	o.lines(p)
	c := &Chart{Name: "confusion", Title: "Confusion matrix", height: 385}
	c.Caption = fmt.Sprintf("The %d %s %ss by label and prediction: the darker a cell, the larger its share of the %ss with that label.", j.report.Nodes, j.part, j.of, j.of)
	if k <= counted {
		c.Caption += " Figures count " + j.of + "s."
	}
	c.draw = func(dc draw.Canvas) {
		dc = inset(dc)
		tile(draw.Crop(dc, dc.Size().X/5, -dc.Size().X/5, 0, 0), [][]*plot.Plot{{p}})
	}
	return c
}

func (j *judged) perClass() *Chart {
	if j == nil || j.report.Confusion == nil {
		return nil
	}
	panel := Panel{X: "%"}
	precision, recall := Line{Name: "precision", Points: true}, Line{Name: "recall", Points: true}
	names := abbrev.Names(j.classes, legendLetters)
	for row, c := range j.order[:min(classRows, len(j.order))] {
		predicted := 0
		for _, r := range j.report.Confusion {
			predicted += r[c]
		}
		right := float64(j.report.Confusion[c][c])
		panel.Rows = append(panel.Rows, fmt.Sprintf("%s (%d)", names[c], j.nodes(c)))
		// A class that is never predicted, or that no node has, divides by 0 and is not drawn.
		precision.Values = append(precision.Values, Value{X: 100 * right / float64(predicted), Y: float64(row)})
		recall.Values = append(recall.Values, Value{X: 100 * right / float64(j.nodes(c)), Y: float64(row)})
	}
	panel.Lines = []Line{precision, recall}
	caption := fmt.Sprintf("Precision: how many of the %ss that are predicted to be of a class are. Recall: how many of those of a class are predicted to be. A class that is never predicted has no precision. In brackets: how many of the %s %ss are of the class.", j.of, j.part, j.of)
	if len(j.order) > classRows {
		caption += fmt.Sprintf(" The %d largest of %d classes.", classRows, len(j.order))
	}
	return Lines("classes", "Precision and recall of each class", caption, []Panel{panel})
}

// precisionRecall draws precision against recall as the probability that is asked for falls.
func (j *judged) precisionRecall(probabilities []float32, labels, nodes []int32) *Chart {
	if j == nil || j.report.Confusion == nil || probabilities == nil || len(nodes) == 0 {
		return nil
	}
	panel := Panel{X: "recall, %", Y: "precision, %"}
	caption := "Precision and recall of a class where all " + j.of + "s are taken whose probability of it is above a threshold, from high ones on the left to low ones on the right. Average precision:"
	k, names := len(j.classes), abbrev.Names(j.classes, legendLetters)
	for _, c := range j.order[:min(curves, k)] {
		if j.nodes(c) == 0 {
			continue
		}
		line := Line{Name: names[c], Plain: true}
		sorted := slices.Clone(nodes)
		p := func(v int32) float32 { return probabilities[int(v)*k+c] }
		slices.SortStableFunc(sorted, func(a, b int32) int { return cmp.Compare(p(b), p(a)) })
		right, before, average := 0, 0.0, 0.0
		step := math.Ceil(float64(len(sorted)) / 400) // as many points as a line shows
		for i, v := range sorted {
			if labels[v] == int32(c) {
				right++
			}
			if i+1 < len(sorted) && p(sorted[i+1]) == p(v) {
				continue // of equal probabilities all are taken
			}
			precision, recall := float64(right)/float64(i+1), float64(right)/float64(j.nodes(c))
			average += (recall - before) * precision
			before = recall
			if right > 0 && (math.Mod(float64(i), step) == 0 || i+1 == len(sorted)) {
				line.Values = append(line.Values, Value{X: 100 * recall, Y: 100 * precision})
			}
		}
		caption += fmt.Sprintf(" %s %.1f %%.", j.classes[c], 100*average)
		panel.Lines = append(panel.Lines, line)
	}
	if k > curves {
		caption += fmt.Sprintf(" The %d largest of %d classes.", curves, k)
	}
	return Lines("precision-recall", "Precision and recall", caption, []Panel{panel})
}

// calibration draws how often predictions of a probability are right, as they were trained and
// with the temperature t of an export; 0 is none.
func (j *judged) calibration(logits, probabilities []float32, t float64, labels, nodes []int32) *Chart {
	if j == nil || probabilities == nil || len(nodes) == 0 {
		return nil
	}
	k := len(logits) / len(labels)
	panel := Panel{X: "probability of the predicted class", Y: "share that are right", Lines: []Line{
		{Name: "as they should be", Values: []Value{{}, {X: 1, Y: 1}}, Reference: true, Plain: true}}}
	caption := fmt.Sprintf("The %s %ss by the probability of their predicted class, in %d intervals: how many are right. Calibration error:", j.part, j.of, metrics.Bins)
	predicted := metrics.Argmax(logits, k)
	add := func(name string, p []float32) {
		var confidence []float32
		var right []bool
		for _, v := range nodes {
			confidence, right = append(confidence, p[int(v)*k+int(predicted[v])]), append(right, predicted[v] == labels[v])
		}
		caption += panel.reliability(name, confidence, right, metrics.Bins)
	}
	add("as trained", probabilities)
	if t > 0 {
		add("calibrated, as exported", metrics.Tempered(logits, k, t))
	}
	return Lines("calibration", "Probabilities of predictions", caption, []Panel{panel})
}
