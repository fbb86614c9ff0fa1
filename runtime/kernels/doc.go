// Package kernels holds the float32 routines that a compiled program spends
// its time in on a CPU: matrix products, sparse products, elementwise maps,
// reductions, random fills and the optimizer step.
//
// Every kernel is a method of [Pool], works on slices the caller owns
// (destination first, matrices row-major and contiguous) and allocates nothing
// once the pool's own buffers have grown to the largest shape seen:
//
//	p := kernels.NewPool(0) // one thread for each processor
//	defer p.Close()
//	p.MatMul(dst, a, b, m, k, n, false, false, kernels.Epilogue{Bias: bias, Act: kernels.Relu})
//
// # Same bits for any number of threads
//
// Work is cut into chunks whose borders follow from the problem's size alone.
// A chunk is computed by one thread from start to end, and where chunks are
// combined (sums, column reductions) they are combined in chunk order. Which
// thread runs a chunk is left to chance and cannot be seen in the result.
// Random fills are counter-based (package rng): element i is a function of the
// stream and of i.
//
// # Instruction sets
//
// The inner loops exist three times: AVX-512F, AVX2 with FMA (both assembly,
// written by the generator in ./asm from one source) and Go. The best one the
// processor has is chosen at start-up; [SetISA] or the environment variable
// GSRC_ISA (avx512, avx2 or go) chooses another.
//
// # Same bits on every processor
//
// All of them give the same bits, and so does Go on arm64 and other architectures,
// because the arithmetic of every kernel is defined to the last rounding. (One NaN is
// as good as another: which of several reaches a result is not defined.) The Go
// loops are the definitions, and a test compares all others with them and with
// hashes of their results. The rules are:
//
//   - An operation is rounded to float32 on its own. A fused multiply-add, which
//     rounds once, is written fma32 in Go and stands in: matrix, sparse and sampled
//     products, inner products and squared distances, axpby, Adam's sums, the
//     functions below, pairwise distances, logits, weights and the sums of their
//     squares, and the weighted sums of the softmax over edges. It is nowhere else:
//     in Go every other product that meets a sum is converted, as in
//     float32(x*y) + z, since compilers fuse the two otherwise.
//   - Sums of vectors (sum, sum of magnitudes, inner product, squared distance) have
//     64 lanes: while 64 elements are left, each is added to its lane; the last
//     n mod 64 are added to the first 16 lanes in turn. Then 64 lanes become 16, as
//     (s[l]+s[l+16]) + (s[l+32]+s[l+48]), and those a number: t[l] = s[l]+s[l+8],
//     then ((t0+t1)+(t2+t3)) + ((t4+t5)+(t6+t7)) + 0. These lanes are four
//     accumulators of AVX-512 and eight of AVX2.
//   - Sums of exponentials and the inner products of sampled products have 16 lanes,
//     element i in lane i mod 16, and the same end.
//   - Elements of a product of matrices are summed over k in increasing order, in
//     blocks of k that follow from the shape; entries of sparse rows in their order.
//   - Sums over more than a chunk add the chunks' sums in their order.
//   - The largest or smallest of a vector is never −0. Max, Min, relu and the like of
//     two numbers take the second of equal ones.
//   - The pairwise kernels walk tiles of a side that follows from the number of rows
//     alone (pairUnit, pairLeast). A row's sum within a tile has 16 lanes, column c
//     in lane c mod 16, added as in pairFold; columns are summed in the order of the
//     rows, tiles in the order of the task list.
//   - exp, log, tanh and the other functions are those of math32.go: Cephes'
//     polynomials, evaluated in one order. What is left to float64 uses package
//     fmath, which is the same everywhere too.
//
// Where the processor has no fused multiply-add that Go's compiler uses, as on amd64,
// Go emulates it exactly and is slow: there it is for comparing, and for processors
// without AVX2.
//
// # Errors
//
// Shapes are the caller's duty: a kernel whose slices are shorter than its
// shape says panics in the calling goroutine and names the kernel and both
// lengths, as the run time does for an index out of range. The structure of a
// [CSR] that comes from outside must pass [CSR.Validate] first.
package kernels
