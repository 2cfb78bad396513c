/* SPDX-License-Identifier: MIT */
/* Sharded maps on a GPU: the kernels of lib/kernels/shard_kernel.h and shard_find.h, and their launches. */
#include "config.h"

#include "cuda_hashmap.h"
#include "kernels/shard_find.h"
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

/* ---- direct finds ---- */

#define COUNT_BLOCKS_PER_PROCESSOR 4
/* Blocks that bound the registers of a thread; a multiprocessor of older GPUs has 1024 threads. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define MOST_RESIDENT 2
#else
#define MOST_RESIDENT 3
#endif

static_assert(CUA__SHARD_BINS <= 2 * CUA__BINS_THREADS,
	      "with two ranks or more, a thread plans a region");
static_assert(CUA__SHARD_MOST_TILE == 16 * CUA__BINS_THREADS, "a thread sends at most 16 keys");

template <unsigned KEY>
static __global__ void __launch_bounds__(CUA__BINS_THREADS, MOST_RESIDENT)
	bin_count_kernel(const __grid_constant__ struct cua__shard_find f)
{
	__shared__ uint32_t count[CUA__SHARD_BINS];

	cua__bins_count(&f, count, KEY);
}

static __global__ void __launch_bounds__(CUA__BINS_THREADS)
	bin_scan_kernel(const __grid_constant__ struct cua__shard_find f)
{
	__shared__ uint32_t of_warp[CUA__BINS_THREADS / 32];

	cua__bins_scan(&f, of_warp);
}

template <unsigned KEY, unsigned ITEMS>
static __global__ void __launch_bounds__(CUA__BINS_THREADS, 2)
	bin_send_kernel(const __grid_constant__ struct cua__shard_find f)
{
	constexpr unsigned TILE = CUA__BINS_THREADS * ITEMS;
	CUA__SHARED_ARRAY(uint4, send_stage);
	char *stage = (char *)known(send_stage);
	struct cua__bins_shared *sh =
		(struct cua__bins_shared *)(stage + TILE * (KEY + sizeof(CUA__SHARD_OFFSET)));

	cua__bins_send(&f, blockIdx.x, sh, stage, (CUA__SHARD_OFFSET *)(stage + TILE * KEY), KEY,
		       ITEMS);
}

/* Where the shared memory of a tile permits a third block, registers permit few loads at once. */
template <unsigned VALUE>
static __global__ void __launch_bounds__(CUA__BINS_THREADS, VALUE > 4 ? 2 : MOST_RESIDENT)
	bin_take_kernel(const __grid_constant__ struct cua__shard_find f)
{
	CUA__SHARED_ARRAY(uint4, take_stage);
	char *stage = (char *)known(take_stage);
	CUA__SHARD_OFFSET *bin_of = (CUA__SHARD_OFFSET *)(stage + f.tile * VALUE);
	struct cua__bins_shared *sh = (struct cua__bins_shared *)(bin_of + f.tile);

	cua__bins_take(&f, blockIdx.x, sh, stage, bin_of, (uint32_t *)(sh + 1), VALUE,
		       VALUE > 4 ? CUA__BINS_LOADS : CUA__BINS_LOADS / 2);
}

/* Shared memory of a block that sends or takes elements of `size` bytes. */
static unsigned stage_bytes(const struct cua__shard_find *f, uint32_t size)
{
	return f->tile * (size + (unsigned)sizeof(CUA__SHARD_OFFSET)) +
	       (unsigned)sizeof(struct cua__bins_shared) + f->tile / 8;
}

typedef void (*find_kernel)(struct cua__shard_find);

template <unsigned KEY> static find_kernel send_kernel_of(const struct cua__shard_find *f)
{
	return f->tile == CUA__BINS_THREADS * 16  ? bin_send_kernel<KEY, 16>
	       : f->tile == CUA__BINS_THREADS * 8 ? bin_send_kernel<KEY, 8>
						  : bin_send_kernel<KEY, 4>;
}

static enum cua_status launch_tiles(struct cua_context *ctx, find_kernel kernel,
				    const struct cua__shard_find *f, uint32_t size)
{
	enum cua_status status = cua__permit_shared(ctx, (const void *)kernel);

	return status ? status
		      : cua__launch(ctx, kernel, (unsigned)cua__bins_tiles(f), CUA__BINS_THREADS,
				    stage_bytes(f, size), *f);
}

static enum cua_status cuda_bin_keys(struct cua_context *ctx, const struct cua__shard_find *f)
{
	const uint32_t ks = f->key_size;
	const unsigned grid = cua__grid(ctx, f->n, CUA__BINS_THREADS * CUA__BINS_LOADS,
					COUNT_BLOCKS_PER_PROCESSOR);
	enum cua_status status =
		ctx->runtime->set_bytes(ctx, f->counts, 0, cua__bins_all(f) * sizeof(uint32_t));

	if (!status && f->n)
		status = cua__launch(ctx,
				     ks == 4   ? bin_count_kernel<4>
				     : ks == 8 ? bin_count_kernel<8>
					       : bin_count_kernel<16>,
				     grid, CUA__BINS_THREADS, 0, *f);
	if (!status)
		status = cua__launch(ctx, bin_scan_kernel, 1, CUA__BINS_THREADS, 0, *f);
	if (status || !f->n)
		return status;
	return launch_tiles(ctx,
			    ks == 4   ? send_kernel_of<4>(f)
			    : ks == 8 ? send_kernel_of<8>(f)
				      : send_kernel_of<16>(f),
			    f, ks);
}

static enum cua_status cuda_take_answers(struct cua_context *ctx, const struct cua__shard_find *f)
{
	const uint32_t vs = f->values_out ? f->value_size : 0;

	if (!f->n)
		return CUA_OK;
	return launch_tiles(ctx,
			    vs == 4    ? bin_take_kernel<4>
			    : vs == 8  ? bin_take_kernel<8>
			    : vs == 16 ? bin_take_kernel<16>
				       : bin_take_kernel<0>,
			    f, vs);
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
					       cuda_bin_keys,
					       cuda_take_answers,

					       direct_bytes,
					       direct_clear,
					       direct_send,
					       direct_receive,

					       cua__cuda_direct_send_rest,
					       cua__cuda_direct_pull,
					       cua__cuda_direct_scatter_own,
					       cua__cuda_direct_scatter,
					       cua__cuda_direct_build};
