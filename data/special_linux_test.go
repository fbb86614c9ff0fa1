package data

import (
	"path/filepath"
	"syscall"
	"testing"
)

// Opening a pipe waits for its writer, so it has to be refused before.
func TestLoadPipe(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{edgesFile, "d.npz"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Skipf("cannot make a pipe: %v", err)
		}
	}
	_, err := Load(dir, LoadOptions{})
	wantError(t, err, edgesFile, "not a regular file")
	_, err = Load(filepath.Join(dir, "d.npz"), LoadOptions{})
	wantError(t, err, "d.npz", "not a regular file")
}
