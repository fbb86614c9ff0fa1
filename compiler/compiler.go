// Package compiler drives the passes over a module: options, dumps,
// statistics. Compile is the only entry to them.
package compiler

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
)

// Target says what a program is compiled for.
type Target uint8

// The targets. Training programs keep sparse features sparse and are split
// into set-up and step; inference programs for export are neither.
const (
	Training Target = iota
	Inference
)

// Options control a compilation. The zero value is the whole pipeline for
// training.
type Options struct {
	Target  Target
	Funcs   []string // functions to keep; empty keeps all
	Data    passes.DataInfo
	Passes  []string // run only these, in pipeline order; empty runs all of the target
	Without []string // leave these out
	Verify  bool     // verify the module after every pass

	PrintAfter []string  // passes after which the module is printed to Dump
	Dump       io.Writer // where PrintAfter goes
	// Trace is called with the module before the first pass (pass "input")
	// and after each.
	Trace func(pass string, m *ir.Module)
}

// PassStat tells what one pass did.
type PassStat struct {
	Pass   string
	Time   time.Duration
	Before int // operations
	After  int
}

// Program is a compiled module.
type Program struct {
	Module *ir.Module
	Stats  []PassStat
	// Remarks are what passes said of their decisions, "pass: @function: why".
	Remarks []string
}

// Compile runs the passes over a copy of the module. An error about an operation of a text is
// an *[ir.SyntaxError] with its place.
func Compile(m *ir.Module, o Options) (p *Program, err error) {
	defer func() { err = ir.Placed(err) }()
	if m == nil {
		return nil, errors.New("there is no module to compile: it is nil")
	}
	if err := ir.Verify(m); err != nil {
		return nil, fmt.Errorf("module %s: %w", m.Name, err)
	}
	list, err := o.pipeline()
	if err != nil {
		return nil, err
	}
	m = m.Clone()
	if err := keepFuncs(m, o.Funcs); err != nil {
		return nil, err
	}
	if o.Trace != nil {
		o.Trace("input", m)
	}
	p = &Program{Module: m}
	info := o.Data
	info.Remark = func(pass, line string) {
		p.Remarks = append(p.Remarks, pass+": "+line)
		if o.Data.Remark != nil {
			o.Data.Remark(pass, line)
		}
	}
	for _, pass := range list {
		stat := PassStat{Pass: pass.Name, Before: countOps(m)}
		start := time.Now()
		if err := run(pass, m, info); err != nil {
			return nil, fmt.Errorf("module %s: pass %s: %w", m.Name, pass.Name, err)
		}
		stat.Time, stat.After = time.Since(start), countOps(m)
		p.Stats = append(p.Stats, stat)
		if o.Verify {
			if err := ir.Verify(m); err != nil {
				return nil, fmt.Errorf("module %s is broken after pass %s: %w", m.Name, pass.Name, err)
			}
		}
		if slices.Contains(o.PrintAfter, pass.Name) {
			if _, err := fmt.Fprintf(o.Dump, "// after %s\n%s\n", pass.Name, m); err != nil {
				return nil, err
			}
		}
		if o.Trace != nil {
			o.Trace(pass.Name, m)
		}
	}
	if err := ir.Verify(m); err != nil {
		return nil, fmt.Errorf("module %s is broken after its passes: %w", m.Name, err)
	}
	return p, nil
}

// run turns a builder's panic, which a hand-written module can cause, into an
// error.
func run(pass passes.Pass, m *ir.Module, info passes.DataInfo) (err error) {
	defer func() {
		if r := recover(); r != nil {
			var ok bool
			if err, ok = r.(error); !ok {
				err = fmt.Errorf("%v", r)
			}
		}
	}()
	return pass.Run(m, info)
}

// Canonical gives passes their names of today. The error lists the passes there are.
func Canonical(names []string) ([]string, error) {
	list := slices.Clone(names)
	for i, name := range list {
		p := passes.Lookup(name)
		if p == nil {
			return nil, fmt.Errorf("no pass %q; there are %s", name, strings.Join(PassNames(), ", "))
		}
		list[i] = p.Name
	}
	return list, nil
}

func (o *Options) pipeline() (list []passes.Pass, err error) {
	for _, names := range []*[]string{&o.Passes, &o.Without, &o.PrintAfter} {
		if *names, err = Canonical(*names); err != nil {
			return nil, err
		}
	}
	for _, p := range passes.All {
		if len(o.Passes) > 0 && !slices.Contains(o.Passes, p.Name) || slices.Contains(o.Without, p.Name) {
			continue
		}
		if o.Target == Inference && p.TrainingOnly {
			continue
		}
		list = append(list, p)
	}
	return list, passes.CheckOrder(list)
}

// PassNames lists the pipeline.
func PassNames() []string {
	var names []string
	for _, p := range passes.All {
		names = append(names, p.Name)
	}
	return names
}

// keepFuncs removes the functions that are not asked for, but for those that
// the kept ones refer to.
func keepFuncs(m *ir.Module, keep []string) error {
	if len(keep) == 0 {
		return nil
	}
	needed := map[string]bool{}
	var need func(name string) error
	need = func(name string) error {
		f := m.Func(name)
		if f == nil {
			return fmt.Errorf("module %s has no function @%s", m.Name, name)
		}
		if needed[name] {
			return nil
		}
		needed[name] = true
		for _, op := range f.Body {
			for _, spec := range op.Def.Attrs {
				if spec.Kind == ir.FuncAttr {
					if err := need(op.FuncRef(spec.Name)); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}
	for _, name := range keep {
		if err := need(name); err != nil {
			return err
		}
	}
	m.Funcs = slices.DeleteFunc(m.Funcs, func(f *ir.Func) bool { return !needed[f.Name] })
	read := map[*ir.Value]bool{}
	for _, f := range m.Funcs {
		for _, p := range f.Params(m) {
			read[p] = true
		}
	}
	m.Params = slices.DeleteFunc(m.Params, func(p *ir.Value) bool { return !read[p] })
	return nil
}

func countOps(m *ir.Module) int {
	n := 0
	for _, f := range m.Funcs {
		n += len(f.Body)
	}
	return n
}

// StatsTable formats the passes' times and operation counts.
func (p *Program) StatsTable() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %10s %8s %8s\n", "pass", "time", "before", "after")
	var total time.Duration
	for _, s := range p.Stats {
		fmt.Fprintf(&b, "%-14s %10s %8d %8d\n", s.Pass, s.Time.Round(time.Microsecond), s.Before, s.After)
		total += s.Time
	}
	fmt.Fprintf(&b, "%-14s %10s\n", "total", total.Round(time.Microsecond))
	return b.String()
}
