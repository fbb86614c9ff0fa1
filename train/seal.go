package train

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/internal/seal"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/train/checkpoint"
)

// Verify checks the files of a finished run: all that [Load] and [checkpoint.ReadMetrics] look at, and
// that the metrics end where the run did.
func Verify(dir string) (*Info, error) {
	_, info, err := Load(dir)
	if err != nil {
		return nil, err
	}
	records, err := checkpoint.ReadMetrics(dir)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, checkpoint.MetricsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if end := append(bytes.SplitAfterN(text, []byte{'\n'}, len(records)+1), nil)[len(records)]; len(end) > 0 {
		return nil, checkpoint.Damage(path, fmt.Errorf("line %d was added after the run had ended", len(records)+1))
	}
	return info, nil
}

// Seal adds checksums to a finished run of an earlier version, after it has checked
// what can be: that configuration, program, checkpoint and weights belong together. It
// reports whether there was anything to add. What is damaged already and cannot be
// told, such as a line of metrics.jsonl, gets the checksum of what it is.
func Seal(dir string) (added bool, err error) {
	lock, err := filelock.TryLock(filepath.Join(dir, checkpoint.LockFile))
	if err != nil {
		return false, fmt.Errorf("run directory: %w", err)
	}
	defer lock.Remove()
	trained, info, err := Load(dir)
	if err != nil {
		return false, err
	}
	if _, err := checkpoint.ReadMetrics(dir); err != nil {
		return false, err
	}
	if info.Unchecked() == "" {
		return false, nil
	}
	if err := trained.seal(dir); err != nil {
		return false, err
	}
	// run.json comes last: as long as it is of the earlier version, so may others be.
	info.SchemaVersion, info.Files, info.Checksum = infoVersion, map[string]seal.File{}, seal.Blank
	return true, info.write(dir, []string{checkpoint.ModuleFile, checkpoint.SplitFile, checkpoint.CheckpointFile, checkpoint.WeightsFile, checkpoint.EdgesFile, checkpoint.StructFile})
}

// seal rewrites the files with tensors, with checksums.
func (r *Model) seal(dir string) error {
	path := filepath.Join(dir, checkpoint.WeightsFile)
	weights, err := safetensors.ReadFile(path)
	if err != nil {
		return err
	}
	for name, want := range r.Params {
		var have []float32
		if t := weights.Lookup(name); t != nil {
			have, _ = t.Data.([]float32)
		}
		if !slices.Equal(have, want) {
			return checkpoint.Damage(path, fmt.Errorf("its tensor %q is not what %s holds (gsrc train --resume %s writes it anew)", name, checkpoint.CheckpointFile, shell.Quote(dir)))
		}
	}
	if err := atomicfile.Write(path, weights.Write); err != nil {
		return err
	}
	path = filepath.Join(dir, checkpoint.StructFile)
	s, err := safetensors.ReadFile(path)
	if err == nil {
		err = atomicfile.Write(path, s.Write)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return checkpoint.Seal(dir)
}
