package kernels

import (
	"fmt"
	"math"
)

// Cholesky writes to dst the upper triangular r with rᵀr = a, a symmetric
// [n, n]. Where a pivot does not exceed ridge·tr a/n, a is singular or nearly:
// that much is added to its diagonal, and ten times more until all pivots hold.
// It is an error when a is far from positive definite or not finite. The work is
// done in float64 on the calling goroutine, in ws of n·n elements: the Gram
// matrices it is meant for are as wide as a layer.
func (p *Pool) Cholesky(dst, a []float32, n int, ridge float64, ws []float64) error {
	need("Cholesky", "dst", len(dst), n*n)
	need("Cholesky", "a", len(a), n*n)
	need("Cholesky", "workspace", len(ws), n*n)
	mean := 0.0
	for i := range n {
		mean += float64(a[i*n+i]) / float64(n)
	}
	shift := 0.0
	for {
		pivot := factor(ws, a, n, shift, ridge*mean)
		if pivot < 0 {
			break
		}
		if shift *= 10; shift == 0 {
			shift = ridge * mean
		}
		if !(shift > 0 && shift < mean) {
			return fmt.Errorf("pivot %d: the matrix is not positive definite (mean of its diagonal %g)", pivot, mean)
		}
	}
	for i := range n {
		clear(dst[i*n : i*n+i])
		for j := i; j < n; j++ {
			dst[i*n+j] = float32(ws[i*n+j])
		}
	}
	return nil
}

// factor computes the upper triangle of r from that of a + shift·I, row by row,
// and returns the first pivot that is not greater than least, or −1.
func factor(r []float64, a []float32, n int, shift, least float64) int {
	for i := range n {
		for j := i; j < n; j++ {
			r[i*n+j] = float64(a[i*n+j])
		}
		r[i*n+i] += shift
	}
	for i := range n {
		row := r[i*n+i : (i+1)*n]
		if !(row[0] > least) {
			return i
		}
		d := 1 / math.Sqrt(row[0])
		for k := range row {
			row[k] *= d
		}
		for j := i + 1; j < n; j++ {
			c := row[j-i]
			from, to := row[j-i:], r[j*n+j:(j+1)*n]
			for k := range to {
				to[k] -= float64(c * from[k])
			}
		}
	}
	return -1
}

// SolveUpper computes dst with r·dst = b for r upper triangular [n, n] and b
// [n, cols], by back substitution. dst may be b.
func (p *Pool) SolveUpper(dst, r, b []float32, n, cols int) {
	need("SolveUpper", "dst", len(dst), n*cols)
	need("SolveUpper", "r", len(r), n*n)
	need("SolveUpper", "b", len(b), n*cols)
	p.runRange(rangeJob{run: (*rangeJob).solveUpper, dst: dst, a: r, b: b, rows: n, cols: cols, n: cols, per: 32})
}

// solveUpper solves for the columns lo ≤ c < hi.
func (j *rangeJob) solveUpper(lo, hi, _ int) {
	n, cols := j.rows, j.cols
	for i := n - 1; i >= 0; i-- {
		y := j.dst[i*cols+lo : i*cols+hi]
		copy(y, j.b[i*cols+lo:i*cols+hi])
		for k := i + 1; k < n; k++ {
			ks.axpby(y, j.dst[k*cols+lo:k*cols+hi], -j.a[i*n+k], 1)
		}
		ks.vs[Div](y, y, j.a[i*n+i])
	}
}
