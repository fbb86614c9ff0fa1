// What every kernel source includes. The sources are compiled twice: by clang to
// PTX, and by a C compiler to host code that the emulator runs. So they keep to C
// with the few words below, and read and write global memory by LD and ST, shared
// memory by SH, or four floats at a multiple of four by SH4, which are plain accesses
// on a device and checked ones on the host.
//
//   KERNEL f(float *x, int n) { ... }   a kernel; arguments have at most 8 bytes
//   FN float g(float x) { ... }         a function of a thread
//   SHARED(float, tile, 256);           an array that the block's threads share
//   thread_x() block_x() block_y() width_x() blocks_x() blocks_y()
//   barrier()                           all threads of the block must arrive
//   warp_xor(v, mask)                   v of the thread lane ^ mask; all threads of the warp arrive
//   warp_ballot(p)                      bit i says whether p holds in lane i; likewise
//   warp_barrier()                      the warp's writes to shared memory are seen by all of it
//   LOWER(p, i, v)                      p[i] = min(p[i], v) of ints, whichever thread comes first
//
// Sums are made in an order that depends on shapes alone, so that a kernel gives
// the same bits every time; nothing adds atomically, and LOWER gives the same in any
// order.
#ifndef GSRC_H
#define GSRC_H

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef struct { float x, y, z, w; } __attribute__((aligned(16))) float4_t;

#define WARP 32

// At least so many blocks of a kernel are to fit on a processor at a time, which
// bounds the registers of a thread: more of them hide the time that memory takes.
#define BLOCKS 2

#ifdef __CUDA__

#define DEVICE __attribute__((device))
#define KERNEL extern "C" __attribute__((global)) __attribute__((launch_bounds(256, BLOCKS))) void
#define FN static DEVICE __attribute__((always_inline)) inline
#define SHARED(type, name, count) __attribute__((shared)) __attribute__((aligned(16))) static type name[count]
#define SHARED_DYNAMIC(type, name) extern __attribute__((shared)) __attribute__((aligned(16))) type name[]
#define TABLE static __attribute__((constant)) const
#define SH(array, i) (array)[i]
#define SH4(array, i) (*(float4_t *)&(array)[i])
#define LD(p, i) (p)[i]
#define ST(p, i, v) ((p)[i] = (v))
#define LOWER(p, i, v) ((void)__nvvm_atom_min_gen_i(&(p)[i], (v)))

