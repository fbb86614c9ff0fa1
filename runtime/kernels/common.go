package kernels

import "sort"

// CommonNeighbors computes dst[k] = Σ A[left[k],w]·A[right[k],w]·v[w] over the columns w
// other than left[k] and right[k], where A is the square matrix with the entries vals
// (nil for ones) and v has a number a column. Columns must ascend within the rows of s;
// entries at the same place are added. A sum runs over ascending columns in float64. It
// panics on an index outside the rows.
func (p *Pool) CommonNeighbors(dst []float32, s *CSR, vals, v []float32, left, right []int64) {
	s.check("CommonNeighbors")
	need("CommonNeighbors", "v", len(v), s.Cols)
	needIfAny("CommonNeighbors", "vals", vals, len(s.Col))
	checkPairs("CommonNeighbors", dst, left, right, s.Rows)
	job := rangeJob{run: (*rangeJob).commonNeighbors, dst: dst, s: s, a: vals, b: v, left: left, right: right, n: len(left), per: 256}
	if len(left) >= s.Rows/markFrom {
		p.intScratch(s.Cols)
		for _, marks := range p.ints {
			clear(marks[:s.Cols])
		}
		job.marks = p.ints
	}
	p.runRange(job)
}

// CommonNeighborsScratch returns what [Pool.CommonNeighbors] uses for n nodes.
func CommonNeighborsScratch(n int) Scratch { return Scratch{Ints: n} }

// markFrom is of how many rows there must be a pair for marks, which take a number a row,
// to pay.
const markFrom = 8

// searchAbove is how many times longer than the other a row must be for its columns to
// be searched rather than walked.
const searchAbove = 8

func (j *rangeJob) commonNeighbors(lo, hi, worker int) {
	s := j.s
	var at []int32 // by column one more than the first entry there of the marked row, or 0
	if j.marks != nil {
		at = j.marks[worker]
	}
	marked := int32(-1)
	mark := func(row int32, first bool) {
		for e := s.RowPtr[row+1] - 1; e >= s.RowPtr[row]; e-- {
			if at[s.Col[e]] = 0; first {
				at[s.Col[e]] = e + 1
			}
		}
	}
	for k := lo; k < hi; k++ {
		l, r := int32(j.left[k]), int32(j.right[k])
		if at != nil && marked != l {
			if marked >= 0 {
				mark(marked, false)
			}
			// Several pairs in a row share their first node, where pairs are sorted.
			if marked = -1; k+1 < hi && j.left[k+1] == j.left[k] {
				mark(l, true)
				marked = l
			}
		}
		if marked == l && (s.RowPtr[r+1]-s.RowPtr[r])/searchAbove <= s.RowPtr[l+1]-s.RowPtr[l] {
			j.dst[k] = j.commonWithMarked(at, l, r)
		} else {
			j.dst[k] = j.common(l, r)
		}
	}
	if marked >= 0 {
		mark(marked, false)
	}
}

// commonWithMarked sums over the common neighbours of two nodes, of which the row of the
// first is marked.
func (j *rangeJob) commonWithMarked(at []int32, l, r int32) float32 {
	s, sum := j.s, 0.0
	for e, end := s.RowPtr[r], s.RowPtr[r+1]; e < end; {
		w := s.Col[e]
		first := at[w]
		if first == 0 || w == l || w == r {
			e++
			continue
		}
		var x, y float64
		x, e = j.entriesAt(w, e, end)
		y, _ = j.entriesAt(w, first-1, s.RowPtr[l+1])
		sum += float64(x * y * float64(j.b[w]))
	}
	return float32(sum)
}

// common sums over the common neighbours of two nodes.
func (j *rangeJob) common(l, r int32) float32 {
	s := j.s
	short, long := l, r
	if s.RowPtr[l+1]-s.RowPtr[l] > s.RowPtr[r+1]-s.RowPtr[r] {
		short, long = r, l
	}
	e, end := s.RowPtr[short], s.RowPtr[short+1]
	f, stop := s.RowPtr[long], s.RowPtr[long+1]
	search := (stop-f)/searchAbove > end-e
	sum := 0.0
	for e < end && f < stop {
		w := s.Col[e]
		if search {
			f += int32(sort.Search(int(stop-f), func(i int) bool { return s.Col[int(f)+i] >= w }))
		} else {
			for f < stop && s.Col[f] < w {
				f++
			}
		}
		var x, y float64
		x, e = j.entriesAt(w, e, end)
		if f < stop && s.Col[f] == w {
			y, f = j.entriesAt(w, f, stop)
			if w != l && w != r {
				sum += float64(x * y * float64(j.b[w]))
			}
		}
	}
	return float32(sum)
}

// entriesAt sums the entries from e on that lie in column w, and returns where others begin.
func (j *rangeJob) entriesAt(w, e, end int32) (sum float64, next int32) {
	for ; e < end && j.s.Col[e] == w; e++ {
		x := 1.0
		if j.a != nil {
			x = float64(j.a[j.s.value(e)])
		}
		sum += x
	}
	return sum, e
}
