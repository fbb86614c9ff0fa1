package onnx

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// optionModels are models that between them have every operation that depends on
// the form of the features or on the operator set.
var optionModels = []struct{ name, fn string }{
	{"gcn/struct=0/l1", "classify"}, {"gcn/struct=0/l2", "classify"}, {"gcn/struct=0/none", "classify"}, {"mlp/struct=0/l1", "classify"},
	{"gat/struct=0/l2", "classify"}, {"sage/struct=0/l2", "classify"}, {"ecl-gsr/struct=0/l1", "encode"}, {"ecl-gsr/struct=3/l1", "encode"}, {"ecl-gsr/struct=0/l1", "score"},
	{"grand/struct=0/l2", "classify"},
}

func written(t *testing.T, m *ir.Module, fn *ir.Func, o ModelOptions) []byte {
	t.Helper()
	o.Constants = onnxtest.Constants(fn)
	model, err := Model(fn, onnxtest.Params(m), o)
	if err != nil {
		t.Fatal(err)
	}
	data, err := Marshal(model)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFileOptions compares models with features in CSR, and in other operator sets,
// with the reference.
func TestFileOptions(t *testing.T) {
	all := onnxtest.Zoo()
	for _, model := range optionModels {
		m := all[model.name]
		if m == nil {
			t.Fatalf("the zoo has no %s", model.name)
		}
		fn := onnxtest.Compile(t, m, model.fn)
		options := []ModelOptions{{Opset: 18}, {Opset: 20}, {Opset: 21, Lowering: PrecomputedBuckets}, {Opset: 19, Lowering: Scatter}}
		if fn.Arg(SparseArg) != nil {
			options = append(options, ModelOptions{SparseX: true}, ModelOptions{SparseX: true, Lowering: PrecomputedBuckets, Opset: 18})
		}
		for _, o := range options {
			t.Run(fmt.Sprintf("%s/%s/%s/sparse=%v/opset=%d", model.name, model.fn, o.Lowering, o.SparseX, o.Opset), func(t *testing.T) {
				s := onnxtest.Open(t, written(t, m, fn, o), 1)
				for _, g := range onnxtest.Graphs() {
					if g.N > 300 {
						continue
					}
					in, want := expected(t, m, fn, g, o)
					onnxtest.Compare(t, g.Name, onnxtest.Run(t, s, in), want)
				}
			})
		}
	}
	for _, opset := range []int{16, 22, -1} {
		m := all["gcn/struct=0/l1"]
		if _, err := Model(onnxtest.Compile(t, m, "classify"), onnxtest.Params(m), ModelOptions{Opset: opset}); err == nil || !strings.Contains(err.Error(), "choose 17 to 21") {
			t.Errorf("operator set %d gives %v", opset, err)
		}
	}
}

// TestWideSparseRows sums more features of a node than one row of a bucket holds.
func TestWideSparseRows(t *testing.T) {
	const width = 5000
	b := newBuilder("product", "")
	e := &emitter{builder: b, fn: &ir.Func{Name: "f"}, lowering: DegreeBuckets, values: map[*ir.Value]value{}}
	arg := &ir.Value{Name: "x", Type: ir.T(ir.F32, "N", ir.Dim("5000"))}
	e.sparseInput(arg, ModelOptions{})
	w := onnxtest.RandomFloats("w", width*2)
	y := e.values[arg].sparse.times(b.floats("w", w, width, 2))
	b.output(y, "y", "")
	s := onnxtest.Open(t, marshalTestModel(t, b), 1)
	x := make([]float32, 3*width)
	copy(x, onnxtest.RandomFloats("x", width)) // a full row, an empty one, one of a single feature
	x[2*width+7] = 2
	in, err := Sparse(ort.Float32s(x, 3, width))
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float64, 6)
	for i := range 3 {
		for k := range width {
			for j := range 2 {
				want[2*i+j] += float64(x[i*width+k]) * float64(w[2*k+j])
			}
		}
	}
	onnxtest.CheckClose(t, "product", onnxtest.Run(t, s, in)["y"], want, 3, 2)
}

