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
//
// A row that moves by little is not. While it stays within drift of where it was when it
// was last compared with all others, its similarity with any row stays within twice that
// of what it ever was. So it cannot get before the neighbours that are wanted of a row
// whose bound is further behind them, and is compared with the others alone, the tight
// ones. When a row itself moves, its bound follows by the distance.
//
// Rows that have moved by very little are compared with none but the neighbours whose order
// that leaves open, see [late].
type Near struct {
	late
	k, m, n, f int
	z          []float32   // [n,f] rows of length 1; zeros where there is none
	there      []bool      // [n]
	idx        []int32     // [n,m]
	sim        []float32   // [n,m]
	size       []int32     // [n] how many are in the list
	bound      []place     // [n] what is not in the list comes behind this
	tight      []bool      // [n] of others, the bound holds where they are, not where they may drift to
	anchor     [][]float32 // [n] what drift is measured from; nil where a row has not moved
	drift      float64     // 0: a row that moves is compared with all others
	sketch     *sketch     // nil where it does not pay
	q          []float32   // [n,sketch.w]

	undo  []nearRow // rows before [Near.Change]
	saved []int32   // [n] one more than where a row is in undo, 0 where it is not
	undoN int
	idxs  []int32 // memory of undo
	sims  []float32
	tile  []float32
	floor []float32 // [n] the least similarity that a list takes, less the slack
	mark  []mark    // [n]
	look  []looker
}

// mark says what a row has to do with a change.
type mark uint8

const (
	moved  mark = 1 + iota // within drift
	search                 // it is compared with all others
)

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
	from  []float32 // its anchor
	tight bool
	idx   []int32
	sim   []float32
	there bool
	size  int32
	bound place
}

// NewNear searches the k nearest neighbours of the rows of emb, [n,f]. Rows without a
// direction have no neighbours and are nobody's, see [KNN].
func NewNear(pool *kernels.Pool, emb []float32, n, f, k int) *Near {
	return newNear(pool, emb, n, f, k, -1, -1, -1)
}

// newNear has a sketch of that many columns, that drift, and lists of rows as far as most from
// where they are; what is below 0 is chosen.
func newNear(pool *kernels.Pool, emb []float32, n, f, k, columns int, drift, most float64) *Near {
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
		s.bound[v] = everything
		if n := int(s.size[v]); n == s.m {
			s.bound[v] = place{s.sim[at+n-1], s.idx[at+n-1]}
		}
	}
	if s.drift = drift; drift < 0 {
		s.chooseDrift()
	}
	if s.most = most; most < 0 {
		s.most = s.drift / 16
	}
	if s.most > 0 {
		s.now, s.top, s.late.moved = slices.Clone(s.z), make([][]int32, n), make([]bool, n)
	}
	for v := range s.tight {
		s.tight[v] = s.near(int32(v), 4)
	}
	if s.sketch = newSketch(pool, s, columns); s.sketch != nil {
		s.grow(n)
		s.sketch.of(pool, s.q, s.z, n)
	}
	if s.most > 0 {
		s.tops = map[int32][]int32{}
		if _, ok := s.settle(pool, nil); !ok {
			s.most, s.now, s.top = 0, nil, nil
		}
	}
	return s
}

// NearBytes bounds what a [Near] holds of each row, with what it needs to take a change back.
func NearBytes(f, k int) int64 {
	m := 2*int64(k) + 6
	return 2*(4*int64(f)*5/2+8*m) + 4*int64(f) + 2*4*int64(k) + 232 // a sketch has at most half the columns, and one
}

// chooseDrift makes some rows tight, and leaves room to drift for most.
func (s *Near) chooseDrift() {
	var gaps []float64
	for v, b := range s.bound {
		if b != everything {
			gaps = append(gaps, float64(s.sim[v*s.m+s.k-1]-b.sim))
		}
	}
	if len(gaps) == 0 {
		return
	}
	slices.Sort(gaps)
	s.drift = (gaps[len(gaps)/20] - 2*s.rounding()) / 4
	if s.drift < 8*s.rounding() {
		s.drift = 0
	}
}

// rounding bounds the error of a computed similarity.
func (s *Near) rounding() float64 { return math.Ldexp(float64(s.f+2), -23) }

// near tells whether others that move by this many times drift may get before the neighbours
// of a row that are wanted.
func (s *Near) near(v int32, times float64) bool {
	if s.drift == 0 || s.bound[v] == everything {
		return false
	}
	return int(s.size[v]) < s.k || float64(s.sim[int(v)*s.m+s.k-1]-s.bound[v].sim) <= float64(times*s.drift*1.001)+2*s.rounding()+s.margin()
}

