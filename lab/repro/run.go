package repro

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/lab/charts"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// runsDir, in the folder of results, has the run directories that are kept.
const runsDir = "runs"

// Options say what to repeat. Out is required, and Targets unless only the page of
// Report is to be rewritten.
type Options struct {
	Targets []string // names of targets; "all" is every one
	// Only are names of data sets to keep to; empty takes all that a target has. Where not all
	// of a target is run, by Only, Rows or Seeds or since data are not here, its lines are put
	// among those that its file has, of Report where that is given and else of Out.
	Only  []string
	Rows  []string // names of rows to keep to; empty takes all
	Seeds int      // seeds, splits or folds of each; 0 leaves each target its number
	// Out is the folder of results: TARGET.csv and the charts of each target that
	// is complete, and the runs, from which an evaluation goes on that was stopped.
	Out string
	// Shard is the part of the runs to do; a target of which other shards have
	// runs is not shown.
	Shard sweep.Shard
	// Merge are folders of results whose runs are taken over first.
	Merge []string
	// Report is the Markdown file to write, docs/results.md; the files it shows go
	// into the folder beside it without the extension. Targets that are not run
	// now are shown as that folder has them. Empty writes none.
	Report string
	Budget string // Full or Short; empty is Full
	// Workers is how many runs are done at a time; 0 is one for each processor.
	Workers int
	// Python, if not empty, is a Python with NumPy, SciPy and scikit-learn, which runs plain
	// link predictors and a forest on whole graphs: see bench.LinkPredictors and
	// bench.GraphForest. Without it Tables E and 4 have no rows of these but the ones that
	// Out has.
	Python string
	// Observer, if not nil, is called with the progress of the runs of a target.
	Observer func(target string, p sweep.Progress)
	// Log, if not nil, gets lines for people.
	Log func(format string, args ...any)
}

// Outcome is what became of a target.
type Outcome struct {
	Target *Target
	// Lines are its runs, nil where there is nothing to show.
	Lines ResultRows
	// Text shows them in Markdown, beside the paper's numbers.
	Text string
	// Files are those that were written into Options.Out.
	Files []string
	// Absent are data sets that are not on this machine and were left out.
	Absent []string
	// Missing counts the runs that other shards have, each once.
	Missing int
}

// FailedError says that runs of a target have failed for a reason of which its lines do not
// tell. What they have stays.
type FailedError struct {
	Failed, Runs int
	First        *sweep.Record
}

func (e *FailedError) Error() string {
	return fmt.Sprintf("%d of %d runs failed, and nothing was written; the same command runs them again. The first: %s: %s", e.Failed, e.Runs, e.First.Job, e.First.Error)
}

// failures is a *FailedError where there are such runs. That a run diverges, or needs more memory
// than there is, is a result.
func failures(records []*sweep.Record) error {
	e := &FailedError{}
	for _, r := range records {
		if r == nil {
			continue
		}
		e.Runs++
		_, diverged := errors.AsType[*train.NonFiniteError](r.Cause)
		_, exceeded := errors.AsType[*budget.ExceededError](r.Cause)
		if r.Cause == nil || diverged || exceeded {
			continue
		}
		if e.Failed++; e.First == nil {
			e.First = r
		}
	}
	if e.Failed == 0 {
		return nil
	}
	return e
}

// OptionError is a fault of the options: a target, a data set or a budget that
// does not exist.
type OptionError struct{ text string }

func (e *OptionError) Error() string { return e.text }

func wrong(format string, args ...any) error { return &OptionError{fmt.Sprintf(format, args...)} }

// evaluation is the state of Run.
type evaluation struct {
	Options
	runner, alone, kept sweep.Runner
	target              string // that runs
	others              int    // its runs of other shards
}

