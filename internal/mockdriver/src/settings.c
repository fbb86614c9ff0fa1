// What tests set: faults, sizes and the seed; and what the mock driver has to say.
#define _GNU_SOURCE
#include "mockdriver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct settings defaults = {
	.devices = 1, .memory = 8LL << 30, .version = 12040, .capability = 90, .seed = 1,
	.fail_alloc = 0, .fail_launch = 0, .device_lost = 0,
};

struct settings set;
struct counts counts;
int device_lost;
int initialized;

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
__thread struct context *current;

static uint64_t state;
static char violations[1 << 16];
static size_t violations_used;
static int violation_count;
static FILE *report;

// draw returns random bits, by splitmix64.
uint64_t draw(void) {
	uint64_t z = (state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void append(const char *word, const char *format, va_list list) {
	char line[1024];
	vsnprintf(line, sizeof line, format, list);
	if (report) {
		fprintf(report, "%s%s\n", word, line);
		fflush(report);
	}
	if (!*word)
		return;
	violation_count++;
	int n = snprintf(violations + violations_used, sizeof violations - violations_used, "%s\n", line);
	if (n > 0 && violations_used + n < sizeof violations)
		violations_used += n;
}

// record_violation records a use of the driver that is wrong, whatever becomes of the error
// that the call returns.
void record_violation(const char *format, ...) {
	va_list list;
	va_start(list, format);
	append("violation: ", format, list);
	va_end(list);
}

// note writes a line into the report file only.
void note(const char *format, ...) {
	va_list list;
	va_start(list, format);
	append("", format, list);
	va_end(list);
}

static const struct {
	const char *name;
	size_t offset;
} names[] = {
	{"devices", offsetof(struct settings, devices)},         // how many there are
	{"memory", offsetof(struct settings, memory)},           // bytes of each
	{"version", offsetof(struct settings, version)},         // of the driver, 12040 for 12.4
	{"capability", offsetof(struct settings, capability)},   // 90 for 9.0
	{"seed", offsetof(struct settings, seed)},               // of the order of streams and threads
	{"fail_alloc", offsetof(struct settings, fail_alloc)},   // the n-th allocation from now has no room
	{"fail_launch", offsetof(struct settings, fail_launch)}, // the n-th kernel done from now fails
	{"device_lost", offsetof(struct settings, device_lost)},           // the device is gone after n kernels from now
};

static int assign(const char *name, long long value) {
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i].name)) {
			*(long long *)((char *)&set + names[i].offset) = value;
			if (!strcmp(name, "seed")) {
				state = (uint64_t)value;
				gsrc_emu_seed((uint64_t)value);
			}
			return 0;
		}
	return -1;
}

// gsrc_mockdriver_set changes a setting; -1 if there is none of that name.
API int gsrc_mockdriver_set(const char *name, long long value) {
	pthread_mutex_lock(&lock);
	int r = assign(name, value);
	pthread_mutex_unlock(&lock);
	return r;
}

static const struct {
	const char *name;
	long long *count;
} counted[] = {
	{"launches", &counts.launches},     // kernels, also those that are captured
	{"recordings", &counts.recordings}, // graphs instantiated
	{"replays", &counts.replays},       // graphs launched
	{"uploads", &counts.uploads},       // copies from the host
	{"downloads", &counts.downloads},   // copies to the host
	{"pageable", &counts.pageable},     // those of both with memory that is not page-locked
};

// gsrc_mockdriver_count returns a count since the last reset; -1 if there is none of that
// name.
API long long gsrc_mockdriver_count(const char *name) {
	long long n = -1;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
		if (!strcmp(name, counted[i].name))
			n = *counted[i].count;
	pthread_mutex_unlock(&lock);
	return n;
}

static void defaults_and_environment(void) {
	set = defaults;
	assign("seed", set.seed);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char key[64] = "GSRC_MOCKDRIVER_";
		char *p = key + strlen(key);
		for (const char *q = names[i].name; *q; q++)
			*p++ = *q >= 'a' && *q <= 'z' ? *q - 'a' + 'A' : *q;
		*p = 0;
		const char *value = getenv(key);
		if (value)
			assign(names[i].name, atoll(value));
	}
}

__attribute__((constructor)) static void begin(void) {
	const char *path = getenv("GSRC_MOCKDRIVER_REPORT");
	if (path)
		report = fopen(path, "a");
	defaults_and_environment();
}

// gsrc_mockdriver_live counts what was made and not destroyed, and lists it.
API int gsrc_mockdriver_live(char *text, size_t size) {
	pthread_mutex_lock(&lock);
	int n = list_live(NULL, text, size);
	pthread_mutex_unlock(&lock);
	return n;
}

// gsrc_mockdriver_violations counts what was done wrong since the last reset, and lists it.
API int gsrc_mockdriver_violations(char *text, size_t size) {
	pthread_mutex_lock(&lock);
	snprintf(text, size, "%s", violations);
	int n = violation_count;
	pthread_mutex_unlock(&lock);
	return n;
}

// gsrc_mockdriver_reset makes the process as new: no objects, no memory, no faults.
// Handles and addresses from before are dead.
API void gsrc_mockdriver_reset(void) {
	pthread_mutex_lock(&lock);
	for (struct object *o = objects_first(); o; o = o->next)
		o->dead = 1;
	memory_reset();
	violations[0] = 0;
	violations_used = 0;
	violation_count = 0;
	counts = (struct counts){0};
	device_lost = 0;
	initialized = 0;
	defaults_and_environment();
	pthread_mutex_unlock(&lock);
}
