package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/auto"
	"github.com/gsrc-dev/gsrc/config"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/metrics"
	"github.com/gsrc-dev/gsrc/models"
	runs "github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/spf13/cobra"
)

type trainFlags struct {
	setup      setupFlags
	opts       gsrc.TrainOptions
	runs       int
	resume     string
	asJSON     bool
	helpConfig bool
	baselines  string
	profile    profileFlags
	trials     int
	minutes    float64
}

func (a *app) trainCommand() *cobra.Command {
	var f trainFlags
	c := &cobra.Command{
		Use:   "train MODEL --data PATH [--out DIR] | train --resume RUN",
		Short: "Train a model",
		Long: `Train a model: a name that "gsrc models" lists, a .gsr file, or auto, which
chooses a model by the graph, on its training and validation nodes alone.

PATH is ` + dataPath + `.
DIR gets the configuration, the weights, the metrics, the refined edges and a
checkpoint. Ctrl-C stops with a checkpoint, and
--resume goes on as if the run had never been stopped.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.opts.Model = args[0]
			}
			if err := f.check(c); err != nil {
				return err
			}
			switch {
			case f.helpConfig:
				return a.listOptions(&f)
			case f.opts.Model == autoModel || f.resume != "" && auto.Unfinished(f.resume):
				return a.auto(c, &f)
			case f.resume != "":
				return a.resume(c, &f)
			}
			return a.train(c, &f)
		},
	}
	flags := c.Flags()
	f.setup.register(flags, &f.opts)
	f.setup.tables.register(flags) // build has a --target of its own
	f.setup.tables.registerPrepare(flags)
	f.setup.tables.registerWeights(flags)
	flags.StringVar(&f.opts.Out, "out", "", "run directory; without it nothing is kept")
	flags.BoolVar(&f.opts.Force, "force", false, "replace a run in --out")
	numberFlag(flags, &f.opts.Threads, "threads", 0, 0, "threads, 0 for one per processor; results do not depend on it")
	flags.StringVar(&f.opts.Device, "device", "", "cpu, cuda, cuda:1 and so on, or auto: a GPU where there is one (train.device)")
	flags.StringVar((*string)(&f.opts.Executor), "executor", "arena", "what runs the program on the CPU: arena, or tape, which is gorgonia's own machine; results do not depend on it")
	flags.BoolVar(&f.opts.TF32, "tf32", false, "on a GPU, round matrix products to TF32 (train.tf32)")
	numberFlag(flags, &f.runs, "runs", 0, 1, "train R times, with seeds 0 to R-1 or on the data's fixed splits, and summarise")
	flags.StringVar(&f.resume, "resume", "", "go on with the run in this directory")
	flags.BoolVar(&f.asJSON, "json", false, "print one line of JSON for each run, and nothing else, to standard output")
	flags.StringVar(&f.baselines, "baselines", "auto", "train the same classifier without edges beside it and, where the graph is refined, on the graph as it was, to compare with: on, off, or auto: on for tables of your own without --runs or --profile")
	f.profile.register(flags)
	numberFlag(flags, &f.trials, "trials", 0, 0, "auto: maximum number of trainings to choose by, 0 for the whole list")
	numberFlag(flags, &f.minutes, "minutes", 0.0, 0.0, "auto: time limit in minutes, 0 for none; the clock decides only where the list of candidates is cut off")
	flags.BoolVar(&f.helpConfig, "help-config", false, "list all options of the model on the data, with value and origin")
	return c
}

// check returns what is wrong with the command line by itself.
func (f *trainFlags) check(c *cobra.Command) error {
	changed := c.Flags().Changed
	if f.profile.file == "" && changed("profile-steps") {
		return usage("--profile-steps needs --profile FILE")
	}
	switch f.opts.Baselines = runs.Baselines(f.baselines); f.opts.Baselines {
	case runs.NoBaselines, runs.AllBaselines:
	case runs.OwnTables:
		if changed("runs") || f.profile.file != "" {
			f.opts.Baselines = runs.NoBaselines
		}
	default:
		return usage("--baselines %s: give on, off or auto", f.baselines)
	}
	if f.profile.file != "" && f.opts.Executor == "tape" {
		return usage("--profile times the arena executor; leave --executor out")
	}
	if f.profile.file != "" && changed("runs") {
		return usage("--profile looks at one run; leave --runs out")
	}
	if f.resume != "" {
		if name := given(c, "out", "force", "config", "preset", "set", "seed", "split", "directed", "tf32", "runs", "id", "label", "source", "target", "weight", "ignore", "merge", "no-prepare", "ignore-weights", "weight-transform", "trials", "minutes"); name != "" {
			return usage("--%s cannot change a run that is resumed; leave it out", name)
		}
		if f.opts.Model != "" {
			return usage("--resume takes the model from the run; leave %q out", f.opts.Model)
		}
		return nil
	}
	if f.opts.Model == "" && !f.helpConfig {
		return usage("name a model; \"gsrc models\" lists them")
	}
	if err := required(c, "data"); err != nil && !f.helpConfig {
		return err
	}
	if f.runs > 0 && changed("seed") {
		return usage("--runs has the seeds 0 to R-1; leave --seed out")
	}
	if name := given(c, "trials", "minutes"); name != "" && f.opts.Model != autoModel {
		return usage("--%s belongs to gsrc train auto", name)
	}
	if f.opts.Model == "" {
		return nil
	}
	return f.setup.apply(&f.opts)
}

func (a *app) train(c *cobra.Command, f *trainFlags) error {
	show := a.newProgress()
	f.opts.Observer, f.opts.OnDeviceSelected, f.opts.Warn = show, a.once(""), a.once("warning: ")
	f.opts.Note = func(text string) { a.logf("%s", text) }
	defer show.finish()
	if f.runs > 0 {
		n := 0
		show.label = "run 0: "
		results, err := gsrc.TrainRuns(c.Context(), f.opts, f.runs, func(r *gsrc.Run) error {
			show.finish()
			n++
			show.label = fmt.Sprintf("run %d: ", n)
			return a.report(r, f)
		})
		if err != nil {
			return optionFault(err)
		}
		if len(results) > 0 && results[0].Val == nil {
			return nil // without labels
		}
		return a.summarize(train.Summarize(results), f)
	}
	return a.profiled(c, f, show, f.opts.Out, func(p *profile) (*gsrc.Run, error) {
		f.opts.Observer, f.opts.Trace = p.observer, p.trace
		run, err := gsrc.Train(c.Context(), f.opts)
		return run, optionFault(err)
	})
}

func (a *app) resume(c *cobra.Command, f *trainFlags) error {
	if info, err := train.ReadInfo(f.resume); err == nil {
		a.unchecked(info.Unchecked())
		if info.Baselines != "" && !c.Flags().Changed("baselines") {
			f.opts.Baselines = "" // those that the run began with
		}
	}
	return a.profiled(c, f, a.newProgress(), f.resume, func(p *profile) (*gsrc.Run, error) {
		return gsrc.Resume(c.Context(), f.resume, gsrc.ResumeOptions{Data: f.opts.Data, Threads: f.opts.Threads, Device: f.opts.Device, Executor: f.opts.Executor, Baselines: f.opts.Baselines, OnDeviceSelected: a.once(""), Observer: p.observer, Trace: p.trace})
	})
}

// profiled trains one run, which dir is the folder of, and reports it, with what --profile asks for.
func (a *app) profiled(c *cobra.Command, f *trainFlags, show *progress, dir string, train func(*profile) (*gsrc.Run, error)) error {
	profile, err := a.startProfile(&f.profile, show)
	if err != nil {
		return err
	}
	run, err := train(profile)
	show.finish()
	if run != nil { // also where a baseline failed
		if err := a.report(run, f); err != nil {
			return err
		}
	}
	if err != nil {
		return a.resumable(c, profile.failed(c.Context(), err), dir)
	}
	return profile.write()
}

// resumable adds to the error of an interrupted run how it goes on.
func (a *app) resumable(c *cobra.Command, err error, dir string) error {
	if dir == "" || !gsrc.IsInterrupted(c.Context(), err) {
		return err
	}
	// Stopped while it read its data, a run has left nothing.
	if _, statErr := os.Stat(filepath.Join(dir, "checkpoint.safetensors")); statErr != nil {
		return err
	}
	return fmt.Errorf("%w; go on with: gsrc train --resume %s", err, shell.Quote(dir))
}

// report prints the outcome of a run.
func (a *app) report(r *gsrc.Run, f *trainFlags) error {
	if f.asJSON {
		res := *r.Result
		for _, p := range []**metrics.Report{&res.Val, &res.Test} {
			if *p != nil && len((*p).Confusion) > widestConfusion {
				narrow := **p
				narrow.Confusion, *p = nil, &narrow
			}
		}
		return a.json(res.JSON(), "")
	}
	res, refused := r.Result, r.Exportable()
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, seed %d, split %s: ", res.Model, res.Data, res.Seed, res.Split)
	if res.TestAcc != nil {
		fmt.Fprintf(&b, "test %.2f %%, ", *res.TestAcc)
	}
	if res.Val == nil {
		fmt.Fprintf(&b, "an encoder and a refined graph without labels, %.1f s\n", res.WallS)
	} else {
		fmt.Fprintf(&b, "val %.2f %% at epoch %d, %.1f s\n", res.ValAcc, res.BestEpoch, res.WallS)
	}
	if e := res.Test; e != nil {
		b.WriteString("  test: " + quality(e) + "\n")
	}
	if k := res.Calibration; k != nil {
		items := "nodes"
		if r.OfGraphs() {
			items = "graphs"
		}
		fmt.Fprintf(&b, "  calibrated by temperature %.3g, fitted on %d validation %s: calibration error of %d others from %.3f to %.3f", k.Temperature, k.Fitted, items, k.Measured, k.Before, k.After)
		if refused == nil {
			b.WriteString(" (gsrc build exports these probabilities)")
		}
		b.WriteByte('\n')
	}
	if text := besides(res.Scale); text != "" {
		b.WriteString("  beside it: " + text + "\n")
	}
	if res.EdgesAfter != nil {
		fmt.Fprintf(&b, "  graph refined from %d edges to %d", res.EdgesBefore, *res.EdgesAfter)
		if res.HomophilyBefore != nil && res.HomophilyAfter != nil {
			fmt.Fprintf(&b, ", homophily from %.3f to %.3f", *res.HomophilyBefore, *res.HomophilyAfter)
		}
		if res.NullFraction != nil {
			fmt.Fprintf(&b, "; evidence speaks against %.0f %% of the original edges", 100**res.NullFraction)
		}
		b.WriteByte('\n')
		if res.Trained != nil && res.Trained.Config.Model.Edges.SameClass {
			b.WriteString("  gsrc refine lists how likely both ends of an edge are of one class; --set model.edges.same_class=false for how likely it is one\n")
		}
	}
	if q := res.Quality; q != nil {
		fmt.Fprintf(&b, "  dropped edges: precision %s, recall %s; recovered edges: precision %s, recall %s\n",
			share(q.DroppedPrecision), share(q.DroppedRecall), share(q.RecoveredPrecision), share(q.RecoveredRecall))
	}
	for _, w := range res.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", w)
	}
	switch {
	case r.Dir == "":
	case refused != nil:
		fmt.Fprintf(&b, "  the run is in %s and cannot be exported: %v\n", r.Dir, refused)
	default:
		fmt.Fprintf(&b, "  the run is in %s; export it with: gsrc build %s --out DIR\n", r.Dir, shell.Quote(r.Dir))
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// quality prints what a report has beside accuracy.
func quality(r *metrics.Report) string {
	auc := "unknown: all are of one class"
	if r.AUC != nil {
		auc = fmt.Sprintf("%.2f %%", *r.AUC)
		if n := len(r.AUCLeftOut); n > 0 {
			auc += fmt.Sprintf(" (without %s that none has)", plural(n, "class", "classes"))
		}
	}
	return fmt.Sprintf("macro-F1 %.2f %%, AUC %s, calibration error %.3f, Brier score %.3f", r.MacroF1, auc, r.ECE, r.Brier)
}

// besides prints what a result is held against; nothing without baselines, since a warning
// reports a model that is no better than one answer for all.
func besides(s *train.Scale) string {
	if s == nil || s.NoEdges == nil && s.RawGraph == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("one answer for all %.2f %%", s.Majority)}
	for _, x := range []struct {
		what string
		b    *train.Baseline
	}{{"without edges (mlp)", s.NoEdges}, {"on the graph as it was", s.RawGraph}} {
		if x.b == nil {
			continue
		}
		text := fmt.Sprintf("%s%s %.2f %%, macro-F1 %.2f %%", x.what, x.b.Where(), x.b.Accuracy, x.b.MacroF1)
		if x.b.AUC != nil {
			text += fmt.Sprintf(", AUC %.2f %%", *x.b.AUC)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// plural is a number of things.
func plural(n int, one, many string) string {
	if n == 1 {
		many = one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// share prints a share that may be unknown.
func share(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.3f", *v)
}

func (a *app) summarize(s train.Summary, f *trainFlags) error {
	if f.asJSON {
		return a.json(s, "")
	}
	test, val := "unknown", "unknown"
	if s.TestAccMean != nil && s.TestAccStd != nil {
		test = lab.PlusMinus("%.2f", *s.TestAccMean, *s.TestAccStd, s.Runs) + " %"
	}
	if s.ValAccMean != nil {
		val = fmt.Sprintf("%.2f %%", *s.ValAccMean)
	}
	_, err := fmt.Fprintf(a.stdout, "%s: test %s, val %s\n", plural(s.Runs, "run", "runs"), test, val)
	return err
}

// json prints a value, on one line if indent is empty.
func (a *app) json(v any, indent string) error {
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", indent)
	return e.Encode(v)
}

// listOptions prints every option with its value for the model on the data, and
// where that comes from. What defaults data have is known once they are read.
func (a *app) listOptions(f *trainFlags) error {
	model := f.opts.Model
	if models.IsFile(model) { // its defaults are those of what it extends or began as
		m, err := models.Open(model)
		if err != nil {
			return err
		}
		model = m.Name
	}
	c, err := config.Load(model, "", "", nil)
	if err != nil {
		return err
	}
	if model != "" && model != autoModel && f.opts.Data != "" {
		var wrong *gsrc.OptionError
		switch s, err := gsrc.Prepare(f.opts); {
		case err == nil:
			c = s.Config
		case errors.As(err, &wrong):
			return optionFault(err)
		default:
			a.logf("%v; the options are shown with the general defaults, and these data may have others", err)
		}
	}
	for _, k := range c.List() {
		doc := k.Doc
		if len(k.OneOf) > 0 && !strings.Contains(doc, ":") {
			doc += ": " + strings.Join(k.OneOf, ", ")
		}
		fmt.Fprintf(a.stdout, "%s = %s", k.Name, k.Default)
		if k.Source != "" {
			fmt.Fprintf(a.stdout, "  (%s)", k.Source)
		}
		fmt.Fprintf(a.stdout, "\n%s\n", wrapped("    ", 96, doc))
	}
	return nil
}

// wrapped is a text in lines of at most that many characters, where words allow it, each
// behind an indent.
func wrapped(indent string, width int, text string) string {
	var b strings.Builder
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(indent+line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(indent + line + "\n")
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return b.String() + indent + line
}
