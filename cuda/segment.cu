/* SPDX-License-Identifier: MIT */
/*
 * Segmented reductions on a GPU: the kernels of lib/segment_kernel.h and what launches them. Runs of equal keys are found
 * by the kernels of the filter.
 */
#include "config.h"

#include "../lib/filter.h"
#include "../lib/segment_kernel.h"
#include "launch.h"

/* With more registers a thread, and so more loads in flight; the long runs without an end want them. */
#define BLOCKS_PER_PROCESSOR 4

/* A thread sums a short segment, and a block a chunk of a long one; the merge path pays for very long ones. */
#define TREE_BELOW 4096

namespace {

template <enum cua_reduce_op OP, enum cua_type TYPE>
__global__ void __launch_bounds__(CUA__SEGMENT_BLOCK, BLOCKS_PER_PROCESSOR)
	fast_kernel(const struct cua__segments s)
{
	__shared__ struct cua__segment_shared shared;

	cua__segment_fast(OP, TYPE, &s, &shared);
}

template <enum cua_type TYPE>
__global__ void __launch_bounds__(CUA__SEGMENT_BLOCK) fixed_short_kernel(const struct cua__segments s)
{
	cua__segment_fixed_short(TYPE, &s);
}

template <enum cua_type TYPE>
__global__ void __launch_bounds__(CUA__SEGMENT_BLOCK, 4)
	fixed_long_kernel(const struct cua__segments s)
{
	__shared__ struct cua__fixed_shared shared;

	cua__segment_fixed_long(TYPE, &s, &shared);
}

} // namespace

static unsigned fast_blocks(const struct cua_context *ctx, const struct cua__segments *s)
{
	return cua__grid(ctx, s->n + s->segments, CUA__SEGMENT_ITEMS * CUA__SEGMENT_BLOCK,
			 BLOCKS_PER_PROCESSOR);
}

static size_t cuda_segments_scratch(struct cua_context *ctx, const struct cua__segments *s)
{
	return s->fixed ? cua__fixed_lists_size(s) : fast_blocks(ctx, s) * sizeof(struct cua__part);
}

/* The keys that begin a run, in order, and where they are. */
static struct cua__filter runs_filter(const struct cua__runs *r)
{
	struct cua__filter f = {};

	f.key = CUA__FILTER_CHANGE;
	f.size = (uint32_t)r->key_size;
	f.n = r->n;
	f.x = r->keys;
	f.ordered = 1;
	f.capacity = r->capacity;
	f.values = r->capacity ? r->unique_keys : NULL;
	f.indexes = r->offsets;
	f.index_size = sizeof(*r->offsets);
	f.count = r->total;
	f.count_too = r->count;
	return f;
}

static size_t cuda_runs_scratch(struct cua_context *ctx, const struct cua__runs *r)
{
	const struct cua__filter f = runs_filter(r);

	return cua__cuda_filter.scratch(ctx, &f);
}

static enum cua_status fixed(struct cua_context *ctx, const struct cua__segments *s)
{
	const struct cua__fixed_lists f = cua__fixed_lists(s);
	enum cua_status status;

	status = ctx->backend->runtime->set_bytes(ctx, f.state, 0, sizeof(*f.state));
	if (!status)
		status = cua__launch(ctx,
				     s->type == CUA_F32 ? fixed_short_kernel<CUA_F32>
							: fixed_short_kernel<CUA_F64>,
				     cua__grid(ctx, s->segments, CUA__SEGMENT_BLOCK, 8),
				     CUA__SEGMENT_BLOCK, 0, *s);
	/* no segment is longer than n */
	if (!status && s->n > cua__fixed_strip(s->type))
		status = cua__launch(ctx,
				     s->type == CUA_F32 ? fixed_long_kernel<CUA_F32>
							: fixed_long_kernel<CUA_F64>,
				     cua__grid(ctx, f.capacity, 1, 4), CUA__SEGMENT_BLOCK, 0, *s);
	return status;
}

static enum cua_status cuda_segments(struct cua_context *ctx, const struct cua__segments *s)
{
	if (s->fixed)
		return fixed(ctx, s);
#define RUN_FAST(name, op_name, type_name, T, A, R, family, element, value, nothing)               \
	if (s->op == CUA_REDUCE_##op_name && s->type == CUA_##type_name)                           \
		return cua__launch(ctx, fast_kernel<CUA_REDUCE_##op_name, CUA_##type_name>,        \
				   fast_blocks(ctx, s), CUA__SEGMENT_BLOCK, 0, *s);
	CUA__REDUCE_SINGLE(RUN_FAST)
	return CUA_ERROR_TYPE;
}

static enum cua_status cuda_runs(struct cua_context *ctx, const struct cua__runs *r)
{
	const struct cua__filter f = runs_filter(r);

	return cua__cuda_filter.filter(ctx, &f, r->scratch);
}

/* In the order of the struct. */
const struct cua__segment_ops cua__cuda_segment = {cuda_segments_scratch, cuda_runs_scratch,
						   cuda_segments, cuda_runs, TREE_BELOW};
