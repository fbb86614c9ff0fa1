package kernels

// SolveUpper writes to dst [n, cols] the solution y of r·y = b, r [n, n] upper
// triangular. dst may be b. It runs on the caller's goroutine: r is as large as
// a layer is wide.
func (p *Pool) SolveUpper(dst, r, b []float32, n, cols int) {
	need("SolveUpper", "dst", len(dst), n*cols)
	need("SolveUpper", "r", len(r), n*n)
	need("SolveUpper", "b", len(b), n*cols)
	copy(dst[:n*cols], b)
	for i := n - 1; i >= 0; i-- {
		row := dst[i*cols : (i+1)*cols]
		for k := i + 1; k < n; k++ {
			f := r[i*n+k]
			for j, v := range dst[k*cols : (k+1)*cols] {
				row[j] -= f * v
			}
		}
		inv := 1 / r[i*n+i]
		for j := range row {
			row[j] *= inv
		}
	}
}
