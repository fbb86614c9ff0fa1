package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/internal/half"
	"github.com/gsrc-dev/gsrc/internal/lists"
	"github.com/gsrc-dev/gsrc/ir"
)

// Precision is how a file stores weights that are matrices. Everything is computed,
// and all that goes in and out is, in float32 in any case.
type Precision string

const (
	// FP32 is float32, as weights are trained.
	FP32 Precision = ""
	// FP16 rounds weights to IEEE 754 binary16: half the size. Runtimes widen them
	// once, when they load the file; sums are in float32.
	FP16 Precision = "fp16"
	// INT8 stores the weights of linear layers in 8 bits with a scale for each
	// column, a quarter of the size, and multiplies integers: what goes into a layer
	// is rounded to 8 bits at run time, by its own range (dynamic quantisation).
	INT8 Precision = "int8"
)

// ParsePrecision reads a precision's name; the empty string is FP32.
func ParsePrecision(s string) (Precision, error) {
	switch p := Precision(s); p {
	case FP32, FP16, INT8:
		return p, nil
	}
	return "", fmt.Errorf("unknown precision %q: choose fp16 or int8, or leave it out for float32", s)
}

// Tolerance bounds max|a − b| of an output by Abs + Rel·max|b|, of probabilities of edges by Edges more.
type Tolerance struct {
	Abs   float64 `json:"abs"`
	Rel   float64 `json:"rel"`
	Edges float64 `json:"edge_probabilities,omitempty"`
}

// Of bounds an output by its name.
func (t Tolerance) Of(output string, largest float64) float64 {
	bound := t.Abs + t.Rel*largest
	if strings.HasPrefix(output, "probability") || output == OutputRefinedProb {
		bound += t.Edges
	}
	return bound
}

// RoundingOfEdges is what rounding may change in probabilities of edges that m maps from cosines
// between lo and hi: eight units in the last place of a cosine near 1, which sums in another order
// cost, divided by hi − lo as the cosine is. It is 0 where that is below the bound of all outputs.
func RoundingOfEdges(m *ir.Module, lo, hi float32) (most float64) {
	for _, op := range m.Func("score").Body {
		if op.Name() == "gsr.pair_probability" {
			widest := max(op.Float("old_hi")-op.Float("old_lo"), op.Float("new_hi")-op.Float("new_lo"))
			most = 8 * 0x1p-23 * widest / max(float64(hi)-float64(lo), ir.LeastSpread)
		}
	}
	if most <= Exact.Abs {
		return 0
	}
	return most
}

// exact is the tolerance of files that compute what the forward pass does, those
// with rounded weights too: they are held against that pass with the same weights.
// quantized is that of models with 8-bit products, which round what goes into them, smoothed that of
// smoothed predictions: logarithms of probabilities of which errors were taken off, and next to nothing is left.
var (
	Exact     = Tolerance{Abs: 1e-5, Rel: 1e-4}
	smoothed  = Tolerance{Abs: 1e-5, Rel: 1e-3}
	quantized = Tolerance{Abs: 0.1, Rel: 0.25}
)

func (t Tolerance) String() string { return fmt.Sprintf("max|a-b| <= %g + %g*max|b|", t.Abs, t.Rel) }

// Rounded returns parameters as a file of a precision holds them: with FP16 matrices
// are rounded. (8-bit products round more than weights, so that INT8 is compared
// with the weights as trained.) What FP16 cannot hold is an error.
func Rounded(m *ir.Module, params map[string][]float32, p Precision) (map[string][]float32, error) {
	if p != FP16 {
		return params, nil
	}
	out := maps.Clone(params)
	for _, v := range m.Params {
		data, ok := params[v.Name]
		if !ok || v.Type.Rank() < 2 {
			continue
		}
		halves, err := roundHalves(v.Name, data)
		if err != nil {
			return nil, err
		}
		out[v.Name] = make([]float32, len(data))
		for i, h := range halves {
			out[v.Name][i] = half.To(h)
		}
	}
	return out, nil
}

