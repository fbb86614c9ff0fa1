package kernels

import "math"

// Sum writes the sum of x to dst[0]: chunks of float32 sums, added in float64
// in chunk order. The sum of nothing is 0.
func (p *Pool) Sum(dst, x []float32) { p.reduceAll(reduceSum, "Sum", dst, x) }

// Max writes the largest element of x to dst[0]; −Inf for none, NaN if any is.
func (p *Pool) Max(dst, x []float32) { p.reduceAll(reduceMax, "Max", dst, x) }

// Min writes the smallest element of x to dst[0]; +Inf for none, NaN if any is.
func (p *Pool) Min(dst, x []float32) { p.reduceAll(reduceMin, "Min", dst, x) }

// RowSum computes dst[i] = Σ_j x[i,j].
func (p *Pool) RowSum(dst, x []float32, rows, cols int) {
	p.reduceRows(reduceSum, "RowSum", dst, x, rows, cols)
}

// RowMax computes dst[i] = max_j x[i,j]; −Inf where cols is 0.
func (p *Pool) RowMax(dst, x []float32, rows, cols int) {
	p.reduceRows(reduceMax, "RowMax", dst, x, rows, cols)
}

// RowMin computes dst[i] = min_j x[i,j]; +Inf where cols is 0.
func (p *Pool) RowMin(dst, x []float32, rows, cols int) {
	p.reduceRows(reduceMin, "RowMin", dst, x, rows, cols)
}

// RowLogSumExp computes dst[i] = ln Σ_j exp(x[i,j]); −Inf where cols is 0.
func (p *Pool) RowLogSumExp(dst, x []float32, rows, cols int) {
	p.reduceRows(reduceLSE, "RowLogSumExp", dst, x, rows, cols)
}

// ColSum computes dst[j] = Σ_i x[i,j].
func (p *Pool) ColSum(dst, x []float32, rows, cols int) {
	p.reduceCols(reduceSum, "ColSum", dst, x, rows, cols)
}

// ColMax computes dst[j] = max_i x[i,j]; −Inf where rows is 0.
func (p *Pool) ColMax(dst, x []float32, rows, cols int) {
	p.reduceCols(reduceMax, "ColMax", dst, x, rows, cols)
}

// ColMin computes dst[j] = min_i x[i,j]; +Inf where rows is 0.
func (p *Pool) ColMin(dst, x []float32, rows, cols int) {
	p.reduceCols(reduceMin, "ColMin", dst, x, rows, cols)
}

// ColLogSumExp computes dst[j] = ln Σ_i exp(x[i,j]); −Inf where rows is 0.
func (p *Pool) ColLogSumExp(dst, x []float32, rows, cols int) {
	p.reduceCols(reduceLSE, "ColLogSumExp", dst, x, rows, cols)
}

type reduceKind int

const (
	reduceSum reduceKind = iota
	reduceMax
	reduceMin
	reduceLSE
)

type reduceAxis int

const (
	allAxes reduceAxis = iota
	rowAxis
	colAxis
)

// reduceJob reduces x to a number for each chunk, row or column.
type reduceJob struct {
	kind            reduceKind
	axis            reduceAxis
	dst, x, part    []float32
	room            []float32 // of the pool
	rows, cols, per int
}

func (p *Pool) reduceAll(kind reduceKind, name string, dst, x []float32) {
	need(name, "dst", len(dst), 1)
	chunks := ceilDiv(len(x), elemChunk)
	j := &p.jobs.reduce
	*j = reduceJob{kind: kind, axis: allAxes, x: x, part: grow(&p.part, chunks)}
	p.run(chunks, j)
	switch kind {
	case reduceSum:
		sum := 0.0
		for _, v := range j.part {
			sum += float64(v)
		}
		dst[0] = float32(sum)
	case reduceMax:
		dst[0] = maxGo(j.part)
	case reduceMin:
		dst[0] = minGo(j.part)
	}
	*j = reduceJob{}
}

func (p *Pool) reduceRows(kind reduceKind, name string, dst, x []float32, rows, cols int) {
	need(name, "dst", len(dst), rows)
	need(name, "x", len(x), rows*cols)
	j := &p.jobs.reduce
	*j = reduceJob{kind: kind, axis: rowAxis, dst: dst, x: x, room: p.room, rows: rows, cols: cols, per: rowsPerChunk(cols)}
	p.run(ceilDiv(rows, j.per), j)
	*j = reduceJob{}
}

// reduceCols reduces fixed blocks of rows to a partial row each, then combines
// the partial rows in order.
func (p *Pool) reduceCols(kind reduceKind, name string, dst, x []float32, rows, cols int) {
	need(name, "dst", len(dst), cols)
	need(name, "x", len(x), rows*cols)
	if cols == 0 {
		return
	}
	per := colBlock(rows, cols)
	blocks := ceilDiv(rows, per)
	width := cols
	if kind == reduceLSE {
		width *= 2 // maxima, then sums
	}
	j := &p.jobs.reduce
	*j = reduceJob{kind: kind, axis: colAxis, x: x, part: grow(&p.part, blocks*width), rows: rows, cols: cols, per: per}
	p.run(blocks, j)
	dst = dst[:cols]
	if kind == reduceLSE {
		combineLSE(dst, j.part, blocks)
	} else {
		fill(dst, kind.identity())
		for b := range blocks {
			kind.combine(dst, j.part[b*cols:(b+1)*cols])
		}
	}
	*j = reduceJob{}
}

