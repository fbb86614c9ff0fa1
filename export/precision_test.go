package export

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestHalfWeights compares every exported function of the zoo, stored in fp16, with
// the reference with the same rounded weights.
func TestHalfWeights(t *testing.T) {
	all := zoo()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, f := range exportedFuncs {
			m := all[name]
			if m.Func(f) == nil {
				continue
			}
			t.Run(name+"/"+f, func(t *testing.T) {
				fn := compiled(t, m, f)
				s := openTestModel(t, written(t, m, fn, ModelOptions{Precision: FP16}), 1)
				rounded, err := Rounded(m, testParams(m), FP16)
				if err != nil {
					t.Fatal(err)
				}
				forward := Interpreter(m, rounded, constantsOf(fn))
				for _, g := range testGraphs()[:4] {
					in := testInputs(fn, g, true)
					want, err := forward(f, in)
					if err != nil {
						t.Fatal(err)
					}
					compare(t, g.name, mustRun(t, s, in), want)
				}
			})
		}
	}
}

// quantizedProduct is the arithmetic of an 8-bit product, in float64 from the scales on.
func quantizedProduct(x, w []float32, rows, inner, columns int) []float64 {
	lo, hi := float32(0), float32(0)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	step := (hi - lo) / 255
	zero := math.RoundToEven(float64(-lo / step))
	out := make([]float64, rows*columns)
	for j := range columns {
		most := float32(0)
		for k := range inner {
			most = max(most, float32(math.Abs(float64(w[k*columns+j]))))
		}
		scale := most / 127
		if scale == 0 {
			continue
		}
		for i := range rows {
			sum := 0.0
			for k := range inner {
				q := math.Min(255, math.Max(0, math.RoundToEven(float64(x[i*inner+k]/step))+zero))
				sum += (q - zero) * math.RoundToEven(float64(w[k*columns+j]/scale))
			}
			out[i*columns+j] = sum * float64(step) * float64(scale)
		}
	}
	return out
}

// TestQuantizedProduct compares 8-bit products with their arithmetic, on numbers
// where products of signed bytes would saturate, and with the weight turned.
func TestQuantizedProduct(t *testing.T) {
	const rows, inner, columns = 5, 64, 3
	w := randomFloats("w", inner*columns)
	for i := range w {
		w[i] = 1 - 0.1*w[i]*w[i]
		if i%columns == 2 {
			w[i] = 0
		}
	}
	turned := make([]float32, len(w))
	for k := range inner {
		for j := range columns {
			turned[j*inner+k] = w[k*columns+j]
		}
	}
	x := randomFloats("x", rows*inner)
	for i := range x {
		x[i] = 3 - x[i]*x[i]
	}
	want := quantizedProduct(x, w, rows, inner, columns)
	for _, tb := range []bool{false, true} {
		m := ir.NewModule("product")
		shape, data := []ir.Dim{"64", "3"}, w
		if tb {
			shape, data = []ir.Dim{"3", "64"}, turned
		}
		p := m.AddParam("w", ir.T(ir.F32, shape...), "zeros", 0, "")
		b := m.NewFunc("f")
		b.Return("y", b.One("matmul", ir.Attrs{"ta": false, "tb": tb}, b.Arg("x", ir.T(ir.F32, "N", "64")), p))
		model, err := Model(b.Func, map[string][]float32{"w": data}, ModelOptions{Precision: INT8})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range model.Graph.Initializer {
			if i.Name == "w" {
				t.Error("the weight is stored in float32 too")
			}
		}
		file, err := Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		got := mustRun(t, openTestModel(t, file, 2), map[string]ort.Tensor{"x": ort.Float32s(x, rows, inner)})
		checkClose(t, "product", got["y"], want, rows, columns)
	}
}

