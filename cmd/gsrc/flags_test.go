package main

import (
	"os"
	"path/filepath"
	"slices"
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
