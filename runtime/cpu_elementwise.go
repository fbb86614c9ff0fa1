package runtime

import (
	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// elementwiseKernels are those beside chainUnary, chainBinary and chainCompare.
var elementwiseKernels = map[string]Kernel{
	"logaddexp": broadcast((*kernels.Pool).LogAddExp),

	"relu_grad": func(k *Call) error { k.Pool.ReluGrad(k.Out[0].F32, k.In[0].F32, k.In[1].F32); return nil },
	"elu_grad":  func(k *Call) error { k.Pool.EluGrad(k.Out[0].F32, k.In[0].F32, k.In[1].F32); return nil },
	"leaky_relu_grad": func(k *Call) error {
		k.Pool.LeakyReluGrad(k.Out[0].F32, k.In[0].F32, k.In[1].F32, float32(k.Op.Float("slope")))
		return nil
	},

	"stop_gradient": identity,
	"scale_grad":    identity,
	"fill":          fillKernel,
	"broadcast_to":  broadcastTo,
	"unsqueeze":     identity,
	"squeeze":       identity,
}

// stepKernels are the kernels of operations that are one step of a chain.
func stepKernels() map[string]Kernel {
	all := map[string]Kernel{}
	for name, op := range chainUnary {
		all[name] = unary(op)
	}
	for name, op := range chainBinary {
		all[name] = scaling(op)
	}
	for name, op := range chainCompare {
		all[name] = compare(op)
	}
	return all
}

// identity copies the operand. The arena executor makes a view instead.
func identity(k *Call) error {
	x, y := k.In[0], k.Out[0]
	switch {
	case x.Sparse != nil:
		k.Pool.Copy(y.Sparse.Values, x.Sparse.Values)
	case x.DType == ir.I64:
		copy(y.I64, x.I64)
	default:
		k.Pool.Copy(y.F32, x.F32)
	}
	return nil
}

func unary(op kernels.UnaryOp) Kernel {
	return func(k *Call) error {
		k.Pool.Unary(op, k.Out[0].F32, k.In[0].F32, float32(k.Op.Number()))
		return nil
	}
}

// Mode says how the dimensions of an operand fill those of a result, by NumPy's
// rule: aligned at the right, missing and 1-sized dimensions repeated.
func Mode(in, out []int) kernels.BroadcastMode {
	rows, cols := Matrix(in)
	wantRows, wantCols := Matrix(out)
	switch {
	case rows == wantRows && cols == wantCols:
		return kernels.Full
	case cols == wantCols:
		return kernels.RowVector
	case rows == wantRows:
		return kernels.ColVector
	}
	return kernels.Scalar
}

// broadcast is an operation of two operands, each broadcast to the result.
func broadcast(f func(p *kernels.Pool, y, a, b []float32, rows, cols int, modeA, modeB kernels.BroadcastMode)) Kernel {
	return func(k *Call) error {
		a, b, y := k.In[0], k.In[1], k.Out[0]
		f(k.Pool, y.F32, a.F32, b.F32, y.rows(), y.cols(), Mode(a.Dims, y.Dims), Mode(b.Dims, y.Dims))
		return nil
	}
}

func binary(op kernels.BinaryOp) Kernel {
	return broadcast(func(p *kernels.Pool, y, a, b []float32, rows, cols int, modeA, modeB kernels.BroadcastMode) {
		p.Binary(op, y, a, b, rows, cols, modeA, modeB)
	})
}

func compare(op kernels.CompareOp) Kernel {
	return broadcast(func(p *kernels.Pool, y, a, b []float32, rows, cols int, modeA, modeB kernels.BroadcastMode) {
		p.Compare(op, y, a, b, rows, cols, modeA, modeB)
	})
}

// scaling is a binary operation whose first operand may be sparse, if it is one that
// keeps zeros when rows, columns or everything is scaled.
func scaling(op kernels.BinaryOp) Kernel {
	dense := binary(op)
	return func(k *Call) error {
		a, b, y := k.In[0], k.In[1], k.Out[0]
		if a.Sparse == nil {
			return dense(k)
		}
		row, col := 0, 0
		switch Mode(b.Dims, a.Dims) {
		case kernels.Full: // one row or one column, or both
			row, col = b.cols(), 1
		case kernels.RowVector:
			col = 1
		case kernels.ColVector:
			row = 1
		}
		k.Pool.SparseScale(y.Sparse.Values, a.Sparse.Values, a.Sparse.ByRow, b.F32, row, col, op == kernels.Div)
		return nil
	}
}

func fillKernel(k *Call) error {
	y, v := k.Out[0], k.Op.Float("value")
	if y.DType == ir.I64 {
		for i := range y.I64 {
			y.I64[i] = int64(v)
		}
		return nil
	}
	k.Pool.Fill(y.F32, float32(v))
	return nil
}

func broadcastTo(k *Call) error {
	x, y := k.In[0], k.Out[0]
	m := Mode(x.Dims, y.Dims)
	if y.DType != ir.I64 {
		k.Pool.BroadcastTo(y.F32, x.F32, y.rows(), y.cols(), m)
		return nil
	}
	cols := y.cols()
	for i := range y.I64 {
		at := 0
		switch m {
		case kernels.Full:
			at = i
		case kernels.RowVector:
			at = i % cols
		case kernels.ColVector:
			at = i / cols
		}
		y.I64[i] = x.I64[at]
	}
	return nil
}
