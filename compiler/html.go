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
	isNew, isGone := missing(before), missing(after)
	for _, text := range lines {
		c.Lines = append(c.Lines, htmlLine{
			Parts: splitRefs(text),
			New:   i > 0 && isNew(text),
			Gone:  i+1 < len(r.stages) && isGone(text),
		})
	}
	return c
}

// missing reports which lines are not among others, each of which matches one. In
// single-assignment text hardly a line stands twice, and one that has only moved is no
// change.
func missing(lines []string) func(string) bool {
	left := map[string]int{}
	for _, s := range lines {
		left[s]++
	}
	return func(s string) bool {
		left[s]--
		return left[s] < 0
	}
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
