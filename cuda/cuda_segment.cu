/* SPDX-License-Identifier: MIT */
/*
 * Segmented reductions on a GPU: launches of the kernels of lib/kernels/segment_kernel.h and
 * lib/kernels/segment_tree.h. The filter's kernels find runs of equal keys. If most runs are short,
 * they are found and summed in a single pass instead (cuda_segment_runs.cu).
 */
#include "config.h"

#include "cuda_segment.h"
#include "kernels/segment_kernel.h"
#include "kernels/segment_tree.h"
#include "launch.h"

/*
 * Few blocks leave more registers a thread, and so more loads in flight for long ranges without an
 * end.
 */
#define BLOCKS_PER_PROCESSOR 4

/*
 * Blocks per multiprocessor for the tree, by the expected length of most segments. Columns of
 * 2-byte elements need more registers.
 */
static __host__ __device__ constexpr unsigned tree_blocks(enum cua__fixed_length most, size_t size)
{
	return (most == CUA__FIXED_TINY || most == CUA__FIXED_LISTED ? 6
		: most == CUA__FIXED_FEW_ROWS                        ? 4
								     : 3) -
	       (size > 2                    ? 0
		: most >= CUA__FIXED_LONGER ? 1
					    : 2);
}

/* The same for the kernels of the list: strips, and the partial results of the strips. */
static __host__ __device__ constexpr unsigned strip_blocks(size_t size)
{
	return size > 2 ? 3 : 2;
}
#define JOIN_BLOCKS 2

/*
 * Mean bytes of a segment. Below them, most segments are short enough for a lane (TINY), for a few
 * lanes (FEW_ROWS), or for a warp (LISTED_FROM). Longer segments are all listed, because a warp a
 * segment would leave warps idle.
 */
#define TINY_BELOW 96
#define FEW_ROWS_BELOW 1024
#define LISTED_FROM 16384

/*
 * Mean elements of a segment from which on the merge path is faster: few segments end, so nearly
 * all elements are streamed.
 */
#define TREE_BELOW 65536

/* Elements up to which the filter finds runs in a single launch, with nothing to reset. */
#define SHORT_RUNS ((uint64_t)1 << 18)

namespace
{

template <enum cua_reduce_op OP, enum cua_type TYPE>
__global__ void __launch_bounds__(CUA__SEGMENT_BLOCK, BLOCKS_PER_PROCESSOR)
	fast_kernel(const __grid_constant__ struct cua__segments s)
{
	__shared__ struct cua__segment_shared shared;

	cua__segment_fast(OP, TYPE, &s, &shared);
}

#define DEFINE_KERNELS(kind, T, two, C, A, none, widen, combine, store)                            \
	template <enum cua__fixed_length MOST>                                                     \
	__global__ void __launch_bounds__(CUA__TREE_THREADS, tree_blocks(MOST, sizeof(T)))         \
		short_##kind(const __grid_constant__ struct cua__segments s,                       \
			     const __grid_constant__ struct cua__fixed_lists f)                    \
	{                                                                                          \
		cua__segment_fixed_short_##kind(&s, &f, MOST);                                     \
	}                                                                                          \
                                                                                                   \
	__global__ void __launch_bounds__(CUA__TREE_THREADS,                                       \
					  tree_blocks(CUA__FIXED_TINY, sizeof(T)))                 \
		pending_##kind(const __grid_constant__ struct cua__segments s,                     \
			       const __grid_constant__ struct cua__fixed_lists f)                  \
	{                                                                                          \
		cua__after_predecessor();                                                          \
		cua__segment_fixed_pending_##kind(&s, &f);                                         \
	}                                                                                          \
                                                                                                   \
	__global__ void __launch_bounds__(CUA__TREE_THREADS, strip_blocks(sizeof(T)))              \
		strips_##kind(const __grid_constant__ struct cua__segments s,                      \
			      const __grid_constant__ struct cua__fixed_lists f)                   \
	{                                                                                          \
		cua__after_predecessor();                                                          \
		cua__segment_fixed_strips_##kind(&s, &f);                                          \
	}                                                                                          \
                                                                                                   \
	__global__ void __launch_bounds__(CUA__TREE_THREADS, JOIN_BLOCKS)                          \
		join_##kind(const __grid_constant__ struct cua__segments s,                        \
			    const __grid_constant__ struct cua__fixed_lists f)                     \
	{                                                                                          \
		__shared__ struct cua__fixed_scratch scratch;                                      \
                                                                                                   \
		cua__after_predecessor();                                                          \
		cua__segment_fixed_join_##kind(&s, &f, &scratch);                                  \
	}
CUA__TREE_FLOAT_SUMS(DEFINE_KERNELS)

} // namespace

static unsigned fast_blocks(const struct cua_context *ctx, const struct cua__segments *s)
{
	return cua__grid(ctx, s->n + s->segments, CUA__SEGMENT_ITEMS * CUA__SEGMENT_BLOCK,
			 BLOCKS_PER_PROCESSOR);
}

/*
 * The mean for an upper bound of the number of segments; with fewer segments, the call takes
 * longer.
 */
static enum cua__fixed_length most_segments(const struct cua__segments *s)
{
	const uint64_t mean = s->segments ? s->n / s->segments * s->size : 0;

	return mean < TINY_BELOW       ? CUA__FIXED_TINY
	       : mean < FEW_ROWS_BELOW ? CUA__FIXED_FEW_ROWS
	       : mean < LISTED_FROM    ? CUA__FIXED_LONGER
				       : CUA__FIXED_LISTED;
}

