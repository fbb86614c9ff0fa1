package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
	"github.com/gsrc-dev/gsrc/train/optim"
)

// Job is a model to train for a task.
type Job struct {
	// Model is the model's name. Without a Module it must be one of the zoo.
	Model string
	// Module is the program to train; nil builds the zoo's model for the data.
	Module *ir.Module
	Task   Task
	// Split is the split to train on; nil takes the task's for the seed.
	Split *data.Split
}

// Options say how to run a task.
type Options struct {
	// Dir is the run directory; empty keeps the run in memory.
	Dir string
	// Resume goes on with the run in Dir. Force replaces it. Without either a
	// directory that has something in it is refused.
	Resume, Force bool
	// Observer receives progress; may be nil.
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
	// Note, if not nil, gets a sentence on how the run goes about its work, where that is not as
	// usual.
	Note func(text string)
	// Memory is how many bytes the run may take: one whose forecast is above is refused
	// before it allocates. 0 is what the process may use; see data.LoadOptions.
	Memory int64
	// Without are passes to leave out of the compilation.
	Without []string
	// Version is the program's version, for run.json.
	Version string
	// Baselines says in run.json what is trained beside the model, for what resumes the run.
	Baselines string
	// Evidence, if not nil, is shared by runs on one graph.
	Evidence *FittedEvidence
}

// Observer receives the progress of a run. Its methods are called on the training
// goroutine, between steps: they should return soon.
type Observer interface {
	Observe(Event)
}

// Event is the state of a run after a step.
type Event struct {
	Phase string // deepwalk, evidence, pretrain, train or fit
	// Step of Total steps of the phase are done; of evidence, which large graphs alone tell of, edges that
	// were judged, in all passes over them.
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
	job  Job
	cfg  *config.Config
	opts Options

	info      TaskInfo
	split     data.Split
	splitName string
	module    *ir.Module // as it was given
	prog      *program   // compiled for training
	pool      *kernels.Pool
	device    runtime.Device
	optim     *optim.Set
	steps     steps
	edges     *edges // nil where nothing is refined
	chunk     int    // bytes for the values of nodes that are evaluated together; 0 is all nodes

	state   checkpoint.State
	best    *checkpoint.Edges // of the kept epoch, nil where nothing is refined
	dir     *checkpoint.Dir   // nil where the run stays in memory
	started time.Time
	before  time.Duration // of earlier parts of a resumed run
	resumed bool

	judgedOnce bool // probabilities have been checked
}

// Train trains a model. The error of a stopped run is [ErrInterrupted],
// of a run that diverged a [*NonFiniteError], of a directory that is taken an
// [*checkpoint.ExistsError], of a model that the data or options do not suit a [*SetupError].
func Train(ctx context.Context, job Job, cfg *config.Config, opts Options) (res *Result, err error) {
	err = store.Guard(func() error { // the data may lie in mapped files
		res, err = train(ctx, job, cfg, opts)
		return err
	})
	return res, err
}

