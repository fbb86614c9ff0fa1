package passes

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// Setup is the function attribute that names a function's set-up function,
// whose results are the function's arguments with the attribute Hoisted.
const (
	Setup   = "setup"
	Hoisted = "hoisted"
)

// hoist splits every function in two: @f.setup computes what depends only on
// arguments that keep their value from step to step, and on parameters that are [ir.Fixed], or
// of functions that are, @f the rest. Constants stay where they are read.
func hoist(m *ir.Module, _ DataInfo) error {
	for _, f := range slices.Clone(m.Funcs) {
		if f.Attrs.Str(Setup) != "" {
			continue
		}
		hoistFunc(m, f)
	}
	return nil
}

func hoistFunc(m *ir.Module, f *ir.Func) {
	static := map[*ir.Value]bool{}
	for _, a := range f.Args {
		static[a] = !a.Attrs.Bool("dynamic")
	}
	for _, p := range f.Params(m) {
		static[p] = f.Attrs.Bool(ir.Fixed) || p.Attrs.Bool(ir.Fixed)
	}
	inSetup, worth := map[*ir.Op]bool{}, false
	for _, op := range f.Body {
		if op.Draws() || slices.ContainsFunc(op.Operands, func(v *ir.Value) bool { return v != nil && !static[v] }) {
			continue
		}
		for _, r := range op.Results {
			static[r] = true
		}
		inSetup[op] = true
		worth = worth || op.Name() != "fill"
	}
	if !worth {
		return
	}

	// What the rest reads of the moved operations becomes arguments.
	with := map[*ir.Value]*ir.Value{}
	setup := &ir.Func{Name: f.Name + "." + Setup, Attrs: ir.Attrs{}}
	read := func(v *ir.Value) {
		if v == nil || v.Def == nil || !inSetup[v.Def] || v.Def.Name() == "fill" || with[v] != nil {
			return
		}
		arg := &ir.Value{Name: v.Name, Type: v.Type, Attrs: ir.Attrs{Hoisted: true}}
		with[v] = arg
		setup.Results = append(setup.Results, ir.Result{Name: v.Name, Value: v})
		f.Args = append(f.Args, arg)
	}
	var rest []*ir.Op
	for _, op := range f.Body {
		if inSetup[op] && op.Name() != "fill" {
			continue
		}
		rest = append(rest, op)
		for _, v := range op.Operands {
			read(v)
		}
	}
	for _, r := range f.Results {
		read(r.Value)
	}
	if len(setup.Results) == 0 {
		return
	}

	// The set-up function gets copies of the arguments and constants it reads.
	full := f.CloneInto(m, setup.Name)
	twin := map[*ir.Value]*ir.Value{}
	for i, op := range f.Body {
		for k, r := range op.Results {
			twin[r] = full.Body[i].Results[k]
		}
	}
	full.Args = full.Args[:len(full.Args)-len(setup.Results)]
	full.Results = nil
	for _, r := range setup.Results {
		full.Results = append(full.Results, ir.Result{Name: r.Name, Value: twin[r.Value]})
	}
	full.Attrs = ir.Attrs{}
	m.Funcs = slices.Insert(m.Funcs, slices.Index(m.Funcs, f), full)
	pruneFunc(full)

	f.Body = rest
	f.Attrs[Setup] = setup.Name
	f.Replace(with)
	pruneBody(f)
}

// pruneBody deletes operations that no result depends on.
func pruneBody(f *ir.Func) {
	live := map[*ir.Value]bool{}
	for _, r := range f.Results {
		live[r.Value] = true
	}
	for i := len(f.Body) - 1; i >= 0; i-- {
		op := f.Body[i]
		if !slices.ContainsFunc(op.Results, func(r *ir.Value) bool { return live[r] }) {
			f.Body = slices.Delete(f.Body, i, i+1)
			continue
		}
		for _, v := range op.Operands {
			live[v] = true
		}
	}
}

// pruneFunc deletes operations that no result depends on, and arguments that
// are neither read nor needed to give a dimension its size.
func pruneFunc(f *ir.Func) {
	pruneBody(f)
	uses := f.Uses()
	symbols := map[ir.Dim]bool{}
	for _, op := range f.Body {
		for _, r := range op.Results {
			for _, d := range r.Type.Dims {
				symbols[d] = true
			}
		}
	}
	for _, a := range f.Args {
		if uses[a] > 0 {
			for _, d := range a.Type.Dims {
				delete(symbols, d)
			}
		}
	}
	f.Args = slices.DeleteFunc(f.Args, func(a *ir.Value) bool {
		return uses[a] == 0 && !slices.ContainsFunc(a.Type.Dims, func(d ir.Dim) bool { return symbols[d] })
	})
}
