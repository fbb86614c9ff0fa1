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
	tiles   tiles
	scratch []float32
	extra   int     // floats of scratch that are not of the executor's plan
	work    uintptr // address of the workspace on a device with a memory of its own
}

// ScratchAt returns the address of the workspace that Device.Workspace asked for,
// on a device that has a memory of its own; 0 if there is none.
func (k *Call) ScratchAt() uintptr { return k.work }

// PlaceScratch says where the call's workspace lies in a device's memory.
func (k *Call) PlaceScratch(at uintptr) { k.work = at }

// Wanted reports whether result i is read. One that is not may be
// left as it is.
func (k *Call) Wanted(i int) bool { return k.unread == nil || !k.unread[i] }

// Scratch returns n floats of workspace, with unspecified contents, valid until
// the kernel returns. What Device.Workspace asked for lies in the arena
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

// Device is where programs run: it has kernels, memory, and what training does beside
// running functions. The CPU, GPUs and the tests' device implement all of it, so that
// no other package asks which of them it has.
//
// # Who owns what
//
// A buffer that the caller binds belongs to the host. A device whose memory is not the
// host's copies the contents before the next run, once, for all programs on it; binding
// the buffer again says that they have changed. A buffer that was given away with
// ToDevice, such as a parameter while it is trained, belongs to the device: binding it
// copies nothing, and the host's copy is as old as the last CopyToHost. What programs
// compute stays on the device: [Executable.Result] binds it to another program there,
// [Executable.Read] copies it to the host. On the CPU both share the memory, and the
// copies are none.
//
// A device may queue what it is told to do; it does it in that order, and only reading
// back waits for it.
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
	// Pads reports whether the sizes of sampled blocks and of batches are to be few,
	// as work that was recorded for some sizes is replayed for others of the same. The
	// sizes are rounded up, by [PaddedRows] and [PaddedEntries], to ones that depend on
	// themselves alone: so a run depends on its samples and not on the steps before it.
	// Rows that are appended hold copies of others or zeros. They are appended only in
	// programs where they can be shown to change nothing.
	Pads() bool
	// Attach says how the device runs a program: by [Program.OnHost] or
	// [Program.OnQueue].
	Attach(p *Program) Runner
	// MemoryLimit returns how many bytes programs may take of the device's memory,
	// where the process may take that many of the host's.
	MemoryLimit(host int64) int64

	Allocator
	Trainer
	Sampler
}

// Allocator is a device's memory and the buffers that lie in it.
type Allocator interface {
	// Reserve makes b's own memory hold at least n elements of its element
	// type, from an address that is a multiple of 64. Contents need not be
	// kept. b belongs to the device then.
	Reserve(b *Buffer, n int) error
	// View makes dst a view of n elements of memory that Reserve gave to b,
	// from a byte on that is a multiple of 64. The element types may differ.
	View(dst, b *Buffer, at, n int)
	// Import makes the payload of a bound buffer that of view.
	Import(view, bound *Buffer) error
	// Alias makes view show n elements of operand from one on: of a dense tensor a
	// part, of others all.
	Alias(view, operand *Buffer, from, n int)
	// Export returns a result as the host may read it, valid until the next Export of it.
	Export(b *Buffer) (*Buffer, error)
	// Changed says that the host changed a buffer's contents.
	Changed(b *Buffer)
	// ToDevice gives a tensor to the device, with the contents that the host has now.
	ToDevice(b *Buffer) error
	// CopyToDevice copies the host's contents of a tensor that the device owns to it,
	// CopyToHost the device's to the host.
	CopyToDevice(b *Buffer) error
	CopyToHost(b *Buffer) error
	// Assign copies src's elements to dst, both f32 tensors of one size on the device.
	Assign(dst, src *Buffer) error
	// Release gives back the memory of a buffer, ReleaseAll that of all. Views of it
	// must not be used again, and programs on the device must be closed before ReleaseAll.
	// What the host shares is the garbage collector's.
	Release(b *Buffer) error
	ReleaseAll() error
}

// Trainer is what a device does behind the functions of a training step. All tensors
// lie on the device.
type Trainer interface {
	// Adam makes step t (from 1) of Adam; see [kernels.Pool.AdamStep].
	Adam(params []AdamParam, lr, b1, b2, eps float32, t int) error
	// EMAUpdate moves dst to an exponential moving average: dst ← dst + share·(src − dst).
	EMAUpdate(dst, src *Buffer, share float32) error
	// Finite returns the position of the first buffer that holds a NaN or an
	// infinity, −1 if none does, and the values of scalars.
	Finite(scalars []*Buffer, values []float32, bs []*Buffer) (bad int, err error)
	// Score compares logits [N, classes] with the labels of some rows, and reports
	// whether all logits are finite.
	Score(logits *Buffer, sets []Scoring) (finite bool, err error)
}

// AdamParam is one parameter of an optimizer step: weights, gradient, first and second
// moments.
type AdamParam struct {
	W, G, M, V  *Buffer
	WeightDecay float32
}

// Scoring is rows of logits to be compared with their labels, and the outcome. Rows
// and Labels are [n] i64 tensors that the device owns, in the range of N and of the
// classes.
type Scoring struct {
	Rows, Labels *Buffer
	// Hits is how many rows have their largest logit, the first of equal ones, at the
	// label; Loss the sum of −ln softmax at the label, in nats, which is valid WithLoss only.
	Hits     int
	Loss     float64
	WithLoss bool
}

// Sampler is what a device draws and searches for training steps.
type Sampler interface {
	// DrawAnchors makes dst, an i64 tensor [count] that the device owns, that many of n
	// nodes in ascending order: the first of a Fisher–Yates shuffle whose step i swaps
	// element i with element i + s.Intn(i, n−i).
	DrawAnchors(dst *Buffer, n int, s rng.Stream) error
	// Candidates makes c the candidate edges between the rows of emb [N, F], as
	// [graph.KNN] and [graph.NewCandidates] do.
	Candidates(c *Candidates, emb *Buffer, o CandidateOptions) error
	// CandidateBytes returns what Candidates takes of a memory of the device's own, beside
	// emb and the results: for that many nodes, columns and edges of the graph.
	CandidateBytes(n, f, edges int, o CandidateOptions) int
}

func (cpu) Kernel(op *ir.Op) (Kernel, error) {
	k, ok := cpuKernels[op.Name()]
	return k, CheckKernel(op, ok, "CPU")
}

// CheckKernel returns the error of [Device.Kernel] for an operation that the device,
// "CPU" for example, has a kernel for or not.
func CheckKernel(op *ir.Op, have bool, device string) error {
	switch {
	case op.Def.Level != ir.TensorLevel || op.Def.Resolved:
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

// cpuKernels is the table of the CPU: one kernel for each tensor operation.
var cpuKernels = mergeKernels(stepKernels(), elementwiseKernels, reduceKernels, matrixKernels, pairwiseKernels, graphKernels, randomKernels, fusedKernels)

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
