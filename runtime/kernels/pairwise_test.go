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

// refPairwiseGrad is the gradient of the float64 formula; cotangents that are nil
// are 0.
func refPairwiseGrad(p, q []float64, r pairRef, d PairwiseCotangent, b, f int, tau float64) (dp, dq []float64) {
	dp, dq = make([]float64, b*f), make([]float64, b*f)
	at := func(x []float32, i int) float64 {
		if x == nil {
			return 0
		}
		return float64(x[i])
	}
	for i := range b {
		for j := range b {
			dist := 0.0
			for c := range f {
				v := p[i*f+c] - q[j*f+c]
				dist += v * v
			}
			g := at(d.Diag, i)
			if i != j {
				g = 2*at(d.SumSq, 0)*dist - (at(d.RowLSE, i)*math.Exp(-dist/tau-r.row[i])+at(d.ColLSE, j)*math.Exp(-dist/tau-r.col[j]))/tau
			}
			for c := range f {
				v := 2 * g * (p[i*f+c] - q[j*f+c])
				dp[i*f+c] += v
				dq[j*f+c] -= v
			}
		}
	}
	return dp, dq
}

// pairSizes are no rows, one, some around the panels and strips of every
// instruction set, columns in two blocks of k, even and odd numbers of tiles with a
// short last one.
var pairSizes = [][2]int{{0, 4}, {1, 1}, {1, 5}, {2, 3}, {3, 0}, {17, 8}, {20, kcMax + 10}, {97, 33}, {300, 16}, {421, 7}}

type pairTau struct{ tau, length float32 }

// Row lengths and temperatures with one shift for all logits (τ ≥ 1/30 at
// length 1), and with running maxima, where exponentials of logits as they are
// would be 0.
var pairTaus = []pairTau{{0.1, 1}, {1, 1}, {0.01, 1}, {0.5, 20}}

func rowsOf(seed uint64, b, f int, length float32) []float32 {
	x := unitRows(seed, b, f)
	for i := range x {
		x[i] *= length
	}
	return x
}

// eachPair calls f with each size, temperature and length, what telling them.
func eachPair(t *testing.T, f func(t *testing.T, pool *Pool, rows, columns int, c pairTau, tau float64, what string)) {
	eachISA(t, func(t *testing.T) {
		pool := NewPool(2)
		defer pool.Close()
		for _, s := range pairSizes {
			for _, c := range pairTaus {
				f(t, pool, s[0], s[1], c, float64(c.tau), name(s, " tau ", c.tau, " length ", c.length))
			}
		}
	})
}

func TestPairwiseReduce(t *testing.T) {
	eachPair(t, func(t *testing.T, pool *Pool, b, f int, c pairTau, tau float64, what string) {
		p, q := rowsOf(1, b, f, c.length), rowsOf(2, b, f, c.length)
		want := refPairwise(wide(p), wide(q), b, f, tau)
		// A logit of float32 distances is as exact as the distance over τ.
		abs := 2e-5 + 1e-6*float64(c.length*c.length)/tau
		ws := junk(PairwiseWorkspace(b, f))
		out := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b), Diag: junk(b), SumSq: junk(1)}
		pool.PairwiseReduce(out, p, q, b, f, c.tau, nil, ws)
		within(t, "rowLSE "+what, out.RowLSE, want.row, abs, 2e-6)
		within(t, "colLSE "+what, out.ColLSE, want.col, abs, 2e-6)
		within(t, "diag "+what, out.Diag, want.diag, 1e-6, 1e-6)
		within(t, "sumsq "+what, out.SumSq, []float64{want.sq}, 1e-6, 1e-5)

		kept := junk(PairwiseKept(b, false))
		again := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b), Diag: junk(b), SumSq: junk(1)}
		pool.PairwiseReduce(again, p, q, b, f, c.tau, kept, ws)
		sameBits(t, "rowLSE with products kept "+what, again.RowLSE, out.RowLSE)
		sameBits(t, "colLSE with products kept "+what, again.ColLSE, out.ColLSE)
		sameBits(t, "sumsq with products kept "+what, again.SumSq, out.SumSq)

		row := junk(b)
		pool.PairwiseReduce(PairwiseResult{RowLSE: row}, p, q, b, f, c.tau, nil, ws)
		within(t, "rowLSE alone "+what, row, want.row, abs, 2e-6)

		self := refPairwise(wide(p), wide(p), b, f, tau)
		fill(row, float32(math.NaN()))
		pool.PairwiseSelf(row, p, b, f, c.tau, nil, ws)
		within(t, "self "+what, row, self.row, abs, 2e-6)
		mirrored := junk(b)
		pool.PairwiseSelf(mirrored, p, b, f, c.tau, junk(PairwiseKept(b, true)), ws)
		sameBits(t, "self with products kept "+what, mirrored, row)
	})
}

