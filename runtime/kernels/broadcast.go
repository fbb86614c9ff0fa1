package kernels

// BroadcastTo writes x to every place of the [rows, cols] result that its mode
// repeats it over.
func (p *Pool) BroadcastTo(dst, x []float32, rows, cols int, mode BroadcastMode) {
	p.runPair("BroadcastTo", broadcastJob{kind: broadcastOnly, dst: dst, a: x, b: x, modeA: mode, modeB: mode}, rows, cols)
}

type broadcastKind int

const (
	broadcastOnly broadcastKind = iota
	broadcastCompare
	broadcastLogAddExp
	broadcastLeakyGrad
)

// broadcastJob computes each element of a result from those of two operands that are
// broadcast: n rows, or elements, in chunks of per.
type broadcastJob struct {
	kind         broadcastKind
	op           CompareOp
	dst, a, b    []float32
	room         []float32 // of the pool
	cols, n, per int
	scale        float32
	modeA, modeB BroadcastMode
}

// runPair runs a kernel over a [rows, cols] result of two operands.
func (p *Pool) runPair(name string, job broadcastJob, rows, cols int) {
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
	p.runBroadcast(job)
}

func plain(m BroadcastMode) bool { return m == Full || m == Scalar }

// upright is the mode of a plain operand in a result of one column.
func upright(m BroadcastMode) BroadcastMode {
	if m == Full {
		return ColVector
	}
	return m
}

func (p *Pool) runBroadcast(job broadcastJob) {
	j := &p.jobs.broadcast
	*j = job
	j.room = p.room
	p.run(ceilDiv(j.n, j.per), j)
	*j = broadcastJob{}
}

func (j *broadcastJob) do(c, worker int) {
	lo, hi := c*j.per, min((c+1)*j.per, j.n)
	if j.modeA == Full || j.modeA == RowVector || j.modeB == Full || j.modeB == RowVector {
		j.pairRows(lo, hi, j.room[worker*roomStep:])
		return
	}
	j.pairColumn(lo, hi, j.room[worker*roomStep:])
}

// strides returns the steps of an operand from row to row and within a row.
func (j *broadcastJob) strides(m BroadcastMode) (row, col int) {
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
func (j *broadcastJob) pairRows(lo, hi int, room []float32) {
	ra, ca := j.strides(j.modeA)
	rb, cb := j.strides(j.modeB)
	for r := lo; r < hi; r++ {
		j.line(j.dst[r*j.cols:(r+1)*j.cols], j.a[r*ra:], j.b[r*rb:], ca, cb, room)
	}
}

// pairColumn handles elements lo ≤ i < hi of every column where no operand
// varies within a row.
func (j *broadcastJob) pairColumn(lo, hi int, room []float32) {
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
func (j *broadcastJob) line(dst, a, b []float32, sa, sb int, room []float32) {
	switch j.kind {
	case broadcastOnly:
		if sa == 1 {
			copy(dst, a)
			return
		}
		fill(dst, a[0])
	case broadcastLeakyGrad:
		leakyGrad(dst, a, b, sa, sb, j.scale)
	case broadcastLogAddExp:
		for i := 0; i < len(dst); i += roomPart {
			logAddExps(dst[i:min(i+roomPart, len(dst))], a[i*sa:], b[i*sb:], sa, sb, room)
		}
	case broadcastCompare:
		compareTo(j.op, dst, a, b, sa, sb)
	}
}
