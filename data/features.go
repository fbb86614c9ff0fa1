package data

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/budget"
)

// Features is the matrix X of node features, [Rows,Cols] float32: either in
// compressed sparse rows (RowPtr is not nil) or dense in row-major order.
type Features struct {
	Rows, Cols int

	// Sparse: row i has the columns Col[RowPtr[i]:RowPtr[i+1]], ascending and
	// unique, with the values in the same places of Val. Zeros are not stored.
	RowPtr, Col []int32
	Val         []float32

	// Dense: element (i,j) is Dense[i*Cols+j].
	Dense  []float32
	inFile bool // Dense is: no memory
}

// maxCols bounds the width of X. A sparse file of a few bytes can claim any
// width, and models allocate weights of that height.
const maxCols = 1 << 24

// sparseBelow is the density under which a dense input is held sparse. At a
// third, CSR (8 bytes an entry) takes two thirds of the dense matrix (4).
const sparseBelow = 1.0 / 3

// IsSparse reports whether the matrix is held in compressed sparse rows.
func (f *Features) IsSparse() bool { return f.RowPtr != nil }

// Attributes returns the matrix as package graph takes it, in the same memory.
func (f *Features) Attributes() graph.NodeFeatures {
	return graph.NodeFeatures{Cols: f.Cols, RowPtr: f.RowPtr, Col: f.Col, Val: f.Val, Dense: f.Dense}
}

// NNZ returns the number of elements that are not zero.
func (f *Features) NNZ() int {
	if f.IsSparse() {
		return len(f.Col)
	}
	n := 0
	for _, v := range f.Dense {
		if v != 0 {
			n++
		}
	}
	return n
}

// Counts reports whether all values are numbers of occurrences: integers from 0, and not
// all of them 0.
func (f *Features) Counts() bool {
	values, some := f.Dense, false
	if f.IsSparse() {
		values = f.Val
	}
	for _, v := range values {
		if v < 0 || v != float32(math.Trunc(float64(v))) {
			return false
		}
		some = some || v > 0
	}
	return some
}

// Density returns NNZ over Rows·Cols, 0 for an empty matrix.
func (f *Features) Density() float64 {
	if f.Rows == 0 || f.Cols == 0 {
		return 0
	}
	return float64(f.NNZ()) / (float64(f.Rows) * float64(f.Cols))
}

// ToDense returns the matrix in dense form: f itself if it is dense.
func (f *Features) ToDense() *Features {
	if !f.IsSparse() {
		return f
	}
	d := &Features{Rows: f.Rows, Cols: f.Cols, Dense: make([]float32, f.Rows*f.Cols)}
	for i := range f.Rows {
		row := d.Dense[i*f.Cols : (i+1)*f.Cols]
		for k := f.RowPtr[i]; k < f.RowPtr[i+1]; k++ {
			row[f.Col[k]] = f.Val[k]
		}
	}
	return d
}

// ToCSR returns the matrix in compressed sparse rows: f itself if it is sparse.
func (f *Features) ToCSR() *Features {
	if f.IsSparse() {
		return f
	}
	n := f.NNZ()
	s := &Features{Rows: f.Rows, Cols: f.Cols, RowPtr: make([]int32, 1, f.Rows+1), Col: make([]int32, 0, n), Val: make([]float32, 0, n)}
	for i := range f.Rows {
		for j, v := range f.Dense[i*f.Cols : (i+1)*f.Cols] {
			if v != 0 {
				s.Col = append(s.Col, int32(j))
				s.Val = append(s.Val, v)
			}
		}
		s.RowPtr = append(s.RowPtr, int32(len(s.Col)))
	}
	return s
}

// compact returns the matrix in the form that is due at its density. The memory of one
// form is claimed from mem before it is made, and that of the other given back.
func (f *Features) compact(mem *budget.Reservation) (_ *Features, err error) {
	defer caught(&err)
	nnz := int64(f.NNZ())
	switch sparse := f.Density() < sparseBelow; {
	case sparse == f.IsSparse():
		return f, nil
	case sparse && nnz > math.MaxInt32:
		return nil, fmt.Errorf("more than %d values that are not zero", math.MaxInt32)
	case sparse:
		claim(mem, 4*int64(f.Rows+1)+8*nnz)
		s := f.ToCSR()
		mem.Shrink(f.bytes())
		return s, nil
	}
	claim(mem, budget.Mul(4, int64(f.Rows), int64(f.Cols)))
	d := f.ToDense()
	mem.Shrink(f.bytes())
	return d, nil
}

