package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a killed process left is removed by the next one, and an earlier folder that it had
// moved aside comes back. What others keep beside it stays.
func TestWriteFolderAfterAKill(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "dist")
	put := func(names ...string) {
		t.Helper()
		for _, name := range names {
			path := filepath.Join(parent, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(name), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(".dist.123/new/a", ".dist.456/new/a", ".dist.456/old/manifest.json", ".dist.789/mine", ".dist.notes/new/a", ".dist.lock", ".other.1/new/a", ".dist.5")
	if err := sweep(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "manifest.json")); err != nil || string(text) != ".dist.456/old/manifest.json" {
		t.Errorf("the earlier export is %q, %v", text, err)
	}
	// With an export in place nothing takes its name.
	put(".dist.7/old/manifest.json")
	any := func(string) error { return nil }
	if err := WriteFolder(dir, map[string][]byte{"a": []byte("1")}, any, WriteSynced); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(text) != "1" {
		t.Errorf("the export holds %q, %v", text, err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{".dist.5", ".dist.789", ".dist.lock", ".dist.notes", ".other.1", "dist"}; !slices.Equal(names, want) {
		t.Errorf("beside the export lie %v, want %v", names, want)
	}
}

// A link to a folder stays one.
func TestWriteFolderFollowsLinks(t *testing.T) {
	parent := t.TempDir()
	link, dir := filepath.Join(parent, "link"), filepath.Join(parent, "there", "dir")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		skipOnWindows(t, err)
	}
	if err := WriteFolder(link, map[string][]byte{"file": []byte("text")}, func(string) error { return nil }, WriteSynced); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "text" {
		t.Errorf("%q, error %v", text, err)
	}
	if to, err := os.Readlink(link); err != nil || to != dir {
		t.Errorf("the link leads to %q, error %v", to, err)
	}
}
