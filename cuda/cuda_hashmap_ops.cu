/* SPDX-License-Identifier: MIT */
/*
 * Operations of a GPU on a whole hash map: the kernels of lib/kernels/hashmap_kernel.h and their
 * launches.
 */
#include "config.h"

#include "cuda_hashmap.h"
#include "kernels/hashmap_kernel.h"
#include "launch.h"

#define THREADS (CUA__SORT_WARPS * 32)
#define BLOCKS_PER_PROCESSOR 8u

/* ---- sorting ---- */

static __global__ void __launch_bounds__(THREADS) differ_kernel(struct cua__sort_arrays s)
{
	__shared__ uint64_t shared[2];

	cua__sort_differ(&s, shared);
}

static __global__ void __launch_bounds__(THREADS) count_kernel(struct cua__sort_arrays s)
{
	__shared__ uint32_t shared[CUA__HASHMAP_DIGITS];

	cua__sort_count(&s, shared);
}

static __global__ void __launch_bounds__(THREADS) scan_kernel(struct cua__sort_arrays s)
{
	__shared__ uint64_t shared[CUA__HASHMAP_DIGITS];

	cua__sort_scan(&s, shared);
}

static __global__ void __launch_bounds__(THREADS) scatter_kernel(struct cua__sort_arrays s)
{
	__shared__ struct cua__sort_shared shared;

	cua__sort_scatter(&s, &shared);
}

static __global__ void __launch_bounds__(THREADS) finish_kernel(struct cua__sort_arrays s)
{
	cua__sort_finish(&s);
}

static unsigned sort_blocks(const struct cua_context *ctx, uint64_t max)
{
	return cua__grid(ctx, max, THREADS * CUA__SORT_ITEMS, BLOCKS_PER_PROCESSOR);
}

static_assert(sizeof(struct cua__hashmap_least) <= 2 * CUA__HASHMAP_DIGITS * sizeof(uint64_t),
	      "it has a place in what the sort has for counts, whatever it sorts");

static size_t cuda_sort_scratch(struct cua_context *ctx, uint32_t key_size, uint32_t value_size,
				uint64_t max)
{
	return cua__scratch_size(max * key_size) + cua__scratch_size(max * value_size) +
	       cua__scratch_size(sizeof(struct cua_u128)) +
	       ((size_t)sort_blocks(ctx, max) + 1) * CUA__HASHMAP_DIGITS * sizeof(uint64_t);
}

static enum cua_status cuda_sort(struct cua_context *ctx, const struct cua__hashmap_sort *sort)
{
	struct cua__sort_arrays s = {};
	enum cua_status status;
	unsigned grid;

	s.key_size = sort->key_size;
	s.value_size = sort->value_size;
	s.blocks = sort_blocks(ctx, sort->max);
	s.max = sort->max;
	s.n = sort->n;
	s.keys[0] = sort->keys;
	s.values[0] = sort->values;
	s.keys[1] = sort->scratch;
	s.values[1] = (char *)s.keys[1] + cua__scratch_size(s.max * s.key_size);
	s.differ =
		(struct cua_u128 *)((char *)s.values[1] + cua__scratch_size(s.max * s.value_size));
	s.counts = (uint64_t *)((char *)s.differ + cua__scratch_size(sizeof(struct cua_u128)));
	grid = cua__grid(ctx, s.max, THREADS, BLOCKS_PER_PROCESSOR);
	status = ctx->runtime->set_bytes(ctx, s.differ, 0, sizeof(*s.differ));
	if (!status)
		status = cua__launch(ctx, differ_kernel, grid, THREADS, 0, s);
	for (s.pass = 0; !status && s.pass < s.key_size; s.pass++) {
		status = cua__launch(ctx, count_kernel, s.blocks, THREADS, 0, s);
		if (!status)
			status = cua__launch(ctx, scan_kernel, 1, THREADS, 0, s);
		if (!status)
			status = cua__launch(ctx, scatter_kernel, s.blocks, THREADS, 0, s);
	}
	return status ? status : cua__launch(ctx, finish_kernel, grid, THREADS, 0, s);
}

/* ---- retrieval ---- */

static __global__ void __launch_bounds__(THREADS)
	rejected_kernel(struct cua_hashmap_view view, uint64_t max, void *keys_out,
			void *values_out, uint64_t *n)
{
	cua__hashmap_retrieve_rejected(&view, max, keys_out, values_out, n);
}

static enum cua_status cuda_rejected(struct cua_context *ctx, const struct cua_hashmap_view *view,
				     uint64_t max, void *keys_out, void *values_out, uint64_t *n)
{
	return cua__launch(ctx, rejected_kernel, cua__grid(ctx, max, THREADS, BLOCKS_PER_PROCESSOR),
			   THREADS, 0, *view, max, keys_out, values_out, n);
}

template <uint32_t KS, uint32_t VS>
static __global__ void __launch_bounds__(THREADS)
	move_kernel(struct cua_hashmap_view from, struct cua_hashmap_view to, int op)
{
	cua__hashmap_move(&from, &to, KS, VS, op);
}

