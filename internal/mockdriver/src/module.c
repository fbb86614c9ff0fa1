// Modules: the PTX is read for its kernels and their parameters, and the kernels
// themselves are the emulator's.
#define _GNU_SOURCE
#include "mockdriver.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *without_comments(const char *ptx) {
	char *out = malloc(strlen(ptx) + 1), *p = out;
	while (*ptx)
		if (ptx[0] == '/' && ptx[1] == '/')
			while (*ptx && *ptx != '\n')
				ptx++;
		else if (ptx[0] == '/' && ptx[1] == '*') {
			const char *end = strstr(ptx + 2, "*/");
			ptx = end ? end + 2 : ptx + strlen(ptx);
			*p++ = ' ';
		} else
			*p++ = *ptx++;
	*p = 0;
	return out;
}

// parameter reads ".param .u64 name" or ".param .align 8 .b8 name[16]" and returns
// the bytes, or 0.
static int parameter(const char *p, const char *end) {
	int bytes = 0;
	for (; p < end; p++) {
		if (*p == '.' && strchr("usbf", p[1]) && isdigit((unsigned char)p[2]))
			bytes = atoi(p + 2) / 8;
		if (*p == '[')
			bytes *= atoi(p + 1);
	}
	return bytes;
}

// shared_bytes adds up the shared memory that a kernel's body declares, as in
// ".shared .align 16 .b8 tile[4224];".
static int shared_bytes(const char *body) {
	int depth = 0, sum = 0;
	for (const char *p = body; *p; p++) {
		depth += (*p == '{') - (*p == '}');
		if (!depth)
			break;
		if (strncmp(p, ".shared", 7) || !isspace((unsigned char)p[7]))
			continue;
		const char *end = p + strcspn(p, ";\n");
		sum += parameter(p + 7, end);
	}
	return sum;
}

static struct function *entry(const char **at, char *log, size_t size) {
	const char *p = *at + strlen(".entry");
	while (isspace((unsigned char)*p))
		p++;
	const char *name = p;
	while (isalnum((unsigned char)*p) || *p == '_' || *p == '$')
		p++;
	struct function *f = create(FUNCTION, sizeof *f);
	f->o.dead = 1;
	f->name = strndup(name, p - name);
	while (isspace((unsigned char)*p))
		p++;
	if (*p == '(') {
		const char *close = strchr(p, ')');
		if (!close)
			return NULL;
		for (const char *q = p; (q = strstr(q, ".param")) && q < close;) {
			const char *end = strchr(q, ',');
			if (!end || end > close)
				end = close;
			int bytes = parameter(q + strlen(".param"), end);
			if (bytes < 1 || bytes > 8 || f->params == MAX_PARAMS) {
				snprintf(log, size, "ptxas : the mock driver takes parameters of 1 to 8 bytes: kernel %s, parameter %d", f->name, f->params);
				return NULL;
			}
			f->sizes[f->params++] = bytes;
			q = end;
		}
		p = close + 1;
	}
	const char *body = strchr(p, '{');
	if (!body)
		return NULL;
	for (const char *q = p; q < body; q++) {
		unsigned n[3] = {1, 1, 1};
		if (sscanf(q, ".maxntid %u , %u , %u", &n[0], &n[1], &n[2]) >= 1)
			f->max_threads = n[0] * n[1] * n[2];
		if (sscanf(q, ".reqntid %u , %u , %u", &n[0], &n[1], &n[2]) >= 1)
			memcpy(f->required, n, sizeof n);
	}
	f->shared = shared_bytes(body);
	*at = body;
	return f;
}

static CUresult parse(struct module *m, const char *text, char *log, size_t size) {
	int major = 0, minor = 0, target = 0;
	const char *version = strstr(text, ".version"), *sm = strstr(text, ".target");
	if (!version || sscanf(version, ".version %d.%d", &major, &minor) != 2) {
		snprintf(log, size, "error   : Binary format for key='0', ident='' is not recognized"); // as CUDA 13.0 has it
		return INVALID_IMAGE;
	}
	if (major * 10 + minor > (set.version >= 12000 ? 84 : 75)) {
		snprintf(log, size, "ptxas application ptx input, line 1; fatal   : Unsupported .version %d.%d", major, minor);
		return UNSUPPORTED_PTX_VERSION;
	}
	if (!sm || sscanf(sm, ".target sm_%d", &target) != 1) {
		snprintf(log, size, "ptxas application ptx input, line 1; fatal   : Missing .target directive");
		return INVALID_PTX;
	}
	if (target > set.capability) {
		snprintf(log, size, "ptxas application ptx input, line 1; error   : SM version specified by .target is higher than default SM version assumed");
		return INVALID_PTX;
	}
	if (!strstr(text, ".address_size 64")) {
		snprintf(log, size, "ptxas application ptx input, line 1; fatal   : .address_size 64 is missing");
		return INVALID_PTX;
	}
	int depth = 0;
	for (const char *p = text; *p && depth >= 0; p++)
		depth += (*p == '{') - (*p == '}');
	if (depth) {
		snprintf(log, size, "ptxas application ptx input; fatal   : Parsing error near '%s'", depth > 0 ? "end of file" : "}");
		return INVALID_PTX;
	}
	for (const char *p = text; (p = strstr(p, ".entry"));) {
		snprintf(log, size, "ptxas application ptx input; fatal   : Parsing error near '.entry'");
		struct function *f = entry(&p, log, size);
		if (!f)
			return INVALID_PTX;
		log[0] = 0;
		m->functions = realloc(m->functions, (m->count + 1) * sizeof *m->functions);
		m->functions[m->count++] = f;
	}
	return OK;
}

