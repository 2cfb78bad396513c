/* SPDX-License-Identifier: MIT */
/* Runs that are found and summed in a single pass: launches of lib/kernels/segment_runs.h. */
#include "config.h"

/* A short step of the scan: few tiles are published at a time, and their blocks wait for it. */
#define CUA__FILTER_POLLS 1u
#define CUA__FILTER_PATIENCE 100u

#include "cuda_segment.h"
#include "kernels/segment_runs.h"
#include "launch.h"

#define WARPS 8u
/* A device whose shared memory has room for a single block does better with two passes. */
#define FEWEST_BLOCKS 2u

/*
 * Elements of a thread. A tile has as many as the shared memory of several blocks has room for:
 * small tiles wait longer for barriers and offsets.
 */
static __host__ __device__ constexpr uint32_t elements(uint32_t key_size, size_t size)
{
	return key_size == 4 && size <= 4 ? 16 : 8;
}

static __host__ __device__ constexpr struct cua__filter_kind kind_of(uint32_t key_size, size_t size)
{
	return {CUA__FILTER_CHANGE,
		key_size,
		elements(key_size, size) * key_size / 16,
		WARPS,
		0,
		1,
		0};
}

/* Blocks that fit in 228 KiB of shared memory and have the registers that they need. */
static __host__ __device__ constexpr int blocks_per_processor(uint32_t key_size, size_t size)
{
	return size == 16 ? 2 : key_size + size <= 8 || key_size + size > 12 ? 3 : 4;
}

namespace
{

#define DEFINE_KERNEL(kind, T, two, C, A, none, widen, combine, store)                             \
	template <uint32_t KEY>                                                                    \
	__global__ void __launch_bounds__(WARPS * 32, blocks_per_processor(KEY, sizeof(T)))        \
		runs_##kind(const __grid_constant__ struct cua__filter f,                          \
			    const __grid_constant__ struct cua__segments s,                        \
			    struct cua__fixed_state *state, uint32_t *pending)                     \
	{                                                                                          \
		__shared__ struct cua__runs_shared shared;                                         \
		CUA__SHARED_ARRAY(uint4, runs_room);                                               \
                                                                                                   \
		cua__segment_runs_##kind(kind_of(KEY, sizeof(T)), &f, &s, state, pending, &shared, \
					 runs_room);                                               \
	}
CUA__TREE_FLOAT_SUMS(DEFINE_KERNEL)

} // namespace

/* Bytes of the tiles' words. They do not depend on the alignment of the keys. */
static size_t words_size(const struct cua__runs *r, const struct cua__segments *s)
{
	const uint32_t key_size = (uint32_t)r->key_size;

	return (size_t)(r->n / cua__filter_tile(kind_of(key_size, s->size)) + 2) * sizeof(uint64_t);
}

/* Bytes of the bitmap of pending runs. */
static size_t pending_size(const struct cua__runs *r)
{
	return (size_t)(r->capacity / 32 + 1) * sizeof(uint32_t);
}

static uint32_t shared_size(const struct cua__runs *r, const struct cua__segments *s)
{
	return cua__runs_room(kind_of((uint32_t)r->key_size, s->size), (uint32_t)s->size);
}

/* The blocks that the shared memory of a multiprocessor has room for. */
static unsigned fitting_blocks(const struct cua_context *ctx, const struct cua__runs *r,
			       const struct cua__segments *s)
{
	/* the runtime reserves 1 KiB of each block */
	const size_t reserved = 1024,
		     of_block = shared_size(r, s) + sizeof(struct cua__runs_shared) + reserved;
	const unsigned fit = (unsigned)((ctx->shared_bytes + reserved) / of_block),
		       most = (unsigned)blocks_per_processor((uint32_t)r->key_size, s->size);

	return fit < most ? fit : most;
}

int cua__cuda_can_sum_runs(const struct cua_context *ctx, const struct cua__runs *r,
			   const struct cua__segments *s)
{
	return s->kind != CUA__TREE_NONE && fitting_blocks(ctx, r, s) >= FEWEST_BLOCKS;
}

size_t cua__cuda_sum_runs_scratch(const struct cua__runs *r, const struct cua__segments *s)
{
	return words_size(r, s) + pending_size(r);
}

enum cua_status cua__cuda_sum_runs(struct cua_context *ctx, const struct cua__runs *r,
				   const struct cua__filter *runs, struct cua__segments *s,
				   struct cua__fixed_state *state)
{
	typedef void kernel(struct cua__filter, struct cua__segments, struct cua__fixed_state *,
			    uint32_t *);
	const uint32_t shared = shared_size(r, s);
	uint32_t *pending = (uint32_t *)(void *)((char *)r->scratch + words_size(r, s));
	struct cua__filter f = *runs;
	enum cua_status status;
	kernel *k = NULL;
	uint64_t blocks;

	f.control = (struct cua__filter_control *)((char *)ctx->control + CUA__FILTER_CONTROL);
	f.tiles = (uint64_t *)r->scratch;
	switch (s->kind) {
#define CHOOSE(kind, T, two, C, A, none, widen, combine, store)                                    \
	case CUA__TREE_##kind: k = r->key_size == 4 ? runs_##kind<4> : runs_##kind<8>; break;
		CUA__TREE_FLOAT_SUMS(CHOOSE)
	default: return CUA_ERROR_TYPE;
	}
	status = ctx->runtime->set_bytes(ctx, r->scratch, 0, cua__cuda_sum_runs_scratch(r, s));
	if (!status)
		status = cua__cuda_status(
			ctx, cudaFuncSetAttribute((const void *)k,
						  cudaFuncAttributeMaxDynamicSharedMemorySize,
						  (int)shared));
	if (status)
		return status;
	/* with the scanning block */
	blocks = cua__filter_tiles(kind_of((uint32_t)r->key_size, s->size), &f) + 1;
	status = cua__launch(ctx, k, cua__grid(ctx, blocks, 1, fitting_blocks(ctx, r, s)),
			     WARPS * 32, shared, f, *s, state, pending);
	s->pending = pending;
	return status;
}
