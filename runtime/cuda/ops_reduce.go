package cuda

import "github.com/gsrc-dev/gsrc/runtime"

var reduceKernels = map[string]kernel{
	"reduce_sum":  reduction(reduceSum),
	"reduce_mean": reduction(reduceSum),
	"reduce_max":  reduction(reduceMax),
	"reduce_min":  reduction(reduceMin),
	"logsumexp":   reduction(reduceLogSumExp),
	"count":       func(q *steps, k *runtime.Call) { fillWith(q, k.Out[0], float32(k.Reduced())) },

	"group_sum": func(q *steps, k *runtime.Call) {
		groups, n := k.Op.Int("groups"), k.Out[0].Size()
		q.every("gsrc_group_sum", n, at(k.Out[0]), at(k.In[0]), Int(n), Int(k.In[0].Dims[1]/groups))
	},
	"group_repeat": func(q *steps, k *runtime.Call) {
		times, n := k.Op.Int("times"), k.Out[0].Size()
		q.every("gsrc_group_repeat", n, at(k.Out[0]), at(k.In[0]), Int(n/times), Int(times))
	},

	"softmax":      func(q *steps, k *runtime.Call) { softmax(q, k, 0) },
	"log_softmax":  func(q *steps, k *runtime.Call) { softmax(q, k, 1) },
	"l1_normalize": func(q *steps, k *runtime.Call) { normalize(q, k, 1) },
	"l2_normalize": func(q *steps, k *runtime.Call) { normalize(q, k, 2) },
	"l2_normalize_grad": func(q *steps, k *runtime.Call) {
		rows, cols := runtime.Matrix(k.In[0].Dims)
		q.warps("gsrc_l2_normalize_grad", rows, at(k.Out[0]), at(k.In[0]), at(k.In[2]), Int(rows), Int(cols), Float(float32(k.Op.Float("eps"))))
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
func reduction(kind int) kernel {
	return func(q *steps, k *runtime.Call) {
		x, y := k.In[0], k.Out[0]
		scale := float32(1)
		if k.Op.Name() == "reduce_mean" {
			scale = 1 / float32(k.Reduced())
		}
		rows, cols := runtime.Matrix(x.Dims)
		switch axis := k.Op.Str("axis"); {
		case axis == "1":
			q.warps("gsrc_reduce_rows", rows, at(y), at(x), Int(rows), Int(cols), Int(kind), Float(scale))
		case axis == "0" && len(x.Dims) == 2:
			if cols == 0 {
				return
			}
			per, chunks := columnChunks(rows, cols)
			grid := [3]uint32{uint32((cols + 31) / 32), uint32(chunks), 1}
			q.launch("gsrc_reduce_columns", grid, [3]uint32{256, 1, 1}, 0, Ptr(k.ScratchAt()), at(x), Int(rows), Int(cols), Int(per), Int(kind))
			q.every("gsrc_reduce_columns_end", cols, at(y), Ptr(k.ScratchAt()), Int(chunks), Int(cols), Int(kind), Float(scale))
		default:
			reduceAll(q, at(y), at(x), k.ScratchAt(), x.Size(), kind, scale)
		}
	}
}

// reduceAll reduces n elements to one number.
func reduceAll(q *steps, y, x uint64, scratch uintptr, n, kind int, scale float32) {
	block := [3]uint32{256, 1, 1}
	if n <= 4096 {
		q.launch("gsrc_reduce_all", [3]uint32{1, 1, 1}, block, 0, y, 0, x, Int(n), Int(kind), 0, Float(scale))
		return
	}
	blocks := min((n+2047)/2048, parts)
	q.launch("gsrc_reduce_all", [3]uint32{uint32(blocks), 1, 1}, block, 0, 0, Ptr(scratch), x, Int(n), Int(kind), 0, Float(scale))
	q.launch("gsrc_reduce_all", [3]uint32{1, 1, 1}, block, 0, y, 0, Ptr(scratch), Int(blocks), Int(kind), 1, Float(scale))
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

func softmax(q *steps, k *runtime.Call, logarithm int) {
	rows, cols := runtime.Matrix(k.In[0].Dims)
	q.warps("gsrc_softmax", rows, at(k.Out[0]), at(k.In[0]), Int(rows), Int(cols), Int(logarithm))
}

func normalize(q *steps, k *runtime.Call, norm int) {
	x, y, eps := k.In[0], k.Out[0], float32(k.Op.Float("eps"))
	if s := x.Device.In; s != nil {
		q.warps("gsrc_sparse_normalize", s.Rows, at(y), at(x), Ptr(s.RowPtr), Int(s.Rows), Int(norm), Float(eps))
		return
	}
	rows, cols := runtime.Matrix(x.Dims)
	q.warps("gsrc_normalize", rows, at(y), at(x), Int(rows), Int(cols), Int(norm), Float(eps))
}

func crossEntropy(q *steps, k *runtime.Call) {
	x, labels := k.In[0], k.In[1]
	rows, cols := runtime.Matrix(x.Dims)
	scratch := k.ScratchAt()
	word, number := q.Fault(k.Op)
	q.warps("gsrc_cross_entropy", rows, Ptr(scratch), at(x), at(labels), Int(rows), Int(cols), Ptr(word), Int(number))
	reduceAll(q, at(k.Out[0]), Ptr(scratch), scratch+uintptr((4*rows+63)/64*64), rows, reduceSum, 1/float32(max(1, rows)))
}

func crossEntropyWorkspace(k *runtime.Call) int {
	return (4*k.In[0].Dims[0]+63)/64*64 + 8*parts
}

func crossEntropyGrad(q *steps, k *runtime.Call) {
	x := k.In[0]
	rows, cols := runtime.Matrix(x.Dims)
	word, number := q.Fault(k.Op)
	q.warps("gsrc_cross_entropy_grad", rows, at(k.Out[0]), at(x), at(k.In[1]), at(k.In[2]), Int(rows), Int(cols), Ptr(word), Int(number))
}
