// Package run holds runs from their options to their export: it prepares data,
// configuration and program, trains, resumes, imports weights, and builds exports.
package run

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda"
	"github.com/gsrc-dev/gsrc/train"
)

// TrainOptions say what to train on what. Model and Data are required.
type TrainOptions struct {
	Model string // a model's name, or a .gsr file
	Data  string // a path or a name that data.Load reads, or "synthetic"
	Out   string // folder of the run; empty keeps the run in memory
	Force bool   // replace a run in Out, which is refused otherwise

	Config string   // a TOML file of options; may be empty
	Set    []string // single options as key=value; they override Config
	// Seed of every random stream, of the split where one is drawn, and which
	// of several fixed splits is taken. 0 leaves what the configuration says.
	Seed int
	// Threads to use; 0 leaves what the configuration says, which is one for
	// each processor. Results do not depend on it.
	Threads int
	// Device is cpu, cuda, cuda:1 and so on, or auto: a GPU where there is one.
	// Empty leaves what the configuration says, which is cpu. TF32 lets a GPU's
	// matrix products round to TF32.
	Device string
	TF32   bool
	// Executor runs the programs: [ArenaExecutor] if empty. Results do not depend on it.
	Executor Executor
	// Memory is how many bytes reading the data and training may take; what would take
	// more is refused before it is allocated. 0 is what the process may use; see
	// data.LoadOptions.
	Memory int64
	// OnDeviceSelected, if set, is called with a line that says what a run runs on, where
	// that is a GPU or was to be found out.
	OnDeviceSelected func(line string)
	// Warn, if set, is called with a sentence for each thing in the data that is no
	// error and seldom meant, such as a class without a training node.
	Warn func(text string)
	// Note, if set, is called with a sentence for each thing that was guessed or left out
	// in reading the data.
	Note func(text string)
	// Evidence, if set, is shared by trainings on one graph, for which edges are judged once.
	Evidence *train.FittedEvidence
	// Baselines to train beside the model; none if empty.
	Baselines Baselines
	Observer  train.Observer // receives progress; may be nil
	Trace     *runtime.Trace // records when operations ran; may be nil
	// Cache shares data between runs; nil reads them again.
	Cache *data.Cache

	load loadConfig // as the data ask for it; nil before they are known
}

// Executor names what runs a compiled program on the CPU.
type Executor string

const (
	// ArenaExecutor plans memory and allocates nothing after the first step: the default.
	ArenaExecutor Executor = "arena"
	// TapeExecutor is gorgonia's TapeMachine, an independent reference: it gives the
	// same bits in more time and memory.
	TapeExecutor Executor = "tape"
)

// ParseExecutor reads the name of an executor: arena, which was called planned, or tape.
// The empty string is [ArenaExecutor].
func ParseExecutor(s string) (Executor, error) {
	switch s {
	case "", "arena", "planned":
		return ArenaExecutor, nil
	case "tape":
		return TapeExecutor, nil
	}
	return "", fmt.Errorf("no executor %q: choose arena or tape", s)
}

// Setup is what training and compilation start from: data, configuration and
// the program that both decide.
type Setup struct {
	Model string
	// Data or Graphs: one graph whose nodes are classified, or a collection of
	// graphs that are.
	Data   *data.Dataset
	Graphs *data.Collection
	Config *config.Config
	Module *ir.Module
	// Split to train on; nil is the data's for the seed.
	Split *data.Split

	task task
}

func newSetup(model string, t task, c *config.Config, m *ir.Module) *Setup {
	s := &Setup{Model: model, Config: c, Module: m, task: t}
	s.Data, s.Graphs = t.data()
	return s
}

// DataName returns the short name of the data.
func (s *Setup) DataName() string { return s.task.Info().Name }

// DataChecksum returns the SHA-256 over the files of the data, in hexadecimal.
func (s *Setup) DataChecksum() string { return s.task.Info().Checksum }

