package export

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// The file's edges and weights are those of Symmetrize, which are the loader's, in
// the same order.
func TestSymmetrize(t *testing.T) {
	b := newBuilder("symmetric", "")
	x := b.input("x", "", float32Type, named("num_nodes"), fixed(1))
	index := b.input(inputEdgeIndex, "", int64Type, fixed(2), named("num_edges"))
	w := b.input(inputEdgeWeight, "", float32Type, named("num_edges"))
	l, weight := newEdgeList(b, index, b.sizeOf(x, 0), named("num_nodes")).symmetric(&w)
	for name, v := range map[string]tensor{"src": l.src, "dst": l.dst, "w": *weight} {
		if err := b.reserve(name); err != nil {
			t.Fatal(err)
		}
		b.output(v, name, "", "Identity")
	}
	data, err := Marshal(b.finish(ModelOptions{}))
	if err != nil {
		t.Fatal(err)
	}
	s := openTestModel(t, data, 2)
	graphs := testGraphs()
	r := rng.New(5, "one direction")
	for _, g := range testGraphs() { // and with some directions left out
		half := &testGraph{name: g.name + ", either direction", n: g.n}
		for i := range g.src {
			if r.Intn(uint64(i), 3) > 0 {
				half.src, half.dst = append(half.src, g.src[i]), append(half.dst, g.dst[i])
			}
		}
		graphs = append(graphs, half)
	}
	for _, g := range graphs {
		e := int64(len(g.src))
		weights := ort.Float32s(randomFloats("w", int(e)), e)
		index, want, err := Symmetrize(g.n, g.edgeIndex(), &weights)
		if err != nil {
			t.Fatal(err)
		}
		got := mustRun(t, s, map[string]ort.Tensor{"x": ort.Float32s(make([]float32, g.n), int64(g.n), 1), inputEdgeIndex: g.edgeIndex(), inputEdgeWeight: weights})
		if !slices.Equal(slices.Concat(got["src"].I64, got["dst"].I64), index.I64) || !slices.Equal(got["w"].F32, want.F32) {
			t.Errorf("%s: %d edges, want %d, or others", g.name, len(got["src"].I64), index.Shape[1])
		}
		listed := map[[2]int64]bool{}
		for i := range g.src {
			if g.src[i] != g.dst[i] {
				listed[[2]int64{g.src[i], g.dst[i]}], listed[[2]int64{g.dst[i], g.src[i]}] = true, true
			}
		}
		for k := range index.Shape[1] {
			delete(listed, [2]int64{index.I64[k], index.I64[index.Shape[1]+k]})
		}
		if len(listed) > 0 {
			t.Errorf("%s: Symmetrize lacks %v", g.name, listed)
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

// Every lowering that reads edge_index, held against the forward pass on the
// undirected graph: duplicates, self-loops, no edges, one direction, both.
func TestBuildSymmetrizes(t *testing.T) {
	for name, change := range map[string]func(*BuildOptions){
		"buckets":      func(o *BuildOptions) {},
		"host-buckets": func(o *BuildOptions) { o.Lowering = HostBuckets },
		"flat, sparse": func(o *BuildOptions) { o.Lowering, o.SparseX = Flat, true },
		"judged":       judged,
	} {
		t.Run(name, func(t *testing.T) {
			o := pipelineOptions(t, "ecl-gsr/struct=0/l1")
			o.Symmetrize = true
			change(&o)
			dir := filepath.Join(t.TempDir(), "dist")
			m, report, err := Build(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			oneWay := 0
			for _, c := range report.Cases {
				if c.Case == "one direction" {
					oneWay++
				}
			}
			if !m.Symmetrize || m.Models["classifier"].Hops != nil || oneWay != 4 {
				t.Errorf("symmetrize %v, %v hops, %d comparisons in one direction", m.Symmetrize, m.Models["classifier"].Hops, oneWay)
			}
			d, err := Open(dir, ort.Options{Provider: ort.CPU, Threads: 1, Library: o.Library})
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			index, weight, err := Symmetrize(o.Sample.nodes(), o.Sample.Edges, o.Sample.Weights)
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Classify(o.Sample.X, index, weight)
			if err != nil {
				t.Fatal(err)
			}
			got, err := d.Classify(o.Sample.X, o.Sample.Edges, o.Sample.Weights)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got["logits"].F32, want["logits"].F32) {
				t.Error("the undirected graph gives other logits")
			}
		})
	}
	o := buildOptions(t, "ecl-gsr/struct=0/l1")
	o.Symmetrize, o.Lowering = true, Dense
	if _, err := Plan(o); err == nil || !strings.Contains(err.Error(), "adjacency") {
		t.Errorf("dense: %v", err)
	}
	// Models that classify on the graph as it is.
	for _, model := range []string{"gat/struct=0/l2", "gcn/struct=0/none"} {
		o := buildOptions(t, model)
		o.Symmetrize = true
		if _, _, err := Build(t.Context(), filepath.Join(t.TempDir(), "dist"), o); err != nil {
			t.Errorf("%s: %v", model, err)
		}
	}
}
