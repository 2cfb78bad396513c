/* SPDX-License-Identifier: MIT */
/* Calls by key on a GPU: a kernel for each step of lib/kernels/group_by_kernel.h. */
#include "config.h"

#include "kernels/group_by_few.h"
#include "kernels/group_by_kernel.h"
#include "kernels/group_by_regions.h"
#include "launch.h"

#define THREADS 256u
#define BLOCKS_PER_PROCESSOR 8u
/* Warps that sort groups: for each multiprocessor, and the least groups of a warp. */
#define PARTS_PER_PROCESSOR 32u
#define PART_LEAST 256u
#define COUNT_THREADS 1024u
#define PARTITION_THREADS 512u
#define ACCUMULATE_THREADS 768u
#define MARK_THREADS 1024u
/* Calls with few groups: threads, and the blocks that find keys or numbers on each multiprocessor. */
#define FEW_THREADS 1024u
#define FEW_BLOCKS 2u
/* Records of a region that a block takes alone in any call. */
#define REGION_LEAST 65536u

namespace
{

/* An item of the step for each thread. */
template <enum cua__group_step STEP, int WIDE>
__global__ void __launch_bounds__(THREADS)
	items_kernel(const __grid_constant__ struct cua__group_job j, uint64_t n)
{
	const uint64_t stride = (uint64_t)gridDim.x * THREADS;

	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride)
		cua__group_item(STEP, &j, i, NULL, WIDE);
}

/* An item of the step for each warp. */
template <enum cua__group_step STEP, int WIDE>
__global__ void __launch_bounds__(THREADS)
	warps_kernel(const __grid_constant__ struct cua__group_job j, uint64_t n)
{
	__shared__ uint64_t counters[THREADS / 32][CUA__GROUP_DIGITS];
	const uint64_t stride = (uint64_t)gridDim.x * (THREADS / 32);
	const uint32_t warp = threadIdx.x / 32;

	for (uint64_t i = (uint64_t)blockIdx.x * (THREADS / 32) + warp; i < n; i += stride)
		cua__group_item(STEP, &j, i, known(counters[warp]), WIDE);
}

__global__ void __launch_bounds__(COUNT_THREADS)
	count_kernel(const __grid_constant__ struct cua__regions_job j)
{
	__shared__ uint32_t count[CUA__REGIONS_LIMIT];

	cua__regions_count(&j, count);
}

__global__ void __launch_bounds__(COUNT_THREADS)
	plan_kernel(const __grid_constant__ struct cua__regions_job j)
{
	__shared__ uint32_t sum[CUA__REGIONS_LIMIT];

	cua__regions_plan(&j, sum);
}

template <unsigned SIZE>
__global__ void __launch_bounds__(PARTITION_THREADS, 2)
	partition_kernel(const __grid_constant__ struct cua__regions_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);
	const uint32_t regions = SIZE == 8 ? CUA__REGIONS : j.regions;
	const struct cua__regions_stage stage = cua__regions_stage_at(known(memory), regions);

	cua__regions_partition(&j, &stage, SIZE, PARTITION_THREADS, regions);
}

/* TYPE is NONE if there are no values. */
template <enum cua_type TYPE>
__global__ void __launch_bounds__(ACCUMULATE_THREADS, 2)
	accumulate_kernel(const __grid_constant__ struct cua__regions_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__regions_accumulate(&j, (struct cua__regions_block *)known(memory),
				TYPE == CUA_NONE ? 4 : 8, TYPE);
}

/* ---- calls with few groups; SIZE is that of a key ---- */

template <unsigned SIZE>
__global__ void __launch_bounds__(FEW_THREADS)
	few_collect_kernel(const __grid_constant__ struct cua__few_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__few_collect(&j, (struct cua__few_block *)known(memory), FEW_THREADS, SIZE);
}

template <unsigned SIZE>
__global__ void __launch_bounds__(FEW_THREADS)
	few_order_kernel(const __grid_constant__ struct cua__few_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__few_order(&j, (struct cua__few_sorter *)known(memory), SIZE);
}

template <unsigned SIZE>
__global__ void __launch_bounds__(FEW_THREADS)
	few_number_kernel(const __grid_constant__ struct cua__few_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__few_number(&j, known(memory), FEW_THREADS, SIZE);
}

