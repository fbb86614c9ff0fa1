package download

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// server serves one file, with ranges, and can misbehave.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	data     []byte
	etag     string
	breakOff []int // bytes after which the next answers break off; 0 is never
	status   []int // of the next answers; 0 is as it should be
	noRanges bool
	requests []string // the Range of each request
	sent     int      // bytes of bodies
}

func newServer(t *testing.T, data []byte) *server {
	t.Helper()
	s := &server{data: data, etag: `"one"`}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Header.Get("Range"))
	if len(s.status) > 0 {
		code := s.status[0]
		s.status = s.status[1:]
		if code != 0 {
			http.Error(w, "no", code)
			return
		}
	}
	if s.noRanges {
		r.Header.Del("Range")
	}
	if s.etag != "" {
		w.Header().Set("ETag", s.etag)
	}
	most := 0
	if len(s.breakOff) > 0 {
		most = s.breakOff[0]
		s.breakOff = s.breakOff[1:]
	}
	http.ServeContent(&limited{w, s, most}, r, "", time.Time{}, strings.NewReader(string(s.data)))
}

// limited breaks the connection after some bytes.
type limited struct {
	http.ResponseWriter
	s    *server
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	if l.most == 0 || len(p) < l.most {
		if l.most > 0 {
			l.most -= len(p)
		}
		l.s.sent += len(p)
		return l.ResponseWriter.Write(p)
	}
	l.ResponseWriter.Write(p[:l.most])
	l.s.sent += l.most
	l.ResponseWriter.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func content(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * i >> 3)
	}
	return b
}

func sumOf(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// quick are options that do not wait long.
func quick(t *testing.T, tries int) Options {
	return Options{Tries: tries, Wait: time.Millisecond, Log: t.Logf}
}

// holds checks what is in a folder: the file alone, or what is left to go on with.
func holds(t *testing.T, path string, want []byte, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	if fmt.Sprint(have) != fmt.Sprint(names) {
		t.Errorf("the folder has %v, want %v", have, names)
	}
	if want != nil {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != string(want) {
			t.Errorf("the file is not what was served: %v", err)
		}
	}
}

func TestGet(t *testing.T) {
	data := content(300_000)
	s := newServer(t, data)
	path := filepath.Join(t.TempDir(), "f")
	var last, total int64
	o := quick(t, 1)
	o.Progress = func(d, n int64) { last, total = d, n }
	sum, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: sumOf(data)}, o)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Size != 300_000 || sum.SHA256 != sumOf(data) || last != 300_000 || total != 300_000 {
		t.Errorf("%+v, progress %d of %d", sum, last, total)
	}
	holds(t, path, data, "f")
}

// A transfer that breaks off goes on where it ended, within a call and in the next
// one, which may be another process after a kill.
func TestResume(t *testing.T) {
	data := content(100_000)
	for _, c := range []struct {
		name string
		sum  string
	}{{"known checksum", sumOf(data)}, {"version only", ""}} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, data)
			s.breakOff = []int{40_000, 30_000, 10_000}
			path := filepath.Join(t.TempDir(), "f")
			_, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: c.sum}, quick(t, 2))
			if err == nil || !strings.Contains(err.Error(), "broke off after 70000 bytes") {
				t.Fatalf("error %v", err)
			}
			holds(t, path, nil, "f.part", "f.part.from")
			if _, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: c.sum}, quick(t, 2)); err != nil {
				t.Fatal(err)
			}
			holds(t, path, data, "f")
			if got := fmt.Sprint(s.requests); got != "[ bytes=40000- bytes=70000- bytes=80000-]" {
				t.Errorf("requests %s", got)
			}
			if s.sent != len(data) {
				t.Errorf("%d bytes were sent for a file of %d", s.sent, len(data))
			}
		})
	}
}

// A process that is killed in the middle of a transfer leaves what had arrived.
func TestResumeAfterAStop(t *testing.T) {
	data := content(3 << 20)
	s := newServer(t, data)
	path := filepath.Join(t.TempDir(), "f")
	ctx, cancel := context.WithCancel(t.Context())
	o := quick(t, 3)
	o.Progress = func(done, _ int64) {
		if done > 1<<20 {
			cancel()
		}
	}
	if _, err := Get(ctx, File{URL: s.URL, Path: path}, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	holds(t, path, nil, "f.part", "f.part.from")
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path}, quick(t, 1)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
	if from := strings.TrimSuffix(strings.TrimPrefix(s.requests[1], "bytes="), "-"); len(s.requests) != 2 || len(from) < 7 {
		t.Errorf("requests %q", s.requests)
	}
}

func TestResumeOfAnotherVersionStartsAgain(t *testing.T) {
	old, data := content(50_000), []byte(strings.Repeat("new", 20_000))
	s := newServer(t, old)
	s.breakOff = []int{20_000}
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path}, quick(t, 1)); err == nil {
		t.Fatal("a broken transfer succeeded")
	}
	s.data, s.etag = data, `"two"`
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path}, quick(t, 1)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
}

// Without version and checksum nothing says that the rest belongs to the part.
func TestNoResumeWithoutVersion(t *testing.T) {
	data := content(50_000)
	s := newServer(t, data)
	s.etag, s.breakOff = "", []int{20_000}
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path}, quick(t, 2)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
	if got := fmt.Sprint(s.requests); got != "[ ]" {
		t.Errorf("requests %q", got)
	}
}

