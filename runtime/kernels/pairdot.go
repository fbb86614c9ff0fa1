package kernels

// PairDot computes dst[k] = ⟨x[left[k],:], y[right[k],:]⟩ for x and y [rows, f]. It
// panics on an index outside the rows.
func (p *Pool) PairDot(dst, x, y []float32, left, right []int64, rows, f int) {
	need("PairDot", "x", len(x), rows*f)
	need("PairDot", "y", len(y), rows*f)
	checkPairs("PairDot", dst, left, right, rows)
	p.runRange(rangeJob{run: (*rangeJob).pairDot, dst: dst, a: x, b: y, left: left, right: right, cols: f, n: len(left), per: rowsPerChunk(2 * f)})
}

func (j *rangeJob) pairDot(lo, hi, _ int) {
	f := j.cols
	for k := lo; k < hi; k++ {
		l, r := int(j.left[k])*f, int(j.right[k])*f
		j.dst[k] = ks.dot(j.a[l:l+f], j.b[r:r+f])
	}
}
