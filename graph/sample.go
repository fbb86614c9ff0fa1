package graph

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gsrc-dev/gsrc/rng"
)

// SamplerOptions says how an [EdgeSampler] draws batches.
type SamplerOptions struct {
	// Edges is the number of seed edges of a batch; 0 means 64.
	Edges int
	// BatchesPerEpoch is the number of batches after which all edges may be
	// drawn again; 0 means as many as it takes to draw every edge once. The
	// batches of an epoch have no seed edge in common.
	BatchesPerEpoch int
	// Hops is the radius of the neighbourhood that is added around the seed
	// edges: the number of layers of the encoder.
	Hops int
	// FanOut caps how many neighbours of one node are followed in a hop; 0
	// means all.
	FanOut int
}

// An EdgeSampler draws the batches of contrastive training on a graph: seed
// edges without replacement, their endpoints, and the neighbourhood that an
// encoder of Hops layers needs to compute these. Batches are numbered by
// training step, and a step's batch depends on the stream and the step only.
//
// An EdgeSampler keeps the batch and scratch memory: use it from one goroutine
// at a time.
type EdgeSampler struct {
	g     *Graph
	opt   SamplerOptions
	s     rng.Stream
	epoch uint64 // whose permutation perm is
	perm  []int
	near  *neighborhood
	ends  []int32
	batch Batch
}

// Batch is what one step trains on.
type Batch struct {
	// Seeds are positions in the graph's Edges, in drawing order.
	Seeds []int32
	// Nodes maps the subgraph's nodes to the graph's, in ascending order.
	Nodes []int32
	// Graph is the subgraph that Nodes induce, in the subgraph's numbering.
	Graph *Graph
	// EdgeOf maps the subgraph's edges to positions in the graph's Edges.
	EdgeOf []int32
	// Anchors are the different endpoints of the seed edges, ascending, in
	// the subgraph's numbering: the samples of the contrastive loss.
	Anchors []int32
}

// NewEdgeSampler makes a sampler of g. It is an error if an option is negative,
// the graph has no edges or an epoch's batches need more edges than it has.
func NewEdgeSampler(g *Graph, opt SamplerOptions, s rng.Stream) (*EdgeSampler, error) {
	opt.Edges = cmp.Or(opt.Edges, 64)
	m := len(g.Edges)
	switch {
	case opt.Edges < 0 || opt.BatchesPerEpoch < 0 || opt.Hops < 0 || opt.FanOut < 0:
		return nil, fmt.Errorf("graph: edge sampler options must not be negative: %+v", opt)
	case m == 0:
		return nil, fmt.Errorf("graph: the edge sampler draws batches of edges, but the graph has none; sample nodes instead")
	}
	if opt.BatchesPerEpoch == 0 {
		opt.BatchesPerEpoch = (m + opt.Edges - 1) / opt.Edges
	} else if opt.Edges > m || opt.BatchesPerEpoch > (m+opt.Edges-1)/opt.Edges {
		return nil, fmt.Errorf("graph: %d batches of %d edges without replacement need more than the graph's %d edges; lower one of them", opt.BatchesPerEpoch, opt.Edges, m)
	}
	st := g.Structure()
	return &EdgeSampler{g: g, opt: opt, s: s, epoch: math.MaxUint64, perm: make([]int, m), near: &neighborhood{st: st}, batch: Batch{Graph: &Graph{}}}, nil
}

