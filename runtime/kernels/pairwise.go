package kernels

import "math"

// PairwiseResult is what [Pool.PairwiseReduce] computes of the distances
// d_ij = ‖p_i − q_j‖ and logits ℓ_ij = −d_ij²/τ. Results that are nil are not written.
type PairwiseResult struct {
	RowLSE []float32 // [b]: ln Σ_{j≠i} exp ℓ_ij; −Inf where b is 1
	ColLSE []float32 // [b]: ln Σ_{i≠j} exp ℓ_ij by column j; −Inf where b is 1
	Diag   []float32 // [b]: d_ii²
	SumSq  []float32 // [1]: Σ_{i≠j} (d_ij²)²
}

// pairStrip is the number of rows of the distance matrix held at a time.
const pairStrip = 256

// pairBlock is the number of rows of one chunk within a strip.
const pairBlock = 16

// PairwiseWorkspace returns how many floats PairwiseReduce and PairwiseReduceGrad
// need as workspace for b rows of f columns: a strip of the distance matrix,
// never all of it once b exceeds the strip.
func PairwiseWorkspace(b, f int) int {
	strip := min(b, pairStrip)
	blocks := ceilDiv(strip, pairBlock)
	return strip*b + // distances of a strip
		2*b + // squared norms
		3*b + // column maxima, old and new, and sums
		2*blocks*b + // the same of one block
		strip + // row sums
		blocks*b + blocks // column sums, sums of squares by block
}

// PairwiseReduce reduces the distances between the rows of pm and q, both
// [b, f], without keeping them: see [PairwiseResult]. Strips of rows are
// multiplied, turned into distances and folded into the results in order. ws
// holds [PairwiseWorkspace] floats. tau > 0.
func (p *Pool) PairwiseReduce(out PairwiseResult, pm, q []float32, b, f int, tau float32, ws []float32) {
	need("PairwiseReduce", "p", len(pm), b*f)
	need("PairwiseReduce", "q", len(q), b*f)
	need("PairwiseReduce", "workspace", len(ws), PairwiseWorkspace(b, f))
	j := &p.jobs.pair
	*j = pairJob{p: pm, q: q, b: b, f: f, tau: tau, out: out}
	j.carve(ws)
	j.checkResults(len(out.RowLSE), len(out.ColLSE), len(out.Diag), len(out.SumSq))
	if out.SumSq != nil {
		out.SumSq[0] = 0
	}
	if b == 0 {
		*j = pairJob{}
		return
	}
	p.pairPhase(pairNorms)
	fill(j.colM, -math.MaxFloat32)
	clear(j.colS)
	total := 0.0
	for j.r0 = 0; j.r0 < b; j.r0 += pairStrip {
		j.r1 = min(j.r0+pairStrip, b)
		rows := j.r1 - j.r0
		p.MatMul(j.dist, pm[j.r0*f:j.r1*f], q, rows, f, b, false, true, Epilogue{})
		p.pairPhase(pairForward)
		if out.ColLSE != nil {
			p.pairPhase(pairMergeColumns)
		}
		for _, v := range j.blockSq[:ceilDiv(rows, pairBlock)] {
			total += float64(v)
		}
	}
	if out.ColLSE != nil {
		for c := range b {
			out.ColLSE[c] = negInf
			if j.colS[c] > 0 {
				out.ColLSE[c] = j.colM[c] + log32(j.colS[c])
			}
		}
	}
	if out.SumSq != nil {
		out.SumSq[0] = float32(total)
	}
	*j = pairJob{}
}

// PairwiseCotangent holds the gradients of a loss with respect to the results of
// [Pool.PairwiseReduce]; nil stands for zero.
type PairwiseCotangent struct {
	RowLSE, ColLSE, Diag, SumSq []float32
}

