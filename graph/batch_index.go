package graph

// RebuildBatchIndex makes s the block that leads from the nodes of a batch to their
// graphs: graph g has the nodes offset[g] ≤ v < offset[g+1]. Its targets are the
// graphs, its sources the nodes, and entry v comes from node v; so a sum over the
// entries into g is a sum over the nodes of g. It reuses the memory of s.
func (s *Structure) RebuildBatchIndex(offset []int32) {
	graphs := len(offset) - 1
	nodes := int(offset[graphs])
	in, out := s.matrices()
	s.N, s.E = graphs, nodes
	in.Rows, in.Cols, out.Rows, out.Cols = graphs, nodes, nodes, graphs
	in.RowPtr = append(in.RowPtr[:0], offset...)
	in.Col, out.Col = resize(in.Col, nodes), resize(out.Col, nodes)
	out.RowPtr = resize(out.RowPtr, nodes+1)
	s.EdgeOf = resize(s.EdgeOf, nodes)
	for v := range nodes {
		in.Col[v], out.RowPtr[v], s.EdgeOf[v] = int32(v), int32(v), int32(v)
	}
	out.RowPtr[nodes] = int32(nodes)
	for g := range graphs {
		for v := offset[g]; v < offset[g+1]; v++ {
			out.Col[v] = int32(g)
		}
	}
	in.Perm, out.Perm = nil, nil
}