func roundHalves(name string, data []float32) ([]uint16, error) {
	halves := make([]uint16, len(data))
	for i, v := range data {
		if halves[i] = half.From(v); halves[i]&0x7c00 == 0x7c00 {
			return nil, fmt.Errorf("parameter $%s is %g at position %d, and fp16 ends at %d; leave --fp16 out", name, v, i, half.Max)
		}
	}
	return halves, nil
}

// halves returns a float32 value whose initialiser is stored in fp16.
func (e *emitter) halves(name, path string, data []float32, dims ...int) tensor {
	list, err := roundHalves(name, data)
	if err != nil {
		panic(emitError{err})
	}
	t := e.cast(e.initializer(path, onnxpb.TensorProto_FLOAT16, rawData(list), dims), float32Type)
	return e.rename(t, strings.TrimPrefix(path, e.base)+"/float32", "the weight, stored in fp16")
}

// weight8 is a weight [D,F] in 8 bits: (values − zero)·scale.
type weight8 struct{ values, zero, scale tensor }

// quantizedWeight returns the operand of a product that is stored in 8 bits; ok is
// false where it is no parameter, or the file has none such.
func (e *emitter) quantizedWeight(op *ir.Op) (w weight8, ok bool) {
	v := op.Operands[1]
	if e.precision != INT8 || !v.Param || v.Type.Rank() != 2 || op.Bool("ta") {
		return w, false
	}
	t := e.lookup(v) // which checks it; the initialiser is dropped unless something else reads it
	rows, columns := int(t.t.dims[0].n), t.t.width()
	data := e.params[v.Name]
	if op.Bool("tb") {
		turned := make([]float32, len(data))
		for i := range rows {
			for j := range columns {
				turned[j*rows+i] = data[i*columns+j]
			}
		}
		data, rows, columns = turned, columns, rows
	}
	scale := make([]float32, columns)
	for i, x := range data {
		scale[i%columns] = max(scale[i%columns], float32(math.Abs(float64(x))))
	}
	for j := range scale {
		if scale[j] /= 127; scale[j] == 0 {
			scale[j] = 1
		}
	}
	// Unsigned around 128: products of signed and unsigned bytes saturate on
	// processors with AVX2 and no VNNI.
	raw := lists.Of(len(data), func(i int) byte { return byte(128 + math.RoundToEven(float64(data[i]/scale[i%columns]))) })
	w.values = e.initializer(e.layers.param(v.Name)+"/uint8", uint8Type, raw, []int{rows, columns})
	w.zero = e.initializer("const", uint8Type, []byte{128}, nil)
	w.scale = e.floats(e.layers.param(v.Name)+"/scale", scale, columns)
	return w, true
}

// dense gives the weight in float32, for what picks its rows.
func (w weight8) dense(e *emitter) tensor {
	zeros := e.initializer("const", w.values.dtype, slices.Repeat([]byte{128}, w.values.width()), []int{w.values.width()})
	return e.op("DequantizeLinear", float32Type, w.values.dims, []tensor{w.values, w.scale, zeros}, intAttr("axis", 1))
}

// times is the product of x [N,D] with the weight, x rounded to 8 bits.
func (w weight8) times(e *emitter, x tensor) tensor {
	q, ok := e.rounded[x.name]
	if !ok {
		q = e.multi("DynamicQuantizeLinear", []tensor{{dtype: uint8Type, dims: x.dims}, {dtype: float32Type}, {dtype: uint8Type}}, []tensor{x})
		e.rounded[x.name] = q
	}
	dims := []dim{x.dims[0], w.values.dims[1]}
	sums := e.op("MatMulInteger", onnxpb.TensorProto_INT32, dims, []tensor{q[0], w.values, q[2], w.zero})
	return e.binary("Mul", e.cast(sums, float32Type), e.binary("Mul", q[1], w.scale))
}

// ToleranceOf is the tolerance of a model: wide where products in it round.
func ToleranceOf(m *onnxpb.ModelProto) Tolerance {
	within := Exact
	for _, n := range m.Graph.Node {
		switch {
		case n.OpType == "DynamicQuantizeLinear" || n.OpType == "DequantizeLinear":
			return quantized
		case n.OpType == "Log" && strings.HasSuffix(n.Name, "/smooth.log"): // of models.Smooth
			within = smoothed
		}
	}
	return within
}
