package kernels

import (
	"fmt"
	"math"
)

// CompareOp is a comparison of two operands.
type CompareOp int

// The comparisons. Each is false where an operand is NaN.
const (
	CompareGreater      CompareOp = iota // a > b
	CompareGreaterEqual                  // a ≥ b
	CompareLess                          // a < b
)

// Compare computes dst[i,j] = 1 where a[i,j] op b[i,j] holds, else 0, for a
// [rows, cols] result whose operands are broadcast by their modes as in
// [Pool.Binary]. dst may be an operand of mode Full.
func (p *Pool) Compare(op CompareOp, dst, a, b []float32, rows, cols int, modeA, modeB BroadcastMode) {
	if op < CompareGreater || op > CompareLess {
		panic(fmt.Sprintf("kernels: Compare: unknown comparison %d", int(op)))
	}
	p.runPair("Compare", extraJob{kind: extraCompare, op: int(op), dst: dst, a: a, b: b, modeA: modeA, modeB: modeB}, rows, cols)
}

// LogAddExp computes dst[i,j] = ln(exp a[i,j] + exp b[i,j]) without overflow, its
// operands broadcast as in [Pool.Binary]. dst may be an operand of mode Full.
func (p *Pool) LogAddExp(dst, a, b []float32, rows, cols int, modeA, modeB BroadcastMode) {
	p.runPair("LogAddExp", extraJob{kind: extraLogAddExp, dst: dst, a: a, b: b, modeA: modeA, modeB: modeB}, rows, cols)
}

// LeakyReluGrad computes dst = dy where x > 0, else slope·dy; x is the input of
// the LeakyRelu function. dst may be x or dy.
func (p *Pool) LeakyReluGrad(dst, x, dy []float32, slope float32) {
	p.runPair("LeakyReluGrad", extraJob{kind: extraLeakyGrad, dst: dst, a: x, b: dy, scale: slope}, 1, len(x))
}

// BroadcastTo writes x to every place of the [rows, cols] result that its mode
// repeats it over.
func (p *Pool) BroadcastTo(dst, x []float32, rows, cols int, mode BroadcastMode) {
	p.runPair("BroadcastTo", extraJob{kind: extraBroadcast, dst: dst, a: x, b: x, modeA: mode, modeB: mode}, rows, cols)
}

// PairDot computes dst[k] = ⟨x[left[k],:], x[right[k],:]⟩ for x [rows, f]. It panics
// on an index outside the rows.
func (p *Pool) PairDot(dst, x []float32, left, right []int64, rows, f int) {
	need("PairDot", "dst", len(dst), len(left))
	need("PairDot", "right", len(right), len(left))
	need("PairDot", "x", len(x), rows*f)
	checkRows("PairDot", left, rows)
	checkRows("PairDot", right[:len(left)], rows)
	p.runExtra(extraJob{kind: extraPairDot, dst: dst, a: x, left: left, right: right, cols: f, n: len(left), per: rowsPerChunk(2 * f)})
}

// Transpose writes the transpose of x [rows, cols] to dst [cols, rows]. dst must
// not overlap x.
func (p *Pool) Transpose(dst, x []float32, rows, cols int) {
	need("Transpose", "dst", len(dst), rows*cols)
	need("Transpose", "x", len(x), rows*cols)
	p.runExtra(extraJob{kind: extraTranspose, dst: dst, a: x, rows: rows, cols: cols, n: cols, per: rowsPerChunk(rows)})
}

// CopyColumns copies the width columns of x [rows, xCols] from xFrom on to the
// columns of dst [rows, dstCols] from dstFrom on, and leaves the others.
func (p *Pool) CopyColumns(dst []float32, dstCols, dstFrom int, x []float32, xCols, xFrom, rows, width int) {
	if dstFrom < 0 || xFrom < 0 || dstFrom+width > dstCols || xFrom+width > xCols {
		panic(fmt.Sprintf("kernels: CopyColumns: %d columns from %d to %d do not fit %d and %d columns", width, xFrom, dstFrom, xCols, dstCols))
	}
	need("CopyColumns", "dst", len(dst), rows*dstCols)
	need("CopyColumns", "x", len(x), rows*xCols)
	p.runExtra(extraJob{kind: extraColumns, dst: dst, a: x, dstCols: dstCols, xCols: xCols, rows: dstFrom, cols: xFrom, width: width, n: rows, per: rowsPerChunk(width)})
}

