// Operations on the entries of a graph or of a sparse matrix, in CSR form: see
// runtime.ResidentCSR. Rows add their entries in their order.

#include "math.h"

FN float activate(float v, int act) { return act == 1 ? (v < 0.0f ? 0.0f : v) : act == 2 ? (v < 0.0f ? expm1_32(v) : v) : v; }

// What a row of spmm needs, the same for all rows.
typedef struct {
	float *dst;
	const int *col, *perm;
	const float *vals, *diag, *h, *add, *bias;
	int diag_rows, f, heads, act, whole;
} product;

// Adds every step-th of the entries first to last − 1 to columns 4q to 4q+3. Entries are
// read some at a time, since what takes longest is to wait for them, and added in their order.
#define ENTRIES 4
FN float4_t add_entries(product p, float4_t sum, int first, int last, int step, int q, int width) {
	int one = p.heads == 1 || !p.vals;
	int h0 = one ? 0 : 4 * q / width, h1 = one ? 0 : min_int((4 * q + 1) / width, p.heads - 1);
	int h2 = one ? 0 : min_int((4 * q + 2) / width, p.heads - 1), h3 = one ? 0 : min_int((4 * q + 3) / width, p.heads - 1);
	for (int e0 = first; e0 < last; e0 += ENTRIES * step) {
		float4_t v[ENTRIES], x[ENTRIES];
		int c[ENTRIES], at[ENTRIES];
#pragma unroll
		for (int k = 0; k < ENTRIES; k++) {
			int e = min_int(e0 + k * step, last - 1);
			c[k] = LD(p.col, e);
			at[k] = (p.perm ? LD(p.perm, e) : e) * (one ? 1 : p.heads);
		}
#pragma unroll
		for (int k = 0; k < ENTRIES; k++) {
			x[k] = columns4(p.h, c[k], q, p.f, p.whole);
			v[k].x = p.vals ? LD(p.vals, at[k] + h0) : 1.0f;
			if (one) {
				v[k].y = v[k].z = v[k].w = v[k].x;
			} else {
				v[k].y = LD(p.vals, at[k] + h1), v[k].z = LD(p.vals, at[k] + h2), v[k].w = LD(p.vals, at[k] + h3);
			}
		}
#pragma unroll
		for (int k = 0; k < ENTRIES; k++) {
			int there = e0 + k * step < last;
			sum.x = there ? fma32(v[k].x, x[k].x, sum.x) : sum.x;
			sum.y = there ? fma32(v[k].y, x[k].y, sum.y) : sum.y;
			sum.z = there ? fma32(v[k].z, x[k].z, sum.z) : sum.z;
			sum.w = there ? fma32(v[k].w, x[k].w, sum.w) : sum.w;
		}
	}
	return sum;
}

// What a row begins with: the addend and the row's own term.
FN float4_t begin_row(product p, int row, int q, int width) {
	float4_t sum = {0.0f, 0.0f, 0.0f, 0.0f};
	if (p.add) sum = columns4(p.add, row, q, p.f, p.whole);
	if (p.diag && row < p.diag_rows) {
		float4_t x = columns4(p.h, row, q, p.f, p.whole);
		i64 at = (i64)row * p.heads;
		sum.x = fma32(LD(p.diag, at + 4 * q / width), x.x, sum.x);
		sum.y = fma32(LD(p.diag, at + min_int((4 * q + 1) / width, p.heads - 1)), x.y, sum.y);
		sum.z = fma32(LD(p.diag, at + min_int((4 * q + 2) / width, p.heads - 1)), x.z, sum.z);
		sum.w = fma32(LD(p.diag, at + min_int((4 * q + 3) / width, p.heads - 1)), x.w, sum.w);
	}
	return sum;
}

FN void end_row(product p, float4_t sum, int row, int q) {
	if (p.bias) {
		float4_t x = columns4(p.bias, 0, q, p.f, p.whole);
		sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
	}
	if (p.act) sum.x = activate(sum.x, p.act), sum.y = activate(sum.y, p.act), sum.z = activate(sum.z, p.act), sum.w = activate(sum.w, p.act);
	int at = row * p.f + 4 * q;
	if (p.whole) {
		ST((float4_t *)(p.dst + at), 0, sum);
		return;
	}
	ST(p.dst, at, sum.x);
	if (4 * q + 1 < p.f) ST(p.dst, at + 1, sum.y);
	if (4 * q + 2 < p.f) ST(p.dst, at + 2, sum.z);
	if (4 * q + 3 < p.f) ST(p.dst, at + 3, sum.w);
}

