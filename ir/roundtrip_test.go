package ir

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestExampleFiles holds the hand-written programs: they parse, verify, and are
// printed as they are written, comments aside.
func TestExampleFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gsr")
	if err != nil || len(files) < 3 {
		t.Fatalf("testdata has %d programs, %v", len(files), err)
	}
	comment := regexp.MustCompile(`(?m)^//.*\n`)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			m, err := Parse(file, string(src))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := m.String(), comment.ReplaceAllString(string(src), ""); got != want {
				t.Errorf("printed:\n%s\nwritten:\n%s", got, want)
			}
			roundTrip(t, m)
			if diff := differ(m, m.Clone()); diff != "" {
				t.Errorf("the clone differs: %s", diff)
			}
		})
	}
}

// TestRoundTripRandom prints and parses random modules, and runs them: whatever
// verifies must come back unchanged and must not panic.
func TestRoundTripRandom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModule(t)
		if err := Verify(m); err != nil {
			t.Fatalf("%v\n%s", err, m)
		}
		roundTrip(t, m)
		if diff := differ(m, m.Clone()); diff != "" {
			t.Fatalf("the clone differs: %s", diff)
		}
		interpretRandomly(m, rapid.Uint64().Draw(t, "seed"))
	})
}

// interpretRandomly runs every function on random arguments. Errors are fine
// (an index out of range, two graphs that cannot share E); panics are not.
func interpretRandomly(m *Module, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	s := sizes{}
	value := func(v *Value) Val {
		for _, d := range v.Type.Dims {
			for _, part := range strings.Split(string(d), "+") {
				if _, ok := s[part]; !ok {
					s[part] = r.IntN(4)
				}
			}
		}
		shape, err := v.Type.Shape(s)
		if err != nil || elements(shape) > 10_000 {
			return Val{}
		}
		if v.Type.IsGraph() {
			return Val{G: randomGraph(shape[0], shape[1], r)}
		}
		x := NewTensor(shape...)
		for i := range x.Data {
			x.Data[i] = float64(r.IntN(5)) - 1
		}
		return Val{T: x}
	}
	params := map[string]*Tensor{}
	for _, p := range m.Params {
		params[p.Name] = value(p).T
	}
	for _, f := range m.Funcs {
		var args []Val
		for _, a := range f.Args {
			args = append(args, value(a))
		}
		_, _ = Interpret(m, f.Name, args, params, testRandom(seed))
	}
}

var (
	oddStrings = []string{"", "a b", "\"", "\\", "line\nbreak", "tab\t", "{x=1}", "// no comment", "%x", "π€😀", "\xff\xfe", "\x00", "\u2028", "true", "NaN"}
	oddFloats  = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 1e-308, 5e-324, math.MaxFloat64, 1e21, 1e-7, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 53, math.Pi}
	dimPool    = []Dim{"N", "E", "F", "N+E", "N+N", "E+3", "0", "1", "2", "17", "_x", "D.in"}

	drawnName = rapid.StringMatching(`[A-Za-z_0-9][A-Za-z_.0-9]{0,8}`)
)

func drawFloat(t *rapid.T) float64 {
	if rapid.Bool().Draw(t, "odd") {
		return rapid.SampledFrom(oddFloats).Draw(t, "float")
	}
	return rapid.Float64().Draw(t, "float")
}

func drawString(t *rapid.T) string {
	if rapid.Bool().Draw(t, "odd") {
		return rapid.SampledFrom(oddStrings).Draw(t, "string")
	}
	return rapid.String().Draw(t, "string")
}

func drawAttrs(t *rapid.T, specs []AttrSpec) Attrs {
	a := Attrs{}
	for range rapid.IntRange(0, 3).Draw(t, "attrs") {
		s := rapid.SampledFrom(specs).Draw(t, "attribute")
		switch {
		case s.Kind == FloatAttr:
			a[s.Name] = math.Abs(rapid.Float64().Draw(t, "float"))
		case s.Kind == BoolAttr:
			a[s.Name] = rapid.Bool().Draw(t, "bool")
		case s.OneOf != nil:
			a[s.Name] = rapid.SampledFrom(s.OneOf).Draw(t, "string")
		default:
			a[s.Name] = drawString(t)
		}
	}
	return a
}

