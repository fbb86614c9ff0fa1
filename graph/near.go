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
	sketch     *sketch   // nil where it does not pay
	q          []float32 // [n,sketch.w]

	undo  []nearRow // rows before [Near.Change]
	saved []int32   // [n] one more than where a row is in undo, 0 where it is not
	undoN int
	idxs  []int32 // memory of undo
	sims  []float32
	tile  []float32
	floor []float32 // [n] the least similarity that a list takes, less the slack
	mark  []bool    // [n]
	look  []looker
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
	row   int32
	z, q  []float32 // nil where it has not changed
	idx   []int32
	sim   []float32
	there bool
	size  int32
	bound place
}

// NewNear searches the k nearest neighbours of the rows of emb, [n,f]. Rows without a
// direction have no neighbours and are nobody's, see [KNN].
func NewNear(pool *kernels.Pool, emb []float32, n, f, k int) *Near {
	return newNear(pool, emb, n, f, k, -1)
}

// newNear has a sketch of so many columns, with columns < 0 as many as seem best.
func newNear(pool *kernels.Pool, emb []float32, n, f, k, columns int) *Near {
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
		own := kernels.NewPool(pool.Threads()) // whose scratch, a copy of all rows, is given back
		own.Nearest(idx, sim, d.z, rows, f, s.m)
		own.Close()
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
	if s.sketch = newSketch(pool, s, columns); s.sketch != nil {
		s.grow(n)
		s.sketch.of(pool, s.q, s.z, n)
	}
	return s
}

// NearBytes bounds what a [Near] holds of each row, with what it needs to take a change back.
func NearBytes(f, k int) int64 {
	m := 2*int64(k) + 6
	return 2*(4*int64(f)*3/2+8*m) + 128 // a sketch has at most half the columns, and one
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
	if s.sketch != nil {
		s.q = append(s.q, make([]float32, n*s.sketch.w-len(s.q))...)
	}
	s.there = append(s.there, make([]bool, n-len(s.there))...)
	s.mark = append(s.mark, make([]bool, n-len(s.mark))...)
	s.saved = append(s.saved, make([]int32, n-len(s.saved))...)
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
	return product(s.z[int(u)*s.f:(int(u)+1)*s.f], s.z[int(v)*s.f:(int(v)+1)*s.f])
}

// Change gives rows other values, emb [len(rows),f], in which zeros take a row away. n is
// how many rows there are now, at least as many as before; the new ones are among rows.
// rows ascend. It returns the rows whose k nearest neighbours are others now, ascending.
// [Near.Undo] takes the last change back.
func (s *Near) Change(pool *kernels.Pool, rows []int32, emb []float32, n int) (changed []int32) {
	s.forget()
	s.undoN = s.n
	s.grow(n)
	for i, v := range rows {
		old := s.save(v)
		old.z = slices.Clone(s.z[int(v)*s.f : (int(v)+1)*s.f])
		if s.sketch != nil {
			old.q = slices.Clone(s.q[int(v)*s.sketch.w : (int(v)+1)*s.sketch.w])
		}
		s.mark[v] = true
		s.there[v] = normalize(s.z[int(v)*s.f:(int(v)+1)*s.f], emb[i*s.f:(i+1)*s.f])
		s.size[v], s.bound[v] = 0, everything
	}
	if s.sketch != nil {
		w := s.sketch.w
		q := make([]float32, len(rows)*w)
		s.sketch.of(pool, q, gather(s.z, s.f, rows), len(rows))
		for i, v := range rows {
			copy(s.q[int(v)*w:], q[i*w:(i+1)*w])
		}
	}
	// The changed rows leave the lists of others.
	poor := make([]bool, s.n)
	parallel(pool, s.n, 1024, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			for _, u := range s.idx[v*s.m : v*s.m+int(s.size[v])] {
				poor[v] = poor[v] || s.mark[u]
			}
		}
	})
	for v, yes := range poor {
		if yes && !s.mark[v] {
			s.leave(int32(v))
		}
	}
	there := slices.DeleteFunc(slices.Clone(rows), func(v int32) bool { return !s.there[v] })
	s.search(pool, there, true)
	var short []int32
	for _, old := range s.undo {
		if v := old.row; !s.mark[v] && int(s.size[v]) < s.k && s.bound[v] != everything {
			short = append(short, v)
		}
	}
	slices.Sort(short)
	for _, v := range short {
		s.size[v], s.bound[v] = 0, everything
		s.mark[v] = true
	}
	s.search(pool, short, false)
	for _, old := range s.undo {
		v := old.row
		s.mark[v] = false
		if was := old.idx[:min(s.k, int(old.size))]; !slices.Equal(was, s.Nearest(v)) {
			changed = append(changed, v)
		}
	}
	slices.Sort(changed)
	return changed
}

// save keeps a row as it was before the change.
func (s *Near) save(v int32) *nearRow {
	if at := s.saved[v]; at > 0 {
		return &s.undo[at-1]
	}
	at, size := int(v)*s.m, int(s.size[v])
	s.idxs, s.sims = append(s.idxs, s.idx[at:at+size]...), append(s.sims, s.sim[at:at+size]...)
	to := len(s.idxs) - size
	s.undo = append(s.undo, nearRow{row: v, idx: s.idxs[to:], sim: s.sims[to:], there: s.there[v], size: s.size[v], bound: s.bound[v]})
	s.saved[v] = int32(len(s.undo))
	return &s.undo[len(s.undo)-1]
}

