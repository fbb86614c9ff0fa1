package parity

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func TestUlps(t *testing.T) {
	next := func(v float32, n int) float32 {
		for range n {
			v = math.Nextafter32(v, math.MaxFloat32)
		}
		return v
	}
	nan := float32(math.NaN())
	for _, test := range []struct {
		a, b float32
		want uint64
	}{
		{1, 1, 0}, {0, float32(math.Copysign(0, -1)), 0}, {1, next(1, 1), 1}, {next(-3, 5), -3, 5},
		{-math.SmallestNonzeroFloat32, math.SmallestNonzeroFloat32, 2}, {1, 2, 1 << 23}, {nan, 1, 1 << 32}, {nan, nan, 1 << 32},
	} {
		if got := ulps(test.a, test.b); got != test.want {
			t.Errorf("%g and %g are %d ulp apart, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestCompareOutputCountsUlpsAndClasses(t *testing.T) {
	up := func(v float32, n uint32) float32 { return math.Float32frombits(math.Float32bits(v) + n) }
	want := ort.Float32s([]float32{1, 2, 3, 3, 5, 4}, 3, 2)
	got := ort.Float32s([]float32{1, up(2, 1), 3, up(3, 2), up(5, 4), 4}, 3, 2)
	o, err := compareOutput("logits", got, want, onnx.Exact)
	if err != nil || !slices.Equal(o.Ulps, []int{3, 1, 1, 1}) {
		t.Errorf("histogram %v (error %v), want 3 equal and 1, 2 and 4 ulp once each", o.Ulps, err)
	}
	// The tie of the second row fell to the other side.
	if o.Argmax == nil || *o.Argmax != (Agreement{Agree: 2, Rows: 3}) {
		t.Errorf("agreement %+v, want 2 of 3", o.Argmax)
	}
	if o, _ := compareOutput("embedding", got, want, onnx.Exact); o.Argmax != nil {
		t.Error("an embedding has no classes")
	}
}

func TestReportPage(t *testing.T) {
	m := &manifest.Manifest{Model: "gcn", Dataset: "<cora>", Lowering: onnx.DegreeBuckets, Opset: 17, Version: "1.2.3", Verified: true,
		Models: map[string]manifest.ModelInfo{"classifier": {File: "classifier.onnx"}}}
	out := Output{Name: "logits", MaxAbs: 2e-6, MaxRel: 1e-6, Bound: 1e-5, OK: true, Ulps: []int{3, 0, 1}, Argmax: &Agreement{4, 4}}
	bad := Output{Name: "probabilities", MaxAbs: 2e-3, Bound: 1e-5, Ulps: []int{0, 4}}
	r := &Report{Bound: "max|a-b| <= x", Runtimes: map[string]string{"onnxruntime": "1.27.0"},
		Cases:    []Case{{Model: "classifier", Case: "hub", Runtime: "onnxruntime", Nodes: 5, Edges: 8, Outputs: []Output{out, bad}}},
		Refusals: []Refusal{{"classifier", "a negative target", "onnxruntime"}}}
	page, err := Page(m, r)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for _, want := range []string{"1 of 2 out of bounds", "&lt;cora&gt;", "20.0 %", "75.0 %", "≤ 3", "4 of 4", "2 to 3 ulp: 1 of 4", "a negative target", "onnxruntime 1.27.0", "max|a-b| ≤ x"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, foreign := range []string{"http:", "https:", "src=", "<cora>", "ZgotmplZ"} {
		if strings.Contains(text, foreign) {
			t.Errorf("the page holds %q", foreign)
		}
	}
}