// spmm computes dst_i = act(add_i + diag_i·h_i + Σ_e vals_e·h[col_e] + bias) for
// the entries e of row i, with the value k·heads/f of an entry for column k. add,
// diag (of diag_rows rows), vals (ones) and bias may be absent; act is 0, or 1 for
// relu, 2 for elu. group·split threads, powers of two and at most a warp, share a row:
// group threads its columns, and each split-th of them its entries. Those of a hub, which
// has more than most entries and would be waited for, are shared by the whole block: each
// team adds a part of the entries, and the parts are added in their order.
#undef BLOCKS
#define BLOCKS 3
KERNEL gsrc_spmm(float *dst, const int *row_ptr, const int *col, const int *perm, const float *vals, const float *diag, const float *h, const float *add, const float *bias,
	int rows, int diag_rows, int f, int heads, int act, int group, int split, int most) {
	SHARED(float, parts, 4 * 256);
	SHARED(int, long_row, 256);
	SHARED(int, any, 1);
	int whole = f % 4 == 0 && aligned4(h) && aligned4(dst) && aligned4(add) && aligned4(bias), width = f / heads;
	product p = {dst, col, perm, vals, diag, h, add, bias, diag_rows, f, heads, act, whole};
	int size = group * split, lane = thread_x() % group, part = thread_x() % size / group, team = thread_x() / size, teams = width_x() / size;
	for (int base = block_x() * teams; base < rows; base += blocks_x() * teams) {
		int row = base + team, first = 0, last = 0;
		if (row < rows) first = LD(row_ptr, row), last = LD(row_ptr, row + 1);
		int hub = last - first > most;
		barrier();
		if (thread_x() == 0) SH(any, 0) = 0;
		if (lane == 0 && part == 0) SH(long_row, team) = hub;
		barrier();
		if (hub) SH(any, 0) = 1;
		barrier();
		// First each group's own row, then the block's hubs.
		for (int t = -1; t < teams; t++) {
			int shared = t >= 0, r = row, start = first, stop = hub ? first : last, mine = row < rows && !hub && part == 0;
			if (shared) {
				if (!SH(any, 0)) break;
				if (!SH(long_row, t)) continue;
				r = base + t;
				int from = LD(row_ptr, r), to = LD(row_ptr, r + 1), per = (to - from + teams - 1) / teams;
				start = min_int(from + team * per, to), stop = min_int(start + per, to), mine = team == 0 && part == 0;
			}
			for (int q0 = 0; 4 * q0 < f; q0 += group) {
				int q = q0 + lane, there = 4 * q < f;
				float4_t sum = {0.0f, 0.0f, 0.0f, 0.0f};
				if (mine && there) sum = begin_row(p, r, q, width);
				if (there) sum = add_entries(p, sum, start + part, stop, split, q, width);
				for (int m = group; m < size; m *= 2) {
					sum.x += warp_xor(sum.x, m), sum.y += warp_xor(sum.y, m);
					sum.z += warp_xor(sum.z, m), sum.w += warp_xor(sum.w, m);
				}
				if (shared) {
					barrier();
					SH4(parts, 4 * thread_x()) = sum;
					barrier();
					for (int i = 1; mine && i < teams; i++) {
						float4_t x = SH4(parts, 4 * (i * size + lane));
						sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
					}
				}
				if (mine && there) end_row(p, sum, r, q);
			}
		}
	}
}

#undef BLOCKS
#define BLOCKS 2

// sddmm computes one inner product for each entry and head: rows of p and columns
// of q have f elements, of which each head has width. 8 threads share an entry.
KERNEL gsrc_sddmm(float *dst, const int *row, const int *col, const float *p, const float *q, int nnz, int f, int heads) {
	int lane = thread_x() % 8, width = f / heads;
	// All threads of a warp go on as long as any of them has an entry.
	for (int e = grid_first() / 8; e - (thread_x() % WARP) / 8 < nnz; e += grid_step() / 8) {
		int there = e < nnz, r = there ? LD(row, e) : 0, c = there ? LD(col, e) : 0;
		for (int k = 0; k < heads; k++) {
			i64 pa = (i64)r * f + k * width, qa = (i64)c * f + k * width;
			float sum = 0.0f;
			if (there) {
				for (int j = lane; j < width; j += 8) sum = fma32(LD(p, pa + j), LD(q, qa + j), sum);
			}
			for (int m = 4; m > 0; m /= 2) sum += warp_xor(sum, m);
			if (there && lane == 0) ST(dst, (i64)e * heads + k, sum);
		}
	}
}

// edge_gather copies node values, f a node, to entries: of each entry's node.
KERNEL gsrc_edge_gather(float *dst, const int *node, const float *v, int nnz, int f) {
	for (int i = grid_first(); i < nnz * f; i += grid_step()) {
		int e = (int)((u32)i / (u32)f);
		ST(dst, i, LD(v, (i64)LD(node, e) * f + (i - e * f)));
	}
}

