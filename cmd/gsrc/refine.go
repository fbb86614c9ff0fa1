package main

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/cobra"
)

func (a *app) refineCommand() *cobra.Command {
	var o gsrc.RefineOptions
	var out, format string
	var threshold float64
	var tables tableFlags
	c := &cobra.Command{
		Use: "refine RUN --out FILE | refine EXPORT --data PATH --out FILE", Short: "Write the refined graph", Args: cobra.ExactArgs(1),
		Long: `Write the refined graph of a model: source, target, weight, probability and status
(old, new) of every edge; where a model judges edges by evidence, also a column
evidence_… for each source of it. RUN is a folder written by gsrc train. EXPORT is one
written by gsrc build: for the training graph it gives the same edges, for another
graph new ones are found and scored.

The format is the extension of FILE: .csv, .npz (arrays for NumPy), .parquet, or
.json (node-link, for networkx); --out - writes CSV, or --format, to standard
output. Refined graphs are undirected: an edge is listed once, from the node that
comes first in the data, unless --both-directions lists both directions, as
edge_index does in PyTorch Geometric. A summary is printed to standard error.`,
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			changed := c.Flags().Changed
			if err := required(c, "out"); err != nil {
				return err
			}
			if err := tables.applyOther(c, args[0], &o.Predict.Load); err != nil {
				return err
			}
			switch {
			case format == "" && out == "-":
				format = "csv"
			case format == "":
				if format, err = infer.GraphFormat(out); err != nil {
					return asUsage(err)
				}
			}
			if err := infer.CheckGraphFormat(format); err != nil {
				return asUsage(err)
			}
			if changed("threshold") {
				if !(threshold >= 0 && threshold <= 1) {
					return usage("--threshold %v: give a probability between 0 and 1", threshold)
				}
				o.Threshold = &threshold
			}
			o.Predict.Log, o.Predict.Load.Output, o.Streamed = a.logf, out, true
			g, err := gsrc.Refine(c.Context(), args[0], o)
			if err != nil {
				return err
			}
			if out == "-" {
				if err := g.Write(a.stdout.bytes(), format); err != nil {
					return err
				}
			} else if err := g.WriteFile(out, format); err != nil {
				return err
			}
			a.summarizeRefined(g)
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&out, "out", "", "file to write, - for standard output")
	flags.StringVar(&format, "format", "", strings.Join(infer.GraphFormats, ", ")+"; the file's extension if not given")
	flags.Float64Var(&threshold, "threshold", 0, "leave out candidates with a lower probability (default: the run's configuration)")
	flags.BoolVar(&o.BothDirections, "both-directions", false, "list each edge as u,v and as v,u")
	flags.BoolVar(&o.KeepRemoved, "keep-removed", false, "list removed edges too, with status removed and weight 0")
	flags.BoolVar(&o.Ranked, "ranked", false, "list removed and added edges first, the surest first, then the kept ones, the least probable first")
	flags.StringVar(&o.Data, "data", "", "the graph to refine; of a run, without it, the training's")
	parsedFlag(flags, &o.Predict.Provider, "provider", string(ort.Auto), ort.ParseProvider, "run an export on auto, cpu or cuda")
	numberFlag(flags, &o.Predict.Threads, "threads", 0, 0, "threads, 0 for one per processor")
	tables.registerOther(flags, &o.Predict.Load, "seed of the synthetic graph, for an export with --data "+data.Synthetic)
	return c
}

// summarizeRefined tells what refinement did.
func (a *app) summarizeRefined(g *gsrc.RefinedGraph) {
	s := g.Summary
	a.logf("%s, %d nodes, edges with a probability of at least %g", g.Name, g.N, s.Threshold)
	for _, row := range []struct {
		name string
		infer.GraphStats
	}{{"before", s.Before}, {"after", s.After}} {
		homophily := "unknown"
		if row.Homophily != nil {
			homophily = fmt.Sprintf("%.3f", *row.Homophily)
		}
		a.logf("%-6s  %d edges, mean degree %.2f, %d nodes without an edge, homophily %s", row.name, row.Edges, row.MeanDegree, row.Isolated, homophily)
	}
	expected, none := "", "are none, by their probabilities"
	if s.Weighed {
		none += " apart from their weights"
	}
	if s.SameClass {
		a.logf("the probability of an edge is that both ends are of one class, by the classifier (model.edges.same_class); evidence_judged is that it is one")
		none = "join two classes, by the classifier"
	}
	if s.RemovedPrecision != nil {
		expected = fmt.Sprintf(" (of which %.0f %% %s)", 100**s.RemovedPrecision, none)
	} else if s.Removed > 0 {
		expected = ", by evidence or for their small weights"
	}
	a.logf("%d edges are new, %d were removed%s, %d were kept", s.New, s.Removed, expected, s.Kept)
	if s.RemovedWrong != nil {
		a.logf("the truth is known: %.0f %% of those that were removed are wrong, of as many at random it would be %.0f %%", 100**s.RemovedWrong, 100**s.Wrong)
	}
}
