package onnx

import (
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The file's edges and weights are those of Symmetrize, which are the loader's, in
// the same order.
func TestSymmetrize(t *testing.T) {
	b := newBuilder("symmetric", "")
	x := b.input("x", "", float32Type, named("num_nodes"), fixed(1))
	index := b.input(InputEdgeIndex, "", Int64Type, fixed(2), named("num_edges"))
	w := b.input(InputEdgeWeight, "", float32Type, named("num_edges"))
	l, weight := newEdgeList(b, index, b.sizeOf(x, 0), named("num_nodes")).symmetric(&w)
	s := opened(t, b, map[string]tensor{"src": l.src, "dst": l.dst, "w": *weight})
	graphs := onnxtest.Graphs()
	r := rng.New(5, "one direction")
	for _, g := range onnxtest.Graphs() { // and with some directions left out
		half := &onnxtest.Graph{Name: g.Name + ", either direction", N: g.N}
		for i := range g.Src {
			if r.Intn(uint64(i), 3) > 0 {
				half.Src, half.Dst = append(half.Src, g.Src[i]), append(half.Dst, g.Dst[i])
			}
		}
		graphs = append(graphs, half)
	}
	for _, g := range graphs {
		e := int64(len(g.Src))
		weights := ort.Float32s(onnxtest.RandomFloats("w", int(e)), e)
		index, want, err := Symmetrize(g.N, g.EdgeIndex(), &weights)
		if err != nil {
			t.Fatal(err)
		}
		got := onnxtest.Run(t, s, map[string]ort.Tensor{"x": ort.Float32s(make([]float32, g.N), int64(g.N), 1), InputEdgeIndex: g.EdgeIndex(), InputEdgeWeight: weights})
		if !slices.Equal(slices.Concat(got["src"].I64, got["dst"].I64), index.I64) || !slices.Equal(got["w"].F32, want.F32) {
			t.Errorf("%s: %d edges, want %d, or others", g.Name, len(got["src"].I64), index.Shape[1])
		}
		listed := map[[2]int64]bool{}
		for i := range g.Src {
			if g.Src[i] != g.Dst[i] {
				listed[[2]int64{g.Src[i], g.Dst[i]}], listed[[2]int64{g.Dst[i], g.Src[i]}] = true, true
			}
		}
		for k := range index.Shape[1] {
			delete(listed, [2]int64{index.I64[k], index.I64[index.Shape[1]+k]})
		}
		if len(listed) > 0 {
			t.Errorf("%s: Symmetrize lacks %v", g.Name, listed)
		}
	}
	first := ort.Float32s([]float32{3, 5, 7}, 3)
	index1, w1, err := Symmetrize(3, ort.Int64s([]int64{2, 1, 2, 1, 2, 2}, 2, 3), &first)
	if err != nil || !slices.Equal(index1.I64, []int64{2, 1, 1, 2}) || !slices.Equal(w1.F32, []float32{3, 3}) {
		t.Errorf("%v %v %v", index1, w1, err)
	}
	if _, _, err := Symmetrize(2, ort.Int64s([]int64{0, 2}, 2, 1), nil); err == nil || !strings.Contains(err.Error(), "outside the nodes") {
		t.Errorf("a node that is not there: %v", err)
	}
}

// opened opens a graph that gives these tensors, by two threads.
func opened(t *testing.T, b *builder, outputs map[string]tensor) *ort.Session {
	t.Helper()
	for name, v := range outputs {
		if err := b.reserve(name); err != nil {
			t.Fatal(err)
		}
		b.output(v, name, "")
	}
	data, err := Marshal(b.finish(ModelOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	return onnxtest.Open(t, data, 2)
}
