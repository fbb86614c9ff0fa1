package data

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Weights that are not read may be anything, and errors show names as people write them.
func TestWeightsThatAreIgnored(t *testing.T) {
	dir := writeFiles(t, map[string]string{nodesFile: "id,größe,alter\né1,1.5,2\nß2,2,7\n", edgesFile: "source,target,weight\né1,ß2,-3\n"})
	if ds := mustLoad(t, dir, LoadOptions{Weights: IgnoreWeights}); ds.Graph.Weights != nil || len(ds.Graph.Edges) != 1 {
		t.Errorf("the graph is %+v", ds.Graph)
	}
	if _, err := Load(dir, LoadOptions{Tables: Tables{Label: "große"}, Weights: IgnoreWeights}); err == nil || !strings.Contains(err.Error(), "größe") {
		t.Errorf("a label that there is not: %v", err)
	}
	if got := quote("Umsatz €\u202e\x1b"); got != `"Umsatz €\u202e\x1b"` {
		t.Errorf("a hostile name is shown as %s", got)
	}
	if got := quote(strings.Repeat("é", 40)); got != `"`+strings.Repeat("é", 30)+`"…` {
		t.Errorf("a long name is shown as %s", got)
	}
}

// Data with weights that are read for a model whose training had none are noted, which it does not count.
func TestWeightsForUnweightedModel(t *testing.T) {
	const note = "the model reads no weights of edges"
	dir := writeFiles(t, map[string]string{nodesFile: "id,label,x\na,u,1\nb,v,2\n", edgesFile: "source,target,weight\na,b,7\n"})
	model := LoadOptions{Weights: IgnoreWeights, Trained: "0", Roles: Roles{ID: "id", Source: "source", Target: "target"}}
	store := filepath.Join(t.TempDir(), "store")
	if err := Convert(dir, store, ConvertOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, store} {
		wantNotes(t, mustLoad(t, path, model), note)
	}
	of := model
	of.Roles.Weight = "weight" // and --ignore-weights
	for _, o := range []LoadOptions{{}, {Weights: IgnoreWeights}, of} {
		if ds := mustLoad(t, dir, o); strings.Contains(fmt.Sprint(ds.Notes), note) {
			t.Errorf("%+v: notes %q", o, ds.Notes)
		}
	}
}
