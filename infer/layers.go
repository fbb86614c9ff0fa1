package infer

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// entriesOf gives the entries into a node: their sources, ascending, and weights, nil for
// ones. They are valid until the next call, and calls are made one after another: who reads
// at the same time has one for himself.
type entriesOf func(v int32) (sources []int32, weights []float32)

// layers hold what the levels of a model give for every node of a graph, so that after a
// change the rows that it reaches are computed alone.
type layers struct {
	m      *dist.Staged
	pool   *kernels.Pool
	parts  sync.Pool // of *part
	n      int
	mu     sync.Mutex // of the map values, and of spare, while a level runs
	values map[string]*field
	spare  []overwritten // whose memory may be used again
	undo   []overwritten
	undoN  int

	// slack is by what a row may differ from what it was, as a share of its length, and
	// count as the same: what rounding makes of rows that are computed with others.
	slack float64
	wrote []bool // [n] rows that the last change has given other values

	row []int32 // [n] a node's row in a cut, if row[i] < len(list) and list[row[i]] == i
}

// field is a value of every node.
type field struct {
	shape []int64 // of a row: none, or its width
	width int
	v     []float32 // [n, width]
}

// row is what the field has of a node.
func (f *field) row(v int32) []float32 { return f.v[int(v)*f.width : (int(v)+1)*f.width] }

// rowSet are the nodes whose rows a model is given, numbered in the order in which they are
// asked for.
type rowSet struct {
	of    map[int32]int64
	nodes []int32
}

// number returns the row of a node.
func (r *rowSet) number(v int32) int64 {
	at, ok := r.of[v]
	if !ok {
		at = int64(len(r.nodes))
		r.of[v] = at
		r.nodes = append(r.nodes, v)
	}
	return at
}

// tensor has what a field has of them.
func (r *rowSet) tensor(f *field) ort.Tensor {
	data := make([]float32, 0, len(r.nodes)*f.width)
	for _, v := range r.nodes {
		data = append(data, f.row(v)...)
	}
	return ort.Float32s(data, append([]int64{int64(len(r.nodes))}, f.shape...)...)
}

// overwritten are rows of a field as they were.
type overwritten struct {
	f    *field
	rows []int32
	v    []float32
}

// newLayers computes everything for n nodes with features x.
func newLayers(pool *kernels.Pool, m *dist.Staged, n int, x *matrix, in func() entriesOf) (*layers, error) {
	l := &layers{m: m, pool: pool, values: map[string]*field{}, wrote: make([]bool, n)}
	l.grow(n)
	for level := range l.levels() {
		if err := l.level(level, nil, x, in); err != nil {
			return nil, err
		}
	}
	l.undo = nil
	return l, nil
}

// levels counts those that are of nodes: what a scorer's last one gives is computed for
// pairs when it is asked for.
func (l *layers) levels() int {
	if l.m.Common != nil {
		return l.m.Levels() - 1
	}
	return l.m.Levels()
}

func (l *layers) grow(n int) {
	l.n = n
	for _, f := range l.values {
		f.v = append(f.v, make([]float32, n*f.width-len(f.v))...)
	}
	l.row = append(l.row, make([]int32, max(0, n-len(l.row)))...)
}

// change follows a graph that has n nodes now. moved are nodes with other features or into
// which other entries lead, ascending, new nodes among them; out gives the targets of a
// node's entries. It returns the nodes with other values at some level, ascending.
func (l *layers) change(n int, moved []int32, x *matrix, in func() entriesOf, out func(int32) []int32) (changed []int32, err error) {
	l.spare, l.undo, l.undoN = append(l.spare, l.undo...), nil, l.n
	l.grow(n)
	l.wrote = make([]bool, n)
	if len(moved) == 0 { // nodes without edges were deleted
		return nil, nil
	}
	for v := l.undoN; v < n; v++ {
		l.wrote[v] = true
	}
	dirty := moved
	for level := range l.levels() {
		if level > 0 {
			if dirty = reach(l.pool, list(l.wrote), n, n/3, func() func(int32) []int32 { return out }); dirty != nil {
				dirty = append(dirty, moved...)
				slices.Sort(dirty)
				dirty = slices.Compact(dirty)
			}
		}
		rows := dirty
		if len(rows) > n/3 { // more would be cut out than left
			rows = nil
		}
		if err := l.level(level, rows, x, in); err != nil {
			return nil, err
		}
	}
	return list(l.wrote), nil
}

