package repro

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gsrc-dev/gsrc/lab"
	"gonum.org/v1/gonum/stat"
)

const missing = "–"

// table is a Markdown table whose columns are in line, so that it reads well in a
// terminal too. The first column is to the left, the others to the right.
func table(header []string, rows [][]string) string {
	width := make([]int, len(header))
	for _, r := range append([][]string{header}, rows...) {
		for i, text := range r {
			width[i] = max(width[i], utf8.RuneCountInString(text), 3)
		}
	}
	var b strings.Builder
	line := func(r []string) {
		for i, text := range r {
			space := strings.Repeat(" ", width[i]-utf8.RuneCountInString(text))
			if i == 0 {
				b.WriteString("| " + text + space + " |")
			} else {
				b.WriteString(" " + space + text + " |")
			}
		}
		b.WriteByte('\n')
	}
	line(header)
	for i, w := range width {
		if i == 0 {
			b.WriteString("|" + strings.Repeat("-", w+2) + "|")
		} else {
			b.WriteString(strings.Repeat("-", w+1) + ":|")
		}
	}
	b.WriteByte('\n')
	for _, r := range rows {
		line(r)
	}
	return b.String()
}

// tableLine is a line of a table: its head, and a cell for each of its columns.
func tableLine[T any](head string, columns []T, cell func(T) string) []string {
	line := []string{head}
	for _, c := range columns {
		line = append(line, cell(c))
	}
	return line
}

// place is a column of a table of accuracies.
type place struct{ panel, x string }

// accuracy is the mean test accuracy of a cell with its standard deviation, or that of its only
// run; runs that failed are counted.
func (ls ResultRows) accuracy(row string, p place) string {
	some := ls.of(p.panel, row, p.x)
	mean, std, ok := some.meanStd(testAcc)
	if !ok {
		return missing
	}
	text, n := meanStd(mean, std), len(some.values(testAcc))
	if n == 1 {
		text = fmt.Sprintf("%.2f (1)", mean)
	}
	if n < len(some) {
		text += fmt.Sprintf(" (%d of %d)", n, len(some))
	}
	return text
}

// accuracies is a table of rows by places. A row for which the paper prints
// numbers is followed by these, the paper's other rows come last. below, if not nil, has
// the cells of a line that follows each row under a name of its own.
func accuracies(t *Target, ls ResultRows, rows []string, places []place, heads []string, name string, below func(row string, p place) string) string {
	var out [][]string
	add := func(head string, cell func(p place) string) {
		r := tableLine(head, places, cell)
		if slices.ContainsFunc(r[1:], func(text string) bool { return text != missing }) || !strings.HasPrefix(head, "*") && (name == "" || !strings.HasSuffix(head, name)) {
			out = append(out, r)
		}
	}
	done := map[string]bool{"": true}
	paper := func(method string) {
		if done[method] {
			return
		}
		done[method] = true
		add("*paper: "+method+"*", func(p place) string {
			if v, ok := printed(t.Name, method, p.panel, p.x, "accuracy"); ok {
				return v.String()
			}
			return missing
		})
	}
	for _, row := range rows {
		add(row, func(p place) string { return ls.marked(row, p) })
		if below != nil {
			add(row+name, func(p place) string { return below(row, p) })
		}
		paper(paperName[row])
	}
	for _, m := range methods(t.Name) {
		paper(m)
	}
	return table(append([]string{"test accuracy (%)"}, heads...), out) + ls.caveats(t, rows, places)
}

func wide(t *Target, ls ResultRows) string {
	return accuracies(t, ls, ls.rows(""), ls.places(), ls.panels(), "", nil)
}

// deep is a table for each panel, what varies in its columns; name says what that
// is.
func deep(t *Target, ls ResultRows, name string) string {
	var b strings.Builder
	for i, panel := range ls.panels() {
		heads := ls.xs(panel)
		heads[0] = name + " " + heads[0]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s:\n\n%s", panel, accuracies(t, ls, ls.rows(panel), ls.in(panel).places(), heads, "", nil))
	}
	return b.String()
}

