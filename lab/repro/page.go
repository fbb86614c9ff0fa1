package repro

import (
	"bytes"
	_ "embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab/sweep"
)

// curvesName ends the names of a target's chart of training curves and of the
// file with their values.
const (
	curvesName   = "-curves"
	curvesSuffix = curvesName + ".csv"
)

// filesOf is the folder of the files that a report shows.
func filesOf(report string) string {
	return strings.TrimSuffix(report, filepath.Ext(report))
}

func writePage(report string) error {
	dir := filesOf(report)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := Page(os.DirFS(dir), filepath.Base(dir), filepath.ToSlash(report))
	if err != nil {
		return err
	}
	for _, t := range targets {
		lines, err := t.linesIn(os.DirFS(dir))
		if err != nil {
			return err
		}
		if lines == nil {
			continue
		}
		if err := t.draw(dir, lines); err != nil {
			return err
		}
	}
	return atomicfile.WriteBytes(report, text)
}

//go:embed page.md.tmpl
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"join": strings.Join}).Parse(pageText))

type section struct {
	Target           *Target
	Heading, Command string
	Seeds, Took      string
	Runs, Failed     int
	PeakMiB          float64
	Short            bool
	Left             []string // data sets that no line is of
	LeftRows         []string // rows that no line is of
	Fewer            []string // rows with fewer seeds than others, where, and how many they have
	Text, Caveat     string
	Pictures         []picture
}

// Page makes the report, in Markdown, of the files of targets: TARGET.csv, and the
// charts, to which it links in a folder. report is how the command names it.
// Nothing but these files decides what it says.
func Page(files fs.FS, folder, report string) ([]byte, error) {
	view := struct {
		Folder, Report       string
		Significant          float64
		Hashed, Lines        int
		Caveat, Family, Auto string
		Sections             []section
	}{Folder: folder, Report: report, Significant: significant}
	of := map[string]ResultRows{}
	for _, t := range targets {
		lines, err := t.linesIn(files)
		if err != nil {
			return nil, err
		}
		of[t.Name] = lines
		for _, l := range lines {
			view.Lines += count(l.Model != "")
			view.Hashed += count(l.Hash != "")
		}
		s := t.section(folder, lines)
		view.Sections, view.Caveat = append(view.Sections, s), view.Caveat+s.Caveat
	}
	view.Family, view.Auto = familyText(of), autoText(of)
	var b bytes.Buffer
	err := page.Execute(&b, view)
	return b.Bytes(), err
}

// linesIn reads the target's file; nil where there is none. Lines of several budgets are refused,
// since they are shown together, and so is a run that stands there twice, which would count as two.
func (t *Target) linesIn(files fs.FS) (ResultRows, error) {
	name := t.Name + ".csv"
	lines, err := readFile[ResultRow](files, name)
	if err != nil || lines == nil {
		return nil, err
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s has no runs", name)
	}
	first := lines[0].Budget
	if first != Full && first != Short {
		return nil, fmt.Errorf("%s:2: the budget is %q; it can be %s or %s", name, first, Full, Short)
	}
	type key struct {
		runOf
		source string
	}
	seen := map[key]int{}
	at := 2 // of the line in the file, below the header
	for _, l := range lines {
		k := key{lineOf(l), l.Source}
		switch {
		case l.Budget != first:
			return nil, fmt.Errorf("%s:%d: the budget is %q, and that of the lines above %q; keep the lines of one", name, at, l.Budget, first)
		case l.Seed < 0 || l.Seed >= sweep.MaxSeeds:
			return nil, fmt.Errorf("%s:%d: the seed is %d; it can be 0 to %d", name, at, l.Seed, sweep.MaxSeeds-1)
		case seen[k] > 0:
			return nil, fmt.Errorf("%s:%d: line %d is of the same panel, row, x, source and seed; keep one", name, at, seen[k])
		}
		seen[k] = at
		at += 1 + strings.Count(l.Error, "\n")
	}
	return lines, nil
}

func (t *Target) section(folder string, lines ResultRows) section {
	s := section{Target: t, Heading: heading(t.Name), Command: command(t, lines), Runs: len(lines)}
	if lines == nil {
		return s
	}
	var seconds float64
	for _, l := range lines {
		seconds += l.Seconds
		s.Runs -= count(l.Source != "" || l.Model == "")
		s.PeakMiB = max(s.PeakMiB, float64(l.PeakBytes)/(1<<20))
		s.Failed += count(l.Error != "")
	}
	if s.Seeds = "0"; lines.seeds() > 1 {
		s.Seeds = fmt.Sprintf("0 to %d", lines.seeds()-1)
	}
	s.Took, s.Short, s.Left = duration(seconds), lines[0].Budget == Short, t.left(lines)
	s.LeftRows, s.Fewer = t.leftRows(lines), lines.fewer()
	r := t.render(t, lines)
	s.Text, s.Caveat, s.Pictures = r.text, r.caveat, r.pictures
	if c := r.chart; c != nil {
		s.Pictures = append(s.Pictures, picture{c.Name, c.Caption})
	}
	if t.curves != nil {
		s.Pictures = append(s.Pictures, picture{t.Name + curvesName, fmt.Sprintf("From [%s%s](%s/%[1]s%[2]s).", t.Name, curvesSuffix, folder)})
	}
	return s
}

// left lists the data sets of a target that none of its lines is of.
func (t *Target) left(lines ResultRows) []string {
	return slices.DeleteFunc(t.Data(), func(name string) bool {
		return slices.ContainsFunc(lines, func(l ResultRow) bool { return l.Data == name })
	})
}

// leftRows lists the rows of a target that none of its lines is of, though some lines are of
// their data.
func (t *Target) leftRows(lines ResultRows) []string {
	cells := slices.DeleteFunc(slices.Clone(t.cells), func(c cell) bool {
		return !slices.ContainsFunc(lines, func(l ResultRow) bool { return l.Data == c.data })
	})
	rows := distinct(cells, func(c cell) string { return c.row })
	return slices.DeleteFunc(rows, func(name string) bool {
		return slices.ContainsFunc(lines, func(l ResultRow) bool { return l.Row == name })
	})
}

// fewer lists the rows that have fewer seeds than others, by panel.
func (ls ResultRows) fewer() (list []string) {
	for _, row := range ls.rows("") {
		for _, panel := range ls.panels() {
			of := slices.DeleteFunc(ls.in(panel), func(l ResultRow) bool { return l.Row != row })
			if n := len(distinct(of, func(l ResultRow) int { return l.Seed })); 0 < n && n < ls.seeds() {
				list = append(list, fmt.Sprintf("“%s” on %s %d", row, panel, n))
			}
		}
	}
	return list
}

// heading is a target's name as the paper writes it.
func heading(name string) string {
	if name == "edges" {
		return "Table E"
	}
	if n, ok := strings.CutPrefix(name, "table"); ok {
		return "Table " + n
	}
	return "Figure " + strings.TrimPrefix(name, "fig")
}

// duration writes seconds for people.
func duration(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", s)
	case d < 10*time.Minute:
		return fmt.Sprintf("%.0f s", s)
	case d < 10*time.Hour:
		return fmt.Sprintf("%.0f min", s/60)
	}
	return fmt.Sprintf("%.1f h", s/3600)
}
