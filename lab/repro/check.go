package repro

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab/sweep"
)

// CheckOptions say which lines to repeat, beside the fields of Options that [Check]
// takes: Targets, Only, Seeds, Out, Report, Workers, Observer and Log. The files are those
// of Out or, where Report is given, those that Report shows.
type CheckOptions struct {
	Options
	// Sample is the most lines to repeat, spread evenly over those that are left by the
	// other options; 0 takes all.
	Sample int
	// Seconds keeps to lines whose run took at most so long; 0 takes all.
	Seconds float64
	// Fill repeats the lines that have no hash, in place of those that have one, and
	// writes what comes out in their places. A line whose run another file has with its
	// hash is taken from there. Charts of the lines are drawn anew.
	Fill bool
}

// Checked is what became of a [Check].
type Checked struct {
	Lines     int // in the files, of the targets, data sets and seeds that were asked for
	Unhashed  int // of them, those without a hash
	Repeated  int
	Differing int // of Repeated, those that came out otherwise
	Filled    int
	// Faults say of each line that came out otherwise what differs, and which lines could
	// not be repeated.
	Faults []string
}

// checkedLine is a line of a file that is to be repeated.
type checkedLine struct {
	target *Target
	at     int // its index in the file
	run    planned
}

// Check repeats runs whose lines stand in files of results, on the CPU, and compares the
// hash of weights and graph and all that was measured, but for the time and the memory.
// It writes nothing but for Fill, which keeps the runs in the folder fill of Out until all
// are done, so that one that was stopped goes on.
func Check(ctx context.Context, o CheckOptions) (*Checked, error) {
	e := &evaluation{Options: o.Options}
	e.Out = cmp.Or(e.Out, ".")
	list, err := e.check()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, wrong("name a target to check: %s or all", strings.Join(Names(), ", "))
	}
	dir := o.Out
	if o.Report != "" {
		dir = filesOf(o.Report)
	}
	files := os.DirFS(dir)
	scratch := filepath.Join(e.Out, "fill") // kept until the files are written: filling takes hours
	if o.Fill {
		unlock, err := lock(e.Out)
		if err != nil {
			return nil, err
		}
		defer unlock()
	} else {
		if scratch, err = os.MkdirTemp("", "gsrc-check-*"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(scratch)
	}
	result := &Checked{}
	of := map[*Target]ResultRows{}
	known := map[string]ResultRow{} // what equal jobs gave, by the job: figures reuse the tables'
	if o.Fill {
		for _, t := range Targets() {
			lines, err := t.linesIn(files)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", dir, err)
			}
			for _, l := range lines {
				if p := t.planOf(l, scratch); l.Hash != "" && p != nil && p.made == "" && !t.edges {
					known[p.job.String()] = l
				}
			}
		}
	}
	var todo []checkedLine
	for _, t := range list {
		lines, err := t.linesIn(files)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		if lines == nil {
			continue
		}
		of[t] = lines
		absent := e.absent(t)
		for i, l := range lines {
			if !e.wanted(l.Data) || len(e.Rows) > 0 && !slices.Contains(e.Rows, l.Row) || o.Seeds > 0 && l.Seed >= o.Seeds {
				continue
			}
			result.Lines++
			if l.Hash == "" && l.Model != "" {
				result.Unhashed++
			}
			if l.Model == "" || (l.Hash == "") != o.Fill || o.Seconds > 0 && l.Seconds > o.Seconds || l.Budget == Full && slices.Contains(absent, l.Data) {
				continue
			}
			p := t.planOf(l, scratch)
			if p == nil {
				result.Faults = append(result.Faults, fmt.Sprintf("%s: this version has no such run", l.name(t)))
				continue
			}
			if k, ok := known[p.job.String()]; ok && p.made == "" {
				k.Panel, k.Row, k.X, k.Data, k.Set, k.Seconds = l.Panel, l.Row, l.X, l.Data, l.Set, l.Seconds // a time is of its own machine
				lines[i] = k
				result.Filled++
				continue
			}
			if err := p.prepare(ctx); err != nil {
				return nil, err
			}
			todo = append(todo, checkedLine{t, i, *p})
		}
	}
	if len(of) == 0 {
		return nil, fmt.Errorf("%s has no files of these targets", dir)
	}
	todo = spread(todo, o.Sample)
	jobs := make([]sweep.Job, len(todo))
	seconds := 0.0
	for i, c := range todo {
		jobs[i] = c.run.job
		jobs[i].Set = append(slices.Clone(jobs[i].Set), "train.device=cpu")
		seconds += of[c.target][c.at].Seconds
	}
	e.logf("%d runs to repeat, which took %s", len(jobs), duration(seconds))
	runner := sweep.Runner{Dir: scratch, Workers: o.Workers, Log: e.logf, Observer: func(p sweep.Progress) {
		if o.Observer != nil {
			o.Observer("check", p)
		}
	}}
	if slices.ContainsFunc(todo, func(c checkedLine) bool { return c.target.edges }) {
		runner.Runs = filepath.Join(scratch, runsDir)
	}
	records, err := runner.Run(ctx, jobs)
	if err != nil {
		return nil, err
	}
	for i, c := range todo {
		was, r := &of[c.target][c.at], records[i]
		now := c.run.line(was.Budget, r)
		if c.target.edges && r.Error == "" {
			all, err := c.run.judge(now, runner.RunDir(r))
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(all, func(l ResultRow) bool { return l.Source == was.Source })
			if at < 0 {
				result.Faults = append(result.Faults, fmt.Sprintf("%s: this version has no such source", was.name(c.target)))
				continue
			}
			now = all[at]
		}
		result.Repeated++
		if o.Fill && r.Error == "" {
			*was = now
			result.Filled++
			continue
		}
		if d := differences(*was, now); d != "" {
			result.Differing++
			result.Faults = append(result.Faults, was.name(c.target)+": "+d)
		}
	}
	if result.Filled == 0 {
		return result, nil
	}
	for t, lines := range of {
		if err := atomicfile.Write(filepath.Join(dir, t.Name+".csv"), lines.Write); err != nil {
			return nil, err
		}
		if err := t.draw(dir, lines); err != nil {
			return nil, err
		}
	}
	if err := os.RemoveAll(scratch); err != nil {
		return nil, err
	}
	if o.Report != "" {
		return result, writePage(o.Report)
	}
	return result, nil
}

