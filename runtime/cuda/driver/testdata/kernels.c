// Three kernels, and as much of an emulator as they need: the driver's tests are
// about the driver.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct {
	const char *at;
	size_t bytes;
} ranges[1 << 12];
static int range_count;
static char message[200];

void gsrc_emu_register(const void *at, size_t bytes) {
	ranges[range_count].at = at;
	ranges[range_count++].bytes = bytes;
}

void gsrc_emu_unregister(const void *at) {
	for (int i = 0; i < range_count; i++)
		if (ranges[i].at == at)
			ranges[i--] = ranges[--range_count];
}

void gsrc_emu_seed(uint64_t seed) { (void)seed; }

const char *gsrc_emu_error(void) { return message; }

static const struct {
	const char *name;
	int count;
	unsigned char bytes[8];
} kernels[] = {
	{"test_scale", 4, {8, 8, 4, 4}}, // y[i] = a x[i]
	{"test_mix", 6, {8, 1, 8, 2, 8, 4}}, // out = a + b + c + d + e
	{"test_differs", 1, {4}},
};

int gsrc_emu_params(const char *name, unsigned char bytes[128]) {
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		if (!strcmp(kernels[i].name, name)) {
			memcpy(bytes, kernels[i].bytes, kernels[i].count);
			return kernels[i].count;
		}
	return -1;
}

static int held(const void *p, size_t bytes) {
	for (int i = 0; i < range_count; i++)
		if ((char *)p >= ranges[i].at && (char *)p + bytes <= ranges[i].at + ranges[i].bytes)
			return 1;
	snprintf(message, sizeof message, "%zu bytes outside of all memory", bytes);
	return 0;
}

int gsrc_emu_launch(const char *name, const unsigned grid[3], const unsigned block[3], unsigned shared, void **p) {
	(void)shared;
	if (!strcmp(name, "test_scale")) {
		float *y = *(float **)p[0], *x = *(float **)p[1], a = *(float *)p[2];
		int n = *(int *)p[3];
		if (!held(x, 4 * (size_t)n) || !held(y, 4 * (size_t)n))
			return 1;
		for (unsigned i = 0; i < grid[0] * block[0] && (int)i < n; i++)
			y[i] = a * x[i];
		return 0;
	}
	if (!strcmp(name, "test_mix")) {
		double *out = *(double **)p[0];
		if (!held(out, 8))
			return 1;
		*out = *(int8_t *)p[1] + (double)*(int64_t *)p[2] + *(int16_t *)p[3] + *(double *)p[4] + *(float *)p[5];
		return 0;
	}
	snprintf(message, sizeof message, "there is no kernel %s", name);
	return 1;
}
