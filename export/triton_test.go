package export

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/internal/tritonpb"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"google.golang.org/protobuf/encoding/prototext"
)

// What is written is a model repository by Triton's own schema, with the inputs and
// outputs of the files.
func TestTriton(t *testing.T) {
	for _, l := range []onnx.Lowering{onnx.DegreeBuckets, onnx.PrecomputedBuckets, onnx.Dense} {
		d, _ := openDist(t, "ecl-gsr/struct=3/l1", func(o *BuildOptions) {
			o.Lowering, o.Classes[0] = l, "a \"class\"\n\\ünicode"
			if l == onnx.DegreeBuckets {
				o.ExternalData = 1 << 10
			}
		})
		dir := filepath.Join(t.TempDir(), "repository")
		for range 2 { // the second replaces the first
			if err := WriteTriton(d.Manifest.Dir, dir); err != nil {
				t.Fatal(err)
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) != len(d.Manifest.Models) {
			t.Errorf("%d models, want %d", len(entries), len(d.Manifest.Models))
		}
		for role, info := range d.Manifest.Models {
			name := TritonName(d.Manifest, role)
			text, err := os.ReadFile(filepath.Join(dir, name, "config.pbtxt"))
			if err != nil {
				t.Fatal(err)
			}
			var c tritonpb.ModelConfig
			if err := prototext.Unmarshal(text, &c); err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if c.Name != name || c.Backend != "onnxruntime" || c.MaxBatchSize != 0 || c.DefaultModelFilename != "model.onnx" {
				t.Errorf("configuration of %s: %v", role, &c)
			}
			if labels := c.Parameters["class_labels"].GetStringValue(); !strings.Contains(labels, `ünicode`) {
				t.Errorf("class labels %s", labels)
			}
			if len(c.Input) != len(info.Inputs) || len(c.Output) != len(info.Outputs) {
				t.Fatalf("%d inputs and %d outputs, want %d and %d", len(c.Input), len(c.Output), len(info.Inputs), len(info.Outputs))
			}
			check := func(want manifest.IOInfo, name string, kind tritonpb.DataType, dims []int64) {
				t.Helper()
				var shape []int64
				for _, x := range want.Shape {
					n := int64(-1)
					if f, ok := x.(float64); ok {
						n = int64(f)
					}
					shape = append(shape, n)
				}
				wantKind := map[string]tritonpb.DataType{"float32": tritonpb.DataType_TYPE_FP32, "int64": tritonpb.DataType_TYPE_INT64}[want.DType]
				if name != want.Name || kind != wantKind || !slices.Equal(dims, shape) {
					t.Errorf("%s of %s is %v %v, want %v", name, role, kind, dims, want)
				}
			}
			for i, in := range c.Input {
				check(info.Inputs[i], in.Name, in.DataType, in.Dims)
			}
			for i, out := range c.Output {
				check(info.Outputs[i], out.Name, out.DataType, out.Dims)
			}
			for from, to := range map[string]string{info.File: "model.onnx", info.Data: info.Data} {
				if from == "" {
					continue
				}
				want, err := os.ReadFile(filepath.Join(d.Manifest.Dir, from))
				if err != nil {
					t.Fatal(err)
				}
				got, err := os.ReadFile(filepath.Join(dir, name, "1", to))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s is not the export's %s: %v", to, from, err)
				}
			}
		}
	}
	// A field that the schema lacks, as a slip would write it, is found.
	if prototext.Unmarshal([]byte(`name: "x" max_batch: 0`), &tritonpb.ModelConfig{}) == nil {
		t.Error("any field passes")
	}
	strange := t.TempDir()
	if err := os.WriteFile(filepath.Join(strange, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, _ := openDist(t, "ecl-gsr/struct=3/l1", nil)
	if err := WriteTriton(d.Manifest.Dir, strange); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("a folder of something else was replaced: %v", err)
	}
}
