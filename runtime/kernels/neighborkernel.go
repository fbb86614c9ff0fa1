package kernels

import "sort"

// NeighborKernel computes dst[k] = Σ A[r,w]·κ(x[l], x[w]) + A[l,w]·κ(x[r], x[w]) for the
// pairs l = left[k], r = right[k], over the columns w other than l and r, where A is the
// square matrix with the entries vals (nil for ones), x has rows of f elements and
// κ(u, v) = exp((u·v − 1)/tau). Of a row with n > most entries off
// the diagonal those at ⌊t·n/most⌋ count. Columns must ascend within the rows of s. A sum runs over the entries of r, then of l, in float64. It
// panics on an index outside the rows.
func (p *Pool) NeighborKernel(dst []float32, s *CSR, vals, x []float32, f int, left, right []int64, tau float64, most int) {
	s.check("NeighborKernel")
	need("NeighborKernel", "x", len(x), s.Cols*f)
	needIfAny("NeighborKernel", "vals", vals, len(s.Col))
	checkPairs("NeighborKernel", dst, left, right, s.Rows)
	p.runRange(rangeJob{run: (*rangeJob).neighborKernel, dst: dst, s: s, a: vals, b: x, cols: f, left: left, right: right, scale: float32(1 / tau), width: most, n: len(left), per: 64})
}

func (j *rangeJob) neighborKernel(lo, hi, _ int) {
	for k := lo; k < hi; k++ {
		l, r := int32(j.left[k]), int32(j.right[k])
		j.dst[k] = float32(j.nearNeighbors(l, r) + j.nearNeighbors(r, l))
	}
}

// nearNeighbors sums the kernel of a node and another one's neighbours.
func (j *rangeJob) nearNeighbors(node, of int32) (sum float64) {
	s, f := j.s, j.cols
	row := j.b[int(node)*f : int(node)*f+f]
	first, n := int(s.RowPtr[of]), int(s.RowPtr[of+1]-s.RowPtr[of])
	own := sort.Search(n, func(i int) bool { return s.Col[first+i] >= of })
	loops := 0
	for own+loops < n && s.Col[first+own+loops] == of {
		loops++
	}
	n -= loops
	count := min(n, j.width)
	for t := range count {
		e := t * n / count
		if e >= own {
			e += loops
		}
		e += first
		w := s.Col[e]
		if w == node {
			continue
		}
		y := exp32(float32((ks.dot(row, j.b[int(w)*f:int(w)*f+f]) - 1) * j.scale))
		if j.a != nil {
			y = float32(y * j.a[s.value(int32(e))])
		}
		sum += float64(y)
	}
	return sum
}
