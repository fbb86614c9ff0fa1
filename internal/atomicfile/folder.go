package atomicfile

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// WriteFolder puts files into dir at once: write puts each into a folder beside
// it first. A folder that replaceable refuses is never replaced. Where dir is a link, the folder
// that it leads to is.
func WriteFolder(dir string, files map[string][]byte, replaceable func(dir string) error, write func(path string, data []byte) error) (err error) {
	dir, err = filepath.Abs(Follow(filepath.Clean(dir)))
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
	if err := sweep(dir); err != nil {
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
		// Put the earlier folder back rather than leave nothing.
		return errors.Join(err, ignoreMissing(os.Rename(filepath.Join(tmp, "old"), dir)))
	}
	return nil
}

// sweep removes what a WriteFolder to dir has left beside it whose process was killed.
// Where that happened while it put its folder in the place of an earlier one, the
// earlier one comes back first.
func sweep(dir string) error {
	left, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range left {
		number, ok := strings.CutPrefix(e.Name(), "."+filepath.Base(dir)+".")
		if _, err := strconv.ParseUint(number, 10, 64); !ok || err != nil || !e.IsDir() {
			continue
		}
		path := filepath.Join(filepath.Dir(dir), e.Name())
		inside, err := os.ReadDir(path)
		if err != nil || slices.ContainsFunc(inside, func(e fs.DirEntry) bool { return e.Name() != "new" && e.Name() != "old" }) {
			continue // somebody else's
		}
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			if err := ignoreMissing(os.Rename(filepath.Join(path, "old"), dir)); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// WriteSynced writes a new file and waits until the disk has it.
func WriteSynced(path string, data []byte) error {
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
