package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A table of weighted edges may leave none: those of nodes to themselves are dropped, and
// options may take out others.
func TestWeightsOfNoEdges(t *testing.T) {
	dir := labelledFrom1(t, 90)
	set := strings.Fields("train.epochs=2 data.split=random:0.4,0.3,0.3")
	for rows, set := range map[string][]string{"": set, "n1,n1,2\n": set, "n1,n2,2\n": append(set, "data.remove_edges=1")} {
		if err := os.WriteFile(filepath.Join(dir, "edges.csv"), []byte("source,target,weight\n"+rows), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, model := range []string{"gcn", "sage", "gin", "gat", "gcnii"} {
			if _, err := Train(t.Context(), TrainOptions{Model: model, Data: dir, Set: set}); err != nil {
				t.Errorf("%s with the edges %q: %v", model, rows, err)
			}
		}
	}
}