FN int thread_x(void) { return __nvvm_read_ptx_sreg_tid_x(); }
FN int block_x(void) { return __nvvm_read_ptx_sreg_ctaid_x(); }
FN int block_y(void) { return __nvvm_read_ptx_sreg_ctaid_y(); }
FN int block_z(void) { return __nvvm_read_ptx_sreg_ctaid_z(); }
FN int width_x(void) { return __nvvm_read_ptx_sreg_ntid_x(); }
FN int blocks_x(void) { return __nvvm_read_ptx_sreg_nctaid_x(); }
FN int blocks_y(void) { return __nvvm_read_ptx_sreg_nctaid_y(); }
FN int blocks_z(void) { return __nvvm_read_ptx_sreg_nctaid_z(); }
// As assembly that may change memory: of the intrinsics clang 14 assumes that they leave
// shared arrays alone, and moves reads of these across.
FN void barrier(void) { __asm__ volatile("bar.sync 0;" ::: "memory"); }
FN float warp_xor(float v, int mask) { return __nvvm_shfl_sync_bfly_f32(0xffffffffu, v, mask, 31); }
FN u32 warp_ballot(int p) { return __nvvm_vote_ballot_sync(0xffffffffu, p != 0); }
FN void warp_barrier(void) { __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
FN float root(float x) { return __nvvm_sqrt_rn_f(x); }
FN double root64(double x) { return __nvvm_sqrt_rn_d(x); }
FN float fma32(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
FN double fma64(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
FN float bits_float(u32 b) { return __nvvm_bitcast_i2f(b); }
FN u32 float_bits(float f) { return __nvvm_bitcast_f2i(f); }
FN double bits_double(u64 b) { return __nvvm_bitcast_ll2d(b); }
FN u64 double_bits(double f) { return __nvvm_bitcast_d2ll(f); }

#else

#include "emulator.h"

#define KERNEL static void
#define FN static inline
#define TABLE static const
#define SHARED(type, name, count) enum { name##_count = (count) }; type *const name = (type *)emu_shared(sizeof(type) * (count))
#define SHARED_DYNAMIC(type, name) const u64 name##_count = emu_dynamic_bytes() / sizeof(type); type *const name = (type *)emu_dynamic()
#define SH(array, i) (array)[emu_index((i), array##_count, #array)]
#define SH4(array, i) (*(float4_t *)&(array)[4 * emu_index((i) / 4, array##_count / 4, #array)])
#define LD(p, i) (*(__typeof__(&(p)[0]))emu_read(&(p)[i], sizeof((p)[0]), #p))
#define ST(p, i, v) (*(__typeof__(&(p)[0]))emu_write(&(p)[i], sizeof((p)[0]), #p) = (v))
#define LOWER(p, i, v) emu_lower(&(p)[i], (v), #p)

#define thread_x() ((int)emu_thread())
#define block_x() ((int)emu_block(0))
#define block_y() ((int)emu_block(1))
#define block_z() ((int)emu_block(2))
#define width_x() ((int)emu_width())
#define blocks_x() ((int)emu_blocks(0))
#define blocks_y() ((int)emu_blocks(1))
#define blocks_z() ((int)emu_blocks(2))
#define barrier() emu_barrier()
#define warp_xor(v, mask) emu_warp_xor((v), (mask))
#define warp_ballot(p) emu_warp_ballot(p)
#define warp_barrier() emu_warp_barrier()
#define root(x) __builtin_sqrtf(x)
#define root64(x) __builtin_sqrt(x)
#define fma32(a, b, c) __builtin_fmaf((a), (b), (c))
#define fma64(a, b, c) __builtin_fma((a), (b), (c))

FN float bits_float(u32 b) { float f; __builtin_memcpy(&f, &b, 4); return f; }
FN u32 float_bits(float f) { u32 b; __builtin_memcpy(&b, &f, 4); return b; }
FN double bits_double(u64 b) { double f; __builtin_memcpy(&f, &b, 8); return f; }
FN u64 double_bits(double f) { u64 b; __builtin_memcpy(&b, &f, 8); return b; }

#endif

#define INF bits_float(0x7f800000u)
#define NOT_A_NUMBER bits_float(0x7fc00000u)

FN int min_int(int a, int b) { return a < b ? a : b; }
FN int max_int(int a, int b) { return a > b ? a : b; }

FN int ones(u32 v) { return __builtin_popcount(v); }
FN int lowest(u32 v) { return __builtin_ctz(v); } // of the bits that are set

// The larger and the smaller of two; NaN if either is.
FN float max32(float a, float b) { return a > b || a != a ? a : b; }
FN float min32(float a, float b) { return a < b || a != a ? a : b; }
FN float abs32(float a) { return bits_float(float_bits(a) & 0x7fffffffu); }

// The first element of a thread, and the step, in loops over the whole grid.
FN int grid_first(void) { return block_x() * width_x() + thread_x(); }
FN int grid_step(void) { return blocks_x() * width_x(); }

// Sums and maxima over a warp: every thread gets the same bits.
FN float warp_sum(float v) {
	for (int m = WARP / 2; m > 0; m /= 2) v += warp_xor(v, m);
	return v;
}
FN float warp_max(float v) {
	for (int m = WARP / 2; m > 0; m /= 2) v = max32(v, warp_xor(v, m));
	return v;
}
FN float warp_min(float v) {
	for (int m = WARP / 2; m > 0; m /= 2) v = min32(v, warp_xor(v, m));
	return v;
}

// Four floats at once where the address allows.
FN int aligned4(const float *p) { return ((u64)p & 15) == 0; }

// Columns 4q to 4q+3 of a row of width f, those that exist. Without branches, so that the
// reads of several rows wait together.
FN float4_t columns4(const float *x, int row, int q, int f, int whole) {
	const float *at = x + row * f + 4 * q;
	if (whole) return LD((const float4_t *)at, 0);
	int left = f - 4 * q;
	float4_t v = {LD(at, 0), LD(at, left > 1 ? 1 : 0), LD(at, left > 2 ? 2 : 0), LD(at, left > 3 ? 3 : 0)};
	v.y = left > 1 ? v.y : 0.0f, v.z = left > 2 ? v.z : 0.0f, v.w = left > 3 ? v.w : 0.0f;
	return v;
}

// Notes that an operation, by its number, met what it cannot compute: the first one
// stays, for the host to see when it next reads from the device.
FN void set_fault(int *fault, int number) {
	if (LD(fault, 0) == 0) ST(fault, 0, number);
}

// gsrc's random numbers: see package rng.
FN u64 rng_mix(u64 z) {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

// The stream of a step: rng.Stream.At.
FN u64 rng_at(u64 stream, u64 step) { return rng_mix(stream + 0x9e3779b97f4a7c15ull * (step + 1)); }

typedef struct { u32 w[4]; } words4;

// Philox4x32-10: rng.Stream.Block.
FN words4 rng_block(u64 key, u64 c0, u64 c1) {
	u32 a = (u32)c0, b = (u32)(c0 >> 32), c = (u32)c1, d = (u32)(c1 >> 32);
	u32 k0 = (u32)key, k1 = (u32)(key >> 32);
	for (int i = 0; i < 10; i++) {
		u64 p0 = (u64)0xD2511F53u * a, p1 = (u64)0xCD9E8D57u * c;
		u32 na = (u32)(p1 >> 32) ^ b ^ k0, nc = (u32)(p0 >> 32) ^ d ^ k1;
		a = na, b = (u32)p1, c = nc, d = (u32)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	words4 out = {{a, b, c, d}};
	return out;
}

FN float rng_float(u32 w) { return (float)(w >> 8) * (1.0f / 16777216.0f); }

#endif
