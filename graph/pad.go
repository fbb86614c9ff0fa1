package graph

// Pad appends nodes without entries, and entries of no node, to a structure that was
// just rebuilt until there are that many, so that graphs of many sizes are brought to
// few. The entries have places behind the last row's in both directions, and none in
// EdgeOf.
func (s *Structure) Pad(nodes, entries int) {
	in, out := s.In, s.Out
	for p := s.E; p < entries; p++ {
		in.Col, out.Perm = append(in.Col, 0), append(out.Perm, int32(p))
		if !s.shared {
			out.Col = append(out.Col, 0)
		}
	}
	for i := s.N; i < nodes; i++ {
		in.RowPtr = append(in.RowPtr, in.RowPtr[s.N])
		if !s.shared {
			out.RowPtr = append(out.RowPtr, out.RowPtr[s.N])
		}
	}
	if s.shared {
		out.RowPtr, out.Col = in.RowPtr, in.Col
	}
	s.N, s.E = max(s.N, nodes), max(s.E, entries)
	in.Rows, in.Cols, out.Rows, out.Cols = s.N, s.N, s.N, s.N
}

// PadMembers appends nodes that are of no graph to a structure of
// [Structure.RebuildBatchIndex] until there are that many.
func (s *Structure) PadMembers(nodes int) {
	in, out := s.In, s.Out
	for v := s.E; v < nodes; v++ {
		in.Col, out.Col, out.RowPtr = append(in.Col, 0), append(out.Col, 0), append(out.RowPtr, int32(s.E))
	}
	s.E = max(s.E, nodes)
	in.Cols, out.Rows = s.E, s.E
}
