package repro

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/lab/charts"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Point is a value at a step of a run.
type Point struct {
	Panel string  `csv:"panel"`
	Row   string  `csv:"row"`
	Seed  int     `csv:"seed"`
	Step  int     `csv:"step"` // of the run, from 1; of accuracies the epoch
	Term  string  `csv:"term"` // of the loss as metrics.jsonl names it, disc, gen, reg, xent, …; or val_acc
	Value float32 `csv:"value"`
}

// every is how many of the classifier's epochs are between two points; steps that
// train the encoder are all there.
const every = 10

// terms are the terms of a run's loss along its steps.
func terms(records []checkpoint.Record) (list []Point) {
	for _, r := range records {
		if r.Function == "fit" && r.Step%every != 0 {
			continue
		}
		for _, term := range slices.Sorted(maps.Keys(r.Terms)) {
			name := term
			switch {
			case term == "loss" && r.Function == "pretrain":
				name = "ecl"
			case term == "loss": // the sum of the others
				continue
			}
			list = append(list, Point{Step: r.Step, Term: name, Value: r.Terms[term]})
		}
	}
	return list
}

// progress is a run's accuracy on validation nodes along its epochs.
func progress(records []checkpoint.Record) (list []Point) {
	for _, r := range records {
		if r.ValAcc != nil && (r.Epoch%every == 0 || r.Epoch == 1) {
			list = append(list, Point{Step: r.Epoch, Term: "val_acc", Value: float32(*r.ValAcc)})
		}
	}
	return list
}

// dynamics draws every term in a panel for each data set, a line for each seed.
func dynamics(t *Target, all []Point) *charts.Chart {
	var panels []charts.Panel
	data := distinct(all, func(p Point) string { return p.Panel })
	for _, term := range charts.SortTerms(distinct(all, func(p Point) string { return p.Term })) {
		for _, d := range data {
			panel := charts.Panel{Title: d, X: "step", Y: charts.TermName(term)}
			for _, p := range all {
				if p.Panel != d || p.Term != term {
					continue
				}
				name := fmt.Sprintf("seed %d", p.Seed)
				i := slices.IndexFunc(panel.Lines, func(l charts.Line) bool { return l.Name == name })
				if i < 0 {
					i = len(panel.Lines)
					panel.Lines = append(panel.Lines, charts.Line{Name: name, Plain: true})
				}
				panel.Lines[i].Values = append(panel.Lines[i].Values, charts.Value{X: float64(p.Step), Y: float64(p.Value)})
			}
			panels = append(panels, panel)
		}
	}
	if len(panels) == 0 {
		return nil
	}
	return charts.Lines(t.Name+curvesName, t.Title, "Terms of the loss, before they are weighted, by step of the run: pre-training, then the classifier's epochs.", panels)
}

// convergence draws for each data set the validation accuracy over the epochs, of ecl-gsr
// with and without its parts, and gcn.
func convergence(t *Target, all []Point) *charts.Chart {
	beside := rowsOf(besideAblation)
	panels := averaged(slices.DeleteFunc(slices.Clone(all), func(p Point) bool { return slices.Contains(beside, p.Row) }))
	if len(panels) == 0 {
		return nil
	}
	return charts.Lines(t.Name+curvesName, t.Title, "Validation accuracy over the classifier's epochs, the mean of the seeds; pre-training comes before the first.", panels)
}

// averaged has a panel for each panel of the points, in it the means of the seeds
// for each row.
func averaged(all []Point) (panels []charts.Panel) {
	for _, d := range distinct(all, func(p Point) string { return p.Panel }) {
		panel := charts.Panel{Title: d, X: "epoch", Y: "validation accuracy (%)"}
		here := slices.DeleteFunc(slices.Clone(all), func(p Point) bool { return p.Panel != d })
		for _, row := range distinct(here, func(p Point) string { return p.Row }) {
			line := charts.Line{Name: row, Plain: true}
			values := map[int][]float64{}
			for _, p := range here {
				if p.Row != row {
					continue
				}
				if values[p.Step] == nil {
					line.Values = append(line.Values, charts.Value{X: float64(p.Step)})
				}
				values[p.Step] = append(values[p.Step], float64(p.Value))
			}
			for i, v := range line.Values {
				line.Values[i].Y, _ = lab.MeanStd(values[int(v.X)])
			}
			panel.Lines = append(panel.Lines, line)
		}
		panels = append(panels, panel)
	}
	return panels
}
