package main

import (
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
