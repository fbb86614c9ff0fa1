package repro

import (
	"fmt"
	"slices"
	"strings"
)

// seenMark stands at accuracies some of whose settings were settled when test figures
// had been seen. The files of config/defaults say so too.
const seenMark = " †"

// seen are these settings, by data set.
var seen = []struct {
	data []string
	rows []string // nil: all that are trained here
	text string
}{
	{webPages, append(rowsOf(append(ofEncoder, asInPaper)), eclGSR, rawGraph), "`train.select`, whether the epoch is chosen by accuracy or by loss,"},
	{[]string{"proteins"}, nil, "`train.select`"},
	{[]string{"collab"}, []string{eclGSR, rawGraph}, "`model.classifier`, between gcn and gin,"},
}

// seenAt returns which of seen is about a row of a panel, -1 for none.
func seenAt(row, panel string) int {
	for i, s := range seen {
		if slices.Contains(s.data, panel) && row != forest && (s.rows == nil || slices.Contains(s.rows, row)) {
			return i
		}
	}
	return -1
}

func (ls ResultRows) marked(row string, p place) string {
	text := ls.accuracy(row, p)
	if text != missing && seenAt(row, p.panel) >= 0 {
		text += seenMark
	}
	return text
}

// caveats are the sentences that belong below a table of accuracies: what was not
// chosen on validation alone, where ecl-gsr is below a GCN and other rows, and where validation
// prefers the graph as it is.
func (ls ResultRows) caveats(t *Target, rows []string, places []place) string {
	var lines []string
	for i, s := range seen {
		var data []string
		for _, p := range places {
			marked := slices.ContainsFunc(rows, func(row string) bool {
				return seenAt(row, p.panel) == i && ls.accuracy(row, p) != missing
			})
			if marked && !slices.Contains(data, p.panel) {
				data = append(data, p.panel)
			}
		}
		if len(data) > 0 {
			lines = append(lines, fmt.Sprintf("† %s: %s was settled when test figures of the alternatives had been seen, not on validation alone.", strings.Join(data, ", "), s.text))
		}
	}
	below := func(of func(ResultRow) *float64, a, b string, alike bool) (list []string) {
		for _, p := range places {
			x, _, ok := ls.of(p.panel, a, p.x).meanStd(of)
			y, _, ok2 := ls.of(p.panel, b, p.x).meanStd(of)
			if !ok || !ok2 || x >= y || alike && p.x != "" {
				continue
			}
			list = append(list, fmt.Sprintf("%s (%.2f against %.2f)", t.at(p), x, y))
		}
		return list
	}
	if at := below(testAcc, eclGSR, "gcn", false); at != nil {
		lines = append(lines, fmt.Sprintf("%s is below a plain gcn on %s.", eclGSR, strings.Join(at, ", ")))
	}
	if at := ls.notBest(t, rows, places); at != nil {
		lines = append(lines, fmt.Sprintf("The highest mean is not that of %s on %s.", eclGSR, strings.Join(at, ", ")))
	}
	if at := below(valAcc, eclGSR, rawGraph, true); at != nil {
		lines = append(lines, fmt.Sprintf("Validation %s prefer the raw graph on %s: validation alone would not have picked refinement there.", t.items(), strings.Join(at, ", ")))
	}
	if lines == nil {
		return ""
	}
	return "\n- " + strings.Join(lines, "\n- ") + "\n"
}

// notBest lists the places where another row has a higher mean than ecl-gsr, with the highest one.
func (ls ResultRows) notBest(t *Target, rows []string, places []place) (list []string) {
	for _, p := range places {
		own, _, ok := ls.of(p.panel, eclGSR, p.x).meanStd(testAcc)
		top, best := own, ""
		for _, row := range rows {
			if mean, _, there := ls.of(p.panel, row, p.x).meanStd(testAcc); ok && there && mean > top {
				top, best = mean, row
			}
		}
		if best != "" {
			list = append(list, fmt.Sprintf("%s (%.2f; “%s” %.2f)", t.at(p), own, best, top))
		}
	}
	return list
}

// at is a place of a target in a sentence.
func (t *Target) at(p place) string {
	switch {
	case p.x == "":
		return p.panel
	case t.Name == "table2":
		return p.panel + " with " + p.x + " % labelled"
	}
	return p.panel + " at " + p.x
}

// items is what a target classifies.
func (t *Target) items() string {
	if t.graphs {
		return "graphs"
	}
	return "nodes"
}
