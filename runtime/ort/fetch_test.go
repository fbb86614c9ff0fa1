package ort

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func makeTgz(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	gz := gzip.NewWriter(&b)
	w := tar.NewWriter(gz)
	for _, e := range []struct {
		name string
		data []byte
	}{{"./README", []byte("read me")}, {name, data}} {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o644, Size: int64(len(e.data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func makeZip(t *testing.T, name string, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	f, err := w.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// stage is a fetcher whose origins are a local server and pretended
// package managers, each with its own library so that one can tell them apart.
type stage struct {
	*fetcher
	archives map[originKind][]byte
	failing  map[originKind]error
	served   map[originKind]*atomic.Int32
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{archives: map[originKind][]byte{}, failing: map[originKind]error{}, served: map[originKind]*atomic.Int32{}}
	var origins []origin
	for i, kind := range []originKind{originRelease, originWheel} {
		lib := machoLibrary(cpuArm64, 1, 27, i+1)
		archive := makeTgz(t, "./dir/lib.dylib", lib)
		if kind == originWheel {
			archive = makeZip(t, "dir/lib.dylib", lib)
		}
		s.archives[kind] = archive
		s.served[kind] = new(atomic.Int32)
		origins = append(origins, origin{kind: kind, archive: "release.tgz", archiveSHA256: sumOf(archive), member: "dir/lib.dylib", librarySHA256: sumOf(lib)})
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.served[originRelease].Add(1)
		if s.failing[originRelease] != nil {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		w.Write(s.archives[originRelease])
	}))
	t.Cleanup(server.Close)
	s.fetcher = &fetcher{locator: darwinLocator(t, nil), origins: origins, releaseURL: server.URL + "/"}
	s.runCommand = func(_ context.Context, dir, name string, args ...string) error {
		s.served[originWheel].Add(1)
		if err := s.failing[originWheel]; err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, "p.whl"), s.archives[originWheel], 0o644)
	}
	return s
}

// leftovers lists what lies in the cache besides library and lock.
func (s *stage) leftovers(t *testing.T) []string {
	t.Helper()
	dir, err := s.cacheDir()
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if e.Name() != ".lock" && e.Name() != cachedName(s.goos) {
			list = append(list, e.Name())
		}
	}
	return list
}

func TestEnsureOrder(t *testing.T) {
	broken := errors.New("out of order")
	tests := []struct {
		name    string
		prepare func(*stage)
		version string // of the library that is installed; empty: none
		wantErr []string
	}{
		{"release first", func(*stage) {}, "1.27.1", nil},
		{"wheel second", func(s *stage) { s.failing[originRelease] = broken }, "1.27.2", nil},
		{"wrong archive is refused", func(s *stage) { s.archives[originRelease] = []byte("something else") }, "1.27.2", nil},
		{"wrong library is refused", func(s *stage) { s.origins[0].librarySHA256 = strings.Repeat("0", 64) }, "1.27.2", nil},
		{"missing member is refused", func(s *stage) { s.origins[0].member = "dir/other.dylib" }, "1.27.2", nil},
		{"nothing works", func(s *stage) {
			s.archives[originRelease] = []byte("something else")
			s.failing[originWheel] = broken
		}, "", []string{"pinned is", "out of order", "By hand, any one of these", EnvVar}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newStage(t)
			test.prepare(s)
			lib, err := s.ensure(t.Context(), t.Logf)
			if left := s.leftovers(t); len(left) > 0 {
				t.Errorf("left behind in the cache: %v", left)
			}
			if test.version == "" {
				var missing *NotFoundError
				if !errors.As(err, &missing) {
					t.Fatalf("error %v, want a NotFoundError", err)
				}
				for _, part := range test.wantErr {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("the message does not contain %q:\n%v", part, err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if lib.Version != test.version {
				t.Errorf("installed library %s, want %s", lib.Version, test.version)
			}
			// The second call finds it in the cache and asks nobody.
			before := s.served[originRelease].Load()
			again, err := s.ensure(t.Context(), t.Logf)
			if err != nil || again != lib {
				t.Errorf("second call: %+v, %v; want %+v", again, err, lib)
			}
			if s.served[originRelease].Load() != before {
				t.Error("the second call fetched again")
			}
		})
	}
}

func TestEnsureCutTransfer(t *testing.T) {
	s := newStage(t)
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(s.archives[originRelease])))
		w.Write(s.archives[originRelease][:50])
	}))
	defer cut.Close()
	s.releaseURL = cut.URL + "/"
	lib, err := s.ensure(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	if lib.Version != "1.27.2" {
		t.Errorf("a transfer cut short must lead to the next source, got library %s", lib.Version)
	}
}

func TestEnsureInParallel(t *testing.T) {
	s := newStage(t)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = s.ensure(t.Context(), nil) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if n := s.served[originRelease].Load(); n != 1 {
		t.Errorf("the archive was fetched %d times, want once", n)
	}
}

func TestEnsureStopsWithContext(t *testing.T) {
	s := newStage(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.failing[originRelease] = errors.New("not here")
	s.runCommand = func(ctx context.Context, _, _ string, _ ...string) error {
		cancel()
		return ctx.Err()
	}
	if _, err := s.ensure(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if left := s.leftovers(t); len(left) > 0 {
		t.Errorf("left behind in the cache: %v", left)
	}
}

func TestPackageManagersRunNoScripts(t *testing.T) {
	s := newStage(t)
	s.failing[originRelease] = errors.New("not here")
	var calls [][]string
	s.runCommand = func(_ context.Context, _, name string, args ...string) error {
		calls = append(calls, append([]string{name}, args...))
		return errors.New("not here either")
	}
	s.ensure(t.Context(), nil)
	if len(calls) != 1 || !slices.Contains(calls[0], "--only-binary=:all:") {
		t.Errorf("pip needs --only-binary=:all:, got %v", calls)
	}
}
