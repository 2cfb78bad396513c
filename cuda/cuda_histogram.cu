/* SPDX-License-Identifier: MIT */
/* Histograms on a GPU: the choice and the launches of the kernels of
 * lib/kernels/histogram_kernel.h.
 * 
 * A block stays on its multiprocessor and counts in all of its shared memory, so that few
 * private histograms have to be merged. A single general kernel serves rows with gaps, several
 * channels, weights, and strategies that the user chose by name. */
#include "config.h"

#include "kernels/exact_windows.h"
#include "backend/filter_backend.h"
#include "kernels/histogram_kernel.h"
#include "backend/segment_backend.h"
#include "launch.h"

#define ANY_BLOCK 256u
#define MERGE_BLOCK 256u
/* Maximum size of the edges' keys that are passed as a kernel parameter. A kernel's parameters
 * have at most 4096 bytes. */
#define NEAR_EDGE_BYTES 3072u
#define PLAIN_SHARED_BYTES ((size_t)48 << 10)

static_assert(CUA__HISTOGRAM_CONTROL >= CUA__SEGMENT_CONTROL + CUA__SEGMENT_CONTROL_BYTES &&
		      CUA__HISTOGRAM_CONTROL + sizeof(struct cua_finish) <= CUA__EXACT_CONTROL,
	      "between the segments' control and the exact sums'");
static_assert(CUA__HISTOGRAM_SUMS_CONTROL >=
			      CUA__FILTER_CONTROL + sizeof(struct cua__filter_control) &&
		      CUA__HISTOGRAM_SUMS_CONTROL + CUA__HISTOGRAM_SUMS * 4 <= CUA__CONTROL_BYTES,
	      "the sums, behind the filters' control");

