package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/internal/version"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/gorgonia"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Run is a finished run: a trained model and how good it is. Its methods may be called by several
// goroutines at the same time.
type Run struct {
	Dir     string // run directory; empty for a run in memory
	Result  *train.Result
	Trained *train.Model
	// Data is what it was trained on; nil after Open until something needs
	// it, or LoadData is called.
	Data *data.Dataset
	// Graphs is the same where it was trained on a collection of graphs.
	Graphs *data.Collection

	load     sync.Mutex  // guards task, Data and Graphs until they are there
	evidence sync.Mutex  // guards that of Trained.Refined until it is there
	task     task        // of Data or Graphs, nil as long as these are
	info     *train.Info // of a run that was opened

	output string          // data.LoadOptions.Output
	ctx    context.Context // of what the run is opened for; nil where nothing ends it
}

func newRun(dir string, res *train.Result, t task) *Run {
	r := &Run{Dir: dir, Result: res, Trained: res.Trained, task: t}
	r.Data, r.Graphs = t.data()
	return r
}

// Train trains a model. The error of a run that ctx stopped is
// train.ErrInterrupted; its checkpoint is in o.Out, and [Resume] goes on. With the error of a
// baseline it returns the run, too, which has ended.
func Train(ctx context.Context, o TrainOptions) (*Run, error) {
	s, err := Prepare(o)
	if err != nil {
		return nil, err
	}
	return s.Train(ctx, o)
}

// Train trains what was prepared. Of the options it reads Out, Force, Memory,
// Executor, Baselines, Observer, OnDeviceSelected, Warn, Trace and Evidence.
func (s *Setup) Train(ctx context.Context, o TrainOptions) (*Run, error) {
	return s.train(ctx, o, false)
}

func (s *Setup) train(ctx context.Context, o TrainOptions, resume bool) (*Run, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	d, err := OpenDevice(s.Config.Train.Device, s.Config.Train.TF32)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if d.Line != "" && o.OnDeviceSelected != nil {
		o.OnDeviceSelected(d.Line)
	}
	to := train.Options{Dir: o.Out, Resume: resume, Force: o.Force, Observer: o.Observer, Warn: o.Warn, Note: o.Note, Trace: o.Trace, Memory: o.Memory, Evidence: o.Evidence, Version: version.String(), Device: d.Device, Baselines: string(o.Baselines)}
	if o.Executor == TapeExecutor {
		to.NewExecutor = gorgonia.NewTapeExecutor
	}
	res, err := train.Train(ctx, train.Job{Model: s.Model, Module: s.Module, Task: s.task, Split: s.Split}, s.Config, to)
	if err != nil {
		return nil, err
	}
	r := newRun(o.Out, res, s.task)
	return r, s.compare(ctx, o.Baselines, r, to)
}

// TrainRuns trains with the seeds 0 to runs-1; on data with several fixed
// splits these are the splits' numbers. With o.Out each run has a directory
// below it, run-0 and so on. done, if not nil, is called after each; an error
// from it ends the runs. The results are those of the runs that were finished.
func TrainRuns(ctx context.Context, o TrainOptions, runs int, done func(*Run) error) ([]*train.Result, error) {
	if runs < 1 {
		return nil, fmt.Errorf("%d runs were asked for; 1 is the least", runs)
	}
	if o.Out != "" && !o.Force {
		if err := CheckEmpty(o.Out); err != nil {
			return nil, err
		}
	}
	s, err := Prepare(o)
	if err != nil {
		return nil, err
	}
	out := o.Out
	var results []*train.Result
	for i := range runs {
		if s, err = s.WithSeed(i); err != nil {
			return results, err
		}
		if out != "" {
			o.Out = filepath.Join(out, fmt.Sprintf("run-%d", i))
		}
		run, failed := s.Train(ctx, o)
		if run != nil && done != nil {
			if err := done(run); err != nil {
				return results, err
			}
		}
		if failed != nil {
			return results, fmt.Errorf("run %d: %w", i, failed)
		}
		// A run holds a model and its logits; only its figures are kept.
		run.Result.Trained = nil
		results = append(results, run.Result)
	}
	return results, nil
}