// A part that is wrong costs one more transfer, and no more.
func TestWrongPartIsDropped(t *testing.T) {
	data := content(50_000)
	s := newServer(t, data)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path+".part", []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: sumOf(data)}, quick(t, 1)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
}

// Killed between the last byte and the rename.
func TestWholePartIsTaken(t *testing.T) {
	data := content(50_000)
	s := newServer(t, data)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path+".part", data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: sumOf(data)}, quick(t, 1)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
	if len(s.requests) != 1 || s.sent >= len(data) {
		t.Errorf("requests %q, %d bytes sent", s.requests, s.sent)
	}
}

func TestServerWithoutRanges(t *testing.T) {
	data := content(50_000)
	s := newServer(t, data)
	s.noRanges, s.breakOff = true, []int{20_000}
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path, SHA256: sumOf(data)}, quick(t, 2)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
}

// A server that sends without end, and says nothing of the length, is left as soon as
// it has sent more than is pinned.
func TestSizeBoundsTheTransfer(t *testing.T) {
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for sent.Load() < 256<<20 && r.Context().Err() == nil {
			n, err := w.Write(make([]byte, 64<<10))
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	defer s.Close()
	f := File{URL: s.URL, Path: filepath.Join(t.TempDir(), "f"), Size: 22000, SHA256: strings.Repeat("0", 64)}
	_, err := Get(t.Context(), f, quick(t, 3))
	if err == nil || !strings.Contains(err.Error(), "larger than the pinned 22000 bytes") {
		t.Errorf("error %v, want one that the file is larger than is pinned", err)
	}
	if n := sent.Load(); n > 64<<20 { // what sockets hold, and nothing near the whole
		t.Errorf("the server sent %d bytes of a file of 22000", n)
	}
	if files, _ := os.ReadDir(filepath.Dir(f.Path)); len(files) > 0 {
		t.Errorf("%v stays", files)
	}
}

func TestRefusals(t *testing.T) {
	data := content(1000)
	for _, c := range []struct {
		name     string
		prepare  func(*server, *File)
		requests int
		want     string
	}{
		{"wrong checksum", func(_ *server, f *File) { f.SHA256 = strings.Repeat("0", 64) }, 1, "pinned is 000"},
		{"not there", func(s *server, _ *File) { s.status = []int{404} }, 1, "404"},
		{"forbidden", func(s *server, _ *File) { s.status = []int{403} }, 1, "403"},
		{"too large", func(_ *server, f *File) { f.Limit = 999 }, 1, "larger than"},
		{"larger than pinned", func(_ *server, f *File) { f.Size = 999 }, 1, "larger than the pinned 999 bytes"},
		{"broken for long", func(s *server, _ *File) { s.status = []int{500, 502, 503} }, 3, "503"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, data)
			f := File{URL: s.URL, Path: filepath.Join(t.TempDir(), "f")}
			c.prepare(s, &f)
			if err := os.WriteFile(f.Path, []byte("before"), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := Get(t.Context(), f, quick(t, 3))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if len(s.requests) != c.requests {
				t.Errorf("%d requests, want %d", len(s.requests), c.requests)
			}
			holds(t, f.Path, []byte("before"), "f")
		})
	}
}

func TestPassingFaultsAreTriedAgain(t *testing.T) {
	data := content(1000)
	s := newServer(t, data)
	s.status = []int{500, 429, 0}
	path := filepath.Join(t.TempDir(), "f")
	if _, err := Get(t.Context(), File{URL: s.URL, Path: path}, quick(t, 3)); err != nil {
		t.Fatal(err)
	}
	holds(t, path, data, "f")
}

func TestGetStopsWithContext(t *testing.T) {
	s := newServer(t, content(1000))
	s.status = []int{500, 500, 500}
	ctx, cancel := context.WithCancel(t.Context())
	o := Options{Tries: 3, Wait: time.Hour, Log: func(string, ...any) { cancel() }}
	if _, err := Get(ctx, File{URL: s.URL, Path: filepath.Join(t.TempDir(), "f")}, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

func TestUnreachableHostFailsFast(t *testing.T) {
	// A name reserved for being nobody's.
	if _, err := Get(t.Context(), File{URL: "http://host.invalid/x.tgz", Path: filepath.Join(t.TempDir(), "x")}, Options{}); err == nil {
		t.Fatal("a download from a host that does not exist succeeded")
	}
}

func TestContentRange(t *testing.T) {
	for _, c := range []struct {
		text         string
		start, total int64
		ok           bool
	}{
		{"bytes 10-19/20", 10, 20, true},
		{"bytes 0-0/*", 0, -1, true},
		{"bytes */20", 0, 20, false},
		{"bytes -1-2/3", 0, 3, false},
		{"lines 1-2/3", -1, -1, false},
		{"", -1, -1, false},
	} {
		start, total, ok := contentRange(c.text)
		if ok != c.ok || ok && start != c.start || total != c.total {
			t.Errorf("%q: %d of %d, %t", c.text, start, total, ok)
		}
	}
}
