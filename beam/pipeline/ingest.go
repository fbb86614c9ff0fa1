package pipeline

import (
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
)

func init() {
	register.DoFn4x1[context.Context, Chunk, func(int64, []byte), func(int64, []byte), error](&nodesFn{})
	register.DoFn3x1[context.Context, Chunk, func(int64, []byte), error](&edgesFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&resolveFn{})
	register.DoFn4x1[context.Context, int64, func(*[]byte) bool, func(int64, []byte), error](&routeFn{})
	register.DoFn5x1[context.Context, int64, func(*[]byte) bool, func(*[]byte) bool, func(int64, []byte), error](&partitionFn{})
	register.Emitter2[int64, []byte]()
	register.Iter1[[]byte]()
	beam.RegisterType(reflect.TypeFor[Chunk]())
}

// Rows of a chunk.
var (
	nodesOfChunk int64 = 8 << 10
	edgesOfChunk int64 = 64 << 10
)

// ingest reads a graph and divides it: it returns the states of the partitions, by partition.
//
//	nodes ─┬───────────────────────────────────────────────→ partition ─→ states
//	       └→ ids by bucket ─→ resolve ─→ edges by chunk ─→ route ─┘
//	edges ───→ ids by bucket ─┘
func ingest(s beam.Scope, o *Options, l Layout, nodes, edges []Chunk) beam.PCollection {
	s = s.Scope("ingest")
	rows, names := beam.ParDo2(s, &nodesFn{Layout: l, Columns: o.columns, Width: o.width}, beam.Reshuffle(s, beam.CreateList(s, nodes)))
	ends := beam.ParDo(s, &edgesFn{Layout: l}, beam.Reshuffle(s, beam.CreateList(s, edges)))
	numbers := beam.ParDo(s, &resolveFn{Nodes: nodes, Edges: edges}, beam.CoGroupByKey(s, names, ends))
	entries := beam.ParDo(s, &routeFn{Layout: l, Directed: o.Directed}, beam.GroupByKey(s, numbers))
	return beam.ParDo(s, &partitionFn{Layout: l, Directed: o.Directed, Width: o.width}, beam.CoGroupByKey(s, rows, entries))
}

// bucket divides ids among as many workers as there are partitions.
func (l Layout) bucket(id string) int64 {
	h := fnv.New64a()
	h.Write([]byte(id))
	return int64(h.Sum64() % uint64(l.Partitions))
}

// nodesFn reads a chunk of nodes and sends the rows to their partitions, the ids to buckets.
type nodesFn struct {
	Layout  Layout
	Columns []string
	Width   int
}

func (f *nodesFn) ProcessElement(ctx context.Context, c Chunk, rows, names func(int64, []byte)) error {
	work := begin(ctx, "ingest")
	defer work.end()
	ids, x, err := readNodes(ctx, c, f.Columns, f.Width)
	if err != nil {
		return err
	}
	for at := int64(0); at < c.Count; {
		p := f.Layout.owner(c.Number + at)
		end := min(c.Count, f.Layout.start(p+1)-c.Number)
		t := newTable()
		t.put("first", []int64{c.Number + at}, 1)
		t.putTexts("names", ids[at:end])
		t.put("x", x[int(at)*f.Width:int(end)*f.Width], int(end-at), f.Width)
		if err := work.send(rows, p, t); err != nil {
			return err
		}
		at = end
	}
	by := outbox[named]{}
	for i, id := range ids {
		by.to(f.Layout.bucket(id)).add(c.Number+int64(i), id)
	}
	return by.send(work, names, (*named).put)
}

// named are numbers and what is called by each.
type named struct {
	number []int64
	names  []string
}

func (x *named) add(number int64, name string) {
	x.number, x.names = append(x.number, number), append(x.names, name)
}

func (x *named) put(t *table) {
	t.put("number", x.number, len(x.number))
	t.putTexts("names", x.names)
}

// edgesFn reads a chunk of edges and sends the ids of their ends to buckets.
type edgesFn struct{ Layout Layout }

func (f *edgesFn) ProcessElement(ctx context.Context, c Chunk, ids func(int64, []byte)) error {
	work := begin(ctx, "ingest")
	defer work.end()
	ends, err := readEdges(ctx, c)
	if err != nil {
		return err
	}
	by := outbox[named]{}
	for i, id := range ends {
		by.to(f.Layout.bucket(id)).add(int64(i), id)
	}
	return by.send(work, ids, func(x *named, t *table) {
		t.put("chunk", []int64{c.Index, int64(len(ends))}, 2)
		x.put(t)
	})
}

// resolveFn gives the ids of a bucket their nodes' numbers.
type resolveFn struct{ Nodes, Edges []Chunk }

// where says in which row of the files a number of all rows is.
func where(list []Chunk, number int64) string {
	for _, c := range list {
		if number >= c.Number && number < c.Number+c.Count {
			return fmt.Sprintf("%s, row %d", c.Path, c.Row+number-c.Number+1)
		}
	}
	return "an unknown row"
}

