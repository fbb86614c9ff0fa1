package run

import (
	"math"
	"testing"

	"github.com/gsrc-dev/gsrc/export/onnx"
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/models"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/ort"
)

func randomParams(t *testing.T, m *ir.Module) map[string][]float32 {
	t.Helper()
	params := map[string][]float32{}
	for _, p := range m.Params {
		dims, err := p.Type.Shape(nil)
		if err != nil {
			t.Fatal(err)
		}
		v := runtime.Zeros(dims...).F32
		for i := range v {
			v[i] = float32(0.5 * rng.New(1, p.Name).Normal(uint64(i)))
		}
		params[p.Name] = v
	}
	return params
}

// The compiled forward pass computes what the float64 interpreter does, on
// graphs with repeated and one-way entries and self-loops too.
func TestForward(t *testing.T) {
	const n, d = 9, 5
	x := make([]float32, n*d)
	for i := range x {
		x[i] = float32(rng.New(2, "x").Normal(uint64(i)))
	}
	graphs := map[string]ort.Tensor{
		"no edges":          ort.Int64s(nil, 2, 0),
		"both ways":         ort.Int64s([]int64{0, 1, 1, 2, 4, 8, 1, 0, 2, 1, 8, 4}, 2, 6),
		"repeated, one way": ort.Int64s([]int64{3, 3, 5, 5, 7, 0, 4, 4, 5, 6, 8, 1}, 2, 6),
	}
	o := models.Default()
	o.Features, o.Classes, o.Hidden, o.Encoder.Hidden, o.Encoder.Projection = d, 3, 6, 4, 4
	constants := map[string]float32{"lo": -0.5, "hi": 0.75}
	for _, model := range models.All {
		m := models.WithoutEstimate(model.Build(o))
		params := randomParams(t, m)
		reference := onnx.Interpreter(m, params, constants)
		f, err := newForward(m, params, constants, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for graphName, index := range graphs {
			in := map[string]ort.Tensor{"x": ort.Float32s(x, n, d), "edge_index": index}
			weights := make([]float32, index.Shape[1])
			for i := range weights {
				weights[i] = 0.25 + float32(i)/8
			}
			in["edge_weight"] = ort.Float32s(weights, index.Shape[1])
			for _, fn := range exportable {
				if m.Func(fn) == nil {
					continue
				}
				if fn == "score" {
					in["pairs"] = ort.Int64s([]int64{0, 1, 2, 3, 4, 5}, 2, 3)
				}
				got, err := f.Run(fn, in)
				if err != nil {
					t.Fatalf("%s @%s, %s: %v", model.Name, fn, graphName, err)
				}
				want, err := reference(fn, in)
				if err != nil {
					t.Fatal(err)
				}
				if fn == "encode" {
					in["embedding"] = want["embedding"]
				}
				for name, w := range want {
					g := got[name]
					if len(g.F32) != len(w.F32) || len(w.F32) == 0 {
						t.Fatalf("%s @%s, %s: %s has %d elements, want %d", model.Name, fn, graphName, name, len(g.F32), len(w.F32))
					}
					for i := range w.F32 {
						if d := math.Abs(float64(g.F32[i] - w.F32[i])); !(d < 1e-4) {
							t.Fatalf("%s @%s, %s: %s[%d] is %g, want %g", model.Name, fn, graphName, name, i, g.F32[i], w.F32[i])
						}
					}
				}
			}
		}
	}
}

func TestForwardRefuses(t *testing.T) {
	o := models.Default()
	o.Features, o.Classes = 2, 2
	m := models.All[1].Build(o)
	params := randomParams(t, m)
	f, err := newForward(m, params, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x := ort.Float32s([]float32{1, 2, 3, 4}, 2, 2)
	for name, in := range map[string]map[string]ort.Tensor{
		"no graph":     {"x": x},
		"no features":  {"edge_index": ort.Int64s(nil, 2, 0)},
		"node outside": {"x": x, "edge_index": ort.Int64s([]int64{0, 2}, 2, 1)},
		"wrong width":  {"x": ort.Float32s([]float32{1, 2}, 2, 1), "edge_index": ort.Int64s(nil, 2, 0)},
	} {
		if _, err := f.Run("classify", in); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for p := range params {
		params[p] = params[p][:1]
	}
	broken, err := newForward(m, params, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if _, err := broken.Run("classify", map[string]ort.Tensor{"x": x, "edge_index": ort.Int64s(nil, 2, 0)}); err == nil {
		t.Error("parameters of the wrong size were taken")
	}
	if _, err := newForward(ir.NewModule("empty"), nil, nil, 1); err == nil {
		t.Error("a module without inference functions was taken")
	}
}
