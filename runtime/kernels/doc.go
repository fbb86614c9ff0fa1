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
// GSRC_ISA (avx512, avx2 or go) chooses another. Results differ in the last
// bits between instruction sets, except for the random fills, which are equal
// bit for bit everywhere.
//
// # Errors
//
// Shapes are the caller's duty: a kernel whose slices are shorter than its
// shape says panics in the calling goroutine and names the kernel and both
// lengths, as the run time does for an index out of range. The structure of a
// [CSR] that comes from outside must pass [CSR.Validate] first.
package kernels
