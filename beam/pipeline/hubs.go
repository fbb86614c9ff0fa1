package pipeline

import (
	"cmp"
	"context"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
)

func init() {
	registerTelling[countFn]()
	register.DoFn4x1[context.Context, int64, func(*[]byte) bool, func([]byte), error](&hubsFn{})
	registerTelling[stepsFn]()
	registerTelling[tellFn]()
	registerJoined[roundRowsFn]()
	registerJoined[hubWeightsFn]()
}

// hubEntries bounds how many entries a node has whose list others are sent. A node of more is a hub, of whose
// entries they learn those only that lead to nodes which they know, from the partitions of these. Pairs of
// hubs, and of nodes that are in as many pairs, are judged where their other ends are. No output depends on it.
var hubEntries int32 = 4096

func (s *state) hub(row int) bool { return s.ptr[row+1]-s.ptr[row] > hubEntries }

// countFn sends how many pairs the nodes of a partition have each node in, which lead to it, to the
// partition of that node. Counts so few that all of them together make no hub are left out.
type countFn struct{}

func (countFn) do(c *call, s *state, sent []*table) error {
	counts := map[int64]int64{}
	for _, x := range s.with(nearPrefix) {
		for _, u := range x.Data.([]int64) {
			if u >= 0 {
				counts[u]++
			}
		}
	}
	for i := range s.n() {
		counts[s.lo+int64(i)] += int64(s.ptr[i+1] - s.ptr[i])
	}
	least, by := int64(hubEntries)/(2*s.Partitions)+1, outbox[[]int64]{} // node and count by turns
	for u, n := range counts {
		if n >= least {
			list := by.to(s.owner(u))
			*list = append(*list, u, n)
		}
	}
	return by.send(c.work, c.out, func(list *[]int64, t *table) { t.put("counts", *list, len(*list)/2, 2) })
}

// hubsFn tells which nodes are in more pairs than half of what makes a hub.
type hubsFn struct{}

func (f *hubsFn) ProcessElement(ctx context.Context, _ int64, counts func(*[]byte) bool, emit func([]byte)) error {
	work := begin(ctx, "candidates")
	defer work.end()
	of := map[int64]int64{}
	if err := work.each(counts, func(t *table) error {
		for x := range slices.Chunk(array[int64](t, "counts"), 2) {
			of[x[0]] += x[1]
		}
		return nil
	}); err != nil {
		return err
	}
	var hubs []int64
	for v, n := range of {
		if n > int64(hubEntries)/2 {
			hubs = append(hubs, v)
		}
	}
	if hubs == nil {
		return nil
	}
	t := newTable()
	t.put("hub", hubs, len(hubs))
	return work.send(toAll(emit), 0, t)
}

// pieces are entries of hubs, each from node to hub.
type pieces struct {
	node, hub []int64
	a         []float32 // what they weigh
}

const hubPrefix = "hub."

func (x *pieces) add(node, hub int64, a float32) {
	x.node, x.hub, x.a = append(x.node, node), append(x.hub, hub), append(x.a, a)
}

func (x *pieces) put(t *table) {
	t.put(hubPrefix+"node", x.node, len(x.node))
	t.put(hubPrefix+"hub", x.hub, len(x.hub))
	t.put(hubPrefix+"a", x.a, len(x.a))
}

func piecesOf(t *table) *pieces {
	return &pieces{array[int64](t, hubPrefix+"node"), array[int64](t, hubPrefix+"hub"), array[float32](t, hubPrefix+"a")}
}

// joinPieces joins those of some tables that are wanted, by hub and then by node.
func joinPieces(sent []*table, want func(node, hub int64) bool) *pieces {
	type place struct {
		node, hub int64
		a         float32
	}
	var all []place
	for _, t := range sent {
		x := piecesOf(t)
		for i, v := range x.node {
			if want(v, x.hub[i]) {
				all = append(all, place{v, x.hub[i], x.a[i]})
			}
		}
	}
	slices.SortFunc(all, func(x, y place) int { return cmp.Or(cmp.Compare(x.hub, y.hub), cmp.Compare(x.node, y.node)) })
	joined := &pieces{}
	for _, x := range all {
		joined.add(x.node, x.hub, x.a)
	}
	return joined
}