// Run does the runs of targets, writes what they found, and calls done, if not
// nil, after each. Runs that are in Out already are not done again. An error of
// done ends it.
//
// A data set that is not on this machine is left out, with a line to Log; a
// target without any is an error, after the others have been done, and so is one of which
// runs failed: see [FailedError].
func Run(ctx context.Context, o Options, done func(*Outcome) error) error {
	e := &evaluation{Options: o}
	list, err := e.check()
	if err != nil {
		return err
	}
	observe := func(p sweep.Progress) {
		e.others = p.Others
		if o.Observer != nil {
			o.Observer(e.target, p)
		}
	}
	e.runner = sweep.Runner{Dir: filepath.Join(o.Out, "store"), Workers: o.Workers, Shard: o.Shard, Observer: observe, Log: e.logf}
	// Times of runs that share the machine are others: these have their own store.
	e.alone = sweep.Runner{Dir: filepath.Join(o.Out, "store-alone"), Workers: 1, Shard: o.Shard, Observer: observe, Log: e.logf}
	e.kept = sweep.Runner{Runs: filepath.Join(o.Out, runsDir), Workers: o.Workers, Shard: o.Shard, Observer: observe, Log: e.logf}
	if err := e.checkFiles(list); err != nil {
		return err
	}
	runs := slices.ContainsFunc(list, func(t *Target) bool {
		absent := e.absent(t)
		return slices.ContainsFunc(t.Data(), func(name string) bool { return e.wanted(name) && !slices.Contains(absent, name) })
	})
	if (runs || o.Merge != nil) && o.Shard.Count <= 1 { // shards may share a folder: each keeps runs of its own, and writes no table
		unlock, err := lock(o.Out)
		if err != nil {
			return err
		}
		defer unlock()
	}
	if err := e.merge(); err != nil {
		return err
	}
	var nothing []string
	var failed error
	for _, t := range list {
		e.target = t.Name
		out, err := e.run(ctx, t)
		if _, is := errors.AsType[*FailedError](err); is {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", t.Name, err))
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name, err)
		}
		if out == nil {
			nothing = append(nothing, t.Name)
			continue
		}
		if done != nil {
			if err := done(out); err != nil {
				return err
			}
		}
	}
	if o.Report != "" && shown(filesOf(o.Report)) {
		if err := writePage(o.Report); err != nil {
			return err
		}
	}
	if nothing != nil {
		failed = errors.Join(failed, fmt.Errorf("%s: none of the data sets is on this machine; fetch them with: gsrc data fetch NAME", strings.Join(nothing, ", ")))
	}
	return failed
}

// lock makes a folder of results, and keeps others from it. The lock is in it, since it is never replaced.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := filelock.TryLock(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Remove() }, nil
}

// check resolves the names and the budget.
func (e *evaluation) check() (list []*Target, err error) {
	if len(e.Targets) == 0 && e.Report == "" {
		return nil, wrong("name a target: %s or all", strings.Join(Names(), ", "))
	}
	for _, name := range e.Targets {
		t := Find(name)
		switch {
		case name == "all":
			list = append(list, targets...)
		case t == nil:
			return nil, wrong("there is no target %q%s", name, nearest.Hint(name, append(Names(), "all")))
		default:
			list = append(list, t)
		}
	}
	list = distinct(list, func(t *Target) *Target { return t })
	var cells []cell
	for _, t := range list {
		cells = append(cells, t.cells...)
	}
	names := distinct(cells, func(c cell) string { return c.data })
	for _, name := range e.Only {
		if !slices.Contains(names, name) {
			return nil, wrong("no target that was named has the data set %q%s", name, nearest.Hint(name, names))
		}
	}
	rows := distinct(cells, func(c cell) string { return c.row })
	e.Rows = rejoined(e.Rows, rows)
	for _, name := range e.Rows {
		if !slices.Contains(rows, name) {
			return nil, wrong("no target that was named has the row %q%s", name, nearest.Hint(name, rows))
		}
	}
	e.Budget = cmp.Or(e.Budget, Full)
	if e.Budget != Full && e.Budget != Short {
		return nil, wrong("the budget is %q; it can be %s or %s", e.Budget, Full, Short)
	}
	if e.Seeds < 0 || e.Seeds > sweep.MaxSeeds {
		return nil, wrong("%d seeds were asked for; 1 is the least, and %d the most", e.Seeds, sweep.MaxSeeds)
	}
	if e.Out == "" {
		return nil, wrong("give a folder for the results")
	}
	return list, nil
}

