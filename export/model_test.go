package export

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/gsrc-dev/gsrc/compiler"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

const testFeatures = 6

// zoo returns every model in the shapes that exports meet.
func zoo() map[string]*ir.Module {
	out := map[string]*ir.Module{}
	for _, m := range models.All {
		for _, structWidth := range []int{0, 3} {
			if structWidth > 0 && !m.Refines {
				continue
			}
			for _, norm := range []string{"l1", "l2", "none"} {
				if m.Refines && (norm == "none" || structWidth > 0 && norm == "l2") || !m.Refines && m.Name != "gcn" && m.Name != "mlp" && norm != "l2" {
					continue // the same operations as in the others
				}
				o := models.Default()
				o.Features, o.Classes, o.StructWidth, o.Norm = testFeatures, 4, structWidth, norm
				o.Encoder.Hidden, o.Encoder.Projection, o.Hidden = 5, 5, testFeatures
				o.Encoder.StructWeight = 0.5
				out[fmt.Sprintf("%s/struct=%d/%s", m.Name, structWidth, norm)] = m.Build(o)
				if m.Refines && structWidth == 0 && norm == "l1" {
					for _, o.Classifier = range models.Classifiers()[1:] {
						out[m.Name+"/"+o.Classifier] = m.Build(o)
					}
					for _, o.Encoder.Kind = range models.Encoders()[1:] {
						out[m.Name+"/encoder "+o.Encoder.Kind] = m.Build(o)
					}
				}
			}
		}
	}
	return out
}

var exportedFuncs = []string{"encode", "score", "classify"}

func testParams(m *ir.Module) map[string][]float32 {
	params := map[string][]float32{}
	for _, p := range m.Params {
		shape, err := p.Type.Shape(nil)
		if err != nil {
			panic(err)
		}
		n := 1
		for _, d := range shape {
			n *= d
		}
		params[p.Name] = randomFloats(p.Name, n)
		if strings.HasSuffix(p.Name, ".sum.weight") {
			// A layer of GIN sums over up to 250 edges: probabilities that hang on the
			// last digits of logits in the thousands tell nothing.
			for i := range params[p.Name] {
				params[p.Name][i] /= 64
			}
		}
	}
	return params
}

// compiled lowers one function for export.
func compiled(t testing.TB, m *ir.Module, fn string) *ir.Func {
	t.Helper()
	p, err := compiler.Compile(m, compiler.Options{Target: compiler.Inference, Funcs: []string{fn}})
	if err != nil {
		t.Fatal(err)
	}
	return p.Module.Func(fn)
}

var testBounds = map[string]float32{"lo": -0.25, "hi": 0.75}

func constantsOf(fn *ir.Func) map[string]float32 {
	c := map[string]float32{}
	for name, v := range testBounds {
		if fn.Arg(name) != nil {
			c[name] = v
		}
	}
	return c
}

// testInputs makes inputs of a function on a graph.
func testInputs(fn *ir.Func, g *testGraph, weighted bool) map[string]ort.Tensor {
	in := map[string]ort.Tensor{}
	n := int64(g.n)
	for _, a := range fn.Args {
		switch {
		case a.Type.IsGraph():
			in["edge_index"] = g.edgeIndex()
		case a.Name == "w":
			if weighted {
				w := randomFloats("w", len(g.src))
				for i := range w {
					w[i] = w[i]*0.45 + 0.55
				}
				in["edge_weight"] = ort.Float32s(w, int64(len(w)))
			}
		case a.Name == "pairs":
			const pairs = 7
			p := make([]int64, 2*pairs)
			for i := range p {
				p[i] = int64(rng.New(1, "pairs").Intn(uint64(i), g.n))
			}
			in["pairs"] = ort.Int64s(p, 2, pairs)
		case a.Type.Rank() == 2:
			width, _ := a.Type.Dims[1].Size()
			x := randomFloats(a.Name, g.n*width)
			for i := range width { // a node without features
				x[i] = 0
			}
			in[a.Name] = ort.Float32s(x, n, int64(width))
		}
	}
	return in
}

