// How well logits fit labels, for evaluation.

#include "math.h"

enum { HITS, LOSS, SCORES };

// score looks at the rows of logits [., classes] that are listed, a warp a row: whether
// the largest logit, the first of equal ones, is the label's, and −log softmax of the
// label's. Each block adds up its rows in their order, into parts [blocks, SCORES].
KERNEL gsrc_score(double *parts, const float *logits, const i64 *rows, const i64 *labels, int n, int classes) {
	SHARED(double, loss, 8);
	SHARED(int, hits, 8);
	int lane = thread_x() % WARP, warp = thread_x() / WARP, right = 0;
	double sum = 0.0;
	for (int i = grid_first() / WARP; i < n; i += grid_step() / WARP) {
		i64 at = LD(rows, i) * classes;
		float top = -INF, where = 0.0f; // a class is exact in a float
		for (int c = lane; c < classes; c += WARP) {
			float x = LD(logits, at + c);
			if (x > top || c == lane) top = x, where = (float)c;
		}
		if (lane >= classes) where = (float)classes;
		for (int m = WARP / 2; m > 0; m /= 2) {
			float t = warp_xor(top, m), w = warp_xor(where, m);
			if (t > top || (t == top && w < where)) top = t, where = w;
		}
		float all = 0.0f;
		for (int c = lane; c < classes; c += WARP) all += exp32(LD(logits, at + c) - top);
		all = warp_sum(all);
		int label = (int)LD(labels, i);
		right += (int)where == label;
		sum += (double)(log32(all) + (top - LD(logits, at + label)));
	}
	if (lane == 0) SH(loss, warp) = sum, SH(hits, warp) = right;
	barrier();
	if (thread_x() != 0) return;
	for (int w = 1; w < 8; w++) sum += SH(loss, w), right += SH(hits, w);
	ST(parts, block_x() * SCORES + HITS, (double)right);
	ST(parts, block_x() * SCORES + LOSS, sum);
}

// score_end adds up the parts, by one block, in an order that their number decides.
KERNEL gsrc_score_end(double *dst, const double *parts, int count) {
	SHARED(double, sums, 256 * SCORES);
	for (int k = 0; k < SCORES; k++) {
		double sum = 0.0;
		for (int i = thread_x(); i < count; i += width_x()) sum += LD(parts, i * SCORES + k);
		SH(sums, thread_x() * SCORES + k) = sum;
	}
	for (int m = 128; m > 0; m /= 2) {
		barrier();
		if (thread_x() >= m) continue;
		for (int k = 0; k < SCORES; k++) SH(sums, thread_x() * SCORES + k) += SH(sums, (thread_x() + m) * SCORES + k);
	}
	if (thread_x() == 0)
		for (int k = 0; k < SCORES; k++) ST(dst, k, SH(sums, k));
}
