package graph

import (
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// NodeFeatures are the attributes of nodes: sparse with the columns Col[RowPtr[i]:RowPtr[i+1]]
// of row i, ascending, or dense, row-major, where RowPtr is nil.
type NodeFeatures struct {
	Cols        int
	RowPtr, Col []int32
	Val, Dense  []float32
}

// Rarity returns the factor of each column, one plus the inverse document frequency
// among n rows.
func (x *NodeFeatures) Rarity(n int) []float64 {
	count := make([]float64, x.Cols)
	if x.RowPtr != nil {
		for _, c := range x.Col {
			count[c]++
		}
	} else {
		for i, v := range x.Dense {
			if v != 0 {
				count[i%x.Cols]++
			}
		}
	}
	for c, k := range count {
		count[c] = 1 + fmath.Log((1+float64(n))/(1+k))
	}
	return count
}

// sparseRow is a row with ascending columns.
type sparseRow struct {
	col []int32
	val []float32
}

func (a sparseRow) dot(b sparseRow) (sum float64) {
	for i, j := 0, 0; i < len(a.col) && j < len(b.col); {
		switch x, y := a.col[i], b.col[j]; {
		case x < y:
			i++
		case x > y:
			j++
		default:
			sum += float64(float64(a.val[i]) * float64(b.val[j]))
			i, j = i+1, j+1
		}
	}
	return sum
}

// transposed returns the columns of a matrix of that many.
func transposed(rows []sparseRow, cols int) []sparseRow {
	columns, count := make([]sparseRow, cols), make([]int, cols)
	for _, r := range rows {
		for _, c := range r.col {
			count[c]++
		}
	}
	for c, n := range count {
		columns[c] = sparseRow{make([]int32, 0, n), make([]float32, 0, n)}
	}
	for i, r := range rows {
		for k, c := range r.col {
			columns[c].col, columns[c].val = append(columns[c].col, int32(i)), append(columns[c].val, r.val[k])
		}
	}
	return columns
}

// scaled returns row i with its columns scaled and then itself, to length 1 unless there is
// nothing to scale.
func (x *NodeFeatures) scaled(i int, columns []float64) sparseRow {
	r := x.row(i)
	if far := kernels.RowScale(r.val); far != 1 { // or else it, or what divides it, overflows
		for k := range r.val {
			r.val[k] *= far
		}
	}
	length := 0.0
	for k, c := range r.col {
		v := float64(r.val[k]) * columns[c]
		r.val[k] = float32(v)
		length += float64(v * v)
	}
	if length > 0 {
		for k := range r.val {
			r.val[k] *= float32(1 / math.Sqrt(length))
		}
	}
	return r
}

// row copies row i without its zeros.
func (x *NodeFeatures) row(i int) (r sparseRow) {
	if x.RowPtr != nil {
		lo, hi := x.RowPtr[i], x.RowPtr[i+1]
		return sparseRow{x.Col[lo:hi:hi], slices.Clone(x.Val[lo:hi])}
	}
	count := 0
	for _, v := range x.Dense[i*x.Cols : (i+1)*x.Cols] {
		if v != 0 {
			count++
		}
	}
	r = sparseRow{make([]int32, 0, count), make([]float32, 0, count)}
	for c, v := range x.Dense[i*x.Cols : (i+1)*x.Cols] {
		if v != 0 {
			r.col, r.val = append(r.col, int32(c)), append(r.val, v)
		}
	}
	return r
}
