package kernels

// SparseToDense writes the matrix with the entries vals (nil for ones) to dst
// [s.Rows, s.Cols]; entries at the same place are added.
func (p *Pool) SparseToDense(dst, vals []float32, s *CSR) {
	s.check("SparseToDense")
	need("SparseToDense", "dst", len(dst), s.Rows*s.Cols)
	p.runSparseRows("SparseToDense", sparseRowsJob{kind: sparseToDense, dst: dst, a: vals, cols: s.Cols}, s)
}

// SparseScale computes dst_e = vals_e·b[row(e)·rowStride + col(e)·colStride] for
// every entry, or the quotient where divide is set: a row vector has the strides
// (0, 1), a column vector (1, 0), a number (0, 0). dst may be vals.
func (p *Pool) SparseScale(dst, vals []float32, s *CSR, b []float32, rowStride, colStride int, divide bool) {
	s.check("SparseScale")
	need("SparseScale", "dst", len(dst), len(s.Col))
	if len(s.Col) > 0 {
		need("SparseScale", "b", len(b), (s.Rows-1)*rowStride+(s.Cols-1)*colStride+1)
	}
	p.runSparseRows("SparseScale", sparseRowsJob{kind: sparseScaled, dst: dst, a: vals, b: b, rowStride: rowStride, colStride: colStride, divide: divide}, s)
}

// SparseL1Normalize is [Pool.L1NormalizeRows] of the matrix with the entries vals
// (nil for ones), none of which share a place: dst_e = vals_e/max(Σ|row(e)|, eps).
// dst may be vals.
func (p *Pool) SparseL1Normalize(dst, vals []float32, s *CSR, eps float32) {
	s.check("SparseL1Normalize")
	need("SparseL1Normalize", "dst", len(dst), len(s.Col))
	p.runSparseRows("SparseL1Normalize", sparseRowsJob{kind: sparseL1, dst: dst, a: vals, scale: eps}, s)
}

// SparseL2Normalize is [Pool.L2NormalizeRows] of the matrix with the entries vals
// (nil for ones), none of which share a place. dst may be vals.
func (p *Pool) SparseL2Normalize(dst, vals []float32, s *CSR, eps float32) {
	s.check("SparseL2Normalize")
	need("SparseL2Normalize", "dst", len(dst), len(s.Col))
	p.runSparseRows("SparseL2Normalize", sparseRowsJob{kind: sparseL2, dst: dst, a: vals, scale: eps}, s)
}

type sparseRowsKind int

const (
	sparseToDense sparseRowsKind = iota
	sparseScaled
	sparseL1
	sparseL2
)

// sparseRowsJob goes over the rows of a sparse matrix.
type sparseRowsJob struct {
	kind                 sparseRowsKind
	dst, a, b            []float32
	s                    *CSR
	cols, per            int
	rowStride, colStride int // of b
	divide               bool
	scale                float32
}

func (p *Pool) runSparseRows(name string, job sparseRowsJob, s *CSR) {
	needIfAny(name, "vals", job.a, len(s.Col))
	f := 16
	if job.kind == sparseToDense {
		f = max(1, job.cols/8) // clearing a row is cheap, but not free
	}
	var chunks int
	job.s = s
	job.per, chunks = s.chunks(f)
	runJob(p, &p.jobs.sparseRows, job, chunks)
}

func (j *sparseRowsJob) do(c, _ int) {
	for r := j.s.rowAt(c, j.per); r < j.s.rowAt(c+1, j.per); r++ {
		j.sparseRow(r)
	}
}

func (j *sparseRowsJob) sparseRow(r int) {
	s := j.s
	lo, hi := s.RowPtr[r], s.RowPtr[r+1]
	value := func(e int32) float32 {
		if j.a == nil {
			return 1
		}
		return j.a[s.value(e)]
	}
	switch j.kind {
	case sparseToDense:
		row := j.dst[r*j.cols : (r+1)*j.cols]
		clear(row)
		for e := lo; e < hi; e++ {
			row[s.Col[e]] += value(e)
		}
	case sparseScaled:
		for e := lo; e < hi; e++ {
			b := j.b[r*j.rowStride+int(s.Col[e])*j.colStride]
			if j.divide {
				j.dst[s.value(e)] = value(e) / b
			} else {
				j.dst[s.value(e)] = value(e) * b
			}
		}
	case sparseL1, sparseL2:
		norm := func(scale float32) (n float32) {
			for e := lo; e < hi; e++ {
				if v := float32(value(e) * scale); j.kind == sparseL1 {
					n += abs32(v)
				} else {
					n += float32(v * v)
				}
			}
			if j.kind == sparseL2 {
				n = sqrt32(n)
			}
			return n
		}
		n := norm(1)
		if scale := j.sparseScale(n, lo, hi); scale != 1 {
			n = 1 / norm(scale)
			for e := lo; e < hi; e++ {
				j.dst[s.value(e)] = value(e) * scale * n
			}
			return
		}
		n = 1 / max(n, j.scale)
		for e := lo; e < hi; e++ {
			j.dst[s.value(e)] = value(e) * n
		}
	}
}