// folders are those that files of results are written to.
func (e *evaluation) folders() []string {
	if e.Report != "" {
		return []string{e.Out, filesOf(e.Report)}
	}
	return []string{e.Out}
}

// checkFiles refuses, before anything runs or is made, files of targets that cannot be read or whose runs are
// of the other budget: runs on generated graphs would take the places of others. So it does folders to merge
// that are none of results, and a page that there is nothing to show on.
func (e *evaluation) checkFiles(list []*Target) error {
	has := func(dir string, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err == nil
		})
	}
	for _, dir := range e.Merge {
		if !has(dir, filepath.Base(e.runner.Dir), filepath.Base(e.alone.Dir), runsDir) {
			return fmt.Errorf("%s is no folder of results: it has no store of runs", dir)
		}
	}
	if dir := filesOf(e.Report); len(list) == 0 && !shown(dir) {
		return fmt.Errorf("%s has no files of targets for %s to show: name targets to run, or the page of a folder that has some", dir, e.Report)
	}
	for _, t := range list {
		for _, dir := range e.folders() {
			lines, err := t.linesIn(os.DirFS(dir))
			if err != nil {
				return fmt.Errorf("%s: %w; mend the file, or remove it", dir, err)
			}
			if lines != nil && lines[0].Budget != e.Budget {
				return wrong("%s has runs of the budget %s, and these are of %s; give another folder, or remove the file", filepath.Join(dir, t.Name+".csv"), lines[0].Budget, e.Budget)
			}
		}
	}
	return nil
}

// shown tells whether a folder has files of targets, for a page to show.
func shown(dir string) bool {
	return slices.ContainsFunc(targets, func(t *Target) bool {
		_, err := os.Stat(filepath.Join(dir, t.Name+".csv"))
		return err == nil
	})
}

func (e *evaluation) logf(format string, args ...any) {
	if e.Log != nil {
		e.Log(format, args...)
	}
}

func (e *evaluation) merge() error {
	for _, dir := range e.Merge {
		for _, store := range []string{e.runner.Dir, e.alone.Dir} {
			from := filepath.Join(dir, filepath.Base(store))
			if _, err := os.Stat(from); err != nil {
				continue
			}
			added, faults, err := sweep.Store{Dir: store}.Merge(from)
			if err != nil {
				return fmt.Errorf("merge %s: %w", dir, err)
			}
			for _, f := range faults {
				e.logf("%v", f)
			}
			e.logf("%d runs from %s", added, from)
		}
		if err := e.mergeRuns(dir); err != nil {
			return fmt.Errorf("merge %s: %w", dir, err)
		}
	}
	return nil
}

// rejoined puts names together again that have commas, at which a list was divided.
func rejoined(parts, names []string) (out []string) {
	for len(parts) > 0 {
		n := len(parts)
		for n > 1 && !slices.Contains(names, strings.Join(parts[:n], ",")) {
			n--
		}
		out, parts = append(out, strings.Join(parts[:n], ",")), parts[n:]
	}
	return out
}

// mergeRuns copies the run directories that have ended from another folder of
// results, each whole or not at all. Damaged ones are passed over, or replaced.
func (e *evaluation) mergeRuns(other string) error {
	entries, err := os.ReadDir(filepath.Join(other, runsDir))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, d := range entries {
		from, to := filepath.Join(other, runsDir, d.Name()), filepath.Join(e.Out, runsDir, d.Name())
		if _, err := os.Stat(filepath.Join(from, checkpoint.InfoFile)); err != nil || strings.HasPrefix(d.Name(), ".") {
			continue // a run that had not begun, or a copy that was stopped
		}
		info, err := train.ReadInfo(from)
		if err == nil && info.Status == "done" {
			_, err = train.Verify(from)
		}
		if err != nil {
			e.logf("%v; the run is left out", err)
		}
		if err != nil || info.Status != "done" {
			continue
		}
		if _, err := train.Verify(to); err == nil {
			continue
		}
		copied := filepath.Join(e.Out, runsDir, "."+d.Name())
		if err := os.RemoveAll(copied); err != nil {
			return err
		}
		if err := os.CopyFS(copied, os.DirFS(from)); err != nil {
			return errors.Join(err, os.RemoveAll(copied))
		}
		if err := removeUnfinished(to); err != nil {
			return errors.Join(err, os.RemoveAll(copied))
		}
		if err := os.Rename(copied, to); err != nil {
			return errors.Join(err, os.RemoveAll(copied))
		}
	}
	return nil
}

