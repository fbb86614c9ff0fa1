package kernels

// SpMax computes for each row i of s the largest h[col_e] of its entries e, column
// by column; 0 in rows without entries. h is [s.Cols, f], dst [s.Rows, f]. dst
// must not overlap h.
func (p *Pool) SpMax(dst []float32, s *CSR, h []float32, f int) {
	s.check("SpMax")
	need("SpMax", "dst", len(dst), s.Rows*f)
	need("SpMax", "h", len(h), s.Cols*f)
	if f > 0 {
		p.runSparse(sparseJob{run: (*sparseJob).maximum, dst: dst, s: s, b: h, f: f})
	}
}

// maximum computes the rows r0 ≤ r < r1 of SpMax.
func (j *sparseJob) maximum(r0, r1, _ int) {
	s, f := j.s, j.f
	for r := r0; r < r1; r++ {
		d, cols := j.dst[r*f:(r+1)*f], s.Col[s.RowPtr[r]:s.RowPtr[r+1]]
		if len(cols) == 0 {
			clear(d)
			continue
		}
		copy(d, j.b[int(cols[0])*f:][:f])
		for _, c := range cols[1:] {
			ks.vv[Max](d, d, j.b[int(c)*f:][:f])
		}
	}
}

// SpMaxGrad is the gradient of [Pool.SpMax]: dst [s.Cols, f] gets dy [s.Rows, f]
// where h is the row's maximum y, of equal ones at the first entry. done is
// workspace of f numbers. It runs on one thread, in the order of the entries.
func (p *Pool) SpMaxGrad(dst []float32, s *CSR, h, y, dy []float32, f int, done []float32) {
	s.check("SpMaxGrad")
	need("SpMaxGrad", "dst", len(dst), s.Cols*f)
	need("SpMaxGrad", "h", len(h), s.Cols*f)
	need("SpMaxGrad", "y", len(y), s.Rows*f)
	need("SpMaxGrad", "dy", len(dy), s.Rows*f)
	need("SpMaxGrad", "done", len(done), f)
	clear(dst[:s.Cols*f])
	for r := range s.Rows {
		clear(done[:f])
		top, from := y[r*f:(r+1)*f], dy[r*f:(r+1)*f]
		for _, c := range s.Col[s.RowPtr[r]:s.RowPtr[r+1]] {
			to := dst[int(c)*f:][:f]
			for k, v := range h[int(c)*f:][:f] {
				if v == top[k] && done[k] == 0 {
					to[k] += from[k]
					done[k] = 1
				}
			}
		}
	}
}
