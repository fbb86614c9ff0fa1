package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/ir"
)

// UnknownError says that a name is neither a model's nor a .gsr file's.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string {
	var names []string
	for _, m := range All {
		names = append(names, m.Name)
	}
	if n := nearest.Of(e.Name, names); n != "" {
		return fmt.Sprintf("no model %q; did you mean %q?", e.Name, n)
	}
	return fmt.Sprintf("no model %q; there are %s, or give a .gsr file", e.Name, strings.Join(names, ", "))
}

// IsFile reports whether a model argument names a file in the text form of
// the IR, not a model of the zoo.
func IsFile(model string) bool { return strings.HasSuffix(model, ".gsr") }

// Check returns an *UnknownError if model is neither a model's name
// nor that of a .gsr file. It does not open the file.
func Check(model string) error {
	if IsFile(model) {
		return nil
	}
	_, err := Lookup(model)
	return err
}

// Read reads a .gsr file that names nothing of elsewhere, a program in the text form of
// package ir. A fault of syntax is an *ir.SyntaxError, others name function and operation.
func Read(path string) (*ir.Module, error) {
	text, err := budget.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("model file: %w", err)
	}
	return ir.Parse(path, string(text))
}

// file is a program in the text form of package ir, which may extend a model of the zoo.
type file struct {
	path, text string
	extends    bool
	named      bool // names of it stand for sizes or options
}

// Open returns the model of a name, or that of a .gsr file. A file that extends a model of the
// zoo ("extends ecl_gsr") is that model with other functions; names may stand for sizes and the
// values of attributes in it (see [Options.values]). A fault of syntax is an *ir.SyntaxError.
func Open(model string) (*Model, error) {
	if !IsFile(model) {
		return Lookup(model)
	}
	text, err := budget.ReadFile(model)
	if err != nil {
		return nil, fmt.Errorf("model file: %w", err)
	}
	h, err := ir.ParseHeader(model, string(text))
	if err != nil {
		return nil, err
	}
	f := &file{path: model, text: string(text), extends: h.Extends}
	for name := range Default().values() {
		f.named = f.named || h.Names[name]
	}
	// A program that began as one of the zoo's trains as that does.
	m := &Model{Name: strings.ReplaceAll(h.Name, "_", "-"), Learner: &Learner{Unlabelled: true}, file: f}
	if h.Extends {
		base, err := Lookup(m.Name)
		if err != nil {
			return nil, h.Errorf("the model to extend is none of the zoo: %s", strings.TrimSuffix(strings.ReplaceAll(err.Error(), "-", "_"), ", or give a .gsr file"))
		}
		*m = *base
		m.file = f
	} else if !f.named {
		_, err = f.parse(Options{}) // a fault shows before data are read
	}
	return m, err
}

// IsProgram reports whether the model is a file that extends no other, and so has the shape
// that it is written with, where it does not name sizes: named tells.
func (m *Model) IsProgram() (is, named bool) {
	if m.file == nil || m.file.extends {
		return false, false
	}
	return true, m.file.named
}

// parse reads a program that extends no other.
func (f *file) parse(o Options) (*ir.Module, error) {
	return ir.ParseNamed(f.path, f.text, ir.Names{Values: o.values()})
}

// extend reads a program that extends what build builds.
func (f *file) extend(build func(Options) *ir.Module, o Options) (*ir.Module, error) {
	var own []*ir.Value
	m, err := ir.ParseNamed(f.path, f.text, ir.Names{Values: o.values(), Extend: func(_ string, params []*ir.Value, replaced []*ir.Func) (*ir.Module, error) {
		own, o.replaced = params, map[string]*ir.Func{}
		for _, r := range replaced {
			o.replaced[r.Name] = r
		}
		m := build(o)
		m.Params = append(m.Params, params...)
		for _, r := range replaced {
			if old := m.Func(r.Name); old != nil {
				*old = *adopt(m, r)
				continue
			}
			for _, op := range r.Body {
				if drawsElse(op) || op.Draws() && r.Name != "classifier" {
					return nil, ir.Errorf(op, "@%s draws random numbers (%s), and is part of what predicts; only a classifier can, for dropout, which prediction leaves out", r.Name, op.Name())
				}
			}
		}
		return m, nil
	}})
	if err != nil {
		return nil, err
	}
	// Parameters that only replaced functions read are gone with them.
	o.replaced = nil
	before, read := reads(build(o)), reads(m)
	m.Params = slices.DeleteFunc(m.Params, func(p *ir.Value) bool {
		return before[p.Name] && !read[p.Name] && !slices.Contains(own, p)
	})
	return m, nil
}

// adopt copies a function that was read for another module of the same parameters.
func adopt(m *ir.Module, f *ir.Func) *ir.Func {
	to := &ir.Func{Name: f.Name, Attrs: f.Attrs.Clone(), Place: f.Place}
	var args []*ir.Value
	for _, a := range f.Args {
		b := *a
		args = append(args, &b)
	}
	to.Args = args
	b := ir.NewBuilder(m, to)
	for i, v := range b.Inline(f, args...) {
		b.Return(f.Results[i].Name, v)
	}
	return to
}

func reads(m *ir.Module) map[string]bool {
	names := map[string]bool{}
	for _, f := range m.Funcs {
		for _, p := range f.Params(m) {
			names[p.Name] = true
		}
	}
	return names
}
