package runtime

import (
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
)

// CandidateBuilder is an [Accelerator] that chooses candidate edges itself, so that
// embedding, neighbours and the graph of the candidates stay there.
type CandidateBuilder interface {
	// Candidates makes c those of the k nearest neighbours, by cosine, of the rows of
	// emb [N, F], as [graph.KNN] and [graph.NewCandidates] do on the host.
	Candidates(c *ResidentCandidates, emb *Buffer, k int, mutual bool) error
	// CandidateBytes returns what the search and the building need on the device
	// beside emb and the results: for so many nodes, columns and edges of the graph.
	CandidateBytes(n, f, edges, k int) int
}

// ResidentCandidates are the candidate edges of a graph of N nodes in a device's
// memory. An edge {u, v}, u < v, is the number u·2³² + 2v, and one more where the graph
// has it.
type ResidentCandidates struct {
	Known *Buffer // [M] i64: the graph's own edges in their order
	Edges *Buffer // [C] i64: the candidates, sorted
	Entry *Buffer // [C] i64: of each candidate one of its two entries in Graph
	Graph *Buffer // graph<N,2C>, of which the host has the sizes only
	Old   *Buffer // [2C] f32: of each entry, 1 if the graph has the edge, or else 0

	Memory  *Buffer // of the results
	In, Out ResidentCSR

	host []int64
}

// NewResidentCandidates gives the edges of an undirected graph to a device.
func NewResidentCandidates(a Accelerator, g *graph.Graph) (*ResidentCandidates, error) {
	known := make([]int64, len(g.Edges))
	for i, e := range g.Edges {
		known[i] = int64(e[0])<<32 | int64(e[1])<<1 | 1
	}
	c := &ResidentCandidates{
		Known: I64(known, len(known)), Edges: I64(nil, 0), Entry: I64(nil, 0), Old: F32(nil, 0), Memory: I64(nil, 0),
		Graph: Graph((&graph.Graph{N: g.N}).Structure()),
	}
	return c, a.Memory().Own(c.Known)
}

// Place gives the results of n candidates their places in memory of their own, which
// grows where it must.
func (c *ResidentCandidates) Place(m *Remote, n int) error {
	nodes := c.Graph.Dims[0]
	bytes := 0
	put := func(n int) int {
		at := bytes
		bytes += aligned(n)
		return at
	}
	edges, entry, old := put(8*n), put(8*n), put(8*n)
	ptr, col, row, perm := put(4*(nodes+1)), put(8*n), put(8*n), put(8*n)
	if err := m.Reserve(c.Memory, bytes/8); err != nil {
		return err
	}
	c.Edges.Dims[0], c.Entry.Dims[0], c.Old.Dims[0] = n, n, 2*n
	m.View(c.Edges, c.Memory, edges, n)
	m.View(c.Entry, c.Memory, entry, n)
	m.View(c.Old, c.Memory, old, 2*n)
	m.View(c.Graph, c.Memory, 0, 0)
	at := c.Memory.At.Elements
	c.In = ResidentCSR{Rows: nodes, Cols: nodes, NNZ: 2 * n, RowPtr: at + uintptr(ptr), Col: at + uintptr(col), Row: at + uintptr(row)}
	c.Out = c.In
	c.Out.Perm = at + uintptr(perm)
	c.Graph.At.In, c.Graph.At.Out = &c.In, &c.Out
	c.Graph.Graph.E, c.Graph.Dims[1] = 2*n, 2*n
	return nil
}

// Fetch makes cand these candidates.
func (c *ResidentCandidates) Fetch(m *Remote, cand *graph.Candidates) error {
	c.host = slices.Grow(c.host[:0], c.Edges.Dims[0])[:c.Edges.Dims[0]]
	if err := m.download(bytesOf(c.host), c.Edges.At.Elements); err != nil {
		return err
	}
	cand.N = c.Graph.Dims[0]
	cand.Edges, cand.Existing = cand.Edges[:0], cand.Existing[:0]
	for _, e := range c.host {
		cand.Edges = append(cand.Edges, [2]int32{int32(e >> 32), int32(uint32(e) >> 1)})
		cand.Existing = append(cand.Existing, e&1 == 1)
	}
	return nil
}
