package kernels

import (
	"fmt"
	"math"
)

// EdgeSoftmax computes a softmax over the entries of each row r and r's own
// score, for each of heads columns:
//
//	a_e = w_e·exp(e_e − m_r)/D_r    self_r = exp(s_r − m_r)/D_r
//
// with D_r their sum and m_r the largest score that counts: those of entries of
// weight 0 do not. e and a are [len(c.Col), heads], s and self [c.Rows, heads], w
// (nil for ones) [len(c.Col)]. Rows of nothing but −Inf become 0. a may be e, and
// self s. The structure must not be a transposed one.
func (p *Pool) EdgeSoftmax(a, self []float32, c *CSR, e, s, w []float32, heads int) {
	p.attend("EdgeSoftmax", attentionJob{c: c, e: e, s: s, w: w, a: a, self: self, heads: heads})
}

// EdgeSoftmaxGrad computes the gradient of EdgeSoftmax, whose results a and self
// are: from their cotangents da and dself (nil for zeros) those of e, s and, where
// dw is not nil, w. de and ds must not overlap e, s, a or self.
func (p *Pool) EdgeSoftmaxGrad(de, ds, dw []float32, c *CSR, e, s, w, a, self, da, dself []float32, heads int) {
	entries, rows := len(c.Col)*heads, c.Rows*heads
	need("EdgeSoftmaxGrad", "de", len(de), entries)
	need("EdgeSoftmaxGrad", "ds", len(ds), rows)
	needIfAny("EdgeSoftmaxGrad", "da", da, entries)
	needIfAny("EdgeSoftmaxGrad", "dself", dself, rows)
	needIfAny("EdgeSoftmaxGrad", "dw", dw, len(c.Col))
	p.attend("EdgeSoftmaxGrad", attentionJob{grad: true, c: c, e: e, s: s, w: w, a: a, self: self, da: da, dself: dself, de: de, ds: ds, dw: dw, heads: heads})
}

// EdgeSoftmaxScratch returns what EdgeSoftmax and its gradient use.
func EdgeSoftmaxScratch(heads int) Scratch { return Scratch{Local: 2 * heads} }

// farthest bounds e_e − m_r in the gradient by w_e: above 0 it is for entries of
// weight 0 alone, and beyond the exponential would overflow.
const farthest = 60

type attentionJob struct {
	grad               bool
	c                  *CSR
	e, s, w, a, self   []float32
	da, dself          []float32
	de, ds, dw         []float32
	heads, per, chunks int
	p                  *Pool
}

func (p *Pool) attend(kernel string, job attentionJob) {
	c, entries, rows := job.c, len(job.c.Col)*job.heads, job.c.Rows*job.heads
	c.check(kernel)
	if c.Perm != nil {
		panic(fmt.Sprintf("kernels: %s: the structure is a transposed one", kernel))
	}
	if job.heads == 0 {
		return
	}
	need(kernel, "e", len(job.e), entries)
	need(kernel, "a", len(job.a), entries)
	need(kernel, "s", len(job.s), rows)
	need(kernel, "self", len(job.self), rows)
	needIfAny(kernel, "w", job.w, len(c.Col))
	p.scratch(EdgeSoftmaxScratch(job.heads).Local)
	job.p = p
	job.per, job.chunks = c.chunks(8 * job.heads)
	runJob(p, &p.jobs.attend, job, job.chunks)
}

func (j *attentionJob) do(chunk, worker int) {
	r0, r1 := j.c.rowAt(chunk, j.per), j.c.rowAt(chunk+1, j.per)
	switch local := j.p.local[worker][:2*j.heads]; {
	case r0 == r1:
	case !j.grad:
		ks.edgeSoftmax(j.a, j.self, j.e, j.s, j.w, j.c.RowPtr, j.heads, r0, r1)
	case j.dw == nil && j.da != nil && j.dself != nil:
		ks.edgeSoftmaxGrad(j.de, j.ds, j.a, j.self, j.da, j.dself, j.c.RowPtr, j.heads, r0, r1)
	default:
		j.gradient(r0, r1, local[:j.heads], local[j.heads:])
	}
}

// exponents writes exp(e − m) and exp(s − m) of some rows to x and y, m each row's
// largest score that counts.
func (j *attentionJob) exponents(x, y []float32, r0, r1 int, top []float32) {
	n, ptr := j.heads, j.c.RowPtr
	for r := r0; r < r1; r++ {
		first, last := int(ptr[r]), int(ptr[r+1])
		own := j.s[r*n : (r+1)*n]
		copy(top, own)
		for e := first; e < last; e++ {
			if j.w != nil && j.w[e] == 0 {
				continue
			}
			for h, v := range j.e[e*n:][:len(top)] {
				if v > top[h] {
					top[h] = v
				}
			}
		}
		for h, v := range top {
			if v == negInf {
				top[h] = 0
			}
		}
		for e := first; e < last; e++ {
			in, out := j.e[e*n:][:len(top)], x[e*n:][:len(top)]
			for h, m := range top {
				if out[h] = in[h] - m; out[h] > farthest {
					out[h] = farthest
				}
			}
		}
		for h, m := range top {
			y[r*n+h] = own[h] - m
		}
	}
	ks.unary[Exp](x[int(ptr[r0])*n:int(ptr[r1])*n], x[int(ptr[r0])*n:int(ptr[r1])*n], 0)
	ks.unary[Exp](y[r0*n:r1*n], y[r0*n:r1*n], 0)
}

