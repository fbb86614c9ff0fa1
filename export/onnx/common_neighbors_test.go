package onnx

import (
	"errors"
	"strings"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestEdgesAsPairs weighs edges by what operations on pairs say of their ends, passes
// messages over them, and asks the same of other pairs.
func TestEdgesAsPairs(t *testing.T) {
	m, err := ir.Parse("judge", `module @judge
func @f(%g: graph<N,E>, %w: f32[E], %x: f32[N,4], %v: f32[N], %pairs: i64[2,P]) -> (y: f32[N,4], s: f32[P]) {
  %ends = edge_pairs %g : i64[2,E]
  %dot = pair_dot %x, %ends : f32[E]
  %common = common_neighbors %g, _, %v, %ends : f32[E]
  %more = common_neighbors %g, %w, %v, %ends : f32[E]
  %near = add %common, %more : f32[E]
  %sum = add %dot, %near : f32[E]
  %p = sigmoid %sum : f32[E]
  %kept = mul %p, %w : f32[E]
  %y = spmm %g, %kept, _, %x : f32[N,4]
  %deg = edge_sum %g, %kept {side="dst"} : f32[N]
  %c = common_neighbors %g, %kept, %deg, %pairs : f32[P]
  %a = pair_gather %deg, %pairs {end="first"} : f32[P]
  %b = pair_gather %v, %pairs {end="second"} : f32[P]
  %ab = mul %a, %b : f32[P]
  %s = add %ab, %c : f32[P]
  return %y, %s
}`)
	if err != nil {
		t.Fatal(err)
	}
	fn := m.Func("f")
	for _, o := range []ModelOptions{{}, {Lowering: PrecomputedBuckets, Opset: 21}, {Lowering: Scatter}, {Symmetrize: true}} {
		s := onnxtest.Open(t, written(t, m, fn, o), 2)
		for _, g := range onnxtest.Graphs()[:8] {
			e := int64(len(g.Src))
			weights := ort.Float32s(onnxtest.RandomFloats("w", int(e)), e)
			in := map[string]ort.Tensor{
				InputEdgeIndex: g.EdgeIndex(), InputEdgeWeight: weights,
				"x": ort.Float32s(onnxtest.RandomFloats("x", 4*g.N), int64(g.N), 4), "v": ort.Float32s(onnxtest.RandomFloats("v", g.N), int64(g.N)),
				"pairs": ort.Int64s([]int64{0, 0, int64(g.N / 2), int64(g.N - 1), 0, int64(g.N - 1), int64(g.N / 3), int64(g.N / 2)}, 2, 4),
			}
			read := map[string]ort.Tensor{}
			for name, v := range in {
				read[name] = v
			}
			if o.Symmetrize {
				index, w, err := Symmetrize(g.N, g.EdgeIndex(), &weights)
				if err != nil {
					t.Fatal(err)
				}
				read[InputEdgeIndex], read[InputEdgeWeight] = index, *w
			}
			want, err := Interpreter(m, nil, nil)("f", read)
			if err != nil {
				t.Fatal(err)
			}
			onnxtest.Compare(t, g.Name, onnxtest.Run(t, s, withTables(t, o.Lowering, g, in)), want)
		}
	}
	var unsupported *UnsupportedError
	b := ir.NewModule("dense").NewFunc("f")
	g, x := b.Arg("g", ir.GraphType("N", "E")), b.Arg("x", ir.T(ir.F32, "N", "4"))
	b.Return("y", b.One("spmm", nil, g, b.One("pair_dot", nil, x, b.One("edge_pairs", nil, g)), nil, x))
	if _, err := Model(b.Func, nil, ModelOptions{Lowering: Dense}); !errors.As(err, &unsupported) || unsupported.Op != "edge_pairs" || !strings.Contains(err.Error(), "take the degree-buckets, precomputed-buckets or scatter lowering") {
		t.Errorf("the dense form gives %v", err)
	}
}
