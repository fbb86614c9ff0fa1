package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
)

// Corruption says how a data set's graph was damaged on purpose, to see what a
// model makes of wrong and missing edges. Its JSON form is part of what gsrc
// data info and runs write.
type Corruption struct {
	AddEdges    float64 `json:"add_edges"`    // as a share of the edges before
	RemoveEdges float64 `json:"remove_edges"` // as a share of the edges before
	Seed        uint64  `json:"seed"`
	Checksum    string  `json:"checksum"` // of the data before
	Added       int     `json:"added"`    // edges
	Removed     int     `json:"removed"`  // edges
	// Kind is how the ends of added edges were drawn; empty is evenly.
	Kind graph.Kind `json:"kind,omitempty"`
}

// Again says that data which were read for a model are damaged as those of its training were.
func (c *Corruption) Again() string {
	return fmt.Sprintf("the model was trained on these data with %d edges added at random and %d removed; the same is done here", c.Added, c.Removed)
}

// Corrupt removes and adds edges at random: shares of the edges that the graph
// has, drawn evenly from the stream "data.corrupt" of the seed. New edges join
// nodes that had none, so that equal shares replace edges. d.Checksum becomes one
// that tells the damaged data from the others. Nothing changes where both shares
// are 0.
func (d *Dataset) Corrupt(add, remove float64, seed uint64) error {
	if add == 0 && remove == 0 {
		return nil
	}
	_, _, err := d.Plant(graph.Random, add, remove, seed)
	return err
}

// Plant is [Dataset.Corrupt] with added edges of a kind; with graph.Similar nodes are
// alike whose features have a large cosine. It returns the edges that were added and
// those that were removed, sorted.
func (d *Dataset) Plant(kind graph.Kind, add, remove float64, seed uint64) (added, removed [][2]int32, err error) {
	if d.Corruption != nil {
		return nil, nil, fmt.Errorf("%s: the graph is corrupted already", d.called())
	}
	var alike func(u, v int32) float64
	if kind == graph.Similar {
		alike = d.X.Cosine()
	}
	g, removed, added, err := d.Graph.Corrupt(kind, remove, add, alike, rng.New(seed, "data.corrupt"))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", d.called(), err)
	}
	d.Corruption = &Corruption{AddEdges: add, RemoveEdges: remove, Seed: seed, Checksum: d.Checksum, Added: len(added), Removed: len(removed)}
	text := fmt.Appendf(nil, "%s add %v remove %v seed %d", d.Checksum, add, remove, seed)
	if kind != graph.Random {
		d.Corruption.Kind = kind
		text = fmt.Appendf(text, " kind %s", kind)
	}
	if d.Structural {
		text = fmt.Append(text, " structural")
	}
	d.replace(g, text)
	if d.Structural { // what nodes are described by is of the graph at hand
		if err := d.places(); err != nil {
			return nil, nil, err
		}
	}
	return added, removed, nil
}

// replace puts another graph in the place of d.Graph; text tells what became of the data.
func (d *Dataset) replace(g *graph.Graph, text []byte) {
	sum := sha256.Sum256(text)
	d.Graph, d.Checksum = g, hex.EncodeToString(sum[:])
}

// Rewired says which edges took the place of a data set's own. Its JSON form is part of
// what runs write.
type Rewired struct {
	Edges    string `json:"edges"`    // as LoadOptions.Edges has it
	Checksum string `json:"checksum"` // of the data before
	Dropped  int    `json:"dropped"`
	Added    int    `json:"added"`

	bySplit bool // by which nodes train
}

// BaseChecksum is that of data before edges were changed in reading; sum is the one after.
func BaseChecksum(sum string, c *Corruption, r *Rewired) string {
	switch {
	case c != nil: // which comes first
		return c.Checksum
	case r != nil:
		return r.Checksum
	default:
		return sum
	}
}

// Inductive tells whether the edges of other graphs, none of whose nodes train, stay as they are.
func (r *Rewired) Inductive() bool { return r == nil || r.Edges == graph.CutTraining }

// Rewire puts other edges in the place of the graph's: see [graph.ParseRewiring]. Counts are
// weighed by how rare their column is (tf-idf), other features are compared as they are.
// Labels are not read; which nodes train, in the split of a seed, is where edges are cut at these.
// d.Checksum becomes one that tells the data from those before.
func (d *Dataset) Rewire(edges string, seed uint64) error {
	r, err := graph.ParseRewiring(edges)
	if err != nil || r == (graph.Rewiring{}) {
		return err
	}
	x := d.X.Attributes()
	var columns []float64
	if d.X.Counts() {
		columns = x.Rarity(d.X.Rows)
	}
	var training []int32
	text := fmt.Appendf(nil, "%s edges %s", d.Checksum, edges)
	if r.Training {
		split, _ := d.SplitFor(seed) // without one there is no training, and nothing to cut
		training, text = split.Train, fmt.Append(text, " training ", split.Train)
	}
	g, dropped, added, err := r.Apply(nil, d.Graph, x, columns, training)
	if err != nil {
		return fmt.Errorf("%s: edges %s: %w", d.called(), edges, err)
	}
	d.Rewired = &Rewired{Edges: edges, Checksum: d.Checksum, Dropped: dropped, Added: added, bySplit: r.Training}
	d.replace(g, text)
	return nil
}

// Cosine returns what gives the cosine of the features of two nodes, 0 where one has none.
func (f *Features) Cosine() func(u, v int32) float64 {
	dot := func(u, v int32) (sum float64) {
		a, b := f.Dense[int(u)*f.Cols:][:f.Cols], f.Dense[int(v)*f.Cols:][:f.Cols]
		for k := range a {
			sum += float64(float64(a[k]) * float64(b[k]))
		}
		return sum
	}
	if f.IsSparse() {
		dot = func(u, v int32) (sum float64) {
			for i, j := f.RowPtr[u], f.RowPtr[v]; i < f.RowPtr[u+1] && j < f.RowPtr[v+1]; {
				switch {
				case f.Col[i] < f.Col[j]:
					i++
				case f.Col[i] > f.Col[j]:
					j++
				default:
					sum += float64(float64(f.Val[i]) * float64(f.Val[j]))
					i, j = i+1, j+1
				}
			}
			return sum
		}
	}
	return func(u, v int32) float64 {
		if d := dot(u, v); d != 0 {
			return d / math.Sqrt(float64(dot(u, u)*dot(v, v)))
		}
		return 0
	}
}
