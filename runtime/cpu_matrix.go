package runtime

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

var matrixKernels = map[string]Kernel{
	"matmul":             func(k *Call) error { return product(k, kernels.Epilogue{}) },
	"to_dense":           toDense,
	"concat":             concat,
	"columns":            columns,
	"slice":              slice,
	"stack":              stack,
	"cholesky":           cholesky,
	"spectral_map":       spectralMap,
	"solve_upper":        solveUpper,
	"argsort":            argsort,
	"gather":             gather,
	"scatter_add":        scatterAdd,
	"cross_entropy":      crossEntropy,
	"cross_entropy_grad": crossEntropyGrad,
	"pair_dot":           pairDot,
	"pair_gather":        pairGather,
}

// product multiplies operands 0 and 1.
func product(k *Call, epi kernels.Epilogue) error {
	a, b, y := k.In[0], k.In[1], k.Out[0]
	ta, tb := k.Op.Bool("ta"), k.Op.Bool("tb")
	m, n := y.Dims[0], y.Dims[1]
	if a.Sparse != nil {
		s := a.Sparse.ByRow
		if ta {
			s = a.Sparse.ByCol
		}
		h := b.F32
		if tb {
			h = k.Scratch(len(b.F32))
			k.Pool.Transpose(h, b.F32, b.Dims[0], b.Dims[1])
		}
		k.Pool.SpMM(y.F32, s, a.Sparse.Values, nil, h, n, epi)
		return nil
	}
	inner := a.Dims[1]
	if ta {
		inner = a.Dims[0]
	}
	k.Pool.MatMul(y.F32, a.F32, b.F32, m, inner, n, ta, tb, epi)
	return nil
}

func toDense(k *Call) error {
	if s := k.In[0].Sparse; s != nil {
		k.Pool.SparseToDense(k.Out[0].F32, s.Values, s.ByRow)
		return nil
	}
	return identity(k)
}

func cholesky(k *Call) error {
	a := k.In[0]
	n := a.Dims[0]
	return k.Pool.Cholesky(k.Out[0].F32, a.F32, n, k.Op.Float("ridge"), k.Scratch64(n*n))
}

// spectralMap works in float64 on the calling goroutine: the matrices it is meant for are as wide
// as a basis.
func spectralMap(k *Call) error {
	x := k.In[0]
	n := x.Dims[0]
	ws := k.Scratch64(3 * n * n)
	a, v, y := ws[:n*n], ws[n*n:2*n*n], ws[2*n*n:]
	for i, v := range x.F32 {
		a[i] = float64(v)
	}
	ir.SpectralMap(y, a, v, n, k.Op.Str("map"), k.Op.Float("amount"))
	for i, v := range y {
		k.Out[0].F32[i] = float32(v)
	}
	return nil
}

func solveUpper(k *Call) error {
	r, b := k.In[0], k.In[1]
	k.Pool.SolveUpper(k.Out[0].F32, r.F32, b.F32, r.Dims[0], b.Dims[1])
	return nil
}

func concat(k *Call) error {
	a, b, y := k.In[0], k.In[1], k.Out[0]
	rows, cols, left := y.Dims[0], y.Dims[1], a.Dims[1]
	k.Pool.CopyColumns(y.F32, cols, 0, a.F32, left, 0, rows, left)
	k.Pool.CopyColumns(y.F32, cols, left, b.F32, b.Dims[1], 0, rows, b.Dims[1])
	return nil
}

func columns(k *Call) error {
	x, y := k.In[0], k.Out[0]
	k.Pool.CopyColumns(y.F32, y.Dims[1], 0, x.F32, x.Dims[1], k.Op.Int("from"), y.Dims[0], y.Dims[1])
	return nil
}

