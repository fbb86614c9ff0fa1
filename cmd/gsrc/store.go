package main

import (
	"fmt"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/company"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/spf13/cobra"
)

// halfFlag parses --features.
func halfFlag(text string) (bool, error) {
	if text != store.Float32 && text != store.Float16 {
		return false, fmt.Errorf("give %s or %s, not %s", store.Float32, store.Float16, text)
	}
	return text == store.Float16, nil
}

// buildStore has a graph store written to dir, shows how far that is, and describes it.
func (a *app) buildStore(c *cobra.Command, dir string, build func(progress func(string, int64, int64) error) error) error {
	show := a.newTransfer()
	err := build(func(stage string, done, total int64) error {
		show.count(stage, int(done), int(total))
		return c.Context().Err()
	})
	show.finish()
	if err != nil {
		return err
	}
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	var bytes int64
	for _, x := range s.Arrays {
		bytes += s.Bytes(x.Name)
	}
	a.logf("%s: %d nodes, %d edges, %d features, %s", dir, s.Nodes, s.Edges, s.Features, budget.Format(bytes))
	return nil
}

func (a *app) dataConvertCommand() *cobra.Command {
	var out string
	var o data.ConvertOptions
	var tables tableFlags
	c := &cobra.Command{
		Use:   "convert PATH --out STORE",
		Short: "Write a data set as a graph store, which is mapped into memory in the place of being read",
		Long: "Write a data set as a graph store: a folder of arrays that are mapped into memory, so\n" +
			"that a graph may be larger than that. PATH is " + dataPath + ".\n\n" +
			"Edges are sorted on the disk within --memory, which needs room for about three times\n" +
			"the store. What was broken off goes on where it was when the command is given again.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := required(c, "out"); err != nil {
				return err
			}
			tables.apply(&o.Load)
			return a.buildStore(c, out, func(progress func(string, int64, int64) error) error {
				o.Progress = progress
				return data.Convert(args[0], out, o)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&out, "out", "", "new folder for the store")
	parsedFlag(flags, &o.Half, "features", store.Float32, halfFlag, "type of dense features: float32 or float16, which takes half the room")
	flags.BoolVar(&o.Load.Directed, "directed", false, "keep the direction of edges")
	splitFlag(flags, &o.Load.Split, splitHelp)
	tables.register(flags)
	tables.registerPrepare(flags)
	flags.BoolVar(&tables.noWeights, "ignore-weights", false, "of tables: give every edge weight 1")
	flags.Uint64Var(&o.Load.Seed, "seed", 0, "seed of the synthetic graph")
	flags.BoolVar(&o.Force, "force", false, "replace a graph store")
	return c
}

func (a *app) dataVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "verify STORE", Short: "Hold every block of a graph store against its checksum", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.verifyStore(c, args[0]) },
	}
}

func (a *app) verifyStore(c *cobra.Command, dir string) error {
	s, err := store.Open(dir)
	if err != nil {
		return err
	}
	defer s.Close()
	show := a.newTransfer()
	err = s.Verify(func(done, total int64) error {
		show.observe(dir, done, total)
		return c.Context().Err()
	})
	show.finish()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: all blocks of %d arrays are what was written\n", dir, len(s.Arrays))
	return err
}

func (a *app) dataGenerateCommand() *cobra.Command {
	o := company.Options{}
	p := store.Planted{}
	var opts store.Options
	var out string
	c := &cobra.Command{
		Use:   "generate DIR | generate --out STORE",
		Short: "Generate a company's tables for trials, or a graph store of any size with planted communities and wrong edges",
		Long: `Generate data for trials.

With DIR: a company's tables, customers with gaps, categories and dates, and payments.

With --out: a graph store of any size, drawn edge by edge and row by row. Classes consist
of communities, in which most edges are, and features are noise around the means of both.
A share of as many edges as there are, --wrong, joins nodes of different classes; they are
marked in the array planted. Edges that are drawn twice are dropped.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if (out == "") == (len(args) == 0) {
				return usage("give a folder for a company's tables, or --out STORE for a graph store")
			}
			if name := given(c, "classes", "community", "homophily", "locality", "width", "signal", "features", "train", "force"); name != "" && out == "" {
				return usage("--%s is of a graph store; give --out STORE in place of a folder for a company's tables, or leave it out", name)
			}
			if out != "" {
				if name := given(c, "known", "useless"); name != "" {
					return usage("--%s is of a company's tables; give a folder for them in place of --out, or leave it out", name)
				}
				p.Nodes, p.Edges, p.Wrong, p.Seed = int64(o.Nodes), int64(o.Edges), o.Wrong, o.Seed
				if p.Val = p.Train; p.Train == 0 {
					p.Train = max(p.Nodes/100, min(p.Nodes/2, 20*int64(p.Classes)))
					p.Val = min(p.Train, (p.Nodes-p.Train)/2)
				}
				if p.Train > p.Nodes/2 {
					return usage("--train %d: as many validation nodes do not fit into --nodes %d beside them; give %d at most", p.Train, p.Nodes, p.Nodes/2)
				}
				if err := p.Check(); err != nil {
					return asUsage(err)
				}
				return a.buildStore(c, out, func(progress func(string, int64, int64) error) error {
					opts.Progress = progress
					opts.Memory, _ = budget.Default()
					opts.Memory /= 2
					return store.Generate(out, p, opts)
				})
			}
			if o.Wrong == 0 {
				o.Wrong = -1
			}
			if err := company.Write(args[0], o); err != nil {
				return err
			}
			a.logf("wrote %s: nodes.csv and edges.csv; wrong.csv has the edges that were planted and are wrong, truth.csv the labels that nodes.csv leaves out", args[0])
			return nil
		},
	}
	flags := c.Flags()
	flags.IntVar(&o.Nodes, "nodes", 50_000, "customers, or nodes")
	flags.IntVar(&o.Edges, "edges", 300_000, "payments, or edges")
	flags.Float64Var(&o.Wrong, "wrong", 0.03, "share of edges that are wrong, and planted")
	flags.Float64Var(&o.Known, "known", 0.3, "of tables: share of customers whose label is known")
	flags.BoolVar(&o.Useless, "useless", false, "of tables: join customers at random, so that edges carry no information")
	flags.Uint64Var(&o.Seed, "seed", 0, "seed")
	flags.StringVar(&out, "out", "", "new folder for a graph store")
	flags.IntVar(&p.Classes, "classes", 16, "of a store: classes")
	flags.Int64Var(&p.Community, "community", 100, "of a store: about how many nodes a community has")
	flags.Float64Var(&p.Homophily, "homophily", 0.8, "of a store: share of the edges within a class")
	flags.Float64Var(&p.Locality, "locality", 0.8, "of a store: share of these within a community")
	flags.IntVar(&p.Features, "width", 128, "of a store: features of a node")
	flags.Float64Var(&p.Signal, "signal", 0.2, "of a store: distance of the features' means from 0, in standard deviations of their noise")
	parsedFlag(flags, &p.Half, "features", store.Float32, halfFlag, "of a store: type of the features, float32 or float16")
	flags.Int64Var(&p.Train, "train", 0, "of a store: training nodes, and as many for validation; 0 is a hundredth of all, or 20 for each class if that is more and fits")
	flags.BoolVar(&opts.Force, "force", false, "of a store: replace one")
	return c
}
