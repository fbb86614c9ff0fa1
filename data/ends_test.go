package data

import (
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
)

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
