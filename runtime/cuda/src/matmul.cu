// Products of dense matrices, for where cuBLAS is not found: tiles of 64 by 64 in
// shared memory, 16 of the inner dimension at a time, twofold so that the next ones
// are on their way while these are multiplied; 4 by 4 results a thread. Where the result
// has few tiles and the inner dimension is long, it is divided among blocks.

#include "gsrc.h"

#define TILE 64
#define INNER 16
#define LINE (TILE + 4)

// Four elements of a 64 by 16 tile of op(x): row r0 + r, inner k0 + k. x has inner
// rows of its own where across is set. ld is its number of columns.
FN void fetch(float *out, const float *x, int r0, int rows, int k0, int inner, int across, int ld) {
#pragma unroll
	for (int j = 0; j < 4; j++) {
		int i = thread_x() + 256 * j;
		int r = r0 + (across ? i % TILE : i / INNER), k = k0 + (across ? i / TILE : i % INNER);
		out[j] = r < rows && k < inner ? (across ? LD(x, (i64)k * ld + r) : LD(x, (i64)r * ld + k)) : 0.0f;
	}
}

#define KEEP(tile, at, in, across) \
	_Pragma("unroll") for (int j = 0; j < 4; j++) { \
		int i = thread_x() + 256 * j; \
		SH(tile, (at) + (across ? i / TILE * LINE + i % TILE : i % INNER * LINE + i / INNER)) = in[j]; \
	}

// matmul computes c [m,n] (+)= op(a) [m,k] · op(b) [k,n], rows of the result by
// blocks in x. Stored are a as [k,m] with ta, b as [n,k] with tb. Block z takes per of
// the inner dimension, from z·per on, and writes the z-th of so many matrices at c.
KERNEL gsrc_matmul(float *c, const float *a, const float *b, int m, int n, int k, int ta, int tb, int add, int per) {
	SHARED(float, as, 2 * INNER * LINE);
	SHARED(float, bs, 2 * INNER * LINE);
	int tx = thread_x() % 16, ty = thread_x() / 16, r0 = block_x() * TILE, c0 = block_y() * TILE;
	int lda = ta ? m : k, ldb = tb ? k : n, across_b = !tb, first = block_z() * per;
	float acc[4][4], ra[4], rb[4];
#pragma unroll
	for (int i = 0; i < 4; i++) {
#pragma unroll
		for (int j = 0; j < 4; j++) acc[i][j] = 0.0f;
	}
	k = min_int(k, first + per);
	fetch(ra, a, r0, m, first, k, ta, lda);
	fetch(rb, b, c0, n, first, k, across_b, ldb);
	KEEP(as, 0, ra, ta)
	KEEP(bs, 0, rb, across_b)
	barrier();
	for (int k0 = first, now = 0; k0 < k; k0 += INNER, now = INNER * LINE - now) {
		if (k0 + INNER < k) {
			fetch(ra, a, r0, m, k0 + INNER, k, ta, lda);
			fetch(rb, b, c0, n, k0 + INNER, k, across_b, ldb);
		}
#pragma unroll
		for (int l = 0; l < INNER; l++) {
			float4_t u = SH4(as, now + l * LINE + 4 * ty), v = SH4(bs, now + l * LINE + 4 * tx);
			float x[4] = {u.x, u.y, u.z, u.w}, y[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
			for (int i = 0; i < 4; i++) {
#pragma unroll
				for (int j = 0; j < 4; j++) acc[i][j] = fma32(x[i], y[j], acc[i][j]);
			}
		}
		if (k0 + INNER < k) {
			int next = INNER * LINE - now;
			KEEP(as, next, ra, ta)
			KEEP(bs, next, rb, across_b)
		}
		barrier();
	}
#pragma unroll
	for (int i = 0; i < 4; i++) {
#pragma unroll
		for (int j = 0; j < 4; j++) {
			int row = r0 + 4 * ty + i, col = c0 + 4 * tx + j;
			if (row >= m || col >= n) continue;
			i64 at = ((i64)block_z() * m + row) * n + col;
			ST(c, at, add ? LD(c, at) + acc[i][j] : acc[i][j]);
		}
	}
}

// matmul_sum adds up the matrices of n elements that the blocks of a product left:
// c (+)= their sum, always in their order.
KERNEL gsrc_matmul_sum(float *c, const float *parts, int n, int count, int add) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		float v = LD(parts, i);
		for (int z = 1; z < count; z++) v += LD(parts, (i64)z * n + i);
		ST(c, i, add ? LD(c, i) + v : v);
	}
}

// transpose writes the transpose of x [rows, cols].
KERNEL gsrc_transpose(float *dst, const float *x, int rows, int cols) {
	SHARED(float, tile, 32 * 33);
	int tx = thread_x() % 32, ty = thread_x() / 32, r0 = block_x() * 32, c0 = block_y() * 32;
	for (int i = ty; i < 32; i += 8) {
		if (r0 + i < rows && c0 + tx < cols) SH(tile, i * 33 + tx) = LD(x, (i64)(r0 + i) * cols + c0 + tx);
	}
	barrier();
	for (int i = ty; i < 32; i += 8) {
		if (c0 + i < cols && r0 + tx < rows) ST(dst, (i64)(c0 + i) * rows + r0 + tx, SH(tile, tx * 33 + i));
	}
}
