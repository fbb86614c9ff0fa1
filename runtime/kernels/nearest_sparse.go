package kernels

// SparseNearestPays reports whether [Pool.NearestSparse] of s and its transpose takes less than
// [Pool.Nearest] of the same rows stored densely.
func SparseNearestPays(s, t *CSR) bool {
	work := 64 * s.Rows * s.Rows // to look at the products
	for c := range t.Rows {
		n := int(t.RowPtr[c+1] - t.RowPtr[c])
		work += 128 * n * n
	}
	return work < s.Rows*s.Rows*s.Cols/2
}

// NearestSparse is [Pool.Nearest] of rows z, [s.Rows, s.Cols], of which the entries of s with vals are
// stored, and all others are 0; t is the transpose of s. Products and lists are the same
// to the bit: what is 0 changes no sum, and the others are added in the same order.
func (p *Pool) NearestSparse(idx []int32, sim []float32, s, t *CSR, vals []float32, k int) {
	s.check("NearestSparse")
	t.check("NearestSparse")
	n := s.Rows
	need("NearestSparse", "idx", len(idx), n*k)
	need("NearestSparse", "sim", len(sim), n*k)
	need("NearestSparse", "vals", len(vals), len(s.Col))
	noneYet(idx, sim, n*k)
	if n <= 0 || k <= 0 || s.Cols <= 0 {
		return
	}
	p.scratch(2 * n)
	p.intScratch(n)
	rows := nearestRows{idx: idx, sim: sim, k: k, n: n, worst: grow(&p.part, n)}
	fill(rows.worst, negInf)
	right := gemmJob{k: s.Cols, n: n, transB: true, mk: ks.wide}
	right.divideRight()
	runJob(p, &p.jobs.nearSparse, nearestSparseJob{p: p, s: s, t: t, vals: vals, kc: int32(right.kc), rows: rows}, ceilDiv(n, nearestSparseRows))
}

const nearestSparseRows = 16 // of a chunk

type nearestSparseJob struct {
	p    *Pool
	s, t *CSR
	vals []float32
	kc   int32 // columns whose products Nearest adds before they join the sum
	rows nearestRows
}

func (j *nearestSparseJob) do(c, worker int) {
	n := j.rows.n
	local := j.p.local[worker]
	sum, part, touched := local[:n], local[n:2*n], j.p.ints[worker]
	for u := c * nearestSparseRows; u < min((c+1)*nearestSparseRows, n); u++ {
		clear(sum)
		clear(part)
		for e, last := j.s.RowPtr[u], j.s.RowPtr[u+1]; e < last; {
			some, end, all := 0, (j.s.Col[e]/j.kc+1)*j.kc, false
			for ; e < last && j.s.Col[e] < end; e++ {
				x, col := j.vals[e], j.s.Col[e]
				for at := j.t.RowPtr[col]; at < j.t.RowPtr[col+1]; at++ {
					v := j.t.Col[at]
					was := part[v]
					if was == 0 {
						if all = all || some == n; !all { // sums that came back to 0 are there twice
							touched[some] = v
							some++
						}
					}
					part[v] = fma32(x, j.vals[j.t.Perm[at]], was)
				}
			}
			if all {
				addTo(sum, part)
				clear(part)
				continue
			}
			for _, v := range touched[:some] {
				sum[v] += part[v]
				part[v] = 0
			}
		}
		for v, s := range sum {
			if s >= j.rows.worst[u] && u != v {
				j.rows.offer(u, v, s)
			}
		}
	}
}
