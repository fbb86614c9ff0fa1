// The emulator runs kernels on the host as a device would: blocks one after
// another in a shuffled order, the threads of a block as fibers of one thread of
// the host. A fiber runs until it waits for others, and which goes on then is drawn
// at random: what depends on an order that the device does not promise differs
// between seeds. Accesses to global memory are held against the registered ranges.
//
// A launch that goes wrong stops where it is and says why. Launches are not safe
// to make from several threads at once: package emulator makes them one by one.
#define _GNU_SOURCE
#define _XOPEN_SOURCE 700
#undef _FORTIFY_SOURCE
#include "emulator.h"
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { MAX_THREADS = 1024, WARP = 32, STACK = 64 << 10, SHARED_BYTES = 48 << 10 };

struct emu_place emu_at;
const char *emu_from, *emu_to;

// Registered ranges, by address.
struct range { const char *from, *to; };
static struct range *ranges;
static size_t range_count, range_room;

static uint64_t seed = 1;
static char message[512];
static jmp_buf failed, scheduler;
static ucontext_t first;

enum state { READY, AT_BARRIER, AT_WARP, DONE };
static struct thread {
	enum state state;
	int started;
	int fiber;
	size_t shared; // bytes of shared memory that it has named
	float given;   // to the other threads of its warp
	struct emu_place at;
} threads[MAX_THREADS];

static struct fiber {
	jmp_buf at;
	ucontext_t start;
	char *stack;
} fibers[MAX_THREADS];
static int fiber_count, idle[MAX_THREADS], idle_count;

static unsigned now, width, dynamic_bytes;
static int ready[MAX_THREADS], ready_count, waiting, warp_waiting[MAX_THREADS / WARP];
static char shared_memory[SHARED_BYTES] __attribute__((aligned(64)));
static char *dynamic;
static const struct emu_kernel *kernel;
static void **arguments;

static uint64_t draw(void) { // SplitMix64
	uint64_t z = seed += 0x9e3779b97f4a7c15ull;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void fail(void) { _longjmp(failed, 1); }

#define FAIL(...) (snprintf(message, sizeof message, __VA_ARGS__), fail())

static const char *place(void) {
	static char text[96];
	snprintf(text, sizeof text, "%s, block (%u,%u,%u), thread %u", kernel->name, emu_at.block[0], emu_at.block[1], emu_at.block[2], emu_at.thread);
	return text;
}

const void *emu_check(const void *p, size_t bytes, const char *what, int writes) {
	const char *at = p;
	(void)writes;
	size_t lo = 0, hi = range_count;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (ranges[mid].to <= at) lo = mid + 1;
		else hi = mid;
	}
	if ((size_t)at % bytes != 0) FAIL("%s: %s is at %p, which is no multiple of %zu", place(), what, p, bytes);
	if (lo == range_count || at < ranges[lo].from || at + bytes > ranges[lo].to) {
		if (lo > 0 && (size_t)(at - ranges[lo - 1].to) < 1 << 20) {
			FAIL("%s: %s is accessed %zu bytes behind a range of %zu bytes", place(), what, (size_t)(at - ranges[lo - 1].to), (size_t)(ranges[lo - 1].to - ranges[lo - 1].from));
		}
		FAIL("%s: %s is accessed at %p, outside of all memory", place(), what, p);
	}
	emu_from = ranges[lo].from;
	emu_to = ranges[lo].to;
	return p;
}

void emu_outside(unsigned long long i, unsigned long long count, const char *what) {
	FAIL("%s: index %lld of the shared array %s, which has %llu elements", place(), (long long)i, what, count);
}

void *emu_shared(size_t bytes) {
	struct thread *t = &threads[now];
	size_t at = t->shared;
	t->shared += (bytes + 15) / 16 * 16;
	if (t->shared > SHARED_BYTES) FAIL("%s: more than %d bytes of shared memory", place(), SHARED_BYTES);
	return shared_memory + at;
}

