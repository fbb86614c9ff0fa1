package main

import (
	"fmt"
	"path/filepath"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/lab/charts"
	"github.com/spf13/cobra"
)

func (a *app) plotCommand() *cobra.Command {
	var o charts.Options
	var out string
	c := &cobra.Command{
		Use: "plot RUN [--out DIR]", Short: "Plot the training curves, graphs and embedding of a run", Args: cobra.ExactArgs(1),
		Long: `Draw charts of a finished run: accuracy and losses, predictions by class, the adjacency
matrix before and after refinement, the embedding in two dimensions, degrees and
homophily. DIR (RUN/plots if not given) gets an SVG and a PNG of each chart, and index.html, which
shows them all and needs no network.`,
		RunE: func(_ *cobra.Command, args []string) error {
			run, err := gsrc.OpenRun(args[0])
			if err != nil {
				return err
			}
			a.unchecked(run.Unchecked())
			if out == "" {
				out = filepath.Join(args[0], "plots")
			}
			drawn, err := charts.Draw(run, out, o)
			if err != nil {
				return err
			}
			for _, c := range drawn {
				fmt.Fprintf(a.stdout, "%s\n", filepath.Join(out, c.Name+".png"))
			}
			a.logf("open %s for all of them", filepath.Join(out, charts.PageFile))
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&out, "out", "", "folder of the charts; RUN/plots if not given")
	flags.StringVar(&o.Data, "data", "", "where the run's data are, if not where they were")
	numberFlag(flags, &o.Threads, "threads", 0, 0, "threads, 0 for one per processor; charts do not depend on it")
	return c
}
