package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// DType is the element type of a tensor.
type DType uint8

// The element types.
const (
	F32 DType = iota
	F64
	I64
	Bool
)

var dtypeNames = [...]string{F32: "f32", F64: "f64", I64: "i64", Bool: "bool"}

func (d DType) String() string { return dtypeNames[d] }

// IsFloat reports whether d is f32 or f64.
func (d DType) IsFloat() bool { return d == F32 || d == F64 }

// Dim is one dimension: a size ("128"), a symbol ("N") or a sum of those
// ("N+E"). Symbols are bound when a function is called.
type Dim string

// D returns the dimension of a fixed size.
func D(n int) Dim { return Dim(strconv.Itoa(n)) }

// Size returns the size of a fixed dimension.
func (d Dim) Size() (int, bool) {
	n, err := strconv.Atoi(string(d))
	return n, err == nil && n >= 0
}

// Resolve returns the size of d under the bindings of its symbols.
func (d Dim) Resolve(bind map[string]int) (int, error) {
	if n, ok := d.Size(); ok {
		return n, nil
	}
	// A sum may be bound as a whole, by an argument that has it as a dimension
	// before its symbols are known.
	whole, bound := bind[string(d)]
	total, parts := 0, strings.Split(string(d), "+")
	if len(parts) == 1 && !bound {
		return 0, fmt.Errorf("dimension %s has no value", d)
	}
	if len(parts) == 1 {
		return whole, nil
	}
	for _, part := range parts {
		n, err := Dim(part).Resolve(bind)
		if err != nil && bound {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		if total += n; total < 0 {
			return 0, fmt.Errorf("dimension %s is too large", d)
		}
	}
	return total, nil
}

// Layout says how a value is stored.
type Layout uint8

// The layouts. A CSR tensor is an f32 matrix of which only the stored entries
// are kept; it means the same matrix as a dense one. A Structure is the edge
// structure of a graph: entries (target row, source column) sorted by target,
// without self-loops. Its edge values are separate tensors f32[E].
const (
	Dense Layout = iota
	CSR
	Structure
)

// Type is the type of a value.
type Type struct {
	DType  DType
	Layout Layout
	Dims   []Dim
}

// T returns a dense tensor type.
func T(d DType, dims ...Dim) Type { return Type{DType: d, Dims: dims} }

// Scalar is f32[].
func Scalar() Type { return T(F32) }

// GraphType returns graph<n,e>: n nodes, e directed entries.
func GraphType(n, e Dim) Type { return Type{Layout: Structure, Dims: []Dim{n, e}} }

// BlockType returns graph<t,e,s>: e entries from s sources into t targets, which
// are the first t of the sources. It is what one layer needs that computes some
// nodes only.
func BlockType(t, e, s Dim) Type { return Type{Layout: Structure, Dims: []Dim{t, e, s}} }

// Targets, Entries and Sources return the dimensions of a graph; the sources of
// a whole graph are its targets.
func (t Type) Targets() Dim { return t.Dims[0] }

// Entries is the number of entries: see Targets.
func (t Type) Entries() Dim { return t.Dims[1] }

// Sources is the number of sources: see Targets.
func (t Type) Sources() Dim {
	if t.IsBlock() {
		return t.Dims[2]
	}
	return t.Dims[0]
}

// IsBlock reports whether t is graph<t,e,s>.
func (t Type) IsBlock() bool { return t.IsGraph() && len(t.Dims) == 3 }

// IsGraph reports whether t is a graph structure.
func (t Type) IsGraph() bool { return t.Layout == Structure }

// Rank returns the number of dimensions of a tensor.
func (t Type) Rank() int { return len(t.Dims) }

// Equal reports whether two types are the same.
func (t Type) Equal(o Type) bool {
	return t.DType == o.DType && t.Layout == o.Layout && slices.Equal(t.Dims, o.Dims)
}

// SameShape reports whether two types have the same dimensions.
func (t Type) SameShape(o Type) bool {
	t.DType, t.Layout = o.DType, o.Layout
	return t.Equal(o)
}

// WithDims returns t with other dimensions, dense.
func (t Type) WithDims(dims ...Dim) Type { return Type{DType: t.DType, Dims: dims} }

func (t Type) String() string {
	dims := make([]string, len(t.Dims))
	for i, d := range t.Dims {
		dims[i] = string(d)
	}
	list := strings.Join(dims, ",")
	switch t.Layout {
	case Structure:
		return "graph<" + list + ">"
	case CSR:
		return "csr[" + list + "]"
	}
	return t.DType.String() + "[" + list + "]"
}

// Shape resolves the dimensions of t.
func (t Type) Shape(bind map[string]int) ([]int, error) {
	s := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		n, err := d.Resolve(bind)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		s[i] = n
	}
	return s, nil
}
