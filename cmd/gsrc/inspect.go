package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/spf13/cobra"
)

func (a *app) inspectCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "inspect FILE.onnx | inspect DIR", Short: "Show the inputs, outputs, metadata and operations of an ONNX file", Args: cobra.ExactArgs(1),
		Long: `Show inputs, outputs, metadata, operations and parameters of an ONNX file, or of all
in an export.`,
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := inspect.ReadAll(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(list, "  ")
			}
			for k, i := range list {
				if k > 0 {
					fmt.Fprintln(a.stdout)
				}
				a.inspection(i)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) inspection(i *inspect.Inspection) {
	opsets := lists.Map(slices.Sorted(maps.Keys(i.Opsets)), func(d string) string {
		return strings.TrimSpace(fmt.Sprintf("%s %d", d, i.Opsets[d]))
	})
	nodes := 0
	for _, o := range i.Operations {
		nodes += o.Nodes
	}
	fmt.Fprintf(a.stdout, "%s: %s, opset %s, IR version %d, %d operations, %s, by %s\n", line(i.File), line(i.Graph), line(strings.Join(opsets, ", ")), i.IR, nodes, budget.Format(i.Bytes), line(i.Producer))
	if len(i.External) > 0 {
		fmt.Fprintf(a.stdout, "weights in %s\n", line(strings.Join(i.External, ", ")))
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	values := func(what string, list []inspect.IODescription) {
		fmt.Fprintln(a.stdout, what)
		for _, x := range list {
			dims := lists.Map(x.Shape, func(d any) string { return fmt.Sprint(d) })
			fmt.Fprintf(w, "  %s\t%s [%s]\t%s\n", line(x.Name), line(x.DType), line(strings.Join(dims, ", ")), line(x.Doc))
		}
		w.Flush()
	}
	values("inputs", i.Inputs)
	values("outputs", i.Outputs)
	if len(i.Metadata) > 0 {
		fmt.Fprintln(a.stdout, "metadata")
		for _, k := range slices.Sorted(maps.Keys(i.Metadata)) {
			fmt.Fprintf(w, "  %s\t%s\n", line(k), line(i.Metadata[k]))
		}
		w.Flush()
	}
	fmt.Fprintln(a.stdout, "constants")
	fmt.Fprintf(w, "  parameters\t%d in %d tensors\t%s\n", i.Parameters.Elements, i.Parameters.Tensors, budget.Format(i.Parameters.Bytes))
	fmt.Fprintf(w, "  others\t%d in %d tensors\t%s\n", i.Constants.Elements, i.Constants.Tensors, budget.Format(i.Constants.Bytes))
	w.Flush()
	fmt.Fprintln(a.stdout, "operations")
	for _, o := range i.Operations {
		fmt.Fprintf(w, "  %s\t%d\n", line(o.Type), o.Nodes)
	}
	w.Flush()
}