// TestQuantizedModels holds 8-bit models against the reference within what the
// manifest promises, features in CSR too.
func TestQuantizedModels(t *testing.T) {
	all := zoo()
	for _, model := range optionModels {
		m := all[model.name]
		fn := compiled(t, m, model.fn)
		for _, o := range []ModelOptions{{Precision: INT8}, {Precision: INT8, SparseX: true, Lowering: HostBuckets}} {
			if o.SparseX && fn.Arg(sparseArg) == nil {
				continue
			}
			s := openTestModel(t, written(t, m, fn, o), 1)
			forward := Interpreter(m, testParams(m), constantsOf(fn))
			g := testGraphs()[6]
			in := testInputs(fn, g, true)
			want, err := forward(model.fn, in)
			if err != nil {
				t.Fatal(err)
			}
			if graphArg(fn) != nil {
				in = withTables(t, o.Lowering, g, in)
			}
			if o.SparseX {
				in = maps.Clone(in)
				if err := addSparse(in); err != nil {
					t.Fatal(err)
				}
			}
			got := mustRun(t, s, in)
			for name := range want {
				if _, err := compareOutput(name, got[name], want[name], quantized); err != nil {
					t.Errorf("%s @%s, sparse %v: %v", model.name, model.fn, o.SparseX, err)
				}
			}
		}
	}
}

// TestBuildPrecision builds a model with each precision: the report compares with
// the weights as trained, and verifying agrees.
func TestBuildPrecision(t *testing.T) {
	for _, p := range []Precision{FP32, FP16, INT8} {
		o := buildOptions(t, "ecl-gsr/struct=0/l1")
		o.Precision = p
		trained, err := Interpreter(o.Module, o.Params, map[string]float32{"lo": o.Bounds.Lo, "hi": o.Bounds.Hi})("classify", map[string]ort.Tensor{"x": o.Sample.X, "edge_index": *o.Sample.Refined, "edge_weight": *o.Sample.Weights})
		if err != nil {
			t.Fatal(err)
		}
		// Of ten rows the forward pass has nine right.
		best := largest(trained["logits"])
		for i := range 10 {
			o.Sample.Test, o.Sample.Labels = append(o.Sample.Test, i), append(o.Sample.Labels, best[i])
		}
		o.Sample.Labels[3]++
		dir := filepath.Join(t.TempDir(), "dist")
		m, report, err := Build(t.Context(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := Verify(t.Context(), dir, VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
			t.Error(err)
		}
		i, err := Inspect(filepath.Join(dir, "classifier.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		if most := map[Precision]float64{FP32: 4, FP16: 3, INT8: 2.5}[p]; float64(i.Parameters.Bytes) > most*float64(i.Parameters.Elements) {
			t.Errorf("%q: %d parameters take %d bytes", p, i.Parameters.Elements, i.Parameters.Bytes)
		}
		read, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if read.Precision != p || (read.Models["classifier"].Tolerance != nil) != (p == INT8) || read.Models["scorer"].Tolerance != nil {
			t.Errorf("%q: the manifest says precision %q, tolerance of the classifier %v", p, read.Precision, read.Models["classifier"].Tolerance)
		}
		if p == FP32 {
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
			if c.Model != "scorer" && (c.MaxRel == 0 || p == FP16 && c.MaxRel > 2e-3 || c.MaxRel > 0.1) {
				t.Errorf("%s: %+v", p, c)
			}
		}
	}
}

// TestPrecisionErrors asks for what cannot be written.
func TestPrecisionErrors(t *testing.T) {
	m := zoo()["gcn/struct=0/l1"]
	fn := compiled(t, m, "classify")
	large := testParams(m)
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
		o      ModelOptions
		want   string
	}{
		{large, ModelOptions{Precision: FP16}, "is -70000 at position 1, and fp16 ends at 65504"},
		{testParams(m), ModelOptions{Precision: FP16, Lowering: Dense}, "take buckets"},
		{testParams(m), ModelOptions{Precision: "fp8"}, `unknown precision "fp8"`},
	} {
		if _, err := Model(fn, test.params, test.o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
	o := buildOptions(t, "gcn/struct=0/l1")
	o.Precision, o.Params = FP16, large
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
