package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/internal/filelock"
)

// While another process writes to a folder, commands that would, too, are refused.
func TestLockedFolders(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	unlock, err := manifest.LockFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := filelock.TryLock(filepath.Join(out, ".lock")) // of results, in out itself, which is never replaced
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	for _, args := range []string{
		"repro table1 --only cora --budget short --out " + out,
		"repro table1 --only cora --fill --out " + out,
		"data plant synthetic --out " + out,
	} {
		var text strings.Builder
		if code := run(t.Context(), strings.Fields(args), &text, &text); code != exitError || !strings.Contains(text.String(), "is using "+out) {
			t.Errorf("gsrc %s: exit code %d, %s", args, code, text.String())
		}
	}
}
