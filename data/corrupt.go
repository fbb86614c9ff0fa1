package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

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
	if d.Corruption != nil {
		return fmt.Errorf("%s: the graph is corrupted already", d.Source)
	}
	g, removed, added, err := d.Graph.Corrupt(remove, add, rng.New(seed, "data.corrupt"))
	if err != nil {
		return fmt.Errorf("%s: %w", d.Source, err)
	}
	d.Corruption = &Corruption{AddEdges: add, RemoveEdges: remove, Seed: seed, Checksum: d.Checksum, Added: len(added), Removed: len(removed)}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s add %v remove %v seed %d", d.Checksum, add, remove, seed))
	d.Graph, d.Checksum = g, hex.EncodeToString(sum[:])
	return nil
}