template <unsigned SIZE, enum cua_type TYPE, int COUNTS>
__global__ void __launch_bounds__(FEW_THREADS)
	few_accumulate_kernel(const __grid_constant__ struct cua__few_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__few_accumulate(&j, known(memory), FEW_THREADS, SIZE, TYPE, COUNTS);
}

__global__ void __launch_bounds__(THREADS)
	few_round_kernel(const __grid_constant__ struct cua__few_job j)
{
	cua__few_round(&j, (uint64_t)blockIdx.x * THREADS + threadIdx.x);
}

__global__ void __launch_bounds__(MARK_THREADS)
	mark_kernel(const __grid_constant__ struct cua__regions_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__regions_mark(&j, (struct cua__regions_marks *)known(memory));
}

typedef void step_kernel(struct cua__group_job, uint64_t);
typedef void few_kernel(struct cua__few_job);

template <unsigned SIZE, int COUNTS> few_kernel *few_accumulate_kernel_of(enum cua_type type)
{
	switch (type) {
	case CUA_F32: return few_accumulate_kernel<SIZE, CUA_F32, COUNTS>;
	case CUA_I32: return few_accumulate_kernel<SIZE, CUA_I32, COUNTS>;
	case CUA_U32: return few_accumulate_kernel<SIZE, CUA_U32, COUNTS>;
	default: return few_accumulate_kernel<SIZE, CUA_NONE, 1>;
	}
}

template <unsigned SIZE>
few_kernel *few_kernel_of(enum cua__few_step step, const struct cua__group_sums *s)
{
	switch (step) {
	case CUA__FEW_COLLECT: return few_collect_kernel<SIZE>;
	case CUA__FEW_ORDER: return few_order_kernel<SIZE>;
	case CUA__FEW_NUMBER: return few_number_kernel<SIZE>;
	case CUA__FEW_ROUND: return few_round_kernel;
	default:
		return s->counts ? few_accumulate_kernel_of<SIZE, 1>(s->type)
				 : few_accumulate_kernel_of<SIZE, 0>(s->type);
	}
}

template <enum cua__group_step STEP> step_kernel *kernel_of(int wide)
{
	if constexpr (STEP == CUA__GROUP_SORT_COUNT || STEP == CUA__GROUP_SORT_SUM ||
		      STEP == CUA__GROUP_SORT_MOVE)
		return wide ? warps_kernel<STEP, 1> : warps_kernel<STEP, 0>;
	else
		return wide ? items_kernel<STEP, 1> : items_kernel<STEP, 0>;
}

} // namespace

static step_kernel *kernel_for(enum cua__group_step step, int wide)
{
	switch (step) {
	case CUA__GROUP_CLEAR: return kernel_of<CUA__GROUP_CLEAR>(wide);
	case CUA__GROUP_CLAIM: return kernel_of<CUA__GROUP_CLAIM>(wide);
	case CUA__GROUP_FLAG: return kernel_of<CUA__GROUP_FLAG>(wide);
	case CUA__GROUP_ORDER: return kernel_of<CUA__GROUP_ORDER>(wide);
	case CUA__GROUP_SORT_COUNT: return kernel_of<CUA__GROUP_SORT_COUNT>(wide);
	case CUA__GROUP_SORT_SUM: return kernel_of<CUA__GROUP_SORT_SUM>(wide);
	case CUA__GROUP_SORT_MOVE: return kernel_of<CUA__GROUP_SORT_MOVE>(wide);
	case CUA__GROUP_ASSIGN: return kernel_of<CUA__GROUP_ASSIGN>(wide);
	case CUA__GROUP_NUMBER: return kernel_of<CUA__GROUP_NUMBER>(wide);
	case CUA__GROUP_KEYS: return kernel_of<CUA__GROUP_KEYS>(wide);
	case CUA__GROUP_MASK: return kernel_of<CUA__GROUP_MASK>(wide);
	case CUA__GROUP_ONES: return kernel_of<CUA__GROUP_ONES>(wide);
	case CUA__GROUP_LEAST_ROW: return kernel_of<CUA__GROUP_LEAST_ROW>(wide);
	case CUA__GROUP_GREATEST_ROW: return kernel_of<CUA__GROUP_GREATEST_ROW>(wide);
	case CUA__GROUP_GATHER: return kernel_of<CUA__GROUP_GATHER>(wide);
	case CUA__GROUP_CONVERT: return kernel_of<CUA__GROUP_CONVERT>(wide);
	case CUA__GROUP_SUBTRACT: return kernel_of<CUA__GROUP_SUBTRACT>(wide);
	case CUA__GROUP_REFINE: return kernel_of<CUA__GROUP_REFINE>(wide);
	case CUA__GROUP_SQUARE: return kernel_of<CUA__GROUP_SQUARE>(wide);
	case CUA__GROUP_VARIANCE: return kernel_of<CUA__GROUP_VARIANCE>(wide);
	case CUA__GROUP_INVERSE: return kernel_of<CUA__GROUP_INVERSE>(wide);
	default: return kernel_of<CUA__GROUP_FIRST_ROWS>(wide);
	}
}

