package cuda

import (
	"math"

	"github.com/gsrc-dev/gsrc/ir"
	"github.com/gsrc-dev/gsrc/runtime"
)

// Stream takes work for the device, which does it in order.
type Stream interface {
	// Launch runs a kernel of the module on grid blocks of block threads, with
	// that many bytes of dynamic shared memory. Each argument stands in a slot of 8
	// bytes, little endian: see Ptr, Int, Long, Float and Word.
	Launch(kernel string, grid, block [3]uint32, shared uint32, args ...uint64) error
	// Copy copies bytes within the device's memory. The ranges do not overlap.
	Copy(dst, src uintptr, bytes int) error
	// MatMul multiplies two dense matrices: by cuBLAS where it was found, else by
	// the module's kernel (see LaunchMatMul).
	MatMul(m MatMul) error
	// Step is the device address of the run's step number, a uint64. A random
	// kernel derives its key from its stream and this, as rng.Stream.At does, so
	// that a captured graph can be replayed for every step.
	Step() uintptr
	// Fault is the device address of an int32 that is 0, and the number that a kernel
	// of op puts there when it meets an index outside of its range: it does not follow
	// the index, computes NaN (−1 of integers), and the host finds out when it next
	// reads from the device.
	Fault(op *ir.Op) (word uintptr, number int)
}

// MatMul is a product of dense row-major float32 matrices, C = op(A)·op(B), or
// C += op(A)·op(B) with Accumulate. op(A) is [M,K], op(B) [K,N], C [M,N]; A is
// stored as [K,M] with TA, B as [N,K] with TB. There are no gaps between rows.
type MatMul struct {
	C, A, B    uintptr
	M, N, K    int
	TA, TB     bool
	Accumulate bool
	Scratch    uintptr // for the module's kernel: see productWorkspace; 0 if there is none
}

// Kernel queues what computes one operation. Addresses come from the operands'
// and results' Device, sizes from their Dims.
type Kernel func(q Stream, k *runtime.Call) error

// kernel is a [Kernel] of operands whose elements can be counted.
type kernel func(q *steps, k *runtime.Call)

// Ptr is a device address as an argument of a launch.
func Ptr(p uintptr) uint64 { return uint64(p) }

// Int is an int32 as an argument of a launch.
func Int(i int) uint64 { return uint64(uint32(int32(i))) }

// Long is an int64 as an argument of a launch.
func Long(i int) uint64 { return uint64(int64(i)) }

// Float is a float32 as an argument of a launch.
func Float(f float32) uint64 { return uint64(math.Float32bits(f)) }

// Double is a float64 as an argument of a launch.
func Double(f float64) uint64 { return math.Float64bits(f) }

// Word is an argument of 8 bytes as it is.
func Word(w uint64) uint64 { return w }
