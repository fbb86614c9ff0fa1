package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// stopAt cancels a run when a number of events have passed.
type stopAt struct {
	events int
	cancel context.CancelFunc
	seen   []Event
}

func (s *stopAt) Observe(e Event) {
	s.seen = append(s.seen, e)
	if s.events--; s.events == 0 {
		s.cancel()
	}
}

// An interrupted run, resumed any number of times, ends as an undisturbed one.
func TestInterruptAndResume(t *testing.T) {
	plain, weighted := synthetic(t, 3), weigh(synthetic(t, 3))
	for _, c := range []struct {
		model  string
		sets   []string
		events []int // between interruptions
	}{
		{"gcn", []string{"train.select=macro_f1"}, []int{1, 3, 11}},
		{"gcn", []string{"train.checkpoint_every=0", "train.patience=4"}, []int{7}},
		{"linear", []string{"model.linear.steps=2", "model.smooth.alpha=0.5"}, []int{2, 9}},
		{"sage", []string{"model.known_labels=0.4", "train.self_training=1"}, []int{9, 20}},
		{"linear", []string{"train.self_training=2", "train.self_trained=4"}, []int{2, 21, 1, 1, 9, 20}},
		{"ecl-gsr", []string{"train.self_training=1", "train.self_trained=4", "train.patience=9"}, []int{20, 20, 3}},
		{"ecl-gsr", []string{"train.halve_lr_every=4", "train.select=loss"}, []int{5, 10, 1, 1, 4, 9}},
		{"ecl-gsr", []string{"deepwalk.width=4", "train.sampler=edges", "train.batch_edges=20", "model.edges.mode=threshold"}, []int{1, 2, 20, 5}},
		{"gen", []string{"train.joint_every=0", "train.pretrain_steps=0", "candidates.k=5", "model.gen.k=5", "model.gen.steps=8"}, []int{3, 5, 1, 9}},
		{"idgl", []string{"train.joint_every=1", "train.pretrain_steps=0", "candidates.k=5", "model.idgl.steps=2"}, []int{2, 9}},
		{"lds", []string{"train.joint_every=1", "train.pretrain_steps=0", "candidates.k=6", "model.lds.steps=2", "model.lds.restart=3"}, []int{1, 2, 5, 9}},
		{"prognn", []string{"train.joint_every=3", "train.pretrain_steps=0", "candidates.k=8", "model.prognn.rank=6", "model.prognn.nuclear=2"}, []int{1, 2, 4, 9}},
		{"sublime", []string{"train.joint_every=0", "candidates.k=8", "model.sublime.k=5"}, []int{3, 5, 1, 4, 20}},
		{"sublime", []string{"train.joint_every=0", "candidates.k=8", "model.sublime.k=5", "model.encoder.kind=fgp"}, []int{3, 5, 1, 4, 20}},
		{"ecl-gsr", []string{"candidates.structure=raw"}, []int{13}},
		{"ecl-gsr", []string{"model.edges.judge=evidence", "train.sampler=edges", "train.batch_edges=20"}, []int{1, 12, 9}},
		{"ecl-gsr, weighted", []string{"model.edges.judge=evidence", "train.sampler=edges", "train.batch_edges=20"}, []int{1, 12, 9}},
		{"ecl-gsr, weighted", []string{"model.edges.judge=embedding"}, []int{5, 19}},
		{"ecl-gsr, weighted", []string{"candidates.structure=raw"}, []int{13}},
	} {
		ds := plain
		if model, ok := strings.CutSuffix(c.model, ", weighted"); ok {
			c.model, ds = model, weighted
		}
		cfg := configure(t, c.model, c.sets...)
		task := Job{Model: c.model, Task: Nodes(ds)}
		whole := t.TempDir()
		want, err := Train(context.Background(), task, cfg, Options{Dir: whole})
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), "run")
		for i, n := range c.events {
			ctx, cancel := context.WithCancel(context.Background())
			stop := &stopAt{events: n, cancel: cancel}
			_, err := Train(ctx, task, cfg, Options{Dir: dir, Resume: i > 0, Observer: stop})
			if !errors.Is(err, ErrInterrupted) {
				t.Fatalf("%s %v: interruption %d: error %v", c.model, c.sets, i, err)
			}
			if stop.seen[0].Resumed != (i > 0) {
				t.Errorf("the first event of part %d says resumed %v", i, stop.seen[0].Resumed)
			}
			// Lines that the checkpoint does not count are cut off.
			f, err := os.OpenFile(filepath.Join(dir, checkpoint.MetricsFile), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(f, "{\"phase\":\"fit\",\"step\":99}\n{\"pha")
			f.Close()
		}
		got, err := Train(context.Background(), task, cfg, Options{Dir: dir, Resume: true})
		if err != nil {
			t.Fatalf("%s %v: %v", c.model, c.sets, err)
		}
		sameRuns(t, contents(t, dir), contents(t, whole))
		if !reflect.DeepEqual(got.Trained.Params, want.Trained.Params) || !reflect.DeepEqual(got.Trained.Refined, want.Trained.Refined) {
			t.Errorf("%s %v: the resumed run has another model", c.model, c.sets)
		}
		// A finished run resumes to the same end.
		if _, err := Train(context.Background(), task, cfg, Options{Dir: dir, Resume: true}); err != nil {
			t.Error(err)
		}
		sameRuns(t, contents(t, dir), contents(t, whole))
	}
}

