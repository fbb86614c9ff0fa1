package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/gsrc-dev/gsrc"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/gsrc-dev/gsrc/internal/nearest"
	"github.com/gsrc-dev/gsrc/internal/rss"
	"github.com/gsrc-dev/gsrc/serve"
	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// app is what the commands share.
type app struct {
	stdout, stderr *output
	hint           string           // printed below a usage error
	log            *serve.LogWriter // nil unless standard error is written in the background
}

// logInBackground has standard error written in the background, so that a reader that
// stops reading it does not stop the command.
func (a *app) logInBackground() *serve.LogWriter {
	a.stderr.mu.Lock()
	defer a.stderr.mu.Unlock()
	a.log = serve.NewLogWriter(a.stderr.to)
	a.stderr.to = a.log
	return a.log
}

// isTerminal reports whether a writer is a terminal that can be redrawn.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// logf writes a line for people; standard output is kept for results.
func (a *app) logf(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }

// logStages tells what each stage has held.
func (a *app) logStages(list []rss.Stage) {
	if len(list) == 0 {
		return
	}
	a.logf("%-24s %10s %14s %9s", "memory in MiB", "own", "pages of files", "seconds")
	for _, s := range list {
		a.logf("%-24s %10.1f %14.1f %9.1f", cmp.Or(s.Name, "the rest"), float64(s.Own)/(1<<20), float64(s.Mapped)/(1<<20), s.Time.Seconds())
	}
}

// unchecked tells what could not be checked of a file of an earlier version, if anything.
func (a *app) unchecked(line string) {
	if line != "" {
		a.logf("%s", line)
	}
}

// once returns what shows each text once, however many runs have it.
func (a *app) once(prefix string) func(text string) {
	said := map[string]bool{}
	return func(text string) {
		if !said[text] {
			a.logf("%s%s", prefix, text)
		}
		said[text] = true
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "gsrc",
		Short: "A compiler for graph neural networks that refine their own graph",
		Long: `gsrc trains graph neural networks that refine their own graph, and exports
what was trained as ONNX, proven equal.

  gsrc train ecl-gsr --data synthetic --out runs/first
  gsrc build runs/first --out dist/first
  gsrc verify dist/first

Exit codes: 0; 1 after an error; 2 where the command line is wrong; 3 where an
exported model does not compute what the compiled one does; 130 after an
interrupt.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs, RunE: helpOrUnknown,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		a.hint = fmt.Sprintf("Run %q for its flags.", c.CommandPath()+" --help")
		if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			flag := value.GetFlag()
			err = fmt.Errorf("--%s: %w", flag.Name, value.Unwrap())
			if _, list := errors.AsType[*csv.ParseError](err); list {
				err = fmt.Errorf("%w; write what has a comma or quotes in quotes, its own doubled", err)
				if strings.Contains(flag.Usage, "@FILE") {
					err = fmt.Errorf("%w, or --%s @FILE with one a line, as it is", err, flag.Name)
				}
			}
		}
		if c.HasSubCommands() && c.Flags().NArg() > 0 { // a command that does not exist, before a flag of the one that was meant
			a.hint, err = "", helpOrUnknown(c, c.Flags().Args())
		}
		return asUsage(err)
	})
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if now, ok := renamedFlags[name]; ok {
			name = now
		}
		return pflag.NormalizedName(name)
	})
	var memory int64
	parsedFlag(root.PersistentFlags(), &memory, "memory", "", func(text string) (int64, error) {
		if text == "" {
			return 0, nil
		}
		return budget.Parse(text)
	}, "memory limit, such as 4GiB; work that would exceed it is refused (default: what the system allows)")
	stages := root.PersistentFlags().Bool("memory-stages", false, "print the memory that each stage of the work held, to standard error")
	root.PersistentPreRun = func(*cobra.Command, []string) {
		if budget.Set(memory); *stages {
			rss.Watch(20 * time.Millisecond)
		}
	}
	root.AddCommand(a.trainCommand(), a.buildCommand(), a.verifyCommand(), a.refineCommand(), a.plotCommand(), a.predictCommand(), a.embedCommand(), a.serveCommand(), a.neighborsCommand(), a.importCommand(), a.inspectCommand(), a.demoCommand(), a.sweepCommand(), a.tuneCommand(), a.reproCommand(), a.benchCommand(), a.dataCommand(),
		a.modelsCommand(), a.passesCommand(), a.opsCommand(), a.doctorCommand(), a.versionCommand())
	a.equip(root)
	return root
}

// equip gives all commands below one what they have in common.
func (a *app) equip(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.wrapArgs(sub)
		complete(sub)
		a.equip(sub)
	}
}

// renamedFlags has the flags that had another name in an earlier version, by that name.
var renamedFlags = map[string]string{"peers": "baselines"}

// helpOrUnknown runs a command that only holds others: without an argument it
// shows them, and an argument is one that does not exist.
func helpOrUnknown(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return c.Help()
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage("unknown command %q%s", strings.TrimSpace(strings.TrimPrefix(c.CommandPath()+" ", "gsrc ")+args[0]), nearest.Hint(args[0], names))
}

// wrapArgs makes a wrong number of arguments a usage error that shows the
// command's own usage line.
func (a *app) wrapArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		err := check(c, args)
		var least, most, have int
		if err != nil {
			if n, _ := fmt.Sscanf(err.Error(), "accepts %d arg(s), received %d", &most, &have); n == 2 {
				least = most
			} else if n, _ = fmt.Sscanf(err.Error(), "accepts at most %d arg(s), received %d", &most, &have); n != 2 {
				most = len(args)
			}
			switch {
			case have < least:
				err = errors.New("an argument is missing")
			case have > most:
				err = fmt.Errorf("%q is one argument too many", args[most])
			}
			a.hint = "Usage: " + c.UseLine()
		}
		return asUsage(err)
	}
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "gsrc %s %s %s/%s\n", gsrc.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