// PairwiseReduceGrad computes the gradients dp and dq of PairwiseReduce, [b, f]
// each, from the cotangents d and the results rowLSE and colLSE (needed where
// their cotangents are given). With g_ij = ∂L/∂d_ij² it is
// dp_i = 2 Σ_j g_ij (p_i − q_j) and dq_j = 2 Σ_i g_ij (q_j − p_i). An empty
// logsumexp (−Inf) passes no gradient. ws holds [PairwiseWorkspace] floats.
func (p *Pool) PairwiseReduceGrad(dp, dq, pm, q, rowLSE, colLSE []float32, d PairwiseCotangent, b, f int, tau float32, ws []float32) {
	need("PairwiseReduceGrad", "dp", len(dp), b*f)
	need("PairwiseReduceGrad", "dq", len(dq), b*f)
	need("PairwiseReduceGrad", "p", len(pm), b*f)
	need("PairwiseReduceGrad", "q", len(q), b*f)
	need("PairwiseReduceGrad", "workspace", len(ws), PairwiseWorkspace(b, f))
	if d.RowLSE != nil {
		need("PairwiseReduceGrad", "rowLSE", len(rowLSE), b)
	}
	if d.ColLSE != nil {
		need("PairwiseReduceGrad", "colLSE", len(colLSE), b)
	}
	j := &p.jobs.pair
	*j = pairJob{p: pm, q: q, dp: dp, dq: dq, rowLSE: rowLSE, colLSE: colLSE, cot: d, b: b, f: f, tau: tau}
	j.carve(ws)
	j.checkResults(len(d.RowLSE), len(d.ColLSE), len(d.Diag), len(d.SumSq))
	if b == 0 {
		*j = pairJob{}
		return
	}
	p.pairPhase(pairNorms)
	clear(j.colS)
	for j.r0 = 0; j.r0 < b; j.r0 += pairStrip {
		j.r1 = min(j.r0+pairStrip, b)
		rows := j.r1 - j.r0
		ps := pm[j.r0*f : j.r1*f]
		p.MatMul(j.dist, ps, q, rows, f, b, false, true, Epilogue{})
		p.pairPhase(pairBackward)
		p.pairPhase(pairMergeColumns)
		// dp strip = G·q, dq += Gᵀ·p strip; both are finished below.
		p.MatMul(dp[j.r0*f:j.r1*f], j.dist, q, rows, b, f, false, false, Epilogue{})
		p.MatMul(dq, j.dist, ps, b, rows, f, true, false, Epilogue{Accumulate: j.r0 > 0})
		p.pairPhase(pairFinishRows)
	}
	p.pairPhase(pairFinishColumns)
	*j = pairJob{}
}

type pairPhase int

const (
	pairNorms         pairPhase = iota // squared norms of the rows of p and q
	pairForward                        // distances of a strip, row results, column results by block
	pairMergeColumns                   // column results of the blocks into those of all strips
	pairBackward                       // distances of a strip to gradients, row sums, column sums by block
	pairFinishRows                     // dp = 2(rowsum·p − G·q)
	pairFinishColumns                  // dq = 2(colsum·q − Gᵀ·p)
)

// pairConst is what the inner loop of the backward pass needs of a row:
// g_j = wRow·exp(d_j·scale − rowLSE) + dCol_j·scale·exp(d_j·scale − colLSE_j) + 2·dSq·d_j
// with scale = −1/τ and wRow = dRow_i·scale.
type pairConst struct {
	scale, rowLSE, wRow, sq2 float32
}

type pairJob struct {
	phase            pairPhase
	p, q, dp, dq     []float32
	rowLSE, colLSE   []float32
	out              PairwiseResult
	cot              PairwiseCotangent
	b, f             int
	tau              float32
	r0, r1           int       // the strip
	dist             []float32 // [strip, b]
	pn, qn           []float32 // ‖p_i‖², ‖q_j‖²
	colM, colS, top  []float32 // running column maxima and sums, maxima to come
	blockM, blockS   []float32 // [blocks, b]
	rowS             []float32 // Σ_j g_ij of the strip
	blockSq, colSums []float32
	consts           [pairStrip / pairBlock]pairConst // one for each chunk
}

func (j *pairJob) carve(ws []float32) {
	take := func(n int) []float32 {
		s := ws[:n:n]
		ws = ws[n:]
		return s
	}
	b := j.b
	strip := min(b, pairStrip)
	blocks := ceilDiv(strip, pairBlock)
	j.dist = take(strip * b)
	j.pn, j.qn = take(b), take(b)
	j.colM, j.colS, j.top = take(b), take(b), take(b)
	j.blockM, j.blockS = take(blocks*b), take(blocks*b)
	j.rowS = take(strip)
	j.colSums = take(blocks * b)
	j.blockSq = take(blocks)
}

