package repro

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/lab/sweep"
)

// familyCell is a place of some table where a classifier has run on a refined graph and on the
// graph as it is.
type familyCell struct {
	name, target, panel, x string
	refined, raw           string // rows of one classifier
	// vary says what the runs differ in. Splits and folds share nodes, of which there are so many
	// test nodes for each training node.
	vary    string
	overlap float64
}

// family are the cells over which p is corrected: whether refinement pays is asked of them together.
func family() (list []familyCell) {
	for _, d := range slices.Concat(webPages, []string{"actor"}) {
		list = append(list, familyCell{"gcn, " + d, "tableS", d, "", "gcn, refined", "gcn", "splits", 20.0 / 48})
	}
	for _, d := range citations {
		for _, x := range []string{"1", "3", "5", "10"} {
			list = append(list, familyCell{d + ", labels in %: " + x, "table2", d, x, eclGSR, rawGraph, "training nodes", 0})
		}
	}
	for _, x := range []string{"none", "Metattack 10 %", "Metattack 20 %"} {
		for _, d := range citations {
			list = append(list, familyCell{d + ", damage: " + x, "tableR", d, x, eclGSR, rawGraph, "seeds", 0})
		}
	}
	list = append(list, familyCell{"blogcatalog", "tableR", "blogcatalog", "none", eclGSR, rawGraph, "seeds", 0})
	for _, d := range slices.Concat(citations, webPages, []string{"actor"}) {
		c := familyCell{d, "table1", d, "", eclGSR, rawGraph, "seeds", 0}
		if !slices.Contains(citations, d) {
			c.vary, c.overlap = "splits", 20.0/48
		}
		list = append(list, c)
	}
	for _, d := range []string{"mutag", "proteins", "collab"} {
		list = append(list, familyCell{d, "table4", d, "", eclGSR, rawGraph, "folds", 1.0 / 8})
	}
	return list
}

// familyText holds refinement against the graph as it is over all cells whose tables have both rows,
// which lines has by target; empty where there are none.
func familyText(lines map[string]ResultRows) string {
	var rows [][]string
	var tests []*lab.Comparison
	var ps []float64
	var none []string
	for _, c := range family() {
		t := lines[c.target].paired(c.panel, c.x, c.refined, c.raw)
		if t == nil {
			none = append(none, c.name)
			continue
		}
		overlap := missing
		if c.overlap > 0 {
			overlap = pvalue(t.Overlapping(c.overlap))
		}
		tests, ps = append(tests, t), append(ps, t.P)
		rows = append(rows, []string{c.name, heading(c.target), fmt.Sprintf("%d %s", t.Runs, c.vary), fmt.Sprintf("%.2f", t.AMean), fmt.Sprintf("%.2f", t.BMean),
			signed(t.Diff), signed(t.Lo) + " to " + signed(t.Hi), pvalue(t.P), overlap})
	}
	if rows == nil {
		return ""
	}
	var up, down, better, worse int
	for i, p := range lab.Holm(ps) {
		t := tests[i]
		rows[i] = append(rows[i], pvalue(p))
		up, down = up+count(t.Diff > 0 && t.P < significant), down+count(t.Diff < 0 && t.P < significant)
		better, worse = better+count(t.Diff > 0 && p < significant), worse+count(t.Diff < 0 && p < significant)
	}
	text := fmt.Sprintf("A classifier on the refined graph against the same on the graph as it is, paired by run, from the tables below. Of %d cells refinement is better at %d and worse at %d where each p stands for itself, and "+
		"better at %d and worse at %d with p by Holm's correction over all of them. Runs on one split that differ in their seed alone say nothing of other splits. Where splits or folds share nodes, the next to last column has p by "+
		"Nadeau and Bengio's (2003) correction for that, alone. The first four graphs have edges between nodes that ecl-gsr's own classifier puts in one class (`model.edges.same_class`), and hand on what that has learned: its accuracy stands in Table S.\n\n", len(rows), up, down, better, worse) +
		table([]string{"test accuracy (%)", "rows of", "runs", "refined", "raw", "difference", "95 % interval", "p", "p, overlap", "p, Holm"}, rows)
	if none != nil {
		text += "\nNot run on both graphs: " + strings.Join(none, "; ") + ".\n"
	}
	return text
}

// autoText holds the model that auto chooses against the row that is best on validation nodes, at
// every place of the tables where auto has run; empty where there is none.
func autoText(lines map[string]ResultRows) string {
	var rows [][]string
	var within int
	for _, target := range []string{"table1", "table2", "tableR"} {
		ls := lines[target]
		for _, p := range ls.places() {
			of := ls.of(p.panel, sweep.Auto, p.x)
			if _, _, ok := of.meanStd(testAcc); !ok {
				continue
			}
			seeds := distinct(of, func(l ResultRow) int { return l.Seed })
			best, top := "", -1.0
			for _, row := range ls.rows(p.panel) {
				same := slices.DeleteFunc(slices.Clone(ls.of(p.panel, row, p.x)), func(l ResultRow) bool { return !slices.Contains(seeds, l.Seed) })
				mean, _, ok := same.meanStd(valAcc)
				if row != sweep.Auto && row != learnsFromValidation && ok && len(same) == len(seeds) && mean > top {
					best, top = row, mean
				}
			}
			c := ls.paired(p.panel, p.x, sweep.Auto, best)
			if c == nil {
				continue
			}
			holds := "no"
			if c.Diff >= -max(autoBound, c.SE)-1e-9 { // of two runs one without a difference: both are half of the other's
				holds = "yes"
				within++
			}
			count := map[string]int{}
			for _, l := range of {
				count[l.Chosen]++
			}
			names := distinct(of, func(l ResultRow) string { return l.Chosen })
			slices.SortStableFunc(names, func(a, b string) int { return count[b] - count[a] })
			for i, name := range names {
				if count[name] > 1 {
					names[i] = fmt.Sprintf("%s (%d)", name, count[name])
				}
			}
			rows = append(rows, []string{Find(target).at(p), heading(target), fmt.Sprint(c.Runs), fmt.Sprintf("%.2f", c.AMean), best, fmt.Sprintf("%.2f", c.BMean), signed(c.Diff), fmt.Sprintf("%.2f", c.SE), holds, strings.Join(names, "; ")})
		}
	}
	if rows == nil {
		return ""
	}
	return fmt.Sprintf("`gsrc train auto`, which reads none of the options that were searched for a data set, against the row of the table that is best on validation nodes over the same runs, but for “"+learnsFromValidation+"”, which learns from labels of half of these nodes. "+
		"At %d of %d places it is within the larger of %.1f points and the standard error of the paired difference; the last column has what it chose, and of how many runs. A standard error of two or three runs says little.\n\n", within, len(rows), autoBound) +
		table([]string{"test accuracy (%)", "rows of", "runs", "auto", "best on validation", "its accuracy", "difference", "standard error", "within", "chosen"}, rows)
}

// learnsFromValidation is the row whose validation accuracy is of half of these nodes: it learns from the
// labels of the others, and no other row is held against it by validation.
const learnsFromValidation = "lds"

// autoBound is how many points below the best row auto may be.
const autoBound = 0.5
