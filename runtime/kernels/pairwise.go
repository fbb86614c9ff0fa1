package kernels

import "math"

// PairwiseResult is what [Pool.PairwiseReduce] computes of the squared distances
// d_ij = ‖p_i − q_j‖² and the logits ℓ_ij = −d_ij/τ. Results that are nil are not
// computed.
type PairwiseResult struct {
	RowLSE []float32 // [b]: ln Σ_{j≠i} exp ℓ_ij; −Inf where b is 1
	ColLSE []float32 // [b]: ln Σ_{i≠j} exp ℓ_ij by column j; −Inf where b is 1
	Diag   []float32 // [b]: d_ii
	SumSq  []float32 // [1]: Σ_{i≠j} d_ij²

	// Mean is [b, f]: Σ_{j≠i} q_j·exp(ℓ_ij − RowLSE_i), the mean of the q_j that row
	// i sees; p_i where b is 1. It needs RowLSE and excludes ColLSE and SumSq.
	Mean []float32
}

// PairwiseReduce reduces the distances between the rows of pm and q, both
// [b, f], without keeping them: see [PairwiseResult]. kept is nil, or holds
// [PairwiseKept] floats that PairwiseReduceGrad takes instead of multiplying
// again. ws holds [PairwiseWorkspace] floats. tau > 0.
func (p *Pool) PairwiseReduce(out PairwiseResult, pm, q []float32, b, f int, tau float32, kept, ws []float32) {
	const kernel = "PairwiseReduce"
	needResults(kernel, b, out.RowLSE, out.ColLSE, out.Diag, out.SumSq)
	if out.Mean != nil {
		need(kernel, "Mean", len(out.Mean), b*f)
		need(kernel, "RowLSE", len(out.RowLSE), b)
		if out.ColLSE != nil || out.SumSq != nil || kept != nil {
			panic("kernels: PairwiseReduce: Mean excludes ColLSE, SumSq and kept products")
		}
	}
	oneSided := out.ColLSE == nil && out.SumSq == nil && kept == nil
	p.pairwise(pairJob{kernel: kernel, oneSided: oneSided, p: pm, q: q, b: b, f: f, tau: tau, out: out, kept: kept}, ws)
}

// PairwiseCotangent holds the gradients of a loss with respect to the results of
// [Pool.PairwiseReduce]; nil stands for zero.
type PairwiseCotangent struct {
	RowLSE, ColLSE, Diag, SumSq []float32
}

// PairwiseReduceGrad computes the gradients dp and dq of PairwiseReduce, [b, f]
// each, from the cotangents d and the results rowLSE and colLSE (needed where
// their cotangents are given). A gradient that is nil is not computed. With
// g_ij = ∂L/∂d_ij it is dp_i = 2 Σ_j g_ij (p_i − q_j) and
// dq_j = 2 Σ_i g_ij (q_j − p_i). An empty logsumexp (−Inf) passes no gradient.
// kept is what PairwiseReduce left there, or nil: the gradients are the same bits.
// ws holds [PairwiseWorkspace] floats.
func (p *Pool) PairwiseReduceGrad(dp, dq, pm, q, rowLSE, colLSE []float32, d PairwiseCotangent, b, f int, tau float32, kept, ws []float32) {
	const kernel = "PairwiseReduceGrad"
	needResults(kernel, b, d.RowLSE, d.ColLSE, d.Diag, d.SumSq)
	if d.RowLSE != nil {
		need(kernel, "rowLSE", len(rowLSE), b)
	}
	if d.ColLSE != nil {
		need(kernel, "colLSE", len(colLSE), b)
	}
	if dp == nil && dq == nil {
		return
	}
	// A gradient of p alone could be made row by row; that and the order of all
	// tiles differ in rounding, so what decides is known before kept is.
	p.pairwise(pairJob{kernel: kernel, grad: true, p: pm, q: q, dp: dp, dq: dq, rowLSE: rowLSE, colLSE: colLSE, cot: d,
		b: b, f: f, tau: tau, kept: kept}, ws)
}

// PairwiseSelf is RowLSE of [Pool.PairwiseReduce] for the distances of the rows of
// x, [b, f], among themselves: the products are computed once for both ways.
func (p *Pool) PairwiseSelf(rowLSE, x []float32, b, f int, tau float32, kept, ws []float32) {
	const kernel = "PairwiseSelf"
	need(kernel, "rowLSE", len(rowLSE), b)
	p.pairwise(pairJob{kernel: kernel, self: true, p: x, q: x, b: b, f: f, tau: tau, out: PairwiseResult{RowLSE: rowLSE}, kept: kept}, ws)
}

