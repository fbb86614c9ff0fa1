package export

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/orttest"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// testGraph is a graph as a user's input: edges in any order.
type testGraph struct {
	name     string
	n        int
	src, dst []int64
}

func (g *testGraph) add(src, dst int) {
	g.src, g.dst = append(g.src, int64(src)), append(g.dst, int64(dst))
}

// testGraphs are the graphs on which exporters are known to fail.
func testGraphs() []*testGraph {
	r, draw := rng.New(7, "graphs"), uint64(0)
	node := func(n int) int { draw++; return r.Intn(draw, n) }
	random := func(name string, n, e int, loops bool) *testGraph {
		g := &testGraph{name: name, n: n}
		for len(g.src) < e {
			a, b := node(n), node(n)
			if a != b || loops {
				g.add(a, b)
				g.add(b, a)
			}
		}
		return g
	}
	star := func(leaves int) *testGraph {
		g := &testGraph{name: fmt.Sprintf("star%d", leaves), n: leaves + 2} // the last node is isolated
		for i := range leaves {
			g.add(i+1, 0)
			g.add(0, i+1)
		}
		return g
	}
	pair := &testGraph{name: "duplicates", n: 3}
	for range 5 {
		pair.add(0, 1)
		pair.add(1, 0)
	}
	loops := &testGraph{name: "self-loops", n: 3}
	for i := range 3 {
		loops.add(i, i)
		loops.add(i, i)
	}
	loops.add(0, 1)
	loops.add(1, 0)
	onlyLoops := &testGraph{name: "only self-loops", n: 2}
	onlyLoops.add(0, 0)
	return []*testGraph{
		{name: "one node", n: 1},
		{name: "no edges", n: 5},
		pair, loops, onlyLoops,
		random("sparse", 40, 30, false),
		random("random", 200, 1500, true),
		random("crowded", 8, 2000, true),
		star(3), star(1024), star(1025), star(5000),
	}
}

func (g *testGraph) edgeIndex() ort.Tensor {
	return ort.Int64s(slices.Concat(g.src, g.dst), 2, int64(len(g.src)))
}

// aggregate is the direct computation in float64: sums over entering edges
// without self-loops, and the same of ones.
func (g *testGraph) aggregate(h []float32, width int, w []float32) (sums, degree []float64) {
	sums, degree = make([]float64, g.n*width), make([]float64, g.n)
	for e := range g.src {
		if g.src[e] == g.dst[e] {
			continue
		}
		we := 1.0
		if w != nil {
			we = float64(w[e])
		}
		degree[g.dst[e]] += we
		for k := range width {
			sums[int(g.dst[e])*width+k] += we * float64(h[int(g.src[e])*width+k])
		}
	}
	return sums, degree
}

// largest is the maximum over entering edges, the lowest number of none.
func (g *testGraph) largest(h []float32, width int) []float32 {
	top := slices.Repeat([]float32{-math.MaxFloat32}, g.n*width)
	for e := range g.src {
		for k := range width {
			if i := int(g.dst[e])*width + k; g.src[e] != g.dst[e] {
				top[i] = max(top[i], h[int(g.src[e])*width+k])
			}
		}
	}
	return top
}

func randomFloats(stream string, n int) []float32 {
	r := rng.New(11, stream)
	out := make([]float32, n)
	for i := range out {
		out[i] = r.Uniform(uint64(i))*2 - 1
	}
	return out
}

// aggregationModel sums twice over the same tables, so that sharing is tested
// too: y = A·h, z = A·[h, h], and the degree.
func aggregationModel(t testing.TB, l Lowering, width int, weighted bool) []byte {
	t.Helper()
	b := newBuilder("aggregate", "")
	h := b.input("h", "", float32Type, named("num_nodes"), fixed(width))
	index := b.input("edge_index", "", int64Type, fixed(2), named("num_edges"))
	var weight *tensor
	nodes := b.sizeOf(h, 0)
	list := newEdgeList(b, index, nodes, h.dims[0])
	if weighted {
		w := b.input("edge_weight", "", float32Type, named("num_edges"))
		weight = &w
	}
	var a aggregation
	switch l {
	case Flat:
		a = newFlat(list)
	case HostBuckets:
		a = newHostBuckets(list, nil)
	default:
		a = newBuckets(list)
	}
	y, err := a.sum(h, weight)
	if err != nil {
		t.Fatal(err)
	}
	z, err := a.sum(b.concat(1, h, h), weight)
	if err != nil {
		t.Fatal(err)
	}
	d, err := a.degree(weight)
	if err != nil {
		t.Fatal(err)
	}
	messages := b.gather(h, list.src)
	b.output(a.total(messages), "total", "", "Identity")
	b.output(a.largest(messages), "largest", "", "Identity")
	b.output(y, "y", "", "Identity")
	b.output(z, "z", "", "Identity")
	b.output(d, "degree", "", "Identity")
	return marshalTestModel(t, b)
}

