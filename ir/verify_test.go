package ir

import (
	"fmt"
	"strings"
	"testing"
)

// wellFormed is the module that the verifier's tests break, one rule at a time.
const wellFormed = `module @m

param $w: f32[3,2]

func @energy(%nu: f32[N,3], %w: f32[E]) -> (e: f32[]) {
  %sq = square %nu : f32[N,3]
  %e = reduce_sum %sq {axis="all"} : f32[]
  return %e
}

func @f(%x: f32[N,3], %g: graph<N,E>, %v: f32[E]) -> (y: f32[N,2], s: f32[N,3]) {
  %h = matmul %x, $w : f32[N,2]
  %y = spmm %g, %v, _, %h : f32[N,2]
  %s = gsr.sgld_sample %x, %v {energy=@energy, noise=0.1, step=0.5, stream="s"} : f32[N,3]
  return %y, %s
}
`

// TestVerify breaks each rule once. The message names the function and the
// operation.
func TestVerify(t *testing.T) {
	f := func(m *Module) *Func { return m.Func("f") }
	op := func(m *Module, i int) *Op { return f(m).Body[i] }
	for _, c := range []struct {
		name string
		mess func(m *Module)
		want []string
	}{
		{"module name", func(m *Module) { m.Name = "a b" }, []string{`module name "a b" cannot be written`}},
		{"module name empty", func(m *Module) { m.Name = "" }, []string{"cannot be written"}},
		{"module attribute name", func(m *Module) { m.Attrs["edge_weight"] = true }, []string{"module @m", `no attribute "edge_weight"`, `did you mean "edge_weights"?`}},
		{"module attribute value", func(m *Module) { m.Attrs["edge_weights"] = 1 }, []string{"module @m", "attribute edge_weights=1 is not a boolean"}},

		{"parameter name", func(m *Module) { m.Params[0].Name = ".w" }, []string{`parameter name ".w" cannot be written`}},
		{"parameter twice", func(m *Module) { m.AddParam("v", T(F32), "zeros", 0.1, "g").Name = "w" }, []string{"parameter $w is declared twice"}},
		{"parameter graph", func(m *Module) { m.Params[0].Type = GraphType("N", "E") }, []string{"$w is graph<N,E>, want a dense tensor"}},
		{"parameter symbol", func(m *Module) { m.Params[0].Type = T(F32, "N") }, []string{"$w is f32[N]: its dimensions must be sizes"}},
		{"parameter rank", func(m *Module) { m.Params[0].Type = T(F32, "1", "1", "1") }, []string{"$w", "at most two"}},
		{"parameter size", func(m *Module) { m.Params[0].Type = T(F32, "3000000000") }, []string{"$w", "too large"}},
		{"parameter attribute", func(m *Module) { m.Params[0].Attrs["dcay"] = 0.1 }, []string{"$w", `no attribute "dcay"`, `did you mean "decay"?`}},
		{"parameter attribute kind", func(m *Module) { m.Params[0].Attrs["decay"] = "lots" }, []string{"$w", "attribute decay=lots is not a float"}},
		{"parameter attribute range", func(m *Module) { m.Params[0].Attrs["decay"] = -5.0 }, []string{"$w", "attribute decay is -5, want at least 0"}},
		{"parameter attribute value", func(m *Module) { m.Params[0].Attrs["group"] = "nosuch" }, []string{"$w", `group="nosuch" is none of classifier, encoder, evidence, statistics`}},

		{"function name", func(m *Module) { f(m).Name = "f-1" }, []string{`function name "f-1" cannot be written`}},
		{"function twice", func(m *Module) { f(m).Name = "energy" }, []string{"function @energy is declared twice"}},
		{"function attribute", func(m *Module) { f(m).Attrs["diferentiate"] = "loss" }, []string{`@f: it has no attribute "diferentiate"`, `did you mean "differentiate"?`}},
		{"argument name", func(m *Module) { f(m).Args[0].Name = "π" }, []string{"@f: argument", `value name "π" cannot be written`}},
		{"argument twice", func(m *Module) { f(m).Args[0].Name = "v" }, []string{"@f: argument %v", "%v is defined twice"}},
		{"argument attribute", func(m *Module) { f(m).Args[0].Attrs = Attrs{"dinamic": true} }, []string{"@f: argument %x", `no attribute "dinamic"`}},
		{"argument rank", func(m *Module) { f(m).Args[0].Type = T(F32, "N", "3", "3") }, []string{"@f: argument %x", "at most two"}},
		{"argument dimension", func(m *Module) { f(m).Args[0].Type = T(F32, "N", "-3") }, []string{"@f: argument %x", `"-3" is no dimension`}},
		{"argument dimension empty", func(m *Module) { f(m).Args[0].Type = T(F32, "N", "") }, []string{`"" is no dimension`}},
		{"argument dimension not canonical", func(m *Module) { f(m).Args[0].Type = T(F32, "N", "03") }, []string{`"03" is no dimension`}},
		{"argument element type", func(m *Module) { f(m).Args[0].Type.DType = 9 }, []string{"@f: argument %x", "unknown element type"}},
		{"argument graph rank", func(m *Module) { f(m).Args[1].Type.Dims = []Dim{"N"} }, []string{"@f: argument %g", "two dimensions"}},
		{"argument sparse f64", func(m *Module) { f(m).Args[0].Type = Type{DType: F64, Layout: CSR, Dims: []Dim{"N", "3"}} }, []string{"element type f32"}},

		{"operation of no table", func(m *Module) { op(m, 0).Def = nil }, []string{"@f: operation 0"}},
		{"operand below", func(m *Module) { f(m).Body[0], f(m).Body[1] = f(m).Body[1], f(m).Body[0] }, []string{"@f: operation 0, %y = spmm", "operand 3 (%h) is not defined above"}},
		{"operand of another function", func(m *Module) { op(m, 0).Operands[0] = m.Func("energy").Args[0] }, []string{"@f: operation 0, %h = matmul", "operand 0 (%nu) is not defined above"}},
		{"parameter of another module", func(m *Module) { op(m, 0).Operands[1] = m.Clone().Params[0] }, []string{"@f: operation 0", "operand 1 ($w) is not defined above"}},
		{"operand missing", func(m *Module) { op(m, 0).Operands[1] = nil }, []string{"@f: operation 0", "operand b is missing"}},
		{"operand too many", func(m *Module) { op(m, 0).Operands = append(op(m, 0).Operands, m.Params[0]) }, []string{"@f: operation 0", "takes (a, b), got 3 operands"}},
		{"operand graph", func(m *Module) { op(m, 1).Operands[0] = f(m).Args[0] }, []string{"@f: operation 1, %y = spmm", "operand graph is f32[N,3], want a graph"}},
		{"operand sparse", func(m *Module) {
			f(m).Args[0].Type.Layout = CSR
			op(m, 0).Operands = []*Value{m.Params[0], f(m).Args[0]}
		}, []string{"@f: operation 0", "operand b is sparse"}},
		{"attribute unknown", func(m *Module) { op(m, 0).Attrs["tc"] = true }, []string{"@f: operation 0", `has no attribute "tc"`}},
		{"attribute kind", func(m *Module) { op(m, 0).Attrs["ta"] = "yes" }, []string{"@f: operation 0", "attribute ta=yes is not a boolean"}},
		{"attribute missing", func(m *Module) { delete(op(m, 2).Attrs, "stream") }, []string{"@f: operation 2, %s = gsr.sgld_sample", `needs the attribute "stream"`}},
		{"attribute value", func(m *Module) { m.Func("energy").Body[1].Attrs["axis"] = "3" }, []string{"@energy: operation 1", `attribute axis="3" is none of`}},
		{"attribute function name", func(m *Module) { op(m, 2).Attrs["energy"] = FuncRef("a b") }, []string{"@f: operation 2", `function name "a b" cannot be written`}},
		{"result back pointer", func(m *Module) { op(m, 0).Results[0].Def = op(m, 1) }, []string{"@f: operation 0", "%h does not point back"}},
		{"result index", func(m *Module) { op(m, 0).Results[0].Index = 1 }, []string{"@f: operation 0", "%h does not point back"}},
		{"result count", func(m *Module) { op(m, 1).Results = nil }, []string{"@f: operation 1", "spmm has 1 results, 0 types are declared"}},
		{"result name", func(m *Module) { op(m, 0).Results[0].Name = "" }, []string{"@f: operation 0", "value name"}},
		{"result twice", func(m *Module) { op(m, 1).Results[0].Name = "h" }, []string{"@f: operation 1", "%h is defined twice"}},
		{"result type", func(m *Module) { op(m, 0).Results[0].Type = T(F32, "N", "3") }, []string{"@f: operation 0", "result 0 is f32[N,2], declared f32[N,3]"}},
		{"result symbol", func(m *Module) { op(m, 0).Results[0].Type = T(F32, "Q", "2") }, []string{"@f: operation 0", "dimension Q is not that of any argument"}},

		{"callee missing", func(m *Module) { op(m, 2).Attrs["energy"] = FuncRef("e") }, []string{"@f: operation 2", "there is no function @e"}},
		{"callee operands", func(m *Module) { op(m, 2).Operands = op(m, 2).Operands[:1] }, []string{"@f: operation 2", "@energy takes 2 arguments, the operation has 1 operands"}},
		{"callee argument type", func(m *Module) { m.Func("energy").Args[1].Type = T(F32, "N") }, []string{"@f: operation 2", "argument %w of @energy is f32[N], operand 1 is f32[E]"}},
		{"callee without result", func(m *Module) { m.Func("energy").Results = nil }, []string{"@f: operation 2", "@energy has 0 results, want one float scalar"}},
		{"callee result type", func(m *Module) { e := m.Func("energy"); e.Results[0].Value = e.Args[0] }, []string{"@f: operation 2", "@energy returns f32[N,3], want a float scalar"}},
		{"callee itself", func(m *Module) {
			b := NewBuilder(m, m.Func("energy"))
			b.At(0).Op("gsr.sgld_sample", Attrs{"energy": FuncRef("energy"), "step": 1.0, "noise": 0.0, "stream": "s"}, b.Func.Args...)
		}, []string{"@energy: the function calls itself, by way of @energy"}},

		{"return undefined", func(m *Module) { f(m).Results[0].Value = m.Func("energy").Args[0] }, []string{"@f: result y is not defined"}},
		{"return nothing", func(m *Module) { f(m).Results[0].Value = nil }, []string{"@f: result y is not defined"}},
		{"return twice", func(m *Module) { f(m).Results[0].Name = "s" }, []string{"@f: result s is declared twice"}},
		{"return name", func(m *Module) { f(m).Results[0].Name = "a,b" }, []string{"@f: result name"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := Parse("", wellFormed)
			if err != nil {
				t.Fatal(err)
			}
			c.mess(m)
			err = Verify(m)
			if err == nil {
				t.Fatalf("accepted:\n%s", m)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
		})
	}
}

// What a step function of unroll must be.
func TestVerifySteps(t *testing.T) {
	for _, c := range []struct{ step, want string }{
		{"%y = mul %a, $w : f32[2]\nreturn %y", ""},
		{"%y = mul %a, $w : f32[2]\nreturn %y", "reads the parameter $w; give it as an operand"},
		{"%y = reduce_sum %a {axis=\"all\"} : f32[]\nreturn %y", "is not of the type f32[2] of %a, the state that it follows"},
	} {
		detach, result := c.want == "", "f32[2]"
		if strings.Contains(c.step, "reduce_sum") {
			result = "f32[]"
		}
		_, err := Parse("steps", fmt.Sprintf(`module @m
param $w: f32[2]
func @step(%%a: f32[2]) -> (a: %s) {
%s
}
func @f(%%a: f32[2]) -> (a: f32[2]) {
  %%b = unroll %%a {step=@step, steps=2, detach=%v} : f32[2]
  return %%b
}`, result, c.step, detach))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.step, err, c.want)
		}
	}
}
