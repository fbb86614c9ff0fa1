// Reductions over the squared distances of all pairs of rows, d_ij = ‖p_i − q_j‖²,
// and their gradients. The distances are computed in tiles of 64 by 64, used and
// forgotten: memory is needed for rows alone. They are sums of squared differences,
// which do not lose the small ones as products of the rows would.

#include "math.h"

#define TILE 64
#define INNER 16
#define LINE (TILE + 4)
#define WIDE 128

// Elements k0 to k0+15 of the 64 rows from r0 on, to shared memory by element.
#define FETCH(tile, x, r0) \
	_Pragma("unroll") for (int j = 0; j < 4; j++) { \
		int i = thread_x() + 256 * j, r = i / INNER, k = i % INNER; \
		SH(tile, k * LINE + r) = (r0) + r < b && k0 + k < f ? LD(x, ((r0) + r) * f + k0 + k) : 0.0f; \
	}

// The distances of rows i0 + 4ty.. of p and j0 + 4tx.. of q, by the whole block.
#define DISTANCES(dist, i0, j0) \
	_Pragma("unroll") for (int i = 0; i < 4; i++) { \
		_Pragma("unroll") for (int j = 0; j < 4; j++) dist[i][j] = 0.0f; \
	} \
	for (int k0 = 0; k0 < f; k0 += INNER) { \
		barrier(); \
		FETCH(ps, p, i0) \
		FETCH(qs, q, j0) \
		barrier(); \
		_Pragma("unroll 2") for (int l = 0; l < INNER; l++) { \
			float4_t u = SH4(ps, l * LINE + 4 * ty), v = SH4(qs, l * LINE + 4 * tx); \
			float x[4] = {u.x, u.y, u.z, u.w}, y[4] = {v.x, v.y, v.z, v.w}; \
			_Pragma("unroll") for (int i = 0; i < 4; i++) { \
				_Pragma("unroll") for (int j = 0; j < 4; j++) { \
					float d = x[i] - y[j]; \
					dist[i][j] = fma32(d, d, dist[i][j]); \
				} \
			} \
		} \
	}

// pair_rows computes of each row i of p, over the columns j ≠ i of a chunk of tiles
// (block y): the maximum m of −d_ij/τ, Σ exp(−d_ij/τ − m) and Σ d_ij², as parts
// [chunk, 3, b].
KERNEL gsrc_pair_rows(float *parts, const float *p, const float *q, int b, int f, float scale, int tiles) {
	SHARED(float, ps, INNER * LINE);
	SHARED(float, qs, INNER * LINE);
	int tx = thread_x() % 16, ty = thread_x() / 16, i0 = block_x() * TILE;
	float dist[4][4], top[4], sum[4], square[4];
#pragma unroll
	for (int i = 0; i < 4; i++) top[i] = -INF, sum[i] = 0.0f, square[i] = 0.0f;
	for (int t = block_y() * tiles; t < (block_y() + 1) * tiles && t * TILE < b; t++) {
		int j0 = t * TILE;
		DISTANCES(dist, i0, j0)
#pragma unroll
		for (int i = 0; i < 4; i++) {
			int row = i0 + 4 * ty + i;
			float best = top[i];
#pragma unroll
			for (int j = 0; j < 4; j++) {
				int col = j0 + 4 * tx + j;
				if (col < b && col != row) best = max32(best, -dist[i][j] * scale);
			}
			if (best == -INF) continue;
			float s = top[i] == -INF ? 0.0f : sum[i] * exp32(top[i] - best);
#pragma unroll
			for (int j = 0; j < 4; j++) {
				int col = j0 + 4 * tx + j;
				if (col < b && col != row) s += exp32(-dist[i][j] * scale - best), square[i] = fma32(dist[i][j], dist[i][j], square[i]);
			}
			top[i] = best, sum[i] = s;
		}
	}
	// The 16 threads of a row, which are neighbours in a warp, join theirs.
#pragma unroll
	for (int i = 0; i < 4; i++) {
		float best = top[i];
		for (int m = 8; m > 0; m /= 2) best = max32(best, warp_xor(best, m));
		float s = top[i] == -INF ? 0.0f : sum[i] * exp32(top[i] - best), sq = square[i];
		for (int m = 8; m > 0; m /= 2) s += warp_xor(s, m), sq += warp_xor(sq, m);
		int row = i0 + 4 * ty + i;
		if (tx != 0 || row >= b) continue;
		i64 at = (i64)block_y() * 3 * b + row;
		ST(parts, at, best);
		ST(parts, at + b, s);
		ST(parts, at + 2 * b, sq);
	}
}

