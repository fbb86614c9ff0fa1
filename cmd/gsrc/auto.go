package main

import (
	"fmt"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/auto"
	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/spf13/cobra"
)

// autoModel stands in the place of a model's name where the graph decides.
const autoModel = "auto"

// auto chooses a model and trains it, or goes on with that.
func (a *app) auto(c *cobra.Command, f *trainFlags) error {
	if name := given(c, "runs", "profile", "baselines", "help-config"); name != "" {
		return usage("gsrc train auto takes no --%s", name)
	}
	show := a.newProgress()
	defer show.finish()
	o := gsrc.AutoOptions{TrainOptions: f.opts, Trials: f.trials, Minutes: f.minutes}
	o.Observer, o.OnDeviceSelected, o.Warn = show, a.once(""), a.once("warning: ")
	o.Note = func(text string) { a.logf("%s", text) }
	o.Stage = func(text string) { show.finish(); a.logf("%s", text) }
	o.Progress = func(done int, c *auto.Candidate) {
		text := "failed"
		if c.Failed == "" {
			text = fmt.Sprintf("%.2f %%", c.Latest())
		}
		a.logf("  %3d  %s: %s", done, c.Name, text)
	}
	var run *gsrc.AutoRun
	var err error
	out := f.opts.Out
	if f.resume != "" {
		out = f.resume
		run, err = gsrc.ResumeAuto(c.Context(), f.resume, o)
	} else {
		run, err = gsrc.Auto(c.Context(), o)
	}
	show.finish()
	if err != nil {
		if out != "" && gsrc.IsInterrupted(c.Context(), err) && auto.Unfinished(out) {
			return fmt.Errorf("%w; go on with: gsrc train --resume %s", err, shell.Quote(out))
		}
		return optionFault(err)
	}
	if f.asJSON {
		return a.json(struct {
			*gsrc.Result
			Auto *auto.Report `json:"auto"`
		}{run.Result, run.Report}, "")
	}
	r := run.Report
	fmt.Fprint(a.stdout, r.Leaderboard())
	fmt.Fprintf(a.stdout, "chosen by %s: %s\n", plural(r.Trials, "training", "trainings"), r.Choice.Text)
	if r.Refinement != nil {
		fmt.Fprintln(a.stdout, r.Refinement.Text)
	}
	if !r.Complete {
		fmt.Fprintf(a.stdout, "the list was cut off; --trials %d chooses the same again\n", r.Trials)
	}
	return a.report(run.Run, f)
}