void *emu_dynamic(void) { return dynamic; }
size_t emu_dynamic_bytes(void) { return dynamic_bytes; }

// park gives the host's thread to the scheduler until the thread is ready again.
static void park(void) {
	threads[now].at = emu_at;
	if (!_setjmp(fibers[threads[now].fiber].at)) _longjmp(scheduler, 1);
}

static void release(enum state from, unsigned lo, unsigned hi) {
	for (unsigned i = lo; i < hi; i++) {
		if (threads[i].state == from) {
			threads[i].state = READY;
			ready[ready_count++] = i;
		}
	}
}

void emu_barrier(void) {
	threads[now].state = AT_BARRIER;
	if (++waiting == (int)width) {
		waiting = 0;
		release(AT_BARRIER, 0, width);
	}
	park();
}

// Two meetings: values are given before the first and taken before the second, so
// that none is overwritten before all have it.
static void meet(void) {
	unsigned warp = now / WARP, lo = warp * WARP, hi = lo + WARP < width ? lo + WARP : width;
	threads[now].state = AT_WARP;
	if (++warp_waiting[warp] == (int)(hi - lo)) {
		warp_waiting[warp] = 0;
		release(AT_WARP, lo, hi);
	}
	park();
}

static void whole_warps(void) {
	if (width % WARP != 0) FAIL("%s: a warp exchange in a block of %u threads", place(), width);
}

unsigned emu_warp_ballot(int p) {
	whole_warps();
	threads[now].given = p ? 1.0f : 0.0f;
	meet();
	unsigned votes = 0, lo = now / WARP * WARP;
	for (unsigned i = 0; i < WARP; i++) votes |= (unsigned)(threads[lo + i].given != 0.0f) << i;
	meet();
	return votes;
}

void emu_warp_barrier(void) {
	whole_warps();
	meet();
}

float emu_warp_xor(float v, int mask) {
	whole_warps();
	threads[now].given = v;
	meet();
	float got = threads[now ^ (unsigned)mask].given;
	meet();
	return got;
}

static void fiber_main(int id) {
	if (!_setjmp(fibers[id].at)) swapcontext(&fibers[id].start, &first);
	for (;;) {
		kernel->call(arguments);
		threads[now].state = DONE;
		idle[idle_count++] = id;
		if (!_setjmp(fibers[id].at)) _longjmp(scheduler, 1);
	}
}

static void new_fiber(void) {
	struct fiber *f = &fibers[fiber_count];
	f->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
	if (f->stack == MAP_FAILED) FAIL("no memory for fibers");
	getcontext(&f->start);
	f->start.uc_stack.ss_sp = f->stack;
	f->start.uc_stack.ss_size = STACK;
	f->start.uc_link = NULL;
	makecontext(&f->start, (void (*)(void))fiber_main, 1, fiber_count);
	idle[idle_count++] = fiber_count++;
	swapcontext(&first, &f->start);
}

static void run_block(void) {
	memset(shared_memory, 0xff, sizeof shared_memory); // so that what nobody wrote shows
	memset(dynamic, 0xff, dynamic_bytes);
	memset(warp_waiting, 0, sizeof warp_waiting);
	waiting = 0;
	for (unsigned i = 0; i < width; i++) {
		threads[i] = (struct thread){.state = READY, .at = emu_at};
		threads[i].at.thread = i;
		ready[i] = i;
	}
	ready_count = width;
	while (ready_count > 0) {
		int k = draw() % ready_count;
		now = ready[k];
		ready[k] = ready[--ready_count];
		struct thread *t = &threads[now];
		if (!t->started) {
			if (idle_count == 0) new_fiber();
			t->started = 1;
			t->fiber = idle[--idle_count];
		}
		emu_at = t->at;
		if (!_setjmp(scheduler)) _longjmp(fibers[t->fiber].at, 1);
	}
	for (unsigned i = 0; i < width; i++) {
		if (threads[i].state != DONE) {
			emu_at = threads[i].at;
			FAIL("%s: waits for threads of its block that have ended or wait elsewhere", place());
		}
	}
}

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

