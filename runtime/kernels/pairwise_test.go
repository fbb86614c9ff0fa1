package kernels

import (
	"math"
	"testing"
)

type pairRef struct {
	row, col, diag []float64
	sq             float64
}

func refPairwise(p, q []float64, b, f int, tau float64) pairRef {
	d := make([]float64, b*b)
	for i := range b {
		for j := range b {
			for c := range f {
				v := p[i*f+c] - q[j*f+c]
				d[i*b+j] += v * v
			}
		}
	}
	var r pairRef
	for i := range b {
		var row, col []float64
		for j := range b {
			if j != i {
				row, col = append(row, -d[i*b+j]/tau), append(col, -d[j*b+i]/tau)
				r.sq += d[i*b+j] * d[i*b+j]
			}
		}
		_, _, _, a := refReduce(row)
		_, _, _, c := refReduce(col)
		r.row, r.col, r.diag = append(r.row, a), append(r.col, c), append(r.diag, d[i*b+i])
	}
	return r
}

func unitRows(seed uint64, b, f int) []float32 {
	x := normals(seed, b*f)
	p := NewPool(1)
	defer p.Close()
	p.L2NormalizeRows(x, x, b, f, 1e-12)
	return x
}

func TestPairwiseReduce(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		pool := NewPool(2)
		defer pool.Close()
		for _, s := range [][2]int{{0, 4}, {1, 1}, {1, 5}, {2, 3}, {17, 8}, {40, 33}, {256, 16}, {300, 16}} {
			b, f := s[0], s[1]
			for _, tau := range []float32{0.1, 1} {
				p, q := unitRows(1, b, f), unitRows(2, b, f)
				want := refPairwise(wide(p), wide(q), b, f, float64(tau))
				ws := junk(PairwiseWorkspace(b, f))
				out := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b), Diag: junk(b), SumSq: junk(1)}
				pool.PairwiseReduce(out, p, q, b, f, tau, ws)
				within(t, name("rowLSE ", s), out.RowLSE, want.row, 2e-5, 2e-6)
				within(t, name("colLSE ", s), out.ColLSE, want.col, 2e-5, 2e-6)
				within(t, name("diag ", s), out.Diag, want.diag, 1e-6, 1e-6)
				within(t, name("sumsq ", s), out.SumSq, []float64{want.sq}, 1e-6, 1e-5)
				row := junk(b)
				pool.PairwiseReduce(PairwiseResult{RowLSE: row}, p, q, b, f, tau, ws)
				sameBits(t, "rowLSE alone", row, out.RowLSE)
			}
		}
	})
}

// The gradient against central differences of the float64 reference, one
// cotangent at a time and all together.
func TestPairwiseReduceGrad(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		pool := NewPool(2)
		defer pool.Close()
		for _, s := range [][2]int{{0, 3}, {1, 3}, {2, 2}, {19, 4}} {
			b, f := s[0], s[1]
			const tau = 0.5
			p, q := unitRows(1, b, f), unitRows(2, b, f)
			for mask := 1; mask < 16; mask++ {
				var d PairwiseCotangent
				if mask&1 != 0 {
					d.RowLSE = normals(3, b)
				}
				if mask&2 != 0 {
					d.ColLSE = normals(4, b)
				}
				if mask&4 != 0 {
					d.Diag = normals(5, b)
				}
				if mask&8 != 0 {
					d.SumSq = []float32{0.3}
				}
				loss := func(p, q []float64) float64 {
					r := refPairwise(p, q, b, f, tau)
					sum := 0.0
					for i := range b {
						if d.RowLSE != nil && b > 1 {
							sum += float64(d.RowLSE[i]) * r.row[i]
						}
						if d.ColLSE != nil && b > 1 {
							sum += float64(d.ColLSE[i]) * r.col[i]
						}
						if d.Diag != nil {
							sum += float64(d.Diag[i]) * r.diag[i]
						}
					}
					if d.SumSq != nil {
						sum += float64(d.SumSq[0]) * r.sq
					}
					return sum
				}
				x, y := wide(p), wide(q)
				diff := func(z []float64) []float64 {
					g := make([]float64, len(z))
					for i, v := range z {
						const h = 1e-5
						z[i] = v + h
						hi := loss(x, y)
						z[i] = v - h
						g[i] = (hi - loss(x, y)) / (2 * h)
						z[i] = v
					}
					return g
				}
				ws := junk(PairwiseWorkspace(b, f))
				out := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b)}
				pool.PairwiseReduce(out, p, q, b, f, tau, ws)
				dp, dq := junk(b*f), junk(b*f)
				pool.PairwiseReduceGrad(dp, dq, p, q, out.RowLSE, out.ColLSE, d, b, f, tau, junk(len(ws)))
				within(t, name("dp ", s, " cotangents ", mask), dp, diff(x), 2e-5, 2e-5)
				within(t, name("dq ", s, " cotangents ", mask), dq, diff(y), 2e-5, 2e-5)
			}
		}
	})
}

// Strips are joined as one whole: b above pairStrip against the float64 formula.
func TestPairwiseReduceGradStrips(t *testing.T) {
	eachISA(t, func(t *testing.T) {
		pool := NewPool(2)
		defer pool.Close()
		const b, f, tau = pairStrip + 70, 5, 0.2
		p, q := unitRows(1, b, f), unitRows(2, b, f)
		d := PairwiseCotangent{RowLSE: normals(3, b), ColLSE: normals(4, b), Diag: normals(5, b), SumSq: []float32{1e-3}}
		ref := refPairwise(wide(p), wide(q), b, f, tau)
		wantP, wantQ := make([]float64, b*f), make([]float64, b*f)
		for i := range b {
			for j := range b {
				dist := 0.0
				for c := range f {
					v := float64(p[i*f+c]) - float64(q[j*f+c])
					dist += v * v
				}
				g := float64(d.Diag[i])
				if i != j {
					g = -float64(d.RowLSE[i])/tau*math.Exp(-dist/tau-ref.row[i]) - float64(d.ColLSE[j])/tau*math.Exp(-dist/tau-ref.col[j]) + 2*1e-3*dist
				}
				for c := range f {
					v := 2 * g * (float64(p[i*f+c]) - float64(q[j*f+c]))
					wantP[i*f+c] += v
					wantQ[j*f+c] -= v
				}
			}
		}
		ws := junk(PairwiseWorkspace(b, f))
		out := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b)}
		pool.PairwiseReduce(out, p, q, b, f, tau, ws)
		dp, dq := junk(b*f), junk(b*f)
		pool.PairwiseReduceGrad(dp, dq, p, q, out.RowLSE, out.ColLSE, d, b, f, tau, ws)
		within(t, "dp", dp, wantP, 1e-4, 1e-4)
		within(t, "dq", dq, wantQ, 1e-4, 1e-4)
	})
}
