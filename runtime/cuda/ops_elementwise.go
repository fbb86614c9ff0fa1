package cuda

import (
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// elementwiseKernels are those beside pointwise, whose operations are one step.
var elementwiseKernels = map[string]kernel{
	"mul": scaling(false),
	"div": scaling(true),

	"stop_gradient": identity,
	"scale_grad":    identity,
	"unsqueeze":     identity,
	"squeeze":       identity,
	"fill":          fill,
	"broadcast_to":  broadcastTo,

	"normal":  random(pointwise["normal"]),
	"uniform": random(pointwise["uniform"]),
	"dropout": dropout,

	"fused_elementwise": func(q *steps, k *runtime.Call) {
		c := &chain{dst: k.Out[0].Device.Elements, shape: k.Out[0].Dims}
		c.compile(k, 0)
		c.launch(q)
	},
}

// elementwise is one step over the operands.
func elementwise(q *steps, k *runtime.Call) {
	one(pointwise[k.Op.Name()], float32(k.Op.Number()), k.Out[0], k.In...).launch(q)
}

// identity copies the operand. The arena executor makes a view instead.
func identity(q *steps, k *runtime.Call) {
	x, y := k.In[0], k.Out[0]
	bytes := 4 * x.Size()
	switch {
	case x.Device.In != nil:
		bytes = 4 * x.Device.In.NNZ
	case x.DType == ir.I64:
		bytes *= 2
	}
	q.copy(y.Device.Elements, x.Device.Elements, bytes)
}

// scaling is a product or a quotient, of which the first operand may be sparse:
// zeros stay zeros when rows, columns or everything is scaled.
func scaling(divide bool) kernel {
	return func(q *steps, k *runtime.Call) {
		a, b, y := k.In[0], k.In[1], k.Out[0]
		if a.Device.In == nil {
			elementwise(q, k)
			return
		}
		row, col := 0, 0
		switch runtime.Mode(b.Dims, a.Dims) {
		case kernels.Full: // one row or one column, or both
			_, row = runtime.Matrix(b.Dims)
			col = 1
		case kernels.RowVector:
			col = 1
		case kernels.ColVector:
			row = 1
		}
		s := a.Device.In
		q.every("gsrc_sparse_scale", s.NNZ, at(y), at(a), Ptr(s.Row), Ptr(s.Col), at(b), Int(s.NNZ), Int(row), Int(col), flag(divide))
	}
}

func fill(q *steps, k *runtime.Call) {
	y, v := k.Out[0], k.Op.Float("value")
	if y.DType == ir.I64 {
		q.every("gsrc_fill_i64", y.Size(), at(y), Int(y.Size()), Long(int(v)))
		return
	}
	fillWith(q, y, float32(v))
}

func fillWith(q *steps, y *runtime.Buffer, v float32) {
	c := &chain{dst: y.Device.Elements, shape: y.Dims, steps: []uint64{step(opCopy, noRegister, argNumber, 0, v)}}
	c.launch(q)
}

func broadcastTo(q *steps, k *runtime.Call) {
	x, y := k.In[0], k.Out[0]
	if y.DType == ir.I64 {
		rows, cols := runtime.Matrix(y.Dims)
		q.every("gsrc_broadcast_i64", rows*cols, at(y), at(x), Int(rows*cols), Int(cols), Int(int(runtime.Mode(x.Dims, y.Dims))))
		return
	}
	one(opCopy, 0, y, x).launch(q)
}

// draws makes a chain that draws from the call's stream.
func (c *chain) from(k *runtime.Call) *chain {
	c.draws, c.stream = true, k.Stream
	return c
}

func random(op int) kernel {
	return func(q *steps, k *runtime.Call) { one(op, 0, k.Out[0]).from(k).launch(q) }
}

func dropout(q *steps, k *runtime.Call) {
	x, y, rate := k.In[0], k.Out[0], max(float32(k.Op.Float("rate")), 0)
	if s := x.Device.In; s != nil {
		q.every("gsrc_dropout_sparse", s.NNZ, at(y), at(x), Ptr(s.Row), Ptr(s.Col), Int(s.NNZ), Int(x.Dims[1]), Float(rate), Word(uint64(k.Stream)), Ptr(q.Step()))
		return
	}
	one(pointwise["dropout"], rate, y, x).from(k).launch(q)
}
