package export

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestHostileTables feeds a file of the lowering HostBuckets with tables that name what
// there is not. It refuses them, for onnxruntime would read negative numbers from
// the end and spread one row over all nodes.
func TestHostileTables(t *testing.T) {
	g := &testGraph{n: 40}
	for k := range 64*64 + 1 { // rows of all levels
		g.add(1+k%3, 0)
	}
	for k := range 70 {
		g.add(k%5, 5)
	}
	for v := range 30 {
		g.add(v, v+1)
	}
	good := map[string]ort.Tensor{"h": ort.Float32s(randomFloats("h", 3*g.n), int64(g.n), 3), "edge_index": g.edgeIndex()}
	if err := addTables(good, g.n, false); err != nil {
		t.Fatal(err)
	}
	s := openTestModel(t, aggregationModel(t, HostBuckets, 3, false), 2)
	mustRun(t, s, good)

	edges, nodes := int64(len(g.src)), int64(g.n)
	rows, segments := good[inputOrderRows].I64, good[inputSegmentRows].I64
	all := sumOf(rows) + 1 + sumOf(segments) + good[inputRest].Shape[0]
	const guard = "tables_fit_the_graph"
	at := func(i int, v int64) func([]int64) []int64 {
		return func(list []int64) []int64 { list[i] = v; return list }
	}
	for _, test := range []struct {
		name, table string
		change      func([]int64) []int64
		say         string
	}{
		{"an edge beyond the edges", inputOrder, at(7, edges+1), guard},
		{"an edge far beyond", inputOrder, at(7, 1<<40), guard},
		{"a negative edge", inputOrder, at(7, -1), guard},
		{"a negative degree", inputDegree, at(3, -1), guard},
		{"a degree of more than all edges", inputDegree, at(3, edges+1), guard},
		{"a row of order that there is not", inputSegments, at(1, rows[len(rows)-1]+1), guard},
		{"a negative row of order", inputSegments, at(1, -1), guard},
		{"a row of segments that there is not", inputRest, at(0, segments[len(segments)-1]+1), guard},
		{"a negative row of segments", inputRest, at(0, -2), guard},
		{"a sum that there is not", inputRestore, at(39, all), guard},
		{"a negative sum", inputRestore, at(39, -1), guard},
		{"one degree for all nodes", inputDegree, func(list []int64) []int64 { return list[:1] }, guard},
		{"a sum for one node alone", inputRestore, func(list []int64) []int64 { return list[:1] }, guard},
		{"sums for too many nodes", inputRestore, func(list []int64) []int64 { return append(list, 0) }, guard},
		{"more rows than entries", inputOrderRows, at(0, rows[0]+1), "Split"},
		{"a negative number of rows", inputOrderRows, at(0, -1), ""},
		{"rows without end", inputOrderRows, at(6, 1<<58), ""},
		{"rows of segments without end", inputSegmentRows, at(2, 1<<58), ""},
		{"entries cut off", inputOrder, func(list []int64) []int64 { return list[:len(list)-1] }, "Split"},
		{"a class too few", inputOrderRows, func(list []int64) []int64 { return list[1:] }, inputOrderRows},
	} {
		in := maps.Clone(good)
		bad := in[test.table]
		bad.I64 = test.change(slices.Clone(bad.I64))
		if len(bad.Shape) == 1 {
			bad.Shape = []int64{int64(len(bad.I64))}
		}
		in[test.table] = bad
		if _, err := s.Run(in); err == nil || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%s: %v, want an error of %q", test.name, err, test.say)
		}
	}
	// The tables of another graph.
	other := maps.Clone(good)
	other["h"] = ort.Float32s(make([]float32, 3*(nodes+1)), nodes+1, 3)
	if _, err := s.Run(other); err == nil || !strings.Contains(err.Error(), guard) {
		t.Errorf("tables of fewer nodes: %v", err)
	}
}
