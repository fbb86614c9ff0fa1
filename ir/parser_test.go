package ir

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inFunc puts operations into a function with some arguments; they start on
// line 4.
func inFunc(ops string) string {
	return "module @m\nparam $w: f32[3,2]\nfunc @f(%x: f32[N,3], %v: f32[N], %g: graph<N,E>, %s: csr[N,3], %i: i64[B], %c: f32[]) -> () {\n" + ops + "\n  return\n}\n"
}

// TestSyntaxErrors holds what a person is told about a bad text: line, column,
// the offending text and what is wrong.
func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		src       string
		line, col int
		near, msg string
	}{
		// The frame.
		{"", 1, 1, "end of file", `expected "module"`},
		{"\n\n  modul @m", 3, 3, "modul", `expected "module"`},
		{"module m", 1, 8, "m", `expected "@"`},
		{"module @", 1, 9, "end of file", "expected a name"},
		{"module @-", 1, 9, "-", "unexpected character"},
		{"module @m\nfunk @f() -> () { return }", 2, 1, "funk", `expected "param", "func" or the end`},
		{"module @m // fine\nparam $w f32[2]", 2, 10, "f32", `expected ":"`},
		{"module @m param $w: f32[2] param $w: f32[2]", 1, 35, "w", "$w is declared twice"},
		{"module @m param $w: f32[N]", 1, 21, "f32", "its dimensions must be sizes, and N is none"},
		{"module @m param $w: i64[4]", 1, 18, "w", "want a dense tensor of f32"},
		{"module @m func @f(%x: f32[N]) -> (y: f32[N]) {differentiate=\"z\"} { return %x }", 1, 17, "f", "which is no result"},
		{"module @m func @f(%x: f32[N]) -> (y: f32[N]) {differentiate=\"y\"} { return %x }", 1, 17, "f", "is f32[N], want a float scalar"},
		{"module @m param $w: csr[2,2]", 1, 18, "w", "want a dense tensor"},
		{"module @m func @f() -> () { return } func @f() -> () { return }", 1, 44, "f", "@f is declared twice"},
		{"module @m func @f(%x: f32[], %x: f32[]) -> () { return }", 1, 31, "x", "%x is defined twice"},
		{"module @m func @f(x: f32[]) -> () { return }", 1, 19, "x", `expected "%"`},
		{"module @m func @f(%x: f32[]) { return }", 1, 30, "{", `expected "->"`},
		{"module @m func @f(%x: f32[]) -> (y: f32[], y: f32[]) { return %x, %x }", 1, 44, "y", "result y is declared twice"},
		{"module @m func @f(%x: f32[]) -> (y: f64[]) { return %x }", 1, 53, "%", "y is declared f64[], %x is f32[]"},
		{"module @m func @f(%x: f32[]) -> (y: f64[]) { return _ }", 1, 53, "_", "must be a value"},
		{"module @m func @f(%x: f32[]) -> (y: f32[]) { return }", 1, 53, "}", "expected an operand"},
		{"module @m func @f(%x: f32[]) -> (y: f32[]) { return %x, %x }", 1, 55, ",", "@f declares 1 results, more are returned"},
		{"module @m func @f(%x: f32[]) -> () { return %x }", 1, 45, "%", "@f declares 0 results, more are returned"},
		{"module @m func @f(%x: f32[]) -> () { yield }", 1, 44, "}", `expected "="`},
		{"module @m func @f(%x: f32[]) -> () { } ", 1, 38, "}", `or "return"`},
		{"module @m func @f(%x: f32[]) -> () {", 1, 37, "end of file", `or "return"`},
		{"module @m func @f(%x: f32[]) -> () { return", 1, 44, "end of file", "declares 0 results"},

		// Characters, strings, numbers.
		{"module @m\n  ?", 2, 3, "?", "unexpected character"},
		{"module @m {s=\"π\"} \xff", 1, 19, "\xff", "unexpected character"},
		{"module @m {s=\"no end\n\"}", 1, 14, "\"no end", "the string does not end"},
		{"module @m {s=\"\\q\"}", 1, 14, "\"\\q\"}", "the string does not end"},
		{"module @m {a=1, a=2}", 1, 17, "a", "attribute a is set twice"},
		{"module @m {a 1}", 1, 14, "1", `expected "="`},
		{"module @m {1=1}", 1, 12, "1", "expected the name of an attribute"},
		{"module @m {a=}", 1, 14, "}", "expected a value"},
		{"module @m {a=none}", 1, 14, "none", "expected a value"},
		{"module @m {a=1e}", 1, 14, "1e", "malformed number"},
		{"module @m {a=1e999}", 1, 14, "1e999", "malformed number"},
		{"module @m {a=--1}", 1, 14, "-", "malformed number"},
		{"module @m {a=1 b=2}", 1, 16, "b", `expected ","`},
		{"module @m {a=@}", 1, 15, "}", "expected a name"},

		// Types.
		{"module @m param $w: f16[2]", 1, 21, "f16", "unknown type; want f32, f64, i64, bool, csr or graph"},
		{"module @m param $w: f32", 1, 24, "end of file", `expected "["`},
		{"module @m param $w: f32[2,3,4]", 1, 21, "f32", "at most two dimensions"},
		{"module @m param $w: f32[2 3]", 1, 27, "3", `expected ","`},
		{"module @m param $w: f32[-1]", 1, 25, "-1", "malformed dimension"},
		{"module @m param $w: f32[1.5]", 1, 25, "1.5", "malformed dimension"},
		{"module @m param $w: f32[99999999999]", 1, 25, "99999999999", "malformed dimension"},
		{"module @m param $w: f32[2+]", 1, 27, "]", "expected a dimension"},
		{"module @m param $w: graph<N,E", 1, 30, "end of file", `expected ">"`},
		{"module @m param $w: csr[N]", 1, 26, "]", `expected ","`},

		// Operations.
		{inFunc("  %y = ad %v, %v : f32[N]"), 4, 8, "ad", `unknown operation "ad"; did you mean "add"?`},
		{inFunc("  %y = frobnicate %v : f32[N]"), 4, 8, "frobnicate", `unknown operation "frobnicate"`},
		{inFunc("  %y add %v, %v : f32[N]"), 4, 6, "add", `expected "="`},
		{inFunc("  %y = add %v, %z : f32[N]"), 4, 17, "z", "%z is not defined above"},
		{inFunc("  %y = add %v, $z : f32[N]"), 4, 17, "z", "parameter $z is not declared"},
		{inFunc("  %y = add %v, : f32[N]"), 4, 16, ":", "expected an operand"},
		{inFunc("  %y = add %v, %v"), 5, 3, "return", `expected ":"`},
		{inFunc("  %y = add %v %v : f32[N]"), 4, 15, "%", `expected ":"`},
		{inFunc("  %y = add %v, %v : f32[M]"), 4, 8, "add", "result 0 is f32[N], declared f32[M]"},
		{inFunc("  %y = add %v, %v : f32[N], f32[N]"), 4, 3, "%", "1 names and 2 types"},
		{inFunc("  %y, %z = add %v, %v : f32[N], f32[N]"), 4, 12, "add", "add has 1 results, 2 types are declared"},
		{inFunc("  %y, %y = gnn.sym_norm %g : f32[E], f32[N]"), 4, 8, "y", "%y is defined twice"},
		{inFunc("  %v = neg %v : f32[N]"), 4, 4, "v", "%v is defined twice"},
		{inFunc("  %y = add %v : f32[N]"), 4, 8, "add", "add takes (a, b), got 1 operands"},
		{inFunc("  %y = neg %v, %v : f32[N]"), 4, 8, "neg", "neg takes (x), got 2 operands"},
		{inFunc("  %y = neg _ : f32[N]"), 4, 8, "neg", "operand x is missing"},
		{inFunc("  %y = neg %g : f32[N]"), 4, 8, "neg", "operand x is graph<N,E>, want a tensor"},
		{inFunc("  %y = edge_ones %v : f32[N]"), 4, 8, "edge_ones", "operand graph is f32[N], want a graph"},
		{inFunc("  %y = neg %s : f32[N,3]"), 4, 8, "neg", "operand x is sparse (csr[N,3]); put to_dense before it"},
		{inFunc("  %y = matmul %s, $w {tc=true} : f32[N,2]"), 4, 8, "matmul", `matmul: it has no attribute "tc" (there are ta, tb)`},
		{inFunc("  %y = neg %v {a=1} : f32[N]"), 4, 8, "neg", `neg: it has no attribute "a" (there are none)`},
		{inFunc("  %y = matmul %s, $w {ta=1} : f32[N,2]"), 4, 8, "matmul", "attribute ta=1 is not a boolean"},
		{inFunc("  %y = reduce_sum %v : f32[]"), 4, 8, "reduce_sum", `reduce_sum needs the attribute "axis"`},
		{inFunc("  %y = reduce_sum %v {axis=\"2\"} : f32[]"), 4, 8, "reduce_sum", `attribute axis="2" is none of 0, 1, all`},
		{inFunc("  %y = fill {value=1} : csr[2,2]"), 4, 8, "fill", "the result type must be declared, a dense tensor"},
		{inFunc("  %y = fill {value=1} : f32[Q]"), 4, 8, "fill", "dimension Q is not that of any argument"},
		{inFunc("  %y = unroll %x {step=@e, steps=2} : f32[N,3]"), 4, 8, "unroll", "there is no function @e"},
		{inFunc("  %y = unroll %x, %v, %g, %s, %i, %c {step=@f, steps=2} : f32[N,3]"), 4, 8, "unroll", "@f has 0 results, want the state, which is 1"},
		{inFunc("  %y = gsr.sgld_sample %x {energy=@e, step=1, noise=0, stream=\"s\"} : f32[N,3]"), 4, 8, "gsr.sgld_sample", "there is no function @e"},
		{inFunc("  %y = gsr.sgld_sample %x {energy=@f, step=1, noise=0, stream=\"s\"} : f32[N,3]"), 4, 8, "gsr.sgld_sample", "@f takes 6 arguments, the operation has 1 operands"},
	} {
		m, err := Parse("f.gsr", c.src)
		var e *SyntaxError
		switch {
		case err == nil:
			t.Errorf("%q parses to\n%s", c.src, m)
		case !errors.As(err, &e):
			t.Errorf("%q: %T is no *SyntaxError", c.src, err)
		case e.File != "f.gsr" || e.Line != c.line || e.Col != c.col || e.Near != c.near || !strings.Contains(e.Msg, c.msg):
			t.Errorf("%q:\n got %d:%d near %q: %s\nwant %d:%d near %q: %s", c.src, e.Line, e.Col, e.Near, e.Msg, c.line, c.col, c.near, c.msg)
		case m != nil:
			t.Errorf("%q: a module beside the error", c.src)
		}
	}
}

