package runtime

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Buffer is a value that programs read and write. Exactly one of its four
// payloads is meant, according to the type of the argument that it is bound to:
//
//	f32[A,B]     Dims = [A B], F32 row-major, len A·B
//	i64[A]       Dims = [A], I64
//	csr[A,B]     Dims = [A B], Sparse
//	graph<N,E>   Graph; Dims is [N E], of a block [targets entries sources]
//
// A scalar has no dimensions and one element.
type Buffer struct {
	DType  ir.DType
	Dims   []int
	F32    []float32
	I64    []int64
	Sparse *SparseMatrix
	Graph  *graph.Structure

	file *scratch.Ahead // where rows lie in a file that memory may lack room for

	// Device is where the payload lies on a device that has a memory of its own.
	Device DevicePtr
	res    *deviceAllocation // what that device's memory knows of it
}

// SparseMatrix is an f32 matrix of which only the stored entries are kept. Its
// structure is shared between matrices that differ in values alone.
type SparseMatrix struct {
	ByRow  *kernels.CSR // entries by row; Perm is nil, entry e has Values[e]
	ByCol  *kernels.CSR // the transpose; Perm gives each entry's place in Values
	Values []float32

	stored int // where only sizes are known: the number of entries
}

// F32 returns a tensor buffer on the given elements, which are not copied. It
// panics when their number is not that of the dimensions: a programming error.
func F32(data []float32, dims ...int) *Buffer {
	b := &Buffer{DType: ir.F32, Dims: slices.Clone(dims), F32: data}
	if err := b.check(); err != nil {
		panic("runtime.F32: " + err.Error())
	}
	return b
}

// I64 returns an integer tensor buffer on the given elements, which are not
// copied. It panics when their number is not that of the dimensions.
func I64(data []int64, dims ...int) *Buffer {
	b := &Buffer{DType: ir.I64, Dims: slices.Clone(dims), I64: data}
	if err := b.check(); err != nil {
		panic("runtime.I64: " + err.Error())
	}
	return b
}

// Scalar returns a buffer of type f32[].
func Scalar(v float32) *Buffer { return F32([]float32{v}) }

// Zeros returns a tensor buffer of zeros.
func Zeros(dims ...int) *Buffer { return F32(make([]float32, count(dims)), dims...) }

// Graph returns a buffer on a graph structure, which is not copied. Bind it again
// after the structure was rebuilt.
func Graph(s *graph.Structure) *Buffer {
	return &Buffer{DType: ir.F32, Dims: []int{s.N, s.E}, Graph: s}
}

// Block returns a buffer on the structure of a block, graph<targets,entries,sources>,
// which is not copied. Bind it again after the structure was rebuilt.
func Block(s *graph.Structure) *Buffer {
	b := &Buffer{DType: ir.F32, Dims: []int{s.N, s.E, 0}, Graph: s}
	if s.In != nil {
		b.Dims[2] = s.In.Cols
	}
	return b
}

// Sparse returns a buffer on a sparse matrix: the entries of row r are
// rowPtr[r] ≤ e < rowPtr[r+1], entry e has column col[e] and value values[e]. The
// slices are not copied; the transposed structure is computed here. It returns
// an error when the structure is malformed.
func Sparse(rows, cols int, rowPtr, col []int32, values []float32) (*Buffer, error) {
	s := &kernels.CSR{Rows: rows, Cols: cols, RowPtr: rowPtr, Col: col}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("runtime: %w", err)
	}
	if len(values) != len(col) {
		return nil, fmt.Errorf("runtime: sparse matrix has %d entries and %d values", len(col), len(values))
	}
	m := &SparseMatrix{ByRow: s, ByCol: kernels.Transpose(s), Values: values}
	return &Buffer{DType: ir.F32, Dims: []int{rows, cols}, Sparse: m}, nil
}