const killEnv = "GSRC_TRAIN_KILL_TEST_DIR"

// TestKillChild is the run that TestKill kills.
func TestKillChild(t *testing.T) {
	dir := os.Getenv(killEnv)
	if dir == "" {
		t.Skip("only a helper of TestKill")
	}
	_, err := os.Stat(dir)
	run(t, "ecl-gsr", synthetic(t, 4), Options{Dir: dir, Resume: err == nil}, killSets...)
}

// killSets make checkpoints so frequent that many kills fall into one.
var killSets = []string{"train.checkpoint_every=1", "deepwalk.width=4", "train.epochs=60", "train.pretrain_steps=40"}

// SIGKILL at random moments, resumed each time, changes nothing.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes several seconds")
	}
	whole := t.TempDir()
	start := time.Now()
	run(t, "ecl-gsr", synthetic(t, 4), Options{Dir: whole}, killSets...)
	took := time.Since(start)
	dir := filepath.Join(t.TempDir(), "run")
	child := func(kill time.Duration) (killed bool) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKillChild$")
		cmd.Env = append(os.Environ(), killEnv+"="+dir)
		out := &strings.Builder{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if kill > 0 {
			// Count from when the run has begun, not from when the process has.
			for i := 0; i < 1000; i++ {
				if _, err := os.Stat(dir); err == nil {
					break
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(kill)
			_ = cmd.Process.Kill()
		}
		err := cmd.Wait()
		if err != nil && kill == 0 {
			t.Fatalf("the run fails: %v\n%s", err, out)
		}
		return err != nil
	}
	kills := 0
	for i := 0; kills < 20 && i < 200; i++ {
		if child(time.Duration(rand.Int64N(int64(took)/6 + 1e6))) {
			kills++
		} else if err := os.RemoveAll(dir); err != nil { // done: start over
			t.Fatal(err)
		}
	}
	if kills < 20 {
		t.Errorf("only %d kills hit the run", kills)
	}
	child(0)
	sameRuns(t, contents(t, dir), contents(t, whole))
}

// limited fails after n bytes, as a full disk does.
type limited struct {
	w io.Writer
	n *int
}

var errFull = errors.New("no space left on device")

func (l limited) Write(p []byte) (int, error) {
	if len(p) > *l.n {
		n, _ := l.w.Write(p[:*l.n])
		*l.n = 0
		return n, errFull
	}
	*l.n -= len(p)
	return l.w.Write(p)
}

// A disk that fills up stops the run with the cause; what is on it is whole, and
// with space again the run goes on as if nothing had been.
func TestFullDisk(t *testing.T) {
	ds := synthetic(t, 5)
	whole := t.TempDir()
	run(t, "ecl-gsr", ds, Options{Dir: whole})
	total := 0
	for _, s := range contents(t, whole) {
		total += len(s)
	}
	for i := range 25 {
		room := i * i * total / 60
		dir := filepath.Join(t.TempDir(), "run")
		limit := func(w io.Writer) io.Writer { return limited{w, &room} }
		atomicfile.Wrap = limit
		_, err := Train(context.Background(), Job{Model: "ecl-gsr", Task: Nodes(ds)}, configure(t, "ecl-gsr"), Options{Dir: dir})
		atomicfile.Wrap = nil
		if err == nil {
			if i < 5 {
				t.Errorf("room %d: no error", i)
			}
			break
		}
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), dir) {
			t.Errorf("room %d: error %v, want one that names the file and the cause", i, err)
		}
		left := contents(t, dir) // complains about lines that are not whole
		for name := range left {
			if strings.HasSuffix(name, ".tmp") {
				t.Errorf("room %d: %s was left", i, name)
			}
		}
		run(t, "ecl-gsr", ds, Options{Dir: dir, Resume: true})
		sameRuns(t, contents(t, dir), contents(t, whole))
	}
}

