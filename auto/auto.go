// Package auto chooses a model for a graph and trains it.
//
// [Train] looks at counts of the graph, draws up a list of candidates, compares them by
// successive halving on resplits of the training and validation nodes, and trains the winner
// on the given split. Labels of other nodes are hidden from all of it: test nodes are read by
// the last evaluation alone. What is chosen depends on the data, the options, the seed and the
// number of trainings; a limit of time only cuts the list off.
package auto

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Options say what to choose for. Data is required; of TrainOptions Model, Cache, Trace and
// Baselines are not read.
type Options struct {
	run.TrainOptions
	// Trials is how many trainings to choose by, at most, candidates that fail among them; 0 is the whole list.
	Trials int
	// Minutes, if not 0, is how long all of it may take: no further training begins when what
	// is left is needed for the winner. One training always runs.
	Minutes float64
	// Progress, if not nil, is called when a training has ended, one call at a time.
	Progress func(done int, c *Candidate)
	// Stage, if not nil, is called with a sentence on what comes next.
	Stage func(text string)

	rules []rule // other than the package's, in tests
}

// Run is a chosen and trained model.
type Run struct {
	*run.Run
	Report *Report
}

// chooser is a choice in progress.
type chooser struct {
	Options
	start    time.Time
	before   time.Duration // of earlier parts of a resumed run
	ds       *data.Dataset
	split    data.Split
	pool     *pool
	base     config.Train
	seed     int
	draws    rng.Stream
	upTo     ladder
	report   *Report
	setups   map[*Candidate]prepared
	inFile   []string                 // options of the file
	read     map[string]*data.Dataset // the pool's, by what options of data of candidates make of it
	evidence train.FittedEvidence
	kept     *run.Run // what is in Out
	resumed  bool
	of       *Candidate
	restart  int // of what is in Out

	restarting bool // among the winner's beginnings

	slowest [2]float64  // seconds of trainings so far: of simple candidates, of all
	judging *data.Split // on which refinement is judged; nil is the given split
}

// Train chooses a model and trains it. With Out it leaves a run directory like any other, and
// auto.json. The error of a run that ctx stopped is train.ErrInterrupted; [Resume] goes on.
func Train(ctx context.Context, o Options) (*Run, error) {
	if o.Out != "" && !o.Force {
		if err := run.CheckEmpty(o.Out); err != nil {
			return nil, err
		}
	}
	return choosing(ctx, o, nil)
}

