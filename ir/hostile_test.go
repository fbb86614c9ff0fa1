package ir

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// Texts that are made to take long are refused, or read in time and memory that grow with their
// length alone.
func TestHostileTexts(t *testing.T) {
	inF := func(body string) string { return "module @m\nfunc @f(%x: f32[N]) -> (y: f32[N]) {\n" + body + "}\n" }
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	long := lines(60000, "  %%v%d = neg %%x : f32[N]\n") + "  return %v0\n}\n"
	for name, c := range map[string]struct{ src, want string }{
		"a sum of many":         {strings.Replace(inF("  return %x\n"), "[N]", "[N"+strings.Repeat("+1", 2_000_000)+"]", 1), "the dimension is a sum of more than 64"},
		"many words":            {"module @m\n" + strings.Repeat("$", 16_000_000), `expected "param", "func"`},
		"a deep expression":     {inF(`  %y = fused_elementwise %x {expr="` + strings.Repeat("neg(", 2_000_000) + `"} : f32[N]` + "\n  return %y\n"), "more than 65536 operations of the expression stand in each other"},
		"a long word":           {inF("  %y = " + strings.Repeat("add", 2_500_000) + " %x : f32[N]\n  return %y\n"), "unknown operation"},
		"unrolls of a long one": {"module @m\nfunc @s(%x: f32[N]) -> (y: f32[N]) {\n" + long + "func @f(%x: f32[N]) -> (y: f32[N]) {\n" + lines(60000, "  %%v%d = unroll %%x {step=@s, steps=1} : f32[N]\n") + "  return %v0\n}\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse("", c.src)
			runtime.ReadMemStats(&after)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 1<<29 {
				t.Errorf("%d MiB were allocated", took>>20)
			}
		})
	}
}
