package main

import (
	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"github.com/spf13/cobra"
)

func (a *app) neighborsCommand() *cobra.Command {
	var o gsrc.PredictOptions
	var nodes []string
	var path, out string
	var tables tableFlags
	c := &cobra.Command{
		Use: "neighbors DIST --data PATH --nodes A,B --out DIR", Short: "Extract the subgraph that the predictions for some nodes depend on", Args: cobra.ExactArgs(1),
		Long: `Cut the part of a graph that an export's classifier needs to classify some nodes:
their neighbours as far as the classifier sees. Its answers for the nodes, the first
rows of its outputs, are the same as on the whole graph. DIR gets the
classifier's inputs, input_0.pb and so on as in the export's test data, and nodes.csv,
which maps rows to nodes. The last row may stand for the rest of the graph,
whose edges give the outermost nodes their degrees.

Nodes are named by their ids in the data, or by number from 0.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := required(c, "data", "nodes", "out"); err != nil {
				return err
			}
			if err := tables.applyOther(c, args[0], &o.Load); err != nil {
				return err
			}
			o.Log = a.logf
			s, err := infer.Neighbors(c.Context(), args[0], path, nodes, o)
			if err != nil {
				return err
			}
			if err := s.Write(out); err != nil {
				return err
			}
			a.logf("wrote %s: %d of the graph's nodes for %d asked for, %d hops", out, len(s.Nodes), s.Asked, s.Hops)
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&path, "data", "", "data set: a folder, a file, the name of a fetched one, or "+data.Synthetic)
	flags.StringSliceVar(&nodes, "nodes", nil, "the nodes to be answered for")
	flags.StringVar(&out, "out", "", "folder to write")
	parsedFlag(flags, &o.Provider, "provider", string(ort.Auto), ort.ParseProvider, "auto, cpu or cuda, where edges of a new graph are refined")
	numberFlag(flags, &o.Threads, "threads", 0, 0, "threads, 0 for one per processor")
	tables.registerOther(flags, &o.Load, "seed of the synthetic graph")
	return c
}