// Every subset of cotangents, products kept and not, each gradient alone.
func TestPairwiseReduceGrad(t *testing.T) {
	eachPair(t, func(t *testing.T, pool *Pool, b, f int, c pairTau, tau float64, what string) {
		p, q := rowsOf(1, b, f, c.length), rowsOf(2, b, f, c.length)
		ref := refPairwise(wide(p), wide(q), b, f, tau)
		ws, kept := junk(PairwiseWorkspace(b, f)), junk(PairwiseKept(b, false))
		out := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b)}
		pool.PairwiseReduce(out, p, q, b, f, c.tau, kept, ws)
		for mask := 1; mask < 16; mask++ {
			if b > 50 && mask != 1 && mask != 3 && mask != 5 && mask != 15 {
				continue
			}
			what := name(what, " cotangents ", mask)
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
				d.SumSq = []float32{1e-3}
			}
			wantP, wantQ := refPairwiseGrad(wide(p), wide(q), ref, d, b, f, tau)
			// Weights are as exact as their logits; they are up to 1/τ.
			size := float64(c.length)
			rel := (2e-5 + 2e-6*size*size/tau) * size / min(tau, 1)
			dp, dq := junk(b*f), junk(b*f)
			pool.PairwiseReduceGrad(dp, dq, p, q, out.RowLSE, out.ColLSE, d, b, f, c.tau, nil, ws)
			within(t, "dp "+what, dp, wantP, 4*rel, rel)
			within(t, "dq "+what, dq, wantQ, 4*rel, rel)
			kp, kq := junk(b*f), junk(b*f)
			pool.PairwiseReduceGrad(kp, kq, p, q, out.RowLSE, out.ColLSE, d, b, f, c.tau, kept, ws)
			sameBits(t, "dp from kept products "+what, kp, dp)
			sameBits(t, "dq from kept products "+what, kq, dq)
			pool.PairwiseReduceGrad(kp, nil, p, q, out.RowLSE, out.ColLSE, d, b, f, c.tau, kept, ws)
			sameBits(t, "dp alone "+what, kp, dp)
			pool.PairwiseReduceGrad(nil, kq, p, q, out.RowLSE, out.ColLSE, d, b, f, c.tau, nil, ws)
			sameBits(t, "dq alone "+what, kq, dq)
		}
	})
}

