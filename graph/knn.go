package graph

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// KNN finds the k nearest neighbours of every node by cosine similarity of the
// rows of emb, [n, f] row-major, exactly. It returns [n, k] node numbers and
// similarities, the nearest first; of equally near nodes the one with the lower
// number comes first. A node is not its own neighbour.
//
// Rows that have no direction (all zeros, or with a value that is not finite)
// have no neighbours and are nobody's. Where a node has fewer than k, idx is -1
// and sim 0. KNN panics if emb is shorter than n·f.
//
// The n×n similarities are never stored: see [kernels.Pool.Nearest]. A nil pool
// means one thread. The result does not depend on the number of threads.
func KNN(pool *kernels.Pool, emb []float32, n, f, k int) (idx []int32, sim []float32) {
	if len(emb) < n*f {
		panic(fmt.Sprintf("graph: KNN: emb has %d elements, its shape [%d,%d] needs %d", len(emb), n, f, n*f))
	}
	if n <= 0 || k <= 0 {
		return []int32{}, []float32{}
	}
	if pool == nil {
		pool = kernels.NewPool(1)
		defer pool.Close()
	}
	idx, sim = make([]int32, n*k), make([]float32, n*k)
	z, nodes := directions(pool, emb, n, f)
	pool.Nearest(idx, sim, z, len(nodes), f, k)
	// From the last on: the rows of nodes lie at or before where they belong.
	for row, v := len(nodes)-1, n-1; v >= 0; v-- {
		to, toSim := idx[v*k:(v+1)*k], sim[v*k:(v+1)*k]
		if row < 0 || int(nodes[row]) != v {
			for i := range to {
				to[i], toSim[i] = -1, 0
			}
			continue
		}
		copy(toSim, sim[row*k:(row+1)*k])
		for i, j := range idx[row*k : (row+1)*k] {
			if j < 0 {
				to[i], toSim[i] = -1, 0
			} else {
				to[i], toSim[i] = nodes[j], max(-1, min(1, toSim[i])) // rounding
			}
		}
		row--
	}
	return idx, sim
}

// directions returns the rows of emb that have a direction, scaled to length 1,
// and their numbers.
func directions(pool *kernels.Pool, emb []float32, n, f int) (z []float32, nodes []int32) {
	z = make([]float32, n*f)
	directed := make([]bool, n)
	parallel(pool, n, 256, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			directed[i] = normalize(z[i*f:(i+1)*f], emb[i*f:(i+1)*f])
		}
	})
	nodes = make([]int32, 0, n)
	for i, ok := range directed {
		if !ok {
			continue
		}
		if at := len(nodes); at < i {
			copy(z[at*f:(at+1)*f], z[i*f:(i+1)*f])
		}
		nodes = append(nodes, int32(i))
	}
	return z[:len(nodes)*f], nodes
}

// normalize writes x divided by its L2 norm to dst, or zeros if x has no
// direction, and reports whether it has one. The norm is computed in float64,
// so that it neither over- nor underflows.
func normalize(dst, x []float32) bool {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		clear(dst)
		return false
	}
	scale := 1 / math.Sqrt(sum)
	for i, v := range x {
		dst[i] = float32(float64(v) * scale)
	}
	return true
}