func train(ctx context.Context, job Job, cfg *config.Config, opts Options) (*Result, error) {
	t, err := newTrainer(ctx, job, cfg, opts)
	if err != nil {
		return nil, err
	}
	defer t.close()
	run, err := t.procedure()
	if err != nil {
		return nil, &SetupError{err}
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	if err := t.explainMemory(run()); err != nil {
		if interrupted(ctx, err) {
			if err := t.checkpoint(); err != nil {
				return nil, err
			}
			if t.state.Phase == "" {
				return nil, fmt.Errorf("%w before the first step", ErrInterrupted)
			}
			return nil, fmt.Errorf("%w in phase %s after step %d", ErrInterrupted, t.state.Phase, t.state.Step())
		}
		return nil, err
	}
	res, err := t.finish()
	if interrupted(ctx, err) { // the checkpoint is that of the last epoch, and parameters are those of the best one
		return nil, fmt.Errorf("%w in the last evaluation", ErrInterrupted)
	}
	return res, t.explainMemory(err)
}

func newTrainer(ctx context.Context, job Job, cfg *config.Config, opts Options) (*trainer, error) {
	t, err := compiled(ctx, job, cfg, opts)
	if err != nil {
		return nil, &SetupError{err}
	}
	if err := t.checkMemory(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t.optim, err = optim.New(t.prog.Module, beginning(cfg.Train), func(group string) float64 {
		if group == "encoder" {
			return cfg.Train.EncoderLR
		}
		return cfg.Train.LR
	})
	if err != nil {
		return nil, err
	}
	if cfg.Train.SelfTraining > 0 && (unsupervised(t.module) || len(t.optim.Params) == 0) {
		return nil, &SetupError{errors.New("train: train.self_training adds labels to learn from, and this model learns from none; leave it 0")}
	}
	t.pool = kernels.NewPool(cfg.Train.Threads)
	if opts.Device == nil {
		t.device = runtime.NewCPU(t.pool)
	}
	t.prog.params = t.optim
	t.prog.options = runtime.Options{Device: t.device, NewExecutor: opts.NewExecutor, Pool: t.pool, Seed: rng.New(beginning(cfg.Train), "train"), Trace: opts.Trace}
	if err = t.prog.runnable(); err != nil {
		err = &SetupError{err}
	} else {
		t.steps, err = job.Task.start(t)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// PredictMemory forecasts the memory of a run within a limit (0: none), of which it runs nothing:
// on Options.Device, or the CPU.
func PredictMemory(job Job, cfg *config.Config, opts Options, limit int64) (*Forecast, error) {
	t, err := compiled(context.Background(), job, cfg, opts)
	if err != nil {
		return nil, err
	}
	return job.Task.Forecast(opts.Device, t.prog.Module, cfg, t.split, limit)
}

// compiled makes a trainer that has its program, and nothing else yet.
func compiled(ctx context.Context, job Job, cfg *config.Config, opts Options) (*trainer, error) {
	if job.Task == nil {
		return nil, errors.New("train: there is no task; train.Nodes and train.Graphs give one")
	}
	if cfg == nil {
		return nil, errors.New("train: there is no configuration; config.Load gives one")
	}
	if err := errors.Join(job.Task.Check(), cfg.Validate()); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	t := &trainer{ctx: ctx, job: job, cfg: cfg, opts: opts, info: job.Task.Info(), started: time.Now(), device: cmp.Or(opts.Device, runtime.CPU)}
	if err := buildProgram(t); err != nil {
		return nil, err
	}
	if err := t.chooseSplit(); err != nil {
		return nil, err
	}
	if opts.Warn != nil && !opts.Resume {
		for _, w := range job.Task.Warnings(t.split) {
			opts.Warn(w)
		}
	}
	if err := t.compile(); err != nil {
		return nil, err
	}
	if opts.Warn != nil && !opts.Resume && t.info.Directed {
		for _, w := range directions(t) {
			opts.Warn(w)
		}
	}
	return t, nil
}

// chooseSplit takes the split of the job, of the run that is resumed, or the task's for the
// seed; a program without a classifier has none.
func (t *trainer) chooseSplit() (err error) {
	if unsupervised(t.module) {
		t.splitName = "none"
		return nil
	}
	if s := t.job.Split; s != nil {
		t.split, t.splitName = *s, "given"
	} else if info, err := ReadInfo(t.opts.Dir); t.opts.Resume && err == nil { // open reports the error
		t.splitName = info.Split
		if t.split, err = info.readSplit(t.opts.Dir); err != nil {
			return err
		}
	} else if t.split, t.splitName, err = t.job.Task.Split(t.seed()); err != nil {
		return err
	}
	if takes(t.module, models.OuterIdx) && t.split.Outer == nil {
		if len(t.split.Val) < 2 {
			return fmt.Errorf("train: %s: %s learns from half of the validation %ss and chooses by the others, and the split has %d; draw another with data.split", t.info.Name, t.job.Model, t.info.Item, len(t.split.Val))
		}
		t.split = t.split.Halved()
	}
	if err := checkSplit(t.split, &t.info); err != nil {
		return fmt.Errorf("train: %s: %w", t.info.Name, err)
	}
	labels := t.info.Labels
	others := func(v int32) bool { return labels[v] != labels[t.split.Val[0]] }
	if t.cfg.Train.Select == "auc" && !slices.ContainsFunc(t.split.Val, others) {
		return fmt.Errorf("train: %s: the validation nodes are of one class, so they have no AUC to select by; set train.select to something else", t.info.Name)
	}
	return nil
}

// buildProgram makes the program that is trained.
func buildProgram(t *trainer) (err error) {
	m := t.job.Module
	if m == nil {
		if m, err = t.job.Task.Module(t.job.Model, t.cfg); err != nil {
			return err
		}
	}
	t.job.Model = cmp.Or(t.job.Model, m.Name)
	t.module = m
	for _, f := range m.Funcs {
		if setup := f.Attrs.Str(passes.Setup); setup != "" {
			return ir.Errorf(f, "@%s reads what @%s computes: the program was printed after the pass hoist, and training takes one from before it; print it with --print-after=input, or after a pass before hoist", f.Name, setup)
		}
		for _, p := range m.Params { // values are bound by name
			if f.Arg(p.Name) != nil {
				return ir.Errorf(p, "the parameter $%s has the name of an argument of @%s; give it another", p.Name, f.Name)
			}
		}
	}
	for _, p := range m.Params {
		if p.Place != nil && !t.opts.Resume && !slices.ContainsFunc(m.Funcs, func(f *ir.Func) bool { return f.Uses()[p] > 0 }) {
			return ir.Errorf(p, "no function reads the parameter $%s: remove it, or read it", p.Name)
		}
	}
	return errors.Join(t.job.Task.check(m), checkSizes(m, t.job.Model, &t.info), checkDraws(m))
}

// checkDraws returns an error if what predicts draws random numbers, itself or in a function that an
// operation of it runs: each prediction would have the same, whatever they are.
func checkDraws(m *ir.Module) error {
	var check func(f *ir.Func) error
	check = func(f *ir.Func) error {
		for _, op := range f.Body {
			if op.Draws() {
				return ir.Errorf(op, "@%s draws random numbers (%s), and is part of what predicts; only functions that learn, such as @train and @fit, can", f.Name, op.Name())
			}
			for _, spec := range op.Def.Attrs {
				if spec.Kind == ir.FuncAttr {
					if err := check(m.Func(op.FuncRef(spec.Name))); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	for _, name := range []string{"similar", "rows", "encode", models.EncodeJudging, "score", "probability", "refine", "classify"} {
		if f := m.Func(name); f != nil {
			if err := check(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkSizes returns an error if a program was written for other numbers of features or classes than
// the data's.
func checkSizes(m *ir.Module, model string, d *TaskInfo) error {
	check := func(f *ir.Func, v *ir.Value, what string, want int) error {
		if v == nil || v.Type.Rank() != 2 {
			return nil
		}
		if n, fixed := v.Type.Dims[1].Size(); fixed && n != want {
			return fmt.Errorf("train: %s is written for %d %s (@%s has %%%s: %s), and the data have %d; where a program has the names features and classes in place of numbers it fits any data", model, n, what, f.Name, v.Name, v.Type, want)
		}
		return nil
	}
	for _, name := range []string{"train", "pretrain", "fit", "classify"} {
		f := m.Func(name)
		if f == nil {
			continue
		}
		if err := errors.Join(check(f, f.Arg("x"), "features", d.Features.Cols), check(f, f.Result("logits"), "classes", d.Classes)); err != nil {
			return err
		}
	}
	return nil
}

// checkSignatures returns an error if @classify of a program does not give logits and
// probabilities of what is classified, of which there are as many as a symbol says, or if
// a function takes what training does not give. In programs that refine that is what other
// functions give, too, of whatever type.
func checkSignatures(m *ir.Module, items ir.Dim, args map[string]ir.Type) error {
	learns := m.Func("train") == nil // edges, for which functions give one another values
	if learns {
		args = maps.Clone(args)
		for _, name := range []string{"c", "p", "old", "evidence", "anchors", "x_struct", "lo", "hi"} {
			args[name] = ir.Type{}
		}
		for _, f := range m.Funcs {
			for _, r := range f.Results {
				args[strings.TrimPrefix(r.Name, models.NextPrefix)] = ir.Type{}
			}
		}
	}
	for _, f := range m.Funcs {
		if _, runs := turns[f.Name]; f.Name != "train" && f.Name != "pretrain" && !runs {
			continue
		}
		stands := map[ir.Dim]ir.Dim{} // the sizes that symbols of f stand for
		fits := func(have, want ir.Type) bool {
			if have.DType != want.DType || have.IsGraph() != want.IsGraph() || len(have.Dims) != len(want.Dims) {
				return false
			}
			for i, d := range have.Dims {
				if _, fixed := d.Size(); !fixed && cmp.Or(stands[d], want.Dims[i]) != want.Dims[i] {
					return false
				} else if !fixed {
					stands[d] = want.Dims[i]
				}
			}
			return true
		}
		for _, a := range f.Args {
			switch want, ok := args[a.Name]; {
			case !ok:
				return ir.Errorf(a, "training gives @%s no %%%s; it gives %%%s", f.Name, a.Name, strings.Join(slices.Sorted(maps.Keys(args)), ", %"))
			case !learns && !fits(a.Type, want):
				return ir.Errorf(a, "@%s takes %%%s: %s, and training gives %s", f.Name, a.Name, a.Type, want)
			}
		}
		for _, name := range []string{"logits", "probabilities"} {
			want := ir.T(ir.F32, items, "C")
			switch v := f.Result(name); {
			case f.Name != "classify":
			case v == nil:
				return ir.Errorf(f, "@classify has no result %s: %s, which training reads", name, want)
			case !fits(v.Type, want):
				return ir.Errorf(f, "@classify has the result %s: %s, want %s", name, v.Type, want)
			}
		}
	}
	return nil
}

// checkProbabilities returns an error if the probabilities that a program of the user's gives are none,
// or are largest at another class than its logits. What is not finite is told by the logits.
func (t *trainer) checkProbabilities(logits, probs *runtime.Buffer) error {
	t.judgedOnce = true
	if _, err := models.Lookup(t.job.Model); err == nil || probs == nil {
		return nil
	}
	f := t.module.Func("classify")
	for i, row := 0, 0; i < len(probs.F32); i, row = i+t.info.Classes, row+1 {
		p, l, sum := probs.F32[i:][:t.info.Classes], logits.F32[i:][:t.info.Classes], 0.
		for _, v := range p {
			if v < -1e-6 {
				return ir.Errorf(f, "@classify has the result probabilities, of which row %d holds %g: each must be 0 or more, and the sum of a row 1; write the softmax of the logits", row, v)
			}
			sum += float64(v)
		}
		if math.Abs(sum-1) > 1e-3 {
			return ir.Errorf(f, "@classify has the result probabilities, of which row %d has the sum %.4g: it must be 1, and none below 0; write the softmax of the logits", row, sum)
		}
		const near = 1e-4 // what rounding may turn round
		if a, b := kernels.Top(l), kernels.Top(p); p[b]-p[a] > near && l[a]-l[b] > near*max(1, l[a], -l[a]) {
			return ir.Errorf(f, "@classify has logits and probabilities that disagree: row %d has its largest logit at class %d and its largest probability at class %d; accuracy is counted by logits, and answers are given by probabilities: write the softmax of the logits, or give the log of the probabilities as logits", row, a, b)
		}
	}
	return nil
}

// refines reports whether a program learns or samples a graph of candidates.
func refines(m *ir.Module) bool { return m.Func("refine") != nil && m.Func("train") == nil }

// unsupervised reports whether the program trains an encoder and refines by it, and classifies
// nothing.
func unsupervised(m *ir.Module) bool {
	return refines(m) && m.Func("classify") == nil && m.Func("fit") == nil
}

// compile compiles the program.
func (t *trainer) compile() error {
	prog, err := compiler.Compile(t.module, compiler.Options{Target: compiler.Training, Funcs: trained(t.module), Without: t.opts.Without, Data: t.job.Task.DataInfo(t.device, t.cfg, t.split)})
	if err != nil {
		return err
	}
	t.prog = &program{Module: prog.Module, fns: map[string]*function{}, inputs: map[string]*runtime.Buffer{"ramp": runtime.Scalar(1)}}
	if refines(t.module) {
		t.edges = &edges{fixed: t.cfg.Candidates.Structure == "raw"}
	}
	return t.job.Task.compileSteps(t)
}

// trained returns the functions that training may run, nil for all: without those that judge
// the edges of another graph, where evidence judges the edges of this one.
func trained(m *ir.Module) (names []string) {
	if m.Func(models.EncodeJudging) == nil {
		return nil
	}
	for _, f := range m.Funcs {
		if f.Name != "score" && f.Name != models.EncodeJudging {
			names = append(names, f.Name)
		}
	}
	return names
}

func checkSplit(s data.Split, d *TaskInfo) error {
	labels := d.Labels
	for _, part := range []struct {
		name  string
		nodes []int32
	}{{"training", s.Train}, {"validation", s.Val}} {
		if len(part.nodes) == 0 {
			return fmt.Errorf("the split has no %s %ss; draw another with data.split", part.name, d.Item)
		}
	}
	for _, v := range slices.Concat(s.Train, s.Val, s.Test, s.Outer) {
		if v < 0 || int(v) >= len(labels) || labels[v] < 0 {
			return fmt.Errorf("the split has %[1]s %d, which is not a labelled %[1]s", d.Item, v)
		}
	}
	return nil
}

func (t *trainer) seed() uint64 { return uint64(t.cfg.Train.Seed) }

// beginning is the seed of initial parameters and of what steps draw.
func beginning(c config.Train) uint64 {
	if c.Restart > 0 {
		return rng.New(uint64(c.Seed), "restart").Uint64(uint64(c.Restart))
	}
	return uint64(c.Seed)
}

func (t *trainer) stream(name string) rng.Stream { return rng.New(t.seed(), name) }

func (t *trainer) close() {
	if t.steps != nil {
		t.steps.release()
	}
	t.prog.close()
	t.dir.Close()
	t.pool.Close()
	_ = t.device.ReleaseAll() // a device that fails here has failed before, with an error that was returned
}

// elapsed is the time that the run has taken, its earlier parts included.
func (t *trainer) elapsed() time.Duration { return t.before + time.Since(t.started) }

// procedure returns what trains the program: the procedure that its functions ask for, of which
// none lacks that the configuration asks for.
func (t *trainer) procedure() (func() error, error) {
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return t.prog.Func(n) == nil })
	}
	if has("train", "classify") {
		return t.supervise, nil
	}
	r, ok := t.steps.(refiner)
	if ok && unsupervised(t.module) {
		return algorithm1{t, r}.unsupervised, nil
	}
	if ok && has("fit", "refine", "classify") {
		return algorithm1{t, r}.run, t.checkPhases(has)
	}
	var names []string
	for _, f := range t.module.Funcs {
		names = append(names, "@"+f.Name)
	}
	return nil, fmt.Errorf("train: module @%s cannot be trained: it needs the functions @train and @classify, or @fit, @refine and @classify; it has %s", t.module.Name, strings.Join(names, ", "))
}

// checkPhases returns an error if the configuration asks for a phase of [algorithm1] that the
// program, which has such functions, lacks.
func (t *trainer) checkPhases(has func(...string) bool) error {
	if t.edges.fixed {
		if models.ClassifiesEmbedding(t.module) {
			return fmt.Errorf("train: candidates.structure=raw leaves the encoder out, whose embedding the classifier of %s reads: take refined, or a model that classifies by the features, such as gcn", t.job.Model)
		}
		return nil
	}
	for _, n := range t.job.Task.refining() {
		if !has(n) && !(n == "encode" && has("similar")) { // rows that are searched once do without
			return fmt.Errorf("train: %s learns edges, for which its program needs a function @%s: add one, or take candidates.structure=raw", t.job.Model, n)
		}
	}
	for _, x := range []struct {
		option, function string
		value            int
	}{{"pretrain_steps", "pretrain", t.cfg.Train.PretrainSteps}, {"joint_every", "joint", t.cfg.Train.JointEvery}} {
		if x.value > 0 && !has(x.function) {
			return fmt.Errorf("train: train.%s=%d asks for steps that %s has none of (its program has no function @%s): set it to 0", x.option, x.value, t.job.Model, x.function)
		}
	}
	return nil
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

// interrupted reports whether an error is that of the stopped context.
func interrupted(ctx context.Context, err error) bool {
	return err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
}
