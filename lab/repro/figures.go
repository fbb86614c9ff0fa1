package repro

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/lab/charts"
)

const accuracyAxis = "test accuracy (%)"

// quantity is an axis of a figure.
type quantity struct {
	name string
	of   func(ResultRow) *float64
}

var (
	accuracy = quantity{accuracyAxis, testAcc}
	runTime  = quantity{"time of a run (s)", func(l ResultRow) *float64 { return &l.Seconds }}
	memory   = quantity{"peak memory of a step (MiB)", func(l ResultRow) *float64 { v := float64(l.PeakBytes) / (1 << 20); return &v }}
)

// curves draws a panel for each panel of the lines, accuracy over what varies, and
// beside it the same of other quantities. Where the paper prints an accuracy for the
// same setting it is marked.
func curves(t *Target, ls ResultRows, x string, logX bool, mark func(panel string) charts.Line, beside ...quantity) *charts.Chart {
	var panels []charts.Panel
	for _, panel := range ls.panels() {
		for i, y := range append([]quantity{accuracy}, beside...) {
			p := charts.Panel{Title: panel, X: x, Y: y.name, LogX: logX}
			for _, row := range ls.rows(panel) {
				p.Lines = append(p.Lines, ls.line(panel, row, y.of))
			}
			if i == 0 {
				p.Lines = append(p.Lines, mark(panel)) // without values it is left out
			}
			panels = append(panels, p)
		}
	}
	return charts.Lines(t.Name, t.Title, "Mean of the seeds with its standard deviation. The open mark is what the paper prints.", panels)
}

func (ls ResultRows) line(panel, row string, of func(ResultRow) *float64) charts.Line {
	l := charts.Line{Name: row}
	for _, x := range ls.xs(panel) {
		at, err := strconv.ParseFloat(x, 64)
		mean, std, ok := ls.of(panel, row, x).meanStd(of)
		if err == nil && ok {
			l.Values = append(l.Values, charts.Value{X: at, Y: mean, Err: std})
		}
	}
	return l
}

// paperAt marks the paper's Table 1 at one place of a figure: the setting that the
// table was measured with.
func paperAt(x float64) func(string) charts.Line {
	return func(panel string) charts.Line {
		l := charts.Line{Name: "the paper (Table 1)", Reference: true, Points: true}
		data, _, _ := strings.Cut(panel, ",")
		if p, ok := printed("table1", "ECL-GSR", data, "", "accuracy"); ok {
			l.Values = []charts.Value{{X: x, Y: p.Value, Err: p.Std}}
		}
		return l
	}
}

func paperRatios(panel string) charts.Line {
	l := charts.Line{Name: "the paper", Reference: true}
	for _, p := range Paper() {
		if p.Target == "table2" && p.Row == "ECL-GSR" && p.Panel == panel {
			x, err := strconv.ParseFloat(p.X, 64)
			if err == nil {
				l.Values = append(l.Values, charts.Value{X: x, Y: p.Value, Err: p.Std})
			}
		}
	}
	return l
}

// dots draws the rows of every panel below each other. from is the table in which
// the paper prints numbers for them, if it does.
func dots(t *Target, ls ResultRows, from string) *charts.Chart {
	var panels []charts.Panel
	for _, panel := range ls.panels() {
		p := charts.Panel{Title: panel, X: accuracyAxis, Rows: ls.rows(panel)}
		ours, paper := charts.Line{Name: "gsrc", Points: true}, charts.Line{Name: "the paper", Points: true, Reference: true}
		for i, row := range p.Rows {
			if mean, std, ok := ls.of(panel, row, "").meanStd(testAcc); ok {
				ours.Values = append(ours.Values, charts.Value{X: mean, Y: float64(i), Err: std})
			}
			if v, ok := printed(from, paperName[row], panel, "", "accuracy"); ok && !v.OOM {
				paper.Values = append(paper.Values, charts.Value{X: v.Value, Y: float64(i)})
			}
		}
		p.Lines = []charts.Line{ours, paper}
		panels = append(panels, p)
	}
	return charts.Lines(t.Name, t.Title, "Mean of the seeds with its standard deviation; the open mark is what the paper prints.", panels)
}

