/* SPDX-License-Identifier: MIT */
/* Functions that the kernels of hashmap_regions.h and hashmap_combine.h share, and their launches. */
#ifndef CUATOMIC_CUDA_HASHMAP_REGIONS_H
#define CUATOMIC_CUDA_HASHMAP_REGIONS_H

#include "cuda_hashmap.h"
#include "kernels/hashmap_regions.h"
#include "launch.h"

#define SCATTER_THREADS 512u
#define SCATTER_BLOCKS_PER_PROCESSOR 2

/* Bytes of a word. */
static __host__ __device__ constexpr uint32_t word_size(uint32_t ks, uint32_t vs)
{
	return ks + vs > 8 ? 16 : 8;
}

/* Words of a thread of a scatter. */
static __host__ __device__ constexpr uint32_t scatter_each(uint32_t ks, uint32_t vs)
{
	return word_size(ks, vs) == 16 ? 8 : 16;
}

typedef void (*kernel)(struct cua__regions_pass);

/*
 * `most` is equal in all launches of a kernel, because the attribute also applies to the other
 * threads of the process.
 */
static inline enum cua_status launch(struct cua_context *ctx, kernel k, uint64_t grid,
				     unsigned block, unsigned shared, unsigned most,
				     const struct cua__regions_pass *a)
{
	enum cua_status status = cua__cuda_status(
		ctx, cudaFuncSetAttribute((const void *)k,
					  cudaFuncAttributeMaxDynamicSharedMemorySize, (int)most));

	return status ? status : cua__launch(ctx, k, (unsigned)grid, block, shared, *a);
}

static inline uint64_t divide_up(uint64_t n, uint64_t by)
{
	return n / by + (n % by != 0);
}

static inline struct cua__regions_pass pass_of(const struct cua_hashmap_view *view,
					       const struct cua__hashmap_call *call)
{
	struct cua__regions_pass a = {};

	a.view = *view;
	a.keys = call->keys;
	a.values = call->values;
	a.n = call->n;
	return a;
}

/* The repeat_limit of a scatter: about 10 standard deviations above the mean of a region. */
static inline uint32_t repeat_limit(uint32_t tile, uint32_t regions)
{
	const uint32_t mean = tile / regions;
	uint32_t root = 1;

	while (root * root < mean)
		root++;
	return mean + 10 * root;
}

#endif /* CUATOMIC_CUDA_HASHMAP_REGIONS_H */