// edge_sum adds the values w of entries, f an entry, by rows.
KERNEL gsrc_edge_sum(float *dst, const int *row_ptr, const int *perm, const float *w, int rows, int f) {
	for (int i = grid_first(); i < rows * f; i += grid_step()) {
		int r = (int)((u32)i / (u32)f), c = i - r * f, last = LD(row_ptr, r + 1);
		float sum = 0.0f;
		for (int e = LD(row_ptr, r); e < last; e++) sum += LD(w, (i64)(perm ? LD(perm, e) : e) * f + c);
		ST(dst, i, sum);
	}
}

// spmax computes the largest h[col_e] of each row's entries, 0 of none.
KERNEL gsrc_spmax(float *dst, const int *row_ptr, const int *col, const float *h, int rows, int f) {
	for (int i = grid_first(); i < rows * f; i += grid_step()) {
		int r = (int)((u32)i / (u32)f), c = i - r * f, first = LD(row_ptr, r), last = LD(row_ptr, r + 1);
		float top = first < last ? LD(h, (i64)LD(col, first) * f + c) : 0.0f;
		for (int e = first + 1; e < last; e++) top = max32(top, LD(h, (i64)LD(col, e) * f + c));
		ST(dst, i, top);
	}
}

// spmax_first finds for each row and column the first entry that has the maximum
// y, −1 where none has.
KERNEL gsrc_spmax_first(int *where, const int *row_ptr, const int *col, const float *h, const float *y, int rows, int f) {
	for (int i = grid_first(); i < rows * f; i += grid_step()) {
		int r = (int)((u32)i / (u32)f), c = i - r * f, last = LD(row_ptr, r + 1), found = -1;
		float top = LD(y, i);
		for (int e = LD(row_ptr, r); e < last && found < 0; e++) {
			if (LD(h, (i64)LD(col, e) * f + c) == top) found = e;
		}
		ST(where, i, found);
	}
}

// spmax_grad gives dy of the rows to the nodes whose entries were the first
// maxima. The structure is the transposed one.
KERNEL gsrc_spmax_grad(float *dst, const int *row_ptr, const int *col, const int *perm, const int *where, const float *dy, int rows, int f) {
	for (int i = grid_first(); i < rows * f; i += grid_step()) {
		int r = (int)((u32)i / (u32)f), c = i - r * f, last = LD(row_ptr, r + 1);
		float sum = 0.0f;
		for (int e = LD(row_ptr, r); e < last; e++) {
			i64 at = (i64)LD(col, e) * f + c;
			if (LD(where, at) == (perm ? LD(perm, e) : e)) sum += LD(dy, at);
		}
		ST(dst, i, sum);
	}
}

// The softmax of a row's entries and its own score, for one head: the largest score
// that counts.
FN float row_top(const float *e, float own, const float *w, int first, int last, int heads, int head) {
	float top = own > -3.4e38f || own != own ? own : -3.402823466e38f; // −Inf would be subtracted from itself
	for (int i = first; i < last; i++) {
		if (!w || LD(w, i) != 0.0f) top = max32(top, LD(e, (i64)i * heads + head));
	}
	return top;
}

// edge_softmax computes a_e = w_e·exp(e_e − m)/D and self = exp(s − m)/D of each
// row and head. w may be absent.
KERNEL gsrc_edge_softmax(float *a, float *self, const int *row_ptr, const float *e, const float *s, const float *w, int rows, int heads) {
	for (int k = grid_first(); k < rows * heads; k += grid_step()) {
		int r = k / heads, head = k - r * heads, first = LD(row_ptr, r), last = LD(row_ptr, r + 1);
		float score = LD(s, k), top = row_top(e, score, w, first, last, heads, head);
		float own = exp32(score - top), sum = own;
		for (int i = first; i < last; i++) {
			float x = exp32(min32(LD(e, (i64)i * heads + head) - top, 0.0f));
			if (w) x *= LD(w, i);
			ST(a, (i64)i * heads + head, x);
			sum += x;
		}
		float scale = 1.0f / max32(sum, 1.17549435e-38f);
		ST(self, k, own * scale);
		for (int i = first; i < last; i++) ST(a, (i64)i * heads + head, LD(a, (i64)i * heads + head) * scale);
	}
}

