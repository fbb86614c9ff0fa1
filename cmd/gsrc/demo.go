package main

import (
	"fmt"
	"path/filepath"

	"github.com/gsrc-dev/gsrc/internal/shell"
	"github.com/gsrc-dev/gsrc/lab/demo"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/spf13/cobra"
)

func (a *app) demoCommand() *cobra.Command {
	o := demo.Options{Log: func(string, ...any) {}}
	var verbose bool
	c := &cobra.Command{
		Use: "demo --out DIR", Short: "Refine generated graphs whose wrong and hidden edges are known", Args: cobra.NoArgs,
		Long: `For each seed, generate a graph with wrong edges added and right ones hidden; train
ecl-gsr on it, and the same classifier on the graph as it is; count the wrong edges
that were dropped and the hidden ones that were recovered; export the model as
ONNX, and verify the export.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "out"); err != nil {
				return err
			}
			show := a.newProgress()
			show.label = "seed 0 "
			o.Observer = show
			if verbose {
				o.Log = a.logf
			}
			head := "%4s  %7s  %7s  %6s   %-13s  %-13s  %s\n"
			row := "%4s  %7s  %7s  %6s   %5s %6s   %5s %6s   %s\n"
			fmt.Fprintf(a.stdout, head, "", "raw", "refined", "", "dropped", "recovered", "export")
			fmt.Fprintf(a.stdout, row, "seed", "test %", "test %", "gain", "prec.", "recall", "prec.", "recall", "outputs verified, largest difference")
			quality := func(q train.Quality) []any {
				return []any{share(q.DroppedPrecision), share(q.DroppedRecall), share(q.RecoveredPrecision), share(q.RecoveredRecall)}
			}
			var raw, refined float64
			o.Done = func(s demo.Seed) {
				show.finish()
				show.label = fmt.Sprintf("seed %d ", s.Seed+1)
				raw, refined = raw+s.Raw, refined+s.Refined
				cells := []any{fmt.Sprint(s.Seed), fmt.Sprintf("%.2f", s.Raw), fmt.Sprintf("%.2f", s.Refined), fmt.Sprintf("%+.2f", s.Gain)}
				cells = append(append(cells, quality(s.Quality)...), fmt.Sprintf("%d, %.1e", s.Outputs, s.Worst))
				fmt.Fprintf(a.stdout, row, cells...)
			}
			r, err := demo.Run(c.Context(), o)
			show.finish()
			if err != nil {
				return optionFault(err)
			}
			n := float64(len(r.Seeds))
			cells := []any{"mean", fmt.Sprintf("%.2f", raw/n), fmt.Sprintf("%.2f", refined/n), fmt.Sprintf("%+.2f", r.MeanGain)}
			fmt.Fprintf(a.stdout, row, append(append(cells, quality(r.Mean)...), "")...)
			verdict, gain := "better", r.MeanGain
			if gain < 0 {
				verdict, gain = "worse", -gain
			}
			fmt.Fprintf(a.stdout, `
The same classifier with the same sampling is %.2f points %s on the refined graph
(mean of %d generated graphs, %.0f s).

runs      %s (configuration, weights, metrics, refined_edges.csv)
exports   %s (encoder.onnx, scorer.onnx, classifier.onnx, parity.json)
figures   %s

Next: gsrc predict %s --data synthetic --out pred.csv
`, gain, verdict, len(r.Seeds), r.WallS, r.Runs, r.Exports, filepath.Join(o.Out, "demo.json"), shell.Quote(filepath.Join(r.Exports, "seed-0")))
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.Out, "out", "", "folder of runs and exports")
	flags.BoolVar(&o.Force, "force", false, "replace what is in --out")
	numberFlag(flags, &o.Seeds, "seeds", 5, 1, "graphs to generate")
	flags.StringArrayVar(&o.Set, "set", nil, "set one option, key=value; may be repeated")
	numberFlag(flags, &o.Threads, "threads", 0, 0, "threads, 0 for one per processor; results do not depend on it")
	flags.BoolVar(&verbose, "verbose", false, "a line for each step")
	return c
}
