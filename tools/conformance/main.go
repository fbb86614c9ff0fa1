// Command conformance runs the models that gsrc exports in other runtimes, on the
// edge cases that every build is checked on, and writes docs/conformance.md.
//
// It trains some small models on generated data, exports each in several ways with
// its test cases, and starts the programs of the folder conformance, which a user may
// copy: each loads the exports, runs every graph and compares. What a runtime needs is
// installed by its own package manager, in versions that the program's folder pins. A
// runtime whose toolchain is not on this machine is left out and said to be.
//
//	go run ./tools/conformance -out results/conformance -report docs/conformance.md
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func main() {
	out := flag.String("out", "results/conformance", "folder of the runs and exports")
	report := flag.String("report", "", "Markdown file to write")
	only := flag.String("only", "", "runtimes to run, by name and comma; all if empty")
	short := flag.Bool("short", false, "build all exports, and run those of one model in the runtimes that take no time to install")
	reuse := flag.Bool("reuse", false, "run the exports that are in the folder already")
	jobs := flag.Int("jobs", 2, "programs to run at a time")
	installed := flag.Bool("installed", false, "install nothing: what the programs need is there from an earlier run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, *report, *only, *short, *reuse, *installed, *jobs); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func run(ctx context.Context, out, report, only string, short, reuse, installed bool, jobs int) error {
	chosen := runtimes
	if short {
		chosen = slices.DeleteFunc(slices.Clone(runtimes), func(r engine) bool { return !r.quick })
		logf("left to make conformance, as they take long to install or compile: %s", names(func(r engine) bool { return !r.quick }))
	}
	if only != "" {
		wanted := strings.Split(only, ",")
		for _, name := range wanted {
			if !slices.ContainsFunc(runtimes, func(r engine) bool { return r.name == name }) {
				return fmt.Errorf("no runtime %q; there are %s", name, names(func(engine) bool { return true }))
			}
		}
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(r engine) bool { return !slices.Contains(wanted, r.name) })
	}
	if len(chosen) == 0 {
		return fmt.Errorf("of %s none is in the short form, which has %s; leave -short out", only, names(func(r engine) bool { return r.quick }))
	}
	if short { // part of checks that do without onnxruntime where it cannot be had
		if _, err := ort.Ensure(ctx, logf); err != nil {
			logf("nothing is run in other runtimes: %v", err)
			return nil
		}
	}
	var folders []string
	var err error
	if reuse {
		folders, err = filepath.Glob(filepath.Join(out, "dist", "*"))
	} else {
		folders, err = makeExports(ctx, out)
	}
	if err != nil {
		return err
	}
	if short {
		folders = slices.DeleteFunc(folders, func(dir string) bool { return !slices.Contains(quick, filepath.Base(dir)) })
	}
	if len(folders) == 0 {
		return fmt.Errorf("%s holds no exports", filepath.Join(out, "dist"))
	}
	results := make([]*outcome, len(chosen))
	places := make(chan struct{}, max(1, jobs))
	var running sync.WaitGroup
	for i, r := range chosen {
		if installed {
			r.setup = nil
		}
		results[i] = r.prepare(ctx) // one after another: they share folders
		if results[i].skipped != "" {
			continue
		}
		running.Go(func() {
			places <- struct{}{}
			results[i].execute(ctx, folders)
			<-places
		})
	}
	running.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	failed := 0
	for _, o := range results {
		o.print(os.Stdout)
		failed += o.failures()
	}
	if report != "" {
		if err := writeReport(report, folders, results); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d models failed", failed)
	}
	return nil
}
