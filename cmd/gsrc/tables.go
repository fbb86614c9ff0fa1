package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/seal"
	runs "github.com/gsrc-dev/gsrc/run"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// tableFlags say how tables of nodes and edges are read.
type tableFlags struct {
	tables    data.Tables
	noPrepare bool
	weights   data.EdgeWeights
	noWeights bool
}

func (f *tableFlags) register(flags *pflag.FlagSet) {
	t := &f.tables
	flags.StringVar(&t.ID, "id", "", "column of the node table with the ids")
	flags.StringVar(&t.Label, "label", "", "column with the classes")
	flags.StringVar(&t.Source, "source", "", "column of the edge table with the sources")
	flags.StringVar(&t.Target, "target", "", "column of the edge table with the targets")
	flags.StringVar(&t.Weight, "weight", "", "column of the edge table with the weights")
	flags.StringSliceVar(&t.Ignore, "ignore", nil, "columns of either table to leave out")
	parsedFlag(flags, &t.Merge, "merge", "", func(s string) (string, error) { return s, data.CheckMerge(s) }, "weight of an edge that is listed more than once: sum, mean, max or first")
}

// registerWeights registers the flags that say what becomes of the weights of edges.
func (f *tableFlags) registerWeights(flags *pflag.FlagSet) {
	flags.BoolVar(&f.noWeights, "ignore-weights", false, "give every edge weight 1, whatever the data say")
	parsedFlag(flags, &f.weights, "weight-transform", "", func(s string) (data.EdgeWeights, error) {
		if s != string(data.LogWeights) {
			return "", fmt.Errorf("%s: give log1p", s)
		}
		return data.LogWeights, nil
	}, "log1p takes the logarithm of 1 + weight of every edge")
}

// check refuses flags that exclude each other.
func (f *tableFlags) check() error {
	if f.noWeights && f.weights != "" {
		return usage("--ignore-weights and --weight-transform exclude each other")
	}
	return nil
}

func (f *tableFlags) edgeWeights() data.EdgeWeights {
	if f.noWeights {
		return data.IgnoreWeights
	}
	return f.weights
}

func (f *tableFlags) registerPrepare(flags *pflag.FlagSet) {
	flags.BoolVar(&f.noPrepare, "no-prepare", false, "take the columns of tables as numbers, as they are")
}

// set returns the flags as options of a configuration.
func (f *tableFlags) set() (list []string) {
	t := &f.tables
	for _, x := range [][2]string{{"id", t.ID}, {"label", t.Label}, {"source", t.Source}, {"target", t.Target}, {"weight", t.Weight}, {"merge", t.Merge}} {
		if x[1] != "" {
			list = append(list, "data."+x[0]+"="+x[1])
		}
	}
	if len(t.Ignore) > 0 {
		list = append(list, "data.ignore="+data.JoinNames(t.Ignore))
	}
	if w := f.edgeWeights(); w != "" {
		list = append(list, "data.weights="+string(w))
	}
	if f.noPrepare {
		list = append(list, "data.prepare=false")
	}
	return list
}

// apply enters the flags in options of reading.
func (f *tableFlags) apply(o *data.LoadOptions) {
	o.Tables, o.NoPrepare, o.Weights = f.tables, f.noPrepare, f.edgeWeights()
}

// registerOther registers the flags of commands that read data for a run or an export; seed describes
// --seed.
func (f *tableFlags) registerOther(flags *pflag.FlagSet, o *data.LoadOptions, seed string) {
	f.register(flags)
	flags.BoolVar(&o.Directed, "directed", false, "keep the direction of edges, for an export of an earlier version that does not say whether its training did")
	flags.Uint64Var(&o.Seed, "seed", 0, seed)
}

// applyOther is apply for the run or export in dir, and refuses --directed=false for one that was
// trained on a directed graph, and reads others alike, and of a run what is for exports.
func (f *tableFlags) applyOther(c *cobra.Command, dir string, o *data.LoadOptions) error {
	f.apply(o)
	if err := seal.Folder(dir); err != nil {
		return err
	}
	if isRun(dir) {
		if err := refuseForRun(c, dir); err != nil {
			return err
		}
	}
	if c.Flags().Changed("directed") && !o.Directed {
		return runs.RefuseUndirected(dir)
	}
	return nil
}

func (a *app) dataInitCommand() *cobra.Command {
	var tables tableFlags
	var o data.LoadOptions
	var force bool
	c := &cobra.Command{
		Use: "init PATH", Short: "Write schema.toml for the tables in a folder: the columns as detected, to be edited", Args: cobra.ExactArgs(1),
		Long: `Look at the tables in a folder and write schema.toml beside them: which are nodes and
edges, which columns are ids, labels, ends and weights, and of what kind every other
column is. What it says counts from then on whenever the folder is read, and may be
edited. Options of the command line count more.`,
		RunE: func(_ *cobra.Command, args []string) error {
			tables.apply(&o)
			path := filepath.Join(args[0], data.SchemaFile)
			if _, err := os.Stat(path); err == nil && !force {
				return fmt.Errorf("%s is there already; --force writes it anew", path)
			} else if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			text, err := data.DescribeTables(args[0], o)
			if err != nil {
				return err
			}
			if err := atomicfile.WriteBytes(path, []byte(text)); err != nil {
				return err
			}
			a.logf("wrote %s", path)
			return nil
		},
	}
	tables.register(c.Flags())
	c.Flags().StringVar(&o.Split, "split", "", "column that has the split: train, val and test")
	c.Flags().BoolVar(&force, "force", false, "replace a schema.toml that is there")
	return c
}
