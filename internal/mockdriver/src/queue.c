// Streams. Work is done as late as the driver may do it: at a synchronization, at a
// copy to memory that is not page-locked, at a free; now and then, by the seed, at
// once, and streams take turns by the seed. So what lacks a synchronization or an
// event reads wrong values.
#define _GNU_SOURCE
#include "mockdriver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

void *copy_of(const void *p, size_t bytes) {
	void *q = malloc(bytes ? bytes : 1);
	memcpy(q, p, bytes);
	return q;
}

static void free_op(struct op *op) {
	free(op->args);
	free(op->copy);
	free(op->call_args);
	free(op);
}

void free_ops(struct op *op) {
	while (op) {
		struct op *next = op->next;
		free_op(op);
		op = next;
	}
}

static struct op *copy_op(const struct op *op) {
	struct op *c = copy_of(op, sizeof *op);
	c->next = NULL;
	if (op->args)
		c->args = copy_of(op->args, sizeof *op->args * op->function->params);
	if (op->copy)
		c->copy = copy_of(op->copy, op->bytes);
	if (op->call_args)
		c->call_args = copy_of(op->call_args, op->call_bytes);
	return c;
}

static CUresult bad_range(const struct op *op) {
	record_violation("work that was queued or captured uses %zu bytes of memory that is not allocated any more", op->bytes);
	return ILLEGAL_ADDRESS;
}

static CUresult run_kernel(struct op *op) {
	if (op->function->o.dead) {
		record_violation("kernel %s runs after its module was unloaded", op->function->name);
		return ILLEGAL_ADDRESS;
	}
	if (set.fail_launch > 0 && --set.fail_launch == 0)
		return LAUNCH_FAILED;
	void *params[MAX_PARAMS + 1];
	for (int i = 0; i < op->function->params; i++)
		params[i] = &op->args[i];
	int r = gsrc_emu_launch(op->function->name, op->grid, op->block, op->shared, params);
	if (set.device_lost > 0 && --set.device_lost == 0)
		device_lost = 1;
	if (r) {
		record_violation("kernel %s: %s", op->function->name, gsrc_emu_error());
		return ILLEGAL_ADDRESS;
	}
	return OK;
}

static CUresult run(struct op *op) {
	struct timespec t;
	switch (op->kind) {
	case KERNEL:
		return run_kernel(op);
	case TO_DEVICE:
		if (!in_memory(op->dst, op->bytes) || (!op->copy && !page_locked(op->src, op->bytes)))
			return bad_range(op);
		memcpy(op->dst, op->copy ? op->copy : op->src, op->bytes);
		return OK;
	case TO_HOST:
		if (!in_memory(op->src, op->bytes))
			return bad_range(op);
		memcpy(op->dst, op->src, op->bytes);
		return OK;
	case WITHIN:
		if (!in_memory(op->dst, op->bytes) || !in_memory(op->src, op->bytes))
			return bad_range(op);
		memcpy(op->dst, op->src, op->bytes);
		return OK;
	case FILL:
		if (!in_memory(op->dst, op->bytes))
			return bad_range(op);
		memset(op->dst, op->value, op->bytes);
		return OK;
	case HOST_CALL:
		return op->call(op->call_args);
	case RECORD:
		clock_gettime(CLOCK_MONOTONIC, &t);
		op->event->at = t.tv_sec * 1e3 + t.tv_nsec * 1e-6;
		op->event->done = op->recording;
		return OK;
	case WAIT:
		return OK;
	}
	return NOT_SUPPORTED;
}

static int runnable(struct stream *s) {
	// Where the device failed, work is dropped, and nobody waits for it.
	return s->first && (device_lost || s->o.context->poison || s->first->kind != WAIT || s->first->event->done >= s->first->recording);
}

static void step(struct stream *s) {
	struct op *op = s->first;
	s->first = op->next;
	if (!s->first)
		s->last = &s->first;
	if (!device_lost && !s->o.context->poison)
		s->o.context->poison = run(op);
	free_op(op);
}

