package parity

import (
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Every case of a batch is one that models take, also of graphs with a node each.
func TestExamplesOfTinyGraphs(t *testing.T) {
	const n = 9
	ids := ort.Int64s([]int64{0, 1, 1, 2, 3, 4, 5, 5, 6}, n)
	s := ExampleInputs{X: ort.Float32s(make([]float32, n), n, 1), Edges: ort.Int64s([]int64{1, 2, 6, 7, 2, 1, 7, 6}, 2, 4), GraphIDs: &ids}
	for _, c := range Examples(s, onnx.Dense, false) {
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if s.Check() != nil || ids.I64[8] != 6 {
		t.Error("the sample itself was changed")
	}
}