// pair_rows_end joins the chunks of each row: lse = ln Σ, and squares, which may be
// absent.
KERNEL gsrc_pair_rows_end(float *lse, float *squares, const float *parts, int b, int chunks) {
	for (int i = grid_first(); i < b; i += grid_step()) {
		float top = -INF, sum = 0.0f, square = 0.0f;
		for (int k = 0; k < chunks; k++) top = max32(top, LD(parts, (i64)k * 3 * b + i));
		for (int k = 0; k < chunks; k++) {
			float m = LD(parts, (i64)k * 3 * b + i);
			if (m != -INF) sum += LD(parts, (i64)k * 3 * b + b + i) * exp32(m - top);
			square += LD(parts, (i64)k * 3 * b + 2 * b + i);
		}
		if (lse) ST(lse, i, top == -INF ? top : top + log32(sum));
		if (squares) ST(squares, i, square);
	}
}

// pair_diagonal computes d_ii, a warp a row.
KERNEL gsrc_pair_diagonal(float *dst, const float *p, const float *q, int b, int f) {
	int lane = thread_x() % WARP;
	for (int i = grid_first() / WARP; i < b; i += grid_step() / WARP) {
		float sum = 0.0f;
		for (int c = lane; c < f; c += WARP) {
			float d = LD(p, (i64)i * f + c) - LD(q, (i64)i * f + c);
			sum = fma32(d, d, sum);
		}
		sum = warp_sum(sum);
		if (lane == 0) ST(dst, i, sum);
	}
}

