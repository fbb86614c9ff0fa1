package main

import (
	"encoding/json"
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/spf13/cobra"
)

func (a *app) dataCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "data", Short: "Look at data sets",
		Args: cobra.ArbitraryArgs, RunE: helpOrUnknown,
	}
	var asJSON bool
	var opts data.LoadOptions
	info := &cobra.Command{
		Use:   "info PATH",
		Short: "Print counts, classes, degrees, homophily, splits and what was repaired",
		Long: "Print counts, classes, degrees, homophily, splits and what was repaired.\n\n" +
			"PATH is a folder with Planetoid's ind.* files or with edges.csv and nodes.csv, an\n" +
			".npz file, or the word synthetic.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if _, err := data.ParseSplit(opts.Split); err != nil {
				return asUsage(err)
			}
			ds, err := data.Load(args[0], opts)
			if err != nil {
				return err
			}
			if !asJSON {
				return ds.Info().WriteText(a.stdout)
			}
			text, err := json.MarshalIndent(ds.Info(), "", "  ")
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(a.stdout, "%s\n", text)
			return err
		},
	}
	flags := info.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.BoolVar(&opts.Directed, "directed", false, "keep the direction of edges")
	flags.StringVar(&opts.Split, "split", "", "draw splits: per-class:20,500,1000 or random:0.6,0.2,0.2")
	flags.Uint64Var(&opts.Seed, "seed", 0, "seed of the synthetic graph")
	c.AddCommand(info)
	return c
}
