package ir

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/nearest"
)

type parser struct {
	file   string
	lexer  lexer
	ahead  []token // what is read and not taken
	last   token   // what was taken last
	m      *Module
	params map[string]*Value
	funcs  map[string]*Func  // nil while one is read
	env    map[string]*Value // values of the function being read

	// What follows is for texts with names from elsewhere.
	names    Names
	base     string   // the model that the text extends; empty: none
	added    []*Value // parameters of the text beside those of the base
	replaced []*Func
	called   []string // functions that were called
	copied   int      // operations that calls have become
}

// maxSource is the longest text that is read. The largest models print to some
// hundred KiB; the bound keeps hostile input from filling the memory.
const maxSource = 16 << 20

// Parse reads a module from its text form. file names the source in errors,
// which are of type *SyntaxError. A parsed module is verified.
func Parse(file, src string) (*Module, error) { return ParseNamed(file, src, Names{}) }

// newParser returns the parser of a text, which reads it as it goes: tokens take many times
// the memory of short words.
func newParser(file, src string, names Names) (*parser, error) {
	p := &parser{file: file, m: &Module{Attrs: Attrs{}}, params: map[string]*Value{}, funcs: map[string]*Func{}, names: names}
	if len(src) > maxSource {
		return nil, &SyntaxError{File: file, Line: 1, Col: 1, Msg: fmt.Sprintf("the text has %d bytes; at most %d are read", len(src), maxSource)}
	}
	p.lexer = lexer{src: strings.TrimPrefix(src, "\ufeff"), line: 1, col: 1} // editors on Windows begin files with that mark
	return p, nil
}

// recovered makes what fail panics with an error.
func (p *parser) recovered(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(*SyntaxError)
		if !ok {
			panic(r)
		}
		e.File = p.file
		*err = e
	}
}

// failAt fails with an error where what it is about stands, or else at t.
func (p *parser) failAt(t token, err error) {
	if s := (*SyntaxError)(nil); errors.As(Placed(err), &s) {
		panic(s)
	}
	p.fail(t, "%v", err)
}

func (p *parser) place(t token) *Place {
	return &Place{File: p.file, Line: t.line, Col: t.col, Near: firstLine(t.text)}
}

func (p *parser) peek() token { return p.peekAt(0) }

func (p *parser) peekAt(n int) token {
	for len(p.ahead) <= n {
		t, err := p.lexer.next()
		if err != nil {
			panic(err)
		}
		p.ahead = append(p.ahead, t)
	}
	return p.ahead[n]
}

func (p *parser) take() token {
	p.last = p.peek()
	p.ahead = append(p.ahead[:0], p.ahead[1:]...)
	return p.last
}

func (p *parser) fail(t token, format string, args ...any) {
	near := firstLine(t.text)
	if t.kind == tokEOF {
		near = "end of file"
	}
	panic(&SyntaxError{Line: t.line, Col: t.col, Near: near, Msg: shortened(fmt.Sprintf(format, args...))})
}

func (p *parser) accept(text string) bool {
	if t := p.peek(); t.text == text && t.kind != tokString && t.kind != tokEOF {
		p.take()
		return true
	}
	return false
}

func (p *parser) want(text string) {
	if !p.accept(text) {
		p.fail(p.peek(), "expected %q", text)
	}
}

// ident reads a name; after a sigil it may begin with a digit.
func (p *parser) ident() (string, token) {
	t := p.take()
	if t.kind != tokIdent && (t.kind != tokNumber || strings.ContainsAny(t.text, "+-")) {
		p.fail(t, "expected a name")
	}
	return t.text, t
}

func (p *parser) module() {
	if p.accept("extends") {
		p.extends()
	} else {
		p.want("module")
		p.want("@")
		p.m.Name, _ = p.ident()
		p.m.Attrs = p.attrs()
	}
	for p.accept("param") {
		p.want("$")
		name, t := p.ident()
		if p.params[name] != nil {
			p.fail(t, "parameter $%s is declared twice", name)
		}
		p.want(":")
		v := &Value{Name: name, Param: true, Place: p.place(t)}
		typ := p.peek()
		v.Type = p.typ()
		for _, d := range v.Type.Dims {
			if _, ok := d.Size(); !ok {
				hint := ""
				if n := nearest.Of(string(d), slices.Sorted(maps.Keys(p.names.Values))); n != "" {
					hint = fmt.Sprintf("; did you mean %q?", n)
				}
				p.fail(typ, "parameter $%s is %s: its dimensions must be sizes, and %s is none%s", name, v.Type, d, hint)
			}
		}
		v.Attrs = p.attrs()
		for k, x := range v.Attrs {
			if s := attrNamed(paramAttrs, k); s != nil {
				v.Attrs[k] = normalAttr(x, s.Kind)
			}
		}
		p.params[name] = v
		p.m.Params, p.added = append(p.m.Params, v), append(p.added, v)
	}
	for p.accept("func") {
		p.fn()
	}
	if t := p.peek(); t.kind != tokEOF {
		p.fail(t, `expected "param", "func" or the end of the module`)
	}
}

