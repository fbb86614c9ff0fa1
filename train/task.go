package train

import (
	"fmt"
	"io"

	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/schema"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Task is what is predicted of which data. [Nodes] classifies the nodes of one graph and
// [Graphs] the graphs of a collection.
//
// A further task (links, regression, several labels for each node) is a further
// implementation in a file of its own. What is known before training is in the exported
// methods, which package run and commands use too. The rest belongs to a run: start makes
// the [steps] that feed the program's functions and judge what they compute; Algorithm 1
// needs a [refiner] as well. Labels of another kind need a score of their own, in place
// of [trainer.score]. Nothing outside of an implementation asks which task it has;
// internal/archtest holds that.
type Task interface {
	// Info describes the data.
	Info() TaskInfo
	// Check returns an error if the data cannot be trained on.
	Check() error
	// Split returns the split for a seed, and its name in run.json.
	Split(seed uint64) (data.Split, string, error)
	// Warnings returns a sentence for each thing that is no error and seldom meant.
	Warnings(data.Split) []string
	// Module builds a model of the zoo for a configuration and the sizes of the data.
	Module(model string, cfg *config.Config) (*ir.Module, error)
	// DataInfo is what a compilation for a device may know beforehand of the data and of
	// the training steps.
	DataInfo(d runtime.Device, cfg *config.Config, split data.Split) passes.DataInfo
	// Forecast predicts the memory that the steps of training a compiled program take:
	// d is nil for the CPU, in whose case it is the memory of the process. Where evaluation
	// can take less time or less memory, it takes less memory above a limit; 0 is none.
	Forecast(d runtime.Device, prog *ir.Module, cfg *config.Config, split data.Split, limit int64) (*Forecast, error)

	// WriteRefined writes refined_edges.csv.
	WriteRefined(w io.Writer, r *graph.Refined) error

	// check returns an error if a program is one for another task.
	check(m *ir.Module) error
	// searched bounds how many pairs a search for new edges finds.
	searched(cfg *config.Config) int64
	// advice says which options make a run, which is compiled, take less memory.
	advice(t *trainer) string
	// compare fills in what a result says of the graph before training and, if the run
	// refines it, after.
	compare(res *Result, refined *graph.Refined)
	// refining are the functions that refine graphs, beside @refine itself.
	refining() []string
	// compileSteps changes the functions of a compiled program that a run's steps take otherwise.
	compileSteps(t *trainer) error
	// start begins a run.
	start(t *trainer) (steps, error)
}

// About is what run.json says of the data.
type About struct {
	Name     string `json:"name"`
	Source   string `json:"source"` // the path as it was given
	Format   string `json:"format"`
	Checksum string `json:"checksum"`
	Graphs   int    `json:"graphs,omitempty"` // of a collection; 0 for one graph
	Nodes    int    `json:"nodes"`            // of all graphs, as are edges
	Edges    int    `json:"edges"`
	Features int    `json:"features"`
	Classes  int    `json:"classes"`
	// ClassNames is what the data call the classes. Where they have numbers only it is empty in
	// run.json, nil here; in runs of earlier versions, which did not keep names, it is nil.
	ClassNames []string `json:"class_names"`
	// Columns of tables, and how they became features; absent where data have no
	// names for their columns, and in runs of versions that took them as they are.
	Columns *schema.Schema `json:"columns,omitempty"`
	// Roles says which columns of tables are what, and Merge what weight edges have that are listed more
	// than once; runs of earlier versions have both with the columns alone.
	Roles data.Roles `json:"roles,omitzero"`
	Merge string     `json:"merge,omitempty"`
	// Corruption says how the graph was damaged on purpose, if it was.
	Corruption *data.Corruption `json:"corruption,omitempty"`
	// Rewired says which edges took the place of the data's own, if any did.
	Rewired *data.Rewired `json:"rewired,omitempty"`
	// WeightUnit, in run.json, is the weight of an edge that counts in full, of a model that refines and
	// counts edges by their weights; 0 of others, and in runs of earlier versions.
	WeightUnit float32 `json:"weight_unit,omitempty"`
}

// TaskInfo describes the data of a task.
type TaskInfo struct {
	About
	Directed bool
	Features *data.Features
	Labels   []int32 // of what is classified: nodes or graphs
	Item     string  // what one of these is called
	// Structural says that nodes have no features but their places in the graph.
	Structural bool
	// Seeded is [data.Dataset.Seeded].
	Seeded bool

	itemName func(int) string
}

// ClassName is what the data call a class, in a sentence.
func (i *TaskInfo) ClassName(class int) string {
	if i.ClassNames != nil {
		return fmt.Sprintf("%q", i.ClassNames[class])
	}
	return fmt.Sprint(class)
}
