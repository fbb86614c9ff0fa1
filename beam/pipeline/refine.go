package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/run"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func init() {
	register.DoFn3x1[int64, []byte, func(int64, []byte), error](&rowsFn{})
	register.DoFn4x1[int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&nearFn{})
	register.DoFn4x1[int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&nearestFn{})
	register.DoFn4x1[int64, []byte, func(int64, []byte), func(int64, []byte), error](&proposeFn{})
	register.DoFn5x1[int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), func(int64, []byte), error](&candidatesFn{})
	register.DoFn5x1[int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), func(int64, []byte), error](&answerFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&scoreFn{})
	register.DoFn4x1[int64, []byte, func(int64, []byte), func(int64, []byte), error](&refinedEntriesFn{})
	register.DoFn4x1[int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&rewireFn{})
}

// embeddingValue is what the encoder's result is called while a graph is refined.
const embeddingValue = "embedding"

// refine finds candidates for edges and gives them probabilities: it returns the states with
// these, of which each pair is in the partition of its lower node.
func refine(s beam.Scope, model ModelFile, states beam.PCollection, l Layout, d *run.Deployed, directed bool) beam.PCollection {
	s = s.Scope("refine")
	near := beam.ParDo(s, &nearFn{l, d.Refinement.K}, beam.CoGroupByKey(s, beam.ParDo(s, &rowsFn{l, true}, states), beam.ParDo(s, &rowsFn{l, false}, states)))
	states, pairs := beam.ParDo2(s, &proposeFn{l, directed}, beam.ParDo(s, &nearestFn{d.Refinement.K}, beam.CoGroupByKey(s, states, near)))
	states, asked := beam.ParDo2(s, &candidatesFn{l, d.Refinement.Mutual}, beam.CoGroupByKey(s, states, pairs))
	states, rows := beam.ParDo2(s, &answerFn{}, beam.CoGroupByKey(s, states, asked))
	return beam.ParDo(s, &scoreFn{model}, beam.CoGroupByKey(s, states, rows))
}

// rowsFn sends the embedding of a partition to the comparisons with every other one, as the
// first of two partitions, which includes itself, or as the second.
type rowsFn struct {
	Layout Layout
	First  bool
}

func (f *rowsFn) ProcessElement(p int64, b []byte, emit func(int64, []byte)) error {
	s, err := parseState(b)
	if err != nil {
		return err
	}
	x := s.find(valuePrefix + embeddingValue)
	if x == nil {
		return fmt.Errorf("a partition has no embedding")
	}
	if _, err := s.finite(embeddingValue); err != nil {
		return err
	}
	t := newTable()
	t.put("first", []int64{s.lo}, 1)
	t.put(embeddingValue, x.Data, x.Shape...)
	if b, err = t.bytes(); err != nil {
		return err
	}
	for q := range f.Layout.Partitions {
		if f.First && q >= p {
			emit(p*f.Layout.Partitions+q, b)
		} else if !f.First && q < p {
			emit(q*f.Layout.Partitions+p, b)
		}
	}
	return nil
}

// nearFn finds the nearest neighbours of two partitions' nodes among both, exactly, and sends
// each its own.
type nearFn struct {
	Layout Layout
	K      int
}

func (f *nearFn) ProcessElement(key int64, first, second func(*[]byte) bool, emit func(int64, []byte)) error {
	var nodes []int64
	var rows []float32
	ends := []int{0}
	add := func(t *table) error {
		x := t.find(embeddingValue)
		for i := range x.Shape[0] {
			nodes = append(nodes, array[int64](t, "first")[0]+int64(i))
		}
		rows = append(rows, x.Data.([]float32)...)
		ends = append(ends, len(nodes))
		return nil
	}
	if err := each(first, add); err != nil {
		return err
	}
	if err := each(second, add); err != nil {
		return err
	}
	n := len(nodes)
	pool := kernels.NewPool(0)
	defer pool.Close()
	idx, sim := graph.KNN(pool, rows, n, len(rows)/n, f.K)
	for i, p := range []int64{key / f.Layout.Partitions, key % f.Layout.Partitions}[:len(ends)-1] {
		lo, hi := ends[i]*f.K, ends[i+1]*f.K
		near := make([]int64, hi-lo)
		for j, v := range idx[lo:hi] {
			if near[j] = -1; v >= 0 {
				near[j] = nodes[v]
			}
		}
		t := newTable()
		t.put("near", near, len(near)/f.K, f.K)
		t.put("similarity", sim[lo:hi], len(near)/f.K, f.K)
		if err := send(emit, p, t); err != nil {
			return err
		}
	}
	return nil
}

