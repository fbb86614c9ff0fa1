package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/runtime/train/safetensors"
)

// The files of a run directory.
const (
	configFile     = "config.toml"
	moduleFile     = "module.gsr"
	infoFile       = "run.json"
	metricsFile    = "metrics.jsonl"
	checkpointFile = "checkpoint.safetensors"
	weightsFile    = "weights.safetensors"
	edgesFile      = "refined_edges.csv"
	structFile     = "x_struct.safetensors"
	splitFile      = "split.json"
)

// runFiles are all of them, in the order in which --force deletes them: without
// its checkpoint a run starts anew.
var runFiles = []string{checkpointFile, metricsFile, infoFile, configFile, moduleFile, weightsFile, edgesFile, structFile, splitFile}

// Info is run.json: what was trained on what, and how it went.
type Info struct {
	SchemaVersion int    `json:"schema_version"`
	Status        string `json:"status"` // running or done
	Version       string `json:"version,omitempty"`
	Model         string `json:"model"`
	Seed          int    `json:"seed"`
	Split         string `json:"split"`
	Config        string `json:"config_hash"`
	Data          struct {
		Name     string `json:"name"`
		Source   string `json:"source"` // the path as it was given
		Format   string `json:"format"`
		Checksum string `json:"checksum"`
		Graphs   int    `json:"graphs,omitempty"` // of a collection
		Nodes    int    `json:"nodes"`
		Edges    int    `json:"edges"`
		Features int    `json:"features"`
		Classes  int    `json:"classes"`
		// Corruption says how the graph was damaged on purpose, if it was.
		Corruption *data.Corruption `json:"corruption,omitempty"`
	} `json:"data"`
	// Inductive is false where the model reads structural attributes of the
	// training graph and therefore works on no other.
	Inductive bool    `json:"inductive"`
	Result    *Result `json:"result"`
}

// ReadInfo reads the run.json of a run directory.
func ReadInfo(dir string) (*Info, error) {
	path := filepath.Join(dir, infoFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no run directory: it has no %s", dir, infoFile)
	}
	if err != nil {
		return nil, err
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &info, nil
}

func (t *trainer) info(res *Result) *Info {
	ds := &t.data
	i := &Info{SchemaVersion: 1, Status: "running", Version: t.opts.Version, Model: t.task.Model, Seed: t.cfg.Train.Seed, Split: t.splitName(),
		Config: t.cfg.Hash(), Inductive: !t.readsStruct(), Result: res}
	if res != nil {
		i.Status = "done"
	}
	i.Data.Name, i.Data.Source, i.Data.Format, i.Data.Checksum = ds.name, ds.source, ds.format, ds.checksum
	if t.task.Data != nil {
		i.Data.Corruption = t.task.Data.Corruption
	}
	i.Data.Graphs, i.Data.Nodes, i.Data.Edges, i.Data.Features, i.Data.Classes = ds.graphs, ds.nodes, ds.edges, ds.features, ds.classes
	return i
}

// readsStruct reports whether the trained model has structural attributes.
func (t *trainer) readsStruct() bool {
	if t.cfg.DeepWalk.Width == 0 || t.cfg.Candidates.Structure == "raw" {
		return false
	}
	f := t.module.Func("encode")
	return f != nil && f.Arg("x_struct") != nil
}

// splitName says which split a run has: "given", how it was drawn, "public" for
// a data set's only one, or the number of one of several.
func (t *trainer) splitName() string {
	ds := t.task.Data
	switch {
	case t.task.Split != nil:
		return "given"
	case t.task.Graphs != nil:
		return "fold " + t.task.Graphs.FoldName(t.seed())
	case ds.SplitSpec != nil:
		return ds.SplitSpec.String()
	case len(ds.Splits) == 1:
		return "public"
	}
	return fmt.Sprint(t.seed() % uint64(len(ds.Splits)))
}

// open prepares the run directory and the state: new, or that of the last
// checkpoint.
func (t *trainer) open() error {
	t.state.valAcc = math.NaN()
	dir := t.opts.Dir
	if dir == "" {
		if t.opts.Resume {
			return errors.New("train: there is no run directory to resume")
		}
		return nil
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if t.opts.Resume {
			return fmt.Errorf("cannot resume %s: there is no such folder", dir)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("cannot create the run directory: %w", err)
		}
	case err != nil:
		return fmt.Errorf("run directory: %w", err)
	case t.opts.Resume:
		removeLeftovers(dir, entries)
		if _, err := os.Stat(t.path(checkpointFile)); err == nil {
			return t.resume()
		}
		// Killed before its first checkpoint: the run starts anew.
	case len(entries) > 0 && !t.opts.Force:
		_, err := os.Stat(t.path(infoFile))
		return &ExistsError{Dir: dir, Run: err == nil}
	}
	if !t.opts.Resume {
		for _, name := range runFiles {
			if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("run directory: %w", err)
			}
		}
	}
	if t.metrics, _, err = openMetrics(t.path(metricsFile), 0); err != nil {
		return err
	}
	if err := errors.Join(t.describe(nil), t.writeSplit()); err != nil {
		return err
	}
	return t.checkpoint()
}

