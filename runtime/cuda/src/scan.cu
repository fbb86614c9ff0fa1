// Prefix sums and stable sorting of ints, whose number a device may have counted
// itself: what graphs are built from. Where count is given it holds the number, and
// n only says how much there is room for.

#include "gsrc.h"

// Elements of a block, and of a thread.
enum { SCAN_BLOCK = 2048, SCAN_EACH = SCAN_BLOCK / 256 };

FN int counted(const int *count, int n) { return count ? min_int(LD(count, 0), n) : n; }

// The sum of v over the threads of the block before this one; *all is that of the
// whole block. Every thread of a block of 256 must arrive.
FN int block_before(int *shared, u64 shared_count, int v, int *all) {
	int t = thread_x(), sum = v;
	for (int m = 1; m < 256; m *= 2) {
		barrier();
		SH(shared, t) = sum;
		barrier();
		if (t >= m) sum += SH(shared, t - m);
	}
	barrier();
	SH(shared, t) = sum;
	barrier();
	*all = SH(shared, 255);
	return sum - v;
}

// scan_sums adds up the elements of each block.
KERNEL gsrc_scan_sums(int *sums, const int *x, const int *count, int n) {
	SHARED(int, shared, 256);
	int have = counted(count, n), from = block_x() * SCAN_BLOCK + thread_x(), sum = 0, all;
	for (int k = 0; k < SCAN_EACH; k++)
		if (from + k * 256 < have) sum += LD(x, from + k * 256);
	block_before(shared, 256, sum, &all);
	if (thread_x() == 0) ST(sums, block_x(), all);
}

// scan_all makes y[i] the sum of the elements before x[i], and *total that of all, by
// one block. y may be x. With end set, y[n] is the total as well.
KERNEL gsrc_scan_all(int *y, int *total, const int *x, const int *count, int n, int end) {
	SHARED(int, shared, 256);
	int have = counted(count, n), before = 0, all;
	for (int base = 0; base < have; base += SCAN_BLOCK) {
		int from = base + thread_x() * SCAN_EACH, v[SCAN_EACH], sum = 0;
		for (int k = 0; k < SCAN_EACH; k++) v[k] = from + k < have ? LD(x, from + k) : 0;
		for (int k = 0; k < SCAN_EACH; k++) sum += v[k];
		int at = before + block_before(shared, 256, sum, &all);
		for (int k = 0; k < SCAN_EACH; k++) {
			if (from + k < have) ST(y, from + k, at);
			at += v[k];
		}
		before += all;
	}
	if (thread_x() != 0) return;
	if (total) ST(total, 0, before);
	if (end) ST(y, have, before);
}

// scan_rest is scan_all by many blocks, which the sums before each have been found for.
KERNEL gsrc_scan_rest(int *y, const int *x, const int *sums, const int *total, const int *count, int n, int end) {
	SHARED(int, shared, 256);
	int have = counted(count, n), from = block_x() * SCAN_BLOCK + thread_x() * SCAN_EACH, v[SCAN_EACH], sum = 0, all;
	for (int k = 0; k < SCAN_EACH; k++) v[k] = from + k < have ? LD(x, from + k) : 0;
	for (int k = 0; k < SCAN_EACH; k++) sum += v[k];
	int at = LD(sums, block_x()) + block_before(shared, 256, sum, &all);
	for (int k = 0; k < SCAN_EACH; k++) {
		if (from + k < have) ST(y, from + k, at);
		at += v[k];
	}
	if (end && grid_first() == 0) ST(y, have, LD(total, 0));
}

// A sort goes by eight bits of the keys at a time, from the lowest on. A block has
// SCAN_BLOCK elements, and of these each warp a run of 256.
#define DIGITS 256

// The lanes of the warp that have the same digit, of at most nine bits.
FN u32 same_digit(int digit) {
	u32 same = 0xffffffffu;
	for (int bit = 0; bit < 9; bit++) {
		int mine = digit >> bit & 1;
		u32 set = warp_ballot(mine);
		same &= mine ? set : ~set;
	}
	return same;
}

FN u32 lanes_below(void) { return (1u << (thread_x() % WARP)) - 1u; }

// The digit of an element of the thread's warp; DIGITS where there is none.
FN int digit_of(const int *key, int have, int at, int shift) { return at < have ? LD(key, at) >> shift & (DIGITS - 1) : DIGITS; }

// sort_count counts each block's digits, into counts [DIGITS, blocks].
KERNEL gsrc_sort_count(int *counts, const int *key, const int *count, int n, int shift) {
	SHARED(int, hist, 8 * DIGITS);
	int have = counted(count, n), warp = thread_x() / WARP;
	for (int w = 0; w < 8; w++) SH(hist, w * DIGITS + thread_x()) = 0;
	barrier();
	int at = block_x() * SCAN_BLOCK + warp * 256 + thread_x() % WARP;
	for (int k = 0; k < 8; k++, at += WARP) {
		int d = digit_of(key, have, at, shift);
		u32 same = same_digit(d);
		if (d < DIGITS && !(same & lanes_below())) SH(hist, warp * DIGITS + d) += ones(same);
		warp_barrier();
	}
	barrier();
	int sum = 0;
	for (int w = 0; w < 8; w++) sum += SH(hist, w * DIGITS + thread_x());
	ST(counts, (i64)thread_x() * blocks_x() + block_x(), sum);
}

// sort_move puts every element where the sums before its block's digits, and the
// elements of its block before it, say. value 0 means that an element's value is its
// place.
KERNEL gsrc_sort_move(int *key_to, int *value_to, const int *key, const int *value, const int *before, const int *count, int n, int shift) {
	SHARED(int, hist, 8 * DIGITS);
	int have = counted(count, n), warp = thread_x() / WARP;
	for (int w = 0; w < 8; w++) SH(hist, w * DIGITS + thread_x()) = 0;
	barrier();
	int first = block_x() * SCAN_BLOCK + warp * 256 + thread_x() % WARP;
	for (int k = 0; k < 8; k++) {
		int d = digit_of(key, have, first + k * WARP, shift);
		u32 same = same_digit(d);
		if (d < DIGITS && !(same & lanes_below())) SH(hist, warp * DIGITS + d) += ones(same);
		warp_barrier();
	}
	barrier();
	// From here on hist holds where the next of a warp's digit goes.
	int to = LD(before, (i64)thread_x() * blocks_x() + block_x());
	for (int w = 0; w < 8; w++) {
		int some = SH(hist, w * DIGITS + thread_x());
		SH(hist, w * DIGITS + thread_x()) = to;
		to += some;
	}
	barrier();
	for (int k = 0; k < 8; k++) {
		int at = first + k * WARP, d = digit_of(key, have, at, shift), place = 0;
		u32 same = same_digit(d);
		if (d < DIGITS) place = SH(hist, warp * DIGITS + d) + ones(same & lanes_below());
		warp_barrier();
		if (d < DIGITS && !(same & lanes_below())) SH(hist, warp * DIGITS + d) += ones(same);
		warp_barrier();
		if (d < DIGITS) {
			ST(key_to, place, LD(key, at));
			ST(value_to, place, value ? LD(value, at) : at);
		}
	}
}
