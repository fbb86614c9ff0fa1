// Package sweep runs many trainings: the cross product of options and seeds.
//
// A [Job] names one run. A [Runner] trains jobs side by side in one process, a
// thread for each, and leaves a [Record] of each in a [Store], a folder of JSON
// files. What the store has is not run again, so a sweep that was killed goes on
// where it was. A [Shard] divides a list of jobs over machines; [Store.Merge]
// unites what they found. [ReadGrid] reads lists of options from TOML, [Summarize]
// makes a table of records.
//
//	r := sweep.Runner{Dir: "results/store"}
//	records, err := r.Run(ctx, []sweep.Job{{Model: "gcn", Data: "cora", Seed: 0}, {Model: "gcn", Data: "cora", Seed: 1}})
package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
	"golang.org/x/sync/errgroup"
)

// Runner trains jobs. The zero value runs all of them, one on each processor, and
// keeps nothing. A Runner may run several lists, one after the other; data that
// were read for one are there for the next.
type Runner struct {
	// Dir is the folder of the store; empty keeps records in memory only.
	Dir string
	// Runs, if not empty, is a folder that has a run directory for each job, as gsrc
	// train --out makes one: what is there is opened, and what was stopped goes on.
	Runs string
	// Workers is how many jobs run at a time; 0 is one for each processor. A job
	// has one thread, or its share of the processors where fewer jobs are left
	// than there are: results do not depend on it.
	Workers int
	// Shard is the part of the jobs to run; the zero value is all.
	Shard Shard
	// Observer, if not nil, is called when jobs begin and end, one call at a time.
	Observer func(Progress)
	// Log, if not nil, is called with what is worth a line: a file of the store that is
	// broken, a job that failed.
	Log func(format string, args ...any)
	// Warn, if not nil, gets a sentence for each option that has no effect, once a job.
	Warn func(text string)

	cache data.Cache
}

// Progress is the state of a sweep.
type Progress struct {
	Total  int // jobs of this shard, each counted once
	Stored int // of them, those that the store had
	Done   int // those that have a record, the stored ones and failures included
	Failed int
	Others int // jobs of other shards, each counted once
	// Running are the jobs that run, in the order in which they began.
	Running []Job
	Elapsed time.Duration
	// Left is an estimate of the time that is left; 0 where nothing is known yet.
	Left time.Duration
	// Last is the record of the job that ended with this event; nil where one
	// began.
	Last *Record
}

type task struct {
	job     Job
	key     string
	dataset string
	record  *Record
	kept    *gsrc.Run // what Runner.Runs has of it, if it has ended
	damage  string    // what was wrong with that, if it runs again therefore
}

// Run trains jobs and returns their records in the order of jobs; those of other
// shards are nil. Equal jobs are run once.
//
// All jobs are looked at before the first one runs, and an error in one (an
// option that does not exist, data that cannot be read) is returned then. A job
// that diverges is recorded as failed, and the others go on. A job that fails for
// another reason has a record too, which is not kept in the store: it runs again
// next time. A run directory that another process uses is an error that ends the sweep.
// Where ctx ends, the jobs that run stop within a step, and Run
// returns the records there are with an error that gsrc.IsInterrupted knows.
func (r *Runner) Run(ctx context.Context, jobs []Job) ([]*Record, error) {
	tasks, of, others, err := r.plan(ctx, jobs)
	if err != nil {
		return nil, err
	}
	if r.Dir != "" { // also where the shard is empty
		if err := os.MkdirAll(r.Dir, 0o755); err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
	}
	todo, err := r.recall(ctx, tasks)
	if err != nil {
		return nil, err
	}
	err = r.runAll(ctx, tasks, todo, others)
	records := make([]*Record, len(jobs))
	for i, t := range of {
		if t != nil && t.record != nil {
			own := *t.record
			own.Job = jobs[i]
			records[i] = &own
		}
	}
	return records, err
}

// plan finds the keys of all jobs. Of the tasks that it returns no two are the
// same run and all are of the shard; of[i] is that of jobs[i], or nil. others is how many
// runs are of other shards.
func (r *Runner) plan(ctx context.Context, jobs []Job) (tasks []*task, of []*task, others int, err error) {
	elsewhere := map[string]bool{}
	byKey := map[string]*task{}
	of = make([]*task, len(jobs))
	for i, j := range jobs {
		if err := ctx.Err(); err != nil {
			return nil, nil, 0, err
		}
		if j.Model == Auto && r.Runs != "" {
			return nil, nil, 0, fmt.Errorf("%s: no run directories are kept of it", j)
		}
		s, err := j.prepare(&r.cache, r.Warn)
		if err != nil {
			return nil, nil, 0, err
		}
		key := j.key(s)
		if !r.Shard.Has(key) {
			elsewhere[key] = true
			continue
		}
		if byKey[key] == nil {
			byKey[key] = &task{job: j, key: key, dataset: s.DataName()}
			tasks = append(tasks, byKey[key])
		}
		of[i] = byKey[key]
	}
	return tasks, of, len(elsewhere), nil
}

