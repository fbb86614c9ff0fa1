package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/data"
)

func TestReadsPrograms(t *testing.T) {
	o := &outcome{engine: engine{title: "X"}, results: map[string]result{}}
	err := o.read(strings.NewReader(`runtime x 1.2
gcn-flat classifier ok max_abs=1.5e-07 graphs=13 refused=5 by_file=4
gcn-flat encoder lacks TopK: of a | dynamic k
a word
gat-flat classifier FAIL hub: logits is off
gcn-flat scorer ok
`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]result{
		"gcn-flat classifier": {status: "ok", max: 1.5e-7, hasMax: true, graphs: 13, refused: 5, byFile: 4},
		"gcn-flat encoder":    {status: "lacks", text: "TopK: of a | dynamic k"},
		"gat-flat classifier": {status: "FAIL", text: "hub: logits is off"},
		"gcn-flat scorer":     {status: "ok"},
	}
	if len(o.results) != len(want) || o.version != "x 1.2" || o.failures() != 1 {
		t.Errorf("read %+v, version %q, %d failures", o.results, o.version, o.failures())
	}
	for key, r := range want {
		if o.results[key] != r {
			t.Errorf("%s is %+v, want %+v", key, o.results[key], r)
		}
	}
	if err := (&outcome{results: map[string]result{}}).read(strings.NewReader("a b ok max_abs=much\n")); err == nil {
		t.Error("an error that is no number was taken")
	}

	written, err := page([]row{{"gcn-flat", "classifier"}, {"gcn-flat", "encoder"}, {"gat-flat", "classifier"}, {"gcn-flat", "other"}},
		[]*outcome{o, {engine: engine{title: "Y"}, skipped: "there is no y"}})
	if err != nil {
		t.Fatal(err)
	}
	text := string(written)
	for _, want := range []string{
		"1 failures among 13 graphs", "| refused by the file |\n|---|---|---|---|---|---|\n| X |", "| gcn-flat, classifier | 1.5e-07 |", "| gcn-flat, encoder | [1] |", `1. TopK: of a \| dynamic k`,
		"**FAIL** hub: logits is off", "| gcn-flat, other | not run |", "| X | x 1.2 | 13 | 5 | 5 | 4 |", "Left out: Y (there is no y).",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

func TestCollectionLoads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shapes.txt")
	if err := os.WriteFile(path, []byte(collection(24)), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := data.LoadCollection(path, data.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Offset) - 1; n != 24 {
		t.Errorf("%d graphs", n)
	}
}

func TestShortFormHasEngine(t *testing.T) {
	if err := run(t.Context(), t.TempDir(), "", "node", true, false, false, 1); err == nil || !strings.Contains(err.Error(), "of node none is in the short form") {
		t.Errorf("engines that the short form lacks: %v", err)
	}
}
