package run

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Where no weights are given, an edge weighs what it did in the training, and an export says so.
func TestExportSaysWhatEdgesWeigh(t *testing.T) {
	lib := orttest.Need(t)
	dir := weightedTable(t, uneven)
	for _, lowering := range []onnx.Lowering{onnx.DegreeBuckets, onnx.Dense} {
		r := trainOn(t, "ecl-gsr", dir, "candidates.structure=raw", "candidates.keep=0.6", "model.edges.mode=expected", "data.weights=ignore")
		out := filepath.Join(t.TempDir(), "dist")
		if _, err := r.Build(t.Context(), out, BuildOptions{Library: &lib, Unverified: true, Uncalibrated: true, Lowering: lowering}); err != nil {
			t.Fatal(err)
		}
		d, err := dist.Open(out, ort.Options{Provider: ort.CPU, Library: &lib})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if d.Manifest.RawWeight != 0.6 {
			t.Errorf("an edge weighs %v by the manifest", d.Manifest.RawWeight)
		}
		s := nodeTask{ds: r.Data}.sample(r.Trained)
		got, err := d.Classify(s.X, s.Edges, nil)
		if err != nil {
			t.Fatal(err)
		}
		alike(t, string(lowering), got["probabilities"].F32, r.Trained.Probabilities)
	}
}

// Exports name the transform of the weights that they take.
func TestExportNamesTheTransformOfWeights(t *testing.T) {
	lib := orttest.Need(t)
	r := trainOn(t, "gcn", weightedTable(t, uneven), "data.weights=log1p")
	out := filepath.Join(t.TempDir(), "dist")
	m, err := r.Build(t.Context(), out, BuildOptions{Library: &lib, Unverified: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Session("classifier", ort.Options{Provider: ort.CPU, Library: &lib})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if said := s.Metadata()["weight_transform"]; m.WeightTransform != "log1p" || said != "log1p" {
		t.Errorf("the manifest says %q, the file %q", m.WeightTransform, said)
	}
	other := *m
	other.WeightTransform = ""
	if _, err := other.Session("classifier", ort.Options{Provider: ort.CPU, Library: &lib}); err == nil || !strings.Contains(err.Error(), "weight_transform") {
		t.Errorf("a manifest that says another transform: %v", err)
	}
	text, err := m.ReadFile("classifier.onnx")
	if err != nil || !strings.Contains(string(text), "log1p of its weight in the data") {
		t.Errorf("the input does not say it: %v", err)
	}
}