static enum cua_status cuda_run(struct cua_context *ctx, enum cua__group_step step,
				const struct cua__group_job *j, uint64_t n)
{
	const uint64_t per_block = cua__group_has_warps(step) ? THREADS / 32 : THREADS;

	return cua__launch(ctx, kernel_for(step, j->d.wide),
			   cua__grid(ctx, n, per_block, BLOCKS_PER_PROCESSOR), THREADS, 0, *j, n);
}

static uint32_t cuda_parts(struct cua_context *ctx, uint64_t n)
{
	const uint64_t most = (uint64_t)ctx->processors * PARTS_PER_PROCESSOR;
	const uint64_t wanted = n / PART_LEAST + 1;

	return (uint32_t)(wanted < most ? wanted : most);
}

/* ---- calls in regions ---- */

static uint32_t record_size(const struct cua__regions_job *j)
{
	return j->s.type == CUA_NONE ? 4 : 8;
}

/* Sets the addresses and returns the size. The first *zeros bytes must be zero. */
static size_t lay(struct cua__regions_job *j, char *base, size_t *zeros)
{
	struct cua__arena a = {base, 0};

	j->state = (struct cua__regions_state *)cua__arena_next(&a, sizeof(*j->state));
	j->count = (uint32_t *)cua__arena_next(&a, j->regions * sizeof(uint32_t));
	*zeros = a.used;
	j->cursor = (uint32_t *)cua__arena_next(&a, j->regions * sizeof(uint32_t));
	j->before = (uint32_t *)cua__arena_next(&a, (j->regions + 1) * sizeof(uint32_t));
	j->record = cua__arena_next(&a, (size_t)j->n * record_size(j));
	return a.used;
}

/* Whether the call finds keys alone, by their bits. */
static int marks(const struct cua__regions_job *j)
{
	return j->regions != CUA__REGIONS;
}

/* The regions of a call: for keys alone as many as their bits need, if they are not too many. */
static uint32_t regions_of(const struct cua_context *ctx, const struct cua__regions_job *j)
{
	uint32_t regions = CUA__REGIONS + 1;

	if (j->s.type != CUA_NONE || j->s.counts)
		return CUA__REGIONS;
	while (regions < CUA__REGIONS_LIMIT && cua__regions_mark_bytes(regions) > ctx->shared_bytes)
		regions++;
	return cua__regions_mark_bytes(regions) > ctx->shared_bytes ? CUA__REGIONS : regions;
}

static size_t cuda_regions_scratch(struct cua_context *ctx, const struct cua__regions_job *j)
{
	struct cua__regions_job placed = *j;
	size_t zeros;

	placed.regions = regions_of(ctx, j);
	if (cua__regions_stage_bytes(PARTITION_THREADS, record_size(j), placed.regions) >
	    ctx->shared_bytes)
		return 0;
	return lay(&placed, NULL, &zeros);
}

/* Launches a kernel with dynamic shared memory. */
template <typename JOB>
static enum cua_status launch(struct cua_context *ctx, void (*kernel)(JOB), unsigned blocks,
			      unsigned threads, size_t bytes, const JOB *j)
{
	enum cua_status status = cua__permit_shared(ctx, (const void *)kernel);

	return status ? status : cua__launch(ctx, kernel, blocks, threads, bytes, *j);
}

/* Launches the last kernel: tables, or bits. */
static enum cua_status accumulate(struct cua_context *ctx, const struct cua__regions_job *j)
{
	const unsigned processors = (unsigned)ctx->processors;