func (j *pairJob) checkResults(row, col, diag, sq int) {
	for _, r := range [...]struct {
		name string
		have int
		want int
	}{{"RowLSE", row, j.b}, {"ColLSE", col, j.b}, {"Diag", diag, j.b}, {"SumSq", sq, 1}} {
		if r.have > 0 {
			need("PairwiseReduce", r.name, r.have, r.want)
		}
	}
}

func (p *Pool) pairPhase(ph pairPhase) {
	j := &p.jobs.pair
	j.phase = ph
	var chunks int
	switch ph {
	case pairNorms, pairFinishColumns:
		chunks = ceilDiv(j.b, pairBlock)
	case pairForward, pairBackward, pairFinishRows:
		chunks = ceilDiv(j.r1-j.r0, pairBlock)
	case pairMergeColumns:
		chunks = ceilDiv(j.b, 128)
	}
	p.run(chunks, j)
}

func (j *pairJob) do(c, _ int) {
	b, f := j.b, j.f
	lo := c * pairBlock
	switch j.phase {
	case pairNorms:
		for i := lo; i < min(lo+pairBlock, b); i++ {
			x, y := j.p[i*f:(i+1)*f], j.q[i*f:(i+1)*f]
			j.pn[i], j.qn[i] = ks.dot(x, x), ks.dot(y, y)
		}
	case pairForward:
		j.forward(c)
	case pairBackward:
		j.backward(c)
	case pairMergeColumns:
		j.mergeColumns(c*128, min(c*128+128, b))
	case pairFinishRows:
		for i := lo; i < min(lo+pairBlock, j.r1-j.r0); i++ {
			r := (j.r0 + i) * f
			ks.axpby(j.dp[r:r+f], j.p[r:r+f], 2*j.rowS[i], -2)
		}
	case pairFinishColumns:
		for i := lo; i < min(lo+pairBlock, b); i++ {
			ks.axpby(j.dq[i*f:(i+1)*f], j.q[i*f:(i+1)*f], 2*j.colS[i], -2)
		}
	}
}

// forward handles one block of rows of the strip: products become distances, row
// results are finished, column maxima and sums kept for the block.
func (j *pairJob) forward(c int) {
	b, f := j.b, j.f
	scale := -1 / j.tau
	m, s := j.blockM[c*b:(c+1)*b], j.blockS[c*b:(c+1)*b]
	fill(m, negInf)
	lo, hi := c*pairBlock, min((c+1)*pairBlock, j.r1-j.r0)
	var sq float32
	for i := lo; i < hi; i++ {
		r := j.r0 + i
		d := j.dist[i*b : (i+1)*b]
		own := ks.sqDist(j.p[r*f:(r+1)*f], j.q[r*f:(r+1)*f])
		if j.out.Diag != nil {
			j.out.Diag[r] = own
		}
		// The pair itself is no negative: the row is handled around it.
		s0, m0 := ks.pairL(d[:r], j.qn[:r], m[:r], j.pn[r], scale)
		s1, m1 := ks.pairL(d[r+1:], j.qn[r+1:], m[r+1:], j.pn[r], scale)
		d[r] = negInf
		sq += s0 + s1
		if j.out.RowLSE != nil {
			j.out.RowLSE[r] = max(m0, m1)
			if shift := max(m0, m1); shift > negInf {
				j.out.RowLSE[r] += log32(ks.sumExp(d, shift))
			}
		}
	}
	j.blockSq[c] = sq
	if j.out.ColLSE == nil {
		return
	}
	for c, v := range m {
		m[c] = max(v, -math.MaxFloat32) // Inf − Inf is no shift
	}
	clear(s)
	for i := lo; i < hi; i++ {
		ks.accExp(s, j.dist[i*b:(i+1)*b], m)
	}
}

