package infer

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/export/dist"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// entriesOf gives the entries into a node: their sources, ascending, and weights, nil for
// ones. They are valid until the next call.
type entriesOf func(v int32) (sources []int32, weights []float32)

// layers hold what the levels of a model give for every node of a graph, so that after a
// change the rows that it reaches are computed alone.
type layers struct {
	m      *dist.Staged
	n      int
	values map[string]*field
	undo   []overwritten
	undoN  int

	row  []int32 // [n] a node's row in a cut, if row[i] < len(cut) and cut[row[i]] == i
	list []int32
}

// field is a value of every node.
type field struct {
	shape []int64 // of a row: none, or its width
	width int
	v     []float32 // [n, width]
}

// overwritten are rows of a field as they were.
type overwritten struct {
	f    *field
	rows []int32
	v    []float32
}

// newLayers computes everything for n nodes with features x.
func newLayers(m *dist.Staged, n int, x *matrix, in entriesOf) (*layers, error) {
	l := &layers{m: m, values: map[string]*field{}}
	l.grow(n)
	for level := range m.Levels() {
		if err := l.level(level, nil, x, in); err != nil {
			return nil, err
		}
	}
	l.undo = nil
	return l, nil
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
// node's entries. It returns the nodes whose outputs may be others, ascending.
func (l *layers) change(n int, moved []int32, x *matrix, in entriesOf, out func(int32) []int32) (dirty []int32, err error) {
	l.undo, l.undoN = nil, l.n
	l.grow(n)
	if len(moved) == 0 { // nodes without edges were deleted
		return nil, nil
	}
	dirty = moved
	for level := range l.m.Levels() {
		if level > 0 {
			dirty = reach(dirty, n, out)
		}
		rows := dirty
		if len(rows) > n/3 { // more would be cut out than left
			rows = nil
		}
		if err := l.level(level, rows, x, in); err != nil {
			return nil, err
		}
	}
	return dirty, nil
}

// reach adds to nodes those that they lead to.
func reach(nodes []int32, n int, out func(int32) []int32) []int32 {
	seen := make([]bool, n)
	count := 0
	add := func(v int32) {
		if !seen[v] {
			seen[v] = true
			count++
		}
	}
	for _, v := range nodes {
		add(v)
		for _, u := range out(v) {
			add(u)
		}
	}
	all := make([]int32, 0, count)
	for v, yes := range seen {
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
			copy(o.f.v[int(v)*o.f.width:], o.v[i*o.f.width:(i+1)*o.f.width])
		}
	}
	l.n, l.undo = l.undoN, nil
	for _, f := range l.values {
		f.v = f.v[:l.n*f.width]
	}
}

// level computes some rows of a level, or with nil all.
func (l *layers) level(level int, rows []int32, x *matrix, in entriesOf) error {
	all := rows == nil
	if all {
		rows = make([]int32, l.n)
		for i := range rows {
			rows[i] = int32(i)
		}
	}
	// The cut: the rows, and behind them their sources. At the lowest level nothing of
	// the sources is read, and one row stands for all.
	l.list = append(l.list[:0], rows...)
	for i, v := range rows {
		l.row[v] = int32(i)
	}
	var src, dst []int64
	var weight []float32
	weighted := false
	for i, v := range rows {
		from, w := in(v)
		for _, u := range from {
			at := int64(len(rows))
			if level > 0 {
				if r := int(l.row[u]); r >= len(l.list) || l.list[r] != u {
					l.row[u] = int32(len(l.list))
					l.list = append(l.list, u)
				}
				at = int64(l.row[u])
			}
			src, dst = append(src, at), append(dst, int64(i))
		}
		if w != nil {
			weighted = true
			weight = append(weight, w...)
		}
	}
	n := len(l.list)
	if level == 0 {
		n++
	}
	inputs := map[string]ort.Tensor{}
	for _, name := range l.m.Reads(level) {
		shape, width := []int64{int64(x.cols)}, x.cols
		read := x.row
		if name != "x" {
			f := l.values[name]
			if f == nil {
				return fmt.Errorf("level %d reads %s, which no lower level gives", level, name)
			}
			shape, width = f.shape, f.width
			read = func(v int) []float32 { return f.v[v*f.width : (v+1)*f.width] }
		}
		data := make([]float32, n*width)
		for i, v := range l.list {
			copy(data[i*width:], read(int(v)))
		}
		inputs[name] = ort.Float32s(data, append([]int64{int64(n)}, shape...)...)
	}
	count := int64(len(src))
	var w *ort.Tensor
	if weighted {
		t := ort.Float32s(weight, count)
		w = &t
	}
	out, err := l.m.Run(level, n, inputs, ort.Int64s(append(src, dst...), 2, count), w)
	if err != nil {
		return err
	}
	for _, name := range l.m.Gives(level) {
		t := out[name]
		if len(t.Shape) == 0 || int(t.Shape[0]) != n {
			return fmt.Errorf("level %d gives %s of shape %v for %d nodes", level, name, t.Shape, n)
		}
		f := l.values[name]
		if f == nil {
			f = &field{shape: slices.Clone(t.Shape[1:]), width: len(t.F32) / n}
			f.v = make([]float32, l.n*f.width)
			l.values[name] = f
		}
		if len(t.F32) != n*f.width {
			return fmt.Errorf("level %d gives %s of shape %v for %d nodes", level, name, t.Shape, n)
		}
		old := overwritten{f: f, rows: rows, v: make([]float32, 0, len(rows)*f.width)}
		for i, v := range rows {
			to := f.v[int(v)*f.width : (int(v)+1)*f.width]
			old.v = append(old.v, to...)
			copy(to, t.F32[i*f.width:(i+1)*f.width])
		}
		l.undo = append(l.undo, old)
	}
	return nil
}
