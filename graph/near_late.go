package graph

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// late is what a [Near] holds of rows that have moved by so little that its lists are still
// those of where they were. Where that leaves open which neighbours are the nearest, these
// are compared again, where they are: so what is found is exact, and nothing adds up.
type late struct {
	most float64 // how far a row of the lists may be from where the row is; 0: the lists are of the rows as they are
	now  []float32
	top  [][]int32 // [n] the nearest where the lists leave it open; nil elsewhere

	// off is set for good where many rows have more neighbours that are equally near than
	// lists hold, as copies of a row do; turned where the last change did.
	off, turned bool

	moved []bool // [n] by the change that is made
	rows  []int32
	was   []float32 // rows of now before the last change
	tops  map[int32][]int32
}

// openMost is how many rows may be compared with all others to settle which are the nearest.
var openMost = int64(64)

// Change gives rows other values: emb of each, of length f, where zeros, or nil, take the row
// away. Several goroutines call emb at a time. n is how many rows there are now, at least as many
// as before; the new ones are among rows. rows ascend. It returns the rows that have other nearest neighbours now, or in another
// order, ascending. [Near.Undo] takes the last change back.
func (s *Near) Change(pool *kernels.Pool, rows []int32, emb func(v int32) []float32, n int) (changed []int32) {
	l := &s.late
	if l.most == 0 {
		return s.move(pool, rows, emb, n)
	}
	l.rows, l.was, l.tops, l.turned = l.rows[:0], l.was[:0], map[int32][]int32{}, false
	if l.off {
		l.now, l.top = nil, nil
		return s.move(pool, rows, emb, n)
	}
	f, before := s.f, s.n
	l.now = append(l.now, make([]float32, n*f-len(l.now))...)
	l.top = append(l.top, make([][]int32, n-len(l.top))...)
	l.moved = append(l.moved, make([]bool, n-len(l.moved))...)
	l.rows, l.was = append(l.rows, rows...), room(l.was, len(rows)*f)
	far := make([]bool, len(rows))
	parallel(pool, len(rows), 64, func(lo, hi int) {
		unit := make([]float32, f)
		for i, v := range rows[lo:hi] {
			now, at := l.now[int(v)*f:int(v+1)*f], lo+i
			copy(l.was[at*f:], now)
			there := normalize(unit, emb(v))
			known := int(v) < before && there == s.there[v]
			if known && slices.Equal(unit, now) {
				continue
			}
			far[at] = !known || !there || distance(unit, s.z[int(v)*f:int(v+1)*f]) > l.most
			l.moved[v] = true
			copy(now, unit)
		}
	})
	var moving []int32
	for i, v := range rows {
		if far[i] {
			moving = append(moving, v)
		}
	}
	changed, ok := s.settle(pool, s.move(pool, moving, emb, n))
	if !ok {
		changed = s.follow(pool, n)
	}
	for _, v := range l.rows {
		l.moved[v] = false
	}
	return changed
}

// follow takes back what the change has done to the lists, and makes them of rows as they
// are, from now on.
func (s *Near) follow(pool *kernels.Pool, n int) (changed []int32) {
	l := &s.late
	s.undoMove()
	var rows []int32
	for v := range int32(n) {
		if at := int(v) * s.f; int(v) >= s.n || !slices.Equal(l.now[at:at+s.f], s.z[at:at+s.f]) {
			rows = append(rows, v)
		}
	}
	for v, top := range l.top {
		if top != nil {
			l.tops[int32(v)], l.top[v] = top, nil
		}
	}
	l.off, l.turned = true, true
	changed = s.move(pool, rows, func(v int32) []float32 { return l.now[int(v)*s.f : int(v+1)*s.f] }, n)
	for v := range l.tops {
		changed = append(changed, v)
	}
	return s.differing(changed)
}

// differing are those of some rows whose neighbours are others than before the change.
func (s *Near) differing(rows []int32) []int32 {
	slices.Sort(rows)
	rows = slices.Compact(rows)
	return slices.DeleteFunc(rows, func(v int32) bool { return slices.Equal(s.Before(v), s.Nearest(v)) })
}

