package graph

import (
	"slices"

	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Structure is the form of a graph that kernels execute on: its directed
// entries, sorted by target, then source. An undirected edge gives two entries,
// one each way; a directed edge gives one. Self-loops are not stored: layers
// that want them (GCN) add them in their own arithmetic.
//
// Entry p of a message-passing sum Σ_p val[p]·h[source(p)] over the rows of In
// is what all values per entry are ordered by.
type Structure struct {
	N int // nodes
	E int // directed entries

	// In has the targets as rows and the sources as columns, both ascending.
	// Its Perm is nil: entry p is stored at p.
	In *kernels.CSR
	// Out is the transpose: sources as rows, targets as columns. Out.Perm[j]
	// is the entry that is stored at j. In an undirected graph Out shares its
	// RowPtr and Col with In.
	Out *kernels.CSR
	// EdgeOf[p] is the position in Graph.Edges of the edge that entry p comes
	// from.
	EdgeOf []int32

	cursor []int32 // [N] scratch of Rebuild
	shared bool    // Out.RowPtr and Out.Col are In's
}

// Structure builds the structure of g.
func (g *Graph) Structure() *Structure {
	s := &Structure{}
	s.Rebuild(g)
	return s
}

// UndirectedBytes bounds what g.Undirected().Structure() takes while it is made: copies of the edges and
// their order as they are sorted, and the entries in both directions. It is 0 where g is undirected, since
// its structure is there anyway.
func (g *Graph) UndirectedBytes() int {
	if !g.Directed {
		return 0
	}
	return 48*len(g.Edges) + 16*g.N
}

// Rebuild makes s the structure of g, reusing its memory, in time O(N + E). What
// was read from s before (its matrices included) is overwritten. g must be
// valid (see [Graph.Validate]).
func (s *Structure) Rebuild(g *Graph) {
	n, m := g.N, len(g.Edges)
	e := m
	if !g.Directed {
		e *= 2
	}
	in, out := s.matrices()
	s.N, s.E = n, e
	in.Rows, in.Cols, out.Rows, out.Cols = n, n, n, n
	in.RowPtr = resize(in.RowPtr, n+1)
	in.Col = resize(in.Col, e)
	in.Perm = nil
	s.EdgeOf = resize(s.EdgeOf, e)
	out.Perm = resize(out.Perm, e)
	s.cursor = resize(s.cursor, n)

	// Scattering edges in their order of first, then second node into their
	// targets' rows leaves every row sorted by source: a row's sources below
	// the target come from edges {source, target}, all of which precede the
	// edges {target, source} that give those above it.
	clear(in.RowPtr)
	for _, edge := range g.Edges {
		in.RowPtr[edge[1]+1]++
	}
	if !g.Directed {
		for _, edge := range g.Edges {
			in.RowPtr[edge[0]+1]++
		}
	}
	for i := range n {
		s.cursor[i] = in.RowPtr[i]
		in.RowPtr[i+1] += in.RowPtr[i]
	}
	for i, edge := range g.Edges {
		u, v := edge[0], edge[1]
		p := s.cursor[v]
		s.cursor[v]++
		in.Col[p], s.EdgeOf[p] = u, int32(i)
		if !g.Directed {
			q := s.cursor[u]
			s.cursor[u]++
			in.Col[q], s.EdgeOf[q] = v, int32(i)
			out.Perm[p], out.Perm[q] = q, p
		}
	}
	if !g.Directed {
		out.RowPtr, out.Col, s.shared = in.RowPtr, in.Col, true
		return
	}
	if s.shared {
		out.RowPtr, out.Col, s.shared = nil, nil, false
	}
	s.transpose()
}

// transpose sets Out from In by counting.
func (s *Structure) transpose() {
	in, out := s.In, s.Out
	n := out.Rows
	out.RowPtr, out.Col, out.Perm = resize(out.RowPtr, n+1), resize(out.Col, s.E), resize(out.Perm, s.E)
	clear(out.RowPtr)
	for _, c := range in.Col {
		out.RowPtr[c+1]++
	}
	s.cursor = resize(s.cursor, n)
	for i := range n {
		s.cursor[i] = out.RowPtr[i]
		out.RowPtr[i+1] += out.RowPtr[i]
	}
	for r := range in.Rows {
		for e := in.RowPtr[r]; e < in.RowPtr[r+1]; e++ {
			k := s.cursor[in.Col[e]]
			s.cursor[in.Col[e]]++
			out.Col[k], out.Perm[k] = int32(r), e
		}
	}
}

// Forward is the structure of an undirected graph with these rows, in their memory, for functions
// that compute no gradients: EdgeOf and Out.Perm are missing.
func Forward(rowPtr, col []int32) *Structure {
	n := len(rowPtr) - 1
	in := &kernels.CSR{Rows: n, Cols: n, RowPtr: rowPtr, Col: col}
	return &Structure{N: n, E: len(col), In: in, Out: in, shared: true}
}

// resize returns x with length n, in its own memory if that suffices. New
// memory gets some room to grow, since refined graphs vary in size.
func resize[T any](x []T, n int) []T {
	if x == nil { // also for 0 elements, since nil says that there are no such values
		return make([]T, n)
	}
	if cap(x) >= n {
		return x[:n]
	}
	return make([]T, n, n+n/8)
}

// matrices returns In and Out, made on first use.
func (s *Structure) matrices() (in, out *kernels.CSR) {
	if s.In == nil {
		s.In, s.Out = &kernels.CSR{}, &kernels.CSR{}
	}
	return s.In, s.Out
}

// EdgeIndex returns the entries as [2, E] int64 in two slices: src[p] → dst[p],
// in entry order. It is what exported models take as edge_index.
func (s *Structure) EdgeIndex() (src, dst []int64) {
	src, dst = make([]int64, s.E), make([]int64, s.E)
	for v := range s.N {
		for p := s.In.RowPtr[v]; p < s.In.RowPtr[v+1]; p++ {
			src[p], dst[p] = int64(s.In.Col[p]), int64(v)
		}
	}
	return src, dst
}

// Spread copies values per edge of the graph to values per entry: dst[p] =
// perEdge[EdgeOf[p]]. A nil perEdge means 1 for every edge, as nil
// Graph.Weights do. Without EdgeOf (see [Forward]) places of edges are counted.
// It returns dst with length E, in new memory if it has no room.
func (s *Structure) Spread(dst, perEdge []float32) []float32 {
	dst = resize(dst, s.E)
	if perEdge == nil {
		for p := range dst {
			dst[p] = 1
		}
		return dst
	}
	for p, i := range s.EdgeOf {
		dst[p] = perEdge[i]
	}
	if s.EdgeOf == nil {
		next, i := slices.Clone(s.In.RowPtr), 0
		for v := range s.N {
			for p := next[v]; p < s.In.RowPtr[v+1]; p++ {
				u := s.In.Col[p]
				dst[p], dst[next[u]] = perEdge[i], perEdge[i]
				next[u]++
				i++
			}
		}
	}
	return dst
}

// MostEntries is how many entries a node has at most.
func (s *Structure) MostEntries() (most int) {
	for v := range s.N {
		most = max(most, int(s.In.RowPtr[v+1]-s.In.RowPtr[v]))
	}
	return most
}

// Bytes returns the memory that the structure holds.
func (s *Structure) Bytes() int {
	if s.In == nil {
		return 0
	}
	n := cap(s.In.RowPtr) + cap(s.In.Col) + cap(s.Out.Perm) + cap(s.EdgeOf) + cap(s.cursor)
	if !s.shared {
		n += cap(s.Out.RowPtr) + cap(s.Out.Col)
	}
	return 4 * n
}
