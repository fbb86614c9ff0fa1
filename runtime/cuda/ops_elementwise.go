package cuda

import (
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// elementwiseKernels are those beside pointwise, whose operations are one step.
var elementwiseKernels = map[string]Kernel{
	"mul": scaling(false),
	"div": scaling(true),

	"stop_gradient": identity,
	"scale_grad":    identity,
	"unsqueeze":     identity,
	"squeeze":       identity,
	"fill":          fill,
	"broadcast_to":  broadcastTo,

	"normal":  random(opNormal),
	"uniform": random(opUniform),
	"dropout": dropout,

	"fused_elementwise": func(q Stream, k *runtime.Call) error {
		c := &chain{dst: k.Out[0].Device.Elements, shape: k.Out[0].Dims}
		c.compile(k, 0)
		return c.launch(q)
	},
}

// elementwise is one step over the operands.
func elementwise(q Stream, k *runtime.Call) error {
	return one(pointwise[k.Op.Name()], float32(k.Op.Number()), k.Out[0], k.In...).launch(q)
}

// identity copies the operand. The arena executor makes a view instead.
func identity(q Stream, k *runtime.Call) error {
	x, y := k.In[0], k.Out[0]
	switch {
	case x.Device.In != nil:
		if x.Device.In.NNZ == 0 || x.Device.Elements == y.Device.Elements {
			return nil
		}
		return q.Copy(y.Device.Elements, x.Device.Elements, 4*x.Device.In.NNZ)
	case x.DType == ir.I64:
		return copyAll(q, y, x, 8)
	}
	return copyAll(q, y, x, 4)
}

// scaling is a product or a quotient, of which the first operand may be sparse:
// zeros stay zeros when rows, columns or everything is scaled.
func scaling(divide bool) Kernel {
	return func(q Stream, k *runtime.Call) error {
		a, b, y := k.In[0], k.In[1], k.Out[0]
		if a.Device.In == nil {
			return elementwise(q, k)
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
		return every(q, "gsrc_sparse_scale", s.NNZ, at(y), at(a), Ptr(s.Row), Ptr(s.Col), at(b), Int(s.NNZ), Int(row), Int(col), flag(divide))
	}
}

func fill(q Stream, k *runtime.Call) error {
	y, v := k.Out[0], k.Op.Float("value")
	if y.DType == ir.I64 {
		n, _, err := sizes(y.Dims)
		if err != nil {
			return err
		}
		return every(q, "gsrc_fill_i64", n, at(y), Int(n), Long(int(v)))
	}
	return fillWith(q, y, float32(v))
}

func fillWith(q Stream, y *runtime.Buffer, v float32) error {
	c := &chain{dst: y.Device.Elements, shape: y.Dims, steps: []uint64{step(opCopy, noRegister, argNumber, 0, v)}}
	return c.launch(q)
}

func broadcastTo(q Stream, k *runtime.Call) error {
	x, y := k.In[0], k.Out[0]
	if y.DType == ir.I64 {
		n, cols, err := sizes(y.Dims)
		if err != nil {
			return err
		}
		return every(q, "gsrc_broadcast_i64", n, at(y), at(x), Int(n), Int(cols), Int(int(runtime.Mode(x.Dims, y.Dims))))
	}
	return one(opCopy, 0, y, x).launch(q)
}

// draws makes a chain that draws from the call's stream.
func (c *chain) from(k *runtime.Call) *chain {
	c.draws, c.stream = true, k.Stream
	return c
}

func random(op int) Kernel {
	return func(q Stream, k *runtime.Call) error { return one(op, 0, k.Out[0]).from(k).launch(q) }
}

func dropout(q Stream, k *runtime.Call) error {
	x, y, rate := k.In[0], k.Out[0], max(float32(k.Op.Float("rate")), 0)
	if s := x.Device.In; s != nil {
		return every(q, "gsrc_dropout_sparse", s.NNZ, at(y), at(x), Ptr(s.Row), Ptr(s.Col), Int(s.NNZ), Int(x.Dims[1]), Float(rate), Word(uint64(k.Stream)), Ptr(q.Step()))
	}
	return one(opDropout, rate, y, x).from(k).launch(q)
}
