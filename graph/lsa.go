package graph

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// lsaIterations of orthogonal iteration: what is left of the directions behind those that
// are wanted does not change a cosine noticeably.
const lsaIterations = 6

// lsaEntries is how many entries of the matrix, in whole rows that are drawn, the directions
// are found by at most: they lie in a space of so few dimensions that more tell little more.
const lsaEntries = 1 << 20

// LSA returns the projection of latent semantic analysis (Deerwester et al. 1990),
// [Cols, width] in row-major order: rows of attributes times it are their coordinates in
// the span of the first right singular vectors of the matrix whose columns are scaled by
// how rare they are (inverse document frequency) and whose rows then have length 1. With
// no more columns than width, it only scales them. width is at most Cols.
//
// The basis of that span is not distinguished from other orthonormal ones: lengths and
// cosines are the same. The same stream gives the same bits for any number of threads.
func (x *NodeFeatures) LSA(pool *kernels.Pool, n, width int, s rng.Stream) []float32 {
	rarity := x.Rarity(n)
	p := make([]float32, x.Cols*width)
	if x.Cols <= width {
		for c, v := range rarity {
			p[c*width+c] = float32(v)
		}
		return p
	}
	var rows []sparseRow
	for _, i := range x.someRows(n, lsaEntries, s.Sub("rows")) {
		rows = append(rows, x.scaled(i, rarity))
	}
	columns := transposed(rows, x.Cols)
	v, y := make([]float64, x.Cols*width), make([]float64, len(rows)*width)
	for i := range v {
		v[i] = s.Normal(uint64(i))
	}
	for range lsaIterations {
		orthonormalise(pool, v, width)
		multiply(pool, y, rows, v, width)
		multiply(pool, v, columns, y, width)
	}
	orthonormalise(pool, v, width)
	for c, scale := range rarity {
		for k := range width {
			p[c*width+k] = float32(scale * v[c*width+k])
		}
	}
	return p
}

// someRows returns, in ascending order, all n rows, or some that are drawn, with about so
// many entries together.
func (x *NodeFeatures) someRows(n, entries int, s rng.Stream) []int {
	size := func(i int) int {
		if x.Dense != nil {
			return x.Cols
		}
		return int(x.RowPtr[i+1] - x.RowPtr[i])
	}
	order, sum := s.Perm(n), 0
	for k, i := range order {
		if sum >= entries {
			order = order[:k]
			break
		}
		sum += size(i)
	}
	slices.Sort(order)
	return order
}

// multiply sets y to the product of sparse rows and x, both [·, width].
func multiply(pool *kernels.Pool, y []float64, rows []sparseRow, x []float64, width int) {
	parallel(pool, len(rows), 64, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			to := y[i*width : (i+1)*width]
			clear(to)
			for k, c := range rows[i].col {
				w, from := float64(rows[i].val[k]), x[int(c)*width:][:width]
				for j, v := range from {
					to[j] += float64(w * v)
				}
			}
		}
	})
}

// orthonormalise makes the columns of v [·, width] orthonormal, each by what it has left
// beside those before it (Gram–Schmidt, twice, which suffices: Giraud et al. 2005). A
// column that depends on others becomes zero.
func orthonormalise(pool *kernels.Pool, v []float64, width int) {
	n := len(v) / width
	cols := make([]float64, len(v)) // transposed
	for i := range n {
		for j := range width {
			cols[j*n+i] = v[i*width+j]
		}
	}
	dot := func(x, y []float64) (sum float64) {
		for i, a := range x {
			sum += float64(a * y[i])
		}
		return sum
	}
	products := make([]float64, width)
	for j := range width {
		c := cols[j*n : (j+1)*n]
		before := math.Sqrt(dot(c, c))
		for range 2 {
			// Four columns at a time: a sum waits for itself.
			parallel(pool, (j+3)/4, 2, func(lo, hi int) {
				for k := 4 * lo; k < min(4*hi, j); k += 4 {
					if k+4 > j {
						for ; k < j; k++ {
							products[k] = dot(c, cols[k*n:(k+1)*n])
						}
						break
					}
					var sum [4]float64
					x0, x1, x2, x3 := cols[k*n:][:n], cols[(k+1)*n:][:n], cols[(k+2)*n:][:n], cols[(k+3)*n:][:n]
					for i, a := range c {
						sum[0] += float64(a * x0[i])
						sum[1] += float64(a * x1[i])
						sum[2] += float64(a * x2[i])
						sum[3] += float64(a * x3[i])
					}
					copy(products[k:], sum[:])
				}
			})
			parallel(pool, n, 512, func(lo, hi int) {
				k := 0
				for ; k+4 <= j; k += 4 {
					w0, w1, w2, w3 := products[k], products[k+1], products[k+2], products[k+3]
					x0, x1, x2, x3 := cols[k*n:][:n], cols[(k+1)*n:][:n], cols[(k+2)*n:][:n], cols[(k+3)*n:][:n]
					for i := lo; i < hi; i++ {
						v := c[i] - float64(w0*x0[i])
						v -= float64(w1 * x1[i])
						v -= float64(w2 * x2[i])
						c[i] = v - float64(w3*x3[i])
					}
				}
				for ; k < j; k++ {
					w, from := products[k], cols[k*n:(k+1)*n]
					for i := lo; i < hi; i++ {
						c[i] -= float64(w * from[i])
					}
				}
			})
		}
		length := math.Sqrt(dot(c, c))
		scale := 0.0
		if length > 1e-9*before {
			scale = 1 / length
		}
		for i := range c {
			c[i] *= scale
		}
	}
	for i := range n {
		for j := range width {
			v[i*width+j] = cols[j*n+i]
		}
	}
}
