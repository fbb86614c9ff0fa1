package runtime

import (
	"fmt"
	"unsafe"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gsrc-dev/gsrc/ir"
)

// Shape returns the dimensions, for gorgonia.
func (b *Buffer) Shape() tensor.Shape { return tensor.Shape(b.Dims) }

// Size returns the number of elements of the dense form, for gorgonia.
func (b *Buffer) Size() int { return count(b.Dims) }

// Data returns the elements ([]float32 or []int64), or the structure of a graph,
// for gorgonia.
func (b *Buffer) Data() any {
	switch {
	case b.Graph != nil:
		return b.Graph
	case b.Sparse != nil:
		return b.Sparse.Values
	case b.DType == ir.I64:
		return b.I64
	}
	return b.F32
}

// Dtype returns the element type, for gorgonia.
func (b *Buffer) Dtype() tensor.Dtype { return dtypeOf(b.DType) }

// Type returns gorgonia's type of the value.
func (b *Buffer) Type() hm.Type {
	return nodeType(ir.Type{DType: b.DType, Dims: make([]ir.Dim, len(b.Dims))})
}

// Uintptr returns the address of the first element, for gorgonia.
func (b *Buffer) Uintptr() uintptr {
	switch {
	case b.Sparse != nil:
		return uintptr(unsafe.Pointer(unsafe.SliceData(b.Sparse.Values)))
	case b.DType == ir.I64:
		return uintptr(unsafe.Pointer(unsafe.SliceData(b.I64)))
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(b.F32)))
}

// MemSize returns the size of the elements in bytes, for gorgonia.
func (b *Buffer) MemSize() uintptr {
	if b.DType == ir.I64 {
		return uintptr(8 * b.len())
	}
	return uintptr(4 * b.len())
}

// Format prints the type and, where they are few, the elements.
func (b *Buffer) Format(s fmt.State, _ rune) {
	fmt.Fprint(s, b.typeString())
	if b.Graph == nil && b.len() <= 16 {
		fmt.Fprint(s, b.Data())
	}
}

// dtypeOf is the element type in gorgonia's terms.
func dtypeOf(d ir.DType) tensor.Dtype {
	switch d {
	case ir.I64:
		return tensor.Int64
	case ir.F64:
		return tensor.Float64
	case ir.Bool:
		return tensor.Bool
	}
	return tensor.Float32
}

// nodeType is a type in gorgonia's terms, which know the rank but no sizes and
// no layouts: a graph structure counts as a matrix.
func nodeType(t ir.Type) hm.Type {
	if t.Rank() == 0 {
		return dtypeOf(t.DType)
	}
	return gorgonia.TensorType{Dims: t.Rank(), Of: dtypeOf(t.DType)}
}

// bundle is the value of an operation with several results. Gorgonia's
// operations have one, so projections pick them out of the bundle.
type bundle struct {
	*Buffer // the first result, which answers for the bundle as a gorgonia value
	outs    []*Buffer
}