// reach adds to nodes, each of which is there once, those that they lead to. It returns nil
// where that makes more than most. out gives a function that one goroutine may call.
func reach(pool *kernels.Pool, nodes []int32, n, most int, out func() func(int32) []int32) []int32 {
	if len(nodes) > most {
		return nil
	}
	seen := make([]atomic.Bool, n)
	var count atomic.Int64
	pool.For(len(nodes), 1<<9, kernels.BodyFunc(func(lo, hi int) {
		leads := out()
		for _, v := range nodes[lo:hi] {
			if count.Load() > int64(most) {
				return
			}
			fresh := int64(0)
			for _, u := range leads(v) {
				if !seen[u].Load() && seen[u].CompareAndSwap(false, true) {
					fresh++
				}
			}
			if !seen[v].Load() && seen[v].CompareAndSwap(false, true) {
				fresh++
			}
			count.Add(fresh)
		}
	}))
	if count.Load() > int64(most) {
		return nil
	}
	all := make([]int32, 0, count.Load())
	for v := range seen {
		if seen[v].Load() {
			all = append(all, int32(v))
		}
	}
	return all
}

// list returns the members of a set, ascending.
func list(set []bool) []int32 {
	all := []int32{}
	for v, yes := range set {
		if yes {
			all = append(all, int32(v))
		}
	}
	return all
}

// revert makes everything as it was before the last change.
func (l *layers) revert() {
	for _, o := range slices.Backward(l.undo) {
		for i, v := range o.rows {
			copy(o.f.row(v), o.v[i*o.f.width:(i+1)*o.f.width])
		}
	}
	l.n, l.undo, l.wrote = l.undoN, nil, nil
	for _, f := range l.values {
		f.v = f.v[:l.n*f.width]
	}
}

// A level, and the scorer, run on parts with as many edges, and numbers of as many, at most:
// what they compute then fits into a processor's cache, and is too little for the allocator to
// map it for each run. Parts run at the same time.
var (
	cutEdges     = 1 << 12
	cutRows      = 1 << 10 // where a level reads no edges
	cutLeast     = 1 << 5  // rows or pairs, below which more threads do not pay
	scoreValues  = 1 << 18
	cosineValues = 1 << 4 // as many as a pair counts of which only the cosine is read
)

// level computes some rows of a level, or with nil all.
func (l *layers) level(level int, rows []int32, x *matrix, in func() entriesOf) error {
	whole := rows == nil
	if whole {
		rows = lists.Of(l.n, func(v int) int32 { return int32(v) })
	}
	sums, edges := l.m.SumsOf(level)
	var cuts []*layerCut
	read := in()
	for rest := rows; len(rest) > 0; {
		var c *layerCut
		switch {
		case !edges:
			c = &layerCut{rows: rest[:min(len(rest), cutRows, max(cutLeast, (len(rows)+l.pool.Threads()-1)/l.pool.Threads()))]}
			c.list, c.n = c.rows, len(c.rows)
		case whole:
			c = l.cut(level, rest, read, math.MaxInt)
		default:
			c = l.cut(level, rest, read, cutEdges)
		}
		cuts, rest = append(cuts, c), rest[len(c.rows):]
	}
	old := make([][]overwritten, len(cuts))
	err := each(l.pool, len(cuts), func(i int) error {
		with, _ := l.parts.Get().(*part)
		if with == nil {
			with = &part{pool: kernels.NewPool(1), data: map[string][]float32{}}
		}
		defer l.parts.Put(with)
		inputs := l.sums(with, sums, cuts[i], in())
		out, err := l.run(level, cuts[i], with, inputs, x)
		if err != nil {
			return err
		}
		old[i], err = l.write(level, cuts[i], out)
		return err
	})
	for _, o := range slices.Concat(old...) {
		if o.f != nil {
			l.undo = append(l.undo, o)
		}
	}
	return err
}

