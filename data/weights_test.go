package data

import (
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
