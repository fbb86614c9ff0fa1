package pipeline

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func init() {
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&twoStepFn{})
	register.DoFn6x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), func(int64, []byte), error](&aroundFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&judgeFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&roundFn{})
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
	states = beam.ParDo(s, &weighFn{weightOfEntry, 1}, states)
	states = b.judgePairs(s, states, f)
	if !open {
		return states
	}
	for r := range b.evidence.Rounds {
		name := models.WeightFunc(r + 1)
		states = b.layers(s, states, name, "x", weightOfEntry)
		kept, rows := beam.ParDo2(s, &boundaryFn{name, slices.Sorted(maps.Keys(b.stages[name].Results)), true}, states)
		states = beam.ParDo(s, &roundFn{b.model, name}, beam.CoGroupByKey(s, kept, rows))
	}
	return b.judgePairs(s, states, judgeFn{Model: b.model, Existing: models.ExistingFunc + models.Weighed, Missing: models.MissingFunc + models.Weighed})
}

func (b *builder) judgePairs(s beam.Scope, states beam.PCollection, f judgeFn) beam.PCollection {
	states = b.layers(s, states, tablesStage, "x", weightOfEntry)
	all := slices.Sorted(maps.Keys(b.stages[tablesStage].Results))
	f.Around = aroundValues(b.evidence.Pairs)
	states, asked := beam.ParDo2(s, &askFn{b.layout}, states)
	states, lists := beam.ParDo2(s, &answerFn{Lists: true}, beam.CoGroupByKey(s, states, asked))
	states, asked = beam.ParDo2(s, &aroundFn{b.layout}, beam.CoGroupByKey(s, states, lists))
	states, rows := beam.ParDo2(s, &answerFn{Values: map[string][]string{askRows: all, askAround: f.Around}}, beam.CoGroupByKey(s, states, asked))
	return beam.ParDo(s, &f, beam.CoGroupByKey(s, states, rows))
}

