package onnx

import "testing"

// Sizes that are equal in every run have one name, others do not.
func TestNameSizes(t *testing.T) {
	b := newBuilder("sizes", "")
	x := b.input("x", "", Int64Type, named("num_nodes"))
	size := b.sizeOf(x, 0)
	more := b.binary("Add", size, b.int64s(1))
	some, others := b.nonZero(b.compare("Less", x, b.int64Const(3))), b.nonZero(b.compare("Less", x, b.int64Const(5)))
	same := map[string][]tensor{
		"as long as x": {
			b.binary("Mul", x, x), b.span(b.squeeze(size, 0)), b.filledInt(size, 0, unknown),
			b.op("Slice", Int64Type, []dim{unknown}, []tensor{b.filledInt(more, 0, unknown), b.int64s(0), size, b.int64s(0)}),
		},
		"one more":         {b.filledInt(more, 0, unknown), b.span(b.squeeze(more, 0))},
		"some":             {some, b.gather(x, some), b.binary("Add", b.gather(x, some), b.int64Const(1))},
		"others":           {others, b.gather(x, others)},
		"two more":         {b.filledInt(b.binary("Add", size, b.int64s(2)), 0, unknown)},
		"others, one more": {b.concat(0, others, b.int64s(1))},
		"some, one more":   {b.concat(0, some, b.int64s(1)), b.concat(0, b.gather(x, some), b.int64s(7))},
	}
	b.nameSizes()
	names := map[string]string{}
	for what, list := range same {
		first := dimsOf(b.infos[list[0].name])[0]
		for _, v := range list {
			if d := dimsOf(b.infos[v.name])[0]; d != first || d == unknown {
				t.Errorf("%s: the size of %s is %v, that of %s %v", what, v.name, d, list[0].name, first)
			}
		}
		if other, taken := names[first.name]; taken {
			t.Errorf("%s and %s have one name, %s", what, other, first.name)
		}
		names[first.name] = what
	}
}
