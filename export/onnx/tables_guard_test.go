package onnx

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestHostileTables feeds a file of the lowering PrecomputedBuckets with tables that name what
// there is not. It refuses them, for onnxruntime would read negative numbers from
// the end and spread one row over all nodes.
func TestHostileTables(t *testing.T) {
	g := &onnxtest.Graph{N: 40}
	for k := range 64*64 + 1 { // rows of all levels
		g.Add(1+k%3, 0)
	}
	for k := range 70 {
		g.Add(k%5, 5)
	}
	for v := range 30 {
		g.Add(v, v+1)
	}
	good := map[string]ort.Tensor{"h": ort.Float32s(onnxtest.RandomFloats("h", 3*g.N), int64(g.N), 3), "edge_index": g.EdgeIndex()}
	if err := AddTables(good, g.N, false); err != nil {
		t.Fatal(err)
	}
	s := onnxtest.Open(t, aggregationModel(t, PrecomputedBuckets, 3, false), 2)
	onnxtest.Run(t, s, good)

	edges, nodes := int64(len(g.Src)), int64(g.N)
	rows, segments := good[InputOrderRows].I64, good[InputSegmentRows].I64
	all := sumOf(rows) + 1 + sumOf(segments) + good[InputRest].Shape[0]
	const guard = "tables_fit_the_graph"
	at := func(i int, v int64) func([]int64) []int64 {
		return func(list []int64) []int64 { list[i] = v; return list }
	}
	for _, test := range []struct {
		name, table string
		change      func([]int64) []int64
		say         string
	}{
		{"an edge beyond the edges", InputOrder, at(7, edges+1), guard},
		{"an edge far beyond", InputOrder, at(7, 1<<40), guard},
		{"a negative edge", InputOrder, at(7, -1), guard},
		{"a negative degree", InputDegree, at(3, -1), guard},
		{"a degree of more than all edges", InputDegree, at(3, edges+1), guard},
		{"a row of order that there is not", InputSegments, at(1, rows[len(rows)-1]+1), guard},
		{"a negative row of order", InputSegments, at(1, -1), guard},
		{"a row of segments that there is not", InputRest, at(0, segments[len(segments)-1]+1), guard},
		{"a negative row of segments", InputRest, at(0, -2), guard},
		{"a sum that there is not", InputRestore, at(39, all), guard},
		{"a negative sum", InputRestore, at(39, -1), guard},
		{"one degree for all nodes", InputDegree, func(list []int64) []int64 { return list[:1] }, guard},
		{"a sum for one node alone", InputRestore, func(list []int64) []int64 { return list[:1] }, guard},
		{"sums for too many nodes", InputRestore, func(list []int64) []int64 { return append(list, 0) }, guard},
		{"more rows than entries", InputOrderRows, at(0, rows[0]+1), "Split"},
		{"a negative number of rows", InputOrderRows, at(0, -1), ""},
		{"rows without end", InputOrderRows, at(6, 1<<58), ""},
		{"rows of segments without end", InputSegmentRows, at(2, 1<<58), ""},
		{"entries cut off", InputOrder, func(list []int64) []int64 { return list[:len(list)-1] }, "Split"},
		{"a class too few", InputOrderRows, func(list []int64) []int64 { return list[1:] }, InputOrderRows},
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
