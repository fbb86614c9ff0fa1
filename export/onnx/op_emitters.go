package onnx

import (
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
)

// opEmitter is one line of the table from operations to ONNX.
type opEmitter struct {
	emit func(e *emitter, op *ir.Op) value
	// dense tells that the line also serves the dense form.
	dense bool
}

func (opEmitter) doc(op *ir.Op) string { return op.Name() + ": " + op.Def.Doc }

// opEmitters holds every tensor operation that an exported function may contain.
// What is missing draws random numbers, is part of a gradient or of a loss.
var opEmitters map[string]opEmitter

func init() {
	opEmitters = map[string]opEmitter{
		"add":           {arith("Add"), true},
		"sub":           {arith("Sub"), true},
		"mul":           {emitMul, true},
		"div":           {arith("Div"), true},
		"maximum":       {arith("Max"), true},
		"minimum":       {arith("Min"), true},
		"logaddexp":     {onTwo(logAddExp), false},
		"greater":       {emitCompare("Greater"), false},
		"greater_equal": {emitCompare("GreaterOrEqual"), false},
		"less":          {emitCompare("Less"), false},

		"neg":     {emitUnary("Neg"), true},
		"exp":     {emitUnary("Exp"), true},
		"log":     {emitUnary("Log"), true},
		"sqrt":    {emitUnary("Sqrt"), true},
		"sigmoid": {emitUnary("Sigmoid"), true},
		"tanh":    {emitUnary("Tanh"), true},
		"relu":    {emitUnary("Relu"), true},
		"elu":     {emitUnary("Elu"), true},
		"leaky_relu": {onOne(func(e *emitter, op *ir.Op, x tensor) tensor {
			return e.unary("LeakyRelu", x, floatAttr("alpha", float32(op.Float("slope"))))
		}), true},
		"square": {onOne(func(e *emitter, _ *ir.Op, x tensor) tensor { return e.binary("Mul", x, x) }), true},
		"rsqrt":  {onOne(func(e *emitter, _ *ir.Op, x tensor) tensor { return e.unary("Reciprocal", e.unary("Sqrt", x)) }), true},
		"pow": {onOne(func(e *emitter, op *ir.Op, x tensor) tensor {
			return e.binary("Pow", x, e.floatConst(float32(op.Float("exponent"))))
		}), false},
		"stop_gradient": {emitSame, true},
		"scale_grad":    {emitSame, true},
		"to_dense":      {emitSame, true},
		"fill":          {emitFill, true},

		"reduce_sum":   {emitReduce("ReduceSum"), false},
		"reduce_mean":  {emitReduce("ReduceMean"), false},
		"reduce_max":   {emitReduce("ReduceMax"), false},
		"reduce_min":   {emitReduce("ReduceMin"), false},
		"logsumexp":    {emitReduce("ReduceLogSumExp"), false},
		"count":        {emitCount, false},
		"broadcast_to": {emitBroadcastTo, false},
		"unsqueeze":    {emitUnsqueeze, true},
		"squeeze":      {emitSqueeze, true},
		"softmax":      {emitSoftmax("Softmax"), true},
		"log_softmax":  {emitSoftmax("LogSoftmax"), true},
		"l1_normalize": {emitNormalize(1), true},
		"l2_normalize": {emitNormalize(2), true},

		"matmul":       {emitMatMul, true},
		"spectral_map": {emitSpectralMap, false},
		"concat":       {emitConcat(1), true},
		"columns":      {emitSlice(1, "width"), true},
		"slice":        {emitSlice(0, "count"), false},
		"stack":        {emitConcat(0), false},
		"gather":       {onTwo(func(e *emitter, _ *ir.Op, x, index tensor) tensor { return e.gather(x, index) }), false},
		"scatter_add":  {emitScatterAdd, false},
		"pair_dot":     {emitPairDot, false},
		"pair_gather":  {emitPairGather, false},

		"spmm":        {emitSpMM, true},
		"spmax":       {emitSpMax, false},
		"sddmm":       {emitSDDMM, false},
		"edge_ones":   {func(*emitter, *ir.Op) value { return value{edge: &edgeValue{}} }, true},
		"edge_gather": {emitEdgeGather, true},
		"edge_sum":    {emitEdgeSum, true},
		"edge_kth":    {emitEdgeKth, false},
		"edge_pairs":  {emitEdgePairs, false},

		"common_neighbors": {emitCommonNeighbors, false},
		"neighbor_kernel":  {emitNeighborKernel, false},

		"edge_softmax": {emitEdgeSoftmax, false},
		"group_sum":    {onOne(func(e *emitter, op *ir.Op, x tensor) tensor { return e.groupSum(x, op.Int("groups")) }), true},
		"group_repeat": {onOne(func(e *emitter, op *ir.Op, x tensor) tensor { return e.groupRepeat(x, op.Int("times")) }), true},
	}
}