// any picks a stream that can go on, by the seed.
static struct stream *any(struct context *c) {
	struct stream *list[256];
	int n = 0;
	for (struct object *o = objects_first(); o; o = o->next)
		// The work of a destroyed stream is still done.
		if (o->kind == STREAM && o->context == c && runnable((struct stream *)o) && n < 256)
			list[n++] = (struct stream *)o;
	return n ? list[draw() % n] : NULL;
}

// finish does all work of a stream, and of others as much as happens.
CUresult finish(struct stream *s) {
	while (s->first) {
		struct stream *next = s;
		if (!runnable(s) || draw() % 4 == 0)
			next = any(s->o.context);
		step(next);
	}
	return device_lost ? DEVICE_UNAVAILABLE : s->o.context->poison;
}

// finish_all does all work of a context.
CUresult finish_all(struct context *c) {
	for (struct stream *s; (s = any(c));)
		step(s);
	return device_lost ? DEVICE_UNAVAILABLE : c->poison;
}

// push queues an operation, or records it where the stream is being captured.
CUresult push(struct stream *s, struct op *op) {
	op->next = NULL;
	if (s->graph) {
		if (s->invalid) {
			free_op(op);
			return CAPTURE_INVALIDATED;
		}
		*s->graph->last = op;
		s->graph->last = &op->next;
		s->graph->count++;
		return OK;
	}
	*s->last = op;
	s->last = &op->next;
	if (draw() % 16 == 0)
		return finish(s);
	return OK;
}

// capturing_here tells whether a capture forbids a call, which ends the capture.
int capturing_here(const char *call) {
	for (struct object *o = objects_first(); o; o = o->next) {
		struct stream *s = (struct stream *)o;
		if (o->kind != STREAM || o->dead || !s->graph)
			continue;
		if (s->mode == 0 || (s->mode == 1 && pthread_equal(s->thread, pthread_self()))) {
			record_violation("%s: not allowed while a stream is captured", call);
			s->invalid = 1;
			return 1;
		}
	}
	return 0;
}

static struct stream *stream_of(void *handle, const char *call, CUresult *r) {
	struct stream *s = NULL;
	*r = enter(call);
	if (!*r && !(s = known(handle, STREAM, call)))
		*r = INVALID_HANDLE;
	return s;
}

#define STREAM_CALL(name)                               \
	CUresult r;                                     \
	struct stream *s = stream_of(handle, name, &r); \
	if (r)                                          \
	return r

static struct op *new_op(enum op_kind kind) {
	struct op *op = calloc(1, sizeof *op);
	op->kind = kind;
	return op;
}

static CUresult copy(void *handle, enum op_kind kind, void *dst, void *src, size_t bytes) {
	static const char *const calls[] = {[TO_DEVICE] = "cuMemcpyHtoDAsync", [TO_HOST] = "cuMemcpyDtoHAsync", [WITHIN] = "cuMemcpyDtoDAsync"};
	STREAM_CALL(calls[kind]);
	if ((kind != TO_HOST && !in_memory(dst, bytes)) || (kind != TO_DEVICE && !in_memory(src, bytes))) {
		record_violation("%s: %zu bytes are not within one allocation of the device", calls[kind], bytes);
		return INVALID_VALUE;
	}
	if (kind == WITHIN && (char *)dst < (char *)src + bytes && (char *)src < (char *)dst + bytes) {
		record_violation("%s: the %zu bytes overlap", calls[kind], bytes);
		return INVALID_VALUE;
	}
	struct op *op = new_op(kind);
	op->dst = dst;
	op->src = src;
	op->bytes = bytes;
	counts.uploads += kind == TO_DEVICE;
	counts.downloads += kind == TO_HOST;
	int pageable = (kind == TO_DEVICE && !page_locked(src, bytes)) || (kind == TO_HOST && !page_locked(dst, bytes));
	counts.pageable += pageable;
	if (!pageable)
		return push(s, op);
	if (s->graph) {
		record_violation("%s: memory that is not page-locked in a captured graph", calls[kind]);
		s->invalid = 1;
		free_op(op);
		return CAPTURE_UNSUPPORTED;
	}
	if (kind == TO_DEVICE)
		op->copy = copy_of(src, bytes);
	if ((r = push(s, op)) || kind == TO_DEVICE)
		return r;
	return finish(s); // the driver returns when such a copy is done
}

