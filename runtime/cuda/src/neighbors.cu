// The nearest neighbours of rows by cosine: see graph.KNN. Rows are brought to length 1;
// their products come as tiles, from left to right, from a product of matrices; and of
// each tile the largest products of each row go to the row's list. The products of all
// rows with all are never there at a time.

#include "gsrc.h"

// Sums over a warp in float64: the halves of the bits are exchanged as they are.
FN double warp_sum64(double v) {
	for (int m = WARP / 2; m > 0; m /= 2) {
		u64 b = double_bits(v);
		u32 low = float_bits(warp_xor(bits_float((u32)b), m)), high = float_bits(warp_xor(bits_float((u32)(b >> 32)), m));
		v += bits_double((u64)high << 32 | low);
	}
	return v;
}

// v of another lane of the warp, which may be another one for each.
FN float lane_float(float v, int lane) { return warp_xor(v, (thread_x() % WARP) ^ lane); }
FN int lane_int(int v, int lane) { return (int)float_bits(lane_float(bits_float((u32)v), lane)); }

// directions divides each row of x [n, f] by its length, a warp a row. A row without a
// direction becomes NaN, which no comparison finds near; rows from n on become 0.
KERNEL gsrc_directions(float *z, const float *x, int n, int rows, int f) {
	int lane = thread_x() % WARP;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		i64 at = (i64)r * f;
		double sum = 0.0;
		for (int c = lane; r < n && c < f; c += WARP) {
			double v = (double)LD(x, at + c);
			sum += v * v;
		}
		sum = warp_sum64(sum);
		double scale = sum > 0.0 && sum < (double)INF ? 1.0 / root64(sum) : (double)NOT_A_NUMBER;
		for (int c = lane; c < f; c += WARP) ST(z, at + c, r < n ? (float)((double)LD(x, at + c) * scale) : 0.0f);
	}
}

// Products of a lane that are looked at together.
#define AHEAD 8

// nearest goes through a tile: products [rows, width] of rows r0 on with rows c0 on, of
// which cols are there, a warp a row. A row's list are the places from to from + 31 of
// those that idx and sim [n, k] have for it, the largest first and of equal products the
// lower row; lane q has the q-th. The first tile, of c0 = 0, begins the list. A list that
// is not a row's first goes on behind the last place of the one before.
KERNEL gsrc_nearest(int *idx, float *sim, const float *products, int r0, int rows, int c0, int cols, int width, int k, int from) {
	int lane = thread_x() % WARP, length = min_int(k - from, WARP);
	for (int i = grid_first() / WARP; i < rows; i += grid_step() / WARP) {
		i64 at = (i64)(r0 + i) * k + from, row = (i64)i * width;
		int self = r0 + i - c0, number = -1, after = -1;
		float near = -INF, bound = INF;
		if (lane < length && c0 > 0) near = LD(sim, at + lane), number = LD(idx, at + lane);
		if (from > 0) bound = LD(sim, at - 1), after = LD(idx, at - 1) - c0;
		float worst = lane_float(near, length - 1);
		for (int c = lane; c - lane < cols; c += AHEAD * WARP) {
			float x[AHEAD];
			int any = 0;
#pragma unroll
			for (int u = 0; u < AHEAD; u++) {
				int j = c + u * WARP;
				x[u] = j < cols ? LD(products, row + j) : -INF;
				// Not so of NaN. Columns come in order, so that an equal one belongs behind.
				int good = x[u] > worst && j != self && (x[u] < bound || (x[u] == bound && j > after));
				if (!good) x[u] = -INF;
				any |= good;
			}
			if (!warp_ballot(any)) continue;
#pragma unroll
			for (int u = 0; u < AHEAD; u++) {
				for (u32 hits; (hits = warp_ballot(x[u] > worst)) != 0;) {
					int first = __builtin_ctz(hits);
					float s = lane_float(x[u], first), before = lane_float(near, max_int(lane - 1, 0));
					int other = lane_int(number, max_int(lane - 1, 0));
					if (near < s) {
						int here = lane == 0 || before >= s;
						near = here ? s : before;
						number = here ? c0 + c - lane + u * WARP + first : other;
					}
					if (lane == first) x[u] = -INF;
					worst = lane_float(near, length - 1);
				}
			}
		}
		if (lane < length) {
			ST(sim, at + lane, near);
			ST(idx, at + lane, number);
		}
	}
}

// nearest_end ends the lists of n rows: of the k places of each, found have one. Rounding
// may have made a cosine larger than 1.
KERNEL gsrc_nearest_end(int *idx, float *sim, int n, int k, int found) {
	for (i64 i = grid_first(); i < (i64)n * k; i += grid_step()) {
		int none = (int)(i % k) >= found || LD(idx, i) < 0;
		float s = none ? 0.0f : LD(sim, i);
		ST(sim, i, s > 1.0f ? 1.0f : s < -1.0f ? -1.0f : s);
		if (none) ST(idx, i, -1);
	}
}
