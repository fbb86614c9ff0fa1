// Every operation that works on elements one by one: a chain of steps, run by an
// interpreter. A thread has four neighbouring elements, which share a block of
// random words; the cost of reading a step is shared by them, and chains are bound
// by memory. Package cuda's chain.go writes the programs.

#include "math.h"

enum {
	OP_NEG, OP_EXP, OP_LOG, OP_SQRT, OP_RSQRT, OP_SQUARE, OP_SIGMOID, OP_TANH, OP_RELU, OP_ELU, OP_LEAKY_RELU, OP_POW, OP_COPY,
	OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MAX, OP_MIN, OP_LOGADDEXP, OP_GREATER, OP_GREATER_EQUAL, OP_LESS,
	OP_RELU_GRAD, OP_ELU_GRAD, OP_LEAKY_RELU_GRAD,
	OP_UNIFORM, OP_NORMAL, OP_DROPOUT
};

// Arguments of a step: an input, a register, or one of these.
enum { ARG_REGISTER = 32, ARG_LAST = 64, ARG_NUMBER, ARG_RESULT, NO_REGISTER = 255 };

// How an input is repeated.
enum { FULL, ROW_VECTOR, COLUMN_VECTOR, SCALAR };

FN float step1(int op, float a, float param) {
	switch (op) {
	case OP_NEG: return -a;
	case OP_EXP: return exp32(a);
	case OP_LOG: return log32(a);
	case OP_SQRT: return root(a);
	case OP_RSQRT: return 1.0f / root(a);
	case OP_SQUARE: return a * a;
	case OP_SIGMOID: return sigmoid32(a);
	case OP_TANH: return tanh32(a);
	case OP_RELU: return a < 0.0f ? 0.0f : a;
	case OP_ELU: return a < 0.0f ? expm1_32(a) : a;
	case OP_LEAKY_RELU: return a < 0.0f ? a * param : a;
	case OP_POW: return pow32(a, param);
	}
	return a;
}

FN float step2(int op, float a, float b, float param) {
	switch (op) {
	case OP_ADD: return a + b;
	case OP_SUB: return a - b;
	case OP_MUL: return a * b;
	case OP_DIV: return a / b;
	case OP_MAX: return max32(a, b);
	case OP_MIN: return min32(a, b);
	case OP_LOGADDEXP: {
		float hi = max32(a, b), lo = min32(a, b);
		return abs32(hi) == INF ? hi : hi + log1p32(exp32(lo - hi));
	}
	case OP_GREATER: return a > b ? 1.0f : 0.0f;
	case OP_GREATER_EQUAL: return a >= b ? 1.0f : 0.0f;
	case OP_LESS: return a < b ? 1.0f : 0.0f;
	case OP_RELU_GRAD: return a > 0.0f ? b : 0.0f;
	case OP_ELU_GRAD: return a > 0.0f ? b : b * (a + 1.0f);
	}
	return a > 0.0f ? b : b * param; // OP_LEAKY_RELU_GRAD
}

// The four elements from i on of an input, those that exist.
FN float4_t input4(const float *x, int mode, int i, int n, int cols) {
	float4_t v = {0.0f, 0.0f, 0.0f, 0.0f};
	if (mode == SCALAR) {
		v.x = v.y = v.z = v.w = LD(x, 0);
		return v;
	}
	if (mode == FULL) {
		if (i + 4 <= n && aligned4(x)) return LD((const float4_t *)x, i / 4);
		v.x = LD(x, i);
		if (i + 1 < n) v.y = LD(x, i + 1);
		if (i + 2 < n) v.z = LD(x, i + 2);
		if (i + 3 < n) v.w = LD(x, i + 3);
		return v;
	}
	int row = (int)((u32)i / (u32)cols), col = i - row * cols;
	int by_row = mode == ROW_VECTOR;
	v.x = LD(x, by_row ? col : row);
	if (++col == cols) col = 0, row++;
	if (i + 1 < n) v.y = LD(x, by_row ? col : row);
	if (++col == cols) col = 0, row++;
	if (i + 2 < n) v.z = LD(x, by_row ? col : row);
	if (++col == cols) col = 0, row++;
	if (i + 3 < n) v.w = LD(x, by_row ? col : row);
	return v;
}

#define INPUTS 26
#define STEPS 32

