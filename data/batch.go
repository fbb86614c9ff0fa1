package data

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/graph"
)

// Batch is some graphs of a collection joined into one that has no edges between
// them: its adjacency matrix is block-diagonal.
type Batch struct {
	Graph *graph.Graph // N nodes: those of the first graph, then of the second, …
	X     *Features    // [N,D]
	// GraphOf is [N] i64: which graph of the batch, 0..B-1, a node belongs to.
	// Elsewhere it is called the batch vector.
	GraphOf []int64
	Offset  []int32 // [B+1] first node of each graph
	Labels  []int32 // [B]
}

// Batch joins the graphs with these numbers, in this order; one may come twice.
// It writes into b and its memory and returns b, or a new batch if b is nil: a
// batch that is no larger than one before takes no new memory.
func (c *Collection) Batch(b *Batch, graphs []int32) (*Batch, error) {
	nodes, edges, weighted := 0, 0, false
	for _, g := range graphs {
		if g < 0 || int(g) >= len(c.Graphs) {
			return nil, fmt.Errorf("there is no graph %d: %s has the graphs 0 to %d", g, c.Name, len(c.Graphs)-1)
		}
		nodes += c.Graphs[g].N
		edges += len(c.Graphs[g].Edges)
		weighted = weighted || c.Graphs[g].Weights != nil
	}
	if len(graphs) == 0 {
		return nil, fmt.Errorf("a batch needs at least one graph")
	}
	if nodes > maxBatch || edges > maxBatch {
		return nil, fmt.Errorf("a batch of %d graphs has %d nodes and %d edges, more than %d; take fewer graphs", len(graphs), nodes, edges, maxBatch)
	}
	if b == nil {
		b = &Batch{}
	}
	if b.Graph == nil {
		b.Graph = &graph.Graph{}
	}
	if b.X == nil {
		b.X = &Features{}
	}
	u := b.Graph
	u.N, u.Directed = nodes, c.Graphs[graphs[0]].Directed
	u.Edges = slices.Grow(u.Edges[:0], edges)
	if !weighted {
		u.Weights = nil
	} else if u.Weights == nil {
		u.Weights = make([]float32, 0, edges)
	}
	u.Weights = u.Weights[:0]
	b.GraphOf = slices.Grow(b.GraphOf[:0], nodes)
	b.Offset = append(slices.Grow(b.Offset[:0], len(graphs)+1), 0)
	b.Labels = slices.Grow(b.Labels[:0], len(graphs))
	for k, g := range graphs {
		one, base := c.Graphs[g], b.Offset[k]
		for _, e := range one.Edges { // sorted, and so is what they are shifted to
			u.Edges = append(u.Edges, [2]int32{e[0] + base, e[1] + base})
		}
		switch {
		case one.Weights != nil:
			u.Weights = append(u.Weights, one.Weights...)
		case weighted:
			for range one.Edges {
				u.Weights = append(u.Weights, 1)
			}
		}
		for range one.N {
			b.GraphOf = append(b.GraphOf, int64(k))
		}
		b.Offset = append(b.Offset, base+int32(one.N))
		b.Labels = append(b.Labels, c.Labels[g])
	}
	b.X.gather(c.X, graphs, c.Offset, nodes)
	return b, nil
}

// maxBatch bounds nodes and edges of a batch, which 32-bit numbers count.
const maxBatch = 1<<30 - 1

// gather makes f the rows of x that belong to graphs: from offset[g] to
// offset[g+1], one after another.
func (f *Features) gather(x *Features, graphs, offset []int32, rows int) {
	f.Rows, f.Cols = rows, x.Cols
	if !x.IsSparse() {
		f.RowPtr, f.Col, f.Val = nil, f.Col[:0], f.Val[:0]
		f.Dense = slices.Grow(f.Dense[:0], rows*x.Cols)
		for _, g := range graphs {
			f.Dense = append(f.Dense, x.Dense[int(offset[g])*x.Cols:int(offset[g+1])*x.Cols]...)
		}
		return
	}
	entries := 0
	for _, g := range graphs {
		entries += int(x.RowPtr[offset[g+1]] - x.RowPtr[offset[g]])
	}
	f.Dense = nil
	f.RowPtr = append(slices.Grow(f.RowPtr[:0], rows+1), 0)
	f.Col = slices.Grow(f.Col[:0], entries)
	f.Val = slices.Grow(f.Val[:0], entries)
	for _, g := range graphs {
		lo, hi := x.RowPtr[offset[g]], x.RowPtr[offset[g+1]]
		shift := int32(len(f.Col)) - lo
		for _, p := range x.RowPtr[offset[g]+1 : offset[g+1]+1] {
			f.RowPtr = append(f.RowPtr, p+shift)
		}
		f.Col = append(f.Col, x.Col[lo:hi]...)
		f.Val = append(f.Val, x.Val[lo:hi]...)
	}
}
