package atomicfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"testing"
)

var errFull = errors.New("no space left on device")

// fullDisk fails after n bytes.
type fullDisk struct {
	w io.Writer
	n int
}

func (f *fullDisk) Write(p []byte) (int, error) {
	if len(p) > f.n {
		n, _ := f.w.Write(p[:f.n])
		f.n = 0
		return n, errFull
	}
	f.n -= len(p)
	return f.w.Write(p)
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"one", strings.Repeat("two", 100000), ""} {
		if err := WriteBytes(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("read back %d bytes (%v), want %d", len(got), err, len(text))
		}
	}
}

// A full disk leaves the old contents and nothing beside them.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := WriteBytes(path, []byte("old")); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 1, 70000, 199999} {
		Wrap = func(w io.Writer) io.Writer { return &fullDisk{w, room} }
		err := WriteBytes(path, make([]byte, 200000))
		Wrap = nil
		if !errors.Is(err, errFull) || !strings.Contains(err.Error(), path) {
			t.Errorf("room for %d bytes: error %v, want one that names the file and the cause", room, err)
		}
		got, _ := os.ReadFile(path)
		entries, _ := os.ReadDir(dir)
		if string(got) != "old" || len(entries) != 1 {
			t.Errorf("room for %d bytes: file holds %q, folder has %d entries", room, got, len(entries))
		}
	}
	if err := WriteBytes(filepath.Join(dir, "absent", "file"), nil); err == nil {
		t.Error("writing to a folder that does not exist succeeded")
	}
}

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		filepath.Join(dir, "file"):           "",
		filepath.Join(dir, "absent", "file"): "cannot write " + filepath.Join(dir, "absent", "file"),
		dir:                                  "is a folder",
	} {
		if err := Check(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("a check has left %v", entries)
	}
}

// skipOnWindows ends a test of what only Unix has everywhere: links that any user may make, and /dev/fd.
func skipOnWindows(t *testing.T, err error) {
	t.Helper()
	if goruntime.GOOS == "windows" {
		t.Skipf("Windows has not what this tests, or not for this user: %v", err)
	}
	t.Fatal(err)
}

// Links stay, and what they lead to is written.
func TestWriteFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "there"), 0o755); err != nil {
		t.Fatal(err)
	}
	link, second := filepath.Join(dir, "link"), filepath.Join(dir, "second")
	if err := errors.Join(os.Symlink(filepath.Join("there", "file"), link), os.Symlink("link", second)); err != nil {
		skipOnWindows(t, err)
	}
	for _, text := range []string{"there was no file yet", "there was one"} {
		if err := WriteBytes(second, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, "there", "file")); err != nil || string(got) != text {
			t.Errorf("%q, error %v", got, err)
		}
	}
	if to, err := os.Readlink(link); err != nil || to != filepath.Join("there", "file") {
		t.Errorf("the link leads to %q, error %v", to, err)
	}
}

// A pipe, as a device, stays one, and gets what is written.
func TestWriteToAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	path := fmt.Sprintf("/dev/fd/%d", w.Fd())
	if _, err := os.Stat(path); err != nil {
		skipOnWindows(t, err)
	}
	if err := errors.Join(Check(path), WriteBytes(path, []byte("text")), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "text" {
		t.Errorf("%q, error %v", got, err)
	}
}

// What is standard output gets more, and loses nothing.
func TestWriteToStandardOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	old := os.Stdout
	os.Stdout = f
	defer func() { os.Stdout = old }()
	_, err = f.WriteString("one ")
	if err := errors.Join(err, WriteBytes(path, []byte("two ")), WriteBytes(path, []byte("three")), f.Close()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one two three" {
		t.Errorf("%q, error %v", got, err)
	}
}
