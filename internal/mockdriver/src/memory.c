// Memory of the device and page-locked memory of the host.
#define _GNU_SOURCE
#include "mockdriver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD = 256 }; // bytes before and after each block, which nobody may write

struct block {
	char *at;
	size_t bytes;
	int host, freed;
	long number;
	struct context *context;
};

static struct block *blocks; // by number
static size_t block_count, block_room;
static size_t in_use;

static struct block *holding(const void *p) {
	for (size_t i = block_count; i-- > 0;)
		if ((char *)p >= blocks[i].at && (char *)p < blocks[i].at + blocks[i].bytes)
			return &blocks[i];
	return NULL;
}

// in_memory tells whether bytes of a live block of the device are at p.
int in_memory(const void *p, size_t bytes) {
	struct block *b = holding(p);
	return b && !b->freed && !b->host && bytes <= (size_t)(b->at + b->bytes - (char *)p);
}

// page_locked tells the same of page-locked memory.
int page_locked(const void *p, size_t bytes) {
	struct block *b = holding(p);
	return b && !b->freed && b->host && bytes <= (size_t)(b->at + b->bytes - (char *)p);
}

static char *grab(size_t bytes, int host) {
	char *whole;
	if (posix_memalign((void **)&whole, 512, bytes + 2 * GUARD + 512))
		return NULL;
	if (block_count == block_room) {
		block_room = block_room ? 2 * block_room : 64;
		blocks = realloc(blocks, block_room * sizeof *blocks);
	}
	char *at = whole + 512;
	memset(at - GUARD, 0xA5, GUARD);
	// Not a number as a float, and out of bounds as an index: what is read before it
	// is written shows.
	memset(at, 0xFF, bytes);
	memset(at + bytes, 0xA5, GUARD);
	blocks[block_count] = (struct block){at, bytes, host, 0, (long)block_count + 1, current};
	block_count++;
	return at;
}

static int written(const char *p) {
	for (int i = 0; i < GUARD; i++)
		if (p[i] != (char)0xA5)
			return 1;
	return 0;
}

// drop frees a block. Its memory is kept, filled with what shows, so that a pointer
// to it does not come to mean another block.
static void drop(struct block *b) {
	if (written(b->at - GUARD) || written(b->at + b->bytes))
		record_violation("memory beside block %ld of %zu bytes was written", b->number, b->bytes);
	b->freed = 1;
	if (b->bytes < 1 << 20)
		memset(b->at, 0xFF, b->bytes);
	else { // give the pages back and keep the addresses
		uintptr_t from = ((uintptr_t)b->at + 4095) & ~(uintptr_t)4095, to = (uintptr_t)(b->at + b->bytes) & ~(uintptr_t)4095;
		madvise((void *)from, to - from, MADV_DONTNEED);
	}
	if (!b->host) {
		in_use -= b->bytes;
		gsrc_emu_unregister(b->at);
	}
}

int memory_live(struct context *context, char *text, size_t size) {
	int count = 0;
	size_t used = 0;
	for (size_t i = 0; i < block_count; i++)
		if (!blocks[i].freed && (!context || blocks[i].context == context)) {
			count++;
			int n = snprintf(text + used, size - used, "%s block %ld of %zu bytes\n", blocks[i].host ? "page-locked" : "device", blocks[i].number, blocks[i].bytes);
			if (n > 0 && used + n < size)
				used += n;
		}
	return count;
}

// memory_drop frees what is left in a context.
void memory_drop(struct context *c) {
	for (size_t i = 0; i < block_count; i++)
		if (!blocks[i].freed && blocks[i].context == c)
			drop(&blocks[i]);
}

void memory_reset(void) {
	for (size_t i = 0; i < block_count; i++) {
		if (!blocks[i].freed && !blocks[i].host)
			gsrc_emu_unregister(blocks[i].at);
		free(blocks[i].at - 512);
	}
	block_count = 0;
	in_use = 0;
}

static CUresult allocate(const char *call, void **to, size_t bytes, int host) {
	CUresult r = enter(call);
	if (r)
		return r;
	if (capturing_here(call))
		return CAPTURE_UNSUPPORTED;
	if (!to || !bytes)
		return INVALID_VALUE;
	if (!host) {
		if (set.fail_alloc > 0 && --set.fail_alloc == 0)
			return OUT_OF_MEMORY;
		if (bytes > (size_t)set.memory - in_use)
			return OUT_OF_MEMORY;
	}
	char *at = grab(bytes, host);
	if (!at)
		return OUT_OF_MEMORY;
	if (!host) {
		in_use += bytes;
		gsrc_emu_register(at, bytes);
	}
	*to = at;
	return OK;
}

static CUresult release(const char *call, void *p, int host) {
	CUresult r = enter(call);
	if (r)
		return r;
	if (capturing_here(call))
		return CAPTURE_UNSUPPORTED;
	struct block *b = holding(p);
	if (!b || b->at != p || b->host != host) {
		record_violation("%s: %p was not allocated", call, p);
		return INVALID_VALUE;
	}
	if (b->freed) {
		record_violation("%s: block %ld of %zu bytes is freed twice", call, b->number, b->bytes);
		return INVALID_VALUE;
	}
	// The driver waits for the work that may use the memory.
	r = finish_all(current);
	if (!r)
		drop(b);
	return r;
}

API CUresult cuMemAlloc_v2(void **to, size_t bytes) { LOCKED(allocate("cuMemAlloc", to, bytes, 0)); }
API CUresult cuMemFree_v2(void *p) { LOCKED(release("cuMemFree", p, 0)); }
API CUresult cuMemHostAlloc(void **to, size_t bytes, unsigned flags) { LOCKED(allocate("cuMemHostAlloc", to, bytes, 1)); }
API CUresult cuMemFreeHost(void *p) { LOCKED(release("cuMemFreeHost", p, 1)); }

static CUresult info(size_t *free_bytes, size_t *total) {
	CUresult r = enter("cuMemGetInfo");
	if (r)
		return r;
	*free_bytes = (size_t)set.memory - in_use;
	*total = (size_t)set.memory;
	return OK;
}

API CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total) { LOCKED(info(free_bytes, total)); }
