package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// Task is what to train on what.
type Task struct {
	// Model is the model's name. Without a Module it must be one of the zoo.
	Model string
	// Module is the program to train; nil builds the zoo's model for the data.
	Module *ir.Module
	// Data or Graphs: one graph whose nodes are classified, or a collection of
	// graphs that are.
	Data   *data.Dataset
	Graphs *data.Collection
	// Split is the split to train on; nil takes Data's for the seed.
	Split *data.Split
}

// Options say how to run a task.
type Options struct {
	// Dir is the run directory; empty keeps the run in memory.
	Dir string
	// Resume goes on with the run in Dir. Force replaces it. Without either a
	// directory that has something in it is refused.
	Resume, Force bool
	// Observer is told about progress; nil is nobody.
	Observer Observer
	// Device runs the programs; nil is the CPU. A device with a memory of its own
	// must not be in use by anything else: its memory is the run's.
	Device runtime.Device
	// NewExecutor makes what runs the programs; nil is the arena executor.
	NewExecutor func(*runtime.Program) (runtime.Executor, error)
	// Trace, if set, records when operations ran; the arena executor only.
	Trace *runtime.Trace
	// Warn, if not nil, gets a sentence about the data that is no error and seldom
	// meant, before a new run begins: [data.Dataset.Warnings].
	Warn func(text string)
	// Memory is how many bytes the run may take: one whose forecast is above is refused
	// before it allocates. 0 is what the process may use; see data.LoadOptions.
	Memory int64
	// Version is the program's version, for run.json.
	Version string
}

// Observer is told how a run goes. Its methods are called on the training
// goroutine, between steps: they should return soon.
type Observer interface {
	Observe(Event)
}

// Event is the state of a run after a step.
type Event struct {
	Phase string // deepwalk, pretrain, train or fit
	// Step of Total steps of the phase are done.
	Step, Total int
	Loss        float64
	// ValAcc is the last validation accuracy in percent; NaN before the first.
	ValAcc float64
	// Resumed is true for the first event after a resumption.
	Resumed bool
}

// ErrInterrupted is the error of a run that ctx stopped. Its checkpoint is
// written, and Options.Resume goes on from there.
var ErrInterrupted = errors.New("interrupted")

// trainer is one run.
type trainer struct {
	ctx  context.Context
	task Task
	cfg  *config.Config
	opts Options

	data   subject
	split  data.Split
	module *ir.Module // as it was given
	prog   *ir.Module // compiled for training
	pool   *kernels.Pool
	device runtime.Device
	optim  *optim.Set

	inputs  inputs
	checked [1]*runtime.Buffer // by finite
	scored  []runtime.Scoring  // training and validation nodes, on a device of its own
	fns     map[string]*function
	classes int

	state   checkpoint.State
	best    *checkpoint.Edges // of the kept epoch, nil where nothing is refined
	edges   *edges            // nil where nothing is refined
	graphs  *graphsProcedure  // nil where nodes are classified
	dir     *checkpoint.Dir   // nil where the run stays in memory
	started time.Time
	before  time.Duration // of earlier parts of a resumed run
	resumed bool
}