// colBlock returns how many rows reduceCols folds into one partial row.
func colBlock(rows, cols int) int { return max(64, rowsPerChunk(cols), ceilDiv(rows, 64)) }

func (k reduceKind) identity() float32 {
	switch k {
	case reduceSum:
		return 0
	case reduceMin:
		return posInf
	}
	return negInf
}

// combine folds a row into an accumulator, element by element.
func (k reduceKind) combine(acc, x []float32) {
	switch k {
	case reduceSum:
		ks.vv[Add](acc, acc, x)
	case reduceMin:
		ks.vv[Min](acc, acc, x)
	default:
		ks.vv[Max](acc, acc, x)
	}
}

func (j *reduceJob) do(c, worker int) {
	switch j.axis {
	case allAxes:
		lo := c * elemChunk
		j.part[c] = j.vector(j.x[lo:min(lo+elemChunk, len(j.x))])
	case rowAxis:
		r0, r1 := c*j.per, min((c+1)*j.per, j.rows)
		if j.kind == reduceLSE {
			for r := r0; r < r1; r += roomPart {
				logSumExps(j.dst[r:min(r+roomPart, r1)], j.x[r*j.cols:], j.cols, j.room[worker*roomStep:])
			}
			return
		}
		for r := r0; r < r1; r++ {
			j.dst[r] = j.vector(j.x[r*j.cols : (r+1)*j.cols])
		}
	case colAxis:
		j.columns(c)
	}
}

func (j *reduceJob) vector(x []float32) float32 {
	switch j.kind {
	case reduceSum:
		return ks.sum(x)
	case reduceMax:
		return ks.max(x)
	}
	return ks.min(x)
}

func (j *reduceJob) columns(c int) {
	n := j.cols
	r0, r1 := c*j.per, min((c+1)*j.per, j.rows)
	if j.kind != reduceLSE {
		acc := j.part[c*n : (c+1)*n]
		fill(acc, j.kind.identity())
		for r := r0; r < r1; r++ {
			j.kind.combine(acc, j.x[r*n:(r+1)*n])
		}
		return
	}
	m, s := j.part[2*c*n:(2*c+1)*n], j.part[(2*c+1)*n:(2*c+2)*n]
	fill(m, negInf)
	for r := r0; r < r1; r++ {
		reduceMax.combine(m, j.x[r*n:(r+1)*n])
	}
	finiteShift(m)
	clear(s)
	for r := r0; r < r1; r++ {
		ks.accExp(s, j.x[r*n:(r+1)*n], m)
	}
}

// finiteShift replaces infinite maxima by 0, so that a shift never makes
// Inf − Inf: exp(−Inf − 0) is 0 and exp(+Inf − 0) is +Inf, as it should be.
func finiteShift(m []float32) {
	for i, v := range m {
		if v == negInf || v == posInf {
			m[i] = 0
		}
	}
}

// combineLSE merges blocks of [shift, sum] rows, which it overwrites: dst =
// ln Σ_b s_b·exp(m_b).
func combineLSE(dst, part []float32, blocks int) {
	n := len(dst)
	row := func(i int) []float32 { return part[i*n : (i+1)*n] }
	fill(dst, negInf)
	if blocks == 0 {
		return
	}
	for b := range blocks {
		m := row(2 * b)
		for c, s := range row(2*b + 1) {
			switch s {
			case 0:
				m[c] = negInf // nothing is there to shift
			case posInf:
				m[c] = posInf // whatever is beside it
			}
		}
		reduceMax.combine(dst, m)
	}
	finiteShift(dst)
	sum := part[:n]
	for b := range blocks {
		m := row(2 * b)
		ks.vv[Sub](m, m, dst)
		ks.unary[Exp](m, m, 0)
		ks.vv[Mul](m, m, row(2*b+1))
		if b > 0 {
			ks.vv[Add](sum, sum, m)
		}
	}
	ks.unary[Log](sum, sum, 0)
	ks.vv[Add](dst, dst, sum)
}

// logSumExps computes dst[r] = ln Σ_j exp(x[r,j]) for at most roomPart rows, −Inf
// for no columns. The logarithms are taken together, in vectors. top is room for as
// many numbers.
func logSumExps(dst, x []float32, cols int, top []float32) {
	top = top[:len(dst)]
	for r := range dst {
		row := x[r*cols : (r+1)*cols]
		m := ks.max(row)
		top[r], dst[r] = m, 1
		if !math.IsInf(float64(m), 0) {
			dst[r] = ks.sumExp(row, m)
		}
	}
	ks.unary[Log](dst, dst, 0)
	for r, m := range top {
		dst[r] += m
	}
}

func fill(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
