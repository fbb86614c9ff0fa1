// What kernels see of the emulator when they are compiled for the host. See
// emulator.c; src/gsrc.h makes kernels' words of these.
#ifndef GSRC_EMULATOR_H
#define GSRC_EMULATOR_H

#include <stddef.h>

// Where the running thread is.
struct emu_place {
	unsigned thread, width;
	unsigned block[3], blocks[3];
};
extern struct emu_place emu_at;

static inline unsigned emu_thread(void) { return emu_at.thread; }
static inline unsigned emu_width(void) { return emu_at.width; }
static inline unsigned emu_block(int i) { return emu_at.block[i]; }
static inline unsigned emu_blocks(int i) { return emu_at.blocks[i]; }

// The range that held the last access.
extern const char *emu_from, *emu_to;

// Check an access to global memory, and give the address back.
const void *emu_check(const void *p, size_t bytes, const char *what, int writes);
static inline const void *emu_read(const void *p, size_t bytes, const char *what) {
	const char *at = (const char *)p;
	if (at >= emu_from && at + bytes <= emu_to && (size_t)at % bytes == 0) return p;
	return emu_check(p, bytes, what, 0);
}
static inline void *emu_write(void *p, size_t bytes, const char *what) { return (void *)emu_read(p, bytes, what); }

// Check an index of shared memory.
void emu_outside(unsigned long long i, unsigned long long count, const char *what);
static inline unsigned long long emu_index(long long i, unsigned long long count, const char *what) {
	if ((unsigned long long)i >= count) emu_outside((unsigned long long)i, count, what);
	return (unsigned long long)i;
}

void *emu_shared(size_t bytes);      // of the block, the same for the n-th call of each thread
void *emu_dynamic(void);             // the launch's dynamic shared memory
size_t emu_dynamic_bytes(void);
void emu_barrier(void);              // all threads of the block
float emu_warp_xor(float v, int mask); // v of the thread whose lane is this one's ^ mask
unsigned emu_warp_ballot(int p);     // a bit for each lane
void emu_warp_barrier(void);         // all threads of the warp
static inline void emu_lower(int *p, int v, const char *what) {
	int *at = (int *)emu_write(p, sizeof *p, what);
	if (v < *at) *at = v;
}

// The table of kernels, which Go writes from the sources.
struct emu_kernel {
	const char *name;
	void (*call)(void **params);
	int count;                  // of parameters
	const unsigned char *bytes; // of each
};
extern const struct emu_kernel emu_kernels[];
extern const int emu_kernel_count;

#endif
