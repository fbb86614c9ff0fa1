package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestNumberFlag(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	var seed int
	var pairs int64
	var seconds float64
	numberFlag(flags, &seed, "seed", 3, 0, "")
	numberFlag(flags, &pairs, "pairs", 8, 1, "")
	numberFlag(flags, &seconds, "seconds", 0, 0, "")
	if seed != 3 || pairs != 8 || seconds != 0 || flags.Lookup("seed").DefValue != "3" {
		t.Errorf("defaults %d, %d, %v", seed, pairs, seconds)
	}
	if err := flags.Parse([]string{"--seed", "9007199254740993", "--pairs=1", "--seconds", "0.5"}); err != nil || seed != 1<<53+1 || pairs != 1 || seconds != 0.5 {
		t.Errorf("%d, %d, %v: %v", seed, pairs, seconds, err)
	}
	for _, arg := range []string{"--seed=-1", "--seed=1.5", "--seed=", "--pairs=0", "--pairs=99999999999999999999", "--seconds=NaN", "--seconds=-1e-9", "--seconds=x"} {
		if flags.Parse([]string{arg}) == nil {
			t.Errorf("%s passes", arg)
		}
	}
}

func TestReadNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.txt")
	if err := os.WriteFile(path, []byte("\ufeffC5\r\n\n C7 \n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := readNames([]string{"C1", "@" + path}); err != nil || !slices.Equal(got, []string{"C1", "C5", "C7"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// The options are those of a training on the data, whatever their file is called.
func TestHelpConfigOfData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "My.txt")
	if err := os.WriteFile(path, []byte("2\n2 0\n1 1 1\n2 1 0\n1 1\n1 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args       []string
		code       int
		want, says string
	}{
		{[]string{"--data", path, "--set", "train.epochs=7"}, exitOK, "model.norm = \"none\"  (labels and degrees are one-hot)", ""},
		{[]string{"--data", path, "--set", "train.epochs=7"}, exitOK, "train.epochs = 7  (--set)", ""},
		{[]string{"--data", path + "x"}, exitOK, "model.norm = \"l2\"", "the general defaults"},
		{[]string{"--data", path, "--set", "train.epochs=x"}, exitUsage, "", "must be an integer"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), append([]string{"train", "gin", "--help-config"}, c.args...), &stdout, &stderr); code != c.code || !strings.Contains(stdout.String(), c.want) || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, code, &stderr)
		}
	}
}
