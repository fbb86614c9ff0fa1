package parity

import (
	"maps"
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

// Where @probability chooses among the candidates of a node, what is as near as the k-th may be chosen
// in one computation and not in another; nothing else may.
func TestChoicesOfProbability(t *testing.T) {
	model, g := onnxtest.Zoo()["sublime/struct=0/l1"], onnxtest.Graphs()[6]
	x := ort.Float32s(onnxtest.RandomFloats("x", g.N*onnxtest.Features), int64(g.N), onnxtest.Features)
	check := Options{Forward: onnx.Interpreter(onnx.WithMargins(model), onnxtest.Params(model), onnxtest.Bounds), Refinement: &onnx.Refinement{K: 3, Weighted: true, Together: true, Threshold: 0.001}}
	m := Model{Classify: model.Func("classify")}
	r, err := check.refine(&m, map[string]ort.Tensor{"x": x, onnx.InputEdgeIndex: g.EdgeIndex(), onnx.InputK: ort.Int64s([]int64{3}, 1)})
	if err != nil {
		t.Fatal(err)
	}
	pairs := len(r.candidates.Edges)
	if len(r.chosen) != 1 || len(r.chosen[0]) != 2*pairs {
		t.Fatalf("margins of %d choices among %d candidates", len(r.chosen), pairs)
	}
	for i := range pairs {
		if taken := r.chosen[0][i] >= 0 || r.chosen[0][pairs+i] >= 0; !taken && r.probability[i] > 0 {
			t.Errorf("candidate %d has the probability %g, and no node of it takes it", i, r.probability[i])
		}
	}
	r.last = slices.Repeat([]float64{2}, g.N) // as if the search had been clear
	index, n := r.outputs[onnx.OutputRefinedIndex].I64, len(r.outputs[onnx.OutputRefinedProb].F32)
	at, c, other := 0, 0, -1 // an edge, and another candidate of its second node
	for ; other < 0; at++ {
		c, _ = r.find(index[at], index[n+at])
		other = slices.IndexFunc(r.candidates.Edges, func(e [2]int32) bool {
			return e != r.candidates.Edges[c] && e[1] == r.candidates.Edges[c][1]
		})
	}
	at--
	lacking, halved := maps.Clone(r.outputs), maps.Clone(r.outputs)
	p, existing := r.outputs[onnx.OutputRefinedProb].F32, r.outputs[onnx.OutputRefinedExisting].I64
	lacking[onnx.OutputRefinedIndex] = ort.Int64s(slices.Delete(slices.Delete(slices.Clone(index), n+at, n+at+1), at, at+1), 2, int64(n-1))
	lacking[onnx.OutputRefinedExisting] = ort.Int64s(slices.Delete(slices.Clone(existing), at, at+1), int64(n-1))
	lacking[onnx.OutputRefinedProb] = ort.Float32s(slices.Delete(slices.Clone(p), at, at+1), int64(n-1))
	p = slices.Clone(p)
	p[at] /= 2
	halved[onnx.OutputRefinedProb] = ort.Float32s(p, int64(n))
	for _, near := range []struct {
		own, other float32
		passes     bool
	}{{1, 1, false}, {1e-7, 1, false}, {1e-7, -1e-7, true}} {
		for i := range r.chosen[0] {
			r.chosen[0][i] = 1
		}
		r.chosen[0][c], r.chosen[0][other] = near.own, near.other
		if r.margin = nil; r.clear(0) != (near.own == 1) {
			t.Errorf("margins %g and %g are clear: %v", near.own, near.other, r.clear(0))
		}
		for name, out := range map[string]map[string]ort.Tensor{"an edge lacks": lacking, "half the probability": halved} {
			classes, err := check.classifyRefined(&m, x, out[onnx.OutputRefinedIndex], out[onnx.OutputRefinedProb].F32)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(out, classes)
			if _, bad, err := check.compareRefined(&m, r, x, out); err != nil || (bad == nil) != near.passes {
				t.Errorf("%s, margins %g and %g: %v, %v", name, near.own, near.other, bad, err)
			}
		}
	}
}
