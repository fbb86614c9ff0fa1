package ort

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// DType is the element type of a tensor.
type DType int

// The element types that gsrc's models use. Other types of a foreign model are
// reported as Unsupported.
const (
	Unsupported DType = iota
	Float32
	Int64
	Bool
	Float64 // as inputs only
	String  // as inputs only
)

var dtypeNames = map[DType]string{Float32: "float32", Int64: "int64", Bool: "bool", Float64: "float64", String: "string"}

func (d DType) String() string { return cmp.Or(dtypeNames[d], "unsupported type") }

// Tensor is a dense row-major array. A dimension may be 0, and an empty Shape
// is a scalar.
type Tensor struct {
	DType DType
	Shape []int64
	// The elements are in the slice that DType names; the others are nil.
	F32  []float32
	I64  []int64
	Bool []bool
	F64  []float64
	Str  []string
}

// Float32s makes a float32 tensor over data, which is not copied.
func Float32s(data []float32, shape ...int64) Tensor {
	return Tensor{DType: Float32, Shape: shape, F32: data}
}

// Int64s makes an int64 tensor over data, which is not copied.
func Int64s(data []int64, shape ...int64) Tensor {
	return Tensor{DType: Int64, Shape: shape, I64: data}
}

// Bools makes a bool tensor over data, which is not copied.
func Bools(data []bool, shape ...int64) Tensor {
	return Tensor{DType: Bool, Shape: shape, Bool: data}
}

// Float64s makes a float64 tensor over data, which is not copied.
func Float64s(data []float64, shape ...int64) Tensor {
	return Tensor{DType: Float64, Shape: shape, F64: data}
}

// Strings makes a tensor of texts over data.
func Strings(data []string, shape ...int64) Tensor {
	return Tensor{DType: String, Shape: shape, Str: data}
}

// Len returns the number of elements that the data slice holds.
func (t Tensor) Len() int {
	switch t.DType {
	case Float32:
		return len(t.F32)
	case Int64:
		return len(t.I64)
	case Bool:
		return len(t.Bool)
	case Float64:
		return len(t.F64)
	case String:
		return len(t.Str)
	}
	return 0
}

// Check reports whether the number of elements fits the shape.
func (t Tensor) Check() error {
	if t.DType < Float32 || t.DType > String {
		return fmt.Errorf("a tensor of %v cannot be passed on", t.DType)
	}
	n := int64(1)
	zero := slices.Contains(t.Shape, 0)
	for _, d := range t.Shape {
		if d < 0 {
			return fmt.Errorf("shape %v has a negative dimension", t.Shape)
		}
		if !zero && n > (1<<62)/d {
			return fmt.Errorf("shape %v is too large", t.Shape)
		}
		n *= d
	}
	if n != int64(t.Len()) {
		return fmt.Errorf("shape %v needs %d elements, the tensor has %d", t.Shape, n, t.Len())
	}
	return nil
}

// IO describes an input or output of a model.
type IO struct {
	Name  string
	DType DType
	// Dims has -1 for each dimension that is known at run time only.
	Dims []int64
}

// accepts reports why t cannot be fed to this input.
func (io IO) accepts(t Tensor) error {
	if err := t.Check(); err != nil {
		return err
	}
	if t.DType != io.DType {
		return fmt.Errorf("it is %v, the model wants %v", t.DType, io.DType)
	}
	if len(t.Shape) != len(io.Dims) {
		return fmt.Errorf("its shape is %v, the model wants %s", t.Shape, dimsText(io.Dims))
	}
	for i, d := range io.Dims {
		if d >= 0 && d != t.Shape[i] {
			return fmt.Errorf("its shape is %v, the model wants %s", t.Shape, dimsText(io.Dims))
		}
	}
	return nil
}

// dimsText writes dimensions, those that are known at run time only as ?.
func dimsText(dims []int64) string { return strings.ReplaceAll(fmt.Sprint(dims), "-1", "?") }
