package runtime

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/scratch"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// CandidateOptions say how candidate edges are chosen; see [graph.NewCandidates].
type CandidateOptions struct {
	K      int // nearest neighbours, by cosine
	Mutual bool
	Index  graph.Index
	// OnHost has the host build the candidates' graph, which reads it anyway or has Also.
	OnHost bool
	// Also are further neighbours of each node, [N, k], as [graph.KNN] returns them, which
	// the host joins with the nearest.
	Also []int32
}

// Candidates are the candidate edges of a graph of N nodes: the graph's own and those to
// near neighbours. They are chosen by [Sampler.Candidates], or given by [Candidates.Set].
type Candidates struct {
	Graph *Buffer // graph<N,2C>; of what a device has built the host has the sizes only
	Old   *Buffer // [2C] f32: of each entry, 1 if the graph has the edge, or else 0
	// Files has what is known of entries in files, where it is not nil.
	Files *scratch.Files
	// Near is what [graph.Neighbors] begins an approximate search with, which may be nil.
	Near func() *graph.Structure

	known     *graph.Graph // undirected
	pool      *kernels.Pool
	search    graph.Neighbors
	cand      *graph.Candidates
	structure graph.Structure
	joined    graph.Graph // of cand
	host      [2]*Buffer  // Graph and Old of what the host has built
	device    *DeviceCandidates
	behind    bool // cand is older than what the device has built
}

// NewCandidates returns the candidates of an undirected graph, of which there are none yet.
func NewCandidates(g *graph.Graph, pool *kernels.Pool) *Candidates {
	return &Candidates{known: g, pool: pool, host: [2]*Buffer{Graph((&graph.Graph{N: g.N}).Structure()), Zeros(0)}}
}

// Len returns how many candidates there are.
func (c *Candidates) Len() int {
	if c.Graph == nil {
		return 0
	}
	return c.Graph.Dims[1] / 2
}

// Search finds the nearest neighbours [N,K] of each row of emb, which the host has.
func (c *Candidates) Search(emb *Buffer, o CandidateOptions) []int32 {
	c.search.Near = c.Near
	idx, _, _ := c.search.Search(c.pool, emb.F32, emb.Dims[0], emb.Dims[1], o.K, o.Index)
	return idx
}

// Build makes the candidates those to the nearest neighbours [N,K], on the host.
func (c *Candidates) Build(nearest []int32, o CandidateOptions) error {
	cand := c.cand
	if cand == nil {
		cand = &graph.Candidates{}
	}
	k := o.K
	if len(o.Also) > 0 {
		var err error
		if nearest, k, err = graph.JoinNeighbors(c.known.N, nearest, o.Also); err != nil {
			return err
		}
	}
	if err := cand.Rebuild(c.known, nearest, k, o.Mutual); err != nil {
		return err
	}
	return c.Set(cand)
}

// Set makes the candidates those given, which c keeps. It is an error if a disk has no room.
func (c *Candidates) Set(cand *graph.Candidates) (err error) {
	c.cand, c.behind = cand, false
	c.joined = graph.Graph{N: cand.N, Edges: cand.Edges}
	st := &c.structure
	if c.Files != nil {
		if st.In == nil {
			st.In, st.Out = &kernels.CSR{}, &kernels.CSR{}
		}
		for _, x := range []*[]int32{&st.In.Col, &st.Out.Perm, &st.EdgeOf} {
			if *x, err = scratch.Room(c.Files, *x, 2*len(cand.Edges)); err != nil {
				return err
			}
		}
		if c.host[1].F32, err = scratch.Room(c.Files, c.host[1].F32, 2*len(cand.Edges)); err != nil {
			return err
		}
	}
	st.Rebuild(&c.joined)
	c.Graph, c.Old = c.host[0], c.host[1]
	c.Graph.Graph, c.Graph.Dims[0], c.Graph.Dims[1] = st, st.N, st.E
	c.Old.F32, c.Old.Dims[0] = slices.Grow(c.Old.F32[:0], st.E)[:st.E], st.E
	for i, k := range st.EdgeOf {
		c.Old.F32[i] = 0
		if cand.Existing[k] {
			c.Old.F32[i] = 1
		}
	}
	return nil
}

// Free gives up the memory that choosing others would use again.
func (c *Candidates) Free() {
	c.search = graph.Neighbors{}
	if c.cand != nil {
		c.cand.Free()
	}
}

// Host returns the candidates, nil where there are none yet. They are valid until others
// are chosen.
func (c *Candidates) Host() (*graph.Candidates, error) {
	if c.behind {
		if c.cand == nil {
			c.cand = &graph.Candidates{}
		}
		if err := c.device.fetch(c.cand); err != nil {
			return nil, fmt.Errorf("reading the candidate edges: %w", err)
		}
		c.behind = false
	}
	return c.cand, nil
}

