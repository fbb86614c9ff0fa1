package main

import (
	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/spf13/cobra"
)

func (a *app) embedCommand() *cobra.Command {
	var o gsrc.PredictOptions
	var path, out string
	var provider providerFlags
	var tables tableFlags
	c := &cobra.Command{
		Use: "embed RUN --out FILE | embed EXPORT --data PATH --out FILE", Short: "Write the embedding of nodes by a model's encoder", Args: cobra.ExactArgs(1),
		Long: `Write the encoder's embedding of the nodes: the id and a column for each dimension, as
.csv or .parquet, or .npz with the arrays id and embedding. RUN is a folder written by
gsrc train, whose training graph is embedded, or the graph of --data, over chunks of nodes
within --memory. EXPORT is one written by gsrc build, for
the same graph or another one.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := provider.apply(&o.Provider, &o.Device, &o.MemoryLimit); err != nil {
				return err
			}
			if err := tables.applyOther(c, args[0], &o.Load); err != nil {
				return err
			}
			if out == "" {
				return usage("say where the embedding goes with --out FILE")
			}
			if _, err := infer.EmbeddingFormat(out); err != nil {
				return asUsage(err)
			}
			o.Log, o.Load.Output = a.logf, out
			e, err := gsrc.Embed(c.Context(), args[0], path, o)
			if err != nil {
				return err
			}
			if err := e.WriteFile(out); err != nil {
				return err
			}
			a.logf("wrote %s, %d nodes in %d dimensions", out, len(e.Values)/max(1, e.Width), e.Width)
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&path, "data", "", "the graph to embed; of a run, without it, the training's")
	flags.StringVar(&out, "out", "", "file to write: .csv, .npz or .parquet, or /dev/stdout, which gets CSV")
	provider.register(flags)
	numberFlag(flags, &o.Threads, "threads", 0, 0, "threads, 0 for one per processor")
	tables.registerOther(flags, &o.Load, "seed of the synthetic graph, for an export with --data "+data.Synthetic)
	return c
}