API CUresult cuMemcpyHtoDAsync_v2(void *dst, void *src, size_t bytes, void *stream) { LOCKED(copy(stream, TO_DEVICE, dst, src, bytes)); }
API CUresult cuMemcpyDtoHAsync_v2(void *dst, void *src, size_t bytes, void *stream) { LOCKED(copy(stream, TO_HOST, dst, src, bytes)); }
API CUresult cuMemcpyDtoDAsync_v2(void *dst, void *src, size_t bytes, void *stream) { LOCKED(copy(stream, WITHIN, dst, src, bytes)); }

static CUresult fill(void *handle, void *dst, unsigned char value, size_t bytes) {
	STREAM_CALL("cuMemsetD8Async");
	if (!in_memory(dst, bytes)) {
		record_violation("cuMemsetD8Async: %zu bytes are not within one allocation of the device", bytes);
		return INVALID_VALUE;
	}
	struct op *op = new_op(FILL);
	op->dst = dst;
	op->value = value;
	op->bytes = bytes;
	return push(s, op);
}

API CUresult cuMemsetD8Async(void *dst, unsigned char value, size_t bytes, void *stream) { LOCKED(fill(stream, dst, value, bytes)); }

// gsrc_mockdriver_call queues a call on a copy of its arguments; the mock driver cuBLAS
// uses it. The call's result is 0 or a CUresult that the context fails with.
static CUresult queue_call(void *handle, int (*call)(void *), const void *args, size_t bytes) {
	STREAM_CALL("cublasSgemm");
	struct op *op = new_op(HOST_CALL);
	op->call = call;
	op->call_args = copy_of(args, bytes);
	op->call_bytes = bytes;
	return push(s, op);
}

API int gsrc_mockdriver_call(void *stream, int (*call)(void *), const void *args, size_t bytes) { LOCKED(queue_call(stream, call, args, bytes)); }

// gsrc_mockdriver_in_memory is for a call that is being done.
API int gsrc_mockdriver_in_memory(const void *p, size_t bytes) { return in_memory(p, bytes); }

static CUresult stream_create(void **to, unsigned flags) {
	CUresult r = enter("cuStreamCreate");
	if (r)
		return r;
	if (!to || flags > 1)
		return INVALID_VALUE;
	struct stream *s = create(STREAM, sizeof *s);
	s->last = &s->first;
	*to = s;
	return OK;
}

static CUresult stream_destroy(void *handle) {
	STREAM_CALL("cuStreamDestroy");
	if (s->graph) {
		record_violation("cuStreamDestroy: stream %ld is being captured", s->o.number);
		return ILLEGAL_STATE;
	}
	destroy(&s->o);
	return OK;
}

static CUresult stream_synchronize(void *handle) {
	STREAM_CALL("cuStreamSynchronize");
	if (s->graph) {
		record_violation("cuStreamSynchronize: stream %ld is being captured", s->o.number);
		s->invalid = 1;
		return CAPTURE_UNSUPPORTED;
	}
	return finish(s);
}

API CUresult cuStreamCreate(void **to, unsigned flags) { LOCKED(stream_create(to, flags)); }
API CUresult cuStreamDestroy_v2(void *stream) { LOCKED(stream_destroy(stream)); }
API CUresult cuStreamSynchronize(void *stream) { LOCKED(stream_synchronize(stream)); }

static CUresult event_create(void **to, unsigned flags) {
	CUresult r = enter("cuEventCreate");
	if (r)
		return r;
	if (!to || flags > 7)
		return INVALID_VALUE;
	*to = create(EVENT, sizeof(struct event));
	return OK;
}

