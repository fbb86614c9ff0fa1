package compiler

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
)

//go:embed html.tmpl
var pageText string

var page = template.Must(template.New("html.tmpl").Parse(pageText))

// Recorder keeps the text of a module after every pass, for [Recorder.WriteHTML].
// Its Record method is an Options.Trace.
type Recorder struct {
	stages []stage
}

// stage is the module after one pass, as text by section.
type stage struct {
	pass     string
	order    []string            // section names in the order of the module
	sections map[string][]string // lines of each section
}

// paramSection holds the module's own line and its parameters. No function can
// have this name.
const paramSection = "parameters"

// Record notes what the module looks like after a pass. The module may change
// afterwards.
func (r *Recorder) Record(pass string, m *ir.Module) {
	s := stage{pass: pass, sections: map[string][]string{}}
	add := func(name, text string) {
		s.order = append(s.order, name)
		s.sections[name] = strings.Split(strings.TrimRight(text, "\n"), "\n")
	}
	head, _, _ := strings.Cut(m.String(), "\nfunc ")
	add(paramSection, head)
	for _, f := range m.Funcs {
		add("@"+f.Name, f.String())
	}
	r.stages = append(r.stages, s)
}

// What the template shows.
type (
	htmlPage struct {
		Title   string
		Columns []htmlColumn
		Rows    []htmlRow
	}
	htmlColumn struct {
		Pass, Doc, Why string
		Time           string // empty for the input
		Before, After  int
		Share          int // of the total time, percent
	}
	htmlRow struct {
		Section string
		Cells   []htmlCell
	}
	htmlCell struct {
		State string // "absent", "same" (as after the pass before) or "changed"
		Lines []htmlLine
		Ops   int // lines of the section
	}
	htmlLine struct {
		Parts []htmlPart
		New   bool // was not there after the pass before
		Gone  bool // is not there after the next pass
	}
	// htmlPart is a piece of a line; Ref is the value's name where it is one.
	htmlPart struct{ Text, Ref string }
)

// WriteHTML writes one self-contained page: a column for each pass, a row for
// each function, lines that a pass added and lines that the next one removes
// marked. stats are those of the program that was recorded.
func (r *Recorder) WriteHTML(w io.Writer, title string, stats []PassStat) error {
	if len(r.stages) == 0 {
		return fmt.Errorf("nothing was recorded: set Options.Trace to Recorder.Record before compiling")
	}
	p := htmlPage{Title: title, Columns: r.columns(stats)}
	for _, name := range r.sectionNames() {
		row := htmlRow{Section: name}
		for i := range r.stages {
			row.Cells = append(row.Cells, r.cell(name, i))
		}
		p.Rows = append(p.Rows, row)
	}
	return page.Execute(w, p)
}

func (r *Recorder) columns(stats []PassStat) []htmlColumn {
	var total int64
	for _, s := range stats {
		total += int64(s.Time)
	}
	var cols []htmlColumn
	for _, st := range r.stages {
		c := htmlColumn{Pass: st.pass}
		if p := passes.Lookup(st.pass); p != nil {
			c.Doc, c.Why = p.Doc, p.Why
		}
		for _, s := range stats {
			if s.Pass == st.pass {
				c.Time, c.Before, c.After = s.Time.Round(time.Microsecond).String(), s.Before, s.After
				if total > 0 {
					c.Share = int(100 * int64(s.Time) / total)
				}
			}
		}
		cols = append(cols, c)
	}
	return cols
}

// sectionNames merges the stages' sections: a function that appears later
// stands behind the one that precedes it in its stage.
func (r *Recorder) sectionNames() []string {
	var names []string
	for _, s := range r.stages {
		at := 0
		for _, name := range s.order {
			if i := slices.Index(names, name); i >= 0 {
				at = i + 1
				continue
			}
			names = slices.Insert(names, at, name)
			at++
		}
	}
	return names
}