static void run_grid(const unsigned grid[3]) {
	uint64_t n = (uint64_t)grid[0] * grid[1] * grid[2], step = draw() % n, start = draw() % n;
	while (common_divisor(step, n) != 1) step++;
	for (uint64_t k = 0; k < n; k++) {
		uint64_t b = (start + k * step) % n;
		emu_at = (struct emu_place){.width = width, .blocks = {grid[0], grid[1], grid[2]}, .block = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]}};
		run_block();
	}
}

static const struct emu_kernel *find(const char *name) {
	for (int i = 0; i < emu_kernel_count; i++) {
		if (!strcmp(emu_kernels[i].name, name)) return &emu_kernels[i];
	}
	return NULL;
}

// gsrc_emu_launch runs a kernel to its end; params are pointers to the arguments'
// values. It returns 0, or another number when gsrc_emu_error says what is wrong.
int gsrc_emu_launch(const char *name, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **params) {
	message[0] = 0;
	kernel = find(name);
	if (!kernel) {
		snprintf(message, sizeof message, "there is no kernel %s", name);
		return 1;
	}
	width = block[0];
	if (block[1] != 1 || block[2] != 1 || width == 0 || width > MAX_THREADS || !grid[0] || !grid[1] || !grid[2] || grid[1] > 65535 || grid[2] > 65535 || shared_bytes > SHARED_BYTES) {
		snprintf(message, sizeof message, "%s: grid (%u,%u,%u) of blocks (%u,%u,%u) with %u bytes of shared memory cannot be launched", name, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes);
		return 1;
	}
	arguments = params;
	dynamic_bytes = shared_bytes;
	dynamic = aligned_alloc(64, (shared_bytes + 64) / 64 * 64);
	emu_from = emu_to = NULL;
	idle_count = 0; // of a launch that failed, fibers may be on their way
	int bad = _setjmp(failed);
	if (!bad) {
		for (int i = 0; i < fiber_count; i++) idle[idle_count++] = i;
		run_grid(grid);
	} else {
		for (int i = 0; i < fiber_count; i++) munmap(fibers[i].stack, STACK);
		fiber_count = idle_count = 0;
	}
	free(dynamic);
	return bad ? 2 : 0;
}

// gsrc_emu_error says why the last launch failed; "" if it did not.
const char *gsrc_emu_error(void) { return message; }

// gsrc_emu_params writes the sizes of a kernel's parameters and returns how many
// there are; −1 if there is no such kernel.
int gsrc_emu_params(const char *name, unsigned char bytes[128]) {
	const struct emu_kernel *k = find(name);
	if (!k) return -1;
	memcpy(bytes, k->bytes, k->count);
	return k->count;
}

// gsrc_emu_seed sets the seed that orders are drawn from.
void gsrc_emu_seed(uint64_t s) { seed = s; }

// gsrc_emu_register makes a range of memory the device's.
void gsrc_emu_register(const void *at, size_t bytes) {
	if (bytes == 0) return;
	if (range_count == range_room) ranges = realloc(ranges, (range_room = 2 * range_room + 64) * sizeof *ranges);
	size_t i = range_count++;
	for (; i > 0 && ranges[i - 1].from > (const char *)at; i--) ranges[i] = ranges[i - 1];
	ranges[i] = (struct range){at, (const char *)at + bytes};
}

// gsrc_emu_unregister takes a range back, by its address.
void gsrc_emu_unregister(const void *at) {
	for (size_t i = 0; i < range_count; i++) {
		if (ranges[i].from == at) {
			memmove(ranges + i, ranges + i + 1, (--range_count - i) * sizeof *ranges);
			return;
		}
	}
}