func (s *Near) grow(n int) {
	s.n = n
	s.z = append(s.z, make([]float32, n*s.f-len(s.z))...)
	if s.sketch != nil {
		s.q = append(s.q, make([]float32, n*s.sketch.w-len(s.q))...)
	}
	s.there = append(s.there, make([]bool, n-len(s.there))...)
	s.tight = append(s.tight, make([]bool, n-len(s.tight))...)
	s.anchor = append(s.anchor, make([][]float32, n-len(s.anchor))...)
	s.mark = append(s.mark, make([]mark, n-len(s.mark))...)
	s.saved = append(s.saved, make([]int32, n-len(s.saved))...)
	s.idx = append(s.idx, make([]int32, n*s.m-len(s.idx))...)
	s.sim = append(s.sim, make([]float32, n*s.m-len(s.sim))...)
	s.size = append(s.size, make([]int32, n-len(s.size))...)
	for len(s.bound) < n {
		s.bound = append(s.bound, everything)
	}
}

// Nearest returns the k nearest neighbours of a row, or fewer where there are fewer, the
// nearest first, but for differences that no search among all depends on. They are valid until the next change.
func (s *Near) Nearest(v int32) []int32 {
	if s.most > 0 && !s.off && s.top[v] != nil {
		return s.top[v]
	}
	at := int(v) * s.m
	return s.idx[at : at+min(s.k, int(s.size[v]))]
}

// Similarity returns the cosine of two rows, as searches have it but for rounding.
func (s *Near) Similarity(u, v int32) float64 {
	z := s.units()
	return product(z[int(u)*s.f:(int(u)+1)*s.f], z[int(v)*s.f:(int(v)+1)*s.f])
}

// units are the rows as they are now, of length 1.
func (s *Near) units() []float32 {
	if s.most > 0 && !s.off {
		return s.now
	}
	return s.z
}

// Cosines gives pairs of rows their cosines, as searches have them but for rounding; 0 where
// one has no direction.
func (s *Near) Cosines(pool *kernels.Pool, cos []float32, pairs [][2]int32) {
	z := s.units()
	ends := make([]int64, 2*len(pairs))
	left, right := ends[:len(pairs)], ends[len(pairs):]
	for i, e := range pairs {
		left[i], right[i] = int64(e[0]), int64(e[1])
	}
	pool.PairDot(cos, z, z, left, right, s.n, s.f)
}

// move is [Near.Change] of the lists.
func (s *Near) move(pool *kernels.Pool, rows []int32, emb func(v int32) []float32, n int) (changed []int32) {
	s.forget()
	s.undoN = s.n
	s.grow(n)
	var all, some []int32 // which are compared with all others, and which with some
	unit := make([]float32, s.f)
	for _, v := range rows {
		z, row, there := s.z[int(v)*s.f:(int(v)+1)*s.f], emb(v), false
		if s.turned { // it is of length 1 to the bit
			copy(unit, row)
			there = slices.ContainsFunc(row, func(x float32) bool { return x != 0 })
		} else {
			there = normalize(unit, row)
		}
		if there == s.there[v] && slices.Equal(z, unit) {
			continue
		}
		old := s.save(v)
		old.z = slices.Clone(z)
		from := s.anchor[v]
		if from == nil {
			from = old.z
		}
		if there && s.there[v] && distance(unit, from) <= s.drift {
			some, s.mark[v], s.anchor[v] = append(some, v), moved, from
			if b := &s.bound[v]; *b != everything {
				by := float64(distance(unit, z)*1.001) + 2*s.rounding()
				*b = place{math.Nextafter32(float32(float64(b.sim)+by), 2), -1}
			}
		} else {
			all, s.mark[v], s.anchor[v] = append(all, v), search, nil
			s.size[v], s.bound[v] = 0, everything
		}
		copy(z, unit)
		s.there[v] = there
	}
	if s.sketch != nil {
		w, rows := s.sketch.w, slices.Concat(all, some)
		q := make([]float32, len(rows)*w)
		s.sketch.of(pool, q, gather(s.z, s.f, rows), len(rows))
		for i, v := range rows {
			row := s.q[int(v)*w : (int(v)+1)*w]
			s.undo[s.saved[v]-1].q = slices.Clone(row)
			copy(row, q[i*w:(i+1)*w])
		}
	}
	s.revise(pool)
	there := slices.DeleteFunc(slices.Clone(all), func(v int32) bool { return !s.there[v] })
	s.search(pool, there, nil, true)
	if len(some) > 0 {
		tight := []int32{}
		for v, yes := range s.tight {
			if yes && s.mark[v] != search {
				tight = append(tight, int32(v))
			}
		}
		s.search(pool, some, tight, true)
	}
	var short []int32
	for _, old := range s.undo {
		v := old.row
		switch {
		case s.mark[v] == search || s.bound[v] == everything:
		case int(s.size[v]) < s.k || !s.tight[v] && s.near(v, 2):
			short = append(short, v)
		case s.tight[v]:
			s.tight[v] = s.near(v, 4)
		}
	}
	slices.Sort(short)
	for _, v := range short {
		s.size[v], s.bound[v] = 0, everything
		s.mark[v] = search
	}
	s.search(pool, short, nil, false)
	for _, old := range s.undo {
		v := old.row
		if s.mark[v] == search {
			s.tight[v] = s.near(v, 4)
		}
		s.mark[v] = 0
		if was := old.idx[:min(s.k, int(old.size))]; !slices.Equal(was, s.Nearest(v)) {
			changed = append(changed, v)
		}
	}
	slices.Sort(changed)
	return changed
}

