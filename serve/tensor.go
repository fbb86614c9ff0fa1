package serve

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/gsrc-dev/gsrc/internal/lists"
)

// The data types of the protocol that are used here.
const (
	FP32  = "FP32"
	INT64 = "INT64"
	BYTES = "BYTES" // text
)

// Tensor is one input or output. The slice of its data type has its elements, row
// after row.
type Tensor struct {
	Name     string
	Datatype string // FP32, INT64 or BYTES
	Shape    []int64
	F32      []float32
	I64      []int64
	Text     []string
}

// Length returns how many elements there are.
func (t *Tensor) Length() int {
	switch t.Datatype {
	case FP32:
		return len(t.F32)
	case INT64:
		return len(t.I64)
	}
	return len(t.Text)
}

// elements returns how many elements a shape has.
func elements(name string, shape []int64) (int, error) {
	n := int64(1)
	for _, d := range shape {
		if d < 0 {
			return 0, invalid("tensor %.60q has shape %v: dimensions are not negative", name, shape)
		}
		if d > 0 && n > math.MaxInt32/d {
			return 0, invalid("tensor %.60q of shape %v is too large", name, shape)
		}
		n *= d
	}
	return int(n), nil
}

// check tells whether data type, shape and elements fit together.
func (t *Tensor) check() error {
	switch t.Datatype {
	case FP32, INT64, BYTES:
	default:
		return invalid("tensor %.60q has data type %.60q; FP32, INT64 and BYTES are taken", t.Name, t.Datatype)
	}
	n, err := elements(t.Name, t.Shape)
	if err != nil {
		return err
	}
	for i, text := range t.Text {
		if !utf8.ValidString(text) {
			return invalid("tensor %.60q has the element %.40q at %d, which is not UTF-8", t.Name, text, i)
		}
	}
	if have := t.Length(); have != n {
		return invalid("tensor %.60q has %d elements, and its shape %v says %d", t.Name, have, t.Shape, n)
	}
	return nil
}

// finite refuses tensors with an element that is no finite number. wrong is a format for its place,
// the tensor's name and shape, and the element.
func finite(tensors []Tensor, wrong string) error {
	for _, t := range tensors {
		if k := slices.IndexFunc(t.F32, func(v float32) bool { return v-v != 0 }); k >= 0 {
			return invalid(wrong, k, t.Name, t.Shape, t.F32[k])
		}
	}
	return nil
}

// Request is what a client asks of a model.
type Request struct {
	ID     string
	Inputs []Tensor
	// Outputs names the outputs that are wanted; nil is all of them.
	Outputs []string
	// IdempotencyKey names the request where it is to take effect once, however often
	// it is sent; empty is none.
	IdempotencyKey string
}

// input returns an input by name, nil if it is not there.
func (r *Request) input(name string) *Tensor {
	if i := slices.IndexFunc(r.Inputs, func(t Tensor) bool { return t.Name == name }); i >= 0 {
		return &r.Inputs[i]
	}
	return nil
}

// fit holds a request against what a model takes. Inputs that may be left out are
// for the model to look for.
func (r *Request) fit(m *Metadata) error {
	seen := map[string]bool{}
	for i := range r.Inputs {
		t := &r.Inputs[i]
		want := find(m.Inputs, t.Name)
		switch {
		case want == nil:
			return invalid("the model %.60q has no input %.60q; it takes %s", m.Name, t.Name, inWords(m.Inputs))
		case seen[t.Name]:
			return invalid("the input %.60q is given twice", t.Name)
		case t.Datatype != want.Datatype:
			return invalid("the input %.60q has data type %.60q; the model %.60q takes %s", t.Name, t.Datatype, m.Name, want.Datatype)
		case len(t.Shape) > mostDimensions:
			return invalid("the input %.60q has more than %d dimensions", t.Name, mostDimensions)
		case len(t.Shape) != len(want.Shape):
			return invalid("the input %.60q has shape %v; the model %.60q takes %v", t.Name, t.Shape, m.Name, want.Shape)
		}
		for k, d := range want.Shape {
			if d >= 0 && d != t.Shape[k] {
				return invalid("the input %.60q has shape %v; the model %.60q takes %v (-1 varies)", t.Name, t.Shape, m.Name, want.Shape)
			}
		}
		if err := t.check(); err != nil {
			return err
		}
		seen[t.Name] = true
	}
	for i, name := range r.Outputs {
		if find(m.Outputs, name) == nil {
			return invalid("the model %.60q has no output %.60q; it gives %s", m.Name, name, inWords(m.Outputs))
		}
		if slices.Contains(r.Outputs[:i], name) {
			return invalid("the output %.60q is named twice; each is given once", name)
		}
	}
	return nil
}

// Result is what a model gives.
type Result struct {
	Outputs []Tensor
	// GraphVersion is the version of the online graph that it belongs to, 0 where it
	// depends on none.
	GraphVersion int64
}

// keep leaves the outputs that are wanted, in that order.
func (r *Result) keep(names []string) {
	if names == nil {
		return
	}
	r.Outputs = slices.DeleteFunc(r.Outputs, func(t Tensor) bool { return !slices.Contains(names, t.Name) })
	slices.SortFunc(r.Outputs, func(a, b Tensor) int { return slices.Index(names, a.Name) - slices.Index(names, b.Name) })
}

func inWords(infos []TensorInfo) string {
	return strings.Join(lists.Map(infos, func(t TensorInfo) string { return fmt.Sprintf("%s %s %v", t.Name, t.Datatype, t.Shape) }), ", ")
}