// forget drops what was saved.
func (s *Near) forget() {
	for _, old := range s.undo {
		s.saved[old.row] = 0
	}
	s.undo, s.idxs, s.sims = s.undo[:0], s.idxs[:0], s.sims[:0]
}

// Undo makes everything as it was before the last change.
func (s *Near) Undo() {
	for _, old := range s.undo {
		v := old.row
		copy(s.z[int(v)*s.f:], old.z)
		if old.q != nil {
			copy(s.q[int(v)*s.sketch.w:], old.q)
		}
		copy(s.idx[int(v)*s.m:], old.idx)
		copy(s.sim[int(v)*s.m:], old.sim)
		s.there[v], s.size[v], s.bound[v] = old.there, old.size, old.bound
	}
	s.forget()
	n := s.undoN
	s.n, s.z, s.there, s.mark, s.saved = n, s.z[:n*s.f], s.there[:n], s.mark[:n], s.saved[:n]
	s.idx, s.sim, s.size, s.bound = s.idx[:n*s.m], s.sim[:n*s.m], s.size[:n], s.bound[:n]
	if s.sketch != nil {
		s.q = s.q[:n*s.sketch.w]
	}
}

// leave drops marked rows from a list.
func (s *Near) leave(v int32) {
	s.save(v)
	at, to := int(v)*s.m, int(v)*s.m
	for q := at; q < at+int(s.size[v]); q++ {
		if u := s.idx[q]; !s.mark[u] {
			s.idx[to], s.sim[to] = u, s.sim[q]
			to++
		}
	}
	s.size[v] = int32(to - at)
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
	nearCols = 512
	nearPart = 8 // rows of a tile that are looked through together
)

// search compares rows, which are marked, with all others, and fills their lists. With
// both they are offered to the lists of unmarked rows, too.
//
// Where there is a sketch, tiles hold upper bounds, and only pairs whose bound reaches one
// of their lists are compared.
func (s *Near) search(pool *kernels.Pool, rows []int32, both bool) {
	if s.k == 0 || s.f == 0 || len(rows) == 0 {
		return
	}
	from, w, slack := s.z, s.f, float32(0)
	if s.sketch != nil {
		from, w, slack = s.q, s.sketch.w, s.sketch.slack
	}
	never := float32(math.Inf(1))
	s.floor = room(s.floor, s.n)
	for v := range s.floor {
		if s.floor[v] = never; both && s.there[v] && !s.mark[v] {
			s.floor[v] = s.bound[v].sim - slack
		}
	}
	s.tile = room(s.tile, nearRows*nearCols)
	if s.look == nil {
		s.look = make([]looker, nearRows/nearPart)
		for i := range s.look {
			s.look[i].hits = make([]uint64, nearCols)
		}
	}
	least := make([]float32, nearRows)
	hits := make([][]place, nearRows) // of each row, the rows to whose lists it is offered
	for part := range slices.Chunk(rows, nearRows) {
		parallel(pool, len(part), nearPart, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				least[i] = s.least(&s.look[lo/nearPart], part[i])
			}
		})
		some := gather(from, w, part)
		for first := 0; first < s.n; first += nearCols {
			width := min(nearCols, s.n-first)
			pool.MatMul(s.tile, some, from[first*w:], len(part), w, width, false, true, kernels.Epilogue{})
			parallel(pool, len(part), nearPart, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					least[i] = max(least[i], s.bound[part[i]].sim)
					hits[i] = s.scan(&s.look[lo/nearPart], hits[i][:0], part[i], first, s.tile[i*width:(i+1)*width], least[i], slack)
				}
			})
			for i, u := range part {
				for _, h := range hits[i] {
					s.offer(h.row, place{h.sim, u})
					s.floor[h.row] = s.bound[h.row].sim - slack
				}
			}
		}
	}
}

// least returns a similarity that the list of u will not be below once it is full: the least
// of those with the rows that were in it before.
func (s *Near) least(l *looker, u int32) float32 {
	l.rows = l.rows[:0]
	for _, v := range s.save(u).idx {
		if s.there[v] {
			l.rows = append(l.rows, v)
		}
	}
	if len(l.rows) < s.m {
		return float32(math.Inf(-1))
	}
	return slices.Min(l.of(s, u))
}

// scan looks through a row of a tile, which is of u with the rows from first on, for what
// reaches least or the list of the other. It fills the list of u, and appends to hits the
// rows whose lists it may belong in. It writes nothing but the list of u, which is saved.
func (s *Near) scan(l *looker, hits []place, u int32, first int, tile []float32, least, slack float32) []place {
	found := l.hits[:kernels.Reach(l.hits, tile, s.floor[first:first+len(tile)], least-slack)]
	l.rows = l.rows[:0]
	for _, c := range found {
		if v := int32(first + int(c)); v != u && s.there[v] {
			l.rows = append(l.rows, v)
		}
	}
	// Products of tiles are to the bit those of pairs.
	for i, x := range l.of(s, u) {
		v := l.rows[i]
		if x >= least {
			s.offer(u, place{x, v})
		}
		if x >= s.floor[v] {
			hits = append(hits, place{x, v})
		}
	}
	return hits
}

// Before returns what [Near.Nearest] gave for a row before the last change.
func (s *Near) Before(v int32) []int32 {
	if at := s.saved[v]; at > 0 {
		old := &s.undo[at-1]
		return old.idx[:min(s.k, int(old.size))]
	}
	return s.Nearest(v)
}