// distances turns a row of products into squared distances, its own pair's 0,
// and returns the sum of their squares.
func (j *pairJob) distances(d []float32, r int) float32 {
	d[r] = (j.pn[r] + j.qn[r]) / 2 // makes d_rr exactly 0
	return ks.pairD(d, j.qn, j.pn[r])
}

// backward turns the block's products into g_ij.
func (j *pairJob) backward(c int) {
	b := j.b
	k := &j.consts[c]
	k.scale = -1 / j.tau
	k.sq2 = 0
	if j.cot.SumSq != nil {
		k.sq2 = 2 * j.cot.SumSq[0]
	}
	sums := j.colSums[c*b : (c+1)*b]
	clear(sums)
	for i := c * pairBlock; i < min((c+1)*pairBlock, j.r1-j.r0); i++ {
		r := j.r0 + i
		d := j.dist[i*b : (i+1)*b]
		j.distances(d, r)
		k.rowLSE, k.wRow = 0, 0
		if j.cot.RowLSE != nil && j.rowLSE[r] != negInf {
			k.rowLSE, k.wRow = j.rowLSE[r], j.cot.RowLSE[r]*k.scale
		}
		var lse, dCol []float32
		if j.cot.ColLSE != nil {
			lse, dCol = j.colLSE[:b], j.cot.ColLSE[:b]
		}
		ks.pairG(d, lse, dCol, k)
		d[r] = 0
		if j.cot.Diag != nil {
			d[r] = j.cot.Diag[r]
		}
		j.rowS[i] = ks.sum(d)
		ks.vv[Add](sums, sums, d)
	}
}

// mergeColumns folds the blocks' columns c0 ≤ c < c1 into the running ones, in
// the order of the blocks.
func (j *pairJob) mergeColumns(c0, c1 int) {
	b := j.b
	blocks := ceilDiv(j.r1-j.r0, pairBlock)
	if j.dp != nil {
		s := j.colS[c0:c1]
		for k := range blocks {
			ks.vv[Add](s, s, j.colSums[k*b+c0:k*b+c1])
		}
		return
	}
	// Σ s·exp(m) over the blocks and what was before, relative to the largest m.
	m, s := j.colM[c0:c1], j.colS[c0:c1]
	top := j.top[c0:c1]
	copy(top, m)
	for k := range blocks {
		ks.vv[Max](top, top, j.blockM[k*b+c0:k*b+c1])
	}
	rescale(s, m, top)
	for k := range blocks {
		bs := j.blockS[k*b+c0 : k*b+c1]
		rescale(bs, j.blockM[k*b+c0:k*b+c1], top)
		ks.vv[Add](s, s, bs)
	}
	copy(m, top)
}

// rescale multiplies sums by exp(m − top); m is used up.
func rescale(s, m, top []float32) {
	ks.vv[Sub](m, m, top)
	ks.unary[Exp](m, m, 0)
	ks.vv[Mul](s, s, m)
}

// pairDGo turns products into squared distances and returns the sum of their squares.
func pairDGo(dst, qn []float32, pn float32) float32 {
	var s [4]float32
	for i, v := range dst {
		d := max(pn+qn[i]-2*v, 0)
		dst[i] = d
		s[i&3] += d * d
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// pairLGo turns products into squared distances as pairDGo does, and those into
// logits; colMax becomes the larger of itself and the logits.
func pairLGo(dst, qn, colMax []float32, pn, scale float32) (sq, rowMax float32) {
	sq, rowMax = pairDGo(dst, qn, pn), negInf
	for i, d := range dst {
		l := d * scale
		dst[i] = l
		rowMax, colMax[i] = max(rowMax, l), max(colMax[i], l)
	}
	return sq, rowMax
}

// pairGGo leaves the element of the pair itself to the caller. A column whose
// logsumexp is −Inf has no other element.
func pairGGo(g, colLSE, dCol []float32, c *pairConst) {
	for i, d := range g {
		l := d * c.scale
		v := c.sq2 * d
		if c.wRow != 0 {
			v += c.wRow * exp32(l-c.rowLSE)
		}
		if dCol != nil {
			v += dCol[i] * c.scale * exp32(l-colLSE[i])
		}
		g[i] = v
	}
}
