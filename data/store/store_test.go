package store

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/rng"
)

// small are the options of a graph that is drawn in no time.
func small() Planted {
	return Planted{Nodes: 3000, Edges: 12000, Classes: 4, Community: 30, Homophily: 0.8, Locality: 0.5, Wrong: 0.1, Features: 24, Signal: 0.5, Train: 100, Val: 50, Seed: 3}
}

func generated(t *testing.T, o Planted) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	if err := Generate(dir, o, Options{Memory: leastMemory}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func opened(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func all[T element](t *testing.T, s *Store, name string) []T {
	t.Helper()
	x, err := All[T](s, name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestHalf(t *testing.T) {
	back := make([]float32, 1)
	for h := range 1 << 16 {
		FromHalf(back, []uint16{uint16(h)})
		got, ok := ToHalf(back[0])
		if h&0x7c00 == 0x7c00 {
			if ok {
				t.Fatalf("%v passes for a number of float16", back[0])
			}
			continue
		}
		if !ok || got != uint16(h) {
			t.Fatalf("%#x became %v and %#x", h, back[0], got)
		}
	}
	// The nearest of two neighbours, the even one at ties.
	for h := uint16(0); h < 0x7bff; h++ {
		pair := make([]float32, 2)
		FromHalf(pair, []uint16{h, h + 1})
		middle := (pair[0] + pair[1]) / 2 // exact
		want := h + h&1
		if got, _ := ToHalf(middle); got != want {
			t.Fatalf("%v became %#x, want %#x", middle, got, want)
		}
		if got, _ := ToHalf(math.Nextafter32(middle, 0)); got != h {
			t.Fatalf("below %v: %#x, want %#x", middle, got, h)
		}
		if got, _ := ToHalf(math.Nextafter32(middle, 1e6)); got != h+1 {
			t.Fatalf("above %v: %#x, want %#x", middle, got, h+1)
		}
	}
}

func TestPermutation(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 1000, 4097} {
		p := newPermutation(rng.New(1, "x"), n)
		seen := make([]bool, n)
		moved := 0
		for i := range n {
			at := p.at(i)
			if at < 0 || at >= n || seen[at] || p.of(at) != i {
				t.Fatalf("%d of %d goes to %d, from where %d comes", i, n, at, p.of(at))
			}
			seen[at] = true
			if at != i {
				moved++
			}
		}
		if n >= 1000 && moved < int(n)*9/10 {
			t.Errorf("only %d of %d move", moved, n)
		}
	}
}

// TestGenerate holds the arrays of a generated graph against one another, with runs so
// small that several are merged.
func TestGenerate(t *testing.T) {
	s := opened(t, generated(t, small()))
	edges, planted, labels := all[int32](t, s, "edges"), all[uint8](t, s, "planted"), all[int32](t, s, "labels")
	at, sources := all[int64](t, s, "indptr"), all[int32](t, s, "sources")
	var rows [3000][]int32
	wrong, within := 0, 0
	for i := range planted {
		u, v := edges[2*i], edges[2*i+1]
		if u >= v || i > 0 && (u < edges[2*i-2] || u == edges[2*i-2] && v <= edges[2*i-1]) {
			t.Fatalf("edge %d is out of order", i)
		}
		rows[u], rows[v] = append(rows[u], v), append(rows[v], u)
		if planted[i] == 1 {
			if wrong++; labels[u] == labels[v] {
				t.Fatalf("the planted edge %d is within a class", i)
			}
		} else if labels[u] == labels[v] {
			within++
		}
	}
	for v, row := range rows {
		slices.Sort(row)
		if !slices.Equal(row, sources[at[v]:at[v+1]]) {
			t.Fatalf("node %d has the sources %v, and its edges say %v", v, sources[at[v]:at[v+1]], row)
		}
	}
	right := float64(len(planted) - wrong)
	if share := float64(within) / right; !(math.Abs(share-0.8) <= 0.03) {
		t.Errorf("%.3f of the right edges are within a class", share)
	}
	if !(math.Abs(float64(wrong)-1200) <= 20) || right < 10000 {
		t.Errorf("%d wrong edges, %v right ones", wrong, right)
	}
	x := all[float32](t, s, "x")
	sum, squares := 0.0, 0.0
	for _, v := range x {
		sum, squares = sum+float64(v), squares+float64(v*v)
	}
	n := float64(len(x))
	if mean, spread := sum/n, math.Sqrt(squares/n); !(math.Abs(mean) <= 0.2) || !(math.Abs(spread-math.Sqrt(1.25)) <= 0.1) {
		t.Errorf("features have the mean %.3f and the root mean square %.3f", mean, spread)
	}
	if train, val, test := all[int32](t, s, "train_0"), all[int32](t, s, "val_0"), all[int32](t, s, "test_0"); len(train) != 100 || len(val) != 50 || len(test) != 2850 {
		t.Errorf("a split of %d, %d and %d", len(train), len(val), len(test))
	}
}

// TestSorterMerges sorts in several runs what one run would hold, and keeps equal ones in order.
func TestSorterMerges(t *testing.T) {
	s := newSorter(t.TempDir(), "x", true, 0)
	s.most = 100
	r := rng.New(1, "records")
	type record struct {
		key uint64
		val uint32
	}
	var want, got []record
	for i := range uint32(1234) {
		k := r.Uint64(uint64(i)) & 0x3f00000000ff
		want = append(want, record{k, i})
		if err := s.add(k, i); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortStableFunc(want, func(a, b record) int { return int(int64(a.key>>1) - int64(b.key>>1)) })
	if err := s.merge(1<<20, func(k uint64, v uint32) error { got = append(got, record{k, v}); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(s.runs) != 13 || !slices.Equal(got, want) {
		t.Errorf("%d runs, %d of %d records, or in another order", len(s.runs), len(got), len(want))
	}
}

// TestResume breaks a build off at every stage; it ends in the same bytes, without doing
// again what was done.
func TestResume(t *testing.T) {
	whole := opened(t, generated(t, small()))
	stop := errors.New("stop")
	dir := filepath.Join(t.TempDir(), "store")
	for calls := 0; ; calls++ {
		left := calls
		err := Generate(dir, small(), Options{Memory: leastMemory, Progress: func(string, int64, int64) error {
			if left--; left < 0 {
				return stop
			}
			return nil
		}})
		if err == nil {
			break
		}
		if !errors.Is(err, stop) {
			t.Fatal(err)
		}
		if Is(dir) {
			t.Fatal("a build that was broken off left a store")
		}
	}
	if s := opened(t, dir); s.ID != whole.ID {
		t.Error("another store came of it")
	}
}

// A build that breaks off leaves no file open.
func TestBuildThatBreaksOffClosesItsFiles(t *testing.T) {
	b, err := New(filepath.Join(t.TempDir(), "store"), Options{Memory: leastMemory})
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.Array("x", "float32", 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := w.f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the file was open still: %v", err)
	}
}

func TestDamage(t *testing.T) {
	type damage struct {
		name string
		do   func(dir string) error
		at   string // in the error
	}
	flip := func(file string, at int64) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, file)
			if err := os.Chmod(path, 0o644); err != nil {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			b[at] ^= 4
			return os.WriteFile(path, b, 0o644)
		}
	}
	for _, d := range []damage{
		{"a header", flip(HeaderFile, 100), HeaderFile},
		{"a table", flip("x.sha256", 40), "x.sha256"},
		{"a block", flip("x.bin", 3*BlockSize+5), "x.bin: block 3"},
		{"the last bytes", flip("sources.bin", BlockSize+1), "sources.bin: block 1"},
		{"a truncated file", func(dir string) error {
			path := filepath.Join(dir, "x.bin")
			return errors.Join(os.Chmod(path, 0o644), os.Truncate(path, 1000))
		}, "x.bin"},
		{"a missing file", func(dir string) error { return os.Remove(filepath.Join(dir, "labels.bin")) }, "labels.bin"},
		{"no store", os.RemoveAll, "no graph store"},
	} {
		t.Run(d.name, func(t *testing.T) {
			dir := generated(t, small())
			if err := d.do(dir); err != nil {
				t.Fatal(err)
			}
			s, err := Open(dir)
			if err == nil {
				err = s.Verify(nil)
				_ = s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), d.at) {
				t.Errorf("the error is %v, want one about %s", err, d.at)
			}
		})
	}
}

// TestFirstTouch reads around a damaged block: only what is in it is refused.
func TestFirstTouch(t *testing.T) {
	dir := generated(t, small())
	path := filepath.Join(dir, "x.bin")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[2*BlockSize] ^= 1
	if err := errors.Join(os.Chmod(path, 0o644), os.WriteFile(path, b, 0o644)); err != nil {
		t.Fatal(err)
	}
	x := ViewOf[float32](opened(t, dir), "x")
	if _, err := x.At(0, 2*BlockSize/4); err != nil {
		t.Error(err)
	}
	var damaged *DamageError
	if _, err := x.At(2*BlockSize/4-1, 2*BlockSize/4+1); !errors.As(err, &damaged) || damaged.Block != 2 || damaged.File != path {
		t.Errorf("the error is %v", err)
	}
}

func TestLocks(t *testing.T) {
	dir := generated(t, small())
	a, b := opened(t, dir), opened(t, dir) // readers do not exclude each other
	var held *filelock.HeldError
	o := small()
	o.Seed++
	if err := Generate(dir, o, Options{Memory: leastMemory}); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("the error is %v", err)
	}
	if err := Generate(dir, o, Options{Memory: leastMemory, Force: true}); !errors.As(err, &held) {
		t.Errorf("a store was replaced while it was read: %v", err)
	}
	id := a.ID
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if err := Generate(dir, o, Options{Memory: leastMemory, Force: true}); err != nil {
		t.Fatal(err)
	}
	if opened(t, dir).ID == id {
		t.Error("the store is as before")
	}
}

// A store is locked until Close, also when nothing but its slices is left.
func TestLockWithoutStore(t *testing.T) {
	dir := generated(t, small())
	if s, err := Open(dir); err != nil || len(ViewOf[int32](s, "edges").Unchecked()) == 0 {
		t.Fatal(err)
	}
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // for finalizers
	}
	var held *filelock.HeldError
	if err := Generate(dir, small(), Options{Memory: leastMemory, Force: true}); !errors.As(err, &held) {
		t.Errorf("a store was replaced while it was read: %v", err)
	}
	for _, s := range ranges.Range {
		if s, ok := s.(*Store); ok && s.dir == dir {
			_ = s.Close()
		}
	}
}
