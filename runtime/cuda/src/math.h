// Functions of one float32, by the same operations on a device and on the host:
// neither has the other's library. Errors are a few units in the last place.
#ifndef GSRC_MATH_H
#define GSRC_MATH_H

#include "gsrc.h"

// 2^n for −252 ≤ n ≤ 254 times x, by two factors so that neither overflows.
FN float times_power2(float x, int n) {
	int h = n / 2;
	return x * bits_float((u32)(h + 127) << 23) * bits_float((u32)(n - h + 127) << 23);
}

// e^r − 1 for |r| ≤ ln2/2: the Taylor series to r⁸/8!.
FN float expm1_small(float r) {
	float p = 2.48015873e-5f;
	p = fma32(p, r, 1.98412698e-4f);
	p = fma32(p, r, 1.38888889e-3f);
	p = fma32(p, r, 8.33333333e-3f);
	p = fma32(p, r, 4.16666667e-2f);
	p = fma32(p, r, 1.66666667e-1f);
	p = fma32(p, r, 0.5f);
	return fma32(p * r, r, r);
}

// The nearest integer of |x| < 2²², ties to even.
FN float nearest_int(float x) {
	const float magic = 12582912.0f; // 1.5·2²³
	return (x + magic) - magic;
}

FN float exp32(float x) {
	if (!(x < 89.0f)) return x != x ? x : INF;
	if (x < -104.0f) return 0.0f;
	float n = nearest_int(x * 1.44269504f);
	float r = fma32(n, -0.693145752f, x);
	r = fma32(n, -1.42860677e-6f, r);
	return times_power2(expm1_small(r) + 1.0f, (int)n);
}

FN float expm1_32(float x) {
	if (abs32(x) < 0.34f) return expm1_small(x);
	return exp32(x) - 1.0f;
}

// ln(m·2^e) after Cephes: m in [√½, √2), a polynomial of f = m − 1.
FN float log_parts(float f, float e) {
	float z = f * f;
	float y = 7.0376836292e-2f;
	y = fma32(y, f, -1.1514610310e-1f);
	y = fma32(y, f, 1.1676998740e-1f);
	y = fma32(y, f, -1.2420140846e-1f);
	y = fma32(y, f, 1.4249322787e-1f);
	y = fma32(y, f, -1.6668057665e-1f);
	y = fma32(y, f, 2.0000714765e-1f);
	y = fma32(y, f, -2.4999993993e-1f);
	y = fma32(y, f, 3.3333331174e-1f);
	y = y * f * z;
	y = fma32(e, -2.12194440e-4f, y);
	y = fma32(z, -0.5f, y);
	y = f + y;
	return fma32(e, 0.693359375f, y);
}

FN float log32(float x) {
	if (!(x > 0.0f)) return x == 0.0f ? -INF : NOT_A_NUMBER;
	if (x == INF) return x;
	float e = 0.0f;
	if (x < 1.17549435e-38f) x *= 16777216.0f, e = -24.0f;
	u32 b = float_bits(x) - 0x3f3504f3u;
	e += (float)((int)b >> 23);
	return log_parts(bits_float((b & 0x7fffffu) + 0x3f3504f3u) - 1.0f, e);
}

// ln(1+x) for x ≥ 0.
FN float log1p32(float x) {
	float u = 1.0f + x;
	if (u == 1.0f) return x;
	return log32(u) - ((u - 1.0f) - x) / u;
}

FN float sigmoid32(float x) {
	if (x < 0.0f) {
		float e = exp32(x);
		return e / (1.0f + e);
	}
	return 1.0f / (1.0f + exp32(-x));
}

FN float tanh32(float x) {
	float a = abs32(x), t;
	if (a < 0.17f) {
		float e = expm1_small(2.0f * a);
		t = e / (e + 2.0f);
	} else if (a < 1.0f) {
		float e = exp32(2.0f * a) - 1.0f;
		t = e / (e + 2.0f);
	} else if (a < 10.0f) {
		t = 1.0f - 2.0f / (exp32(2.0f * a) + 1.0f);
	} else {
		t = a != a ? a : 1.0f;
	}
	return x < 0.0f ? -t : t;
}