static size_t cuda_segments_scratch(struct cua_context *ctx, const struct cua__segments *s)
{
	return s->kind ? cua__fixed_lists_size(s, most_segments(s))
		       : fast_blocks(ctx, s) * sizeof(struct cua__path_part);
}

/* The filter that keeps the first key of each run, in order, with its index. */
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
	f.count_copy = r->count;
	return f;
}

/* Whether most runs are expected to be tiny, so that they are summed where they are found. */
static bool sums_runs(const struct cua_context *ctx, const struct cua__runs *r,
		      const struct cua__segments *s)
{
	return r->n > SHORT_RUNS && r->capacity && most_segments(s) == CUA__FIXED_TINY &&
	       cua__cuda_can_sum_runs(ctx, r, s);
}

static size_t cuda_runs_scratch(struct cua_context *ctx, const struct cua__runs *r,
				const struct cua__segments *s)
{
	const struct cua__filter f = runs_filter(r);

	return sums_runs(ctx, r, s) ? cua__cuda_sum_runs_scratch(r, s)
				    : cua__cuda_filter.scratch(ctx, &f);
}

static enum cua_status fixed(struct cua_context *ctx, const struct cua__segments *s)
{
	typedef void kernel(struct cua__segments, struct cua__fixed_lists);
	const enum cua__fixed_length most = most_segments(s);
	const struct cua__fixed_lists f = cua__fixed_lists(s, most);
	const uint64_t strip = cua__fixed_strip(s->size);
	kernel *shorts = NULL, *pending = NULL, *strips = NULL, *join = NULL;
	/* a warp for 32 segments, or for the elements of each strip */
	uint64_t warps = s->segments < s->n / strip ? s->segments : s->n / strip;
	enum cua_status status;

	switch (s->kind) {
#define CHOOSE(kind, T, two, C, A, none, widen, combine, store)                                    \
	case CUA__TREE_##kind:                                                                     \
		shorts = most == CUA__FIXED_TINY       ? short_##kind<CUA__FIXED_TINY>             \
			 : most == CUA__FIXED_FEW_ROWS ? short_##kind<CUA__FIXED_FEW_ROWS>         \
			 : most == CUA__FIXED_LONGER   ? short_##kind<CUA__FIXED_LONGER>           \
						       : short_##kind<CUA__FIXED_LISTED>;            \
		pending = pending_##kind;                                                          \
		strips = strips_##kind;                                                            \
		join = join_##kind;                                                                \
		break;
		CUA__TREE_FLOAT_SUMS(CHOOSE)
	default: return CUA_ERROR_TYPE;
	}
	if (warps < s->segments / 32 + 1)
		warps = s->segments / 32 + 1;
	if (s->pending) {
		/* a warp for 32 words of the bitmap */
		status =
			cua__launch_early(ctx, pending,
					  cua__grid(ctx, s->segments / 32 + 1, 32 * CUA__TREE_WARPS,
						    tree_blocks(most, s->size)),
					  CUA__TREE_THREADS, 0, *s, f);
	} else {
		status = ctx->runtime->set_bytes(ctx, f.state, 0, sizeof(*f.state));
		if (!status)
			status = cua__launch(
				ctx, shorts,
				cua__grid(ctx, warps, CUA__TREE_WARPS, tree_blocks(most, s->size)),
				CUA__TREE_THREADS, 0, *s, f);
	}
	/* no segment is longer than n */
	if (status || (most != CUA__FIXED_LISTED && s->n <= CUA__TREE_WARPS * strip))
		return status;
	status =
		cua__launch_early(ctx, strips, cua__grid(ctx, f.capacity, 1, strip_blocks(s->size)),
				  CUA__TREE_THREADS, 0, *s, f);
	if (!status)
		status = cua__launch_early(
			ctx, join, cua__grid(ctx, f.capacity, CUA__TREE_THREADS, JOIN_BLOCKS),
			CUA__TREE_THREADS, 0, *s, f);
	return status;
}

static enum cua_status cuda_segments(struct cua_context *ctx, const struct cua__segments *s)
{
	if (s->kind)
		return fixed(ctx, s);
#define RUN_FAST(name, op_name, type_name, T, A, R, family, element, value, nothing)               \
	if (s->op == CUA_REDUCE_##op_name && s->type == CUA_##type_name)                           \
		return cua__launch(ctx, fast_kernel<CUA_REDUCE_##op_name, CUA_##type_name>,        \
				   fast_blocks(ctx, s), CUA__SEGMENT_BLOCK, 0, *s);
	CUA__REDUCE_SINGLE(RUN_FAST)
	return CUA_ERROR_TYPE;
}

static enum cua_status cuda_runs(struct cua_context *ctx, const struct cua__runs *r,
				 struct cua__segments *s)
{
	const struct cua__filter f = runs_filter(r);

	if (sums_runs(ctx, r, s))
		return cua__cuda_sum_runs(ctx, r, &f, s,
					  cua__fixed_lists(s, CUA__FIXED_TINY).state);
	return cua__cuda_filter.filter(ctx, &f, r->scratch);
}

/* In the order of the struct's members. */
const struct cua__segment_ops cua__cuda_segment = {cuda_segments_scratch, cuda_runs_scratch,
						   cuda_segments, cuda_runs, TREE_BELOW};
