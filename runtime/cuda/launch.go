package cuda

import (
	"fmt"
	"math"

	"github.com/gsrc-dev/gsrc/runtime"
)

// threads is the number of threads of a block where nothing else is said.
const threads = 256

// most is the largest number of blocks that a kernel that loops over its elements
// is launched with: enough to fill any device several times.
const most = 1 << 13

// processors is about how many multiprocessors a large device has. Grids depend on shapes
// alone, not on the device, so that sums have the same order on all.
const processors = 132

// blocks returns the grid for n threads, of blocks of the given width.
func blocks(n, width int) [3]uint32 {
	return [3]uint32{uint32(min(max((n+width-1)/width, 1), most)), 1, 1}
}

// steps queues one thing after another until one fails.
type steps struct {
	Stream
	err error
}

// queued returns the first error of what is queued on a stream.
func queued(s Stream, queue func(q *steps)) error {
	q := steps{Stream: s}
	queue(&q)
	return q.err
}

func (q *steps) launch(kernel string, grid, block [3]uint32, shared uint32, args ...uint64) {
	if q.err == nil {
		q.err = q.Launch(kernel, grid, block, shared, args...)
	}
}

// every launches a kernel that loops over n elements.
func (q *steps) every(kernel string, n int, args ...uint64) {
	if n > 0 {
		q.launch(kernel, blocks(n, threads), [3]uint32{threads, 1, 1}, 0, args...)
	}
}

// warps launches a kernel that has a warp for each of n rows.
func (q *steps) warps(kernel string, n int, args ...uint64) { q.every(kernel, 32*n, args...) }

// copy copies bytes from one address to another, unless they are there.
func (q *steps) copy(dst, src uintptr, bytes int) {
	if q.err == nil && bytes > 0 && dst != src {
		q.err = q.Copy(dst, src, bytes)
	}
}

func (q *steps) matMul(m MatMul) {
	if q.err == nil {
		q.err = q.MatMul(m)
	}
}

// countElements returns the number of elements of a tensor, which kernels count in 32 bits.
func countElements(dims []int) (n int, err error) {
	rows, cols := runtime.Matrix(dims)
	if n = rows * cols; n > math.MaxInt32-1<<24 {
		return 0, fmt.Errorf("a tensor of %v has %d elements, more than the 2³¹ that CUDA kernels count: train with smaller batches", dims, n)
	}
	return n, nil
}

// at returns the address of an operand's elements, 0 of an absent one.
func at(b *runtime.Buffer) uint64 {
	if b == nil {
		return 0
	}
	return Ptr(b.Device.Elements)
}

// wanted returns the address of result i, 0 if it is not read.
func wanted(k *runtime.Call, i int) uint64 {
	if !k.Wanted(i) {
		return 0
	}
	return at(k.Out[i])
}
