package infer

import (
	"runtime"
	"slices"
)

// numbering gives rows the numbers of their nodes.
type numbering struct {
	next    int     // the number of the next new node
	numbers []int32 // [rows], ascending; nil where each row is its number
}

// number returns the number of a row.
func (n *numbering) number(row int) int {
	if n.numbers == nil {
		return row
	}
	return int(n.numbers[row])
}

// row returns the row of a number below next, −1 where there is none.
func (n *numbering) row(number int) int {
	if n.numbers == nil {
		return number
	}
	row, ok := slices.BinarySearch(n.numbers, int32(number))
	if !ok {
		return -1
	}
	return row
}

// add gives one more row the next number.
func (n *numbering) add() {
	if n.numbers != nil {
		n.numbers = append(n.numbers, int32(n.next))
	}
	n.next++
}

// dense returns the version without the rows of deleted nodes, and without answers that are not made ahead.
func (s *Snapshot) dense() *Snapshot {
	if s.deleted.count == 0 {
		return s
	}
	rows, g := s.living()
	t := &Snapshot{Version: s.Version, r: s.r, graph: g, x: matrixOf(s.x.appendRows(nil, s.deleted.has), s.x.cols), checksum: s.checksum, numbering: numbering{next: s.next}}
	c := len(s.r.p.manifest.Classes)
	for _, v := range rows {
		t.numbers = append(t.numbers, int32(s.number(int(v))))
		if s.ids != nil {
			t.ids = append(t.ids, s.ids[v])
		}
		if s.logits != nil {
			t.logits, t.probabilities = append(t.logits, s.logits[int(v)*c:][:c]...), append(t.probabilities, s.probabilities[int(v)*c:][:c]...)
		}
	}
	return t
}

// condenseAfter is how many deleted nodes may have rows, where there are no more nodes than that.
var condenseAfter = 1024

// condense takes the rows of deleted nodes out of the latest version, where these are many, and gives their memory
// back. No version may be made meanwhile.
func (r *Graph) condense(many int) (done bool) {
	s := r.current.Load()
	if s.deleted.count == 0 || s.deleted.count < many || r.inc == nil && s.pending != nil {
		return false
	}
	t := s.dense()
	if r.inc != nil {
		r.inc.close()
		r.inc = nil
		runtime.GC() // or there would be two
		inc, err := newIncremental(r, t)
		if err != nil {
			inc.close()
			r.advance, r.more.node, r.more.edge = r.exact, 0, 0
			r.log("every update computes the whole graph anew from now on: %v", err)
			return false
		}
		r.inc, r.advance = inc, inc.advance
		if inc.base != nil {
			t.logits, t.probabilities = inc.base.logits, inc.base.probabilities
		}
	}
	r.memory.Shrink(r.memory.Bytes() - r.bytes(t))
	r.show(t)
	return true
}