// Train runs a task to its end. The error of a stopped run is [ErrInterrupted],
// of a run that diverged a [*NonFiniteError], of a directory that is taken an
// [*checkpoint.ExistsError].
func Train(ctx context.Context, task Task, cfg *config.Config, opts Options) (*Result, error) {
	t, err := newTrainer(ctx, task, cfg, opts)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if err := t.open(); err != nil {
		return nil, err
	}
	proc, err := t.procedure()
	if err != nil {
		return nil, err
	}
	if err := t.explainMemory(proc.run()); err != nil {
		if interrupted(ctx, err) {
			if err := t.checkpoint(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w in phase %s after step %d", ErrInterrupted, t.state.Phase, t.state.Step())
		}
		return nil, err
	}
	res, err := t.finish()
	return res, t.explainMemory(err)
}

func newTrainer(ctx context.Context, task Task, cfg *config.Config, opts Options) (*trainer, error) {
	ds, err := task.subject()
	if err != nil {
		return nil, err
	}
	if cfg == nil {
		return nil, errors.New("train: there is no configuration; config.Load gives one")
	}
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t := &trainer{ctx: ctx, task: task, cfg: cfg, opts: opts, fns: map[string]*function{}, data: ds, classes: ds.classes, started: time.Now(), device: opts.Device}
	if t.device == nil {
		t.device = runtime.CPU
	}
	if task.Split != nil {
		t.split = *task.Split
	} else {
		s, err := task.splitFor(t.seed())
		if err != nil {
			return nil, err
		}
		t.split = s
	}
	if err := checkSplit(t.split, &ds); err != nil {
		return nil, fmt.Errorf("train: %s: %w", ds.name, err)
	}
	if opts.Warn != nil && !opts.Resume {
		for _, w := range task.warnings(t.split) {
			opts.Warn(w)
		}
	}
	if cfg.Train.Select == "auc" && oneClass(t.data.labels, t.split.Val) {
		return nil, fmt.Errorf("train: %s: the validation nodes are of one class, so they have no AUC to select by; set train.select to something else", t.data.name)
	}
	m := task.Module
	if m == nil {
		var err error
		if task.Graphs != nil {
			m, err = GraphModule(task.Model, cfg, task.Graphs)
		} else {
			m, err = Module(task.Model, cfg, task.Data)
		}
		if err != nil {
			return nil, err
		}
	}
	if t.task.Model == "" {
		t.task.Model = m.Name
	}
	t.module = m
	if err := checkKind(m, ds.graphs > 0); err != nil {
		return nil, err
	}
	info := passes.DataInfo{}
	if task.Graphs != nil {
		info = GraphDataInfo(t.device, task.Graphs)
	} else {
		info = DataInfo(cfg, task.Data, t.split)
	}
	prog, err := compiler.Compile(m, compiler.Options{Target: compiler.Training, Data: info})
	if err != nil {
		return nil, err
	}
	t.prog = prog.Module
	if err := t.checkMemory(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t.optim, err = optim.New(t.prog, t.seed(), func(group string) float64 {
		if group == "encoder" {
			return cfg.Train.EncoderLR
		}
		return cfg.Train.LR
	})
	if err != nil {
		return nil, err
	}
	t.pool = kernels.NewPool(cfg.Train.Threads)
	if opts.Device == nil {
		t.device = runtime.NewCPU(t.pool)
	}
	if err := t.bindData(); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// DataInfo is what a compilation may know beforehand of the data and of the
// training steps.
func DataInfo(cfg *config.Config, ds *data.Dataset, split data.Split) passes.DataInfo {
	entries := len(ds.Graph.Edges)
	if !ds.Graph.Directed {
		entries *= 2
	}
	f := passes.DataInfo{Dims: map[string]int{"N": ds.Graph.N, "E": entries, "T": len(split.Train)}}
	if ds.X.IsSparse() {
		f.SparseArgs = []string{"x"}
	}
	switch c := cfg.Train; {
	case c.Sampler != "full": // steps have sub-graphs, of sizes of their own
		delete(f.Dims, "N")
	case c.Anchors == 0:
		f.Dims["B"] = ds.Graph.N
	default:
		f.Dims["B"] = min(c.Anchors, ds.Graph.N)
	}
	return f
}

// Module builds a model of the zoo for a configuration and the sizes of a data
// set.
func Module(model string, cfg *config.Config, ds *data.Dataset) (*ir.Module, error) {
	m, err := models.Lookup(model)
	if err != nil {
		return nil, err
	}
	o := cfg.Model
	o.Features, o.Classes, o.StructWidth = ds.X.Cols, ds.Classes, cfg.DeepWalk.Width
	return m.Program(o, false)
}

// checkKind refuses a program for nodes where graphs are classified, and the other
// way round.
func checkKind(m *ir.Module, graphs bool) error {
	f := m.Func("classify")
	switch {
	case f == nil:
		return nil // the procedure says what is missing
	case graphs && f.Arg("batch") == nil:
		return fmt.Errorf("train: module @%s classifies nodes, and the data are a collection of graphs: its @classify takes no batch", m.Name)
	case !graphs && f.Arg("batch") != nil:
		return fmt.Errorf("train: module @%s classifies graphs in batches, and the data are one graph", m.Name)
	}
	return nil
}

func checkSplit(s data.Split, d *subject) error {
	labels := d.labels
	for _, part := range []struct {
		name  string
		nodes []int32
	}{{"training", s.Train}, {"validation", s.Val}} {
		if len(part.nodes) == 0 {
			return fmt.Errorf("the split has no %s %ss; draw another with data.split", part.name, d.item())
		}
	}
	for _, v := range slices.Concat(s.Train, s.Val, s.Test) {
		if v < 0 || int(v) >= len(labels) || labels[v] < 0 {
			return fmt.Errorf("the split has %[1]s %d, which is not a labelled %[1]s", d.item(), v)
		}
	}
	return nil
}

// oneClass reports whether all nodes have the same label.
func oneClass(labels, nodes []int32) bool {
	return !slices.ContainsFunc(nodes, func(v int32) bool { return labels[v] != labels[nodes[0]] })
}

func (t *trainer) seed() uint64 { return uint64(t.cfg.Train.Seed) }

func (t *trainer) stream(name string) rng.Stream { return rng.New(t.seed(), name) }

func (t *trainer) close() {
	for _, f := range t.fns {
		f.Close()
	}
	if t.edges != nil {
		t.edges.close()
	}
	t.dir.Close()
	t.pool.Close()
	_ = t.device.ReleaseAll() // a device that fails here has failed before, with an error that was returned
}

// elapsed is the time that the run has taken, its earlier parts included.
func (t *trainer) elapsed() time.Duration { return t.before + time.Since(t.started) }

// procedure is a way to train a module.
type procedure interface {
	run() error
}

// procedure finds the one that the module's functions ask for.
func (t *trainer) procedure() (procedure, error) {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return t.prog.Func(n) == nil })
	}
	switch {
	case has("train", "classify") && t.task.Graphs != nil:
		return t.newGraphs(), nil
	case has("train", "classify"):
		return &supervised{t}, nil
	case has("fit", "refine", "classify"):
		raw := t.cfg.Candidates.Structure == "raw"
		make, need := func() (procedure, error) { return &refining{trainer: t, raw: raw}, nil }, []string{"encode", "probability"}
		if t.task.Graphs != nil {
			make, need = func() (procedure, error) { return t.newGraphRefining(raw) }, []string{"encode", "score"}
		}
		if raw {
			return make()
		}
		if t.cfg.Train.PretrainSteps > 0 {
			need = append(need, "pretrain")
		}
		if t.cfg.Train.JointEvery > 0 {
			need = append(need, "joint")
		}
		for _, n := range need {
			if !has(n) {
				return nil, fmt.Errorf("train: module @%s has no function @%s, which its configuration asks for", t.module.Name, n)
			}
		}
		return make()
	}
	var names []string
	for _, f := range t.module.Funcs {
		names = append(names, "@"+f.Name)
	}
	return nil, fmt.Errorf("train: module @%s cannot be trained: it needs the functions @train and @classify, or @fit, @refine and @classify; it has %s", t.module.Name, strings.Join(names, ", "))
}

// observe tells the observer about a step.
func (t *trainer) observe(step, total int, loss float64) {
	if t.opts.Observer == nil {
		return
	}
	valAcc := math.NaN()
	if v := t.state.ValAcc; v != nil {
		valAcc = *v
	}
	t.opts.Observer.Observe(Event{Phase: t.state.Phase, Step: step, Total: total, Loss: loss, ValAcc: valAcc, Resumed: t.resumed})
	t.resumed = false
}
