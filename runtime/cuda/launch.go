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

// every launches a kernel that loops over n elements.
func every(q Stream, kernel string, n int, args ...uint64) error {
	if n <= 0 {
		return nil
	}
	return q.Launch(kernel, blocks(n, threads), [3]uint32{threads, 1, 1}, 0, args...)
}

// warps launches a kernel that has a warp for each of n rows.
func warps(q Stream, kernel string, n int, args ...uint64) error {
	return every(q, kernel, 32*n, args...)
}

// sizes returns the number of elements and of columns of a tensor. Kernels count
// elements in 32 bits.
func sizes(dims []int) (n, cols int, err error) {
	rows, cols := runtime.Matrix(dims)
	if n = rows * cols; n > math.MaxInt32-1<<24 {
		return 0, 0, fmt.Errorf("a tensor of %v has %d elements, more than the 2³¹ that CUDA kernels count: train with smaller batches", dims, n)
	}
	return n, cols, nil
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

// copyAll copies the elements of a dense tensor.
func copyAll(q Stream, dst, src *runtime.Buffer, size int) error {
	n, _, err := sizes(dst.Dims)
	if err != nil || n == 0 || dst.Device.Elements == src.Device.Elements {
		return err
	}
	return q.Copy(dst.Device.Elements, src.Device.Elements, n*size)
}
