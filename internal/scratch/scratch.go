// Package scratch keeps numbers that memory lacks in files on a disk, mapped into memory: the
// system writes their pages out when it needs the room.
package scratch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Dir returns the first of some folders that is on a disk, and not in memory itself; then the
// system's folders for temporary files count, too.
func Dir(folders ...string) (string, error) {
	for _, dir := range append(folders, os.TempDir(), filepath.FromSlash("/var/tmp")) {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && !inMemory(dir) {
			return dir, nil
		}
	}
	return "", errors.New("the folders for temporary files are in memory; set TMPDIR to one on a disk")
}

// Floats returns n zeros in a file of a folder, which nobody else sees, and which is gone when
// free is called or the process ends. It is an error if the disk has no room for all of it.
func Floats(dir string, n int) (x []float32, free func() error, err error) {
	if n == 0 {
		return nil, func() error { return nil }, nil
	}
	if x, free, err = floats(dir, n); err != nil {
		return nil, nil, fmt.Errorf("%d MiB of temporary files in %s: %w", n>>18, dir, err)
	}
	return x, free, nil
}
