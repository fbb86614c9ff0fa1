package graph

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// TwoStepWalks is how many walks of two steps are followed from a node, at most: it bounds
// the time of [TwoStep] by a multiple of the nodes. The result depends on it.
const TwoStepWalks = 1 << 14

// TwoStepRarity returns what a common neighbour of d neighbours counts in [TwoStep], for d
// from 0 to n: 1/log d, in multiples of 1/512. So sums over as many walks as are followed
// are exact in float32, in any order, and exports find what training found.
func TwoStepRarity(n int) []float32 {
	const steps = 512
	r := make([]float32, n+1)
	for d := range r {
		// 0.7 is about log 2, of the rarest that two nodes can share.
		r[d] = float32(math.Round(steps/max(fmath.Log(float64(max(1, d))), 0.7))) / steps
	}
	return r
}

// TwoStep finds for each node of g (taken as undirected) the k nodes two steps away, and
// not one, that share with it the neighbours that tell most: by the sum of 1/log d over
// the common neighbours, of d neighbours each (Adamic and Adar, "Friends and neighbors on
// the Web", 2003). It returns [N, k] node numbers, the best first, of equal ones the one
// with the lower number, and their sums; where a node has fewer, -1 and 0.
//
// From a node with more than 16,384 walks of two steps those over its rarest neighbours
// are followed, as many whole neighbours as fit: one of many neighbours says least. So it
// takes time in proportion to the walks, at most 16,384 a node, and memory in proportion
// to N·k and, for each thread, to N. The result does not depend on the number of threads.
// A nil pool means one thread.
func TwoStep(pool *kernels.Pool, g *Graph, k int) (found []int32, score []float32) {
	if k <= 0 {
		return nil, nil
	}
	return g.Undirected().Structure().TwoStep(pool, k)
}

// TwoStep is that of the undirected graph that the structure is of.
func (st *Structure) TwoStep(pool *kernels.Pool, k int) (found []int32, score []float32) {
	return st.TwoStepOf(pool, k, 0, st.N, nil)
}

// TwoStepOf is TwoStep of the nodes lo to hi-1. It reads the rows of these and of their neighbours, but for
// neighbours that are crowded: they have more than [TwoStepWalks] + 1 neighbours, so that none is followed.
func (st *Structure) TwoStepOf(pool *kernels.Pool, k, lo, hi int, crowded []bool) (found []int32, score []float32) {
	n, in := st.N, st.In
	found, score = make([]int32, n*k), make([]float32, n*k)
	s := &twoStep{neighbours: func(v int32) []int32 { return in.Col[in.RowPtr[v]:in.RowPtr[v+1]] }, crowded: crowded, found: found, best: score, k: k}
	s.size(n)
	parallel(pool, hi-lo, 64, func(from, to int) { s.find(lo+from, lo+to) })
	return found[lo*k : hi*k], score[lo*k : hi*k]
}

type twoStep struct {
	neighbours func(v int32) []int32 // ascending
	crowded    []bool                // nodes over which no walk is followed; nil: by their neighbours
	rarity     []float32             // [N+1 or more] by number of neighbours
	found      []int32               // [N, k]
	best       []float32             // [N, k]
	k          int
	scratch    *sync.Pool
}

// size prepares for n nodes.
func (s *twoStep) size(n int) {
	s.rarity = TwoStepRarity(n)
	s.scratch = &sync.Pool{New: func() any { return &twoStepScratch{score: make([]float32, n)} }}
}

// OnlineTwoStep keeps what [TwoStep] finds while a graph changes.
type OnlineTwoStep struct {
	s     twoStep
	n     int
	undo  map[int32][]int32
	undoN int
}

// NewOnlineTwoStep searches the k best of each of n nodes. neighbours gives those of a node,
// ascending, as they are when it is called.
func NewOnlineTwoStep(pool *kernels.Pool, n, k int, neighbours func(v int32) []int32) *OnlineTwoStep {
	o := &OnlineTwoStep{s: twoStep{k: k, neighbours: neighbours}}
	o.grow(n)
	parallel(pool, n, 64, o.s.find)
	return o
}

func (o *OnlineTwoStep) grow(n int) {
	o.n = n
	if len(o.s.rarity) <= n {
		o.s.size(n + n/8)
	}
	for len(o.s.found) < n*o.s.k {
		o.s.found, o.s.best = append(o.s.found, -1), append(o.s.best, 0)
	}
}

// Of returns what was found for a node, the best first. It is valid until the next change.
func (o *OnlineTwoStep) Of(v int32) []int32 { return few(o.s.found[int(v)*o.s.k:][:o.s.k]) }

// few is a list up to the first place that is free.
func few(list []int32) []int32 {
	if end := slices.Index(list, -1); end >= 0 {
		return list[:end]
	}
	return list
}

// Before returns what [OnlineTwoStep.Of] gave before the last change.
func (o *OnlineTwoStep) Before(v int32) []int32 {
	if int(v) >= o.undoN {
		return nil
	}
	if list, ok := o.undo[v]; ok {
		return few(list)
	}
	return o.Of(v)
}