static CUresult module_load(void **to, const char *image, unsigned options, const int *option, void **value) {
	CUresult r = enter("cuModuleLoadDataEx");
	if (r)
		return r;
	if (capturing_here("cuModuleLoadDataEx"))
		return CAPTURE_UNSUPPORTED;
	char *log = NULL, message[512] = "";
	size_t size = 0;
	for (unsigned i = 0; i < options; i++)
		if (option[i] == 5)
			log = value[i];
		else if (option[i] == 6)
			size = (unsigned)(uintptr_t)value[i];
	char *text = without_comments(image);
	struct module *m = create(MODULE, sizeof *m);
	m->o.dead = 1;
	r = parse(m, text, message, sizeof message);
	free(text);
	if (log && size)
		snprintf(log, size, "%s", message);
	if (r)
		return r;
	m->o.dead = 0;
	for (int i = 0; i < m->count; i++)
		m->functions[i]->o.dead = 0;
	*to = m;
	return OK;
}

static CUresult module_unload(void *module) {
	CUresult r = enter("cuModuleUnload");
	if (r)
		return r;
	if (capturing_here("cuModuleUnload"))
		return CAPTURE_UNSUPPORTED;
	struct module *m = known(module, MODULE, "cuModuleUnload");
	if (!m)
		return INVALID_HANDLE;
	r = finish_all(current);
	for (int i = 0; i < m->count; i++)
		destroy(&m->functions[i]->o);
	destroy(&m->o);
	return r;
}

// differs tells whether a kernel's source has other parameters than its PTX.
static int differs(const struct function *f) {
	unsigned char bytes[MAX_PARAMS];
	int n = gsrc_emu_params(f->name, bytes);
	if (n != f->params)
		return 1;
	for (int i = 0; i < n; i++)
		if (bytes[i] != f->sizes[i])
			return 1;
	return 0;
}

static CUresult module_function(void **to, void *module, const char *name) {
	CUresult r = enter("cuModuleGetFunction");
	struct module *m = r ? NULL : known(module, MODULE, "cuModuleGetFunction");
	if (!m)
		return r ? r : INVALID_HANDLE;
	for (int i = 0; i < m->count; i++)
		if (!strcmp(m->functions[i]->name, name)) {
			if (differs(m->functions[i]))
				record_violation("kernel %s: the parameters of its PTX and of its source differ: make ptx", name);
			*to = m->functions[i];
			return OK;
		}
	return NOT_FOUND;
}

static CUresult launch(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared, void *stream, void **params, void **extra) {
	static const unsigned grids[3] = {0x7fffffff, 65535, 65535}, blocks[3] = {1024, 1024, 64};
	CUresult r = enter("cuLaunchKernel");
	struct function *f = r ? NULL : known(function, FUNCTION, "cuLaunchKernel");
	struct stream *s = f ? known(stream, STREAM, "cuLaunchKernel") : NULL;
	if (!s)
		return r ? r : INVALID_HANDLE;
	counts.launches++;
	for (int i = 0; i < 3; i++)
		if (!grid[i] || grid[i] > grids[i] || !block[i] || block[i] > blocks[i]) {
			record_violation("kernel %s: grid %u×%u×%u, block %u×%u×%u is beyond a GPU's limits", f->name, grid[0], grid[1], grid[2], block[0], block[1], block[2]);
			return INVALID_VALUE;
		}
	unsigned long long threads = (unsigned long long)block[0] * block[1] * block[2];
	if (threads > 1024 || shared + f->shared > 48 << 10 || extra) {
		record_violation("kernel %s: %llu threads in a block, %u bytes of shared memory", f->name, threads, shared + f->shared);
		return INVALID_VALUE;
	}
	if ((f->max_threads && threads > (unsigned)f->max_threads) || (f->required[0] && memcmp(f->required, block, sizeof f->required))) {
		record_violation("kernel %s: its PTX does not allow blocks of %llu threads", f->name, threads);
		return LAUNCH_OUT_OF_RESOURCES;
	}
	if (f->params && !params)
		return INVALID_VALUE;
	struct op *op = calloc(1, sizeof *op);
	op->kind = KERNEL;
	op->function = f;
	memcpy(op->grid, grid, sizeof op->grid);
	memcpy(op->block, block, sizeof op->block);
	op->shared = shared;
	op->args = malloc(sizeof *op->args * (f->params + 1));
	// Bytes beyond a parameter's size are not the kernel's, and are made to show.
	memset(op->args, 0xA5, sizeof *op->args * (f->params + 1));
	for (int i = 0; i < f->params; i++) {
		if (!params[i]) {
			record_violation("kernel %s: argument %d has no address", f->name, i);
			free(op->args);
			free(op);
			return INVALID_VALUE;
		}
		memcpy(&op->args[i], params[i], f->sizes[i]);
	}
	return push(s, op);
}

API CUresult cuModuleLoadDataEx(void **to, const void *image, unsigned options, const int *option, void **value) { LOCKED(module_load(to, image, options, option, value)); }
API CUresult cuModuleUnload(void *module) { LOCKED(module_unload(module)); }
API CUresult cuModuleGetFunction(void **to, void *module, const char *name) { LOCKED(module_function(to, module, name)); }
API CUresult cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **extra) {
	LOCKED(launch(f, (unsigned[3]){gx, gy, gz}, (unsigned[3]){bx, by, bz}, shared, stream, params, extra));
}
