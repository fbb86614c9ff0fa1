package parity

import (
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// What compareRefined must not let pass.
func TestPipelineMistakes(t *testing.T) {
	model, g := onnxtest.Zoo()["ecl-gsr/struct=0/l1"], onnxtest.Graphs()[6]
	x := ort.Float32s(onnxtest.RandomFloats("x", g.N*onnxtest.Features), int64(g.N), onnxtest.Features)
	check := Options{Forward: onnx.Interpreter(model, onnxtest.Params(model), onnxtest.Bounds), Refinement: &onnx.Refinement{K: 3, Weighted: true}}
	m := Model{Classify: model.Func("classify")}
	r, err := check.refine(&m, map[string]ort.Tensor{"x": x, onnx.InputEdgeIndex: g.EdgeIndex(), onnx.InputK: ort.Int64s([]int64{3}, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n := len(r.outputs[onnx.OutputRefinedProb].F32)
	for name, change := range map[string]func(out map[string]ort.Tensor){
		"an edge that is missing": func(out map[string]ort.Tensor) {
			index := out[onnx.OutputRefinedIndex].I64
			out[onnx.OutputRefinedIndex] = ort.Int64s(slices.Concat(index[:n-1], index[n:2*n-1]), 2, int64(n-1))
			out[onnx.OutputRefinedProb] = ort.Float32s(out[onnx.OutputRefinedProb].F32[:n-1], int64(n-1))
			out[onnx.OutputRefinedExisting] = ort.Int64s(out[onnx.OutputRefinedExisting].I64[:n-1], int64(n-1))
		},
		"another edge": func(out map[string]ort.Tensor) {
			index := slices.Clone(out[onnx.OutputRefinedIndex].I64)
			index[2*n-1]++
			out[onnx.OutputRefinedIndex] = ort.Int64s(index, 2, int64(n))
		},
		"old and new": func(out map[string]ort.Tensor) {
			e := slices.Clone(out[onnx.OutputRefinedExisting].I64)
			e[n/2] = 1 - e[n/2]
			out[onnx.OutputRefinedExisting] = ort.Int64s(e, int64(n))
		},
		"a probability": func(out map[string]ort.Tensor) {
			p := slices.Clone(out[onnx.OutputRefinedProb].F32)
			p[n/2] += 1e-3
			out[onnx.OutputRefinedProb] = ort.Float32s(p, int64(n))
		},
		"a class": func(out map[string]ort.Tensor) {
			p := slices.Clone(out["logits"].F32)
			p[3] += 1e-2
			out["logits"] = ort.Float32s(p, out["logits"].Shape...)
		},
	} {
		out := map[string]ort.Tensor{}
		for k, v := range r.outputs {
			out[k] = v
		}
		change(out)
		if _, bad, err := check.compareRefined(&m, r, x, out); err != nil || bad == nil {
			t.Errorf("%s passes (%v)", name, err)
		}
	}
	if _, bad, err := check.compareRefined(&m, r, x, r.outputs); err != nil || bad != nil {
		t.Errorf("the reference does not pass: %v %v", err, bad)
	}
}
