package kernels

import "fmt"

// CopyColumns copies the width columns of x [rows, xCols] from xFrom on to the
// columns of dst [rows, dstCols] from dstFrom on, and leaves the others.
func (p *Pool) CopyColumns(dst []float32, dstCols, dstFrom int, x []float32, xCols, xFrom, rows, width int) {
	if dstFrom < 0 || xFrom < 0 || dstFrom+width > dstCols || xFrom+width > xCols {
		panic(fmt.Sprintf("kernels: CopyColumns: %d columns from %d to %d do not fit %d and %d columns", width, xFrom, dstFrom, xCols, dstCols))
	}
	need("CopyColumns", "dst", len(dst), rows*dstCols)
	need("CopyColumns", "x", len(x), rows*xCols)
	p.runRange(rangeJob{run: (*rangeJob).copyColumns, dst: dst, a: x, dstCols: dstCols, xCols: xCols, dstFrom: dstFrom, xFrom: xFrom, width: width, n: rows, per: rowsPerChunk(width)})
}

func (j *rangeJob) copyColumns(lo, hi, _ int) {
	for r := lo; r < hi; r++ {
		copy(j.dst[r*j.dstCols+j.dstFrom:][:j.width], j.a[r*j.xCols+j.xFrom:])
	}
}
