/* SPDX-License-Identifier: MIT */
/*
 * The context, and the steps of a host call: check the arguments, begin the call, request result
 * and scratch memory, run the backend, end the call.
 */
#ifndef CUATOMIC_BACKEND_INTERNAL_H
#define CUATOMIC_BACKEND_INTERNAL_H

#include <pthread.h>

#include "backend/backend.h"
#include "backend/elements.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cua__pool;

/* A buffer that the calls of a context share in stream order. */
struct cua__workspace {
	char *base;
	size_t size;
	size_t used;
	unsigned calls; /* that have begun; a call may make others */
	/*
	 * a graph may hold addresses of the buffer, so outgrown buffers are kept as long as the
	 * context
	 */
	int captured;
	int n_retired; /* outgrown buffers */
	void **retired;
};

/*
 * Bytes of the control block: tickets, locks and partial results. It is zero between calls, except
 * two fields of struct cua__filter_control. The CUA__<module>_CONTROL constants are the offsets of
 * the modules' ranges; static assertions keep these apart.
 */
#define CUA__CONTROL_BYTES (8192 + 32768)

struct cua_context {
	const struct cua__runtime *runtime;
	int device;
	struct CUstream_st *stream;
	int cuda_error;
	unsigned threads;
	struct cua__pool *pool;
	struct cua__workspace workspace;
	void *control;
	/* CUDA: properties of the device that launches need */
	int processors;
	int pageable_access; /* the device can access ordinary host memory */
	size_t shared_bytes; /* most dynamic shared memory of a block */
	size_t kept_bytes;   /* bytes of an array that the L2 keeps for the next reader */
	/* a kernel may be launched before its predecessor in the stream has ended */
	int early_launch;
};

/* ---- cancellation ---- */

/*
 * If pthread_cancel ended a thread inside a call, its helpers would still use its stack, a mutex
 * would stay locked, or a file would stay open. So a call disables cancellation from its first
 * lock, wait or file operation to its last. A request stays pending and acts after the call.
 * cua__call_begin and cua__call_end do this; functions that wait without them do it themselves. The
 * pair nests. Between two calls of cua__call_begin a thread of asynchronous type may be cancelled.
 * So a function that owns something in between encloses it in a pair of its own.
 */
