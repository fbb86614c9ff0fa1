package runtime

import "github.com/gsrc-dev/gsrc/runtime/kernels"

var reduceKernels = map[string]Kernel{
	"reduce_sum": func(k *Call) error { sum(k); return nil },
	"reduce_mean": func(k *Call) error {
		sum(k)
		y := k.Out[0].F32
		k.Pool.Scale(y, y, 1/float32(reduced(k)))
		return nil
	},
	"reduce_max": reduction((*kernels.Pool).Max, (*kernels.Pool).RowMax, (*kernels.Pool).ColMax),
	"reduce_min": reduction((*kernels.Pool).Min, (*kernels.Pool).RowMin, (*kernels.Pool).ColMin),
	"logsumexp": reduction(func(p *kernels.Pool, dst, x []float32) { p.RowLogSumExp(dst, x, 1, len(x)) },
		(*kernels.Pool).RowLogSumExp, (*kernels.Pool).ColLogSumExp),
	"count": func(k *Call) error { k.Out[0].F32[0] = float32(reduced(k)); return nil },

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

var sum = reduction((*kernels.Pool).Sum, (*kernels.Pool).RowSum, (*kernels.Pool).ColSum)

// reduction chooses the kernel of a reduction by its axis.
func reduction(all func(p *kernels.Pool, dst, x []float32), rows, cols func(p *kernels.Pool, dst, x []float32, rows, cols int)) Kernel {
	return func(k *Call) error {
		x, y := k.In[0], k.Out[0]
		switch axis := k.Op.Str("axis"); {
		case axis == "1":
			rows(k.Pool, y.F32, x.F32, x.rows(), x.cols())
		case axis == "0" && len(x.Dims) == 2:
			cols(k.Pool, y.F32, x.F32, x.rows(), x.cols())
		default:
			all(k.Pool, y.F32, x.F32)
		}
		return nil
	}
}

// reduced returns how many elements each result of a reduction adds, at least 1.
func reduced(k *Call) int {
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