func TestModels(t *testing.T) {
	for name, m := range zoo() {
		params := testParams(m)
		for _, fname := range exportedFuncs {
			if m.Func(fname) == nil {
				continue
			}
			fn := compiled(t, m, fname)
			for _, l := range []Lowering{Buckets, HostBuckets, Flat, Dense} {
				for _, weighted := range []bool{true, false} {
					if !weighted && fn.Arg("w") == nil || l == Dense && fname == "score" {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/weighted=%v", name, fname, l, weighted), func(t *testing.T) {
						model, err := Model(fn, params, ModelOptions{Lowering: l, NoEdgeWeight: !weighted, Constants: constantsOf(fn)})
						if l == Dense && slices.ContainsFunc(fn.Body, func(op *ir.Op) bool { return op.Name() == "edge_softmax" }) {
							var u *UnsupportedError
							if !errors.As(err, &u) || !strings.Contains(err.Error(), "host-buckets or flat") {
								t.Errorf("attention has no dense form; got %v", err)
							}
							return
						}
						if err != nil {
							t.Fatal(err)
						}
						data, err := Marshal(model)
						if err != nil {
							t.Fatal(err)
						}
						again, err := Model(fn, params, ModelOptions{Lowering: l, NoEdgeWeight: !weighted, Constants: constantsOf(fn)})
						if err != nil || !proto.Equal(model, again) {
							t.Error("a second export differs from the first")
						}
						s := openTestModel(t, data, 1)
						forward := Interpreter(m, params, constantsOf(fn))
						for _, g := range testGraphs() {
							if g.n > 300 { // TestAggregation has the large ones
								continue
							}
							in := testInputs(fn, g, weighted)
							want, err := forward(fname, in)
							if err != nil {
								t.Fatal(err)
							}
							if l == Dense {
								in = denseInputs(t, g, in)
							} else if graphArg(fn) != nil {
								in = withTables(t, l, g, in)
							}
							got := mustRun(t, s, in)
							compare(t, g.name+" in onnxruntime", got, want)
							if l == Dense {
								got, err := RunGo(data, in)
								if err != nil {
									t.Errorf("%s in onnx-go: %v", g.name, err)
									continue
								}
								compare(t, g.name+" in onnx-go", got, want)
							}
						}
					})
				}
			}
		}
	}
}

func denseInputs(t *testing.T, g *testGraph, in map[string]ort.Tensor) map[string]ort.Tensor {
	t.Helper()
	out := map[string]ort.Tensor{}
	var weight *ort.Tensor
	for k, v := range in {
		switch k {
		case "edge_weight":
			weight = &v
		case "edge_index":
		default:
			out[k] = v
		}
	}
	if index, ok := in["edge_index"]; ok {
		a, err := Adjacency(g.n, index, weight)
		if err != nil {
			t.Fatal(err)
		}
		out["adjacency"] = a
	}
	return out
}

func compare(t *testing.T, what string, got, want map[string]ort.Tensor) {
	t.Helper()
	for name, w := range want {
		data := make([]float64, len(w.F32))
		for i, v := range w.F32 {
			data[i] = float64(v)
		}
		checkClose(t, what+": "+name, got[name], data, w.Shape...)
	}
	if len(got) != len(want) {
		t.Errorf("%s: %d outputs, want %d", what, len(got), len(want))
	}
}

// TestTableIsComplete walks what the exported functions are made of.
func TestTableIsComplete(t *testing.T) {
	for name, m := range zoo() {
		for _, fname := range exportedFuncs {
			if m.Func(fname) == nil {
				continue
			}
			for _, op := range compiled(t, m, fname).Body {
				if _, ok := opTable[op.Name()]; !ok {
					t.Errorf("%s: @%s contains %s, and the export table has no line for it", name, fname, op.Name())
				}
			}
		}
	}
}

// notExported says why a tensor operation has no line in the table.
var notExported = map[string]string{
	"relu_grad": "gradient", "elu_grad": "gradient", "leaky_relu_grad": "gradient", "l2_normalize_grad": "gradient",
	"cross_entropy_grad": "gradient", "edge_softmax_grad": "gradient", "spmax_grad": "gradient", "pairwise_reduce_grad": "gradient", "grad": "gradient",
	"cross_entropy": "loss", "pairwise_reduce": "loss", "pairwise_self": "loss", "pairwise_mean": "loss",
	"pairwise_mean_grad": "gradient", "pairwise_self_grad": "gradient",
	"fused_elementwise": "written for training", "matmul_fused": "written for training", "spmm_fused": "written for training",
	"receptive_field": "found anew at every training step",
	"cholesky":        "part of the sampler", "solve_upper": "part of the sampler",
}

// TestEveryOperationHasALine fails when an operation is added to the IR and
// nobody decided how it is exported.
func TestEveryOperationHasALine(t *testing.T) {
	for _, d := range ir.Ops() {
		if d.Level != ir.TensorLevel || d.Random {
			continue
		}
		_, has := opTable[d.Name]
		_, excused := notExported[d.Name]
		if has == excused {
			t.Errorf("operation %s: in the export table %v, excused %v; it must be one of the two", d.Name, has, excused)
		}
	}
	for name := range opTable {
		if d := ir.Lookup(name); d == nil || d.Level != ir.TensorLevel {
			t.Errorf("the export table has a line for %s, which is no tensor operation", name)
		}
	}
	if !slices.Contains(exportedFuncs, "classify") {
		t.Fatal("the walk misses @classify")
	}
}

// A value that an operation hands through keeps its name for those that read it
// elsewhere.
func TestPassedThroughValuesKeepTheirName(t *testing.T) {
	m := ir.NewModule("alias")
	b := m.NewFunc("f")
	h := b.One("relu", nil, b.Arg("x", ir.T(ir.F32, "N", "3")))
	b.Return("y", b.Add(b.One("to_dense", nil, h), b.One("neg", nil, h)))
	model, err := Model(b.Func, nil, ModelOptions{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"x": true}
	for _, n := range model.Graph.Node {
		for _, in := range n.Input {
			if !known[in] {
				t.Errorf("%s reads %s, which nothing before it gives", n.Name, in)
			}
		}
		for _, out := range n.Output {
			known[out] = true
		}
	}
}