func (f *resolveFn) ProcessElement(ctx context.Context, _ int64, nodes, edges func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "ingest")
	defer work.end()
	known := map[string]int64{}
	if err := work.each(nodes, func(t *table) error {
		numbers := array[int64](t, "number")
		for i, id := range t.texts("names") {
			if was, ok := known[id]; ok {
				return fmt.Errorf("the node %q is there twice: %s, and %s", id, where(f.Nodes, min(was, numbers[i])), where(f.Nodes, max(was, numbers[i])))
			}
			known[id] = numbers[i]
		}
		return nil
	}); err != nil {
		return err
	}
	return work.each(edges, func(t *table) error {
		chunk, at, names := array[int64](t, "chunk"), array[int64](t, "number"), t.texts("names")
		numbers := make([]int64, len(names))
		for i, id := range names {
			v, ok := known[id]
			if !ok {
				first := f.Edges[slices.IndexFunc(f.Edges, func(c Chunk) bool { return c.Index == chunk[0] })].Number
				return fmt.Errorf("%s: no node is called %q", where(f.Edges, first+at[i]/2), id)
			}
			numbers[i] = v
		}
		out := newTable()
		out.put("ends", []int64{chunk[1]}, 1)
		out.put("at", at, len(at))
		out.put("number", numbers, len(numbers))
		return work.send(emit, chunk[0], out)
	})
}

// routeFn sends the entries of a chunk of edges to the partitions of their targets, and where
// they are directed, to those of their sources that these are read.
type routeFn struct {
	Layout   Layout
	Directed bool
}

func (f *routeFn) ProcessElement(ctx context.Context, _ int64, numbers func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "ingest")
	defer work.end()
	var ends []int64
	count := 0
	if err := work.each(numbers, func(t *table) error {
		if ends == nil {
			ends = make([]int64, array[int64](t, "ends")[0])
		}
		n := array[int64](t, "number")
		for i, at := range array[int64](t, "at") {
			ends[at] = n[i]
			count++
		}
		return nil
	}); err != nil {
		return err
	}
	if count != len(ends) {
		return fmt.Errorf("of %d ends of edges %d were resolved", len(ends), count)
	}
	type lists struct{ in, out []int64 } // target and source by turns
	by := outbox[lists]{}
	for e := 0; e < len(ends); e += 2 {
		u, v := ends[e], ends[e+1]
		if u == v {
			continue // models add self-loops in their own arithmetic
		}
		to, from := by.to(f.Layout.owner(v)), by.to(f.Layout.owner(u))
		to.in = append(to.in, v, u)
		if f.Directed {
			from.out = append(from.out, v, u)
		} else {
			from.in = append(from.in, u, v)
		}
	}
	return by.send(work, emit, func(x *lists, t *table) {
		t.put("in", x.in, len(x.in))
		t.put("out", x.out, len(x.out))
	})
}

// partitionFn makes the state of a partition.
type partitionFn struct {
	Layout   Layout
	Directed bool
	Width    int
}

func (f *partitionFn) ProcessElement(ctx context.Context, p int64, nodes, entries func(*[]byte) bool, emit func(int64, []byte)) error {
	work := begin(ctx, "ingest")
	defer work.end()
	lo := f.Layout.start(p)
	n := int(f.Layout.start(p+1) - lo)
	names, x, have := make([]string, n), make([]float32, n*f.Width), 0
	if err := work.each(nodes, func(t *table) error {
		at := int(array[int64](t, "first")[0] - lo)
		copy(x[at*f.Width:], array[float32](t, "x"))
		have += copy(names[at:], t.texts("names"))
		return nil
	}); err != nil {
		return err
	}
	if have != n {
		return fmt.Errorf("of the %d nodes of partition %d %d were read", n, p, have)
	}
	var in, out []int64
	if err := work.each(entries, func(t *table) error {
		in = append(in, array[int64](t, "in")...)
		out = append(out, array[int64](t, "out")...)
		return nil
	}); err != nil {
		return err
	}
	ptr, col := rowsOf(lo, n, in)
	s := newState(f.Layout, p, ptr, col)
	if f.Directed {
		var list [][2]int32
		for i := 0; i < len(out); i += 2 {
			if q := f.Layout.owner(out[i]); q != p {
				list = append(list, [2]int32{int32(q), int32(out[i+1] - lo)})
			}
		}
		s.setReaders(list)
	}
	s.putTexts("names", names)
	s.put(valuePrefix+"x", x, n, f.Width)
	return work.send(emit, p, s.table)
}

// rowsOf makes rows of entries, given as target and source by turns, each once.
func rowsOf(lo int64, n int, entries []int64) (ptr []int32, col []int64) {
	ptr = make([]int32, n+1)
	for i := 0; i < len(entries); i += 2 {
		ptr[entries[i]-lo+1]++
	}
	for i := range n {
		ptr[i+1] += ptr[i]
	}
	all, next := make([]int64, len(entries)/2), slices.Clone(ptr)
	for i := 0; i < len(entries); i += 2 {
		r := entries[i] - lo
		all[next[r]] = entries[i+1]
		next[r]++
	}
	start := int32(0)
	for i := range n {
		row := all[start:ptr[i+1]]
		start = ptr[i+1]
		slices.Sort(row)
		col = append(col, slices.Compact(row)...)
		ptr[i+1] = int32(len(col))
	}
	return ptr, col
}