static inline int cua__cancel_disable(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

/* Restores the state that cua__cancel_disable returned. */
static inline void cua__cancel_restore(int before)
{
	pthread_setcancelstate(before, NULL);
}

/* ---- a call ---- */

#define CUA__MAX_RESULTS 4

struct cua__call {
	struct cua_context *ctx;
	int previous_device;
	int cancel;  /* the thread's cancellation state before the call */
	size_t used; /* of the workspace, by the calls around it */
	int n_results;
	struct {
		void *user;
		void *backend;
		size_t bytes;
	} results[CUA__MAX_RESULTS]; /* results to copy to ordinary host memory at the end */
};

/*
 * Begins a call: disables cancellation and makes the device current. Every begin has exactly one
 * end, on all paths. Until its end, the call may make other calls; its scratch memory remains its own.
 */
void cua__call_begin(struct cua__call *call, struct cua_context *ctx);

/*
 * Sets *backend to the memory in which the backend writes a result. That is the user's own memory
 * if the backend can write it. Otherwise it is scratch memory, which cua__call_end copies to the
 * user, waiting for the stream. Errors: NULL, ALIGNMENT (align is a power of two), CAPTURE,
 * MEMORY_KIND, WORKSPACE, NO_MEMORY.
 */
enum cua_status cua__call_result(struct cua__call *call, void *user, size_t bytes, size_t align,
				 void **backend);

/*
 * Allocates scratch memory for this call in the workspace: 256-byte aligned, contents undefined.
 * Errors: WORKSPACE (it would have to grow in a capture), NO_MEMORY.
 */
enum cua_status cua__call_scratch(struct cua__call *call, size_t bytes, void **p);

/*
 * Gives back the newest scratch memory of the call. Its later scratch memory may be the same, so
 * only work that was queued in the stream before later work uses it.
 */
void cua__call_give_back(struct cua__call *call, void *p);

/* Ends a call. On success it copies the results back. Returns status, or the error of the copy. */
enum cua_status cua__call_end(struct cua__call *call, enum cua_status status);

/* Bytes of the workspace that a scratch allocation of that size occupies. */
static inline size_t cua__scratch_size(size_t bytes)
{
	return (bytes + 255) & ~(size_t)255;
}

/* Memory that a call divides into arrays. With base NULL only the size is computed. */
struct cua__arena {
	char *base;
	size_t used;
};

static inline void *cua__arena_next(struct cua__arena *a, size_t bytes)
{
	void *p = a->base ? a->base + a->used : NULL;

	a->used += cua__scratch_size(bytes);
	return p;
}

/* ---- the caller's structs that begin with their size ---- */

/*
 * Whether some release has given the struct this size; the library's own struct has `size` bytes.
 * A call whose struct has grown also accepts the earlier sizes, as cua_device_query does. A new
 * field must not be in former padding, because then the two sizes would be equal.
 */
static inline int cua__known_size(size_t struct_size, size_t size)
{
	return struct_size == size;
}

/* Copies the caller's options to *own, or zeros if there are none. Errors: VALUE (the size). */
enum cua_status cua__options(const void *options, void *own, size_t size);

/* ---- seeds ---- */

/*
 * A seed or secret with lo != 0. If the environment variable CUATOMIC_HASH_SEED holds a number, and
 * the program has no privileges that its user lacks, the number is used. Otherwise the kernel's
 * random numbers are used.
 */
struct cua_u128 cua__random_seed(void);

/* Random bits, also if CUATOMIC_HASH_SEED is set. */
struct cua_u128 cua__random(void);

/* ---- arguments ---- */

/* Larger ranges of bytes count as overflow: half the address space. */
#define CUA__MAX_BYTES (SIZE_MAX / 2)

/* Whether the range is too large or wraps around the address space. */
static inline int cua__wraps(const void *p, size_t bytes)
{
	return bytes > CUA__MAX_BYTES || (uintptr_t)p > UINTPTR_MAX - bytes;
}

/* *bytes = n * size. Errors: SIZE, also if the product exceeds CUA__MAX_BYTES. */
enum cua_status cua__bytes(size_t n, size_t size, size_t *bytes);

/*
 * Checks an array argument of n elements: NULL (allowed if n = 0), overflow, alignment, and access
 * by the backend. *backend receives the address that the backend uses; backend may be NULL.
 */
enum cua_status cua__check_array(struct cua_context *ctx, const void *p, size_t n, size_t size,
				 size_t align, const void **backend);

/*
 * Reads a value from host memory at any address, before it returns. Errors: NULL, SIZE (the range
 * wraps around), MEMORY_KIND (the host cannot read it).
 */
enum cua_status cua__read_value(struct cua_context *ctx, const void *p, size_t bytes, void *value);

/*
 * Checks the memory kinds of a copy from src to dst inside a call. Sets *waits if the call must
 * synchronize after the copy, because one of them is host memory that is not pinned. Errors:
 * MEMORY_KIND, CAPTURE (the copy would wait).
 */
enum cua_status cua__copy_waits(struct cua_context *ctx, const void *dst, const void *src,
				int *waits);

/* Whether two byte ranges share a byte. */
int cua__overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

/* ---- the CPU's threads ---- */

/*
 * Runs fn(arg, worker, workers) once for each worker from 0 to workers - 1 on the context's
 * threads, and returns when all are done. Workers start in ascending order and may run one after
 * the other. So a worker may wait only for lower workers.
 */
void cua__parallel(struct cua_context *ctx, unsigned workers,
		   void (*fn)(void *arg, unsigned worker, unsigned workers), void *arg);

/*
 * The number of workers for n items, if fewer than `grain` items per worker are not worth a thread.
 */
unsigned cua__workers(const struct cua_context *ctx, size_t n, size_t grain);

/* The contiguous range of n items that a worker processes. */
static inline void cua__share(size_t n, unsigned worker, unsigned workers, size_t *begin,
			      size_t *end)
{
	size_t each = n / workers, more = n % workers;

	*begin = each * worker + (worker < more ? worker : more);
	*end = *begin + each + (worker < more);
}

void cua__pool_destroy(struct cua__pool *pool);

#ifdef __cplusplus
}
#endif

#endif /* CUATOMIC_BACKEND_INTERNAL_H */
