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
	j := &p.jobs.rows
	*j = rowsJob{dst: dst, x: x, idx: idx, cols: cols, per: rowsPerChunk(cols)}
	p.run(ceilDiv(len(idx), j.per), j)
	*j = rowsJob{}
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
	j := &p.jobs.rows
	*j = rowsJob{scatter: true, dst: dst[:rows*cols], x: dy, idx: idx, cols: cols, per: ceilDiv(rows, chunks)}
	p.run(ceilDiv(rows, j.per), j)
	*j = rowsJob{}
}

func checkRows(kernel string, idx []int64, rows int) {
	for i, r := range idx {
		if r < 0 || r >= int64(rows) {
			panic(fmt.Sprintf("kernels: %s: index %d is %d, outside the %d rows", kernel, i, r, rows))
		}
	}
}

type rowsJob struct {
	scatter   bool
	dst, x    []float32
	idx       []int64
	cols, per int
}

func (j *rowsJob) do(c, _ int) {
	n := j.cols
	lo := c * j.per
	if !j.scatter {
		for i := lo; i < min(lo+j.per, len(j.idx)); i++ {
			r := int(j.idx[i])
			copy(j.dst[i*n:(i+1)*n], j.x[r*n:(r+1)*n])
		}
		return
	}
	hi := min(lo+j.per, len(j.dst)/n)
	clear(j.dst[lo*n : hi*n])
	for i, r := range j.idx {
		if int(r) < lo || int(r) >= hi {
			continue
		}
		d := j.dst[int(r)*n : (int(r)+1)*n]
		ks.vv[Add](d, d, j.x[i*n:(i+1)*n])
	}
}
