//go:build darwin || linux

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/cudatest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/cuda/driver"
)

// exactRows draws n rows of 1, 4 or 16 elements that are ±1, by which lengths and
// products have no rounding and many rows are equally near. Some rows have no direction.
func exactRows(n, f int, seed uint64) []float32 {
	s := rng.New(seed, "rows")
	x := make([]float32, n*f)
	for i := range n {
		row, at := x[i*f:(i+1)*f], uint64(64*i)
		count := []int{1, 4, 16}[s.Intn(at, 3)]
		if count > f {
			count = 1
		}
		first := s.Intn(at+1, f)
		for c := range count {
			row[(first+c)%f] = float32(1 - 2*s.Intn(at+2+uint64(c), 2))
		}
		switch {
		case i%17 == 5:
			clear(row)
		case i%23 == 6:
			row[f-1] = float32(math.NaN())
		case i%29 == 7:
			row[0] = float32(math.Inf(-1))
		}
	}
	return x
}

// normalRows draws n rows of normal numbers.
func normalRows(n, f int) []float32 {
	s := rng.New(1, "rows")
	x := make([]float32, n*f)
	for i := range x {
		x[i] = float32(s.Normal(uint64(i)))
	}
	return x
}

// searchThere runs a search on the emulator.
func searchThere(t *testing.T, q *hostQueue, s search, x []float32) (idx []int32, sim []float32) {
	t.Helper()
	memory := slices.Repeat([]float64{math.NaN()}, s.bytes/8)
	at := place(t, q, memory)
	if err := queued(q, func(w *steps) { s.queue(w, place(t, q, x), at) }); err != nil {
		t.Fatal(err)
	}
	idx, sim = make([]int32, s.n*s.k), make([]float32, s.n*s.k)
	copy(bytesOf(idx), hostBytes(at+s.idx, 4*len(idx)))
	copy(bytesOf(sim), hostBytes(at+s.sim, 4*len(sim)))
	return idx, sim
}

// Where products have no rounding the search gives the CPU's bits, whatever the tiles
// and the order of threads.
func TestNearestEqualsTheCPU(t *testing.T) {
	q := newQueue(t)
	for _, c := range []struct{ n, f, k, rows, cols int }{
		{0, 3, 2, 64, 64}, {1, 5, 3, 64, 64}, {2, 16, 1, 64, 64}, {3, 0, 2, 64, 64}, {5, 3, 0, 64, 64},
		{33, 1, 4, 64, 64}, {70, 16, 100, 32, 64}, {97, 19, 33, 64, 32}, {97, 19, 33, 32, 4096}, {90, 17, 40, 4096, 64},
		{300, 16, 5, 64, 32}, {300, 33, 5, 4096, 2048}, {450, 16, 10, 160, 256},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			x := []float32{}
			if c.f > 0 {
				x = exactRows(c.n, c.f, 1)
			}
			wantIdx, wantSim := graph.KNN(nil, x, c.n, c.f, c.k)
			for order := range uint64(2) {
				q.Seed(1 + order)
				idx, sim := searchThere(t, q, newSearch(c.n, c.f, c.k, c.rows, c.cols), x)
				for i := range idx {
					if idx[i] != wantIdx[i] || sim[i] != wantSim[i] {
						t.Fatalf("node %d, place %d: %d at %v, want %d at %v", i/c.k, i%c.k, idx[i], sim[i], wantIdx[i], wantSim[i])
					}
				}
			}
		})
	}
}

// Of any rows, the neighbours are as near as the CPU's, in order, and equal rows are
// equally near wherever they stand.
func TestNearestOfAnyRows(t *testing.T) {
	q := newQueue(t)
	const n, f, k = 210, 19, 35
	x := normalRows(n, f)
	for _, v := range []int{3, 165, 209} { // in tiles of their own
		copy(x[v*f:(v+1)*f], x[:f])
	}
	for v := 20; v < 60; v++ { // some of which are nearer than 1, by rounding
		copy(x[(v+100)*f:(v+101)*f], x[v*f:(v+1)*f])
	}
	clear(x[9*f : 10*f])
	for c := range f { // a row whose squares float32 does not hold
		x[11*f+c] *= 1e30
	}
	_, want := graph.KNN(nil, x, n, f, k)
	idx, sim := searchThere(t, q, newSearch(n, f, k, 96, 64), x)
	for i := range n {
		seen := map[int32]bool{int32(i): true}
		for p := range k {
			j, s := idx[i*k+p], sim[i*k+p]
			if i == 9 {
				if j != -1 || s != 0 {
					t.Errorf("a zero row has the neighbour %d at %v", j, s)
				}
				continue
			}
			if j < 0 || j == 9 || seen[j] {
				t.Fatalf("node %d has the neighbours %v", i, idx[i*k:(i+1)*k])
			}
			seen[j] = true
			if d := math.Abs(float64(s - want[i*k+p])); !(d <= 1e-6) || s > 1 || s < -1 {
				t.Errorf("node %d, place %d: %d at %v, the CPU has %v", i, p, j, s, want[i*k+p])
			}
			if p > 0 && (s > sim[i*k+p-1] || s == sim[i*k+p-1] && j < idx[i*k+p-1]) {
				t.Errorf("node %d: places %d and %d are out of order: %v, %v", i, p-1, p, idx[i*k:(i+1)*k], sim[i*k:(i+1)*k])
			}
		}
	}
	for v, want := range map[int][]int32{0: {3, 165, 209}, 3: {0, 165, 209}, 165: {0, 3, 209}, 209: {0, 3, 165}} {
		if got := idx[v*k : v*k+3]; !slices.Equal(got, want) {
			t.Errorf("node %d has nearest %v at %v, want %v", v, got, sim[v*k:v*k+3], want)
		}
	}
}

