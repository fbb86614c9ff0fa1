package ir

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/nearest"
)

// Names gives a meaning to names of a text that it does not define itself.
type Names struct {
	// Values stand where a text has their names in the place of a size ("f32[N,features]") or
	// of an attribute's value ("tau=ecl.tau"): int64, float64, bool or string.
	Values map[string]any
	// Extend returns the module that a text extends which begins with "extends base", with
	// parameters added to it and functions of it, or parts, replaced. Each call gives another
	// module; functions may read parameters of an earlier one, which those of the same names
	// are meant by. nil: a text cannot extend any.
	Extend func(base string, params []*Value, replaced []*Func) (*Module, error)
}

// Header is what a text says of itself, without its functions.
type Header struct {
	Name    string          // of the module, or the model that it extends
	Extends bool            // whether it is the latter
	Names   map[string]bool // words where a size or the value of an attribute stands

	file string
	at   token // of the name
}

// Errorf returns a *[SyntaxError] about the name.
func (h *Header) Errorf(format string, args ...any) error {
	return &SyntaxError{File: h.file, Line: h.at.line, Col: h.at.col, Near: h.Name, Msg: fmt.Sprintf(format, args...)}
}

// ParseHeader reads the first line of a text. A fault is a *SyntaxError.
func ParseHeader(file, src string) (h Header, err error) {
	p, err := newParser(file, src, Names{})
	if err != nil {
		return h, err
	}
	defer p.recovered(&err)
	if h.Extends = p.accept("extends"); !h.Extends {
		p.want("module")
		p.want("@")
	}
	h.file = file
	h.Name, h.at = p.ident()
	if rest := p.peek(); h.Extends && rest.line == h.at.line && strings.HasPrefix(rest.text, "-") { // of a name as options have it
		for ; rest.line == h.at.line && rest.kind != tokEOF; rest = p.peek() {
			h.Name += p.take().text
		}
		return h, h.Errorf("names have no - here: write %s", strings.ReplaceAll(h.Name, "-", "_"))
	}
	h.Names = map[string]bool{}
	for before := p.last; p.peek().kind != tokEOF; before = p.last {
		if t := p.take(); t.kind == tokIdent && strings.Contains("[<,+=", before.text) && strings.Contains("]>,+}", p.peek().text) {
			h.Names[t.text] = true
		}
	}
	return h, nil
}

// ParseNamed is Parse of a text with further names.
func ParseNamed(file, src string, names Names) (m *Module, err error) {
	p, err := newParser(file, src, names)
	if err != nil {
		return nil, err
	}
	defer p.recovered(&err)
	start := p.peek()
	p.module()
	if err := Verify(p.m); err != nil {
		p.failAt(start, err)
	}
	return p.m, nil
}

// extends reads the first line of a text that extends a model.
func (p *parser) extends() {
	t := p.peek()
	p.base, _ = p.ident()
	if p.names.Extend == nil {
		p.fail(t, "a program that extends a model is built for data, and there are none here")
	}
	p.rebuild(t)
}

// rebuild builds what the text extends with what was read so far. at is what an error is of.
func (p *parser) rebuild(at token) {
	m, err := p.names.Extend(p.base, p.added, p.replaced)
	if err == nil {
		err = Verify(m)
	}
	if err != nil {
		p.failAt(at, err)
	}
	p.m = m
	for _, v := range m.Params {
		p.params[v.Name] = v
	}
}

// original returns the function that one of the text replaces.
func (p *parser) original(name string, at token) *Func {
	f := p.m.function(name)
	if f == nil {
		var names []string
		for _, f := range slices.Concat(p.m.Funcs, p.m.Parts) {
			names = append(names, f.Name)
		}
		p.fail(at, "%s has no function @%s to replace; it has @%s", p.base, name, strings.Join(names, ", @"))
	}
	return f
}

// replace puts a function of the text into the place of that of the base. called are those that
// functions above called.
func (p *parser) replace(f, of *Func, at token, called []string) {
	keep := func(what string, attrs *Attrs, of Attrs) {
		if len(*attrs) > 0 && !maps.Equal(*attrs, of) {
			p.fail(at, "@%s: %s has the attributes%s, in %s%s; leave them out", f.Name, what, attrs.text(), p.base, cmp.Or(of.text(), " none"))
		}
		*attrs = of.Clone()
	}
	keep("it", &f.Attrs, of.Attrs)
	for i, a := range of.Args {
		keep("%"+a.Name, &f.Args[i].Attrs, a.Attrs)
	}
	p.replaced = append(p.replaced, f)
	before := p.m
	p.rebuild(at)
	for _, name := range called {
		if before.function(name).String() != p.m.function(name).String() {
			p.fail(at, "@%s is replaced below a call of @%s, which it changes; put it above", f.Name, name)
		}
	}
}

