package main

import (
	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/spf13/cobra"
)

func (a *app) buildCommand() *cobra.Command {
	var compile compileFlags
	var opts gsrc.TrainOptions
	var setup setupFlags
	c := &cobra.Command{
		Use:   "build RUN --out DIR | build MODEL --emit ir",
		Short: "Export a run as ONNX and prove the export equal, or show the compiler at work",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := compile.check(); err != nil {
				return err
			}
			opts.Model = args[0]
			return a.buildIR(&opts, &setup, &compile)
		},
	}
	compile.register(c.Flags())
	setup.register(c.Flags(), &opts)
	return c
}

// buildIR compiles a model for a data set, or a .gsr file by itself, and prints
// the program.
func (a *app) buildIR(opts *gsrc.TrainOptions, setup *setupFlags, f *compileFlags) error {
	var m *ir.Module
	var facts passes.Facts
	if gsrc.IsModelFile(opts.Model) && opts.Data == "" {
		var err error
		if m, err = gsrc.ReadModule(opts.Model); err != nil {
			return err
		}
	} else {
		if opts.Data == "" {
			opts.Data = "synthetic" // its sizes are as good as any
		}
		s, err := setup.prepare(opts)
		if err != nil {
			return err
		}
		m, facts = s.Module, s.Facts()
	}
	return a.emitIR(m, facts, f)
}
