package kernels

import (
	"fmt"
	"slices"
	"sort"
)

// CSR is the structure of a sparse matrix or graph, compressed by rows: the
// entries of row r are RowPtr[r] ≤ e < RowPtr[r+1] and entry e lies in column
// Col[e]. Values are kept apart, one float32 for each entry.
type CSR struct {
	Rows, Cols int
	RowPtr     []int32 // Rows+1 offsets, first 0, never falling
	Col        []int32 // one column for each entry
	// First is the column that is row 0 itself, and those behind it the further rows': where the
	// rows are some of a graph's, and the columns all of its nodes.
	First int

	// Perm, where not nil, says which value belongs to an entry: entry e has
	// vals[Perm[e]]. A transposed structure has it, so that both directions
	// share one array of values.
	Perm []int32

	of     *CSR // of which it is the transpose
	sorted bool // columns rise in the rows of that
}

// NNZ returns the number of entries.
func (s *CSR) NNZ() int { return len(s.Col) }

// Validate checks that kernels may trust the structure. Kernels do not check by
// themselves, so a structure from outside must pass here once.
func (s *CSR) Validate() error {
	if s.Rows < 0 || s.Cols < 0 {
		return fmt.Errorf("sparse matrix: negative shape [%d,%d]", s.Rows, s.Cols)
	}
	if len(s.RowPtr) != s.Rows+1 {
		return fmt.Errorf("sparse matrix: %d row offsets for %d rows, want %d", len(s.RowPtr), s.Rows, s.Rows+1)
	}
	if s.RowPtr[0] != 0 || int(s.RowPtr[s.Rows]) != len(s.Col) {
		return fmt.Errorf("sparse matrix: row offsets run from %d to %d, want 0 to %d (the number of entries)", s.RowPtr[0], s.RowPtr[s.Rows], len(s.Col))
	}
	for r := range s.Rows {
		if s.RowPtr[r] > s.RowPtr[r+1] {
			return fmt.Errorf("sparse matrix: row offsets fall from %d to %d at row %d", s.RowPtr[r], s.RowPtr[r+1], r)
		}
	}
	for e, c := range s.Col {
		if c < 0 || int(c) >= s.Cols {
			return fmt.Errorf("sparse matrix: entry %d has column %d, outside 0…%d", e, c, s.Cols-1)
		}
	}
	if s.Perm == nil {
		return nil
	}
	if len(s.Perm) != len(s.Col) {
		return fmt.Errorf("sparse matrix: %d permutation entries for %d entries", len(s.Perm), len(s.Col))
	}
	seen := make([]bool, len(s.Perm))
	for e, i := range s.Perm {
		if i < 0 || int(i) >= len(seen) || seen[i] {
			return fmt.Errorf("sparse matrix: Perm[%d] = %d is out of range or repeated", e, i)
		}
		seen[i] = true
	}
	return nil
}

// Transpose returns the structure with rows and columns exchanged, the entries
// of each row in the order of their old rows, with Perm pointing at the values
// of c's entries.
func Transpose(c *CSR) *CSR {
	t := &CSR{}
	TransposeTo(t, c)
	return t
}

// TransposeTo makes t the transpose of c (see [Transpose]), in t's own memory
// where that suffices. t and c must not share any.
func TransposeTo(t, c *CSR) {
	t.Rows, t.Cols = c.Cols, c.Rows
	// One row more than there are: the start of row r is counted at r+2, moved
	// to r+1 by the sums and to r by the entries that pass.
	ptr := slices.Grow(t.RowPtr[:0], c.Cols+2)[:c.Cols+2]
	t.Col = slices.Grow(t.Col[:0], len(c.Col))[:len(c.Col)]
	t.Perm = slices.Grow(t.Perm[:0], len(c.Col))[:len(c.Col)]
	clear(ptr)
	for _, col := range c.Col {
		ptr[col+2]++
	}
	for i := range c.Cols {
		ptr[i+2] += ptr[i+1]
	}
	t.of, t.sorted = c, true
	for r := range c.Rows {
		for e := c.RowPtr[r]; e < c.RowPtr[r+1]; e++ {
			t.sorted = t.sorted && (e == c.RowPtr[r] || c.Col[e-1] <= c.Col[e])
			at := ptr[c.Col[e]+1]
			ptr[c.Col[e]+1]++
			t.Col[at] = int32(r)
			t.Perm[at] = e
			if c.Perm != nil {
				t.Perm[at] = c.Perm[e]
			}
		}
	}
	t.RowPtr = ptr[:c.Cols+1]
}

// value returns the index of entry e's value.
func (s *CSR) value(e int32) int32 {
	if s.Perm != nil {
		return s.Perm[e]
	}
	return e
}

// rowAt returns the first row of chunk c when the rows are cut into chunks of
// about per units of work, a row costing its entries and two more.
func (s *CSR) rowAt(c, per int) int {
	return sort.Search(s.Rows, func(r int) bool { return int(s.RowPtr[r])+2*r >= c*per })
}

// chunks returns the work of one chunk, for rows of f columns, and the number
// of chunks.
func (s *CSR) chunks(f int) (per, n int) {
	per = max(16, 4*elemChunk/max(f, 1))
	return per, ceilDiv(len(s.Col)+2*s.Rows, per)
}

func (s *CSR) check(kernel string) {
	need(kernel, "RowPtr", len(s.RowPtr), s.Rows+1)
	needIfAny(kernel, "Perm", s.Perm, len(s.Col))
}
