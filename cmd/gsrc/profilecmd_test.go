package main

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"google.golang.org/protobuf/encoding/protowire"
)

// timeline FILE STEPS FUNC… checks a trace in Chrome's format: every event of an
// operation has a name, a time, shapes and a step, these functions have exactly so
// many steps, and an operation has one event a step.
func timeline(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: timeline FILE STEPS FUNC…")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	var file struct {
		TraceEvents []struct {
			Name, Ph string
			Ts, Dur  *float64
			Tid      int
			Args     struct {
				Name, Shapes, Op string
				Step             *int
			}
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &file))
	names := map[int]string{}
	steps := map[string]map[int]map[string]int{} // function, step, operation
	for _, e := range file.TraceEvents {
		if e.Ph == "M" {
			names[e.Tid] = e.Args.Name
			continue
		}
		if e.Ph != "X" || e.Name == "" || e.Ts == nil || e.Dur == nil || *e.Dur < 0 || e.Args.Step == nil || !strings.Contains(e.Args.Shapes, " → ") || !strings.Contains(e.Args.Op, e.Name) {
			ts.Fatalf("not an event of an operation: %+v", e)
		}
		fn := names[e.Tid]
		if steps[fn] == nil {
			steps[fn] = map[int]map[string]int{}
		}
		if steps[fn][*e.Args.Step] == nil {
			steps[fn][*e.Args.Step] = map[string]int{}
		}
		steps[fn][*e.Args.Step][e.Args.Op]++
	}
	for _, fn := range args[2:] {
		if got := len(steps["@"+fn]); got != want {
			ts.Fatalf("@%s has %d steps, want %d", fn, got, want)
		}
		for step, ops := range steps["@"+fn] {
			for op, n := range ops {
				if n != 1 {
					ts.Fatalf("@%s at step %d has %d events of %s", fn, step, n, op)
				}
			}
		}
	}
}

// cpuprofile FILE FUNC… checks a profile as go tool pprof reads it: it has samples
// of processor time, and these texts among its functions.
func cpuprofile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: cpuprofile FILE FUNC…")
	}
	r, err := gzip.NewReader(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	data, err := io.ReadAll(r)
	ts.Check(err)
	const sample, stringTable = 2, 6 // fields of perftools.profiles.Profile
	samples := 0
	var texts []string
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		ts.Check(protowire.ParseError(n))
		data = data[n:]
		n = protowire.ConsumeFieldValue(field, kind, data)
		ts.Check(protowire.ParseError(n))
		switch field {
		case sample:
			samples++
		case stringTable:
			text, _ := protowire.ConsumeString(data)
			texts = append(texts, text)
		}
		data = data[n:]
	}
	if samples == 0 {
		ts.Fatalf("%s has no samples", args[0])
	}
	for _, want := range append([]string{"cpu", "nanoseconds"}, args[1:]...) {
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.HasSuffix(s, want) }) {
			ts.Fatalf("%s does not mention %s", args[0], want)
		}
	}
}