// of returns where the entries of a hub are.
func (x *pieces) of(hub int64) (lo, hi int) {
	lo, _ = slices.BinarySearch(x.hub, hub)
	hi, _ = slices.BinarySearch(x.hub, hub+1)
	return lo, hi
}

// tellFn sends the entries of hubs to the partitions of the nodes that they come from.
type tellFn struct{}

func (tellFn) do(c *call, s *state, sent []*table) error {
	a := array[float32](s.table, valuePrefix+weightOfEntry)
	by := outbox[pieces]{}
	for i := range s.n() {
		if !s.hub(i) {
			continue
		}
		for k := s.ptr[i]; k < s.ptr[i+1]; k++ {
			by.to(s.owner(s.col[k])).add(s.col[k], s.lo+int64(i), a[k])
		}
	}
	return by.send(c.work, c.out, func(x *pieces, t *table) {
		t.Metadata["what"] = toldHubs
		x.put(t)
	})
}

// toldHubs is what a message says that nobody asked for: entries of hubs, from nodes of the partition.
const toldHubs = "hubs"

// learn keeps the entries of hubs that come from the partition's nodes, of what was sent, and returns by
// row the hubs.
func (s *state) learn(sent []*table) (hubs map[int32][]int, known *pieces) {
	known = joinPieces(sent, func(int64, int64) bool { return true })
	known.put(s.table)
	hubs = map[int32][]int{}
	for i, v := range known.node {
		hubs[int32(v-s.lo)] = append(hubs[int32(v-s.lo)], i)
	}
	return hubs, known
}

// tellReaders tells partitions that read rows of this one from which of these hubs have entries: others'
// hubs, since each has all entries of its own.
func (c *call) tellReaders(s *state, hubs map[int32][]int, known *pieces) error {
	by := outbox[pieces]{}
	for i, r := range s.rows {
		for _, k := range hubs[r] {
			if to := int64(s.to[i]); s.owner(known.hub[k]) != to {
				by.to(to).add(known.node[k], known.hub[k], known.a[k])
			}
		}
	}
	return by.send(c.work, c.out, (*pieces).put)
}

// surroundings are what a partition knows of nodes of others.
type surroundings struct {
	known  *entries // whole lists
	near   *entries // of hubs, those entries that neighbor_kernel reads
	pieces *pieces  // of hubs
	more   []int64  // nodes that entries of the partition's hubs are kept from, beside those that are known otherwise
}

// keep puts them into the state.
func (x *surroundings) keep(s *state) {
	x.known.put(s.table, entriesPrefix)
	x.near.put(s.table, nearEntriesPrefix)
	x.pieces.put(s.table)
	s.put(hubPrefix+"more", x.more, len(x.more))
}

func (s *state) kept() *surroundings {
	return &surroundings{entriesOf(s.table, entriesPrefix), entriesOf(s.table, nearEntriesPrefix), piecesOf(s.table), array[int64](s.table, hubPrefix+"more")}
}

// shared lists the nodes that have entries to both nodes of a pair of the partition's own hubs.
func (s *state) shared(pairs []int64) (both []int64) {
	row := func(v int64) []int64 {
		if !s.own(v) || !s.hub(int(v-s.lo)) {
			return nil
		}
		return s.col[s.ptr[v-s.lo]:s.ptr[v-s.lo+1]]
	}
	for x := range slices.Chunk(pairs, 2) {
		u := row(x[0])
		for _, v := range row(x[1]) {
			if _, ok := slices.BinarySearch(u, v); ok && len(u) > 0 {
				both = append(both, v)
			}
		}
	}
	slices.Sort(both)
	return slices.Compact(both)
}

