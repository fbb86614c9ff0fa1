package models

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/ir"
)

// value is an argument of a part: a type, and what it is in one place, which may be nil.
type value struct {
	name string
	t    ir.Type
	v    *ir.Value
}

// part appends what build makes of the arguments, as a function within others that a program
// which extends the model may replace by its name ([ir.Module.Parts]).
func (o Options) part(b *ir.Builder, name string, results []string, args []value, build func(b *ir.Builder, v []*ir.Value) []*ir.Value) []*ir.Value {
	o.declarePart(b.Module, name, results, args, build)
	values := make([]*ir.Value, len(args))
	for i, a := range args {
		values[i] = a.v
	}
	f := o.replaced[name]
	if f == nil {
		return build(b, values)
	}
	for i, a := range f.Args {
		if values[i] == nil && !f.Optional(a) { // weights of edges, which are ones
			g := slices.IndexFunc(args, func(a value) bool { return a.t.IsGraph() && a.t.Entries() == args[i].t.Dims[0] })
			values[i] = b.One("edge_ones", nil, values[g])
		}
	}
	return b.Inline(f, values...)
}

// declarePart enters a part in the list of the module's, once.
func (o Options) declarePart(m *ir.Module, name string, results []string, args []value, build func(b *ir.Builder, v []*ir.Value) []*ir.Value) {
	if m.Part(name) != nil {
		return
	}
	f := &ir.Func{Name: name, Attrs: ir.Attrs{}}
	b := ir.NewBuilder(m, f)
	var values []*ir.Value
	for _, a := range args {
		values = append(values, b.Arg(a.name, a.t))
	}
	if r := o.replaced[name]; r != nil {
		build = func(b *ir.Builder, v []*ir.Value) []*ir.Value { return b.Inline(r, v...) }
	}
	for i, v := range build(b, values) {
		b.Return(results[i], v)
	}
	m.Parts = append(m.Parts, f)
}

// replaceable makes a network a part of the module: of x and, if graph is not nil, g and its
// weights w. drop is what training drops, nil where the part is the same in training and evaluation.
func (o Options) replaceable(m *ir.Module, name, result string, n network, x ir.Type, graph *ir.Type, drop *dropouts) network {
	args := []value{{name: "x", t: x}}
	if graph != nil {
		args = append(args, value{name: "g", t: *graph}, value{name: "w", t: ir.T(ir.F32, graph.Entries())})
	}
	p := &partNetwork{network: n, Options: o, name: name, args: args, result: []string{result}}
	if drop == nil {
		return p
	}
	o.declarePart(m, name, p.result, args, p.body(drop))
	f := m.Part(name)
	if slices.ContainsFunc(f.Body, drawsElse) {
		m.Parts = slices.DeleteFunc(m.Parts, func(p *ir.Func) bool { return p == f })
		return n
	}
	for _, op := range f.Body { // by themselves, without the name of the sample
		if s, ok := strings.CutPrefix(op.Attrs.Str("stream"), drop.prefix+"."); ok {
			op.Attrs["stream"] = s
		}
	}
	return p
}

type partNetwork struct {
	network
	Options
	name   string
	args   []value
	result []string
}

func (n *partNetwork) body(drop *dropouts) func(b *ir.Builder, v []*ir.Value) []*ir.Value {
	return func(b *ir.Builder, v []*ir.Value) []*ir.Value {
		if len(v) == 1 {
			v = append(v, nil, nil)
		}
		return []*ir.Value{n.network.run(b, v[1], v[2], v[0], drop)}
	}
}

func (n *partNetwork) run(b *ir.Builder, g, w, x *ir.Value, drop *dropouts) *ir.Value {
	args := slices.Clone(n.args)
	for i, v := range []*ir.Value{x, g, w}[:len(args)] {
		args[i].v = v
	}
	start := len(b.Func.Body)
	out := n.part(b, n.name, n.result, args, n.body(drop))[0]
	if n.replaced[n.name] == nil {
		return out
	}
	return drop.within(b.Func, start, out)
}

// drawsElse reports whether an operation draws random numbers in prediction too, where what
// drops a share of its operand leaves it as it is.
func drawsElse(op *ir.Op) bool { return op.Draws() && ir.Attr(op.Name()+".rate") == nil }

// within makes the operations of a replaced network, those from start on, drop as its own do:
// in evaluation nothing, in training from streams of the sample.
func (d *dropouts) within(f *ir.Func, start int, out *ir.Value) *ir.Value {
	gone := map[*ir.Value]*ir.Value{}
	for _, op := range f.Body[start:] {
		switch s := op.Attrs.Str("stream"); {
		case s == "":
		case d != nil:
			op.Attrs["stream"] = d.prefix + "." + s
		case op.Name() == "dropout":
			gone[op.Result()] = op.Operands[0]
		default:
			delete(op.Attrs, "stream")
			delete(op.Attrs, "rate")
		}
	}
	f.ReplaceFrom(start, gone)
	f.Body = slices.DeleteFunc(f.Body, func(op *ir.Op) bool { return gone[op.Results[0]] != nil })
	for gone[out] != nil {
		out = gone[out]
	}
	return out
}

// scale weights features as the network does.
func (n *partNetwork) scale(b *ir.Builder, x *ir.Value) *ir.Value {
	if s, ok := n.network.(scaler); ok {
		return s.scale(b, x)
	}
	return x
}

// values are the names that stand for sizes and other values in a .gsr program: features,
// classes and struct_width (columns of x, classes and columns of x_struct), and every option
// of the section model by its key, such as encoder.hidden.
func (o Options) values() map[string]any {
	values := map[string]any{"features": int64(o.Features), "classes": int64(o.Classes), "struct_width": int64(o.StructWidth)}
	var walk func(prefix string, section reflect.Value)
	walk = func(prefix string, section reflect.Value) {
		for f, v := range section.Fields() {
			switch name := f.Tag.Get("toml"); {
			case name == "" || name == "-":
			case v.Kind() == reflect.Struct:
				walk(prefix+name+".", v)
			case v.CanInt():
				values[prefix+name] = v.Int()
			default:
				values[prefix+name] = v.Interface()
			}
		}
	}
	walk("", reflect.ValueOf(o))
	return values
}
