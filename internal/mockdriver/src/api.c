// The process, its devices and contexts, and the names of errors.
#define _GNU_SOURCE
#include "mockdriver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 16 };
static struct context *primary[MAX_DEVICES];

// enter begins a call that needs a context.
CUresult enter(const char *call) {
	if (!initialized)
		return NOT_INITIALIZED;
	if (device_lost)
		return DEVICE_UNAVAILABLE;
	if (!current) {
		record_violation("%s: no context is current on this thread", call);
		return INVALID_CONTEXT;
	}
	if (current->o.dead) {
		record_violation("%s: the context was released", call);
		return CONTEXT_IS_DESTROYED;
	}
	return current->poison;
}

static CUresult alive(void) { return !initialized ? NOT_INITIALIZED : device_lost ? DEVICE_UNAVAILABLE : OK; }

static CUresult begin(unsigned flags) {
	if (flags)
		return INVALID_VALUE;
	if (set.devices < 1)
		return NO_DEVICE;
	initialized = 1;
	return device_lost ? DEVICE_UNAVAILABLE : OK;
}

API CUresult cuInit(unsigned flags) { LOCKED(begin(flags)); }

API CUresult cuDriverGetVersion(int *version) {
	*version = (int)set.version;
	return OK;
}

static CUresult device(int d) {
	CUresult r = alive();
	return r ? r : d < 0 || d >= set.devices || d >= MAX_DEVICES ? INVALID_DEVICE : OK;
}

static CUresult count(int *n) {
	*n = (int)set.devices;
	return alive();
}

static CUresult name(char *text, int size, int d) {
	CUresult r = device(d);
	if (!r)
		snprintf(text, size, "gsrc mock driver");
	return r;
}

static CUresult total(size_t *bytes, int d) {
	*bytes = (size_t)set.memory;
	return device(d);
}

static CUresult attribute(int *value, int which, int d) {
	switch (which) {
	case 1: // threads of a block
		*value = 1024;
		break;
	case 8: // bytes of shared memory of a block
		*value = 48 << 10;
		break;
	case 10: // threads of a warp
		*value = 32;
		break;
	case 16: // multiprocessors
		*value = 2;
		break;
	case 75:
		*value = (int)set.capability / 10;
		break;
	case 76:
		*value = (int)set.capability % 10;
		break;
	default:
		record_violation("cuDeviceGetAttribute: attribute %d is not in the mock driver", which);
		return INVALID_VALUE;
	}
	return device(d);
}

API CUresult cuDeviceGetCount(int *n) { LOCKED(count(n)); }
API CUresult cuDeviceGet(int *to, int ordinal) { LOCKED((*to = ordinal, device(ordinal))); }
API CUresult cuDeviceGetName(char *text, int size, int d) { LOCKED(name(text, size, d)); }
API CUresult cuDeviceTotalMem_v2(size_t *bytes, int d) { LOCKED(total(bytes, d)); }
API CUresult cuDeviceGetAttribute(int *value, int which, int d) { LOCKED(attribute(value, which, d)); }

static CUresult retain(void **to, int d) {
	CUresult r = device(d);
	if (r)
		return r;
	struct context *c = primary[d];
	if (!c || c->o.dead) {
		c = create(CONTEXT, sizeof *c);
		c->o.context = c;
		c->device = d;
		primary[d] = c;
	}
	if (!c->users++)
		note("context of device %d taken", d);
	*to = c;
	return OK;
}

// release frees all that is in the context with its last user. What a sound
// program could have freed itself is a leak.
static CUresult release(int d) {
	if (!initialized || d < 0 || d >= MAX_DEVICES)
		return INVALID_DEVICE;
	struct context *c = primary[d];
	if (!c || c->o.dead || !c->users) {
		record_violation("cuDevicePrimaryCtxRelease: the context of device %d is not in use", d);
		return INVALID_CONTEXT;
	}
	if (--c->users)
		return OK;
	static char text[1 << 14];
	finish_all(c);
	int left = list_live(c, text, sizeof text);
	if (left && !device_lost && !c->poison)
		record_violation("%d things are left in the context of device %d:\n%s", left, d, text);
	note("context of device %d released, %d left", d, left);
	for (struct object *o = objects_first(); o; o = o->next)
		if (o->context == c)
			o->dead = 1;
	memory_drop(c);
	return device_lost ? DEVICE_UNAVAILABLE : c->poison;
}

static CUresult set_current(void *context) {
	if (!initialized)
		return NOT_INITIALIZED;
	if (context && !known(context, CONTEXT, "cuCtxSetCurrent"))
		return INVALID_CONTEXT;
	current = context;
	return OK;
}

static CUresult synchronize(void) {
	CUresult r = enter("cuCtxSynchronize");
	if (r)
		return r;
	return capturing_here("cuCtxSynchronize") ? CAPTURE_UNSUPPORTED : finish_all(current);
}

API CUresult cuDevicePrimaryCtxRetain(void **to, int d) { LOCKED(retain(to, d)); }
API CUresult cuDevicePrimaryCtxRelease_v2(int d) { LOCKED(release(d)); }
API CUresult cuCtxSetCurrent(void *context) { LOCKED(set_current(context)); }
API CUresult cuCtxSynchronize(void) { LOCKED(synchronize()); }

static const struct {
	CUresult code;
	const char *name, *text;
} errors[] = {
	{OK, "CUDA_SUCCESS", "no error"},
	{INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{DEVICE_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable"},
	{NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
	{UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the provided PTX was compiled with an unsupported toolchain."},
	{INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
	{NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
	{LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
	{CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
	{LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
	{CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
	{CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "attempt to terminate a thread-local capture sequence from another thread"},
	{UPDATE_FAILURE, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph update was not performed because it included changes which violated constraints specific to instantiated graph update"},
};

static CUresult words(CUresult code, const char **to, int name) {
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].code == code) {
			*to = name ? errors[i].name : errors[i].text;
			return OK;
		}
	*to = NULL;
	return INVALID_VALUE;
}

API CUresult cuGetErrorName(CUresult code, const char **to) { return words(code, to, 1); }
API CUresult cuGetErrorString(CUresult code, const char **to) { return words(code, to, 0); }