// distance is that of two rows.
func distance(a, b []float32) float64 {
	sum := 0.0
	for i, x := range a {
		d := float64(x) - float64(b[i])
		sum += float64(d * d)
	}
	return math.Sqrt(sum)
}

// revise takes rows that are compared again out of the lists of others, and brings those that
// moved to where they belong, or out of lists whose bounds they are behind.
func (s *Near) revise(pool *kernels.Pool) {
	touched := make([]bool, s.n)
	parallel(pool, s.n, 1024, func(lo, hi int) {
		for v := lo; v < hi; v++ {
			touched[v] = s.mark[v] == moved || slices.ContainsFunc(s.idx[v*s.m:v*s.m+int(s.size[v])], func(u int32) bool { return s.mark[u] != 0 })
		}
	})
	var rows []int32
	for v, yes := range touched {
		if yes {
			rows = append(rows, int32(v))
			s.save(int32(v))
		}
	}
	parallel(pool, len(rows), 64, func(lo, hi int) {
		l := lookers.Get().(*looker)
		defer lookers.Put(l)
		var again []int // places whose similarity has changed
		for _, v := range rows[lo:hi] {
			first := int(v) * s.m
			again, l.rows = again[:0], l.rows[:0]
			for at := first; at < first+int(s.size[v]); at++ {
				if u := s.idx[at]; s.mark[u] != search && (s.mark[v] == moved || s.mark[u] == moved) {
					again, l.rows = append(again, at), append(l.rows, u)
				}
			}
			for i, x := range l.of(s, v) {
				s.sim[again[i]] = x
			}
			to := first
			for at := first; at < first+int(s.size[v]); at++ {
				p := place{s.sim[at], s.idx[at]}
				if s.mark[p.row] == search || s.bound[v].before(p) {
					continue
				}
				q := to
				for ; q > first && p.before(place{s.sim[q-1], s.idx[q-1]}); q-- {
					s.sim[q], s.idx[q] = s.sim[q-1], s.idx[q-1]
				}
				s.sim[q], s.idx[q] = p.sim, p.row
				to++
			}
			if s.size[v] = int32(to - first); to == first+s.m {
				s.bound[v] = place{s.sim[to-1], s.idx[to-1]}
			}
		}
	})
}

// save keeps a row as it was before the change.
func (s *Near) save(v int32) *nearRow {
	if at := s.saved[v]; at > 0 {
		return &s.undo[at-1]
	}
	at, size := int(v)*s.m, int(s.size[v])
	s.idxs, s.sims = append(s.idxs, s.idx[at:at+size]...), append(s.sims, s.sim[at:at+size]...)
	to := len(s.idxs) - size
	s.undo = append(s.undo, nearRow{row: v, idx: s.idxs[to:], sim: s.sims[to:], from: s.anchor[v], tight: s.tight[v], there: s.there[v], size: s.size[v], bound: s.bound[v]})
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
	s.undoMove()
	s.undoLate(s.n)
}

