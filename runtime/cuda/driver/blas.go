package driver

import (
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Modes of arithmetic and transpositions, by their numbers in cublas_api.h.
const (
	mathDefault = 0 // full float32
	mathTF32    = 3
	opN         = 0
	opT         = 1
)

// BLAS multiplies matrices on a stream. One goroutine uses it at a time.
type BLAS struct {
	caller
	l         *BLASLibrary
	handle    uintptr
	workspace uintptr
	one, zero *float32
}

// workspaceBytes is what NVIDIA recommends for Hopper, and enough for the others.
// cuBLAS takes no memory of its own beside it, so that its products may be captured,
// and equal calls give equal bits.
const workspaceBytes = 32 << 20

// NewBLAS makes cuBLAS ready on a stream. It takes 32 MiB of the device's memory.
// Products are in full float32; with tf32 their factors are rounded to 10 bits of
// mantissa, which is faster from compute capability 8.0 on.
func (s *Stream) NewBLAS(l *BLASLibrary, tf32 bool) (*BLAS, error) {
	b := &BLAS{caller: caller{c: s.c}, l: l, one: new(float32), zero: new(float32)}
	*b.one = 1
	var err error
	if b.workspace, err = s.c.Alloc(workspaceBytes); err != nil {
		return nil, fmt.Errorf("cuBLAS's workspace: %w", err)
	}
	err = b.do(l.fn["cublasCreate_v2"], uintptr(unsafe.Pointer(&b.handle)))
	if err == nil {
		err = b.do(l.fn["cublasSetStream_v2"], b.handle, s.handle)
	}
	if err == nil { // setting the stream resets the workspace
		err = b.do(l.fn["cublasSetWorkspace_v2"], b.handle, b.workspace, workspaceBytes)
	}
	if err == nil {
		err = b.SetTF32(tf32)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// SetTF32 says whether the products that follow round their factors to TF32; see
// [Stream.NewBLAS].
func (b *BLAS) SetTF32(on bool) error {
	mode := uintptr(mathDefault)
	if on {
		mode = mathTF32
	}
	if b.handle == 0 {
		return fmt.Errorf("cuBLAS is %w", ErrClosed)
	}
	return b.do(b.l.fn["cublasSetMathMode"], b.handle, mode)
}

// do calls a function of cuBLAS.
func (b *BLAS) do(p *proc, args ...uintptr) error {
	status := b.code(p, args...)
	if status == 0 {
		return nil
	}
	// Where the device is at fault, the driver says more.
	if _, _, err := b.c.FreeMemory(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return blasError(p, status)
}

// MatMul queues C = op(A)·op(B), or C += op(A)·op(B), of dense row-major float32
// matrices in the device's memory: op(A) is [m,k], op(B) [k,n] and C [m,n]; A is stored
// as [k,m] with ta, B as [n,k] with tb. C must not overlap the factors.
func (b *BLAS) MatMul(c, a, bb uintptr, m, n, k int, ta, tb, accumulate bool) error {
	if b.handle == 0 {
		return fmt.Errorf("cuBLAS is %w", ErrClosed)
	}
	if m < 0 || n < 0 || k < 0 || max(m, n, k) > math.MaxInt32 {
		return fmt.Errorf("a product of [%d,%d] and [%d,%d] is beyond cuBLAS's sizes", m, k, k, n)
	}
	if m == 0 || n == 0 {
		return nil
	}
	// cuBLAS is column-major: what is row-major is its transpose there, and
	// Cᵀ = op(B)ᵀ·op(A)ᵀ.
	opA, lda, opB, ldb, beta := uintptr(opN), k, uintptr(opN), n, b.zero
	if ta {
		opA, lda = opT, m
	}
	if tb {
		opB, ldb = opT, k
	}
	if accumulate {
		beta = b.one
	}
	return b.do(b.l.fn["cublasSgemm_v2"], b.handle, opB, opA, uintptr(n), uintptr(m), uintptr(k), uintptr(unsafe.Pointer(b.one)),
		bb, uintptr(max(ldb, 1)), a, uintptr(max(lda, 1)), uintptr(unsafe.Pointer(beta)), c, uintptr(n))
}

// Close frees cuBLAS's memory.
func (b *BLAS) Close() error {
	var err error
	if b.handle != 0 {
		err = b.do(b.l.fn["cublasDestroy_v2"], b.handle)
	}
	w := b.workspace
	b.handle, b.workspace = 0, 0
	return errors.Join(err, b.c.Free(w))
}

// blasError makes an error of a status of cuBLAS.
func blasError(p *proc, status Code) error {
	switch status {
	case 1:
		return fmt.Errorf("%s: cuBLAS could not be set up (CUBLAS_STATUS_NOT_INITIALIZED): it may not fit the driver; name another by %s", p.name, BLASVariable)
	case 3:
		return fmt.Errorf("%s: %w (CUBLAS_STATUS_ALLOC_FAILED)", p.name, ErrOutOfMemory)
	case 7:
		return fmt.Errorf("%s: an argument is wrong (CUBLAS_STATUS_INVALID_VALUE)", p.name)
	case 8:
		return fmt.Errorf("%s: this cuBLAS is not for this GPU (CUBLAS_STATUS_ARCH_MISMATCH)", p.name)
	case 13:
		return fmt.Errorf("%s: %w (CUBLAS_STATUS_EXECUTION_FAILED)", p.name, ErrLaunch)
	}
	return fmt.Errorf("%s: cuBLAS status %d", p.name, status)
}
