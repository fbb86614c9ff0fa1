package graph

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// A tile of similarities is knnRows × knnCols: 2 MiB.
const (
	knnRows = 512
	knnCols = 1024
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
// Similarities are computed tile by tile; the n×n matrix is never stored. A nil
// pool means one thread. The result does not depend on the number of threads.
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
	for i := range idx {
		idx[i], sim[i] = -1, float32(math.Inf(-1))
	}
	z := make([]float32, n*f)
	directed := make([]bool, n) // whether a row has a direction
	parallel(pool, n, 256, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			directed[i] = normalize(z[i*f:(i+1)*f], emb[i*f:(i+1)*f])
		}
	})
	tile := make([]float32, min(n, knnRows)*min(n, knnCols))
	for r0 := 0; r0 < n; r0 += knnRows {
		rows := min(knnRows, n-r0)
		for c0 := 0; c0 < n; c0 += knnCols {
			cols := min(knnCols, n-c0)
			s := tile[:rows*cols]
			pool.MatMul(s, z[r0*f:(r0+rows)*f], z[c0*f:(c0+cols)*f], rows, f, cols, false, true, kernels.Epilogue{})
			parallel(pool, rows, 16, func(lo, hi int) {
				for r := lo; r < hi; r++ {
					if i := r0 + r; directed[i] {
						keepNearest(idx[i*k:(i+1)*k], sim[i*k:(i+1)*k], s[r*cols:(r+1)*cols], c0, i, directed)
					}
				}
			})
		}
	}
	for i, j := range idx {
		if j < 0 {
			sim[i] = 0
		} else {
			sim[i] = max(-1, min(1, sim[i])) // rounding
		}
	}
	return idx, sim
}

// keepNearest inserts the similarities s of columns c0… with node self into
// its nearest so far, which are sorted. Columns come in ascending order, so
// that among equals the lower one stays ahead.
func keepNearest(idx []int32, sim, s []float32, c0, self int, directed []bool) {
	last := len(sim) - 1
	worst := sim[last]
	for c, v := range s {
		if !(v > worst) {
			continue
		}
		j := c0 + c
		if j == self || !directed[j] {
			continue
		}
		at := last
		for at > 0 && v > sim[at-1] {
			sim[at], idx[at] = sim[at-1], idx[at-1]
			at--
		}
		sim[at], idx[at] = v, int32(j)
		worst = sim[last]
	}
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
