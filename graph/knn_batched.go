package graph

import (
	"math"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// similaritySteps are those of 1 in which Within compares similarities.
const similaritySteps = 1 << 12

// Within is [KNN] among the nodes of each of several small graphs that stand one after
// another: graph g has the rows offset[g] ≤ v < offset[g+1] of emb, [n, f], where n is
// the last offset. It returns [n, k] node numbers, which are those of the union, valid
// until the next search.
//
// Molecules have nodes that no encoder can tell apart, as equally near as rounding lets
// them be. So similarities are compared in steps of 1/4096: an embedding that was
// computed in another order, as an exported model does, has the same neighbours but for
// the rare similarity that lies between two steps.
func (s *Neighbors) Within(pool *kernels.Pool, emb []float32, offset []int32, f, k int) []int32 {
	if pool == nil {
		pool = kernels.NewPool(1)
		defer pool.Close()
	}
	n := int(offset[len(offset)-1])
	s.directions.normalise(pool, emb, n, f)
	s.idx, s.rounds = room(s.idx, n*k), room(s.rounds, n*k)
	if k > 0 {
		parallel(pool, len(offset)-1, 1, func(lo, hi int) {
			for g := lo; g < hi; g++ {
				for v := offset[g]; v < offset[g+1]; v++ {
					s.among(v, offset[g], offset[g+1], f, k)
				}
			}
		})
	}
	return s.idx
}

// among finds the neighbours of v among the nodes first to end-1.
func (s *Neighbors) among(v, first, end int32, f, k int) {
	idx, rounds := s.idx[int(v)*k:][:k], s.rounds[int(v)*k:][:k]
	for i := range idx {
		idx[i] = -1
	}
	if !s.directed[v] {
		return
	}
	row, have := s.z[int(v)*f:][:f], 0
	for u := first; u < end; u++ {
		if u == v || !s.directed[u] {
			continue
		}
		r := int32(math.Round(float64(dot(row, s.z[int(u)*f:][:f])) * similaritySteps))
		if have == k && r <= rounds[have-1] {
			continue
		}
		have = min(have+1, k)
		at := have - 1
		for ; at > 0 && rounds[at-1] < r; at-- {
			idx[at], rounds[at] = idx[at-1], rounds[at-1]
		}
		idx[at], rounds[at] = u, r
	}
}

// dot multiplies and adds apart, which is the same on every processor.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	for len(a) >= 4 && len(b) >= 4 {
		s0 += float32(a[0] * b[0])
		s1 += float32(a[1] * b[1])
		s2 += float32(a[2] * b[2])
		s3 += float32(a[3] * b[3])
		a, b = a[4:], b[4:]
	}
	for i := range a {
		s0 += float32(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}
