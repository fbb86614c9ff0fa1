// Operations with indices. An index that is outside of its range is not followed:
// what it would have read is NaN (−1 of integers), and the fault is noted.

#include "gsrc.h"

// gather copies the rows idx of x [rows, width].
KERNEL gsrc_gather(float *dst, const float *x, const i64 *idx, int n, int rows, int width, int *fault, int number) {
	for (int i = grid_first(); i < n * width; i += grid_step()) {
		int k = (int)((u32)i / (u32)width);
		i64 r = LD(idx, k);
		int good = r >= 0 && r < rows;
		if (!good) set_fault(fault, number);
		ST(dst, i, good ? LD(x, r * width + (i - k * width)) : NOT_A_NUMBER);
	}
}

KERNEL gsrc_gather_i64(i64 *dst, const i64 *x, const i64 *idx, int n, int rows, int width, int *fault, int number) {
	for (int i = grid_first(); i < n * width; i += grid_step()) {
		int k = (int)((u32)i / (u32)width);
		i64 r = LD(idx, k);
		int good = r >= 0 && r < rows;
		if (!good) set_fault(fault, number);
		ST(dst, i, good ? LD(x, r * width + (i - k * width)) : -1);
	}
}

// scatter_add adds the rows of x to the rows idx of dst. A block has per rows of
// dst and goes through all indices in their order, so that every row is added to
// in that order by one block, and every column by one thread.
KERNEL gsrc_scatter_add(float *dst, const float *x, const i64 *idx, int n, int rows, int width, int per, int *fault, int number) {
	SHARED(int, to, 256);
	int first = block_x() * per, last = min_int(rows, first + per);
	for (int i = thread_x(); i < (last - first) * width; i += width_x()) ST(dst, (i64)first * width + i, 0.0f);
	for (int k0 = 0; k0 < n; k0 += 256) {
		barrier();
		i64 r = k0 + thread_x() < n ? LD(idx, k0 + thread_x()) : -1;
		int bad = k0 + thread_x() < n && (r < 0 || r >= rows);
		if (bad) set_fault(fault, number);
		SH(to, thread_x()) = bad ? -2 : r >= first && r < last ? (int)r : -1;
		barrier();
		for (int i = 0; i < 256 && k0 + i < n; i++) {
			int row = SH(to, i);
			if (row == -1) continue;
			float wrong = row == -2 ? NOT_A_NUMBER : 0.0f;
			if (row == -2) row = first;
			for (int c = thread_x(); c < width; c += width_x()) {
				i64 at = (i64)row * width + c;
				ST(dst, at, LD(dst, at) + (LD(x, (i64)(k0 + i) * width + c) + wrong));
			}
		}
	}
}

// pair_dot computes the inner product of the two rows of x that each of n pairs
// names, a warp a pair.
KERNEL gsrc_pair_dot(float *dst, const float *x, const i64 *pairs, int n, int rows, int width, int *fault, int number) {
	int lane = thread_x() % WARP;
	for (int k = grid_first() / WARP; k < n; k += grid_step() / WARP) {
		i64 a = LD(pairs, k), b = LD(pairs, n + k);
		int good = a >= 0 && a < rows && b >= 0 && b < rows;
		if (!good) set_fault(fault, number);
		float sum = 0.0f;
		for (int c = lane; good && c < width; c += WARP) sum = fma32(LD(x, a * width + c), LD(x, b * width + c), sum);
		sum = warp_sum(sum);
		if (lane == 0) ST(dst, k, good ? sum : NOT_A_NUMBER);
	}
}
