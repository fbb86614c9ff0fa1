package data

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

// A corrupted data set has other edges by as much as was asked for, another
// checksum, and says what was done.
func TestCorrupt(t *testing.T) {
	o := LoadOptions{Seed: 3}
	clean := mustLoad(t, Synthetic, o)
	m := clean.Graph.NumEdges()
	o.AddEdges, o.RemoveEdges = 0.4, 0.4
	ds := mustLoad(t, Synthetic, o)
	count := (m*4 + 5) / 10
	c := ds.Corruption
	if c == nil || c.Added != count || c.Removed != count || c.Checksum != clean.Checksum || c.Seed != 3 {
		t.Fatalf("corruption %+v of %d edges", c, m)
	}
	if in := ds.Info(); in.Edges != m || in.Truth.Wrong <= clean.Info().Truth.Wrong {
		t.Errorf("%d edges, %d of them wrong; before there were %d", in.Edges, in.Truth.Wrong, m)
	}
	var text strings.Builder
	if err := ds.Info().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "edges added at random") {
		t.Errorf("the information does not tell of the corruption:\n%s", &text)
	}
	if again := mustLoad(t, Synthetic, o); again.Checksum != ds.Checksum || len(again.Graph.Edges) != m || again.Graph.Edges[m/2] != ds.Graph.Edges[m/2] {
		t.Error("the same options gave another graph")
	}
	seen := map[string]bool{clean.Checksum: true, ds.Checksum: true}
	for _, shares := range [][2]float64{{0.4, 0}, {0, 0.4}, {0.4, 0.3}} {
		other := mustLoad(t, Synthetic, LoadOptions{Seed: 3, AddEdges: shares[0], RemoveEdges: shares[1]})
		if seen[other.Checksum] {
			t.Errorf("shares %v have a checksum that others have", shares)
		}
		seen[other.Checksum] = true
	}
	if err := ds.Corrupt(0.1, 0, 1); err == nil {
		t.Error("a corrupted graph was corrupted again, and its checksum would not say so")
	}
	if err := clean.Corrupt(0, 0, 1); err != nil || clean.Corruption != nil {
		t.Errorf("shares of 0 changed the data: %v", err)
	}
	for _, bad := range []LoadOptions{{AddEdges: -1}, {RemoveEdges: 2}, {AddEdges: 1e9}} {
		_, err := Load(Synthetic, bad)
		wantError(t, err, Synthetic, "edges")
	}
}

// What was planted is read back as it was, from sparse and from dense features, with its
// truth beside it.
func TestPlant(t *testing.T) {
	for _, density := range []float64{0.1, 1} {
		cfg := graph.DefaultCSBM()
		cfg.Nodes, cfg.Features, cfg.Density = 60, 40, density
		ds := mustLoad(t, Synthetic, LoadOptions{Synthetic: &cfg})
		random, before := *ds, ds.Graph
		wrong, hidden, err := ds.Plant(graph.Similar, 0.1, 0.1, 4)
		if err != nil {
			t.Fatal(err)
		}
		if err := random.Corrupt(0.1, 0.1, 4); err != nil || random.Checksum == ds.Checksum || reflect.DeepEqual(random.Graph, ds.Graph) {
			t.Errorf("similar and random edges are the same, %v", err)
		}
		for _, e := range wrong {
			if !ds.Graph.Has(e[0], e[1]) {
				t.Errorf("the planted edge %v is not there", e)
			}
		}
		for _, e := range hidden {
			if ds.Graph.Has(e[0], e[1]) {
				t.Errorf("the hidden edge %v is there", e)
			}
		}
		dir := filepath.Join(t.TempDir(), "below", "planted")
		if err := ds.WritePlanted(dir, 2, wrong, hidden); err != nil {
			t.Fatal(err)
		}
		back := mustLoad(t, dir, LoadOptions{})
		if !reflect.DeepEqual(back.Truth.Undamaged(), before) || reflect.DeepEqual(back.Graph, before) {
			t.Error("the graph before edges were planted and hidden is another")
		}
		if !reflect.DeepEqual(back.Graph, ds.Graph) || !reflect.DeepEqual(back.X, ds.X) || !reflect.DeepEqual(back.Labels, ds.Labels) {
			t.Error("the data are others after they were written and read")
		}
		want, err := ds.SplitFor(2)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back.Splits, []Split{want}) {
			t.Error("the split is another")
		}
		truth, err := os.ReadFile(filepath.Join(dir, TruthFile))
		if n := strings.Count(string(truth), TruthWrong) + strings.Count(string(truth), TruthHidden); err != nil || n != len(wrong)+len(hidden) || n == 0 {
			t.Errorf("the truth has %d edges, %v", n, err)
		}
		if err := ds.WritePlanted(dir, 2, nil, nil); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("a folder was written over: %v", err)
		}
	}
}
