package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// aggregate is the direct computation in float64: sums over entering edges
// without self-loops, and the same of ones.
func aggregate(g *onnxtest.Graph, h []float32, width int, w []float32) (sums, degree []float64) {
	sums, degree = make([]float64, g.N*width), make([]float64, g.N)
	for e := range g.Src {
		if g.Src[e] == g.Dst[e] {
			continue
		}
		we := 1.0
		if w != nil {
			we = float64(w[e])
		}
		degree[g.Dst[e]] += we
		for k := range width {
			sums[int(g.Dst[e])*width+k] += we * float64(h[int(g.Src[e])*width+k])
		}
	}
	return sums, degree
}

// largest is the maximum over entering edges, the lowest number of none.
func largestOf(g *onnxtest.Graph, h []float32, width int) []float32 {
	top := slices.Repeat([]float32{-math.MaxFloat32}, g.N*width)
	for e := range g.Src {
		for k := range width {
			if i := int(g.Dst[e])*width + k; g.Src[e] != g.Dst[e] {
				top[i] = max(top[i], h[int(g.Src[e])*width+k])
			}
		}
	}
	return top
}

// aggregationModel sums twice over the same tables, so that sharing is tested
// too: y = A·h, z = A·[h, h], and the degree.
func aggregationModel(t testing.TB, l Lowering, width int, weighted bool) []byte {
	t.Helper()
	b := newBuilder("aggregate", "")
	h := b.input("h", "", float32Type, named("num_nodes"), fixed(width))
	index := b.input("edge_index", "", Int64Type, fixed(2), named("num_edges"))
	var weight *tensor
	nodes := b.sizeOf(h, 0)
	list := newEdgeList(b, index, nodes, h.dims[0])
	if weighted {
		w := b.input("edge_weight", "", float32Type, named("num_edges"))
		weight = &w
	}
	var a aggregation
	switch l {
	case Scatter:
		a = newScatter(list)
	case PrecomputedBuckets:
		a = newPrecomputedBuckets(list, nil)
	default:
		a = newBuckets(list)
	}
	y := a.sum(h, weight)
	z := a.sum(b.concat(1, h, h), weight)
	d := a.degree(weight)
	messages := b.gather(h, list.src)
	b.output(a.total(messages), "total", "")
	b.output(a.largest(messages), "largest", "")
	b.output(y, "y", "")
	b.output(z, "z", "")
	b.output(d, "degree", "")
	return marshalTestModel(t, b)
}

func marshalTestModel(t testing.TB, b *builder) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&onnxpb.ModelProto{
		IrVersion: IRVersion(OpsetVersion), Graph: b.graph, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: OpsetVersion}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// withTables adds what the host builds.
func withTables(t *testing.T, l Lowering, g *onnxtest.Graph, in map[string]ort.Tensor) map[string]ort.Tensor {
	t.Helper()
	if l != PrecomputedBuckets {
		return in
	}
	in = maps.Clone(in)
	if err := AddTables(in, g.N, false); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestAggregation(t *testing.T) {
	for _, l := range []Lowering{DegreeBuckets, PrecomputedBuckets, Scatter} {
		for _, weighted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/weighted=%v", l, weighted), func(t *testing.T) {
				const width = 5
				model := aggregationModel(t, l, width, weighted)
				one, two := onnxtest.Open(t, model, 1), onnxtest.Open(t, model, 3)
				for _, g := range onnxtest.Graphs() {
					t.Run(g.Name, func(t *testing.T) {
						h := onnxtest.RandomFloats("h", g.N*width)
						in := map[string]ort.Tensor{"h": ort.Float32s(h, int64(g.N), width), "edge_index": g.EdgeIndex()}
						var w []float32
						if weighted {
							w = onnxtest.RandomFloats("w", len(g.Src))
							in["edge_weight"] = ort.Float32s(w, int64(len(w)))
						}
						in = withTables(t, l, g, in)
						sums, degree := aggregate(g, h, width, w)
						out := onnxtest.Run(t, one, in)
						n := int64(g.N)
						onnxtest.CheckClose(t, "sum", out["y"], sums, n, width)
						onnxtest.CheckClose(t, "degree", out["degree"], degree, n, 1)
						twice := make([]float64, 0, 2*len(sums))
						for i := range g.N {
							twice = append(twice, sums[i*width:(i+1)*width]...)
							twice = append(twice, sums[i*width:(i+1)*width]...)
						}
						onnxtest.CheckClose(t, "sum of [h, h]", out["z"], twice, n, 2*width)
						plain, _ := aggregate(g, h, width, nil)
						onnxtest.CheckClose(t, "total", out["total"], plain, n, width)
						if want := largestOf(g, h, width); !slices.Equal(out["largest"].F32, want) {
							t.Errorf("largest is %v, want %v", out["largest"].F32, want)
						}
						again := onnxtest.Run(t, two, in)
						for _, name := range []string{"y", "z", "degree", "total", "largest"} {
							if !slices.Equal(out[name].F32, again[name].F32) {
								t.Errorf("%s differs between 1 and 3 threads", name)
							}
						}
					})
				}
			})
		}
	}
}

