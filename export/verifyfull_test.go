package export

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func TestVerifyFull(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	_, report, err := Verify(t.Context(), dir, VerifyOptions{Provider: ort.CPU, Library: o.Library, Full: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + len(fullThreads)*len(fullLevels); len(report.Cases) != want {
		t.Errorf("%d comparisons, want %d", len(report.Cases), want)
	}
	if !slices.ContainsFunc(report.Cases, func(c ParityCase) bool { return strings.Contains(c.Runtime, "2 threads, optimisation none, 20 runs") }) {
		t.Errorf("no case is that of 2 threads without optimisation: %+v", report.Cases)
	}
}

func TestDiffering(t *testing.T) {
	one := map[string]ort.Tensor{"y": ort.Float32s([]float32{1, 2}, 2)}
	if bad := differing(one, map[string]ort.Tensor{"y": ort.Float32s([]float32{1, 2}, 2)}, []string{"y"}, 2); bad != nil {
		t.Errorf("equal runs give %v", bad)
	}
	bad := differing(one, map[string]ort.Tensor{"y": ort.Float32s([]float32{1, 2.0000002}, 2)}, []string{"y"}, 7)
	if bad == nil || !strings.Contains(bad.Error(), "run 7 is not that of run 1") {
		t.Errorf("a run of other bits gives %v", bad)
	}
}