// CheckEmpty returns a *checkpoint.ExistsError if a folder has anything in it.
func CheckEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return &checkpoint.ExistsError{Dir: dir}
	}
	return nil
}

// WithSeed returns the set-up for another seed. Generated data are generated
// again, corrupted ones are read and corrupted again, others are shared.
func (s *Setup) WithSeed(seed int) (*Setup, error) {
	c := s.Config.Clone()
	if err := c.Set(fmt.Sprintf("train.seed=%d", seed)); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	t := s.task
	if info := t.Info(); info.Seeded && seed != s.Config.Train.Seed {
		var err error
		if t, err = loaded(data.LoadAny(info.Source, LoadOptions(c))); err != nil {
			return nil, err
		}
	}
	return newSetup(s.Model, t, c, s.Module), nil
}

// ResumeOptions say how a stopped run goes on.
type ResumeOptions struct {
	// Data is where the data are now, if not where they were.
	Data string
	// Threads to use; 0 leaves what the run's configuration says. Results do
	// not depend on it.
	Threads int
	// Device to go on with, as in TrainOptions; empty leaves what the run's
	// configuration says. It may be another than the run had.
	Device string
	// Executor to go on with, as in TrainOptions.
	Executor Executor
	// Baselines to train beside the model, as in TrainOptions; empty takes those that the run
	// began with.
	Baselines        Baselines
	OnDeviceSelected func(line string)
	Observer         train.Observer
	Trace            *runtime.Trace // records when operations ran; may be nil
}

// Resume goes on with the run in a directory from its last checkpoint, and ends
// as if it had never been stopped. A run that has ended is evaluated again.
func Resume(ctx context.Context, dir string, o ResumeOptions) (*Run, error) {
	info, err := train.ReadInfo(dir)
	if err = cmp.Or(err, ort.CheckThreads(o.Threads)); err != nil {
		return nil, err
	}
	c, err := config.Read(filepath.Join(dir, "config.toml"))
	if err != nil {
		return nil, err
	}
	if c.Hash() != info.Config {
		return nil, fmt.Errorf("%s: config.toml is not the configuration that run.json names: it was damaged, or changed by hand since; restore it, or start anew with --force", dir)
	}
	for _, name := range []string{"module.gsr", "auto.json"} {
		if err := info.CheckFile(dir, name); err != nil {
			return nil, err
		}
	}
	if o.Threads > 0 {
		if err := c.Set(fmt.Sprintf("train.threads=%d", o.Threads)); err != nil {
			return nil, err
		}
	}
	if o.Device != "" {
		if err := c.Set("train.device=" + o.Device); err != nil {
			return nil, &OptionError{err}
		}
		if err := c.Validate(); err != nil {
			return nil, err
		}
	}
	m, err := models.Read(filepath.Join(dir, "module.gsr"))
	if err != nil {
		return nil, err
	}
	t, err := trainingData(info, c, o.Data, "")
	if err != nil {
		return nil, err
	}
	if o.Baselines == "" {
		o.Baselines = Baselines(info.Baselines)
	}
	return newSetup(info.Model, t, c, m).train(ctx, TrainOptions{Out: dir, Executor: o.Executor, Baselines: o.Baselines, OnDeviceSelected: o.OnDeviceSelected, Observer: o.Observer, Trace: o.Trace}, true)
}

// Open reads a finished run from its directory. A file that is damaged is a
// *checkpoint.DamageError, or an error that names it.
func Open(dir string) (*Run, error) {
	trained, info, err := train.Load(dir)
	if err != nil {
		return nil, err
	}
	return &Run{Dir: dir, Result: info.Result, Trained: trained, info: info}, nil
}

// CheckDirected returns an error where --directed is given for a run that was trained without it.
func (r *Run) CheckDirected(given bool) error {
	if given && !r.Trained.Config.Data.Directed {
		return infer.DirectedError(r.Dir)
	}
	return nil
}

// RefuseUndirected returns an error where --directed=false is given for a run or an export that was trained on
// a directed graph. What else is wrong with one is said where it is opened.
func RefuseUndirected(dir string) error {
	if isExport(dir) {
		if !infer.Directed(dir) {
			return nil
		}
	} else if c, err := config.Read(filepath.Join(dir, "config.toml")); err != nil || !c.Data.Directed {
		return nil
	}
	return fmt.Errorf("%s was trained on edges with a direction, and --directed=false was given: leave it out, or train without --directed", dir)
}