func TestRunDirectory(t *testing.T) {
	ds := synthetic(t, 3)
	base := t.TempDir()
	dir := filepath.Join(base, "a", "run")
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the folder is there already")
	}
	try := func(model string, o Options, sets ...string) error {
		_, err := Train(context.Background(), Job{Model: model, Task: Nodes(ds)}, configure(t, model, sets...), o)
		return err
	}
	var exists *checkpoint.ExistsError
	if err := try("gcn", Options{Dir: dir, Resume: true}); err == nil || !strings.Contains(err.Error(), "no such folder") {
		t.Errorf("resuming what is not there: error %v", err)
	}
	if err := try("gcn", Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	first := contents(t, dir)
	if err := try("gcn", Options{Dir: dir}); !errors.As(err, &exists) || !exists.Run || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("a second run in the folder: error %v", err)
	}
	sameRuns(t, contents(t, dir), first)
	for _, c := range []struct {
		model string
		want  string
		sets  []string
	}{{"mlp", "another program", nil}, {"gcn", "another configuration", []string{"train.lr=0.5"}}} {
		if err := try(c.model, Options{Dir: dir, Resume: true}, c.sets...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("resuming with %s %v: error %v", c.model, c.sets, err)
		}
	}
	if _, err := Train(context.Background(), Job{Model: "gcn", Task: Nodes(synthetic(t, 9))}, configure(t, "gcn"), Options{Dir: dir, Resume: true}); err == nil || !strings.Contains(err.Error(), "another data set") {
		t.Errorf("resuming with other data: error %v", err)
	}
	if err := try("gcn", Options{Dir: dir, Resume: true}, "train.threads=3", "train.checkpoint_every=0"); err != nil {
		t.Errorf("options that change no result are refused: %v", err)
	}
	// --force replaces the run and leaves what is not one of its files.
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := try("ecl-gsr", Options{Dir: dir, Force: true}); err != nil {
		t.Fatal(err)
	}
	if now := contents(t, dir); now["notes.txt"] != "mine" || now[checkpoint.EdgesFile] == "" || now[checkpoint.ModuleFile] == first[checkpoint.ModuleFile] {
		t.Errorf("after --force the folder has %d files", len(now))
	}
	other := filepath.Join(base, "other")
	if err := os.MkdirAll(filepath.Join(other, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := try("gcn", Options{Dir: other}); !errors.As(err, &exists) || exists.Run {
		t.Errorf("a folder with something else in it: error %v", err)
	}
	// A damaged checkpoint or metrics file is refused with its name.
	path := filepath.Join(dir, checkpoint.MetricsFile)
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if err := try("ecl-gsr", Options{Dir: dir, Resume: true}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("resuming with metrics cut short: error %v", err)
	}
	path = filepath.Join(dir, checkpoint.CheckpointFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 7, 100, len(text) / 2, len(text) - 1} {
		if err := os.WriteFile(path, text[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if err := try("ecl-gsr", Options{Dir: dir, Resume: true}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("resuming with a checkpoint cut to %d bytes: error %v", n, err)
		}
	}
}

// What Load reads is what Train returned.
func TestLoad(t *testing.T) {
	ds := synthetic(t, 3)
	for _, c := range []struct {
		model string
		sets  []string
	}{{"gcn", nil}, {"ecl-gsr", nil}, {"ecl-gsr", []string{"deepwalk.width=4"}}, {"ecl-gsr", []string{"candidates.structure=raw"}}, {"ecl-gsr", []string{"model.edges.judge=evidence"}}} {
		dir := filepath.Join(t.TempDir(), "run")
		res := run(t, c.model, ds, Options{Dir: dir, Version: "1.2.3"}, c.sets...)
		got, info, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		want := res.Trained
		if !reflect.DeepEqual(got.Params, want.Params) || !reflect.DeepEqual(got.Refined, want.Refined) || !reflect.DeepEqual(got.Struct, want.Struct) ||
			got.StructWidth != want.StructWidth || got.Module.String() != want.Module.String() || got.Config.Hash() != want.Config.Hash() || got.Model != c.model {
			t.Errorf("%s %v: the model read back is another one", c.model, c.sets)
		}
		if info.Version != "1.2.3" || info.Data.Checksum != ds.Checksum || info.Result.ValAcc != res.ValAcc || info.Inductive != (want.Struct == nil) || info.Status != "done" {
			t.Errorf("%s %v: run.json says %+v", c.model, c.sets, info)
		}
	}
	if _, _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no run directory") {
		t.Errorf("an empty folder: error %v", err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := Train(ctx, Job{Model: "gcn", Task: Nodes(ds)}, configure(t, "gcn"), Options{Dir: dir, Observer: &stopAt{events: 3, cancel: cancel}}); !errors.Is(err, ErrInterrupted) {
		t.Fatal(err)
	}
	if _, _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("an unfinished run: error %v", err)
	}
}
