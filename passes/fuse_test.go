package passes_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
)

// The pass tells what it fused, and says nothing where there is nothing.
func TestFuseRemarks(t *testing.T) {
	m, err := ir.Parse("test", `module @m

func @f(%x: f32[N,3], %w: f32[3,4], %b: f32[4]) -> (y: f32[N,4], s: f32[N,3]) {
  %p = matmul %x, %w : f32[N,4]
  %a = add %p, %b : f32[N,4]
  %y = elu %a : f32[N,4]
  %e = exp %x : f32[N,3]
  %s = sqrt %e : f32[N,3]
  return %y, %s
}

func @plain(%x: f32[N,3]) -> (y: f32[N,3]) {
  %y = exp %x : f32[N,3]
  return %y
}
`)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	if err := passes.Lookup("fuse").Run(m, passes.DataInfo{Remark: func(pass, line string) { said = append(said, pass+": "+line) }}); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(said, "\n"), "fuse: @f: products: 1, with 2 operations in them; sweeps: 1, of 2 operations"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := len(m.Func("f").Body); n != 2 {
		t.Errorf("%d operations are left, want 2", n)
	}
}

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
