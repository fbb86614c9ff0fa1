package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/internal/safetensors"
	"github.com/gsrc-dev/gsrc/passes"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Layout says which partition owns a node: the nodes, numbered in the order of their files, are
// divided into ranges of nearly equal length.
type Layout struct {
	Nodes, Partitions int64
}

// start returns the first node of a partition.
func (l Layout) start(p int64) int64 {
	q, r := l.Nodes/l.Partitions, l.Nodes%l.Partitions
	return p*q + min(p, r)
}

// owner returns the partition of a node.
func (l Layout) owner(v int64) int64 {
	q, r := l.Nodes/l.Partitions, l.Nodes%l.Partitions
	if v < r*(q+1) {
		return v / (q + 1)
	}
	return r + (v-r*(q+1))/q
}

// state is a partition: its nodes, the entries that lead to them, and the values they have so
// far. In a table it has
//
//	ptr      int32 [n+1] and
//	col      int64 [e]   the entries of each node, by the nodes that they come from, ascending
//	send.to  int32 [s] and
//	send.row int32 [s]   which rows other partitions read, by partition
//	names                what the data call the nodes
//	value.*  float32     values with a row for each node or entry
type state struct {
	*table
	Layout
	partition int64
	lo        int64 // first node
	ptr       []int32
	col       []int64
	to, rows  []int32
}

const valuePrefix = "value."

func newState(l Layout, partition int64, ptr []int32, col []int64) *state {
	s := &state{table: newTable(), Layout: l, partition: partition, lo: l.start(partition)}
	s.Metadata["partition"] = fmt.Sprint(partition, l.Nodes, l.Partitions)
	s.setEntries(ptr, col)
	return s
}

// setEntries gives the nodes other entries. Who reads rows of them is as if all entries went both ways.
func (s *state) setEntries(ptr []int32, col []int64) {
	s.ptr, s.col = ptr, col
	s.put("ptr", ptr, len(ptr))
	s.put("col", col, len(col))
	var list [][2]int32
	for i := range s.n() {
		for _, u := range col[ptr[i]:ptr[i+1]] {
			if p := s.owner(u); p != s.partition {
				list = append(list, [2]int32{int32(p), int32(i)})
			}
		}
	}
	s.setReaders(list)
}