// removeUnfinished deletes a run directory that no process writes to, if it exists.
func removeUnfinished(dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return nil
	}
	lock, err := filelock.TryLock(filepath.Join(dir, ".lock"))
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), lock.Unlock())
}

// absent lists the data sets of a target that are not on this machine.
func (e *evaluation) absent(t *Target) []string {
	if e.Budget == Short { // generated graphs take their places
		return nil
	}
	return slices.DeleteFunc(t.Data(), func(name string) bool { return locate(name) != "" })
}

func (e *evaluation) run(ctx context.Context, t *Target) (*Outcome, error) {
	absent := slices.DeleteFunc(e.absent(t), func(name string) bool { return !e.wanted(name) })
	seeds := sweep.FirstSeeds(cmp.Or(e.Seeds, t.seeds(e.Budget)))
	runs := t.plan(e.Budget, e.Out, seeds, func(name string) bool { return e.wanted(name) && !slices.Contains(absent, name) })
	if len(e.Rows) > 0 {
		runs = slices.DeleteFunc(runs, func(p planned) bool { return !slices.Contains(e.Rows, p.row) })
	}
	for _, name := range absent {
		if _, ok := catalog.Find(name); ok {
			e.logf("%s: %s is not on this machine and is left out; fetch it with: gsrc data fetch %s", t.Name, name, name)
		} else {
			e.logf("%s: %s is not on this machine and is left out; it is looked for as %s.npz in the folder %s of data sets (%s)", t.Name, name, name, refinementFolder, catalog.EnvVar)
		}
	}
	for i := range runs {
		if err := runs[i].prepare(ctx); err != nil {
			return nil, err
		}
	}
	if len(runs) == 0 {
		if len(absent) == 0 { // --only names data sets of other targets
			return &Outcome{Target: t}, nil
		}
		return nil, nil
	}
	out := &Outcome{Target: t, Absent: absent}
	lines, curve, pictures, err := e.do(ctx, t, runs)
	if err != nil {
		return nil, err
	}
	if out.Missing = e.others; out.Missing > 0 {
		return out, nil
	}
	var others ResultRows
	switch {
	case len(e.Rows) > 0 && e.Python == "": // those that are there stay
	case t.edges:
		others, err = e.plain(ctx, runs)
	case t.graphs && e.Budget == Full:
		others, err = e.forests(ctx, runs)
	}
	if err != nil {
		return nil, err
	}
	lines = append(lines, others...)
	if len(e.Only)+len(e.Rows)+len(absent) > 0 || e.Seeds > 0 {
		if lines, err = joined(e, t, t.Name+".csv", lines, lineOf); err != nil {
			return nil, err
		}
		if t.curves != nil {
			if curve, err = joined(e, t, t.Name+curvesSuffix, curve, pointOf); err != nil {
				return nil, err
			}
		}
	}
	out.Lines = lines
	r := t.render(t, lines)
	out.Text = r.text
	pictures = append(pictures, r.chart)
	files := []file{{t.Name + ".csv", lines.Write}}
	if t.curves != nil {
		files = append(files, file{t.Name + curvesSuffix, func(w io.Writer) error { return writeCSV(w, curve) }})
		pictures = append(pictures, t.curves(t, curve))
	}
	for _, c := range pictures {
		if c != nil {
			files = append(files, file{c.Name + ".svg", c.SVG}, file{c.Name + ".png", c.PNG})
		}
	}
	out.Files, err = e.write(files)
	return out, err
}

// runOf is the run that a line of a file is of.
type runOf struct {
	panel, row, x string
	seed          int
}

