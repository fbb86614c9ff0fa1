package parity

import (
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

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
