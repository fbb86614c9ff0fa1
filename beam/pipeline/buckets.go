package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

func init() {
	registerTelling[sampleFn]()
	register.DoFn4x1[context.Context, int64, func(*[]byte) bool, func([]byte), error](&indexFn{})
	register.DoFn6x1[context.Context, int64, []byte, func(*[]byte) bool, func(int64, []byte), func(int64, []byte), error](&bucketsFn{})
	register.DoFn4x1[context.Context, int64, func(*[]byte) bool, func(int64, []byte), error](&bucketNearFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&recallFn{})
	register.Emitter1[[]byte]()
}

// How near nodes are found.
const (
	SearchAuto    = "auto"
	SearchExact   = "exact"   // each pair of partitions is compared
	SearchBuckets = "buckets" // nodes in one bucket of an index are
)

// WantedRecall is for what copies are chosen, if they are not given.
const WantedRecall = 0.95

// Search says how near nodes were found, by one kind of rows.
type Search struct {
	Rows    string `json:"rows"` // that are compared
	By      string `json:"by"`
	Copies  int    `json:"copies,omitempty"` // buckets that a node is in
	Buckets int    `json:"buckets,omitempty"`
	Full    int    `json:"full,omitempty"` // buckets that were split
	// Recall is the share of the true near nodes of so many Queries, drawn from all nodes, that were
	// found. 0 of 0 of an exact search.
	Recall  float64 `json:"recall,omitempty"`
	Queries int     `json:"queries,omitempty"`
}

// buckets say how large those of an index are, and in how many a node is: at least, and at most where sampled
// rows would find too few of their neighbours.
type buckets struct{ Size, Copies, Most int }

// sampled is in how many buckets a node is taken to be where it is decided how many rows are sampled, or fit.
func (b buckets) sampled() int { return max(b.Copies, min(b.Most, 16)) }

// Sizes that the result depends on.
var (
	rowsOfBucket    int64 = 4096 // at least; of more nodes than its square their root, so that finding a row's buckets does not take longer than searching them
	sampleOfBucket  int64 = 64   // sampled rows for each bucket
	mostSampled     int64 = 1 << 18
	recallQueries   int64 = 128
	copiesOfNode          = 8
	mostCopies            = 32
	indexQueries          = 512 // sampled rows whose neighbours say in how many buckets a node has to be
	rowsOfSample          = "rows"
	queriesOfSample       = "queries"
)

func (o *Options) buckets(nodes int64) (buckets, error) {
	if o.Copies < 0 {
		return buckets{}, fmt.Errorf("--copies is %d; a node is in 1 bucket at least", o.Copies)
	}
	b := buckets{int(max(rowsOfBucket, int64(math.Sqrt(float64(nodes))))), cmp.Or(o.Copies, copiesOfNode), cmp.Or(o.Copies, mostCopies)}
	switch o.Search {
	case SearchBuckets:
		return b, nil
	case SearchAuto, "":
		if nodes > graph.ApproximateAbove {
			return b, nil
		}
	case SearchExact:
		if o.Copies > 0 {
			return b, fmt.Errorf("--copies is %d, but --search %s has no buckets: leave --copies out, or say --search %s", o.Copies, SearchExact, SearchBuckets)
		}
	default:
		return b, fmt.Errorf("--search is %q; it is %s, %s or %s", o.Search, SearchAuto, SearchExact, SearchBuckets)
	}
	return buckets{}, nil
}

// searchBuckets finds near nodes by the buckets of an index.
//
//	states ─→ sample ─→ index ┄┐
//	states ────────────────────→ rows by bucket ─→ near ─→ nearest ─→ states
//	                           └→ true similarities ─→ recall ←┘
func (b *builder) searchBuckets(s beam.Scope, states beam.PCollection, value string) beam.PCollection {
	s = s.Scope("buckets")
	k := b.d.Refinement.K
	index := beam.ParDo(s, &indexFn{b.layout, b.buckets, k}, beam.GroupByKey(s, telling(s, "search", sampleFn{b.buckets, value}, states)))
	rows, truth := beam.ParDo2(s, &bucketsFn{value, k}, states, beam.SideInput{Input: index})
	near := beam.ParDo(s, &bucketNearFn{b.layout, k}, beam.GroupByKey(s, rows))
	states, found := joined(s, "search", nearestFn{value, k}, states, near)
	b.reports = append(b.reports, beam.ParDo(s, &recallFn{value}, beam.CoGroupByKey(s, truth, found)))
	return states
}

// drawn returns those of count nodes that a partition has, one drawn from each of as many ranges of all
// nodes, whatever the number of partitions.
func (l Layout) drawn(name string, count, p int64) (nodes []int64) {
	count = min(count, l.Nodes)
	draw := rng.New(0, "beam").Sub(name)
	lo, hi := l.start(p), l.start(p+1)
	for i := lo * count / l.Nodes; i < count && i*l.Nodes/count < hi; i++ {
		first := i * l.Nodes / count
		if v := first + int64(draw.Intn(uint64(i), int((i+1)*l.Nodes/count-first))); v >= lo && v < hi {
			nodes = append(nodes, v)
		}
	}
	return nodes
}