// judgement is a table of what is measured beside accuracy, of some rows.
func judgement(ls ResultRows, rows ...string) string {
	var out [][]string
	for _, m := range []struct {
		name string
		of   func(ResultRow) *float64
		form string
	}{
		{"macro-F1 (%)", func(l ResultRow) *float64 { return l.MacroF1 }, "%.2f ± %.2f"},
		{"AUC (%)", func(l ResultRow) *float64 { return l.AUC }, "%.2f ± %.2f"},
		{"calibration error", func(l ResultRow) *float64 { return l.ECE }, "%.3f ± %.3f"},
	} {
		for _, row := range rows {
			out = append(out, tableLine(m.name+", "+row, ls.panels(), func(panel string) string { return ls.of(panel, row, "").spread(m.form, m.of) }))
		}
	}
	return "\nBeside accuracy; the expected calibration error is a share, and best at 0:\n\n" + table(append([]string{"test nodes"}, ls.panels()...), out)
}

// significant is the level below which a difference is called one.
const significant = 0.05

// verdict says in a sentence what a paired test shows. what is the thing that a has
// and b lacks.
func verdict(where, what string, c *lab.Comparison) string {
	numbers := fmt.Sprintf("95 %% interval %s to %s, p = %s, %d pairs", signed(c.Lo), signed(c.Hi), pvalue(c.P), c.Runs)
	switch {
	case c.P < significant && c.Diff > 0:
		return fmt.Sprintf("- %s: %s brings %.2f points (%s).\n", where, what, c.Diff, numbers)
	case c.P < significant:
		return fmt.Sprintf("- %s: %s costs %.2f points (%s).\n", where, what, -c.Diff, numbers)
	case c.Diff == 0 && c.Lo == c.Hi:
		return fmt.Sprintf("- %s: %s changes nothing: all %d pairs are equal.\n", where, what, c.Runs)
	}
	return fmt.Sprintf("- %s: %s brings nothing that these runs can show (%s points, %s).\n", where, what, signed(c.Diff), numbers)
}

func pvalue(p float64) string {
	if p < 1e-4 {
		return fmt.Sprintf("%.0e", p)
	}
	return fmt.Sprintf("%.2g", p)
}

// tvalue writes a statistic; that of samples that do not vary is infinite.
func tvalue(t float64) string {
	if math.Abs(t) >= 1e6 {
		return strings.TrimSuffix(fmt.Sprintf("%+.0f", math.Copysign(1, t)), "1") + "∞"
	}
	if s := fmt.Sprintf("%.2f", t); s != "-0.00" {
		return s
	}
	return "0.00"
}

