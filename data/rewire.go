package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/gsrc-dev/gsrc/graph"
)

// Rewired says which edges took the place of a data set's own. Its JSON form is part of
// what runs write.
type Rewired struct {
	Edges    string `json:"edges"`    // as LoadOptions.Edges has it
	Checksum string `json:"checksum"` // of the data before
	Dropped  int    `json:"dropped"`
	Added    int    `json:"added"`

	bySplit bool // by which nodes train
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
		return fmt.Errorf("%s: edges %s: %w", d.Source, edges, err)
	}
	d.Rewired = &Rewired{Edges: edges, Checksum: d.Checksum, Dropped: dropped, Added: added, bySplit: r.Training}
	sum := sha256.Sum256(text)
	d.Graph, d.Checksum = g, hex.EncodeToString(sum[:])
	return nil
}