	if (marks(j))
		return launch(ctx, mark_kernel, processors, MARK_THREADS,
			      cua__regions_mark_bytes(j->regions), j);
	return launch(ctx,
		      j->s.type == CUA_F32   ? accumulate_kernel<CUA_F32>
		      : j->s.type == CUA_I32 ? accumulate_kernel<CUA_I32>
		      : j->s.type == CUA_U32 ? accumulate_kernel<CUA_U32>
					     : accumulate_kernel<CUA_NONE>,
		      2 * processors, ACCUMULATE_THREADS, cua__regions_table_bytes(j), j);
}

static enum cua_status cuda_regions(struct cua_context *ctx, struct cua__regions_job *j,
				    void *scratch)
{
	const int sums = j->s.type != CUA_NONE;
	const uint32_t record = record_size(j);
	/* a multiprocessor keeps 1 KiB of each block */
	const uint32_t bytes = (uint32_t)ctx->shared_bytes / 2 - 1024;
	enum cua_status status;
	size_t zeros;

	j->regions = regions_of(ctx, j);
	lay(j, (char *)scratch, &zeros);
	j->most = j->n / (unsigned)ctx->processors + REGION_LEAST;
	j->entries = 0;
	j->entries = (bytes - cua__regions_table_bytes(j)) / (4 * cua__regions_words(j)) & ~3u;
	status = ctx->runtime->set_bytes(ctx, scratch, 0, zeros);
	if (!status)
		status = cua__launch(ctx, count_kernel, cua__grid(ctx, j->n, 4 * COUNT_THREADS, 2),
				     COUNT_THREADS, 0, *j);
	if (!status)
		status = cua__launch(ctx, plan_kernel, 1, COUNT_THREADS, 0, *j);
	if (!status)
		status = launch(ctx, sums ? partition_kernel<8> : partition_kernel<4>,
				2 * (unsigned)ctx->processors, PARTITION_THREADS,
				cua__regions_stage_bytes(PARTITION_THREADS, record, j->regions), j);
	return status ? status : accumulate(ctx, j);
}

/* ---- calls with few groups ---- */

/* The shared memory of a block of a step. */
static uint32_t few_bytes(enum cua__few_step step, const struct cua__few_job *j)
{
	const uint32_t size = j->d.key_size;

	switch (step) {
	case CUA__FEW_COLLECT: return cua__few_collect_bytes(j, size);
	case CUA__FEW_ORDER: return cua__few_order_bytes(j);
	case CUA__FEW_NUMBER: return cua__few_number_bytes(j, size);
	case CUA__FEW_ACCUMULATE: return cua__few_accumulate_bytes(j, size);
	default: return 0;
	}
}

/* A table has as many slots as two blocks of each step can have, and one that accumulates. */
static int cuda_few_fits(struct cua_context *ctx, struct cua__few_job *j)
{
	/* a multiprocessor keeps 1 KiB of each block */
	const size_t half = ctx->shared_bytes / 2 - 1024;

	j->bytes = (uint32_t)ctx->shared_bytes;
	for (j->log = CUA__FEW_LOG; j->log >= 8; j->log--)
		if (few_bytes(CUA__FEW_COLLECT, j) <= half &&
		    few_bytes(CUA__FEW_NUMBER, j) <= half && few_bytes(CUA__FEW_ORDER, j) <= half &&
		    few_bytes(CUA__FEW_ACCUMULATE, j) <= j->bytes)
			return 1;
	return 0;
}

static enum cua_status cuda_few(struct cua_context *ctx, enum cua__few_step step,
				const struct cua__few_job *j)
{
	few_kernel *kernel =
		j->d.key_size == 4 ? few_kernel_of<4>(step, &j->s) : few_kernel_of<8>(step, &j->s);
	const unsigned processors = (unsigned)ctx->processors;
	/* more copies of the sums take all shared memory */
	const uint32_t bytes = step == CUA__FEW_ACCUMULATE ? j->bytes : few_bytes(step, j);

	if (step == CUA__FEW_ROUND)
		return cua__launch(ctx, kernel, (cua__few_most(j) - 1) / THREADS + 1, THREADS, 0,
				   *j);
	return launch(ctx, kernel,
		      step == CUA__FEW_ORDER        ? 1
		      : step == CUA__FEW_ACCUMULATE ? processors
						    : processors * FEW_BLOCKS,
		      FEW_THREADS, bytes, j);
}

/* In the order of the struct's members. */
const struct cua__group_by_ops cua__cuda_group_by = {
	cuda_run, cuda_parts, cuda_regions_scratch, cuda_regions, cuda_few_fits, cuda_few};