// The memory of a search is bounded by its rows, not by their pairs.
func TestSearchMemory(t *testing.T) {
	for _, n := range []int{0, 1, 32, 33, 2048, 2049, 4097, 34493, 169343, 1_000_000} {
		s := newSearch(n, 128, 5, searchRows, searchCols)
		if s.padded < n || s.rows > searchRows || s.cols > searchCols || s.rows*s.cols > 8<<20 {
			t.Errorf("%d rows: %+v", n, s)
		}
		if most := 4*(2*5*n+128*(n+n/20+64)) + 4*s.rows*s.cols + 1024; s.bytes > most {
			t.Errorf("%d rows take %d bytes, more than %d", n, s.bytes, most)
		}
		if got := Planner.CandidateBytes(n, 128, 0, runtime.CandidateOptions{K: 5, Index: graph.IndexExact, OnHost: true}); got != s.bytes {
			t.Errorf("%d rows were planned to take %d bytes, not %d", n, got, s.bytes)
		}
	}
}

// On a device a search has the CPU's neighbours, the same each time, also where other
// products are in TF32.
func TestDeviceNearest(t *testing.T) {
	mock := cudatest.Either(t)
	n, f, k := 80, 20, 7
	if mock == nil {
		n, f, k = 9000, 128, 20
	}
	x := exactRows(n, f, 2)
	normal := normalRows(n, f)
	wantIdx, wantSim := graph.KNN(nil, x, n, f, k)
	var first []float32
	for _, o := range []Options{{}, {}, {TF32: true}} {
		d, err := Open(o)
		if err != nil {
			t.Fatal(err)
		}
		emb, other := runtime.F32(x, n, f), runtime.F32(normal, n, f)
		if err := errors.Join(d.ToDevice(emb), d.ToDevice(other)); err != nil {
			t.Fatal(err)
		}
		idx, sim := make([]int32, n*k), make([]float32, n*k)
		for range 2 {
			clear(idx)
			if err := errors.Join(d.Nearest(idx, nil, emb, k), d.Nearest(nil, sim, emb, k)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(idx, wantIdx) || !slices.Equal(sim, wantSim) {
				t.Fatalf("%+v: the neighbours are not those on the CPU", o)
			}
		}
		if err := d.Nearest(idx, sim, other, k); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = slices.Clone(sim)
		}
		if !slices.Equal(sim, first) {
			t.Errorf("%+v: other similarities than without", o)
		}
		if err := d.Nearest([]int32{}, nil, runtime.Zeros(0, 5), k); err != nil {
			t.Errorf("no rows: %v", err)
		}
		if now, _ := d.Held(); now < d.NearestBytes(n, f, k) {
			t.Errorf("%d bytes are held", now)
		}
		for _, c := range []error{d.Nearest(nil, nil, runtime.Zeros(3), 1), d.Nearest(nil, nil, runtime.Zeros(3, 2), 1), d.Nearest(nil, nil, runtime.I64(nil, 0, 2), 1), d.Nearest(nil, nil, emb, -1), d.Nearest(idx[1:], nil, emb, k), d.Nearest(nil, sim[1:], emb, k)} {
			if c == nil {
				t.Error("what cannot be searched is accepted")
			}
		}
		if err := errors.Join(d.ReleaseAll(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// A fault in a search is its error, and after one of memory the device goes on.
func TestNearestFaults(t *testing.T) {
	const n, f, k = 40, 16, 3
	x := exactRows(n, f, 3)
	want, _ := graph.KNN(nil, x, n, f, k)
	for _, c := range []struct {
		fault string
		at    int64
		want  error
	}{{"fail_alloc", 1, driver.ErrOutOfMemory}, {"fail_launch", 2, driver.ErrLaunch}, {"device_lost", 3, driver.ErrDeviceLost}} {
		s := cudatest.MockDriver(t)
		d, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		emb := runtime.F32(x, n, f)
		if err := d.ToDevice(emb); err != nil {
			t.Fatal(err)
		}
		if err := s.Set(c.fault, c.at); err != nil {
			t.Fatal(err)
		}
		idx := make([]int32, n*k)
		err = d.Nearest(idx, nil, emb, k)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), "searching the 3 nearest of 40 rows of 16") {
			t.Errorf("%s: %v", c.fault, err)
		}
		var memory *runtime.MemoryError
		if oom := c.want == driver.ErrOutOfMemory; errors.As(err, &memory) != oom {
			t.Errorf("%s: the error is %T", c.fault, err)
		} else if oom {
			if memory.Asked != d.NearestBytes(n, f, k) {
				t.Errorf("asked for %d bytes", memory.Asked)
			}
			if err := d.Nearest(idx, nil, emb, k); err != nil || !slices.Equal(idx, want) {
				t.Errorf("afterwards: %v", err)
			}
		}
		if err := d.Close(); err != nil && c.want == driver.ErrOutOfMemory {
			t.Error(err)
		}
	}
}