// x^y by float64 logarithm and exponential, as a power multiplies their errors.
FN float pow32(float x, float y) {
	if (y == 0.0f || x == 1.0f) return 1.0f;
	if (x != x || y != y) return NOT_A_NUMBER;
	float whole = abs32(y) < 8388608.0f ? (float)(int)y : y;
	int odd = whole == y && abs32(y) < 16777216.0f && ((int)y & 1);
	float sign = 1.0f;
	if (float_bits(x) >> 31) {
		if (x != 0.0f && x != -INF && whole != y) return NOT_A_NUMBER;
		if (odd) sign = -1.0f;
		x = -x;
	}
	if (x == 0.0f) return y < 0.0f ? sign * INF : sign * 0.0f;
	if (x == INF) return y < 0.0f ? sign * 0.0f : sign * INF;
	if (abs32(y) == INF) return (x < 1.0f) == (y < 0.0f) ? INF : 0.0f;
	// ln x = e·ln2 + 2·atanh((m−1)/(m+1)), a series to the 23rd power.
	u64 b = double_bits((double)x);
	int e = (int)(b >> 52) - 1023;
	double m = bits_double((b & 0xfffffffffffffull) | 0x3ff0000000000000ull);
	if (m > 1.4142135623730951) m *= 0.5, e++;
	double s = (m - 1.0) / (m + 1.0), s2 = s * s, q = 1.0 / 23.0;
	for (int k = 21; k > 0; k -= 2) q = fma64(q, s2, 1.0 / (double)k);
	double t = (double)y * fma64((double)e, 0.69314718055994531, 2.0 * s * q);
	if (t > 89.0) return sign * INF;
	if (t < -104.0) return sign * 0.0f;
	double n = (double)(int)(t * 1.4426950408889634 + (t < 0.0 ? -0.5 : 0.5));
	double r = fma64(n, -0.69314718055994531, t), p = 1.0;
	for (int k = 13; k > 0; k--) p = fma64(p, r / (double)k, 1.0);
	return sign * (float)(p * bits_double((u64)((i64)n + 1023) << 52));
}

// Two standard normal numbers of two words, bit for bit those of boxMuller in
// package runtime/kernels: single operations, none fused.
FN void box_muller(u32 w0, u32 w1, float *even, float *odd) {
	float u = (float)((w0 >> 8) + 1u) * (1.0f / 16777216.0f);
	u32 b = float_bits(u) - 0x3f3504f3u;
	float e = (float)((int)b >> 23);
	float f = bits_float((b & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
	float z = f * f;
	float y = 7.0376836292e-2f;
	y = y * f + -1.1514610310e-1f;
	y = y * f + 1.1676998740e-1f;
	y = y * f + -1.2420140846e-1f;
	y = y * f + 1.4249322787e-1f;
	y = y * f + -1.6668057665e-1f;
	y = y * f + 2.0000714765e-1f;
	y = y * f + -2.4999993993e-1f;
	y = y * f + 3.3333331174e-1f;
	y = (y * f) * z;
	y = y + e * -2.12194440e-4f;
	y = y - z * 0.5f;
	y = f + y;
	y = y + e * 0.693359375f;
	float r = root(y * -2.0f);

	u32 q = (w1 >> 8) + (1u << 21);
	u32 k = q >> 22;
	float t = (float)((int)(q & ((1u << 22) - 1u)) - (1 << 21)) * (1.0f / 16777216.0f);
	float t2 = t * t;
	float s = -75.4018402f;
	s = s * t2 + 81.5925446f;
	s = s * t2 + -41.3416634f;
	s = s * t2 + 6.28318548f;
	s = s * t;
	float c = 59.2202873f;
	c = c * t2 + -85.4428482f;
	c = c * t2 + 64.9393158f;
	c = c * t2 + -19.7392082f;
	c = c * t2 + 1.0f;
	if (k & 1u) {
		float swap = c;
		c = s;
		s = swap;
	}
	c = bits_float(float_bits(c) ^ (((k + 1u) << 30) & 0x80000000u));
	s = bits_float(float_bits(s) ^ ((k << 30) & 0x80000000u));
	*even = c * r;
	*odd = s * r;
}

// The norm, 1 or 2, of the n floats from at on, each times scale. A warp has them.
FN float row_norm(const float *x, i64 at, int n, int norm, float scale) {
	float sum = 0.0f;
	for (int c = thread_x() % WARP; c < n; c += WARP) {
		float v = LD(x, at + c) * scale;
		sum += norm == 1 ? abs32(v) : v * v;
	}
	sum = warp_sum(sum);
	return norm == 1 ? sum : root(sum);
}

// The power of two that a row of n floats with that norm is multiplied with before it
// is normalised: as in runtime/kernels/rowscale.go, which has the reasons.
FN float row_scale(float norm, const float *x, i64 at, int n, float eps) {
	if (norm >= 2e-12f * n && norm <= 0.5e12f) return 1.0f;
	float top = 0.0f;
	for (int c = thread_x() % WARP; c < n; c += WARP) top = max32(top, abs32(LD(x, at + c)));
	top = warp_max(top);
	if (top > 1e12f && top < INF) return 8.271806125530277e-25f; // 2⁻⁸⁰
	if (top > 0.0f && top < 1e-12f && eps <= 1e-12f) return 3.094850098213451e26f; // 2⁸⁸
	return 1.0f;
}

#endif
