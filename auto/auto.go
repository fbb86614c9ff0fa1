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
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
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
		trained, x.inFile = earlier.Data.Checksum, earlier.FromConfig
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

// workers is how many trainings run side by side, a thread each.
func (x *chooser) workers() int {
	const large = 2_000_000 // edges and features, from which on one alone may fill the memory
	if x.base.Device != "cpu" || x.ds.Graph.NumEdges()+x.ds.X.NNZ() > large {
		return 1
	}
	if n := x.base.Threads; n > 0 {
		return n
	}
	return goruntime.GOMAXPROCS(0)
}

// outcome is what came of a training.
type outcome struct {
	score, seconds float64
	err            error
	ended          bool
}

// runAll runs trainings side by side. What counts of them is a beginning of the list: where the
// time is up for one, all is false, and those that come after it are forgotten.
func (x *chooser) runAll(ctx context.Context, todo []fit) (all bool, err error) {
	workers := min(x.workers(), len(todo))
	var mu sync.Mutex // guards what follows
	out := make([]outcome, len(todo))
	entered, stopped := 0, false
	enter := func() error { // what has ended, but for what comes after one that has not
		for ; entered < len(todo) && out[entered].ended; entered++ {
			if err := x.enter(todo[entered], &out[entered]); err != nil {
				stopped = true
				return err
			}
		}
		return nil
	}
	var group errgroup.Group
	group.SetLimit(workers)
	for i, f := range todo {
		group.Go(func() error {
			mu.Lock()
			if stopped || f.c.Failed != "" {
				out[i].ended = f.c.Failed != ""
				mu.Unlock()
				return nil
			}
			mu.Unlock()
			o := outcome{}
			begun := time.Now()
			ctx, cancel := x.limited(ctx, f.c, &mu)
			o.score, o.err = x.train(ctx, f, workers)
			o.seconds = time.Since(begun).Seconds()
			o.ended = o.err == nil || !run.IsInterrupted(ctx, o.err)
			mu.Lock()
			defer mu.Unlock()
			cancel()
			if out[i] = o; !o.ended {
				stopped = true
				return nil
			}
			return enter()
		})
	}
	if err := group.Wait(); err != nil {
		return false, err
	}
	if err := enter(); err != nil { // those of candidates that failed
		return false, err
	}
	if ctx.Err() != nil {
		return false, train.ErrInterrupted
	}
	return entered == len(todo), nil
}

// enter counts an outcome. The error of one that ends all is that of a fault that no other
// candidate would be spared.
func (x *chooser) enter(f fit, o *outcome) error {
	c := f.c
	if c.Failed != "" { // on an earlier resplit
		return nil
	}
	var diverged *train.NonFiniteError
	var tooLarge *budget.ExceededError
	switch {
	case o.err == nil && f.resplit < 0:
		c.Restarts = append(c.Restarts, rounded(o.score))
	case o.err == nil:
		c.Scores = append(c.Scores, rounded(o.score))
	case errors.As(o.err, &diverged) || errors.As(o.err, &tooLarge) || errors.Is(o.err, errNoAUC) || refused(o.err):
		c.Failed = o.err.Error()
	default:
		return fmt.Errorf("%s: %w", c.Name, o.err)
	}
	x.slowest = x.slowestWith(c, o.seconds)
	x.report.Trials++
	if x.Progress != nil {
		x.Progress(x.report.Trials, c)
	}
	return x.write()
}

var errNoAUC = errors.New("its probabilities are not finite, so they have no AUC")

