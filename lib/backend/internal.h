/* SPDX-License-Identifier: MIT */
/*
 * The context, and what every host call is made of: check the arguments, begin the call, ask for
 * results and scratch memory, let the backend work, end the call.
 */
#ifndef CUATOMIC_BACKEND_INTERNAL_H
#define CUATOMIC_BACKEND_INTERNAL_H

#include <pthread.h>

#include "backend/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cua__pool;

/* A buffer that the calls of one context share in stream order. */
struct cua__workspace {
	char *base;
	size_t size;
	size_t used;
	int captured;  /* a graph may hold addresses of it: keep it as long as the context */
	int n_retired; /* buffers that were outgrown */
	void **retired;
};

/* Zero between calls: tickets and locks of kernels that finish across blocks. */
#define CUA__CONTROL_BYTES (8192 + 32768)

struct cua_context {
	const struct cua__backend *backend;
	int device;
	struct CUstream_st *stream;
	int cuda_error;
	unsigned threads;
	struct cua__pool *pool;
	struct cua__workspace workspace;
	void *control;
	/* CUDA: what launches want to know of the device */
	int processors;
	int pageable_access; /* the device reads and writes ordinary host memory */
	size_t shared_bytes; /* most dynamic shared memory a block may ask for */
	size_t kept_bytes;   /* of an array, that the L2 keeps for the next reader */
	int early_launch;    /* kernels may be launched before the one before them has ended */
};

/* ---- cancellation ---- */

/*
 * A thread that pthread_cancel ended inside a call would leave helpers at work on its stack, a mutex locked or a file
 * open. So a call disables cancellation from its first lock, wait or file operation to its last; a request stays
 * pending and acts after the call. cua__call_begin and cua__call_end do it, and so does whatever waits without them.
 * The pair nests. Between two begins a thread of asynchronous type may be cancelled, so a call that owns anything then
 * is inside a pair of its own.
 */
static inline int cua__cancel_disable(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

/* Restores what cua__cancel_disable returned. */
static inline void cua__cancel_restore(int before)
{
	pthread_setcancelstate(before, NULL);
}

/* ---- a call ---- */

#define CUA__MAX_RESULTS 4

struct cua__call {
	struct cua_context *ctx;
	int previous_device;
	int cancel; /* the thread's cancelability before the call */
	int n_results;
	struct {
		void *user;
		void *backend;
		size_t bytes;
	} results[CUA__MAX_RESULTS]; /* those that go to ordinary host memory at the end */
};

/*
 * Starts a call: disables cancellation, and makes the device current. Every begin has one end, whatever happens
 * between.
 */
void cua__call_begin(struct cua__call *call, struct cua_context *ctx);

/*
 * Where the backend shall write a result of the user's: the user's own memory where the backend can
 * write it, else scratch memory that cua__call_end copies back (waiting for the stream).
 * Errors: NULL, ALIGNMENT (align is a power of two), CAPTURE, MEMORY_KIND, WORKSPACE, NO_MEMORY.
 */
enum cua_status cua__call_result(struct cua__call *call, void *user, size_t bytes, size_t align,
				 void **backend);

/* Scratch memory for this call, 256-byte aligned, in the workspace; contents undefined. */
enum cua_status cua__call_scratch(struct cua__call *call, size_t bytes, void **p);

/* Ends a call: on success copies results back. Returns status, or what went wrong in copying. */
enum cua_status cua__call_end(struct cua__call *call, enum cua_status status);

/* The workspace that one scratch of so many bytes takes. */
static inline size_t cua__scratch_size(size_t bytes)
{
	return (bytes + 255) & ~(size_t)255;
}

/* ---- structs of the caller that begin with their size ---- */

/*
 * Whether a release has given the struct this size; the library's own struct has `size` bytes. The first release gave
 * each struct one size. A release that appends fields adds the earlier size here, and no new field lies in what was
 * padding: the two sizes would be one.
 */
static inline int cua__known_size(size_t struct_size, size_t size)
{
	return struct_size == size;
}

/* The caller's options, if any, in *own; else zeros. Errors: VALUE (the size). */
enum cua_status cua__options(const void *options, void *own, size_t size);

/* ---- elements ---- */

/* Elements and results as bits, whatever their type. */
typedef uint16_t __attribute__((may_alias)) cua__raw16;
typedef uint32_t __attribute__((may_alias)) cua__raw32;
typedef uint64_t __attribute__((may_alias)) cua__raw64;

static inline int cua__is_float(enum cua_type type)
{
	return type == CUA_F16 || type == CUA_BF16 || type == CUA_F32 || type == CUA_F64;
}

/* Integers and floats of 32 and 64 bits. */
static inline int cua__is_word(enum cua_type type)
{
	switch (type) {
	case CUA_I32:
	case CUA_U32:
	case CUA_I64:
	case CUA_U64:
	case CUA_F32:
	case CUA_F64: return 1;
	default: return 0;
	}
}

/* ---- seeds ---- */

/*
 * A seed or secret of which lo is not 0: from the environment variable CUATOMIC_HASH_SEED where it holds a number and
 * the program has no privileges that its user lacks, else from the kernel's random numbers.
 */
struct cua_u128 cua__random_seed(void);

/* ---- arguments ---- */

/* n * size, or CUA_ERROR_SIZE; sizes above half the address space count as overflow. */
enum cua_status cua__bytes(size_t n, size_t size, size_t *bytes);

/*
 * Checks an array argument of n elements: NULL (allowed when n = 0), overflow, alignment, and that the
 * backend can access it. *backend (may be NULL) gets the address that the backend uses.
 */
enum cua_status cua__check_array(struct cua_context *ctx, const void *p, size_t n, size_t size,
				 size_t align, const void **backend);

/*
 * Reads a value of host memory, at any address, now: NULL, SIZE (no range of addresses), or MEMORY_KIND where the
 * host cannot read it.
 */
enum cua_status cua__read_value(struct cua_context *ctx, const void *p, size_t bytes, void *value);

/* Whether two byte ranges share a byte. */
int cua__overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes);

/* ---- the CPU's threads ---- */

/*
 * Runs fn(arg, worker, workers) once for each worker from 0 to workers - 1 on the context's threads
 * and returns when all are done. Workers start in order of number; they may also run one after the
 * other, so a worker may wait for a lower one only.
 */
void cua__parallel(struct cua_context *ctx, unsigned workers,
		   void (*fn)(void *arg, unsigned worker, unsigned workers), void *arg);

/* How many workers n items are worth, when fewer than grain items are not worth a thread. */
unsigned cua__workers(const struct cua_context *ctx, size_t n, size_t grain);

/* The contiguous part of n items that a worker takes. */
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