// SparseToDense writes the matrix with the entries vals (nil for ones) to dst
// [s.Rows, s.Cols]; entries at the same place are added.
func (p *Pool) SparseToDense(dst, vals []float32, s *CSR) {
	s.check("SparseToDense")
	need("SparseToDense", "dst", len(dst), s.Rows*s.Cols)
	p.runSparseExtra("SparseToDense", extraJob{kind: extraToDense, dst: dst, a: vals, cols: s.Cols}, s)
}

// SparseScale computes dst_e = vals_e·b[row(e)·rowStride + col(e)·colStride] for
// every entry, or the quotient where divide is set: a row vector has the strides
// (0, 1), a column vector (1, 0), a number (0, 0). dst may be vals.
func (p *Pool) SparseScale(dst, vals []float32, s *CSR, b []float32, rowStride, colStride int, divide bool) {
	s.check("SparseScale")
	need("SparseScale", "dst", len(dst), len(s.Col))
	if len(s.Col) > 0 {
		need("SparseScale", "b", len(b), (s.Rows-1)*rowStride+(s.Cols-1)*colStride+1)
	}
	job := extraJob{kind: extraSparseScale, dst: dst, a: vals, b: b, rows: rowStride, cols: colStride}
	if divide {
		job.op = 1
	}
	p.runSparseExtra("SparseScale", job, s)
}

// SparseL1Normalize is [Pool.L1NormalizeRows] of the matrix with the entries vals
// (nil for ones), none of which share a place: dst_e = vals_e/max(Σ|row(e)|, eps).
// dst may be vals.
func (p *Pool) SparseL1Normalize(dst, vals []float32, s *CSR, eps float32) {
	s.check("SparseL1Normalize")
	need("SparseL1Normalize", "dst", len(dst), len(s.Col))
	p.runSparseExtra("SparseL1Normalize", extraJob{kind: extraSparseNorm, op: 1, dst: dst, a: vals, scale: eps}, s)
}

// SparseL2Normalize is [Pool.L2NormalizeRows] of the matrix with the entries vals
// (nil for ones), none of which share a place. dst may be vals.
func (p *Pool) SparseL2Normalize(dst, vals []float32, s *CSR, eps float32) {
	s.check("SparseL2Normalize")
	need("SparseL2Normalize", "dst", len(dst), len(s.Col))
	p.runSparseExtra("SparseL2Normalize", extraJob{kind: extraSparseNorm, op: 2, dst: dst, a: vals, scale: eps}, s)
}

type extraKind int

const (
	extraCompare extraKind = iota
	extraLogAddExp
	extraLeakyGrad
	extraBroadcast
	extraPairDot
	extraTranspose
	extraColumns
	extraSolve
	extraToDense
	extraSparseScale
	extraSparseNorm
)

// extraJob is one kernel of this file: n rows in chunks of per, or the rows of a
// sparse structure.
type extraJob struct {
	kind         extraKind
	op           int
	dst, a, b    []float32
	room         []float32 // of the pool
	left, right  []int64
	s            *CSR
	rows, cols   int
	n, per       int
	dstCols      int // of extraColumns, whose first columns are rows and cols
	xCols, width int
	scale        float32
	modeA, modeB BroadcastMode
}

// runPair runs a kernel over a [rows, cols] result of two operands.
func (p *Pool) runPair(name string, job extraJob, rows, cols int) {
	n := rows * cols
	need(name, "dst", len(job.dst), n)
	need(name, "a", len(job.a), job.modeA.size(rows, cols))
	need(name, "b", len(job.b), job.modeB.size(rows, cols))
	if n == 0 {
		return
	}
	job.modeA, job.modeB = flatten(job.modeA, rows, cols), flatten(job.modeB, rows, cols)
	if plain(job.modeA) && plain(job.modeB) {
		// Both run along the result: one row, cut anywhere.
		job.n, job.cols, job.per = n, 1, elemChunk
		job.modeA, job.modeB = upright(job.modeA), upright(job.modeB)
	} else {
		job.n, job.cols, job.per = rows, cols, rowsPerChunk(cols)
	}
	p.runExtra(job)
}

func plain(m BroadcastMode) bool { return m == Full || m == Scalar }

