package runtime

import "github.com/gsrc-dev/gsrc/runtime/kernels"

var reduceKernels = map[string]Kernel{
	"reduce_sum": reduction(kernels.ReduceSum),
	"reduce_mean": func(k *Call) error {
		reduce(k, kernels.ReduceSum)
		y := k.Out[0].F32
		k.Pool.Scale(y, y, 1/float32(k.Reduced()))
		return nil
	},
	"reduce_max": reduction(kernels.ReduceMax),
	"reduce_min": reduction(kernels.ReduceMin),
	"logsumexp":  reduction(kernels.ReduceLSE),
	"count":      func(k *Call) error { k.Out[0].F32[0] = float32(k.Reduced()); return nil },

	"group_sum": func(k *Call) error {
		x := k.In[0]
		k.Pool.GroupSum(k.Out[0].F32, x.F32, x.rows(), x.cols(), k.Op.Int("groups"))
		return nil
	},
	"group_repeat": func(k *Call) error {
		x := k.In[0]
		k.Pool.GroupRepeat(k.Out[0].F32, x.F32, x.rows(), x.cols(), k.Op.Int("times"))
		return nil
	},

	"softmax":      rowwise((*kernels.Pool).Softmax),
	"log_softmax":  rowwise((*kernels.Pool).LogSoftmax),
	"l1_normalize": normalize((*kernels.Pool).L1NormalizeRows, (*kernels.Pool).SparseL1Normalize),
	"l2_normalize": normalize((*kernels.Pool).L2NormalizeRows, (*kernels.Pool).SparseL2Normalize),
	"l2_normalize_grad": func(k *Call) error {
		x := k.In[0]
		k.Pool.L2NormalizeRowsGrad(k.Out[0].F32, x.F32, k.In[2].F32, x.rows(), x.cols(), float32(k.Op.Float("eps")))
		return nil
	},
}

func reduction(kind kernels.ReduceKind) Kernel {
	return func(k *Call) error { reduce(k, kind); return nil }
}

// reduce chooses the kernel of a reduction by its axis.
func reduce(k *Call, kind kernels.ReduceKind) {
	x, y := k.In[0], k.Out[0]
	switch axis := k.Op.Str("axis"); {
	case axis == "1":
		k.Pool.ReduceRows(kind, y.F32, x.F32, x.rows(), x.cols())
	case axis == "0" && len(x.Dims) == 2:
		k.Pool.ReduceCols(kind, y.F32, x.F32, x.rows(), x.cols())
	default:
		k.Pool.Reduce(kind, y.F32, x.F32)
	}
}

// Reduced returns how many elements each result of a reduction adds, at least 1.
func (k *Call) Reduced() int {
	x := k.In[0]
	n := count(x.Dims)
	switch axis := k.Op.Str("axis"); {
	case axis == "0" && len(x.Dims) == 2:
		n = x.Dims[0]
	case axis == "1":
		n = x.cols()
	}
	return max(1, n)
}

func rowwise(f func(p *kernels.Pool, dst, x []float32, rows, cols int)) Kernel {
	return func(k *Call) error {
		x := k.In[0]
		f(k.Pool, k.Out[0].F32, x.F32, x.rows(), x.cols())
		return nil
	}
}

func normalize(dense func(p *kernels.Pool, dst, x []float32, rows, cols int, eps float32), sparse func(p *kernels.Pool, dst, vals []float32, s *kernels.CSR, eps float32)) Kernel {
	return func(k *Call) error {
		x, eps := k.In[0], float32(k.Op.Float("eps"))
		if x.Sparse != nil {
			sparse(k.Pool, k.Out[0].Sparse.Values, x.Sparse.Values, x.Sparse.ByRow, eps)
			return nil
		}
		dense(k.Pool, k.Out[0].F32, x.F32, x.rows(), x.cols(), eps)
		return nil
	}
}
