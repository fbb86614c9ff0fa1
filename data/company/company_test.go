package company

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestWrite(t *testing.T) {
	read := func(dir, name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	one, two, other := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, seed := range map[string]uint64{one: 1, two: 1, other: 2} {
		if err := Write(dir, Options{Nodes: 500, Edges: 2000, Seed: seed}); err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range map[string]int{"nodes.csv": 501, "edges.csv": 2001} {
		text := read(one, name)
		if n := bytes.Count(text, []byte("\n")); n != lines {
			t.Errorf("%s has %d lines, want %d", name, n, lines)
		}
		if !bytes.Equal(text, read(two, name)) || bytes.Equal(text, read(other, name)) {
			t.Errorf("%s does not follow from the seed", name)
		}
	}
	if n := bytes.Count(read(one, "wrong.csv"), []byte("\n")) - 1; n < 30 || n > 100 {
		t.Errorf("%d of 2000 edges are wrong, want about 60", n)
	}
	known := bytes.Count(read(one, "nodes.csv"), []byte(",no\n")) + bytes.Count(read(one, "nodes.csv"), []byte(",yes\n"))
	if left := bytes.Count(read(one, "truth.csv"), []byte("\n")) - 1; known+left != 500 || known < 100 || known > 200 {
		t.Errorf("%d labels are known and %d are not, want about 150 of 500", known, left)
	}
	for _, o := range []Options{{Known: -1}, {Known: 1.5}, {Nodes: 10}, {Edges: -1}, {Wrong: 2}} {
		if Write(t.TempDir(), o) == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
