package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnknown(t *testing.T) {
	for command, want := range map[string]string{
		"":        "the first argument must be a command: predict, embed, refine or shards",
		"predcit": `no command "predcit"; did you mean "predict"?`,
		"x":       `no command "x"; there are predict, embed, refine, shards`,
	} {
		if got := unknown(command); got != want {
			t.Errorf("%q: %s", command, got)
		}
	}
}

// What flags leave over is refused, as a pattern without quotes leaves files.
func TestTooMany(t *testing.T) {
	if got := tooMany("b"); !strings.HasPrefix(got, `"b" is one argument too many; put patterns`) {
		t.Error(got)
	}
}

// A runner that the SDK does not know, or that runs nothing, is refused with the names of the others.
func TestCheckRunner(t *testing.T) {
	for name, want := range map[string]string{
		"flnk":  `--runner is "flnk", which is none; did you mean "flink"?`,
		"dot":   `--runner is "dot", which is none; there are prism, direct, universal, `,
		"prism": "",
	} {
		if err := checkRunner(name); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Jobs run, and are waited for.
func TestUnwaited(t *testing.T) {
	for _, name := range []string{"dry_run", "async"} {
		for value, want := range map[string]bool{"true": true, "false": false} {
			flags := flag.NewFlagSet("", flag.ContinueOnError)
			flags.Bool(name, false, "")
			if err := flags.Parse([]string{"--" + name + "=" + value}); err != nil {
				t.Fatal(err)
			}
			if err := refuseUnwaited(flags); (err != nil) != want || want && !strings.HasPrefix(err.Error(), "--"+name+" was given: ") {
				t.Errorf("--%s=%s: %v", name, value, err)
			}
		}
	}
}

// A run that was trained on directed edges takes no --directed=false; without the flag it does as it did in training.
func TestDirectedGivenAsFalse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[data]\ndirected = true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--directed"}, {"--directed=false"}} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.Bool("directed", false, "")
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		refused := len(args) > 0 && args[0] == "--directed=false"
		if err := refuseUndirected(flags, dir); (err != nil) != refused || refused && !strings.Contains(err.Error(), "--directed=false was given") {
			t.Errorf("%v: error %v", args, err)
		}
	}
}
