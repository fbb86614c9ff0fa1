package export

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// batchOptions exports a model of graphs on a batch that has a graph without
// edges, one of a single node and one without nodes, in no order.
func batchOptions(t testing.TB, m *ir.Module) BuildOptions {
	t.Helper()
	g := onnxtest.Graphs()[6]
	ids := make([]int64, g.N)
	var src, dst []int64
	index := g.EdgeIndex()
	e := len(index.I64) / 2
	for v := range ids {
		ids[v] = int64(v * 7 % 11)
	}
	for v := range ids { // graph 3 has one node, graph 5 none
		if ids[v] == 3 && v != 2 || ids[v] == 5 {
			ids[v] = 1
		}
	}
	ids[2] = 3
	for k := range e {
		if i, j := index.I64[k], index.I64[e+k]; ids[i] == ids[j] && ids[i] != 4 { // graph 4 has no edges
			src, dst = append(src, i), append(dst, j)
		}
	}
	n := int64(g.N)
	batch := ort.Int64s(ids, n)
	s := parity.ExampleInputs{X: ort.Float32s(onnxtest.RandomFloats("x", g.N*onnxtest.Features), n, onnxtest.Features), Edges: ort.Int64s(append(src, dst...), 2, int64(len(src))), GraphIDs: &batch}
	params := map[string][]float32{}
	for _, p := range m.Params {
		shape, err := p.Type.Shape(nil)
		if err != nil {
			t.Fatal(err)
		}
		size := 1
		for _, d := range shape {
			size *= d
		}
		params[p.Name] = onnxtest.RandomFloats(p.Name, size)
		if strings.HasSuffix(p.Name, "variance") {
			for i, v := range params[p.Name] {
				params[p.Name][i] = 0.5 + v*v
			}
		}
	}
	lib := orttest.Need(t)
	return BuildOptions{Module: m, Params: params, Sample: s, Model: m.Name, Dataset: "test", Version: "test", Classes: []string{"a", "b", "c"}, Library: &lib, Bounds: &manifest.Bounds{Lo: -0.5, Hi: 0.9}}
}

// Models of graphs, with every readout and in both lowerings, compute in onnxruntime what the
// reference does, on batches that are hard.
func TestBuildGraphs(t *testing.T) {
	o := models.Default()
	o.Features, o.Classes, o.Hidden, o.Layers, o.Norm = onnxtest.Features, 3, 5, 1, "none"
	for _, m := range models.All {
		if m.Graphs == nil {
			continue
		}
		for _, o.Readout = range ir.Readouts {
			for _, lowering := range []onnx.Lowering{onnx.DegreeBuckets, onnx.Scatter} {
				if (lowering == onnx.Scatter) != (m.Name == "sage") || m.Name != "gin" && o.Readout != "max" {
					continue // the same in the others
				}
				t.Run(m.Name+"/"+o.Readout+"/"+string(lowering), func(t *testing.T) {
					b := batchOptions(t, m.Graphs(o))
					b.Lowering = lowering
					dir := filepath.Join(t.TempDir(), "dist")
					built, report, err := Build(t.Context(), dir, b)
					if err != nil {
						t.Fatal(err)
					}
					if built.Task != manifest.TaskGraphs || len(report.Cases) < 10 {
						t.Errorf("task %q, %d cases", built.Task, len(report.Cases))
					}
					if _, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: b.Library}); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
	b := batchOptions(t, models.All[1].Graphs(o))
	b.Lowering = onnx.Dense
	if _, _, err := Build(t.Context(), t.TempDir(), b); err == nil || !strings.Contains(err.Error(), "take the degree-buckets, precomputed-buckets or scatter lowering") {
		t.Errorf("the dense form of a batch: %v", err)
	}
}

func TestBatch(t *testing.T) {
	g, err := onnx.Batch(ort.Int64s([]int64{2, 0, 2}, 3))
	if err != nil || g.N != 3 || len(g.Row) != 3 || g.Row[0] != 0 || g.Col[0] != 1 || g.Row[2] != 2 || g.Col[2] != 2 {
		t.Errorf("graph %+v, error %v", g, err)
	}
	for _, ids := range []ort.Tensor{ort.Int64s([]int64{0, -1}, 2), ort.Int64s([]int64{0, 1}, 1, 2), ort.Float32s([]float32{0}, 1)} {
		if _, err := onnx.Batch(ids); err == nil {
			t.Errorf("graph_ids %v %v is taken", ids.Shape, ids.I64)
		}
	}
}
