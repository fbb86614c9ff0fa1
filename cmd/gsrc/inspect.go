package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/export/inspect"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/cobra"
)

func (a *app) inspectCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "inspect FILE.onnx | inspect DIR", Short: "Show what an ONNX file takes, gives, holds and costs", Args: cobra.ExactArgs(1),
		Long: `Show inputs, outputs, metadata, operations and parameters of an ONNX file, or of all
in an export. Where the export's test data stand beside it and onnxruntime is to be
had, also what a run on them takes: floating-point operations and bytes read and
written, in all, by operation, and per node and per edge of the graph. Bytes are
counted as if nothing stayed in a cache between operations.`,
		RunE: func(_ *cobra.Command, args []string) error {
			files, list, err := inspect.ReadAll(args[0])
			if err != nil {
				return err
			}
			notes := make([]string, len(list))
			for k, i := range list {
				in, err := i.TestInputs(files[k])
				if err == nil {
					err = i.Measure(in, ort.Options{Provider: ort.CPU})
				}
				var missing *ort.NotFoundError
				switch {
				case errors.Is(err, inspect.ErrNoTestData), errors.Is(err, ort.ErrNoCgo), errors.As(err, &missing):
					notes[k] = err.Error()
				case err != nil:
					return fmt.Errorf("%s: %w", files[k], err)
				}
			}
			if asJSON {
				text, err := json.MarshalIndent(list, "", "  ")
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(a.stdout, "%s\n", text)
				return err
			}
			for k, i := range list {
				if k > 0 {
					fmt.Fprintln(a.stdout)
				}
				a.inspection(i, notes[k])
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) inspection(i *inspect.Inspection, note string) {
	var opsets []string
	for _, d := range slices.Sorted(maps.Keys(i.Opsets)) {
		opsets = append(opsets, strings.TrimSpace(fmt.Sprintf("%s %d", d, i.Opsets[d])))
	}
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
			var dims []string
			for _, d := range x.Shape {
				dims = append(dims, fmt.Sprint(d))
			}
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
		if i.Cost == nil {
			fmt.Fprintf(w, "  %s\t%d\n", line(o.Type), o.Nodes)
		} else {
			fmt.Fprintf(w, "  %s\t%d\t%s\t%s\n", line(o.Type), o.Nodes, short1000(float64(o.Flops), "FLOP"), budget.Format(o.Bytes))
		}
	}
	w.Flush()
	if i.Cost == nil {
		fmt.Fprintf(a.stdout, "cost: not known, %s\n", note)
		return
	}
	c := i.Cost
	fmt.Fprintf(a.stdout, "cost of the test data, %d nodes and %d entries of edge_index or pairs\n", c.Nodes, c.Edges)
	for _, x := range []struct {
		what string
		s    inspect.Share
	}{{"in all", inspect.Share{Flops: float64(c.Flops), Bytes: float64(c.Bytes)}}, {"per node", c.PerNode}, {"per edge", c.PerEdge}, {"fixed", c.Fixed}} {
		fmt.Fprintf(w, "  %s\t%s\t%s\n", x.what, short1000(x.s.Flops, "FLOP"), budget.Format(int64(x.s.Bytes)))
	}
	w.Flush()
}

func short1000(v float64, unit string) string {
	for _, p := range []struct {
		at   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= p.at {
			return fmt.Sprintf("%.3g %s%s", v/p.at, p.name, unit)
		}
	}
	return fmt.Sprintf("%.3g %s", v, unit)
}
