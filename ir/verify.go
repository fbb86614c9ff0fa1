package ir

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Verify checks that a module is well formed: names are unique and can be
// written, every operand is defined above its use, attributes and types are
// what the table says, functions that attributes name exist, fit and do not
// call each other in a circle. The error names the function and the operation.
// With functions given, the bodies of these alone are checked.
func Verify(m *Module, funcs ...*Func) error {
	if !validName(m.Name) {
		return fmt.Errorf("module name %q cannot be written", m.Name)
	}
	if err := m.Attrs.check(moduleAttrs); err != nil {
		return fmt.Errorf("module @%s: %w", m.Name, err)
	}
	v := &verifier{funcs: map[string]*Func{}, params: map[*Value]bool{}, calls: map[*Func][]*Func{}, reads: map[*Func]*Value{}}
	names := map[string]bool{}
	for _, p := range m.Params {
		switch {
		case !validName(p.Name):
			return faultAt(p, "parameter name %q cannot be written", p.Name)
		case names[p.Name]:
			return faultAt(p, "parameter $%s is declared twice", p.Name)
		case p.Type.Layout != Dense || !p.Type.DType.IsFloat():
			return faultAt(p, "parameter $%s is %s, want a dense tensor of f32 or f64", p.Name, p.Type)
		}
		if err := checkType(p.Type); err != nil {
			return faultAt(p, "parameter $%s: %w", p.Name, err)
		}
		for _, d := range p.Type.Dims {
			if _, ok := d.Size(); !ok {
				return faultAt(p, "parameter $%s is %s: its dimensions must be sizes", p.Name, p.Type)
			}
		}
		if err := p.Attrs.check(paramAttrs); err != nil {
			return faultAt(p, "parameter $%s: %w", p.Name, err)
		}
		names[p.Name], v.params[p] = true, true
	}
	for _, f := range m.Funcs {
		switch {
		case !validName(f.Name):
			return faultAt(f, "function name %q cannot be written", f.Name)
		case v.funcs[f.Name] != nil:
			return faultAt(f, "function @%s is declared twice", f.Name)
		}
		v.funcs[f.Name] = f
	}
	if len(funcs) == 0 {
		funcs = m.Funcs
	}
	for _, f := range funcs {
		if err := v.fn(f); err != nil {
			return faultAt(f, "@%s: %w", f.Name, err)
		}
	}
	return v.acyclic(m)
}

type verifier struct {
	funcs  map[string]*Func
	params map[*Value]bool
	calls  map[*Func][]*Func
	reads  map[*Func]*Value // of step functions: a parameter that is read, or nil
}

func (v *verifier) fn(f *Func) error {
	defined := map[*Value]bool{}
	names := map[string]bool{}
	symbols := map[string]int{}
	define := func(x *Value) error {
		switch {
		case !validName(x.Name):
			return fmt.Errorf("value name %q cannot be written", x.Name)
		case names[x.Name]:
			return fmt.Errorf("%%%s is defined twice", x.Name)
		}
		names[x.Name], defined[x] = true, true
		return checkType(x.Type)
	}
	known := func(x *Value) bool { return defined[x] || v.params[x] }
	if err := f.Attrs.check(funcAttrs); err != nil {
		return err
	}
	for _, a := range f.Args {
		if err := cmp.Or(define(a), a.Attrs.check(argAttrs)); err != nil {
			return faultAt(a, "argument %%%s: %w", a.Name, err)
		}
		for _, d := range a.Type.Dims {
			symbols[string(d)] = 1
		}
	}
	if len(f.Body) > MaxOps {
		return faultAt(f, "%w", &SizeError{Func: f.Name})
	}
	for i, op := range f.Body {
		if op.Def == nil {
			return faultAt(op, "operation %d is none of the table", i)
		}
		if err := v.op(f, op, known, define, symbols); err != nil {
			return faultAt(op, "operation %d, %s: %w", i, op, err)
		}
	}
	results := map[string]bool{}
	for _, r := range f.Results {
		switch {
		case !validName(r.Name):
			return fmt.Errorf("result name %q cannot be written", r.Name)
		case r.Value == nil || !known(r.Value):
			return fmt.Errorf("result %s is not defined", r.Name)
		case results[r.Name]:
			return fmt.Errorf("result %s is declared twice", r.Name)
		}
		results[r.Name] = true
	}
	if name := f.Attrs.Str("differentiate"); name != "" {
		if r := f.Result(name); r == nil {
			return fmt.Errorf("attribute differentiate names %q, which is no result", name)
		} else if r.Type.IsGraph() || r.Type.Rank() != 0 || !r.Type.DType.IsFloat() {
			return fmt.Errorf("attribute differentiate names %q, which is %s, want a float scalar", name, r.Type)
		}
	}
	return nil
}