// Files as editors on Windows write them are read, and their errors have the same place.
func TestParseWindowsText(t *testing.T) {
	src := inFunc("  // a comment\n  %y = neg %v : f32[N]")
	want, err := Parse("", src)
	if err != nil {
		t.Fatal(err)
	}
	windows := "\ufeff" + strings.ReplaceAll(src, "\n", "\r\n")
	if got, err := Parse("", windows); err != nil || got.String() != want.String() {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if h, err := ParseHeader("", windows); err != nil || h.Name != want.Name {
		t.Errorf("the header is %+v (%v)", h, err)
	}
	var at *SyntaxError
	if _, err := Parse("", strings.Replace(windows, "neg", "negg", 1)); !errors.As(err, &at) || at.Line != 5 || at.Col != 8 {
		t.Errorf("%v, want line 5, column 8", err)
	}
	if _, err := Parse("", strings.Replace(windows, "module", "modul", 1)); !errors.As(err, &at) || at.Line != 1 || at.Col != 1 {
		t.Errorf("%v, want line 1, column 1", err)
	}
}

// Attributes in braces may be none, wherever there may be some.
func TestParseNoAttributes(t *testing.T) {
	const src = "module @m {} param $w: f32[2] {} func @f(%x: f32[N] {}) -> (y: f32[N]) {} { %y = neg %x {} : f32[N] return %y }"
	want, err := Parse("", strings.ReplaceAll(src, "{}", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Parse("", src); err != nil || got.String() != want.String() {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
}

func TestSyntaxErrorText(t *testing.T) {
	e := &SyntaxError{File: "a.gsr", Line: 3, Col: 7, Near: "ad", Msg: "unknown operation"}
	if got := e.Error(); got != `a.gsr:3:7: unknown operation (at "ad")` {
		t.Error(got)
	}
	if got := (&SyntaxError{Line: 1, Col: 1, Msg: "m"}).Error(); got != "module:1:1: m" {
		t.Error(got)
	}
}

// TestTypeRules breaks every rule that an operation has about its operands,
// and asks that the message says so.
func TestTypeRules(t *testing.T) {
	for _, c := range []struct{ args, op, msg string }{
		{"%a: f32[N,2], %b: f32[N,3]", "add %a, %b : f32[N,3]", "do not broadcast"},
		{"%a: f32[N], %b: f64[N]", "add %a, %b : f32[N]", "want one element type"},
		{"%a: i64[N], %b: i64[N]", "mul %a, %b : i64[N]", "is i64, want floats"},
		{"%a: csr[N,2], %b: f32[N,2]", "mul %a, %b : csr[N,2]", "a sparse operand can only be scaled"},
		{"%a: csr[1,2], %b: f32[N,1]", "div %a, %b : csr[N,2]", "a sparse operand can only be scaled"},
		{"%a: i64[N]", "exp %a : i64[N]", "operand x is i64, want floats"},
		{"%a: f32[N], %b: f32[N,1]", "relu_grad %a, %b : f32[N]", "operand types differ"},
		{"%a: f32[N]", "reduce_sum %a {axis=\"1\"} : f32[N]", "a vector has no axis 1"},
		{"%a: f32[]", "reduce_max %a {axis=\"0\"} : f32[]", "a scalar has no axis 0"},
		{"%a: f32[]", "count %a {axis=\"1\"} : f32[]", "a scalar has no axis 1"},
		{"%a: f32[N,2]", "broadcast_to %a : f32[N,3]", "does not broadcast to f32[N,3]"},
		{"%a: f32[N]", "broadcast_to %a : f64[N]", "does not broadcast to f64[N]"},
		{"%a: f32[N,2]", "broadcast_to %a : f32[2]", "does not broadcast to f32[2]"},
		{"%a: f32[N,1]", "unsqueeze %a : f32[N,1]", "operand x has rank 2, want 1"},
		{"%a: f32[N,2]", "squeeze %a : f32[N]", "not a column"},
		{"%a: f32[N]", "softmax %a : f32[N]", "operand x has rank 1, want 2"},
		{"%a: f32[N,2], %b: f32[N]", "l2_normalize_grad %a, %a, %b : f32[N,2]", "operand types differ"},
		{"%a: f32[N,2], %b: f32[N,2]", "matmul %a, %b : f32[N,2]", "inner dimensions 2 and N differ"},
		{"%a: f32[N], %b: f32[N,2]", "matmul %a, %b : f32[N,2]", "operand a has rank 1, want 2"},
		{"%a: f32[N,2], %b: f64[2,3]", "matmul %a, %b : f32[N,3]", "want one element type"},
		{"%a: f32[N,2], %b: csr[2,3]", "matmul %a, %b : f32[N,3]", "operand b is sparse"},
		{"%a: f32[N]", `fused_elementwise %a {expr="add(x0"} : f32[N]`, "\",\" or \")\" is expected at character 7"},
		{"%a: f32[N]", `fused_elementwise %a {expr="add(x0)"} : f32[N]`, "add takes (a, b)"},
		{"%a: f32[N]", `fused_elementwise %a {expr="leaky_relu(x0)"} : f32[N]`, "leaky_relu takes (x) and the number slope"},
		{"%a: f32[N]", `fused_elementwise %a {expr="softmax(x0)"} : f32[N]`, "\"softmax\" is neither a pointwise operation nor a name"},
		{"%a: f32[N]", `fused_elementwise %a {expr="neg(x0) neg"} : f32[N]`, "the end is expected at character 9"},
		{"%a: f32[N]", `fused_elementwise %a {expr="p = neg(x0); exp(p)"} : f32[N]`, "the name p is taken"},
		{"%a: f32[N]", `fused_elementwise %a {expr="t = x0; exp(t)"} : f32[N]`, "t is no operation"},
		{"%a: f32[N]", `fused_elementwise %a {expr="neg(p)"} : f32[N]`, "there is no product"},
		{"%a: f32[N]", `fused_elementwise %a {expr="add(x0, x1)"} : f32[N]`, "reads x1 of 1 operands"},
		{"%a: f32[N]", `fused_elementwise %a, %a {expr="exp(x0)"} : f32[N]`, "does not read x1"},
		{"%a: f32[N,2]", `fused_elementwise %a {expr="exp(x0)"} : f32[2]`, "x0 is f32[N,2], which cannot be repeated to f32[2]"},
		{"%a: f64[N]", `fused_elementwise %a {expr="exp(x0)"} : f32[N]`, "x0 is f64, want f32"},
		{"%a: f32[N]", `fused_elementwise %a {expr="add(normal(), x0)"} : f32[N]`, "draws 1 times, want once where a stream is named"},
		{"%a: f32[N]", `fused_elementwise %a {expr="neg(x0)", stream="s"} : f32[N]`, "draws 0 times"},
		{"%a: f32[N]", `fused_elementwise %a {expr="dropout(x0, 1.0)", stream="s"} : f32[N]`, "rate 1 of dropout must be within [0, 1)"},
		{"%a: f32[N,2], %b: f32[2,3], %c: f32[3]", "matmul_fused %a, %b, %c : f32[N,3]", "operand c is f32[3], want the product's type f32[N,3]"},

		{"%a: f32[N,F], %b: f32[N,2]", "concat %a, %b : f32[N,2]", "fixed widths"},
		{"%a: f32[N,3]", "columns %a {from=2, width=2} : f32[N,2]", "2 columns from 2 on are not within"},
		{"%a: f32[N,3]", "columns %a {from=9223372036854775807, width=1} : f32[N,1]", "are not within"},
		{"%a: f32[], %i: i64[B]", "gather %a, %i : f32[B]", "operand x has rank 0, want 1 or 2"},
		{"%a: f32[N], %i: f32[B]", "gather %a, %i : f32[B]", "operand idx is f32, want i64"},
		{"%a: f32[N], %i: i64[]", "gather %a, %i : f32[B]", "operand idx has rank 0, want 1"},
		{"%a: f32[], %i: i64[B]", "scatter_add %a, %i : f32[]", "operand x has rank 0"},
		{"%a: f32[B], %i: i64[N]", "scatter_add %a, %i : f32[B]", "operand idx is i64[N], want dimensions [B]"},
		{"%a: f32[B,2], %i: i64[B]", "scatter_add %a, %i : f32[N,3]", "rows do not fit f32[N,3]"},
		{"%a: f32[B], %i: i64[B]", "scatter_add %a, %i : f64[B]", "rows do not fit f64[B]"},
		{"%a: f32[B], %i: f32[B]", "scatter_add %a, %i : f32[B]", "operand idx is f32, want i64"},
		{"%g: graph<N,E>, %a: f32[N], %h: f32[N,2]", "spmm %g, %a, _, %h : f32[N,2]", "operand a is f32[N], want dimensions [E]"},
		{"%g: graph<N,E>, %a: f32[E], %h: f32[N,2]", "spmm %g, _, %a, %h : f32[N,2]", "operand s is f32[E], want dimensions [N]"},
		{"%g: graph<N,E>, %a: f64[E], %h: f32[N,2]", "spmm %g, %a, _, %h : f32[N,2]", "want one element type"},
		{"%g: graph<N,E>, %h: f32[N]", "spmm %g, _, _, %h : f32[N]", "operand h has rank 1, want 2"},
		{"%g: graph<N,E>, %h: f32[M,2]", "spmm %g, _, _, %h : f32[M,2]", "operand h is f32[M,2], want dimensions [N 2]"},
		{"%g: graph<N,E>, %p: f32[N,2], %q: f32[N,3]", "sddmm %g, %p, %q : f32[E]", "operand q is f32[N,3], want dimensions [N 2]"},
		{"%g: graph<N,E>, %p: f32[], %q: f32[]", "sddmm %g, %p, %q : f32[E]", "operand p has rank 0, want 2"},
		{"%g: graph<N,E>, %v: f32[E]", "edge_gather %g, %v {side=\"dst\"} : f32[E]", "operand v is f32[E], want dimensions [N]"},
		{"%g: graph<N,E>, %v: f32[N]", "edge_sum %g, %v {side=\"up\"} : f32[N]", `attribute side="up" is none of dst, src`},
		{"%g: graph<N,E>, %v: i64[E]", "edge_sum %g, %v {side=\"dst\"} : i64[N]", "operand w is i64, want floats"},
		{"%p: f32[N,2], %q: i64[3,P]", "pair_dot %p, %q : f32[P]", "operand pairs is i64[3,P], want i64[2,P]"},
		{"%p: f32[N,2], %q: i64[]", "pair_dot %p, %q : f32[P]", "operand pairs is i64[], want i64[2,P]"},
		{"%p: f32[N,2], %i: i64[2,P], %q: f32[N,3]", "pair_dot %p, %i, %q : f32[P]", "operand q is f32[N,3], want dimensions [N 2]"},
		{"%v: f32[N,2], %i: i64[2,P]", `pair_gather %v, %i {end="first"} : f32[P]`, "operand v has rank 2, want 1"},
		{"%v: i64[N], %i: i64[2,P]", `pair_gather %v, %i {end="first"} : i64[P]`, "operand v is i64, want floats"},
		{"%g: graph<N,E,S>", "edge_pairs %g : i64[2,E]", "the graph is the block graph<N,E,S>, want a whole graph"},
		{"%g: graph<N,E,S>, %v: f32[N], %i: i64[2,P]", "common_neighbors %g, _, %v, %i : f32[P]", "the graph is the block graph<N,E,S>, want a whole graph"},
		{"%g: graph<N,E>, %a: f32[N], %v: f32[N], %i: i64[2,P]", "common_neighbors %g, %a, %v, %i : f32[P]", "operand a is f32[N], want dimensions [E]"},
		{"%g: graph<N,E>, %v: f32[E], %i: i64[2,P]", "common_neighbors %g, _, %v, %i : f32[P]", "operand v is f32[E], want dimensions [N]"},
		{"%g: graph<N,E,S>, %x: f32[N,2], %i: i64[2,P]", "neighbor_kernel %g, _, %x, %i {tau=1, most=9} : f32[P]", "the graph is the block graph<N,E,S>, want a whole graph"},
		{"%g: graph<N,E>, %x: f32[E,2], %i: i64[2,P]", "neighbor_kernel %g, _, %x, %i {tau=1, most=9} : f32[P]", "operand x is f32[E,2], want dimensions [N 2]"},
		{"%a: f32[N]", "dropout %a {rate=1, stream=\"s\"} : f32[N]", "rate is 1, want within [0, 1)"},
		{"%a: f32[N]", "dropout %a {rate=NaN, stream=\"s\"} : f32[N]", "rate is NaN, want within [0, 1)"},
		{"%a: f32[N]", "grad %a, %a : f32[N]", "y is f32[N], want a float scalar"},
		{"%a: f32[]", "grad %a : f32[]", "there is no x to differentiate by"},
		{"%a: f32[], %i: i64[B]", "grad %a, %i : i64[B]", "operand x is i64, want floats"},
		{"%p: f32[N,2]", "pairwise_self %p {tau=0} : f32[N]", "tau is 0, want greater than 0"},
		{"%p: f32[N,2], %r: f32[2]", "pairwise_self_grad %p, %r, %r {tau=1} : f32[N,2]", "operand row is f32[2], want dimensions [N]"},
		{"%p: f32[N,2], %m: f32[N,3], %r: f32[N]", "pairwise_mean_grad %p, %p, %m, %r {tau=1} : f32[N,2]", "operands p and mean differ in type"},
		{"%p: f32[N,2]", "pairwise_reduce %p, %p {tau=0} : f32[N], f32[N], f32[N], f32[]", "tau is 0, want greater than 0"},
		{"%p: f32[N,2], %q: f32[N,3]", "pairwise_reduce %p, %q {tau=1} : f32[N], f32[N], f32[N], f32[]", "operands p and q differ in type"},
		{"%p: i64[N,2]", "pairwise_reduce %p, %p {tau=1} : i64[N], i64[N], i64[N], i64[]", "is i64, want floats"},
		{"%p: f32[N,2], %r: f32[N], %s: f32[2]", "pairwise_reduce_grad %p, %p, %r, %r, %s {tau=1} : f32[N,2], f32[N,2]", "operand drow is f32[2], want dimensions [N]"},
		{"%p: f32[N,2], %r: f32[N]", "pairwise_reduce_grad %p, %p, %r, %r, _, _, _, %r {tau=1} : f32[N,2], f32[N,2]", "operand dsumsq is f32[N], want dimensions []"},
		{"%p: f32[], %i: i64[]", "cross_entropy_grad %p, %i, %p : f32[]", "operand logits has rank 0, want 2"},
		{"%p: f32[N,2], %i: i64[M]", "cross_entropy %p, %i : f32[]", "operand labels is i64[M], want dimensions [N]"},
		{"%p: f32[N,2], %i: f32[N]", "cross_entropy %p, %i : f32[]", "operand labels is f32, want i64"},
		{"%x: f32[N,2], %w: f32[3,4]", "gnn.linear %x, %w : f32[N,4]", "2 columns of x do not fit 3 rows of W"},
		{"%x: f32[N,2], %w: f32[2,4], %b: f32[3]", "gnn.linear %x, %w, %b : f32[N,4]", "operand b is f32[3], want dimensions [4]"},
		{"%x: f32[N,2], %w: f32[2,4]", "gnn.linear %x, %w {act=\"gelu\"} : f32[N,4]", `attribute act="gelu" is none of none, relu, elu`},
		{"%g: graph<N,E>, %w: f64[E]", "gnn.sym_norm %g, %w : f32[E], f32[N]", "operand w is f64, want f32"},
		{"%g: graph<N,E>, %x: f32[], %w: f32[2,4]", "gnn.gcn_conv %g, _, %x, %w : f32[N,4]", "operand x has rank 0, want 2"},
		{"%g: graph<N,E>, %x: f32[M,2], %w: f32[2,4]", "gnn.gcn_conv %g, _, %x, %w : f32[M,4]", "operand x is f32[M,2], want dimensions [N 2]"},
		{"%g: graph<N,E>, %x: f32[M,2], %w: f32[2,4]", "gnn.sage_conv %g, _, %x, %w : f32[M,2]", "operand x is f32[M,2], want dimensions [N 2]"},
		{"%g: graph<N,E>, %x: f32[N,2], %w: f32[2,5]", "gnn.sage_conv %g, _, %x, %w : f32[N,4]", "operand W has 5 columns, want an even number"},
		{"%g: graph<N,E>, %x: f32[N,2], %w: f32[2,6], %b: f32[6]", "gnn.sage_conv %g, _, %x, %w, %b : f32[N,3]", "operand b is f32[6], want dimensions [3]"},
		{"%g: graph<N,E>, %x: f32[N,2], %w: f32[2,4], %a: f32[4]", "gnn.gat_conv %g, _, %x, %w, %a, %a {heads=3} : f32[N,4]", "4 columns do not divide into 3 blocks"},
		{"%g: graph<N,E>, %x: f32[N,2], %w: f32[2,4], %a: f32[4]", "gnn.gat_conv %g, _, %x, %w, %a, %a {rate=0.5} : f32[N,4]", "rate is 0.5, which needs a stream"},
		{"%g: graph<N,E>, %x: f32[N,2], %w: f32[2,4], %a: f32[2]", "gnn.gat_conv %g, _, %x, %w, %a, %a : f32[N,4]", "operand a_src is f32[2], want dimensions [4]"},
		{"%g: graph<N,E>, %a: f32[E,3], %h: f32[N,4]", "spmm %g, %a, _, %h : f32[N,4]", "4 columns do not divide into 3 blocks"},
		{"%g: graph<N,E>, %a: f32[E,2], %s: f32[N], %h: f32[N,4]", "spmm %g, %a, %s, %h : f32[N,4]", "want as many heads in both"},
		{"%g: graph<N,E>, %e: f32[E,2], %s: f32[N]", "edge_softmax %g, %e, %s : f32[E,2], f32[N]", "operands e and s are f32[E,2] and f32[N]"},
		{"%g: graph<N,E>, %e: f32[E,2], %s: f32[N,3]", "edge_softmax %g, %e, %s : f32[E,2], f32[N,3]", "operand s is f32[N,3], want dimensions [N 2]"},
		{"%z: f32[N,2]", "gsr.ecl_loss %z, %z {tau=1, reg=\"max\"} : f32[], f32[], f32[], f32[]", `attribute reg="max" is none of mean, paper`},
		{"%z: f32[N,2], %y: f32[M,2]", "gsr.ecl_loss %z, %z, %y {tau=1} : f32[], f32[], f32[], f32[]", "operands z and zs differ"},
		{"%z: f32[N,2]", "unroll %z {step=@f, steps=2, states=2} : f32[N,2], f32[N,2]", "2 of the 1 operands cannot be the state"},
		{"%z: csr[N,2]", "unroll %z {step=@f, steps=2} : csr[N,2]", "the state is dense"},
		{"%z: f32[N,2]", "gsr.sgld_sample %z {energy=@f, steps=-1, step=1, noise=0, stream=\"s\"} : f32[N,2]", "attribute steps is -1, want between 0 and 1000"},
		{"%z: f32[N,2]", "gsr.sgld_sample %z {energy=@f, steps=9000000, step=1, noise=0, stream=\"s\"} : f32[N,2]", "attribute steps is 9000000, want between 0 and 1000"},
		{"%g: graph<N,E>, %h: f32[], %o: f32[E]", "gsr.edge_probability %g, %h, %o : f32[E], f32[], f32[]", "operand h has rank 0, want 2"},
		{"%g: graph<N,E>, %h: f32[N,2], %o: f32[N]", "gsr.edge_probability %g, %h, %o : f32[E], f32[], f32[]", "operand old is f32[N], want dimensions [E]"},
		{"%g: graph<N,E>, %h: f32[N,2], %o: f32[E], %c: f32[]", "gsr.edge_probability %g, %h, %o, %c : f32[E], f32[], f32[]", "lo and hi go together"},
		{"%g: graph<N,E>, %h: f32[N,2], %o: f32[E]", "gsr.edge_probability %g, %h, %o, %o, %o : f32[E], f32[], f32[]", "operand lo is f32[E], want dimensions []"},
		{"%h: f32[N,2], %p: i64[2,P], %c: f32[N]", "gsr.pair_probability %h, %p, %c, %c : f32[P], f32[P], f32[P]", "operand lo is f32[N], want dimensions []"},
		{"%h: f32[N,2], %p: i64[P], %c: f32[]", "gsr.pair_probability %h, %p, %c, %c : f32[P], f32[P], f32[P]", "want i64[2,P]"},
		{"%g: graph<B,E,N>, %i: i64[B]", "sample_block %g, %i : graph<B,e,s>, i64[s], i64[e]", "the graph is the block graph<B,E,N>, want a whole graph"},
		{"%g: graph<N,E>, %i: f32[B]", "sample_block %g, %i : graph<B,e,s>, i64[s], i64[e]", "operand targets is f32, want i64"},
		{"%g: graph<N,E>, %i: i64[B]", "sample_block %g, %i : graph<N,e,s>, i64[s], i64[e]", "declare the results as graph<B,e,s>"},
		{"%g: graph<N,E>, %i: i64[B]", "sample_block %g, %i : graph<B,e,s>, i64[s], i64[s]", "result 2 is i64[e], declared i64[s]"},
		{"%g: graph<N,E>, %i: i64[B]", "sample_block %g, %i : graph<B,e,N>, i64[N], i64[e]", "the sizes e and N are found when it runs"},
		{"%g: graph<N,E>, %i: i64[B], %k: i64[s]", "sample_block %g, %i : graph<B,e,s>, i64[s], i64[e]", "the size s is found when it runs, but something above has that name"},
		{"%g: graph<N,E>, %i: i64[B]", "sample_block %g, %i : graph<B,7,s>, i64[s], i64[7]", "the size 7 is found when it runs; give it a name"},
		{"%g: graph<B,E,N>", "edge_uniform %g {stream=\"s\"} : f32[E]", "the graph is the block"},
		{"%g: graph<B,E,N>, %h: f32[B,2]", "spmm %g, _, _, %h : f32[B,2]", "operand h is f32[B,2], want dimensions [N 2]"},
		{"%g: graph<B,E,N>, %w: f32[E]", "gnn.sym_norm %g, %w : f32[E], f32[B]", "the graph is the block"},
		{"%x: f32[3,2]", "slice %x {from=2, count=2} : f32[2,2]", "2 rows from 2 on are not within f32[3,2]"},
		{"%x: f32[N,2]", "slice %x {from=0, count=1} : f32[1,2]", "are not within f32[N,2]"},
		{"%x: f32[]", "slice %x {from=0, count=1} : f32[]", "operand x has rank 0, want 1 or 2"},
		{"%a: f32[3,2], %b: f32[2]", "stack %a, %b : f32[5,2]", "want two matrices or two vectors"},
		{"%a: f32[3,2], %b: f32[1,3]", "stack %a, %b : f32[4,2]", "want fixed numbers of rows of the same width"},
		{"%g: graph<N,E>, %p: f32[E]", "gsr.relaxed_bernoulli %g, %p {stream=\"s\", temperature=0} : f32[E]", "attribute temperature is 0, want greater than 0"},
		{"%z: f32[N,2]", "gsr.consistency %z {temperature=-1} : f32[]", "attribute temperature is -1, want greater than 0"},
		{"%z: f32[N]", "gsr.consistency %z : f32[]", "operand logits has rank 1, want 2"},
		{"%p: f32[E]", "gsr.refine %p {mode=\"top\"} : f32[E]", `attribute mode="top" is none of expected, threshold`},
		{"%x: f32[N]", "gsr.mask_features %x {rate=0.1, stream=\"s\"} : f32[N]", "operand x has rank 1, want 2"},
		{"%g: graph<N,E>", "gsr.drop_edges %g {rate=-0.1, stream=\"s\"} : f32[E]", "rate is -0.1, want within [0, 1)"},
	} {
		names := make([]string, 1+strings.Count(c.op[strings.Index(c.op, ":"):], ", "))
		for i := range names {
			names[i] = fmt.Sprintf("%%y%d", i)
		}
		src := "module @m\nfunc @f(" + c.args + ") -> () {\n  " + strings.Join(names, ", ") + " = " + c.op + "\n  return\n}"
		_, err := Parse("f.gsr", src)
		if err == nil {
			t.Errorf("%s: accepted", c.op)
			continue
		}
		if e := err.(*SyntaxError); e.Line != 3 || !strings.Contains(e.Msg, c.msg) {
			t.Errorf("%s:\n got %v\nwant %s", c.op, err, c.msg)
		}
	}
}

// TestParseBounds holds that hostile texts are refused or read in bounded time.
func TestParseBounds(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	var many strings.Builder
	many.WriteString("module @m\nfunc @f(%v0: f32[")
	many.WriteString(strings.Repeat("N+", 10_000) + "N]")
	many.WriteString(") -> () {\n")
	for i := range 20_000 {
		fmt.Fprintf(&many, "%%v%d = neg %%v%d : f32[2]\n", i+1, i)
	}
	for _, src := range []string{
		strings.Repeat(" ", maxSource+1),
		"module @m func @f() -> () { %y = " + long + " : f32[] return }",
		"module @m {" + strings.Repeat("{", 100_000),
		"module @m " + strings.Repeat("func @f() -> (", 10_000),
		many.String(),
	} {
		_, err := Parse("", src)
		if err == nil {
			t.Errorf("%.40q… is accepted", src)
		} else if len(err.Error()) > 2*maxMessage {
			t.Errorf("%.40q…: the message has %d bytes", src, len(err.Error()))
		}
	}
}

// TestParseKeepsLines holds that operations know their line.
func TestParseKeepsLines(t *testing.T) {
	m, err := Parse("", inFunc("  %y = neg %v : f32[N]\n\n  // between\n  %z = exp %y : f32[N]"))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := m.Funcs[0].Body[0].Place.Line, m.Funcs[0].Body[1].Place.Line; a != 4 || b != 7 {
		t.Errorf("lines %d and %d, want 4 and 7", a, b)
	}
}

// FuzzParse holds that no text makes the parser panic, that what it accepts is
// printed and parsed to itself, and that small programs run without a panic.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.gsr")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(src))
	}
	ops := make([]string, 0, len(cases))
	for name := range cases {
		ops = append(ops, name)
	}
	slices.Sort(ops)
	for i, name := range ops { // one program of every operation
		u := cases[name][0].use(f, name, oneSizes, "f32", rand.New(rand.NewPCG(9, uint64(i))))
		f.Add(u.m.String())
	}
	for _, src := range []string{"", "module", "module @m {a=-Inf}", "module @m\nfunc @f() -> () {\nreturn\n}", "module @m param $w: f32[2+3]", `module @m {s="\xff"}`} {
		f.Add(src)
	}
	names := extensible(f)
	for _, src := range extensions {
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if _, err := ParseHeader("fuzz.gsr", src); err != nil {
			if _, err := Parse("fuzz.gsr", src); err == nil {
				t.Fatalf("the first line is refused, and the text is not: %v", err)
			}
		}
		m, err := ParseNamed("fuzz.gsr", src, names)
		if err != nil {
			var e *SyntaxError
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 || e.Msg == "" {
				t.Fatalf("%#v is no proper syntax error", err)
			}
			return
		}
		roundTrip(t, m)
		if cheap(m) {
			interpretRandomly(m, uint64(len(src)))
		}
	})
}

// cheap reports whether a module can be interpreted in milliseconds.
func cheap(m *Module) bool {
	ops := 0
	for _, f := range m.Funcs {
		for _, op := range f.Body {
			ops++
			if (op.Name() == "gsr.sgld_sample" || op.Name() == "unroll") && op.Int("steps") > 3 {
				return false
			}
			for _, r := range op.Results {
				if big(r.Type) {
					return false
				}
			}
		}
		for _, a := range f.Args {
			if big(a.Type) {
				return false
			}
		}
	}
	return ops < 20
}

func big(t Type) bool {
	for _, d := range t.Dims {
		for _, part := range strings.Split(string(d), "+") {
			if n, ok := Dim(part).Size(); ok && n > 6 || len(d) > 30 {
				return true
			}
		}
	}
	return false
}

// A text with an operation's earlier name is one with its name.
func TestFormerNames(t *testing.T) {
	text := "module @m\n\nfunc @f(%g: graph<N,E>, %i: i64[B]) -> (e: i64[e]) {\n  %b, %s, %e = receptive_field %g, %i : graph<B,e,s>, i64[s], i64[e]\n  return %e\n}\n"
	m, err := Parse("test", text)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Replace(text, "receptive_field", "sample_block", 1); m.String() != want {
		t.Errorf("it prints as\n%s", m)
	}
	for _, d := range Ops() {
		if d.Formerly != "" && byName[d.Formerly] != nil {
			t.Errorf("%s had the name of another operation, %s", d.Name, d.Formerly)
		}
	}
}
