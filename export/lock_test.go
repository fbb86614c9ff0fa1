package export

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/parity"
	"github.com/gsrc-dev/gsrc/internal/filelock"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Who wants to write an export where another is being written is told by whom, and the
// first is whole.
func TestTwoBuildersOfAFolder(t *testing.T) {
	o := buildOptions(t, "mlp/struct=0/none")
	dir := filepath.Join(t.TempDir(), "dist")
	second := o
	second.Log = nil
	var errs []error
	o.Log = func(string, ...any) {
		if errs == nil {
			_, _, build := Build(t.Context(), dir, second)
			_, _, seal := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library, Seal: true})
			errs = []error{build, seal}
		}
	}
	if _, _, err := Build(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	for i, err := range errs {
		var held *filelock.HeldError
		if !errors.As(err, &held) || held.PID != os.Getpid() || !strings.Contains(err.Error(), dir) {
			t.Errorf("attempt %d: error %v, want one that names folder and process", i, err)
		}
	}
	if _, _, err := parity.Verify(t.Context(), dir, parity.VerifyOptions{Provider: ort.CPU, Library: o.Library}); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the export lie %v (%v)", entries, err)
	}
}