// count returns the number of elements of a dense tensor.
func count(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Size returns the number of elements of the dense form.
func (b *Buffer) Size() int { return count(b.Dims) }

// MemSize returns the size of the stored elements in bytes.
func (b *Buffer) MemSize() uintptr {
	if b.DType == ir.I64 {
		return uintptr(8 * b.len())
	}
	return uintptr(4 * b.len())
}

// Format prints the type and, where they are few, the elements.
func (b *Buffer) Format(s fmt.State, _ rune) {
	fmt.Fprint(s, b.typeString())
	switch {
	case b.Graph != nil || b.len() > 16:
	case b.Sparse != nil:
		fmt.Fprint(s, b.Sparse.Values)
	case b.DType == ir.I64:
		fmt.Fprint(s, b.I64)
	default:
		fmt.Fprint(s, b.F32)
	}
}

// len returns the number of elements that are stored.
func (b *Buffer) len() int {
	switch {
	case b.Sparse != nil:
		return max(len(b.Sparse.Values), b.Sparse.stored)
	case b.Graph != nil:
		return 0
	}
	return count(b.Dims)
}

// rows and cols view a dense tensor as a matrix: a vector as one row, a scalar
// as one element.
func (b *Buffer) rows() int { rows, _ := Matrix(b.Dims); return rows }

func (b *Buffer) cols() int { _, cols := Matrix(b.Dims); return cols }

// RowWidth returns the number of elements that an index stands for.
func (b *Buffer) RowWidth() int {
	if len(b.Dims) == 2 {
		return b.Dims[1]
	}
	return 1
}

// Matrix returns dimensions as those of a matrix: a vector is one row.
func Matrix(dims []int) (rows, cols int) {
	switch len(dims) {
	case 2:
		return dims[0], dims[1]
	case 1:
		return 1, dims[0]
	}
	return 1, 1
}

// check reports a payload that does not fit the dimensions.
func (b *Buffer) check() error {
	for _, d := range b.Dims {
		if d < 0 {
			return fmt.Errorf("negative dimension in %v", b.Dims)
		}
	}
	switch {
	case b.Graph != nil:
		if g := b.Graph; len(b.Dims) < 2 || b.Dims[0] != g.N || b.Dims[1] != g.E || len(b.Dims) == 3 && b.Dims[2] != g.In.Cols {
			return fmt.Errorf("the graph structure has %d nodes and %d entries, the buffer says %v: bind a structure again after rebuilding it", g.N, g.E, b.Dims)
		}
	case b.Sparse != nil:
		s := b.Sparse
		if len(b.Dims) != 2 || s.ByRow.Rows != b.Dims[0] || s.ByRow.Cols != b.Dims[1] || b.len() != s.ByRow.NNZ() {
			return fmt.Errorf("the sparse matrix is [%d,%d] with %d entries and %d values, the buffer says %v", s.ByRow.Rows, s.ByRow.Cols, s.ByRow.NNZ(), len(s.Values), b.Dims)
		}
	case b.OnDevice():
	case b.DType == ir.F32:
		if n := count(b.Dims); n != len(b.F32) {
			return fmt.Errorf("dimensions %v are %d elements, got %d", b.Dims, n, len(b.F32))
		}
	case b.DType == ir.I64:
		if n := count(b.Dims); n != len(b.I64) {
			return fmt.Errorf("dimensions %v are %d elements, got %d", b.Dims, n, len(b.I64))
		}
	default:
		return fmt.Errorf("element type %s is not supported; buffers hold f32 and i64", b.DType)
	}
	return nil
}

// fits reports a buffer that cannot be a value of the type, its sizes aside.
func (b *Buffer) fits(t ir.Type) error {
	ok := b.Graph == nil && b.Sparse == nil && t.Layout == ir.Dense && b.DType == t.DType
	ok = ok || b.Graph != nil && t.IsGraph() || b.Sparse != nil && t.Layout == ir.CSR
	switch {
	case ok:
		return b.check()
	case b.Graph != nil:
		return fmt.Errorf("it is %s, got a graph", t)
	case b.Sparse != nil:
		return fmt.Errorf("it is %s, got a sparse matrix", t)
	}
	return fmt.Errorf("it is %s, got a dense tensor of %s", t, b.DType)
}

// typeString writes the type with its sizes, for errors.
func (b *Buffer) typeString() string {
	if b == nil {
		return "_"
	}
	t := ir.Type{DType: b.DType}
	for _, d := range b.Dims {
		t.Dims = append(t.Dims, ir.D(d))
	}
	switch {
	case b.Graph != nil:
		t.Layout = ir.Structure
	case b.Sparse != nil:
		t.Layout = ir.CSR
	}
	return t.String()
}
