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

// Edges at training nodes that join unlike nodes are told from those that chance puts there, in
// sparse and in dense features, and warned of.
func TestEnds(t *testing.T) {
	ds := mustLoad(t, Synthetic, LoadOptions{Seed: 3, Split: "random:0.1,0.4,0.5"})
	split, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	tampered := func(from []int32, oneClass bool) *Dataset {
		var src, dst []int32
		for _, e := range ds.Graph.Edges {
			src, dst = append(src, e[0]), append(dst, e[1])
		}
		alike := ds.X.Cosine()
		for i := range len(ds.Graph.Edges) / 5 {
			v := from[i%len(from)]
			for u := int32(i * 7 % ds.Graph.N); ; u = (u + 1) % int32(ds.Graph.N) {
				if u != v && alike(u, v) < 0.02 && (!oneClass || ds.Labels[u] == ds.Labels[v]) {
					src, dst = append(src, v), append(dst, u)
					break
				}
			}
		}
		out := *ds
		var err error
		if out.Graph, _, err = graph.Build(ds.Graph.N, src, dst, nil, false); err != nil {
			t.Fatal(err)
		}
		return &out
	}
	all := make([]int32, ds.Graph.N)
	for i := range all {
		all[i] = int32(i)
	}
	for _, c := range []struct {
		name    string
		ds      *Dataset
		suspect bool
	}{
		{"the data", ds, false},
		{"unlike edges everywhere", tampered(all, false), false},
		{"unlike edges at training nodes", tampered(split.Train, false), true},
		{"the same within classes", tampered(split.Train, true), false},
	} {
		e := c.ds.Ends(split)
		if e.Suspect != c.suspect {
			t.Errorf("%s: %+v", c.name, e)
		}
		if warned := strings.Contains(strings.Join(c.ds.Warnings(split), "\n"), "less alike"); warned != c.suspect {
			t.Errorf("%s: warned is %t", c.name, warned)
		}
		dense := *c.ds
		dense.X = c.ds.X.ToDense()
		if got := dense.Ends(split); got != e {
			t.Errorf("%s: dense %+v, sparse %+v", c.name, got, e)
		}
	}

	// The cut reads the training nodes of a seed's split, so that another seed has other data.
	sums := map[string]bool{}
	for seed := range uint64(2) {
		cut := *tampered(split.Train, false)
		if err := cut.Rewire("cut:training", seed); err != nil {
			t.Fatal(err)
		}
		if !cut.Seeded() || (cut.Rewired.Dropped > 50) != (seed == 0) || sums[cut.Checksum] {
			t.Errorf("seed %d: %+v, another seed has other data is %t", seed, cut.Rewired, cut.Seeded())
		}
		sums[cut.Checksum] = true
	}
	cut := *tampered(split.Train, false)
	cut.SplitSpec = nil
	if err := cut.Rewire("cut:training", 0); err != nil || cut.Rewired.Dropped > 0 {
		t.Errorf("without a split: %+v, %v", cut.Rewired, err)
	}
	for edges, same := range map[string]bool{"cut:training": false, "cut:0.1": true} {
		if a, b := (LoadOptions{Edges: edges, Seed: 1}).identity("x"), (LoadOptions{Edges: edges, Seed: 2}).identity("x"); (a == b) != same {
			t.Errorf("%s: the cache takes two seeds for the same data is %t", edges, a == b)
		}
	}
}