// recall gives tasks the records that the store, or a run directory, has, and returns
// the others.
func (r *Runner) recall(ctx context.Context, tasks []*task) (todo []*task, err error) {
	for _, t := range tasks {
		switch dir := r.runDir(t.dataset, t.job.Model, t.key); {
		case r.Runs != "":
			if info, err := train.ReadInfo(dir); err != nil || info.Status != "done" {
				break
			}
			if t.kept, err = openKept(dir); err != nil { // it runs again
				break
			}
			t.record, _, err = r.run(ctx, t, 1, 0)
			t.kept = nil
			if err != nil {
				return nil, err
			}
		case r.Dir != "":
			if t.record, err = (Store{r.Dir}).get(t.dataset, t.job.Model, t.key); err != nil {
				r.logf("%v; the job runs again", err)
			}
		}
		if t.record == nil {
			todo = append(todo, t)
		}
	}
	return todo, nil
}

// RunDir is the directory that [Runner.Runs] has of a job's run.
func (r *Runner) RunDir(of *Record) string { return r.runDir(of.Dataset, of.Model, of.Key) }

func (r *Runner) runDir(dataset, model, key string) string {
	return filepath.Join(r.Runs, fmt.Sprintf("%s-%s-%s", dataset, model, key[:12]))
}

// train trains a job, or where runs are kept goes on with what is there; what is damaged is
// trained anew. A kept run is opened again, so that its outcome is the same whether it was
// there or not.
func (r *Runner) train(ctx context.Context, s *gsrc.Setup, t *task, threads int, memory int64) (*gsrc.Run, error) {
	o := gsrc.TrainOptions{Memory: memory}
	if r.Runs == "" {
		return s.Train(ctx, o)
	}
	if t.kept != nil {
		return t.kept, nil
	}
	o.Out, o.Force = r.runDir(t.dataset, t.job.Model, t.key), true // a folder of this name has nothing else
	if _, err := os.Stat(filepath.Join(o.Out, checkpoint.InfoFile)); err == nil {
		run, err := r.goOn(ctx, o.Out, t, threads)
		damage, ok := errors.AsType[*checkpoint.DamageError](err)
		if !ok {
			return run, err
		}
		t.damage = strings.TrimPrefix(fmt.Sprintf("%s: %v", damage.Path, damage.Err), ": ")
	}
	if err := os.MkdirAll(r.Runs, 0o755); err != nil {
		return nil, err
	}
	if _, err := s.Train(ctx, o); err != nil {
		return nil, err
	}
	return gsrc.OpenRun(o.Out)
}

// goOn opens a kept run, which is trained to its end first where it was stopped. The error
// is a *checkpoint.DamageError where the run is not what was written.
func (r *Runner) goOn(ctx context.Context, dir string, t *task, threads int) (*gsrc.Run, error) {
	info, err := train.ReadInfo(dir)
	if err != nil {
		return nil, damaged(err)
	}
	if info.Status != "done" {
		_, err := gsrc.Resume(ctx, dir, gsrc.ResumeOptions{Data: t.job.Data, Threads: threads})
		if err != nil && (gsrc.IsInterrupted(ctx, err) || is[*filelock.HeldError](err) || is[*train.NonFiniteError](err) || is[*budget.ExceededError](err)) {
			return nil, err
		}
		if err != nil { // what else is wrong with it training anew tells, too
			return nil, damaged(err)
		}
	}
	return openKept(dir)
}

// openKept opens a run that has ended, with all that is read of it.
func openKept(dir string) (*gsrc.Run, error) {
	run, err := gsrc.OpenRun(dir)
	if err == nil {
		_, err = checkpoint.ReadMetrics(dir)
	}
	if err != nil {
		return nil, damaged(err)
	}
	return run, nil
}