func (p *parser) fn() {
	p.want("@")
	name, t := p.ident()
	if _, twice := p.funcs[name]; twice {
		p.fail(t, "function @%s is declared twice", name)
	}
	f, called := &Func{Name: name, Place: p.place(t)}, len(p.called)
	p.funcs[name] = nil
	var original *Func
	if p.base != "" {
		original = p.original(name, t)
	}
	p.env = map[string]*Value{}
	p.want("(")
	for !p.accept(")") {
		if len(f.Args) > 0 {
			p.want(",")
		}
		v := p.define()
		p.want(":")
		v.Type = p.typ()
		if a := p.attrs(); len(a) > 0 {
			v.Attrs = a
		}
		f.Args = append(f.Args, v)
	}
	p.want("->")
	p.want("(")
	var types []Type
	declared := map[string]bool{}
	for !p.accept(")") {
		if len(types) > 0 {
			p.want(",")
		}
		n, t := p.ident()
		if declared[n] {
			p.fail(t, "result %s is declared twice", n)
		}
		declared[n] = true
		p.want(":")
		types = append(types, p.typ())
		f.Results = append(f.Results, Result{Name: n})
	}
	if original != nil {
		want, got := signature(original.Args, original.Results, resultTypes(original)), signature(f.Args, f.Results, types)
		if got != want {
			p.fail(t, "@%s has another signature than in %s: here %s, there %s", name, p.base, got, want)
		}
	}
	// The body opens with the same brace as attributes do.
	if next := p.peekAt(1); next.kind == tokIdent && (next.text != "return" || p.peekAt(2).text == "=") || next.text == "}" && p.peekAt(2).text == "{" {
		f.Attrs = p.attrs()
	} else {
		f.Attrs = Attrs{}
	}
	p.want("{")
	for p.peek().text == "%" {
		p.op(f)
	}
	if p.peek().text != "return" {
		p.fail(p.peek(), `expected an operation (%%value = ...) or "return"`)
	}
	p.take()
	for i := range f.Results {
		if i > 0 {
			p.want(",")
		}
		t := p.peek()
		v := p.operand()
		if v == nil {
			p.fail(t, "result %s must be a value", f.Results[i].Name)
		}
		if !v.Type.Equal(types[i]) {
			p.fail(t, "result %s is declared %s, %s is %s", f.Results[i].Name, types[i], v.Ref(), v.Type)
		}
		f.Results[i].Value = v
	}
	if t := p.peek(); t.text == "," || len(f.Results) == 0 && t.text != "}" {
		p.fail(t, "@%s declares %d results, more are returned", name, len(f.Results))
	}
	p.want("}")
	if original != nil {
		p.replace(f, original, t, p.called[:called])
	} else {
		p.m.Funcs, p.funcs[name] = append(p.m.Funcs, f), f
	}
}

// define reads "%name" and enters a new value.
func (p *parser) define() *Value {
	p.want("%")
	name, t := p.ident()
	v := &Value{Name: name, Place: p.place(t)}
	p.enter(name, v, t)
	return v
}

// operand reads a value, a parameter or "_", for which it returns nil.
func (p *parser) operand() *Value {
	t := p.take()
	switch t.text {
	case "_":
		return nil
	case "%":
		name, t := p.ident()
		v := p.env[name]
		if v == nil {
			p.fail(t, "%%%s is not defined above", name)
		}
		return v
	case "$":
		name, t := p.ident()
		v := p.params[name]
		if v == nil {
			p.fail(t, "parameter $%s is not declared", name)
		}
		return v
	}
	p.fail(t, `expected an operand: %%value, $parameter or "_"`)
	return nil
}

// operands reads the operands of an operation or a call, none if there are none.
func (p *parser) operands() []*Value {
	var operands []*Value
	if t := p.peek(); t.text == "%" || t.text == "$" || t.text == "_" {
		operands = append(operands, p.operand())
		for p.accept(",") {
			operands = append(operands, p.operand())
		}
	}
	return operands
}

// types reads the types of results.
func (p *parser) types() []Type {
	types := []Type{p.typ()}
	for p.accept(",") {
		types = append(types, p.typ())
	}
	return types
}

