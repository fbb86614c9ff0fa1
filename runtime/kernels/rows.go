package kernels

import "fmt"

// GatherRows copies rows: dst[i,:] = x[idx[i],:]. x has rows of cols columns,
// dst is [len(idx), cols]. It panics on an index outside x.
func (p *Pool) GatherRows(dst, x []float32, idx []int64, cols int) {
	need("GatherRows", "dst", len(dst), len(idx)*cols)
	if cols == 0 || len(idx) == 0 {
		return
	}
	checkRows("GatherRows", idx, len(x)/cols)
	p.runRange(rangeJob{run: (*rangeJob).gather, dst: dst, a: x, left: idx, cols: cols, n: len(idx), per: rowsPerChunk(cols)})
}

// ScatterAddRows computes dst = 0, then dst[idx[i],:] += dy[i,:] for i in
// increasing order: the gradient of [Pool.GatherRows]. dst is [rows, cols]. It
// panics on an index outside dst.
func (p *Pool) ScatterAddRows(dst, dy []float32, idx []int64, rows, cols int) {
	need("ScatterAddRows", "dst", len(dst), rows*cols)
	need("ScatterAddRows", "dy", len(dy), len(idx)*cols)
	checkRows("ScatterAddRows", idx, rows)
	if rows*cols == 0 {
		return
	}
	// Each chunk owns a range of target rows and reads all indices. Reading
	// them costs little beside the rows, so few chunks are enough.
	chunks := max(1, min(16, rows, len(idx)*cols/elemChunk))
	p.runRange(rangeJob{run: (*rangeJob).scatter, dst: dst, a: dy, left: idx, cols: cols, n: rows, per: ceilDiv(rows, chunks)})
}

// checkPairs panics where dst or right is shorter than left, or one names a row there is not.
func checkPairs(kernel string, dst []float32, left, right []int64, rows int) {
	need(kernel, "dst", len(dst), len(left))
	need(kernel, "right", len(right), len(left))
	checkRows(kernel, left, rows)
	checkRows(kernel, right[:len(left)], rows)
}

func checkRows(kernel string, idx []int64, rows int) {
	for i, r := range idx {
		if r < 0 || r >= int64(rows) {
			panic(fmt.Sprintf("kernels: %s: index %d is %d, outside the %d rows", kernel, i, r, rows))
		}
	}
}

func (j *rangeJob) gather(lo, hi, _ int) {
	n := j.cols
	for i, r := range j.left[lo:hi] {
		copy(j.dst[(lo+i)*n:(lo+i+1)*n], j.a[int(r)*n:(int(r)+1)*n])
	}
}

func (j *rangeJob) scatter(lo, hi, _ int) {
	n := j.cols
	clear(j.dst[lo*n : hi*n])
	for i, r := range j.left {
		if int(r) < lo || int(r) >= hi {
			continue
		}
		d := j.dst[int(r)*n : (int(r)+1)*n]
		ks.vv[Add](d, d, j.a[i*n:(i+1)*n])
	}
}
