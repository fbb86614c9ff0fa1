package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/data"
	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/export/manifest"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/abbrev"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/train"
	"github.com/spf13/cobra"
)

func (a *app) verifyCommand() *cobra.Command {
	var provider providerFlags
	var o gsrc.VerifyOptions
	var seal bool
	c := &cobra.Command{
		Use: "verify DIR", Short: "Check an export on this machine's onnxruntime, or the files of a run or of a graph store", Args: cobra.ExactArgs(1),
		Long: `Check an export on this machine: every file against its checksum, and every model
on the export's own test data. The exit code is 3 where onnxruntime computes
something else. --full also runs with 1, 2 and 4 threads and at each level of
onnxruntime's graph optimisation, 20 times each: every run must give the bits of
the first.

Of the folder of a finished run, or of a graph store, the files are checked against
their checksums. --seal
adds checksums to an export or a run of an earlier version, once all else holds.`,
		RunE: func(c *cobra.Command, args []string) error {
			if store.Is(args[0]) {
				return a.verifyStore(c, args[0])
			}
			if isRun(args[0]) {
				if err := refuseForRun(c, args[0]); err != nil {
					return err
				}
				return a.verifyRun(args[0], seal)
			}
			if err := provider.apply(&o.Provider, &o.Device, &o.MemoryLimit); err != nil {
				return err
			}
			o.Seal = seal
			return a.verify(c, args[0], o)
		},
	}
	provider.register(c.Flags())
	c.Flags().BoolVar(&seal, "seal", false, "add checksums where an earlier version has written none")
	c.Flags().BoolVar(&o.Full, "full", false, "repeat with 1, 2 and 4 threads at each level of graph optimisation, on the CPU")
	return c
}

// isRun reports whether a folder is that of a run, or of several, not of an export. One
// whose run.json is missing is a run still, so that this is what is said.
func isRun(dir string) bool {
	_, noManifest := os.Stat(filepath.Join(dir, manifest.FileName))
	_, noRun := os.Stat(filepath.Join(dir, "run.json"))
	_, noCheckpoint := os.Stat(filepath.Join(dir, "checkpoint.safetensors"))
	several, _ := filepath.Glob(filepath.Join(dir, "run-*", "run.json"))
	return noManifest != nil && (noRun == nil || noCheckpoint == nil || len(several) > 0)
}

// refuseForRun refuses the flags that say how onnxruntime runs an export.
func refuseForRun(c *cobra.Command, dir string) error {
	if name := given(c, "provider", "device-id", "memory-limit", "full"); name != "" {
		return usage("--%s is for exports, and %s is a run", name, dir)
	}
	return nil
}

// verifyRun checks the files of a run.
func (a *app) verifyRun(dir string, seal bool) error {
	if seal {
		added, err := train.Seal(dir)
		if err != nil {
			return err
		}
		if added {
			a.logf("%s has checksums now", dir)
		}
	}
	info, err := train.Verify(dir)
	if err != nil {
		return err
	}
	if line := info.Unchecked(); line != "" {
		a.logf("%s", line)
		return nil
	}
	fmt.Fprintf(a.stdout, "%s: run.json, %d other files and, but for its times, metrics.jsonl are what was written; config.toml says the same of all that changes results\n", dir, len(info.Files))
	return nil
}

// verify checks an export and prints a line for each output.
func (a *app) verify(c *cobra.Command, dir string, o gsrc.VerifyOptions) error {
	o.Log = a.logf
	_, report, err := gsrc.Verify(c.Context(), dir, o)
	if report != nil {
		for _, x := range report.Cases {
			for _, o := range x.Outputs {
				verdict := "ok"
				if !o.OK {
					verdict = "OUT OF BOUNDS"
				}
				fmt.Fprintf(a.stdout, "%-10s %-20s %-22s max |a-b| %.2e, bound %.2e  %s\n", x.Model, o.Name, x.Runtime, o.MaxAbs, o.Bound, verdict)
			}
		}
	}
	return err
}

