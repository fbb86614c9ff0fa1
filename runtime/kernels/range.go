package kernels

// rangeJob is a kernel over n rows, columns or pairs in chunks of per.
type rangeJob struct {
	run            func(j *rangeJob, lo, hi, worker int)
	dst, a, b      []float32
	s              *CSR
	left, right    []int64
	rows, cols     int
	n, per         int
	dstCols, xCols int // of copyColumns, whose first columns are dstFrom and xFrom
	dstFrom, xFrom int
	width          int       // of neighborKernel the most entries of a row; of groups their columns
	marks          [][]int32 // of commonNeighbors, by thread
	scale          float32   // of neighborKernel, 1/tau
}

func (p *Pool) runRange(job rangeJob) {
	runJob(p, &p.jobs.ranges, job, ceilDiv(job.n, job.per))
}

func (j *rangeJob) do(c, worker int) {
	j.run(j, c*j.per, min((c+1)*j.per, j.n), worker)
}
