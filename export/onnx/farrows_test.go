package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// Exports normalise rows from the smallest float32 to the largest as the reference
// does, in every form, alone and beside rows of common size, before a product and by
// themselves.
func TestFarRows(t *testing.T) {
	const width, out = 8, 3
	scales := []float64{1, 1e20, -1e20, 1e-18, 0, math.MaxFloat32, -math.MaxFloat32, 3e38, 1e-40, math.SmallestNonzeroFloat32, 1e13, 1e-13, 1e11, 1e-11, 0}
	for e := -38; e <= 38; e += 4 {
		scales = append(scales, math.Pow(10, float64(e)))
	}
	features := func(scales []float64) ort.Tensor {
		x := make([]float32, width*len(scales))
		for i, s := range scales {
			for j := range width {
				if (i+j)%3 < 2 { // some places are not stored
					x[i*width+j] = float32(math.Cos(float64(j*(i+1))) * s)
				}
			}
		}
		return ort.Float32s(x, int64(len(scales)), width)
	}
	inputs := map[string]ort.Tensor{
		"all magnitudes": features(scales), "no far row": features([]float64{1, 2, 0, 1e3}), "only far rows": features([]float64{3e38, 1e-30}),
		"one row": features([]float64{1}), "zeros": features([]float64{0, 0}),
		"many far rows": features(slices.Repeat([]float64{1e20, 1e-18}, 500)),
	}
	w := onnxtest.RandomFloats("w", width*out)
	for _, p := range []int{1, 2} {
		m := ir.NewModule("far")
		product := m.AddParam("w", ir.T(ir.F32, ir.D(width), ir.D(out)), "glorot", 0, "classifier")
		b := m.NewFunc("f")
		x := b.Arg("x", ir.T(ir.F32, "N", ir.D(width)))
		unit := b.One(fmt.Sprintf("l%d_normalize", p), nil, x)
		b.Return("product", b.One("matmul", nil, unit, product))
		b.Return("unit", unit)
		params := map[string][]float32{"w": w}
		for name, o := range map[string]ModelOptions{
			"buckets": {Lowering: DegreeBuckets}, "sparse": {Lowering: DegreeBuckets, SparseX: true}, "dense": {Lowering: Dense},
			"fp16": {Lowering: DegreeBuckets, Precision: FP16}, "int8": {Lowering: DegreeBuckets, Precision: INT8}, "opset 21": {Lowering: DegreeBuckets, Opset: 21},
		} {
			t.Run(fmt.Sprintf("l%d/%s", p, name), func(t *testing.T) {
				params := params
				if o.Precision != "" {
					rounded, err := Rounded(m, params, o.Precision)
					if err != nil {
						t.Fatal(err)
					}
					params = rounded
				}
				model, err := Model(m.Func("f"), params, o)
				if err != nil {
					t.Fatal(err)
				}
				data, err := Marshal(model)
				if err != nil {
					t.Fatal(err)
				}
				s := onnxtest.Open(t, data, 1)
				for what, x := range inputs {
					want, err := Interpreter(m, params, nil)("f", map[string]ort.Tensor{"x": x})
					if err != nil {
						t.Fatal(err)
					}
					in := map[string]ort.Tensor{"x": x}
					if o.SparseX {
						if in, err = Sparse(x); err != nil {
							t.Fatal(err)
						}
					}
					got := onnxtest.Run(t, s, in)
					if o.Precision == INT8 {
						// All rows but the far ones share one range of 8 bits: what is
						// left of the small ones is not what this test is about.
						for i, v := range want["product"].F32 {
							if top := rowTop(x.F32[i/out*width:][:width]); top > 1e-12 && top < 1e12 {
								continue
							}
							if d := math.Abs(float64(got["product"].F32[i] - v)); !(d < 0.05) {
								t.Errorf("%s: element %d of the product is %g, want %g", what, i, got["product"].F32[i], v)
							}
						}
						got, want = maps.Clone(got), maps.Clone(want)
						delete(got, "product")
						delete(want, "product")
					}
					onnxtest.Compare(t, what, got, want)
				}
			})
		}
	}
}

func rowTop(row []float32) float64 {
	top := 0.0
	for _, v := range row {
		top = max(top, math.Abs(float64(v)))
	}
	return top
}