namespace
{

template <enum cua_type TYPE, enum cua__histogram_rule RULE, enum cua__histogram_layout LAYOUT>
__global__ void __launch_bounds__(CUA__HISTOGRAM_BLOCK)
	count_kernel(const __grid_constant__ struct cua__histogram_job job)
{
	CUA__SHARED_ARRAY(uint32_t, shared);
	struct cua__histogram_block block;

	cua__histogram_begin(TYPE, RULE, LAYOUT, &job, NULL, shared, &block);
	cua__after_predecessor();
	cua__histogram_run(TYPE, RULE, LAYOUT, &job, &block);
}

struct near_edges {
	uint64_t keys[NEAR_EDGE_BYTES / 8];
};
static_assert(sizeof(struct cua__histogram_job) + sizeof(struct near_edges) <= 4096, "parameters");

/* The edges' keys are at job.h.edges, or in `near` if that is NULL. */
template <enum cua_type TYPE, enum cua__histogram_layout LAYOUT>
__global__ void __launch_bounds__(CUA__HISTOGRAM_BLOCK)
	edges_kernel(const __grid_constant__ struct cua__histogram_job job,
		     const __grid_constant__ struct near_edges near)
{
	CUA__SHARED_ARRAY(uint32_t, shared);
	struct cua__histogram_block block;
	/*
	 * taken before all branches: the compiler of CUDA 11.8 fails if only a single branch takes
	 * the address
	 */
	const void *keys = &near;

	if (job.h.edges) {
		/* the preceding kernel may have stored the keys */
		cua__after_predecessor();
		keys = job.h.edges;
	}
	cua__histogram_begin(TYPE, CUA__RULE_EDGES, LAYOUT, &job, keys, shared, &block);
	cua__after_predecessor();
	cua__histogram_run(TYPE, CUA__RULE_EDGES, LAYOUT, &job, &block);
}

template <enum cua__histogram_layout LAYOUT>
__global__ void __launch_bounds__(MERGE_BLOCK)
	merge_kernel(const __grid_constant__ struct cua__histogram_job job, int add)
{
	__shared__ uint64_t shared[MERGE_BLOCK * 4];

	cua__after_predecessor();
	cua__histogram_merge(LAYOUT, &job, add, shared);
}

template <enum cua_type TYPE>
__global__ void __launch_bounds__(ANY_BLOCK, 3)
	any_kernel(const __grid_constant__ struct cua__histogram_job job, uint32_t own_bins)
{
	CUA__SHARED_ARRAY(uint32_t, shared);

	cua__histogram_any_kernel(TYPE, &job, own_bins, shared);
}

__global__ void __launch_bounds__(MERGE_BLOCK)
	sums_kernel(uint64_t n, const uint64_t *units, double unit, int add, double *sums)
{
	const uint64_t threads = (uint64_t)gridDim.x * MERGE_BLOCK;

	for (uint64_t i = (uint64_t)blockIdx.x * MERGE_BLOCK + threadIdx.x; i < n; i += threads)
		sums[i] = cua__histogram_sum(units[i], unit, add, add ? sums[i] : 0);
}

/* ---- kernels by their constants ---- */

typedef void (*count_function)(const struct cua__histogram_job);

template <enum cua_type TYPE, enum cua__histogram_rule RULE>
count_function count_of(enum cua__histogram_layout layout)
{
	constexpr bool PACKED = RULE != CUA__RULE_VALUE;
	constexpr bool WIDE = TYPE == CUA_I64 || TYPE == CUA_U64 || TYPE == CUA_F64;
	constexpr bool WORD = TYPE == CUA_I32 || TYPE == CUA_U32 || TYPE == CUA_F32;

	if (layout == CUA__COUNT_COLUMNS)
		return count_kernel<TYPE, RULE, CUA__COUNT_COLUMNS>;
	if constexpr (RULE != CUA__RULE_VALUE)
		if (layout == CUA__COUNT_WORDS)
			return count_kernel<TYPE, RULE, CUA__COUNT_WORDS>;
	if constexpr (PACKED && (WIDE || WORD)) {
		if (layout == CUA__COUNT_HALVES)
			return count_kernel<TYPE, RULE, CUA__COUNT_HALVES>;
		if (layout == CUA__COUNT_CACHE)
			return count_kernel<TYPE, RULE, CUA__COUNT_CACHE>;
	}
	if constexpr (PACKED && WORD)
		if (layout == CUA__COUNT_BYTES)
			return count_kernel<TYPE, RULE, CUA__COUNT_BYTES>;
	return NULL;
}

template <enum cua_type TYPE> count_function even_of(enum cua__histogram_layout layout)
{
	constexpr enum cua__histogram_rule RULE =
		TYPE == CUA_I64 || TYPE == CUA_U64 ? CUA__RULE_EVEN : CUA__RULE_EVEN_FAST;

	return count_of<TYPE, RULE>(layout);
}

count_function count_of(enum cua_type type, enum cua__histogram_layout layout)
{
	switch (type) {
	case CUA_I8: return count_of<CUA_I8, CUA__RULE_VALUE>(layout);
	case CUA_U8: return count_of<CUA_U8, CUA__RULE_VALUE>(layout);
	case CUA_I16: return even_of<CUA_I16>(layout);
	case CUA_U16: return even_of<CUA_U16>(layout);
	case CUA_I32:
	case CUA_U32: return even_of<CUA_U32>(layout);
	case CUA_I64: return even_of<CUA_I64>(layout);
	case CUA_U64: return even_of<CUA_U64>(layout);
	case CUA_F16: return even_of<CUA_F16>(layout);
	case CUA_BF16: return even_of<CUA_BF16>(layout);
	case CUA_F32: return even_of<CUA_F32>(layout);
	default: return even_of<CUA_F64>(layout);
	}
}

typedef void (*edges_function)(const struct cua__histogram_job, const struct near_edges);

template <enum cua_type TYPE> edges_function edges_of(enum cua__histogram_layout layout)
{
	return layout == CUA__COUNT_COLUMNS ? edges_kernel<TYPE, CUA__COUNT_COLUMNS>
					    : edges_kernel<TYPE, CUA__COUNT_WORDS>;
}

/* For types of more than 8 bits and the layouts that edges support. */
edges_function edges_of(enum cua_type type, enum cua__histogram_layout layout)
{
	switch (type) {
	case CUA_I16: return edges_of<CUA_I16>(layout);
	case CUA_U16: return edges_of<CUA_U16>(layout);
	case CUA_I32: return edges_of<CUA_I32>(layout);
	case CUA_U32: return edges_of<CUA_U32>(layout);
	case CUA_I64: return edges_of<CUA_I64>(layout);
	case CUA_U64: return edges_of<CUA_U64>(layout);
	case CUA_F16: return edges_of<CUA_F16>(layout);
	case CUA_BF16: return edges_of<CUA_BF16>(layout);
	case CUA_F32: return edges_of<CUA_F32>(layout);
	default: return edges_of<CUA_F64>(layout);
	}
}

void (*any_of(enum cua_type type))(const struct cua__histogram_job, uint32_t)
{
	switch (type) {
	case CUA_I8:
	case CUA_U8: return any_kernel<CUA_U8>;
	case CUA_I16:
	case CUA_U16: return any_kernel<CUA_U16>;
	case CUA_I32:
	case CUA_U32: return any_kernel<CUA_U32>;
	case CUA_I64: return any_kernel<CUA_I64>;
	case CUA_U64: return any_kernel<CUA_U64>;
	case CUA_F16: return any_kernel<CUA_F16>;
	case CUA_BF16: return any_kernel<CUA_BF16>;
	case CUA_F32: return any_kernel<CUA_F32>;
	default: return any_kernel<CUA_F64>;
	}
}

/* ---- launching ---- */

enum cua_status allow_shared(struct cua_context *ctx, const void *kernel, size_t shared)
{
	return shared <= PLAIN_SHARED_BYTES ? CUA_OK : cua__permit_shared(ctx, kernel);
}

/* Sets counts and sides to zero before kernels add to them. */
enum cua_status clear_counts(struct cua_context *ctx, struct cua__histogram *h)
{
	const struct cua__runtime *runtime = ctx->runtime;
	enum cua_status status;

