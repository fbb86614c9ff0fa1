package pipeline

import (
	"cmp"
	"maps"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func init() {
	registerJoined[twoStepFn]()
	registerJoined[aroundFn]()
	registerJoined[judgeFn]()
	registerJoined[roundFn]()
}

// Evidence for a pair reads rows of both ends, and their neighbours. The stages of tables give rows,
// which are exchanged, and the functions of the stage of pairs judge.
const (
	tablesStage = "tables"
	pairsStage  = "pairs"
)

// weightOfEntry is the value by entry that evidence weighs the graph by.
const weightOfEntry = "a"

// judge gives pairs probabilities by evidence, and what it says by source if it is asked for.
func (b *builder) judge(states beam.PCollection, bySource bool) beam.PCollection {
	s := b.scope.Scope("judge")
	open := len(b.evidence.Rounds) > 0
	f := judgeFn{Model: b.model, Existing: models.ExistingFunc, Missing: models.MissingFunc, Kept: open}
	if bySource {
		f.Sources = models.SourcesFunc
	}
	states, _ = alone(s, "ingest", weighFn{weightOfEntry, 1}, states)
	states = b.judgePairs(s, states, f)
	if !open {
		return states
	}
	for r := range b.evidence.Rounds {
		states = b.round(s, states, models.WeightFunc(r+1))
	}
	return b.judgePairs(s, states, judgeFn{Model: b.model, Existing: models.ExistingFunc + models.Weighed, Missing: models.MissingFunc + models.Weighed})
}

// round weighs the graph by a function of its edges. Entries of hubs are weighed where they come from.
func (b *builder) round(s beam.Scope, states beam.PCollection, name string) beam.PCollection {
	states = b.layers(s, states, name, "x", weightOfEntry)
	told := telling(s, name, tellFn{}, states)
	states, rows := joined(s, name, roundRowsFn{slices.Sorted(maps.Keys(b.stages[name].Results))}, states, told)
	states, weights := joined(s, "judge", roundFn{b.model, name}, states, rows)
	states, _ = joined(s, "judge", hubWeightsFn{}, states, weights)
	return states
}

func (b *builder) judgePairs(s beam.Scope, states beam.PCollection, f judgeFn) beam.PCollection {
	states = b.layers(s, states, tablesStage, "x", weightOfEntry)
	all := slices.Sorted(maps.Keys(b.stages[tablesStage].Results))
	f.Around, f.Near, f.Most = aroundValues(b.evidence.Pairs, "common_neighbors"), aroundValues(b.evidence.Pairs, "neighbor_kernel"), b.near
	asked := telling(s, "judge", askFn{Hubs: true}, states)
	states, lists := joined(s, "judge", answerFn{Lists: true, Near: b.near}, states, asked)
	states, asked = joined(s, "judge", aroundFn{b.near}, states, lists)
	values := map[string][]string{askRows: all, askAround: f.Around, askNear: slices.Compact(slices.Sorted(slices.Values(slices.Concat(f.Around, f.Near))))}
	states, rows := joined(s, "judge", answerFn{Values: values}, states, asked)
	states, _ = joined(s, "judge", f, states, rows)
	return states
}

// aroundValues names the tables that an operation of functions of pairs reads of their ends' neighbours.
func aroundValues(m *ir.Module, name string) (names []string) {
	for _, f := range m.Funcs {
		for _, op := range f.Body {
			if op.Name() != name {
				continue
			}
			for _, v := range op.Operands[1:] {
				if v != nil && v.Type.Rank() > 0 && v.Type.Dims[0] == f.Arg("g").Type.Targets() && slices.Contains(f.Args, v) {
					names = append(names, v.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// entries are those of several nodes, with what they weigh, if anything.
type entries struct {
	node []int64
	ptr  []int32
	col  []int64
	a    []float32
}

func newEntries() *entries { return &entries{ptr: []int32{0}} }

// add adds the entries of a node, which are from lo to hi among others.
func (e *entries) add(node int64, col []int64, a []float32, lo, hi int32) {
	e.node, e.col = append(e.node, node), append(e.col, col[lo:hi]...)
	if a != nil {
		e.a = append(e.a, a[lo:hi]...)
	}
	e.ptr = append(e.ptr, int32(len(e.col)))
}

// addNear adds those entries of a node that neighbor_kernel reads.
func (e *entries) addNear(node int64, col []int64, a []float32, lo, hi int32, most int) {
	n := int(hi - lo)
	count := min(n, most)
	for t := range count {
		k := int(lo) + t*n/count
		e.col = append(e.col, col[k])
		if a != nil {
			e.a = append(e.a, a[k])
		}
	}
	e.node, e.ptr = append(e.node, node), append(e.ptr, int32(len(e.col)))
}

const (
	entriesPrefix     = "entries."
	nearEntriesPrefix = "near_entries."
)

// entriesOf returns those in a table.
func entriesOf(t *table, prefix string) *entries {
	return &entries{array[int64](t, prefix+"node"), array[int32](t, prefix+"ptr"), array[int64](t, prefix+"col"), array[float32](t, prefix+"a")}
}

func (e *entries) put(t *table, prefix string) {
	t.put(prefix+"node", e.node, len(e.node))
	t.put(prefix+"ptr", e.ptr, len(e.ptr))
	t.put(prefix+"col", e.col, len(e.col))
	if len(e.a) > 0 {
		t.put(prefix+"a", e.a, len(e.a))
	}
}

// joinEntries joins those that were sent, by node.
func joinEntries(sent []*table, prefix string) *entries {
	type place struct {
		of *entries
		i  int
	}
	var all []place
	for _, t := range sent {
		e := entriesOf(t, prefix)
		for i := range e.node {
			all = append(all, place{e, i})
		}
	}
	slices.SortFunc(all, func(x, y place) int { return cmp.Compare(x.of.node[x.i], y.of.node[y.i]) })
	joined := newEntries()
	for _, x := range all {
		joined.add(x.of.node[x.i], x.of.col, x.of.a, x.of.ptr[x.i], x.of.ptr[x.i+1])
	}
	return joined
}

// around is the graph of a partition's nodes, of others whose entries are known, and of the
// neighbours of all these. Its numbers ascend as those of all nodes do, so that what is computed
// of a node's entries has the bits that it has in the whole graph. Of hubs it has those entries that
// come from nodes which are here for others' sake.
type around struct {
	*graph.Structure
	s       *state
	own     *entries      // of the partition's nodes
	x       *surroundings // what is known of others
	outside []int64       // nodes of other partitions
	before  int           // of these, those in front of the partition's own
	a       []float32
	near    *graph.Structure // the entries that neighbor_kernel reads, if any
	nearA   []float32
}

// around has the entries in near if an operation reads most of a node. Hubs have more than so many entries.
func (s *state) around(x *surroundings, most int, hub int32) *around {
	own := &entries{ptr: s.ptr, col: s.col, a: array[float32](s.table, valuePrefix+weightOfEntry)}
	g, near := &around{s: s, own: own, x: x}, newEntries()
	lists := [][]int64{x.known.node, x.known.col, x.near.node, x.near.col, x.pieces.node, x.pieces.hub, x.more}
	for i := range s.n() {
		if s.ptr[i+1]-s.ptr[i] <= hub {
			lists = append(lists, s.col[s.ptr[i]:s.ptr[i+1]])
		}
		near.addNear(s.lo+int64(i), own.col, own.a, s.ptr[i], s.ptr[i+1], most)
	}
	g.outside = s.outside(append(lists, near.col)...)
	g.before, _ = slices.BinarySearch(g.outside, s.lo)
	for _, e := range []*entries{x.known, x.near} {
		for i, v := range e.node {
			near.addNear(v, e.col, e.a, e.ptr[i], e.ptr[i+1], most)
		}
	}
	rows := map[int64]int{}
	for i, v := range near.node {
		rows[v] = i
	}
	n := s.n() + len(g.outside)
	in, few := newCSR(n), newCSR(n)
	add := func(to *kernels.CSR, a *[]float32, e *entries, lo, hi int) {
		for k := lo; k < hi; k++ {
			at, ok := g.find(e.col[k])
			if !ok {
				continue // of a hub of the partition
			}
			to.Col = append(to.Col, int32(at))
			if e.a != nil {
				*a = append(*a, e.a[k])
			}
		}
	}
	for i := range n {
		v := g.node(i)
		e, lo, hi := g.entriesOf(v)
		add(in, &g.a, e, lo, hi)
		if r, ok := rows[v]; ok {
			add(few, &g.nearA, near, int(near.ptr[r]), int(near.ptr[r+1]))
		}
		in.RowPtr, few.RowPtr = append(in.RowPtr, int32(len(in.Col))), append(few.RowPtr, int32(len(few.Col)))
	}
	g.Structure = &graph.Structure{N: n, E: len(in.Col), In: in, Out: in}
	g.near = &graph.Structure{N: n, E: len(few.Col), In: few, Out: few}
	return g
}

// entriesOf returns the entries of a node that are known: some from lo to hi.
func (g *around) entriesOf(v int64) (e *entries, lo, hi int) {
	if g.s.own(v) {
		return g.own, int(g.own.ptr[v-g.s.lo]), int(g.own.ptr[v-g.s.lo+1])
	}
	if at, ok := slices.BinarySearch(g.x.known.node, v); ok {
		return g.x.known, int(g.x.known.ptr[at]), int(g.x.known.ptr[at+1])
	}
	lo, hi = g.x.pieces.of(v)
	return &entries{col: g.x.pieces.node, a: g.x.pieces.a}, lo, hi
}

func newCSR(n int) *kernels.CSR {
	return &kernels.CSR{Rows: n, Cols: n, RowPtr: make([]int32, 1, n+1)}
}

// find returns the number of a node here, if it is.
func (g *around) find(v int64) (int64, bool) {
	if g.s.own(v) {
		return int64(g.before) + v - g.s.lo, true
	}
	at, ok := slices.BinarySearch(g.outside, v)
	if at >= g.before {
		at += g.s.n()
	}
	return int64(at), ok
}

// number is that of a node which is here.
func (g *around) number(v int64) int64 {
	at, _ := g.find(v)
	return at
}

// node is the one that has a number here.
func (g *around) node(i int) int64 {
	switch {
	case i < g.before:
		return g.outside[i]
	case i < g.before+g.s.n():
		return g.s.lo + int64(i-g.before)
	}
	return g.outside[i-g.s.n()]
}

// rows returns those of a value, which are zeros of nodes that nothing was sent of.
func (g *around) rows(name string, needed []int64, sent []*table) (*runtime.Buffer, error) {
	all, shape, err := g.s.gather(name, g.outside, needed, sent)
	if err != nil {
		return nil, err
	}
	w, n := width(shape), g.s.n()
	return runtime.F32(slices.Concat(all[n*w:(n+g.before)*w], all[:n*w], all[(n+g.before)*w:]), shape...), nil
}

// pairs are judged by functions of a stage.
type pairs struct {
	stage string
	args  map[string]*runtime.Buffer // graphs and tables
	ends  []int64                    // by turns, numbers there
	of    map[string][]float32       // what is known of pairs
}

// pairs are judged in the graph around a partition.
func (g *around) pairs() *pairs {
	return &pairs{stage: pairsStage, of: map[string][]float32{}, args: map[string]*runtime.Buffer{
		"g": runtime.Graph(g.Structure), weightOfEntry: runtime.F32(g.a, len(g.a)),
		nearArg: runtime.Graph(g.near), nearWeightArg: runtime.F32(g.nearA, len(g.nearA)),
	}}
}

// over runs a function of some pairs and calls use with its results, and the pairs that they are of.
func (p *pairs) over(m *model, name string, some []int, use func(result string, of []int, values []float32)) error {
	for of := range slices.Chunk(some, pairsAtOnce) {
		args, list := maps.Clone(p.args), make([]int64, 2*len(of))
		for k, i := range of {
			list[k], list[len(of)+k] = p.ends[2*i], p.ends[2*i+1]
		}
		for arg, all := range p.of {
			x := make([]float32, len(of))
			for k, i := range of {
				x[k] = all[i]
			}
			args[arg] = runtime.F32(x, len(x))
		}
		args["pairs"] = runtime.I64(list, 2, len(of))
		if err := m.run(p.stage, name, args, func(result string, _ []int, values []float32) { use(result, of, values) }); err != nil {
			return err
		}
	}
	return nil
}

// twoStepFn finds nodes two steps away.
type twoStepFn struct{ K int }

func (f twoStepFn) do(c *call, s *state, sent []*table) error {
	known := joinEntries(sent, entriesPrefix)
	g := s.around(&surroundings{known: known, near: newEntries(), pieces: &pieces{}}, 0, graph.TwoStepWalks+1)
	crowded := make([]bool, g.N)
	for i := range crowded {
		if v := g.node(i); s.own(v) {
			crowded[i] = s.ptr[v-s.lo+1]-s.ptr[v-s.lo] > graph.TwoStepWalks+1
		} else if _, sent := slices.BinarySearch(known.node, v); !sent {
			crowded[i] = true // or would not be followed for others' sake
		}
	}
	pool := kernels.NewPool(0)
	defer pool.Close()
	found, _ := g.TwoStepOf(pool, f.K, g.before, g.before+s.n(), crowded)
	near := make([]int64, len(found))
	for i, v := range found {
		if near[i] = -1; v >= 0 {
			near[i] = g.node(int(v))
		}
	}
	s.put(nearPrefix+"two_step", near, s.n(), f.K)
	return nil
}

// aroundFn asks for the rows of the nodes that pairs lead to, whose entries were sent, and for what is read
// of neighbours of all of them and of the partition's own nodes.
type aroundFn struct{ Near int }

func (f aroundFn) do(c *call, s *state, sent []*table) error {
	ends := s.ends()
	s.keepNames(ends, sent)
	isEnd := func(v int64) bool { _, ok := slices.BinarySearch(ends, v); return ok }
	x := &surroundings{known: joinEntries(sent, entriesPrefix), near: joinEntries(sent, nearEntriesPrefix)}
	x.pieces = joinPieces(append(sent, s.table), func(_, hub int64) bool { return isEnd(hub) })
	x.more = s.shared(array[int64](s.table, "pairs"))
	x.keep(s)
	g := s.around(x, f.Near, hubEntries)
	isNear := make([]bool, g.N)
	for _, i := range g.near.In.Col {
		isNear[i] = true
	}
	var near, others []int64
	for _, v := range g.outside {
		switch {
		case isEnd(v):
		case isNear[g.number(v)]:
			near = append(near, v)
		default:
			others = append(others, v)
		}
	}
	for what, nodes := range map[string][]int64{askRows: ends, askNear: near, askAround: others} {
		if err := c.ask(s, what, nodes); err != nil {
			return err
		}
	}
	return nil
}

// What is known of pairs: the evidence by source, and what functions gave that others read.
const (
	evidencePrefix = "evidence."
	knownPrefix    = "known."
)

// upTo lists the numbers below n.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// entryOf returns where in a row a column is.
func entryOf(ptr []int32, col []int64, row int, v int64) int {
	at, _ := slices.BinarySearch(col[ptr[row]:ptr[row+1]], v)
	return int(ptr[row]) + at
}

// judgeFn gives the pairs of a partition probabilities by two functions, of edges and of others, and
// what sources say, if a function does.
type judgeFn struct {
	Model                      ModelFile
	Existing, Missing, Sources string
	Around, Near               []string // values of neighbours, and of those that neighbor_kernel reads
	Most                       int      // of these a node has
	Kept                       bool     // what the functions give beside probabilities, for others
}

func (f judgeFn) do(c *call, s *state, sent []*table) error { return f.Model.use(c, s, sent, f.judge) }

func (f judgeFn) judge(m *model, s *state, sent []*table) (err error) {
	g := s.around(s.kept(), f.Most, hubEntries)
	x := g.pairs()
	ends := s.ends()
	for name := range m.stages[tablesStage].Results {
		needed := ends
		if slices.Contains(f.Around, name) {
			needed = g.outside
		} else if slices.Contains(f.Near, name) {
			for _, i := range g.near.In.Col {
				if v := g.node(int(i)); !s.own(v) {
					needed = append(needed, v)
				}
			}
		}
		if x.args[name], err = g.rows(name, needed, sent); err != nil {
			return err
		}
	}
	existing := array[uint8](s.table, "existing")
	w := make([]float32, len(existing))
	var fresh, old []int // pairs that are no edges, and edges
	for i, pair := range slices.Collect(slices.Chunk(array[int64](s.table, "pairs"), 2)) {
		x.ends = append(x.ends, g.number(pair[0]), g.number(pair[1]))
		if existing[i] == 0 {
			fresh = append(fresh, i)
			continue
		}
		old = append(old, i)
		e, lo, hi := g.entriesOf(pair[0])
		at, _ := slices.BinarySearch(e.col[lo:hi], pair[1])
		w[i] = e.a[lo+at]
	}
	x.of["w"] = w
	for _, known := range s.with(knownPrefix) {
		x.of[known.Name[len(knownPrefix):]] = known.Data.([]float32)
	}
	s.dropWith(knownPrefix)
	for _, by := range []struct {
		function, prefix string // of what is kept of the function's results
		of               []int
	}{
		{f.Sources, evidencePrefix, slices.Concat(fresh, old)},
		{f.Missing, knownPrefix, fresh},
		{f.Existing, knownPrefix, old},
	} {
		if by.function == "" {
			continue
		}
		all := map[string][]float32{} // of all pairs, by result
		for _, r := range m.stages[pairsStage].module.Func(by.function).Results {
			as := by.prefix + r.Name
			if r.Name == "probability" {
				as = r.Name
			} else if by.prefix == knownPrefix && !f.Kept {
				continue
			}
			if all[r.Name] = array[float32](s.table, as); all[r.Name] == nil {
				all[r.Name] = make([]float32, len(existing))
				s.put(as, all[r.Name], len(existing))
			}
		}
		if err := x.over(m, by.function, by.of, func(result string, of []int, values []float32) {
			if x := all[result]; x != nil {
				for k, i := range of {
					x[i] = values[k]
				}
			}
		}); err != nil {
			return err
		}
	}
	probability := array[float32](s.table, "probability")
	for _, i := range old {
		probability[i] = max(probability[i], models.MinEvidence)
	}
	s.dropWith(entriesPrefix, nearEntriesPrefix, hubPrefix)
	s.keep([]string{"x", weightOfEntry})
	return nil
}

// roundFn weighs the entries of a partition by a function of pairs, and those that lead from its nodes to
// hubs, whose partitions are sent the weights.
type roundFn struct {
	Model ModelFile
	Round string
}

func (f roundFn) do(c *call, s *state, sent []*table) error {
	of := outbox[pieces]{}
	err := f.Model.use(c, s, sent, func(m *model, s *state, sent []*table) error { return f.weigh(m, s, sent, of) })
	if err != nil {
		return err
	}
	return of.send(c.work, c.out, (*pieces).put)
}

func (f roundFn) weigh(m *model, s *state, sent []*table, of outbox[pieces]) (err error) {
	own, a := piecesOf(s.table), array[float32](s.table, valuePrefix+weightOfEntry)
	know := &surroundings{known: joinEntries(sent, entriesPrefix), near: newEntries()}
	know.pieces = joinPieces(append(sent, s.table), func(_, hub int64) bool {
		lo, hi := own.of(hub)
		return lo < hi && !s.own(hub)
	})
	var ends []int64
	for i, hub := range own.hub {
		ends = append(ends, hub, own.node[i])
	}
	know.more = s.shared(ends)
	g := s.around(know, 0, hubEntries)
	x := g.pairs()
	needed := slices.Concat(know.known.node, know.pieces.hub)
	for name := range m.stages[f.Round].Results {
		if x.args[name], err = g.rows(name, needed, sent); err != nil {
			return err
		}
	}
	var w []float32
	var entry []int32
	for _, v := range ends {
		x.ends = append(x.ends, g.number(v))
	}
	w = append(w, own.a...)
	for i := range s.n() {
		if s.hub(i) {
			continue
		}
		for k := s.ptr[i]; k < s.ptr[i+1]; k++ {
			x.ends = append(x.ends, g.number(s.lo+int64(i)), g.number(s.col[k]))
			w, entry = append(w, a[k]), append(entry, k)
		}
	}
	x.of["w"] = w
	weight := make([]float32, len(w))
	if err := x.over(m, f.Round, upTo(len(w)), func(_ string, of []int, values []float32) { copy(weight[of[0]:], values) }); err != nil {
		return err
	}
	for i, hub := range own.hub {
		of.to(s.owner(hub)).add(own.node[i], hub, weight[i])
	}
	for i, k := range entry {
		a[k] = weight[len(own.hub)+i]
	}
	s.dropWith(hubPrefix)
	s.keep([]string{"x", weightOfEntry})
	return nil
}
