package graph

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Near keeps the exact nearest neighbours of rows that change, by cosine similarity. On
// the same rows it has what [Neighbors.Exact] finds, to the bit, however they came to be.
//
// Every row has a list of more neighbours than are asked for, the first of all others in
// the order of nearness: where some of them move away, the rest still holds what is
// wanted. A row is compared with all others when it changes, or when its list runs out.
type Near struct {
	k, m, n, f int
	z          []float32 // [n,f] rows of length 1; zeros where there is none
	there      []bool    // [n]
	idx        []int32   // [n,m]
	sim        []float32 // [n,m]
	size       []int32   // [n] how many are in the list
	bound      []place   // [n] what is not in the list comes behind this

	undo  map[int32]nearRow // rows before [Near.Change]
	undoN int
	tile  []float32
	floor []float32 // [n] the least similarity that a list takes
	mark  []bool    // [n]
}

// place is a place in the order of nearness.
type place struct {
	sim float32
	row int32
}

func (a place) before(b place) bool { return a.sim > b.sim || a.sim == b.sim && a.row < b.row }

// everything is behind every place: a list with this bound holds all others.
var everything = place{float32(math.Inf(-1)), math.MaxInt32}

type nearRow struct {
	z     []float32 // nil where it has not changed
	idx   []int32
	sim   []float32
	there bool
	size  int32
	bound place
}

// NewNear searches the k nearest neighbours of the rows of emb, [n,f]. Rows without a
// direction have no neighbours and are nobody's, see [KNN].
func NewNear(pool *kernels.Pool, emb []float32, n, f, k int) *Near {
	s := &Near{k: k, m: 2*k + 6, f: f}
	s.grow(n)
	var d directions
	d.of(pool, emb, n, f)
	rows := len(d.nodes)
	for i, v := range d.nodes {
		s.there[v] = true
		copy(s.z[int(v)*f:], d.z[i*f:(i+1)*f])
	}
	idx, sim := make([]int32, rows*s.m), make([]float32, rows*s.m)
	if f > 0 && k > 0 {
		pool.Nearest(idx, sim, d.z, rows, f, s.m)
	}
	for i, v := range d.nodes {
		at := int(v) * s.m
		for q, j := range idx[i*s.m : (i+1)*s.m] {
			if j < 0 || k == 0 {
				break
			}
			s.idx[at+q], s.sim[at+q] = d.nodes[j], sim[i*s.m+q]
			s.size[v]++
		}
		s.settle(v)
	}
	return s
}

// settle sets the bound of a list that was searched anew.
func (s *Near) settle(v int32) {
	s.bound[v] = everything
	if n := int(s.size[v]); n == s.m {
		at := int(v)*s.m + n - 1
		s.bound[v] = place{s.sim[at], s.idx[at]}
	}
}

func (s *Near) grow(n int) {
	s.n = n
	s.z = append(s.z, make([]float32, n*s.f-len(s.z))...)
	s.there = append(s.there, make([]bool, n-len(s.there))...)
	s.mark = append(s.mark, make([]bool, n-len(s.mark))...)
	s.idx = append(s.idx, make([]int32, n*s.m-len(s.idx))...)
	s.sim = append(s.sim, make([]float32, n*s.m-len(s.sim))...)
	s.size = append(s.size, make([]int32, n-len(s.size))...)
	for len(s.bound) < n {
		s.bound = append(s.bound, everything)
	}
}

// Nearest returns the k nearest neighbours of a row, or fewer where there are fewer, the
// nearest first. They are valid until the next change.
func (s *Near) Nearest(v int32) []int32 {
	at := int(v) * s.m
	return s.idx[at : at+min(s.k, int(s.size[v]))]
}

// Similarity returns the cosine of two rows, as searches have it but for rounding.
func (s *Near) Similarity(u, v int32) float64 {
	sum := 0.0
	a, b := s.z[int(u)*s.f:(int(u)+1)*s.f], s.z[int(v)*s.f:(int(v)+1)*s.f]
	for i, x := range a {
		sum += float64(float64(x) * float64(b[i]))
	}
	return sum
}

// Change gives rows other values, emb [len(rows),f], in which zeros take a row away. n is
// how many rows there are now, at least as many as before; the new ones are among rows.
// rows ascend. It returns the rows whose k nearest neighbours are others now, ascending.
// [Near.Undo] takes the last change back.
func (s *Near) Change(pool *kernels.Pool, rows []int32, emb []float32, n int) (changed []int32) {
	s.undo, s.undoN = map[int32]nearRow{}, s.n
	s.grow(n)
	for i, v := range rows {
		s.save(v)
		old := s.undo[v]
		old.z = slices.Clone(s.z[int(v)*s.f : (int(v)+1)*s.f])
		s.undo[v] = old
		s.mark[v] = true
		s.there[v] = normalize(s.z[int(v)*s.f:(int(v)+1)*s.f], emb[i*s.f:(i+1)*s.f])
		s.size[v], s.bound[v] = 0, everything
	}
	for v := range int32(s.n) { // the changed rows leave the lists of others
		if !s.mark[v] {
			s.leave(v)
		}
	}
	there := slices.DeleteFunc(slices.Clone(rows), func(v int32) bool { return !s.there[v] })
	s.search(pool, there, true)
	var short []int32
	for v := range s.undo {
		if !s.mark[v] && int(s.size[v]) < s.k && s.bound[v] != everything {
			short = append(short, v)
		}
	}
	slices.Sort(short)
	for _, v := range short {
		s.size[v], s.bound[v] = 0, everything
		s.mark[v] = true
	}
	s.search(pool, short, false)
	for v, old := range s.undo {
		s.mark[v] = false
		if was := old.idx[:min(s.k, int(old.size))]; !slices.Equal(was, s.Nearest(v)) {
			changed = append(changed, v)
		}
	}
	slices.Sort(changed)
	return changed
}

