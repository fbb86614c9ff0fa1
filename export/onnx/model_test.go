package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/ort"
	"google.golang.org/protobuf/proto"
)

// testInputs makes inputs of a function on a graph.
func testInputs(fn *ir.Func, g *onnxtest.Graph, weighted bool) map[string]ort.Tensor {
	in := map[string]ort.Tensor{}
	n := int64(g.N)
	for _, a := range fn.Args {
		switch {
		case a.Type.IsGraph():
			in["edge_index"] = g.EdgeIndex()
		case a.Name == "w":
			if weighted {
				w := onnxtest.RandomFloats("w", len(g.Src))
				for i := range w {
					w[i] = w[i]*0.45 + 0.55
				}
				in["edge_weight"] = ort.Float32s(w, int64(len(w)))
			}
		case a.Name == "pairs":
			const pairs = 7
			p := make([]int64, 2*pairs)
			for i := range p {
				p[i] = int64(rng.New(1, "pairs").Intn(uint64(i), g.N))
			}
			in["pairs"] = ort.Int64s(p, 2, pairs)
		case a.Type.Rank() == 2:
			width, _ := a.Type.Dims[1].Size()
			x := onnxtest.RandomFloats(a.Name, g.N*width)
			for i := range width { // a node without features
				x[i] = 0
			}
			in[a.Name] = ort.Float32s(x, n, int64(width))
		}
	}
	return in
}

func TestModels(t *testing.T) {
	for name, m := range onnxtest.Zoo() {
		params := onnxtest.Params(m)
		for _, fname := range onnxtest.Funcs {
			if m.Func(fname) == nil {
				continue
			}
			fn := onnxtest.Compile(t, m, fname)
			for _, l := range []Lowering{DegreeBuckets, PrecomputedBuckets, Scatter, Dense} {
				for _, weighted := range []bool{true, false} {
					if !weighted && fn.Arg("w") == nil || l == Dense && fname == "score" {
						continue
					}
					t.Run(fmt.Sprintf("%s/%s/%s/weighted=%v", name, fname, l, weighted), func(t *testing.T) {
						model, err := Model(fn, params, ModelOptions{Lowering: l, NoEdgeWeight: !weighted, Constants: onnxtest.Constants(fn)})
						if l == Dense && slices.ContainsFunc(fn.Body, func(op *ir.Op) bool { return op.Name() == "edge_softmax" || op.Name() == "sddmm" }) {
							var u *UnsupportedError
							if !errors.As(err, &u) || !strings.Contains(err.Error(), "precomputed-buckets or scatter") {
								t.Errorf("attention and similarities of ends have no dense form; got %v", err)
							}
							return
						}
						if err != nil {
							t.Fatal(err)
						}
						for _, v := range model.Graph.ValueInfo {
							if slices.Contains(dimsOf(v), unknown) {
								t.Errorf("a size of %s has no name", v.Name)
							}
						}
						data, err := Marshal(model)
						if err != nil {
							t.Fatal(err)
						}
						again, err := Model(fn, params, ModelOptions{Lowering: l, NoEdgeWeight: !weighted, Constants: onnxtest.Constants(fn)})
						if err != nil || !proto.Equal(model, again) {
							t.Error("a second export differs from the first")
						}
						s := onnxtest.Open(t, data, 1)
						forward := Interpreter(m, params, onnxtest.Constants(fn))
						for _, g := range onnxtest.Graphs() {
							if g.N > 300 { // TestAggregation has the large ones
								continue
							}
							for what, scales := range map[string][]float32{"": {1}, ", far rows": {1e20, 1, 1e-18, 3e38, 1e-38}} {
								in := testInputs(fn, g, weighted)
								if x := in["x"]; len(scales) > 1 {
									if x.Shape == nil || strings.Contains(name, "/none") {
										continue
									}
									for i := range x.F32 {
										x.F32[i] *= scales[i/onnxtest.Features%len(scales)]
									}
								}
								want, err := forward(fname, in)
								if err != nil {
									t.Fatal(err)
								}
								if l == Dense {
									in = denseInputs(t, g, in)
								} else if GraphArg(fn) != nil {
									in = withTables(t, l, g, in)
								}
								got := onnxtest.Run(t, s, in)
								onnxtest.Compare(t, g.Name+what+" in onnxruntime", got, want)
							}
						}
					})
				}
			}
		}
	}
}

func denseInputs(t *testing.T, g *onnxtest.Graph, in map[string]ort.Tensor) map[string]ort.Tensor {
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
		a, err := Adjacency(g.N, index, weight)
		if err != nil {
			t.Fatal(err)
		}
		out["adjacency"] = a
	}
	return out
}

// TestTableIsComplete walks what the exported functions are made of.
func TestTableIsComplete(t *testing.T) {
	for name, m := range onnxtest.Zoo() {
		for _, fname := range onnxtest.Funcs {
			if m.Func(fname) == nil {
				continue
			}
			for _, op := range onnxtest.Compile(t, m, fname).Body {
				if _, ok := opEmitters[op.Name()]; !ok {
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
	"unroll":        "resolved by a pass",
	"cross_entropy": "loss", "pairwise_reduce": "loss", "pairwise_self": "loss", "pairwise_mean": "loss",
	"pairwise_mean_grad": "gradient", "pairwise_self_grad": "gradient",
	"fused_elementwise": "written for training", "matmul_fused": "written for training", "spmm_fused": "written for training",
	"sample_block": "found anew at every training step",
	"argsort":      "permutations are drawn in training",
	"cholesky":     "part of the sampler", "solve_upper": "part of the sampler",
}

// TestEveryOperationHasALine fails when an operation is added to the IR and
// nobody decided how it is exported.
func TestEveryOperationHasALine(t *testing.T) {
	for _, d := range ir.Ops() {
		if d.Level != ir.TensorLevel || d.Random {
			continue
		}
		_, has := opEmitters[d.Name]
		_, excused := notExported[d.Name]
		if has == excused {
			t.Errorf("operation %s: in the export table %v, excused %v; it must be one of the two", d.Name, has, excused)
		}
	}
	for name := range opEmitters {
		if d := ir.Lookup(name); d == nil || d.Level != ir.TensorLevel {
			t.Errorf("the export table has a line for %s, which is no tensor operation", name)
		}
	}
	if !slices.Contains(onnxtest.Funcs, "classify") {
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