// chain computes n elements of a result with cols columns. in are the inputs, modes
// two bits for each; a step has op, register, two arguments of 8 bits each from the
// lowest on, and a number in the upper half. The dynamic shared memory holds
// registers of 16 bytes a thread.
KERNEL gsrc_chain(float *dst, int n, int cols, u64 modes, int inputs, int steps, u64 stream, const u64 *step,
	u64 in0, u64 in1, u64 in2, u64 in3, u64 in4, u64 in5, u64 in6, u64 in7, u64 in8, u64 in9, u64 in10, u64 in11, u64 in12,
	u64 in13, u64 in14, u64 in15, u64 in16, u64 in17, u64 in18, u64 in19, u64 in20, u64 in21, u64 in22, u64 in23, u64 in24, u64 in25,
	u64 s0, u64 s1, u64 s2, u64 s3, u64 s4, u64 s5, u64 s6, u64 s7, u64 s8, u64 s9, u64 s10, u64 s11, u64 s12, u64 s13, u64 s14, u64 s15,
	u64 s16, u64 s17, u64 s18, u64 s19, u64 s20, u64 s21, u64 s22, u64 s23, u64 s24, u64 s25, u64 s26, u64 s27, u64 s28, u64 s29, u64 s30, u64 s31) {
	SHARED(u64, in, INPUTS);
	SHARED(u64, code, STEPS);
	SHARED_DYNAMIC(float4_t, registers);
	if (thread_x() == 0) {
		SH(in, 0) = in0, SH(in, 1) = in1, SH(in, 2) = in2, SH(in, 3) = in3;
		if (inputs > 4) SH(in, 4) = in4, SH(in, 5) = in5, SH(in, 6) = in6, SH(in, 7) = in7;
		if (inputs > 8) SH(in, 8) = in8, SH(in, 9) = in9, SH(in, 10) = in10, SH(in, 11) = in11, SH(in, 12) = in12, SH(in, 13) = in13;
		if (inputs > 14) SH(in, 14) = in14, SH(in, 15) = in15, SH(in, 16) = in16, SH(in, 17) = in17, SH(in, 18) = in18, SH(in, 19) = in19;
		if (inputs > 20) SH(in, 20) = in20, SH(in, 21) = in21, SH(in, 22) = in22, SH(in, 23) = in23, SH(in, 24) = in24, SH(in, 25) = in25;
		SH(code, 0) = s0, SH(code, 1) = s1, SH(code, 2) = s2, SH(code, 3) = s3;
		if (steps > 4) SH(code, 4) = s4, SH(code, 5) = s5, SH(code, 6) = s6, SH(code, 7) = s7;
		if (steps > 8) SH(code, 8) = s8, SH(code, 9) = s9, SH(code, 10) = s10, SH(code, 11) = s11, SH(code, 12) = s12, SH(code, 13) = s13, SH(code, 14) = s14, SH(code, 15) = s15;
		if (steps > 16) {
			SH(code, 16) = s16, SH(code, 17) = s17, SH(code, 18) = s18, SH(code, 19) = s19, SH(code, 20) = s20, SH(code, 21) = s21, SH(code, 22) = s22, SH(code, 23) = s23;
			SH(code, 24) = s24, SH(code, 25) = s25, SH(code, 26) = s26, SH(code, 27) = s27, SH(code, 28) = s28, SH(code, 29) = s29, SH(code, 30) = s30, SH(code, 31) = s31;
		}
	}
	barrier();
	u64 key = step ? rng_at(stream, LD(step, 0)) : 0;
	for (int i = 4 * grid_first(); i < n; i += 4 * grid_step()) {
		float4_t last = {0.0f, 0.0f, 0.0f, 0.0f};
		for (int k = 0; k < steps; k++) {
			u64 s = SH(code, k);
			int op = (int)(s & 255), to = (int)(s >> 8 & 255);
			float param = bits_float((u32)(s >> 32));
			float4_t arg[2] = {{0.0f, 0.0f, 0.0f, 0.0f}, {0.0f, 0.0f, 0.0f, 0.0f}};
			int count = op < OP_ADD ? 1 : op < OP_UNIFORM ? 2 : op == OP_DROPOUT;
#pragma unroll
			for (int j = 0; j < 2; j++) {
				int a = (int)(s >> (16 + 8 * j) & 255);
				if (j >= count) continue;
				if (a == ARG_LAST) {
					arg[j] = last;
				} else if (a == ARG_NUMBER) {
					arg[j].x = arg[j].y = arg[j].z = arg[j].w = param;
				} else if (a == ARG_RESULT) {
					arg[j] = input4(dst, FULL, i, n, cols);
				} else if (a >= ARG_REGISTER) {
					arg[j] = SH(registers, (a - ARG_REGISTER) * width_x() + thread_x());
				} else {
					arg[j] = input4((const float *)SH(in, a), (int)(modes >> (2 * a) & 3), i, n, cols);
				}
			}
			float4_t a = arg[0], b = arg[1];
			if (op < OP_ADD) {
				last.x = step1(op, a.x, param);
				last.y = step1(op, a.y, param);
				last.z = step1(op, a.z, param);
				last.w = step1(op, a.w, param);
			} else if (op < OP_UNIFORM) {
				last.x = step2(op, a.x, b.x, param);
				last.y = step2(op, a.y, b.y, param);
				last.z = step2(op, a.z, b.z, param);
				last.w = step2(op, a.w, b.w, param);
			} else if (op == OP_NORMAL) {
				words4 w = rng_block(key, (u64)(i / 4), 4);
				box_muller(w.w[0], w.w[1], &last.x, &last.y);
				box_muller(w.w[2], w.w[3], &last.z, &last.w);
			} else {
				words4 w = rng_block(key, (u64)(i / 4), 0);
				last.x = rng_float(w.w[0]), last.y = rng_float(w.w[1]), last.z = rng_float(w.w[2]), last.w = rng_float(w.w[3]);
				if (op == OP_DROPOUT) {
					float rate = param < 1.0f ? param : 1.0f, scale = param < 1.0f ? 1.0f / (1.0f - param) : 0.0f;
					last.x = last.x >= rate ? a.x * scale : 0.0f;
					last.y = last.y >= rate ? a.y * scale : 0.0f;
					last.z = last.z >= rate ? a.z * scale : 0.0f;
					last.w = last.w >= rate ? a.w * scale : 0.0f;
				}
			}
			if (to != NO_REGISTER) SH(registers, to * width_x() + thread_x()) = last;
		}
		if (i + 4 <= n && aligned4(dst)) {
			ST((float4_t *)dst, i / 4, last);
			continue;
		}
		ST(dst, i, last.x);
		if (i + 1 < n) ST(dst, i + 1, last.y);
		if (i + 2 < n) ST(dst, i + 2, last.z);
		if (i + 3 < n) ST(dst, i + 3, last.w);
	}
}