// op reads a line of a function.
func (p *parser) op(f *Func) {
	start := p.peek()
	var names []string
	var at []token
	for {
		p.want("%")
		n, t := p.ident()
		names, at = append(names, n), append(at, t)
		if !p.accept(",") {
			break
		}
	}
	p.want("=")
	if p.accept("@") {
		p.call(f, names, at)
		return
	}
	opName, nameTok := p.ident()
	operands := p.operands()
	attrs := p.attrs()
	p.want(":")
	types := p.types()
	if len(types) != len(names) {
		p.fail(start, "%d names and %d types", len(names), len(types))
	}
	op, err := newOp(opName, attrs, types, operands)
	if err != nil {
		p.fail(nameTok, "%v", err)
	}
	op.Place = p.place(nameTok)
	for i, n := range names {
		op.Results[i].Name = n
		p.enter(n, op.Results[i], at[i])
	}
	f.Body = append(f.Body, op)
}

func (p *parser) attrs() Attrs {
	a := Attrs{}
	if !p.accept("{") {
		return a
	}
	for !p.accept("}") {
		if len(a) > 0 {
			p.want(",")
		}
		name, t := p.ident()
		if t.kind != tokIdent {
			p.fail(t, "expected the name of an attribute")
		}
		if _, ok := a[name]; ok {
			p.fail(t, "attribute %s is set twice", name)
		}
		p.want("=")
		a[name] = p.literal()
	}
	return a
}

func (p *parser) literal() any {
	t := p.take()
	switch {
	case t.kind == tokString:
		s, err := strconv.Unquote(t.text)
		if err != nil {
			p.fail(t, "malformed string")
		}
		return s
	case t.text == "@":
		name, _ := p.ident()
		return FuncRef(name)
	case t.text == "true", t.text == "false":
		return t.text == "true"
	case t.kind == tokNumber || t.text == "NaN":
		if i, err := strconv.ParseInt(t.text, 10, 64); err == nil {
			return i
		}
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			p.fail(t, "malformed number")
		}
		return f
	}
	if t.kind == tokIdent {
		if v := p.named(t); v != nil {
			return v
		}
	}
	p.fail(t, "expected a value: a number, a string, true, false or @function")
	return nil
}

func (p *parser) typ() Type {
	name, t := p.ident()
	switch name {
	case "graph":
		p.want("<")
		n := p.dim()
		p.want(",")
		e := p.dim()
		if p.accept(",") {
			s := p.dim()
			p.want(">")
			return BlockType(n, e, s)
		}
		p.want(">")
		return GraphType(n, e)
	case "csr":
		p.want("[")
		r := p.dim()
		p.want(",")
		c := p.dim()
		p.want("]")
		return Type{DType: F32, Layout: CSR, Dims: []Dim{r, c}}
	}
	for d, s := range dtypeNames {
		if s != name {
			continue
		}
		typ := Type{DType: DType(d)}
		p.want("[")
		for !p.accept("]") {
			if len(typ.Dims) > 0 {
				p.want(",")
			}
			typ.Dims = append(typ.Dims, p.dim())
		}
		if len(typ.Dims) > 2 {
			p.fail(t, "a tensor has at most two dimensions")
		}
		return typ
	}
	p.fail(t, "unknown type; want f32, f64, i64, bool, csr or graph")
	return Type{}
}

// maxTerms bounds the terms of a dimension: it is read again wherever a type is compared.
const maxTerms = 64

// dim reads a dimension. Names that have a value are sizes, and added to others.
func (p *parser) dim() Dim {
	var parts []string
	total, bound, fixed := 0, false, true
	for {
		t := p.take()
		if len(parts) == maxTerms {
			p.fail(t, "the dimension is a sum of more than %d; give it a name", maxTerms)
		}
		switch v, known := p.names.Values[t.text]; {
		case t.kind == tokIdent && known:
			n, ok := v.(int64)
			if !ok || n < 0 || n > MaxSize {
				p.fail(t, "%s is %v, which is no size", t.text, v)
			}
			t.text, bound = strconv.FormatInt(n, 10), true
			total += int(n)
		case t.kind == tokIdent:
			if strings.Contains(t.text, ".") { // an option, not a symbol
				p.named(t)
			}
			fixed = false
		case t.kind == tokNumber:
			n, err := strconv.Atoi(t.text)
			if err != nil || n < 0 || n > MaxSize {
				p.fail(t, "malformed dimension; want a name or a size of at most %d", MaxSize)
			}
			t.text = strconv.Itoa(n)
			total += n
		default:
			p.fail(t, "expected a dimension: a name or a size")
		}
		if total > MaxSize && bound {
			p.fail(t, "the dimension is more than %d", MaxSize)
		}
		parts = append(parts, t.text)
		if p.accept("+") {
			continue
		}
		if bound && fixed {
			return D(total)
		}
		return Dim(strings.Join(parts, "+"))
	}
}
