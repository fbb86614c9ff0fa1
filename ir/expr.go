package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Expr is what a fused operation computes of every element: a chain of
// pointwise operations that passes write and kernels run strip by strip. Its
// text form is the attribute expr,
//
//	expr = { name "=" term ";" } term
//	term = number | "p" | "x" digits | name | op "(" [ term { "," term } ] ")"
//
// where p is the product that the operation makes, x0, x1, … are the operands
// that its elements are combined with, and a name stands for a term used more
// than once. The attributes of an operation, such as the slope of leaky_relu,
// follow its operands as numbers; what is random draws from the stream that the
// fused operation names. For example "elu(add(p, x0))", or
// "add(x0, mul(normal(), 0.01))".
type Expr struct {
	Steps []ExprStep // in order of evaluation
	Out   ExprArg
}

// ExprStep is one pointwise operation of an expression.
type ExprStep struct {
	Def  *OpDef
	Args []ExprArg
	Attr float64 // the operation's attribute, if it has one beside the stream
}

// ExprArg is what a step reads.
type ExprArg struct {
	Kind  ExprKind
	Index int     // of an operand or a step
	Value float64 // of a number
}

// ExprKind says what an argument of a step is.
type ExprKind uint8

// The kinds of arguments.
const (
	ExprOperand ExprKind = iota // x0, x1, …
	ExprResult                  // of an earlier step
	ExprNumber                  // a constant
	ExprProduct                 // p
)

// NumberAttr returns the attribute of a pointwise operation that is written among its
// arguments in expressions, such as the slope of leaky_relu, or nil.
func (d *OpDef) NumberAttr() *AttrSpec {
	for i := range d.Attrs {
		if d.Attrs[i].Name != "stream" {
			return &d.Attrs[i]
		}
	}
	return nil
}

// Number returns the value of [OpDef.NumberAttr]; 0 where there is none.
func (o *Op) Number() float64 {
	if a := o.Def.NumberAttr(); a != nil {
		return o.Float(a.Name)
	}
	return 0
}

// Attrs returns the attributes of the step as an operation of its own.
func (s *ExprStep) Attrs(stream string) Attrs {
	attrs := Attrs{}
	if a := s.Def.NumberAttr(); a != nil {
		attrs[a.Name] = s.Attr
	}
	if s.Def.Random {
		attrs["stream"] = stream
	}
	return attrs
}

// Draws reports whether the expression holds a random operation.
func (e *Expr) Draws() bool {
	return slices.ContainsFunc(e.Steps, func(s ExprStep) bool { return s.Def.Random })
}

// String returns the text form.
func (e *Expr) String() string {
	uses := make([]int, len(e.Steps))
	count := func(a ExprArg) {
		if a.Kind == ExprResult {
			uses[a.Index]++
		}
	}
	for _, s := range e.Steps {
		for _, a := range s.Args {
			count(a)
		}
	}
	count(e.Out)
	var lets strings.Builder
	text := make([]string, len(e.Steps))
	term := func(a ExprArg) string {
		switch a.Kind {
		case ExprOperand:
			return fmt.Sprintf("x%d", a.Index)
		case ExprNumber:
			return literal(a.Value)
		case ExprProduct:
			return "p"
		}
		return text[a.Index]
	}
	named := 0
	for i, s := range e.Steps {
		var args []string
		for _, a := range s.Args {
			args = append(args, term(a))
		}
		if s.Def.NumberAttr() != nil {
			args = append(args, literal(s.Attr))
		}
		text[i] = s.Def.Name + "(" + strings.Join(args, ", ") + ")"
		if uses[i] > 1 {
			name := fmt.Sprintf("t%d", named)
			named++
			fmt.Fprintf(&lets, "%s = %s; ", name, text[i])
			text[i] = name
		}
	}
	return lets.String() + term(e.Out)
}

// ParseExpr reads the text form.
func ParseExpr(text string) (*Expr, error) {
	p := &exprParser{text: text, names: map[string]ExprArg{}}
	for {
		start := p.pos
		name := p.word()
		if name == "" || !p.take('=') {
			p.pos = start
			break
		}
		if name == "p" || isOperand(name) || p.names[name].Kind == ExprResult || Lookup(name) != nil {
			return nil, fmt.Errorf("expression %q: the name %s is taken", text, name)
		}
		a, err := p.term()
		if err != nil {
			return nil, err
		}
		if a.Kind != ExprResult {
			return nil, fmt.Errorf("expression %q: %s is no operation", text, name)
		}
		if !p.take(';') {
			return nil, p.expected("\";\"")
		}
		p.names[name] = a
	}
	out, err := p.term()
	if err != nil {
		return nil, err
	}
	if p.space(); p.pos < len(text) {
		return nil, p.expected("the end")
	}
	p.e.Out = out
	return &p.e, nil
}

type exprParser struct {
	text  string
	pos   int
	e     Expr
	names map[string]ExprArg
	depth int // of the term that is read
}

func (p *exprParser) space() {
	for p.pos < len(p.text) && p.text[p.pos] == ' ' {
		p.pos++
	}
}

