package repro

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/lab/charts"
)

// goals are what Table E is held against on the sets that count for the sentences about it, what is
// required and then the aim: AUC and precision of the wrong edges, and hidden edges found, 0 where
// none are hidden.
var goals = map[string][2][3]float64{
	"cora, planted":            {{0.96, 0.69, 60}, {0.97, 0.75, 75}},
	"citeseer, planted":        {{0.975, 0.75, 60}, {0.985, 0.80, 75}},
	"blogcatalog, planted":     {{0.90, 0.55, 1400}, {0.93, 0.60, 1800}},
	"cora, Metattack 20 %":     {{0.91, 0.58, 0}, {0.94, 0.65, 0}},
	"citeseer, Metattack 20 %": {{0.93, 0.66, 0}, {0.95, 0.72, 0}},
}

func wrongAUC(l ResultRow) *float64 { return l.WrongAUC }

// edgeRow is a row of Table E: a run's joined evidence, one source alone, or a plain
// predictor.
type edgeRow struct{ row, source string }

func (r edgeRow) String() string {
	if r.source == "" {
		return r.row
	}
	return r.source + " alone"
}

func (ls ResultRows) edgeRows() []edgeRow {
	return distinct(ls, func(l ResultRow) edgeRow { return edgeRow{l.Row, l.Source} })
}

// ofEdges are the lines of a row on a set.
func (ls ResultRows) ofEdges(panel string, r edgeRow) ResultRows {
	return slices.DeleteFunc(ls.of(panel, r.row, ""), func(l ResultRow) bool { return l.Source != r.source })
}

func edgeReport(t *Target, ls ResultRows) (r rendered) {
	var tests string
	tests, r.caveat = edgeTests(ls)
	random := func(l ResultRow) *float64 {
		if l.Wrong == nil || l.EdgesBefore == nil {
			return nil
		}
		return new(float64(*l.Wrong) / float64(*l.EdgesBefore))
	}
	r.text = tests +
		edgeMeans(ls, "AUC of telling wrong edges from the others by their score:", "%.3f ± %.3f", wrongAUC, 0) +
		edgeMeans(ls, "Share of wrong edges among the k least likely old ones, k being the number of wrong ones:", "%.3f ± %.3f", func(l ResultRow) *float64 { return l.WrongPrecision }, 1) +
		edgeMeans(ls, "Hidden edges among the k likeliest new ones, k being the number of hidden ones; of equal scores as many as a random order finds:", "%.1f ± %.1f", func(l ResultRow) *float64 { return l.HiddenFound }, 2) +
		"Probabilities and dropped edges. The calibration error is that of old edges' probabilities, in ten bins; it is best at 0, and at most 0.05 is required where edges are planted. Dropped are those with a probability below 0.5, as `gsrc refine --threshold 0.5` does; the precision is the share of wrong ones among them, against dropping as many at random:\n\n"
	var rows [][]string
	for _, m := range []struct {
		name, form string
		of         func(ResultRow) *float64
	}{
		{"calibration error", "%.3f ± %.3f", func(l ResultRow) *float64 { return l.EdgeECE }},
		{"dropped edges", "%.0f ± %.0f", func(l ResultRow) *float64 { return number(l.Dropped) }},
		{"precision", "%.3f ± %.3f", func(l ResultRow) *float64 { return l.DroppedPrecision }},
		{"at random", "%.3f ± %.3f", random},
	} {
		for _, row := range []string{eclGSR, againstRandom, byEmbeddings} {
			rows = append(rows, tableLine(m.name+", "+row, ls.panels(), func(panel string) string { return ls.ofEdges(panel, edgeRow{row: row}).spread(m.form, m.of) }))
		}
	}
	r.text += table(append([]string{""}, ls.panels()...), rows)
	r.chart = edgeDots(t, ls)
	return r
}

// edgeMeans is the table of a quantity by rows and sets, with the goals of that number,
// below a line that says what it is; empty where no set has it.
func edgeMeans(ls ResultRows, says, form string, of func(ResultRow) *float64, number int) string {
	panels := slices.DeleteFunc(ls.panels(), func(p string) bool { return ls.in(p).values(of) == nil })
	if len(panels) == 0 {
		return ""
	}
	head := slices.Clone(panels)
	for i, p := range panels {
		if some := ls.in(p); number == 2 && len(some) > 0 && some[0].Hidden != nil {
			head[i] = fmt.Sprintf("%s (k = %d)", p, *some[0].Hidden)
		}
	}
	var rows [][]string
	for _, r := range ls.edgeRows() {
		rows = append(rows, tableLine(r.String(), panels, func(panel string) string { return ls.ofEdges(panel, r).spread(form, of) }))
	}
	for i, name := range []string{"required", "aim"} {
		rows = append(rows, tableLine("*"+name+"*", panels, func(panel string) string {
			if g := goals[panel][i][number]; g > 0 {
				return fmt.Sprint(g)
			}
			return missing
		}))
	}
	return says + "\n\n" + table(append([]string{""}, head...), rows) + "\n"
}