// removeLeftovers deletes the temporary files of a killed run.
func removeLeftovers(dir string, entries []fs.DirEntry) {
	for _, e := range entries {
		for _, name := range runFiles {
			if ok, _ := filepath.Match("."+name+".*.tmp", e.Name()); ok {
				_ = os.Remove(filepath.Join(dir, e.Name())) // a file more does no harm
			}
		}
	}
}

// describe writes the files that say what the run is.
func (t *trainer) describe(res *Result) error {
	text, err := json.MarshalIndent(t.info(res), "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(
		t.cfg.Write(t.path(configFile)),
		atomicfile.WriteBytes(t.path(moduleFile), []byte(t.module.String())),
		atomicfile.WriteBytes(t.path(infoFile), append(text, '\n')))
}

// runSplit is split.json: the nodes that a run learns from, chooses by and is
// judged on, by their numbers in the data, from 0.
type runSplit struct {
	SchemaVersion int     `json:"schema_version"`
	Split         string  `json:"split"` // as in run.json
	Seed          int     `json:"seed"`
	Train         []int32 `json:"train"`
	Val           []int32 `json:"val"`
	Test          []int32 `json:"test"`
}

func (t *trainer) writeSplit() error {
	text, err := json.Marshal(runSplit{1, t.splitName(), t.cfg.Train.Seed, t.split.Train, t.split.Val, t.split.Test})
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(t.path(splitFile), append(text, '\n'))
}

func (t *trainer) resume() error {
	lines, err := t.restore(t.path(checkpointFile))
	if err != nil {
		return err
	}
	var last *Record
	if t.metrics, last, err = openMetrics(t.path(metricsFile), lines); err != nil {
		return err
	}
	if last != nil {
		t.before = time.Duration(last.Time.WallS * float64(time.Second))
	}
	t.resumed = true
	return nil
}

// structKey identifies structural attributes: everything that they depend on.
func (t *trainer) structKey() string {
	return fmt.Sprintf("%s seed %d %+v", t.task.Data.Checksum, t.cfg.Train.Seed, t.cfg.DeepWalk)
}

// readStruct reads the structural attributes that an earlier part of the run
// left; nil if there are none.
func (t *trainer) readStruct() ([]float32, error) {
	if t.opts.Dir == "" {
		return nil, nil
	}
	f, err := safetensors.ReadFile(t.path(structFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if f.Metadata["key"] != t.structKey() {
		return nil, nil
	}
	return safetensors.Get[float32](f, "x_struct", t.task.Data.Graph.N, t.cfg.DeepWalk.Width)
}

func (t *trainer) writeStruct(x []float32) error {
	if t.opts.Dir == "" {
		return nil
	}
	f := &safetensors.File{Metadata: map[string]string{"key": t.structKey()},
		Tensors: []safetensors.Tensor{{Name: "x_struct", Shape: []int{t.task.Data.Graph.N, t.cfg.DeepWalk.Width}, Data: x}}}
	return atomicfile.Write(t.path(structFile), f.Write)
}
