package onnx

import (
	"fmt"
	"maps"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The features of most graphs are words that a document has or has not: nearly all
// of a dense x is zeros, and the product with the first weight is most of the time
// of a call. With ModelOptions.SparseX they are a matrix in CSR, as SciPy has it,
// and that product sums the weight's rows that a node's features name, in buckets
// as sums over edges are.

// sparseArg is the argument that can be given in CSR, and the inputs that it
// becomes.
const (
	SparseArg    = "x"
	InputIndptr  = "x_indptr"
	InputIndices = "x_indices"
	InputValues  = "x_values"
)

// sparseRows is a matrix [N,D] in CSR.
type sparseRows struct {
	b           *builder
	rows        tensor // int64 [1]: N
	nodeDim     dim
	columns     int
	row, column tensor // of each entry, int64 [S]
	values      tensor // float32 [S]
	count, ptr  tensor // entries of each row, and where they begin, int64 [N]
	sums        *bucketSum
}

// sparseInput declares the inputs of an argument in CSR.
func (e *emitter) sparseInput(a *ir.Value, o ModelOptions) {
	columns, ok := a.Type.Dims[len(a.Type.Dims)-1].Size()
	if e.dense() || a.Type.Rank() != 2 || !ok || a.Type.DType != ir.F32 {
		panic(emitErrorf("@%s: argument %s is %s, which cannot be taken in CSR with the lowering %s; float32 matrices of a fixed width can, with degree-buckets, precomputed-buckets and scatter", e.fn.Name, a.Name, a.Type, e.lowering))
	}
	b := e.builder
	indptr := b.input(InputIndptr, o.Docs[InputIndptr], Int64Type, named("num_nodes_plus_1"))
	x := &sparseRows{b: b, columns: columns, nodeDim: e.dim(a.Type.Dims[0])}
	x.column = b.input(InputIndices, o.Docs[InputIndices], Int64Type, named("num_stored"))
	x.values = b.input(InputValues, o.Docs[InputValues], float32Type, named("num_stored"))
	b.in("features", func() {
		x.values = b.ofLength(x.values, b.sizeOf(x.column, 0), "x_values_has_every_entry", "fails where x_values is not as long as x_indices")
		n := b.rename(b.binary("Sub", b.sizeOf(indptr, 0), b.int64Const(1)), "nodes/count", "number of nodes")
		indptr = x.checked(indptr, n)
		x.rows = n
		part := func(from, to tensor) tensor {
			return b.op("Slice", Int64Type, []dim{x.nodeDim}, []tensor{indptr, from, to, b.int64s(0)})
		}
		x.ptr = part(b.int64s(0), n)
		x.count = b.binary("Sub", part(b.int64s(1), b.binary("Add", n, b.int64Const(1))), x.ptr)
		// The row of each entry is the number of rows that begin up to it.
		stored := b.sizeOf(x.column, 0)
		marks := b.scatterAdd(b.filledInt(b.binary("Add", stored, b.int64Const(1)), 0, unknown), x.ptr, b.filledInt(n, 1, x.nodeDim))
		begun := b.op("CumSum", Int64Type, []dim{unknown}, []tensor{marks, b.int64Const(0)})
		begun = b.op("Slice", Int64Type, x.column.dims, []tensor{begun, b.int64s(0), stored, b.int64s(0)})
		x.row = b.binary("Sub", begun, b.int64Const(1))
	})
	e.values[a] = value{sparse: x}
	if e.nodes == nil && a.Type.Dims[0] == e.nodeDim() {
		e.nodes = &x.rows
	}
}

// checked returns indptr, and makes column what the file refuses to read where rows do
// not follow each other up to the entries there are, or a column is not one of x.
func (x *sparseRows) checked(indptr, n tensor) tensor {
	b := x.b
	stored := b.sizeOf(x.column, 0)
	all := b.concat(0, b.int64s(0), indptr, stored)
	all.dims = []dim{unknown}
	size := b.binary("Add", n, b.int64Const(2))
	part := func(from int64) tensor {
		return b.op("Slice", Int64Type, all.dims, []tensor{all, b.int64s(from), b.binary("Add", size, b.int64Const(from)), b.int64s(0)})
	}
	least := b.reduceOp("ReduceMin", b.binary("Sub", part(1), part(0)), []int64{0}, true, fixed(1))
	first := b.op("Slice", Int64Type, []dim{fixed(1)}, []tensor{indptr, b.int64s(0), b.int64s(1), b.int64s(0)})
	last := b.op("Slice", Int64Type, []dim{fixed(1)}, []tensor{indptr, n, b.binary("Add", n, b.int64Const(1)), b.int64s(0)})
	whole := b.op("And", boolType, []dim{fixed(1)}, []tensor{b.compare("Equal", first, b.int64Const(0)), b.compare("Equal", last, stored)})
	wrong := b.either(b.compare("Less", least, b.int64Const(0)), b.op("Not", boolType, []dim{fixed(1)}, []tensor{whole}))
	zero := b.refusal(wrong, "x_indptr_counts_the_entries", "fails where x_indptr does not rise from 0 to the number of entries")
	outside := b.outside(x.column, b.int64s(int64(x.columns)))
	zero = b.binary("Add", zero, b.refusal(outside, "x_indices_are_within_the_columns", "fails where x_indices holds a number that no column has"))
	dims := x.column.dims
	x.column = b.binary("Add", x.column, zero)
	x.column.dims = dims
	dims = indptr.dims
	indptr = b.binary("Add", indptr, zero)
	indptr.dims = dims
	return indptr
}

// buckets returns the tables of the rows. Entries are in order already, so nothing
// is sorted.
func (x *sparseRows) buckets() *bucketSum {
	if x.sums != nil {
		return x.sums
	}
	b := x.b
	l := &edgeList{b: b, src: x.column, dst: x.row, into: x.row, nodes: x.rows, sources: b.int64s(int64(x.columns)), nodeDim: x.nodeDim}
	b.in("features", func() {
		x.sums = bucketsOver(l, func() tables {
			t := tables{count: x.count, widths: featureWidths}
			var c classes
			b.in("layout", func() { c = layOut(b, t.count, featureWidths) })
			t.orderRows = c.rows
			stored := b.sizeOf(x.column, 0)
			number := b.span(b.squeeze(stored, 0))
			number.dims = x.column.dims
			place := b.binary("Add", b.gather(b.binary("Sub", c.start, x.ptr), x.row), number)
			t.order = b.op("ScatterElements", Int64Type, []dim{unknown}, []tensor{b.op("Expand", Int64Type, []dim{unknown}, []tensor{stored, c.size}), place, number}, intAttr("axis", 0))
			b.in("hubs", func() { buildSegments(b, &t, c) })
			return t
		})
	})
	return x.sums
}

// times is the product with a matrix [D,F].
func (x *sparseRows) times(w tensor) tensor { return x.buckets().sum(w, &x.values) }

// norm returns the p-norms of the rows, [N,1].
func (x *sparseRows) norm(p int) tensor {
	b := x.b
	of := b.unary("Abs", x.values)
	if p == 2 {
		of = b.binary("Mul", x.values, x.values)
	}
	sum := x.buckets().total(b.unsqueeze(of, 1))
	if p == 2 {
		return b.unary("Sqrt", sum)
	}
	return sum
}

// dense returns the matrix [N,D], for what has no sparse form.
func (x *sparseRows) dense() tensor {
	b := x.b
	width := b.int64Const(int64(x.columns))
	at := b.binary("Add", b.binary("Mul", x.row, width), x.column)
	flat := b.scatterAdd(b.filledFloat(b.binary("Mul", x.rows, width), 0, unknown), at, x.values)
	return b.reshape(flat, b.int64s(-1, int64(x.columns)), x.nodeDim, fixed(x.columns))
}

// Sparse returns a dense matrix, float32 [N,D], as models with features in CSR take
// it: x_indptr, x_indices and x_values by name.
func Sparse(x ort.Tensor) (map[string]ort.Tensor, error) {
	if err := x.Check(); err != nil {
		return nil, fmt.Errorf("x: %w", err)
	}
	if x.DType != ort.Float32 || len(x.Shape) != 2 {
		return nil, fmt.Errorf("x is %v of shape %v, want float32 [N,D]", x.DType, x.Shape)
	}
	indptr := []int64{0}
	indices, values := []int64{}, []float32{}
	width := int(x.Shape[1])
	for i := range int(x.Shape[0]) {
		for j, v := range x.F32[i*width : (i+1)*width] {
			if v != 0 {
				indices, values = append(indices, int64(j)), append(values, v)
			}
		}
		indptr = append(indptr, int64(len(indices)))
	}
	return map[string]ort.Tensor{InputIndptr: ort.Int64s(indptr, int64(len(indptr))),
		InputIndices: ort.Int64s(indices, int64(len(indices))), InputValues: ort.Float32s(values, int64(len(values)))}, nil
}

// AddSparse puts the features in CSR beside x, and takes x away.
func AddSparse(in map[string]ort.Tensor) error {
	parts, err := Sparse(in[SparseArg])
	if err != nil {
		return err
	}
	delete(in, SparseArg)
	maps.Copy(in, parts)
	return nil
}
