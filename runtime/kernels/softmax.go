package kernels

import (
	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// Softmax computes the softmax of every row: dst[i,j] = exp(x[i,j] − lse_i).
// dst may be x. A row of −Inf alone has no distribution and gives NaN.
func (p *Pool) Softmax(dst, x []float32, rows, cols int) {
	p.runSoftmax(softmaxJob{kind: softmaxRows, dst: dst, x: x}, "Softmax", rows, cols)
}

// LogSoftmax computes dst[i,j] = x[i,j] − lse_i. dst may be x.
func (p *Pool) LogSoftmax(dst, x []float32, rows, cols int) {
	p.runSoftmax(softmaxJob{kind: logSoftmaxRows, dst: dst, x: x}, "LogSoftmax", rows, cols)
}

// SoftmaxCrossEntropy writes the mean over rows of lse_i − logits[i, labels[i]]
// to dst[0]. Rows whose label lies outside [0, cols) do not count; with none
// left the loss is 0.
func (p *Pool) SoftmaxCrossEntropy(dst, logits []float32, labels []int64, rows, cols int) {
	need("SoftmaxCrossEntropy", "dst", len(dst), 1)
	need("SoftmaxCrossEntropy", "labels", len(labels), rows)
	part := grow(&p.part, rows)
	p.runSoftmax(softmaxJob{kind: crossEntropy, dst: part, x: logits, labels: labels}, "SoftmaxCrossEntropy", rows, cols)
	sum := 0.0
	for _, v := range part {
		sum += float64(v)
	}
	dst[0] = 0
	if n := counted(labels[:rows], cols); n > 0 {
		dst[0] = float32(sum / float64(n))
	}
}

// SoftmaxCrossEntropyGrad computes the gradient of SoftmaxCrossEntropy with
// respect to the logits: dx = dy[0]/count·(softmax(logits) − onehot(labels)), 0
// in rows that do not count. dx may be logits.
func (p *Pool) SoftmaxCrossEntropyGrad(dx, logits []float32, labels []int64, dy []float32, rows, cols int) {
	need("SoftmaxCrossEntropyGrad", "dy", len(dy), 1)
	need("SoftmaxCrossEntropyGrad", "labels", len(labels), rows)
	var scale float32
	if n := counted(labels[:rows], cols); n > 0 {
		scale = dy[0] / float32(n)
	}
	p.runSoftmax(softmaxJob{kind: crossEntropyGrad, dst: dx, x: logits, labels: labels, scale: scale}, "SoftmaxCrossEntropyGrad", rows, cols)
}

// counted returns how many labels lie in [0, cols).
func counted(labels []int64, cols int) int {
	n := 0
	for _, l := range labels {
		if l >= 0 && l < int64(cols) {
			n++
		}
	}
	return n
}

// L2NormalizeRows computes dst[i,:] = x[i,:]/max(‖x[i,:]‖₂, eps), and
// x[i,:]/‖x[i,:]‖₂ of rows that [rowScale] scales first. dst may be x.
func (p *Pool) L2NormalizeRows(dst, x []float32, rows, cols int, eps float32) {
	p.runSoftmax(softmaxJob{kind: l2Rows, dst: dst, x: x, scale: eps}, "L2NormalizeRows", rows, cols)
}

// L2NormalizeRowsGrad computes the gradient of L2NormalizeRows with respect to
// x: (dy − y⟨y, dy⟩)/‖x‖ where ‖x‖ > eps, else dy/eps, or 0 where eps ≤ 1e-12. dx may be dy and must not overlap x.
func (p *Pool) L2NormalizeRowsGrad(dx, x, dy []float32, rows, cols int, eps float32) {
	need("L2NormalizeRowsGrad", "dy", len(dy), rows*cols)
	p.runSoftmax(softmaxJob{kind: l2Grad, dst: dx, x: x, dy: dy, scale: eps}, "L2NormalizeRowsGrad", rows, cols)
}

// L1NormalizeRows computes dst[i,:] = x[i,:]/max(Σ|x[i,:]|, eps), and
// x[i,:]/Σ|x[i,:]| of rows that [rowScale] scales first. dst may be x.
func (p *Pool) L1NormalizeRows(dst, x []float32, rows, cols int, eps float32) {
	p.runSoftmax(softmaxJob{kind: l1Rows, dst: dst, x: x, scale: eps}, "L1NormalizeRows", rows, cols)
}

type softmaxKind int

const (
	softmaxRows softmaxKind = iota
	logSoftmaxRows
	crossEntropy
	crossEntropyGrad
	l2Rows
	l2Grad
	l1Rows
)

// softmaxJob is one kernel that needs a whole row at a time.
type softmaxJob struct {
	kind            softmaxKind
	dst, x, dy      []float32
	labels          []int64
	room            []float32 // of the pool
	scale           float32
	rows, cols, per int
}

func (p *Pool) runSoftmax(job softmaxJob, name string, rows, cols int) {
	if job.kind == crossEntropy {
		need(name, "dst", len(job.dst), rows)
	} else {
		need(name, "dst", len(job.dst), rows*cols)
	}
	need(name, "x", len(job.x), rows*cols)
	job.room, job.rows, job.cols, job.per = p.room, rows, cols, rowsPerChunk(cols)
	runJob(p, &p.jobs.softmax, job, ceilDiv(rows, job.per))
}

func (j *softmaxJob) do(c, worker int) {
	n, one, top := j.cols, j.room[worker*roomStep:][:1], j.room[worker*roomStep+roomPart:][:1]
	for r := c * j.per; r < min((c+1)*j.per, j.rows); r++ {
		x := j.x[r*n : (r+1)*n]
		if j.kind == crossEntropy {
			j.dst[r] = 0
			if l := j.labels[r]; l >= 0 && l < int64(n) {
				logSumExps(one, x, n, top)
				j.dst[r] = one[0] - x[l]
			}
			continue
		}
		if n == 0 {
			continue
		}
		dst := j.dst[r*n : (r+1)*n]
		switch j.kind {
		case softmaxRows:
			softmaxTo(dst, x, 1)
		case logSoftmaxRows:
			logSumExps(one, x, n, top)
			ks.vs[Sub](dst, x, one[0])
		case crossEntropyGrad:
			l := j.labels[r]
			if l < 0 || l >= int64(n) || j.scale == 0 {
				clear(dst)
				continue
			}
			softmaxTo(dst, x, j.scale)
			dst[l] -= j.scale
		case l1Rows, l2Rows:
			norm := rowNorm(j.kind, x)
			if scale := rowScale(norm, x, j.scale); scale != 1 {
				ks.vs[Mul](dst, x, scale)
				ks.vs[Mul](dst, dst, 1/rowNorm(j.kind, dst))
				continue
			}
			ks.vs[Mul](dst, x, 1/max(norm, j.scale))
		case l2Grad:
			norm, dy := rowNorm(l2Rows, x), j.dy[r*n:(r+1)*n]
			switch {
			case norm <= j.scale && j.scale <= rowLow: // no direction
				clear(dst)
				continue
			case norm <= j.scale:
				ks.vs[Mul](dst, dy, 1/j.scale)
				continue
			}
			if rowScale(norm, x, j.scale) < 1 {
				l2GradWide(dst, x, dy)
				continue
			}
			d := ks.dot(x, dy) / (norm * norm)
			ks.vs[Mul](dst, dy, 1/norm)
			ks.axpby(dst, x, -d/norm, 1)
		}
	}
}

// softmaxTo writes scale·softmax(x).
func softmaxTo(dst, x []float32, scale float32) {
	s := ks.expTo(dst, x, ks.max(x))
	ks.vs[Mul](dst, dst, scale/s)
}

// Top returns the position of the largest element of a row, the first of equal ones.
func Top(row []float32) int {
	top := 0
	for c, v := range row {
		if v > row[top] {
			top = c
		}
	}
	return top
}

// NLL returns −ln softmax(row)[label], in nats and in float64.
func NLL(row []float32, label int) float64 {
	top, sum := float64(row[Top(row)]), 0.0
	for _, x := range row {
		sum += fmath.Exp(float64(x) - top)
	}
	return fmath.Log(sum) + top - float64(row[label])
}