	if (!h->clear)
		return CUA_OK;
	h->clear = 0;
	status = runtime->set_bytes(ctx, h->counts, 0,
				    (size_t)h->bins * h->counted * cua__histogram_count_size(h));
	if (!status && h->outside)
		status = runtime->set_bytes(ctx, h->outside, 0,
					    h->counted * CUA_HISTOGRAM_SIDES * sizeof(*h->outside));
	return status;
}

/* Number of bins of each channel that any_kernel counts in shared memory. */
uint32_t own_bins(const struct cua_context *ctx, const struct cua__histogram *h)
{
	const size_t counter = h->weight_type ? 8 : 4,
		     room = ctx->shared_bytes / counter / h->counted;
	const int named =
		h->strategy == CUA_HISTOGRAM_PRIVATIZED || h->strategy == CUA_HISTOGRAM_AGGREGATED;

	if (!named && (h->strategy != CUA_HISTOGRAM_AUTO || h->bins > room - CUA_HISTOGRAM_SIDES ||
		       h->n < h->bins / 4))
		return 0;
	return h->bins < room - CUA_HISTOGRAM_SIDES ? h->bins
						    : (uint32_t)(room - CUA_HISTOGRAM_SIDES);
}

enum cua_status run_any(struct cua_context *ctx, struct cua__histogram_plan *p)
{
	struct cua__histogram *h = &p->job.h;
	void (*kernel)(const struct cua__histogram_job, uint32_t) = any_of(h->type);
	const uint32_t own = own_bins(ctx, h);
	const size_t shared =
		own ? (size_t)(own + CUA_HISTOGRAM_SIDES) * h->counted * (h->weight_type ? 8 : 4)
		    : 0;
	const size_t fit = shared ? ctx->shared_bytes / shared : 4;
	enum cua_status status = clear_counts(ctx, h);
	unsigned blocks = cua__grid(ctx, h->n, ANY_BLOCK * CUA__HISTOGRAM_AT_ONCE,
				    fit < 4 ? (unsigned)fit : 4);

	if (h->n / CUA__HISTOGRAM_MOST_A_BLOCK >= blocks)
		blocks = (unsigned)(h->n / CUA__HISTOGRAM_MOST_A_BLOCK) + 1;
	if (!status)
		status = allow_shared(ctx, (const void *)kernel, shared);
	if (!status)
		status = cua__launch(ctx, kernel, blocks, ANY_BLOCK, shared, p->job, own);
	return status;
}

/* Launches the kernel that counts by edges. */
enum cua_status run_edges(struct cua_context *ctx, const struct cua__histogram_plan *p)
{
	const edges_function kernel = edges_of(p->job.h.type, p->layout);
	struct cua__histogram_job job = p->job;
	struct near_edges near;
	enum cua_status status = allow_shared(ctx, (const void *)kernel, p->shared);

	if (status)
		return status;
	memset(&near, 0, sizeof(near));
	if (job.h.edges_on_host) {
		memcpy(near.keys, job.h.edges,
		       ((size_t)job.h.bins + 1) * cua__histogram_key_bytes(job.h.type));
		job.h.edges = NULL;
	}
	return cua__launch_early(ctx, kernel, job.blocks, p->block, p->shared, job, near);
}

enum cua_status run_layout(struct cua_context *ctx, const struct cua__histogram_plan *p,
			   enum cua__histogram_layout layout, size_t shared)
{
	const count_function kernel = count_of(p->job.h.type, layout);
	enum cua_status status = allow_shared(ctx, (const void *)kernel, shared);

