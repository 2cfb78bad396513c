/* SPDX-License-Identifier: MIT */
/* What the files with bulk calls of the CUDA hash map share: instances of a kernel, and launches. */
#ifndef CUATOMIC_CUDA_HASHMAP_CALLS_H
#define CUATOMIC_CUDA_HASHMAP_CALLS_H

#include <cuatomic/hashmap.h>

#include "cuda_hashmap.h"
#include "kernels/hashmap_bulk.h"
#include "launch.h"

#define THREADS 256u
/* threads per block for a batch that would not fill the device */
#define FEW_THREADS 64u
#define BLOCKS_PER_PROCESSOR 16u
/* blocks of threads with 64 registers that fit a multiprocessor */
#define RESIDENT_BLOCKS 4u

/* The layouts of each size: cua__hashmap_is_word and is_wide as C++ constants. */
constexpr uint32_t first_layout(uint32_t ks, uint32_t vs)
{
	return ks + vs <= 16 && (ks != 16 || vs == 0) && vs != 16 ? CUA_HASHMAP_WORDS
								  : CUA_HASHMAP_STATES;
}

constexpr uint32_t other_layout(uint32_t ks, uint32_t vs)
{
	return ks + vs <= 8 ? CUA_HASHMAP_WORDS : CUA_HASHMAP_STATES;
}

/* FUNCTION<ks, vs, layout>(...) for the sizes and the layout of a map. */
#define CASE(ks, vs)                                                                               \
	case ks * 32 + vs:                                                                         \
		return view->layout == CUA_HASHMAP_WORDS                                           \
			       ? FUNCTION(ks, vs, (first_layout(ks, vs)))                          \
			       : FUNCTION(ks, vs, (other_layout(ks, vs)));
#define BY_SIZE                                                                                    \
	switch (view->key_size * 32 + view->value_size) {                                          \
		CUA__HASHMAP_SIZES(CASE)                                                           \
	default: return CUA_ERROR_TYPE;                                                            \
	}

static int is_few(const struct cua_context *ctx, uint64_t n)
{
	return n / THREADS < (uint64_t)ctx->processors;
}

/*
 * Each kernel has two instances. PLAIN is for maps with a seeded hash and no bound on probes: a
 * call of the keyed hash would cost it registers.
 */
static bool is_plain(const struct cua_hashmap_view *view)
{
	return view->hash == CUA_HASHMAP_HASH_SEEDED && !view->max_probes;
}

#define FOR_VIEW(view, kernel, ...)                                                                \
	(is_plain(view) ? kernel<__VA_ARGS__, 1> : kernel<__VA_ARGS__, 0>)

/*
 * Launches a kernel with a thread for each of n elements, or `blocks` blocks per multiprocessor if
 * that is less.
 */
template <typename... P>
static enum cua_status launch_each(struct cua_context *ctx, uint64_t n, unsigned blocks,
				   void (*kernel)(P...), typename cua__same<P>::type... args)
{
	const unsigned threads = is_few(ctx, n) ? FEW_THREADS : THREADS;

	return cua__launch_early(ctx, kernel, cua__grid(ctx, n, threads, blocks), threads, 0,
				 args...);
}

/* The view with its layout, and if PLAIN its hash and bound, as constants for the compiler. */
template <int PLAIN>
static __device__ __forceinline__ struct cua_hashmap_view
with_layout(const struct cua_hashmap_view *view, uint32_t layout)
{
	struct cua_hashmap_view known = *view;

	known.layout = layout;
	known.hash = PLAIN ? CUA_HASHMAP_HASH_SEEDED : view->hash;
	known.max_probes = PLAIN ? 0 : view->max_probes;
	return known;
}

template <uint32_t KS, int PLAIN>
static __device__ __forceinline__ uint64_t hash_of(const struct cua_hashmap_view *view,
						   struct cua_u128 key)
{
	return cua__hashmap_hash_of(view, PLAIN ? CUA_HASHMAP_HASH_SEEDED : view->hash, KS, key);
}

#endif /* CUATOMIC_CUDA_HASHMAP_CALLS_H */
