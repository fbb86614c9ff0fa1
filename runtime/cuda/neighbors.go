package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// The most rows and columns of a tile of products in a search for neighbours: 32 MiB,
// which the cache of a large GPU has room for, and rows for warps to fill it with.
const (
	searchRows = 4096
	searchCols = 2048
)

// listLength is the most places that gsrc_nearest fills at a time: one a lane of a warp.
const listLength = 32

// search is a search for the k nearest of each of n rows of f columns: its sizes, and
// where in its memory what lies.
type search struct {
	n, f, k    int
	rows, cols int // of a tile
	padded     int // rows of z: whole tiles, down as well as across

	idx, sim, z, tile uintptr // bytes from the beginning on: [n,k], [n,k], [padded,f], [rows,cols]
	bytes             int
}

// newSearch returns the sizes of a search by tiles of at most that many rows and columns.
// All tiles are of one size, by which cuBLAS chooses how it adds up: so equal rows are
// equally near, whichever tiles they are in.
func newSearch(n, f, k, mostRows, mostCols int) search {
	s := search{n: n, f: f, k: k}
	down, across := 0, 0
	s.rows, down = divide(n, mostRows)
	s.cols, across = divide(n, mostCols)
	s.padded = max(down*s.rows, across*s.cols)
	put := placing(0, &s.bytes)
	s.idx, s.sim, s.z, s.tile = put(4*n*k), put(4*n*k), put(4*s.padded*f), put(4*s.rows*s.cols)
	return s
}

// divide divides n rows into parts of equal size, a multiple of 32 and most at most.
func divide(n, most int) (size, parts int) {
	if n == 0 {
		return 0, 0
	}
	parts = (n + most - 1) / most
	size = ((n+parts-1)/parts + 31) &^ 31
	return size, (n + size - 1) / size
}

// queue queues the search among the rows at an address, with its memory at another.
func (s *search) queue(q *steps, emb, memory uintptr) {
	if s.n == 0 || s.k == 0 {
		return
	}
	idx, sim, z, tile := memory+s.idx, memory+s.sim, memory+s.z, memory+s.tile
	found := 0
	if s.f > 0 { // without columns there are no directions
		found = min(s.k, s.n-1)
		q.warps("gsrc_directions", s.padded, Ptr(z), Ptr(emb), Int(s.n), Int(s.padded), Int(s.f))
	}
	for from := 0; from < found; from += listLength {
		for r := 0; r < s.n; r += s.rows {
			for c := 0; c < s.n; c += s.cols {
				q.matMul(MatMul{C: tile, A: z + uintptr(4*r*s.f), B: z + uintptr(4*c*s.f), M: s.rows, N: s.cols, K: s.f, TB: true})
				rows, cols := min(s.rows, s.n-r), min(s.cols, s.n-c)
				q.warps("gsrc_nearest", rows, Ptr(idx), Ptr(sim), Ptr(tile), Int(r), Int(rows), Int(c), Int(cols), Int(s.cols), Int(s.k), Int(from))
			}
		}
	}
	q.every("gsrc_nearest_end", s.n*s.k, Ptr(idx), Ptr(sim), Int(s.n), Int(s.k), Int(found))
}

// Nearest finds nearest neighbours; see [graph.KNN]. Products are in full
// float32, also where others are in TF32. Their tiles, lists and the rows of length 1 lie
// in memory that is kept for the next search.
func (d *Device) Nearest(idx []int32, sim []float32, emb *runtime.Buffer, k int) error {
	if len(emb.Dims) != 2 {
		return fmt.Errorf("the %d nearest of the rows of a tensor of %v: want a matrix", k, emb.Dims)
	}
	if n := emb.Dims[0]; idx != nil && len(idx) != n*k || sim != nil && len(sim) != n*k {
		return fmt.Errorf("the %d nearest of %d rows are %d, with room for %d numbers and %d similarities", k, n, n*k, len(idx), len(sim))
	}
	at, err := d.searchNear(emb, k)
	if err != nil {
		return err
	}
	s := newSearch(emb.Dims[0], emb.Dims[1], k, searchRows, searchCols)
	err = d.Download(bytesOf(idx), at)
	if err == nil && len(sim) > 0 {
		err = d.Download(bytesOf(sim), at+s.sim-s.idx)
	}
	if err != nil {
		return s.failed(err)
	}
	return nil
}

func (s *search) failed(err error) error {
	return fmt.Errorf("searching the %d nearest of %d rows of %d: %w", s.k, s.n, s.f, err)
}

// searchNear queues a search, and returns where the numbers of the neighbours [n,k] i32
// will lie until the next one.
func (d *Device) searchNear(emb *runtime.Buffer, k int) (at uintptr, err error) {
	if len(emb.Dims) != 2 || emb.DType != ir.F32 || k < 0 {
		return 0, fmt.Errorf("the %d nearest of the rows of a tensor of %v: want a matrix of f32, and 0 at least", k, emb.Dims)
	}
	n, f := emb.Dims[0], emb.Dims[1]
	if n*f > 0 && !emb.OnDevice() {
		return 0, fmt.Errorf("the %d nearest of %d rows of %d: the rows are the host's; give them to the device first (ToDevice)", k, n, f)
	}
	s := newSearch(n, f, k, searchRows, searchCols)
	defer func() {
		if err != nil {
			err = s.failed(err)
		}
	}()
	d.near.DType = ir.F32
	if err := d.Reserve(&d.near, s.bytes/4); err != nil {
		return 0, err
	}
	if d.tf32 && d.blas != nil {
		if err := d.blas.SetTF32(false); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, d.blas.SetTF32(true)) }()
	}
	memory := d.near.Device.Elements
	return memory + s.idx, queued(d, func(q *steps) { s.queue(q, emb.Device.Elements, memory) })
}

// NearestBytes returns what Nearest takes of the device's memory.
func (d *Device) NearestBytes(n, f, k int) int {
	return newSearch(n, f, k, searchRows, searchCols).bytes
}

// bytesOf returns the memory of a slice.
func bytesOf[T int32 | int64 | uint64 | float32](x []T) []byte {
	if len(x) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(x[0])))
}
