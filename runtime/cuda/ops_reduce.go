package cuda

import "github.com/gsrc-dev/gsrc/runtime"

var reduceKernels = map[string]Kernel{
	"reduce_sum":  reduction(reduceSum),
	"reduce_mean": reduction(reduceSum),
	"reduce_max":  reduction(reduceMax),
	"reduce_min":  reduction(reduceMin),
	"logsumexp":   reduction(reduceLogSumExp),
	"count":       func(q Stream, k *runtime.Call) error { return fillWith(q, k.Out[0], float32(k.Reduced())) },

	"group_sum": func(q Stream, k *runtime.Call) error {
		groups := k.Op.Int("groups")
		n, _, err := sizes(k.Out[0].Dims)
		if n == 0 || err != nil {
			return err
		}
		return every(q, "gsrc_group_sum", n, at(k.Out[0]), at(k.In[0]), Int(n), Int(k.In[0].Dims[1]/groups))
	},
	"group_repeat": func(q Stream, k *runtime.Call) error {
		n, _, err := sizes(k.Out[0].Dims)
		if n == 0 || err != nil {
			return err
		}
		times := k.Op.Int("times")
		return every(q, "gsrc_group_repeat", n, at(k.Out[0]), at(k.In[0]), Int(n/times), Int(times))
	},

	"softmax":      func(q Stream, k *runtime.Call) error { return softmax(q, k, 0) },
	"log_softmax":  func(q Stream, k *runtime.Call) error { return softmax(q, k, 1) },
	"l1_normalize": func(q Stream, k *runtime.Call) error { return normalize(q, k, 1) },
	"l2_normalize": func(q Stream, k *runtime.Call) error { return normalize(q, k, 2) },
	"l2_normalize_grad": func(q Stream, k *runtime.Call) error {
		rows, cols := runtime.Matrix(k.In[0].Dims)
		return warps(q, "gsrc_l2_normalize_grad", rows, at(k.Out[0]), at(k.In[0]), at(k.In[2]), Int(rows), Int(cols), Float(float32(k.Op.Float("eps"))))
	},

	"cross_entropy":      crossEntropy,
	"cross_entropy_grad": crossEntropyGrad,
}

// The kinds of reductions, as src/reduce.cu has them.
const (
	reduceSum = iota
	reduceMax
	reduceMin
	reduceLogSumExp
)

// parts is the largest number of partial results of a reduction to one number.
const parts = 1024

// reduction reduces by axis.
func reduction(kind int) Kernel {
	return func(q Stream, k *runtime.Call) error {
		x, y := k.In[0], k.Out[0]
		n, _, err := sizes(x.Dims)
		if err != nil {
			return err
		}
		scale := float32(1)
		if k.Op.Name() == "reduce_mean" {
			scale = 1 / float32(k.Reduced())
		}
		rows, cols := runtime.Matrix(x.Dims)
		switch axis := k.Op.Str("axis"); {
		case axis == "1":
			return warps(q, "gsrc_reduce_rows", rows, at(y), at(x), Int(rows), Int(cols), Int(kind), Float(scale))
		case axis == "0" && len(x.Dims) == 2:
			if cols == 0 {
				return nil
			}
			per, chunks := columnChunks(rows, cols)
			grid := [3]uint32{uint32((cols + 31) / 32), uint32(chunks), 1}
			if err := q.Launch("gsrc_reduce_columns", grid, [3]uint32{256, 1, 1}, 0, Ptr(k.ScratchAt()), at(x), Int(rows), Int(cols), Int(per), Int(kind)); err != nil {
				return err
			}
			return every(q, "gsrc_reduce_columns_end", cols, at(y), Ptr(k.ScratchAt()), Int(chunks), Int(cols), Int(kind), Float(scale))
		}
		return reduceAll(q, at(y), at(x), k.ScratchAt(), n, kind, scale)
	}
}

// reduceAll reduces n elements to one number.
func reduceAll(q Stream, y, x uint64, scratch uintptr, n, kind int, scale float32) error {
	block := [3]uint32{256, 1, 1}
	if n <= 4096 {
		return q.Launch("gsrc_reduce_all", [3]uint32{1, 1, 1}, block, 0, y, 0, x, Int(n), Int(kind), 0, Float(scale))
	}
	blocks := min((n+2047)/2048, parts)
	if err := q.Launch("gsrc_reduce_all", [3]uint32{uint32(blocks), 1, 1}, block, 0, 0, Ptr(scratch), x, Int(n), Int(kind), 0, Float(scale)); err != nil {
		return err
	}
	return q.Launch("gsrc_reduce_all", [3]uint32{1, 1, 1}, block, 0, y, 0, Ptr(scratch), Int(blocks), Int(kind), 1, Float(scale))
}

// columnChunks returns how many rows a block reduces, and how many such chunks
// there are: enough blocks to fill a device, and no fewer rows than pay.
func columnChunks(rows, cols int) (per, chunks int) {
	chunks = min(max((rows+127)/128, 1), max(1, 2048/((cols+31)/32)))
	per = max((rows+chunks-1)/chunks, 1)
	return per, max((rows+per-1)/per, 1)
}

func reductionWorkspace(k *runtime.Call) int {
	rows, cols := runtime.Matrix(k.In[0].Dims)
	switch axis := k.Op.Str("axis"); {
	case axis == "1" || cols == 0:
		return 0
	case axis == "0" && len(k.In[0].Dims) == 2:
		_, chunks := columnChunks(rows, cols)
		return 8 * chunks * cols
	}
	return 8 * parts
}

func softmax(q Stream, k *runtime.Call, logarithm int) error {
	rows, cols := runtime.Matrix(k.In[0].Dims)
	return warps(q, "gsrc_softmax", rows, at(k.Out[0]), at(k.In[0]), Int(rows), Int(cols), Int(logarithm))
}

func normalize(q Stream, k *runtime.Call, norm int) error {
	x, y, eps := k.In[0], k.Out[0], float32(k.Op.Float("eps"))
	if s := x.Device.In; s != nil {
		return warps(q, "gsrc_sparse_normalize", s.Rows, at(y), at(x), Ptr(s.RowPtr), Int(s.Rows), Int(norm), Float(eps))
	}
	rows, cols := runtime.Matrix(x.Dims)
	return warps(q, "gsrc_normalize", rows, at(y), at(x), Int(rows), Int(cols), Int(norm), Float(eps))
}

func crossEntropy(q Stream, k *runtime.Call) error {
	x, labels := k.In[0], k.In[1]
	rows, cols := runtime.Matrix(x.Dims)
	scratch := k.ScratchAt()
	word, number := q.Fault(k.Op)
	if err := warps(q, "gsrc_cross_entropy", rows, Ptr(scratch), at(x), at(labels), Int(rows), Int(cols), Ptr(word), Int(number)); err != nil {
		return err
	}
	return reduceAll(q, at(k.Out[0]), Ptr(scratch), scratch+uintptr((4*rows+63)/64*64), rows, reduceSum, 1/float32(max(1, rows)))
}

func crossEntropyWorkspace(k *runtime.Call) int {
	return (4*k.In[0].Dims[0]+63)/64*64 + 8*parts
}

func crossEntropyGrad(q Stream, k *runtime.Call) error {
	x := k.In[0]
	rows, cols := runtime.Matrix(x.Dims)
	word, number := q.Fault(k.Op)
	return warps(q, "gsrc_cross_entropy_grad", rows, at(k.Out[0]), at(x), at(k.In[1]), at(k.In[2]), Int(rows), Int(cols), Ptr(word), Int(number))
}
