// Blocks, as package graph builds them (graph.Block), by many threads: the
// entries into some targets; their sources, which are the targets and then the other
// nodes in the order in which entries lead to them; the transpose. How much there is
// of anything the device counts itself, so that a launch needs no look at the host.

#include "gsrc.h"

// The counts of a block: see runtime.BlockCounts.
enum { TARGETS, EXACT, ENTRIES, NEW, SOURCES, ALL_SOURCES, ALL_ENTRIES, NEEDED, WRONG };

#define NOWHERE 0x7fffffff

// The next of so many sizes in each octave, multiples of least: runtime's roundUp.
FN int round_up(int n, int steps, int least) {
	if (n == 0) return 0;
	i64 octave = 1;
	while (octave < n) octave *= 2;
	i64 unit = octave / (2 * steps);
	if (unit < least) unit = least;
	return (int)((n + unit - 1) / unit * unit);
}

// block_begin takes the targets' number from the block whose sources they are, and
// forgets where nodes have been met.
KERNEL gsrc_block_begin(int *counts, int *met, const int *from, int targets, int nodes) {
	for (int v = grid_first(); v < nodes; v += grid_step()) ST(met, v, NOWHERE);
	if (grid_first() != 0) return;
	int lost = from && LD(from, NEEDED) > 0; // its entries had no room
	ST(counts, TARGETS, lost ? 0 : from ? LD(from, ALL_SOURCES) : targets);
	ST(counts, EXACT, lost ? 0 : from ? LD(from, SOURCES) : targets);
	ST(counts, NEEDED, 0);
	ST(counts, WRONG, NOWHERE);
}

// block_targets counts the entries into each target, and notes the first place of each.
KERNEL gsrc_block_targets(int *counts, int *met, int *entries, const i64 *targets, const int *row_ptr, int nodes) {
	int n = LD(counts, TARGETS), exact = LD(counts, EXACT);
	for (int i = grid_first(); i < n; i += grid_step()) {
		i64 v = LD(targets, i);
		int good = v >= 0 && v < nodes;
		if (good) LOWER(met, v, i);
		else LOWER(counts, WRONG, i);
		ST(entries, i, good && i < exact ? LD(row_ptr, v + 1) - LD(row_ptr, v) : 0);
	}
}

// block_admit sees whether there is room for the entries that were counted.
KERNEL gsrc_block_admit(int *counts, int room, int pads) {
	if (grid_first() != 0) return;
	int n = LD(counts, ENTRIES), all = n < 0 ? NOWHERE : pads ? round_up(n, 2, 256) : n; // below 0 it went beyond 2³¹
	int fits = all <= room && LD(counts, WRONG) == NOWHERE;
	if (all > room) ST(counts, NEEDED, all);
	if (!fits) {
		ST(counts, TARGETS, 0);
		ST(counts, ENTRIES, 0);
	}
	ST(counts, ALL_ENTRIES, fits ? all : 0);
}

// block_entries finds the row of each entry, its number in the whole graph and the
// node that it comes from, and notes the first entry from each node.
KERNEL gsrc_block_entries(const int *counts, int *met, int *row, i64 *number, int *node, const i64 *targets, const int *starts, const int *row_ptr, const int *col) {
	int n = LD(counts, TARGETS), entries = LD(counts, ENTRIES);
	for (int p = grid_first(); p < entries; p += grid_step()) {
		int lo = 0, hi = n - 1; // the last row that starts at or before p
		while (lo < hi) {
			int mid = (lo + hi + 1) / 2;
			if (LD(starts, mid) <= p) lo = mid;
			else hi = mid - 1;
		}
		int e = LD(row_ptr, LD(targets, lo)) + (p - LD(starts, lo)), v = LD(col, e);
		ST(row, p, lo);
		ST(number, p, e);
		ST(node, p, v);
		LOWER(met, v, n + p);
	}
}

// block_new marks the entries that are the first to lead to a node.
KERNEL gsrc_block_new(const int *counts, int *first, const int *met, const int *node) {
	int n = LD(counts, TARGETS), entries = LD(counts, ENTRIES);
	for (int p = grid_first(); p < entries; p += grid_step()) ST(first, p, LD(met, LD(node, p)) == n + p);
}

// block_place gives every source its place, and every entry its column. before holds
// how many nodes the entries before one have led to.
KERNEL gsrc_block_place(int *counts, i64 *sources, int *col, const i64 *targets, const int *met, const int *node, const int *before, int pads) {
	int n = LD(counts, TARGETS), entries = LD(counts, ENTRIES);
	for (int i = grid_first(); i < n; i += grid_step()) ST(sources, i, LD(targets, i));
	for (int p = grid_first(); p < entries; p += grid_step()) {
		int v = LD(node, p), at = LD(met, v);
		ST(col, p, at < n ? at : n + LD(before, at - n));
		if (at == n + p) ST(sources, n + LD(before, p), v);
	}
	if (grid_first() != 0) return;
	int all = n + LD(counts, NEW);
	ST(counts, SOURCES, all);
	ST(counts, ALL_SOURCES, pads ? round_up(all, 8, 64) : all);
}

// block_end completes the transpose, whose rows and entries are sorted, and appends
// what padding appends: see graph.Block.Pad.
KERNEL gsrc_block_end(const int *counts, i64 *sources, i64 *number, int *row, int *col, int *out_ptr, int *out_row, int *out_col, int *perm) {
	int entries = LD(counts, ENTRIES), all = LD(counts, ALL_ENTRIES), n = LD(counts, SOURCES), rows = LD(counts, ALL_SOURCES);
	for (int i = grid_first(); i <= rows; i += grid_step()) {
		int lo = 0, hi = i < n ? entries : 0; // the first entry of row i or behind it
		while (lo < hi) {
			int mid = lo + (hi - lo) / 2;
			if (LD(out_row, mid) < i) lo = mid + 1;
			else hi = mid;
		}
		ST(out_ptr, i, i < n ? lo : entries);
		if (i >= n && i < rows) ST(sources, i, LD(sources, (i - n) % n));
	}
	for (int p = grid_first(); p < all; p += grid_step()) {
		int true_one = p < entries;
		ST(out_col, p, true_one ? LD(row, LD(perm, p)) : 0);
		if (true_one) continue;
		ST(number, p, LD(number, 0));
		ST(row, p, 0);
		ST(col, p, 0);
		ST(out_row, p, 0);
		ST(perm, p, p);
	}
}