func (a *app) predictCommand() *cobra.Command {
	var out, path string
	var provider providerFlags
	var nodes []string
	var o gsrc.PredictOptions
	var tables tableFlags
	c := &cobra.Command{
		Use: "predict EXPORT --data PATH --out FILE | predict RUN --out FILE", Short: "Classify nodes, or whole graphs, with an export or a run", Args: cobra.ExactArgs(1),
		Long: `Classify the nodes of a graph with an export, and write the id, the predicted label
and the probability of each class: as CSV, NPZ, Parquet or JSON, by the extension of
the file, which is written whole or not at all. --nodes picks nodes by their ids; @FILE
stands for the ids in a file, one a line. On the graph that the model was
trained on its refined edges are used; on another one new edges are found and
scored. A model of whole graphs classifies those of a collection, and the id is the
number of a graph, from 0. RUN is a folder written by gsrc train: gsrc's own executor
classifies over chunks of nodes, within --memory, without --data its training graph;
that alone, and as a whole, where a model takes no other graph so, as one of columns
that are prepared.
Where the data have labels, the quality of the predictions
is printed to standard error.`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := provider.apply(&o.Provider, &o.Device, &o.MemoryLimit); err != nil {
				return err
			}
			if err := tables.applyOther(c, args[0], &o.Load); err != nil {
				return err
			}
			need := []string{"data", "out"}
			if isRun(args[0]) {
				need = need[1:]
			}
			if err := required(c, need...); err != nil {
				return err
			}
			if _, err := infer.GraphFormat(out); err != nil {
				return asUsage(err)
			}
			var err error
			if o.Nodes, err = readNames(nodes); err != nil {
				return err
			}
			bar := a.newTransfer()
			defer bar.finish()
			o.Log, o.Progress = a.logf, bar.count
			r, err := gsrc.Predict(c.Context(), args[0], path, out, o)
			if err != nil {
				return err
			}
			bar.finish()
			a.judge(r)
			n := len(r.Predicted)
			if r.Selected != nil {
				n = len(r.Selected)
			}
			a.logf("wrote %s, %d %s", out, n, classified(r))
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVar(&path, "data", "", "data set: a folder, a file, the name of a fetched one, or "+data.Synthetic)
	flags.StringVar(&out, "out", "", "file to write: .csv, .npz, .parquet or .json, or /dev/stdout, which gets CSV")
	flags.StringSliceVar(&nodes, "nodes", nil, "only these nodes: ids, or @FILE with one a line")
	provider.register(flags)
	numberFlag(flags, &o.Threads, "threads", 0, 0, "threads, 0 for one per processor")
	tables.registerOther(flags, &o.Load, "seed of the synthetic graph")
	return c
}

// readNames puts the lines of a file in the place of @FILE. Nothing asked for stays
// nil.
func readNames(list []string) ([]string, error) {
	var names []string
	for _, name := range list {
		file, ok := strings.CutPrefix(name, "@")
		if !ok {
			names = append(names, name)
			continue
		}
		text, err := budget.ReadFile(file)
		if err != nil {
			return nil, err
		}
		before := len(names)
		for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) { // without a byte order mark
			if line = strings.TrimSpace(line); line != "" {
				names = append(names, line)
			}
		}
		if len(names) == before {
			return nil, fmt.Errorf("%s names no nodes", file)
		}
	}
	return names, nil
}

// classified says what a prediction is of.
func classified(p *gsrc.Prediction) string {
	if p.Graphs {
		return "graphs"
	}
	return "nodes"
}

// judge tells how predictions compare with the labels of the data, if there are
// any.
func (a *app) judge(p *gsrc.Prediction) {
	if p.Unknown > 0 {
		a.logf("%d %s have a label that is no class of the model, such as %q: they are not judged", p.Unknown, classified(p), p.UnknownLabel)
		if p.Report == nil && p.Known == 0 && p.Selected == nil { // others may have a class of the model
			a.logf("no label is a class of the model, whose %d classes begin with %q", len(p.Classes), p.Classes[:min(len(p.Classes), 5)])
		}
	}
	r := p.Report
	if r == nil {
		return
	}
	about := ""
	if p.TrainingGraph && p.Known == 0 {
		about = ", those of the training included"
	}
	a.logf("%d labelled %s%s: accuracy %.2f %%, %s", r.Nodes, classified(p), about, r.Accuracy, quality(r))
	if len(r.Confusion) == 0 || len(r.Confusion) > widestConfusion {
		return
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "label, then predicted")
	names := abbrev.Names(lists.Map(p.Classes, printable), 12)
	for _, name := range names {
		fmt.Fprintf(w, "\t%s", name)
	}
	fmt.Fprintln(w, "\t")
	for c, row := range r.Confusion {
		fmt.Fprint(w, names[c])
		for _, n := range row {
			fmt.Fprintf(w, "\t%d", n)
		}
		fmt.Fprintln(w, "\t")
	}
	w.Flush() // to memory: it cannot fail
	a.logf("%s", strings.TrimRight(b.String(), "\n"))
}

// widestConfusion is the number of classes up to which the confusion matrix fits a
// terminal.
const widestConfusion = 24

// printable returns a name with question marks in place of what a terminal would not show.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, name)
}
