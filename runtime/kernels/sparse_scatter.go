package kernels

import "slices"

// A product with a transposed structure whose values do not fit the cache is made along the rows
// that they lie in: their order is then that of memory, and what one after another adds to are the
// rows of the result, which do fit. An element's sum is the one that [Pool.SpMMHeads] has.
const (
	scatterEntries = 1 << 18 // at least
	scatterResult  = 1 << 18 // elements, at most, as many as the second-level cache has room for
	scatterReads   = 16      // entries in a row, at least
)

// scatterWidth is f padded to whole cache lines: what is written to one row must not be part of
// what is read of the next.
func scatterWidth(f int) int { return (f + 15) &^ 15 }

func worthRows(rows, cols, entries, f int) bool {
	return entries >= scatterEntries && entries >= scatterReads*cols && rows*scatterWidth(f) <= scatterResult
}

// byRows reports whether a product with s, of f columns, is made along the rows of the structure
// that s is the transpose of.
func byRows(s *CSR, f int) bool {
	return s.of != nil && s.sorted && s.First == 0 && s.of.Perm == nil && worthRows(s.Rows, s.Cols, len(s.Col), f)
}

// TransposedScratch is [SpMMScratch] for a structure that is the transpose of another.
func TransposedScratch(rows, cols, entries, f, heads int) Scratch {
	s := SpMMScratch(rows, cols, entries, f, heads)
	if w := scatterWidth(f); w != f && worthRows(rows, cols, entries, f) {
		s.Local = max(s.Local, (rows+1)*w)
	}
	return s
}

// scatterJob is such a product, in a chunk rows of s, which are columns of the other structure.
type scatterJob struct{ sparseJob }

func (p *Pool) spmmScatter(job sparseJob) {
	p.scratch(max(TransposedScratch(job.s.Rows, job.s.Cols, len(job.s.Col), job.f, 1).Local, job.epi.scratch()))
	work := len(job.s.Col) + 2*job.s.Rows
	job.p, job.per = p, ceilDiv(work, p.threads)
	runJob(p, &p.jobs.scatter, scatterJob{job}, ceilDiv(work, job.per))
}

func (j *scatterJob) do(c, worker int) {
	s, of, f := j.s, j.s.of, j.f
	r0, r1 := s.rowAt(c, j.per), s.rowAt(c+1, j.per)
	if r0 == r1 {
		return
	}
	j.epi.begin(j.dst, f, r0, r1, 0, f)
	sums, w, row := j.dst, scatterWidth(f), []float32(nil)
	if w != f {
		local := j.p.local[worker]
		sums, row = local[:s.Rows*w], local[s.Rows*w:][:w]
		clear(row)
		clear(sums[r0*w : r1*w])
		for i := r0; i < r1; i++ {
			copy(sums[i*w:], j.dst[i*f:(i+1)*f])
		}
	}
	for i := range of.Rows {
		h := j.b[i*f : (i+1)*f]
		first, last := of.RowPtr[i], of.RowPtr[i+1]
		if r0 > 0 {
			first += below(of.Col[first:last], r0)
		}
		if r1 < s.Rows {
			last = first + below(of.Col[first:last], r1)
		}
		if first < last && notZero(h) > 0 { // what it would add are zeros
			if w != f {
				copy(row, h)
				h = row
			}
			ks.scatter(sums, of.Col[first:last], j.a[first:last], h, w)
		}
	}
	if w != f {
		for i := r0; i < r1; i++ {
			copy(j.dst[i*f:(i+1)*f], sums[i*w:])
		}
	}
	j.epi.finish(j.dst, f, r0, r1, 0, f, j.p.local[worker])
}

// below returns how many of the rising columns lie below c.
func below(cols []int32, c int) int32 {
	n, _ := slices.BinarySearch(cols, int32(c))
	return int32(n)
}

// scatterGo adds vals_e·h to row col_e of dst, for each entry in turn.
func scatterGo(dst []float32, col []int32, vals, h []float32, f int) {
	for e, c := range col {
		d := dst[int(c)*f:][:f]
		for i, v := range h[:f] {
			d[i] = fma32(vals[e], v, d[i])
		}
	}
}