func (r *Recorder) cell(name string, i int) htmlCell {
	lines, ok := r.stages[i].sections[name]
	if !ok {
		return htmlCell{State: "absent"}
	}
	var before, after []string
	if i > 0 {
		before = r.stages[i-1].sections[name]
	}
	if i+1 < len(r.stages) {
		after = r.stages[i+1].sections[name]
	}
	c := htmlCell{State: "changed", Ops: len(lines)}
	if i > 0 && slices.Equal(lines, before) {
		c.State = "same"
	}
	kept := make([]bool, len(lines)) // stands after the pass before too
	stays := make([]bool, len(lines))
	for _, m := range matchLines(before, lines) {
		kept[m[1]] = true
	}
	for _, m := range matchLines(lines, after) {
		stays[m[0]] = true
	}
	for k, text := range lines {
		c.Lines = append(c.Lines, htmlLine{
			Parts: splitRefs(text),
			New:   i > 0 && !kept[k],
			Gone:  i+1 < len(r.stages) && !stays[k],
		})
	}
	return c
}

// matchLines pairs equal lines of a and b in ascending order: the longest
// increasing sequence of the lines that stand once in either, and what equal
// lines follow and precede each of those. Single-assignment text has few lines
// that stand twice, so this is as good as a full diff and never quadratic.
func matchLines(a, b []string) [][2]int {
	type place struct{ inA, inB, countA, countB int }
	places := map[string]*place{}
	at := func(s string) *place {
		p := places[s]
		if p == nil {
			p = &place{}
			places[s] = p
		}
		return p
	}
	for i, s := range a {
		p := at(s)
		p.inA, p.countA = i, p.countA+1
	}
	for i, s := range b {
		p := at(s)
		p.inB, p.countB = i, p.countB+1
	}
	// Longest increasing sequence of positions in b, over unique lines of a.
	var seq []int // candidates: positions in a
	for i, s := range a {
		if p := places[s]; p.countA == 1 && p.countB == 1 {
			seq = append(seq, i)
		}
	}
	inB := func(i int) int { return places[a[i]].inB }
	var tails []int // tails[k]: index in seq that ends the best run of length k+1
	prev := make([]int, len(seq))
	for k, i := range seq {
		n, _ := slices.BinarySearchFunc(tails, inB(i), func(t, want int) int { return inB(seq[t]) - want })
		prev[k] = -1
		if n > 0 {
			prev[k] = tails[n-1]
		}
		if n == len(tails) {
			tails = append(tails, k)
		} else {
			tails[n] = k
		}
	}
	var anchors [][2]int
	if len(tails) > 0 {
		for k := tails[len(tails)-1]; k >= 0; k = prev[k] {
			anchors = append(anchors, [2]int{seq[k], inB(seq[k])})
		}
		slices.Reverse(anchors)
	}
	// Grow into the gaps between anchors.
	var out [][2]int
	i, j := 0, 0
	for _, end := range append(anchors, [2]int{len(a), len(b)}) {
		for i < end[0] && j < end[1] && a[i] == b[j] {
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		}
		back := len(out)
		for x, y := end[0]-1, end[1]-1; x >= i && y >= j && a[x] == b[y]; x, y = x-1, y-1 {
			out = slices.Insert(out, back, [2]int{x, y})
		}
		if end[0] < len(a) {
			out = append(out, end)
		}
		i, j = end[0]+1, end[1]+1
	}
	return out
}

// splitRefs cuts a line at the values and parameters that it names.
func splitRefs(line string) []htmlPart {
	var parts []htmlPart
	start, inString := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && inString:
			i++
		case c == '"':
			inString = !inString
		case (c == '%' || c == '$') && !inString:
			end := i + 1
			for end < len(line) && isNameByte(line[end]) {
				end++
			}
			if i > start {
				parts = append(parts, htmlPart{Text: line[start:i]})
			}
			parts = append(parts, htmlPart{Text: line[i:end], Ref: line[i:end]})
			start, i = end, end-1
		}
	}
	if start < len(line) {
		parts = append(parts, htmlPart{Text: line[start:]})
	}
	return parts
}

func isNameByte(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
