package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An interrupt between two files ends a build that leaves nothing.
func TestBuildInterrupted(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	o.Unverified = true
	parent := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o.Log = func(string, ...any) { cancel() }
	if _, _, err := Build(ctx, filepath.Join(parent, "dist"), o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was interrupted", err)
	}
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 0 {
		t.Errorf("the build left %v, %v", entries, err)
	}
}

// A folder that is not to be replaced is refused before anything is built.
func TestBuildIntoOthersFolder(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	o.Unverified = true
	o.Log = func(format string, args ...any) { t.Errorf(format, args...) }
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for out, want := range map[string]string{dir: "holds no export", "": "name one", filepath.Join(dir, "own.txt"): "own.txt"} {
		o.Params = nil // with which nothing can be built
		if _, _, err := Build(t.Context(), out, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", out, err, want)
		}
	}
}