// openWriting opens a run of which a file is made, data.LoadOptions.Output.
func openWriting(dir string, o *data.LoadOptions) (*Run, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if err := r.CheckDirected(o.Directed); err != nil {
		return nil, err
	}
	r.output = o.Output
	for _, name := range append(slices.Collect(maps.Keys(r.info.Files)), "run.json") {
		if err := o.Spare(filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Unchecked says in a line what could not be checked when the run was opened, because
// an earlier version of gsrc wrote it without checksums; it is empty where all was.
func (r *Run) Unchecked() string {
	if r.info == nil {
		return ""
	}
	return r.info.Unchecked()
}

// LoadData reads the data that the run was trained on into r.Data or r.Graphs, if
// it has not got them yet. path says where they are now; empty is where they were. Data that
// are not the same are an error.
func (r *Run) LoadData(path string) error {
	r.load.Lock()
	defer r.load.Unlock()
	if r.task != nil {
		return nil
	}
	t, err := trainingData(r.info, r.Trained.Config, path, r.output)
	if err != nil {
		return err
	}
	r.task = t
	r.Data, r.Graphs = t.data()
	return nil
}

// loadWhole is LoadData for a model that whole keeps from being used on other graphs, which is said
// where path has another.
func (r *Run) loadWhole(path string, whole error) error {
	err := r.LoadData(path)
	if other, ok := errors.AsType[*otherDataError](err); ok && path != "" {
		if r.OfGraphs() {
			return fmt.Errorf("%s: %w", other.what(), r.takesExport("refine", path))
		}
		return fmt.Errorf("%s, and the run takes that graph alone: %w", other.what(), whole)
	}
	return err
}

// takesExport says what a run of a model of whole graphs is used through.
func (r *Run) takesExport(command, path string) error {
	does := map[string]string{"predict": "classifies whole graphs", "refine": "refines other graphs"}[command]
	return fmt.Errorf("%s in %s %s, which takes an export: make one with gsrc build %s --out DIR, then gsrc %s DIR --data %s", r.Trained.Model, r.Dir, does, shell.Quote(r.Dir), command, shell.Quote(path))
}

// otherDataError says that data are not those that a run was trained on.
type otherDataError struct{ path, format, have, want string }

func (e *otherDataError) what() string {
	return fmt.Sprintf("%s is not what the run was trained on (its checksum is %.12s…, the run's is %.12s…)", e.path, e.have, e.want)
}

func (e *otherDataError) Error() string {
	hint := ""
	if e.format == "folder" {
		hint = ", with the same " + data.SchemaFile + " where there was one"
	}
	return fmt.Sprintf("%s; say where the same data are with --data%s", e.what(), hint)
}

// trainingData reads the data of a run again and checks that they are the same.
func trainingData(info *train.Info, c *config.Config, given, output string) (task, error) {
	path := cmp.Or(given, info.Data.Source)
	o := LoadOptions(c)
	o.Output, o.Trained = output, info.BaseChecksum()
	if o.Roles, o.Merge, o.Ignored = tables(info, c); store.Is(path) { // it keeps how its tables were read
		o.Tables = data.Tables{}
	}
	if o.Columns = info.Data.Columns; o.Columns == nil && !o.NodeFeatures.Structural() { // also where columns were not prepared yet
		o.NoPrepare = true
	}
	t, err := loaded(data.LoadAny(path, o))
	if _, gone := os.Stat(path); err != nil && given == "" && errors.Is(gone, fs.ErrNotExist) {
		return nil, fmt.Errorf("the data that the run was trained on were at %s, where nothing is now: say where they are with --data PATH", path)
	}
	if err != nil {
		return nil, fmt.Errorf("the run's data: %w", err)
	}
	if checksum := t.Info().Checksum; checksum != info.Data.Checksum {
		return nil, &otherDataError{path, info.Data.Format, checksum, info.Data.Checksum}
	}
	if ds, _ := t.data(); ds != nil && ds.Structural {
		ds.PlacesAs(info.Data.Features)
		return loaded(ds, nil, nil)
	}
	return t, nil
}
