package ir

import (
	"errors"
	"strings"
	"testing"
)

// extensions are texts that extend the module of extensible, or name its sizes.
var extensions = []string{
	"extends base\n",
	"extends base\nparam $b: f32[width]\nfunc @part(%x: f32[N,width]) -> (y: f32[N,width]) {\n  %p = @part %x : f32[N,width]\n  %y = add %p, $b : f32[N,width]\n  return %y\n}\n",
	"extends base\nfunc @f(%x: f32[N,width], %m: f32[N]) -> (z: f32[N,4]) {\n  %a = @part %x : f32[N,2]\n  %b = @part %a : f32[N,2]\n  %z = concat %b, %x : f32[N,width+width]\n  return %z\n}\n",
	"module @m\nfunc @half(%x: f32[N]) -> (y: f32[N], x: f32[N]) {\n  %y = dropout %x {rate=share, stream=\"s\"} : f32[N]\n  return %y, %x\n}\nfunc @f(%v: f32[N]) -> (y: f32[N]) {\n  %y, %same = @half %v : f32[N], f32[N]\n  return %y\n}\n",
}

// extensible returns names of a module with a function and a part.
func extensible(t testing.TB) Names {
	return Names{Values: map[string]any{"width": int64(2), "share": 0.5, "kind": "max"}, Extend: func(name string, params []*Value, replaced []*Func) (*Module, error) {
		if name != "base" {
			return nil, errors.New("no such model")
		}
		m, err := Parse("base", "module @base\nparam $w: f32[2,2]\nfunc @part(%x: f32[N,2]) -> (y: f32[N,2]) {\n  %y = matmul %x, $w : f32[N,2]\n  return %y\n}\nfunc @f(%x: f32[N,2], %m: f32[N]) -> (z: f32[N,4]) {\n  %z = concat %x, %x : f32[N,4]\n  return %z\n}\n")
		if err != nil {
			t.Fatal(err)
		}
		m.Params = append(m.Params, params...)
		m.Funcs, m.Parts = m.Funcs[1:], m.Funcs[:1]
		for _, r := range replaced {
			if f := m.function(r.Name); f != nil {
				f.Args, f.Body, f.Results = nil, nil, nil
				for _, a := range r.Args {
					f.Args = append(f.Args, &Value{Name: a.Name, Type: a.Type})
				}
				b := NewBuilder(m, f)
				for i, v := range b.Inline(r, f.Args...) {
					b.Return(r.Results[i].Name, v)
				}
			}
		}
		return m, nil
	}}
}

// What is parsed of an extension is a module by itself, which prints and parses to itself.
func TestExtensions(t *testing.T) {
	for _, src := range extensions {
		m, err := ParseNamed("test", src, extensible(t))
		if err != nil {
			t.Errorf("%v in\n%s", err, src)
			continue
		}
		roundTrip(t, m)
	}
	m, err := ParseNamed("test", extensions[2], extensible(t))
	if err != nil {
		t.Fatal(err)
	}
	want := "func @f(%x: f32[N,2], %m: f32[N]) -> (z: f32[N,4]) {\n  %a = matmul %x, $w : f32[N,2]\n  %b = matmul %a, $w : f32[N,2]\n  %z = concat %b, %x : f32[N,4]\n  return %z\n}\n"
	if got := m.Func("f").String(); got != want {
		t.Errorf("the function is\n%s", got)
	}
}

// Calls cannot make a short text a long program.
func TestCallsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("module @m\nfunc @f0(%x: f32[]) -> (y: f32[]) {\n  %y = neg %x : f32[]\n  return %y\n}\n")
	for range 40 {
		i := strings.Count(b.String(), "func")
		last := string(D(i - 1))
		b.WriteString("func @f" + string(D(i)) + "(%x: f32[]) -> (y: f32[]) {\n  %a = @f" + last + " %x : f32[]\n  %y = @f" + last + " %a : f32[]\n  return %y\n}\n")
	}
	if _, err := Parse("", b.String()); err == nil || !strings.Contains(err.Error(), "more than 65536 operations") {
		t.Errorf("calls of calls: %v", err)
	}
}

// A header tells which names may be sizes.
func TestParseHeader(t *testing.T) {
	h, err := ParseHeader("", "extends base func @f(%hidden: f32[N,features+4], %x: csr[a,b]) -> (out: f32[]) {y=classes, k=1} { %y = dropout %x {rate=rate} : f32[] return %y }")
	if err != nil || h.Name != "base" || !h.Extends {
		t.Fatal(h, err)
	}
	for name, want := range map[string]bool{"features": true, "classes": true, "rate": true, "N": true, "a": true, "b": true, "hidden": false, "dropout": false, "out": false, "x": false, "y": false} {
		if h.Names[name] != want {
			t.Errorf("%s stands for a value: %v", name, h.Names[name])
		}
	}
}
