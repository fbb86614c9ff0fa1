package runtime

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Function is a compiled function with its set-up. The hoist pass moves what
// does not change from step to step into a function of its own, which the
// attribute setup=@name of the main function names; its results are the main
// function's arguments of the same name with the attribute hoisted=true. The
// set-up runs again only after one of its own inputs was bound again.
//
// A function without the attribute is run as it is.
type Function struct {
	*Executable             // the main function's own
	setup       *Executable // nil where there is none, or chunked is it
	chunked     *Chunked
	reads       []string // inputs of chunked
	hoisted     []string // arguments of the main function that the set-up computes
	stale       bool     // setup must run
	ownPool     *kernels.Pool
}

// NewFunction makes a function of the module, and its set-up if it has one,
// executable.
func NewFunction(m *ir.Module, name string, opts Options) (*Function, error) {
	f := m.Func(name)
	if f == nil {
		return nil, fmt.Errorf("runtime: module @%s has no function @%s", m.Name, name)
	}
	x := &Function{}
	if opts.Pool == nil {
		opts.Pool = kernels.NewPool(0)
		x.ownPool = opts.Pool
	}
	var err error
	if x.Executable, err = NewExecutable(m, f, opts); err != nil {
		x.Close()
		return nil, err
	}
	if err := x.addSetup(m, f, opts); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// setupOf returns the function's set-up, nil if it has none.
func setupOf(m *ir.Module, f *ir.Func) (*ir.Func, error) {
	name := f.Attrs.Str(passes.Setup)
	s := m.Func(name)
	if s == nil && name != "" {
		return nil, fmt.Errorf("runtime: @%s names the set-up function @%s, which module @%s does not have", f.Name, name, m.Name)
	}
	return s, nil
}

func (x *Function) addSetup(m *ir.Module, f *ir.Func, opts Options) error {
	s, err := setupOf(m, f)
	if s == nil {
		return err
	}
	for _, a := range f.Args {
		if !a.Attrs.Bool(passes.Hoisted) {
			continue
		}
		v := s.Result(a.Name)
		if v == nil {
			return fmt.Errorf("runtime: @%s: argument %%%s is hoisted, but @%s has no result of that name", f.Name, a.Name, s.Name)
		}
		if !v.Type.Equal(a.Type) {
			return fmt.Errorf("runtime: @%s: argument %%%s is %s, but @%s gives %s", f.Name, a.Name, a.Type, s.Name, v.Type)
		}
		x.hoisted = append(x.hoisted, a.Name)
	}
	x.stale = true
	if c := opts.Chunks; c != nil {
		parts, err := passes.Cut(m, s.Name)
		if err != nil {
			return fmt.Errorf("runtime: %w", err)
		}
		for _, v := range s.Results {
			if !slices.ContainsFunc(parts.List, func(p passes.Part) bool { return slices.Contains(p.Gives, parts.Results[v.Name]) }) {
				return fmt.Errorf("runtime: @%s cannot run over chunks of nodes: %%%s has no row for each", s.Name, v.Name)
			}
		}
		x.chunked = NewChunked(parts, c.Dir, c.Room, opts)
		for _, v := range append(slices.Clone(s.Args), s.Params(m)...) {
			x.reads = append(x.reads, v.Name)
		}
		return nil
	}
	x.setup, err = NewExecutable(m, s, opts)
	return err
}

// Close ends the threads that the function started itself; see [Executable.Close].
func (x *Function) Close() {
	for _, e := range []*Executable{x.Executable, x.setup} {
		if e != nil {
			e.Close()
		}
	}
	if x.chunked != nil {
		_ = x.chunked.Close() // its files go with the process at the latest
	}
	if x.ownPool != nil {
		x.ownPool.Close()
	}
}

// Main returns the function's own executable.
func (x *Function) Main() *Executable { return x.Executable }

// Setup returns the executable of the set-up, or nil where there is none, or it runs over chunks.
func (x *Function) Setup() *Executable { return x.setup }

// Inputs returns the names of all inputs that must be bound: those of the
// function and of its set-up, without what the set-up computes.
func (x *Function) Inputs() []string {
	all := slices.Concat(x.reads, x.Executable.Inputs())
	if x.setup != nil {
		all = append(x.setup.Inputs(), all...)
	}
	var names []string
	for _, n := range all {
		if !slices.Contains(x.hoisted, n) && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// Bind gives an argument or a parameter its value, in whichever of the two
// functions declare it; see [Executable.Bind]. The set-up will run again if it
// reads the input, so an input that was changed in place must be bound again
// for the set-up to see it.
func (x *Function) Bind(name string, b *Buffer) error {
	ofSetup := slices.Contains(x.reads, name)
	if ofSetup {
		x.chunked.Bind(name, b)
	} else if x.setup != nil && x.setup.byName[name] != nil {
		if err := x.setup.Bind(name, b); err != nil {
			return err
		}
		ofSetup = true
	}
	if ofSetup {
		x.stale = true
		if x.byName[name] == nil {
			return nil
		}
	}
	if slices.Contains(x.hoisted, name) {
		return fmt.Errorf("runtime: @%s: %%%s is computed by @%s and cannot be bound", x.Name(), name, x.Func().Attrs.Str(passes.Setup))
	}
	return x.Executable.Bind(name, b)
}

// Run computes the function at a step, after its set-up where that is due; see
// [Executable.Run].
func (x *Function) Run(step uint64) error {
	if x.stale {
		if err := x.runSetup(); err != nil {
			return err
		}
		for _, name := range x.hoisted {
			if err := x.Executable.Bind(name, x.computed(name)); err != nil {
				return err
			}
		}
		x.stale = false
	}
	return x.Executable.Run(step)
}

func (x *Function) runSetup() error {
	if x.chunked != nil {
		return x.chunked.Run()
	}
	return x.setup.Run(0)
}

// computed returns what the set-up gave.
func (x *Function) computed(name string) *Buffer {
	if x.chunked != nil {
		return x.chunked.Result(name)
	}
	return x.setup.Result(name)
}

// Prepare is [Executable.Prepare], unless the set-up must run first.
func (x *Function) Prepare() error {
	if x.stale {
		return nil
	}
	return x.Executable.Prepare()
}
