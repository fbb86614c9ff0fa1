package kernels

// Products with wide matrices of which each row is read by many entries are made by blocks of
// columns. The block is copied to where it is in one piece: rows that lie apart would each cost
// a page's look-up, and would not stay in the second-level cache.
const (
	wideColumns = 64   // of a block
	wideRows    = 8192 // at most: as many rows of a block as that cache has room for, or not much more
	wideReads   = 16   // of each row, at least, for which the copy pays
)

// byBlocks reports whether a product of a [rows, cols] structure with that many entries and a
// [cols, f] matrix is made by blocks of columns.
func byBlocks(rows, cols, entries, f, heads int) bool {
	return heads == 1 && f >= 4*wideColumns && max(rows, cols) <= wideRows && entries >= wideReads*cols
}

// SpMMScratch returns what [Pool.SpMMHeads] uses of a pool's buffers beside the epilogue, for a
// [rows, cols] structure with that many entries and a [cols, f] matrix.
func SpMMScratch(rows, cols, entries, f, heads int) Scratch {
	s := Scratch{Keys: fewKeys(cols, entries, f)}
	if byBlocks(rows, cols, entries, f, heads) {
		s.Local, s.Part = (rows+cols)*wideColumns, entries
	}
	return s
}

// SDDMMScratch returns what [Pool.SDDMMSelf] uses of a pool's buffers, at most.
func SDDMMScratch(rows, entries, f int) Scratch {
	return Scratch{Keys: fewKeys(rows, entries, f), Ints: selfInts}
}

// wideJob is a product by blocks of columns. An element's sum is the one that all columns
// together have.
type wideJob struct {
	sparseJob
	perm []int32 // nil once the values are in the order of the entries
}

func (p *Pool) spmmWide(job sparseJob) {
	s := job.s
	scratch := SpMMScratch(s.Rows, s.Cols, len(s.Col), job.f, 1)
	p.scratch(max(scratch.Local, job.epi.scratch()))
	j := &p.jobs.wide
	*j = wideJob{sparseJob: job}
	j.p = p
	if s.Perm != nil && job.a != nil { // each block reads them
		j.perm, j.dst = s.Perm, grow(&p.part, len(s.Col))
		p.run(ceilDiv(len(s.Col), elemChunk), j)
		j.perm, j.a, j.dst = nil, j.dst, job.dst
	}
	p.run(ceilDiv(j.f, wideColumns), j)
	*j = wideJob{}
}

func (j *wideJob) do(c, worker int) {
	if j.perm != nil {
		at := c * elemChunk
		for i, e := range j.perm[at:min(at+elemChunk, len(j.perm))] {
			j.dst[at+i] = j.a[e]
		}
		return
	}
	s, f, local := j.s, j.f, j.p.local[worker]
	c0 := c * wideColumns
	c1 := min(c0+wideColumns, f)
	w := c1 - c0
	right, product := local[:s.Cols*w], local[s.Cols*w:(s.Cols+s.Rows)*w]
	for i := range s.Cols {
		copy(right[i*w:(i+1)*w], j.b[i*f+c0:])
	}
	add := 0
	if j.epi.Accumulate || j.epi.Add != nil {
		add = 1
		from := j.epi.Add
		if from == nil {
			from = j.dst
		}
		for i := range s.Rows {
			copy(product[i*w:(i+1)*w], from[i*f+c0:])
		}
	}
	ks.spmm(product, s.RowPtr, s.Col, nil, j.a, j.diag, right, w, 0, s.Rows, add, fetchAhead(s.Cols, w))
	for i := range s.Rows {
		copy(j.dst[i*f+c0:i*f+c1], product[i*w:])
	}
	j.epi.finish(j.dst, f, 0, s.Rows, c0, c1, local)
}