// The mean that the rows see gives the gradient of the rows.
func TestPairwiseMean(t *testing.T) {
	eachPair(t, func(t *testing.T, pool *Pool, b, f int, c pairTau, tau float64, what string) {
		p, q := rowsOf(1, b, f, c.length), rowsOf(2, b, f, c.length)
		ref := refPairwise(wide(p), wide(q), b, f, tau)
		ws := junk(PairwiseWorkspace(b, f))
		out := PairwiseResult{RowLSE: junk(b), Diag: junk(b), Mean: junk(b * f)}
		pool.PairwiseReduce(out, p, q, b, f, c.tau, nil, ws)
		size := float64(c.length)
		within(t, "rowLSE "+what, out.RowLSE, ref.row, 2e-5+1e-6*size*size/tau, 2e-6)
		within(t, "diag "+what, out.Diag, ref.diag, 1e-6, 1e-6)
		d := PairwiseCotangent{RowLSE: normals(3, b), Diag: normals(5, b)}
		want, _ := refPairwiseGrad(wide(p), wide(q), ref, d, b, f, tau)
		rel := (2e-5 + 2e-6*size*size/tau) * size / min(tau, 1)
		dp := junk(b * f)
		pool.PairwiseMeanGrad(dp, p, q, out.Mean, d.RowLSE, d.Diag, b, f, c.tau)
		within(t, "dp "+what, dp, want, 4*rel, rel)
		d.Diag = nil
		want, _ = refPairwiseGrad(wide(p), wide(q), ref, d, b, f, tau)
		pool.PairwiseMeanGrad(dp, p, q, out.Mean, d.RowLSE, nil, b, f, c.tau)
		within(t, "dp of the rows alone "+what, dp, want, 4*rel, rel)
	})
}

// The distances of rows among themselves: half the products, the same gradient.
func TestPairwiseSelfGrad(t *testing.T) {
	eachPair(t, func(t *testing.T, pool *Pool, b, f int, c pairTau, tau float64, what string) {
		x := rowsOf(1, b, f, c.length)
		ref := refPairwise(wide(x), wide(x), b, f, tau)
		d := PairwiseCotangent{RowLSE: normals(3, b)}
		want, mirror := refPairwiseGrad(wide(x), wide(x), ref, d, b, f, tau)
		for i, v := range mirror {
			want[i] += v
		}
		ws, kept := junk(PairwiseWorkspace(b, f)), junk(PairwiseKept(b, true))
		row := junk(b)
		pool.PairwiseSelf(row, x, b, f, c.tau, kept, ws)
		size := float64(c.length)
		rel := (2e-5 + 2e-6*size*size/tau) * size / min(tau, 1)
		dx, again := junk(b*f), junk(b*f)
		pool.PairwiseSelfGrad(dx, x, row, d.RowLSE, b, f, c.tau, nil, ws)
		within(t, "dx "+what, dx, want, 8*rel, rel)
		pool.PairwiseSelfGrad(again, x, row, d.RowLSE, b, f, c.tau, kept, ws)
		sameBits(t, "dx from kept products "+what, again, dx)
	})
}

// Tiles that share rows or columns are added up in one order, whoever computes them.
func TestPairwiseDoesNotDependOnThreads(t *testing.T) {
	const b, f = 700, 24
	for _, tau := range []float32{0.1, 0.01} {
		p, q := unitRows(1, b, f), unitRows(2, b, f)
		d := PairwiseCotangent{RowLSE: normals(3, b), ColLSE: normals(4, b), Diag: normals(5, b), SumSq: []float32{1e-3}}
		var first [][]float32
		for _, threads := range []int{1, 2, 3, 8} {
			pool := NewPool(threads)
			ws := junk(PairwiseWorkspace(b, f))
			out := PairwiseResult{RowLSE: junk(b), ColLSE: junk(b), Diag: junk(b), SumSq: junk(1)}
			pool.PairwiseReduce(out, p, q, b, f, tau, nil, ws)
			dp, dq, dx, self, mean := junk(b*f), junk(b*f), junk(b*f), junk(b), junk(b*f)
			pool.PairwiseReduceGrad(dp, dq, p, q, out.RowLSE, out.ColLSE, d, b, f, tau, nil, ws)
			pool.PairwiseSelf(self, p, b, f, tau, nil, ws)
			pool.PairwiseSelfGrad(dx, p, self, d.RowLSE, b, f, tau, nil, ws)
			pool.PairwiseReduce(PairwiseResult{RowLSE: junk(b), Mean: mean}, p, q, b, f, tau, nil, ws)
			pool.Close()
			all := [][]float32{out.RowLSE, out.ColLSE, out.SumSq, dp, dq, self, dx, mean}
			if first == nil {
				first = all
			}
			for i := range all {
				sameBits(t, name("result ", i, " with ", threads, " threads"), all[i], first[i])
			}
		}
	}
}
