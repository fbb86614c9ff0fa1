package ir

import (
	"fmt"
	"maps"
	"slices"
)

// Module is a program: parameters and the functions that read them.
type Module struct {
	Name   string
	Attrs  Attrs
	Params []*Value // parameters in order of declaration, Value.Param set
	Funcs  []*Func
	// Parts are functions that others contain, such as an encoder. They are neither called nor
	// printed: a program that extends the module may replace and call them (see [Names]).
	Parts []*Func
}

// Func is a straight-line function in single-assignment form.
type Func struct {
	Name    string
	Attrs   Attrs
	Args    []*Value
	Body    []*Op
	Results []Result
	Place   *Place // nil where it was not parsed; so for values and operations
}

// Result is one named result of a function.
type Result struct {
	Name  string
	Value *Value
}

// Value is a function argument, a parameter or the result of an operation.
type Value struct {
	Name  string
	Type  Type
	Def   *Op    // the defining operation, nil for arguments and parameters
	Index int    // which result of Def
	Param bool   // a module parameter, printed with "$"
	Attrs Attrs  // of arguments and parameters only
	Place *Place // so, too
}

// Op is one operation of a function body.
type Op struct {
	Def      *OpDef
	Operands []*Value // nil where an optional operand is absent
	Attrs    Attrs
	Results  []*Value
	Place    *Place
}

// FuncRef is the value of an attribute that names a function.
type FuncRef string

// Attrs are the attributes of an operation, function, argument, parameter or
// module: int64, float64, bool, string or FuncRef by name.
type Attrs map[string]any

// Keys returns the attribute names, sorted.
func (a Attrs) Keys() []string { return slices.Sorted(maps.Keys(a)) }

// Clone copies the attributes.
func (a Attrs) Clone() Attrs { return maps.Clone(a) }

// Str returns a string attribute, or "" where it is not set.
func (a Attrs) Str(name string) string { s, _ := a[name].(string); return s }

// Bool returns a boolean attribute, or false where it is not set.
func (a Attrs) Bool(name string) bool { b, _ := a[name].(bool); return b }

// Float returns a float attribute, or 0 where it is not set.
func (a Attrs) Float(name string) float64 {
	v, _ := number(a[name])
	return v
}

// attr returns the attribute or its declared default.
func (o *Op) attr(name string) any {
	if v, ok := o.Attrs[name]; ok {
		return v
	}
	if s := attrNamed(o.Def.Attrs, name); s != nil {
		return s.Default
	}
	panic(fmt.Sprintf("ir: operation %s has no attribute %q", o.Def.Name, name))
}

// Float returns a float attribute or its default.
func (o *Op) Float(name string) float64 { return o.attr(name).(float64) }

// Int returns an integer attribute or its default.
func (o *Op) Int(name string) int { return int(o.attr(name).(int64)) }

// Bool returns a boolean attribute or its default.
func (o *Op) Bool(name string) bool { return o.attr(name).(bool) }

// Str returns a string attribute or its default.
func (o *Op) Str(name string) string { return o.attr(name).(string) }

// FuncRef returns the name of the function that an attribute refers to.
func (o *Op) FuncRef(name string) string { return string(o.attr(name).(FuncRef)) }

// Name returns the name of the operation.
func (o *Op) Name() string { return o.Def.Name }

// Draws reports whether the operation draws random numbers: always, or because
// its expression does.
func (o *Op) Draws() bool { return o.Def.Random || o.Attrs.Str("stream") != "" }

// Result returns the only result of the operation.
func (o *Op) Result() *Value { return o.Results[0] }

// ResultTypes returns the types of all results.
func (o *Op) ResultTypes() []Type {
	types := []Type{} // not nil, which declares none
	for _, r := range o.Results {
		types = append(types, r.Type)
	}
	return types
}

// Func returns the function of a name, or nil.
func (m *Module) Func(name string) *Func {
	return first(m.Funcs, func(f *Func) bool { return f.Name == name })
}

// first returns the first element that has a property, nil or zero where none has.
func first[T any](list []T, has func(T) bool) (found T) {
	if i := slices.IndexFunc(list, has); i >= 0 {
		return list[i]
	}
	return found
}

// Param returns the parameter of a name, or nil.
func (m *Module) Param(name string) *Value {
	return first(m.Params, func(p *Value) bool { return p.Name == name })
}

// RemoveFunc deletes the function of a name.
func (m *Module) RemoveFunc(name string) {
	m.Funcs = slices.DeleteFunc(m.Funcs, func(f *Func) bool { return f.Name == name })
}