// EmptyRows returns the number of rows that are all zero.
func (f *Features) EmptyRows() int {
	n := 0
	for i := range f.Rows {
		if f.emptyRow(i) {
			n++
		}
	}
	return n
}

// Largest returns the largest magnitude, and the first row and column that have it; zeros
// where nothing is stored.
func (f *Features) Largest() (top float32, row, col int) {
	values := f.Dense
	if f.IsSparse() {
		values = f.Val
	}
	at := -1
	for i, v := range values {
		if v = max(v, -v); v > top {
			top, at = v, i
		}
	}
	switch {
	case at < 0:
	case f.IsSparse():
		row, col = sort.Search(f.Rows, func(r int) bool { return int(f.RowPtr[r+1]) > at }), int(f.Col[at])
	default:
		row, col = at/f.Cols, at%f.Cols
	}
	return top, row, col
}

func (f *Features) emptyRow(i int) bool {
	if f.IsSparse() {
		return f.RowPtr[i] == f.RowPtr[i+1]
	}
	return !slices.ContainsFunc(f.Dense[i*f.Cols:(i+1)*f.Cols], func(v float32) bool { return v != 0 })
}

// Check verifies the structure and that every value is finite. Its error names
// the node and the column.
func (f *Features) Check() error {
	if f.Rows < 0 || f.Cols < 0 {
		return fmt.Errorf("features have the shape [%d,%d]", f.Rows, f.Cols)
	}
	if !f.IsSparse() {
		if len(f.Dense) != f.Rows*f.Cols {
			return fmt.Errorf("features of shape [%d,%d] need %d values, found %d", f.Rows, f.Cols, f.Rows*f.Cols, len(f.Dense))
		}
		for k, v := range f.Dense {
			if !finite(v) {
				return notFinite(k/f.Cols, k%f.Cols, v)
			}
		}
		return nil
	}
	if len(f.RowPtr) != f.Rows+1 || f.RowPtr[0] != 0 || int(f.RowPtr[f.Rows]) != len(f.Col) || len(f.Col) != len(f.Val) {
		return errors.New("sparse features have row pointers, columns and values that do not fit together")
	}
	for i := range f.Rows {
		lo, hi := f.RowPtr[i], f.RowPtr[i+1]
		if lo > hi || int(hi) > len(f.Col) {
			return fmt.Errorf("sparse features have a row pointer of node %d out of order", i)
		}
		for k := lo; k < hi; k++ {
			if f.Col[k] < 0 || int(f.Col[k]) >= f.Cols || (k > lo && f.Col[k] <= f.Col[k-1]) {
				return fmt.Errorf("sparse features of node %d have column %d out of order or range (%d columns)", i, f.Col[k], f.Cols)
			}
			if !finite(f.Val[k]) {
				return notFinite(i, int(f.Col[k]), f.Val[k])
			}
		}
	}
	return nil
}

// finite is by the exponent: of a billion features it takes a second.
func finite(v float32) bool {
	const infinite = 0xff << 23
	return math.Float32bits(v)&infinite != infinite
}

func notFinite(node, col int, v float32) error {
	return fmt.Errorf("the feature of node %d in column %d is %v; replace it with a finite number", node, col, v)
}

func denseFeatures(a *array) (*Features, error) {
	if err := a.dims(2); err != nil {
		return nil, err
	}
	f := &Features{Rows: a.shape[0], Cols: a.shape[1]}
	if f.Cols == 0 || f.Cols > maxCols {
		return nil, fmt.Errorf("%d feature columns are not supported: 1 to %d are", f.Cols, maxCols)
	}
	var err error
	if f.Dense, err = a.float32s(); err != nil {
		return nil, err
	}
	a.done()
	if err := f.Check(); err != nil {
		return nil, err
	}
	return f.compact(a.mem)
}

// Append returns the matrix with rows added, given row after row in dense form. It
// shares memory with f, which keeps its rows; only one matrix may be made of f so.
func (f *Features) Append(rows []float32) *Features {
	g := *f
	g.Rows += len(rows) / f.Cols
	if !f.IsSparse() {
		g.Dense, g.inFile = append(g.Dense, rows...), false
		return &g
	}
	for i := 0; i < len(rows); i += f.Cols {
		for j, v := range rows[i : i+f.Cols] {
			if v != 0 {
				g.Col, g.Val = append(g.Col, int32(j)), append(g.Val, v)
			}
		}
		g.RowPtr = append(g.RowPtr, int32(len(g.Col)))
	}
	return &g
}
