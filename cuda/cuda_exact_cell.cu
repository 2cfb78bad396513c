/* SPDX-License-Identifier: MIT */
/* Exact cells on a GPU: launches of the steps of lib/kernels/exact_cell_kernel.h. */
#include "config.h"

#include "kernels/exact_cell_kernel.h"
#include "launch.h"

#define THREADS 256u
#define RANGE_THREADS 512u
/* Elements of a thread between two additions of the block's counters to the call's. */
#define RANGE_STEPS (1u << 20)

namespace
{

__device__ __forceinline__ uint64_t first(void)
{
	return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ uint64_t stride(void)
{
	return (uint64_t)gridDim.x * blockDim.x;
}

template <enum cua_type TYPE>
__global__ void __launch_bounds__(THREADS)
	store_kernel(const __grid_constant__ struct cua__cells_job j)
{
	for (uint64_t i = first(); i < j.c.cells; i += stride())
		cua__cells_store(&j, i, TYPE);
}

__global__ void __launch_bounds__(THREADS)
	spill_kernel(const __grid_constant__ struct cua__cells_job j, uint64_t begin)
{
	const uint64_t spills = cua__cells_slots(&j, begin) ? cua__cells_spills(&j) : 0;

	for (uint64_t k = first(); k < spills; k += stride())
		cua__cells_add_spill(&j, k, begin);
}

__global__ void __launch_bounds__(THREADS)
	round_kernel(const __grid_constant__ struct cua__cells_job j, uint64_t begin)
{
	const uint64_t slots = cua__cells_slots(&j, begin);

	for (uint64_t s = first(); s < slots; s += stride())
		cua__cells_round(&j, s, begin);
}

__global__ void lost_kernel(const __grid_constant__ struct cua__cells_job j)
{
	*j.c.lost = j.state->lost;
}

template <enum cua_type TYPE>
__global__ void __launch_bounds__(RANGE_THREADS)
	count_kernel(const __grid_constant__ struct cua__range r)
{
	__shared__ uint32_t bin[CUA__RANGE_BINS_MAX];
	uint64_t *sum = (uint64_t *)r.scratch;
	uint64_t i = first();

	/* the same number of rounds for all threads of the block */
	for (uint64_t begin = 0; begin < r.n; begin += stride() * RANGE_STEPS) {
		for (uint32_t k = threadIdx.x; k < CUA__RANGE_BINS(TYPE); k += blockDim.x)
			bin[k] = 0;
		__syncthreads();
		for (uint32_t step = 0; step < RANGE_STEPS && i < r.n; step++, i += stride()) {
			uint32_t at[2];

			if (!cua__range_bins(
				    TYPE, cua__element_load(cua__element_size(TYPE), r.x, i), at))
				continue;
			cua_port_add_u32(bin + at[0], 1, CUA_RELAXED, CUA_SCOPE_BLOCK,
					 CUA_SPACE_SHARED);
			if (at[1] != at[0])
				cua_port_add_u32(bin + at[1], 1, CUA_RELAXED, CUA_SCOPE_BLOCK,
						 CUA_SPACE_SHARED);
		}
		__syncthreads();
		for (uint32_t k = threadIdx.x; k < CUA__RANGE_BINS(TYPE); k += blockDim.x)
			if (bin[k])
				cua_port_add_u64(sum + k, bin[k], CUA_RELAXED, CUA_SCOPE_DEVICE,
						 CUA_SPACE_GLOBAL);
		__syncthreads();
	}
}

__global__ void __launch_bounds__(RANGE_THREADS)
	choose_kernel(const __grid_constant__ struct cua__range r)
{
	__shared__ uint64_t bin[CUA__RANGE_BINS_MAX];

	for (uint32_t k = threadIdx.x; k < CUA__RANGE_BINS(r.type); k += blockDim.x)
		bin[k] = ((const uint64_t *)r.scratch)[k];
	__syncthreads();
	if (threadIdx.x == 0)
		cua__range_choose(r.type, bin, r.result);
}

} // namespace

/* ---- finish ---- */

static size_t cuda_scratch(struct cua_context *ctx, const struct cua__cells *c)
{
	struct cua__cells_job j;

	(void)ctx;
	cua__cells_plan(c, &j);
	return cua__cells_lay(&j, NULL);
}

static enum cua_status cuda_finish(struct cua_context *ctx, const struct cua__cells *c)
{
	const unsigned grid = cua__grid(ctx, c->cells, THREADS, 8);
	struct cua__cells_job j;
	enum cua_status status;

	cua__cells_plan(c, &j);
	cua__cells_lay(&j, (char *)c->scratch);
	status = ctx->runtime->set_bytes(ctx, j.state, 0, sizeof(*j.state));
	if (!status)
		status = cua__launch(
			ctx, c->type == CUA_F32 ? store_kernel<CUA_F32> : store_kernel<CUA_F64>,
			grid, THREADS, 0, j);
	for (uint64_t begin = 0; !status && begin < j.most; begin += j.round_slots) {
		status = cua__launch(ctx, spill_kernel, cua__grid(ctx, c->capacity, THREADS, 8),
				     THREADS, 0, j, begin);
		if (!status)
			status = cua__launch(ctx, round_kernel,
					     cua__grid(ctx, j.round_slots, THREADS, 4), THREADS, 0,
					     j, begin);
	}
	if (!status && c->lost)
		status = cua__launch(ctx, lost_kernel, 1, 1, 0, j);
	return status;
}

/* ---- ranges ---- */

static size_t cuda_range_scratch(struct cua_context *ctx, const struct cua__range *r)
{
	(void)ctx;
	(void)r;
	return CUA__RANGE_BINS_MAX * sizeof(uint64_t);
}

static enum cua_status cuda_range(struct cua_context *ctx, const struct cua__range *r)
{
	enum cua_status status = ctx->runtime->set_bytes(
		ctx, r->scratch, 0, CUA__RANGE_BINS(r->type) * sizeof(uint64_t));

	if (!status && r->n)
		status = cua__launch(
			ctx, r->type == CUA_F32 ? count_kernel<CUA_F32> : count_kernel<CUA_F64>,
			cua__grid(ctx, r->n, RANGE_THREADS * 8, 4), RANGE_THREADS, 0, *r);
	return status ? status : cua__launch(ctx, choose_kernel, 1, RANGE_THREADS, 0, *r);
}

/* In the order of the struct's members. */
const struct cua__cells_ops cua__cuda_cells = {cuda_scratch, cuda_finish, cuda_range_scratch,
					       cuda_range};
