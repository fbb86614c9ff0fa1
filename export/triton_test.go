package export

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// tritonTensor is a ModelInput or a ModelOutput.
type tritonTensor struct {
	Name     string   `json:"name"`
	DataType string   `json:"dataType"`
	Dims     []string `json:"dims"`
}

// tritonModelConfig reads a model's configuration by Triton's own schema.
func tritonModelConfig(t *testing.T, text []byte) (c struct {
	Name                 string                                  `json:"name"`
	Backend              string                                  `json:"backend"`
	MaxBatchSize         int                                     `json:"maxBatchSize"`
	DefaultModelFilename string                                  `json:"defaultModelFilename"`
	Parameters           map[string]struct{ StringValue string } `json:"parameters"`
	Input, Output        []tritonTensor
}, err error) {
	t.Helper()
	schema, err := os.ReadFile("testdata/model_config.txtpb")
	if err != nil {
		t.Fatal(err)
	}
	var d descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal(schema, &d); err != nil {
		t.Fatal(err)
	}
	file, err := protodesc.NewFile(&d, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(file.Messages().ByName("ModelConfig"))
	if err := prototext.Unmarshal(text, m); err != nil {
		return c, err
	}
	b, err := protojson.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return c, json.Unmarshal(b, &c)
}

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
			c, err := tritonModelConfig(t, text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if c.Name != name || c.Backend != "onnxruntime" || c.MaxBatchSize != 0 || c.DefaultModelFilename != "model.onnx" {
				t.Errorf("configuration of %s: %v", role, c)
			}
			if labels := c.Parameters["class_labels"].StringValue; !strings.Contains(labels, `ünicode`) {
				t.Errorf("class labels %s", labels)
			}
			if len(c.Input) != len(info.Inputs) || len(c.Output) != len(info.Outputs) {
				t.Fatalf("%d inputs and %d outputs, want %d and %d", len(c.Input), len(c.Output), len(info.Inputs), len(info.Outputs))
			}
			check := func(want manifest.IOInfo, got tritonTensor) {
				t.Helper()
				var shape []string
				for _, x := range want.Shape {
					n := int64(-1)
					if f, ok := x.(float64); ok {
						n = int64(f)
					}
					shape = append(shape, strconv.FormatInt(n, 10))
				}
				kind := map[string]string{"float32": "TYPE_FP32", "int64": "TYPE_INT64"}[want.DType]
				if got.Name != want.Name || got.DataType != kind || !slices.Equal(got.Dims, shape) {
					t.Errorf("%s is %v, want %v", role, got, want)
				}
			}
			for i, in := range c.Input {
				check(info.Inputs[i], in)
			}
			for i, out := range c.Output {
				check(info.Outputs[i], out)
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
	if _, err := tritonModelConfig(t, []byte(`name: "x" max_batch: 0`)); err == nil {
		t.Error("any field passes")
	}
	strange := t.TempDir()
	if err := os.WriteFile(filepath.Join(strange, "thesis.tex"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	d, o := openDist(t, "ecl-gsr/struct=3/l1", nil)
	if err := WriteTriton(d.Manifest.Dir, strange); err == nil || !strings.Contains(err.Error(), "thesis.tex") {
		t.Errorf("a folder of something else was replaced: %v", err)
	}

	// Models of other kinds share a repository; one of the same name of another run is refused.
	dir := filepath.Join(t.TempDir(), "repository")
	gcn, _ := openDist(t, "gcn/struct=0/l1", nil)
	for _, d := range []*dist.Dist{d, gcn, d} {
		if err := WriteTriton(d.Manifest.Dir, dir); err != nil {
			t.Fatal(err)
		}
	}
	before := readTree(t, dir)
	if len(before) != 2*(len(d.Manifest.Models)+len(gcn.Manifest.Models)) {
		t.Errorf("the repository has %v", slices.Sorted(maps.Keys(before)))
	}
	o.ConfigHash = "decaf"
	other := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), other, o); err != nil {
		t.Fatal(err)
	}
	if err := WriteTriton(other, dir); err == nil || !strings.Contains(err.Error(), "not of this run") {
		t.Errorf("models of another run: %v", err)
	}
	if !maps.EqualFunc(readTree(t, dir), before, bytes.Equal) {
		t.Error("a refusal changes the repository")
	}
}