func (p *exprParser) take(c byte) bool {
	p.space()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

// word reads a name or a number.
func (p *exprParser) word() string {
	p.space()
	start := p.pos
	for p.pos < len(p.text) && !strings.ContainsRune(" ,;=()", rune(p.text[p.pos])) {
		p.pos++
	}
	return p.text[start:p.pos]
}

func (p *exprParser) expected(what string) error {
	return fmt.Errorf("expression %q: %s is expected at character %d", p.text, what, p.pos+1)
}

func isOperand(w string) bool {
	_, err := strconv.ParseUint(w[1:], 10, 16)
	return w[0] == 'x' && err == nil
}

func (p *exprParser) term() (ExprArg, error) {
	w := p.word()
	if w == "" {
		return ExprArg{}, p.expected("a term")
	}
	if a, ok := p.names[w]; ok {
		return a, nil
	}
	if w == "p" {
		return ExprArg{Kind: ExprProduct}, nil
	}
	if isOperand(w) {
		n, _ := strconv.Atoi(w[1:])
		return ExprArg{Kind: ExprOperand, Index: n}, nil
	}
	if v, err := strconv.ParseFloat(w, 64); err == nil {
		return ExprArg{Kind: ExprNumber, Value: v}, nil
	}
	d := Lookup(w)
	if d == nil || !d.InExpr {
		return ExprArg{}, fmt.Errorf("expression %q: %q is neither a pointwise operation nor a name", p.text, w)
	}
	return p.step(d)
}

// step reads the arguments of an operation.
func (p *exprParser) step(d *OpDef) (ExprArg, error) {
	if !p.take('(') {
		return ExprArg{}, p.expected("\"(\"")
	}
	if p.depth++; p.depth > MaxOps {
		return ExprArg{}, fmt.Errorf("more than %d operations of the expression stand in each other; name some of them", MaxOps)
	}
	s := ExprStep{Def: d}
	for !p.take(')') {
		if len(s.Args) > 0 && !p.take(',') {
			return ExprArg{}, p.expected("\",\" or \")\"")
		}
		a, err := p.term()
		if err != nil {
			return ExprArg{}, err
		}
		s.Args = append(s.Args, a)
	}
	want := len(d.Operands)
	if d.NumberAttr() != nil {
		want++
		if n := len(s.Args); n == want && s.Args[n-1].Kind == ExprNumber {
			s.Attr, s.Args = s.Args[n-1].Value, s.Args[:n-1]
			want--
		}
	}
	if len(s.Args) != want {
		attr := ""
		if a := d.NumberAttr(); a != nil {
			attr = " and the number " + a.Name
		}
		return ExprArg{}, fmt.Errorf("expression %q: %s takes %s%s", p.text, d.Name, d.Signature(), attr)
	}
	p.depth--
	p.e.Steps = append(p.e.Steps, s)
	return ExprArg{Kind: ExprResult, Index: len(p.e.Steps) - 1}, nil
}

// Expr returns the expression of a fused operation. It panics where the
// attribute is none, which the type rule reports.
func (o *Op) Expr() *Expr {
	e, err := ParseExpr(o.Str("expr"))
	if err != nil {
		panic("ir: " + err.Error())
	}
	return e
}

// wantExpr checks the expression of a fused operation whose result has type t,
// and the operands from position first on, which it reads as x0, x1, ….
func (c *InferCtx) wantExpr(t Type, first int, product bool) {
	e, err := ParseExpr(c.Op.Str("expr"))
	if err != nil {
		fail("%w", err)
	}
	read := make([]bool, len(c.Op.Operands)-min(first, len(c.Op.Operands)))
	args := []ExprArg{e.Out}
	draws := 0
	for _, s := range e.Steps {
		args = append(args, s.Args...)
		if s.Def.Random {
			draws++
		}
		if a := s.Def.NumberAttr(); a != nil && !a.Range.Holds(s.Attr) {
			fail("%s %g of %s must be %s", a.Name, s.Attr, s.Def.Name, a.Range)
		}
	}
	for _, a := range args {
		switch {
		case a.Kind == ExprProduct && !product:
			fail("the expression reads p, but there is no product")
		case a.Kind == ExprOperand && a.Index >= len(read):
			fail("the expression reads x%d of %d operands", a.Index, len(read))
		case a.Kind == ExprOperand:
			read[a.Index] = true
		}
	}
	if i := slices.Index(read, false); i >= 0 {
		fail("the expression does not read x%d", i)
	}
	if stream := c.Op.Str("stream"); draws > 1 || (draws == 1) != (stream != "") {
		fail("the expression draws %d times, want once where a stream is named (it is %q) and never elsewhere", draws, stream)
	}
	for i := range read {
		x := c.In(first + i)
		if x.DType != t.DType {
			fail("x%d is %s, want %s", i, x.DType, t.DType)
		}
		if dims, err := broadcastDims(t.Dims, x.Dims); err != nil || !t.SameShape(t.WithDims(dims...)) || x.Rank() > t.Rank() {
			fail("x%d is %s, which cannot be repeated to %s", i, x, t)
		}
	}
}

// evalExpr evaluates the expression by the reference evaluations of its steps.
// product may be nil; the operands from position first on are its own.
func (c *EvalCtx) evalExpr(product *Tensor, first int) {
	shape := c.Shapes[0]
	results := []Val{}
	e := c.Op.Expr()
	value := func(a ExprArg) *Tensor {
		switch a.Kind {
		case ExprResult:
			return results[a.Index].T
		case ExprProduct:
			return product
		}
		y := NewTensor(shape...)
		if a.Kind == ExprNumber {
			for i := range y.Data {
				y.Data[i] = a.Value
			}
			return y
		}
		x := c.T(first + a.Index)
		at := broadcaster(shape, x.Shape)
		for i := range y.Data {
			y.Data[i] = x.Data[at(i)]
		}
		return y
	}
	for _, s := range e.Steps {
		step := &EvalCtx{Op: &Op{Def: s.Def, Attrs: s.Attrs(c.Op.Str("stream"))}, Out: make([]Val, 1), Shapes: c.Shapes, Random: c.Random, interp: c.interp}
		for _, a := range s.Args {
			step.In = append(step.In, Val{T: value(a)})
		}
		s.Def.Eval(step)
		results = append(results, step.Out[0])
	}
	c.Set(0, value(e.Out).Clone())
}
