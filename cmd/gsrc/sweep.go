package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// summaryFile is the table that a sweep leaves beside its records.
const summaryFile = "summary.csv"

type sweepFlags struct {
	opts    gsrc.TrainOptions
	seeds   int
	out     string
	workers int
	shard   shardFlags
	merge   bool
	asJSON  bool
}

func (a *app) sweepCommand() *cobra.Command {
	var f sweepFlags
	c := &cobra.Command{
		Use:   "sweep MODEL --data PATH --config GRID.toml [--out DIR] | sweep --merge DIR…",
		Short: "Train a model with every combination of options and seeds",
		Long: `Train a model with every combination of the options that a TOML file lists, and
print a table of them, the best on validation first.

  [sweep]
  "model.edges.mu" = [0.001, 0.01, 0.1]
  "candidates.k" = [2, 5]
  seeds = 10                        # 0 to 9, or a list

Options outside [sweep] apply to all runs. Lists below [[sweep.zip]] advance
together. Runs go in parallel, one thread each. DIR keeps a record of each run and
summary.csv; a run that has a record is not repeated, so the same command resumes a
sweep that was stopped. MODEL may be auto, which chooses a model in each run.

Several machines share a sweep with --shard i/n, or as an array of a batch system
that sets JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID. --merge reads the records of
all their folders and prints the table; with --out it unites them there.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if f.merge {
				return a.mergeSweeps(c, &f, args)
			}
			return a.sweep(c, &f, args)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.opts.Data, "data", "", "data set: a folder, a file, the name of a fetched one, or synthetic")
	flags.StringVar(&f.opts.Config, "config", "", "TOML file of options, with a section [sweep]")
	flags.StringArrayVar(&f.opts.Set, "set", nil, "set one option of all runs, key=value; may be repeated")
	numberFlag(flags, &f.seeds, "seeds", 0, 1, "run every setting with the seeds 0 to N-1, in place of the file's")
	flags.StringVar(&f.out, "out", "", "folder of records and summary.csv; without it nothing is kept")
	workersFlag(flags, &f.workers)
	f.shard.register(flags)
	flags.BoolVar(&f.merge, "merge", false, "unite the records of the folders given as arguments, and run nothing")
	flags.BoolVar(&f.asJSON, "json", false, "print one line of JSON for each setting, and nothing else, to standard output")
	return c
}

// workersFlag registers the flag that says how many runs go side by side.
func workersFlag(flags *pflag.FlagSet, to *int) {
	numberFlag(flags, to, "workers", 0, 0, "runs at a time, 0 for one per processor; results do not depend on it")
}

// shardFlags say which part of the runs is this process's.
type shardFlags struct {
	shard  string
	shards int
}

func (f *shardFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.shard, "shard", "", "run only part i of n, i/n with i from 0; 0/1 is all, whatever the environment says")
	numberFlag(flags, &f.shards, "shards", 0, 0, "how many shards there are, where JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID says which this one is")
}

// resolve finds the shard, and says so where the environment has chosen it.
func (f *shardFlags) resolve(a *app) (sweep.Shard, error) {
	if f.shard != "" {
		if f.shards != 0 {
			return sweep.Shard{}, usage("--shard says how many shards there are; leave --shards out")
		}
		s, err := sweep.ParseShard(f.shard)
		return s, asUsage(err)
	}
	s, err := sweep.ShardFromEnv(os.Getenv, f.shards)
	if err == nil && s.Count > 0 {
		a.logf("shard %s, by the environment", s)
	}
	return s, err
}

// oneModel enters the model that a command's argument names, to be trained on --data.
func oneModel(c *cobra.Command, args []string, o *gsrc.TrainOptions) error {
	switch len(args) {
	case 0:
		return usage("name a model; \"gsrc models\" lists them")
	case 1:
		o.Model = args[0]
		return cmp.Or(asUsage(models.Check(o.Model)), required(c, "data"))
	}
	return usage("%q is one argument too many; name one model", args[1])
}

// gridOf reads the file of --config, and gives all jobs the options of --set.
func gridOf(o *gsrc.TrainOptions) (*sweep.Grid, error) {
	grid := &sweep.Grid{Seeds: []int{0}}
	if o.Config != "" {
		var err error
		if grid, err = sweep.ReadGrid(o.Config); err != nil {
			return nil, err
		}
	}
	for _, s := range o.Set {
		if err := grid.Fix(s); err != nil {
			return nil, asUsage(err)
		}
	}
	return grid, nil
}

func (a *app) sweep(c *cobra.Command, f *sweepFlags, args []string) error {
	if len(args) == 1 && args[0] == sweep.Auto {
		f.opts.Model = sweep.Auto
		if err := required(c, "data"); err != nil {
			return err
		}
	} else if err := oneModel(c, args, &f.opts); err != nil {
		return err
	}
	shard, err := f.shard.resolve(a)
	if err != nil {
		return err
	}
	grid, err := gridOf(&f.opts)
	if err != nil {
		return err
	}
	if f.seeds > 0 {
		grid.Seeds = sweep.FirstSeeds(f.seeds)
	}
	jobs := grid.Jobs(f.opts.Model, f.opts.Data)
	if shard.Count <= 1 {
		if err := checkSummary(f.out); err != nil {
			return err
		}
	}
	show := a.newSweepProgress()
	defer show.finish()
	r := &sweep.Runner{Dir: f.out, Workers: f.workers, Shard: shard, Observer: show.observe, Log: show.logf, Warn: a.once("warning: ")}
	records, err := r.Run(c.Context(), jobs)
	show.finish()
	if gsrc.IsInterrupted(c.Context(), err) && f.out != "" && show.last.Done > 0 {
		return fmt.Errorf("%w; %s has %d of %d runs, the same command goes on", err, f.out, show.last.Done, show.last.Total)
	}
	if err != nil {
		return optionFault(err)
	}
	table := sweep.Summarize(records)
	if shard.Count > 1 {
		a.logf("shard %s has %d of %d runs; unite the folders of all shards with: gsrc sweep --merge DIR… --out DIR", shard, show.last.Done, len(jobs))
	}
	if err := a.printTable(table, f.asJSON); err != nil {
		return err
	}
	if shard.Count <= 1 {
		if err := writeSummary(table, f.out); err != nil {
			return err
		}
	}
	if show.last.Failed > 0 && show.last.Failed == show.last.Total {
		return fmt.Errorf("all %d runs failed", show.last.Failed)
	}
	return nil
}

func (a *app) mergeSweeps(c *cobra.Command, f *sweepFlags, dirs []string) error {
	if name := given(c, "data", "config", "set", "seeds", "workers", "shard", "shards"); name != "" {
		return usage("--merge runs nothing; leave --%s out", name)
	}
	if len(dirs) == 0 {
		return usage("name the folders to unite: gsrc sweep --merge DIR… --out DIR")
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the folder %s given to --merge does not exist; give the folders of the shards, the --out of each", dir)
		}
	}
	if f.out != "" {
		if err := checkSummary(f.out); err != nil {
			return err
		}
		added, _, err := sweep.Store{Dir: f.out}.Merge(dirs...)
		if err != nil {
			return err
		}
		a.logf("%d records were added to %s", added, f.out)
		dirs = append([]string{f.out}, dirs...)
	}
	var records []*sweep.Record
	for _, dir := range dirs {
		r, faults, err := sweep.Store{Dir: dir}.Records()
		if err != nil {
			return err
		}
		for _, fault := range faults {
			a.logf("%v; it is left out", fault)
		}
		records = append(records, r...)
	}
	if len(records) == 0 {
		return fmt.Errorf("there is no record in %s", strings.Join(dirs, ", "))
	}
	table := sweep.Summarize(records)
	if err := a.printTable(table, f.asJSON); err != nil {
		return err
	}
	return writeSummary(table, f.out)
}

// checkSummary refuses, before anything runs, a folder whose summary.csv is not that of a sweep.
func checkSummary(dir string) error {
	if dir == "" {
		return nil
	}
	return atomicfile.CheckOwn(filepath.Join(dir, summaryFile), sweep.IsCSV)
}

// writeSummary writes the table into the folder of a sweep, if there is one.
func writeSummary(t *sweep.Table, dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, summaryFile), t.WriteCSV)
}

func (a *app) printTable(t *sweep.Table, asJSON bool) error {
	for _, text := range t.Warnings {
		a.logf("warning: %s", text)
	}
	if !asJSON {
		return t.Write(a.stdout)
	}
	for _, row := range t.Rows {
		if err := a.json(row, ""); err != nil {
			return err
		}
	}
	return nil
}

// sweepProgress shows how many runs of a sweep are done.
type sweepProgress struct {
	meter
	last sweep.Progress
}

func (a *app) newSweepProgress() *sweepProgress { return &sweepProgress{meter: a.newMeter()} }

func (p *sweepProgress) observe(e sweep.Progress) {
	begins := p.last.Total == 0 || e.Total != p.last.Total
	p.last = e
	if begins {
		p.wrote = p.now()
		if e.Stored > 0 {
			fmt.Fprintf(p.w, "%d of %d runs are in the store\n", e.Stored, e.Total)
		}
	}
	left := ""
	if e.Left > 0 && e.Done < e.Total {
		left = fmt.Sprintf("  %s left", e.Left.Round(time.Second))
	}
	failed := ""
	if e.Failed > 0 {
		failed = fmt.Sprintf("  %d failed", e.Failed)
	}
	running := fmt.Sprintf("%d running%s%s", len(e.Running), failed, left)
	if p.terminal && p.bar == nil { // also after a line that was written above it
		p.begin(int64(e.Total), progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(false))
	}
	if !p.terminal && e.Last == nil || !p.show(running, int64(e.Done), e.Done == e.Total) {
		return
	}
	fmt.Fprintf(p.w, "runs %d/%d  %s\n", e.Done, e.Total, running)
}

// logf writes a line above the bar.
func (p *sweepProgress) logf(format string, args ...any) {
	p.finish()
	fmt.Fprintf(p.w, format+"\n", args...)
}