// damaged makes what reading a run gives an error of damage, as that of a file which is not
// there, or has no checksum, is not yet.
func damaged(err error) error {
	if damage, ok := errors.AsType[*checkpoint.DamageError](err); ok {
		return damage
	}
	return &checkpoint.DamageError{Err: err}
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func (r *Runner) logf(format string, args ...any) {
	if r.Log != nil {
		r.Log(format, args...)
	}
}

// runAll runs tasks, Workers of them at a time, in their order.
func (r *Runner) runAll(parent context.Context, tasks, todo []*task, others int) error {
	cores := goruntime.GOMAXPROCS(0)
	workers := r.Workers
	if workers <= 0 {
		workers = cores
	}
	workers = min(workers, len(todo))
	memory, _ := budget.Default() // which jobs that run side by side share

	var mu sync.Mutex // guards what follows, and calls of Observer and Log
	start := time.Now()
	var running []*task
	p := Progress{Total: len(tasks), Others: others, Stored: len(tasks) - len(todo), Done: len(tasks) - len(todo)}
	for _, t := range tasks {
		if t.record != nil && t.record.Failed() {
			p.Failed++
		}
	}
	var seconds float64 // of the jobs that have ended
	tell := func(last *Record) {
		if r.Observer == nil {
			return
		}
		e := p
		for _, t := range running {
			e.Running = append(e.Running, t.job)
		}
		e.Elapsed, e.Last = time.Since(start), last
		if ran := p.Done - p.Stored; ran > 0 {
			e.Left = time.Duration(seconds / float64(ran) * float64(p.Total-p.Done) / float64(workers) * float64(time.Second))
		}
		r.Observer(e)
	}
	tell(nil)
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(workers)
	one := func(t *task) error {
		mu.Lock()
		if ctx.Err() != nil {
			mu.Unlock()
			return nil
		}
		// The last jobs share the processors that others have left.
		threads := max(1, cores/min(workers, p.Total-p.Done))
		running = append(running, t)
		tell(nil)
		mu.Unlock()

		rec, keep, err := r.run(ctx, t, threads, memory/int64(workers))
		if err == nil && keep && r.Dir != "" {
			err = Store{r.Dir}.put(rec)
		}

		mu.Lock()
		defer mu.Unlock()
		running = slices.DeleteFunc(running, func(x *task) bool { return x == t })
		if t.damage != "" {
			r.logf("%s; the job was run again", t.damage)
		}
		if err != nil {
			return err
		}
		t.record = rec
		p.Done++
		seconds += rec.Seconds
		if rec.Failed() {
			p.Failed++
			r.logf("%s failed: %s", t.job, rec.Error)
		}
		tell(rec)
		return nil
	}
	for _, t := range todo {
		group.Go(func() error { return one(t) })
	}
	err := group.Wait()
	if parent.Err() != nil && slices.ContainsFunc(todo, func(t *task) bool { return t.record == nil }) {
		return train.ErrInterrupted
	}
	return err
}

// run trains one job. The error is that of a sweep that must stop; keep is
// whether the record holds however often the job is run.
func (r *Runner) run(ctx context.Context, t *task, threads int, memory int64) (rec *Record, keep bool, err error) {
	s, err := t.job.prepare(&r.cache, nil)
	if err != nil {
		return nil, false, err
	}
	rec = &Record{Job: t.job, Key: t.key, Dataset: s.DataName(), Checksum: s.DataChecksum(), Version: gsrc.Version(), Threads: threads}
	if info := s.Task().Info(); info.Source != data.Synthetic {
		rec.Files = data.BaseChecksum(info.Checksum, info.Corruption, info.Rewired)
	}
	if err := s.Config.Set(fmt.Sprintf("train.threads=%d", threads)); err != nil {
		return nil, false, err
	}
	start := time.Now()
	var run *gsrc.Run
	if t.job.Model == Auto { // it is not kept
		var chosen *gsrc.AutoRun
		if chosen, err = gsrc.Auto(ctx, gsrc.AutoOptions{TrainOptions: gsrc.TrainOptions{Data: t.job.Data, Set: t.job.Set, Seed: t.job.Seed, Threads: threads, Memory: memory}}); err == nil {
			run, rec.Chosen = chosen.Run, chosen.Report.Choice.Winner
		}
	} else {
		run, err = r.train(ctx, s, t, threads, memory)
	}
	rec.Seconds = math.Ceil(time.Since(start).Seconds()*1e3) / 1e3 // up: no run takes no time
	if gsrc.IsInterrupted(ctx, err) {
		return nil, false, fmt.Errorf("%w: %s", train.ErrInterrupted, t.job)
	}
	if is[*filelock.HeldError](err) { // it is no outcome of the job
		return nil, false, fmt.Errorf("%s: %w", t.job, err)
	}
	if err != nil {
		rec.Error, rec.Cause = err.Error(), err
		return rec, is[*train.NonFiniteError](err), nil
	}
	if t.job.Model != Auto {
		if err := s.Config.Set("train.threads=1"); err != nil { // the forecast is of one thread
			return nil, false, err
		}
		if rec.PeakBytes, err = PeakBytes(s); err != nil {
			rec.PeakBytes = 0 // the memory of a user's program may not be predictable
		}
	}
	if r.Runs != "" { // it may have been there
		rec.Seconds = run.Result.WallS
	}
	res := *run.Result
	res.Trained, res.PeakRSSMiB = nil, nil
	rec.Result = &res
	return rec, true, nil
}

// PeakBytes forecasts the memory that the steps of a training take at their peak,
// in bytes; see train.PredictMemory.
func PeakBytes(s *gsrc.Setup) (int64, error) {
	prog, err := compiler.Compile(s.Module, compiler.Options{Target: compiler.Training, Data: s.DataInfo()})
	if err != nil {
		return 0, err
	}
	f, err := s.PredictMemory(prog.Module)
	if err != nil {
		return 0, err
	}
	return int64(f.Peak), nil
}
