/* SPDX-License-Identifier: MIT */
/*
 * A dot product by blocks: each block of a kernel, or each thread of the CPU, reduces its elements
 * and adds the sum to the result, so the host adds nothing. Two ways to add: under a lock, and by a
 * finish state.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuatomic.h>

#define N (8 * 1024 * 1024)
#define BLOCKS 256
#define BLOCK 256
#define THREADS 4 /* of the CPU */

static void die(int code, const char *what, const char *why)
{
	fprintf(stderr, "dot: %s: %s\n", what, why);
	exit(code);
}

static void check(enum cua_status status, const char *what)
{
	if (status != CUA_OK)
		die(1, what, cua_strerror(status));
}

/* ---- on threads and in the kernel ---- */

struct vectors {
	const float *x, *y;
	size_t n;
};

/* Zeroed memory: a free lock, and a finish state ready for its first launch. */
struct result {
	struct cua_spinlock lock;
	struct cua_finish finish;
	double locked, finished;
};

/*
 * Adds the products of elements first, first + stride, ... of all threads of a block. scratch is
 * the block's shared memory. A host thread is a block of a single thread.
 */
CUA_FN void dot_of_block(struct vectors v, size_t first, size_t stride, unsigned thread,
			 unsigned blocks, struct cua_block_scratch *scratch, struct result *result)
{
	double sum = 0, part, total;

	for (size_t i = first; i < v.n; i += stride)
		sum += (double)v.x[i] * v.y[i];
	part = cua_block_sum_f64(sum, scratch);
	if (thread != 0)
		return;
	/* an explicit critical section: it may contain any statements */
	CUA_WITH_LOCK (&result->lock) {
		result->locked += part;
	}
	/* the last block gets the total, and resets the state for the next launch */
	if (cua_finish_lock_sum_f64(&result->finish, blocks, part, &total))
		result->finished = total;
}

struct worker {
	pthread_t thread;
	struct vectors v;
	unsigned number;
	struct result *result;
};

static void *work(void *arg)
{
	const struct worker *w = (const struct worker *)arg;
	struct cua_block_scratch scratch;

	dot_of_block(w->v, w->number, THREADS, 0, THREADS, &scratch, w->result);
	return NULL;
}

static void dot_on_threads(struct vectors v, struct result *result)
{
	struct worker worker[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		worker[i].v = v;
		worker[i].number = i;
		worker[i].result = result;
		if (pthread_create(&worker[i].thread, NULL, work, &worker[i]))
			die(1, "threads", "a thread cannot be started");
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(worker[i].thread, NULL);
}

#ifdef __CUDACC__
static __global__ void dot_kernel(struct vectors v, struct result *result)
{
	__shared__ struct cua_block_scratch scratch;

	dot_of_block(v, (size_t)blockIdx.x * blockDim.x + threadIdx.x,
		     (size_t)gridDim.x * blockDim.x, threadIdx.x, gridDim.x, &scratch, result);
}
#endif

/* ---- the program ---- */

static float *in_backend(struct cua_context *ctx, const float *host)
{
	void *p;

	check(cua_alloc(ctx, N, sizeof(*host), &p), "memory");
	check(cua_copy(ctx, p, host, N * sizeof(*host)), "copy");
	return (float *)p;
}

static void run(struct cua_context *ctx, struct vectors v, struct result *result)
{
	if (cua_context_backend(ctx) == CUA_BACKEND_CPU) {
		dot_on_threads(v, result);
		return;
	}
#ifdef __CUDACC__
	dot_kernel<<<BLOCKS, BLOCK, 0, cua_context_stream(ctx)>>>(v, result);
	if (cudaGetLastError() != cudaSuccess)
		die(1, "kernel", "it cannot be launched");
#endif
}

int main(int argc, char **argv)
{
	/* the products of each 1024 elements add up to 2 * (0 + 1 + ... + 1023) */
	const double expected = (double)(N / 1024) * 1024 * 1023;
	float *x = (float *)malloc(N * sizeof(*x)), *y = (float *)malloc(N * sizeof(*y));
	enum cua_backend backend = CUA_BACKEND_CPU;
	struct cua_context *ctx;
	struct vectors v;
	struct result result;
	void *device;

#ifdef __CUDACC__
	backend = CUA_BACKEND_AUTO;
#endif
	(void)argv;
	if (argc != 1)
		die(2, "usage", "dot");
	if (!x || !y)
		die(1, "vectors", "out of memory");
	for (size_t i = 0; i < N; i++) {
		x[i] = (float)(i % 1024);
		y[i] = 2;
	}
	check(cua_context_create(backend, 0, &ctx), "context");
	v.x = in_backend(ctx, x);
	v.y = in_backend(ctx, y);
	v.n = N;
	check(cua_alloc_zero(ctx, 1, sizeof(result), &device), "memory");
	check(cua_context_synchronize(ctx), "copy");
	/* the finish state needs no preparation between two launches */
	run(ctx, v, (struct result *)device);
	run(ctx, v, (struct result *)device);
	check(cua_copy(ctx, &result, device, sizeof(result)), "result");
	check(cua_context_synchronize(ctx), "result");
	check(cua_free(ctx, (void *)v.x), "memory");
	check(cua_free(ctx, (void *)v.y), "memory");
	check(cua_free(ctx, device), "memory");
	cua_context_destroy(ctx);
	free(x);
	free(y);
	/* both launches added to the result under the lock */
	printf("dot of %d: %.0f under a lock, %.0f by cua_finish, expected %.0f\n", N,
	       result.locked / 2, result.finished, expected);
	if (fflush(stdout) || ferror(stdout))
		die(1, "standard output", strerror(errno));
	return result.locked / 2 == expected && result.finished == expected ? 0 : 1;
}
