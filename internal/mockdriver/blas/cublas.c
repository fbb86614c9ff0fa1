// The part of cuBLAS that package driver uses, on the mock driver's streams.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

int gsrc_mockdriver_call(void *stream, int (*call)(void *), const void *args, size_t bytes);
int gsrc_mockdriver_in_memory(const void *p, size_t bytes);
int cuCtxSynchronize(void);

enum { OK = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };

struct handle {
	void *stream, *workspace;
	size_t workspace_bytes;
	int mode;
};

struct product {
	int ta, tb, m, n, k, lda, ldb, ldc, tf32;
	float alpha, beta;
	const float *a, *b;
	float *c;
};

API int cublasCreate_v2(struct handle **to) {
	if (cuCtxSynchronize())
		return NOT_INITIALIZED;
	*to = calloc(1, sizeof **to);
	return OK;
}

API int cublasDestroy_v2(struct handle *h) {
	free(h);
	return OK;
}

// cublasGetProperty gives the major (0), minor (1) and patch (2) version.
API int cublasGetProperty(int which, int *value) {
	static const int version[] = {12, 4, 5};
	if (which < 0 || which > 2)
		return INVALID_VALUE;
	*value = version[which];
	return OK;
}

API int cublasSetStream_v2(struct handle *h, void *stream) {
	h->stream = stream;
	h->workspace = NULL; // as cuBLAS does: the workspace is set after the stream
	return OK;
}

API int cublasSetWorkspace_v2(struct handle *h, void *p, size_t bytes) {
	if ((uintptr_t)p % 256 || !gsrc_mockdriver_in_memory(p, bytes))
		return INVALID_VALUE;
	h->workspace = p;
	h->workspace_bytes = bytes;
	return OK;
}

API int cublasSetMathMode(struct handle *h, int mode) {
	h->mode = mode;
	return OK;
}

static size_t span(int rows, int cols, int ld) { return ((size_t)ld * (cols - 1) + rows) * sizeof(float); }

// factor rounds a factor to TF32's 10 bits where products are in that.
static double factor(const struct product *p, float x) {
	uint32_t b;
	if (!p->tf32 || x * 0 != 0)
		return x;
	memcpy(&b, &x, sizeof b);
	b = (b + (1u << 12)) & ~((1u << 13) - 1);
	memcpy(&x, &b, sizeof b);
	return x;
}

static int multiply(void *args) {
	struct product *p = args;
	if ((p->k && (!gsrc_mockdriver_in_memory(p->a, p->ta ? span(p->k, p->m, p->lda) : span(p->m, p->k, p->lda)) ||
	              !gsrc_mockdriver_in_memory(p->b, p->tb ? span(p->n, p->k, p->ldb) : span(p->k, p->n, p->ldb)))) ||
	    !gsrc_mockdriver_in_memory(p->c, span(p->m, p->n, p->ldc)))
		return 700;
	for (int j = 0; j < p->n; j++)
		for (int i = 0; i < p->m; i++) {
			double sum = 0;
			for (int l = 0; l < p->k; l++) {
				float a = p->ta ? p->a[(size_t)i * p->lda + l] : p->a[(size_t)l * p->lda + i];
				float b = p->tb ? p->b[(size_t)l * p->ldb + j] : p->b[(size_t)j * p->ldb + l];
				sum += factor(p, a) * factor(p, b);
			}
			float *c = &p->c[(size_t)j * p->ldc + i];
			*c = (float)(p->alpha * sum) + (p->beta ? p->beta * *c : 0);
		}
	return 0;
}

// Matrices are column-major. The workspace must have been set: cuBLAS would else take
// memory of its own, which a captured graph does not hold on to.
API int cublasSgemm_v2(struct handle *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
	int rows_a = ta ? k : m, rows_b = tb ? n : k;
	if (m < 0 || n < 0 || k < 0 || lda < (rows_a > 1 ? rows_a : 1) || ldb < (rows_b > 1 ? rows_b : 1) || ldc < (m > 1 ? m : 1) || !h->workspace)
		return INVALID_VALUE;
	if (!m || !n)
		return OK;
	struct product p = {ta, tb, m, n, k, lda, ldb, ldc, h->mode == 3, *alpha, *beta, a, b, c};
	return gsrc_mockdriver_call(h->stream, multiply, &p, sizeof p) ? EXECUTION_FAILED : OK;
}
