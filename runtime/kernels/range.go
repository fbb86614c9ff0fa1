package kernels

type rangeKind int

const (
	rangePairDot rangeKind = iota
	rangeCommon
	rangeNeighborKernel
	rangeTranspose
	rangeColumns
	rangeSolve
	rangeGather
	rangeScatter
	rangeGroupSum
	rangeGroupRepeat
)

// rangeJob is a kernel over n rows, columns or pairs in chunks of per.
type rangeJob struct {
	kind           rangeKind
	dst, a, b      []float32
	s              *CSR
	left, right    []int64
	rows, cols     int
	n, per         int
	dstCols, xCols int // of rangeColumns, whose first columns are dstFrom and xFrom
	dstFrom, xFrom int
	width          int       // of rangeNeighborKernel the most entries of a row; of groups their columns
	marks          [][]int32 // of rangeCommon, by thread
	scale          float32   // of rangeNeighborKernel, 1/tau
}

func (p *Pool) runRange(job rangeJob) {
	runJob(p, &p.jobs.ranges, job, ceilDiv(job.n, job.per))
}

func (j *rangeJob) do(c, worker int) {
	lo, hi := c*j.per, min((c+1)*j.per, j.n)
	switch j.kind {
	case rangePairDot:
		j.pairDot(lo, hi)
	case rangeCommon:
		j.commonNeighbors(lo, hi, worker)
	case rangeNeighborKernel:
		j.neighborKernel(lo, hi)
	case rangeTranspose:
		j.transpose(lo, hi)
	case rangeColumns:
		j.copyColumns(lo, hi)
	case rangeSolve:
		j.solveUpper(lo, hi)
	case rangeGather:
		j.gather(lo, hi)
	case rangeScatter:
		j.scatter(lo, hi)
	case rangeGroupSum, rangeGroupRepeat:
		j.groups(lo, hi)
	}
}