// refinement says for every panel and place what ecl-gsr gains over the same
// classifier on the raw graph: in sentences, or in a table where something varies.
func refinement(ls ResultRows, name string) string {
	var sentences strings.Builder
	var rows [][]string
	var up, down, pairs int
	for _, panel := range ls.panels() {
		rows = append(rows, tableLine(panel, ls.xs(""), func(x string) string {
			c := ls.paired(panel, x, eclGSR, rawGraph)
			if c == nil {
				return ""
			}
			pairs++
			up, down = up+count(c.P < significant && c.Diff > 0), down+count(c.P < significant && c.Diff < 0)
			sentences.WriteString(verdict(panel, "refinement", c))
			return fmt.Sprintf("%s (p = %s)", signed(c.Diff), pvalue(c.P))
		}))
	}
	if pairs == 0 {
		return ""
	}
	text := fmt.Sprintf("\nWhat refinement brings: “%s” against “%s”, paired by seed.\n\n", eclGSR, rawGraph)
	if name == "" {
		return text + sentences.String()
	}
	head := append([]string{"difference (points)"}, ls.xs("")...)
	head[1] = name + " " + head[1]
	return text + table(head, rows) + fmt.Sprintf("\nOf %d places refinement brings something at %d, costs something at %d, and brings nothing that these runs can show at %d.\n", pairs, up, down, pairs-up-down)
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// signed writes a difference with its sign; no difference has none.
func signed(v float64) string {
	if s := fmt.Sprintf("%+.2f", v); s != "-0.00" && s != "+0.00" {
		return s
	}
	return "0.00"
}

// changes is the table of what every other row of ecl-gsr's variants and models
// changes against one row.
func changes(ls ResultRows, base string) string {
	panels := ls.panels()
	var rows [][]string
	for _, row := range ls.rows("") {
		if row == base {
			continue
		}
		rows = append(rows, tableLine(row, panels, func(panel string) string {
			switch c := ls.paired(panel, "", row, base); {
			case c == nil:
				return missing
			case c.Diff == 0 && c.Lo == c.Hi:
				return "all equal"
			default:
				return fmt.Sprintf("%s (p = %s)", signed(c.Diff), pvalue(c.P))
			}
		}))
	}
	return fmt.Sprintf("\nAgainst “%s”, paired by seed:\n\n", base) + table(append([]string{"difference (points)"}, panels...), rows)
}

// significance is the table of tests of ecl-gsr against every other row.
func significance(t *Target, ls ResultRows) string {
	var b strings.Builder
	for i, panel := range ls.panels() {
		own := ls.of(panel, eclGSR, "")
		var rows [][]string
		for _, row := range ls.rows(panel) {
			if row == eclGSR {
				continue
			}
			r := []string{row, missing, missing, missing, missing, missing, missing}
			if x, err := lab.Independent(own.values(testAcc), ls.of(panel, row, "").values(testAcc)); err == nil {
				r[1], r[2] = tvalue(x.T), pvalue(x.P)
			}
			if c := ls.paired(panel, "", eclGSR, row); c != nil {
				r[3], r[4] = tvalue(c.T), pvalue(c.P)
			}
			if m := paperName[row]; m != "" {
				if p, ok := printed(t.Name, m, panel, "", "t"); ok {
					r[5] = p.String()
				}
				if p, ok := printed(t.Name, m, panel, "", "p"); ok {
					r[6] = p.String()
				}
			}
			rows = append(rows, r)
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s, ecl-gsr against:\n\n%s", panel, table([]string{"", "t", "p", "t, paired", "p, paired", "paper's t", "paper's p"}, rows))
	}
	b.WriteString("\nPositive values of t mean that ecl-gsr is better. The samples of t and p are independent and may differ in variance (Welch); the paired test uses that each seed has one run of both. The paper's other rows are methods that are not run here.\n")
	return b.String()
}

// commonBest names the rows of GIN's protocol.
const commonBest = "best common epoch"

// protocols is the table of graph classification by both protocols.
func protocols(t *Target, ls ResultRows) string {
	return accuracies(t, ls, ls.rows(""), ls.places(), ls.panels(), ", "+commonBest, func(row string, p place) string {
		if mean, std, ok := ls.of(p.panel, row, "").commonEpoch(); ok {
			return meanStd(mean, std)
		}
		return missing
	})
}

// commonEpoch is the mean test accuracy of runs, with its standard deviation, at
// the evaluation at which the mean is highest; ok is false without curves.
func (ls ResultRows) commonEpoch() (mean, std float64, ok bool) {
	var curves [][]float64
	length := 0
	for _, l := range ls {
		var curve []float64
		for _, text := range strings.Fields(l.TestCurve) {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return 0, 0, false
			}
			curve = append(curve, v)
		}
		if len(curve) == 0 {
			continue
		}
		if curves = append(curves, curve); length == 0 || len(curve) < length {
			length = len(curve) // one that was stopped early has no later epochs
		}
	}
	for i := range length {
		at := make([]float64, len(curves))
		for k, c := range curves {
			at[k] = c[i]
		}
		m, s := at[0], 0.0
		if len(at) > 1 {
			m, s = stat.MeanStdDev(at, nil)
		}
		if !ok || m > mean {
			mean, std, ok = m, s, true
		}
	}
	return mean, std, ok
}