// Batch draws the batch of a step. Step t is batch t mod BatchesPerEpoch of
// epoch t / BatchesPerEpoch; the last of an epoch may have fewer seed edges. The
// batch is valid until the next call.
func (e *EdgeSampler) Batch(step uint64) *Batch {
	per := uint64(e.opt.BatchesPerEpoch)
	if epoch := step / per; epoch != e.epoch {
		e.s.Sub("epoch").At(epoch).PermTo(e.perm)
		e.epoch = epoch
	}
	lo := int(step%per) * e.opt.Edges
	hi := min(lo+e.opt.Edges, len(e.perm))
	b := &e.batch
	b.Seeds, e.ends = b.Seeds[:0], e.ends[:0]
	for _, i := range e.perm[lo:hi] {
		b.Seeds = append(b.Seeds, int32(i))
		e.ends = append(e.ends, e.g.Edges[i][0], e.g.Edges[i][1])
	}
	slices.Sort(e.ends)
	e.ends = slices.Compact(e.ends)
	b.Nodes = e.near.around(b.Nodes[:0], e.ends, e.opt.Hops, e.opt.FanOut, e.s.Sub("fan-out").At(step))
	b.EdgeOf = e.near.induce(b.Graph, b.EdgeOf[:0], e.g, b.Nodes)
	b.Anchors = b.Anchors[:0]
	for _, v := range e.ends {
		at, _ := slices.BinarySearch(b.Nodes, v)
		b.Anchors = append(b.Anchors, int32(at))
	}
	return b
}

// neighborhood is the scratch memory of searches in one structure.
type neighborhood struct {
	st    *Structure
	met   numbering
	drawn []int32
}

// around appends to found, which is empty, the nodes within that many hops of seeds, which
// may repeat, and seeds themselves, in ascending order. A hop goes from a node to the
// sources of the edges that enter it, since those are what its layer reads. With fanOut > 0
// at most as many sources of each node are followed, drawn evenly from the stream.
func (n *neighborhood) around(found, seeds []int32, hops, fanOut int, stream rng.Stream) []int32 {
	n.met.begin(n.st.N)
	found = n.visit(found, seeds)
	in := n.st.In
	for hop, lo := 0, 0; hop < hops && lo < len(found); hop++ {
		hi := len(found)
		for _, v := range found[lo:hi] {
			sources := in.Col[in.RowPtr[v]:in.RowPtr[v+1]]
			if fanOut > 0 && len(sources) > fanOut {
				n.drawn = sampleFew(n.drawn[:0], len(sources), fanOut, stream.At(uint64(v)))
				for i, at := range n.drawn {
					n.drawn[i] = sources[at]
				}
				sources = n.drawn
			}
			found = n.visit(found, sources)
		}
		lo = hi
	}
	slices.Sort(found)
	return found
}

// visit appends to found those of nodes that were not met yet.
func (n *neighborhood) visit(found, nodes []int32) []int32 {
	for _, v := range nodes {
		if _, isNew := n.met.meet(int64(v), len(found)); isNew {
			found = append(found, v)
		}
	}
	return found
}

// induce makes sub the subgraph of g on the nodes and appends to edgeOf the
// positions of its edges in g, in the memory that both have.
func (n *neighborhood) induce(sub *Graph, edgeOf []int32, g *Graph, nodes []int32) []int32 {
	n.met.begin(n.st.N)
	for i, v := range nodes {
		n.met.meet(int64(v), i)
	}
	sub.N, sub.Directed, sub.Edges = len(nodes), g.Directed, sub.Edges[:0]
	if g.Weights != nil {
		sub.Weights = slices.Grow(sub.Weights[:0], 1)
	}
	out := n.st.Out
	for i, u := range nodes {
		for j := out.RowPtr[u]; j < out.RowPtr[u+1]; j++ {
			v := out.Col[j]
			place, met := n.met.find(v)
			if !met || !g.Directed && v < u {
				continue
			}
			e := n.st.EdgeOf[out.Perm[j]]
			sub.Edges = append(sub.Edges, [2]int32{int32(i), place})
			edgeOf = append(edgeOf, e)
			if g.Weights != nil {
				sub.Weights = append(sub.Weights, g.Weights[e])
			}
		}
	}
	return edgeOf
}

// sampleFew is [sampleInts] for a count so small that the taken ones are found
// fastest in their sorted list. It appends to dst, which is empty.
func sampleFew(dst []int32, n, count int, s rng.Stream) []int32 {
	for j := n - count; j < n; j++ {
		x := int32(s.Intn(uint64(j), j+1))
		at, taken := slices.BinarySearch(dst, x)
		if taken {
			x, at = int32(j), len(dst) // above all that were drawn
		}
		dst = slices.Insert(dst, at, x)
	}
	return dst
}