// TestEdgesOutOfRange runs models on edges to nodes that there are not: onnxruntime
// refuses, in the node whose name says why.
func TestEdgesOutOfRange(t *testing.T) {
	m := onnxtest.Zoo()["gcn/struct=0/l1"]
	fn := onnxtest.Compile(t, m, "classify")
	for _, l := range []Lowering{DegreeBuckets, PrecomputedBuckets, Scatter} {
		s := onnxtest.Open(t, written(t, m, fn, ModelOptions{Lowering: l, NoEdgeWeight: true}), 1)
		good := &onnxtest.Graph{N: 3, Src: []int64{0, 1}, Dst: []int64{1, 0}}
		x := ort.Float32s(onnxtest.RandomFloats("x", 3*onnxtest.Features), 3, onnxtest.Features)
		for _, bad := range [][]int64{{0, 3, 1, 0}, {0, 1, 3, 0}, {0, -1, 1, 0}, {0, 1, 1, -3}, {1 << 40, 0, 0, 1}, {3, 0, 3, 1}} {
			in := withTables(t, l, good, map[string]ort.Tensor{"x": x, "edge_index": good.EdgeIndex()})
			in["edge_index"] = ort.Int64s(bad, 2, 2)
			if _, err := s.Run(in); err == nil || !strings.Contains(err.Error(), "edge_index_is_within_the_nodes") {
				t.Errorf("%s: edges %v give %v", l, bad, err)
			}
		}
	}
}

// TestIndicesOutOfRange runs models on other numbers that name nothing, which
// onnxruntime would read from the end, or leave out.
func TestIndicesOutOfRange(t *testing.T) {
	ints := func(v ...int64) ort.Tensor { return ort.Int64s(v, int64(len(v))) }
	matrix := func(rows, columns int64) ort.Tensor {
		return ort.Float32s(onnxtest.RandomFloats("x", int(rows*columns)), rows, columns)
	}
	edges := ort.Int64s([]int64{0, 1, 1, 0}, 2, 2)
	wide := models.Default()
	wide.Features, wide.Classes, wide.Hidden, wide.Layers, wide.Norm, wide.Readout = onnxtest.Features, 3, 5, 1, "none", "sum"
	var graphs *ir.Module
	for _, m := range models.All {
		if m.Name == "gin" {
			graphs = m.Graphs(wide)
		}
	}
	pairs := func(v ...int64) ort.Tensor { return ort.Int64s(v, 2, int64(len(v)/2)) }
	csr := func(indptr, indices ort.Tensor) map[string]ort.Tensor {
		return map[string]ort.Tensor{InputIndptr: indptr, InputIndices: indices, InputValues: ort.Float32s([]float32{1, 2, 3}, 3), InputEdgeIndex: edges}
	}
	scored := func(p ort.Tensor) map[string]ort.Tensor {
		return map[string]ort.Tensor{"embedding": {}, "pairs": p}
	}
	batch := func(ids ort.Tensor) map[string]ort.Tensor {
		return map[string]ort.Tensor{"x": matrix(3, onnxtest.Features), InputEdgeIndex: edges, InputGraphIDs: ids}
	}
	last := int64(onnxtest.Features - 1)
	for _, test := range []struct {
		module *ir.Module
		fn     string
		o      ModelOptions
		node   string // that refuses
		good   []map[string]ort.Tensor
		bad    []map[string]ort.Tensor
	}{
		{onnxtest.Zoo()["ecl-gsr/struct=0/l1"], "score", ModelOptions{}, "pairs_are_within_the_nodes",
			[]map[string]ort.Tensor{scored(pairs(0, 2, 2, 1)), scored(pairs())},
			[]map[string]ort.Tensor{scored(pairs(0, -1)), scored(pairs(-3, 1)), scored(pairs(3, 0)), scored(pairs(0, 1<<40)), scored(pairs(math.MinInt64, 0))}},
		{graphs, "classify", ModelOptions{NoEdgeWeight: true}, "graph_ids_are_not_negative",
			[]map[string]ort.Tensor{batch(ints(0, 1, 0)), batch(ints(0, 5, 0))},
			[]map[string]ort.Tensor{batch(ints(0, -1, 0)), batch(ints(math.MinInt64, 1, 0))}},
		{onnxtest.Zoo()["gcn/struct=0/l1"], "classify", ModelOptions{SparseX: true, NoEdgeWeight: true}, "x_indices_are_within_the_columns",
			[]map[string]ort.Tensor{csr(ints(0, 1, 1, 3), ints(0, 0, last))},
			[]map[string]ort.Tensor{csr(ints(0, 1, 1, 3), ints(0, 0, -1)), csr(ints(0, 1, 1, 3), ints(last+1, 0, 1)), csr(ints(0, 1, 1, 3), ints(0, 1<<40, 1))}},
		{onnxtest.Zoo()["gcn/struct=0/l1"], "classify", ModelOptions{SparseX: true, NoEdgeWeight: true}, "x_indptr_counts_the_entries",
			[]map[string]ort.Tensor{csr(ints(0, 0, 0, 3), ints(0, 1, 2)), csr(ints(0, 3, 3, 3), ints(0, 1, 2))},
			[]map[string]ort.Tensor{csr(ints(0, -1, 1, 3), ints(0, 1, 2)), csr(ints(0, 2, 1, 3), ints(0, 1, 2)), csr(ints(0, 1, 1, 2), ints(0, 1, 2)),
				csr(ints(1, 1, 1, 3), ints(0, 1, 2)), csr(ints(0, 1, 9, 3), ints(0, 1, 2)), csr(ints(0, 1, 1, 1<<40), ints(0, 1, 2))}},
	} {
		fn := onnxtest.Compile(t, test.module, test.fn)
		s := onnxtest.Open(t, written(t, test.module, fn, test.o), 1)
		run := func(in map[string]ort.Tensor) error {
			if _, ok := in["embedding"]; ok {
				width, _ := fn.Arg("embedding").Type.Dims[1].Size()
				in["embedding"] = matrix(3, int64(width))
			}
			_, err := s.Run(in)
			return err
		}
		for _, in := range test.good {
			if err := run(in); err != nil {
				t.Errorf("%s: %v", test.node, err)
			}
		}
		for i, in := range test.bad {
			if err := run(in); err == nil || !strings.Contains(err.Error(), test.node) {
				t.Errorf("%s: case %d gives %v", test.node, i, err)
			}
		}
	}
}