// edgeTests compares all sources together with the best of them alone, with the best plain
// predictor and with the embedding, and the trained embedding with the one that is never
// trained, on every set. The caveat is a sentence for the head of the page.
func edgeTests(ls ResultRows) (text, caveat string) {
	const bestAlone, bestPlain, overEmbedding, trained = 0, 1, 2, 3
	type test struct {
		panel, name string
		kind        int
		*lab.Comparison
	}
	var tests []test
	var ps []float64
	for _, panel := range ls.panels() {
		all, best := ls.ofEdges(panel, edgeRow{row: eclGSR}), [2]ResultRows{}
		var top [2]float64
		for _, r := range ls.edgeRows() {
			some := ls.ofEdges(panel, r)
			kind := bestAlone
			switch {
			case len(some) == 0 || r.source == "" && some[0].Model != "":
				continue
			case some[0].Model == "":
				kind = bestPlain
			}
			if mean, _, ok := some.meanStd(wrongAUC); ok && mean > top[kind] {
				best[kind], top[kind] = some, mean
			}
		}
		add := func(kind int, name string, a, b ResultRows) {
			if len(b) == 0 {
				return
			}
			if c := pairedBySeed(wrongAUC, a, b); c != nil {
				tests, ps = append(tests, test{panel, name, kind, c}), append(ps, c.P)
			}
		}
		for kind, b := range best {
			if len(b) > 0 {
				add(kind, "all together − "+edgeRow{b[0].Row, b[0].Source}.String(), all, b)
			}
		}
		embedding := ls.ofEdges(panel, edgeRow{row: byEmbeddings})
		add(overEmbedding, "all together − "+byEmbeddings, all, embedding)
		add(trained, byEmbeddings+" − never trained", embedding, ls.ofEdges(panel, edgeRow{row: neverTrained}))
	}
	if tests == nil {
		return "", ""
	}
	var rows [][]string
	var better, sets [4]int
	for i, p := range lab.Holm(ps) {
		c := tests[i]
		rows = append(rows, []string{c.panel + ": " + c.name, fmt.Sprintf("%+.4f", c.Diff), fmt.Sprintf("%+.4f to %+.4f", c.Lo, c.Hi), pvalue(c.P), pvalue(p)})
		if _, counts := goals[c.panel]; counts {
			sets[c.kind]++
			better[c.kind] += count(c.Diff > 0 && p < significant)
		}
	}
	for i, what := range []string{
		"All sources together are better than the best of them alone", "All sources together are better than the best plain predictor",
		"All sources together are better than the embedding", "The embedding is better trained than never trained",
	} {
		if sets[i] > 0 {
			text += fmt.Sprintf("- %s on %d of %d sets.\n", what, better[i], sets[i])
		}
	}
	if sets[overEmbedding] > 0 {
		caveat = fmt.Sprintf("The embedding has no part in judging edges: as a source beside the others it added too little in development to stay, and what judges without it is better than what judges by it on %d of the %d sets of [Table E](#table-e-wrong-and-missing-edges).", better[overEmbedding], sets[overEmbedding])
	}
	text += fmt.Sprintf("\nDifferences of the AUC below, paired by seed, with their 95 %% intervals; p by Holm's correction is over all of these tests, and a difference counts where it is below %v. The sentences above count the sets for which something is required.\n\n", significant)
	return text + table([]string{"", "difference", "95 % interval", "p", "p, Holm"}, rows) + "\n", caveat
}

// edgeDots draws the AUC of all rows.
func edgeDots(t *Target, ls ResultRows) *charts.Chart {
	var panels []charts.Panel
	for _, panel := range ls.panels() {
		p := charts.Panel{Title: panel, X: "AUC of wrong edges"}
		ours, goal := charts.Line{Name: "mean", Points: true}, charts.Line{Name: "required", Reference: true, Points: true}
		for _, r := range ls.edgeRows() {
			mean, std, ok := ls.ofEdges(panel, r).meanStd(wrongAUC)
			if !ok {
				continue
			}
			y := float64(len(p.Rows))
			p.Rows, ours.Values = append(p.Rows, r.String()), append(ours.Values, charts.Value{X: mean, Y: y, Err: std})
			if g := goals[panel][0][0]; g > 0 && r.row == eclGSR && r.source == "" {
				goal.Values = append(goal.Values, charts.Value{X: g, Y: y})
			}
		}
		p.Lines = []charts.Line{ours, goal}
		panels = append(panels, p)
	}
	return charts.Lines(t.Name, t.Title, "AUC of telling wrong edges from the others, mean of the seeds with its standard deviation. The open mark is what is required of all sources together.", panels)
}
