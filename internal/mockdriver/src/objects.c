// Handles: what was made, and whether it still may be used.
#include "mockdriver.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const words[KINDS] = {"", "context", "stream", "event", "module", "function", "graph", "executable graph"};
static struct object *objects;
static long numbers;

struct object *objects_first(void) { return objects; }

void *create(enum kind kind, size_t bytes) {
	struct object *o = calloc(1, bytes);
	o->kind = kind;
	o->context = current;
	o->next = objects;
	o->number = ++numbers;
	objects = o;
	return o;
}

// known returns the handle's object, or null where it is none of that kind.
void *known(void *handle, enum kind kind, const char *call) {
	// A handle may be anything, so it is looked for, not looked at.
	for (struct object *o = objects; o; o = o->next)
		if (o == handle) {
			if (o->kind != kind) {
				record_violation("%s: %s %ld given where a %s belongs", call, words[o->kind], o->number, words[kind]);
				return NULL;
			}
			if (o->dead) {
				record_violation("%s: %s %ld is used after it was destroyed", call, words[kind], o->number);
				return NULL;
			}
			return o;
		}
	record_violation("%s: %p is no %s", call, handle, words[kind]);
	return NULL;
}

void destroy(struct object *o) { o->dead = 1; }

// list_live counts the objects and allocations of a context, or of all, that were not
// destroyed. Functions go with their module.
int list_live(struct context *context, char *text, size_t size) {
	int count = 0;
	size_t used = 0;
	if (size)
		text[0] = 0;
	for (struct object *o = objects; o; o = o->next)
		if (!o->dead && o->kind != FUNCTION && (context ? o->context == context && &context->o != o : 1)) {
			count++;
			int n = snprintf(text + used, size - used, "%s %ld\n", words[o->kind], o->number);
			if (n > 0 && used + n < size)
				used += n;
		}
	return count + memory_live(context, text + used, size - used);
}
