/* SPDX-License-Identifier: MIT */
/* Exact sums and dot products on a GPU: launches of the kernels of lib/kernels/exact_kernel.h. */
#include "config.h"

#include "kernels/exact_kernel.h"
#include "launch.h"

#define BLOCK_SIZE 256
/*
 * Blocks per multiprocessor: enough for the loads in flight, and few enough for registers of three
 * windows. Sums with narrow windows need fewer registers.
 */
static __host__ __device__ constexpr unsigned blocks_per_sm(enum cua_type type, int dot)
{
	return (type == CUA_F16 || type == CUA_BF16) && !dot ? 4 : 2;
}

namespace
{

template <enum cua_type TYPE, int DOT>
__global__ void __launch_bounds__(BLOCK_SIZE, blocks_per_sm(TYPE, DOT))
	exact_kernel(const struct cua__exact r)
{
	__shared__ struct cua__exact_shared shared;

	cua__after_predecessor();
	cua__exact_block(&shared, &r, TYPE, DOT);
}

__global__ void __launch_bounds__(BLOCK_SIZE) round_kernel(const struct cua__exact r)
{
	__shared__ struct cua__exact_shared shared;

	cua__exact_round_block(&shared, &r);
}

} // namespace

template <enum cua_type TYPE>
static enum cua_status launch(struct cua_context *ctx, const struct cua__exact *r, unsigned grid)
{
	if (r->op == CUA_REDUCE_DOT)
		return cua__launch_early(ctx, exact_kernel<TYPE, 1>, grid, BLOCK_SIZE, 0, *r);
	return cua__launch_early(ctx, exact_kernel<TYPE, 0>, grid, BLOCK_SIZE, 0, *r);
}

static enum cua_status cuda_run(struct cua_context *ctx, const struct cua__exact *r)
{
	unsigned arrays = r->op == CUA_REDUCE_DOT ? 2 : 1;
	unsigned grid = cua__grid(
		ctx, r->n, BLOCK_SIZE * CUA__EXACT_LOADS * 16 / (cua_type_size(r->type) * arrays),
		blocks_per_sm(r->type, r->op == CUA_REDUCE_DOT));

	switch (r->type) {
	case CUA_F16: return launch<CUA_F16>(ctx, r, grid);
	case CUA_BF16: return launch<CUA_BF16>(ctx, r, grid);
	case CUA_F32: return launch<CUA_F32>(ctx, r, grid);
	case CUA_F64: return launch<CUA_F64>(ctx, r, grid);
	default: return CUA_ERROR_TYPE;
	}
}

static enum cua_status cuda_finish(struct cua_context *ctx, const struct cua__exact *r)
{
	return cua__launch(ctx, round_kernel, 1, BLOCK_SIZE, 0, *r);
}

/* In the order of the struct's members. */
const struct cua__exact_ops cua__cuda_exact = {cuda_run, cuda_finish};
