package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime/gorgonia"
	"github.com/spf13/pflag"
)

// compileFlags are those of build that show the compiler at work.
type compileFlags struct {
	emit       string
	printAfter []string
	passes     []string
	without    []string
	funcs      []string
	target     string
	html       string
}

func (f *compileFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.emit, "emit", "", "what to write: onnx (of a run, the default) ir or dot (of a model)")
	flags.StringSliceVar(&f.printAfter, "print-after", nil, "with --emit ir: print the program after these passes; \"input\" is before the first")
	flags.StringSliceVar(&f.passes, "passes", nil, "with --emit ir or dot: run only these passes; none runs none")
	flags.StringSliceVar(&f.without, "without", nil, "with --emit ir or dot: leave these passes out")
	flags.StringSliceVar(&f.funcs, "func", nil, "with --emit ir or dot: only these functions, such as joint or classify; before any pass also parts, such as encoder")
	flags.StringVar(&f.target, "target", "training", "with --emit ir or dot: compile for training or inference")
	flags.StringVar(&f.html, "html", "", "with --emit ir or dot: write a page of the program after each pass to this file")
}

// check returns what is wrong with the flags by themselves.
func (f *compileFlags) check() error {
	if f.emit != "" && f.emit != "onnx" && f.emit != "ir" && f.emit != "dot" {
		return usage("--emit %s: choose onnx, ir or dot", f.emit)
	}
	if f.emit == "dot" && len(f.printAfter) > 0 {
		return usage("--print-after goes with --emit ir: a program is drawn after the passes that --passes names")
	}
	if f.target != "training" && f.target != "inference" {
		return usage("no target %q; choose training or inference", f.target)
	}
	known := compiler.PassNames()
	if slices.Contains(f.passes, "none") && len(f.passes) > 1 {
		return usage("--passes=none stands alone, not beside other passes")
	}
	for _, list := range []struct {
		flag, also string // a word beside passes
		names      []string
	}{{"--passes", "none", f.passes}, {"--without", "", f.without}, {"--print-after", "input", f.printAfter}} {
		for i, name := range list.names {
			switch p := passes.Lookup(name); {
			case p != nil:
				list.names[i] = p.Name
			case name != list.also || name == "":
				return usage("%s: no pass %q%s", list.flag, name, nearest.Hint(name, known))
			}
		}
	}
	return nil
}

// emitIR compiles a module and prints it to standard output: as it is at the
// end, or after the passes that --print-after names, or as gorgonia graphs. The passes' times and
// operation counts go to standard error, and the memory that training will take
// where s says on what.
func (a *app) emitIR(m *ir.Module, info passes.DataInfo, f *compileFlags, s *gsrc.Setup) error {
	for i, name := range f.funcs {
		f.funcs[i] = strings.TrimPrefix(name, "@")
	}
	if f.emit == "ir" && slices.Equal(f.passes, []string{"none"}) {
		if len(f.funcs) == 1 && m.Part(f.funcs[0]) != nil {
			fmt.Fprint(a.stdout, m.Part(f.funcs[0]))
			return nil
		}
		for _, name := range f.funcs {
			if part := m.Part(name); part != nil && m.Func(name) == nil {
				m.Funcs = append(m.Funcs, part)
			}
		}
	}
	seen := map[string]bool{}
	var rec compiler.Recorder
	o := compiler.Options{Funcs: f.funcs, Data: info, Passes: f.passes, Without: f.without, Verify: true}
	if f.target == "inference" {
		o.Target = compiler.Inference
	}
	if slices.Equal(f.passes, []string{"none"}) {
		o.Passes, o.Without = nil, compiler.PassNames()
	}
	o.Trace = func(pass string, m *ir.Module) {
		seen[pass] = true
		if f.html != "" {
			rec.Record(pass, m)
		}
		if slices.Contains(f.printAfter, pass) {
			fmt.Fprintf(a.stdout, "// after %s\n%s\n", pass, m)
		}
	}
	p, err := compiler.Compile(m, o)
	if err != nil {
		return err
	}
	for _, pass := range f.printAfter {
		if !seen[pass] {
			return usage("--print-after: pass %s did not run: --passes or --target leaves it out", pass)
		}
	}
	if f.emit == "dot" {
		for _, fn := range p.Module.Funcs {
			g, err := gorgonia.Emit(p.Module, fn)
			if err != nil {
				return err
			}
			if err := g.WriteDot(a.stdout); err != nil {
				return err
			}
		}
	} else if len(f.printAfter) == 0 {
		fmt.Fprint(a.stdout, p.Module)
	}
	fmt.Fprint(a.stderr, p.StatsTable())
	for _, r := range p.Remarks {
		fmt.Fprintln(a.stderr, r)
	}
	if s != nil && trains(o) {
		if memory, err := s.PredictMemory(p.Module); err != nil {
			fmt.Fprintf(a.stderr, "memory: not known: %v\n", err)
		} else {
			fmt.Fprint(a.stderr, memory.Table())
		}
	}
	if f.html == "" {
		return nil
	}
	err = atomicfile.Write(f.html, func(w io.Writer) error {
		return rec.WriteHTML(w, fmt.Sprintf("%s (gsrc %s)", m.Name, gsrc.Version()), p.Stats)
	})
	if err != nil {
		return err
	}
	a.logf("wrote %s", f.html)
	return nil
}

// trains reports whether a compilation gives the program that training runs, as
// far as it can: all functions, and no pass missing that makes it runnable.
func trains(o compiler.Options) bool {
	if o.Target != compiler.Training || len(o.Funcs) > 0 {
		return false
	}
	return !slices.ContainsFunc(passes.All, func(p passes.Pass) bool {
		return p.Required && (slices.Contains(o.Without, p.Name) || len(o.Passes) > 0 && !slices.Contains(o.Passes, p.Name))
	})
}