// sampleFn sends the rows that an index is made of, and those that its recall is measured on.
type sampleFn struct {
	Buckets buckets
	Value   string
}

func (f sampleFn) do(c *call, s *state, sent []*table) error {
	rows, err := s.finite(f.Value)
	if err != nil {
		return err
	}
	w, t := len(rows)/s.n(), newTable()
	count := (int64(f.Buckets.sampled())*s.Nodes + int64(f.Buckets.Size) - 1) / int64(f.Buckets.Size)
	for name, count := range map[string]int64{rowsOfSample: max(count, min(mostSampled, sampleOfBucket*count)), queriesOfSample: recallQueries} {
		nodes := s.drawn(name, count, s.partition)
		t.put(name+".node", nodes, len(nodes))
		t.put(name, s.rowsOf(rows, nodes), len(nodes), w)
	}
	return c.tell(0, t)
}

// joinRows joins rows of nodes that were sent, by node.
func joinRows(sent []*table, name string) (nodes []int64, rows []float32, width int) {
	type place struct {
		node int64
		row  []float32
	}
	var all []place
	for _, t := range sent {
		x := t.Lookup(name)
		width = x.Shape[1]
		for i, v := range array[int64](t, name+".node") {
			all = append(all, place{v, x.Data.([]float32)[i*width : (i+1)*width]})
		}
	}
	slices.SortFunc(all, func(a, b place) int { return cmp.Compare(a.node, b.node) })
	rows = make([]float32, 0, len(all)*width)
	for i, x := range all {
		if i > 0 && x.node == all[i-1].node {
			continue // sent for another bucket
		}
		nodes, rows = append(nodes, x.node), append(rows, x.row...)
	}
	return nodes, rows, width
}

// indexFn makes the index of sampled rows.
type indexFn struct {
	Layout  Layout
	Buckets buckets
	K       int
}

func (f *indexFn) ProcessElement(ctx context.Context, _ int64, samples func(*[]byte) bool, emit func([]byte)) error {
	work := begin(ctx, "search")
	defer work.end()
	sent, err := work.all(samples)
	if err != nil {
		return err
	}
	pool := kernels.NewPool(0)
	defer pool.Close()
	sampled, rows, w := joinRows(sent, rowsOfSample)
	var x *graph.Buckets
	for copies := f.Buckets.Copies; ; copies = min(copies*3/2, f.Buckets.Most) {
		x = graph.NewBuckets(pool, rows, len(sampled), w, f.Layout.Nodes, f.Buckets.Size, copies)
		if copies >= f.Buckets.Most || x.Met(pool, rows, len(sampled), indexQueries, f.K) >= WantedRecall {
			break
		}
	}
	t := newTable()
	t.put("centroids", x.Centroids, len(x.Centroids)/w, w)
	t.put("first", x.First, len(x.First))
	t.put("copies", []int32{int32(x.Copies)}, 1)
	nodes, rows, _ := joinRows(sent, queriesOfSample)
	var queries []int64
	var some []float32
	directed := graph.Directed(rows, len(nodes), w)
	for i, v := range nodes {
		if directed[i] {
			queries, some = append(queries, v), append(some, rows[i*w:(i+1)*w]...)
		}
	}
	t.put("query", queries, len(queries))
	t.put("query.rows", some, len(queries), w)
	return work.send(toAll(emit), 0, t)
}

// index is what indexFn has made.
type index struct {
	graph.Buckets
	queries []int64
	rows    []float32 // of these
}

func (w *work) index(side func(*[]byte) bool) (*index, error) {
	x := &index{}
	err := w.each(side, func(t *table) error {
		x.Centroids, x.Width = array[float32](t, "centroids"), t.Lookup("centroids").Shape[1]
		x.First, x.Copies = array[int32](t, "first"), int(array[int32](t, "copies")[0])
		x.queries, x.rows = array[int64](t, "query"), array[float32](t, "query.rows")
		return nil
	})
	if err == nil && x.First == nil {
		err = fmt.Errorf("the index was not sent")
	}
	return x, err
}

// bucketsFn sends the rows of a partition to the buckets that they are in, some of which an element
// has, and the similarities of its nodes that are nearest to the queries.
type bucketsFn struct {
	Value string
	K     int
}

