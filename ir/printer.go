package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// String prints the module in the text form that Parse reads.
func (m *Module) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "module @%s%s\n", m.Name, m.Attrs.text())
	if len(m.Params) > 0 {
		b.WriteByte('\n')
	}
	for _, p := range m.Params {
		fmt.Fprintf(&b, "param $%s: %s%s\n", p.Name, p.Type, p.Attrs.text())
	}
	for _, f := range m.Funcs {
		b.WriteByte('\n')
		b.WriteString(f.String())
	}
	return b.String()
}

// String prints the function.
func (f *Func) String() string {
	var b strings.Builder
	args := list(f.Args, func(a *Value) string { return fmt.Sprintf("%%%s: %s%s", a.Name, a.Type, a.Attrs.text()) })
	results := list(f.Results, func(r Result) string { return r.Name + ": " + r.Value.Type.String() })
	fmt.Fprintf(&b, "func @%s(%s) -> (%s)%s {\n", f.Name, args, results, f.Attrs.text())
	for _, op := range f.Body {
		fmt.Fprintf(&b, "  %s\n", op)
	}
	returned := list(f.Results, func(r Result) string { return r.Value.Ref() })
	b.WriteString(strings.TrimSuffix("  return "+returned, " ") + "\n}\n")
	return b.String()
}

// list prints what is separated by commas.
func list[T any](of []T, text func(T) string) string {
	s := make([]string, len(of))
	for i, v := range of {
		s[i] = text(v)
	}
	return strings.Join(s, ", ")
}

// signature prints arguments and results without their attributes.
func signature(args []*Value, results []Result, types []Type) string {
	in := list(args, func(a *Value) string { return fmt.Sprintf("%%%s: %s", a.Name, a.Type) })
	var out []string
	for i, r := range results {
		out = append(out, fmt.Sprintf("%s: %s", r.Name, types[i]))
	}
	return fmt.Sprintf("(%s) -> (%s)", in, strings.Join(out, ", "))
}

// Ref returns what operands call the value; "_" is none.
func (v *Value) Ref() string {
	switch {
	case v == nil:
		return "_"
	case v.Param:
		return "$" + v.Name
	}
	return "%" + v.Name
}

// String prints the operation as one line.
func (o *Op) String() string {
	last := len(o.Operands)
	for last > 0 && o.Operands[last-1] == nil {
		last-- // absent operands at the end need not be written
	}
	read := list(o.Operands[:last], (*Value).Ref)
	if read != "" {
		read = " " + read
	}
	types := list(o.Results, func(r *Value) string { return r.Type.String() })
	return fmt.Sprintf("%s = %s%s%s : %s", list(o.Results, (*Value).Ref), o.Def.Name, read, o.Attrs.text(), types)
}

func (a Attrs) text() string {
	if len(a) == 0 {
		return ""
	}
	return " {" + list(a.Keys(), func(k string) string { return k + "=" + literal(a[k]) }) + "}"
}

func literal(v any) string {
	switch x := v.(type) {
	case float64:
		s := strconv.FormatFloat(x, 'g', -1, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	case string:
		return strconv.Quote(x)
	case FuncRef:
		return "@" + string(x)
	}
	return fmt.Sprint(v)
}
