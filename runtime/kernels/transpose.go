package kernels

// Transpose writes the transpose of x [rows, cols] to dst [cols, rows]. dst must
// not overlap x.
func (p *Pool) Transpose(dst, x []float32, rows, cols int) {
	need("Transpose", "dst", len(dst), rows*cols)
	need("Transpose", "x", len(x), rows*cols)
	p.runRange(rangeJob{run: (*rangeJob).transpose, dst: dst, a: x, rows: rows, cols: cols, n: cols, per: rowsPerChunk(rows)})
}

func (j *rangeJob) transpose(lo, hi, _ int) {
	for i := lo; i < hi; i++ {
		d := j.dst[i*j.rows : (i+1)*j.rows]
		for k := range d {
			d[k] = j.a[k*j.cols+i]
		}
	}
}