func (e *emitter) operands2(op *ir.Op) (x, y tensor) {
	x = e.operand(op, 0)
	return x, e.operand(op, 1)
}

// onOne is the emitter of what f makes of an operation's first operand, onTwo of what it
// makes of the first two.
func onOne(f func(e *emitter, op *ir.Op, x tensor) tensor) func(*emitter, *ir.Op) value {
	return func(e *emitter, op *ir.Op) value { return value{t: f(e, op, e.operand(op, 0))} }
}

func onTwo(f func(e *emitter, op *ir.Op, x, y tensor) tensor) func(*emitter, *ir.Op) value {
	return func(e *emitter, op *ir.Op) value {
		x, y := e.operands2(op)
		return value{t: f(e, op, x, y)}
	}
}

func arith(opType string) func(*emitter, *ir.Op) value {
	return onTwo(func(e *emitter, op *ir.Op, x, y tensor) tensor {
		if e.dense() && x.dims[0] != y.dims[0] && x.dims[1] != y.dims[1] && !x.dims[0].isOne() && !y.dims[0].isOne() {
			panic(e.unsupported(op, "its operands' shapes do not broadcast as matrices"))
		}
		return e.binary(opType, x, y)
	})
}

// emitMul keeps products of edge values apart; see edgeValue.
func emitMul(e *emitter, op *ir.Op) value {
	a := e.edge(op, 0)
	b := e.edge(op, 1)
	if a != nil && b != nil {
		return value{edge: e.timesEdges(op, a, b)}
	}
	return arith("Mul")(e, op)
}

func emitCompare(opType string) func(*emitter, *ir.Op) value {
	return onTwo(func(e *emitter, _ *ir.Op, x, y tensor) tensor { return e.cast(e.compare(opType, x, y), x.dtype) })
}

// logAddExp writes max(a, b) + ln(1 + e^−|a − b|), which does not overflow.
func logAddExp(e *emitter, _ *ir.Op, x, y tensor) tensor {
	far := e.unary("Neg", e.unary("Abs", e.binary("Sub", x, y)))
	return e.binary("Add", e.binary("Max", x, y), e.unary("Log", e.binary("Add", e.unary("Exp", far), e.floatConst(1))))
}

func emitUnary(opType string) func(*emitter, *ir.Op) value {
	return onOne(func(e *emitter, _ *ir.Op, x tensor) tensor { return e.unary(opType, x) })
}

func emitSame(e *emitter, op *ir.Op) value {
	if x := e.values[op.Operands[0]]; x.sparse != nil {
		return x
	}
	return e.lookup(op.Operands[0])
}

// scalar is a constant that broadcasts against anything.
func (e *emitter) scalar(v float64) tensor {
	if e.dense() {
		return e.floats("const", []float32{float32(v)}, 1, 1)
	}
	return e.floatConst(float32(v))
}

func emitFill(e *emitter, op *ir.Op) value {
	t, v := op.Result().Type, op.Float("value")
	if t.DType != ir.F32 {
		panic(e.unsupported(op, "constants of type %s are not written", t.DType))
	}
	if e.overEdges(op.Result()) {
		if v == 1 {
			return value{edge: &edgeValue{}}
		}
		if e.dense() {
			panic(e.unsupported(op, "it fills single edges, which an adjacency matrix does not have"))
		}
		return value{t: e.filledFloat(e.sizeOf(e.list.dst, 0), float32(v), e.list.dst.dims...)}
	}
	dims := e.shape(t)
	size, ints := 1, make([]int, len(dims))
	for i, d := range dims {
		if !d.isFixed() {
			if e.dense() {
				if e.nodeOnes != nil && t.Rank() == 1 && t.Dims[0] == e.nodeDim() {
					return value{t: e.binary("Mul", *e.nodeOnes, e.scalar(v))}
				}
				panic(e.unsupported(op, "its shape %s is known at run time only", t))
			}
			shape := e.shapeValue(op, t)
			return value{t: e.filledFloat(shape, float32(v), dims...)}
		}
		ints[i] = int(d.n)
		size *= ints[i]
	}
	return value{t: e.floats("const", slices.Repeat([]float32{float32(v)}, size), ints...)}
}