// Prepare reads the data, resolves the configuration for it and builds the
// program, which trains nothing yet. All that is wrong with the options shows
// here.
func Prepare(o TrainOptions) (*Setup, error) {
	if err := checkOptions(o); err != nil {
		return nil, err
	}
	model, err := models.Open(o.Model)
	if err != nil {
		return nil, err
	}
	// Faults of the options show before large data are read. Which data set's
	// defaults apply is known only afterwards.
	name := ""
	if o.Data == data.Synthetic {
		name = data.Synthetic
	}
	defaults := model.Name
	early, err := o.configure(defaults, name)
	if err != nil {
		return nil, err
	}
	read := LoadOptions(early)
	read.MaxBytes = o.Memory
	t, err := loaded(o.Cache.LoadAny(o.Data, read))
	if err != nil {
		return nil, err
	}
	o.load = t.defaults()
	c, err := o.configure(defaults, datasetOf(t.Info()))
	if err != nil {
		return nil, err
	}
	again := LoadOptions(c)
	again.MaxBytes = o.Memory
	if !reflect.DeepEqual(again, read) { // the data set's defaults say otherwise
		if t, err = loaded(o.Cache.LoadAny(o.Data, again)); err != nil {
			return nil, err
		}
	}
	m, err := t.Module(o.Model, c)
	if program, _ := model.IsProgram(); err == nil && !program {
		m, err = o.guess(t, m, defaults, c)
	}
	if err != nil {
		return nil, err
	}
	s := newSetup(o.Model, t, c, m)
	if s.Data != nil && o.Note != nil {
		for _, text := range s.Data.Notes {
			o.Note(text)
		}
	}
	if name := s.DataName(); o.Note != nil && datasetOf(t.Info()) == "" && config.Tuned(defaults, name) {
		o.Note(fmt.Sprintf("the data are called %s, and by their numbers of nodes, features and classes they are not the data set of that name: its defaults are not taken", name))
	}
	return s, s.warnUnread(o.Warn)
}

// datasetOf is the name by which data have defaults of their own: empty where they only have the
// name of a data set that does.
func datasetOf(info train.TaskInfo) string {
	is := config.Size{Graphs: info.Graphs, Nodes: info.Nodes, Classes: info.Classes}
	want, sized := config.Sizes[info.Name]
	if is.Features = want.Features; want.Features > 0 && !info.Structural {
		is.Features = info.About.Features
	}
	generated := info.Name != data.Synthetic || info.Format == data.Synthetic || info.Format == "store" // a store may hold a generated graph
	if sized && is != want || !generated {
		return ""
	}
	return info.Name
}

// checkOptions refuses values that options of [TrainOptions] cannot have.
func checkOptions(o TrainOptions) error {
	_, err := ParseExecutor(string(o.Executor))
	switch {
	case err != nil:
	case !slices.Contains([]Baselines{"", NoBaselines, OwnTables, AllBaselines}, o.Baselines):
		err = fmt.Errorf("no baselines %q: choose %s, %s or %s", string(o.Baselines), OwnTables, AllBaselines, NoBaselines)
	case o.Memory < 0:
		err = fmt.Errorf("the memory is %d bytes: give a size, or 0 for what the process may use", o.Memory)
	default:
		return nil
	}
	return &OptionError{err}
}

// imbalanced is how many times as many nodes the largest class has as the smallest, from
// which on classes of a table are made to count alike.
const imbalanced = 10

// guess sets the class weights for tables whose classes are of very different sizes, unless
// the options do, and returns the program for them in the place of m. Where that trains nothing they
// are its baselines'.
func (o *TrainOptions) guess(t task, m *ir.Module, model string, c *config.Config) (*ir.Module, error) {
	const key = "model.class_weights"
	info := t.Info()
	if info.Columns == nil && !info.Structural || c.Model.ClassWeights != "none" {
		return m, nil
	}
	plain, err := o.load(model, datasetOf(info), "", nil)
	if err != nil {
		return nil, err
	}
	if c.Source(key) != plain.Source(key) { // it was set
		return m, nil
	}
	count := make([]int, info.Classes)
	for _, k := range info.Labels {
		if k >= 0 {
			count[k]++
		}
	}
	least, most := -1, -1
	for k, n := range count {
		if n > 0 && (least < 0 || n < count[least]) {
			least = k
		}
		if most < 0 || n > count[most] {
			most = k
		}
	}
	if least < 0 || count[most] < imbalanced*count[least] {
		return m, nil
	}
	if o.Note != nil && len(m.Params) > 0 {
		o.Note(fmt.Sprintf("classes are of very different sizes (%s: %d %ss, %s: %d): every class counts alike in training; --set model.class_weights=none says otherwise", info.ClassName(least), count[least], info.Item, info.ClassName(most), count[most]))
	}
	if err := c.SetValue(key, "balanced", "classes are of very different sizes"); err != nil {
		return nil, err
	}
	return t.Module(o.Model, c)
}