func (f *bucketsFn) ProcessElement(ctx context.Context, p int64, b []byte, side func(*[]byte) bool, emit, truth func(int64, []byte)) error {
	work := begin(ctx, "search")
	defer work.end()
	s, err := parseState(b)
	if err != nil {
		return err
	}
	x, err := work.index(side)
	if err != nil {
		return err
	}
	rows, err := s.finite(f.Value)
	if err != nil {
		return err
	}
	pool := kernels.NewPool(0)
	defer pool.Close()
	draw := rng.New(0, "beam").Sub("full buckets")
	of := x.Of(pool, rows, s.n(), func(row, bucket, of int) int {
		return draw.At(uint64(bucket)).Intn(uint64(s.lo)+uint64(row), of)
	})
	groups := Layout{Nodes: int64(x.Len()), Partitions: min(s.Partitions, int64(x.Len()))}
	type rowsOf struct {
		bucket []int32 // by turns with rows
		rows   []int
	}
	by := outbox[rowsOf]{}
	for i, bucket := range of {
		if bucket < 0 {
			continue
		}
		g := by.to(groups.owner(int64(bucket)))
		g.bucket, g.rows = append(g.bucket, bucket), append(g.rows, i/x.Copies)
	}
	w := x.Width
	if err := by.send(work, emit, func(of *rowsOf, t *table) {
		var nodes, in []int64
		var some []float32
		for i, r := range of.rows {
			v := s.lo + int64(r)
			in = append(in, v)
			if i == 0 || r != of.rows[i-1] {
				nodes, some = append(nodes, v), append(some, rows[r*w:(r+1)*w]...)
			}
		}
		t.put(rowsOfSample+".node", nodes, len(nodes))
		t.put(rowsOfSample, some, len(nodes), w)
		t.put("bucket", of.bucket, len(of.bucket))
		t.put("in", in, len(in))
	}); err != nil {
		return err
	}
	self := make([]int32, len(x.queries))
	for i, v := range x.queries {
		if self[i] = -1; s.own(v) {
			self[i] = int32(v - s.lo)
		}
	}
	t := newTable()
	full := int32(0)
	for c := range len(x.First) - 1 {
		if x.First[c+1]-x.First[c] > 1 {
			full++
		}
	}
	t.put("index", []int32{int32(x.Copies), int32(x.Len()), full}, 3)
	t.put("query", x.queries, len(x.queries))
	t.put("similarity", graph.NearestTo(pool, x.rows, self, rows, s.n(), w, f.K), len(x.queries), f.K)
	return work.send(truth, 0, t)
}

// bucketNearFn finds the nearest neighbours of the rows of some buckets, each among its own, and sends
// them to the nodes' partitions.
type bucketNearFn struct {
	Layout Layout
	K      int
}

func (f *bucketNearFn) ProcessElement(ctx context.Context, _ int64, rows func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "search")
	defer work.end()
	type member struct {
		bucket int32
		node   int64
	}
	sent, err := work.all(rows)
	if err != nil {
		return err
	}
	var all []member
	for _, t := range sent {
		in := array[int64](t, "in")
		for i, bucket := range array[int32](t, "bucket") {
			all = append(all, member{bucket, in[i]})
		}
	}
	slices.SortFunc(all, func(a, b member) int { return cmp.Or(cmp.Compare(a.bucket, b.bucket), cmp.Compare(a.node, b.node)) })
	nodes, x, w := joinRows(sent, rowsOfSample)
	pool := kernels.NewPool(0)
	defer pool.Close()
	var search graph.Neighbors
	by := outbox[lists]{}
	for len(all) > 0 {
		n := 1
		for n < len(all) && all[n].bucket == all[0].bucket {
			n++
		}
		own, z := make([]int64, n), make([]float32, 0, n*w)
		for i, m := range all[:n] {
			at, _ := slices.BinarySearch(nodes, m.node)
			own[i], z = m.node, append(z, x[at*w:(at+1)*w]...)
		}
		all = all[n:]
		idx, sim := search.Exact(pool, z, n, w, f.K)
		for i, v := range own {
			by.to(f.Layout.owner(v)).add(f.K, v, own, idx[i*f.K:], sim[i*f.K:])
		}
	}
	return by.send(work, emit, (*lists).put)
}

// recallFn measures how many of the true near nodes of the queries were found.
type recallFn struct{ Value string }

func (f *recallFn) ProcessElement(ctx context.Context, _ int64, truth, found func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "search")
	defer work.end()
	r := Search{Rows: f.Value, By: SearchBuckets}
	join := func(sent func(*[]byte) bool) (map[int64][]float32, error) {
		of := map[int64][]float32{}
		err := work.each(sent, func(t *table) error {
			if x := array[int32](t, "index"); x != nil {
				r.Copies, r.Buckets, r.Full = int(x[0]), int(x[1]), int(x[2])
			}
			sim, queries := array[float32](t, "similarity"), array[int64](t, "query")
			for i, v := range queries {
				k := len(sim) / len(queries)
				of[v] = append(of[v], sim[i*k:(i+1)*k]...)
			}
			return nil
		})
		return of, err
	}
	best, err := join(truth)
	if err != nil {
		return err
	}
	have, err := join(found)
	if err != nil {
		return err
	}
	r.Queries = len(best)
	hits, all := 0, 0
	for v, nearest := range best {
		sim := have[v]
		slices.SortFunc(nearest, func(a, b float32) int { return cmp.Compare(b, a) })
		h, a := graph.Hits(nearest[:len(sim)], sim)
		hits, all = hits+h, all+a
	}
	r.Recall = float64(hits) / float64(max(all, 1))
	return report{Search: &r}.send(work, emit)
}