// nearestFn joins the lists of a partition's nodes.
type nearestFn struct{ K int }

func (f *nearestFn) ProcessElement(p int64, states, lists func(*[]byte) bool, emit func(int64, []byte)) error {
	s, err := onlyState(states)
	if err != nil {
		return err
	}
	type neighbour struct {
		node int64
		sim  float32
	}
	all := make([][]neighbour, s.n())
	if err := each(lists, func(t *table) error {
		sim := array[float32](t, "similarity")
		for i, v := range array[int64](t, "near") {
			if v < 0 {
				continue
			}
			// In every list there are the nearest of the partition itself.
			if list := &all[i/f.K]; !slices.ContainsFunc(*list, func(x neighbour) bool { return x.node == v }) {
				*list = append(*list, neighbour{v, sim[i]})
			}
		}
		return nil
	}); err != nil {
		return err
	}
	near := make([]int64, s.n()*f.K)
	for i, list := range all {
		slices.SortFunc(list, func(a, b neighbour) int {
			return cmp.Or(cmp.Compare(b.sim, a.sim), cmp.Compare(a.node, b.node))
		})
		for j := range f.K {
			if near[i*f.K+j] = -1; j < len(list) {
				near[i*f.K+j] = list[j].node
			}
		}
	}
	s.put("near", near, s.n(), f.K)
	return send(emit, p, s.table)
}

// From which end a candidate was proposed, or that it is an edge.
const (
	fromLower = 1 << iota
	fromUpper
	isEdge
)

// proposeFn sends the pairs of near nodes, and the edges that only the partition of their upper
// node has, to the partitions of their lower nodes.
type proposeFn struct {
	Layout   Layout
	Directed bool
}

func (f *proposeFn) ProcessElement(p int64, b []byte, states, pairs func(int64, []byte)) error {
	s, err := parseState(b)
	if err != nil {
		return err
	}
	by := map[int64][]int64{} // of each partition: lower node, upper node and why, by turns
	propose := func(u, v, why int64) {
		home := f.Layout.owner(u)
		by[home] = append(by[home], u, v, why)
	}
	near := array[int64](s.table, "near")
	k := len(near) / s.n()
	for i, u := range near {
		switch v := s.lo + int64(i/max(1, k)); {
		case u >= 0 && v < u:
			propose(v, u, fromLower)
		case u >= 0:
			propose(u, v, fromUpper)
		}
	}
	for i := range s.n() {
		for _, u := range s.col[s.ptr[i]:s.ptr[i+1]] {
			if v := s.lo + int64(i); v < u {
				propose(v, u, isEdge)
			} else if f.Directed {
				propose(u, v, isEdge)
			}
		}
	}
	s.drop("near")
	if err := send(states, p, s.table); err != nil {
		return err
	}
	for home, list := range by {
		t := newTable()
		t.put("pairs", list, len(list)/3, 3)
		if err := send(pairs, home, t); err != nil {
			return err
		}
	}
	return nil
}

// candidatesFn makes candidates of the pairs of a partition, and asks other partitions for the
// rows of their upper nodes.
type candidatesFn struct {
	Layout Layout
	Mutual bool
}

