package shell

import "testing"

func TestQuote(t *testing.T) {
	for arg, want := range map[string]string{
		"runs/a-1.npz": "runs/a-1.npz", "a b/r 1": "'a b/r 1'", "it's": `'it'\''s'`, "": "''", "$HOME": "'$HOME'", "Ünï/cöde": "Ünï/cöde", "a\nb": "'a\nb'",
	} {
		if got := Quote(arg); got != want {
			t.Errorf("%q: %s, want %s", arg, got, want)
		}
	}
}