// TestChecker runs the onnx package's checker, with full checks and strict shape
// inference, on files of every lowering and operator set.
func TestChecker(t *testing.T) {
	python := cmp.Or(os.Getenv("GSRC_PYTHON"), "python3")
	if out, err := exec.Command(python, "-c", "import onnx").CombinedOutput(); err != nil {
		t.Skipf("%s has no package onnx (GSRC_PYTHON names another Python): %v %s", python, err, onnxtest.LastLine(string(out)))
	}
	dir := t.TempDir()
	args := []string{"../../tools/conformance/engines/checker/check.py"}
	add := func(m *ir.Module, fn *ir.Func, o ModelOptions) {
		path := filepath.Join(dir, fmt.Sprintf("%d_%s_%s_%d_%v_%s.onnx", len(args), fn.Name, o.Lowering, o.Opset, o.SparseX, o.Precision))
		if err := os.WriteFile(path, written(t, m, fn, o), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, path)
	}
	all := onnxtest.Zoo()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, f := range onnxtest.Funcs {
			if all[name].Func(f) == nil {
				continue
			}
			fn := onnxtest.Compile(t, all[name], f)
			add(all[name], fn, ModelOptions{})
		}
	}
	for _, model := range optionModels {
		m := all[model.name]
		fn := onnxtest.Compile(t, m, model.fn)
		for _, l := range []Lowering{DegreeBuckets, PrecomputedBuckets, Scatter} {
			for opset := OpsetVersion; opset <= MaxOpset; opset += 2 {
				add(m, fn, ModelOptions{Lowering: l, Opset: opset})
			}
		}
		if fn.Arg(SparseArg) != nil {
			add(m, fn, ModelOptions{SparseX: true})
			add(m, fn, ModelOptions{SparseX: true, Opset: 18, NoEdgeWeight: true})
		}
		for _, p := range []Precision{FP16, INT8} {
			add(m, fn, ModelOptions{Precision: p})
			add(m, fn, ModelOptions{Precision: p, Opset: 21, SparseX: fn.Arg(SparseArg) != nil})
		}
		if model.name == "gcn/struct=0/l1" {
			add(m, fn, ModelOptions{Lowering: Dense})
		}
	}
	if out, err := exec.CommandContext(t.Context(), python, args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// expected returns the inputs of a model that is written so, and what it is to give.
func expected(t *testing.T, m *ir.Module, fn *ir.Func, g *onnxtest.Graph, o ModelOptions) (in, want map[string]ort.Tensor) {
	t.Helper()
	in = testInputs(fn, g, true)
	want, err := Interpreter(m, onnxtest.Params(m), onnxtest.Constants(fn))(fn.Name, in)
	if err == nil && GraphArg(fn) != nil {
		in = withTables(t, o.Lowering, g, in)
	}
	if err == nil && o.SparseX {
		in = maps.Clone(in)
		err = AddSparse(in)
	}
	if err != nil {
		t.Fatal(err)
	}
	return in, want
}
