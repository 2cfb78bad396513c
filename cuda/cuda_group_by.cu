/* SPDX-License-Identifier: MIT */
/* Calls by key on a GPU: a kernel for each step of lib/kernels/group_by_kernel.h. */
#include "config.h"

#include "kernels/group_by_kernel.h"
#include "launch.h"

#define THREADS 256u
#define BLOCKS_PER_PROCESSOR 8u
/* Warps that sort groups: for each multiprocessor, and the least groups of a warp. */
#define PARTS_PER_PROCESSOR 32u
#define PART_LEAST 256u

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

typedef void step_kernel(struct cua__group_job, uint64_t);

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

/* In the order of the struct's members. */
const struct cua__group_by_ops cua__cuda_group_by = {cuda_run, cuda_parts};