// total adds a row's exponentials, and returns in sum what they must be
// multiplied by.
func (j *attentionJob) total(x, y []float32, r int, sum []float32) {
	n := j.heads
	copy(sum, y[r*n:(r+1)*n])
	for e := int(j.c.RowPtr[r]); e < int(j.c.RowPtr[r+1]); e++ {
		in := x[e*n:][:len(sum)]
		if j.w == nil {
			for h, v := range in {
				sum[h] += v
			}
		} else if w := j.w[e]; w != 0 {
			for h, v := range in {
				sum[h] += float32(w * v)
			}
		}
	}
	for h, v := range sum {
		if v != 0 {
			sum[h] = 1 / v
		}
	}
}

func (j *attentionJob) gradient(r0, r1 int, mean, sum []float32) {
	n, bare := j.heads, j.dw != nil && j.w != nil
	if bare {
		j.exponents(j.de, j.ds, r0, r1, sum)
	}
	for r := r0; r < r1; r++ {
		first, last := int(j.c.RowPtr[r]), int(j.c.RowPtr[r+1])
		if bare {
			j.total(j.de, j.ds, r, sum)
		}
		own, ds := j.self[r*n:(r+1)*n], j.ds[r*n:(r+1)*n]
		clear(mean)
		if j.dself != nil {
			for h, v := range j.dself[r*n : (r+1)*n] {
				mean[h] = float32(own[h] * v)
			}
		}
		if j.da != nil {
			for e := first; e < last; e++ {
				a, d := j.a[e*n:][:len(mean)], j.da[e*n:][:len(mean)]
				for h := range mean {
					mean[h] += float32(a[h] * d[h])
				}
			}
		}
		for h, m := range mean {
			d := -m
			if j.dself != nil {
				d += j.dself[r*n+h]
			}
			ds[h] = own[h] * d
		}
		for e := first; e < last; e++ {
			a, de := j.a[e*n:][:len(mean)], j.de[e*n:][:len(mean)]
			var dw float32
			for h, m := range mean {
				d := -m
				if j.da != nil {
					d += j.da[e*n+h]
				}
				if bare {
					dw += float32(float32(de[h]*sum[h]) * d)
				} else {
					dw += float32(a[h] * d)
				}
				de[h] = a[h] * d
			}
			if j.dw != nil {
				j.dw[e] = dw
			}
		}
	}
}

// edgeSoftmaxGo computes the softmax of rows r0 ≤ r < r1, head by head.
func edgeSoftmaxGo(a, self, e, s, w []float32, rowPtr []int32, heads, r0, r1 int) {
	for k := r0 * heads; k < r1*heads; k++ {
		first, last, h := int(rowPtr[k/heads]), int(rowPtr[k/heads+1]), k%heads
		top := bigger32(s[k], -math.MaxFloat32) // −Inf would be subtracted from itself
		for i := first; i < last; i++ {
			if w == nil || w[i] != 0 {
				top = bigger32(top, e[i*heads+h])
			}
		}
		own := expFlush(s[k] - top)
		sum := own
		for i := first; i < last; i++ {
			x := expFlush(smaller32(e[i*heads+h]-top, 0))
			if a[i*heads+h] = x; w != nil {
				sum = fma32(w[i], x, sum)
			} else {
				sum += x
			}
		}
		scale := 1 / bigger32(sum, smallest)
		self[k] = float32(own * scale)
		for i := first; i < last; i++ {
			x := float32(a[i*heads+h] * scale)
			if w != nil {
				x = float32(x * w[i])
			}
			a[i*heads+h] = x
		}
	}
}

// smallest is the least positive number that is not denormal.
const smallest = 0x1p-126

func edgeSoftmaxGradGo(de, ds, a, self, da, dself []float32, rowPtr []int32, heads, r0, r1 int) {
	for k := r0 * heads; k < r1*heads; k++ {
		first, last, h := int(rowPtr[k/heads]), int(rowPtr[k/heads+1]), k%heads
		mean := float32(self[k] * dself[k])
		for i := first; i < last; i++ {
			mean = fma32(a[i*heads+h], da[i*heads+h], mean)
		}
		ds[k] = self[k] * (dself[k] - mean)
		for i := first; i < last; i++ {
			de[i*heads+h] = a[i*heads+h] * (da[i*heads+h] - mean)
		}
	}
}

// GroupSum adds the columns of each of groups blocks of one width: x is
// [rows, cols], dst [rows, groups].
func (p *Pool) GroupSum(dst, x []float32, rows, cols, groups int) {
	checkHeads("GroupSum", cols, groups)
	need("GroupSum", "dst", len(dst), rows*groups)
	need("GroupSum", "x", len(x), rows*cols)
	p.runRange(rangeJob{run: (*rangeJob).groupSum, dst: dst, a: x, cols: groups, width: cols / groups, n: rows, per: rowsPerChunk(cols)})
}

// GroupRepeat repeats each of the groups columns of x [rows, groups] times times:
// dst is [rows, groups·times].
func (p *Pool) GroupRepeat(dst, x []float32, rows, groups, times int) {
	need("GroupRepeat", "dst", len(dst), rows*groups*times)
	need("GroupRepeat", "x", len(x), rows*groups)
	p.runRange(rangeJob{run: (*rangeJob).groupRepeat, dst: dst, a: x, cols: groups, width: times, n: rows, per: rowsPerChunk(groups * times)})
}

func (j *rangeJob) groupRepeat(lo, hi, _ int) {
	for k := lo * j.cols; k < hi*j.cols; k++ {
		fill(j.dst[k*j.width:(k+1)*j.width], j.a[k])
	}
}

func (j *rangeJob) groupSum(lo, hi, _ int) {
	w := j.width
	for k := lo * j.cols; k < hi*j.cols; k++ {
		var sum float32
		for _, v := range j.a[k*w : (k+1)*w] {
			sum += v
		}
		j.dst[k] = sum
	}
}
