package ir

import (
	"fmt"
	"math"
	"slices"
)

// fataler is what a test, a fuzz target and a property have in common.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// roundTrip checks parse(print(m)) == m, as text and as structure.
func roundTrip(t fataler, m *Module) {
	t.Helper()
	text := m.String()
	back, err := Parse("printed.gsr", text)
	if err != nil {
		t.Fatalf("the printed module does not parse: %v\n%s", err, text)
	}
	if again := back.String(); again != text {
		t.Fatalf("printed, parsed and printed again:\n%s\nfirst:\n%s", again, text)
	}
	if diff := differ(m, back); diff != "" {
		t.Fatalf("printed and parsed, it differs: %s\n%s", diff, text)
	}
}

// differ says in which way two modules differ, or "".
func differ(a, b *Module) string {
	if a.Name != b.Name || !sameAttrs(a.Attrs, b.Attrs) {
		return "module"
	}
	if len(a.Params) != len(b.Params) || len(a.Funcs) != len(b.Funcs) {
		return "number of parameters or functions"
	}
	pair := map[*Value]*Value{nil: nil}
	same := func(x, y *Value) bool {
		pair[x] = y
		return x.Name == y.Name && x.Type.Equal(y.Type) && x.Index == y.Index && x.Param == y.Param && sameAttrs(x.Attrs, y.Attrs)
	}
	for i, p := range a.Params {
		if !same(p, b.Params[i]) {
			return "parameter " + p.Name
		}
	}
	for i, f := range a.Funcs {
		g := b.Funcs[i]
		if f.Name != g.Name || !sameAttrs(f.Attrs, g.Attrs) || len(f.Args) != len(g.Args) || len(f.Body) != len(g.Body) || len(f.Results) != len(g.Results) {
			return "function " + f.Name
		}
		for k, x := range f.Args {
			if !same(x, g.Args[k]) {
				return "argument " + x.Name
			}
		}
		for k, op := range f.Body {
			o := g.Body[k]
			operands := func() bool {
				return slices.EqualFunc(op.Operands, o.Operands, func(x, y *Value) bool { return pair[x] == y })
			}
			if op.Def != o.Def || !sameAttrs(op.Attrs, o.Attrs) || !operands() || len(op.Results) != len(o.Results) {
				return "operation " + op.String()
			}
			for j, x := range op.Results {
				if !same(x, o.Results[j]) || o.Results[j].Def != o {
					return "result of " + op.String()
				}
			}
		}
		for k, res := range f.Results {
			if g.Results[k].Name != res.Name || pair[res.Value] != g.Results[k].Value {
				return "result " + res.Name
			}
		}
	}
	return ""
}

// sameAttrs compares attributes; floats by their bits, so that NaN is NaN and
// −0 is not 0.
func sameAttrs(a, b Attrs) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		w, ok := b[k]
		if !ok || fmt.Sprintf("%T", v) != fmt.Sprintf("%T", w) {
			return false
		}
		x, isFloat := v.(float64)
		switch {
		case isFloat && (math.IsNaN(x) && math.IsNaN(w.(float64)) || math.Float64bits(x) == math.Float64bits(w.(float64))):
		case isFloat || v != w:
			return false
		}
	}
	return true
}
