package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/spf13/cobra"
)

func (a *app) modelsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "models [MODEL]", Short: "List the models, or describe one", Args: cobra.MaximumNArgs(1),
		Long: "List the models, or describe one. A .gsr file works wherever a model's name does: a program, which\n" +
			"\"gsrc build MODEL --emit ir --passes=none\" writes to start from, or \"extends ecl_gsr\"\n" +
			"and functions in the places of that model's (docs/add-a-model.md).",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.describeModel(args[0])
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			var ofGraphs []string
			for _, m := range models.All {
				fmt.Fprintf(w, "%s\t%s\n", m.Name, m.Doc)
				if m.ClassifiesGraphs() {
					ofGraphs = append(ofGraphs, m.Name)
				}
			}
			w.Flush()
			fmt.Fprintf(a.stdout, "\nfor collections of graphs, whose graphs they classify: %s\n", strings.Join(ofGraphs, ", "))
			fmt.Fprintln(a.stdout, "\nstructure learners, of N nodes and E edges:")
			for _, m := range models.All {
				if l := m.Learner; l != nil {
					fmt.Fprintf(w, "  %s\t%s\tlabels: %s\t%s\n", m.Name, l.Kind(), l.Labels, l.Cost)
				}
			}
			w.Flush()
			fmt.Fprintln(a.stdout, "\nclassifiers of structure learners, --set model.classifier=NAME:")
			for _, n := range models.Architectures {
				fmt.Fprintf(w, "  %s\t%s\n", n.Name, n.Doc)
			}
			return w.Flush()
		},
	}
}

func (a *app) describeModel(name string) error {
	m, err := models.Lookup(name)
	if err != nil {
		return asUsage(err)
	}
	fmt.Fprintln(a.stdout, m.Name)
	fmt.Fprintln(a.stdout, wrapped("  ", 88, m.Doc))
	if m.ClassifiesGraphs() {
		fmt.Fprintln(a.stdout, wrapped("  ", 88, "Classifies the graphs of collections, too"))
	}
	if l := m.Learner; l != nil {
		fmt.Fprintln(a.stdout, wrapped("  ", 88, fmt.Sprintf("Structure learner, of N nodes and E edges: %s; labels: %s; %s", l.Kind(), l.Labels, l.Cost)))
	}
	return nil
}

func (a *app) passesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "passes [PASS]", Short: "List the compiler's passes in order, or describe one", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			list := passes.All
			if len(args) == 1 {
				p := passes.Lookup(args[0])
				if p == nil {
					return usage("no pass %q%s", args[0], nearest.Hint(args[0], compiler.PassNames()))
				}
				list = []passes.Pass{*p}
			}
			for i, p := range list {
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				fmt.Fprintln(a.stdout, p.Name)
				fmt.Fprintln(a.stdout, wrapped("  ", 88, p.Doc))
				fmt.Fprintln(a.stdout, wrapped("  ", 88, "Why here: "+p.Why))
				if len(p.After) > 0 {
					fmt.Fprintln(a.stdout, wrapped("  ", 88, "After: "+strings.Join(p.After, ", ")))
				}
			}
			return nil
		},
	}
}

func (a *app) opsCommand() *cobra.Command {
	var level string
	levels := []string{ir.GSRLevel.String(), ir.GNNLevel.String(), ir.TensorLevel.String()}
	c := &cobra.Command{
		Use: "ops [OP]", Short: "List the operations of the IR, or describe one", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if level != "" && !slices.Contains(levels, level) {
				return usage("no level %q; there are %s", level, strings.Join(levels, ", "))
			}
			if len(args) == 1 {
				op := ir.Lookup(args[0])
				if op == nil {
					if n := nearest.Of(args[0], opNames()); n != "" {
						return usage("no operation %q; did you mean %q?", args[0], n)
					}
					return usage("no operation %q; \"gsrc ops\" lists them", args[0])
				}
				return a.describeOp(op)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, d := range ir.Ops() {
				if level == "" || d.Level.String() == level {
					fmt.Fprintf(w, "%s\t%s\t%s\n", d.Name, d.Signature(), d.Doc)
				}
			}
			return w.Flush()
		},
	}
	c.Flags().StringVar(&level, "level", "", "only this level: "+strings.Join(levels, ", "))
	return c
}

func (a *app) describeOp(d *ir.OpDef) error {
	fmt.Fprintf(a.stdout, "%s %s -> (%s)\n", d.Name, d.Signature(), strings.Join(d.Results, ", "))
	fmt.Fprintln(a.stdout, wrapped("  ", 88, d.Doc))
	facts := []string{"level " + d.Level.String()}
	if d.Random {
		facts = append(facts, "random")
	}
	if d.VJP != nil {
		facts = append(facts, "has a gradient rule")
	} else if d.NoGrad != "" {
		facts = append(facts, "no gradient rule: "+d.NoGrad)
	}
	fmt.Fprintln(a.stdout, wrapped("  ", 88, strings.Join(facts, "; ")))
	if len(d.Operands) > 0 {
		fmt.Fprintln(a.stdout, "operands")
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, o := range d.Operands {
		kind := o.Kind.String()
		for _, f := range []struct {
			on   bool
			text string
		}{{o.Optional, "may be absent"}, {o.Variadic, "any number of them"}, {o.Sparse, "may be sparse"}} {
			if f.on {
				kind += ", " + f.text
			}
		}
		fmt.Fprintf(w, "  %s\t%s\n", o.Name, kind)
	}
	w.Flush()
	if len(d.Attrs) > 0 {
		fmt.Fprintln(a.stdout, "attributes")
	}
	for _, at := range d.Attrs {
		def := "required"
		if at.Default != nil {
			def = fmt.Sprintf("default %v", at.Default)
		}
		kind := at.Kind.String()
		if len(at.OneOf) > 0 {
			kind = strings.Join(at.OneOf, " | ")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", at.Name, kind, def, at.Doc)
	}
	return w.Flush()
}
