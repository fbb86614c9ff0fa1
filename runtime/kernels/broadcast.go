package kernels

// BroadcastTo writes x to every place of the [rows, cols] result that its mode
// repeats it over.
func (p *Pool) BroadcastTo(dst, x []float32, rows, cols int, mode BroadcastMode) {
	p.runElem("BroadcastTo", &elemJob{kind: elemCopy, dst: dst, a: x, b: x, modeA: mode, modeB: mode}, rows, cols)
}

type elemKind int

const (
	elemCopy elemKind = iota // of a
	elemFill                 // with s
	elemUnary
	elemScale   // s·a
	elemInverse // 1/a
	elemAxpby   // s·a + t·dst
	elemBinary
	elemCompare
	elemLogAddExp
	elemReluGrad
	elemEluGrad
	elemLeakyGrad
)

// elemJob computes each element of a result from those of two operands that are
// broadcast: n rows of cols elements, of which the last may be short, in chunks of per. Where
// one operand is read b is a.
type elemJob struct {
	kind         elemKind
	op           int // the UnaryOp, BinaryOp or CompareOp
	dst, a, b    []float32
	s, t         float32
	room         []float32 // of the pool
	cols, n, per int
	modeA, modeB BroadcastMode
}

// runElem runs a kernel over a [rows, cols] result.
func (p *Pool) runElem(name string, job *elemJob, rows, cols int) {
	n := rows * cols
	need(name, "dst", len(job.dst), n)
	need(name, "a", len(job.a), job.modeA.size(rows, cols))
	need(name, "b", len(job.b), job.modeB.size(rows, cols))
	if n == 0 {
		return
	}
	job.modeA, job.modeB = flatten(job.modeA, rows, cols), flatten(job.modeB, rows, cols)
	job.dst = job.dst[:n]
	if plain(job.modeA) && plain(job.modeB) { // both run along the result: it is cut anywhere
		job.n, job.cols, job.per = ceilDiv(n, elemChunk), elemChunk, 1
	} else {
		job.n, job.cols, job.per = rows, cols, rowsPerChunk(cols)
	}
	job.room = p.room
	runJob(p, &p.jobs.elem, *job, ceilDiv(job.n, job.per))
}

func plain(m BroadcastMode) bool { return m == Full || m == Scalar }

func (j *elemJob) do(c, worker int) {
	ra, sa := j.strides(j.modeA)
	rb, sb := j.strides(j.modeB)
	if j.kind == elemBinary {
		j.binaryRows(c*j.per, min((c+1)*j.per, j.n), ra, rb, sa, sb)
		return
	}
	for r := c * j.per; r < min((c+1)*j.per, j.n); r++ {
		// Element i is computed from those at i·sa of a and i·sb of b.
		dst, a, b := j.dst[r*j.cols:min((r+1)*j.cols, len(j.dst))], j.a[r*ra:], j.b[r*rb:]
		n := len(dst)
		switch j.kind {
		case elemCopy:
			if sa == 1 {
				copy(dst, a)
			} else {
				fill(dst, a[0])
			}
		case elemFill:
			fill(dst, j.s)
		case elemUnary:
			ks.unary[j.op](dst, a[:n], j.s)
		case elemScale:
			ks.vs[Mul](dst, a[:n], j.s)
		case elemInverse:
			ks.sv[Div](dst, 1, a[:n])
		case elemAxpby:
			ks.axpby(dst, a[:n], j.s, j.t)
		case elemCompare:
			compareTo(CompareOp(j.op), dst, a, b, sa, sb)
		case elemLogAddExp:
			for i := 0; i < n; i += roomPart {
				logAddExps(dst[i:min(i+roomPart, n)], a[i*sa:], b[i*sb:], sa, sb, j.room[worker*roomStep:])
			}
		case elemReluGrad:
			ks.reluGrad(dst, a[:n], b[:n])
		case elemEluGrad:
			ks.eluGrad(dst, a[:n], b[:n])
		case elemLeakyGrad:
			ks.leakyGrad(dst, a[:n], b[:n], j.s)
		}
	}
}

// strides returns the steps of an operand from row to row and within a row.
func (j *elemJob) strides(m BroadcastMode) (row, col int) {
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

// binaryRows is do of a binary function.
func (j *elemJob) binaryRows(lo, hi, ra, rb, sa, sb int) {
	vv, vs, sv := ks.vv[j.op], ks.vs[j.op], ks.sv[j.op]
	for r := lo; r < hi; r++ {
		dst, a, b := j.dst[r*j.cols:min((r+1)*j.cols, len(j.dst))], j.a[r*ra:], j.b[r*rb:]
		switch {
		case sa == 1 && sb == 1:
			vv(dst, a[:len(dst)], b[:len(dst)])
		case sa == 1:
			vs(dst, a[:len(dst)], b[0])
		case sb == 1:
			sv(dst, a[0], b[:len(dst)])
		default:
			x, y := a[0], b[0] // dst may be either
			fill(dst, x)
			vs(dst, dst, y)
		}
	}
}
