package data

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/graph"
)

// Truth is what only the generator of a synthetic graph knows.
type Truth struct {
	// Graph is the graph before edges were hidden and wrong ones added;
	// graph.EdgeQuality holds a refined graph against it.
	// Of a graph store, [Truth.Undamaged] makes it.
	Graph *graph.Graph
	// Community is [N], the group of nodes inside its class that a node
	// belongs to.
	Community []int32

	planted func() *graph.Graph // makes Graph of a store
}

// Undamaged returns the graph before edges were hidden and wrong ones added, nil where that is
// not known, or where memory has no room for it.
func (t *Truth) Undamaged() *graph.Graph {
	if t == nil {
		return nil
	}
	if t.Graph == nil && t.planted != nil {
		t.Graph = t.planted()
	}
	return t.Graph
}

// synthetic generates a contextual stochastic block model. Its split is drawn
// for each seed unless the options ask for another: 20 nodes of each class to
// train on, a sixth of all nodes for validation and the rest for test; fewer
// than 20 where classes are small. Directed edges run from the node of the lower number.
func (l *loader) synthetic() (*Dataset, error) {
	cfg := graph.DefaultCSBM()
	if l.opts.Synthetic != nil {
		cfg = *l.opts.Synthetic
	}
	cfg.Seed = l.opts.Seed
	if cfg.Nodes <= 0 {
		return nil, fmt.Errorf("%s data: %w", Synthetic, errNoNodes)
	}
	if cfg.Features < 1 || cfg.Features > maxCols {
		return nil, fmt.Errorf("%s data: %d features are not supported: 1 to %d are", Synthetic, cfg.Features, maxCols)
	}
	if err := l.mem.Grow(cfg.Bytes()); err != nil {
		return nil, fmt.Errorf("%d nodes with %d features and %g neighbours: %w", cfg.Nodes, cfg.Features, cfg.Degree, err)
	}
	s, err := graph.Generate(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s data: %w", Synthetic, err)
	}
	s.Graph.Directed, s.Truth.Directed = l.opts.Directed, l.opts.Directed
	x, err := (&Features{Rows: cfg.Nodes, Cols: cfg.Features, Dense: s.X}).compact(l.mem)
	if err != nil {
		return nil, fmt.Errorf("%s data: %w", Synthetic, err)
	}
	return &Dataset{
		Name: Synthetic, Source: Synthetic, Format: Synthetic,
		Graph: s.Graph, X: x, Labels: s.Labels, Classes: cfg.Classes,
		SplitSpec: &SplitSpec{PerClass: true, Train: max(1, min(20, cfg.Nodes/(3*cfg.Classes))), Val: cfg.Nodes / 6, Test: -1},
		Checksum:  sampleChecksum(s),
		Truth:     &Truth{Graph: s.Truth, Community: s.Community},
	}, nil
}

// sampleChecksum is the SHA-256 over what a generated data set consists of.
func sampleChecksum(s *graph.Sample) string {
	h := sha256.New()
	var buf []byte
	put := func(v uint32) {
		if buf = binary.LittleEndian.AppendUint32(buf, v); len(buf) >= 1<<16 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	put(uint32(len(s.Labels)))
	for _, c := range s.Labels {
		put(uint32(c))
	}
	for _, g := range []*graph.Graph{s.Graph, s.Truth} {
		put(uint32(len(g.Edges)))
		for _, e := range g.Edges {
			put(uint32(e[0]))
			put(uint32(e[1]))
		}
	}
	for _, v := range s.X {
		put(math.Float32bits(v))
	}
	h.Write(buf)
	return hex.EncodeToString(h.Sum(nil))
}