// function returns the function or part of a name, or nil.
func (m *Module) function(name string) *Func {
	if f := m.Func(name); f != nil {
		return f
	}
	return m.Part(name)
}

// call reads a call, "@name operands : types", whose body takes its place.
func (p *parser) call(f *Func, names []string, at []token) {
	name, t := p.ident()
	callee := p.funcs[name]
	if p.base != "" {
		callee = p.m.function(name)
	}
	if callee == nil {
		p.fail(t, "there is no function @%s above this one", name)
	}
	p.called = append(p.called, name)
	operands := p.operands()
	wrong := func(format string, args ...any) {
		p.fail(t, "%s; it is @%s%s", fmt.Sprintf(format, args...), name, signature(callee.Args, callee.Results, resultTypes(callee)))
	}
	if len(operands) != len(callee.Args) {
		wrong("@%s is called with %d arguments", name, len(operands))
	}
	needed := map[*Value]bool{}
	if slices.Contains(operands, nil) {
		needed = callee.needed()
	}
	for i, v := range operands {
		switch a := callee.Args[i]; {
		case v == nil && needed[a]:
			wrong("argument %%%s cannot be absent", a.Name)
		case v != nil && !v.Type.Equal(a.Type):
			wrong("argument %%%s is given %s", a.Name, v.Type)
		}
	}
	p.want(":")
	types := p.types()
	if len(types) != len(names) || !slices.EqualFunc(types, resultTypes(callee), Type.Equal) {
		wrong("@%s does not return what is written", name)
	}
	if p.copied += len(callee.Body) + 1; p.copied > MaxOps {
		p.fail(t, "%v", &SizeError{Func: f.Name})
	}
	start := len(f.Body)
	b := &Builder{Module: p.m, Func: f, names: map[string]int{}, insert: -1, prefix: names[0]}
	out := b.Inline(callee, operands...)
	place := p.place(t)
	result := map[*Value]string{}
	for i, r := range slices.Backward(out) {
		result[r] = names[i]
	}
	for _, op := range f.Body[start:] {
		op.Place = place
		if s := op.Attrs.Str("stream"); s != "" { // so that another call draws other numbers
			op.Attrs["stream"] = names[0] + "." + s
		}
		for _, r := range op.Results {
			if n := result[r]; n != "" {
				r.Name = n
			} else {
				p.enter(r.Name, r, t)
			}
		}
	}
	for i, n := range names {
		p.enter(n, out[i], at[i])
	}
}

// enter makes a value known by a name.
func (p *parser) enter(name string, v *Value, at token) {
	if p.env[name] != nil {
		p.fail(at, "%%%s is defined twice", name)
	}
	p.env[name] = v
}

func resultTypes(f *Func) []Type {
	var types []Type
	for _, r := range f.Results {
		types = append(types, r.Value.Type)
	}
	return types
}

// named returns the value that a name has from outside the text.
func (p *parser) named(t token) any {
	v, ok := p.names.Values[t.text]
	if !ok && len(p.names.Values) > 0 {
		p.fail(t, "no size or option is called %s%s", t.text, nearest.Hint(t.text, slices.Sorted(maps.Keys(p.names.Values))))
	}
	return v
}

// Optional reports whether an argument may be absent in a copy of the function: where it is
// read by operands only that may be.
func (f *Func) Optional(arg *Value) bool { return !f.needed()[arg] }

// needed are the values that may not be absent.
func (f *Func) needed() map[*Value]bool {
	needed := map[*Value]bool{}
	for _, op := range f.Body {
		for i, v := range op.Operands {
			if !op.Def.operand(i).Optional {
				needed[v] = true
			}
		}
	}
	for _, r := range f.Results {
		needed[r.Value] = true
	}
	return needed
}

// Part returns the part of a name, or nil.
func (m *Module) Part(name string) *Func {
	return first(m.Parts, func(f *Func) bool { return f.Name == name })
}