static CUresult mark(void *handle, void *event, enum op_kind kind) {
	const char *call = kind == RECORD ? "cuEventRecord" : "cuStreamWaitEvent";
	STREAM_CALL(call);
	struct event *e = known(event, EVENT, call);
	if (!e)
		return INVALID_HANDLE;
	if (s->graph) {
		record_violation("%s: events in a captured graph are not in the mock driver", call);
		s->invalid = 1;
		return CAPTURE_UNSUPPORTED;
	}
	struct op *op = new_op(kind);
	op->event = e;
	op->recording = kind == RECORD ? ++e->recordings : e->recordings;
	return push(s, op);
}

static CUresult event_synchronize(void *event) {
	CUresult r = enter("cuEventSynchronize");
	if (r)
		return r;
	if (capturing_here("cuEventSynchronize"))
		return CAPTURE_UNSUPPORTED;
	struct event *e = known(event, EVENT, "cuEventSynchronize");
	if (!e)
		return INVALID_HANDLE;
	for (struct stream *s; e->done < e->recordings && (s = any(current));)
		step(s);
	return device_lost ? DEVICE_UNAVAILABLE : current->poison;
}

static CUresult event_elapsed(float *ms, void *start, void *end) {
	CUresult r = enter("cuEventElapsedTime");
	if (r)
		return r;
	struct event *a = known(start, EVENT, "cuEventElapsedTime"), *b = known(end, EVENT, "cuEventElapsedTime");
	if (!a || !b || !a->recordings || !b->recordings)
		return INVALID_HANDLE;
	if (a->done < a->recordings || b->done < b->recordings)
		return NOT_READY;
	*ms = (float)(b->at - a->at);
	return OK;
}

static CUresult event_destroy(void *event) {
	CUresult r = enter("cuEventDestroy");
	struct event *e = r ? NULL : known(event, EVENT, "cuEventDestroy");
	if (!e)
		return r ? r : INVALID_HANDLE;
	destroy(&e->o);
	return OK;
}

API CUresult cuEventCreate(void **to, unsigned flags) { LOCKED(event_create(to, flags)); }
API CUresult cuEventDestroy_v2(void *event) { LOCKED(event_destroy(event)); }
API CUresult cuEventRecord(void *event, void *stream) { LOCKED(mark(stream, event, RECORD)); }
API CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) { LOCKED(flags ? INVALID_VALUE : mark(stream, event, WAIT)); }
API CUresult cuEventSynchronize(void *event) { LOCKED(event_synchronize(event)); }
API CUresult cuEventElapsedTime(float *ms, void *start, void *end) { LOCKED(event_elapsed(ms, start, end)); }

static CUresult capture_begin(void *handle, int mode) {
	STREAM_CALL("cuStreamBeginCapture");
	if (s->graph) {
		record_violation("cuStreamBeginCapture: stream %ld is being captured", s->o.number);
		return ILLEGAL_STATE;
	}
	s->graph = create(GRAPH, sizeof *s->graph);
	s->graph->o.dead = 1; // until it is handed out
	s->graph->last = &s->graph->first;
	s->mode = mode;
	s->invalid = 0;
	s->thread = pthread_self();
	return OK;
}

static CUresult capture_end(void *handle, void **to) {
	STREAM_CALL("cuStreamEndCapture");
	struct graph *g = s->graph;
	if (!g) {
		record_violation("cuStreamEndCapture: stream %ld is not being captured", s->o.number);
		return ILLEGAL_STATE;
	}
	if (s->mode != 2 && !pthread_equal(s->thread, pthread_self())) {
		record_violation("cuStreamEndCapture: not on the thread that began");
		return CAPTURE_WRONG_THREAD;
	}
	s->graph = NULL;
	*to = NULL;
	if (s->invalid) {
		free_ops(g->first);
		g->first = NULL;
		return CAPTURE_INVALIDATED;
	}
	g->o.dead = 0;
	*to = g;
	return OK;
}

API CUresult cuStreamBeginCapture_v2(void *stream, int mode) { LOCKED(mode < 0 || mode > 2 ? INVALID_VALUE : capture_begin(stream, mode)); }
API CUresult cuStreamEndCapture(void *stream, void **to) { LOCKED(capture_end(stream, to)); }

