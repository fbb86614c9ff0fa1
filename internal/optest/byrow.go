package optest

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// ByRow appends an operation that reads x, a matrix of some fixed number of columns, as
// each of its operands, and returns its result; nil if the operation takes no such
// operands, draws numbers, or does not compute each row of a matrix from that row of x.
func ByRow(b *ir.Builder, d *ir.OpDef, x *ir.Value) (y *ir.Value) {
	if d.Level != ir.TensorLevel || d.Random || len(d.Operands) == 0 || d.Operands[0].Variadic {
		return nil
	}
	attrs := ir.Attrs{}
	for _, a := range d.Attrs {
		switch {
		case a.Default != nil:
		case slices.Contains(a.OneOf, "1"): // the axis of columns
			attrs[a.Name] = "1"
		case a.Kind == ir.FloatAttr:
			attrs[a.Name] = 0.5
		case a.Kind == ir.IntAttr:
			attrs[a.Name] = 2
		}
		if a.Name == "keep" {
			attrs[a.Name] = true
		}
	}
	var operands []*ir.Value
	for _, s := range d.Operands {
		if !s.Optional {
			operands = append(operands, x)
		}
	}
	defer func() {
		if recover() != nil { // the type rule refuses it
			y = nil
		}
	}()
	results := b.OpTyped(d.Name, attrs, []ir.Type{x.Type}, operands...)
	y = results[0]
	if len(results) > 1 || y.Type.Rank() != 2 || y.Type.Dims[0] != x.Type.Dims[0] {
		return nil
	}
	for i := range operands {
		if !y.Def.ReadsSameRow(i) {
			return nil
		}
	}
	return y
}
