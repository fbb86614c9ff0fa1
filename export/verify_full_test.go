package export

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func TestVerifyFull(t *testing.T) {
	o := buildOptions(t, "gcn/struct=0/l1")
	dir := filepath.Join(t.TempDir(), "dist")
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	_, report, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library, Full: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := 1 + 3*4; len(report.Cases) != want {
		t.Errorf("%d comparisons, want %d", len(report.Cases), want)
	}
	if !slices.ContainsFunc(report.Cases, func(c parity.Case) bool { return strings.Contains(c.Runtime, "2 threads, optimisation none, 20 runs") }) {
		t.Errorf("no case is that of 2 threads without optimisation: %+v", report.Cases)
	}
}
