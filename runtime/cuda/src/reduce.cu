// Sums, maxima and logarithms of sums of exponentials, and what needs them of each
// row. How much a thread, a block and a launch add depends on shapes alone.

#include "math.h"

enum { SUM, MAX, MIN, LOG_SUM_EXP };

// A partial result: the number, or of LOG_SUM_EXP a maximum and the sum of
// exponentials of differences to it.
typedef struct { float v, s; } part;

FN part part_none(int kind) {
	part p = {kind == SUM ? 0.0f : kind == MIN ? INF : -INF, 0.0f};
	return p;
}

FN part part_join(int kind, part a, part b) {
	part p = {0.0f, 0.0f};
	switch (kind) {
	case SUM: p.v = a.v + b.v; break;
	case MAX: p.v = max32(a.v, b.v); break;
	case MIN: p.v = min32(a.v, b.v); break;
	default:
		p.v = max32(a.v, b.v);
		if (p.v == -INF) break;
		// Of two that are +Inf, the difference would not be a number.
		p.s = (a.v == p.v ? a.s : a.s * exp32(a.v - p.v)) + (b.v == p.v ? b.s : b.s * exp32(b.v - p.v));
	}
	return p;
}

FN part part_of(int kind, float x) {
	part p = {x, kind == LOG_SUM_EXP && x != -INF ? 1.0f : 0.0f};
	return p;
}

FN float part_end(int kind, part p, float scale) {
	if (kind == LOG_SUM_EXP) return abs32(p.v) == INF ? p.v : p.v + log32(p.s);
	return kind == SUM ? p.v * scale : p.v;
}

FN part warp_join(int kind, part p) {
	for (int m = WARP / 2; m > 0; m /= 2) {
		part q = {warp_xor(p.v, m), kind == LOG_SUM_EXP ? warp_xor(p.s, m) : 0.0f};
		// Both sides must join in one order, lower lane first, for equal bits.
		p = (thread_x() & m) ? part_join(kind, q, p) : part_join(kind, p, q);
	}
	return p;
}

// reduce_all reduces n elements, or with pairs set n partial results, to one
// partial result for each block; the last launch, of one block, writes dst.
KERNEL gsrc_reduce_all(float *dst, float *parts, const float *x, int n, int kind, int pairs, float scale) {
	SHARED(float, v, 8);
	SHARED(float, s, 8);
	part p = part_none(kind);
	for (int i = grid_first(); i < n; i += grid_step()) {
		part q = part_of(kind, 0.0f);
		if (pairs) {
			q.v = LD(x, 2 * i), q.s = LD(x, 2 * i + 1);
		} else {
			q = part_of(kind, LD(x, i));
		}
		p = part_join(kind, p, q);
	}
	p = warp_join(kind, p);
	if (thread_x() % WARP == 0) SH(v, thread_x() / WARP) = p.v, SH(s, thread_x() / WARP) = p.s;
	barrier();
	if (thread_x() != 0) return;
	p.v = SH(v, 0), p.s = SH(s, 0);
	for (int i = 1; i < 8; i++) {
		part q = {SH(v, i), SH(s, i)};
		p = part_join(kind, p, q);
	}
	if (dst) {
		ST(dst, 0, part_end(kind, p, scale));
	} else {
		ST(parts, 2 * block_x(), p.v);
		ST(parts, 2 * block_x() + 1, p.s);
	}
}

// reduce_rows reduces each row, a warp a row.
KERNEL gsrc_reduce_rows(float *dst, const float *x, int rows, int cols, int kind, float scale) {
	int lane = thread_x() % WARP;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		part p = part_none(kind);
		for (int c = lane; c < cols; c += WARP) p = part_join(kind, p, part_of(kind, LD(x, (i64)r * cols + c)));
		p = warp_join(kind, p);
		if (lane == 0) ST(dst, r, part_end(kind, p, scale));
	}
}

// reduce_columns reduces some rows of 32 columns: block y has rows y·per on. A
// warp takes every eighth of them.
KERNEL gsrc_reduce_columns(float *parts, const float *x, int rows, int cols, int per, int kind) {
	SHARED(float, v, 256);
	SHARED(float, s, 256);
	int lane = thread_x() % WARP, warp = thread_x() / WARP, c = block_x() * WARP + lane;
	int last = min_int(rows, (block_y() + 1) * per);
	part p = part_none(kind);
	for (int r = block_y() * per + warp; r < last && c < cols; r += 8) p = part_join(kind, p, part_of(kind, LD(x, (i64)r * cols + c)));
	SH(v, thread_x()) = p.v;
	SH(s, thread_x()) = p.s;
	barrier();
	if (warp != 0 || c >= cols) return;
	for (int i = 1; i < 8; i++) {
		part q = {SH(v, i * WARP + lane), SH(s, i * WARP + lane)};
		p = part_join(kind, p, q);
	}
	i64 at = 2 * ((i64)block_y() * cols + c);
	ST(parts, at, p.v);
	ST(parts, at + 1, p.s);
}