// setReaders enters the rows that other partitions read, given as pairs of partition and row.
func (s *state) setReaders(list [][2]int32) {
	slices.SortFunc(list, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	s.to, s.rows = []int32{}, []int32{}
	for _, x := range slices.Compact(list) {
		s.to, s.rows = append(s.to, x[0]), append(s.rows, x[1])
	}
	s.put("send.to", s.to, len(s.to))
	s.put("send.row", s.rows, len(s.rows))
}

func parseState(b []byte) (*state, error) {
	t, err := parseTable(b)
	if err != nil {
		return nil, err
	}
	s := &state{table: t, ptr: array[int32](t, "ptr"), col: array[int64](t, "col"), to: array[int32](t, "send.to"), rows: array[int32](t, "send.row")}
	if _, err := fmt.Sscan(t.Metadata["partition"], &s.partition, &s.Nodes, &s.Partitions); err != nil || s.Partitions <= 0 || len(s.ptr) == 0 {
		return nil, fmt.Errorf("an element of the pipeline is no partition")
	}
	s.lo = s.start(s.partition)
	return s, nil
}

func (s *state) n() int { return len(s.ptr) - 1 }

func (s *state) own(v int64) bool { return v >= s.lo && v < s.lo+int64(s.n()) }

// readers are the partitions that read rows of this one, with these.
func (s *state) readers() map[int64][]int32 {
	by := map[int64][]int32{}
	for i, to := range s.to {
		by[int64(to)] = append(by[int64(to)], s.rows[i])
	}
	return by
}

// some makes a table of some rows of these values, which others read.
func (s *state) some(rows []int32, values []string) (*table, error) {
	t := newTable()
	nodes := make([]int64, len(rows))
	for i, r := range rows {
		nodes[i] = s.lo + int64(r)
	}
	t.put("node", nodes, len(nodes))
	for _, name := range values {
		x, err := s.value(name)
		if err != nil {
			return nil, err
		}
		t.put(valuePrefix+name, s.rowsOf(x.Data.([]float32), nodes), append([]int{len(rows)}, x.Shape[1:]...)...)
	}
	return t, nil
}

// rowsOf returns those rows of x, which has one for each node of the partition, that some of the nodes have.
func (s *state) rowsOf(x []float32, nodes []int64) []float32 {
	w := len(x) / max(1, s.n()) // a partition may have no nodes
	some := make([]float32, 0, len(nodes)*w)
	for _, v := range nodes {
		some = append(some, x[int(v-s.lo)*w:][:w]...)
	}
	return some
}

// putLists enters the lists of some rows' entries and what these weigh. Of hubs those only that near, if any,
// reads of a list.
func (s *state) putLists(t *table, rows []int32, near int) {
	list, few, a := newEntries(), newEntries(), array[float32](s.table, valuePrefix+weightOfEntry)
	for _, r := range rows {
		if !s.hub(int(r)) {
			list.add(s.lo+int64(r), s.col, a, s.ptr[r], s.ptr[r+1])
		} else if near > 0 {
			few.addNear(s.lo+int64(r), s.col, a, s.ptr[r], s.ptr[r+1], near)
		}
	}
	list.put(t, entriesPrefix)
	few.put(t, nearEntriesPrefix)
}

// value returns a value that the partition must have.
func (s *state) value(name string) (*safetensors.Tensor, error) {
	x := s.Lookup(valuePrefix + name)
	if x == nil {
		return nil, fmt.Errorf("a partition has no value %%%s", name)
	}
	return x, nil
}

// outside lists those of some nodes that are in other partitions, each once, ascending.
func (s *state) outside(lists ...[]int64) (nodes []int64) {
	for _, list := range lists {
		for _, v := range list {
			if !s.own(v) {
				nodes = append(nodes, v)
			}
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// local numbers nodes: the partition's own, then those outside it.
func (s *state) local(nodes, outside []int64) []int32 {
	numbers := make([]int32, len(nodes))
	for i, v := range nodes {
		if numbers[i] = int32(v - s.lo); !s.own(v) {
			at, _ := slices.BinarySearch(outside, v)
			numbers[i] = int32(s.n() + at)
		}
	}
	return numbers
}

// gather puts rows that were sent behind the partition's own: of the nodes outside it, or at least
// of those that are needed; others are zeros.
func (s *state) gather(name string, outside, needed []int64, sent []*table) ([]float32, []int, error) {
	x, err := s.value(name)
	if err != nil {
		return nil, nil, err
	}
	w, n := width(x.Shape), s.n()
	all := make([]float32, (n+len(outside))*w)
	copy(all, x.Data.([]float32))
	have := make([]bool, len(outside))
	for _, t := range sent {
		rows := array[float32](t, valuePrefix+name)
		if rows == nil {
			continue
		}
		for i, v := range array[int64](t, "node") {
			if at, ok := slices.BinarySearch(outside, v); ok {
				copy(all[(n+at)*w:(n+at+1)*w], rows[i*w:(i+1)*w])
				have[at] = true
			}
		}
	}
	for _, v := range needed {
		if at, ok := slices.BinarySearch(outside, v); !ok || !have[at] {
			return nil, nil, fmt.Errorf("the row of %%%s of node %d, which a partition reads of another, was not sent", name, v)
		}
	}
	return all, append([]int{n + len(outside)}, x.Shape[1:]...), nil
}

// compute runs a part on the partition and keeps what is read later, or is to be held.
func (s *state) compute(m *model, stage string, at int, hold []string, sent []*table) error {
	st := m.stages[stage]
	part := st.Parts[at]
	outside := s.outside(s.col)
	args := map[string]*runtime.Buffer{}
	for _, a := range st.module.Func(part.Func).Args {
		if a.Type.IsGraph() {
			b, err := block(s.n()+len(outside), s.ptr, s.local(s.col, outside))
			if err != nil {
				return err
			}
			args[a.Name] = b
		}
	}
	for _, name := range part.Own {
		x, err := s.value(name)
		if err != nil {
			return err
		}
		args[name] = runtime.F32(x.Data.([]float32), x.Shape...)
	}
	for _, name := range part.Sources {
		data, shape, err := s.gather(name, outside, outside, sent)
		if err != nil {
			return err
		}
		args[passes.SourcesOf(name)] = runtime.F32(data, shape...)
	}
	err := m.run(stage, part.Func, args, func(name string, shape []int, data []float32) {
		s.put(valuePrefix+name, slices.Clone(data), shape...)
	})
	if err != nil {
		return err
	}
	keep := st.keep(at)
	if at == len(st.Parts)-1 { // results get their names
		keep = nil
		for result, name := range st.Results {
			x := *s.Lookup(valuePrefix + name)
			s.put(valuePrefix+result, x.Data, x.Shape...)
			keep = append(keep, result)
		}
	}
	s.keep(append(keep, hold...))
	return nil
}

// keep drops all values but these.
func (s *state) keep(values []string) {
	s.Tensors = slices.DeleteFunc(s.Tensors, func(x safetensors.Tensor) bool {
		name, ok := strings.CutPrefix(x.Name, valuePrefix)
		return ok && !slices.Contains(values, name)
	})
}