// draw writes the chart that is of the lines alone.
func (t *Target) draw(dir string, lines ResultRows) error {
	if c := t.render(t, lines).chart; c != nil {
		return atomicfile.Write(filepath.Join(dir, c.Name+".svg"), c.SVG)
	}
	return nil
}

// planOf is the run that a line of the target's file tells of, nil if there is no such run.
func (t *Target) planOf(l ResultRow, dir string) *planned {
	plan := t.plan(l.Budget, dir, []int{l.Seed}, func(name string) bool { return name == l.Data })
	at := slices.IndexFunc(plan, func(p planned) bool {
		return p.panel == l.Panel && p.row == l.Row && p.x == l.X && p.model == l.Model && strings.Join(p.set, " ") == l.Set
	})
	if at < 0 {
		return nil
	}
	return &plan[at]
}

// readFile reads a file that [writeCSV] wrote; nil where there is none.
func readFile[T any](files fs.FS, name string) ([]T, error) {
	f, err := files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readCSV[T](name, f)
}

// spread takes n of the elements, evenly, or all for n = 0.
func spread[T any](all []T, n int) []T {
	if n == 0 || n >= len(all) {
		return all
	}
	some := make([]T, n)
	for i := range some {
		some[i] = all[(2*i+1)*len(all)/(2*n)]
	}
	return some
}

// name says which line it is, for messages.
func (l *ResultRow) name(t *Target) string {
	name := t.Name + ".csv: " + l.Panel + ", " + l.Row
	for _, more := range []string{l.X, l.Source} {
		if more != "" {
			name += ", " + more
		}
	}
	return fmt.Sprintf("%s, seed %d", name, l.Seed)
}

// differences says in what a repeated run differs, "" where it does not. Memory and time
// may differ: kernels of other instruction sets need other room.
func differences(was, now ResultRow) string {
	was.PeakBytes, was.Seconds = now.PeakBytes, now.Seconds
	a, b := reflect.ValueOf(was), reflect.ValueOf(now)
	var all []string
	for _, c := range columnsOf(a.Type()) {
		if x, y := field(a.FieldByIndex(c.index)), field(b.FieldByIndex(c.index)); x != y {
			all = append(all, fmt.Sprintf("%s %s, now %s", c.name, orNone(x), orNone(y)))
		}
	}
	return strings.Join(all, "; ")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	if len(s) > 80 {
		return s[:77] + "…"
	}
	return s
}
