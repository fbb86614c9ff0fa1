package graph

import (
	"runtime"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
	"pgregory.net/rapid"
)

// checkStructure compares st with its definition.
func checkStructure(t failer, g *Graph, st *Structure) {
	t.Helper()
	type entry struct{ target, source, edge int32 }
	var want []entry
	for i, e := range g.Edges {
		want = append(want, entry{e[1], e[0], int32(i)})
		if !g.Directed {
			want = append(want, entry{e[0], e[1], int32(i)})
		}
	}
	slices.SortFunc(want, func(a, b entry) int {
		return compareEdges([2]int32{a.target, a.source}, [2]int32{b.target, b.source})
	})
	if st.N != g.N || st.E != len(want) || len(st.EdgeOf) != st.E {
		t.Fatalf("N %d, E %d, len(EdgeOf) %d; want %d, %d, %d", st.N, st.E, len(st.EdgeOf), g.N, len(want), len(want))
	}
	if st.In.Perm != nil || len(st.Out.Perm) != st.E {
		t.Fatalf("In.Perm %v, Out.Perm of %d", st.In.Perm, len(st.Out.Perm))
	}
	for name, m := range map[string]*kernels.CSR{"In": st.In, "Out": st.Out} {
		if err := m.Validate(); err != nil || m.Rows != g.N || m.Cols != g.N {
			t.Fatalf("%s is %d × %d: %v", name, m.Rows, m.Cols, err)
		}
	}
	if tr := kernels.Transpose(st.In); !slices.Equal(tr.RowPtr, st.Out.RowPtr) || !slices.Equal(tr.Col, st.Out.Col) || !slices.Equal(tr.Perm, st.Out.Perm) {
		t.Fatalf("Out is %+v, the transpose of In is %+v", st.Out, tr)
	}
	src, dst := st.EdgeIndex()
	for p, w := range want {
		if got := (entry{int32(dst[p]), int32(src[p]), st.EdgeOf[p]}); got != w {
			t.Fatalf("entry %d is %v, want %v", p, got, w)
		}
	}
}

func TestStructure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		st := g.Structure()
		checkStructure(t, g, st)
		// The same memory must serve any other graph.
		for range 3 {
			g = drawGraph(t)
			st.Rebuild(g)
			checkStructure(t, g, st)
		}
	})
}

// failer is what *testing.T and *rapid.T have in common here.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func TestStructureSmall(t *testing.T) {
	for _, c := range []struct {
		name string
		g    Graph
	}{
		{"empty", Graph{}},
		{"one node", Graph{N: 1}},
		{"isolated nodes", Graph{N: 3}},
		{"directed, isolated last", Graph{N: 4, Edges: [][2]int32{{0, 1}, {1, 0}, {2, 0}}, Directed: true}},
		{"triangle", Graph{N: 3, Edges: [][2]int32{{0, 1}, {0, 2}, {1, 2}}}},
	} {
		t.Run(c.name, func(t *testing.T) { checkStructure(t, &c.g, c.g.Structure()) })
	}
}

func TestSpread(t *testing.T) {
	g := &Graph{N: 3, Edges: [][2]int32{{0, 1}, {1, 2}}, Weights: []float32{3, 4}}
	st := g.Structure()
	for _, c := range []struct {
		per, want []float32
	}{{g.Weights, []float32{3, 3, 4, 4}}, {nil, []float32{1, 1, 1, 1}}} {
		buf := make([]float32, 9)
		if got := st.Spread(buf, c.per); !slices.Equal(got, c.want) || &got[0] != &buf[0] {
			t.Errorf("Spread(%v) = %v, want %v in the given memory", c.per, got, c.want)
		}
		if got := st.Spread(nil, c.per); !slices.Equal(got, c.want) {
			t.Errorf("Spread(nil, %v) = %v, want %v", c.per, got, c.want)
		}
	}
}

func TestRebuildAllocatesNothing(t *testing.T) {
	g := randomGraph(t, 300, 1500, 1)
	h, _, err := g.RemoveRandom(0.3, rng.New(1, "test"))
	if err != nil {
		t.Fatal(err)
	}
	st := g.Structure()
	if a := testing.AllocsPerRun(10, func() { st.Rebuild(h); st.Rebuild(g) }); a != 0 {
		t.Errorf("%v allocations", a)
	}
}

// randomGraph has about the given number of undirected edges.
func randomGraph(t testing.TB, n, edges int, seed uint64) *Graph {
	t.Helper()
	s := rng.New(seed, "test.graph")
	src, dst := make([]int32, edges), make([]int32, edges)
	for i := range edges {
		src[i], dst[i] = int32(s.Intn(uint64(2*i), n)), int32(s.Intn(uint64(2*i+1), n))
	}
	g, _, err := Build(n, src, dst, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func BenchmarkStructureRebuild(b *testing.B) {
	g := randomGraph(b, 2708, 5278+13000, 1) // Cora's edges and five neighbours a node
	st := g.Structure()
	b.ReportAllocs()
	for b.Loop() {
		st.Rebuild(g)
	}
}

// The structure of a directed graph without its directions takes no more than is said.
func TestUndirectedBytes(t *testing.T) {
	g := &Graph{N: 3000, Directed: true}
	for u := range int32(3000) {
		for v := u + 1; v < min(u+40, 3000); v++ {
			g.Edges = append(g.Edges, [2]int32{u, v})
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	st := g.Undirected().Structure()
	runtime.ReadMemStats(&after)
	if took := int(after.TotalAlloc - before.TotalAlloc); took > g.UndirectedBytes() || 2*took < g.UndirectedBytes() {
		t.Errorf("%d bytes were taken for %d entries, %d are said", took, st.E, g.UndirectedBytes())
	}
	if n := (&Graph{N: 3}).UndirectedBytes(); n != 0 {
		t.Errorf("an undirected graph takes %d bytes more", n)
	}
}
