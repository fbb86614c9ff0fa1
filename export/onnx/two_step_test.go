package onnx

import (
	"maps"
	"testing"

	"github.com/gsrc-dev/gsrc/graph"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Nodes two steps away are those that package graph finds, whatever the graph lists twice
// or in one direction, and where walks over hubs are cut.
func TestTwoStep(t *testing.T) {
	const k = 5
	b := newBuilder("two_step", "")
	nodes := b.input("nodes", "", Int64Type, fixed(1))
	src, dst := b.input("src", "", Int64Type, named("num_edges")), b.input("dst", "", Int64Type, named("num_edges"))
	from, to := (&search{b: b, list: &edgeList{b: b, src: src, dst: dst}, nodes: nodes}).twoStep(k)
	for name, v := range map[string]tensor{"from": from, "to": to} {
		if err := b.reserve(name); err != nil {
			t.Fatal(err)
		}
		b.output(v, name, "")
	}
	data, err := Marshal(b.finish(ModelOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	s := onnxtest.Open(t, data, 2)
	for _, g := range append(onnxtest.Graphs(), hubs()) {
		if g.N == 0 {
			continue
		}
		e := int64(len(g.Src))
		index := g.EdgeIndex().I64
		out := onnxtest.Run(t, s, map[string]ort.Tensor{"nodes": ort.Int64s([]int64{int64(g.N)}, 1), "src": ort.Int64s(index[:e], e), "dst": ort.Int64s(index[e:], e)})
		have, want := map[[2]int64]int{}, map[[2]int64]int{}
		for i, v := range out["from"].I64 {
			have[[2]int64{v, out["to"].I64[i]}]++
		}
		narrow := func(x []int64) []int32 {
			y := make([]int32, len(x))
			for i, v := range x {
				y[i] = int32(v)
			}
			return y
		}
		raw, _, err := graph.Build(g.N, narrow(g.Src), narrow(g.Dst), nil, false)
		if err != nil {
			t.Fatal(err)
		}
		found, _ := graph.TwoStep(nil, raw, k)
		for i, v := range found {
			if v >= 0 {
				want[[2]int64{int64(i / k), int64(v)}]++
			}
		}
		if !maps.Equal(have, want) {
			t.Errorf("%s: %d pairs two steps away, want %d, or others", g.Name, len(have), len(want))
		}
	}
}

// hubs is a graph where some nodes have more walks of two steps than are followed.
func hubs() *onnxtest.Graph {
	const n = 900
	g := &onnxtest.Graph{Name: "hubs", N: n}
	s := rng.New(1, "hubs")
	for i := range uint64(30 * n) {
		x := s.Uniform(2 * i)
		g.Src, g.Dst = append(g.Src, int64(x*x*x*x*n)), append(g.Dst, int64(s.Intn(2*i+1, n)))
	}
	return g
}
