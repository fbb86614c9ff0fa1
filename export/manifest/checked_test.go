package manifest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A file that onnxruntime reads by itself is refused if it is not, afterwards, the file
// that was checked.
func TestFilesThatChangeWhileTheyAreRead(t *testing.T) {
	content := []byte("weights of a large model")
	for name, change := range map[string]func(path string) error{
		"":          func(string) error { return nil },
		"replaced":  func(path string) error { return replaceFile(path, content) },
		"cut":       func(path string) error { return os.Truncate(path, 3) },
		"rewritten": func(path string) error { return os.Chtimes(path, time.Time{}, time.Now().Add(time.Second)) },
		"gone":      os.Remove,
	} {
		m := &Manifest{Dir: t.TempDir(), Files: map[string]FileInfo{"x.data": NewFileInfo(content)}}
		if err := os.WriteFile(m.Path("x.data"), content, 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := m.watch("x.data")
		if err != nil {
			t.Fatal(err)
		}
		defer w.f.Close()
		if err := w.check(); err != nil {
			t.Fatal(err)
		}
		if err := change(m.Path("x.data")); err != nil {
			if runtime.GOOS == "windows" { // which keeps files that are read from being replaced
				continue
			}
			t.Fatal(err)
		}
		if err := w.unchanged(); (err == nil) != (name == "") {
			t.Errorf("a file that is %q: error %v", name, err)
		}
	}
}

// replaceFile puts an equal file in the place of a file.
func replaceFile(path string, content []byte) error {
	other := path + ".new"
	if err := os.WriteFile(other, content, 0o644); err != nil {
		return err
	}
	return os.Rename(other, path)
}

// Only what the manifest lists is read, and only as it lists it.
func TestReadFileReadsWhatTheManifestLists(t *testing.T) {
	content := []byte("source,target,probability,status\n")
	m := &Manifest{Dir: t.TempDir(), Files: map[string]FileInfo{"a.csv": NewFileInfo(content), "old.csv": NewFileInfo(content), "gone.csv": NewFileInfo(content)}}
	old := m.Files["old.csv"]
	old.CRC32C = "" // as earlier versions wrote it
	m.Files["old.csv"] = old
	for _, name := range []string{"a.csv", "old.csv", "unlisted.csv"} {
		if err := os.WriteFile(m.Path(name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name, want string) {
		t.Helper()
		data, err := m.ReadFile(name)
		if want == "" && (err != nil || string(data) != string(content)) || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), filepath.Join(m.Dir, name))) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
	}
	expect("a.csv", "")
	expect("old.csv", "")
	expect("unlisted.csv", "does not list")
	expect("gone.csv", "missing")
	content[3] ^= 1
	for _, name := range []string{"a.csv", "old.csv"} {
		if err := os.WriteFile(m.Path(name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expect("a.csv", "its checksum is")
	expect("old.csv", "its SHA-256 is")
	if err := os.Remove(m.Path("a.csv")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(m.Path("a.csv"), 0o755); err != nil {
		t.Fatal(err)
	}
	expect("a.csv", "no file")
}

// BenchmarkCheckLargeFile takes the checksum of 2 GiB as the loading of a model does,
// and SHA-256 as verify does. The file is sparse.
func BenchmarkCheckLargeFile(b *testing.B) {
	m := &Manifest{Dir: b.TempDir(), Files: map[string]FileInfo{"x.data": {Bytes: 2 << 30}}}
	f, err := os.Create(m.Path("x.data"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(2 << 30); err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, f); err != nil { // into the page cache
		b.Fatal(err)
	}
	for name, sum := range map[string]string{"crc32c": "crc32c:", "sha256": ""} {
		b.Run(name, func(b *testing.B) {
			m.Files["x.data"] = FileInfo{Bytes: 2 << 30, CRC32C: sum}
			b.SetBytes(2 << 30)
			for b.Loop() {
				w, err := m.watch("x.data")
				if err != nil {
					b.Fatal(err)
				}
				var bad *FileError
				if err := w.check(); !errors.As(err, &bad) { // the right sum is not known
					b.Fatal(err)
				}
				w.f.Close()
			}
		})
	}
}
