package main

import (
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/lab/repro"
	"github.com/gsrc-dev/gsrc/lab/sweep"
	"github.com/spf13/cobra"
)

func (a *app) reproCommand() *cobra.Command {
	var o repro.CheckOptions
	var check bool
	var shard shardFlags
	c := &cobra.Command{
		Use:   "repro TARGET… [--only DATA,…] [--seeds N] [--out DIR] [--report FILE.md] | repro --report FILE.md | repro TARGET… --check [--sample N]",
		Short: "Reproduce the paper's tables and figures",
		Long: `Repeat tables and figures of the ECL-GSR paper, and print the results beside the
paper's, with paired tests. TARGET is one or more of

` + reproTargets() + `
DIR gets TARGET.csv with a line for each run, the charts, and the runs themselves:
runs that it has are not repeated, so the same command resumes an evaluation that
was stopped. Equal seeds give equal files but for the column "seconds" and the
charts of times.

With --only, --rows or --seeds, lines of other runs in the files of --report, or of
--out, stay.

Data sets are found by name ("gsrc data list"); one that is not on this machine is
skipped, and its lines stay. Several machines share an evaluation with --shard i/n, or as an array of
a batch system that sets JOB_COMPLETION_INDEX or SLURM_ARRAY_TASK_ID; --merge DIR
takes over the runs in their folders. --report writes a page of all targets, and
their files into the folder beside it; this is how docs/results.md is made. Without
a TARGET it writes the page again from the existing files.

--check repeats runs in the files of results of --out or --report, and compares the
hash of weights and graph and everything measured: every processor must give the
same. --sample N repeats N of the lines, spread evenly, and
--seconds S only those that took at most this long. It always runs on the CPU: GPUs
compute other bits. Lines of earlier versions have no hash; --fill repeats those and
replaces their lines when all are done; stopped, it resumes with the runs that it keeps
in DIR/fill.

The budget "short" only shows that everything works: small generated graphs in
place of the data sets, one or two seeds, a few steps.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case !check && !o.Fill && (c.Flags().Changed("sample") || c.Flags().Changed("seconds")):
				return usage("--sample and --seconds choose lines for --check or --fill")
			case check && o.Fill:
				return usage("--check and --fill exclude each other: one compares lines that have a hash, the other repeats those without")
			}
			o.Targets = args
			if check || o.Fill {
				if name := given(c, "shard", "shards", "merge", "budget", "baselines"); name != "" {
					return usage("--check and --fill repeat lines of the files as they are; leave --%s out", name)
				}
				return a.checkRuns(c, o)
			}
			var err error
			if o.Shard, err = shard.resolve(a); err != nil {
				return err
			}
			return a.repro(c, o.Options)
		},
	}
	flags := c.Flags()
	flags.StringSliceVar(&o.Only, "only", nil, "keep to these data sets, for example cora,texas")
	flags.StringSliceVar(&o.Rows, "rows", nil, "keep to these rows, for example grcn,lds")
	numberFlag(flags, &o.Seeds, "seeds", 0, 1, "run the seeds 0 to N-1, in place of 10 for tables and 3 for most figures")
	flags.StringVar(&o.Out, "out", "results", "folder of the results")
	flags.StringSliceVar(&o.Merge, "merge", nil, "take over the runs in these folders of results; missing ones are run")
	flags.StringVar(&o.Report, "report", "", "write a page of all targets, and their files into the folder beside it")
	flags.StringVar(&o.Python, "baselines", "", "a Python with NumPy, SciPy and scikit-learn, for the rows that are its: plain link predictors in edges, a forest of statistics in table4")
	flags.StringVar(&o.Budget, "budget", repro.Full, "full, or short to see that everything works")
	flags.BoolVar(&check, "check", false, "repeat runs of files that are there, and compare")
	numberFlag(flags, &o.Sample, "sample", 0, 0, "with --check or --fill: repeat N of the lines")
	numberFlag(flags, &o.Seconds, "seconds", 0, 0, "with --check or --fill: only runs that took at most this long")
	flags.BoolVar(&o.Fill, "fill", false, "repeat the runs that have no hash, and replace their lines")
	workersFlag(flags, &o.Workers)
	shard.register(flags)
	return c
}

// reproTargets lists the targets for the help.
func reproTargets() string {
	var b strings.Builder
	for _, t := range repro.Targets() {
		fmt.Fprintf(&b, "  %-8s %s\n", t.Name, t.Title)
	}
	return b.String() + "  all      all of them\n"
}

// watch shows the runs of a target. What it returns is to be called when they have ended.
func (a *app) watch(o *repro.Options) (finish func()) {
	show, of := a.newSweepProgress(), ""
	o.Log = func(format string, args ...any) { show.logf(format, args...) }
	o.Observer = func(target string, p sweep.Progress) {
		if target != of {
			show.finish()
			show, of = a.newSweepProgress(), target
			a.logf("%s: %d runs", target, p.Total)
		}
		show.observe(p)
	}
	return func() { show.finish() }
}

// checkRuns repeats runs of results that are there.
func (a *app) checkRuns(c *cobra.Command, o repro.CheckOptions) error {
	finish := a.watch(&o.Options)
	r, err := repro.Check(c.Context(), o)
	finish()
	switch {
	case repro.IsOption(err):
		return asUsage(err)
	case err != nil:
		return err
	}
	not := len(r.Faults) - r.Differing
	for _, f := range r.Faults {
		fmt.Fprintln(a.stdout, f)
	}
	if o.Fill {
		fmt.Fprintf(a.stdout, "filled %d of %d lines without a hash\n", r.Filled, r.Unhashed)
	} else {
		fmt.Fprintf(a.stdout, "repeated %d of %d lines: %d the same, %d not; %d could not be repeated, %d have no hash\n", r.Repeated, r.Lines, r.Repeated-r.Differing, r.Differing, not, r.Unhashed)
	}
	switch {
	case len(r.Faults) > 0:
		return fmt.Errorf("%d runs came out otherwise than the files say, and %d could not be repeated", r.Differing, not)
	case r.Repeated+r.Filled == 0:
		return fmt.Errorf("there was nothing to repeat: %d of %d lines have a hash", r.Lines-r.Unhashed, r.Lines)
	}
	return nil
}

func (a *app) repro(c *cobra.Command, o repro.Options) error {
	finish := a.watch(&o)
	defer finish()
	err := repro.Run(c.Context(), o, func(out *repro.Outcome) error {
		finish()
		switch {
		case out.Missing > 0:
			a.logf("%s: %d runs are of other shards; when all are done: gsrc repro %s --merge DIR,…", out.Target.Name, out.Missing, out.Target.Name)
			return nil
		case out.Lines == nil: // --only names data sets of other targets
			return nil
		}
		_, err := fmt.Fprintf(a.stdout, "%s: %s\n\n%s\n%s\n\n", out.Target.Name, out.Target.Title, out.Text, strings.Join(out.Files, "\n"))
		return err
	})
	finish()
	switch {
	case repro.IsOption(err):
		return asUsage(err)
	case gsrc.IsInterrupted(c.Context(), err):
		return fmt.Errorf("%w; the same command goes on", err)
	case err == nil && o.Report != "":
		a.logf("the page is %s", o.Report)
	}
	return err
}
