package infer

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/internal/fmath"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// judge keeps what a scorer that judges by evidence reads of nodes, so that pairs are judged
// without the rest of the graph.
type judge struct{ *layers }

// rounding is what rows differ by, as a share of their length, that are computed with others.
const rounding = 1.0 / (1 << 23)

// newJudge computes everything for a graph. The error is a wholeError where the model tells no stages.
func newJudge(inc *incremental, x *matrix) (*judge, error) {
	m, err := inc.r.p.dist.Stage("scorer")
	if err != nil {
		return nil, err
	}
	if m == nil || m.Common == nil {
		if m != nil {
			m.Close()
		}
		return nil, inc.noStages("scorer")
	}
	l, err := newLayers(inc.pool, m, inc.n, x, inc.bothEntries)
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("scorer: %w", err)
	}
	l.slack = rounding
	return &judge{l}, nil
}

// change follows the graph, in which the ends of edges and nodes with other features are
// moved. It returns the nodes whose pairs may be judged otherwise, ascending.
func (j *judge) change(inc *incremental, moved []int32, x *matrix) ([]int32, error) {
	neighbours := func(v int32) []int32 { return inc.both[v] }
	if _, err := j.layers.change(inc.n, moved, x, inc.bothEntries, neighbours); err != nil {
		return nil, fmt.Errorf("scorer: %w", err)
	}
	// Pairs may share a node that has moved, or whose neighbours are others.
	for _, v := range reach(inc.pool, moved, inc.n, inc.n, func() func(int32) []int32 { return neighbours }) {
		j.wrote[v] = true
	}
	return list(j.wrote), nil
}

// score judges pairs: edges without themselves, others as new ones.
func (j *judge) score(p []float32, some *pairs, both [][]int32) error {
	pairs := some.ends
	last := j.levels()
	rows := rowSet{of: make(map[int32]int64, len(pairs))}
	// Of new pairs and of edges their places and ends; those of an edge as the first of its
	// entries has them.
	var at [2][]int
	var ends [2][2][]int64
	for i, e := range pairs {
		kind := 0
		if some.edge[i] {
			kind = 1
		}
		at[kind] = append(at[kind], i)
		for k, v := range e {
			ends[kind][k] = append(ends[kind][k], rows.number(v))
		}
	}
	in := map[string]ort.Tensor{"pairs": ort.Int64s(slices.Concat(ends[0][0], ends[0][1]), 2, int64(len(at[0])))}
	for _, name := range j.m.Reads(last) {
		f := j.values[name]
		if f == nil {
			return fmt.Errorf("scorer: it reads %s of nodes, which no level gives", name)
		}
		in[name] = rows.tensor(f)
	}
	for kind, list := range at {
		sums := make(map[string][]float32)
		for _, c := range j.m.Common {
			if c.Ends == (kind == 1) {
				sums[c.Name] = make([]float32, len(list))
			}
		}
		for k, i := range list {
			common(both[pairs[i][0]], both[pairs[i][1]], func(w int32) {
				for _, c := range j.m.Common {
					if sum := sums[c.Name]; sum != nil && c.Tau == 0 {
						sum[k] += j.values[c.Of].v[w]
					}
				}
			})
			for _, c := range j.m.Common {
				if sum := sums[c.Name]; sum != nil && c.Tau > 0 {
					u, v, x := pairs[i][0], pairs[i][1], j.values[c.Of]
					sum[k] = float32(kernel(c, x, u, v, both[v]) + kernel(c, x, v, u, both[u]))
				}
			}
		}
		for name, sum := range sums {
			in[name] = ort.Float32s(sum, int64(len(sum)))
		}
	}
	out, err := j.m.Run(last, len(rows.nodes), in, ort.Int64s(slices.Concat(ends[1][1], ends[1][0]), 2, int64(len(at[1]))), nil)
	if err != nil {
		return fmt.Errorf("scorer: %w", err)
	}
	for kind, name := range []string{"probability", "edge_probability"} {
		if n := len(out[name].F32); n != len(at[kind]) {
			return fmt.Errorf("the scorer gave %s of %d pairs for %d", name, n, len(at[kind]))
		}
		for k, i := range at[kind] {
			p[i] = out[name].F32[k]
		}
	}
	return nil
}

// common calls f with what is in both of two ascending lists.
func common(a, b []int32, f func(int32)) {
	if len(a) > len(b) {
		a, b = b, a
	}
	for _, v := range a {
		i, ok := slices.BinarySearch(b, v)
		if b = b[i:]; ok {
			f(v)
		}
	}
}

// kernel is what c, a neighbor_kernel of the rows x, sums over the neighbours of a node.
func kernel(c onnx.CommonSum, x *field, u, node int32, neighbours []int32) (sum float64) {
	n := len(neighbours)
	count := min(n, c.Most)
	of := x.row(u)
	for t := range count {
		w := neighbours[t*n/count]
		if w == u || w == node {
			continue
		}
		with, i := x.row(w)[:len(of)], 0
		var dot, other float64 // sums that do not wait for each other
		for ; i+1 < len(of); i += 2 {
			dot += float64(float64(of[i]) * float64(with[i]))
			other += float64(float64(of[i+1]) * float64(with[i+1]))
		}
		if i < len(of) {
			dot += float64(float64(of[i]) * float64(with[i]))
		}
		dot += other
		sum += fmath.Exp((dot - 1) / c.Tau)
	}
	return sum
}