// Task is what is predicted of the data.
func (s *Setup) Task() train.Task { return s.task }

// DataInfo is what a compilation may know beforehand: see [train.Task].
func (s *Setup) DataInfo() passes.DataInfo {
	split, _, err := s.task.Split(0)
	if err != nil {
		split = data.Split{} // sizes that are not known are left open
	}
	return s.task.DataInfo(s.planner(), s.Config, split)
}

// PredictMemory forecasts the memory that the steps of training a compiled
// program take, without running any: with train.device=cuda that of the GPU.
func (s *Setup) PredictMemory(prog *ir.Module) (*train.Forecast, error) {
	split, _, err := s.task.Split(uint64(s.Config.Train.Seed))
	if err != nil {
		return nil, err
	}
	limit, _ := budget.Default()
	if s.Config.Train.Sampler == "neighbors" { // its steps are compiled once their batches are known
		return train.PredictMemory(train.Job{Model: s.Model, Module: s.Module, Task: s.task, Split: s.Split}, s.Config, train.Options{Device: s.planner()}, limit)
	}
	return s.task.Forecast(s.planner(), prog, s.Config, split, limit)
}

// planner is the device of the configuration, as far as a plan asks for it; nil is the CPU.
func (s *Setup) planner() runtime.Device {
	if strings.HasPrefix(s.Config.Train.Device, "cuda") {
		return cuda.Planner
	}
	return nil
}

// OptionError is a fault of a text in TrainOptions.Set.
type OptionError struct{ Err error }

func (e *OptionError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *OptionError) Unwrap() error { return e.Err }

// configure resolves the configuration for a model's and a data set's short
// name.
func (o *TrainOptions) configure(model, dataset string) (*config.Config, error) {
	load := config.Load
	if o.load != nil {
		load = o.load
	}
	c, err := load(model, dataset, o.Config, nil)
	if err != nil {
		return nil, err
	}
	set := slices.Clone(o.Set)
	if o.Seed != 0 {
		set = append(set, fmt.Sprintf("train.seed=%d", o.Seed))
	}
	if o.Threads != 0 {
		set = append(set, fmt.Sprintf("train.threads=%d", o.Threads))
	}
	if o.Device != "" {
		set = append(set, "train.device="+o.Device)
	}
	if o.TF32 {
		set = append(set, "train.tf32=true")
	}
	for _, s := range set {
		if err := c.Set(s); err != nil {
			return nil, &OptionError{err}
		}
	}
	if err := c.Validate(); err != nil { // defaults and file are sound: load has looked
		return nil, &OptionError{err}
	}
	return c, nil
}

// LoadOptions says how a configuration wants data to be read.
func LoadOptions(c *config.Config) data.LoadOptions {
	seed := uint64(c.Train.Seed)
	return data.LoadOptions{Directed: c.Data.Directed, Split: c.Data.Split, Seed: seed, Synthetic: new(c.Synthetic.CSBM(seed)), AddEdges: c.Data.AddEdges, RemoveEdges: c.Data.RemoveEdges, Edges: c.Data.Edges,
		NodeFeatures: data.NodeFeatures(c.Data.NodeFeatures), NoPrepare: !c.Data.Prepare, Weights: data.EdgeWeights(c.Data.Weights),
		Tables: data.Tables{ID: c.Data.ID, Label: c.Data.Label, Source: c.Data.Source, Target: c.Data.Target, Weight: c.Data.Weight, Ignore: data.SplitNames(c.Data.Ignore), Merge: c.Data.Merge}}
}
