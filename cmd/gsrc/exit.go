package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/gsrc-dev/gsrc"
)

// Exit codes.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitParity      = 3
	exitInterrupted = 130
)

// usageError is a fault of the command line itself: what no file and no
// machine could change.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usage makes a usage error.
func usage(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// asUsage marks an error, nil included, as the command line's fault.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{err}
}

// exit reports an error on one line and returns the exit code.
func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return exitOK
	}
	code := exitError
	var wrong *usageError
	switch {
	case errors.As(err, &wrong):
		code = exitUsage
	case errors.As(err, new(*gsrc.ParityError)):
		code = exitParity
	case gsrc.IsInterrupted(ctx, err):
		code = exitInterrupted
	}
	// Messages of libraries may end in a line break, or begin with one.
	text := strings.TrimSpace(err.Error())
	if code == exitInterrupted { // which a context says in other words, also within a message
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	fmt.Fprintf(a.stderr, "gsrc: %s\n", text)
	if code == exitUsage && a.hint != "" {
		fmt.Fprintln(a.stderr, a.hint)
	}
	return code
}