// Structure returns the structure of what the host has built.
func (c *Candidates) Structure() *graph.Structure { return &c.structure }

// OfEdges returns the values of the candidates, in dst if it has room, given those of
// their entries [2C], as the host has them. Both entries of a candidate have the same.
func (c *Candidates) OfEdges(dst, entry []float32) ([]float32, error) {
	cand, err := c.Host()
	if err != nil {
		return nil, err
	}
	dst = slices.Grow(dst[:0], len(cand.Edges))[:len(cand.Edges)]
	if c.Graph != c.host[0] { // the device has built it
		for k, i := range c.device.Entry.I64 {
			dst[k] = entry[i]
		}
		return dst, nil
	}
	for i, k := range c.structure.EdgeOf {
		dst[k] = entry[i]
	}
	return dst, nil
}

// DeviceCandidates are candidate edges in a device's memory. An edge {u, v}, u < v, is
// the number u·2³² + 2v, and one more where the graph has it.
type DeviceCandidates struct {
	Known *Buffer // [M] i64: the graph's own edges in their order
	Edges *Buffer // [C] i64: the candidates, sorted
	Entry *Buffer // [C] i64: of each candidate one of its two entries in Graph
	Graph *Buffer // graph<N,2C>, of which the host has the sizes only
	Old   *Buffer // [2C] f32: of each entry, 1 if the graph has the edge, or else 0

	Memory  *Buffer // of the results
	In, Out DeviceCSR

	of *Candidates
	m  *DeviceBuffers
}

// OnDevice returns what a device builds the candidates in: the graph's own edges are in
// its memory.
func (c *Candidates) OnDevice(m *DeviceBuffers) (*DeviceCandidates, error) {
	if c.device != nil {
		return c.device, nil
	}
	known := make([]int64, len(c.known.Edges))
	for i, e := range c.known.Edges {
		known[i] = int64(e[0])<<32 | int64(e[1])<<1 | 1
	}
	d := &DeviceCandidates{
		Known: I64(known, len(known)), Edges: I64(nil, 0), Entry: I64(nil, 0), Old: F32(nil, 0), Memory: I64(nil, 0),
		Graph: Graph((&graph.Graph{N: c.known.N}).Structure()), of: c, m: m,
	}
	if err := m.ToDevice(d.Known); err != nil {
		return nil, err
	}
	c.device = d
	return d, nil
}

// Place gives the results of n candidates their places in memory of their own, which
// grows where it must, and makes them the candidates.
func (d *DeviceCandidates) Place(n int) error {
	nodes := d.Graph.Dims[0]
	bytes := 0
	put := func(n int) int {
		at := bytes
		bytes += aligned(n)
		return at
	}
	edges, entry, old := put(8*n), put(8*n), put(8*n)
	ptr, col, row, perm := put(4*(nodes+1)), put(8*n), put(8*n), put(8*n)
	if err := d.m.Reserve(d.Memory, bytes/8); err != nil {
		return err
	}
	d.Edges.Dims[0], d.Entry.Dims[0], d.Old.Dims[0] = n, n, 2*n
	d.m.View(d.Edges, d.Memory, edges, n)
	d.m.View(d.Entry, d.Memory, entry, n)
	d.m.View(d.Old, d.Memory, old, 2*n)
	d.m.View(d.Graph, d.Memory, 0, 0)
	at := d.Memory.Device.Elements
	d.In = DeviceCSR{Rows: nodes, Cols: nodes, NNZ: 2 * n, RowPtr: at + uintptr(ptr), Col: at + uintptr(col), Row: at + uintptr(row)}
	d.Out = d.In
	d.Out.Perm = at + uintptr(perm)
	d.Graph.Device.In, d.Graph.Device.Out = &d.In, &d.Out
	d.Graph.Graph.E, d.Graph.Dims[1] = 2*n, 2*n
	d.of.Graph, d.of.Old, d.of.behind = d.Graph, d.Old, true
	return nil
}

// fetch makes cand these candidates, and copies Edges and Entry to the host.
func (d *DeviceCandidates) fetch(cand *graph.Candidates) error {
	n := d.Edges.Dims[0]
	for _, b := range []*Buffer{d.Edges, d.Entry} {
		b.I64 = slices.Grow(b.I64[:0], n)[:n]
		if err := d.m.CopyToHost(b); err != nil {
			return err
		}
	}
	cand.N = d.Graph.Dims[0]
	cand.Edges, cand.Existing = cand.Edges[:0], cand.Existing[:0]
	for _, e := range d.Edges.I64 {
		cand.Edges = append(cand.Edges, [2]int32{int32(e >> 32), int32(uint32(e) >> 1)})
		cand.Existing = append(cand.Existing, e&1 == 1)
	}
	return nil
}