// settle compares again what the lists leave open, and returns the rows that have other nearest
// neighbours than before the change; those of changed have other lists. It does nothing, and is
// not ok, where too much is open.
func (s *Near) settle(pool *kernels.Pool, changed []int32) (_ []int32, ok bool) {
	l := &s.late
	var mu sync.Mutex
	var wide atomic.Int64
	parallel(pool, s.n, 512, func(lo, hi int) {
		look := lookers.Get().(*looker)
		defer lookers.Put(look)
		var others []place
		for v := int32(lo); int(v) < hi; v++ {
			if s.outside(v) && wide.Add(1) > openMost {
				return
			}
			top, keep := s.open(v, look, &others)
			if keep {
				continue
			}
			mu.Lock()
			l.tops[v] = l.top[v]
			mu.Unlock()
			l.top[v] = top
		}
	})
	if wide.Load() > openMost {
		for v, top := range l.tops {
			l.top[v] = top
		}
		clear(l.tops)
		return nil, false
	}
	for v := range l.tops {
		changed = append(changed, v)
	}
	return s.differing(changed), true
}

// outside tells whether rows that are not in the list of a row may be among its nearest.
func (s *Near) outside(v int32) bool {
	return s.k > 0 && s.bound[v] != everything && float64(s.sim[int(v)*s.m+s.k-1]-s.beyond(v)) <= s.margin()
}

// open returns the nearest neighbours of a row where its list leaves them open, nil where
// it does not. keep tells that it is as before the change.
func (s *Near) open(v int32, look *looker, others *[]place) (top []int32, keep bool) {
	l, size := &s.late, int(s.size[v])
	at := int(v) * s.m
	idx, sim := s.idx[at:at+size], s.sim[at:at+size]
	margin := s.margin()
	if s.outside(v) {
		look.rows = look.rows[:0]
		for u, there := range s.there {
			if there && int32(u) != v {
				look.rows = append(look.rows, int32(u))
			}
		}
		return s.nearest(v, nil, look, others), false
	}
	if s.k == 0 || size <= s.k || float64(sim[s.k-1]-sim[s.k]) > margin {
		return nil, l.top[v] == nil
	}
	lo, hi := s.k-1, s.k
	for lo > 0 && float64(sim[lo-1]-sim[s.k]) <= margin {
		lo--
	}
	for hi+1 < size && float64(sim[s.k-1]-sim[hi+1]) <= margin {
		hi++
	}
	fresh := l.top[v] == nil || s.saved[v] > 0 || l.moved[v]
	for _, u := range idx[lo : hi+1] {
		fresh = fresh || l.moved[u]
	}
	if !fresh {
		return nil, true
	}
	look.rows = append(look.rows[:0], idx[lo:hi+1]...)
	return s.nearest(v, idx[:lo], look, others), false
}

// nearest returns first, and the nearest of the looker's rows where they are, k in all.
func (s *Near) nearest(v int32, first []int32, look *looker, others *[]place) []int32 {
	list := (*others)[:0]
	for i, x := range look.at(s.late.now, s.f, v) {
		list = append(list, place{x, look.rows[i]})
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Or(cmp.Compare(b.sim, a.sim), cmp.Compare(a.row, b.row)) })
	top := append(make([]int32, 0, s.k), first...)
	for _, p := range list[:min(len(list), s.k-len(first))] {
		top = append(top, p.row)
	}
	*others = list
	return top
}

// margin bounds by how much the order of two similarities of a list can be wrong.
func (s *Near) margin() float64 {
	if s.most == 0 || s.off {
		return 0
	}
	return float64(4.004*s.late.most) + float64(4*s.rounding())
}

// beyond bounds the similarity, in the lists, of a row with those that are not in its list.
func (s *Near) beyond(v int32) float32 {
	if s.tight[v] || s.drift == 0 {
		return s.bound[v].sim
	}
	return math.Nextafter32(s.bound[v].sim+float32(float64(2.002*s.drift)+float64(2*s.rounding())), 2)
}

// undoLate takes back what the last change was for rows that moved by little.
func (s *Near) undoLate(n int) {
	l := &s.late
	if l.turned {
		l.off, l.turned = false, false
	}
	if l.most == 0 || l.off {
		return
	}
	for i, v := range l.rows {
		copy(l.now[int(v)*s.f:], l.was[i*s.f:(i+1)*s.f])
	}
	for v, top := range l.tops {
		l.top[v] = top
	}
	l.rows, l.was, l.tops = l.rows[:0], l.was[:0], nil
	l.now, l.top, l.moved = l.now[:n*s.f], l.top[:n], l.moved[:n]
}
