package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func init() {
	registerTelling[rowsFn]()
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&nearFn{})
	registerJoined[nearestFn]()
	register.DoFn6x1[context.Context, int64, []byte, func(*[]byte) bool, func(int64, []byte), func(int64, []byte), error](&proposeFn{})
	registerJoined[candidatesFn]()
	registerTelling[askFn]()
	registerJoined[answerFn]()
	registerJoined[scoreFn]()
	registerAlone[refinedEntriesFn]()
	registerJoined[rewireFn]()
}

// embeddingValue is what the encoder's result is called while a graph is refined.
const embeddingValue = "embedding"

// refine finds candidates for edges and gives them probabilities: it returns the states with
// these, of which each pair is in the partition of its lower node.
func (b *builder) refine(states beam.PCollection) beam.PCollection {
	s := b.scope.Scope("refine")
	r, hold := b.d.Refinement, []string{"x"}
	if b.evidence == nil {
		hold = append(hold, embeddingValue)
	}
	by := similarities(r)
	if b.evidence != nil && len(by) > 1 || by[0] != embeddingValue {
		states = b.layers(s, states, "rows", "x", embeddingValue)
	}
	for _, value := range by {
		if b.buckets.Size > 0 {
			states = b.searchBuckets(s, states, value)
			continue
		}
		first, second := telling(s, "search", rowsFn{value, true}, states), telling(s, "search", rowsFn{value, false}, states)
		near := beam.ParDo(s, &nearFn{b.layout, r.K}, beam.CoGroupByKey(s, first, second))
		states, _ = joined(s, "search", nearestFn{value, r.K}, states, near)
		b.out.Searches = append(b.out.Searches, Search{Rows: value, By: SearchExact})
	}
	if r.TwoStep > 0 {
		lists := telling(s, "two steps", stepsFn{}, states)
		states, _ = joined(s, "two steps", twoStepFn{int(min(int64(r.TwoStep), b.layout.Nodes))}, states, lists)
	}
	states = b.pairs(s, states, hold)
	if b.evidence != nil {
		return b.judge(states, b.out.Kind == kindRefined)
	}
	asked := telling(s, "judge", askFn{}, states)
	states, rows := joined(s, "judge", answerFn{Values: map[string][]string{askEnds: {embeddingValue}}}, states, asked)
	states, _ = joined(s, "judge", scoreFn{b.model}, states, rows)
	return states
}

// pairs makes pairs of edges and of nodes that were found near each other, and keeps these values.
func (b *builder) pairs(s beam.Scope, states beam.PCollection, hold []string) beam.PCollection {
	hubs := beam.ParDo(s, &hubsFn{}, beam.GroupByKey(s, telling(s, "candidates", countFn{}, states)))
	states, pairs := beam.ParDo2(s, &proposeFn{b.directed, hold}, states, beam.SideInput{Input: hubs})
	states, _ = joined(s, "candidates", candidatesFn{b.d.Refinement.Mutual}, states, pairs)
	return states
}

// similarities names the values by which near nodes are found.
func similarities(r *onnx.Refinement) []string {
	if r.Similarity == "" {
		return []string{embeddingValue}
	}
	return strings.Split(r.Similarity, "+")
}

// rowsFn sends the rows of a partition, of a value by which nodes are compared, to the comparisons
// with every other one, as the first of two partitions, which includes itself, or as the second.
type rowsFn struct {
	Value string
	First bool
}

