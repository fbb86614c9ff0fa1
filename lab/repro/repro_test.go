package repro

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	zoo "github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// TestTargets holds the declarations to the models, options and data sets that
// there are.
func TestTargets(t *testing.T) {
	if want := []string{"table1", "table2", "table3", "table4", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8", "fig9", "fig10", "edges", "tableR", "tableS", "tableL"}; !slices.Equal(Names(), want) {
		t.Errorf("targets %v, want %v", Names(), want)
	}
	for _, target := range Targets() {
		if target.Title == "" || target.Asks == "" || target.Seeds < 1 {
			t.Errorf("%s lacks a title, a text or seeds", target.Name)
		}
		seen := map[[3]string]bool{}
		for _, c := range target.cells {
			if at := [3]string{c.panel, c.row, c.x}; seen[at] {
				t.Errorf("%s has %v twice", target.Name, at)
			} else {
				seen[at] = true
			}
			model := c.model
			if model == sweep.Auto { // whose options any classifier's configuration takes
				model = "linear"
			}
			if err := zoo.Check(model); err != nil {
				t.Errorf("%s: %v", target.Name, err)
			}
			if _, ok := catalog.Find(c.data); !ok && !strings.Contains(c.data, "_metattack_") && c.data != "blogcatalog" {
				t.Errorf("%s: %s is not in the catalog", target.Name, c.data)
			}
			load := config.Load
			if target.graphs {
				load = config.LoadGraphs
			}
			if _, err := load(model, c.data, "", c.set); err != nil {
				t.Errorf("%s: %s on %s: %v", target.Name, c.model, c.data, err)
			}
		}
	}
	for table, list := range map[string][]entry{"table1": slices.Concat(models, learners), "table4": collections} {
		for _, e := range list {
			if e.paper != "" && !slices.Contains(methods(table), e.paper) {
				t.Errorf("%s of the paper has no %q", table, e.paper)
			}
		}
	}
	for name := range rawOptions {
		if _, ok := catalog.Find(name); !ok && name != "all" {
			t.Errorf("raw.toml has options of %q, which is no data set", name)
		}
	}
}