// shapeValue returns the run-time shape of an IR type, int64 [rank].
func (e *emitter) shapeValue(op *ir.Op, t ir.Type) tensor {
	var parts []tensor
	for _, d := range t.Dims {
		n, ok := d.Size()
		switch {
		case ok:
			parts = append(parts, e.int64s(int64(n)))
		case d == e.nodeDim() && e.nodes != nil:
			parts = append(parts, *e.nodes)
		case e.graph != nil && d == e.graph.Type.Dims[1]:
			parts = append(parts, e.sizeOf(e.list.dst, 0))
		default:
			panic(e.unsupported(op, "no input has the dimension %s", d))
		}
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return e.concat(0, parts...)
}

func axesOf(op *ir.Op, rank int) []int64 {
	switch op.Str("axis") {
	case "0":
		return []int64{0}
	case "1":
		return []int64{1}
	}
	return upTo(rank)
}

func emitReduce(opType string) func(*emitter, *ir.Op) value {
	return func(e *emitter, op *ir.Op) value {
		x := e.operand(op, 0)
		if e.overEdges(op.Operands[0]) && op.Str("axis") != "1" {
			x = e.list.keep(x)
		}
		axes := axesOf(op, x.rank())
		if len(axes) == 0 { // of a scalar
			return value{t: e.unary("Identity", x)}
		}
		return value{t: e.reduceOp(opType, x, axes, op.Bool("keep") && op.Str("axis") != "all", e.shape(op.Result().Type)...)}
	}
}

func emitCount(e *emitter, op *ir.Op) value {
	x := e.operand(op, 0)
	if e.overEdges(op.Operands[0]) {
		x = e.list.keep(x)
	}
	axes := axesOf(op, x.rank())
	n := e.int64s(1)
	for _, a := range axes {
		n = e.binary("Mul", n, e.sizeOf(x, int(a)))
	}
	n = e.binary("Max", n, e.int64s(1))
	return value{t: e.cast(e.squeeze(n, 0), x.dtype)}
}

func emitBroadcastTo(e *emitter, op *ir.Op) value {
	x := e.operand(op, 0)
	t := op.Result().Type
	shape := e.shapeValue(op, t)
	return value{t: e.op("Expand", x.dtype, e.shape(t), []tensor{x, shape})}
}

func emitUnsqueeze(e *emitter, op *ir.Op) value {
	x := e.operand(op, 0)
	if e.dense() {
		if op.Operands[0].Type.Dims[0] != e.nodeDim() {
			panic(e.unsupported(op, "it turns a row into a column"))
		}
		return value{t: x}
	}
	return value{t: e.column(x)}
}

func emitSqueeze(e *emitter, op *ir.Op) value {
	x := e.operand(op, 0)
	if e.dense() && op.Operands[0].Type.Dims[0] != e.nodeDim() {
		panic(e.unsupported(op, "it turns a column into a row"))
	}
	return value{t: e.vector(x)}
}

func emitSoftmax(opType string) func(*emitter, *ir.Op) value {
	return onOne(func(e *emitter, _ *ir.Op, x tensor) tensor { return e.unary(opType, x, intAttr("axis", 1)) })
}

// emitNormalize divides rows by their p-norm, at least eps, so that rows of
// zeros stay zeros. (LpNormalization gives NaN there and is missing on CUDA.)
func emitNormalize(p int) func(*emitter, *ir.Op) value {
	return func(e *emitter, op *ir.Op) value {
		eps := op.Float("eps")
		if x := e.values[op.Operands[0]]; x.sparse != nil && x.per == nil {
			rows, norm := x.sparse.normalized(p, eps)
			return value{sparse: rows, per: &norm}
		}
		x := e.operand(op, 0)
		if e.dense() {
			return value{t: e.normalizeDense(p, x, eps)}
		}
		norm, far := e.farRows(p, x, e.rowNorm(p, x), eps)
		return value{t: x, per: &norm, far: far}
	}
}

// rowNorm returns the p-norms of rows, [rows,1]. The 1-norm is a sum of absolute
// values: onnxruntime takes two to three times as long for ReduceL1, and OpenVINO
// reduces all axes where they are an attribute, as up to operator set 17.
func (b *builder) rowNorm(p int, x tensor) tensor {
	if p == 1 {
		return b.reduceOp("ReduceSum", b.unary("Abs", x), []int64{1}, true, x.dims[0], fixed(1))
	}
	return b.reduceOp("ReduceL2", x, []int64{1}, true, x.dims[0], fixed(1))
}

func emitMatMul(e *emitter, op *ir.Op) value {
	if x := e.values[op.Operands[0]]; x.sparse != nil && !op.Bool("ta") && !op.Bool("tb") {
		var y tensor
		if w, small := e.quantizedWeight(op); small {
			y = w.dense(e)
		} else {
			y = e.operand(op, 1)
		}
		return value{t: x.sparse.times(y), per: x.per}
	}
	if w, ok := e.quantizedWeight(op); ok {
		if x := e.values[op.Operands[0]]; x.per != nil && x.sparse == nil && w.values.width() < x.t.width() {
			y := w.times(e, x.far.blank(e, x.t))
			return value{t: x.far.put(e.builder, y, w.times(e, x.far.unit)), per: x.per}
		}
		return value{t: w.times(e, e.operand(op, 0))}
	}
	if x := e.values[op.Operands[0]]; x.per != nil && !op.Bool("ta") && !op.Bool("tb") {
		y := e.operand(op, 1)
		if y.width() < x.t.width() {
			return value{t: x.far.put(e.builder, e.matmul(x.t, y), e.matmul(x.far.unit, y)), per: x.per}
		}
	}
	x, y := e.operands2(op)
	flip := func(t tensor, yes bool) tensor {
		if !yes {
			return t
		}
		return e.op("Transpose", t.dtype, []dim{t.dims[1], t.dims[0]}, []tensor{t}, intsAttr("perm", 1, 0))
	}
	return value{t: e.matmul(flip(x, op.Bool("ta")), flip(y, op.Bool("tb")))}
}

func emitConcat(axis int) func(*emitter, *ir.Op) value {
	return onTwo(func(e *emitter, _ *ir.Op, x, y tensor) tensor { return e.concat(axis, x, y) })
}

// emitSlice writes a part of the operand along an axis, as long as an attribute says.
func emitSlice(axis int, length string) func(*emitter, *ir.Op) value {
	return onOne(func(e *emitter, op *ir.Op, x tensor) tensor {
		from, n := op.Int("from"), op.Int(length)
		dims := slices.Clone(x.dims)
		dims[axis] = fixed(n)
		return e.op("Slice", x.dtype, dims, []tensor{x, e.int64s(int64(from)), e.int64s(int64(from + n)), e.int64s(int64(axis))})
	})
}

// emitScatterAdd adds rows over a flattened index: the N-dimensional operators
// race or are slow.
func emitScatterAdd(e *emitter, op *ir.Op) value {
	x, idx := e.operands2(op)
	t := op.Result().Type
	shape := e.shapeValue(op, t)
	dims := e.shape(t)
	if x.rank() == 1 {
		return value{t: e.scatterAdd(e.filledFloat(shape, 0, dims...), idx, x)}
	}
	width := x.width()
	flat := e.binary("Add", e.binary("Mul", e.unsqueeze(idx, 1), e.int64Const(int64(width))), e.ints("const", upTo(width), 1, width))
	rows := e.gather(shape, e.int64s(0))
	zeros := e.filledFloat(e.binary("Mul", rows, e.int64Const(int64(width))), 0, unknown)
	sums := e.scatterAdd(zeros, e.reshape(flat, e.int64s(-1), unknown), e.reshape(x, e.int64s(-1), unknown))
	return value{t: e.reshape(sums, e.int64s(-1, int64(width)), dims...)}
}

func emitPairDot(e *emitter, op *ir.Op) value {
	p, pairs := e.operands2(op)
	q := p
	if len(op.Operands) > 2 && op.Operands[2] != nil {
		q = e.operand(op, 2)
	}
	return value{t: e.rowSum(e.binary("Mul", e.gather(p, e.pairEnd(pairs, 0)), e.gather(q, e.pairEnd(pairs, 1))))}
}

func emitPairGather(e *emitter, op *ir.Op) value {
	v, pairs := e.operands2(op)
	end := int64(0)
	if op.Str("end") == "second" {
		end = 1
	}
	return value{t: e.gather(v, e.pairEnd(pairs, end))}
}

// pairEnd returns the first (0) or the second (1) nodes of pairs.
func (e *emitter) pairEnd(pairs tensor, i int64) tensor {
	return e.op("Gather", Int64Type, pairs.dims[1:], []tensor{pairs, e.int64Const(i)}, intAttr("axis", 0))
}

func (e *emitter) rowSum(x tensor) tensor {
	return e.reduceOp("ReduceSum", x, []int64{1}, false, x.dims[0])
}
