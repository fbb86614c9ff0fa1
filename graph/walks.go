package graph

import (
	"github.com/gsrc-dev/gsrc/rng"
)

// walker draws the random walks of DeepWalk. Walk w is a function of the stream
// and of w alone, so walks need not be kept: they are drawn again where needed.
type walker struct {
	rowPtr, col []int32 // neighbours
	starts      []int32 // [walks] first node of each
	s           rng.Stream
}

// newWalker prepares perNode walks from every node that has a neighbour, in
// passes over all nodes, each pass in an order of its own. Edges are walked in
// both directions.
func newWalker(g *Graph, perNode, length int, seed uint64) *walker {
	st := g.Undirected().Structure()
	s := rng.New(seed, "deepwalk")
	w := &walker{rowPtr: st.In.RowPtr, col: st.In.Col, s: s.Sub("walk")}
	var nodes []int32
	for v := range g.N {
		if w.rowPtr[v] < w.rowPtr[v+1] {
			nodes = append(nodes, int32(v))
		}
	}
	w.starts = make([]int32, 0, perNode*len(nodes))
	for pass := range perNode {
		for _, i := range s.Sub("order").At(uint64(pass)).Perm(len(nodes)) {
			w.starts = append(w.starts, nodes[i])
		}
	}
	return w
}

// walk writes walk number i to dst, which has the walks' length.
func (w *walker) walk(i int, dst []int32) {
	s := w.s.At(uint64(i))
	v := w.starts[i]
	var words [4]uint32
	for t := range dst {
		dst[t] = v
		if t%4 == 0 {
			words = s.Block(uint64(t/4), 0)
		}
		// The bias of the multiplication is below degree/2^32.
		lo := w.rowPtr[v]
		degree := uint64(w.rowPtr[v+1] - lo)
		v = w.col[uint64(lo)+uint64(words[t%4])*degree>>32]
	}
}
