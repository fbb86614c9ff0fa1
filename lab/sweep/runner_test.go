package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// tiny are options with which a run takes milliseconds.
var tiny = []string{"synthetic.nodes=120", "synthetic.features=16", "train.epochs=4", "train.pretrain_steps=3", "train.anchors=32", "model.encoder.hidden=8", "model.encoder.projection=8", "train.joint_every=2"}

func tinyJobs(model string, seeds int, set ...string) []Job {
	var jobs []Job
	for seed := range seeds {
		jobs = append(jobs, Job{Model: model, Data: "synthetic", Set: append(slices.Clone(tiny), set...), Seed: seed})
	}
	return jobs
}

// timeless is a record without what the machine's load decides, as JSON.
func timeless(t *testing.T, r *Record) string {
	t.Helper()
	c := *r
	c.Seconds, c.Threads = 0, 0
	if c.Result != nil {
		res := *c.Result
		res.WallS = 0
		c.Result = &res
	}
	text, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func mustRun(t *testing.T, r *Runner, jobs []Job) []*Record {
	t.Helper()
	records, err := r.Run(context.Background(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func TestRecordsDoNotDependOnWorkers(t *testing.T) {
	jobs := append(tinyJobs("ecl-gsr", 3), tinyJobs("gcn", 2)...)
	jobs = append(jobs, jobs[1]) // asked for twice, run once
	done := 0
	one := mustRun(t, &Runner{Workers: 1, Observer: func(p Progress) {
		if p.Last != nil {
			done++
		}
		if p.Total != 5 {
			t.Errorf("%d jobs, want 5", p.Total)
		}
	}}, jobs)
	four := mustRun(t, &Runner{Workers: 4}, jobs)
	if done != 5 {
		t.Errorf("%d jobs ended, want 5", done)
	}
	for i := range jobs {
		a, b := timeless(t, one[i]), timeless(t, four[i])
		if a != b {
			t.Errorf("job %d: one worker\n%s\nfour\n%s", i, a, b)
		}
		if r := one[i]; r.Result.Seed != jobs[i].Seed || r.PeakBytes <= 0 || r.Result.PeakRSSMiB != nil || r.Result.Trained != nil {
			t.Errorf("job %d: %+v", i, r)
		}
	}
	if one[0].Key == one[1].Key || one[5].Key != one[1].Key {
		t.Error("keys do not tell jobs apart")
	}
	// A run by itself is the same.
	alone, err := gsrc.Train(context.Background(), gsrc.TrainOptions{Model: "ecl-gsr", Data: "synthetic", Set: tiny, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	if *alone.Result.TestAcc != *one[2].Result.TestAcc || alone.Result.ValAcc != one[2].Result.ValAcc {
		t.Errorf("a run by itself has %v, in a sweep %v", *alone.Result.TestAcc, *one[2].Result.TestAcc)
	}
}

func TestKeys(t *testing.T) {
	key := func(j Job) string {
		t.Helper()
		s, err := j.prepare(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return Key(s)
	}
	base := key(tinyJobs("gcn", 1)[0])
	if len(base) != 64 {
		t.Errorf("key %q", base)
	}
	for _, same := range []string{"train.threads=2", "train.lr=0.01", "train.seed=7"} {
		if key(tinyJobs("gcn", 1, same)[0]) != base {
			t.Errorf("%s makes another job", same)
		}
	}
	for _, other := range []string{"train.lr=0.02", "model.hidden=17", "synthetic.wrong=0.1"} {
		if key(tinyJobs("gcn", 1, other)[0]) == base {
			t.Errorf("%s makes the same job", other)
		}
	}
	if key(tinyJobs("mlp", 1)[0]) == base {
		t.Error("another model is the same job")
	}
}

// A job of Auto has what was chosen in its record, which is taken from the store as any other.
func TestAutoJobs(t *testing.T) {
	data, dir := t.TempDir(), t.TempDir() // a ring of two classes
	nodes, edges := "id,label\n", "source,target\n"
	for i := range 40 {
		nodes += fmt.Sprintf("%d,%d\n", i, i/20)
		edges += fmt.Sprintf("%d,%d\n", i, (i+1)%40)
	}
	for name, text := range map[string]string{"nodes.csv": nodes, "edges.csv": edges} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	job := Job{Model: Auto, Data: data, Set: []string{"train.epochs=2", "data.split=random:0.5,0.3,0.2"}, Seed: 1}
	gcn := job
	gcn.Model = "gcn"
	damaged := gcn
	damaged.Set = append(slices.Clone(gcn.Set), "data.remove_edges=0.3")
	records := mustRun(t, &Runner{Dir: dir}, []Job{job, gcn, damaged})
	if a, b := records[1], records[2]; a.Files != a.Checksum || a.Files != b.Files || a.Checksum == b.Checksum {
		t.Errorf("checksums of the files %q and, damaged, %q, of the data %q and %q", a.Files, b.Files, a.Checksum, b.Checksum)
	}
	if a, b := records[0], records[1]; a.Chosen == "" || a.Result == nil || a.Result.Hash == "" || a.Key == b.Key || b.Chosen != "" {
		t.Errorf("%+v, %+v", a, b)
	}
	mustRun(t, &Runner{Dir: dir, Observer: func(p Progress) {
		if p.Stored != 1 {
			t.Errorf("the store has %d", p.Stored)
		}
	}}, []Job{job})
	if _, err := (&Runner{Runs: dir}).Run(t.Context(), []Job{job}); err == nil || !strings.Contains(err.Error(), "no run directories") {
		t.Error(err)
	}
}

func TestStoreResumesShardsAndMerges(t *testing.T) {
	jobs := tinyJobs("gcn", 6)
	all := filepath.Join(t.TempDir(), "all")
	want := mustRun(t, &Runner{Dir: all}, jobs)

	// Killed after two: what the store has is not run again.
	dir := filepath.Join(t.TempDir(), "killed")
	ctx, cancel := context.WithCancel(context.Background())
	records, err := (&Runner{Dir: dir, Workers: 1, Observer: func(p Progress) {
		if p.Done == 2 {
			cancel()
		}
	}}).Run(ctx, jobs)
	if !gsrc.IsInterrupted(ctx, err) {
		t.Fatalf("error %v", err)
	}
	if n := countRecords(records); n != 2 {
		t.Fatalf("%d records of a sweep that was stopped after two", n)
	}
	if err := os.WriteFile(Store{dir}.Path("synthetic", "gcn", want[0].Key), []byte(`{"key":`), 0o644); err != nil {
		t.Fatal(err)
	}
	var logs, ran []string
	got := mustRun(t, &Runner{Dir: dir, Log: func(f string, args ...any) { logs = append(logs, f) }, Observer: func(p Progress) {
		if p.Last != nil {
			ran = append(ran, p.Last.Key)
		}
		if p.Stored != 1 {
			t.Errorf("%d jobs were stored, want 1", p.Stored)
		}
	}}, jobs)
	if len(ran) != 5 || len(logs) != 1 {
		t.Errorf("%d jobs were run again (want 5: one is stored, one is broken), %d lines of log", len(ran), len(logs))
	}
	for i := range jobs {
		if a, b := timeless(t, got[i]), timeless(t, want[i]); a != b {
			t.Errorf("job %d: resumed\n%s\nundisturbed\n%s", i, a, b)
		}
	}

	// Each of the six jobs is in one of seven shards, and their union is everything.
	parts := []string{}
	times := make([]int, len(jobs))
	for i := range 7 {
		part := filepath.Join(t.TempDir(), "part")
		for k, r := range mustRun(t, &Runner{Dir: part, Shard: Shard{i, 7}}, jobs) {
			if r != nil {
				times[k]++
			}
		}
		parts = append(parts, part)
	}
	if slices.ContainsFunc(times, func(n int) bool { return n != 1 }) {
		t.Errorf("shards have the jobs %v times", times)
	}
	united := Store{filepath.Join(t.TempDir(), "united")}
	added, faults, err := united.Merge(parts...)
	if err != nil || added != len(jobs) || len(faults) > 0 {
		t.Fatalf("merged %d records, faults %v, error %v", added, faults, err)
	}
	if added, _, err := united.Merge(parts...); err != nil || added != 0 {
		t.Errorf("merged %d records again, error %v", added, err)
	}
	for i, r := range mustRun(t, &Runner{Dir: united.Dir, Observer: func(p Progress) {
		if p.Last != nil {
			t.Error("a job of a complete store was run")
		}
	}}, jobs) {
		if timeless(t, r) != timeless(t, want[i]) {
			t.Errorf("job %d differs after the merge", i)
		}
	}
	stored, faults, err := united.Records()
	if err != nil || len(stored) != len(jobs) || len(faults) > 0 {
		t.Errorf("%d records, faults %v, error %v", len(stored), faults, err)
	}
}

func countRecords(records []*Record) int {
	n := 0
	for _, r := range records {
		if r != nil {
			n++
		}
	}
	return n
}

func TestFailedJobsLeaveTheOthersAlone(t *testing.T) {
	jobs := tinyJobs("gcn", 1, "train.lr=1e38", "train.epochs=40")
	jobs = append(jobs, tinyJobs("gcn", 1)...)
	dir := t.TempDir()
	for i := range 2 { // the second time from the store
		records := mustRun(t, &Runner{Dir: dir, Observer: func(p Progress) {
			if i == 1 && p.Last != nil {
				t.Errorf("%s was run again", p.Last.Job)
			}
		}}, jobs)
		if r := records[0]; !r.Failed() || r.Result != nil || !strings.Contains(r.Error, "lr") {
			t.Errorf("a run with an absurd learning rate: %+v", r)
		}
		if r := records[1]; r.Failed() || r.Result == nil {
			t.Errorf("the other run: %+v", r)
		}
	}
}

// A record of which a digit has changed runs again; one of an earlier version has no checksum.
func TestRecordsHaveAChecksum(t *testing.T) {
	jobs, dir := tinyJobs("gcn", 1), t.TempDir()
	want := mustRun(t, &Runner{Dir: dir}, jobs)[0]
	path := Store{dir}.Path(want.Dataset, want.Model, want.Key)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	acc := regexp.MustCompile(`"val_acc": \d`)
	changed := acc.ReplaceAll(text, []byte(`"val_acc": 1`))
	if bytes.Equal(changed, text) {
		changed = acc.ReplaceAll(text, []byte(`"val_acc": 2`))
	}
	for _, c := range []struct {
		text []byte
		runs bool
	}{{text, false}, {changed, true}, {regexp.MustCompile(`,\s*"seal": \{[^}]*\}`).ReplaceAll(text, nil), false}} {
		if err := os.WriteFile(path, c.text, 0o644); err != nil {
			t.Fatal(err)
		}
		var logs []string
		ran := false
		got := mustRun(t, &Runner{Dir: dir, Log: func(f string, args ...any) { logs = append(logs, fmt.Sprintf(f, args...)) }, Observer: func(p Progress) { ran = ran || p.Last != nil }}, jobs)[0]
		if ran != c.runs || (len(logs) == 1) != c.runs || c.runs && !strings.Contains(logs[0], path) || timeless(t, got) != timeless(t, want) {
			t.Errorf("it ran: %v, want %v; %q", ran, c.runs, logs)
		}
	}
}

// A kept run that is damaged runs again, to the same, and a line says which file it was.
func TestDamagedKeptRunsRunAgain(t *testing.T) {
	jobs, dir := tinyJobs("gcn", 1), t.TempDir()
	want := mustRun(t, &Runner{Runs: dir}, jobs)[0]
	damages := map[string]func(path string) error{
		"changed": func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o644)
		},
		"cut":     func(path string) error { return os.Truncate(path, 10) },
		"missing": os.Remove,
	}
	for _, file := range []string{"weights.safetensors", "checkpoint.safetensors", "metrics.jsonl", "config.toml", "run.json"} {
		for name, damage := range damages {
			if err := damage(filepath.Join((&Runner{Runs: dir}).RunDir(want), file)); err != nil {
				t.Fatal(err)
			}
			var logs []string
			r := &Runner{Runs: dir, Log: func(f string, args ...any) { logs = append(logs, fmt.Sprintf(f, args...)) }}
			if got := mustRun(t, r, jobs)[0]; got.Failed() || got.Result.Hash != want.Result.Hash {
				t.Errorf("%s is %s: %+v", file, name, got)
			}
			if begun := file != "run.json" || name != "missing"; begun && (len(logs) != 1 || !strings.Contains(logs[0], file)) {
				t.Errorf("%s is %s: the log is %q", file, name, logs)
			}
		}
	}
}

// stopping is a context that ends when it has been asked often enough.
type stopping struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int32
}

func (s *stopping) Err() error {
	if s.left.Add(-1) < 0 {
		s.cancel()
	}
	return s.Context.Err()
}

// A run that was stopped, and then damaged, runs again as well.
func TestDamagedStoppedRunsRunAgain(t *testing.T) {
	jobs := tinyJobs("gcn", 1)
	want := mustRun(t, &Runner{Runs: t.TempDir()}, jobs)[0]
	for _, file := range []string{"checkpoint.safetensors", "metrics.jsonl", "config.toml", "module.gsr"} {
		r := &Runner{Runs: t.TempDir()}
		dir := r.RunDir(want)
		ctx := &stopping{}
		ctx.Context, ctx.cancel = context.WithCancel(t.Context())
		ctx.left.Store(3)
		s, err := gsrc.Prepare(gsrc.TrainOptions{Model: jobs[0].Model, Data: jobs[0].Data, Set: jobs[0].Set})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Train(ctx, gsrc.TrainOptions{Out: dir}); !gsrc.IsInterrupted(ctx, err) {
			t.Fatalf("not stopped: %v", err)
		}
		if err := os.Truncate(filepath.Join(dir, file), 10); err != nil {
			t.Fatal(err)
		}
		if got := mustRun(t, r, jobs)[0]; got.Failed() || got.Result.Hash != want.Result.Hash {
			t.Errorf("%s is cut: %+v", file, got)
		}
	}
}

// That another process uses a run is no outcome of its job.
func TestLockedKeptRuns(t *testing.T) {
	jobs, dir := tinyJobs("gcn", 1), t.TempDir()
	r := &Runner{Runs: dir}
	path := r.RunDir(mustRun(t, r, jobs)[0])
	lock, err := filelock.TryLock(filepath.Join(path, checkpoint.LockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Remove()
	if err := os.Truncate(filepath.Join(path, checkpoint.InfoFile), 10); err != nil {
		t.Fatal(err)
	}
	var held *filelock.HeldError
	if records, err := r.Run(t.Context(), jobs); !errors.As(err, &held) || records[0] != nil {
		t.Errorf("%+v, %v", records[0], err)
	}
}

func TestFaultsShowBeforeAnythingRuns(t *testing.T) {
	for _, c := range []struct {
		job  Job
		want string
	}{
		{Job{Model: "gcm", Data: "synthetic"}, "gcm"},
		{Job{Model: "gcn", Data: "synthetic", Set: []string{"train.epoch=1"}}, "did you mean train.epochs"},
		{Job{Model: "gcn", Data: "absent"}, "absent"},
		{Job{Model: "gcn", Data: "synthetic", Seed: -1}, "at least 0"},
	} {
		jobs := append(tinyJobs("gcn", 1), c.job)
		_, err := (&Runner{Observer: func(Progress) { t.Error("something ran") }}).Run(context.Background(), jobs)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.job, err, c.want)
		}
	}
	if _, _, err := (Store{filepath.Join(t.TempDir(), "absent")}).Records(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store that is not there: error %v", err)
	}
}

func TestParseShard(t *testing.T) {
	if s, err := ParseShard("2/5"); err != nil || s != (Shard{2, 5}) {
		t.Errorf("2/5: %v, %v", s, err)
	}
	for _, bad := range []string{"", "1", "5/5", "-1/5", "a/b", "0/0", "1/2/3"} {
		if _, err := ParseShard(bad); err == nil {
			t.Errorf("%q was read as a shard", bad)
		}
	}
	for _, c := range []struct {
		env   string
		count int
		want  Shard
		ok    bool
	}{
		{"", 0, Shard{}, true},
		{"JOB_COMPLETION_INDEX=3", 4, Shard{3, 4}, true},
		{"JOB_COMPLETION_INDEX=3 JOB_COMPLETIONS=8", 0, Shard{3, 8}, true},
		{"JOB_COMPLETION_INDEX=3", 0, Shard{}, false},
		{"JOB_COMPLETION_INDEX=4", 4, Shard{}, false},
		{"JOB_COMPLETION_INDEX=x", 4, Shard{}, false},
		{"SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_COUNT=8", 0, Shard{4, 8}, true},
		{"SLURM_ARRAY_TASK_ID=0 SLURM_ARRAY_TASK_COUNT=8", 0, Shard{0, 8}, true},
		{"SLURM_ARRAY_TASK_ID=8 SLURM_ARRAY_TASK_COUNT=8", 0, Shard{}, false},
	} {
		env := map[string]string{}
		for _, pair := range strings.Fields(c.env) {
			k, v, _ := strings.Cut(pair, "=")
			env[k] = v
		}
		s, err := ShardFromEnv(func(k string) string { return env[k] }, c.count)
		if s != c.want || (err == nil) != c.ok {
			t.Errorf("%s, count %d: %v, %v", c.env, c.count, s, err)
		}
	}
}
