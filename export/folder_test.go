package export

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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