// Change follows a graph that has n nodes now, at least as many as before, and in which edges
// were added or removed. It returns the nodes for which others are found, ascending.
// [OnlineTwoStep.Undo] takes the last change back.
func (o *OnlineTwoStep) Change(pool *kernels.Pool, n int, edges [][2]int32) (changed []int32) {
	o.undo, o.undoN = map[int32][]int32{}, o.n
	o.grow(n)
	// A node that an end was a neighbour of, and is no more, is an end too.
	var reached []int32
	for _, e := range edges {
		for _, v := range e {
			reached = append(append(reached, v), o.s.neighbours(v)...)
		}
	}
	slices.Sort(reached)
	reached = slices.Compact(reached)
	for _, v := range reached {
		if int(v) < o.undoN {
			o.undo[v] = slices.Clone(o.s.found[int(v)*o.s.k:][:o.s.k])
		}
	}
	parallel(pool, len(reached), 16, func(lo, hi int) {
		for _, v := range reached[lo:hi] {
			o.s.find(int(v), int(v)+1)
		}
	})
	for _, v := range reached {
		if !slices.Equal(o.Before(v), o.Of(v)) {
			changed = append(changed, v)
		}
	}
	return changed
}

// Undo makes everything as it was before the last change.
func (o *OnlineTwoStep) Undo() {
	for v, list := range o.undo {
		copy(o.s.found[int(v)*o.s.k:], list)
	}
	o.n, o.undo = o.undoN, nil
	o.s.found, o.s.best = o.s.found[:o.n*o.s.k], o.s.best[:o.n*o.s.k]
}

type twoStepScratch struct {
	score []float32 // [N] zeros between two nodes
	seen  []int32   // with a score
	via   []int32
	keys  []uint64
}

// find finds those of the nodes lo to hi-1.
func (s *twoStep) find(lo, hi int) {
	x := s.scratch.Get().(*twoStepScratch)
	for v := lo; v < hi; v++ {
		s.from(x, int32(v))
	}
	s.scratch.Put(x)
}

func (s *twoStep) from(x *twoStepScratch, v int32) {
	for _, w := range s.followed(x, v) {
		rarity := s.rarity[len(s.neighbours(w))]
		for _, u := range s.neighbours(w) {
			if x.score[u] == 0 {
				x.seen = append(x.seen, u)
			}
			x.score[u] += rarity
		}
	}
	x.score[v] = 0
	for _, u := range s.neighbours(v) {
		x.score[u] = 0
	}
	for _, u := range x.seen {
		if score := x.score[u]; score > 0 {
			// Ascends where the score descends, and then with the node.
			x.keys = append(x.keys, uint64(^math.Float32bits(score))<<32|uint64(u))
		}
		x.score[u] = 0
	}
	best := x.keys[:min(len(x.keys), s.k)]
	nth(x.keys, len(best))
	slices.Sort(best)
	to := s.found[int(v)*s.k:][:s.k]
	for i := range to {
		to[i] = -1
		if i < len(best) {
			to[i] = int32(uint32(best[i]))
			s.best[int(v)*s.k+i] = math.Float32frombits(^uint32(best[i] >> 32))
		}
	}
	x.seen, x.keys = x.seen[:0], x.keys[:0]
}

// followed returns the neighbours of v over which walks are followed.
func (s *twoStep) followed(x *twoStepScratch, v int32) []int32 {
	all, walks := s.neighbours(v), 0
	for _, w := range all {
		walks += s.count(w) - 1
	}
	if walks <= TwoStepWalks {
		return all
	}
	x.via = append(x.via[:0], all...)
	slices.SortStableFunc(x.via, func(a, b int32) int { return s.count(a) - s.count(b) })
	walks = 0
	for i, w := range x.via {
		if walks += s.count(w) - 1; walks > TwoStepWalks {
			return x.via[:i]
		}
	}
	return x.via
}

// count returns how many neighbours a node has, of crowded ones some number that is too large.
func (s *twoStep) count(v int32) int {
	if s.crowded != nil && s.crowded[v] {
		return TwoStepWalks + 2
	}
	return len(s.neighbours(v))
}

// JoinNeighbors puts lists of neighbours side by side, each [n, k] with a k of its own:
// what [NewCandidates] takes to choose from all of them. It is an error if the length of
// one is no multiple of n.
func JoinNeighbors(n int, lists ...[]int32) (joined []int32, k int, err error) {
	for _, x := range lists {
		if n == 0 && len(x) > 0 || n > 0 && len(x)%n != 0 {
			return nil, 0, fmt.Errorf("graph: a list of neighbours has %d entries, which is no multiple of the %d nodes", len(x), n)
		}
		if n > 0 {
			k += len(x) / n
		}
	}
	joined = make([]int32, 0, n*k)
	for v := range n {
		for _, x := range lists {
			w := len(x) / n
			joined = append(joined, x[v*w:(v+1)*w]...)
		}
	}
	return joined, k, nil
}

// nth puts the n smallest of x, which are all different, before the others
// (Hoare's "Find", CACM 1961).
func nth(x []uint64, n int) {
	for len(x) > 1 && n > 0 && n < len(x) {
		a, b, c := x[0], x[len(x)/2], x[len(x)-1]
		pivot := max(min(a, b), min(max(a, b), c)) // the median
		i, j := 0, len(x)-1
		for i <= j {
			for x[i] < pivot {
				i++
			}
			for x[j] > pivot {
				j--
			}
			if i <= j {
				x[i], x[j] = x[j], x[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			x = x[:j+1]
		case n >= i:
			x, n = x[i:], n-i
		default:
			return
		}
	}
}
