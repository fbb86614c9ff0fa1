package main

import (
	"fmt"
	"os"

	"github.com/gsrc-dev/gsrc/lab"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/spf13/cobra"
)

func (a *app) compareCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "compare A.jsonl B.jsonl",
		Short: "Compare two sets of runs by a paired t-test",
		Long: `Compare the test accuracies of two sets of runs on the same data, seeds and splits,
as "gsrc train --runs R --json" prints them, by a paired two-sided t-test.`,
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var sets [2][]*train.Result
			for i, path := range args {
				f, err := os.Open(path)
				if err != nil {
					return err
				}
				sets[i], err = lab.ReadRuns(path, f)
				f.Close()
				if err != nil {
					return err
				}
			}
			r, err := lab.Compare(sets[0], sets[1])
			if err != nil {
				return err
			}
			if asJSON {
				return a.jsonLine(r)
			}
			_, err = fmt.Fprintf(a.stdout, "A  %.2f ± %.2f %%\nB  %.2f ± %.2f %%\nA − B = %+.2f, 95 %% interval [%+.2f, %+.2f], %d pairs, t = %.2f, p = %.3g\n",
				r.AMean, r.AStd, r.BMean, r.BStd, r.Diff, r.Lo, r.Hi, r.Runs, r.T, r.P)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
