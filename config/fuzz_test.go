package config

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzFile holds that no TOML text makes the reader panic, that faults name the
// file in one printable line, and that what is accepted is written and read to
// itself.
func FuzzFile(f *testing.F) {
	files, err := filepath.Glob("defaults/*.toml")
	ofData, _ := filepath.Glob("defaults/data/*.toml")
	if err != nil || len(files) == 0 {
		f.Fatalf("there are no defaults to begin with: %v", err)
	}
	for _, file := range append(files, ofData...) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, text := range []string{"", "x", "[train", "[[train]]", "train = 3", "[train]\nlr = nan", "[train]\nseed = 0x\x00", "[train]\nepochs = 1e3\nseed = 0x10", "[train]\nlr = 1\nlr = 2",
		"model.ecl.tau = 0.25", "[data]\nsplit = \"\"\"a\nb\x1b\"\"\"", "[train]\nlr = 1979-05-27", "[train]\nepochs = [\"\\u001b\", 2]", "[\"tr\\nain\"]\nx = 1", "[train]\n\"a\\u001bb\" = 1"} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "fuzz.toml")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load("ecl-gsr", "", path, nil)
		if err != nil {
			// Faults of values, which Validate finds, name the option only.
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
				t.Errorf("control character in %q", err)
			}
			return
		}
		var first, second bytes.Buffer
		if err := c.Encode(&first); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		d, err := Read(path)
		if err != nil {
			t.Fatalf("what was written is not read: %v\n%s", err, &first)
		}
		if err := d.Encode(&second); err != nil {
			t.Fatal(err)
		}
		if d.Hash() != c.Hash() || first.String() != second.String() {
			t.Errorf("read back to something else:\n%s\nwas\n%s", &second, &first)
		}
	})
}

// FuzzSet holds the same of single options.
func FuzzSet(f *testing.F) {
	for _, text := range []string{"train.lr=1e-3", "train.epochs=1_000", "train.lr", "=", "model=1", "data.split=\"a\\nb\"", "candidates.mutual=true", "train.sampler=\x1b", "\x1b=1", "zzzzzzzz.\n=1"} {
		f.Add(text)
	}
	base, err := Load("ecl-gsr", "", "", nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := base.Clone()
		err := c.Set(text)
		if err == nil {
			err = c.Validate()
		}
		if err != nil && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' }) && strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' }) {
			t.Errorf("control character in %q", err)
		}
	})
}
