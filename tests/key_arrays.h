/* SPDX-License-Identifier: MIT */
/* Arrays of keys, guarded results, and refused and captured calls, for tests of calls by key. */
#ifndef CUATOMIC_TESTS_KEY_ARRAYS_H
#define CUATOMIC_TESTS_KEY_ARRAYS_H

#include "common.h"

#if TEST_CUDA
#include <cuda_runtime_api.h>
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- keys ---- */

static const enum cua_type key_types[] = {CUA_I32, CUA_U32, CUA_I64, CUA_U64,
					  CUA_F32, CUA_F64, CUA_U128};

/* The bits of an extreme integer; of a zero, an infinity, a NaN or a subnormal number of a float. */
static inline uint64_t special_key(enum cua_type type, uint64_t r)
{
	const int narrow = cua_type_size(type) == 4;
	const uint64_t top = (uint64_t)1 << (narrow ? 31 : 63), sign = r & top;
	const uint64_t infinity = narrow ? 0x7f800000 : (uint64_t)0x7ff << 52;
	const uint64_t quiet = (uint64_t)1 << (narrow ? 22 : 51);
	const uint64_t integers[] = {0, 1, top, top - 1, top + 1, UINT64_MAX, UINT64_MAX - 1};

	if (type != CUA_F32 && type != CUA_F64)
		return integers[r % COUNT(integers)];
	switch (r % 6) {
	case 0: return sign;
	case 1: return sign | infinity;
	case 2: return sign | infinity | quiet | r / 8 % 4;
	case 3: return sign | (infinity + 1 + r / 8 % 4);
	default: return sign | (1 + r / 8 % 3);
	}
}

/*
 * Stores key i, which has the bits `lo` if the type has at most 64 bits. Keys of 128 bits with equal
 * numbers and equal `lo` are equal, and keys that differ may have an equal half.
 */
static inline void store_key(enum cua_type type, void *keys, size_t i, uint64_t number, uint64_t lo)
{
	const size_t size = cua_type_size(type);
	char *key = (char *)keys + size * i;
	uint64_t hi = number % 3 == 0 ? lo : number % 3 == 1 ? 0 : UINT64_MAX - number;

	if (size < 16) {
		memcpy(key, &lo, size);
		return;
	}
	lo = number % 3 == 2 ? 7 : lo;
	memcpy(key, &lo, 8);
	memcpy(key + 8, &hi, 8);
}

/* ---- arrays in backend memory ---- */

enum { GUARD = 64 }; /* bytes after results that a call must not write */

/* A copy, also of no bytes; NULL for NULL. */
static inline void *uploaded(struct cua_context *ctx, const void *host, size_t bytes)
{
	char *p;

	if (!host)
		return NULL;
	p = test_alloc(ctx, bytes + GUARD);
	if (bytes)
		ck_assert_cua(cua_copy(ctx, p, host, bytes));
	return p;
}

/* Poisoned room for results, and their download. The bytes of the guard must stay poisoned. */
static inline void *poisoned(struct cua_context *ctx, size_t bytes)
{
	char *host = test_malloc(bytes + GUARD);
	void *p;

	memset(host, 0xa5, bytes + GUARD);
	p = test_upload(ctx, host, bytes + GUARD);
	free(host);
	return p;
}

static inline void expect_poison(const char *host, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		EXPECT((uint8_t)host[i] == 0xa5, "byte %zu of a guard was written", i);
}

static inline char *downloaded(struct cua_context *ctx, void *p, size_t bytes)
{
	char *host = test_malloc(bytes + GUARD);

	test_download(ctx, host, p, bytes + GUARD);
	test_free(ctx, p);
	expect_poison(host + bytes, GUARD);
	return host;
}

/* Expects that a call wrote nothing to this room. */
static inline void expect_unwritten(struct cua_context *ctx, const void *p, size_t bytes)
{
	char *host = test_malloc(bytes);

	test_download(ctx, host, p, bytes);
	expect_poison(host, bytes);
	free(host);
}

/* ---- calls ---- */

enum { CAPACITIES = 7 };

/* Capacities around a number of results, and another. */
static inline uint64_t capacity_near(int turn, uint64_t results, uint64_t other)
{
	const uint64_t capacities[CAPACITIES] = {0,           1,          results - 1, results,
						 results + 1, UINT64_MAX, other};

	return capacities[turn];
}

/* The call with a copy of `good` that has a bad argument. */
#define REFUSED(call, expected, field, value)                                                      \
	do {                                                                                       \
		struct arguments bad = *good;                                                      \
                                                                                                   \
		bad.field = value;                                                                 \
		ck_assert_status(call(&bad), expected);                                            \
	} while (0)

/* Reserves the reported size. A smaller call must not report more. */
static inline void reserve_workspace(struct cua_context *ctx, size_t none, size_t fewer,
				     size_t bytes)
{
	ck_assert_uint_le(none, fewer);
	ck_assert_uint_le(fewer, bytes);
	ck_assert_cua(cua_context_reserve(ctx, bytes));
}

#if TEST_CUDA
/* A context with a stream that can be captured. */
static inline struct cua_context *context_with_stream(cudaStream_t *stream)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	ck_assert_cuda(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
	ck_assert_cua(cua_context_set_stream(ctx, (struct CUstream_st *)*stream));
	return ctx;
}

static inline void begin_capture(struct cua_context *ctx, cudaStream_t stream)
{
	ck_assert_cua(cua_context_synchronize(ctx));
	ck_assert_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

/* Ends the capture and runs its graph twice. */
static inline void run_captured(cudaStream_t stream)
{
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	ck_assert_cuda(cudaStreamEndCapture(stream, &graph));
	ck_assert_cuda(cudaGraphInstantiateWithFlags(&exec, graph, 0));
	for (int turn = 0; turn < 2; turn++)
		ck_assert_cuda(cudaGraphLaunch(exec, stream));
	ck_assert_cuda(cudaStreamSynchronize(stream));
	ck_assert_cuda(cudaGraphExecDestroy(exec));
	ck_assert_cuda(cudaGraphDestroy(graph));
}
#endif

#endif /* CUATOMIC_TESTS_KEY_ARRAYS_H */