// upright is the mode of a plain operand in a result of one column.
func upright(m BroadcastMode) BroadcastMode {
	if m == Full {
		return ColVector
	}
	return m
}

func (p *Pool) runExtra(job extraJob) {
	j := &p.jobs.extra
	*j = job
	j.room = p.room
	p.run(ceilDiv(j.n, j.per), j)
	*j = extraJob{}
}

func (p *Pool) runSparseExtra(name string, job extraJob, s *CSR) {
	if job.a != nil {
		need(name, "vals", len(job.a), len(s.Col))
	}
	f := 16
	if job.kind == extraToDense {
		f = max(1, job.cols/8) // clearing a row is cheap, but not free
	}
	j := &p.jobs.extra
	*j = job
	j.s = s
	var chunks int
	j.per, chunks = s.chunks(f)
	p.run(chunks, j)
	*j = extraJob{}
}

func (j *extraJob) do(c, worker int) {
	if j.s != nil {
		for r := j.s.rowAt(c, j.per); r < j.s.rowAt(c+1, j.per); r++ {
			j.sparseRow(r)
		}
		return
	}
	lo, hi := c*j.per, min((c+1)*j.per, j.n)
	switch j.kind {
	case extraPairDot:
		f := j.cols
		for k := lo; k < hi; k++ {
			l, r := int(j.left[k])*f, int(j.right[k])*f
			j.dst[k] = ks.dot(j.a[l:l+f], j.a[r:r+f])
		}
	case extraTranspose:
		for i := lo; i < hi; i++ {
			d := j.dst[i*j.rows : (i+1)*j.rows]
			for k := range d {
				d[k] = j.a[k*j.cols+i]
			}
		}
	case extraColumns:
		for r := lo; r < hi; r++ {
			copy(j.dst[r*j.dstCols+j.rows:][:j.width], j.a[r*j.xCols+j.cols:])
		}
	case extraSolve:
		j.solveUpper(lo, hi)
	default:
		if j.modeA == Full || j.modeA == RowVector || j.modeB == Full || j.modeB == RowVector {
			j.pairRows(lo, hi, j.room[worker*roomStep:])
			return
		}
		j.pairColumn(lo, hi, j.room[worker*roomStep:])
	}
}

// strides returns the steps of an operand from row to row and within a row.
func (j *extraJob) strides(m BroadcastMode) (row, col int) {
	switch m {
	case Full:
		return j.cols, 1
	case RowVector:
		return 0, 1
	case ColVector:
		return 1, 0
	}
	return 0, 0
}

// pairRows handles rows lo ≤ r < hi where an operand varies within a row.
func (j *extraJob) pairRows(lo, hi int, room []float32) {
	ra, ca := j.strides(j.modeA)
	rb, cb := j.strides(j.modeB)
	for r := lo; r < hi; r++ {
		j.line(j.dst[r*j.cols:(r+1)*j.cols], j.a[r*ra:], j.b[r*rb:], ca, cb, room)
	}
}

// pairColumn handles elements lo ≤ i < hi of every column where no operand
// varies within a row.
func (j *extraJob) pairColumn(lo, hi int, room []float32) {
	ra, _ := j.strides(j.modeA)
	rb, _ := j.strides(j.modeB)
	if j.cols == 1 {
		j.line(j.dst[lo:hi], j.a[lo*ra:], j.b[lo*rb:], ra, rb, room)
		return
	}
	for r := lo; r < hi; r++ {
		j.line(j.dst[r*j.cols:(r+1)*j.cols], j.a[r*ra:], j.b[r*rb:], 0, 0, room)
	}
}

// line computes dst[i] from a[i·sa] and b[i·sb].
func (j *extraJob) line(dst, a, b []float32, sa, sb int, room []float32) {
	switch j.kind {
	case extraBroadcast:
		if sa == 1 {
			copy(dst, a)
			return
		}
		fill(dst, a[0])
	case extraLeakyGrad:
		leakyGrad(dst, a, b, sa, sb, j.scale)
	case extraLogAddExp:
		for i := 0; i < len(dst); i += roomPart {
			logAddExps(dst[i:min(i+roomPart, len(dst))], a[i*sa:], b[i*sb:], sa, sb, room)
		}
	case extraCompare:
		compareTo(CompareOp(j.op), dst, a, b, sa, sb)
	}
}

