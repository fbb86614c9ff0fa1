// Kernels with faults that the emulator must show, and one without.
#include "gsrc.h"

// Every thread writes one element more than there are.
KERNEL test_outside(float *x, int n) {
	for (int i = grid_first(); i <= n; i += grid_step()) ST(x, i, 1.0f);
}

KERNEL test_misaligned(float *x) { ST((double *)(x + 1), 0, 1.0); }

// A neighbour's element is read before a barrier says that it is there.
KERNEL test_race(float *x, int n) {
	SHARED(float, tile, 64);
	int i = thread_x();
	SH(tile, i) = 0.0f;
	barrier();
	SH(tile, i) = (float)i;
	ST(x, i, SH(tile, (i + 1) % n));
}

KERNEL test_ordered(float *x, int n) {
	SHARED(float, tile, 64);
	int i = thread_x();
	SH(tile, i) = (float)i;
	barrier();
	ST(x, i, SH(tile, (i + 1) % n));
}

// Blocks write to the same place.
KERNEL test_blocks(float *x) { ST(x, 0, (float)block_x()); }

KERNEL test_shared_outside(float *x) {
	SHARED(float, tile, 64);
	ST(x, 0, SH(tile, 64 + thread_x()));
}

// Half of the threads leave before a barrier.
KERNEL test_left(float *x) {
	if (thread_x() % 2) return;
	barrier();
	ST(x, 0, 1.0f);
}

KERNEL test_warp(float *x) { ST(x, thread_x(), warp_sum((float)thread_x())); }

// A neighbour in the warp is read with and without waiting for the warp.
KERNEL test_warp_race(float *x) {
	SHARED(float, tile, 64);
	int i = thread_x();
	SH(tile, i) = 0.0f;
	barrier();
	SH(tile, i) = (float)i;
	ST(x, i, SH(tile, i ^ 1));
}

KERNEL test_warp_ordered(float *x) {
	SHARED(float, tile, 64);
	int i = thread_x();
	SH(tile, i) = (float)i;
	warp_barrier();
	ST(x, i, SH(tile, i ^ 1));
}

// The smallest of all blocks, and the lanes that vote.
KERNEL test_lower(int *x) {
	LOWER(x, 0, 100 + block_x());
	u32 odd = warp_ballot(thread_x() % 2);
	if (block_x() == 7) ST(x, 1, (int)odd);
}
