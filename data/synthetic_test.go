package data

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

func TestSynthetic(t *testing.T) {
	ds := mustLoad(t, Synthetic, LoadOptions{Seed: 3})
	cfg := graph.DefaultCSBM()
	in := ds.Info()
	if in.Nodes != cfg.Nodes || in.Classes != cfg.Classes || in.Features != cfg.Features || in.Format != Synthetic {
		t.Errorf("%+v", in)
	}
	truth := float64(cfg.Nodes) * cfg.Degree / 2
	if in.Truth == nil || float64(in.Truth.Edges) != truth || float64(in.Truth.Hidden) != cfg.Hidden*truth || float64(in.Truth.Wrong) != cfg.Wrong*truth {
		t.Errorf("truth %+v", in.Truth)
	}
	var b bytes.Buffer
	if err := in.WriteText(&b); err != nil || !strings.Contains(b.String(), "truth       3600 right edges, 1080 of them hidden, 1800 wrong ones added") {
		t.Errorf("%v\n%s", err, &b)
	}
	s, err := ds.SplitFor(0)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Train) != 80 || len(s.Val) != 200 || len(s.Test) != 920 {
		t.Errorf("split of %d, %d, %d", len(s.Train), len(s.Val), len(s.Test))
	}

	same, other := mustLoad(t, Synthetic, LoadOptions{Seed: 3}), mustLoad(t, Synthetic, LoadOptions{Seed: 4})
	if same.Checksum != ds.Checksum || !slices.Equal(same.Graph.Edges, ds.Graph.Edges) {
		t.Error("the same seed generates another graph")
	}
	if other.Checksum == ds.Checksum {
		t.Error("another seed generates the same graph")
	}
}

func TestSyntheticOptions(t *testing.T) {
	cfg := graph.DefaultCSBM()
	cfg.Nodes, cfg.Classes = 40, 2
	ds := mustLoad(t, Synthetic, LoadOptions{Synthetic: &cfg})
	if ds.Graph.N != 40 {
		t.Errorf("%d nodes", ds.Graph.N)
	}
	if s, err := ds.SplitFor(1); err != nil || len(s.Train) != 12 || len(s.Val) != 6 || len(s.Test) != 22 {
		t.Errorf("split %v, %v", s, err)
	}
	ds = mustLoad(t, Synthetic, LoadOptions{Synthetic: &cfg, Split: "random:0.5,0.25,0.25"})
	if s, err := ds.SplitFor(1); err != nil || len(s.Train) != 20 {
		t.Errorf("split %v, %v", s, err)
	}
	for want, change := range map[string]func(*graph.CSBM){
		"no nodes":       func(c *graph.CSBM) { c.Nodes = 0 },
		"0 features":     func(c *graph.CSBM) { c.Features = 0 },
		"more than":      func(c *graph.CSBM) { c.Nodes, c.Features = 1<<29, 1<<20 },
		"option Density": func(c *graph.CSBM) { c.Density = 2 },
	} {
		c := cfg
		change(&c)
		_, err := Load(Synthetic, LoadOptions{Synthetic: &c})
		wantError(t, err, want, "synthetic")
	}
}

// Edges that are asked for with directions have them.
func TestSyntheticDirected(t *testing.T) {
	ds, err := Load(Synthetic, LoadOptions{Directed: true})
	if err != nil {
		t.Fatal(err)
	}
	if !ds.Graph.Directed || !ds.Truth.Graph.Directed {
		t.Error("the edges have no direction")
	}
	for _, e := range ds.Graph.Edges {
		if e[0] >= e[1] {
			t.Fatalf("edge %v", e)
		}
	}
}
