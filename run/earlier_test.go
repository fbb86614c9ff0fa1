package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// A run that an earlier version of gsrc began goes on and ends as it would have ended there:
// its program, options and checkpoint read the same, and the same numbers are drawn.
// testdata/earlier was stopped in its first epochs; the version that began it gives an
// undisturbed run the hash below.
func TestEarlierRunResumes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "earlier"))); err != nil {
		t.Fatal(err)
	}
	r, err := Resume(context.Background(), dir, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "9c43ac4fb1bf4f4f"; r.Result.Hash != want {
		t.Errorf("the run ends with the hash %s, that of the earlier version with %s", r.Result.Hash, want)
	}
	if _, err := Open(dir); err != nil {
		t.Error(err)
	}
}