func (f *candidatesFn) ProcessElement(p int64, states, proposals func(*[]byte) bool, emit, ask func(int64, []byte)) error {
	s, err := onlyState(states)
	if err != nil {
		return err
	}
	type pair struct{ u, v, why int64 }
	var all []pair
	if err := each(proposals, func(t *table) error {
		for x := range slices.Chunk(array[int64](t, "pairs"), 3) {
			all = append(all, pair{x[0], x[1], x[2]})
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b pair) int { return cmp.Or(cmp.Compare(a.u, b.u), cmp.Compare(a.v, b.v)) })
	var ends []int64
	var existing []uint8
	asked := map[int64][]int64{}
	for i := 0; i < len(all); {
		x, why := all[i], int64(0)
		for ; i < len(all) && all[i].u == x.u && all[i].v == x.v; i++ {
			why |= all[i].why
		}
		if f.Mutual && why&isEdge == 0 && why != fromLower|fromUpper {
			continue
		}
		ends = append(ends, x.u, x.v)
		existing = append(existing, uint8(why&isEdge))
		if !s.own(x.v) {
			q := f.Layout.owner(x.v)
			asked[q] = append(asked[q], x.v)
		}
	}
	s.put("pairs", ends, len(ends)/2, 2)
	s.put("existing", existing, len(existing))
	if err := send(emit, p, s.table); err != nil {
		return err
	}
	for q, list := range asked {
		slices.Sort(list)
		list = slices.Compact(list)
		t := newTable()
		t.put("from", []int64{p}, 1)
		t.put("node", list, len(list))
		if err := send(ask, q, t); err != nil {
			return err
		}
	}
	return nil
}

// answerFn sends the rows and the names of nodes that other partitions ask for.
type answerFn struct{}

func (f *answerFn) ProcessElement(p int64, states, asked func(*[]byte) bool, emit, answers func(int64, []byte)) error {
	s, err := onlyState(states)
	if err != nil {
		return err
	}
	names := s.texts("names")
	if err := each(asked, func(t *table) error {
		from := array[int64](t, "from")[0]
		part := &state{table: s.table, lo: s.lo}
		texts := []string{}
		for _, v := range array[int64](t, "node") {
			part.to, part.rows = append(part.to, int32(from)), append(part.rows, int32(v-s.lo))
			texts = append(texts, names[v-s.lo])
		}
		return part.boundary([]string{embeddingValue}, func(to int64, t *table) error {
			t.putTexts("names", texts)
			return send(answers, to, t)
		})
	}); err != nil {
		return err
	}
	return send(emit, p, s.table)
}

// pairsAtOnce bounds how many pairs are scored at a time.
const pairsAtOnce = 1 << 18

// scoreFn gives the candidates of a partition their probabilities.
type scoreFn struct{ Model ModelFile }

func (f *scoreFn) ProcessElement(ctx context.Context, p int64, states, rows func(*[]byte) bool, emit func(int64, []byte)) error {
	s, err := onlyState(states)
	if err != nil {
		return err
	}
	m, err := f.Model.open(ctx)
	if err != nil {
		return err
	}
	var sent []*table
	name := map[int64]string{}
	if err := each(rows, func(t *table) error {
		sent = append(sent, t)
		texts := t.texts("names")
		for i, v := range array[int64](t, "node") {
			name[v] = texts[i]
		}
		return nil
	}); err != nil {
		return err
	}
	ends, existing := array[int64](s.table, "pairs"), array[uint8](s.table, "existing")
	var outside []int64
	for i := 1; i < len(ends); i += 2 {
		if !s.own(ends[i]) {
			outside = append(outside, ends[i])
		}
	}
	slices.Sort(outside)
	outside = slices.Compact(outside)
	h, shape, err := s.gather(embeddingValue, outside, sent)
	if err != nil {
		return err
	}
	names := []string{}
	for _, v := range outside {
		names = append(names, name[v])
	}
	local := make([]int32, len(ends))
	for i, v := range ends {
		if local[i] = int32(v - s.lo); !s.own(v) {
			at, _ := slices.BinarySearch(outside, v)
			local[i] = int32(s.n() + at)
		}
	}
	probability := make([]float32, len(existing))
	m.Lock()
	defer m.Unlock()
	for lo := 0; lo < len(existing); lo += pairsAtOnce {
		count := min(pairsAtOnce, len(existing)-lo)
		pairs := make([]int64, 2*count)
		for i := range count {
			pairs[i], pairs[count+i] = int64(local[2*(lo+i)]), int64(local[2*(lo+i)+1])
		}
		args := map[string]*runtime.Buffer{"embedding": runtime.F32(h, shape...), "pairs": runtime.I64(pairs, 2, count)}
		err := m.run("score", "score", args, func(name string, _ []int, data []float32) {
			for i := range count {
				if old := existing[lo+i] != 0; name == "probability" && !old || name == "probability_existing" && old {
					probability[lo+i] = data[i]
				}
			}
		})
		if err != nil {
			return err
		}
	}
	s.put("probability", probability, len(probability))
	s.put("local", local, len(local))
	s.putTexts("outside", names)
	return send(emit, p, s.table)
}

// refined are the candidates of a partition that are edges, before or after.
func (o *output) refined(s *state) (write func(string) error, counts *Counts, rows int, err error) {
	r := &graph.Refined{Candidates: &graph.Candidates{N: s.n()}, Probability: array[float32](s.table, "probability"), Mode: modeOf(o.Refinement), Threshold: o.Refinement.Threshold}
	local, existing := array[int32](s.table, "local"), array[uint8](s.table, "existing")
	for i, old := range existing {
		r.Candidates.Edges = append(r.Candidates.Edges, [2]int32{local[2*i], local[2*i+1]})
		r.Candidates.Existing = append(r.Candidates.Existing, old != 0)
	}
	g := &infer.RefinedGraph{NodeIDs: append(s.texts("names"), s.texts("outside")...)}
	g.N = len(g.NodeIDs)
	counts = &Counts{}
	weights := r.Weights()
	for i, e := range r.Candidates.Edges {
		p := r.Probability[i]
		if !(p >= 0 && p <= 1) {
			return nil, nil, 0, &infer.FiniteError{What: fmt.Sprintf("the edge %q–%q, by the scorer,", g.NodeIDs[e[0]], g.NodeIDs[e[1]])}
		}
		if near(p, r.Threshold) {
			counts.Near++
		}
		status := r.Status(i)
		switch status {
		case graph.StatusOld:
			counts.Kept++
		case graph.StatusNew:
			counts.New++
		case graph.StatusRemoved:
			counts.Removed++
		default:
			continue
		}
		g.Edges = append(g.Edges, infer.RefinedEdge{Source: e[0], Target: e[1], Weight: weights[i], Probability: p, Status: status, Candidate: i})
	}
	return func(path string) error { return g.WriteFile(path, "parquet") }, counts, len(g.Edges), nil
}

func modeOf(r *onnx.Refinement) string {
	if r.Weighted {
		return "expected"
	}
	return "threshold"
}

// refinedEntriesFn sends the edges of the refined graph to the partitions of both their ends.
type refinedEntriesFn struct {
	Layout     Layout
	Refinement onnx.Refinement
}

func (f *refinedEntriesFn) ProcessElement(p int64, b []byte, states, entries func(int64, []byte)) error {
	s, err := parseState(b)
	if err != nil {
		return err
	}
	r := &graph.Refined{Probability: array[float32](s.table, "probability"), Mode: modeOf(&f.Refinement), Threshold: f.Refinement.Threshold}
	type lists struct {
		ends    []int64
		weights []float32
	}
	by := map[int64]*lists{}
	ends, weights := array[int64](s.table, "pairs"), r.Weights()
	for i, p := range r.Probability {
		if !(p >= float32(r.Threshold)) {
			continue
		}
		for k := range 2 {
			target, source := ends[2*i+k], ends[2*i+1-k]
			q := f.Layout.owner(target)
			if by[q] == nil {
				by[q] = &lists{}
			}
			by[q].ends, by[q].weights = append(by[q].ends, target, source), append(by[q].weights, weights[i])
		}
	}
	for _, name := range []string{"pairs", "existing", "probability", "local", "outside", "outside.ends"} {
		s.drop(name)
	}
	s.keep([]string{"x"})
	if err := send(states, p, s.table); err != nil {
		return err
	}
	for q, x := range by {
		t := newTable()
		t.put("ends", x.ends, len(x.weights), 2)
		t.put("weight", x.weights, len(x.weights))
		if err := send(entries, q, t); err != nil {
			return err
		}
	}
	return nil
}

// rewireFn gives a partition the entries of the refined graph, and their weights.
type rewireFn struct{ Layout Layout }

func (f *rewireFn) ProcessElement(p int64, states, entries func(*[]byte) bool, emit func(int64, []byte)) error {
	s, err := onlyState(states)
	if err != nil {
		return err
	}
	type entry struct {
		row, source int64
		weight      float32
	}
	var all []entry
	if err := each(entries, func(t *table) error {
		ends := array[int64](t, "ends")
		for i, w := range array[float32](t, "weight") {
			all = append(all, entry{ends[2*i] - s.lo, ends[2*i+1], w})
		}
		return nil
	}); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.source, b.source)) })
	ptr, col, w := make([]int32, s.n()+1), make([]int64, len(all)), make([]float32, len(all))
	for i, e := range all {
		ptr[e.row+1]++
		col[i], w[i] = e.source, e.weight
	}
	for i := range s.n() {
		ptr[i+1] += ptr[i]
	}
	to, rows := sendLists(f.Layout, s.lo, ptr, col)
	s.setEntries(ptr, col, to, rows)
	s.put(valuePrefix+"w", w, len(w))
	return send(emit, p, s.table)
}
