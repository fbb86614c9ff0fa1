package kernels

// SparseToDense writes the matrix with the entries vals (nil for ones) to dst
// [s.Rows, s.Cols]; entries at the same place are added.
func (p *Pool) SparseToDense(dst, vals []float32, s *CSR) {
	s.check("SparseToDense")
	need("SparseToDense", "dst", len(dst), s.Rows*s.Cols)
	needIfAny("SparseToDense", "vals", vals, len(s.Col))
	f := max(1, s.Cols/8) // clearing a row is cheap, but not free
	p.runSparse(sparseJob{run: (*sparseJob).toDense, dst: dst, s: s, a: vals, f: f})
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
	needIfAny("SparseScale", "vals", vals, len(s.Col))
	p.runSparse(sparseJob{run: (*sparseJob).scaled, dst: dst, s: s, a: vals, b: b, rowStride: rowStride, colStride: colStride, divide: divide, f: 16})
}

// SparseL1Normalize is [Pool.L1NormalizeRows] of the matrix with the entries vals
// (nil for ones), none of which share a place: dst_e = vals_e/max(Σ|row(e)|, eps).
// dst may be vals.
func (p *Pool) SparseL1Normalize(dst, vals []float32, s *CSR, eps float32) {
	s.check("SparseL1Normalize")
	need("SparseL1Normalize", "dst", len(dst), len(s.Col))
	needIfAny("SparseL1Normalize", "vals", vals, len(s.Col))
	p.runSparse(sparseJob{run: (*sparseJob).l1Normalized, dst: dst, s: s, a: vals, scale: eps, f: 16})
}

// SparseL2Normalize is [Pool.L2NormalizeRows] of the matrix with the entries vals
// (nil for ones), none of which share a place. dst may be vals.
func (p *Pool) SparseL2Normalize(dst, vals []float32, s *CSR, eps float32) {
	s.check("SparseL2Normalize")
	need("SparseL2Normalize", "dst", len(dst), len(s.Col))
	needIfAny("SparseL2Normalize", "vals", vals, len(s.Col))
	p.runSparse(sparseJob{run: (*sparseJob).l2Normalized, dst: dst, s: s, a: vals, scale: eps, f: 16})
}

// entry returns the value of an entry, 1 where there are no values.
func (j *sparseJob) entry(e int32) float32 {
	if j.a == nil {
		return 1
	}
	return j.a[j.s.value(e)]
}

func (j *sparseJob) toDense(r0, r1, _ int) {
	s := j.s
	for r := r0; r < r1; r++ {
		row := j.dst[r*s.Cols : (r+1)*s.Cols]
		clear(row)
		for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
			row[s.Col[e]] += j.entry(e)
		}
	}
}

func (j *sparseJob) scaled(r0, r1, _ int) {
	s := j.s
	for r := r0; r < r1; r++ {
		for e := s.RowPtr[r]; e < s.RowPtr[r+1]; e++ {
			b := j.b[r*j.rowStride+int(s.Col[e])*j.colStride]
			if j.divide {
				j.dst[s.value(e)] = j.entry(e) / b
			} else {
				j.dst[s.value(e)] = j.entry(e) * b
			}
		}
	}
}

func (j *sparseJob) l1Normalized(r0, r1, _ int) { j.normalized(l1Rows, r0, r1) }
func (j *sparseJob) l2Normalized(r0, r1, _ int) { j.normalized(l2Rows, r0, r1) }

func (j *sparseJob) normalized(kind softmaxKind, r0, r1 int) {
	for r := r0; r < r1; r++ {
		lo, hi := j.s.RowPtr[r], j.s.RowPtr[r+1]
		norm := func(scale float32) (n float32) {
			for e := lo; e < hi; e++ {
				if v := float32(j.entry(e) * scale); kind == l1Rows {
					n += abs32(v)
				} else {
					n += float32(v * v)
				}
			}
			if kind == l2Rows {
				n = sqrt32(n)
			}
			return n
		}
		n, scale := norm(1), float32(1)
		if scale = j.sparseScale(n, lo, hi); scale != 1 {
			n = 1 / norm(scale)
		} else {
			n = 1 / max(n, j.scale)
		}
		for e := lo; e < hi; e++ {
			j.dst[j.s.value(e)] = j.entry(e) * scale * n
		}
	}
}
