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
	fmt.Fprintf(&b, "func @%s(", f.Name)
	for i, a := range f.Args {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%%%s: %s%s", a.Name, a.Type, a.Attrs.text())
	}
	b.WriteString(") -> (")
	for i, r := range f.Results {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s: %s", r.Name, r.Value.Type)
	}
	fmt.Fprintf(&b, ")%s {\n", f.Attrs.text())
	for _, op := range f.Body {
		fmt.Fprintf(&b, "  %s\n", op)
	}
	b.WriteString("  return")
	for i, r := range f.Results {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + r.Value.Ref())
	}
	b.WriteString("\n}\n")
	return b.String()
}

// signature prints arguments and results without their attributes.
func signature(args []*Value, results []Result, types []Type) string {
	var in, out []string
	for _, a := range args {
		in = append(in, fmt.Sprintf("%%%s: %s", a.Name, a.Type))
	}
	for i, r := range results {
		out = append(out, fmt.Sprintf("%s: %s", r.Name, types[i]))
	}
	return fmt.Sprintf("(%s) -> (%s)", strings.Join(in, ", "), strings.Join(out, ", "))
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
	var b strings.Builder
	for i, r := range o.Results {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.Ref())
	}
	fmt.Fprintf(&b, " = %s", o.Def.Name)
	last := len(o.Operands)
	for last > 0 && o.Operands[last-1] == nil {
		last-- // absent operands at the end need not be written
	}
	for i, v := range o.Operands[:last] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + v.Ref())
	}
	b.WriteString(o.Attrs.text())
	b.WriteString(" : ")
	for i, r := range o.Results {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.Type.String())
	}
	return b.String()
}

func (a Attrs) text() string {
	if len(a) == 0 {
		return ""
	}
	var s []string
	for _, k := range a.Keys() {
		s = append(s, k+"="+literal(a[k]))
	}
	return " {" + strings.Join(s, ", ") + "}"
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