// PairwiseSelfGrad computes the gradient of PairwiseSelf with respect to x from
// its result and the cotangent of that: dx_i = 2 Σ_j (g_ij + g_ji)(x_i − x_j).
func (p *Pool) PairwiseSelfGrad(dx, x, rowLSE, dRow []float32, b, f int, tau float32, kept, ws []float32) {
	const kernel = "PairwiseSelfGrad"
	need(kernel, "dx", len(dx), b*f)
	need(kernel, "rowLSE", len(rowLSE), b)
	need(kernel, "dRow", len(dRow), b)
	p.pairwise(pairJob{kernel: kernel, grad: true, self: true, p: x, q: x, dp: dx, rowLSE: rowLSE, cot: PairwiseCotangent{RowLSE: dRow},
		b: b, f: f, tau: tau, kept: kept}, ws)
}

// PairwiseMeanGrad computes the gradient with respect to p of RowLSE and Diag of
// [Pool.PairwiseReduce] from Mean, without another look at the distances:
// dp_i = −(2/τ)·dRow_i·(p_i − mean_i) + 2·dDiag_i·(p_i − q_i). dRow or dDiag may be
// nil for zero; dp may be any of the operands.
func (p *Pool) PairwiseMeanGrad(dp, pm, q, mean, dRow, dDiag []float32, b, f int, tau float32) {
	const kernel = "PairwiseMeanGrad"
	for _, o := range [...]struct {
		name string
		x    []float32
	}{{"dp", dp}, {"p", pm}, {"q", q}, {"mean", mean}} {
		need(kernel, o.name, len(o.x), b*f)
	}
	needResults(kernel, b, dRow, nil, dDiag, nil)
	per := rowsPerChunk(f)
	runJob(p, &p.jobs.pairMean, pairMeanJob{dp: dp, p: pm, q: q, mean: mean, dRow: dRow, dDiag: dDiag, b: b, f: f, scale: -2 / tau, per: per}, ceilDiv(b, per))
}

type pairMeanJob struct {
	dp, p, q, mean, dRow, dDiag []float32
	b, f, per                   int
	scale                       float32
}

func (j *pairMeanJob) do(c, _ int) {
	for r := c * j.per; r < min((c+1)*j.per, j.b); r++ {
		at := r * j.f
		var row, diag float32
		if j.dRow != nil {
			row = j.dRow[r] * j.scale
		}
		if j.dDiag != nil {
			diag = 2 * j.dDiag[r]
		}
		dp, pr, q, mean := j.dp[at:at+j.f], j.p[at:at+j.f], j.q[at:at+j.f], j.mean[at:at+j.f]
		for k, v := range pr {
			dp[k] = float32(row*(v-mean[k])) + float32(diag*(v-q[k]))
		}
	}
}

// PairwiseKeepLimit is the largest number of bytes of products that are kept for
// the gradient, without padding. Below it, reading them back from the cache is faster than
// multiplying again; above it they would come from memory, and be b×b.
const PairwiseKeepLimit = 4 << 20

// PairwiseKept returns how many floats hold the products of b rows for the
// gradient, and 0 where they are more than [PairwiseKeepLimit] allows.
func PairwiseKept(b int, self bool) int {
	j := pairJob{b: b, self: self}
	j.layout()
	tiles := j.blocks * j.blocks
	if self {
		tiles = j.blocks * (j.blocks + 1) / 2
	}
	// Without padding, which instruction sets differ in: with kept products other
	// sums may be made in another order.
	if 4*tiles*j.block*j.block > PairwiseKeepLimit {
		return 0
	}
	return tiles * j.tileSize()
}

// PairwiseWorkspace returns how many floats the pairwise kernels need as
// workspace for b rows of f columns: a few copies of the operands, linear in b.
func PairwiseWorkspace(b, f int) int {
	j := pairJob{b: b, f: f}
	j.layout()
	return j.carve(nil)
}

func needResults(kernel string, b int, row, col, diag, sq []float32) {
	needIfAny(kernel, "RowLSE", row, b)
	needIfAny(kernel, "ColLSE", col, b)
	needIfAny(kernel, "Diag", diag, b)
	needIfAny(kernel, "SumSq", sq, 1)
}

// The exponentials of all logits have one common shift, and so one exponential
// serves the row and the column of a pair, where the logits cannot spread over
// more than pairSpread: then the sums neither overflow nor lose a digit. That holds for rows
// of length 1 (d ≤ 4) down to τ = 1/30. Beyond, rows and columns have their own
// running maxima.
const pairSpread = 120

const log2E = 1.44269504088896341