// aroundValues names the tables that functions of pairs read of their ends' neighbours.
func aroundValues(m *ir.Module) (names []string) {
	for _, f := range m.Funcs {
		for _, op := range f.Body {
			if len(op.Operands) == 0 || op.Operands[0] == nil || !op.Operands[0].Type.IsGraph() {
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

const entriesPrefix = "entries."

// entriesOf returns those in a table.
func entriesOf(t *table) *entries {
	return &entries{array[int64](t, entriesPrefix+"node"), array[int32](t, entriesPrefix+"ptr"), array[int64](t, entriesPrefix+"col"), array[float32](t, entriesPrefix+"a")}
}

func (e *entries) put(t *table) {
	t.put(entriesPrefix+"node", e.node, len(e.node))
	t.put(entriesPrefix+"ptr", e.ptr, len(e.ptr))
	t.put(entriesPrefix+"col", e.col, len(e.col))
	if len(e.a) > 0 {
		t.put(entriesPrefix+"a", e.a, len(e.a))
	}
}

// joinEntries joins those that were sent, by node.
func joinEntries(sent []*table) *entries {
	type place struct {
		of *entries
		i  int
	}
	var all []place
	for _, t := range sent {
		e := entriesOf(t)
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
// of a node's entries has the bits that it has in the whole graph.
type around struct {
	*graph.Structure
	s       *state
	outside []int64 // nodes of other partitions
	before  int     // of these, those in front of the partition's own
	a       []float32
}

func (s *state) around(known *entries) *around {
	g := &around{s: s}
	for _, list := range [][]int64{known.node, known.col, s.col} {
		for _, v := range list {
			if !s.own(v) {
				g.outside = append(g.outside, v)
			}
		}
	}
	slices.Sort(g.outside)
	g.outside = slices.Compact(g.outside)
	g.before, _ = slices.BinarySearch(g.outside, s.lo)
	n := s.n() + len(g.outside)
	in := &kernels.CSR{Rows: n, Cols: n, RowPtr: make([]int32, 1, n+1)}
	own := &entries{ptr: s.ptr, col: s.col, a: array[float32](s.table, valuePrefix+weightOfEntry)}
	row := func(e *entries, i int) {
		for k := e.ptr[i]; k < e.ptr[i+1]; k++ {
			in.Col = append(in.Col, int32(g.number(e.col[k])))
			if e.a != nil {
				g.a = append(g.a, e.a[k])
			}
		}
	}
	at := 0
	for i := range n {
		if v := g.node(i); s.own(v) {
			row(own, int(v-s.lo))
		} else if at < len(known.node) && known.node[at] == v {
			row(known, at)
			at++
		}
		in.RowPtr = append(in.RowPtr, int32(len(in.Col)))
	}
	g.Structure = &graph.Structure{N: n, E: len(in.Col), In: in, Out: in}
	return g
}

// number is that of a node here.
func (g *around) number(v int64) int64 {
	if g.s.own(v) {
		return int64(g.before) + v - g.s.lo
	}
	at, _ := slices.BinarySearch(g.outside, v)
	if at >= g.before {
		at += g.s.n()
	}
	return int64(at)
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

// pairs are judged in the graph around a partition.
type pairs struct {
	*around
	args map[string]*runtime.Buffer // tables
	ends []int64                    // by turns, numbers here
	of   map[string][]float32       // what is known of pairs
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
		args["g"], args["pairs"], args[weightOfEntry] = runtime.Graph(p.Structure), runtime.I64(list, 2, len(of)), runtime.F32(p.a, len(p.a))
		if err := m.run(pairsStage, name, args, func(result string, _ []int, values []float32) { use(result, of, values) }); err != nil {
			return err
		}
	}
	return nil
}

// twoStepFn finds nodes two steps away.
type twoStepFn struct{ K int }

func (f *twoStepFn) ProcessElement(ctx context.Context, p int64, states, lists func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "two steps")
	defer work.end()
	states, lists, emit = work.reads(states), work.reads(lists), work.sends(emit)
	s, sent, err := received(states, lists)
	if err != nil {
		return err
	}
	g := s.around(joinEntries(sent))
	pool := kernels.NewPool(0)
	defer pool.Close()
	found, _ := g.TwoStepOf(pool, f.K, g.before, g.before+s.n())
	near := make([]int64, len(found))
	for i, v := range found {
		if near[i] = -1; v >= 0 {
			near[i] = g.node(int(v))
		}
	}
	s.put(nearPrefix+"two_step", near, s.n(), f.K)
	return send(emit, p, s.table)
}

// aroundFn asks for the rows of the nodes that pairs lead to, whose entries were sent, and of the
// neighbours of all of them and of the partition's own nodes.
type aroundFn struct{ Layout Layout }

func (f *aroundFn) ProcessElement(ctx context.Context, p int64, states, lists func(*[]byte) bool, emit, ask func(int64, []byte)) error {
	work := begin(ctx, "judge")
	defer work.end()
	states, lists, emit, ask = work.reads(states), work.reads(lists), work.sends(emit), work.sends(ask)
	s, sent, err := received(states, lists)
	if err != nil {
		return err
	}
	s.know(sent)
	known := joinEntries(sent)
	known.put(s.table)
	if err := send(emit, p, s.table); err != nil {
		return err
	}
	ends := s.ends()
	around := slices.DeleteFunc(s.around(known).outside, func(v int64) bool {
		_, ok := slices.BinarySearch(ends, v)
		return ok
	})
	if err := s.ask(f.Layout, askRows, ends, ask); err != nil {
		return err
	}
	return s.ask(f.Layout, askAround, around, ask)
}

// What is known of pairs: the evidence by source, and what functions gave that others read.
const (
	evidencePrefix = "evidence."
	knownPrefix    = "known."
)

// judgeFn gives the pairs of a partition probabilities by two functions, of edges and of others, and
// what sources say, if a function does.
type judgeFn struct {
	Model                      ModelFile
	Existing, Missing, Sources string
	Around                     []string // values of neighbours
	Kept                       bool     // what the functions give beside probabilities, for others
}

func (f *judgeFn) ProcessElement(ctx context.Context, p int64, states, rows func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "judge")
	defer work.end()
	states, rows, emit = work.reads(states), work.reads(rows), work.sends(emit)
	return f.Model.use(ctx, p, states, rows, emit, f.judge)
}

func (f *judgeFn) judge(m *model, s *state, sent []*table) (err error) {
	x := &pairs{around: s.around(entriesOf(s.table)), args: map[string]*runtime.Buffer{}, of: map[string][]float32{}}
	ends := s.ends()
	for name := range m.stages[tablesStage].Results {
		needed := ends
		if slices.Contains(f.Around, name) {
			needed = x.outside
		}
		if x.args[name], err = x.rows(name, needed, sent); err != nil {
			return err
		}
	}
	existing := array[uint8](s.table, "existing")
	w, a := make([]float32, len(existing)), array[float32](s.table, valuePrefix+weightOfEntry)
	var fresh, old []int // pairs that are no edges, and edges
	for i, pair := range slices.Collect(slices.Chunk(array[int64](s.table, "pairs"), 2)) {
		x.ends = append(x.ends, x.number(pair[0]), x.number(pair[1]))
		if existing[i] == 0 {
			fresh = append(fresh, i)
			continue
		}
		old = append(old, i)
		first := s.ptr[pair[0]-s.lo]
		at, _ := slices.BinarySearch(s.col[first:s.ptr[pair[0]-s.lo+1]], pair[1])
		w[i] = a[int(first)+at]
	}
	x.of["w"] = w
	for _, known := range s.with(knownPrefix) {
		x.of[known.Name[len(knownPrefix):]] = known.Data.([]float32)
		s.drop(known.Name)
	}
	give := func(name, to string) func(string, []int, []float32) {
		all := map[string][]float32{}
		for _, r := range m.modules[pairsStage].Func(name).Results {
			as := to + r.Name
			if r.Name == "probability" {
				as = r.Name
			} else if to == knownPrefix && !f.Kept {
				continue
			}
			if all[r.Name] = array[float32](s.table, as); all[r.Name] == nil {
				all[r.Name] = make([]float32, len(existing))
				s.put(as, all[r.Name], len(existing))
			}
		}
		return func(result string, of []int, values []float32) {
			for k, i := range of {
				if x := all[result]; x != nil {
					x[i] = values[k]
				}
			}
		}
	}
	if f.Sources != "" {
		err = x.over(m, f.Sources, slices.Concat(fresh, old), give(f.Sources, evidencePrefix))
	}
	if err == nil {
		err = x.over(m, f.Missing, fresh, give(f.Missing, knownPrefix))
	}
	if err == nil {
		err = x.over(m, f.Existing, old, give(f.Existing, knownPrefix))
	}
	if err != nil {
		return err
	}
	probability := array[float32](s.table, "probability")
	for _, i := range old {
		probability[i] = max(probability[i], models.MinEvidence)
	}
	for _, x := range s.with(entriesPrefix) {
		s.drop(x.Name)
	}
	s.keep([]string{"x", weightOfEntry})
	return nil
}

// roundFn weighs the entries of a partition by a function of pairs.
type roundFn struct {
	Model ModelFile
	Round string
}

func (f *roundFn) ProcessElement(ctx context.Context, p int64, states, rows func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "judge")
	defer work.end()
	states, rows, emit = work.reads(states), work.reads(rows), work.sends(emit)
	return f.Model.use(ctx, p, states, rows, emit, f.weigh)
}

func (f *roundFn) weigh(m *model, s *state, sent []*table) (err error) {
	known := joinEntries(sent)
	x := &pairs{around: s.around(known), args: map[string]*runtime.Buffer{}, of: map[string][]float32{"w": array[float32](s.table, valuePrefix+weightOfEntry)}}
	for name := range m.stages[f.Round].Results {
		if x.args[name], err = x.rows(name, known.node, sent); err != nil {
			return err
		}
	}
	var all []int
	for i := range s.n() {
		for k := s.ptr[i]; k < s.ptr[i+1]; k++ {
			x.ends = append(x.ends, x.number(s.lo+int64(i)), x.number(s.col[k]))
			all = append(all, int(k))
		}
	}
	weight := make([]float32, len(all))
	if err := x.over(m, f.Round, all, func(_ string, of []int, values []float32) { copy(weight[of[0]:], values) }); err != nil {
		return err
	}
	s.put(valuePrefix+weightOfEntry, weight, len(weight))
	s.keep([]string{"x", weightOfEntry})
	return nil
}
