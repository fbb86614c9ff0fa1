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
#define INDICES 4
KERNEL gsrc_scatter_add(float *dst, const float *x, const i64 *idx, int n, int rows, int width, int per, int *fault, int number) {
	int first = block_x() * per, last = min_int(rows, first + per), lane = thread_x() % WARP;
	if (thread_x() - lane >= width) return; // the warp has no column
	for (int row = first; row < last; row++)
		for (int c = thread_x(); c < width; c += width_x()) ST(dst, (i64)row * width + c, 0.0f);
	for (int k0 = 0; k0 < n; k0 += INDICES * WARP) {
		i64 r[INDICES];
#pragma unroll
		for (int j = 0; j < INDICES; j++) r[j] = k0 + j * WARP + lane < n ? LD(idx, k0 + j * WARP + lane) : -1;
#pragma unroll
		for (int j = 0; j < INDICES; j++) {
			int k = k0 + j * WARP, bad = k + lane < n && (r[j] < 0 || r[j] >= rows);
			if (bad) set_fault(fault, number);
			u32 wrong = warp_ballot(bad), hits = wrong | warp_ballot(r[j] >= first && r[j] < last);
			for (; hits; hits &= hits - 1) {
				int i = lowest(hits), no = wrong >> i & 1;
				i64 row = no ? first : LD(idx, k + i);
				for (int c = thread_x(); c < width; c += width_x()) {
					i64 at = row * width + c;
					ST(dst, at, LD(dst, at) + (LD(x, (i64)(k + i) * width + c) + (no ? NOT_A_NUMBER : 0.0f)));
				}
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