// TestLargeDegrees reaches the last bucket and the one beyond it, where the
// precision of a long sum and the two-step summation matter.
func TestLargeDegrees(t *testing.T) {
	if testing.Short() {
		t.Skip("sums over two million edges")
	}
	for _, weighted := range []bool{false, true} {
		model := aggregationModel(t, DegreeBuckets, 2, weighted)
		s := onnxtest.Open(t, model, 0)
		for _, degree := range []int{1<<20 - 3, 1 << 20, 1<<20 + 5} {
			g := &onnxtest.Graph{N: 10}
			for i := range degree {
				g.Add(1+i%8, 0)
			}
			g.Add(0, 3)
			h := onnxtest.RandomFloats("large", g.N*2)
			in := map[string]ort.Tensor{"h": ort.Float32s(h, int64(g.N), 2), "edge_index": g.EdgeIndex()}
			var w []float32
			if weighted {
				w = onnxtest.RandomFloats("w", len(g.Src))
				in["edge_weight"] = ort.Float32s(w, int64(len(w)))
			}
			sums, deg := aggregate(g, h, 2, w)
			out := onnxtest.Run(t, s, in)
			onnxtest.CheckClose(t, fmt.Sprintf("sum, degree %d, weighted %v", degree, weighted), out["y"], sums, int64(g.N), 2)
			onnxtest.CheckClose(t, fmt.Sprintf("degree %d, weighted %v", degree, weighted), out["degree"], deg, int64(g.N), 1)
		}
	}
}

// TestTablesAgree holds the tables that models build against those that the host
// builds: they are the same, entry by entry.
func TestTablesAgree(t *testing.T) {
	b := newBuilder("tables", "")
	h := b.input("h", "", float32Type, named("num_nodes"), fixed(1))
	index := b.input("edge_index", "", Int64Type, fixed(2), named("num_edges"))
	made := newBuckets(newEdgeList(b, index, b.sizeOf(h, 0), h.dims[0])).tables
	for name, v := range map[string]tensor{InputDegree: made.count, InputOrder: made.order, InputOrderRows: made.orderRows, InputSegments: made.segments,
		InputSegmentRows: made.segmentRows, InputRest: made.rest, InputRestore: made.restore} {
		b.output(v, name, "")
	}
	s := onnxtest.Open(t, marshalTestModel(t, b), 2)
	graphs := onnxtest.Graphs()
	hubs := &onnxtest.Graph{Name: "hubs of every kind", N: 30}
	for v, degree := range []int{1, 2, 3, 63, 64, 65, 128, 129, 256, 257, 1024, 1025, 4096, 4097, 9000, 64 * 64 * 3} {
		for k := range degree {
			hubs.Add(16+k%14, v)
		}
	}
	for _, g := range append(graphs, hubs) {
		want, err := BuildTables(g.N, g.EdgeIndex())
		if err != nil {
			t.Fatal(err)
		}
		got := onnxtest.Run(t, s, map[string]ort.Tensor{"h": ort.Float32s(make([]float32, g.N), int64(g.N), 1), "edge_index": g.EdgeIndex()})
		for name, w := range want.Inputs() {
			if !slices.Equal(got[name].Shape, w.Shape) || !slices.Equal(got[name].I64, w.I64) {
				t.Errorf("%s: %s is %v %v in the model, %v %v from the host", g.Name, name, got[name].Shape, got[name].I64, w.Shape, w.I64)
			}
		}
	}
	for _, bad := range [][]int64{{0, 3}, {-1, 1}} {
		if _, err := BuildTables(3, ort.Int64s(bad, 2, 1)); err == nil || !strings.Contains(err.Error(), "outside the nodes 0 to 2") {
			t.Errorf("edge %v of 3 nodes gives %v", bad, err)
		}
	}
}

// TestNeverEmitted holds the operators that are wrong or missing in runtimes.
func TestNeverEmitted(t *testing.T) {
	for _, l := range []Lowering{DegreeBuckets, PrecomputedBuckets, Scatter} {
		for _, weighted := range []bool{false, true} {
			var m onnxpb.ModelProto
			if err := proto.Unmarshal(aggregationModel(t, l, 3, weighted), &m); err != nil {
				t.Fatal(err)
			}
			for _, n := range m.Graph.Node {
				if n.OpType == "ScatterND" || n.OpType == "LpNormalization" || n.Domain != "" {
					t.Errorf("%s: node %s is %s", l, n.Name, n.OpType)
				}
			}
		}
	}
}