// pairwise computes the job in the pool's place for it, and clears that.
func (p *Pool) pairwise(job pairJob, ws []float32) {
	j := &p.jobs.pair
	job.pool, job.tasks, job.done = p, j.tasks, j.done
	*j = job
	need(j.kernel, "p", len(j.p), j.b*j.f)
	need(j.kernel, "q", len(j.q), j.b*j.f)
	needIfAny(j.kernel, "dp", j.dp, j.b*j.f)
	needIfAny(j.kernel, "dq", j.dq, j.b*j.f)
	need(j.kernel, "workspace", len(ws), PairwiseWorkspace(j.b, j.f))
	needIfAny(j.kernel, "kept", j.kept, PairwiseKept(j.b, j.self))
	if j.out.SumSq != nil {
		j.out.SumSq[0] = 0
	}
	if j.b > 0 {
		j.layout()
		j.carve(ws)
		j.scale = float32(-log2E / float64(j.tau))
		p.scratch(j.localSize())
		j.phase = pairPack
		p.run(j.blocks, j)
		j.prepare()
		if j.oneSided {
			j.phase = pairRows
			p.run(ceilDiv(j.b, j.group), j)
		} else {
			j.schedule()
			j.phase = pairTiles
			p.run(len(j.tasks), j)
		}
		j.results()
		j.phase = pairFinish
		p.run(ceilDiv(j.b, pairFinishRows), j)
	}
	*j = pairJob{tasks: j.tasks, done: j.done}
}

// prepare decides on the shift and fills what is common to all tiles.
func (j *pairJob) prepare() {
	b := j.b
	reach := math.Sqrt(float64(ks.max(j.pn[:b]))) + math.Sqrt(float64(ks.max(j.qn[:b])))
	spread := reach * reach / float64(j.tau)
	j.bounded = spread <= pairSpread // false for NaN
	if j.bounded {
		j.shift = float32(spread / 2 * log2E)
	}
	// Columns that fill up the last panel have distances and weights of 0.
	clear(j.gamma)
	clear(j.zeros)
	for k := b; k < len(j.gamma); k++ {
		j.gamma[k], j.qn[k] = -pairFar, -math.MaxFloat32
	}
	clear(j.rowSum)
	clear(j.colSum)
	if !j.grad {
		fill(j.rowM, negInf)
		fill(j.colM, negInf)
		return
	}
	j.weights(j.rowA, j.rowM, j.rowLSE, j.cot.RowLSE)
	if j.self {
		return // colA and colM are the same
	}
	j.weights(j.colA, j.colM, j.colLSE, j.cot.ColLSE)
}

// pairFar is a distance whose exponential is 0.
const pairFar = 1e30

// weights turns cotangents of logsumexps into factors a of exp2(−d/τ·log₂e + shift),
// or of exp2(−d/τ·log₂e + m) where rows and columns have shifts of their own.
func (j *pairJob) weights(a, m, lse, cot []float32) {
	clear(a)
	fill(m, -pairFar)
	clear(m[:j.b])
	if cot == nil {
		return
	}
	for i, w := range cot[:j.b] {
		if lse[i] == negInf {
			continue // no other row, no gradient
		}
		a[i], m[i] = w*(-1/j.tau), -lse[i]*log2E
	}
	if !j.bounded {
		return
	}
	e := m[:j.b]
	ks.vs[Sub](e, e, j.shift)
	ks.vs[Mul](e, e, math.Ln2)
	ks.unary[Exp](e, e, 0)
	ks.vv[Mul](a[:j.b], a[:j.b], e)
}

// results turns sums into logsumexps.
func (j *pairJob) results() {
	if j.grad {
		return
	}
	lse := func(dst, sum, m []float32) {
		if dst == nil {
			return
		}
		ks.unary[Log](dst[:j.b], sum[:j.b], 0) // −Inf where there is no other row
		if j.bounded {
			ks.vs[Sub](dst[:j.b], dst[:j.b], j.shift*math.Ln2)
			return
		}
		for i, v := range m[:j.b] {
			dst[i] += float32(v * math.Ln2)
		}
	}
	lse(j.out.RowLSE, j.rowSum, j.rowM)
	lse(j.out.ColLSE, j.colSum, j.colM)
	if j.out.SumSq != nil {
		total := 0.0
		for i := range j.tasks {
			total += j.tasks[i].sq
		}
		j.out.SumSq[0] = float32(total)
	}
}

const pairFinishRows = 64

// finish turns the accumulated products into gradients or means.
func (j *pairJob) finish(c int) {
	f := j.f
	for r := c * pairFinishRows; r < min((c+1)*pairFinishRows, j.b); r++ {
		x := j.p[r*f : (r+1)*f]
		at := (r/j.group*j.groupRows + r%j.group) * j.fp
		if j.dp != nil {
			dp := j.dp[r*f : (r+1)*f]
			copy(dp, j.accP[at:])
			ks.axpby(dp, x, 2*j.rowSum[r], -2)
		}
		if j.dq != nil {
			dq := j.dq[r*f : (r+1)*f]
			copy(dq, j.accQ[at:])
			ks.axpby(dq, j.q[r*f:(r+1)*f], 2*j.colSum[r], -2)
		}
		if j.out.Mean != nil {
			mean := j.out.Mean[r*f : (r+1)*f]
			if j.rowSum[r] == 0 {
				copy(mean, x)
				continue
			}
			ks.vs[Mul](mean, j.accP[at:at+f], 1/j.rowSum[r])
		}
	}
}