// undoMove takes back what the last change has done to the lists.
func (s *Near) undoMove() {
	for _, old := range s.undo {
		v := old.row
		copy(s.z[int(v)*s.f:], old.z)
		if old.q != nil {
			copy(s.q[int(v)*s.sketch.w:], old.q)
		}
		copy(s.idx[int(v)*s.m:], old.idx)
		copy(s.sim[int(v)*s.m:], old.sim)
		s.there[v], s.size[v], s.bound[v], s.tight[v], s.anchor[v] = old.there, old.size, old.bound, old.tight, old.from
	}
	s.forget()
	n := s.undoN
	s.n, s.z, s.there, s.mark, s.saved = n, s.z[:n*s.f], s.there[:n], s.mark[:n], s.saved[:n]
	s.idx, s.sim, s.size, s.bound = s.idx[:n*s.m], s.sim[:n*s.m], s.size[:n], s.bound[:n]
	s.tight, s.anchor = s.tight[:n], s.anchor[:n]
	if s.sketch != nil {
		s.q = s.q[:n*s.sketch.w]
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
	nearCols = 512
	nearPart = 8 // rows of a tile that are looked through together
)

// search compares rows, which are marked, with all others, and fills their lists. With
// both they are offered to the lists of rows that are not searched, too. With cols it offers
// them to the lists of these alone, where they may be already.
//
// Where there is a sketch, tiles hold upper bounds, and only pairs whose bound reaches one
// of their lists are compared.
func (s *Near) search(pool *kernels.Pool, rows, cols []int32, both bool) {
	if s.k == 0 || s.f == 0 || len(rows) == 0 {
		return
	}
	from, w, slack := s.z, s.f, float32(0)
	if s.sketch != nil {
		from, w, slack = s.q, s.sketch.w, s.sketch.slack
	}
	n, to, col := s.n, from, func(c int) int32 { return int32(c) }
	if cols != nil {
		n, to, col = len(cols), gather(from, w, cols), func(c int) int32 { return cols[c] }
	}
	never := float32(math.Inf(1))
	s.floor = room(s.floor, s.n)
	for c := range n {
		if v := col(c); both && s.there[v] && s.mark[v] != search {
			s.floor[c] = s.bound[v].sim - slack
		} else {
			s.floor[c] = never
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
				if least[i] = never; cols == nil {
					least[i] = s.least(&s.look[lo/nearPart], part[i])
				}
			}
		})
		some := gather(from, w, part)
		for first := 0; first < n; first += nearCols {
			width := min(nearCols, n-first)
			pool.MatMul(s.tile, some, to[first*w:], len(part), w, width, false, true, kernels.Epilogue{})
			parallel(pool, len(part), nearPart, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					if cols == nil {
						least[i] = max(least[i], s.bound[part[i]].sim)
					}
					hits[i] = s.scan(&s.look[lo/nearPart], hits[i][:0], part[i], cols, first, s.tile[i*width:(i+1)*width], least[i], slack)
				}
			})
			for i, u := range part {
				for _, h := range hits[i] {
					v := col(int(h.row))
					if at := int(v) * s.m; cols == nil || !slices.Contains(s.idx[at:at+int(s.size[v])], u) {
						s.offer(v, place{h.sim, u})
						s.floor[h.row] = s.bound[v].sim - slack
					}
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

// scan looks through a row of a tile, which is of u with the rows from first on, or with
// these of cols, for what reaches least or the list of the other. It fills the list of u, and
// appends to hits the columns to whose lists u may belong. It writes nothing but the list of
// u, which is saved.
func (s *Near) scan(l *looker, hits []place, u int32, cols []int32, first int, tile []float32, least, slack float32) []place {
	found := l.hits[:kernels.Reach(l.hits, tile, s.floor[first:first+len(tile)], least-slack)]
	l.rows, l.cols = l.rows[:0], l.cols[:0]
	for _, c := range found {
		c := int32(first + int(c))
		v := c
		if cols != nil {
			v = cols[c]
		}
		if v != u && s.there[v] {
			l.rows, l.cols = append(l.rows, v), append(l.cols, c)
		}
	}
	// Products of tiles are to the bit those of pairs.
	for i, x := range l.of(s, u) {
		if x >= least {
			s.offer(u, place{x, l.rows[i]})
		}
		if c := l.cols[i]; x >= s.floor[c] {
			hits = append(hits, place{x, c})
		}
	}
	return hits
}

// Before returns what [Near.Nearest] gave for a row before the last change.
func (s *Near) Before(v int32) []int32 {
	if s.most > 0 {
		top, changed := s.tops[v]
		if !changed && !s.off {
			top = s.top[v]
		}
		if top != nil {
			return top
		}
	}
	if at := s.saved[v]; at > 0 {
		old := &s.undo[at-1]
		return old.idx[:min(s.k, int(old.size))]
	}
	at := int(v) * s.m
	return s.idx[at : at+min(s.k, int(s.size[v]))]
}
