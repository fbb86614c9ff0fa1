package export

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// writeFolder puts files into dir at once: write puts each into a folder beside
// it first. A folder that replaceable refuses is never replaced.
func writeFolder(dir string, files map[string][]byte, replaceable func(dir string) error, write func(path string, data []byte) error) (err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := replaceable(dir); err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(tmp, "new", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := write(path, files[name]); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, filepath.Join(tmp, "old")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(filepath.Join(tmp, "new"), dir); err != nil {
		// Put the earlier export back rather than leave nothing.
		return errors.Join(err, ignoreMissing(os.Rename(filepath.Join(tmp, "old"), dir)))
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := ReadManifest(dir); err != nil {
		return fmt.Errorf("%s is not empty and holds no export of gsrc; choose another folder", dir)
	}
	return nil
}

// writeSynced writes a new file and waits until the disk has it.
func writeSynced(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