// save keeps a row as it was before the change.
func (s *Near) save(v int32) {
	if _, ok := s.undo[v]; ok {
		return
	}
	at, size := int(v)*s.m, s.size[v]
	s.undo[v] = nearRow{idx: slices.Clone(s.idx[at : at+int(size)]), sim: slices.Clone(s.sim[at : at+int(size)]), there: s.there[v], size: size, bound: s.bound[v]}
}

// Undo makes everything as it was before the last change.
func (s *Near) Undo() {
	for v, old := range s.undo {
		copy(s.z[int(v)*s.f:], old.z)
		copy(s.idx[int(v)*s.m:], old.idx)
		copy(s.sim[int(v)*s.m:], old.sim)
		s.there[v], s.size[v], s.bound[v] = old.there, old.size, old.bound
	}
	n := s.undoN
	s.n, s.z, s.there, s.mark = n, s.z[:n*s.f], s.there[:n], s.mark[:n]
	s.idx, s.sim, s.size, s.bound = s.idx[:n*s.m], s.sim[:n*s.m], s.size[:n], s.bound[:n]
	s.undo = nil
}

// leave drops marked rows from a list.
func (s *Near) leave(v int32) {
	at, size := int(v)*s.m, int(s.size[v])
	for q, u := range s.idx[at : at+size] {
		if !s.mark[u] {
			continue
		}
		s.save(v)
		to := q
		for ; q < size; q++ {
			if u := s.idx[at+q]; !s.mark[u] {
				s.idx[at+to], s.sim[at+to] = u, s.sim[at+q]
				to++
			}
		}
		s.size[v] = int32(to)
		return
	}
}

// offer puts a row into the list of v if it belongs there.
func (s *Near) offer(v int32, p place) {
	if !p.before(s.bound[v]) {
		return
	}
	at, size := int(v)*s.m, int(s.size[v])
	q := size
	for q > 0 && p.before(place{s.sim[at+q-1], s.idx[at+q-1]}) {
		q--
	}
	s.save(v)
	if size == s.m {
		size--
	}
	for i := size; i > q; i-- {
		s.idx[at+i], s.sim[at+i] = s.idx[at+i-1], s.sim[at+i-1]
	}
	s.idx[at+q], s.sim[at+q] = p.row, p.sim
	s.size[v] = int32(size + 1)
	if size+1 == s.m {
		s.bound[v] = place{s.sim[at+size], s.idx[at+size]}
	}
}

// Sizes of the tiles that a search is made in.
const (
	nearRows = 384
	nearCols = 2048
)

// search compares rows, which are marked, with all others, and fills their lists. With
// both they are offered to the lists of unmarked rows, too.
func (s *Near) search(pool *kernels.Pool, rows []int32, both bool) {
	if s.k == 0 || s.f == 0 || len(rows) == 0 {
		return
	}
	never := float32(math.Inf(1))
	s.floor = room(s.floor, s.n)
	for v := range s.floor {
		if s.floor[v] = never; both && s.there[v] && !s.mark[v] {
			s.floor[v] = s.bound[v].sim
		}
	}
	s.tile = room(s.tile, nearRows*nearCols)
	z := make([]float32, 0, nearRows*s.f)
	hits := make([][]place, nearRows) // of each row, the rows to whose lists it is offered
	for part := range slices.Chunk(rows, nearRows) {
		z = z[:0]
		for _, v := range part {
			z = append(z, s.z[int(v)*s.f:(int(v)+1)*s.f]...)
		}
		for first := 0; first < s.n; first += nearCols {
			width := min(nearCols, s.n-first)
			pool.MatMul(s.tile, z, s.z[first*s.f:], len(part), s.f, width, false, true, kernels.Epilogue{})
			parallel(pool, len(part), 8, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					hits[i] = s.scan(hits[i][:0], part[i], first, s.tile[i*width:(i+1)*width])
				}
			})
			for i, u := range part {
				for _, h := range hits[i] {
					s.offer(h.row, place{h.sim, u})
				}
			}
		}
	}
}

// scan looks through the similarities of u with the rows from first on, fills its list,
// and appends to hits the rows whose lists it may belong in. It writes nothing but the
// list of u, which is saved.
func (s *Near) scan(hits []place, u int32, first int, sim []float32) []place {
	least, floor := s.bound[u].sim, s.floor[first:first+len(sim)]
	for c, x := range sim {
		if x < least && x < floor[c] {
			continue
		}
		v := int32(first + c)
		if x >= floor[c] {
			hits = append(hits, place{x, v})
		}
		if x >= least && v != u && s.there[v] {
			s.offer(u, place{x, v})
			least = s.bound[u].sim
		}
	}
	return hits
}

// Before returns what [Near.Nearest] gave for a row before the last change.
func (s *Near) Before(v int32) []int32 {
	if old, ok := s.undo[v]; ok {
		return old.idx[:min(s.k, int(old.size))]
	}
	return s.Nearest(v)
}