func (f rowsFn) do(c *call, s *state, sent []*table) error {
	rows, err := s.finite(f.Value)
	if err != nil {
		return err
	}
	t := newTable()
	t.put("first", []int64{s.lo}, 1)
	t.put("rows", rows, s.n(), len(rows)/s.n())
	b, err := t.bytes()
	if err != nil {
		return err
	}
	p := s.partition
	for q := range s.Partitions {
		if f.First && q >= p {
			c.emit(c.out, p*s.Partitions+q, b)
		} else if !f.First && q < p {
			c.emit(c.out, q*s.Partitions+p, b)
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

func (f *nearFn) ProcessElement(ctx context.Context, _ int64, first, second func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "search")
	defer work.end()
	var nodes []int64
	var rows []float32
	sent, err := work.all(first, second)
	if err != nil {
		return err
	}
	for _, t := range sent {
		x := t.Lookup("rows")
		for i := range x.Shape[0] {
			nodes = append(nodes, array[int64](t, "first")[0]+int64(i))
		}
		rows = append(rows, x.Data.([]float32)...)
	}
	n := len(nodes)
	pool := kernels.NewPool(0)
	defer pool.Close()
	idx, sim := graph.KNN(pool, rows, n, len(rows)/n, f.K)
	by := outbox[lists]{}
	for i, v := range nodes {
		by.to(f.Layout.owner(v)).add(f.K, v, nodes, idx[i*f.K:], sim[i*f.K:])
	}
	return by.send(work, emit, (*lists).put)
}

// lists are the k near nodes of some nodes each.
type lists struct {
	node, near []int64
	similarity []float32
}

// add adds those of a node, whose numbers begin idx, given the nodes that they are of.
func (l *lists) add(k int, node int64, nodes []int64, idx []int32, sim []float32) {
	l.node = append(l.node, node)
	l.similarity = append(l.similarity, sim[:k]...)
	for _, v := range idx[:k] {
		if v < 0 {
			l.near = append(l.near, -1)
		} else {
			l.near = append(l.near, nodes[v])
		}
	}
}

func (l *lists) put(t *table) {
	t.put("node", l.node, len(l.node))
	t.put("near", l.near, len(l.near))
	t.put("similarity", l.similarity, len(l.similarity))
}

// nearestFn joins the lists of a partition's nodes, of those that a value finds near. Those of the
// nodes that recall is measured on are sent beside.
type nearestFn struct {
	Value string
	K     int
}

func (f nearestFn) do(c *call, s *state, sent []*table) error {
	type neighbour struct {
		node int64
		sim  float32
	}
	all := make([][]neighbour, s.n())
	for _, t := range sent {
		near, sim := array[int64](t, "near"), array[float32](t, "similarity")
		for i, v := range array[int64](t, "node") {
			for j := i * f.K; j < (i+1)*f.K && near[j] >= 0; j++ {
				all[v-s.lo] = append(all[v-s.lo], neighbour{near[j], sim[j]})
			}
		}
	}
	near, similarity := slices.Repeat([]int64{-1}, s.n()*f.K), slices.Repeat([]float32{float32(math.Inf(-1))}, s.n()*f.K)
	for i, list := range all {
		slices.SortFunc(list, func(a, b neighbour) int {
			return cmp.Or(cmp.Compare(b.sim, a.sim), cmp.Compare(a.node, b.node))
		})
		list = slices.Compact(list) // nodes meet more than once, with the same product
		for j, x := range list[:min(f.K, len(list))] {
			near[i*f.K+j], similarity[i*f.K+j] = x.node, x.sim
		}
	}
	s.put(nearPrefix+f.Value, near, s.n(), f.K)
	t := newTable()
	nodes := s.drawn(queriesOfSample, recallQueries, s.partition)
	t.put("query", nodes, len(nodes))
	t.put("similarity", s.rowsOf(similarity, nodes), len(nodes), f.K)
	return c.tell(0, t)
}

// nearPrefix begins the names of lists of near nodes, [n, k].
const nearPrefix = "near."

// From which end a candidate was proposed, or that it is an edge.
const (
	fromLower = 1 << iota
	fromUpper
	isEdge
)

// proposeFn sends the pairs of near nodes, and edges, to their homes: the partitions of their lower nodes,
// or of the upper ones where the lower ones alone are in too many. It keeps the values in Hold.
type proposeFn struct {
	Directed bool
	Hold     []string
}

func (f *proposeFn) ProcessElement(ctx context.Context, p int64, b []byte, side func(*[]byte) bool, states, pairs func(int64, []byte)) error {
	work := begin(ctx, "candidates")
	defer work.end()
	s, err := parseState(b)
	if err != nil {
		return err
	}
	hubs := map[int64]bool{}
	if err := work.each(side, func(t *table) error {
		for _, v := range array[int64](t, "hub") {
			hubs[v] = true
		}
		return nil
	}); err != nil {
		return err
	}
	end := func(u, v int64) int64 { // at whose home the pair is
		if hubs[u] && !hubs[v] {
			return v
		}
		return u
	}
	by := outbox[[]int64]{} // lower node, upper node and why, by turns
	propose := func(u, v, why int64) {
		list := by.to(s.owner(end(u, v)))
		*list = append(*list, u, v, why)
	}
	for _, x := range s.with(nearPrefix) {
		for i, u := range x.Data.([]int64) {
			switch v := s.lo + int64(i/x.Shape[1]); {
			case u >= 0 && v < u:
				propose(v, u, fromLower)
			case u >= 0:
				propose(u, v, fromUpper)
			}
		}
	}
	s.dropWith(nearPrefix)
	s.keep(f.Hold)
	for i := range s.n() {
		for _, u := range s.col[s.ptr[i]:s.ptr[i+1]] {
			// Where edges have no direction both ends' partitions have them.
			v := s.lo + int64(i)
			if lower, upper := min(u, v), max(u, v); f.Directed || end(lower, upper) == v {
				propose(lower, upper, isEdge)
			}
		}
	}
	if err := work.send(states, p, s.table); err != nil {
		return err
	}
	return by.send(work, pairs, func(list *[]int64, t *table) { t.put("pairs", *list, len(*list)/3, 3) })
}

// candidatesFn makes candidates of the pairs of a partition.
type candidatesFn struct{ Mutual bool }

func (f candidatesFn) do(c *call, s *state, sent []*table) error {
	type pair struct{ u, v, why int64 }
	var all []pair
	for _, t := range sent {
		for x := range slices.Chunk(array[int64](t, "pairs"), 3) {
			all = append(all, pair{x[0], x[1], x[2]})
		}
	}
	slices.SortFunc(all, func(a, b pair) int { return cmp.Or(cmp.Compare(a.u, b.u), cmp.Compare(a.v, b.v)) })
	var ends []int64
	var existing []uint8
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
	}
	s.put("pairs", ends, len(ends)/2, 2)
	s.put("existing", existing, len(existing))
	return nil
}

// ends are the nodes of other partitions that pairs lead to, ascending.
func (s *state) ends() []int64 { return s.outside(array[int64](s.table, "pairs")) }

// What a partition asks others about: nodes that pairs lead to, of which it is told the names; and
// of those and of others, of which that is evidence, rows.
const (
	askEnds   = "ends"
	askRows   = "rows"
	askAround = "around"
	askNear   = "near"
)

// ask asks partitions about nodes of theirs, which ascend.
func (c *call) ask(s *state, what string, nodes []int64) error {
	for len(nodes) > 0 {
		q := s.owner(nodes[0])
		n, _ := slices.BinarySearch(nodes, s.start(q+1))
		t := newTable()
		t.Metadata["what"] = what
		t.put("from", []int64{s.partition}, 1)
		t.put("node", nodes[:n], n)
		if err := c.tell(q, t); err != nil {
			return err
		}
		nodes = nodes[n:]
	}
	return nil
}

// askFn asks other partitions about the nodes that pairs lead to, and tells them of hubs.
type askFn struct{ Hubs bool }

func (f askFn) do(c *call, s *state, sent []*table) error {
	if f.Hubs {
		if err := (tellFn{}).do(c, s, nil); err != nil {
			return err
		}
	}
	return c.ask(s, askEnds, s.ends())
}

// answerFn sends the rows of values, by what was asked, and lists of entries, of hubs those that partitions
// read which know where they come from.
type answerFn struct {
	Values map[string][]string
	Lists  bool
	Near   int // entries of a hub that are read however many it has
}

func (f answerFn) do(c *call, s *state, sent []*table) error {
	names := s.texts("names")
	var told []*table
	for _, asked := range sent {
		what := asked.Metadata["what"]
		if what == toldHubs {
			told = append(told, asked)
			continue
		}
		var rows []int32
		var texts []string
		for _, v := range array[int64](asked, "node") {
			rows, texts = append(rows, int32(v-s.lo)), append(texts, names[v-s.lo])
		}
		t, err := s.some(rows, f.Values[what])
		if err != nil {
			return err
		}
		if f.Lists {
			s.putLists(t, rows, f.Near)
		}
		if what == askEnds {
			t.putTexts("names", texts)
		}
		if err := c.tell(array[int64](asked, "from")[0], t); err != nil {
			return err
		}
	}
	if !f.Lists {
		return nil
	}
	hubs, known := s.learn(told)
	return c.tellReaders(s, hubs, known)
}

// keepNames keeps the names of the nodes that pairs lead to.
func (s *state) keepNames(ends []int64, sent []*table) {
	names := make([]string, len(ends))
	for _, t := range sent {
		texts := t.texts("names")
		for i, v := range array[int64](t, "node") {
			if at, ok := slices.BinarySearch(ends, v); ok {
				names[at] = texts[i]
			}
		}
	}
	s.putTexts("outside", names)
}

// pairsAtOnce bounds how many pairs are scored at a time.
const pairsAtOnce = 1 << 16

// scoreFn gives the candidates of a partition their probabilities.
type scoreFn struct{ Model ModelFile }

func (f scoreFn) do(c *call, s *state, sent []*table) error { return f.Model.use(c, s, sent, f.score) }

func (f scoreFn) score(m *model, s *state, sent []*table) error {
	outside := s.ends()
	s.keepNames(outside, sent)
	h, shape, err := s.gather(embeddingValue, outside, outside, sent)
	if err != nil {
		return err
	}
	existing, local := array[uint8](s.table, "existing"), s.local(array[int64](s.table, "pairs"), outside)
	probability := make([]float32, len(existing))
	s.put("probability", probability, len(probability))
	x := &pairs{stage: "score", args: map[string]*runtime.Buffer{embeddingValue: runtime.F32(h, shape...)}}
	for _, v := range local {
		x.ends = append(x.ends, int64(v))
	}
	return x.over(m, "score", upTo(len(existing)), func(result string, of []int, values []float32) {
		for k, i := range of {
			if old := existing[i] != 0; result == "probability" && !old || result == "probability_existing" && old {
				probability[i] = values[k]
			}
		}
	})
}

// refined are the candidates of a partition that are edges, before or after.
func (o *output) refined(s *state) (write func(string) error, counts *Counts, rows int, err error) {
	r := &graph.Refined{Candidates: &graph.Candidates{N: s.n()}, Probability: array[float32](s.table, "probability"), Mode: modeOf(o.Refinement), Threshold: o.Refinement.Threshold}
	local, existing := s.local(array[int64](s.table, "pairs"), s.ends()), array[uint8](s.table, "existing")
	for i, old := range existing {
		r.Candidates.Edges = append(r.Candidates.Edges, [2]int32{local[2*i], local[2*i+1]})
		r.Candidates.Existing = append(r.Candidates.Existing, old != 0)
	}
	g := &infer.RefinedGraph{NodeIDs: append(s.texts("names"), s.texts("outside")...)}
	for _, x := range s.with(evidencePrefix) {
		g.Evidence = append(g.Evidence, graph.Evidence{Source: strings.TrimPrefix(x.Name, evidencePrefix), Values: x.Data.([]float32)})
	}
	g.N = len(g.NodeIDs)
	counts = &Counts{}
	weights := r.Weights()
	for i, e := range r.Candidates.Edges {
		p := r.Probability[i]
		if !(p >= 0 && p <= 1) {
			return nil, nil, 0, &infer.FiniteError{What: fmt.Sprintf("the edge %q–%q, by the scorer,", g.NodeIDs[e[0]], g.NodeIDs[e[1]])}
		}
		if math.Abs(float64(p)-r.Threshold) <= 1e-5 { // see Counts
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

// rewire gives partitions the edges of the refined graph, and their weights as w.
func (b *builder) rewire(states beam.PCollection, r onnx.Refinement) beam.PCollection {
	states, entries := alone(b.scope, "rewire", refinedEntriesFn{r}, states)
	states, _ = joined(b.scope, "rewire", rewireFn{}, states, entries)
	return states
}

// refinedEntriesFn sends the edges of the refined graph to the partitions of both their ends.
type refinedEntriesFn struct{ Refinement onnx.Refinement }

func (f refinedEntriesFn) do(c *call, s *state, sent []*table) error {
	r := &graph.Refined{Probability: array[float32](s.table, "probability"), Mode: modeOf(&f.Refinement), Threshold: f.Refinement.Threshold}
	type part struct {
		ends    []int64
		weights []float32
	}
	by := outbox[part]{}
	ends, weights := array[int64](s.table, "pairs"), r.Weights()
	for i, p := range r.Probability {
		if !(p >= float32(r.Threshold)) {
			continue
		}
		for k := range 2 {
			target, source := ends[2*i+k], ends[2*i+1-k]
			x := by.to(s.owner(target))
			x.ends, x.weights = append(x.ends, target, source), append(x.weights, weights[i])
		}
	}
	s.drop("pairs", "existing", "probability", "outside", "outside.ends")
	s.keep([]string{"x"})
	return by.send(c.work, c.out, func(x *part, t *table) {
		t.put("ends", x.ends, len(x.weights), 2)
		t.put("weight", x.weights, len(x.weights))
	})
}

// rewireFn gives a partition the entries of the refined graph, and their weights.
type rewireFn struct{}

func (rewireFn) do(c *call, s *state, sent []*table) error {
	var ends []int64 // target and source by turns
	var weights []float32
	for _, t := range sent {
		ends = append(ends, array[int64](t, "ends")...)
		weights = append(weights, array[float32](t, "weight")...)
	}
	ptr, col := rowsOf(s.lo, s.n(), ends)
	w := make([]float32, len(col))
	for i, x := range weights {
		w[entryOf(ptr, col, int(ends[2*i]-s.lo), ends[2*i+1])] = x
	}
	s.setEntries(ptr, col)
	s.put(valuePrefix+"w", w, len(w))
	return nil
}
