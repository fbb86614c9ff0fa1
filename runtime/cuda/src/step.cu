// What follows a training step's program, beside the optimizer: whether all gradients
// are finite, what the host gets to see, running statistics. A launch works on many
// tensors, which a table in the device's memory lists; a block has the elements of one
// chunk.

#include "gsrc.h"

enum { CHUNK = 1024 };

// The tensor of a chunk, by the chunk that each begins with.
FN int tensor_of(const u64 *table, int count, int words, int first, int chunk) {
	int lo = 0, hi = count - 1;
	while (lo < hi) {
		int mid = (lo + hi + 1) / 2;
		if ((i64)LD(table, mid * words + first) <= chunk) lo = mid;
		else hi = mid - 1;
	}
	return lo;
}

// The rows of the tables of what a step reports: address, first chunk, elements.
enum { AT, CHUNK_FIRST, ELEMENTS, REPORT_WORDS };

// report copies the first elements of count tensors to dst, and sets as many flags
// behind them as finite is going to set.
KERNEL gsrc_report(float *dst, const u64 *table, int count, int flags) {
	for (int i = grid_first(); i < count + flags; i += grid_step()) {
		float v = 0.0f;
		if (i < count) v = LD((const float *)LD(table, i * REPORT_WORDS + AT), 0);
		ST(dst, i, v);
	}
}

// finite sets the flag of each tensor that has a NaN or an infinity to 1.
KERNEL gsrc_finite(float *flags, const u64 *table, int count) {
	int t = tensor_of(table, count, REPORT_WORDS, CHUNK_FIRST, block_x());
	const u64 *row = table + t * REPORT_WORDS;
	const float *x = (const float *)LD(row, AT);
	int n = (int)LD(row, ELEMENTS), from = (block_x() - (int)LD(row, CHUNK_FIRST)) * CHUNK;
	for (int i = from + thread_x(); i < min_int(n, from + CHUNK); i += width_x())
		if (!(abs32(LD(x, i)) < INF)) ST(flags, t, 1.0f);
}

// follow moves dst towards src by a share of the difference.
KERNEL gsrc_follow(float *dst, const float *src, int n, float share) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		float x = LD(dst, i);
		ST(dst, i, x + share * (LD(src, i) - x));
	}
}