// reduce_columns_end joins the partial results of each column.
KERNEL gsrc_reduce_columns_end(float *dst, const float *parts, int count, int cols, int kind, float scale) {
	for (int c = grid_first(); c < cols; c += grid_step()) {
		part p = part_none(kind);
		for (int i = 0; i < count; i++) {
			part q = {LD(parts, 2 * ((i64)i * cols + c)), LD(parts, 2 * ((i64)i * cols + c) + 1)};
			p = part_join(kind, p, q);
		}
		ST(dst, c, part_end(kind, p, scale));
	}
}

// The logarithm of the sum of exponentials of a row, the same for all threads of
// the warp.
FN float row_lse(const float *x, i64 at, int cols) {
	part p = part_none(LOG_SUM_EXP);
	for (int c = thread_x() % WARP; c < cols; c += WARP) p = part_join(LOG_SUM_EXP, p, part_of(LOG_SUM_EXP, LD(x, at + c)));
	return part_end(LOG_SUM_EXP, warp_join(LOG_SUM_EXP, p), 1.0f);
}

// softmax computes the softmax of each row, or its logarithm. dst may be x.
KERNEL gsrc_softmax(float *dst, const float *x, int rows, int cols, int logarithm) {
	int lane = thread_x() % WARP;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		i64 at = (i64)r * cols;
		float lse = row_lse(x, at, cols);
		for (int c = lane; c < cols; c += WARP) {
			float v = LD(x, at + c) - lse;
			ST(dst, at + c, logarithm ? v : exp32(v));
		}
	}
}

// cross_entropy computes lse_i − logits[i, labels[i]] of each row; NaN for a label
// that is no class.
KERNEL gsrc_cross_entropy(float *dst, const float *logits, const i64 *labels, int rows, int cols, int *fault, int number) {
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		i64 at = (i64)r * cols, l = LD(labels, r);
		float lse = row_lse(logits, at, cols);
		int good = l >= 0 && l < cols;
		if (!good) set_fault(fault, number);
		if (thread_x() % WARP == 0) ST(dst, r, good ? lse - LD(logits, at + l) : NOT_A_NUMBER);
	}
}

// cross_entropy_grad computes dy/rows·(softmax(logits) − onehot(labels)). dst may
// be logits.
KERNEL gsrc_cross_entropy_grad(float *dst, const float *logits, const i64 *labels, const float *dy, int rows, int cols, int *fault, int number) {
	int lane = thread_x() % WARP;
	float scale = LD(dy, 0) / (float)rows;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		i64 at = (i64)r * cols, l = LD(labels, r);
		float lse = row_lse(logits, at, cols);
		if (l < 0 || l >= cols) {
			lse = NOT_A_NUMBER;
			set_fault(fault, number);
		}
		for (int c = lane; c < cols; c += WARP) ST(dst, at + c, scale * (exp32(LD(logits, at + c) - lse) - (c == l ? 1.0f : 0.0f)));
	}
}

// normalize divides each row by its norm, 1 or 2, of at least eps, or by that of the
// scaled row where row_scale scales it. dst may be x.
KERNEL gsrc_normalize(float *dst, const float *x, int rows, int cols, int norm, float eps) {
	int lane = thread_x() % WARP;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		i64 at = (i64)r * cols;
		float length = row_norm(x, at, cols, norm, 1.0f), first = row_scale(length, x, at, cols, eps);
		float scale = 1.0f / (first == 1.0f ? max32(length, eps) : row_norm(x, at, cols, norm, first));
		for (int c = lane; c < cols; c += WARP) ST(dst, at + c, LD(x, at + c) * first * scale);
	}
}

// l2_normalize_grad computes (dy − y⟨y, dy⟩)/‖x‖ where ‖x‖ > eps, else dy/eps, or 0
// where eps ≤ 1e-12. dst may be dy.
KERNEL gsrc_l2_normalize_grad(float *dst, const float *x, const float *dy, int rows, int cols, float eps) {
	int lane = thread_x() % WARP;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		i64 at = (i64)r * cols;
		float first = 1.0f, square, dot;
		for (;;) {
			square = dot = 0.0f;
			for (int c = lane; c < cols; c += WARP) {
				float v = LD(x, at + c) * first;
				square = fma32(v, v, square);
				dot = fma32(v, LD(dy, at + c), dot);
			}
			square = warp_sum(square);
			dot = warp_sum(dot);
			if (first != 1.0f) break;
			first = row_scale(root(square), x, at, cols, INF);
			if (first == 1.0f) break;
		}
		float norm = root(square), along = norm > eps ? dot / (norm * norm * norm) : 0.0f, scale = 1.0f / (norm > eps ? norm : eps);
		if (norm <= eps && eps <= 1e-12f) scale = 0.0f;
		for (int c = lane; c < cols; c += WARP) ST(dst, at + c, (LD(dy, at + c) * scale - LD(x, at + c) * first * along) * first);
	}
}

// sum_parts adds count arrays of n elements that lie one after another.
KERNEL gsrc_sum_parts(float *dst, const float *parts, int n, int count) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		float sum = 0.0f;
		for (int k = 0; k < count; k++) sum += LD(parts, (i64)k * n + i);
		ST(dst, i, sum);
	}
}