// Result returns the result of a name, or nil.
func (f *Func) Result(name string) *Value {
	return first(f.Results, func(r Result) bool { return r.Name == name }).Value
}

// Arg returns the argument of a name, or nil.
func (f *Func) Arg(name string) *Value {
	return first(f.Args, func(a *Value) bool { return a.Name == name })
}

// Uses returns for every value how many operands and results read it.
func (f *Func) Uses() map[*Value]int {
	uses := map[*Value]int{}
	for _, op := range f.Body {
		for _, v := range op.Operands {
			if v != nil {
				uses[v]++
			}
		}
	}
	for _, r := range f.Results {
		uses[r.Value]++
	}
	return uses
}

// Replace makes every reader of the keys read the values instead.
func (f *Func) Replace(with map[*Value]*Value) { f.ReplaceFrom(0, with) }

// ReplaceFrom is [Func.Replace] where no operation before position i reads a key.
func (f *Func) ReplaceFrom(i int, with map[*Value]*Value) {
	get := func(v *Value) *Value {
		for {
			w, ok := with[v]
			if !ok || w == v {
				return v
			}
			v = w
		}
	}
	for _, op := range f.Body[i:] {
		for i, v := range op.Operands {
			if v != nil {
				op.Operands[i] = get(v)
			}
		}
	}
	for i := range f.Results {
		f.Results[i].Value = get(f.Results[i].Value)
	}
}

// Params returns the parameters that the function reads, in module order.
func (f *Func) Params(m *Module) []*Value {
	uses := f.Uses()
	return slices.DeleteFunc(slices.Clone(m.Params), func(p *Value) bool { return uses[p] == 0 })
}

// Clone returns a copy of the module that shares nothing with it.
func (m *Module) Clone() *Module {
	c := &Module{Name: m.Name, Attrs: m.Attrs.Clone()}
	params := map[*Value]*Value{}
	for _, p := range m.Params {
		q := *p
		q.Attrs = p.Attrs.Clone()
		params[p] = &q
		c.Params = append(c.Params, &q)
	}
	for _, f := range m.Funcs {
		c.Funcs = append(c.Funcs, f.clone(params))
	}
	return c
}

func (f *Func) clone(params map[*Value]*Value) *Func {
	c := &Func{Name: f.Name, Attrs: f.Attrs.Clone(), Place: f.Place}
	to := maps.Clone(params)
	for _, a := range f.Args {
		b := *a
		b.Attrs = a.Attrs.Clone()
		to[a] = &b
		c.Args = append(c.Args, &b)
	}
	for _, op := range f.Body {
		c.Body = append(c.Body, op.cloneInto(to))
	}
	for _, r := range f.Results {
		c.Results = append(c.Results, Result{r.Name, to[r.Value]})
	}
	return c
}

// Take puts a function of another module, with its set-up, in the place of the one of that name, and
// drops the function old, that one's set-up. The parameters are the module's of the same names.
func (m *Module) Take(from *Module, name, old string) error {
	m.RemoveFunc(old)
	m.RemoveFunc(name)
	f := from.Func(name)
	setup, _ := f.Attrs["setup"].(string)
	for _, f := range []*Func{from.Func(setup), f} {
		if f == nil {
			continue
		}
		for _, op := range f.Body {
			for i, v := range op.Operands {
				if v != nil && v.Param {
					if op.Operands[i] = m.Param(v.Name); op.Operands[i] == nil {
						return fmt.Errorf("module %s has no parameter $%s", m.Name, v.Name)
					}
				}
			}
		}
		m.Funcs = append(m.Funcs, f)
	}
	return nil
}

// CloneInto copies a function within its module, sharing the parameters.
func (f *Func) CloneInto(m *Module, name string) *Func {
	same := map[*Value]*Value{}
	for _, p := range m.Params {
		same[p] = p
	}
	c := f.clone(same)
	c.Name = name
	return c
}

// cloneInto copies an operation, reading its operands through the map and
// entering its results there.
func (o *Op) cloneInto(to map[*Value]*Value) *Op {
	c := &Op{Def: o.Def, Attrs: o.Attrs.Clone(), Place: o.Place}
	for _, v := range o.Operands {
		if v != nil {
			v = to[v]
		}
		c.Operands = append(c.Operands, v)
	}
	for _, r := range o.Results {
		q := &Value{Name: r.Name, Type: r.Type, Def: c, Index: r.Index}
		to[r] = q
		c.Results = append(c.Results, q)
	}
	return c
}
