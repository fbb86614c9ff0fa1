package main

import (
	"fmt"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/cobra"
)

func (a *app) verifyCommand() *cobra.Command {
	var provider string
	c := &cobra.Command{
		Use: "verify DIR", Short: "Check an export on this machine's onnxruntime", Args: cobra.ExactArgs(1),
		Long: `Check an export on this machine: every file against its checksum, and every model
on the export's own test data. The exit code is 3 where onnxruntime computes
something else.`,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := ort.ParseProvider(provider)
			if err != nil {
				return asUsage(err)
			}
			return a.verify(c, args[0], p)
		},
	}
	c.Flags().StringVar(&provider, "provider", string(ort.Auto), "auto, cpu or cuda")
	return c
}

// verify checks an export and prints a line for each output.
func (a *app) verify(c *cobra.Command, dir string, provider ort.Provider) error {
	_, report, err := gsrc.Verify(c.Context(), dir, gsrc.VerifyOptions{Provider: provider, Log: a.logf})
	if report != nil {
		for _, x := range report.Cases {
			for _, o := range x.Outputs {
				verdict := "ok"
				if !o.OK {
					verdict = "OUT OF BOUNDS"
				}
				fmt.Fprintf(a.stdout, "%-10s %-20s %-22s max |a-b| %.2e, bound %.2e  %s\n", x.Model, o.Name, x.Runtime, o.MaxAbs, o.Bound, verdict)
			}
		}
	}
	return err
}

func (a *app) predictCommand() *cobra.Command {
	var provider, out, path string
	var o gsrc.PredictOptions
	c := &cobra.Command{
		Use: "predict DIR --data PATH --out FILE", Short: "Classify nodes, or whole graphs, with an export", Args: cobra.ExactArgs(1),
		Long: `Classify the nodes of a graph with an export, and write a CSV file with the id, the
predicted label and the probability of each class. On the graph that the model was
trained on its refined edges are used; on another one new edges are found and
scored. A model of whole graphs classifies those of a collection, and the id is the
number of a graph, from 0.`,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := ort.ParseProvider(provider)
			if err != nil {
				return asUsage(err)
			}
			switch {
			case path == "":
				return usage("say what to classify with --data PATH")
			case out == "":
				return usage("say where the predictions go with --out FILE")
			}
			o.Provider, o.Log = p, a.logf
			r, err := gsrc.Predict(c.Context(), args[0], path, out, o)
			if err != nil {
				return err
			}
			if r.Known > 0 {
				a.logf("%d of the %d labels in the data were predicted (%.1f %%; training nodes included)", r.Right, r.Known, 100*float64(r.Right)/float64(r.Known))
			}
			what := "nodes"
			if r.Graphs {
				what = "graphs"
			}
			a.logf("wrote %s, %d %s", out, len(r.Predicted), what)
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&path, "data", "", "data set: a folder, a file, the name of a fetched one, or "+data.Synthetic)
	flags.StringVar(&out, "out", "", "CSV file to write")
	flags.StringVar(&provider, "provider", string(ort.Auto), "auto, cpu or cuda")
	flags.IntVar(&o.Threads, "threads", 0, "threads, 0 for one per processor")
	flags.BoolVar(&o.Load.Directed, "directed", false, "keep the direction of edges")
	flags.Uint64Var(&o.Load.Seed, "seed", 0, "seed of the synthetic graph")
	return c
}
