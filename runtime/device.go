package runtime

import (
	"fmt"
	"slices"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/rng"
	"github.com/gsrc-dev/gsrc/runtime/kernels"
)

// Kernel computes the results of one operation. It returns an error for bad
// data (an index out of range); shapes were checked before.
type Kernel func(k *Call) error

// Call is what a kernel sees of one execution of an operation.
type Call struct {
	Op   *ir.Op
	In   []*Buffer // operands in order, nil where an optional one is absent
	Out  []*Buffer // results, of their final shapes; contents are unspecified
	Pool *kernels.Pool
	Key  rng.Stream // of a random operation: its stream at this step

	scratch   []float32
	scratch64 []float64
}

// Scratch returns n floats of workspace that belong to this operation, with
// unspecified contents. It allocates when n has grown and not otherwise.
func (k *Call) Scratch(n int) []float32 {
	if cap(k.scratch) < n {
		k.scratch = make([]float32, n)
	}
	return k.scratch[:n]
}

// Scratch64 is [Call.Scratch] in float64.
func (k *Call) Scratch64(n int) []float64 {
	if cap(k.scratch64) < n {
		k.scratch64 = make([]float64, n)
	}
	return k.scratch64[:n]
}

// Device is where a program runs: it has kernels and memory.
//
// Buffers that the caller binds are in the host's memory. The executor makes
// them readable by kernels with Import before every run, and results readable by
// the caller with Export after it; on the CPU both share the memory.
type Device interface {
	// Name returns the device's name for messages.
	Name() string
	// Kernel returns the kernel of an operation, or an error that says why
	// there is none.
	Kernel(op *ir.Op) (Kernel, error)
	// Reserve makes b's own memory hold at least n elements of its element
	// type. Contents need not be kept. It is called while planning only.
	Reserve(b *Buffer, n int) error
	// View makes dst a view of the first n elements of memory that Reserve
	// gave to b.
	View(dst, b *Buffer, n int)
	// Import makes the payload of a bound buffer that of view.
	Import(view, bound *Buffer) error
	// Export returns a result as the caller may read it.
	Export(b *Buffer) (*Buffer, error)
}

// CPU is the device that runs kernels of package runtime/kernels.
var CPU Device = cpu{}

type cpu struct{}

func (cpu) Name() string { return "cpu" }

func (cpu) Kernel(op *ir.Op) (Kernel, error) {
	k := cpuKernels[op.Name()]
	switch {
	case op.Def.Level != ir.TensorLevel || op.Name() == "grad":
		return nil, fmt.Errorf("%s is not a tensor operation: lower and differentiate the program first", op.Name())
	case k == nil:
		return nil, fmt.Errorf("%s has no CPU kernel", op.Name())
	}
	for _, r := range op.Results {
		if d := r.Type.DType; d != ir.F32 && !(d == ir.I64 && slices.Contains(integerOps, op.Name())) {
			return nil, fmt.Errorf("%s has no CPU kernel for results of type %s", op.Name(), r.Type)
		}
	}
	return k, nil
}

func (cpu) Reserve(b *Buffer, n int) error {
	// Some room to grow where a size changes at all, as that of a refined
	// graph does from step to step.
	if b.DType == ir.I64 {
		if cap(b.I64) < n {
			b.I64 = make([]int64, n, n+cap(b.I64)/8)
		}
		return nil
	}
	if cap(b.F32) < n {
		b.F32 = make([]float32, n, n+cap(b.F32)/8)
	}
	return nil
}

func (cpu) View(dst, b *Buffer, n int) {
	switch {
	case dst.Sparse != nil:
		dst.Sparse.Values = b.F32[:n:n]
	case dst.DType == ir.I64:
		dst.I64 = b.I64[:n:n]
	default:
		dst.F32 = b.F32[:n:n]
	}
}

func (cpu) Import(view, bound *Buffer) error {
	view.F32, view.I64, view.Graph = bound.F32, bound.I64, bound.Graph
	if bound.Sparse != nil {
		*view.Sparse = *bound.Sparse
	}
	return nil
}

func (cpu) Export(b *Buffer) (*Buffer, error) { return b, nil }

// integerOps are the operations whose kernels also work on i64 tensors.
var integerOps = []string{"broadcast_to", "fill", "gather", "receptive_field", "squeeze", "stop_gradient", "to_dense", "unsqueeze"}

// cpuKernels is the table of the CPU: one kernel for each tensor operation.
var cpuKernels = mergeKernels(elementwiseKernels, reduceKernels, matrixKernels, graphKernels, randomKernels)

func mergeKernels(tables ...map[string]Kernel) map[string]Kernel {
	all := map[string]Kernel{}
	for _, t := range tables {
		for name, k := range t {
			if all[name] != nil {
				panic("runtime: operation " + name + " has two CPU kernels")
			}
			all[name] = k
		}
	}
	return all
}
