package kernels

import "math"

// ReduceKind says what a reduction makes of many numbers.
type ReduceKind int

// The reductions.
const (
	ReduceSum ReduceKind = iota // float32 sums of chunks, added in float64 in their order; 0 of nothing
	ReduceMax                   // −Inf of nothing, NaN if any number is
	ReduceMin                   // +Inf of nothing, NaN if any number is
	ReduceLSE                   // ln Σ exp(x); −Inf of nothing
)

type reduceAxis int

const (
	allAxes reduceAxis = iota
	rowAxis
	colAxis
)

// reduceJob reduces x to a number for each chunk, row or column.
type reduceJob struct {
	kind            ReduceKind
	axis            reduceAxis
	dst, x, part    []float32
	room            []float32 // of the pool
	rows, cols, per int
}

// Reduce writes the reduction of all of x to dst[0].
func (p *Pool) Reduce(kind ReduceKind, dst, x []float32) {
	need("Reduce", "dst", len(dst), 1)
	if kind == ReduceLSE {
		p.ReduceRows(kind, dst, x, 1, len(x))
		return
	}
	chunks := ceilDiv(len(x), elemChunk)
	part := grow(&p.part, chunks)
	runJob(p, &p.jobs.reduce, reduceJob{kind: kind, axis: allAxes, x: x, part: part}, chunks)
	switch kind {
	case ReduceSum:
		sum := 0.0
		for _, v := range part {
			sum += float64(v)
		}
		dst[0] = float32(sum)
	case ReduceMax:
		dst[0] = maxGo(part)
	case ReduceMin:
		dst[0] = minGo(part)
	}
}

// ReduceRows writes the reduction of each row of x [rows,cols] to dst [rows].
func (p *Pool) ReduceRows(kind ReduceKind, dst, x []float32, rows, cols int) {
	need("ReduceRows", "dst", len(dst), rows)
	need("ReduceRows", "x", len(x), rows*cols)
	per := rowsPerChunk(cols)
	runJob(p, &p.jobs.reduce, reduceJob{kind: kind, axis: rowAxis, dst: dst, x: x, room: p.room, rows: rows, cols: cols, per: per}, ceilDiv(rows, per))
}

// ReduceCols writes the reduction of each column of x [rows,cols] to dst [cols]. Fixed
// blocks of rows become a partial row each, and these are combined in order.
func (p *Pool) ReduceCols(kind ReduceKind, dst, x []float32, rows, cols int) {
	need("ReduceCols", "dst", len(dst), cols)
	need("ReduceCols", "x", len(x), rows*cols)
	if cols == 0 {
		return
	}
	per := colBlock(rows, cols)
	blocks := ceilDiv(rows, per)
	width := cols
	if kind == ReduceLSE {
		width *= 2 // maxima, then sums
	}
	part := grow(&p.part, blocks*width)
	runJob(p, &p.jobs.reduce, reduceJob{kind: kind, axis: colAxis, x: x, part: part, rows: rows, cols: cols, per: per}, blocks)
	dst = dst[:cols]
	if kind == ReduceLSE {
		combineLSE(dst, part, blocks)
		return
	}
	fill(dst, reductions[kind].identity)
	for b := range blocks {
		kind.combine(dst, part[b*cols:(b+1)*cols])
	}
}

// colBlock returns how many rows ReduceCols folds into one partial row.
func colBlock(rows, cols int) int { return max(64, rowsPerChunk(cols), ceilDiv(rows, 64)) }

// reductions have what each begins with, and what folds in one number more.
var reductions = [...]struct {
	identity float32
	op       BinaryOp
}{ReduceSum: {0, Add}, ReduceMax: {negInf, Max}, ReduceMin: {posInf, Min}}

// combine folds a row into an accumulator, element by element.
func (k ReduceKind) combine(acc, x []float32) { ks.vv[reductions[k].op](acc, acc, x) }

func (j *reduceJob) do(c, worker int) {
	switch j.axis {
	case allAxes:
		lo := c * elemChunk
		j.part[c] = j.vector(j.x[lo:min(lo+elemChunk, len(j.x))])
	case rowAxis:
		r0, r1 := c*j.per, min((c+1)*j.per, j.rows)
		if j.kind == ReduceLSE {
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
	case ReduceSum:
		return ks.sum(x)
	case ReduceMax:
		return ks.max(x)
	}
	return ks.min(x)
}

func (j *reduceJob) columns(c int) {
	n := j.cols
	r0, r1 := c*j.per, min((c+1)*j.per, j.rows)
	if j.kind != ReduceLSE {
		acc := j.part[c*n : (c+1)*n]
		fill(acc, reductions[j.kind].identity)
		for r := r0; r < r1; r++ {
			j.kind.combine(acc, j.x[r*n:(r+1)*n])
		}
		return
	}
	m, s := j.part[2*c*n:(2*c+1)*n], j.part[(2*c+1)*n:(2*c+2)*n]
	fill(m, negInf)
	for r := r0; r < r1; r++ {
		ReduceMax.combine(m, j.x[r*n:(r+1)*n])
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
		ReduceMax.combine(dst, m)
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