// fill_i64 sets n integers.
KERNEL gsrc_fill_i64(i64 *dst, int n, i64 value) {
	for (int i = grid_first(); i < n; i += grid_step()) ST(dst, i, value);
}

// broadcast_i64 repeats x over n elements of a result with cols columns.
KERNEL gsrc_broadcast_i64(i64 *dst, const i64 *x, int n, int cols, int mode) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		int at = mode == FULL ? i : mode == ROW_VECTOR ? (int)((u32)i % (u32)cols) : mode == COLUMN_VECTOR ? (int)((u32)i / (u32)cols) : 0;
		ST(dst, i, LD(x, at));
	}
}

// copy_columns copies width columns of rows rows, from a matrix of x_cols columns
// into one of dst_cols; the pointers are at the first element.
KERNEL gsrc_copy_columns(float *dst, const float *x, int rows, int width, int dst_cols, int x_cols) {
	for (int i = grid_first(); i < rows * width; i += grid_step()) {
		int r = (int)((u32)i / (u32)width), c = i - r * width;
		ST(dst, r * dst_cols + c, LD(x, r * x_cols + c));
	}
}

// group_sum adds the columns of each of groups blocks of one width.
KERNEL gsrc_group_sum(float *dst, const float *x, int n, int width) {
	for (int i = grid_first(); i < n; i += grid_step()) {
		float sum = 0.0f;
		for (int k = 0; k < width; k++) sum += LD(x, i * width + k);
		ST(dst, i, sum);
	}
}

// group_repeat repeats each of n elements times times.
KERNEL gsrc_group_repeat(float *dst, const float *x, int n, int times) {
	for (int i = grid_first(); i < n * times; i += grid_step()) ST(dst, i, LD(x, (int)((u32)i / (u32)times)));
}