// part is what cuts are computed with, one at a time.
type part struct {
	pool   *kernels.Pool // of the caller's thread alone
	rows   kernels.CSR   // entries over which sums are made
	weight []float32
	data   map[string][]float32 // inputs
}

// room is memory for an input, in which what is behind used is zeros.
func (p *part) room(name string, n, used int) []float32 {
	data := p.data[name]
	if cap(data) < n {
		data = make([]float32, n)
	}
	data = data[:n]
	clear(data[used:])
	p.data[name] = data
	return data
}

// sums are those over the entries into the rows of a cut, by name.
func (l *layers) sums(by *part, sums []onnx.NeighborSum, c *layerCut, in entriesOf) map[string]ort.Tensor {
	given := make(map[string]ort.Tensor, len(sums))
	if len(sums) == 0 {
		return given
	}
	m := &by.rows
	m.Rows, m.Cols, m.RowPtr, m.Col, by.weight = len(c.rows), l.n, append(m.RowPtr[:0], 0), m.Col[:0], by.weight[:0]
	for _, v := range c.rows {
		from, w := in(v)
		m.Col, by.weight = append(m.Col, from...), append(by.weight, w...)
		m.RowPtr = append(m.RowPtr, int32(len(m.Col)))
	}
	for _, x := range sums {
		of, w := l.field(x.Of), by.weight
		if !x.Weighted || len(w) == 0 {
			w = nil // ones
		}
		used := len(c.rows) * of.width
		sum := by.room(x.Name, c.n*of.width, used)
		by.pool.SpMM(sum[:used], m, w, nil, of.v, of.width, kernels.Epilogue{})
		given[x.Name] = ort.Float32s(sum, append([]int64{int64(c.n)}, of.shape...)...)
	}
	return given
}

// each calls f with 0 to n-1, several at a time, and returns an error if one does.
func each(pool *kernels.Pool, n int, f func(i int) error) error {
	errs := make([]error, n)
	pool.For(n, 1, kernels.BodyFunc(func(lo, hi int) {
		for i := lo; i < hi; i++ {
			errs[i] = f(i)
		}
	}))
	return errors.Join(errs...)
}

// layerCut is the part of a graph that rows of a level depend on, and what they are.
type layerCut struct {
	rows     []int32
	list     []int32 // rows, and behind them their sources
	n        int     // nodes of the part
	src, dst []int64
	weight   []float32 // nil where there are none
}

// cut takes rows with up to some edges, one row at least. At the lowest level nothing of
// the sources is read, and one row stands for all.
func (l *layers) cut(level int, rows []int32, in entriesOf, most int) *layerCut {
	c := &layerCut{}
	count := len(rows)
	for i, v := range rows {
		from, w := in(v)
		if i > 0 && len(c.src)+len(from) > most {
			count = i
			break
		}
		for _, u := range from {
			c.src, c.dst = append(c.src, int64(u)), append(c.dst, int64(i))
		}
		if w != nil && c.weight == nil {
			c.weight = []float32{}
		}
		c.weight = append(c.weight, w...)
	}
	c.rows = rows[:count]
	c.list = append(make([]int32, 0, count+len(c.src)), c.rows...)
	for i, v := range c.rows {
		l.row[v] = int32(i)
	}
	for i, u := range c.src {
		if level == 0 {
			c.src[i] = int64(count)
			continue
		}
		if r := int(l.row[u]); r >= len(c.list) || c.list[r] != int32(u) {
			l.row[u] = int32(len(c.list))
			c.list = append(c.list, int32(u))
		}
		c.src[i] = int64(l.row[u])
	}
	if c.n = len(c.list); level == 0 {
		c.n++
	}
	return c
}

