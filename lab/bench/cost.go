package bench

import (
	"slices"

	"github.com/gsrc-dev/gsrc/runtime"
)

// Cost is the work of a kernel: floating-point operations, bytes that move, and
// the bytes of the values that it touches, which decide what cache they fit.
type Cost struct {
	Flops float64 `json:"flops"`
	Bytes float64 `json:"bytes"`
	Set   float64 `json:"set_bytes"`
}

func (c Cost) plus(d Cost) Cost {
	return Cost{c.Flops + d.Flops, c.Bytes + d.Bytes, max(c.Set, d.Set)}
}

// seconds is the time that the machine's limits allow: that of the operations or
// that of the bytes, whichever is longer.
func (c Cost) seconds(l *Roofline) (t float64) {
	if l.MatMul > 0 {
		t = c.Flops / (l.MatMul * 1e9)
	}
	if b := l.At(c.Set); b > 0 {
		t = max(t, c.Bytes/(b*1e9))
	}
	return t
}

func matmulCost(m, k, n float64) Cost {
	bytes := 4 * (m*k + k*n + m*n)
	return Cost{2 * m * k * n, bytes, bytes}
}

// gatherCost is that of reading a row of f numbers for each of nnz entries and
// writing out numbers: products with a sparse matrix of cols columns. How fast
// rows come depends on where the cols×f numbers fit.
func gatherCost(nnz, cols, f, out float64) Cost {
	return Cost{2 * nnz * f, 4 * (nnz*f + 2*nnz + out), 4 * cols * f}
}

// pairwiseCost is the cost of a number of products of b×f by f×b.
func pairwiseCost(b, f, products float64) Cost {
	return Cost{2 * products * b * b * f, 4 * 2 * products * b * f, 4 * 2 * b * f}
}

// opCost is the cost of an operation that ran. What is not known better is a sweep
// over its operands and results.
func opCost(t runtime.OpTime) Cost {
	var sweep Cost
	for _, e := range slices.Concat(t.In, t.Out) {
		sweep.Bytes += 4 * float64(e.Stored)
	}
	sweep.Set = sweep.Bytes
	dims := func(e runtime.Extent, i int) float64 {
		if i < len(e.Dims) {
			return float64(e.Dims[i])
		}
		return 1
	}
	switch t.Op.Name() {
	case "matmul", "matmul_fused": // what is done to the product's elements is little beside it
		a, b, y := t.In[0], t.In[1], t.Out[0]
		m, n := dims(y, 0), dims(y, 1)
		for _, sparse := range []runtime.Extent{a, b} {
			if full := dims(sparse, 0) * dims(sparse, 1); float64(sparse.Stored) < full { // stored sparsely
				return gatherCost(float64(sparse.Stored), dims(a, 0)*dims(a, 1)/m, n, m*n)
			}
		}
		return matmulCost(m, float64(a.Stored)/m, n)
	case "spmm", "spmm_fused":
		y := t.Out[0]
		return gatherCost(dims(t.In[0], 1), dims(y, 0), dims(y, 1), float64(y.Stored))
	case "sddmm":
		p := t.In[1]
		return gatherCost(dims(t.In[0], 1), 2*dims(p, 0), dims(p, 1), float64(t.Out[0].Stored))
	case "pairwise_reduce", "pairwise_reduce_grad", "pairwise_mean", "pairwise_self", "pairwise_self_grad":
		products := map[string]float64{"pairwise_reduce": 1, "pairwise_reduce_grad": 3, "pairwise_mean": 2, "pairwise_self": 0.5, "pairwise_self_grad": 1.5}
		return pairwiseCost(dims(t.In[0], 0), dims(t.In[0], 1), products[t.Op.Name()])
	}
	return sweep
}