func lineOf(l ResultRow) runOf { return runOf{l.Panel, l.Row, l.X, l.Seed} }
func pointOf(p Point) runOf    { return runOf{p.Panel, p.Row, "", p.Seed} }

// joined puts lines in the place of those of the same runs in a file of the target, in the
// order of the target.
func joined[T any](e *evaluation, t *Target, name string, lines []T, of func(T) runOf) ([]T, error) {
	folders := e.folders()
	dir := folders[len(folders)-1]
	all, err := readFile[T](os.DirFS(dir), name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	done := map[runOf]bool{}
	for _, l := range lines {
		done[of(l)] = true
	}
	all = append(slices.DeleteFunc(all, func(old T) bool { return done[of(old)] }), lines...)
	places := map[runOf]int{}
	for i, c := range t.cells {
		places[runOf{panel: c.panel, row: c.row, x: c.x}] = i
	}
	place := func(l T) (at, seed int) { // of others, as plain predictors, behind all
		r := of(l)
		seed, r.seed = r.seed, 0
		if i, ok := places[r]; ok {
			return i, seed
		}
		return len(t.cells), 0
	}
	slices.SortStableFunc(all, func(a, b T) int {
		i, n := place(a)
		j, m := place(b)
		return cmp.Or(cmp.Compare(i, j), cmp.Compare(n, m))
	})
	return all, nil
}

func (e *evaluation) wanted(data string) bool {
	return len(e.Only) == 0 || slices.Contains(e.Only, data)
}

// do does runs. Of those that are kept it also returns the curves, or the adjacency
// matrices of the first seed.
func (e *evaluation) do(ctx context.Context, t *Target, runs []planned) (lines ResultRows, curve []Point, pictures []*charts.Chart, err error) {
	runner := &e.runner
	switch {
	case t.alone:
		runner = &e.alone
	case t.kept:
		runner = &e.kept
	}
	var jobs []sweep.Job
	for _, p := range runs {
		jobs = append(jobs, p.job)
	}
	records, err := runner.Run(ctx, jobs)
	if err == nil {
		err = failures(records)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	for i, r := range records {
		p := runs[i]
		if r == nil {
			continue
		}
		line := p.line(e.Budget, r)
		if t.edges && !r.Failed() {
			all, err := p.judge(line, runner.RunDir(r))
			if err != nil {
				return nil, nil, nil, err
			}
			lines = append(lines, all...)
			continue
		}
		lines = append(lines, line)
		switch {
		case r.Failed() || !t.kept:
		case t.curves != nil:
			metrics, err := checkpoint.ReadMetrics(runner.RunDir(r))
			if err != nil {
				return nil, nil, nil, err
			}
			for _, x := range t.trace(metrics) {
				x.Panel, x.Row, x.Seed = p.panel, p.row, p.job.Seed
				curve = append(curve, x)
			}
		case p.job.Seed == 0:
			run, err := gsrc.OpenRun(runner.RunDir(r))
			if err == nil {
				err = run.LoadData(p.job.Data)
			}
			if err != nil {
				return nil, nil, nil, err
			}
			if c := charts.Adjacency(run); c != nil {
				c.Name = t.matrix(p.panel, p.row)
				pictures = append(pictures, c)
			}
		}
	}
	return lines, curve, pictures, nil
}

type file struct {
	name  string
	write func(io.Writer) error
}

// write writes files into the folder of results, and those of the report beside
// it.
func (e *evaluation) write(files []file) (paths []string, err error) {
	folders := e.folders()
	for _, dir := range folders {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		var b bytes.Buffer
		if err := f.write(&b); err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		for i, dir := range folders {
			if i > 0 && strings.HasSuffix(f.name, ".png") { // the page shows the vector images
				continue
			}
			if err := atomicfile.WriteBytes(filepath.Join(dir, f.name), b.Bytes()); err != nil {
				return nil, err
			}
		}
		paths = append(paths, filepath.Join(e.Out, f.name))
	}
	return paths, nil
}

// IsOption reports whether an error of Run is a fault of the options.
func IsOption(err error) bool {
	_, is := errors.AsType[*OptionError](err)
	return is
}
