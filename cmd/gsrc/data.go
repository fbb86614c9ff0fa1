package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/catalog"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/spf13/cobra"
)

const splitHelp = "draw splits: per-class:20,500,1000, random:0.6,0.2,0.2, ratio:0.05, or time:COLUMN,0.6,0.2 (the earliest, those after them, the latest); or the column that has one"

// dataPath says in help texts what a path of data may be.
const dataPath = `a folder with edges.csv and nodes.csv, or with Planetoid's ind.* files; a graph
store; an .npz file; OGB's folder or .zip; the name of a public data set that
"gsrc data fetch" has fetched; or the word synthetic`

func (a *app) dataCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "data", Short: "Inspect data sets, and fetch public ones",
		Args: cobra.ArbitraryArgs, RunE: helpOrUnknown,
	}
	c.AddCommand(a.dataInfoCommand(), a.dataPlantCommand(), a.dataFetchCommand(), a.dataListCommand(), a.dataInitCommand(), a.dataGenerateCommand(), a.dataConvertCommand(), a.dataVerifyCommand())
	return c
}

func (a *app) dataInfoCommand() *cobra.Command {
	var asJSON bool
	var opts data.LoadOptions
	var tables tableFlags
	info := &cobra.Command{
		Use:   "info PATH",
		Short: "Print counts, classes, degrees, homophily, splits and repairs",
		Long: "Print counts, classes, degrees, homophily, splits and repairs.\n\n" +
			"PATH is " + dataPath + ".\n" +
			"Of collections of graphs it is a TU data set, a folder or its .zip, or a text in\n" +
			"GIN's format.",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := tables.check(); err != nil {
				return err
			}
			tables.apply(&opts)
			ds, collection, err := data.LoadAny(args[0], opts)
			if err != nil {
				return err
			}
			var about interface{ WriteText(io.Writer) error }
			if ds != nil {
				about = ds.Info()
			} else {
				about = collection.Info()
			}
			if !asJSON {
				return about.WriteText(a.stdout)
			}
			return a.json(about, "  ")
		},
	}
	flags := info.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.BoolVar(&opts.Directed, "directed", false, "keep the direction of edges")
	splitFlag(flags, &opts.Split, splitHelp)
	tables.register(flags)
	tables.registerWeights(flags)
	tables.registerPrepare(flags)
	parsedFlag(flags, &opts.NodeFeatures, "features", "auto", data.ParseNodeFeatures, "of collections of graphs: labels, attributes, both or degrees as node features; of one graph: places or roles")
	flags.Float64Var(&opts.AddEdges, "add-edges", 0, "add edges at random, as a share of those there are")
	flags.Float64Var(&opts.RemoveEdges, "remove-edges", 0, "remove this share of the edges at random")
	flags.Uint64Var(&opts.Seed, "seed", 0, "seed of the synthetic graph, and of edges added and removed")
	return info
}

func (a *app) dataPlantCommand() *cobra.Command {
	var out, kind string
	var fraction float64
	var opts data.LoadOptions
	c := &cobra.Command{
		Use:   "plant PATH --out DIR",
		Short: "Write a data set with some of its edges hidden and as many wrong ones planted",
		Long: "Write a data set with a share of its edges hidden and as many wrong ones planted, to\n" +
			"see whether refinement finds them. PATH is " + dataPath + ".\n\n" +
			"DIR gets edges.csv, nodes.csv, features.npz or .npy, which --data DIR reads, and\n" +
			data.TruthFile + ", which lists the planted and the hidden edges. The ends of planted edges are\n" +
			"random, drawn in proportion to their degrees, or similar: of 20 random pairs the one\n" +
			"whose features have the largest cosine.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := required(c, "out"); err != nil {
				return err
			}
			switch {
			case !(fraction > 0 && fraction < 1):
				return usage("--fraction %v: give a share between 0 and 1", fraction)
			case !slices.Contains(graph.Kinds, graph.Kind(kind)):
				return usage("there is no kind %q%s", kind, nearest.Hint(kind, []string{string(graph.Random), string(graph.Degrees), string(graph.Similar)}))
			}
			unlock, err := manifest.LockFolder(out)
			if err != nil {
				return err
			}
			defer unlock()
			ds, err := data.Load(args[0], opts)
			if err != nil {
				return err
			}
			wrong, hidden, err := ds.Plant(graph.Kind(kind), fraction, fraction, opts.Seed)
			if err != nil {
				return err
			}
			if err := ds.WritePlanted(out, opts.Seed, wrong, hidden); err != nil {
				return err
			}
			a.logf("%s: %d edges, %d of them planted; %d were hidden", out, len(ds.Graph.Edges), len(wrong), len(hidden))
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&out, "out", "", "new folder for the data")
	flags.Float64Var(&fraction, "fraction", 0.1, "share of the edges that is hidden, and of as many planted")
	flags.StringVar(&kind, "kind", string(graph.Random), "how the ends of planted edges are drawn: random, degrees or similar")
	splitFlag(flags, &opts.Split, "draw the split that is written: per-class:20,500,1000, random:0.6,0.2,0.2 or ratio:0.05")
	flags.Uint64Var(&opts.Seed, "seed", 0, "seed of the planting, and which split is written")
	return c
}

func (a *app) dataFetchCommand() *cobra.Command {
	var opts catalog.Options
	var into string
	c := &cobra.Command{
		Use:   "fetch NAME...",
		Short: "Fetch public data sets; afterwards --data NAME finds them",
		Long: "Fetch public data sets; afterwards --data NAME finds them. \"gsrc data list\" has the\n" +
			"names.\n\n" +
			"They are put below " + catalog.EnvVar + ", or into the user's cache folder. What was broken off\n" +
			"goes on where it ended. Every file is checked against its published checksum or,\n" +
			"where none is known, against what it was when it was fetched first. With\n" +
			catalog.MirrorVar + " set, files come from that address.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var sets []catalog.Set
			for _, name := range args {
				set, ok := catalog.Find(name)
				if !ok {
					return usage("there is no data set %q%s; \"gsrc data list\" has their names", name, nearest.Hint(name, catalog.Names()))
				}
				sets = append(sets, set)
			}
			root := into
			if root == "" {
				var err error
				if root, err = catalog.Root(); err != nil {
					return err
				}
			}
			show := a.newTransfer()
			opts.Progress = show.observe
			opts.Log = func(format string, args ...any) {
				show.finish()
				a.logf(format, args...)
			}
			opts.Mirror = os.Getenv(catalog.MirrorVar)
			for _, set := range sets {
				path, err := set.Fetch(c.Context(), root, opts)
				show.finish()
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(a.stdout, path); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&into, "into", "", "folder of data sets; default "+catalog.EnvVar+", else the user's cache folder")
	flags.BoolVar(&opts.Force, "force", false, "fetch again, also what is there")
	return c
}

func (a *app) dataListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the public data sets that can be fetched by name, and where they are", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			for _, s := range catalog.Sets() {
				where, _ := s.Locate()
				where = cmp.Or(where, "not fetched")
				fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, s.About, where)
			}
			return w.Flush()
		},
	}
}