// pair_grad computes of each row i of p, over the columns j of a chunk of tiles
// (block y) and for 128 elements of the rows (block z), with weights
//
//   g_ij = −(drow_i·exp(−d_ij/τ − row_i) + dcol_j·exp(−d_ij/τ − col_j))/τ + 2·d_ij·dsum,  g_ii = ddiag_i
//
// the sum 2 Σ_j g_ij (p_i − q_j); or with totals given, where drow is 1 and g_ij is
// exp(−d_ij/τ − row_i), the sum Σ_j g_ij q_j, and in totals [chunk, b] that of g_ij:
// of large logits row_i is too coarse for the weights to add to 1. Parts are
// [chunk, b, f]. What is absent counts as zero, and so does an empty logarithm, −Inf.
KERNEL gsrc_pair_grad(float *parts, float *totals, const float *p, const float *q, const float *row, const float *col, const float *drow, const float *dcol, const float *ddiag, const float *dsum, int b, int f, float scale, int tiles) {
	SHARED(float, ps, INNER * LINE);
	SHARED(float, qs, INNER * LINE);
	SHARED(float, gs, TILE * LINE); // by column
	SHARED(float, ws, INNER * WIDE);
	int tx = thread_x() % 16, ty = thread_x() / 16, i0 = block_x() * TILE, c0 = block_z() * WIDE, whole = f % 4 == 0 && aligned4(q);
	float dist[4][4], acc[4][8], total[4], squares = dsum ? 2.0f * LD(dsum, 0) : 0.0f;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		total[i] = 0.0f;
#pragma unroll
		for (int c = 0; c < 8; c++) acc[i][c] = 0.0f;
	}
	for (int t = block_y() * tiles; t < (block_y() + 1) * tiles && t * TILE < b; t++) {
		int j0 = t * TILE;
		DISTANCES(dist, i0, j0)
#pragma unroll
		for (int j = 0; j < 4; j++) {
			float4_t column = {dist[0][j], dist[1][j], dist[2][j], dist[3][j]};
			SH4(gs, (4 * tx + j) * LINE + 4 * ty) = column;
		}
		barrier();
#pragma unroll 1
		for (int e = thread_x(); e < TILE * TILE; e += 256) {
			int r = i0 + e % TILE, c = j0 + e / TILE, at = e / TILE * LINE + e % TILE;
			float g = 0.0f, d = SH(gs, at), logit = -d * scale;
			if (r < b && c < b && r != c) {
				if (row && (drow || totals)) {
					float lse = LD(row, r);
					if (lse != -INF) g = (totals ? 1.0f : -LD(drow, r) * scale) * exp32(logit - lse);
				}
				if (dcol) {
					float lse = LD(col, c);
					if (lse != -INF) g -= LD(dcol, c) * scale * exp32(logit - lse);
				}
				g = fma32(squares, d, g);
			} else if (r == c && r < b && ddiag) {
				g = LD(ddiag, r);
			}
			SH(gs, at) = g;
		}
		for (int l0 = 0; l0 < TILE; l0 += INNER) {
			barrier();
#pragma unroll
			for (int j = 0; j < 2; j++) {
				int i = 4 * (thread_x() + 256 * j), r = j0 + l0 + i / WIDE, c = c0 + i % WIDE;
				float4_t w = {0.0f, 0.0f, 0.0f, 0.0f};
				if (r < b && c < f) w = columns4(q, r, c / 4, f, whole);
				SH4(ws, i) = w;
			}
			barrier();
#pragma unroll 4
			for (int l = 0; l < INNER; l++) {
				float4_t u = SH4(gs, (l0 + l) * LINE + 4 * ty), v = SH4(ws, l * WIDE + 4 * tx), t = SH4(ws, l * WIDE + WIDE / 2 + 4 * tx);
				float g[4] = {u.x, u.y, u.z, u.w}, w[8] = {v.x, v.y, v.z, v.w, t.x, t.y, t.z, t.w};
#pragma unroll
				for (int i = 0; i < 4; i++) {
					total[i] += g[i];
#pragma unroll
					for (int c = 0; c < 8; c++) acc[i][c] = fma32(g[i], w[c], acc[i][c]);
				}
			}
		}
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
		int r = i0 + 4 * ty + i;
#pragma unroll
		for (int c = 0; c < 8; c++) {
			int k = c0 + c / 4 * (WIDE / 2) + 4 * tx + c % 4;
			if (r >= b || k >= f) continue;
			float v = acc[i][c];
			if (!totals) v = 2.0f * (total[i] * LD(p, (i64)r * f + k) - v);
			ST(parts, ((i64)block_y() * b + r) * f + k, v);
		}
		if (totals && tx == 0 && c0 == 0 && r < b) ST(totals, (i64)block_y() * b + r, total[i]);
	}
}

// pair_mean_end divides the sums of all chunks by the totals; p_i where b is 1.
KERNEL gsrc_pair_mean_end(float *dst, const float *parts, const float *totals, const float *p, int b, int f, int chunks) {
	for (int i = grid_first(); i < b * f; i += grid_step()) {
		int r = (int)((u32)i / (u32)f);
		float sum = 0.0f, total = 0.0f;
		for (int k = 0; k < chunks; k++) {
			sum += LD(parts, (i64)k * b * f + i);
			total += LD(totals, (i64)k * b + r);
		}
		ST(dst, i, b == 1 ? LD(p, i) : sum / total);
	}
}

// pair_mean_grad computes −(2/τ)·drow_i·(p_i − mean_i) + 2·ddiag_i·(p_i − q_i);
// ddiag may be absent, dst any operand.
KERNEL gsrc_pair_mean_grad(float *dst, const float *p, const float *q, const float *mean, const float *drow, const float *ddiag, int b, int f, float scale) {
	for (int i = grid_first(); i < b * f; i += grid_step()) {
		int r = (int)((u32)i / (u32)f);
		float x = LD(p, i), v = -2.0f * scale * LD(drow, r) * (x - LD(mean, i));
		if (ddiag) v = fma32(2.0f * LD(ddiag, r), x - LD(q, i), v);
		ST(dst, i, v);
	}
}
