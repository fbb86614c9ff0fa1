// The mock driver for NVIDIA's driver: what its files share.
//
// Device memory is memory of the host, kernels run through the emulator, and work
// is done only where the driver would have to have done it: see queue.c.
#ifndef MOCKDRIVER_H
#define MOCKDRIVER_H

#include <stddef.h>
#include <stdint.h>
#include <pthread.h>

#define API __attribute__((visibility("default")))

typedef int CUresult;

enum {
	OK = 0,
	INVALID_VALUE = 1,
	OUT_OF_MEMORY = 2,
	NOT_INITIALIZED = 3,
	DEVICE_UNAVAILABLE = 46,
	NO_DEVICE = 100,
	INVALID_DEVICE = 101,
	INVALID_IMAGE = 200,
	INVALID_CONTEXT = 201,
	INVALID_PTX = 218,
	UNSUPPORTED_PTX_VERSION = 222,
	INVALID_HANDLE = 400,
	ILLEGAL_STATE = 401,
	NOT_FOUND = 500,
	NOT_READY = 600,
	ILLEGAL_ADDRESS = 700,
	LAUNCH_OUT_OF_RESOURCES = 701,
	CONTEXT_IS_DESTROYED = 709,
	LAUNCH_FAILED = 719,
	NOT_SUPPORTED = 801,
	CAPTURE_UNSUPPORTED = 900,
	CAPTURE_INVALIDATED = 901,
	CAPTURE_WRONG_THREAD = 908,
	UPDATE_FAILURE = 910,
};

// Every handle points to an object. Memory of a destroyed object is kept, so that
// its use can be told.
enum kind { CONTEXT = 1, STREAM, EVENT, MODULE, FUNCTION, GRAPH, EXEC, KINDS };

struct object {
	enum kind kind;
	int dead;
	struct context *context;
	struct object *next;
	long number;
};

enum { MAX_PARAMS = 128 };

struct function {
	struct object o;
	char *name;
	int params;
	int sizes[MAX_PARAMS]; // bytes of each parameter
	int max_threads;       // of a block, or 0
	unsigned required[3];  // block, or zeros
	int shared;            // bytes that every block has
};

struct module {
	struct object o;
	struct function **functions;
	int count;
};

enum op_kind { KERNEL, TO_DEVICE, TO_HOST, WITHIN, FILL, HOST_CALL, RECORD, WAIT };

// An op is a piece of queued or recorded work.
struct op {
	enum op_kind kind;
	struct op *next;
	// kernel
	struct function *function;
	unsigned grid[3], block[3], shared;
	uint64_t *args;
	// copies and fills
	char *dst, *src;
	size_t bytes;
	int value;
	char *copy; // of a source that is not page-locked
	// a call of the mock driver cuBLAS, on a copy of its arguments
	int (*call)(void *);
	void *call_args;
	size_t call_bytes;
	// events
	struct event *event;
	long recording;
};

struct event {
	struct object o;
	long recordings, done; // how often it was queued, and how often it came by
	double at;             // milliseconds
};

struct graph {
	struct object o;
	struct op *first, **last;
	int count;
};

struct exec {
	struct object o;
	struct op *first, **last;
	int count;
};

struct stream {
	struct object o;
	struct op *first, **last;
	// capture
	struct graph *graph; // not null while capturing
	int invalid, mode;
	pthread_t thread;
};

struct context {
	struct object o;
	int device, users;
	CUresult poison; // what every call returns after a kernel failed
};

extern pthread_mutex_t lock;
extern __thread struct context *current;

// settings.c
struct settings {
	long long devices, memory, version, capability, seed, fail_alloc, fail_launch, device_lost;
};
extern struct settings set;

// What was asked for since the last reset.
struct counts {
	long long launches, recordings, replays, uploads, downloads, pageable;
};
extern struct counts counts;
extern int device_lost;
extern int initialized;
void record_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t draw(void);

#define LOCKED(e)                    \
	pthread_mutex_lock(&lock);   \
	CUresult result = (e);       \
	pthread_mutex_unlock(&lock); \
	return result

// objects.c
void *create(enum kind kind, size_t bytes);
void *known(void *handle, enum kind kind, const char *call);
void destroy(struct object *o);
int list_live(struct context *context, char *text, size_t size);
struct object *objects_first(void);

// memory.c
int in_memory(const void *p, size_t bytes);
int page_locked(const void *p, size_t bytes);
int memory_live(struct context *context, char *text, size_t size);
void memory_drop(struct context *c);
void memory_reset(void);

// queue.c
CUresult push(struct stream *s, struct op *op);
CUresult finish(struct stream *s);
CUresult finish_all(struct context *c);
int capturing_here(const char *call);
void *copy_of(const void *p, size_t bytes);
void free_ops(struct op *op);

// api.c
CUresult enter(const char *call);

// The emulator.
int gsrc_emu_launch(const char *kernel, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, void **params);
const char *gsrc_emu_error(void);
int gsrc_emu_params(const char *kernel, unsigned char bytes[128]); // how many, and their sizes; -1 if there is no such kernel
void gsrc_emu_register(const void *at, size_t bytes);
void gsrc_emu_unregister(const void *at);
void gsrc_emu_seed(uint64_t seed);

#endif
