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
	n := g.N
	k = max(k, 0)
	found, score = make([]int32, n*k), make([]float32, n*k)
	if k == 0 {
		return found, score
	}
	s := &twoStep{in: g.Undirected().Structure().In, rarity: TwoStepRarity(n), found: found, best: score, k: k}
	s.scratch.New = func() any { return &twoStepScratch{score: make([]float32, n)} }
	parallel(pool, n, 64, s.find)
	return found, score
}

type twoStep struct {
	in      *kernels.CSR
	rarity  []float32 // [N+1] by number of neighbours
	found   []int32   // [N, k]
	best    []float32 // [N, k]
	k       int
	scratch sync.Pool
}

type twoStepScratch struct {
	score []float32 // [N] zeros between two nodes
	seen  []int32   // with a score
	via   []int32
	keys  []uint64
}

func (s *twoStep) neighbours(v int32) []int32 { return s.in.Col[s.in.RowPtr[v]:s.in.RowPtr[v+1]] }

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
		walks += len(s.neighbours(w)) - 1
	}
	if walks <= TwoStepWalks {
		return all
	}
	x.via = append(x.via[:0], all...)
	slices.SortStableFunc(x.via, func(a, b int32) int { return len(s.neighbours(a)) - len(s.neighbours(b)) })
	walks = 0
	for i, w := range x.via {
		if walks += len(s.neighbours(w)) - 1; walks > TwoStepWalks {
			return x.via[:i]
		}
	}
	return x.via
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