func (v *verifier) op(f *Func, op *Op, known func(*Value) bool, define func(*Value) error, symbols map[string]int) error {
	for k, x := range op.Operands {
		if x != nil && !known(x) {
			return fmt.Errorf("operand %d (%s) is not defined above", k, x.Ref())
		}
	}
	if err := cmp.Or(op.checkAttrs(), op.checkOperands()); err != nil {
		return err
	}
	if op.Def.Sizes {
		if err := op.checkNewDims(symbols); err != nil {
			return err
		}
	}
	for k, r := range op.Results {
		if r.Def != op || r.Index != k {
			return fmt.Errorf("result %%%s does not point back at its operation", r.Name)
		}
		if err := define(r); err != nil {
			return err
		}
		for _, d := range r.Type.Dims {
			if _, err := d.Resolve(symbols); err != nil {
				return fmt.Errorf("dimension %s is not that of any argument", d)
			}
		}
	}
	if _, err := op.infer(op.ResultTypes()); err != nil {
		return err
	}
	for _, spec := range op.Def.Attrs {
		if spec.Kind != FuncAttr {
			continue
		}
		callee := v.funcs[op.FuncRef(spec.Name)]
		if callee == nil {
			return fmt.Errorf("there is no function @%s", op.FuncRef(spec.Name))
		}
		if err := v.fitsCall(callee, op); err != nil {
			return err
		}
		v.calls[f] = append(v.calls[f], callee)
	}
	return nil
}

// fitsCall checks that a function takes the operands of an operation with a function
// attribute, and returns what it asks for: one number, or the state of what is unrolled.
func (v *verifier) fitsCall(f *Func, op *Op) error {
	if len(f.Args) != len(op.Operands) {
		return fmt.Errorf("@%s takes %d arguments, the operation has %d operands", f.Name, len(f.Args), len(op.Operands))
	}
	for i, a := range f.Args {
		if !a.Type.Equal(op.Operands[i].Type) {
			return fmt.Errorf("argument %%%s of @%s is %s, operand %d is %s", a.Name, f.Name, a.Type, i, op.Operands[i].Type)
		}
	}
	if op.Name() == "unroll" {
		return v.fitsStep(f, op)
	}
	if len(f.Results) != 1 || f.Results[0].Value == nil {
		return fmt.Errorf("@%s has %d results, want one float scalar", f.Name, len(f.Results))
	}
	if t := f.Results[0].Value.Type; t.IsGraph() || t.Rank() != 0 || !t.DType.IsFloat() {
		return fmt.Errorf("@%s returns %s, want a float scalar", f.Name, t)
	}
	return nil
}

// fitsStep checks the results of a step function, and what it reads.
func (v *verifier) fitsStep(f *Func, op *Op) error {
	if len(f.Results) != len(op.Results) {
		return fmt.Errorf("@%s has %d results, want the state, which is %d", f.Name, len(f.Results), len(op.Results))
	}
	for i, r := range f.Results {
		if want := f.Args[i]; r.Value == nil || !r.Value.Type.Equal(want.Type) {
			return fmt.Errorf("result %s of @%s is not of the type %s of %%%s, the state that it follows", r.Name, f.Name, want.Type, want.Name)
		}
	}
	if op.Bool("detach") {
		return nil
	}
	if _, known := v.reads[f]; !known { // many operations may have one step
		v.reads[f] = f.readsParam()
	}
	if p := v.reads[f]; p != nil {
		return fmt.Errorf("@%s reads the parameter %s; give it as an operand, so that gradients find it", f.Name, p.Ref())
	}
	return nil
}

// readsParam returns the first parameter that an operation reads, or nil.
func (f *Func) readsParam() *Value {
	for _, o := range f.Body {
		for _, v := range o.Operands {
			if v != nil && v.Param {
				return v
			}
		}
	}
	return nil
}

// acyclic checks that no function reaches itself through function attributes.
func (v *verifier) acyclic(m *Module) error {
	const busy, done = 1, 2
	state := map[*Func]int{}
	var visit func(f *Func) error
	visit = func(f *Func) error {
		state[f] = busy
		for _, g := range v.calls[f] {
			if state[g] == busy {
				return faultAt(g, "@%s: the function calls itself, by way of @%s", g.Name, f.Name)
			}
			if state[g] == 0 {
				if err := visit(g); err != nil {
					return err
				}
			}
		}
		state[f] = done
		return nil
	}
	for _, f := range m.Funcs {
		if state[f] == 0 {
			if err := visit(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// MaxSize bounds a fixed dimension; kernels and ONNX count in 32 bits within a
// dimension.
const MaxSize = math.MaxInt32

// checkType checks what a type literal could not say wrong.
func checkType(t Type) error {
	switch {
	case int(t.DType) >= len(dtypeNames) || t.Layout > Structure:
		return fmt.Errorf("unknown element type or layout")
	case t.Layout == Dense && t.Rank() > 2:
		return fmt.Errorf("%s has %d dimensions; a tensor has at most two", t, t.Rank())
	case t.Layout != Dense && (t.Rank() != 2 && !t.IsBlock() || t.DType != F32):
		return fmt.Errorf("%s: want two dimensions and the element type f32", t)
	}
	for _, d := range t.Dims {
		if strings.Count(string(d), "+") >= maxTerms {
			return fmt.Errorf("a dimension is a sum of more than %d", maxTerms)
		}
		for _, part := range strings.Split(string(d), "+") {
			if n, err := strconv.Atoi(part); err == nil && n >= 0 && strconv.Itoa(n) == part {
				if n > MaxSize {
					return fmt.Errorf("dimension %s is too large; at most %d", d, MaxSize)
				}
				continue
			}
			if !validSymbol(part) {
				return fmt.Errorf("%q is no dimension", d)
			}
		}
	}
	return nil
}

// validName reports whether a name can be written after a sigil.
func validName(s string) bool {
	for i := range len(s) {
		if !isIdentByte(s[i]) {
			return false
		}
	}
	return s != "" && s[0] != '.'
}

// validSymbol reports whether a name can be written without a sigil.
func validSymbol(s string) bool { return validName(s) && (s[0] < '0' || s[0] > '9') }
