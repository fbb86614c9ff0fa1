// Command gsrc trains graph neural networks that refine their own graph, shows
// what its compiler makes of them, and exports what was trained as ONNX.
//
// Run gsrc help for the commands. The exit code is 0, or 1 after an error, 2
// where the command line itself is wrong, 3 where an exported model does not
// compute what the compiled one does, and 130 after an interrupt.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gsrc-dev/gsrc/data/store"
	"github.com/gsrc-dev/gsrc/internal/rss"
)

func main() { os.Exit(mainCode()) }

// mainCode runs the command line of the process and returns its exit code.
func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks for a clean stop; with the handler gone the second
	// one ends the process as usual.
	context.AfterFunc(ctx, stop)
	return run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out, notes := &output{to: stdout}, &output{to: stderr}
	app := &app{stdout: out, stderr: notes}
	root := app.root()
	root.SetArgs(args)
	err := store.Guard(func() error { return root.ExecuteContext(ctx) })
	app.logStages(rss.Stages())
	out.flush()
	if out.err != nil && (err == nil || errors.Is(err, out.err)) {
		err = fmt.Errorf("standard output was not written whole: %w", out.err)
	}
	code := app.exit(ctx, err)
	notes.flush()
	if app.log != nil {
		app.log.Flush(time.Second)
	}
	return code
}
