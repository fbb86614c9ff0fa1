package catalog

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"github.com/gsrc-dev/gsrc/internal/datatest"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// mirror serves files by path and counts what it served.
func mirror(t *testing.T, files map[string][]byte) (address string, served *atomic.Int32) {
	t.Helper()
	served = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		served.Add(1)
		w.Write(data)
	}))
	t.Cleanup(s.Close)
	return s.URL, served
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// sample is a data set of a file with a known checksum and one without.
func sample() (Set, map[string][]byte) {
	files := map[string][]byte{"some/a": bytes.Repeat([]byte("a"), 1000), "some/b": []byte("b")}
	return Set{Name: "sample", Path: "some", Files: []File{
		{Path: "some/a", URL: "http://host.invalid/a", Size: 1000, SHA256: sumOf(files["some/a"])},
		{Path: "some/b", URL: "http://host.invalid/b"},
	}}, files
}

func options(t *testing.T, address string) Options {
	return Options{Tries: 1, Mirror: address, Log: t.Logf}
}

func TestFetch(t *testing.T) {
	set, files := sample()
	address, served := mirror(t, files)
	root := filepath.Join(t.TempDir(), "data")
	t.Setenv(EnvVar, root)
	if path, looked := set.Locate(); path != "" || len(looked) == 0 || looked[0] != root {
		t.Errorf("found at %q before it was fetched, looked in %v", path, looked)
	}
	var told []string
	o := options(t, address+"/")
	o.Progress = func(file string, done, total int64) {
		if done == total {
			told = append(told, fmt.Sprint(file, " ", total))
		}
	}
	path, err := set.Fetch(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := set.Locate(); path != filepath.Join(root, "some") || want != path {
		t.Errorf("fetched to %s, found at %s", path, want)
	}
	if got := strings.Join(told, ", "); got != "some/a 1000, some/b 1" {
		t.Errorf("progress %s", got)
	}
	// Again: nothing is asked for.
	if _, err := set.Fetch(t.Context(), root, o); err != nil || served.Load() != 2 {
		t.Errorf("%v, %d requests", err, served.Load())
	}
	lock, err := readLock(root)
	if err != nil || len(lock) != 1 || lock["some/b"].SHA256 != sumOf([]byte("b")) || lock["some/b"].Size != 1 {
		t.Errorf("lock file %v, %v", lock, err)
	}
}

// A file that has changed since is never taken for the same.
// Where nothing can be reached, the error says what else can be done.
func TestFetchUnreachable(t *testing.T) {
	set, _ := sample()
	root := t.TempDir()
	for address, want := range map[string]string{
		"http://127.0.0.1:1": "set HTTPS_PROXY or " + MirrorVar + ", or put the file into " + root,
		"host/path":          MirrorVar + "=host/path is no address",
		"ftp://host/path":    "give one such as https://host/path",
	} {
		if _, err := set.Fetch(t.Context(), root, options(t, address)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

func TestFetchGuards(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(root string, files map[string][]byte)
		want    string // of the error; empty for none
	}{
		{"known file damaged here", func(root string, _ map[string][]byte) {
			os.WriteFile(filepath.Join(root, "some/a"), []byte("x"), 0o644)
		}, ""},
		{"recorded file damaged here", func(root string, _ map[string][]byte) {
			os.WriteFile(filepath.Join(root, "some/b"), []byte("x"), 0o644)
		}, ""},
		{"known file lost, another published", func(root string, files map[string][]byte) {
			os.Remove(filepath.Join(root, "some/a"))
			files["some/a"] = []byte("other")
		}, "pinned is"},
		{"recorded file lost, another published", func(root string, files map[string][]byte) {
			os.Remove(filepath.Join(root, "some/b"))
			files["some/b"] = []byte("other")
		}, "pinned is"},
		{"file lost", func(root string, _ map[string][]byte) { os.Remove(filepath.Join(root, "some/a")) }, ""},
		{"not published any more", func(root string, files map[string][]byte) {
			os.Remove(filepath.Join(root, "some/b"))
			delete(files, "some/b")
		}, "404"},
		{"lock file damaged", func(root string, _ map[string][]byte) {
			os.WriteFile(filepath.Join(root, LockFile), []byte("{"), 0o644)
		}, "remove it to record"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set, files := sample()
			address, _ := mirror(t, files)
			root := t.TempDir()
			if _, err := set.Fetch(t.Context(), root, options(t, address)); err != nil {
				t.Fatal(err)
			}
			c.prepare(root, files)
			_, err := set.Fetch(t.Context(), root, options(t, address))
			if a, _ := os.ReadFile(filepath.Join(root, "some/a")); err == nil && sumOf(a) != set.Files[0].SHA256 {
				t.Errorf("some/a is %d other bytes after it was fetched again", len(a))
			}
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// A damaged archive whose checksum nobody pinned is not recorded, and one that was
// recorded is fetched again without --force.
func TestFetchDamagedArchive(t *testing.T) {
	var whole bytes.Buffer
	z := zip.NewWriter(&whole)
	w, err := z.Create("X_A.txt")
	if err == nil {
		_, err = w.Write([]byte("1, 2\n"))
	}
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	set := Set{Name: "x", Path: "x.zip", Files: []File{{Path: "x.zip", URL: "http://host.invalid/x.zip"}}}
	flipped := bytes.Clone(whole.Bytes())
	flipped[40] ^= 1 // in what is stored
	for name, damaged := range map[string][]byte{"cut": whole.Bytes()[:whole.Len()/2], "flipped": flipped} {
		files := map[string][]byte{"x.zip": damaged}
		address, _ := mirror(t, files)
		root := t.TempDir()
		path := filepath.Join(root, "x.zip")
		if _, err := set.Fetch(t.Context(), root, options(t, address)); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: a damaged archive gives %v", name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: the damaged archive was kept", name)
		}
		// As an earlier version left it.
		if err := errors.Join(os.WriteFile(path, damaged, 0o644), lock{"x.zip": {SHA256: sumOf(damaged)}}.write(root)); err != nil {
			t.Fatal(err)
		}
		files["x.zip"] = whole.Bytes()
		if _, err := set.Fetch(t.Context(), root, options(t, address)); err != nil {
			t.Errorf("%s: fetching again gives %v", name, err)
		}
		if got, _ := os.ReadFile(path); !bytes.Equal(got, whole.Bytes()) {
			t.Errorf("%s: the archive was not fetched again", name)
		}
	}
}

func TestForceTakesANewVersionWithoutChecksum(t *testing.T) {
	set, files := sample()
	address, _ := mirror(t, files)
	root := t.TempDir()
	if _, err := set.Fetch(t.Context(), root, options(t, address)); err != nil {
		t.Fatal(err)
	}
	files["some/b"] = []byte("second edition")
	o := options(t, address)
	o.Force = true
	if _, err := set.Fetch(t.Context(), root, o); err != nil {
		t.Fatal(err)
	}
	if lock, _ := readLock(root); lock["some/b"].SHA256 != sumOf(files["some/b"]) {
		t.Errorf("recorded %v", lock)
	}
	files["some/a"] = []byte("not the published one")
	if _, err := set.Fetch(t.Context(), root, o); err == nil {
		t.Error("a file with another checksum than the published one was taken")
	}
}

// A copy that nobody fetched is used where nothing is known of it.
func TestForeignCopy(t *testing.T) {
	set, files := sample()
	root := t.TempDir()
	os.Mkdir(filepath.Join(root, "some"), 0o755)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(root, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	os.Chmod(root, 0o555) // nothing has to be written
	t.Cleanup(func() { os.Chmod(root, 0o755) })
	o := options(t, "http://host.invalid")
	if _, err := set.Fetch(t.Context(), root, o); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".lock")); err == nil {
		t.Error("a copy that is there was locked")
	}
	if _, err := os.Stat(filepath.Join(root, LockFile)); err == nil {
		t.Error("a copy that was not fetched was recorded as published")
	}
}

func TestFind(t *testing.T) {
	for _, name := range []string{"cora", "Cora", "coauthor-phy", "OGBN_ARXIV", "imdb_binary"} {
		if _, ok := Find(name); !ok {
			t.Errorf("%s is not found", name)
		}
	}
	if _, ok := Find("corra"); ok {
		t.Error("corra is found")
	}
	seen := map[string]bool{}
	listed := 0
	for _, s := range Sets() {
		if seen[s.Name] || s.Name != strings.ToLower(s.Name) || s.About == "" || len(s.Files) == 0 {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
		for _, f := range s.Files {
			if !strings.HasPrefix(f.URL, "http") || f.Path != s.Path && !strings.HasPrefix(f.Path, s.Path+"/") || len(f.SHA256) != 64 && f.SHA256 != "" {
				t.Errorf("%s: %+v", s.Name, f)
			}
			if f.SHA256 != "" {
				listed++
			}
		}
	}
	if listed != len(checksums) {
		t.Errorf("%d files have a checksum, %d checksums are written down", listed, len(checksums))
	}
}

// The checksums are those of the files that the tests of package data read.
func TestChecksumsOfRealFiles(t *testing.T) {
	root := datatest.Path(t, ".")
	for path, want := range checksums {
		data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(data)) != want.size || sumOf(data) != want.sha256 {
			t.Errorf("%s has %d bytes and the checksum %s", path, len(data), sumOf(data))
		}
	}
}