// drawModule builds a random module that verifies.
func drawModule(t *rapid.T) *Module {
	m := NewModule(drawnName.Draw(t, "module"))
	m.Attrs = drawAttrs(t, moduleAttrs)
	var names []string
	for name := range cases {
		names = append(names, name)
	}
	slices.Sort(names)
	for range rapid.IntRange(0, 2).Draw(t, "params") {
		name := drawnName.Draw(t, "param")
		if m.Param(name) != nil {
			continue
		}
		dims := rapid.SliceOfN(rapid.SampledFrom([]Dim{"0", "1", "2", "17"}), 0, 2).Draw(t, "dims")
		dtype := rapid.SampledFrom([]DType{F32, F64}).Draw(t, "dtype")
		p := m.AddParam(name, T(dtype, dims...), "zeros", 0, "")
		p.Attrs = drawAttrs(t, paramAttrs)
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "funcs") {
		name := drawnName.Draw(t, "func")
		if m.Func(name) != nil || name == "energy" {
			name = fmt.Sprintf("f%d.%s", i, name)
		}
		b := m.NewFunc(name)
		b.Func.Attrs = drawAttrs(t, funcAttrs)
		delete(b.Func.Attrs, "differentiate") // which names a scalar result
		for range rapid.IntRange(0, 6).Draw(t, "ops") {
			drawOp(t, b, rapid.SampledFrom(names).Draw(t, "op"))
		}
		values := slices.Concat(b.Func.Args, m.Params)
		for _, op := range b.Func.Body {
			values = append(values, op.Results...)
		}
		taken := map[string]bool{}
		for range rapid.IntRange(0, min(3, len(values))).Draw(t, "results") {
			if name := drawnName.Draw(t, "result"); !taken[name] {
				taken[name] = true
				b.Return(name, rapid.SampledFrom(values).Draw(t, "value"))
			}
		}
	}
	return m
}

// drawOp appends a case of the operation with its symbols renamed, its free
// attributes redrawn, and operands that exist already where their types fit.
func drawOp(t *rapid.T, b *Builder, name string) {
	c := rapid.SampledFrom(cases[name]).Draw(t, "case")
	if name == "gsr.sgld_sample" && b.Module.Func("energy") != nil || name == "unroll" && b.Module.Func("descend") != nil {
		return
	}
	rename := map[Dim]Dim{}
	typ := func(spec string) Type {
		ty := parseType(t, spec)
		for i, d := range ty.Dims {
			if _, fixed := d.Size(); fixed {
				continue
			}
			if rename[d] == "" {
				rename[d] = rapid.SampledFrom(dimPool).Draw(t, "dim")
			}
			ty.Dims[i] = rename[d]
		}
		return ty
	}
	arg := func(ty Type) *Value {
		v := b.Arg(drawnName.Draw(t, "arg"), ty)
		if a := drawAttrs(t, argAttrs); len(a) > 0 {
			v.Attrs = a
		}
		return v
	}
	var operands []*Value
	for _, spec := range c.in {
		literal, _, _ := strings.Cut(spec, " ")
		if literal == "_" {
			operands = append(operands, nil)
			continue
		}
		ty := typ(literal)
		fits := []*Value{nil} // nil: a new argument
		for _, v := range slices.Concat(b.Func.Args, b.Module.Params) {
			if v.Type.Equal(ty) {
				fits = append(fits, v)
			}
		}
		for _, op := range b.Func.Body {
			for _, v := range op.Results {
				if v.Type.Equal(ty) {
					fits = append(fits, v)
				}
			}
		}
		v := rapid.SampledFrom(fits).Draw(t, "operand")
		if v == nil {
			v = arg(ty)
		}
		operands = append(operands, v)
	}
	if c.build != nil {
		c.build(b, operands)
		return
	}
	if Lookup(name).Sizes { // what it finds has names of its own
		for _, d := range []Dim{"s", "e"} {
			rename[d] = Dim(fmt.Sprintf("found_%s%d", d, len(b.Func.Body)))
		}
	}
	attrs := Attrs{}
	for k, v := range c.attrs {
		attrs[k] = v
	}
	for _, spec := range Lookup(name).Attrs {
		switch {
		case spec.Range != Range{}:
		case spec.Kind == FloatAttr && rapid.Bool().Draw(t, "redraw"):
			attrs[spec.Name] = drawFloat(t)
		case spec.Name == "stream" && spec.Default == nil: // else the expression decides whether there is one
			attrs[spec.Name] = drawString(t)
		}
	}
	var out []Type
	for _, o := range c.out {
		out = append(out, typ(o))
	}
	// A declared type may only have symbols that some argument has.
	for _, ty := range out {
		for _, d := range ty.Dims {
			if _, fixed := d.Size(); !fixed && !Lookup(name).Sizes {
				arg(T(F32, d))
			}
		}
	}
	for _, v := range b.OpTyped(name, attrs, out, operands...) {
		v.Name = b.unique(drawnName.Draw(t, "name"))
	}
}
