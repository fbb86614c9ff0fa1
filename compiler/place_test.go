package compiler_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/ir"
)

// What passes and the exporter refuse stands in a line of the program, also where it is made of
// the operation of that line.
func TestErrorsHavePlaces(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		line, col  int
	}{
		"no gradient": {`module @m
param $w: f32[3,2]

func @f(%x: f32[N,3], %g: graph<N,E>) -> (y: f32[]) {differentiate="y"} {
  %h = matmul %x, $w : f32[N,2]
  %w = sddmm %g, %h, %h : f32[E]
  %k = edge_kth %g, %w {k=3} : f32[N]
  %y = reduce_sum %k {axis="all"} : f32[]
  return %y
}
`, "edge_kth has no gradient", 7, 8},
		"too many operations": {`module @m
func @step(%x: f32[N,3]) -> (x: f32[N,3]) {
  %y = neg %x : f32[N,3]
  return %y
}
func @many(%x: f32[N,3]) -> (x: f32[N,3]) {
  %y = unroll %x {step=@step, steps=1000, detach=true} : f32[N,3]
  return %y
}
func @f(%x: f32[N,3]) -> (x: f32[N,3]) {
  %y = unroll %x {step=@many, steps=100, detach=true} : f32[N,3]
  return %y
}
`, "more than 65536 operations", 11, 8},
		"export": {`module @m
func @f(%x: f32[N,3]) -> (y: f32[N,3]) {
  %y = dropout %x {rate=0.5, stream="s"} : f32[N,3]
  return %y
}
`, "it draws random numbers", 3, 8},
		"export of what a layer becomes": {`module @m
param $w: f32[3,2]
param $a: f32[2]
func @f(%x: f32[N,3], %g: graph<N,E>) -> (y: f32[N,2]) {
  %y = gnn.gat_conv %g, _, %x, $w, $a, $a, $a {heads=2} : f32[N,2]
  return %y
}
`, "every edge has several values", 5, 8},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := ir.Parse("f.gsr", c.text)
			if err != nil {
				t.Fatal(err)
			}
			p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{"f"}})
			if err == nil {
				_, err = onnx.Model(p.Module.Func("f"), map[string][]float32{"w": make([]float32, 6), "a": make([]float32, 2)}, onnx.ModelOptions{Lowering: onnx.Dense})
			}
			var at *ir.SyntaxError
			if !errors.As(err, &at) || at.File != "f.gsr" || at.Line != c.line || at.Col != c.col || !strings.Contains(at.Msg, c.want) {
				t.Errorf("%v, want f.gsr:%d:%d: …%s…", err, c.line, c.col, c.want)
			}
		})
	}
}
