package repro

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/lab/sweep"
)

// rewrite changes the lines of a target's file.
func rewrite(t *testing.T, path string, change func(ResultRows)) {
	t.Helper()
	lines, err := readFile[ResultRow](os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		t.Fatal(err)
	}
	change(lines)
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := ResultRows(lines).Write(f); err != nil {
		t.Fatal(err)
	}
}

// Repeated runs have the hashes of the files; a line that is not what its run gives is
// found, one without a hash is left alone and can be filled.
func TestCheck(t *testing.T) {
	dir := t.TempDir()
	o := CheckOptions{Options: Options{Targets: []string{"table1", "table4", "fig8"}, Only: []string{"cora", "mutag"}, Seeds: 1, Out: dir}}
	reproduce(t, o.Options)
	check := func() *Checked {
		t.Helper()
		c, err := Check(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	o.Sample = 6
	if c := check(); c.Repeated != 6 || c.Unhashed != 0 || c.Lines < 10 || len(c.Faults) != 0 {
		t.Fatalf("of what was just made: %+v", c)
	}
	o.Targets, o.Only, o.Rows = []string{"table1"}, []string{"cora"}, []string{"gcn", " no edges"} // as a list is divided at the comma of a name
	if c := check(); c.Lines != 1 || c.Repeated != 1 {
		t.Fatalf("of one row: %+v", c)
	}
	o.Rows = nil

	table := filepath.Join(dir, "table4.csv")
	o.Targets, o.Only, o.Sample = []string{"table4"}, []string{"mutag"}, 0
	before, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, table, func(l ResultRows) {
		l[0].Hash = "0123456789abcdef"
		*l[1].TestAcc++
		l[2].Hash = ""
		l[3].Set = "model.hidden=5"
	})
	c := check()
	if c.Repeated != c.Lines-2 || c.Unhashed != 1 || len(c.Faults) != 3 || c.Differing != 2 {
		t.Fatalf("of what was changed: %+v", c)
	}
	faults := strings.Join(c.Faults, "\n")
	for _, want := range []string{"hash 0123456789abcdef, now ", "test_acc ", "this version has no such run", "table4.csv: mutag"} {
		if !strings.Contains(faults, want) {
			t.Errorf("%q is not in:\n%s", want, faults)
		}
	}

	rewrite(t, table, func(l ResultRows) {
		for i := range l {
			l[i].Hash = ""
		}
		*l[1].TestAcc--
		l[3].Set = ""
	})
	if c := check(); c.Repeated != 0 || c.Unhashed != c.Lines {
		t.Errorf("without hashes: %+v", c)
	}
	chart := filepath.Join(dir, "table4.svg")
	if err := os.Remove(chart); err != nil {
		t.Fatal(err)
	}
	o.Fill, o.Workers = true, 1
	ctx, stop := context.WithCancel(context.Background())
	var reused int
	o.Observer = func(_ string, p sweep.Progress) {
		reused = p.Stored
		if p.Done == 2 {
			stop()
		}
	}
	if _, err := Check(ctx, o); err == nil {
		t.Fatal("a stopped filling ended without an error")
	}
	if c := check(); c.Filled != c.Lines || len(c.Faults) != 0 || reused < 2 {
		t.Errorf("going on with filling, with %d runs that were done: %+v", reused, c)
	}
	after, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if withoutTimes(t, after) != withoutTimes(t, before) {
		t.Errorf("filled with\n%s\nwant\n%s", after, before)
	}
	if _, err := os.Stat(chart); err != nil {
		t.Errorf("the chart was not drawn anew: %v", err)
	}
}

// A line whose run another file has with its hash is filled from there, without a run.
func TestFillFromEqualRuns(t *testing.T) {
	dir := t.TempDir()
	o := CheckOptions{Options: Options{Targets: []string{"fig8", "fig10"}, Only: []string{"cora"}, Seeds: 1, Out: dir}}
	reproduce(t, o.Options)
	figure := filepath.Join(dir, "fig10.csv")
	before, err := os.ReadFile(figure)
	if err != nil {
		t.Fatal(err)
	}
	rewrite(t, figure, func(l ResultRows) { l[0].Hash, l[0].TestAcc = "", nil })
	o.Fill, o.Targets = true, []string{"fig10"}
	c, err := Check(context.Background(), o)
	if err != nil || c.Filled != 1 || c.Repeated != 0 || len(c.Faults) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	after, err := os.ReadFile(figure)
	if err != nil {
		t.Fatal(err)
	}
	if withoutTimes(t, after) != withoutTimes(t, before) {
		t.Errorf("filled with\n%s\nwant\n%s", after, before)
	}
}

func TestSpread(t *testing.T) {
	all := make([]int, 10)
	for i := range all {
		all[i] = i
	}
	for n, want := range map[int][]int{0: all, 12: all, 1: {5}, 2: {2, 7}, 5: {1, 3, 5, 7, 9}} {
		if got := spread(all, n); !slices.Equal(got, want) {
			t.Errorf("%d of ten: %v, want %v", n, got, want)
		}
	}
}
