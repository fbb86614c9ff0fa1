package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/spf13/cobra"
)

type tuneFlags struct {
	opts    gsrc.TrainOptions
	trials  int
	seeds   int
	rungs   []int
	space   string
	store   string
	out     string
	limit   time.Duration
	workers int
	asJSON  bool
}

func (a *app) tuneCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{
		Use:   "tune MODEL --data PATH [--trials N] [--store DIR] [--out FILE.toml]",
		Short: "Search for the best options on validation data",
		Long: `Search for the options of a model that are the best on a data set's validation
nodes, and write them as TOML, each with a comment that says what it is based on.
Settings are compared by the mean of the metric of train.select: accuracy, loss
where the columns of tables are prepared, or what --set train.select=macro_f1
(auc, accuracy, loss) chooses. The head of the file names it.

Half of the trials are drawn from a search space, the defaults being the first;
the others near the best of those. All run with one seed, the best third with
three, the best ninth and the defaults with all. The defaults win where the best
is not better by more than the noise. Test accuracy is not used; that of the
winner is printed at the end.

A search depends on --seed alone, not on --workers, and not on whether it was
stopped, if --store keeps its runs.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return a.tune(c, &f, args) },
	}
	flags := c.Flags()
	flags.StringVar(&f.opts.Data, "data", "", "data set: a folder, a file, the name of a fetched one, or synthetic")
	numberFlag(flags, &f.trials, "trials", 200, 1, "settings to try")
	numberFlag(flags, &f.seeds, "seeds", 10, 1, "seeds, or splits, that the final trials are judged with")
	flags.IntSliceVar(&f.rungs, "rungs", nil, "seeds that a trial has had after each rung, such as 2,5,10, in place of --seeds")
	numberFlag(flags, &f.opts.Seed, "seed", 0, 0, "seed of the search's own draws")
	flags.StringVar(&f.space, "space", "", "TOML file of ranges, in place of the model's own")
	flags.StringVar(&f.opts.Config, "config", "", "TOML file of options for all trials")
	flags.StringArrayVar(&f.opts.Set, "set", nil, "set one option of all trials, key=value; may be repeated")
	flags.StringVar(&f.store, "store", "", "folder of records; runs that it has are not repeated")
	flags.StringVar(&f.out, "out", "", "file to write the options to; without it, or with -, they go to standard output")
	flags.DurationVar(&f.limit, "time", 0, "stop after this long, such as 30m, with the best so far")
	workersFlag(flags, &f.workers)
	flags.BoolVar(&f.asJSON, "json", false, "print one line of JSON, and nothing else, to standard output")
	return c
}

func (f *tuneFlags) check(c *cobra.Command, args []string) error {
	changed := c.Flags().Changed
	switch {
	case changed("seeds") && changed("rungs"):
		return usage("--rungs says how many seeds there are; leave --seeds out")
	case f.asJSON && f.out == "-":
		return usage("--json and --out - both take standard output; leave one of them out")
	case f.limit < 0:
		return usage("--time %s: give a duration greater than 0", f.limit)
	}
	for i, n := range f.rungs {
		if n < 1 || i > 0 && n <= f.rungs[i-1] {
			return usage("--rungs: give numbers from 1, each greater than the one before")
		}
	}
	if f.out == "-" {
		f.out = ""
	}
	return oneModel(c, args, &f.opts)
}

// search is what the flags ask for.
func (f *tuneFlags) search() (*sweep.Search, error) {
	s := &sweep.Search{Model: f.opts.Model, Data: f.opts.Data, Trials: f.trials, Seed: uint64(f.opts.Seed), Rungs: f.rungs}
	if len(s.Rungs) == 0 {
		s.Rungs = sweep.DefaultRungs(f.seeds)
	}
	fixed, err := gridOf(&f.opts)
	if err != nil {
		return nil, err
	}
	if len(fixed.Axes) > 0 {
		return nil, fmt.Errorf("configuration %s: gsrc tune takes no [sweep]; give ranges with --space", f.opts.Config)
	}
	if !slices.Equal(fixed.Seeds, []int{0}) { // a grid's without any
		return nil, fmt.Errorf("configuration %s: the runs of gsrc tune have the seeds from 0 on, as many as --seeds says; leave train.seed and [sweep] out", f.opts.Config)
	}
	s.Set = fixed.Base
	if f.space != "" {
		if s.Space, err = sweep.ReadSpace(f.space); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// command is the command line that repeats the search, on any machine that has
// the data set.
func (f *tuneFlags) command() string {
	args := []string{"tune", f.opts.Model, "--data", filepath.Base(f.opts.Data), "--trials", fmt.Sprint(f.trials)}
	if len(f.rungs) > 0 {
		args = append(args, "--rungs", strings.Trim(strings.ReplaceAll(fmt.Sprint(f.rungs), " ", ","), "[]"))
	} else {
		args = append(args, "--seeds", fmt.Sprint(f.seeds))
	}
	if f.opts.Seed > 0 {
		args = append(args, "--seed", fmt.Sprint(f.opts.Seed))
	}
	if f.space != "" {
		args = append(args, "--space", filepath.Base(f.space))
	}
	if f.opts.Config != "" {
		args = append(args, "--config", filepath.Base(f.opts.Config))
	}
	for _, set := range f.opts.Set {
		args = append(args, "--set", set)
	}
	return "gsrc " + strings.Join(lists.Map(args, shell.Quote), " ")
}

func (a *app) tune(c *cobra.Command, f *tuneFlags, args []string) error {
	if err := f.check(c, args); err != nil {
		return err
	}
	s, err := f.search()
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := atomicfile.Check(f.out); err != nil {
			return err
		}
	}
	ctx := c.Context()
	if f.limit > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.limit)
		defer stop()
	}
	show := a.newSweepProgress()
	defer show.finish()
	s.Runner = &sweep.Runner{Dir: f.store, Workers: f.workers, Observer: show.observe, Log: show.logf}
	s.Warn = a.once("warning: ")
	s.Stage = func(text string) {
		show.logf("%s", text)
		show.last = sweep.Progress{}
	}
	found, err := s.Run(ctx)
	show.finish()
	timeUp := c.Context().Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded)
	switch {
	case err == nil:
	case timeUp && found == nil:
		return fmt.Errorf("the time was up before a run had ended; give more than --time %s", f.limit)
	case timeUp && gsrc.IsInterrupted(ctx, err):
		a.logf("the time is up; what follows is the best so far")
	case gsrc.IsInterrupted(ctx, err) && f.store != "":
		return fmt.Errorf("%w; the same command goes on with what %s has", err, f.store)
	default:
		return optionFault(err)
	}
	return a.reportTuning(found, f)
}

// tuned is what gsrc tune --json prints.
type tuned struct {
	Model       string            `json:"model"`
	Data        string            `json:"data"`
	Command     string            `json:"command"`
	Trials      int               `json:"trials"`
	Runs        int               `json:"runs"`
	Seeds       int               `json:"seeds"`
	Complete    bool              `json:"complete"`
	Best        int               `json:"best_trial"` // 0 is the defaults
	Set         map[string]string `json:"set"`        // values as TOML
	ValAccMean  float64           `json:"val_acc_mean"`
	ValAccStd   float64           `json:"val_acc_std"`
	TestAccMean *float64          `json:"test_acc_mean"` // null without test nodes
	TestAccStd  *float64          `json:"test_acc_std"`
}

// reportTuning writes what was found, to standard output where the file cannot be written.
func (a *app) reportTuning(found *sweep.Study, f *tuneFlags) error {
	command := f.command()
	out, failed := f.out, error(nil)
	if out != "" {
		if failed = atomicfile.Write(out, func(w io.Writer) error { return found.WriteTOML(w, command) }); failed != nil {
			out = ""
		}
	}
	val, valStd := found.Val()
	test, testStd := found.Test()
	if f.asJSON {
		t := tuned{Model: found.Search.Model, Data: found.Dataset, Command: command, Trials: len(found.Trials), Runs: found.Runs, Seeds: found.Seeds,
			Complete: found.Complete, Best: found.Best.Number, Set: map[string]string{}, ValAccMean: val, ValAccStd: valStd}
		for _, key := range found.Keys() {
			t.Set[key] = found.Config.Value(key)
		}
		if !math.IsNaN(test) {
			t.TestAccMean, t.TestAccStd = &test, &testStd
		}
		return cmp.Or(a.json(t, ""), failed)
	}
	to := a.stdout
	if out == "" { // standard output has the file
		to = a.stderr
		if err := found.WriteTOML(a.stdout, command); err != nil {
			return err
		}
	}
	which := fmt.Sprintf("trial %d", found.Best.Number)
	if found.Best == found.Defaults {
		which = "the defaults"
	}
	fmt.Fprintf(to, "%s on %s, %d trials, %d runs: best %s, %s\n", found.Search.Model, found.Dataset, len(found.Trials), found.Runs, which, found.Evidence())
	if !math.IsNaN(test) {
		fmt.Fprintf(to, "  test %s %%, which took no part in the choice\n", lab.PlusMinus("%.2f", test, testStd, found.Seeds))
	}
	if out != "" {
		fmt.Fprintf(to, "  the options are in %s; train with: gsrc train %s --data %s --config %s\n", out, shell.Quote(f.opts.Model), shell.Quote(f.opts.Data), shell.Quote(out))
	}
	return failed
}