// slice runs on the TapeMachine only: the arena executor reads the rows in place.
func slice(k *Call) error {
	x, y := k.In[0], k.Out[0]
	w := x.RowWidth()
	k.Pool.CopyColumns(y.F32, w, 0, x.F32[k.Op.Int("from")*w:], w, 0, y.Dims[0], w)
	return nil
}

func stack(k *Call) error {
	a, b, y := k.In[0], k.In[1], k.Out[0]
	w := y.RowWidth()
	k.Pool.CopyColumns(y.F32, w, 0, a.F32, w, 0, a.Dims[0], w)
	k.Pool.CopyColumns(y.F32[len(a.F32):], w, 0, b.F32, w, 0, b.Dims[0], w)
	return nil
}

// checkIndices reports the first index outside 0..rows-1.
func checkIndices(what string, idx []int64, rows int) error {
	for i, r := range idx {
		if r < 0 || r >= int64(rows) {
			return fmt.Errorf("%s %d at position %d is outside 0..%d", what, r, i, rows-1)
		}
	}
	return nil
}

func argsort(k *Call) error {
	x, y := k.In[0].F32, k.Out[0].I64
	for i := range y {
		y[i] = int64(i)
	}
	slices.SortFunc(y, func(a, b int64) int { return cmp.Or(cmp.Compare(x[a], x[b]), cmp.Compare(a, b)) })
	return nil
}

func gather(k *Call) error {
	x, idx, y := k.In[0], k.In[1], k.Out[0]
	if err := checkIndices("index", idx.I64, x.Dims[0]); err != nil {
		return err
	}
	w := x.RowWidth()
	if x.DType == ir.I64 {
		for i, r := range idx.I64 {
			copy(y.I64[i*w:(i+1)*w], x.I64[int(r)*w:])
		}
		return nil
	}
	k.Pool.GatherRows(y.F32, x.F32, idx.I64, w)
	return nil
}

func scatterAdd(k *Call) error {
	x, idx, y := k.In[0], k.In[1], k.Out[0]
	if err := checkIndices("index", idx.I64, y.Dims[0]); err != nil {
		return err
	}
	k.Pool.ScatterAddRows(y.F32, x.F32, idx.I64, y.Dims[0], x.RowWidth())
	return nil
}

func crossEntropy(k *Call) error {
	x, labels := k.In[0], k.In[1]
	if err := checkIndices("label", labels.I64, x.cols()); err != nil {
		return err
	}
	k.Pool.SoftmaxCrossEntropy(k.Out[0].F32, x.F32, labels.I64, x.rows(), x.cols())
	return nil
}

func crossEntropyGrad(k *Call) error {
	x, labels := k.In[0], k.In[1]
	if err := checkIndices("label", labels.I64, x.cols()); err != nil {
		return err
	}
	k.Pool.SoftmaxCrossEntropyGrad(k.Out[0].F32, x.F32, labels.I64, k.In[2].F32, x.rows(), x.cols())
	return nil
}

func pairDot(k *Call) error {
	p, q := k.In[0], k.In[0]
	if len(k.In) > 2 && k.In[2] != nil {
		q = k.In[2]
	}
	left, right, err := pairs(k.In[1], p.Dims[0])
	if err != nil {
		return err
	}
	k.Pool.PairDot(k.Out[0].F32, p.F32, q.F32, left, right, p.Dims[0], p.Dims[1])
	return nil
}

func pairGather(k *Call) error {
	v := k.In[0]
	end, second, err := pairs(k.In[1], v.Dims[0])
	if err != nil {
		return err
	}
	if k.Op.Str("end") == "second" {
		end = second
	}
	k.Pool.GatherRows(k.Out[0].F32, v.F32, end, 1)
	return nil
}

// pairs returns the first and the second nodes of pairs, or an error where one is
// outside 0..nodes-1.
func pairs(b *Buffer, nodes int) (first, second []int64, err error) {
	n := b.Dims[1]
	return b.I64[:n], b.I64[n:], checkIndices("node", b.I64, nodes)
}
