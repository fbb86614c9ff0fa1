package onnx

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/gsrc-dev/gsrc/internal/onnxtest"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

// TestHalfWeights compares every exported function of the zoo, stored in fp16, with
// the reference with the same rounded weights.
func TestHalfWeights(t *testing.T) {
	all := onnxtest.Zoo()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, f := range onnxtest.Funcs {
			m := all[name]
			if m.Func(f) == nil {
				continue
			}
			t.Run(name+"/"+f, func(t *testing.T) {
				fn := onnxtest.Compile(t, m, f)
				s := onnxtest.Open(t, written(t, m, fn, ModelOptions{Precision: FP16}), 1)
				rounded, err := Rounded(m, onnxtest.Params(m), FP16)
				if err != nil {
					t.Fatal(err)
				}
				forward := Interpreter(m, rounded, onnxtest.Constants(fn))
				for _, g := range onnxtest.Graphs()[:4] {
					in := testInputs(fn, g, true)
					want, err := forward(f, in)
					if err != nil {
						t.Fatal(err)
					}
					onnxtest.Compare(t, g.Name, onnxtest.Run(t, s, in), want)
				}
			})
		}
	}
}

// quantizedProduct is the arithmetic of an 8-bit product, in float64 from the scales on.
func quantizedProduct(x, w []float32, rows, inner, columns int) []float64 {
	lo, hi := float32(0), float32(0)
	for _, v := range x {
		lo, hi = min(lo, v), max(hi, v)
	}
	step := (hi - lo) / 255
	zero := math.RoundToEven(float64(-lo / step))
	out := make([]float64, rows*columns)
	for j := range columns {
		most := float32(0)
		for k := range inner {
			most = max(most, float32(math.Abs(float64(w[k*columns+j]))))
		}
		scale := most / 127
		if scale == 0 {
			continue
		}
		for i := range rows {
			sum := 0.0
			for k := range inner {
				q := math.Min(255, math.Max(0, math.RoundToEven(float64(x[i*inner+k]/step))+zero))
				sum += (q - zero) * math.RoundToEven(float64(w[k*columns+j]/scale))
			}
			out[i*columns+j] = sum * float64(step) * float64(scale)
		}
	}
	return out
}

// TestQuantizedProduct compares 8-bit products with their arithmetic, on numbers
// where products of signed bytes would saturate, and with the weight turned.
func TestQuantizedProduct(t *testing.T) {
	const rows, inner, columns = 5, 64, 3
	w := onnxtest.RandomFloats("w", inner*columns)
	for i := range w {
		w[i] = 1 - 0.1*w[i]*w[i]
		if i%columns == 2 {
			w[i] = 0
		}
	}
	turned := make([]float32, len(w))
	for k := range inner {
		for j := range columns {
			turned[j*inner+k] = w[k*columns+j]
		}
	}
	x := onnxtest.RandomFloats("x", rows*inner)
	for i := range x {
		x[i] = 3 - x[i]*x[i]
	}
	want := quantizedProduct(x, w, rows, inner, columns)
	for _, tb := range []bool{false, true} {
		m := ir.NewModule("product")
		shape, data := []ir.Dim{"64", "3"}, w
		if tb {
			shape, data = []ir.Dim{"3", "64"}, turned
		}
		p := m.AddParam("w", ir.T(ir.F32, shape...), "zeros", 0, "")
		b := m.NewFunc("f")
		b.Return("y", b.One("matmul", ir.Attrs{"ta": false, "tb": tb}, b.Arg("x", ir.T(ir.F32, "N", "64")), p))
		model, err := Model(b.Func, map[string][]float32{"w": data}, ModelOptions{Precision: INT8})
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range model.Graph.Initializer {
			if i.Name == "w" {
				t.Error("the weight is stored in float32 too")
			}
		}
		file, err := Marshal(model)
		if err != nil {
			t.Fatal(err)
		}
		got := onnxtest.Run(t, onnxtest.Open(t, file, 2), map[string]ort.Tensor{"x": ort.Float32s(x, rows, inner)})
		onnxtest.CheckClose(t, "product", got["y"], want, rows, columns)
	}
}

// TestQuantizedModels holds 8-bit models against the reference within what the
// manifest promises, features in CSR too.
func TestQuantizedModels(t *testing.T) {
	all := onnxtest.Zoo()
	for _, model := range optionModels {
		m := all[model.name]
		fn := onnxtest.Compile(t, m, model.fn)
		for _, o := range []ModelOptions{{Precision: INT8}, {Precision: INT8, SparseX: true, Lowering: PrecomputedBuckets}} {
			if o.SparseX && fn.Arg(SparseArg) == nil {
				continue
			}
			s := onnxtest.Open(t, written(t, m, fn, o), 1)
			in, want := expected(t, m, fn, onnxtest.Graphs()[6], o)
			got := onnxtest.Run(t, s, in)
			for name := range want {
				most, largest := 0.0, 0.0
				for i, v := range want[name].F32 {
					most, largest = math.Max(most, math.Abs(float64(got[name].F32[i]-v))), math.Max(largest, math.Abs(float64(v)))
				}
				if !(most <= quantized.Abs+quantized.Rel*largest) {
					t.Errorf("%s @%s, sparse %v: %s differs by %g", model.name, model.fn, o.SparseX, name, most)
				}
			}
		}
	}
}
