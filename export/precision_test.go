package export

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestBuildPrecision builds a model with each precision: the report compares with
// the weights as trained, and verifying agrees.
func TestBuildPrecision(t *testing.T) {
	for _, p := range []onnx.Precision{onnx.FP32, onnx.FP16, onnx.INT8} {
		o := buildOptions(t, "ecl-gsr/struct=0/l1")
		o.Precision = p
		trained, err := onnx.Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})("classify", map[string]ort.Tensor{"x": o.Sample.X, "edge_index": *o.Sample.Refined, "edge_weight": *o.Sample.Weights})
		if err != nil {
			t.Fatal(err)
		}
		// Of ten rows the forward pass has nine right.
		logits := trained["logits"]
		for i := range 10 {
			o.Sample.Test, o.Sample.Labels = append(o.Sample.Test, i), append(o.Sample.Labels, kernels.Top(logits.F32[4*i:4*i+4]))
		}
		o.Sample.Labels[3]++
		dir := filepath.Join(t.TempDir(), "dist")
		m, report, err := Build(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
			t.Error(err)
		}
		i, err := inspect.Read(filepath.Join(dir, "classifier.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if most := map[onnx.Precision]float64{onnx.FP32: 4, onnx.FP16: 3, onnx.INT8: 2.5}[p]; float64(i.Parameters.Bytes) > most*float64(i.Parameters.Elements) {
			t.Errorf("%q: %d parameters take %d bytes", p, i.Parameters.Elements, i.Parameters.Bytes)
		}
		read, err := manifest.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if read.Precision != p || (read.Models["classifier"].Tolerance != nil) != (p == onnx.INT8) || read.Models["scorer"].Tolerance != nil {
			t.Errorf("%q: the manifest says precision %q, tolerance of the classifier %v", p, read.Precision, read.Models["classifier"].Tolerance)
		}
		if p == onnx.FP32 {
			if report.Precision != nil || m.TestAccuracy != nil {
				t.Error("float32 is compared with itself")
			}
			continue
		}
		r := report.Precision
		if r == nil || r.Agreement == nil || *r.Agreement < 80 || len(r.Outputs) != 6 || r.Test == nil || r.Test.Rows != 10 || r.Test.Trained != 90 || *m.TestAccuracy != *r.Test {
			text, _ := json.Marshal(r)
			t.Fatalf("%s: the report says %s", p, text)
		}
		for _, c := range r.Outputs {
			if c.Model != "scorer" && (c.MaxRel == 0 || p == onnx.FP16 && c.MaxRel > 2e-3 || c.MaxRel > 0.1) {
				t.Errorf("%s: %+v", p, c)
			}
		}
	}
}

// TestPrecisionErrors asks for what cannot be written.
func TestPrecisionErrors(t *testing.T) {
	m := onnxtest.Zoo()["gcn/struct=0/l1"]
	fn := onnxtest.Compile(t, m, "classify")
	large := onnxtest.Params(m)
	name := slices.Sorted(maps.Keys(large))[0]
	for _, p := range m.Params {
		if p.Type.Rank() == 2 {
			name = p.Name
		}
	}
	large[name] = slices.Clone(large[name])
	large[name][1] = -70000
	for _, test := range []struct {
		params map[string][]float32
		o      onnx.ModelOptions
		want   string
	}{
		{large, onnx.ModelOptions{Precision: onnx.FP16}, "is -70000 at position 1, and fp16 ends at 65504"},
		{onnxtest.Params(m), onnx.ModelOptions{Precision: onnx.FP16, Lowering: onnx.Dense}, "take degree-buckets"},
		{onnxtest.Params(m), onnx.ModelOptions{Precision: "fp8"}, `unknown precision "fp8"`},
	} {
		if _, err := onnx.Model(fn, test.params, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
}

// TestBuildPrecisionErrors builds what cannot be written.
func TestBuildPrecisionErrors(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	large := maps.Clone(o.Params)
	for _, p := range o.Module.Params {
		if p.Type.Rank() == 2 {
			large[p.Name] = slices.Repeat([]float32{-70000}, len(large[p.Name]))
		}
	}
	o.Precision, o.Params = onnx.FP16, large
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), "fp16 ends") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a failed build left its folder")
	}
	o = buildOptions(t, "gcn/struct=0/l1")
	o.Sample.Test, o.Sample.Labels = []int{10000}, []int{0}
	if _, _, err := Build(t.Context(), dir, o); err == nil || !strings.Contains(err.Error(), "the test split has row 10000") {
		t.Errorf("error %v", err)
	}
}
