// Triangular factors of small matrices, as wide as a layer: one block.

#include "gsrc.h"

// cholesky writes the upper triangular r with rᵀr = a, symmetric [n, n]. Where a
// pivot does not exceed ridge·tr a/n that much is added to a's diagonal, and ten
// times more until all pivots hold; NaN where that does not help. It works in
// float64, in ws of n·n + 2 elements.
KERNEL gsrc_cholesky(float *dst, const float *a, double *ws, int n, double ridge) {
	SHARED(double, shift, 2);
	SHARED(int, state, 1); // 1: a pivot failed, 2: given up
	int me = thread_x(), width = width_x();
	if (me == 0) {
		double mean = 0.0;
		for (int i = 0; i < n; i++) mean += (double)LD(a, i * n + i) / (double)n;
		SH(shift, 0) = 0.0;
		SH(shift, 1) = mean;
	}
	for (;;) {
		barrier();
		if (me == 0) SH(state, 0) = 0;
		for (int i = 0; i < n; i++) {
			for (int k = i + me; k < n; k += width) {
				double v = (double)LD(a, i * n + k) + (k == i ? SH(shift, 0) : 0.0);
#pragma unroll 8
				for (int m = 0; m < i; m++) v -= LD(ws, m * n + i) * LD(ws, m * n + k);
				ST(ws, i * n + k, v);
			}
			barrier();
			double pivot = LD(ws, i * n + i), d = 1.0 / root64(pivot);
			barrier();
			if (!(pivot > ridge * SH(shift, 1))) {
				if (me == 0) SH(state, 0) = 1;
				break;
			}
			for (int k = i + me; k < n; k += width) ST(ws, i * n + k, LD(ws, i * n + k) * d);
			barrier();
		}
		barrier();
		if (SH(state, 0) == 0) break;
		barrier();
		if (me == 0) {
			double more = SH(shift, 0) * 10.0;
			if (more == 0.0) more = ridge * SH(shift, 1);
			SH(shift, 0) = more;
			if (!(more > 0.0 && more < SH(shift, 1))) SH(state, 0) = 2;
		}
		barrier();
		if (SH(state, 0) == 2) break;
	}
	for (int i = me; i < n * n; i += width) ST(dst, i, SH(state, 0) == 2 ? NOT_A_NUMBER : i % n < i / n ? 0.0f : (float)LD(ws, i));
}

// solve_upper solves r·dst = b, r upper triangular [n, n], b [n, cols], a warp a
// column, of which each lane has the same elements throughout. dst may be b.
KERNEL gsrc_solve_upper(float *dst, const float *r, const float *b, int n, int cols) {
	int lane = thread_x() % WARP;
	for (int c = grid_first() / WARP; c < cols; c += grid_step() / WARP) {
		for (int i = n - 1; i >= 0; i--) {
			float sum = 0.0f;
			for (int k = i + 1 + ((lane - i - 1) & (WARP - 1)); k < n; k += WARP) sum = fma32(LD(r, i * n + k), LD(dst, k * cols + c), sum);
			sum = warp_sum(sum);
			if (lane == i % WARP) ST(dst, i * cols + c, (LD(b, i * cols + c) - sum) / LD(r, i * n + i));
		}
	}
}