// train trains a candidate on a resplit and returns its score there.
func (x *chooser) train(ctx context.Context, f fit, workers int) (float64, error) {
	split := data.Split{Train: x.pool.train, Val: x.pool.val}
	if f.resplit >= 0 {
		split = x.pool.resplit(x.draws.Sub("resplit").At(uint64(f.resplit)))
	}
	s, err := x.setup(f.c)
	if err != nil {
		return 0, err
	}
	s, err = s.On(x.pool.ds, &split, func(c *config.Config) {
		c.Train.Seed = x.seed + max(0, f.resplit)
		c.Train.Restart += f.restart
		if workers > 1 {
			c.Train.Threads = 1
		}
	})
	if err != nil {
		return 0, err
	}
	memory := x.Memory
	if memory == 0 {
		memory, _ = budget.Default()
	}
	r, err := s.Train(ctx, run.TrainOptions{Executor: x.Executor, Memory: memory / int64(workers), Evidence: &x.evidence})
	if err != nil {
		return 0, err
	}
	t := r.Result.Test
	if f.resplit < 0 {
		t = r.Result.Val
	}
	switch x.base.Select { // one measure for all, whatever keeps the epochs of a candidate
	case "macro_f1":
		return t.MacroF1, nil
	case "auc":
		if t.AUC == nil { // there are nodes of two classes
			return 0, errNoAUC
		}
		return *t.AUC, nil
	default:
		return t.Accuracy, nil
	}
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

// finish trains the winner, and judges refinement.
func (x *chooser) finish(ctx context.Context) (*Run, error) {
	winner, choice := x.upTo.choose(x.report.Candidates)
	if winner == nil {
		return nil, fmt.Errorf("no candidate could be trained; the first: %s", x.report.Candidates[0].Failed)
	}
	x.report.Status, x.report.Choice = "training", choice
	if x.Stage != nil {
		x.Stage("training " + winner.Name)
	}
	s, err := x.setup(winner)
	if err != nil {
		return nil, err
	}
	m, err := models.Lookup(winner.Model)
	if err != nil {
		return nil, err
	}
	transductive := m.Learner != nil && !m.Learner.Inductive
	encode := s.Module.Func("encode")
	places := s.Data.Structural || encode != nil && encode.Arg("x_struct") != nil && s.Config.Candidates.Structure != "raw"
	refused := s.Exportable()
	choice.NewNodes = refused == nil && !transductive && !places
	switch {
	case choice.NewNodes || x.Warn == nil:
	case transductive:
		x.Warn(fmt.Sprintf("%s cannot take new nodes: what it learns are the edges of this graph (it is transductive), and new nodes have none among them", winner.Name))
	case refused != nil:
		x.Warn(fmt.Sprintf("%s cannot take new nodes, and gsrc build refuses it: %v", winner.Name, refused))
	default:
		x.Warn(fmt.Sprintf("%s cannot take new nodes: it reads their places in this graph, which mean nothing in another", winner.Name))
	}
	if err := x.write(); err != nil {
		return nil, err
	}
	if err := x.keep(ctx, winner, choice.Restart); err != nil {
		return nil, err
	}
	if err := x.judge(ctx, winner); err != nil {
		return nil, err
	}
	x.report.Status = "done"
	if err := x.write(); err != nil {
		return nil, err
	}
	if x.Out != "" {
		if err := train.List(x.Out, File); err != nil {
			return nil, err
		}
	}
	return &Run{x.kept, x.report}, nil
}

// judge says what refinement brings to the winner, or if that leaves the graph as it is to the
// best candidate that does not.
func (x *chooser) judge(ctx context.Context, winner *Candidate) error {
	c := winner
	if c.Structure != refined {
		var in []*Candidate
		most := 1
		for _, c := range x.report.Candidates {
			switch n := len(c.Scores); {
			case c.Structure != refined || c.Failed != "" || n < most:
			case n > most:
				in, most = []*Candidate{c}, n
			default:
				in = append(in, c)
			}
		}
		if len(in) == 0 {
			return nil
		}
		c = ranked(in, most)[0]
	}
	if len(x.pool.judges) == 0 {
		return nil
	}
	if len(x.split.Test) == 0 { // the judges are validation nodes, by which the winner keeps its epoch
		x.judging = &data.Split{Train: x.pool.train, Val: x.pool.val, Test: x.pool.judges}
	}
	r := &Refinement{Candidate: c.Name}
	with, err := x.correct(ctx, c)
	if err != nil {
		return err
	}
	without, err := x.correct(ctx, c.twin())
	if refused(err) { // there is nothing to hold it against
		return nil
	}
	if err != nil {
		return err
	}
	var chosen []bool
	if points, half := against(with, without); c != winner && points > half {
		if chosen, err = x.correct(ctx, winner); err != nil {
			return err
		}
	}
	r.compare(with, without, chosen, winner)
	x.report.Refinement = r
	return nil
}

// correct trains a candidate on the given split, unless it is what was kept, and returns for each
// judge whether it is classified correctly. All that is compared begins once, whatever was the best of the winner's
// beginnings: of its twin there are no others.
func (x *chooser) correct(ctx context.Context, c *Candidate) ([]bool, error) {
	r := x.kept
	if x.of != c || x.restart != 0 || x.judging != nil {
		s, err := x.setup(c)
		if err != nil {
			return nil, err
		}
		if s, err = s.On(x.ds, x.judging, nil); err != nil {
			return nil, err
		}
		if r, err = s.Train(ctx, run.TrainOptions{Memory: x.Memory, Executor: x.Executor, Observer: x.Observer}); err != nil {
			return nil, err
		}
	}
	predicted := metrics.Argmax(r.Trained.Logits, x.ds.Classes)
	out := make([]bool, len(x.pool.judges))
	for i, v := range x.pool.judges {
		out[i] = predicted[v] == x.ds.Labels[v]
	}
	return out, nil
}
