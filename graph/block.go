package graph

import "fmt"

// Block is the part of a graph that one layer of message passing reads to compute some
// nodes only, its targets: the structure of the entries into them. The
// sources are the targets, in their order, and then their other in-neighbours in
// the order in which they are met, so that what is computed for the sources
// begins with the targets. (PyTorch Geometric calls it a bipartite graph, DGL a block of a
// mini-batch.)
//
// Memory is reused by the next Rebuild, so that a training step that draws other
// targets allocates nothing once the largest block has been seen.
type Block struct {
	// Structure has N = targets, E = entries; In is [targets, sources] with the
	// entries of a row in the order of the whole graph, Out its transpose.
	Structure
	Sources []int64 // node numbers in the whole graph
	Entries []int64 // each entry's number in the whole graph
	// NumValid is the number of sources that Pad has not appended.
	NumValid int

	first numbering // of nodes: the first place among the sources
}

// Rebuild makes f the block of the targets, node numbers of s. A
// target may occur twice; the entries then lead to its first place. It returns an
// error that names a target outside the graph.
func (f *Block) Rebuild(s *Structure, targets []int64) error {
	return f.RebuildFirst(s, targets, len(targets))
}

// RebuildFirst is Rebuild with entries into the first n targets only. The others,
// which [Block.Pad] has appended to the block that these are the sources of, have
// their place among the sources and no entries.
func (f *Block) RebuildFirst(s *Structure, targets []int64, n int) error {
	f.first.begin(s.N)
	f.Sources = f.Sources[:0]
	entries := 0
	for i, t := range targets {
		if t < 0 || t >= int64(s.N) {
			return fmt.Errorf("target %d at position %d is outside 0..%d", t, i, s.N-1)
		}
		f.first.meet(t, len(f.Sources))
		f.Sources = append(f.Sources, t)
		if i < n {
			entries += int(s.In.RowPtr[t+1] - s.In.RowPtr[t])
		}
	}
	in, out := f.matrices()
	f.N, f.E = len(targets), entries
	in.RowPtr, in.Col, f.Entries = resize(in.RowPtr, f.N+1), resize(in.Col, entries), resize(f.Entries, entries)
	in.RowPtr[0] = 0
	at := int32(0)
	for i, t := range targets {
		first, last := s.In.RowPtr[t], s.In.RowPtr[t+1]
		if i >= n {
			last = first
		}
		for e := first; e < last; e++ {
			j := int64(s.In.Col[e])
			place, isNew := f.first.meet(j, len(f.Sources))
			if isNew {
				f.Sources = append(f.Sources, j)
			}
			in.Col[at] = place
			f.Entries[at] = int64(e)
			at++
		}
		in.RowPtr[i+1] = at
	}
	in.Rows, in.Cols, out.Rows, out.Cols = f.N, len(f.Sources), len(f.Sources), f.N
	f.NumValid = len(f.Sources)
	f.transpose()
	return nil
}

// Pad appends to a block that was just rebuilt until there are that many sources and
// entries, so that steps whose blocks differ a little have the same sizes. The
// sources appended are nodes of the block again, one after the other; the entries
// are of no row of either direction: they have places in Entries and behind the last
// row's in In and Out. A block without sources, or without entries, stays without.
func (f *Block) Pad(sources, entries int) {
	if f.NumValid == 0 {
		return
	}
	in, out := f.In, f.Out
	for i := 0; len(f.Sources) < sources; i++ {
		if i == f.NumValid {
			i = 0
		}
		f.Sources = append(f.Sources, f.Sources[i])
		out.RowPtr = append(out.RowPtr, int32(f.E))
	}
	in.Cols, out.Rows = len(f.Sources), len(f.Sources)
	if f.E == 0 {
		return
	}
	for i := f.E; i < entries; i++ {
		f.Entries = append(f.Entries, f.Entries[0])
		in.Col, out.Col, out.Perm = append(in.Col, 0), append(out.Col, 0), append(out.Perm, int32(i))
	}
	f.E = len(f.Entries)
}

// Bytes returns the memory that the block holds.
func (f *Block) Bytes() int {
	return f.Structure.Bytes() + 8*(cap(f.Sources)+cap(f.Entries)+cap(f.first.of))
}