static CUresult graph_nodes(void *graph, void **nodes, size_t *count) {
	CUresult r = enter("cuGraphGetNodes");
	struct graph *g = r ? NULL : known(graph, GRAPH, "cuGraphGetNodes");
	if (!g)
		return r ? r : INVALID_HANDLE;
	if (nodes)
		return NOT_SUPPORTED;
	*count = g->count;
	return OK;
}

static void take_over(struct exec *x, const struct graph *g) {
	free_ops(x->first);
	x->first = NULL;
	x->last = &x->first;
	for (const struct op *op = g->first; op; op = op->next) {
		*x->last = copy_op(op);
		x->last = &(*x->last)->next;
	}
	x->count = g->count;
}

static CUresult graph_instantiate(void **to, void *graph, unsigned long long flags) {
	CUresult r = enter("cuGraphInstantiate");
	struct graph *g = r ? NULL : known(graph, GRAPH, "cuGraphInstantiate");
	if (!g)
		return r ? r : INVALID_HANDLE;
	if (flags || capturing_here("cuGraphInstantiate"))
		return flags ? INVALID_VALUE : CAPTURE_UNSUPPORTED;
	counts.recordings++;
	struct exec *x = create(EXEC, sizeof *x);
	take_over(x, g);
	*to = x;
	return OK;
}

// graph_update changes arguments only, as the driver does for kernels of one module.
static CUresult graph_update(void *exec, void *graph, int *why) {
	CUresult r = enter("cuGraphExecUpdate");
	struct exec *x = r ? NULL : known(exec, EXEC, "cuGraphExecUpdate");
	struct graph *g = x ? known(graph, GRAPH, "cuGraphExecUpdate") : NULL;
	if (!g)
		return r ? r : INVALID_HANDLE;
	struct op *a = x->first, *b = g->first;
	for (; a && b; a = a->next, b = b->next)
		if (a->kind != b->kind || a->function != b->function || a->call != b->call)
			break;
	*why = a || b; // CU_GRAPH_EXEC_UPDATE_ERROR
	if (a || b)
		return UPDATE_FAILURE;
	take_over(x, g);
	return OK;
}

static CUresult graph_launch(void *exec, void *handle) {
	STREAM_CALL("cuGraphLaunch");
	struct exec *x = known(exec, EXEC, "cuGraphLaunch");
	if (!x)
		return INVALID_HANDLE;
	if (s->graph) {
		record_violation("cuGraphLaunch: stream %ld is being captured", s->o.number);
		s->invalid = 1;
		return CAPTURE_UNSUPPORTED;
	}
	counts.replays++;
	for (const struct op *op = x->first; op; op = op->next)
		if ((r = push(s, copy_op(op))))
			return r;
	return OK;
}

static CUresult graph_destroy(void *graph) {
	CUresult r = enter("cuGraphDestroy");
	struct graph *g = r ? NULL : known(graph, GRAPH, "cuGraphDestroy");
	if (!g)
		return r ? r : INVALID_HANDLE;
	free_ops(g->first);
	g->first = NULL;
	destroy(&g->o);
	return OK;
}

static CUresult exec_destroy(void *exec) {
	CUresult r = enter("cuGraphExecDestroy");
	struct exec *x = r ? NULL : known(exec, EXEC, "cuGraphExecDestroy");
	if (!x)
		return r ? r : INVALID_HANDLE;
	free_ops(x->first);
	x->first = NULL;
	destroy(&x->o);
	return OK;
}

API CUresult cuGraphGetNodes(void *graph, void **nodes, size_t *count) { LOCKED(graph_nodes(graph, nodes, count)); }
API CUresult cuGraphInstantiateWithFlags(void **to, void *graph, unsigned long long flags) { LOCKED(graph_instantiate(to, graph, flags)); }
API CUresult cuGraphExecUpdate_v2(void *exec, void *graph, int *why) { LOCKED(graph_update(exec, graph, why)); }
API CUresult cuGraphLaunch(void *exec, void *stream) { LOCKED(graph_launch(exec, stream)); }
API CUresult cuGraphDestroy(void *graph) { LOCKED(graph_destroy(graph)); }
API CUresult cuGraphExecDestroy(void *exec) { LOCKED(exec_destroy(exec)); }
