package main

import (
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// exits CODE gsrc ARGS… runs a command line that must end with exactly this
// exit code. What it printed is for stdout and stderr to check; an error must
// be told in plain words and not by a panic or a usage dump.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
	text := ts.ReadFile("stderr")
	for _, bad := range []string{"panic:", "goroutine ", "Available Commands"} {
		if strings.Contains(text, bad) {
			ts.Fatalf("stderr contains %q", bad)
		}
	}
	if want == 1 || want == 2 {
		if !strings.Contains(text, "gsrc: ") {
			ts.Fatalf("stderr has no line of the error")
		}
	}
}

// jsonlines N [KEY…] checks that the last command's standard output is N lines
// of JSON objects and nothing else, and that the first has these keys.
func jsonLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: jsonlines N [KEY…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile("stdout"), "\n"), "\n")
	if len(lines) != want {
		ts.Fatalf("%d lines, want %d", len(lines), want)
	}
	for i, line := range lines {
		var object map[string]any
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			ts.Fatalf("line %d is not a JSON object: %v", i+1, err)
		}
		if i > 0 {
			continue
		}
		for _, key := range args[1:] {
			if _, ok := object[key]; !ok {
				ts.Fatalf("no key %q; there are %q", key, slices.Sorted(maps.Keys(object)))
			}
		}
	}
}
