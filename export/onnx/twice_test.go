package onnx

import (
	"fmt"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// What an operation makes for its operand has one name for all that read it: each operation
// stands twice.
func TestOperationsTwice(t *testing.T) {
	for _, c := range opCases() {
		m := c.module()
		fn := m.Func("f")
		for i, op := range fn.Body {
			if op.Name() != c.op {
				continue
			}
			b := ir.NewBuilder(m, fn).At(i + 1)
			again := b.OpTyped(c.op, op.Attrs, op.ResultTypes(), op.Operands...)
			if y := again[0]; fn.Result("y") != nil && y.Type.Equal(fn.Result("y").Type) {
				b.Return("again", b.Add(y, fn.Result("y")))
			}
			break
		}
		for _, l := range []Lowering{DegreeBuckets, Scatter, Dense} {
			model, err := Model(fn, nil, ModelOptions{Lowering: l})
			if err != nil {
				continue
			}
			data, err := Marshal(model)
			if err != nil {
				t.Fatal(err)
			}
			t.Run(fmt.Sprintf("%s%v/%v/%s", c.op, c.attrs, c.args, l), func(t *testing.T) { onnxtest.Open(t, data, 1) })
		}
	}
}

// A quotient of rows, and a vector as a column, are made where they are first read. What only
// gives them another name leaves them to other readers.
func TestSameValueReadElsewhere(t *testing.T) {
	for _, first := range []bool{true, false} {
		m := ir.NewModule("same")
		b := m.NewFunc("f")
		x, g, s := b.Arg("x", nodeMatrix), b.Arg("g", theGraph), b.Arg("s", nodeVector)
		unit := b.One("l2_normalize", nil, x)
		read := func() { b.Return("square", b.One("square", nil, unit)) }
		if !first {
			read()
		}
		b.Return("dense", b.Add(b.One("to_dense", nil, unit), x))
		if first {
			read()
		}
		half := b.One("sigmoid", nil, s)
		b.Return("column", b.One("unsqueeze", nil, half))
		b.Return("sum", b.One("spmm", nil, g, nil, half, x))
		for _, o := range []ModelOptions{{Lowering: DegreeBuckets}, {Lowering: Scatter}, {Lowering: DegreeBuckets, SparseX: true}} {
			t.Run(fmt.Sprintf("%t/%s/%t", first, o.Lowering, o.SparseX), func(t *testing.T) {
				model, err := Model(m.Func("f"), nil, o)
				if err != nil {
					t.Fatal(err)
				}
				data, err := Marshal(model)
				if err != nil {
					t.Fatal(err)
				}
				session := onnxtest.Open(t, data, 1)
				g := onnxtest.Graphs()[6]
				in := map[string]ort.Tensor{"edge_index": g.EdgeIndex(), "x": ort.Float32s(onnxtest.RandomFloats("x", 4*g.N), int64(g.N), 4), "s": ort.Float32s(onnxtest.RandomFloats("s", g.N), int64(g.N))}
				want, err := Interpreter(m, nil, nil)("f", in)
				if err != nil {
					t.Fatal(err)
				}
				if o.SparseX {
					if err := AddSparse(in); err != nil {
						t.Fatal(err)
					}
				}
				onnxtest.Compare(t, g.Name, onnxtest.Run(t, session, in), want)
			})
		}
	}
}
