package runtime

import "github.com/gsrc-dev/gsrc/runtime/kernels"

// Workspace returns what the kernel of an operation needs beside its operands
// and results. Operations that are not in cpuWorkspaces need nothing.
func (cpu) Workspace(k *Call) (floats int, pool kernels.Scratch) {
	if need := cpuWorkspaces[k.Op.Name()]; need != nil {
		return need(k)
	}
	return 0, kernels.Scratch{}
}

// cpuWorkspaces is what kernels need, from the shapes of a call: what they ask
// of [Call.Scratch], and what the kernels package takes of the pool's buffers.
var cpuWorkspaces = map[string]func(k *Call) (int, kernels.Scratch){
	"matmul":               matmulWorkspace,
	"matmul_fused":         func(k *Call) (int, kernels.Scratch) { return fusedWorkspace(k, 3, matmulWorkspace) },
	"spmm":                 spmmWorkspace,
	"spmm_fused":           func(k *Call) (int, kernels.Scratch) { return fusedWorkspace(k, 5, spmmWorkspace) },
	"sddmm":                sddmmWorkspace,
	"fused_elementwise":    func(k *Call) (int, kernels.Scratch) { return fusedWorkspace(k, 0, nil) },
	"common_neighbors":     func(k *Call) (int, kernels.Scratch) { return 0, kernels.CommonNeighborsScratch(k.In[0].Graph.N) },
	"edge_softmax":         func(k *Call) (int, kernels.Scratch) { return 0, kernels.EdgeSoftmaxScratch(k.In[1].RowWidth()) },
	"edge_softmax_grad":    func(k *Call) (int, kernels.Scratch) { return 0, kernels.EdgeSoftmaxScratch(k.In[1].RowWidth()) },
	"edge_kth":             func(k *Call) (int, kernels.Scratch) { return k.In[1].Dims[0], kernels.Scratch{} },
	"spmax_grad":           func(k *Call) (int, kernels.Scratch) { return k.In[1].Dims[1], kernels.Scratch{} },
	"spectral_map":         func(k *Call) (int, kernels.Scratch) { n := k.In[0].rows(); return 6 * n * n, kernels.Scratch{} },
	"cholesky":             func(k *Call) (int, kernels.Scratch) { n := k.In[0].rows(); return 2 * n * n, kernels.Scratch{} },
	"pairwise_reduce":      pairwiseWorkspace,
	"pairwise_reduce_grad": pairwiseWorkspace,
	"pairwise_mean":        pairwiseWorkspace,
	"pairwise_self":        pairwiseWorkspace,
	"pairwise_self_grad":   pairwiseWorkspace,
	"reduce_sum":           reductionWorkspace(1),
	"reduce_mean":          reductionWorkspace(1),
	"reduce_max":           reductionWorkspace(1),
	"reduce_min":           reductionWorkspace(1),
	"logsumexp":            reductionWorkspace(2),
	"cross_entropy":        func(k *Call) (int, kernels.Scratch) { return 0, kernels.CrossEntropyScratch(k.In[0].rows()) },
	"normal":               randomWorkspace,
	"uniform":              randomWorkspace,
	"dropout":              randomWorkspace,
	"edge_uniform":         func(*Call) (int, kernels.Scratch) { return 0, kernels.RandomScratch(true) },
}

func matmulWorkspace(k *Call) (int, kernels.Scratch) {
	a, b, y := k.In[0], k.In[1], k.Out[0]
	ta, tb := k.Op.Bool("ta"), k.Op.Bool("tb")
	if a.Sparse != nil {
		floats := 0
		if tb {
			floats = count(b.Dims)
		}
		rows, scratch := y.Dims[0], kernels.SpMMScratch
		if ta {
			scratch = kernels.TransposedScratch
		}
		return floats, scratch(rows, count(a.Dims)/max(1, rows), a.len(), y.Dims[1], 1)
	}
	inner := a.Dims[1]
	if ta {
		inner = a.Dims[0]
	}
	return 0, kernels.MatMulScratch(y.Dims[0], inner, y.Dims[1], ta, tb)
}

func spmmWorkspace(k *Call) (int, kernels.Scratch) {
	h, scratch := k.In[3], kernels.SpMMScratch
	if k.Op.Bool("transpose") {
		scratch = kernels.TransposedScratch
	}
	return 0, scratch(k.Out[0].Dims[0], h.Dims[0], k.In[0].Dims[1], h.Dims[1], productHeads(k))
}

func sddmmWorkspace(k *Call) (int, kernels.Scratch) {
	if !ofItself(k) {
		return 0, kernels.Scratch{}
	}
	return 0, kernels.SDDMMScratch(k.In[1].Dims[0], k.In[0].Dims[1], k.In[1].Dims[1])
}

// fusedWorkspace adds what the expression needs, whose operands are those from
// position first on, to what the product does.
func fusedWorkspace(k *Call, first int, product func(k *Call) (int, kernels.Scratch)) (floats int, s kernels.Scratch) {
	if product != nil {
		floats, s = product(k)
	}
	f := k.fusedOn(first)
	return floats, s.Max(kernels.EpilogueScratch(f.bias >= 0, &f.chain))
}

func pairwiseWorkspace(k *Call) (int, kernels.Scratch) {
	b, f := k.In[0].Dims[0], k.In[0].Dims[1]
	return kernels.PairwiseWorkspace(b, f), kernels.PairwiseScratch(b, f)
}

// reductionWorkspace is that of reductions, which keep that many numbers for each
// partial result.
func reductionWorkspace(each int) func(k *Call) (int, kernels.Scratch) {
	return func(k *Call) (int, kernels.Scratch) {
		x := k.In[0]
		var s kernels.Scratch
		switch axis := k.Op.Str("axis"); {
		case axis == "1":
		case axis == "0" && len(x.Dims) == 2:
			s = kernels.ReduceColsScratch(x.rows(), x.cols())
			s.Part *= each
		default:
			s = kernels.ReduceAllScratch(count(x.Dims))
		}
		return 0, s
	}
}

func randomWorkspace(k *Call) (int, kernels.Scratch) {
	return 0, kernels.RandomScratch(len(k.In) > 0 && k.In[0].Sparse != nil)
}
