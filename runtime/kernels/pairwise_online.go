package kernels

import (
	"math"

	"github.com/gsrc-dev/gsrc/internal/fmath"
)

// Where logits spread too far for a common shift, every row and column has a
// running maximum, and sums are rescaled when it rises (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018).

// nearest finds the smallest distance of every row of the tile, lane by lane,
// into l.acc2, and that of every column into l.cols.
func (j *pairJob) nearest(l *pairLocal, s []float32) {
	nr := j.mk.nr
	for i := range l.h {
		l.row[4*i] = j.pn[l.r0+i]
	}
	fill(l.acc2, posInf)
	fill(l.cols, posInf)
	for c0 := l.c0; c0 < l.c0+l.w; c0 += nr {
		h := j.height(l, c0)
		mask, first, step := pairMask(l, c0, h, nr)
		qn := j.qn[c0:]
		if c0+nr > j.b {
			copy(l.far, qn[:nr])
			fill(l.far[j.b-c0:nr], posInf)
			qn = l.far
		}
		ks.pairNearest(s[c0-l.c0:], j.ld, h, l.row, qn, l.acc2, l.cols[c0-l.c0:], mask, first, step)
	}
}

// rise updates a maximum m by a distance and returns by what to multiply sums.
func (j *pairJob) rise(m *float32, nearest float32) float32 {
	old := *m
	top := float32(nearest * j.scale)
	if !(top > old) { // also NaN
		return 1
	}
	*m = top
	if old == negInf {
		return 1 // nothing was added yet
	}
	return float32(fmath.Exp2(float64(old - top)))
}

// least returns the smallest of some lanes, +Inf for none.
func least(x []float32) float32 {
	m := posInf
	for _, v := range x {
		if v < m {
			m = v
		}
	}
	return m
}

// raise updates the maxima of a chunk's rows and rescales what they have summed.
func (j *pairJob) raise(l *pairLocal, acc []float32, begun bool) {
	const n = pairLanes
	for i := range l.h {
		m := &j.rowM[l.r0+i]
		if by := j.rise(m, least(l.acc2[i*n:(i+1)*n])); by != 1 && begun {
			ks.vs[Mul](l.acc[i*n:(i+1)*n], l.acc[i*n:(i+1)*n], by)
			if j.out.Mean != nil {
				row := acc[i*j.fp : i*j.fp+j.f]
				ks.vs[Mul](row, row, by)
			}
		}
		r := l.row[4*i : 4*i+4]
		r[1], r[2] = finite(-*m), 1
	}
}

// online adds the exponentials of a tile to the sums of its rows and columns.
func (j *pairJob) online(l *pairLocal, s []float32) {
	const n = pairLanes
	nr := j.mk.nr
	j.nearest(l, s)
	for k := range l.w {
		j.colSum[l.c0+k] *= j.rise(&j.colM[l.c0+k], l.cols[k])
	}
	for i := range l.h {
		j.rowSum[l.r0+i] *= j.rise(&j.rowM[l.r0+i], least(l.acc2[i*n:(i+1)*n]))
	}
	// One exponential for the rows, one for the columns.
	for i := range l.h {
		l.row[4*i+1], l.row[4*i+2] = finite(-j.rowM[l.r0+i]), 1
		l.row2[4*i], l.row2[4*i+1], l.row2[4*i+2] = l.row[4*i], 0, 1
	}
	none := l.cols[:nr]
	for c0 := l.c0; c0 < l.c0+l.w; c0 += nr {
		h, at := j.height(l, c0), c0-l.c0
		mask, first, step := pairMask(l, c0, h, nr)
		gamma := l.far
		for k := range nr {
			gamma[k] = -pairFar
			if c0+k < j.b {
				gamma[k] = finite(-j.colM[c0+k])
			}
		}
		clear(l.sq)
		ks.pairWeights(l.tmp[at:], s[at:], j.ld, h, l.row2, j.qn[c0:], gamma, j.zeros[c0:], l.acc2, j.colSum[c0:], l.sq, mask, first, step, j.scale, 0)
		clear(l.sq)
		ks.pairWeights(l.tmp[at:], s[at:], j.ld, h, l.row, j.qn[c0:], j.gamma[c0:], j.zeros[c0:], l.acc, none, l.sq, mask, first, step, j.scale, 0)
		j.addSquares(l, c0)
	}
	j.fold(l)
}

// finite is x, or 0 for the shift of a row without others.
func finite(x float32) float32 {
	if math.IsInf(float64(x), 0) {
		return 0
	}
	return x
}

// pairWeightsGo turns the products of h rows with a panel of columns, here 16, into
// weights
//
//	g = e·(a_i + b_j) + 2·dSq·d,  d = max(‖p_i‖² + ‖q_j‖² − 2·product, 0),
//	e = exp2(scale·d + β_i + γ_j), or 0 where the mask says so
//
// and adds them to the sums of the rows, column c to lane c mod 16, and of the
// columns, and d² to sq, one for each column. row holds ‖p_i‖², β_i and a_i; sq2 is
// 2·dSq. The mask begins at at and moves by step from row to row.
func pairWeightsGo(dst, src []float32, ld, h int, row, qn, gamma, b, rowAcc, colAcc, sq []float32, mask []uint32, at, step int, scale, sq2 float32) {
	for i := range h {
		r := row[4*i : 4*i+3]
		out, in, acc, keep := dst[i*ld:][:pairLanes], src[i*ld:][:pairLanes], rowAcc[i*pairLanes:][:pairLanes], mask[at+i*step:][:pairLanes]
		for v := range out {
			d := bigger32(0, fma32(in[v], -2, r[0]+qn[v]))
			sq[v] = fma32(d, d, sq[v])
			var e float32
			if keep[v] != 0 {
				e = exp2Tile(fma32(d, scale, r[1]+gamma[v]))
			}
			g := fma32(e, r[2]+b[v], float32(d*sq2))
			out[v] = g
			acc[v] += g
			colAcc[v] += g
		}
	}
}

// pairNearestGo lowers the minima of rows, lane by lane, and columns to the
// distances of a panel; see pairWeightsGo.
func pairNearestGo(src []float32, ld, h int, row, qn, rowMin, colMin []float32, mask []uint32, at, step int) {
	for i := range h {
		in, m, keep := src[i*ld:][:pairLanes], rowMin[i*pairLanes:][:pairLanes], mask[at+i*step:][:pairLanes]
		for v := range in {
			d := bigger32(0, fma32(in[v], -2, row[4*i]+qn[v]))
			if keep[v] == 0 || d != d {
				continue
			}
			m[v], colMin[v] = min(m[v], d), min(colMin[v], d)
		}
	}
}
