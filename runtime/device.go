package runtime

import (
	"fmt"
	"unsafe"

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

	// Stream is a random operation's stream before the step: Key is Stream.At(step).
	// A device that records its work derives Key itself, from Stream and the step
	// number in its memory.
	Stream rng.Stream

	unread []bool            // results that nobody reads, whose contents may be anything; nil if all are read
	saved  *savedForBackward // memory shared by an operation and its gradient, nil if there is none

	fused   *fused // the operation's expression, compiled at its first run
	scratch []float32
	extra   int     // floats of scratch that are not of the executor's plan
	work    uintptr // address of the workspace on a device with a memory of its own
}

// ScratchAt returns the address of the workspace that Device.Workspace foretold,
// on a device that has a memory of its own; 0 if there is none.
func (k *Call) ScratchAt() uintptr { return k.work }

// PlaceScratch says where the call's workspace lies in a device's memory.
func (k *Call) PlaceScratch(at uintptr) { k.work = at }

// Wanted reports whether anybody reads result i. One that nobody reads may be
// left as it is.
func (k *Call) Wanted(i int) bool { return k.unread == nil || !k.unread[i] }

// Scratch returns n floats of workspace, with unspecified contents, valid until
// the kernel returns. What Device.Workspace foretold lies in the arena
// executor's arena; more is allocated, when n has grown and not otherwise.
func (k *Call) Scratch(n int) []float32 {
	if cap(k.scratch) < n {
		k.scratch, k.extra = make([]float32, n), n
	}
	return k.scratch[:n]
}

// Scratch64 is [Call.Scratch] in float64, in the same memory: a kernel uses one
// of the two.
func (k *Call) Scratch64(n int) []float64 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*float64)(unsafe.Pointer(&k.Scratch(2 * n)[0])), n)
}

// Device is where a program runs: it has kernels and memory.
//
// Buffers that the caller binds are in the host's memory. The executor makes
// them readable by kernels with Import before every run, and results readable by
// the caller with Export after it; on the CPU both share the memory. A device
// whose memory is its own is an [Accelerator].
type Device interface {
	// Name returns the device's name for messages.
	Name() string
	// Kernel returns the kernel of an operation, or an error that says why
	// there is none.
	Kernel(op *ir.Op) (Kernel, error)
	// Workspace says what an operation's kernel needs beside operands and
	// results, from the shapes of the call: floats of workspace (see
	// [Call.Scratch]), and buffers of the pool.
	Workspace(k *Call) (floats int, pool kernels.Scratch)
	// Reserve makes b's own memory hold at least n elements of its element
	// type, from an address that is a multiple of 64. Contents need not be
	// kept. It is called while planning only.
	Reserve(b *Buffer, n int) error
	// View makes dst a view of n elements of memory that Reserve gave to b,
	// from a byte on that is a multiple of 64. The element types may differ.
	View(dst, b *Buffer, at, n int)
	// Import makes the payload of a bound buffer that of view.
	Import(view, bound *Buffer) error
	// Alias makes view show n elements of operand from one on: of a dense tensor a
	// part, of others all.
	Alias(view, operand *Buffer, from, n int)
	// Export returns a result as the caller may read it.
	Export(b *Buffer) (*Buffer, error)
}

// CPU is the device that runs kernels of package runtime/kernels.
var CPU Device = cpu{}

type cpu struct{}

func (cpu) Name() string { return "cpu" }

func (cpu) Kernel(op *ir.Op) (Kernel, error) {
	k, ok := cpuKernels[op.Name()]
	return k, CheckKernel(op, ok, "CPU")
}

// CheckKernel returns the error of [Device.Kernel] for an operation that the device,
// "CPU" for example, has a kernel for or not.
func CheckKernel(op *ir.Op, have bool, device string) error {
	switch {
	case op.Def.Level != ir.TensorLevel || op.Name() == "grad":
		return fmt.Errorf("%s is not a tensor operation: lower and differentiate the program first", op.Name())
	case !have:
		return fmt.Errorf("%s has no %s kernel", op.Name(), device)
	}
	for _, r := range op.Results {
		if d := r.Type.DType; d != ir.F32 && !(d == ir.I64 && op.Def.Int64) {
			return fmt.Errorf("%s has no %s kernel for results of type %s", op.Name(), device, r.Type)
		}
	}
	return nil
}

func (cpu) Reserve(b *Buffer, n int) error {
	if b.DType == ir.I64 {
		if cap(b.I64) < n {
			b.I64 = alignedSlice[int64](n)
		}
		return nil
	}
	if cap(b.F32) < n {
		b.F32 = nil // the old memory may go before the new one comes
		b.F32 = alignedSlice[float32](n)
	}
	return nil
}

// alignment of values in bytes: a cache line, and the widest vector.
const alignment = 64

// alignedSlice returns n elements from an aligned address.
func alignedSlice[T float32 | int64](n int) []T {
	if n == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(T(0)))
	s := make([]T, n+alignment/size-1)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(s)))%alignment) / size
	return s[skip : skip+n : skip+n]
}

func (cpu) View(dst, b *Buffer, at, n int) {
	switch {
	case dst.Sparse != nil:
		dst.Sparse.Values = elements[float32](b, at, n)
	case dst.DType == ir.I64:
		dst.I64 = elements[int64](b, at, n)
	default:
		dst.F32 = elements[float32](b, at, n)
	}
}

// elements returns n elements of a buffer's memory from byte at on.
func elements[T float32 | int64](b *Buffer, at, n int) []T {
	if n == 0 {
		return []T{}
	}
	have, base := 8*cap(b.I64), unsafe.Pointer(unsafe.SliceData(b.I64))
	if b.DType != ir.I64 {
		have, base = 4*cap(b.F32), unsafe.Pointer(unsafe.SliceData(b.F32))
	}
	if size := int(unsafe.Sizeof(T(0))); at < 0 || at%size != 0 || at+n*size > have {
		panic(fmt.Sprintf("runtime: %d elements from byte %d on of %d bytes", n, at, have))
	}
	return unsafe.Slice((*T)(unsafe.Add(base, at)), n)
}

func (cpu) Import(view, bound *Buffer) error {
	view.F32, view.I64, view.Graph = bound.F32, bound.I64, bound.Graph
	if bound.Sparse != nil {
		*view.Sparse = *bound.Sparse
	}
	return nil
}

func (c cpu) Alias(view, operand *Buffer, from, n int) {
	_ = c.Import(view, operand) // which has nothing to fail at
	if from > 0 || n < len(view.F32) {
		view.F32 = view.F32[from : from+n]
	}
}

func (cpu) Export(b *Buffer) (*Buffer, error) { return b, nil }

// cpuKernels is the table of the CPU: one kernel for each tensor operation.
var cpuKernels = mergeKernels(elementwiseKernels, reduceKernels, matrixKernels, pairwiseKernels, graphKernels, randomKernels, fusedKernels)

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