func marshalTestModel(t testing.TB, b *builder) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(&onnxpb.ModelProto{
		IrVersion: irVersion(OpsetVersion), Graph: b.graph, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: OpsetVersion}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func openTestModel(t testing.TB, model []byte, threads int) *ort.Session {
	t.Helper()
	lib := orttest.Need(t)
	s, err := ort.OpenBytes(model, ort.Options{Library: &lib, Provider: ort.CPU, Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustRun(t testing.TB, s *ort.Session, in map[string]ort.Tensor) map[string]ort.Tensor {
	t.Helper()
	out, err := s.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func checkClose(t *testing.T, what string, got ort.Tensor, want []float64, shape ...int64) {
	t.Helper()
	if !slices.Equal(got.Shape, shape) {
		t.Errorf("%s has shape %v, want %v", what, got.Shape, shape)
		return
	}
	largest := 0.0
	for _, v := range want {
		largest = math.Max(largest, math.Abs(v))
	}
	for i, v := range want {
		if d := math.Abs(float64(got.F32[i]) - v); !(d <= 1e-5+1e-4*largest) {
			t.Errorf("%s: element %d is %g, want %g", what, i, got.F32[i], v)
			return
		}
	}
}

// withTables adds what the host builds.
func withTables(t *testing.T, l Lowering, g *testGraph, in map[string]ort.Tensor) map[string]ort.Tensor {
	t.Helper()
	if l != HostBuckets {
		return in
	}
	in = maps.Clone(in)
	if err := addTables(in, g.n, false); err != nil {
		t.Fatal(err)
	}
	return in
}

func TestAggregation(t *testing.T) {
	for _, l := range []Lowering{Buckets, HostBuckets, Flat} {
		for _, weighted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/weighted=%v", l, weighted), func(t *testing.T) {
				const width = 5
				model := aggregationModel(t, l, width, weighted)
				one, two := openTestModel(t, model, 1), openTestModel(t, model, 3)
				for _, g := range testGraphs() {
					t.Run(g.name, func(t *testing.T) {
						h := randomFloats("h", g.n*width)
						in := map[string]ort.Tensor{"h": ort.Float32s(h, int64(g.n), width), "edge_index": g.edgeIndex()}
						var w []float32
						if weighted {
							w = randomFloats("w", len(g.src))
							in["edge_weight"] = ort.Float32s(w, int64(len(w)))
						}
						in = withTables(t, l, g, in)
						sums, degree := g.aggregate(h, width, w)
						out := mustRun(t, one, in)
						n := int64(g.n)
						checkClose(t, "sum", out["y"], sums, n, width)
						checkClose(t, "degree", out["degree"], degree, n, 1)
						twice := make([]float64, 0, 2*len(sums))
						for i := range g.n {
							twice = append(twice, sums[i*width:(i+1)*width]...)
							twice = append(twice, sums[i*width:(i+1)*width]...)
						}
						checkClose(t, "sum of [h, h]", out["z"], twice, n, 2*width)
						plain, _ := g.aggregate(h, width, nil)
						checkClose(t, "total", out["total"], plain, n, width)
						if want := g.largest(h, width); !slices.Equal(out["largest"].F32, want) {
							t.Errorf("largest is %v, want %v", out["largest"].F32, want)
						}
						again := mustRun(t, two, in)
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
		model := aggregationModel(t, Buckets, 2, weighted)
		s := openTestModel(t, model, 0)
		for _, degree := range []int{1<<20 - 3, 1 << 20, 1<<20 + 5} {
			g := &testGraph{n: 10}
			for i := range degree {
				g.add(1+i%8, 0)
			}
			g.add(0, 3)
			h := randomFloats("large", g.n*2)
			in := map[string]ort.Tensor{"h": ort.Float32s(h, int64(g.n), 2), "edge_index": g.edgeIndex()}
			var w []float32
			if weighted {
				w = randomFloats("w", len(g.src))
				in["edge_weight"] = ort.Float32s(w, int64(len(w)))
			}
			sums, deg := g.aggregate(h, 2, w)
			out := mustRun(t, s, in)
			checkClose(t, fmt.Sprintf("sum, degree %d, weighted %v", degree, weighted), out["y"], sums, int64(g.n), 2)
			checkClose(t, fmt.Sprintf("degree %d, weighted %v", degree, weighted), out["degree"], deg, int64(g.n), 1)
		}
	}
}

// TestTablesAgree holds the tables that models build against those that the host
// builds: they are the same, entry by entry.
func TestTablesAgree(t *testing.T) {
	b := newBuilder("tables", "")
	h := b.input("h", "", float32Type, named("num_nodes"), fixed(1))
	index := b.input("edge_index", "", int64Type, fixed(2), named("num_edges"))
	made := newBuckets(newEdgeList(b, index, b.sizeOf(h, 0), h.dims[0])).tables
	for name, v := range map[string]tensor{inputDegree: made.count, inputOrder: made.order, inputOrderRows: made.orderRows, inputSegments: made.segments,
		inputSegmentRows: made.segmentRows, inputRest: made.rest, inputRestore: made.restore} {
		b.output(v, name, "", "Identity")
	}
	s := openTestModel(t, marshalTestModel(t, b), 2)
	graphs := testGraphs()
	hubs := &testGraph{name: "hubs of every kind", n: 30}
	for v, degree := range []int{1, 2, 3, 63, 64, 65, 128, 129, 256, 257, 1024, 1025, 4096, 4097, 9000, 64 * 64 * 3} {
		for k := range degree {
			hubs.add(16+k%14, v)
		}
	}
	for _, g := range append(graphs, hubs) {
		want, err := BuildTables(g.n, g.edgeIndex())
		if err != nil {
			t.Fatal(err)
		}
		got := mustRun(t, s, map[string]ort.Tensor{"h": ort.Float32s(make([]float32, g.n), int64(g.n), 1), "edge_index": g.edgeIndex()})
		for name, w := range want.Inputs() {
			if !slices.Equal(got[name].Shape, w.Shape) || !slices.Equal(got[name].I64, w.I64) {
				t.Errorf("%s: %s is %v %v in the model, %v %v from the host", g.name, name, got[name].Shape, got[name].I64, w.Shape, w.I64)
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
	for _, l := range []Lowering{Buckets, HostBuckets, Flat} {
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
