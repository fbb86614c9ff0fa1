package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/atomicfile"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/lab/bench"
	runs "github.com/gsrc-dev/gsrc/run"
	"github.com/spf13/cobra"
)

type benchFlags struct {
	opts      bench.Options
	device    string
	json      string
	list      bool
	child     bool
	baselines string
	markdown  bool
	noParts   bool
}

func (a *app) benchCommand() *cobra.Command {
	var f benchFlags
	c := &cobra.Command{
		Use:   "bench [--only PATTERNS] [--data DIR] [--json FILE]",
		Short: "Time compilation, training steps, kernels and inference",
		Long: `Time compilation, training steps and their parts, kernels and inference on this
machine, and compare them with the machine's limits: the rate of its best matrix
product and its memory bandwidth, both measured first.

DIR holds data sets (planetoid/cora and so on); those not found there are generated
in the same size. Patterns are separated by commas, * stands for any text, and
--list lists the cases. Those marked heavy run only where a pattern names them.
Times are medians of rounds. Training steps run in processes of their own, so that
the peak of memory is theirs.

With --device cuda training steps and searches for neighbours run on the GPU, and are
compared with the rates of a copy within its memory and of a matrix product. Parts are
then timed one by one by the GPU's clock. With --baselines PyTorch runs there, too.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := runs.CheckDevice(f.device); err != nil {
				return err
			}
			cases := bench.Cases()
			if f.device != "cpu" {
				cases = bench.DeviceCases()
			}
			if err := bench.CheckWithout(f.opts.Without); err != nil {
				return asUsage(err)
			}
			if f.baselines != "" {
				if err := bench.CheckBaselines(f.opts.Only, f.device != "cpu"); err != nil {
					return asUsage(err)
				}
			} else if chosen, err := bench.Select(cases, f.opts.Only); err != nil {
				return asUsage(err)
			} else if f.opts.Only != "" { // else heavy ones are listed, too
				cases = chosen
			}
			if f.opts.Data != "" {
				if _, err := os.Stat(f.opts.Data); err != nil {
					return err
				}
			}
			f.opts.Version = gsrc.Version()
			switch {
			case f.list && f.baselines == "":
				return a.listBenchmarks(cases)
			case f.child:
				return a.benchChild(c.Context(), &f)
			case f.json != "" && f.json != "-":
				if err := atomicfile.Check(f.json); err != nil {
					return err
				}
			}
			return a.bench(c.Context(), &f, c.Flags().Changed("rounds"))
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.opts.Only, "only", "", "patterns of the cases to time, such as step/ecl/cora or kernel/*,compile")
	flags.StringVar(&f.opts.Data, "data", bench.DefaultData(), "folder of data sets; default GSRC_DATA, else they are generated")
	flags.StringVar(&f.device, "device", "cpu", "cpu, or cuda, cuda:1 and so on: a GPU")
	numberFlag(flags, &f.opts.Threads, "threads", 0, 0, "threads, 0 for one per processor")
	numberFlag(flags, &f.opts.Rounds, "rounds", 7, 1, "rounds of each case, of which the median is shown")
	flags.StringVar(&f.json, "json", "", "write the report as JSON to this file; - is standard output")
	flags.StringSliceVar(&f.opts.Without, "without", nil, "leave these passes out of every program that is timed")
	flags.StringVar(&f.baselines, "baselines", "", "compare with PyTorch: a Python that has lab/bench/baselines/requirements.txt; make bench-baselines makes one")
	flags.BoolVar(&f.list, "list", false, "list the cases and time nothing")
	flags.BoolVar(&f.markdown, "markdown", false, "print the table as Markdown")
	flags.BoolVar(&f.noParts, "no-parts", false, "leave the parts of steps out of the table")
	flags.BoolVar(&f.child, "child", false, "")
	c.Flags().MarkHidden("child")
	return c
}

func (a *app) listBenchmarks(cases []bench.Case) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, c := range cases {
		doc := c.Doc
		if c.Heavy {
			doc += " (heavy)"
		}
		fmt.Fprintf(w, "%s\t%s\n", c.Name, doc)
	}
	return w.Flush()
}

// bench times what was asked for and prints the report.
func (a *app) bench(ctx context.Context, f *benchFlags, roundsGiven bool) (err error) {
	o := f.opts
	o.Progress = func(name string) { a.logf("%s", name) }
	if f.device != "cpu" {
		d, err := runs.OpenDevice(f.device, false)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		if d.GPU == nil {
			return usage("--device %s: name cpu, or cuda, cuda:1 and so on", f.device)
		}
		o.Device = d.GPU
	}
	switch {
	case f.baselines != "":
		steps := o
		steps.Rounds = 5 // of a process
		o.Child = a.childOf(steps)
		if !roundsGiven {
			o.Rounds = 0
		}
		r, err := bench.Baselines(ctx, f.baselines, o)
		if err != nil {
			return err
		}
		return a.writeBench(r, r.Write, f)
	case o.Device == nil:
		o.Child = a.childOf(o)
	}
	r, err := bench.Run(ctx, o)
	if err != nil {
		return err
	}
	return a.writeBench(r, func(w io.Writer, format bench.Format) error { return r.Write(w, format, !f.noParts) }, f)
}

// writeBench prints a report, also where it cannot be written as JSON to the file that is asked for.
func (a *app) writeBench(report any, show func(io.Writer, bench.Format) error, f *benchFlags) error {
	if f.json == "-" {
		return a.json(report, "  ")
	}
	var failed error
	if f.json != "" {
		if failed = atomicfile.WriteJSON(f.json, report); failed == nil {
			a.logf("wrote %s", f.json)
		}
	}
	format := bench.Text
	if f.markdown {
		format = bench.Markdown
	}
	return errors.Join(failed, show(a.stdout, format))
}

// benchChild times one case for a parent process, which reads the result.
func (a *app) benchChild(ctx context.Context, f *benchFlags) error {
	o := f.opts
	o.NoRoofline = true
	r, err := bench.Run(ctx, o)
	if err != nil {
		return err
	}
	return a.json(r.Results[0], "")
}

// childOf times single cases with these options, each by gsrc bench --child in a process
// of its own.
func (a *app) childOf(o bench.Options) func(context.Context, string) (bench.Result, error) {
	return func(ctx context.Context, name string) (r bench.Result, err error) {
		self, err := os.Executable()
		if err != nil {
			return r, err
		}
		cmd := exec.CommandContext(ctx, self, "bench", "--child", "--only", name, "--data", o.Data, "--threads", strconv.Itoa(o.Threads), "--rounds", strconv.Itoa(o.Rounds), "--without", strings.Join(o.Without, ","))
		if n, source := budget.Default(); source == "--memory" {
			cmd.Args = append(cmd.Args, "--memory", strconv.FormatInt(n, 10))
		}
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return r, ctx.Err()
			}
			return r, fmt.Errorf("%w: %s", err, strings.TrimPrefix(strings.TrimSpace(stderr.String()), "gsrc: "))
		}
		return r, json.Unmarshal(out.Bytes(), &r)
	}
}
