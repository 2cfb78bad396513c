/* SPDX-License-Identifier: MIT */
/* Joins on a GPU: a kernel for each step of lib/kernels/join_kernel.h. */
#include "config.h"

#include "kernels/join_kernel.h"
#include "launch.h"

#define THREADS 256u
#define BLOCKS_PER_PROCESSOR 8u
/* The pairs that a warp writes after a bisection. */
#define CHUNK 512u

namespace
{

/* An item of the step for each thread. */
template <enum cua__join_step STEP, int WIDE>
__global__ void __launch_bounds__(THREADS)
	items_kernel(const __grid_constant__ struct cua__join_job j, uint64_t n)
{
	const uint64_t stride = (uint64_t)gridDim.x * THREADS;

	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += stride)
		cua__join_item(STEP, &j, i, WIDE);
}

/* An item of the step for each warp. */
template <enum cua__join_step STEP>
__global__ void __launch_bounds__(THREADS)
	warps_kernel(const __grid_constant__ struct cua__join_job j, uint64_t n)
{
	const uint64_t stride = (uint64_t)gridDim.x * (THREADS / 32);

	for (uint64_t i = (uint64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32; i < n;
	     i += stride)
		cua__join_item(STEP, &j, i, 0);
}

/* A chunk of pairs for each warp. The device knows the number of pairs. */
template <int WIDE>
__global__ void __launch_bounds__(THREADS)
	write_kernel(const __grid_constant__ struct cua__join_job j, uint64_t)
{
	const uint64_t stride = (uint64_t)gridDim.x * (THREADS / 32) * CHUNK;
	const uint64_t stored = cua__join_stored(&j);

	for (uint64_t i = ((uint64_t)blockIdx.x * (THREADS / 32) + threadIdx.x / 32) * CHUNK;
	     i < stored; i += stride)
		cua__join_write(&j, i, stored - i < CHUNK ? stored : i + CHUNK, cua_port_lane(),
				CUA_WARP_LANES, WIDE);
}

typedef void step_kernel(struct cua__join_job, uint64_t);

template <enum cua__join_step STEP> step_kernel *kernel_of(int wide)
{
	return wide ? items_kernel<STEP, 1> : items_kernel<STEP, 0>;
}

} // namespace

static step_kernel *kernel_for(enum cua__join_step step, int wide)
{
	switch (step) {
	case CUA__JOIN_FIND: return kernel_of<CUA__JOIN_FIND>(wide);
	case CUA__JOIN_ROWS: return kernel_of<CUA__JOIN_ROWS>(wide);
	case CUA__JOIN_LISTS: return kernel_of<CUA__JOIN_LISTS>(wide);
	case CUA__JOIN_MATCH: return kernel_of<CUA__JOIN_MATCH>(wide);
	case CUA__JOIN_SUM: return warps_kernel<CUA__JOIN_SUM>;
	case CUA__JOIN_SCAN: return warps_kernel<CUA__JOIN_SCAN>;
	case CUA__JOIN_OFFSET: return warps_kernel<CUA__JOIN_OFFSET>;
	default: return wide ? write_kernel<1> : write_kernel<0>;
	}
}

static enum cua_status cuda_run(struct cua_context *ctx, enum cua__join_step step,
				const struct cua__join_job *j, uint64_t n)
{
	const uint64_t warps = THREADS / 32;
	const uint64_t per_block = step == CUA__JOIN_WRITE     ? warps * CHUNK
				   : cua__join_has_warps(step) ? warps
							       : THREADS;

	return cua__launch(ctx, kernel_for(step, j->d.wide),
			   cua__grid(ctx, n, per_block, BLOCKS_PER_PROCESSOR), THREADS, 0, *j, n);
}

/* In the order of the struct's members. */
const struct cua__join_ops cua__cuda_join = {cuda_run};
