package cuda

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Lookup returns the kernel of an operation, or an error that says why there is
// none. The kernel refuses dense tensors whose elements it cannot count; see int64Indexed.
func Lookup(op *ir.Op) (Kernel, error) {
	if why := onlyOnCPU(op); why != "" {
		return nil, fmt.Errorf("%s has no CUDA kernel: %s; run it on the CPU", op.Name(), why)
	}
	queue, ok := operations[op.Name()]
	if err := runtime.CheckKernel(op, ok, "CUDA"); err != nil {
		return nil, err
	}
	q := new(steps) // for all calls, none of which allocates
	return func(s Stream, call *runtime.Call) error {
		if err := countable(call); err != nil {
			return err
		}
		q.Stream, q.err = s, nil
		queue(q, call)
		return q.err
	}, nil
}

// onlyOnCPU returns why there is no kernel for a use of an operation, "" where there is.
func onlyOnCPU(op *ir.Op) string {
	switch op.Name() {
	case "edge_pairs", "common_neighbors", "neighbor_kernel":
		return "programs that judge pairs of nodes by the graph's structure run beside training, on the CPU"
	case "edge_kth":
		return "only learners that contrast graphs of nearest neighbours take each node's largest entries, as sublime, whose moving average the host keeps"
	case "spectral_map":
		return "only steps of an adjacency of low rank map eigenvalues, as in prognn, which the host keeps"
	case "argsort":
		return "only contrast with permuted nodes sorts, as in stable"
	case "pair_dot":
		if len(op.Operands) > 2 && op.Operands[2] != nil {
			return "products of rows of two matrices for pairs of nodes are computed beside training, on the CPU"
		}
	}
	return ""
}

// int64Indexed are the operands that may have more elements than 32 bits count: their kernels
// count them in 64 bits, or do not read them.
var int64Indexed = map[string]int{"count": 0, "gather": 0, "matmul": 0, "matmul_fused": 0, "slice": 0}

// countable returns an error where a kernel would count the elements of a dense tensor
// in 32 bits, and cannot. Entries of graphs and sparse matrices always can be.
func countable(k *runtime.Call) error {
	free, ok := int64Indexed[k.Op.Name()]
	if !ok {
		free = -1
	}
	check := func(what string, list []*runtime.Buffer, free int) error {
		for i, b := range list {
			if b == nil || b.Graph != nil || b.Sparse != nil || i == free {
				continue
			}
			if _, err := countElements(b.Dims); err != nil {
				return fmt.Errorf("%s %d: %w", what, i+1, err)
			}
		}
		return nil
	}
	return cmp.Or(check("operand", k.In, free), check("result", k.Out, -1))
}

// Workspace returns the bytes of scratch that a call needs, from its shapes:
// what k.ScratchAt gives the address of while the kernel is queued.
func Workspace(k *runtime.Call) int {
	if need := workspaces[k.Op.Name()]; need != nil {
		return need(k)
	}
	return 0
}

// operations has one kernel for each tensor operation.
var operations = merge(elementwiseKernels, reduceKernels, matrixKernels, graphKernels, pairwiseKernels)

func merge(tables ...map[string]kernel) map[string]kernel {
	all := map[string]kernel{
		"sample_block": func(*steps, *runtime.Call) {}, // found by the host before the run
	}
	for name := range pointwise {
		all[name] = elementwise
	}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}

// workspaces are the bytes of scratch that operations need.
var workspaces = map[string]func(k *runtime.Call) int{
	"matmul":               productWorkspace,
	"matmul_fused":         productWorkspace,
	"cholesky":             choleskyWorkspace,
	"spmax_grad":           spmaxWorkspace,
	"reduce_sum":           reductionWorkspace,
	"reduce_mean":          reductionWorkspace,
	"reduce_max":           reductionWorkspace,
	"reduce_min":           reductionWorkspace,
	"logsumexp":            reductionWorkspace,
	"cross_entropy":        crossEntropyWorkspace,
	"pairwise_reduce":      pairwiseWorkspace,
	"pairwise_reduce_grad": pairwiseWorkspace,
	"pairwise_mean":        pairwiseWorkspace,
	"pairwise_self":        pairwiseWorkspace,
	"pairwise_self_grad":   pairwiseWorkspace,
}
