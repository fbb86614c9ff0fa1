package export

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestWrongLengths feeds exported files with vectors that are not as long as the graph
// says. They refuse them, for onnxruntime would spread a single number, and not look at
// what is left over.
func TestWrongLengths(t *testing.T) {
	weighted := buildOptions(t, "gcn/struct=0/l1")
	m := models.Default()
	m.Features, m.Classes, m.Hidden, m.Layers, m.Norm = onnxtest.Features, 3, 5, 1, "none"
	gin, err := models.Lookup("gin")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		o      BuildOptions
		change func(*BuildOptions)
		guards map[string]string // by input
	}{
		{"buckets", weighted, func(o *BuildOptions) {}, map[string]string{onnx.InputEdgeWeight: "edge_weight_has_every_edge"}},
		{"host-buckets", weighted, func(o *BuildOptions) { o.Lowering = onnx.PrecomputedBuckets }, map[string]string{onnx.InputEdgeWeight: "edge_weight_has_every_edge"}},
		{"flat", weighted, func(o *BuildOptions) { o.Lowering = onnx.Scatter }, map[string]string{onnx.InputEdgeWeight: "edge_weight_has_every_edge"}},
		{"symmetrize", weighted, func(o *BuildOptions) { o.Symmetrize = true }, map[string]string{onnx.InputEdgeWeight: "edge_weight_has_every_edge"}},
		{"sparse-x", weighted, func(o *BuildOptions) { o.SparseX = true }, map[string]string{onnx.InputValues: "x_values_has_every_entry"}},
		{"graphs", batchOptions(t, gin.Graphs(m)), func(o *BuildOptions) {}, map[string]string{onnx.InputGraphIDs: "graph_ids_has_every_node"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := test.o
			test.change(&o)
			dir := filepath.Join(t.TempDir(), "dist")
			manifest, _, err := Build(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			info := manifest.Models["classifier"]
			s, err := ort.Open(filepath.Join(dir, info.File), ort.Options{Provider: ort.CPU, Library: o.Library})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			good, err := manifest.TestTensors(info.TestData, "input", info.Inputs)
			if err != nil {
				t.Fatal(err)
			}
			onnxtest.Run(t, s, good)
			for input, guard := range test.guards {
				n := int(good[input].Shape[0])
				for _, length := range []int{0, 1, n - 1, n + 1} {
					in, bad := maps.Clone(good), good[input]
					bad.Shape = []int64{int64(length)}
					if bad.F32 != nil {
						bad.F32 = append(bad.F32[:n:n], 1)[:length]
					} else {
						bad.I64 = append(bad.I64[:n:n], 1)[:length]
					}
					in[input] = bad
					if _, err := s.Run(in); err == nil || !strings.Contains(err.Error(), guard) {
						t.Errorf("%s of %d numbers, not %d: %v, want an error of %s", input, length, n, err, guard)
					}
				}
			}
		})
	}
}
