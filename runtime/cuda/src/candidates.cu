// Candidate edges from nearest neighbours, and the graph that they make, as package
// graph builds them: see graph.Candidates and graph.Structure. A pair of nodes u < v
// stands in one word, u·2³² + 2v, and one more where the edge exists.

#include "gsrc.h"

// Where a pair comes from.
enum { FROM_LOWER = 1, FROM_UPPER = 2, FROM_GRAPH = 4 };

FN int lower_end(i64 edge) { return (int)(edge >> 32); }
FN int upper_end(i64 edge) { return (int)((u32)edge >> 1); }

// candidate_pairs lists the existing edges, known, and behind them the pairs of each of
// n nodes with its k neighbours; a neighbour of -1 becomes a pair behind all others.
KERNEL gsrc_candidate_pairs(int *lower, int *upper, int *from, const i64 *known, const int *near, int edges, int n, int k) {
	for (int i = grid_first(); i < edges + n * k; i += grid_step()) {
		int u, v, of = FROM_GRAPH;
		if (i < edges) {
			u = lower_end(LD(known, i)), v = upper_end(LD(known, i));
		} else {
			u = (i - edges) / k, v = LD(near, i - edges), of = u < v ? FROM_LOWER : FROM_UPPER;
			if (v < 0) v = n, u = n;
			else if (of == FROM_UPPER) v = u, u = LD(near, i - edges);
		}
		ST(lower, i, u);
		ST(upper, i, v);
		ST(from, i, of);
	}
}

// candidate_keys brings keys into an order.
KERNEL gsrc_candidate_keys(int *dst, const int *key, const int *order, int n) {
	for (int i = grid_first(); i < n; i += grid_step()) ST(dst, i, LD(key, LD(order, i)));
}

// Where the pair at place i of the order comes from, if it is the first such pair of
// nodes; 0 if it is not.
FN int origins(const int *lower, const int *upper, const int *from, const int *order, int i, int n) {
	int e = LD(order, i), u = LD(lower, e), v = LD(upper, e), all = LD(from, e);
	if (i > 0) {
		int before = LD(order, i - 1);
		if (LD(lower, before) == u && LD(upper, before) == v) return 0;
	}
	for (i++; i < n; i++) {
		e = LD(order, i);
		if (LD(lower, e) != u || LD(upper, e) != v) break;
		all |= LD(from, e);
	}
	return all;
}

// candidate_keep marks the pairs that become candidates: those of the graph, and those
// that one end chose, or with mutual both.
KERNEL gsrc_candidate_keep(int *keep, const int *lower, const int *upper, const int *from, const int *order, int n, int nodes, int mutual) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		int of = LD(lower, LD(order, i)) < nodes ? origins(lower, upper, from, order, i, n) : 0, ends = of & (FROM_LOWER | FROM_UPPER);
		ST(keep, i, (of & FROM_GRAPH) != 0 || (mutual ? ends == (FROM_LOWER | FROM_UPPER) : ends != 0));
	}
}

// candidate_edges puts the candidates at their places.
KERNEL gsrc_candidate_edges(i64 *edges, const int *lower, const int *upper, const int *from, const int *order, const int *keep, const int *place, int n) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		if (!LD(keep, i)) continue;
		int e = LD(order, i), exists = (origins(lower, upper, from, order, i, n) & FROM_GRAPH) != 0;
		ST(edges, LD(place, i), (i64)LD(lower, e) << 32 | (i64)LD(upper, e) << 1 | exists);
	}
}

// candidate_targets lists the targets of both entries of each edge: first of those from
// lower to upper ends, then of the others. In this order every row's sources ascend.
KERNEL gsrc_candidate_targets(int *target, const i64 *edges, int n) {
	for (int i = grid_first(); i < 2 * n; i += grid_step()) ST(target, i, i < n ? upper_end(LD(edges, i)) : lower_end(LD(edges, i - n)));
}

// candidate_inverse finds the place of each entry in the order of targets.
KERNEL gsrc_candidate_inverse(int *place, const int *order, int n) {
	for (int i = grid_first(); i < n; i += grid_step()) ST(place, LD(order, i), i);
}

// candidate_graph makes the structure: rows begin where the sorted targets do; the
// transpose has an entry's opposite at its place. old says of each entry whether its edge
// exists, and entry of each edge which is one of its entries.
KERNEL gsrc_candidate_graph(int *row_ptr, int *col, int *perm, float *old, i64 *entry, const i64 *edges, const int *row, const int *order, const int *place, int n, int nodes) {
	for (int i = grid_first(); i <= nodes; i += grid_step()) {
		int lo = 0, hi = 2 * n;
		while (lo < hi) {
			int mid = lo + (hi - lo) / 2;
			if (LD(row, mid) < i) lo = mid + 1;
			else hi = mid;
		}
		ST(row_ptr, i, lo);
	}
	for (int p = grid_first(); p < 2 * n; p += grid_step()) {
		int at = LD(order, p), first = at < n;
		i64 edge = LD(edges, first ? at : at - n);
		ST(col, p, first ? lower_end(edge) : upper_end(edge));
		ST(perm, p, LD(place, first ? at + n : at - n));
		ST(old, p, (edge & 1) ? 1.0f : 0.0f);
		if (first) ST(entry, at, p);
	}
}
