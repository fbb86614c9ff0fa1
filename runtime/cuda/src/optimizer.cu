// The optimizer's step over all parameters at once: see kernels.AdamStep.

#include "gsrc.h"


FN double power(double x, u64 n) {
	double p = 1.0;
	for (; n > 0; n /= 2) {
		if (n % 2) p *= x;
		x *= x;
	}
	return p;
}

// adam makes step t = *step + offset (from 1). Block y has a parameter, of which the
// table has six words: the addresses of weights, gradient and both moments, their
// number, and the weight decay.
KERNEL gsrc_adam(const u64 *table, const u64 *step, i64 offset, float lr, float b1, float b2, float eps) {
	SHARED(float, rates, 2);
	if (thread_x() == 0) {
		u64 t = LD(step, 0) + (u64)offset;
		SH(rates, 0) = (float)((double)lr / (1.0 - power((double)b1, t)));
		SH(rates, 1) = (float)(1.0 / root64(1.0 - power((double)b2, t)));
	}
	barrier();
	float rate = SH(rates, 0), scale = SH(rates, 1), c1 = 1.0f - b1, c2 = 1.0f - b2;
	i64 at = 6 * (i64)block_y();
	float *w = (float *)LD(table, at), *m = (float *)LD(table, at + 2), *v = (float *)LD(table, at + 3);
	const float *g = (const float *)LD(table, at + 1);
	i64 n = (i64)LD(table, at + 4);
	float decay = bits_float((u32)LD(table, at + 5));
	for (i64 i = grid_first(); i < n; i += grid_step()) {
		float x = LD(w, i), d = fma32(decay, x, LD(g, i));
		float first = fma32(c1, d, b1 * LD(m, i)), second = fma32(c2, d * d, b2 * LD(v, i));
		ST(m, i, first);
		ST(v, i, second);
		ST(w, i, x - rate * first / (root(second) * scale + eps));
	}
}