// nearGraph has functions of pairs read what neighbor_kernel does in a graph of its own, %near, of the
// entries only that count there, and returns how many these are at most. Others are then not needed of
// nodes with many.
func nearGraph(m *ir.Module) (most int) {
	for _, f := range m.Funcs {
		var g, a *ir.Value
		for _, op := range f.Body {
			if op.Name() != "neighbor_kernel" {
				continue
			}
			most = op.Int("most")
			if g == nil {
				g = &ir.Value{Name: nearArg, Type: ir.GraphType(f.Arg("g").Type.Targets(), "Near")}
				a = &ir.Value{Name: nearWeightArg, Type: ir.T(ir.F32, "Near")}
				f.Args = append(f.Args, g, a)
			}
			if op.Operands[0] = g; op.Operands[1] != nil {
				op.Operands[1] = a
			}
		}
	}
	return most
}

const (
	nearArg       = "near"
	nearWeightArg = "near_a"
)

// stepsFn sends the lists of entries over which two steps lead from nodes of other partitions: of each such
// node those of its neighbours here that would be followed if it had no others, as [graph.TwoStep] follows
// the ones of fewest entries first, up to a bound.
type stepsFn struct{}

func (stepsFn) do(c *call, s *state, sent []*table) error {
	type step struct {
		from         int64
		entries, row int32
	}
	var all []step
	for i := range s.n() {
		for _, v := range s.col[s.ptr[i]:s.ptr[i+1]] {
			if !s.own(v) {
				all = append(all, step{v, s.ptr[i+1] - s.ptr[i], int32(i)})
			}
		}
	}
	slices.SortFunc(all, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.entries, b.entries), cmp.Compare(a.row, b.row))
	})
	for i := 0; i < len(all); {
		to, end, rows, walks := s.owner(all[i].from), int64(0), []int32{}, 0
		for end = s.start(to + 1); i < len(all) && all[i].from < end; i++ {
			if i == 0 || all[i].from != all[i-1].from {
				walks = 0
			}
			if walks += int(all[i].entries) - 1; walks <= graph.TwoStepWalks {
				rows = append(rows, all[i].row)
			}
		}
		if len(rows) == 0 {
			continue
		}
		slices.Sort(rows)
		list, t := newEntries(), newTable()
		for _, r := range slices.Compact(rows) {
			list.add(s.lo+int64(r), s.col, nil, s.ptr[r], s.ptr[r+1])
		}
		list.put(t, entriesPrefix)
		if err := c.tell(to, t); err != nil {
			return err
		}
	}
	return nil
}

// roundRowsFn sends what a round of robust evidence reads of neighbours: rows, lists of entries, and those
// of hubs. A hub's partition is not sent what the hub alone reads.
type roundRowsFn struct{ Values []string }

func (f roundRowsFn) do(c *call, s *state, sent []*table) error {
	hubs, known := s.learn(sent)
	// Whether a row is read in another partition, and not by one hub alone.
	isRead := func(to int64, r int32) bool {
		read, hubsThere := 0, 0 // by how many nodes there
		for _, v := range s.col[s.ptr[r]:s.ptr[r+1]] {
			if s.owner(v) == to {
				read++
			}
		}
		others := false
		for _, at := range hubs[r] {
			if s.owner(known.hub[at]) == to {
				hubsThere++
			} else {
				others = true
			}
		}
		// What two hubs share is read where they are judged.
		return read > hubsThere || hubsThere > 1 || others || s.hub(int(r))
	}
	for to, rows := range s.readers() {
		rows = slices.DeleteFunc(rows, func(r int32) bool { return !isRead(to, r) })
		if len(rows) == 0 {
			continue
		}
		t, err := s.some(rows, f.Values)
		if err != nil {
			return err
		}
		s.putLists(t, rows, 0)
		if err := c.tell(to, t); err != nil {
			return err
		}
	}
	return c.tellReaders(s, hubs, known)
}

// hubWeightsFn gives the entries of a partition's hubs the weights that were found where they come from.
type hubWeightsFn struct{}

func (hubWeightsFn) do(c *call, s *state, sent []*table) error {
	a := array[float32](s.table, valuePrefix+weightOfEntry)
	for _, t := range sent {
		x := piecesOf(t)
		for i, hub := range x.hub {
			a[entryOf(s.ptr, s.col, int(hub-s.lo), x.node[i])] = x.a[i]
		}
	}
	return nil
}
