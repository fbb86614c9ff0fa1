package data

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/data/pickle"
)

// csrMatrix is a scipy.sparse.csr_matrix, with its arrays as the file has them: features and
// edges check them. In a pickle it is made empty, and filled by BUILD.
type csrMatrix struct {
	shape                 []int // rows and columns
	indptr, indices, data *array
}

func (*csrMatrix) Describe() string { return "a csr_matrix" }

func (c *csrMatrix) arrays() map[string]**array {
	return map[string]**array{"indptr": &c.indptr, "indices": &c.indices, "data": &c.data}
}

func (c *csrMatrix) filled() bool {
	return c.shape != nil && c.indptr != nil && c.indices != nil && c.data != nil
}

// fill reads the attributes of a csr_matrix; the ones that do not matter, such
// as maxprint, are skipped.
func (c *csrMatrix) fill(d *pickle.Dict) error {
	for i, k := range d.Keys {
		name, _ := pickle.Text(k)
		if name == "_shape" || name == "shape" {
			var err error
			if c.shape, err = dims(d.Vals[i]); err != nil {
				return err
			}
			if len(c.shape) != 2 {
				return errors.New("a csr_matrix needs two dimensions")
			}
		}
		if part := c.arrays()[name]; part != nil {
			a, ok := d.Vals[i].(*npArray)
			if !ok || a.array == nil {
				return fmt.Errorf("%s of a csr_matrix is %s", name, pickle.Describe(d.Vals[i]))
			}
			*part = a.array
		}
	}
	if !c.filled() {
		return errors.New("a csr_matrix lacks its shape, indptr, indices or data")
	}
	return nil
}

// features assembles a sparse matrix. Columns may come in any order, repeated ones are
// summed as SciPy does, and stored zeros are dropped.
func (c *csrMatrix) features() (_ *Features, err error) {
	defer caught(&err)
	if !c.filled() {
		return nil, errors.New("a csr_matrix was never filled")
	}
	rows, cols, mem := c.shape[0], c.shape[1], c.indices.mem
	if cols < 1 || cols > maxCols {
		return nil, fmt.Errorf("a sparse matrix of shape [%d,%d] is not supported: 1 to %d columns are", rows, cols, maxCols)
	}
	ptr, col, val := c.entries()
	defer mem.Shrink(8 * int64(len(ptr)))
	claim(mem, 4*int64(rows+1))
	f := &Features{Rows: rows, Cols: cols, RowPtr: make([]int32, rows+1), Col: col[:0], Val: val[:0]}
	var order []int64 // column, then place
	var sorted []float32
	for i := range rows {
		lo, hi := ptr[i], ptr[i+1]
		c, v := col[lo:hi], val[lo:hi]
		for k := range v {
			if !finite(v[k]) {
				return nil, notFinite(i, int(c[k]), v[k])
			}
		}
		if !slices.IsSorted(c) {
			order = room(mem, order[:0], len(c))
			sorted = room(mem, sorted[:0], len(c))
			for k, j := range c {
				order = append(order, int64(j)<<32|int64(k))
			}
			slices.Sort(order)
			for k, o := range order {
				c[k] = int32(o >> 32)
				sorted = append(sorted, v[int32(o)])
			}
			copy(v, sorted)
		}
		// The matrix shrinks in place: what is written never overtakes what is read.
		for k := 0; k < len(c); {
			j, sum := c[k], float32(0)
			for ; k < len(c) && c[k] == j; k++ {
				sum += v[k]
			}
			if sum != 0 {
				f.Col = append(f.Col, j)
				f.Val = append(f.Val, sum)
			}
		}
		f.RowPtr[i+1] = int32(len(f.Col))
	}
	mem.Shrink(8*int64(cap(order)) + 4*int64(cap(sorted)))
	if err := f.Check(); err != nil { // a sum may have overflowed
		return nil, err
	}
	return f, nil
}

// edges lists the entries of an adjacency matrix of n nodes. The values are
// weights unless they are all 1.
func (c *csrMatrix) edges(n int) (_ *edgeList, err error) {
	defer caught(&err)
	if c.shape[0] != n || c.shape[1] != n {
		return nil, fmt.Errorf("an adjacency matrix of %d nodes has the shape %s", n, shapeString(c.shape))
	}
	ptr, col, w := c.entries()
	e := &edgeList{src: room(c.indices.mem, []int32(nil), len(col)), dst: col}
	for u := range n {
		for range ptr[u+1] - ptr[u] {
			e.src = append(e.src, int32(u))
		}
	}
	for k, x := range w {
		if err := checkWeight(x); err != nil {
			return nil, fmt.Errorf("the edge from %d to %d: %w", e.src[k], e.dst[k], err)
		}
		if x != 1 {
			e.w = w
		}
	}
	c.indices.mem.Shrink(8 * int64(len(ptr)))
	return e, nil
}

// entries checks the arrays against the shape and one another, and takes the place of
// theirs in memory.
func (c *csrMatrix) entries() (ptr []int64, col []int32, val []float32) {
	ptr, col = c.pointers(), c.columns()
	val = vector("data", c.data, (*array).float32s)
	if len(val) != len(col) {
		failf("a sparse matrix has %d column indices but %d values", len(col), len(val))
	}
	for _, part := range c.arrays() {
		(*part).done()
	}
	return ptr, col, val
}

// vector returns the elements of an array of one dimension.
func vector[T any](name string, a *array, elements func(*array) ([]T, error)) []T {
	err := a.dims(1)
	if err == nil {
		var x []T
		if x, err = elements(a); err == nil {
			return x
		}
	}
	panic(failed{fmt.Errorf("%s: %w", name, err)})
}

func (c *csrMatrix) pointers() []int64 {
	ptr := vector("indptr", c.indptr, (*array).ints)
	rows, nnz := c.shape[0], c.indices.len()
	if len(ptr) != rows+1 {
		failf("a sparse matrix of %d rows needs %d row pointers, found %d", rows, rows+1, len(ptr))
	}
	if nnz > math.MaxInt32 {
		failf("a sparse matrix of %d entries is not supported", nnz)
	}
	if ptr[0] != 0 || ptr[rows] != int64(nnz) {
		failf("row pointers of a sparse matrix run from %d to %d, its entries from 0 to %d", ptr[0], ptr[rows], nnz)
	}
	for i := range rows {
		if ptr[i] > ptr[i+1] {
			failf("row pointers of a sparse matrix decrease at row %d", i)
		}
	}
	return ptr
}

func (c *csrMatrix) columns() []int32 {
	index := vector("indices", c.indices, (*array).ints)
	defer c.indices.mem.Shrink(8 * int64(len(index)))
	out := zeros[int32](c.indices.mem, len(index))
	for k, j := range index {
		if j < 0 || j >= int64(c.shape[1]) {
			failf("a sparse matrix of %d columns has an entry in column %d", c.shape[1], j)
		}
		out[k] = int32(j)
	}
	return out
}