// reproduce runs targets in the short budget.
func reproduce(t *testing.T, o Options) map[string]*Outcome {
	t.Helper()
	got := map[string]*Outcome{}
	o.Budget = Short
	err := Run(context.Background(), o, func(out *Outcome) error {
		got[out.Target.Name] = out
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// files reads all that a folder of results has beside its runs but for the times in
// CSV files and the charts that draw them.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range entries {
		if f.IsDir() || filepath.Ext(f.Name()) != ".csv" && (strings.HasPrefix(f.Name(), "fig3") || strings.HasPrefix(f.Name(), "fig9")) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[f.Name()] = string(text)
		if filepath.Ext(f.Name()) == ".csv" && !strings.HasSuffix(f.Name(), curvesSuffix) {
			all[f.Name()] = withoutTimes(t, text)
		}
	}
	return all
}

func withoutTimes(t *testing.T, text []byte) string {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, r := range records {
		b.WriteString(strings.Join(r[:len(r)-1], ",") + "\n")
	}
	return b.String()
}

// TestShort runs every target with small budgets: what it leaves has the right
// shape, a second run finds everything there and leaves the same, and so does
// another one from the start.
func TestShort(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "docs", "results.md")
	o := Options{Targets: []string{"all"}, Seeds: 1, Out: filepath.Join(dir, "results"), Report: report}
	got := reproduce(t, o)
	for _, target := range Targets() {
		out := got[target.Name]
		if out == nil || out.Missing > 0 || len(out.Absent) > 0 {
			t.Fatalf("%s: %+v", target.Name, out)
		}
		runs := slices.DeleteFunc(slices.Clone(out.Lines), func(l ResultRow) bool { return l.Source != "" })
		if want := len(target.plan(Short, "", sweep.FirstSeeds(o.Seeds), func(string) bool { return true })); len(runs) != want || want < len(target.Data()) {
			t.Errorf("%s has %d lines, want %d", target.Name, len(out.Lines), want)
		}
		if panels := distinct(target.cells, func(c cell) string { return c.panel }); !slices.Equal(out.Lines.panels(), panels) {
			t.Errorf("%s has the panels %v, want %v", target.Name, out.Lines.panels(), panels)
		}
		for _, l := range runs {
			if (l.WrongAUC != nil) != target.edges {
				t.Errorf("%s: %s is held against the truth: %v", target.Name, l.Row, l.WrongAUC != nil)
			}
			if curve := len(strings.Fields(l.TestCurve)); target.graphs != (curve > 0) {
				t.Errorf("%s: %s has a curve of %d epochs", target.Name, l.Row, curve)
			}
			if l.Error != "" || l.TestAcc == nil || l.ValAcc == nil || l.MacroF1 == nil || l.ECE == nil || l.Seconds <= 0 || l.PeakBytes <= 0 {
				t.Errorf("%s: %+v is not whole", target.Name, l)
			}
		}
		if !strings.Contains(out.Text, "| ") {
			t.Errorf("%s has no table", target.Name)
		}
		checkFiles(t, o.Out, out.Files)
	}
	page, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, page, filesOf(report))

	first := files(t, o.Out)
	o.Observer = func(target string, p sweep.Progress) {
		if p.Stored != p.Total {
			t.Errorf("%s: %d of %d runs are done again", target, p.Total-p.Stored, p.Total)
		}
	}
	reproduce(t, o)
	compare(t, first, files(t, o.Out))
	again, err := os.ReadFile(report)
	if err != nil || !bytes.Equal(page, again) {
		t.Errorf("the page is another one, %v", err)
	}

	// A folder of its own, other workers.
	fresh := Options{Targets: []string{"fig4", "fig10"}, Seeds: 1, Out: filepath.Join(dir, "fresh"), Workers: 1}
	reproduce(t, fresh)
	for name, text := range files(t, fresh.Out) {
		if text != first[name] {
			t.Errorf("%s is another one when it is run again", name)
		}
	}
}

func compare(t *testing.T, a, b map[string]string) {
	t.Helper()
	if len(a) != len(b) {
		t.Errorf("%d files, then %d", len(a), len(b))
	}
	for name, text := range a {
		if b[name] != text {
			t.Errorf("%s has changed", name)
		}
	}
}

// checkFiles reads the files of a target.
func checkFiles(t *testing.T, dir string, paths []string) {
	t.Helper()
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		switch name := filepath.Base(path); {
		case strings.HasSuffix(name, curvesSuffix):
			if records, err := csv.NewReader(f).ReadAll(); err != nil || len(records) < 10 {
				t.Errorf("%s: %d records, %v", name, len(records), err)
			}
		case filepath.Ext(name) == ".csv":
			lines, err := readCSV[ResultRow](name, f)
			if err != nil {
				t.Error(err)
			}
			var b bytes.Buffer
			if err := ResultRows(lines).Write(&b); err != nil {
				t.Error(err)
			}
			if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, b.Bytes()) {
				t.Errorf("%s is not what is written of what is read, %v", name, err)
			}
		case filepath.Ext(name) == ".png":
			if img, err := png.Decode(f); err != nil || img.Bounds().Dx() != 800 {
				t.Errorf("%s: %v", name, err)
			}
		case filepath.Ext(name) == ".svg":
			for d := xml.NewDecoder(f); ; {
				if token, err := d.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", name, err)
				} else if e, ok := token.(xml.StartElement); ok {
					for _, a := range e.Attr {
						if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
							t.Errorf("%s: <%s %s=%q>", name, e.Name.Local, a.Name.Local, a.Value)
						}
					}
				}
			}
		default:
			t.Errorf("%s is a file of an unknown kind", name)
		}
		f.Close()
	}
}