// costs draws accuracy over time and over memory.
func costs(t *Target, ls ResultRows) *charts.Chart {
	var panels []charts.Panel
	for _, panel := range ls.panels() {
		for _, over := range []quantity{runTime, memory} {
			p := charts.Panel{Title: panel, X: over.name, Y: accuracyAxis, LogX: true}
			for _, row := range ls.rows(panel) {
				some := ls.of(panel, row, "")
				x, _, ok := some.meanStd(over.of)
				y, std, ok2 := some.meanStd(testAcc)
				if ok && ok2 && x > 0 {
					p.Lines = append(p.Lines, charts.Line{Name: row, Points: true, Values: []charts.Value{{X: x, Y: y, Err: std}}})
				}
			}
			panels = append(panels, p)
		}
	}
	return charts.Lines(t.Name, t.Title, "Higher and further to the left is better.", panels)
}

func costTable(ls ResultRows) string {
	var rows [][]string
	for _, row := range ls.rows("") {
		r := []string{row}
		for _, panel := range ls.panels() {
			some := ls.of(panel, row, "")
			r = append(r, some.mean("%.2f", runTime.of), some.mean("%.0f", memory.of), ls.accuracy(row, place{panel, ""}))
		}
		rows = append(rows, r)
	}
	head := []string{""}
	for _, panel := range ls.panels() {
		head = append(head, panel+": s", "MiB", accuracyAxis)
	}
	return table(head, rows) + cheaper(ls)
}

// cheaper says which rows take less time than ecl-gsr and have no lower a mean.
func cheaper(ls ResultRows) string {
	var list []string
	for _, p := range ls.places() {
		of := func(row string, what quantity) float64 {
			mean, _, _ := ls.of(p.panel, row, p.x).meanStd(what.of)
			return mean
		}
		for _, row := range ls.rows(p.panel) {
			if of(row, runTime) < of(eclGSR, runTime) && of(row, accuracy) >= of(eclGSR, accuracy) { // none is NaN
				list = append(list, fmt.Sprintf("“%s” on %s", row, p.panel))
			}
		}
	}
	if list == nil {
		return ""
	}
	return fmt.Sprintf("\nQuicker than %s, with as high a mean or a higher one: %s.\n", eclGSR, strings.Join(list, ", "))
}

// lost says what ecl-gsr and another model lose between two places of a panel.
func lost(ls ResultRows, panel, from, to, other string) string {
	drop := func(row string) (float64, bool) {
		a, _, ok := ls.of(panel, row, from).meanStd(testAcc)
		b, _, ok2 := ls.of(panel, row, to).meanStd(testAcc)
		return a - b, ok && ok2
	}
	own, ok := drop(eclGSR)
	ref, ok2 := drop(other)
	if !ok || !ok2 {
		return ""
	}
	says := func(v float64) string {
		if v < 0 {
			return fmt.Sprintf("gains %.2f points", -v)
		}
		return fmt.Sprintf("loses %.2f points", v)
	}
	text := fmt.Sprintf("- %s, ratio %s: ecl-gsr %s, %s %s", panel, to, says(own), other, says(ref))
	if own > 0 && ref > 0 {
		text += fmt.Sprintf("; %.2f times as much is lost", own/ref)
	}
	return text + ".\n"
}

// structures is the table of what became of the graphs.
func structures(ls ResultRows) string {
	var rows [][]string
	for _, p := range ls.places() {
		for _, row := range ls.rows(p.panel) {
			some := ls.of(p.panel, row, p.x)
			rows = append(rows, []string{p.panel + ", " + row,
				some.mean("%.0f", func(l ResultRow) *float64 { return number(l.EdgesBefore) }), some.mean("%.0f", func(l ResultRow) *float64 { return number(l.EdgesAfter) }),
				some.mean("%.3f", func(l ResultRow) *float64 { return l.HomophilyBefore }), some.mean("%.3f", func(l ResultRow) *float64 { return l.HomophilyAfter }),
				ls.accuracy(row, p)})
		}
	}
	return table([]string{"", "edges", "refined", "weight within classes", "refined", accuracyAxis}, rows)
}

// matrix is the name of the picture of a row's adjacency matrix.
func (t *Target) matrix(panel, row string) string {
	if row == eclGSR {
		return t.Name + "-" + panel
	}
	return t.Name + "-" + panel + "-" + row
}
