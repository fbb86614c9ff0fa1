package passes_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
)

// Chains are bounded: registers share a cache.
func TestFuseLimits(t *testing.T) {
	var src strings.Builder
	src.WriteString("module @m\n\nfunc @f(%x0: f32[N]) -> (y: f32[N]) {\n")
	const n = 60
	for i := range n {
		src.WriteString("  %x" + strconv.Itoa(i+1) + " = neg %x" + strconv.Itoa(i) + " : f32[N]\n")
	}
	src.WriteString("  return %x" + strconv.Itoa(n) + "\n}\n")
	m, err := ir.Parse("test", src.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := passes.Lookup("fuse").Run(m, passes.DataInfo{}); err != nil {
		t.Fatal(err)
	}
	for _, op := range m.Func("f").Body {
		if steps := len(op.Expr().Steps); steps > 24 {
			t.Errorf("a chain of %d operations", steps)
		}
	}
	if got := len(m.Func("f").Body); got != 3 {
		t.Errorf("%d chains of %d operations, want 3", got, n)
	}
}