// run computes what a level gives for a cut out of inputs and the values of lower levels, which
// it adds to them.
func (l *layers) run(level int, c *layerCut, by *part, inputs map[string]ort.Tensor, x *matrix) (map[string]ort.Tensor, error) {
	first, count := int(c.list[0]), len(c.list)
	for _, name := range l.m.Reads(level) {
		shape, width := []int64{int64(x.cols)}, x.cols
		read := x.row
		var data []float32
		if name != "x" {
			f := l.field(name)
			if f == nil {
				return nil, fmt.Errorf("level %d reads %s, which no lower level gives", level, name)
			}
			shape, width = f.shape, f.width
			read = func(v int) []float32 { return f.row(int32(v)) }
			if c.n == count && len(c.src) == 0 && int(c.list[count-1])-first == count-1 { // one behind another
				data = f.v[first*f.width : (first+count)*f.width]
			}
		}
		if data == nil {
			data = by.room(name, c.n*width, count*width)
			for i, v := range c.list {
				copy(data[i*width:], read(int(v)))
			}
		}
		inputs[name] = ort.Float32s(data, append([]int64{int64(c.n)}, shape...)...)
	}
	edges := int64(len(c.src))
	var w *ort.Tensor
	if c.weight != nil {
		w = new(ort.Float32s(c.weight, edges))
	}
	return l.m.Run(level, c.n, inputs, ort.Int64s(append(c.src, c.dst...), 2, edges), w)
}

// field is what a level gives by this name, nil where it gave none yet.
func (l *layers) field(name string) *field {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.values[name]
}

// write keeps what was computed for the rows of a cut, which no other has, and returns what
// differs as it was.
func (l *layers) write(level int, c *layerCut, out map[string]ort.Tensor) (old []overwritten, err error) {
	for _, name := range l.m.Gives(level) {
		t := out[name]
		if len(t.Shape) == 0 || int(t.Shape[0]) != c.n {
			return old, fmt.Errorf("level %d gives %s of shape %v for %d nodes", level, name, t.Shape, c.n)
		}
		l.mu.Lock()
		f := l.values[name]
		if f == nil {
			f = &field{shape: slices.Clone(t.Shape[1:]), width: len(t.F32) / c.n}
			f.v = make([]float32, l.n*f.width)
			l.values[name] = f
		}
		l.mu.Unlock()
		if len(t.F32) != c.n*f.width {
			return old, fmt.Errorf("level %d gives %s of shape %v for %d nodes", level, name, t.Shape, c.n)
		}
		old = append(old, l.overwrite(f, c.rows, t.F32))
	}
	return old, nil
}

// overwrite gives rows of a field the values that they have now, and returns what differs as it was.
func (l *layers) overwrite(f *field, rows []int32, values []float32) overwritten {
	var old overwritten
	for i, v := range rows {
		to, now := f.row(v), values[i*f.width:(i+1)*f.width]
		if !l.differ(to, now) {
			continue
		}
		if old.f == nil {
			l.mu.Lock()
			if last := len(l.spare) - 1; last >= 0 {
				old, l.spare = l.spare[last], l.spare[:last]
			}
			l.mu.Unlock()
			old = overwritten{f, slices.Grow(old.rows[:0], len(rows)-i), slices.Grow(old.v[:0], (len(rows)-i)*f.width)}
		}
		l.wrote[v] = true
		old.rows, old.v = append(old.rows, v), append(old.v, to...)
		copy(to, now)
	}
	return old
}

// differ tells rows that count as others.
func (l *layers) differ(was, now []float32) bool {
	if l.slack == 0 {
		return !slices.Equal(was, now)
	}
	apart, length := 0.0, 0.0
	for i, x := range now {
		d := float64(x) - float64(was[i])
		apart += float64(d * d)
		length += float64(float64(x) * float64(x))
	}
	return !(apart <= float64(l.slack*l.slack)*length) // of NaN, too
}
