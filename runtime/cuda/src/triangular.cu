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
		for (int i = me; i < n * n; i += width) ST(ws, i, (double)LD(a, i) + (i / n == i % n ? SH(shift, 0) : 0.0));
		barrier();
		for (int i = 0; i < n; i++) {
			double pivot = LD(ws, i * n + i);
			if (!(pivot > ridge * SH(shift, 1))) {
				barrier();
				if (me == 0) SH(state, 0) = 1;
				break;
			}
			double d = 1.0 / root64(pivot);
			barrier();
			for (int k = i + me; k < n; k += width) ST(ws, i * n + k, LD(ws, i * n + k) * d);
			barrier();
			int left = n - i - 1;
			for (int m = me; m < left * left; m += width) {
				int j = i + 1 + m / left, k = i + 1 + m % left;
				if (k >= j) ST(ws, j * n + k, LD(ws, j * n + k) - LD(ws, i * n + j) * LD(ws, i * n + k));
			}
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

// solve_upper solves r·dst = b, r upper triangular [n, n], b [n, cols], a thread a
// column. dst may be b.
KERNEL gsrc_solve_upper(float *dst, const float *r, const float *b, int n, int cols) {
	for (int c = grid_first(); c < cols; c += grid_step()) {
		for (int i = n - 1; i >= 0; i--) {
			float v = LD(b, i * cols + c);
			for (int k = i + 1; k < n; k++) v = fma32(-LD(r, i * n + k), LD(dst, k * cols + c), v);
			ST(dst, i * cols + c, v / LD(r, i * n + i));
		}
	}
}