// leakyGrad is the gradient of leaky_relu for elements at the strides sx and sy.
func leakyGrad(dst, x, dy []float32, sx, sy int, slope float32) {
	if sx == 1 && sy == 1 {
		ks.leakyGrad(dst, x[:len(dst)], dy[:len(dst)], slope)
		return
	}
	leakyGradAt(dst, x, dy, sx, sy, slope)
}

func leakyGradGo(dst, x, dy []float32, slope float32) { leakyGradAt(dst, x, dy, 1, 1, slope) }

func leakyGradAt(dst, x, dy []float32, sx, sy int, slope float32) {
	for i := range dst {
		v := dy[i*sy]
		if !(x[i*sx] > 0) {
			v *= slope
		}
		dst[i] = v
	}
}

// compareTo compares elements at the strides sa and sb. The bits of 1 are made
// of the outcome, which compiles to no jump: outcomes are often random.
func compareTo(op CompareOp, dst, a, b []float32, sa, sb int) {
	const one = 0x3f800000
	switch op {
	case CompareGreater:
		for i := range dst {
			var hold uint32
			if a[i*sa] > b[i*sb] {
				hold = 1
			}
			dst[i] = math.Float32frombits(hold * one)
		}
	case CompareGreaterEqual:
		for i := range dst {
			var hold uint32
			if a[i*sa] >= b[i*sb] {
				hold = 1
			}
			dst[i] = math.Float32frombits(hold * one)
		}
	case CompareLess:
		for i := range dst {
			var hold uint32
			if a[i*sa] < b[i*sb] {
				hold = 1
			}
			dst[i] = math.Float32frombits(hold * one)
		}
	}
}

// logAddExps computes dst[i] = hi + ln(1 + exp(lo − hi)) of a[i·sa] and b[i·sb], for
// at most roomPart elements. With u = 1 + e, rounded, ln(1+e) is ln u + (e − (u−1))/u.
func logAddExps(dst, a, b []float32, sa, sb int, room []float32) {
	n := len(dst)
	hi, e, u, over := room[:n], room[roomPart:][:n], room[2*roomPart:][:n], room[3*roomPart:][:n]
	for i := range hi {
		x, y := a[i*sa], b[i*sb]
		hi[i] = max(x, y)
		e[i] = min(x, y) - hi[i]
		if hi[i] == negInf || hi[i] == posInf {
			e[i] = negInf // the difference would be NaN
		}
	}
	ks.unary[Exp](e, e, 0)
	ks.vs[Add](u, e, 1)
	ks.vs[Sub](over, u, 1)
	ks.vv[Sub](e, e, over)
	ks.vv[Div](e, e, u)
	ks.unary[Log](u, u, 0)
	ks.vv[Add](e, e, u)
	ks.vv[Add](dst, hi, e)
}

func (j *extraJob) sparseRow(r int) {
	s := j.s
	lo, hi := s.RowPtr[r], s.RowPtr[r+1]
	value := func(e int32) float32 {
		if j.a == nil {
			return 1
		}
		return j.a[s.value(e)]
	}
	switch j.kind {
	case extraToDense:
		row := j.dst[r*j.cols : (r+1)*j.cols]
		clear(row)
		for e := lo; e < hi; e++ {
			row[s.Col[e]] += value(e)
		}
	case extraSparseScale:
		for e := lo; e < hi; e++ {
			b := j.b[r*j.rows+int(s.Col[e])*j.cols]
			if j.op == 1 {
				j.dst[s.value(e)] = value(e) / b
			} else {
				j.dst[s.value(e)] = value(e) * b
			}
		}
	case extraSparseNorm:
		norm := func(scale float32) (n float32) {
			for e := lo; e < hi; e++ {
				if v := float32(value(e) * scale); j.op == 1 {
					n += abs32(v)
				} else {
					n += float32(v * v)
				}
			}
			if j.op == 2 {
				n = sqrt32(n)
			}
			return n
		}
		n := norm(1)
		if scale := j.sparseScale(n, lo, hi); scale != 1 {
			n = 1 / norm(scale)
			for e := lo; e < hi; e++ {
				j.dst[s.value(e)] = value(e) * scale * n
			}
			return
		}
		n = 1 / max(n, j.scale)
		for e := lo; e < hi; e++ {
			j.dst[s.value(e)] = value(e) * n
		}
	}
}
