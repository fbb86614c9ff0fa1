package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/train"
)

// A run on edges that features make says so, is found again, and is refused by exports, which
// would be given other edges.
func TestRunsOnRewiredGraphs(t *testing.T) {
	for _, x := range []struct {
		model, edges string
		more         bool
	}{{"gcn", "knn:3", false}, {"ecl-gsr", "raw+knn:3", true}} {
		dir := filepath.Join(t.TempDir(), "run")
		o := TrainOptions{Model: x.model, Data: "synthetic", Out: dir, Set: []string{"synthetic.nodes=120", "train.epochs=2", "train.pretrain_steps=2", "data.edges=" + x.edges}}
		if _, err := Train(context.Background(), o); err != nil {
			t.Fatal(err)
		}
		info, err := train.ReadInfo(dir)
		if err != nil {
			t.Fatal(err)
		}
		w := info.Data.Rewired
		if w == nil || w.Edges != x.edges || w.Added == 0 || (w.Dropped == 0) != x.more || w.Checksum == info.Data.Checksum {
			t.Errorf("%s: run.json says %+v", x.edges, w)
		}
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.LoadData(""); err != nil || r.Data.Graph.NumEdges() != info.Data.Edges {
			t.Errorf("%s: read again: %v", x.edges, err)
		}
		if _, err := r.Build(context.Background(), filepath.Join(dir, "dist"), BuildOptions{}); err == nil || !strings.Contains(err.Error(), "data.edges") {
			t.Errorf("%s: an export ends with the error %v", x.edges, err)
		}
	}
	// Where nothing trains nothing is cut: exports answer for the edges that they are given.
	for edges, exported := range map[string]bool{"cut:training": true, "cut:training+knn:3": false} {
		dir := filepath.Join(t.TempDir(), "run")
		r, err := Train(context.Background(), TrainOptions{Model: "gcn", Data: "synthetic", Out: dir, Set: []string{"synthetic.nodes=120", "train.epochs=2", "data.edges=" + edges}})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Exportable(); (err == nil) != exported {
			t.Errorf("%s: an export ends with the error %v", edges, err)
		}
	}
	_, err := Train(context.Background(), TrainOptions{Model: "gcn", Data: "synthetic", Set: []string{"data.edges=knn:many"}})
	if err == nil || !strings.Contains(err.Error(), `data.edges must be raw, none`) {
		t.Errorf("knn:many: %v", err)
	}
}