// Runs that other shards have are counted once, however many places of the table have them.
func TestRunsOfOtherShardsAreCountedOnce(t *testing.T) {
	runs := Find("fig7").plan(Short, t.TempDir(), []int{0, 1}, func(data string) bool { return data == "cora" })
	most := len(distinct(runs, func(p planned) string { return p.job.String() })) // fewer where options are the defaults
	out := reproduce(t, Options{Targets: []string{"fig7"}, Only: []string{"cora"}, Seeds: 2, Out: t.TempDir(), Shard: sweep.Shard{Count: 1 << 30}})["fig7"]
	if out.Missing == 0 || out.Missing > most || most == len(runs) {
		t.Errorf("%d runs are of other shards, of %d different ones; the table has %d", out.Missing, most, len(runs))
	}
}

func TestShards(t *testing.T) {
	dir := t.TempDir()
	out := func(name string) string { return filepath.Join(dir, name) }
	targets := []string{"fig9", "fig8", "fig3"}
	only := []string{"cora"}
	var parts []string
	missing := 0
	for i := range 2 {
		part := out([]string{"a", "b"}[i])
		parts = append(parts, part)
		for name, o := range reproduce(t, Options{Targets: targets, Only: only, Seeds: 3, Out: part, Shard: sweep.Shard{Index: i, Count: 2}}) {
			missing += o.Missing
			if o.Missing > 0 && o.Lines != nil {
				t.Errorf("%s is shown without the runs of the other shard", name)
			}
		}
	}
	if missing == 0 {
		t.Error("the shards have nothing of each other's")
	}
	whole := reproduce(t, Options{Targets: targets, Only: only, Seeds: 3, Out: out("whole"), Merge: parts, Observer: func(target string, p sweep.Progress) {
		if p.Stored != p.Total {
			t.Errorf("%s: %d runs are done again", target, p.Total-p.Stored)
		}
	}})
	reproduce(t, Options{Targets: []string{"fig9", "fig8"}, Only: only, Seeds: 3, Out: out("alone")})
	alone, merged := files(t, out("alone")), files(t, out("whole"))
	for name, text := range alone {
		if merged[name] != text {
			t.Errorf("%s differs from that of an undivided run", name)
		}
	}
	if len(whole["fig3"].Lines) == 0 {
		t.Error("fig3 was not merged")
	}
	if err := Run(context.Background(), Options{Targets: targets, Out: out("c"), Merge: []string{dir}}, nil); err == nil || !strings.Contains(err.Error(), "no folder of results") {
		t.Errorf("a folder without runs: %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	o := Options{Targets: []string{"fig9", "fig10"}, Only: []string{"cora"}, Seeds: 2, Out: filepath.Join(dir, "stopped"), Budget: Short, Workers: 1}
	ctx, cancel := context.WithCancel(context.Background())
	o.Observer = func(_ string, p sweep.Progress) {
		if p.Done == 3 {
			cancel()
		}
	}
	if err := Run(ctx, o, nil); !gsrc.IsInterrupted(ctx, err) {
		t.Fatalf("after three runs: %v", err)
	}
	// The kept runs are stopped too, after a moment.
	ctx, cancel = context.WithCancel(context.Background())
	stored := -1
	o.Observer = func(target string, p sweep.Progress) {
		if stored < 0 {
			stored = p.Stored
		}
		if target == "fig10" && len(p.Running) > 0 {
			cancel()
		}
	}
	if err := Run(ctx, o, nil); !gsrc.IsInterrupted(ctx, err) {
		t.Fatalf("within fig10: %v", err)
	}
	if stored != 3 {
		t.Errorf("%d runs were there, want 3", stored)
	}
	o.Observer = nil
	if err := Run(context.Background(), o, nil); err != nil {
		t.Fatal(err)
	}
	stopped := files(t, o.Out)
	o.Out = filepath.Join(dir, "whole")
	if err := Run(context.Background(), o, nil); err != nil {
		t.Fatal(err)
	}
	compare(t, files(t, o.Out), stopped)
}

// Where a run fails for a reason that is none of the job's, the file of results stays.
func TestFailedRunsLeaveTheResults(t *testing.T) {
	o := Options{Targets: []string{"fig10"}, Only: []string{"cora"}, Seeds: 1, Out: t.TempDir()}
	reproduce(t, o)
	want, runs := files(t, o.Out), filepath.Join(o.Out, runsDir)
	if err := os.RemoveAll(runs); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(runs, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o.Budget = Short
	err := Run(t.Context(), o, nil)
	if f, ok := errors.AsType[*FailedError](err); !ok || f.Failed == 0 || f.Failed != f.Runs {
		t.Errorf("error %v", err)
	}
	if err := os.Remove(runs); err != nil {
		t.Fatal(err)
	}
	compare(t, want, files(t, o.Out))
}

// A run that a merge has copied in part, or that was damaged since, is copied again, and a damaged one
// is not taken over.
func TestMergeCopiesWholeRuns(t *testing.T) {
	dir := t.TempDir()
	o := Options{Targets: []string{"fig10"}, Only: []string{"cora"}, Seeds: 1, Out: filepath.Join(dir, "a"), Budget: Short}
	reproduce(t, o)
	o.Merge, o.Out = []string{o.Out}, filepath.Join(dir, "b")
	reproduce(t, o)
	file := func(of string) string {
		all, err := filepath.Glob(filepath.Join(dir, of, runsDir, "*", checkpoint.WeightsFile))
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		return all[0]
	}
	var logs, ran []string
	o.Log = func(format string, args ...any) { logs = append(logs, fmt.Sprintf(format, args...)) }
	o.Observer = func(_ string, p sweep.Progress) {
		if p.Last != nil {
			ran = append(ran, p.Last.Key)
		}
	}
	if err := os.Truncate(file("b"), 10); err != nil {
		t.Fatal(err)
	}
	reproduce(t, o)
	if len(ran) > 0 || len(logs) > 0 {
		t.Errorf("%d jobs ran after the merge, with the log %q", len(ran), logs)
	}
	if err := os.Truncate(file("a"), 10); err != nil {
		t.Fatal(err)
	}
	o.Out = filepath.Join(dir, "c")
	reproduce(t, o)
	if len(ran) != 1 || len(logs) != 1 || !strings.Contains(logs[0], file("a")) {
		t.Errorf("%d jobs ran after the merge of a damaged run, with the log %q", len(ran), logs)
	}
}

// That a run diverges or does not fit into memory is a result.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		cause error
		want  bool
	}{
		{nil, false}, // it was in the store
		{&train.NonFiniteError{}, false},
		{fmt.Errorf("training: %w", &budget.ExceededError{}), false},
		{errors.New("input/output error"), true},
	} {
		if err := failures([]*sweep.Record{nil, {Error: "it failed", Cause: c.cause}}); (err != nil) != c.want {
			t.Errorf("%v: %v", c.cause, err)
		}
	}
}

// Rows that are run on their own, later, leave the lines that are there, and the whole is what one
// evaluation of all of them makes.
func TestRowsJoinTheOthers(t *testing.T) {
	dir := t.TempDir()
	o := Options{Targets: []string{"table1"}, Only: []string{"cora", "texas"}, Seeds: 2, Report: filepath.Join(dir, "page.md")}
	table := func(rows ...string) (ResultRows, string) {
		o.Rows, o.Out = rows, filepath.Join(dir, strings.Join(rows, "+"))
		reproduce(t, o)
		text, err := os.ReadFile(filepath.Join(dir, "page", "table1.csv"))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := readCSV[ResultRow]("table1.csv", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return lines, withoutTimes(t, text)
	}
	first, _ := table("linear")
	both, text := table("gcn", "gen", "lds")
	if len(first) != 4 || len(both) != 16 || !slices.Equal(both.rows("texas"), []string{"gcn", "linear", "gen", "lds"}) {
		t.Fatalf("%d lines, then %d, of the rows %v", len(first), len(both), both.rows("texas"))
	}
	for _, l := range both {
		if l.Error != "" {
			t.Errorf("%s, seed %d: %s", l.Row, l.Seed, l.Error)
		}
	}
	for _, old := range first {
		if !slices.ContainsFunc(both, func(l ResultRow) bool { return reflect.DeepEqual(l, old) }) {
			t.Errorf("%s, seed %d is another line", old.Row, old.Seed)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, "page")); err != nil {
		t.Fatal(err)
	}
	if _, want := table("gcn", "linear", "gen", "lds"); text != want {
		t.Errorf("in pieces:\n%s\nat once:\n%s", text, want)
	}
}

// Data sets and seeds that are run on their own, later, leave the lines that are there.
func TestDataAndSeedsJoinTheOthers(t *testing.T) {
	dir := t.TempDir()
	o := Options{Targets: []string{"table1"}, Rows: []string{"linear"}, Only: []string{"cora", "texas"}, Seeds: 2, Out: dir}
	reproduce(t, o)
	want := files(t, dir)["table1.csv"]
	rewrite(t, filepath.Join(dir, "table1.csv"), func(l ResultRows) { l[0].Hash = "0123456789abcdef" }) // cora, seed 0
	o.Rows, o.Only, o.Seeds = nil, []string{"cora"}, 1
	reproduce(t, o)
	all, err := Find("table1").linesIn(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	linear := slices.DeleteFunc(all, func(l ResultRow) bool { return l.Row != "linear" })
	var b bytes.Buffer
	if err := linear.Write(&b); err != nil {
		t.Fatal(err)
	}
	if got := withoutTimes(t, b.Bytes()); got != want {
		t.Errorf("after a run of seed 0 of cora:\n%s\nwant\n%s", got, want)
	}
}

// Runs on generated graphs do not take the places of real ones: nothing runs.
func TestFilesOfTheOtherBudgetStay(t *testing.T) {
	dir := t.TempDir()
	table := filepath.Join(dir, "page", "table1.csv")
	if err := os.Mkdir(filepath.Dir(table), 0o777); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := lines([]float64{84, 85}, []float64{83, 84}).Write(&b); err != nil {
		t.Fatal(err)
	}
	o := Options{Targets: []string{"fig9", "table1"}, Only: []string{"cora"}, Out: filepath.Join(dir, "out"), Report: filepath.Join(dir, "page.md"), Budget: Short}
	for text, want := range map[string]string{b.String(): "table1.csv has runs of the budget full, and these are of short", "mine": "not a file of gsrc repro"} {
		if err := os.WriteFile(table, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := Run(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
		if got, err := os.ReadFile(table); err != nil || string(got) != text {
			t.Errorf("the file is now %s, %v", got, err)
		}
		if _, err := os.Stat(o.Out); err == nil {
			t.Error("something ran")
		}
	}
}

// Without data there is nothing to write: neither a page nor a folder.
func TestNothingToRun(t *testing.T) {
	for _, name := range []string{catalog.EnvVar, "XDG_CACHE_HOME", "HOME"} {
		t.Setenv(name, t.TempDir())
	}
	dir := t.TempDir()
	for _, only := range [][]string{nil, {"cora"}} {
		o := Options{Targets: []string{"fig9", "table1"}, Only: only, Out: filepath.Join(dir, "out"), Report: filepath.Join(dir, "page.md")}
		if err := Run(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), "none of the data sets is on this machine") {
			t.Errorf("error %v", err)
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("%v, %v", made, err)
	}
}

func TestOptions(t *testing.T) {
	names := []string{"gcn", "ecl-gsr", "ecl-gsr, cut, twice", "gcn, cut"}
	if got, want := rejoined([]string{"ecl-gsr", " cut", " twice", "gcn", "gcn", " cut", "gnc"}, names), []string{"ecl-gsr, cut, twice", "gcn", "gcn, cut", "gnc"}; !slices.Equal(got, want) {
		t.Errorf("rows with commas are %q, want %q", got, want)
	}
	t.Setenv(catalog.EnvVar, t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	out := t.TempDir()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Out: out}, "name a target: table1"},
		{Options{Out: out, Only: []string{"cora"}, Report: filepath.Join(out, "page.md")}, "no target that was named"},
		{Options{Targets: []string{"tabel1"}, Out: out}, `did you mean "table1"?`},
		{Options{Targets: []string{"table1"}, Only: []string{"texs"}, Out: out}, `did you mean "texas"?`},
		{Options{Targets: []string{"fig5"}, Only: []string{"texas"}, Out: out}, `no target that was named has the data set "texas"`},
		{Options{Targets: []string{"table1"}, Out: out, Budget: "huge"}, `the budget is "huge"`},
		{Options{Targets: []string{"table1"}, Out: out, Seeds: -1}, "1 is the least"},
		{Options{Targets: []string{"table1"}, Out: out, Seeds: 1<<20 + 1}, "1048576 the most"},
		{Options{Targets: []string{"table1"}, Rows: []string{"gnc"}, Out: out}, `did you mean "gcn"?`},
		{Options{Targets: []string{"table1"}}, "folder"},
	} {
		err := Run(context.Background(), c.o, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !IsOption(err) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
	// Without any data there is nothing to show, and nothing is written.
	var log []string
	err := Run(context.Background(), Options{Targets: []string{"fig9"}, Out: out, Log: func(f string, _ ...any) { log = append(log, f) }}, nil)
	if err == nil || IsOption(err) || !strings.Contains(err.Error(), "gsrc data fetch") || len(log) != 2 {
		t.Errorf("without data: %v, %q", err, log)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		t.Errorf("%d files were written, %v", len(entries), err)
	}
	// What cannot be made leaves no folder, neither a page of nothing nor what there is nothing for.
	for want, o := range map[string]Options{
		"page has no files of targets": {Out: out, Report: filepath.Join(out, "page.md")},
		"data set \"nope\"":            {Out: filepath.Join(out, "only"), Targets: []string{"table1"}, Only: []string{"nope"}},
		"no folder of results":         {Out: filepath.Join(out, "merged"), Targets: []string{"table1"}, Merge: []string{filepath.Join(out, "none")}},
	} {
		if err := Run(context.Background(), o, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
		t.Errorf("%v were made, %v", entries, err)
	}
	stop := errors.New("stop")
	if err := Run(context.Background(), Options{Targets: []string{"fig8"}, Only: []string{"cora"}, Out: out, Budget: Short}, func(*Outcome) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
}

// Points of runs that are made again take the place of the old ones, in the order of the target.
func TestCurvesJoinTheOthers(t *testing.T) {
	dir := t.TempDir()
	point := func(row string, seed, step int, value float32) Point {
		return Point{Panel: "cora", Row: row, Seed: seed, Step: step, Term: "val_acc", Value: value}
	}
	old := []Point{point(full, 0, 1, 0.1), point(full, 0, 2, 0.3), point("gcn", 0, 1, 0.5), point("gcn", 1, 1, 0.7)}
	var b bytes.Buffer
	if err := writeCSV(&b, old); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fig4-curves.csv"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	e := &evaluation{Options: Options{Out: dir}}
	all, err := joined(e, Find("fig4"), "fig4-curves.csv", []Point{point(rawGraph, 0, 1, 0.9), point("gcn", 0, 1, 0.6), point("gcn", 0, 2, 0.8)}, pointOf)
	if err != nil {
		t.Fatal(err)
	}
	want := []Point{old[0], old[1], point(rawGraph, 0, 1, 0.9), point("gcn", 0, 1, 0.6), point("gcn", 0, 2, 0.8), old[3]}
	if !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}
