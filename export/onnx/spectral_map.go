package onnx

import (
	"math"

	"github.com/gsrc-dev/gsrc/export/onnxpb"
	"github.com/gsrc-dev/gsrc/ir"
)

// emitSpectralMap writes m^-½·a·m^-1, m = a + ρ·I, with the inverse square root by the coupled
// Newton–Schulz iteration (Higham, "Functions of Matrices", 2008, section 6.7), in float64:
// with y = m/tr m and z = I, t = (3·I − z·y)/2, y ← y·t, z ← t·z take z to (m/tr m)^-½. An
// eigenvalue λ of y becomes λ·(3 − λ)²/4, so that from at least amount/n it takes as many steps
// as the loop has to be 1 to float64's precision.
func emitSpectralMap(e *emitter, op *ir.Op) value {
	if op.Str("map") != "soft_inverse_sqrt" {
		panic(e.unsupported(op, "%s is part of steps that learn a graph", op.Str("map")))
	}
	amount, a := op.Float("amount"), e.cast(e.operand(op, 0), doubleType)
	n := a.width()
	eye := e.doubles(identity(n, 1), n, n)
	trace := e.reduceOp("ReduceSum", e.binary("Mul", a, eye), []int64{0, 1}, true, fixed(1), fixed(1))
	ridge := e.binary("Add", e.binary("Mul", trace, e.double(amount/float64(n))), e.double(ir.SpectralLeast))
	size := e.binary("Add", trace, e.binary("Mul", ridge, e.double(float64(n))))
	y := e.binary("Div", e.binary("Add", a, e.binary("Mul", ridge, eye)), size)
	steps := math.Ceil(math.Log(float64(n)/amount)/math.Log(2.25)) + 6
	z := e.multi("Loop", []tensor{y, eye}, []tensor{e.int64Const(int64(steps)), {}, y, eye}, e.newtonSchulz(n))[1]
	z = e.binary("Div", z, e.unary("Sqrt", size))
	return value{t: e.cast(e.matmul(e.matmul(z, a), e.matmul(z, z)), float32Type)}
}

// newtonSchulz is the loop's body: of y and z it makes those of the next step.
func (b *builder) newtonSchulz(n int) *onnxpb.AttributeProto {
	at := b.unique(b.scope+"newton_schulz") + "/"
	square := func(name string) tensor {
		return tensor{name: at + name, dtype: doubleType, dims: []dim{fixed(n), fixed(n)}}
	}
	node := func(opType, out string, in ...string) *onnxpb.NodeProto {
		node := &onnxpb.NodeProto{Name: at + out, OpType: opType, Output: []string{at + out}}
		for _, name := range in {
			node.Input = append(node.Input, at+name)
		}
		return node
	}
	constant := func(out string, values []float64, dims ...int64) *onnxpb.NodeProto {
		c := node("Constant", out)
		c.Attribute = append(c.Attribute, tensorAttr("value", &onnxpb.TensorProto{Dims: dims, DataType: int32(doubleType), RawData: rawData(values)}))
		return c
	}
	step, on, next := tensor{name: at + "step", dtype: Int64Type}, tensor{name: at + "on", dtype: boolType}, tensor{name: at + "next", dtype: boolType}
	body := &onnxpb.GraphProto{
		Name: at + "body",
		Node: []*onnxpb.NodeProto{
			node("Identity", "next", "on"),
			constant("three", identity(n, 3), int64(n), int64(n)), constant("half", []float64{0.5}),
			node("MatMul", "zy", "z", "y"), node("Sub", "rest", "three", "zy"), node("Mul", "t", "rest", "half"),
			node("MatMul", "y_next", "y", "t"), node("MatMul", "z_next", "t", "z"),
		},
		Input:  []*onnxpb.ValueInfoProto{valueInfo(step, ""), valueInfo(on, ""), valueInfo(square("y"), ""), valueInfo(square("z"), "")},
		Output: []*onnxpb.ValueInfoProto{valueInfo(next, ""), valueInfo(square("y_next"), ""), valueInfo(square("z_next"), "")},
	}
	return &onnxpb.AttributeProto{Name: "body", Type: onnxpb.AttributeProto_GRAPH, G: body}
}

// identity is v times the identity matrix [n,n].
func identity(n int, v float64) []float64 {
	m := make([]float64, n*n)
	for i := range n {
		m[i*n+i] = v
	}
	return m
}

func (b *builder) doubles(values []float64, dims ...int) tensor {
	return b.initializer("const", doubleType, rawData(values), dims)
}
