package passes_test

import (
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/optest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
)

// TestEveryOperationByRow holds passes to treat each operation that computes its rows
// apart, or its elements, as the table says, one that was just added too: constants are
// folded, rows that are not read left out, batches padded, and functions scheduled.
func TestEveryOperationByRow(t *testing.T) {
	run := func(t *testing.T, m *ir.Module, pass string, info passes.DataInfo) {
		t.Helper()
		if err := passes.Lookup(pass).Run(m, info); err != nil {
			t.Fatal(err)
		}
		if err := ir.Verify(m); err != nil {
			t.Fatal(err)
		}
	}
	blocks := func(f *ir.Func) (n int) {
		for _, op := range f.Body {
			if op.Def.Sizes {
				n++
			}
		}
		return n
	}
	matrix := ir.T(ir.F32, "N", "4")
	seen := 0
	for _, d := range ir.Ops() {
		b := ir.NewModule("m").NewFunc("f")
		if optest.ByRow(b, d, b.Arg("x", matrix)) == nil {
			continue
		}
		seen++
		t.Run(d.Name, func(t *testing.T) {
			if d.Elementwise() {
				b := ir.NewModule("m").NewFunc("f")
				b.Return("y", optest.ByRow(b, d, b.Fill(0.5, ir.T(ir.F32, "3", "4"))))
				run(t, b.Module, "fold", passes.DataInfo{})
				if name := b.Func.Results[0].Value.Def.Name(); name != "fill" {
					t.Errorf("of a constant, fold leaves %s", name)
				}
			}

			b := ir.NewModule("m").NewFunc("f")
			g, w := b.Arg("g", ir.GraphType("N", "E")), b.Arg("w", ir.T(ir.F32, "E"))
			along := func(h *ir.Value) *ir.Value { return b.One("spmm", nil, g, w, nil, h) }
			h := along(optest.ByRow(b, d, along(b.Arg("x", matrix))))
			b.Return("y", b.One("gather", nil, h, b.DynamicArg("anchors", ir.T(ir.I64, "B"))))
			run(t, b.Module, "restrict", passes.DataInfo{})
			if n := blocks(b.Func); n != 2 {
				t.Errorf("restrict follows %d layers through it, want 2\n%s", n, b.Module)
			}

			b = ir.NewModule("m").NewFunc("f")
			batch := b.DynamicArg("batch", ir.BlockType("G", "N", "N"))
			y := optest.ByRow(b, d, b.DynamicArg("x", matrix))
			b.Return("pooled", b.One("spmm", nil, batch, nil, nil, y))
			b.Return("sum", b.One("reduce_sum", ir.Attrs{"axis": "0"}, y))
			run(t, b.Module, "pad", passes.DataInfo{PadBatches: true})
			// The sum needs appended rows that are finite, if those of x are zeros.
			want := d.Finite != ir.FiniteSometimes || d.Operands[0].Moved
			if d.Elementwise() && !want {
				zero, ok := d.Scalar(y.Def.Attrs, make([]float64, len(d.Operands))...)
				want = ok && !math.IsNaN(zero) && !math.IsInf(zero, 0)
			}
			if padded := b.Func.Attrs[passes.Padded] == true; padded != want {
				t.Errorf("a function with it is padded: %v, want %v", padded, want)
			}

			run(t, b.Module, "schedule", passes.DataInfo{})
			if b.Func.Attrs[passes.Memory] != passes.Shared || !slices.Contains(b.Func.Body, y.Def) {
				t.Errorf("a function with it is not scheduled")
			}
		})
	}
	if seen < 30 {
		t.Errorf("only %d operations were tried", seen)
	}
}