// Unfinished reports whether a folder has a choice that was stopped, which [Resume] goes on
// with, or one of which it says why it cannot be read.
func Unfinished(dir string) bool {
	r, err := ReadReport(dir)
	return err == nil && r.Status != "done" || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// ReadReport reads the auto.json of a run directory.
func ReadReport(dir string) (*Report, error) {
	path := filepath.Join(dir, File)
	text, err := seal.Read(path)
	if err != nil {
		return nil, err
	}
	if _, err := seal.Check(nil, text, nil); err != nil {
		return nil, checkpoint.Damage(path, err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if r.SchemaVersion != 1 {
		return nil, fmt.Errorf("%s has schema version %d, this gsrc reads 1", path, r.SchemaVersion)
	}
	return &r, nil
}

// Resume goes on with a choice that was stopped, and ends as if it had not been. One that has
// ended is opened and evaluated, as [run.Resume] does, and stays as it is. Of o it reads
// Data, where they are not where they were, and what results do not depend on.
func Resume(ctx context.Context, dir string, o Options) (*Run, error) {
	r, err := ReadReport(dir)
	if err != nil {
		return nil, err
	}
	if r.Status == "done" {
		ended, err := run.Resume(ctx, dir, run.ResumeOptions{Data: o.Data, Threads: o.Threads, Device: o.Device, Executor: o.Executor, Observer: o.Observer, OnDeviceSelected: o.OnDeviceSelected})
		if err != nil {
			return nil, err
		}
		return &Run{ended, r}, nil
	}
	o.Data = cmp.Or(o.Data, r.Data.Source)
	o.Out, o.Config, o.Set, o.Seed, o.TF32 = dir, r.Config, r.Set, 0, false
	if r.Limit != nil {
		o.Threads, o.Device = cmp.Or(o.Threads, r.Limit.Threads), cmp.Or(o.Device, r.Limit.Device)
		o.Trials, o.Minutes = r.Limit.Trials, r.Limit.Minutes
	}
	return choosing(ctx, o, r)
}

func choosing(ctx context.Context, o Options, earlier *Report) (*Run, error) {
	x := &chooser{Options: o, start: time.Now(), resumed: earlier != nil, setups: map[*Candidate]prepared{}, read: map[string]*data.Dataset{}}
	if o.Warn != nil {
		said := map[string]bool{}
		x.Warn = func(text string) {
			if !said[text] {
				o.Warn(text)
			}
			said[text] = true
		}
	}
	if err := x.open(earlier); err != nil {
		return nil, err
	}
	if o.Out != "" {
		if err := os.MkdirAll(o.Out, 0o755); err != nil {
			return nil, fmt.Errorf("cannot create the run directory: %w", err)
		}
		lock, err := filelock.TryLock(filepath.Join(o.Out, ".auto.lock"))
		if err != nil {
			return nil, fmt.Errorf("run directory: %w", err)
		}
		defer lock.Remove()
		if earlier == nil { // with Force there may be a run
			if err := checkpoint.Replace(o.Out, x.next()); err != nil {
				return nil, err
			}
		}
	}
	if err := x.write(); err != nil {
		return nil, err
	}
	for rung := range len(x.upTo) + 1 {
		cut, err := x.climb(ctx, rung)
		if err != nil {
			return nil, err
		}
		if cut {
			break
		}
		if rung == 0 && x.Out != "" { // from here on there is a model
			_, err := run.Open(x.Out)
			if first, _ := x.upTo.choose(x.report.Candidates); first != nil && err != nil {
				if err := x.keep(ctx, first, 0); err != nil {
					return nil, err
				}
			}
		}
		x.report.Complete = rung == len(x.upTo)
	}
	return x.finish(ctx)
}

// open reads the data and draws up the list, or takes up that of an earlier part.
func (x *chooser) open(earlier *Report) error {
	base := x.TrainOptions
	base.Model, base.Note, base.Config = "linear", nil, ""
	x.Set = slices.Clone(x.Set)
	if x.Seed != 0 { // so that it is among the options that are written down, as is what follows
		x.Set = append(x.Set, fmt.Sprintf("train.seed=%d", x.Seed))
	}
	if x.TF32 {
		x.Set = append(x.Set, "train.tf32=true")
	}
	x.Seed, x.TF32, base.Seed, base.TF32 = 0, false, 0, false
	var err error
	trained := ""
	if earlier != nil {
		trained, x.inFile = cmp.Or(earlier.Data.Files, earlier.Data.Checksum), earlier.FromConfig
	}
	if x.Config != "" && x.inFile == nil {
		if x.inFile, err = config.FileOptions(x.Config); err != nil {
			if earlier != nil {
				err = fmt.Errorf("%w: the version of gsrc that began the search kept the name of this file alone, so that it must be there as it was; or start anew with --force", err)
			}
			return err
		}
		base.Config = x.Config // so that a fault is told with its name
	}
	base.Set = slices.Concat(x.inFile, x.Set)
	x.ds, err = run.ReadNodes(base, trained)
	if errors.Is(err, data.ErrCollection) {
		return fmt.Errorf("%s is a collection of graphs, and gsrc train auto chooses among models of the nodes of one graph; gsrc models lists those that classify graphs, and gsrc tune compares their options", x.Data)
	}
	if err != nil {
		return err
	}
	if x.ds.Classes == 0 {
		return train.NoLabels(x.Data, "auto")
	}
	s, err := run.PrepareNodes(base, x.ds)
	if err != nil {
		return err
	}
	x.base, x.seed = s.Config.Train, s.Config.Train.Seed
	x.draws = rng.New(uint64(x.seed), "auto")
	if x.split, _, err = s.Task().Split(uint64(x.seed)); err != nil {
		return err
	}
	if len(x.split.Train) == 0 {
		return fmt.Errorf("%s: the split has no training nodes; draw another with --split", x.Data)
	}
	if x.pool, err = newPool(x.ds, x.split, x.draws); err != nil {
		return fmt.Errorf("%s: %w", x.Data, err)
	}
	if x.pool.ranked = x.base.Select == "auc"; x.pool.ranked {
		if err := x.pool.checkRanked(); err != nil {
			return fmt.Errorf("%s: %w", x.Data, err)
		}
	}
	x.upTo = newLadder(len(x.pool.val) - len(x.pool.val)/2)
	if x.Note != nil {
		for _, text := range x.ds.Notes {
			x.Note(text)
		}
	}
	r := &Report{SchemaVersion: 1, Version: version.String(), Status: "choosing", Seed: x.seed, Config: x.Config, FromConfig: x.inFile, Set: x.Set, Seen: look(x.pool.ds, data.Split{Train: x.pool.train, Val: x.pool.val}, x.draws.Sub("pairs"))}
	x.pool.tampered = r.Seen.Tampered
	if r.Set == nil {
		r.Set = []string{}
	}
	r.Data.Name, r.Data.Source, r.Data.Checksum = x.ds.Name, x.Data, x.ds.Checksum
	r.Data.Files = data.BaseChecksum(x.ds.Checksum, x.ds.Corruption, x.ds.Rewired)
	r.Candidates = candidates(r.Seen, x.rules)
	if ds := x.pool.ds; ds.Stored != nil || ds.Corruption != nil || ds.Rewired != nil { // see [data.Dataset.DescribeByPlaces]
		r.Candidates = slices.DeleteFunc(r.Candidates, func(c *Candidate) bool {
			return slices.ContainsFunc(c.Set, func(set string) bool { return strings.HasPrefix(set, "data.node_features=") })
		})
	}
	if len(r.Candidates) == 0 {
		return fmt.Errorf("%s has neither edges nor features, so there is nothing to learn from", x.Data)
	}
	x.report = r
	if earlier != nil {
		if changed := r.changed(earlier); changed != "" {
			return fmt.Errorf("%s: %s, so that the search cannot go on; start anew with --force", x.Out, changed)
		}
		for i, c := range r.Candidates {
			c.Scores, c.Restarts, c.Failed = earlier.Candidates[i].Scores, earlier.Candidates[i].Restarts, earlier.Candidates[i].Failed
		}
		r.Trials = earlier.Trials
		if earlier.Limit != nil {
			x.before = time.Duration(earlier.Limit.Seconds * float64(time.Second))
			x.slowest = [2]float64{earlier.Limit.Simple, earlier.Limit.Slowest}
		}
	}
	return nil
}

// next is where a run grows up that is to take the place of the one in Out.
func (x *chooser) next() string { return filepath.Join(x.Out, "next") }

// prepared is what became of setting a candidate up.
type prepared struct {
	*run.Setup
	err error
}

// setup is the program of a candidate, which knows the labels of the pool alone.
func (x *chooser) setup(c *Candidate) (*run.Setup, error) {
	if p, ok := x.setups[c]; ok {
		return p.Setup, p.err
	}
	o := x.TrainOptions
	o.Model, o.Config, o.Set = c.Model, "", slices.Concat(x.inFile, c.Set, x.Set)
	if len(x.setups) > 0 { // what is guessed of the data is said once
		o.Note = nil
	}
	as := strings.Join(slices.DeleteFunc(slices.Clone(c.Set), func(set string) bool { return !strings.HasPrefix(set, "data.") }), " ")
	s, err := run.PrepareNodes(o, cmp.Or(x.read[as], x.pool.ds))
	if err != nil {
		err = &train.SetupError{Err: err}
	} else {
		x.read[as] = s.Data
	}
	x.setups[c] = prepared{s, err}
	return s, err
}

// refused reports whether an error says that data and options do not suit a candidate; they may suit others.
func refused(err error) bool {
	var setup *train.SetupError
	var system syscall.Errno // a file could not be read
	return errors.As(err, &setup) && !errors.As(err, &system)
}

// write writes auto.json.
func (x *chooser) write() error {
	if x.Out == "" {
		return nil
	}
	x.report.Limit = &Limit{Trials: x.Trials, Minutes: x.Minutes, Threads: x.Threads, Device: x.Device, Seconds: x.elapsed().Seconds(), Simple: x.slowest[0], Slowest: x.slowest[1]}
	if x.report.Status == "done" {
		x.report.Limit = nil
	}
	x.report.Seal.Checksum = seal.Blank
	text, err := seal.JSON(x.report)
	x.report.Seal.Checksum = ""
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(x.Out, File), text)
}

// climb runs what a rung lacks. cut says that a limit was reached before its end.
func (x *chooser) climb(ctx context.Context, rung int) (cut bool, err error) {
	todo := x.upTo.fits(x.report.Candidates, rung)
	x.restarting = rung == len(x.upTo)
	switch {
	case x.Stage == nil || len(todo) == 0:
	case x.restarting:
		x.Stage(fmt.Sprintf("%s on the given split from %d beginnings", todo[0].c.Name, restarts))
	default:
		x.Stage(fmt.Sprintf("%d candidates on up to %s", len(x.upTo.entrants(x.report.Candidates, rung)), resplits(x.upTo[rung])))
	}
	for len(todo) > 0 { // once, unless some failed, whose places others take
		if x.Trials > 0 {
			left := x.Trials - x.report.Trials
			if !x.begun() {
				left = max(left, 1)
			}
			if left <= 0 {
				return true, nil
			}
			todo = todo[:min(len(todo), left)]
		}
		for _, f := range todo {
			if _, err := x.setup(f.c); err != nil && !refused(err) {
				return false, fmt.Errorf("%s: %w", f.c.Name, err)
			}
		}
		if all, err := x.runAll(ctx, todo); err != nil || !all {
			return true, err
		}
		todo = x.upTo.fits(x.report.Candidates, rung)
	}
	return false, nil
}

// begun reports whether a training has ended well: a limit leaves a first one.
func (x *chooser) begun() bool {
	return slices.ContainsFunc(x.report.Candidates, func(c *Candidate) bool { return len(c.Scores) > 0 })
}

// keep trains a candidate on the given split, from the beginning of its best restart, and has it take the
// place of what Out has.
func (x *chooser) keep(ctx context.Context, c *Candidate, restart int) error {
	if x.of == c && x.restart == restart {
		return nil
	}
	s, err := x.setup(c)
	if err != nil {
		return err
	}
	if s, err = s.On(x.ds, nil, func(c *config.Config) { c.Train.Restart += restart }); err != nil {
		return err
	}
	next := ""
	o := run.TrainOptions{Force: true, Memory: x.Memory, Executor: x.Executor, Observer: x.Observer, Warn: x.Warn, OnDeviceSelected: x.OnDeviceSelected}
	if x.Out != "" {
		if r, err := run.Open(x.Out); x.resumed && err == nil && r.Trained.Config.Hash() == s.Config.Hash() && r.Result.Model == c.Model { // of an earlier part
			x.kept, x.of, x.restart = r, c, restart
			return nil
		}
		next = x.next()
		o.Out = next
	}
	var r *run.Run
	if info, err := train.ReadInfo(next); next != "" && err == nil && info.Config == s.Config.Hash() {
		r, err = run.Resume(ctx, next, run.ResumeOptions{Data: x.Data, Threads: x.Threads, Device: x.Device, Executor: x.Executor, Observer: x.Observer, OnDeviceSelected: x.OnDeviceSelected})
		if err != nil {
			return err
		}
	} else if r, err = s.Train(ctx, o); err != nil {
		return err
	}
	if next != "" {
		if err := checkpoint.Replace(x.Out, next); err != nil {
			return err
		}
		r.Dir = x.Out
	}
	x.kept, x.of, x.restart = r, c, restart
	return nil
}
