package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
)

// While another process writes to a folder, commands that would, too, are refused.
func TestLockedFolders(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	unlock, err := manifest.LockFolder(out)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if unlock, err = lockResults(out); err != nil { // out itself, which is never replaced
		t.Fatal(err)
	}
	defer unlock()
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
