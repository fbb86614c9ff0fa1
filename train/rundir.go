package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/seal"
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
	lockFile       = ".lock" // while somebody writes
)

// runFiles are all of them, in the order in which --force deletes them: without
// its checkpoint a run starts anew, and what is left without run.json is what a run
// writes before it.
var runFiles = []string{checkpointFile, weightsFile, edgesFile, structFile, metricsFile, infoFile, splitFile, configFile, moduleFile}

// infoVersion is the schema of run.json that is written: since version 2 it has a
// checksum and lists other files. Version 1 is read too.
const infoVersion = 2

// FileInfo says how a file must be: its size in bytes and its CRC-32C.
type FileInfo = seal.File

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
	// Files lists other files of the directory: at first module.gsr and split.json, of
	// a finished run all but config.toml, which Config pins, and metrics.jsonl, of which
	// the checkpoint has the checksum. Absent in runs of an earlier version.
	Files map[string]FileInfo `json:"files,omitempty"`
	// Checksum of run.json itself, with its digits as zeros.
	Checksum string `json:"checksum,omitempty"`
}

// Unchecked says in a line what could not be checked of a run of an earlier version;
// it is empty where all was.
func (i *Info) Unchecked() string {
	if i.SchemaVersion >= infoVersion {
		return ""
	}
	return "the run is of an earlier version, without checksums: damage to its files cannot be found (gsrc verify --seal adds checksums)"
}

// CheckFile reads a file of the run and holds it against run.json. It is an error if
// the file is not what run.json says; one that run.json does not list is not read.
func (i *Info) CheckFile(dir, name string) error {
	want, ok := i.Files[name]
	if !ok {
		return nil
	}
	path := filepath.Join(dir, name)
	have, err := seal.OfPath(path)
	if err == nil {
		err = want.Check(have)
	}
	return damage(path, err)
}

// readFile reads a file of the run, which must be what run.json says of it if it does.
func (i *Info) readFile(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	want, ok := i.Files[name]
	if !ok {
		return os.ReadFile(path)
	}
	data, err := want.ReadFile(path)
	return data, damage(path, err)
}

// ReadInfo reads the run.json of a run directory.
func ReadInfo(dir string) (*Info, error) {
	path := filepath.Join(dir, infoFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is no run directory: it has no %s (a run that was killed before it wrote that is started again, without --force)", dir, infoFile)
	}
	if err != nil {
		return nil, err
	}
	sealed, err := seal.Check(nil, text, nil)
	if err != nil {
		return nil, damage(path, err)
	}
	var info Info
	if err := json.Unmarshal(text, &info); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	switch v := info.SchemaVersion; {
	case v < 1 || v > infoVersion:
		return nil, fmt.Errorf("%s has schema version %d, this gsrc reads 1 to %d", path, v, infoVersion)
	case v > 1 && !sealed:
		return nil, damage(path, errNoChecksum)
	}
	return &info, nil
}

func (t *trainer) info(res *Result) *Info {
	ds := &t.data
	i := &Info{SchemaVersion: infoVersion, Checksum: seal.Blank, Files: map[string]FileInfo{}, Status: "running", Version: t.opts.Version, Model: t.task.Model, Seed: t.cfg.Train.Seed, Split: t.splitName(),
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
// checkpoint. The directory is locked until close.
func (t *trainer) open() error {
	t.state.valAcc = math.NaN()
	dir := t.opts.Dir
	if dir == "" {
		if t.opts.Resume {
			return errors.New("train: there is no run directory to resume")
		}
		return nil
	}
	if t.opts.Resume {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot resume %s: there is no such folder", dir)
		}
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot create the run directory: %w", err)
	}
	var err error
	if t.lock, err = filelock.TryLock(t.path(lockFile)); err != nil {
		return fmt.Errorf("run directory: %w", err)
	}
	entries, err := os.ReadDir(dir)
	switch {
	case err != nil:
		return fmt.Errorf("run directory: %w", err)
	case t.opts.Resume:
		removeLeftovers(dir, entries)
		if _, err := os.Stat(t.path(checkpointFile)); err == nil {
			return t.resume()
		}
		// Killed before its first checkpoint: the run starts anew.
	case t.opts.Force || unbegun(entries):
		removeLeftovers(dir, entries)
		for _, name := range runFiles {
			if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("run directory: %w", err)
			}
		}
	default:
		_, err := os.Stat(t.path(infoFile))
		return &ExistsError{Dir: dir, Run: err == nil}
	}
	if t.metrics, _, err = openMetrics(t.path(metricsFile), counters{}); err != nil {
		return err
	}
	if err := t.describe(nil); err != nil {
		return err
	}
	return t.checkpoint()
}

// unbegun reports whether a directory is empty but for what a run writes before its
// run.json: it was killed then, and has learnt nothing yet.
func unbegun(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		switch e.Name() {
		case lockFile, lockFile + ".owner", splitFile, configFile, moduleFile:
			return false
		case metricsFile:
			info, err := e.Info()
			return err != nil || info.Size() > 0
		}
		return !isLeftover(e.Name())
	})
}

// isLeftover reports whether a name is that of a temporary file of a killed run.
func isLeftover(name string) bool {
	return slices.ContainsFunc(runFiles, func(f string) bool {
		ok, _ := filepath.Match("."+f+".*.tmp", name)
		return ok
	})
}

// removeLeftovers deletes the temporary files of a killed run.
func removeLeftovers(dir string, entries []fs.DirEntry) {
	for _, e := range entries {
		if isLeftover(e.Name()) {
			_ = os.Remove(filepath.Join(dir, e.Name())) // a file more does no harm
		}
	}
}

// describe writes the files that say what the run is, run.json last.
func (t *trainer) describe(res *Result) error {
	if err := t.cfg.Write(t.path(configFile)); err != nil {
		return err
	}
	if err := atomicfile.WriteBytes(t.path(moduleFile), []byte(t.module.String())); err != nil {
		return err
	}
	if err := t.writeSplit(); err != nil {
		return err
	}
	info := t.info(res)
	listed := []string{moduleFile, splitFile}
	if res != nil {
		listed = append(listed, checkpointFile, weightsFile, edgesFile, structFile)
	}
	return info.write(t.opts.Dir, listed)
}

// write writes run.json, with the checksums of those of the files that are there.
func (i *Info) write(dir string, listed []string) error {
	for _, name := range listed {
		f, err := seal.OfPath(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		default:
			i.Files[name] = f
		}
	}
	text, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	seal.Stamp(text)
	return atomicfile.WriteBytes(filepath.Join(dir, infoFile), text)
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
	info, err := ReadInfo(t.opts.Dir)
	if err != nil {
		return err
	}
	if err := info.CheckFile(t.opts.Dir, splitFile); err != nil {
		return err
	}
	c, err := t.restore(t.path(checkpointFile))
	if err != nil {
		return err
	}
	var last *Record
	if t.metrics, last, err = openMetrics(t.path(metricsFile), c); err != nil {
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
	if !f.Sealed || f.Metadata["key"] != t.structKey() {
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