	if (status)
		return status;
	return cua__launch_early(ctx, kernel, p->job.blocks, p->block, shared, p->job);
}

enum cua_status run_count(struct cua_context *ctx, const struct cua__histogram_plan *p)
{
	enum cua_status status = CUA_OK;

	if (p->sampled)
		status = run_layout(ctx, p, CUA__COUNT_CACHE,
				    (size_t)cua__histogram_words(CUA__COUNT_CACHE, &p->job) * 4);
	return status ? status : run_layout(ctx, p, p->layout, p->shared);
}

} // namespace

static void cuda_plan(struct cua_context *ctx, struct cua__histogram *h)
{
	const size_t counters = (size_t)h->bins + CUA_HISTOGRAM_SIDES;
	struct cua__histogram_plan p;

	h->scratch_bytes = 0;
	h->edges_on_host = 0;
	if (h->n != SIZE_MAX) {
		if (cua__histogram_plan(h, (uint32_t)ctx->processors, ctx->shared_bytes, &p)) {
			h->scratch_bytes = cua__histogram_scratch(&p);
			h->edges_on_host =
				p.rule == CUA__RULE_EDGES &&
				((size_t)h->bins + 1) * cua__histogram_key_bytes(h->type) <=
					NEAR_EDGE_BYTES;
		}
		return;
	}
	/* A private histogram has as many words as counters, at most the size of shared memory;
	 * or a word for each value of a byte. One more word follows them. */
	h->scratch_bytes = counters < ctx->shared_bytes / 4 ? counters * 4 : ctx->shared_bytes;
	if (h->scratch_bytes < CUA__HISTOGRAM_BYTES * 4)
		h->scratch_bytes = CUA__HISTOGRAM_BYTES * 4;
	h->scratch_bytes = h->scratch_bytes * (size_t)ctx->processors + 4;
}

static enum cua_status cuda_run(struct cua_context *ctx, const struct cua__histogram *h)
{
	struct cua__histogram_plan p;
	struct cua__histogram_job *job = &p.job;
	const int has_plan =
		cua__histogram_plan(h, (uint32_t)ctx->processors, ctx->shared_bytes, &p);
	enum cua_status status = CUA_OK;

	job->h = *h;
	if (!has_plan)
		return run_any(ctx, &p);
	job->privates = (uint32_t *)h->scratch;
	if (p.sampled)
		job->cached = job->privates + (size_t)job->private_words * job->blocks;
	job->finish = (struct cua_finish *)(void *)((char *)ctx->control + CUA__HISTOGRAM_CONTROL);
	if (p.sums)
		job->sums =
			(uint32_t *)(void *)((char *)ctx->control + CUA__HISTOGRAM_SUMS_CONTROL);
	/* these kernels add to the counts, or clearing would take a single block too long */
	if (p.layout > CUA__COUNT_WORDS || (p.rule == CUA__RULE_VALUE && h->bins > 4096))
		status = clear_counts(ctx, &job->h);
	if (!status)
		status = p.rule == CUA__RULE_EDGES ? run_edges(ctx, &p) : run_count(ctx, &p);
	if (status || job->finish_here || p.layout == CUA__COUNT_CACHE)
		return status;
	return cua__launch_early(ctx,
				 p.layout == CUA__COUNT_HALVES  ? merge_kernel<CUA__COUNT_HALVES>
				 : p.layout == CUA__COUNT_BYTES ? merge_kernel<CUA__COUNT_BYTES>
								: merge_kernel<CUA__COUNT_WORDS>,
				 cua__histogram_merges(job), MERGE_BLOCK, 0, *job, !job->h.clear);
}

static enum cua_status cuda_finish(struct cua_context *ctx, const struct cua__histogram *h)
{
	const uint64_t n = (uint64_t)h->bins * h->counted;

	return cua__launch(ctx, sums_kernel, cua__grid(ctx, n, MERGE_BLOCK, 8), MERGE_BLOCK, 0, n,
			   (const uint64_t *)h->counts, h->unit, h->add_sums, h->sums);
}

const struct cua__histogram_ops cua__cuda_histogram = {cuda_plan, cuda_run, cuda_finish};
