package main

import "testing"

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