template <uint32_t KS, uint32_t VS>
static __global__ void __launch_bounds__(THREADS)
	slice_kernel(struct cua_hashmap_view view, struct cua__slice slice)
{
	__shared__ struct cua__slice_shared shared;

	cua__hashmap_retrieve_slice(&view, KS, VS, &slice, &shared);
}

template <uint32_t KS, uint32_t VS>
static __global__ void __launch_bounds__(THREADS)
	least_count_kernel(struct cua_hashmap_view view, struct cua__least_arrays arrays)
{
	__shared__ uint32_t shared[CUA__HASHMAP_DIGITS];

	cua__least_count(&view, KS, VS, &arrays, shared);
}

static __global__ void __launch_bounds__(THREADS) least_pick_kernel(struct cua__least_arrays arrays)
{
	__shared__ uint64_t shared[CUA__HASHMAP_DIGITS];

	cua__least_pick(&arrays, shared);
}

template <uint32_t KS, uint32_t VS>
static __global__ void __launch_bounds__(THREADS)
	tally_kernel(struct cua_hashmap_view view, uint32_t *homes,
		     struct cua__hashmap_tally *tally)
{
	__shared__ struct cua__hashmap_tally shared;

	cua__hashmap_count_all(&view, KS, VS, homes, tally, &shared);
}

/* Launches the instance for the view's sizes, with a grid for n slots. */
#define LAUNCH_CASE(ks, vs)                                                                        \
	case ks * 32 + vs:                                                                         \
		return cua__launch(ctx, KERNEL<ks, vs>, grid, THREADS, 0, ARGUMENTS);
#define LAUNCH(view, n)                                                                            \
	const unsigned grid = cua__grid(ctx, n, THREADS, BLOCKS_PER_PROCESSOR);                    \
                                                                                                   \
	switch ((view)->key_size * 32 + (view)->value_size) {                                      \
		CUA__HASHMAP_SIZES(LAUNCH_CASE)                                                    \
	default: return CUA_ERROR_TYPE;                                                            \
	}

static enum cua_status cuda_move(struct cua_context *ctx, const struct cua_hashmap_view *from,
				 const struct cua_hashmap_view *to, int op)
{
#define KERNEL move_kernel
#define ARGUMENTS *from, *to, op
	LAUNCH(from, cua__hashmap_all_slots(from, from->key_size, from->value_size))
#undef KERNEL
#undef ARGUMENTS
}

static enum cua_status launch_slice(struct cua_context *ctx, const struct cua_hashmap_view *view,
				    struct cua__slice slice)
{
#define KERNEL slice_kernel
#define ARGUMENTS *view, slice
	LAUNCH(view, slice.slots)
#undef KERNEL
#undef ARGUMENTS
}

static enum cua_status cuda_slice(struct cua_context *ctx, const struct cua_hashmap_view *view,
				  uint64_t first, uint64_t slots, void *keys_out, void *values_out,
				  uint64_t *n)
{
	struct cua__slice slice = {};

	slice.first = first;
	slice.slots = slots;
	slice.keys_out = keys_out;
	slice.values_out = values_out;
	slice.n = n;
	return launch_slice(ctx, view, slice);
}

static enum cua_status launch_least_count(struct cua_context *ctx,
					  const struct cua_hashmap_view *view,
					  struct cua__least_arrays arrays)
{
#define KERNEL least_count_kernel
#define ARGUMENTS *view, arrays
	LAUNCH(view, cua__hashmap_all_slots(view, view->key_size, view->value_size))
#undef KERNEL
#undef ARGUMENTS
}

static enum cua_status cuda_least(struct cua_context *ctx, const struct cua_hashmap_view *view,
				  const struct cua__hashmap_sort *sort)
{
	struct cua__hashmap_least *least = (struct cua__hashmap_least *)sort->scratch;
	struct cua__least_arrays arrays = {sort->key_size, sort->max, sort->n, least};
	struct cua__slice slice = {};
	enum cua_status status = ctx->runtime->set_bytes(ctx, least, 0, sizeof(*least));

	while (!status && arrays.pass-- > 0) {
		status = launch_least_count(ctx, view, arrays);
		if (!status)
			status = cua__launch(ctx, least_pick_kernel, 1, THREADS, 0, arrays);
	}
	if (status)
		return status;
	slice.slots = cua__hashmap_all_slots(view, view->key_size, view->value_size);
	slice.keys_out = sort->keys;
	slice.values_out = sort->values;
	slice.n = &least->given;
	slice.last = &least->key;
	slice.all = sort->n;
	slice.max = sort->max;
	return launch_slice(ctx, view, slice);
}

static enum cua_status cuda_tally(struct cua_context *ctx, const struct cua_hashmap_view *view,
				  uint32_t *homes, struct cua__hashmap_tally *tally)
{
#define KERNEL tally_kernel
#define ARGUMENTS *view, homes, tally
	LAUNCH(view, cua__hashmap_all_slots(view, view->key_size, view->value_size))
#undef KERNEL
#undef ARGUMENTS
}

const struct cua__hashmap_whole_ops cua__cuda_hashmap_whole = {
	cua__cuda_hashmap_retrieve,
	cuda_sort_scratch,
	cuda_sort,
	cuda_least,
	cuda_rejected,
	cuda_move,
	cuda_slice,
	cuda_tally,
};
