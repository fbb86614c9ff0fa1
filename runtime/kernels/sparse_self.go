package kernels

import "slices"

// SDDMMSelf is [Pool.SDDMM] of z with itself: dst_e = ⟨z_row(e), z_col(e)⟩, z [in.Rows, f]. out is
// the transpose of in; where they tell that in is symmetric, each product is computed once for
// both of its entries, which are equal to the bit.
func (p *Pool) SDDMMSelf(dst []float32, in, out *CSR, z []float32, f int) {
	if in.Perm != nil || in.First != 0 || in.Rows != in.Cols || !slices.Equal(in.RowPtr, out.RowPtr) || !slices.Equal(in.Col, out.Col) {
		p.SDDMM(dst, in, z, z, f)
		return
	}
	need("SDDMMSelf", "dst", len(dst), len(in.Col))
	need("SDDMMSelf", "z", len(z), in.Rows*f)
	job := sparseJob{run: (*sparseJob).self, dst: dst, s: in, other: out.Perm, b: z, f: f, ahead: fetchAhead(in.Cols, f)}
	if few, ok := p.few(z, in.Rows, len(in.Col), f); ok {
		p.runFew(fewDot, few, job)
		return
	}
	p.intScratch(selfInts)
	p.runSparse(job)
}

const selfInts = 2 // where the entries begin and end

// self computes the products of rows r0 ≤ r < r1 with those up to themselves, for both directions.
// The columns of a row ascend: those of a transpose do.
func (j *sparseJob) self(r0, r1, worker int) {
	run := j.p.ints[worker]
	for r := r0; r < r1; r++ {
		first := j.s.RowPtr[r]
		cols := j.s.Col[first:j.s.RowPtr[r+1]]
		n, _ := slices.BinarySearch(cols, int32(r+1))
		if n == 0 {
			continue
		}
		run[0], run[1] = first, first+int32(n)
		ks.sddmm(j.dst, run, j.s.Col, nil, j.b[r*j.f:], j.b, j.f, 0, 1, j.ahead)
		for i, at := range j.other[first:run[1]] {
			j.dst[at] = j.dst[int(first)+i]
		}
	}
}
