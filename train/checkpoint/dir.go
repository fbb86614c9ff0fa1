package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/filelock"
)

// The files of a run directory.
const (
	ConfigFile     = "config.toml"
	ModuleFile     = "module.gsr"
	InfoFile       = "run.json"
	MetricsFile    = "metrics.jsonl"
	CheckpointFile = "checkpoint.safetensors"
	WeightsFile    = "weights.safetensors"
	EdgesFile      = "refined_edges.csv"
	StructFile     = "x_struct.safetensors"
	SplitFile      = "split.json"
	AutoFile       = "auto.json" // of a model that was chosen by the graph, by package auto
	LockFile       = ".lock"     // while somebody writes
)

// runFiles are all of them, in the order in which --force deletes them: without
// its checkpoint a run starts over, and what is left without run.json is what a run
// writes before it.
var runFiles = []string{CheckpointFile, WeightsFile, EdgesFile, StructFile, MetricsFile, InfoFile, SplitFile, ConfigFile, ModuleFile}

// Dir is the directory of a run in progress, which is locked until Close. A nil *Dir is a
// run in memory: it keeps nothing.
type Dir struct {
	path string
	lock *filelock.Lock
	Log  Log // metrics.jsonl
}

// Open opens the directory of a run. With resume it must be there; begun says whether it
// has a checkpoint, which [Dir.Resume] goes on from. Otherwise it is empty, or was made so
// with force, or the error is an [*ExistsError].
func Open(path string, resume, force bool) (d *Dir, begun bool, err error) {
	if resume {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, false, fmt.Errorf("cannot resume %s: there is no such folder", path)
		}
	} else if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, false, fmt.Errorf("cannot create the run directory: %w", err)
	}
	d = &Dir{path: path}
	if d.lock, err = filelock.TryLock(d.Path(LockFile)); err != nil {
		return nil, false, fmt.Errorf("run directory: %w", err)
	}
	if begun, err = d.prepare(resume, force); err == nil && !begun {
		_, err = d.Log.open(d.Path(MetricsFile), &State{})
	}
	if err != nil {
		d.Close()
		return nil, false, err
	}
	return d, begun, nil
}

// prepare clears the directory for a new run, unless it has one to go on with.
func (d *Dir) prepare(resume, force bool) (begun bool, err error) {
	entries, err := os.ReadDir(d.path)
	switch {
	case err != nil:
		return false, fmt.Errorf("run directory: %w", err)
	case resume:
		removeLeftovers(d.path, entries)
		_, err := os.Stat(d.Path(CheckpointFile))
		return err == nil, nil // killed before its first checkpoint, the run starts anew
	case force || unbegun(entries):
		removeLeftovers(d.path, entries)
		for _, name := range append(slices.Clone(runFiles), AutoFile) {
			if err := os.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, fmt.Errorf("run directory: %w", err)
			}
		}
		return false, nil
	}
	_, err = os.Stat(d.Path(InfoFile))
	return false, &ExistsError{Dir: d.path, Run: err == nil}
}

// Resume cuts metrics.jsonl back to the lines that the checkpoint counts, and returns the
// last of them, nil without any.
func (d *Dir) Resume(s *State) (*Record, error) { return d.Log.open(d.Path(MetricsFile), s) }

// Path returns the path of a file in the directory.
func (d *Dir) Path(name string) string { return filepath.Join(d.path, name) }

// Close writes what waits to be written and unlocks the directory.
func (d *Dir) Close() {
	if d == nil {
		return
	}
	d.Log.close()
	_ = d.lock.Remove() // a file more does no harm
}

// unbegun reports whether a directory is empty but for what a run writes before its
// run.json: it was killed then, and has learnt nothing yet.
func unbegun(entries []fs.DirEntry) bool {
	return !slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		switch e.Name() {
		case LockFile, LockFile + ".owner", SplitFile, ConfigFile, ModuleFile:
			return false
		case MetricsFile:
			info, err := e.Info()
			return err != nil || info.Size() > 0
		}
		return !isLeftover(e.Name())
	})
}

// Replace moves the files of the finished run in the directory next to dir, in the place of
// those that dir has, and removes next. A dir that was killed in between has no run.json.
func Replace(dir, next string) error {
	for _, name := range append([]string{InfoFile}, runFiles...) {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range append(slices.DeleteFunc(slices.Clone(runFiles), func(f string) bool { return f == InfoFile }), InfoFile) {
		if err := os.Rename(filepath.Join(next, name), filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(next)
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
