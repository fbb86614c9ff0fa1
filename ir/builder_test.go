package ir

import (
	"slices"
	"strings"
	"testing"
)

// TestBuilderPrograms holds the text of what a builder makes: names, prefixes,
// places, shorthands.
func TestBuilderPrograms(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *Builder, x *Value)
		want  string // the body
	}{
		{"names", func(b *Builder, x *Value) {
			y := b.Add(x, x)
			b.Return("y", b.Add(y, x))
		}, `
  %add = add %x, %x : f32[N,2]
  %add_2 = add %add, %x : f32[N,2]
  return %add_2`},
		{"prefix", func(b *Builder, x *Value) {
			restore := b.Named("view.0")
			y := b.Sub(x, x)
			restore()
			b.Return("y", b.Div(x, y))
		}, `
  %view.0.sub = sub %x, %x : f32[N,2]
  %div = div %x, %view.0.sub : f32[N,2]
  return %div`},
		{"place", func(b *Builder, x *Value) {
			last := b.Mul(x, x)
			b.At(0)
			first := b.Stop(x)
			b.Scale(first, 2)
			if b.Pos() != 3 {
				panic("the builder lost its place")
			}
			b.At(-1).Return("y", b.Shift(last, -1))
			if b.Pos() != len(b.Func.Body) {
				panic("a negative place is not the end")
			}
		}, `
  %stop = stop_gradient %x : f32[N,2]
  %c = fill {value=2.0} : f32[]
  %mul_2 = mul %stop, %c : f32[N,2]
  %mul = mul %x, %x : f32[N,2]
  %c_2 = fill {value=-1.0} : f32[]
  %add = add %mul, %c_2 : f32[N,2]
  return %add`},
		{"shorthands", func(b *Builder, x *Value) {
			w := b.Module.AddParam("w", T(F32, "2", "2"), "glorot", 0, "classifier")
			y := b.MatMul(x, w)
			b.Return("y", b.Add(b.Mean(y), b.Sub(b.Sum(y), b.Const(3))))
		}, `
  %matmul = matmul %x, $w : f32[N,2]
  %reduce_mean = reduce_mean %matmul {axis="all"} : f32[]
  %reduce_sum = reduce_sum %matmul {axis="all"} : f32[]
  %c = fill {value=3.0} : f32[]
  %sub = sub %reduce_sum, %c : f32[]
  %add = add %reduce_mean, %sub : f32[]
  return %add`},
		{"defaults", func(b *Builder, x *Value) {
			y := b.One("leaky_relu", Attrs{"slope": 0.2}, x) // a default is not kept
			z := b.OneTyped("broadcast_to", nil, x.Type, b.One("pow", Attrs{"exponent": 2}, y))
			b.Return("y", z)
		}, `
  %leaky_relu = leaky_relu %x : f32[N,2]
  %pow = pow %leaky_relu {exponent=2.0} : f32[N,2]
  %bc = broadcast_to %pow : f32[N,2]
  return %bc`},
		{"inline", func(b *Builder, x *Value) {
			m := b.Module
			w := m.AddParam("w", T(F32, "2"), "ones", 0, "classifier")
			layer := m.NewFunc("layer")
			a := layer.Arg("a", x.Type)
			layer.Return("scaled", layer.Mul(a, w))
			layer.Return("same", a)
			layer.Return("w", w)
			defer b.Named("l0")()
			out := b.Inline(layer.Func, x)
			out = append(out, b.Inline(layer.Func, out[0])...)
			if out[1] != x || out[2] != w || out[4] != out[0] {
				panic("arguments and parameters are not passed through")
			}
			b.Return("y", out[3])
		}, `
  %l0.mul = mul %x, $w : f32[N,2]
  %l0.mul_2 = mul %l0.mul, $w : f32[N,2]
  return %l0.mul_2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := NewModule("m")
			b := m.NewFunc("f")
			x := b.DynamicArg("x", T(F32, "N", "2"))
			c.build(b, x)
			if err := Verify(m); err != nil {
				t.Fatal(err)
			}
			roundTrip(t, m)
			ty := b.Func.Results[0].Value.Type.String()
			want := "func @f(%x: f32[N,2] {dynamic=true}) -> (y: " + ty + ") {" + c.want + "\n}\n"
			if got := b.Func.String(); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestBuilderPanics holds what a model's author is told.
func TestBuilderPanics(t *testing.T) {
	for _, c := range []struct {
		want string
		do   func(b *Builder, x *Value)
	}{
		{`ir: @f: unknown operation "matmull"; did you mean "matmul"?`, func(b *Builder, x *Value) { b.One("matmull", nil, x, x) }},
		{"ir: @f: matmul(f32[N,2], f32[N,2]): inner dimensions 2 and N differ", func(b *Builder, x *Value) { b.MatMul(x, x) }},
		{"ir: @f: spmm: operand h is missing", func(b *Builder, x *Value) { b.One("spmm", nil, b.Arg("g", GraphType("N", "E")), nil, nil, nil) }},
		{`ir: @f: dropout needs the attribute "stream" (name of the random stream)`, func(b *Builder, x *Value) { b.One("dropout", Attrs{"rate": 0.5}, x) }},
		{`ir: @f: pow: attribute exponent=two is not a float`, func(b *Builder, x *Value) { b.One("pow", Attrs{"exponent": "two"}, x) }},
		{"ir: parameter $w is declared twice", func(b *Builder, x *Value) {
			for range 2 {
				b.Module.AddParam("w", Scalar(), "zeros", 0, "g")
			}
		}},
		{"ir: @f takes 1 arguments, got 0", func(b *Builder, x *Value) { b.Inline(b.Func) }},
		{"ir: @f: argument %x is f32[N,2], got f32[]", func(b *Builder, x *Value) { b.Inline(b.Func, b.Const(1)) }},
		{`ir: operation add has no attribute "axis"`, func(b *Builder, x *Value) { b.Add(x, x).Def.Str("axis") }},
	} {
		func() {
			defer func() {
				if got := recover(); got != c.want {
					t.Errorf("got %v\nwant %s", got, c.want)
				}
			}()
			b := NewModule("m").NewFunc("f")
			c.do(b, b.Arg("x", T(F32, "N", "2")))
		}()
	}
}

// TestContinue holds that a builder of an existing function takes no name twice.
func TestContinue(t *testing.T) {
	m := NewModule("m")
	b := m.NewFunc("f")
	y := b.One("neg", nil, b.Arg("x", Scalar()))
	b = NewBuilder(m, m.Func("f"))
	if z := b.One("neg", nil, y); z.Name != "neg_2" {
		t.Errorf("name %q, want neg_2", z.Name)
	}
	if x := b.Arg("x", Scalar()); x.Name != "x_2" {
		t.Errorf("name %q, want x_2", x.Name)
	}
}

// TestModuleAccess walks the look-ups, the use counts and the copies.
func TestModuleAccess(t *testing.T) {
	m, err := Parse("", wellFormed)
	if err != nil {
		t.Fatal(err)
	}
	f, w := m.Func("f"), m.Param("w")
	if f == nil || m.Func("g") != nil || w == nil || m.Param("v") != nil || f.Arg("x") != f.Args[0] || f.Arg("q") != nil || f.Result("y") != f.Results[0].Value || f.Result("q") != nil {
		t.Fatal("a look-up by name fails")
	}
	if got := f.Params(m); len(got) != 1 || got[0] != w || len(m.Func("energy").Params(m)) != 0 {
		t.Errorf("parameters that @f reads: %v", got)
	}
	uses := f.Uses()
	for name, want := range map[string]int{"x": 2, "g": 1, "v": 2} {
		if got := uses[f.Arg(name)]; got != want {
			t.Errorf("%%%s is read %d times, want %d", name, got, want)
		}
	}
	if uses[f.Body[0].Result()] != 1 || uses[f.Body[1].Result()] != 1 || uses[w] != 1 {
		t.Error("uses of results and parameters")
	}

	// A copy within the module shares the parameters, and no operation.
	m.Funcs = append(m.Funcs, f.CloneInto(m, "copy"))
	if err := Verify(m); err != nil {
		t.Fatal(err)
	}
	before := f.String()
	c := m.Func("copy")
	c.Replace(map[*Value]*Value{c.Body[0].Result(): c.Args[0]})
	if f.String() != before {
		t.Error("changing the copy changes the function")
	}
	c = f.CloneInto(m, "chain") // a replacement that is replaced itself
	a := c.Arg("x")
	c.Replace(map[*Value]*Value{c.Result("y"): c.Result("s"), c.Result("s"): a})
	if c.Result("y") != a || c.Result("s") != a {
		t.Error("a chain of replacements is not followed")
	}
	m.RemoveFunc("copy")
	if m.Func("copy") != nil || len(m.Funcs) != 2 {
		t.Error("RemoveFunc")
	}

	at := Attrs{"s": "x", "b": true, "i": int64(3), "f": 0.5}
	if at.Str("s") != "x" || at.Str("b") != "" || !at.Bool("b") || at.Bool("s") || at.Float("f") != 0.5 || at.Float("i") != 3 || at.Float("s") != 0 {
		t.Error("attributes by type")
	}
	if keys := at.Keys(); !slices.Equal(keys, []string{"b", "f", "i", "s"}) {
		t.Errorf("keys %v", keys)
	}
}

// TestDims resolves sizes, symbols and sums.
func TestDims(t *testing.T) {
	bind := map[string]int{"N": 3, "E": 4, "N+Q": 9, "big": 1 << 62}
	for _, c := range []struct {
		d    Dim
		want int
		err  string
	}{
		{"0", 0, ""}, {D(7), 7, ""}, {"N", 3, ""}, {"N+E", 7, ""}, {"N+E+2", 9, ""}, {"2+3", 5, ""}, {"N+N", 6, ""},
		{"N+Q", 9, ""}, // bound as a whole
		{"Q", 0, "dimension Q has no value"}, {"N+R", 0, "dimension R has no value"}, {"", 0, "has no value"}, {"-1", 0, "has no value"},
		{"big+big", 0, "dimension big+big is too large"},
	} {
		got, err := c.d.Resolve(bind)
		if got != c.want && c.err == "" || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %d, %v; want %d, %q", c.d, got, err, c.want, c.err)
		}
	}
	if _, err := T(F32, "N", "R").Shape(bind); err == nil || !strings.Contains(err.Error(), "f32[N,R]: dimension R") {
		t.Errorf("shape of an unbound type: %v", err)
	}
}

// TestWords holds the texts that `gsrc ops` and messages show.
func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Lookup("spmm").Signature(), "(graph, [a], [s], h)"},
		{Lookup("gsr.consistency").Signature(), "(logits, more...)"},
		{Lookup("fill").Signature(), "no operands"},
		{GSRLevel.String() + GNNLevel.String() + TensorLevel.String(), "gsrgnntensor"},
		{GraphOperand.String(), "a graph"},
		{FuncAttr.String(), "a function"},
		{Lookup("add").resultName(3), "add"},
		{Lookup("gnn.linear").resultName(1), "linear"},
		{Type{DType: F32, Layout: CSR, Dims: []Dim{"N", "3"}}.String(), "csr[N,3]"},
		{nearestOp("softmaxx"), `; did you mean "softmax"?`},
		{nearestOp(strings.Repeat("q", 1000)), ""},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if Lookup("none") != nil {
		t.Error("Lookup finds what is not there")
	}
}

// TestMatrixView holds how tensors are seen as matrices.
func TestMatrixView(t *testing.T) {
	for _, c := range []struct {
		t          *Tensor
		rows, cols int
	}{{ScalarTensor(1), 1, 1}, {NewTensor(3), 1, 3}, {NewTensor(2, 3), 2, 3}, {NewTensor(0, 3), 0, 3}} {
		if c.t.Rows() != c.rows || c.t.Cols() != c.cols {
			t.Errorf("shape %v: %d × %d, want %d × %d", c.t.Shape, c.t.Rows(), c.t.Cols(), c.rows, c.cols)
		}
	}
	m := matrix(2, 1, 2, 3, 4).T
	if got := m.Clone().Row(1); !slices.Equal(got, []float64{3, 4}) {
		t.Errorf("row 1 is %v", got)
	}
}
