package ir

import (
	"fmt"
	"slices"
)

// Verify checks that a module is well formed: names are unique, every operand
// is defined above its use, types are what the table's rules say, function
// references exist. The error names the function and the operation.
func Verify(m *Module) error {
	seen := map[string]bool{}
	params := map[*Value]bool{}
	for _, p := range m.Params {
		if seen[p.Name] {
			return fmt.Errorf("parameter $%s is declared twice", p.Name)
		}
		if p.Type.IsGraph() || p.Type.Layout != Dense {
			return fmt.Errorf("parameter $%s is %s, want a dense tensor", p.Name, p.Type)
		}
		for _, d := range p.Type.Dims {
			if _, ok := d.Size(); !ok {
				return fmt.Errorf("parameter $%s is %s: its dimensions must be sizes", p.Name, p.Type)
			}
		}
		seen[p.Name], params[p] = true, true
	}
	names := map[string]bool{}
	for _, f := range m.Funcs {
		if names[f.Name] {
			return fmt.Errorf("function @%s is declared twice", f.Name)
		}
		names[f.Name] = true
		if err := verifyFunc(m, f, params); err != nil {
			return fmt.Errorf("@%s: %w", f.Name, err)
		}
	}
	return nil
}

func verifyFunc(m *Module, f *Func, params map[*Value]bool) error {
	defined := map[*Value]bool{}
	names := map[string]bool{}
	symbols := map[Dim]bool{}
	define := func(v *Value) error {
		if names[v.Name] {
			return fmt.Errorf("%%%s is defined twice", v.Name)
		}
		names[v.Name], defined[v] = true, true
		return nil
	}
	known := func(v *Value) bool { return defined[v] || params[v] }
	for _, a := range f.Args {
		if err := define(a); err != nil {
			return err
		}
		for _, d := range a.Type.Dims {
			symbols[d] = true
		}
	}
	for i, op := range f.Body {
		where := func(err error) error { return fmt.Errorf("operation %d, %s: %w", i, op, err) }
		for k, v := range op.Operands {
			if v != nil && !known(v) {
				return where(fmt.Errorf("operand %d (%s) is not defined above", k, v.ref()))
			}
		}
		if err := op.checkOperands(); err != nil {
			return where(err)
		}
		var types []Type
		for k, r := range op.Results {
			if r.Def != op || r.Index != k {
				return where(fmt.Errorf("result %%%s does not point back at its operation", r.Name))
			}
			types = append(types, r.Type)
			if err := define(r); err != nil {
				return where(err)
			}
			for _, d := range r.Type.Dims {
				if _, fixed := d.Size(); !fixed && !resolvable(d, symbols) {
					return where(fmt.Errorf("dimension %s is not that of any argument", d))
				}
			}
		}
		if _, err := op.infer(types); err != nil {
			return where(err)
		}
		for _, spec := range op.Def.Attrs {
			if spec.Kind == FuncAttr && m.Func(op.FuncRef(spec.Name)) == nil {
				return where(fmt.Errorf("there is no function @%s", op.FuncRef(spec.Name)))
			}
		}
	}
	var results []string
	for _, r := range f.Results {
		if r.Value == nil || !known(r.Value) {
			return fmt.Errorf("result %s is not defined", r.Name)
		}
		if slices.Contains(results, r.Name) {
			return fmt.Errorf("result %s is declared twice", r.Name)
		}
		results = append(results, r.Name)
	}
	return nil
}

func resolvable(d Dim, symbols map[Dim]bool) bool {
	bind := map[string]int{}
	for s := range symbols {
		bind[string(s)] = 1
	}
	_, err := d.Resolve(bind)
	return err == nil
}
