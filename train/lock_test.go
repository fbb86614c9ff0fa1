package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// intruder tries to write to the folder of a run that goes on.
type intruder struct {
	try  func(Options) error
	dir  string
	errs []error
}

func (i *intruder) Observe(Event) {
	if i.errs == nil {
		i.errs = []error{i.try(Options{Dir: i.dir, Resume: true}), i.try(Options{Dir: i.dir, Force: true}), i.try(Options{Dir: i.dir})}
	}
}

// Who wants to write to the folder of a run that goes on is told who does, and the run
// ends as if nobody had come.
func TestTwoWritersOfARun(t *testing.T) {
	ds := synthetic(t, 3)
	whole, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	run(t, "gcn", ds, Options{Dir: whole})
	in := &intruder{dir: dir, try: func(o Options) error {
		_, err := Train(context.Background(), Job{Model: "gcn", Task: Nodes(ds)}, configure(t, "gcn"), o)
		return err
	}}
	run(t, "gcn", ds, Options{Dir: dir, Observer: in})
	if len(in.errs) != 3 {
		t.Fatalf("%d attempts", len(in.errs))
	}
	for i, err := range in.errs {
		var held *filelock.HeldError
		if !errors.As(err, &held) || held.PID != os.Getpid() || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
			t.Errorf("attempt %d: error %v, want one that names folder and process", i, err)
		}
	}
	sameRuns(t, contents(t, dir), contents(t, whole))
	if _, err := checkpoint.ReadMetrics(dir); err != nil {
		t.Error(err)
	}
}

// A run that was killed before its run.json starts again without --force; a folder
// with anything else in it does not lose that.
func TestKilledBeforeItBegan(t *testing.T) {
	ds := synthetic(t, 3)
	whole := t.TempDir()
	run(t, "gcn", ds, Options{Dir: whole})
	want := contents(t, whole)
	order := []string{checkpoint.MetricsFile, checkpoint.ConfigFile, checkpoint.ModuleFile, checkpoint.SplitFile}
	for n := range len(order) + 1 {
		dir := t.TempDir()
		for _, name := range order[:n] {
			text := want[name]
			if name == checkpoint.MetricsFile {
				text = ""
			}
			write(t, filepath.Join(dir, name), text)
		}
		for _, name := range []string{checkpoint.LockFile, "." + checkpoint.InfoFile + ".1234.tmp"} {
			write(t, filepath.Join(dir, name), "")
		}
		run(t, "gcn", ds, Options{Dir: dir})
		sameRuns(t, contents(t, dir), want)
	}
	for _, name := range []string{checkpoint.WeightsFile, checkpoint.CheckpointFile, checkpoint.InfoFile, checkpoint.MetricsFile, "notes.txt"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, name), "{\"phase\":\"fit\",\"time\":{}}\n")
		_, err := Train(context.Background(), Job{Model: "gcn", Task: Nodes(ds)}, configure(t, "gcn"), Options{Dir: dir})
		var exists *checkpoint.ExistsError
		if !errors.As(err, &exists) {
			t.Errorf("a folder with %s: error %v", name, err)
		}
		if left := contents(t, dir); len(left) != 1 {
			t.Errorf("a folder with %s has %d files now", name, len(left))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
