package graph

// numbering numbers nodes of a graph as they are met, anew each round. A node's number lies beside the
// round that it is of, so that meeting one in a large graph reads one line of memory.
type numbering struct {
	of      []numbered
	round   uint32
	touched uint32
}

type numbered struct {
	round uint32
	place int32
}

// begin begins a round for a graph of n nodes.
func (m *numbering) begin(n int) {
	if len(m.of) < n {
		*m = numbering{of: make([]numbered, n)}
	}
	if m.round++; m.round == 0 { // the counter came round: no old mark may look new
		clear(m.of)
		m.round = 1
	}
}

// meet gives a node the number next, unless it has one, and returns its number and whether it had none.
func (m *numbering) meet(v int64, next int) (place int32, isNew bool) {
	x := &m.of[v]
	if x.round != m.round {
		*x, isNew = numbered{m.round, int32(next)}, true
	}
	return x.place, isNew
}

// find returns the number of a node, and whether it has one.
func (m *numbering) find(v int32) (place int32, met bool) {
	x := m.of[v]
	return x.place, x.round == m.round
}

// touch has what meeting a node reads come from memory, beside what it does for others, which do not wait
// for each other.
func (m *numbering) touch(v int32) { m.touched ^= m.of[v].round }
