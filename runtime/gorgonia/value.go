package gorgonia

import (
	"unsafe"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// value is a buffer as it travels along an edge of a gorgonia graph. Gorgonia's
// operations have one result: the first of an operation that has several comes
// with all of them, out of which projections pick.
type value struct {
	*runtime.Buffer
	all []*value
}

func (v *value) Shape() tensor.Shape { return tensor.Shape(v.Dims) }

// Data returns the elements ([]float32 or []int64), or the structure of a graph.
func (v *value) Data() any {
	switch {
	case v.Graph != nil:
		return v.Graph
	case v.Sparse != nil:
		return v.Sparse.Values
	case v.DType == ir.I64:
		return v.I64
	}
	return v.F32
}

func (v *value) Dtype() tensor.Dtype { return dtypes[v.DType] }

func (v *value) Type() hm.Type {
	return nodeType(ir.Type{DType: v.DType, Dims: make([]ir.Dim, len(v.Dims))})
}

// Uintptr returns the address of the first element.
func (v *value) Uintptr() uintptr {
	switch data := v.Data().(type) {
	case []float32:
		return uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	case []int64:
		return uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	}
	return 0
}

// dtypes are the element types in gorgonia's terms.
var dtypes = map[ir.DType]tensor.Dtype{ir.F32: tensor.Float32, ir.F64: tensor.Float64, ir.I64: tensor.Int64, ir.Bool: tensor.Bool}

// nodeType is a type in gorgonia's terms, which know the rank but no sizes and
// no layouts: a graph structure counts as a matrix.
func nodeType(t ir.Type) hm.Type {
	if t.Rank() == 0 {
		return dtypes[t.DType]
	}
	return gorgonia.TensorType{Dims: t.Rank(), Of: dtypes[t.DType]}
}
