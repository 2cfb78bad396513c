/* SPDX-License-Identifier: MIT */
/* Sharded maps on a GPU: the kernels of lib/kernels/shard_kernel.h and their launches. */
#include "config.h"

#include "cuda_hashmap.h"
#include "kernels/shard_kernel.h"
#include "launch.h"

#define THREADS 256
#define BLOCKS_PER_PROCESSOR 8

template <unsigned KEY>
static __global__ void __launch_bounds__(THREADS)
	count_kernel(const __grid_constant__ struct cua__shard s)
{
	__shared__ struct cua__shard_shared sh;

	cua__shard_count(&s, &sh, KEY);
}

template <unsigned KEY, unsigned VALUE>
static __global__ void __launch_bounds__(THREADS)
	place_kernel(const __grid_constant__ struct cua__shard s)
{
	__shared__ struct cua__shard_shared sh;

	cua__shard_place(&s, &sh, KEY, VALUE);
}

template <unsigned VALUE>
static __global__ void __launch_bounds__(THREADS)
	answer_kernel(const __grid_constant__ struct cua__shard_answers a)
{
	cua__shard_answer(&a, blockIdx.x * (uint64_t)THREADS + threadIdx.x,
			  gridDim.x * (uint64_t)THREADS, VALUE);
}

static enum cua_status cuda_count(struct cua_context *ctx, const struct cua__shard *s)
{
	const unsigned grid =
		cua__grid(ctx, s->n, THREADS * CUA__SHARD_ITEMS, BLOCKS_PER_PROCESSOR);

	if (!s->n)
		return CUA_OK;
	return cua__launch(ctx,
			   s->key_size == 4   ? count_kernel<4>
			   : s->key_size == 8 ? count_kernel<8>
					      : count_kernel<16>,
			   grid, THREADS, 0, *s);
}

template <unsigned KEY>
static enum cua_status place(struct cua_context *ctx, const struct cua__shard *s)
{
	const unsigned grid =
		cua__grid(ctx, s->n, THREADS * CUA__SHARD_ITEMS, BLOCKS_PER_PROCESSOR);

	switch (s->values_out ? s->value_size : 0) {
	case 4: return cua__launch(ctx, place_kernel<KEY, 4>, grid, THREADS, 0, *s);
	case 8: return cua__launch(ctx, place_kernel<KEY, 8>, grid, THREADS, 0, *s);
	case 16: return cua__launch(ctx, place_kernel<KEY, 16>, grid, THREADS, 0, *s);
	default: return cua__launch(ctx, place_kernel<KEY, 0>, grid, THREADS, 0, *s);
	}
}

static enum cua_status cuda_place(struct cua_context *ctx, const struct cua__shard *s)
{
	if (!s->n)
		return CUA_OK;
	return s->key_size == 4   ? place<4>(ctx, s)
	       : s->key_size == 8 ? place<8>(ctx, s)
				  : place<16>(ctx, s);
}

static enum cua_status cuda_answer(struct cua_context *ctx, const struct cua__shard_answers *a)
{
	const uint32_t value_size = a->values_out ? a->value_size : 0;

	if (!a->n)
		return CUA_OK;
	return cua__launch(ctx,
			   value_size == 4    ? answer_kernel<4>
			   : value_size == 8  ? answer_kernel<8>
			   : value_size == 16 ? answer_kernel<16>
					      : answer_kernel<0>,
			   cua__grid(ctx, a->n, THREADS, BLOCKS_PER_PROCESSOR), THREADS, 0, *a);
}

/* ---- directly to owners ---- */

/* Few blocks, so that these kernels run beside the tables' kernels. */
#define SEND_BLOCKS_PER_PROCESSOR 2
#define TAKE_BLOCKS_PER_PROCESSOR 3

template <unsigned KEY>
static __global__ void __launch_bounds__(CUA__SHARD_THREADS)
	send_kernel(const __grid_constant__ struct cua__shard_keys k)
{
	__shared__ struct cua__shard_tile tile;
	__shared__ __align__(16) char keys[CUA__SHARD_TILE * KEY];
	__shared__ CUA__SHARD_OFFSET offsets[CUA__SHARD_TILE];

	cua__shard_send(&k, &tile, keys, offsets, KEY);
}

template <unsigned VALUE>
static __global__ void __launch_bounds__(CUA__SHARD_THREADS)
	take_kernel(const __grid_constant__ struct cua__shard_keys k)
{
	__shared__ uint32_t count[CUA__SHARD_DIRECT_RANKS], found[CUA__SHARD_TILE / 4];
	__shared__ __align__(16) char values[VALUE ? CUA__SHARD_TILE * VALUE : 16];

	cua__shard_take(&k, count, values, found, VALUE);
}

static enum cua_status cuda_send_keys(struct cua_context *ctx, const struct cua__shard_keys *k)
{
	if (!k->n)
		return CUA_OK;
	return cua__launch(ctx,
			   k->key_size == 4   ? send_kernel<4>
			   : k->key_size == 8 ? send_kernel<8>
					      : send_kernel<16>,
			   cua__grid(ctx, k->n, CUA__SHARD_TILE, SEND_BLOCKS_PER_PROCESSOR),
			   CUA__SHARD_THREADS, 0, *k);
}

static enum cua_status cuda_take_answers(struct cua_context *ctx, const struct cua__shard_keys *k)
{
	const uint32_t value_size = k->values_out ? k->value_size : 0;

	if (!k->n)
		return CUA_OK;
	return cua__launch(ctx,
			   value_size == 4    ? take_kernel<4>
			   : value_size == 8  ? take_kernel<8>
			   : value_size == 16 ? take_kernel<16>
					      : take_kernel<0>,
			   cua__grid(ctx, k->n, CUA__SHARD_TILE, TAKE_BLOCKS_PER_PROCESSOR),
			   CUA__SHARD_THREADS, 0, *k);
}

/* Calls a function of updates, or of inserts and builds. */
#define DIRECT(name, T, D)                                                                         \
	static T direct_##name(struct cua_context *ctx, D *d)                                      \
	{                                                                                          \
		return d->call == CUA__SHARD_UPDATE ? cua__cuda_sent_##name(ctx, d)                \
						    : cua__cuda_direct_##name(ctx, d);             \
	}
DIRECT(bytes, size_t, struct cua__shard_direct)
DIRECT(clear, enum cua_status, const struct cua__shard_direct)
DIRECT(send, enum cua_status, const struct cua__shard_direct)
DIRECT(receive, enum cua_status, const struct cua__shard_direct)

/* In the order of the struct's members. */
const struct cua__shard_ops cua__cuda_shard = {cuda_count,
					       cuda_place,
					       cuda_answer,
					       cua__cuda_combine_bytes,
					       cua__cuda_combine,
					       cuda_send_keys,
					       cuda_take_answers,

					       direct_bytes,
					       direct_clear,
					       direct_send,
					       direct_receive,

					       cua__cuda_direct_pull,
					       cua__cuda_direct_scatter_own,
					       cua__cuda_direct_scatter,
					       cua__cuda_direct_build};