// edge_softmax_grad computes the gradients of e, s and, where dw is given, w. da,
// dself and w may be absent. Threads have a head of a row, or with dw a whole row.
KERNEL gsrc_edge_softmax_grad(float *de, float *ds, float *dw, const int *row_ptr, const float *e, const float *s, const float *w, const float *a, const float *self, const float *da, const float *dself, int rows, int heads) {
	int per = dw ? heads : 1;
	for (int k = grid_first(); k * per < rows * heads; k += grid_step()) {
		for (int at = k * per; at < (k + 1) * per; at++) {
			int r = at / heads, head = at - r * heads, first = LD(row_ptr, r), last = LD(row_ptr, r + 1);
			float own = LD(self, at), given = dself ? LD(dself, at) : 0.0f, mean = own * given;
			for (int i = first; da && i < last; i++) mean = fma32(LD(a, (i64)i * heads + head), LD(da, (i64)i * heads + head), mean);
			ST(ds, at, own * (given - mean));
			float top = 0.0f, scale = 0.0f;
			if (dw && w) {
				float score = LD(s, at);
				top = row_top(e, score, w, first, last, heads, head);
				float sum = exp32(score - top);
				for (int i = first; i < last; i++) sum = fma32(LD(w, i), exp32(min32(LD(e, (i64)i * heads + head) - top, 0.0f)), sum);
				scale = 1.0f / max32(sum, 1.17549435e-38f);
			}
			for (int i = first; i < last; i++) {
				i64 j = (i64)i * heads + head;
				float x = LD(a, j), d = (da ? LD(da, j) : 0.0f) - mean;
				ST(de, j, x * d);
				if (!dw) continue;
				// The weight's gradient is of the exponential without it; far above
				// the others are entries of weight 0 alone, which would overflow.
				float bare = w ? exp32(min32(LD(e, j) - top, 60.0f)) * scale : x;
				ST(dw, i, (head == 0 ? 0.0f : LD(dw, i)) + bare * d);
			}
		}
	}
}

// edge_uniform draws one number for each entry, the same for both directions.
KERNEL gsrc_edge_uniform(float *dst, const int *row, const int *col, int nnz, u64 stream, const u64 *step) {
	u64 key = rng_at(stream, LD(step, 0));
	for (int e = grid_first(); e < nnz; e += grid_step()) {
		u32 a = (u32)LD(row, e), b = (u32)LD(col, e);
		u64 pair = a < b ? (u64)a | (u64)b << 32 : (u64)b | (u64)a << 32;
		ST(dst, e, rng_float(rng_block(key, pair, 2).w[0]));
	}
}

// dropout_sparse drops the entries that the dense form would drop.
KERNEL gsrc_dropout_sparse(float *dst, const float *vals, const int *row, const int *col, int nnz, int cols, float rate, u64 stream, const u64 *step) {
	u64 key = rng_at(stream, LD(step, 0));
	float least = rate < 1.0f ? rate : 1.0f, scale = rate < 1.0f ? 1.0f / (1.0f - rate) : 0.0f;
	for (int e = grid_first(); e < nnz; e += grid_step()) {
		u64 i = (u64)LD(row, e) * (u64)cols + (u64)LD(col, e);
		words4 w = rng_block(key, i / 4, 0);
		u32 low = i % 2 ? w.w[1] : w.w[0], high = i % 2 ? w.w[3] : w.w[2];
		ST(dst, e, rng_float(i % 4 < 2 ? low : high) >= least ? scale * LD(vals, e) : 0.0f);
	}
}

// sparse_scale multiplies each entry by b[row·row_stride + col·col_stride], or
// divides it.
KERNEL gsrc_sparse_scale(float *dst, const float *vals, const int *row, const int *col, const float *b, int nnz, int row_stride, int col_stride, int divide) {
	for (int e = grid_first(); e < nnz; e += grid_step()) {
		float x = LD(vals, e), y = LD(b, (i64)LD(row, e) * row_stride + (i64)LD(col, e) * col_stride);
		ST(dst, e, divide ? x / y : x * y);
	}
}

// sparse_normalize divides the entries of each row by their norm, 1 or 2, of at
// least eps, or as normalize does where row_scale scales the row. A warp has a row.
KERNEL gsrc_sparse_normalize(float *dst, const float *vals, const int *row_ptr, int rows, int norm, float eps) {
	int lane = thread_x() % WARP;
	for (int r = grid_first() / WARP; r < rows; r += grid_step() / WARP) {
		int first = LD(row_ptr, r), last = LD(row_ptr, r + 1);
		float length = row_norm(vals, first, last - first, norm, 1.0f), power = row_scale(length, vals, first, last - first, eps);
		float scale = 1.0f / (power == 1.0f ? max32(length, eps) : row_norm(vals, first, last - first, norm, power));
		for (int e = first + lane; e < last; e += WARP) ST(dst, e, LD(vals, e) * power * scale);
	}
}

// to_dense writes the rows of a sparse matrix; entries at the same place are added.
KERNEL gsrc_to_dense(float *dst, const float *vals, const int *row_ptr, const int *col, int rows, int cols) {
	for (int r = grid_first(); r < rows; r += grid_step()) {
		int last = LD(row_ptr, r + 1);
		for (int e = LD(row_ptr, r); e < last; e++) {
			i64 at = (i64)r * cols + LD(col, e);
			ST(dst, at, LD(dst, at) + LD(vals, e));
		}
	}
}
