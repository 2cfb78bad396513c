/* SPDX-License-Identifier: MIT */
/* The filter on a GPU: the kernels of lib/kernels/filter_kernel.h and their launches. */
#include "config.h"

#include "kernels/filter_kernel.h"
#include "launch.h"

#define WARPS 8u
/* At this occupancy a thread has enough registers to keep all its loads in flight. */
#define ANY_ORDER_BLOCKS_PER_PROCESSOR 4
#define IN_ORDER_BLOCKS_PER_PROCESSOR 4
/* An offset may take the time of two tiles to arrive. */
#define IN_ORDER_STAGES 3
/* Larger tiles with fewer blocks are faster if their stages fit. */
#define WIDE_LOADS 8u
#define WIDE_BLOCKS_PER_PROCESSOR 2
/* Loads of a thread. A tile that stores only values is twice as large. */
#define SHORT_LOADS 2u

static __host__ __device__ constexpr uint32_t any_order_loads(bool lean)
{
	return lean ? 8 : 4;
}

/* Chosen so that the stages of IN_ORDER_BLOCKS_PER_PROCESSOR blocks fit. */
static __host__ __device__ constexpr uint32_t in_order_loads(enum cua__filter_key key,
							     uint32_t size, bool lean)
{
	return (lean || key == CUA__FILTER_CHANGE ? 4 : 2) * (size <= 2 ? 2 : 1);
}

/* Bytes of an element in the stage; for runs only the numbers of elements are staged. */
static __host__ __device__ constexpr uint32_t staged_size(enum cua__filter_key key, uint32_t size)
{
	return key == CUA__FILTER_CHANGE ? 0 : size;
}

static __host__ __device__ constexpr uint32_t tile_size(uint32_t size, uint32_t loads)
{
	return WARPS * 32 * loads * (size <= 4 ? 4 : 16 / size);
}

namespace
{

template <enum cua__filter_key KEY, uint32_t SIZE, bool LEAN>
__global__ void __launch_bounds__(WARPS * 32, ANY_ORDER_BLOCKS_PER_PROCESSOR)
	any_order_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, any_order_loads(LEAN), WARPS, LEAN, 1};
	constexpr uint32_t TILE = tile_size(SIZE, kind.loads);
	__shared__ struct cua__filter_shared shared;
	__shared__ __align__(16) unsigned char stage[TILE * SIZE];
	__shared__ CUA__FILTER_LOCAL locals[LEAN ? 1 : TILE];

	cua__filter_any_order(kind, &f, &shared, stage, locals);
}

template <enum cua__filter_key KEY, uint32_t SIZE, bool LEAN, uint32_t LOADS, int BLOCKS>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS)
	in_order_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, LOADS, WARPS, LEAN, IN_ORDER_STAGES};
	constexpr uint32_t TILE = tile_size(SIZE, LOADS);
	__shared__ struct cua__filter_shared shared;
	extern __shared__ uint4 in_order_stage[];

	cua__filter_in_order(
		kind, &f, &shared, in_order_stage,
		(CUA__FILTER_LOCAL *)((char *)in_order_stage +
				      IN_ORDER_STAGES * TILE * staged_size(KEY, SIZE)));
}

template <enum cua__filter_key KEY, uint32_t SIZE>
__global__ void __launch_bounds__(WARPS * 32)
	short_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, SHORT_LOADS, WARPS, 0, 1};
	constexpr uint32_t TILE = tile_size(SIZE, SHORT_LOADS);
	__shared__ struct cua__filter_shared shared;
	__shared__ __align__(16) unsigned char stage[TILE * SIZE];
	__shared__ CUA__FILTER_LOCAL locals[TILE];

	cua__after_predecessor();
	cua__filter_short(kind, &f, &shared, stage, locals);
}

typedef void (*kernel)(struct cua__filter);
enum way { ANY_ORDER, IN_ORDER, IN_ORDER_WIDE, SHORT };

template <enum cua__filter_key KEY, uint32_t SIZE> kernel kernel_of(enum way way, bool lean)
{
	switch (way) {
	case ANY_ORDER:
		return lean ? (kernel)any_order_kernel<KEY, SIZE, true>
			    : (kernel)any_order_kernel<KEY, SIZE, false>;
	case IN_ORDER:
		return lean ? (kernel)in_order_kernel<KEY, SIZE, true,
						      in_order_loads(KEY, SIZE, true),
						      IN_ORDER_BLOCKS_PER_PROCESSOR>
			    : (kernel)in_order_kernel<KEY, SIZE, false,
						      in_order_loads(KEY, SIZE, false),
						      IN_ORDER_BLOCKS_PER_PROCESSOR>;
	case IN_ORDER_WIDE:
		return (kernel)
			in_order_kernel<KEY, SIZE, true, WIDE_LOADS, WIDE_BLOCKS_PER_PROCESSOR>;
	default: return (kernel)short_kernel<KEY, SIZE>;
	}
}

template <enum cua__filter_key KEY> kernel kernel_of(uint32_t size, enum way way, bool lean)
{
	switch (size) {
	case 1: return KEY == CUA__FILTER_FLOAT ? NULL : kernel_of<KEY, 1>(way, lean);
	case 2: return kernel_of<KEY, 2>(way, lean);
	case 4: return kernel_of<KEY, 4>(way, lean);
	case 8: return kernel_of<KEY, 8>(way, lean);
	default: return KEY != CUA__FILTER_FLAG ? NULL : kernel_of<CUA__FILTER_FLAG, 16>(way, lean);
	}
}

template <uint32_t SIZE> kernel runs_kernel(enum way way)
{
	return way == SHORT
		       ? (kernel)short_kernel<CUA__FILTER_CHANGE, SIZE>
		       : (kernel)in_order_kernel<CUA__FILTER_CHANGE, SIZE, false,
						 in_order_loads(CUA__FILTER_CHANGE, SIZE, false),
						 IN_ORDER_BLOCKS_PER_PROCESSOR>;
}

} // namespace

static bool is_lean(const struct cua__filter *f)
{
	return f->values && !f->indexes && !f->partition;
}

/*
 * The tiles fit for every alignment of the array. The short kernel has no path for the rejected
 * elements of a partition without order.
 */
static enum way way_of(const struct cua__filter *f)
{
	const uint64_t most = (uint64_t)CUA__FILTER_SHORT * tile_size(f->size, SHORT_LOADS);

	if (f->n <= most - 3 && (f->ordered || !f->partition))
		return SHORT;
	return f->ordered ? IN_ORDER : ANY_ORDER;
}

static uint32_t loads_of(const struct cua__filter *f, enum way way, bool lean)
{
	switch (way) {
	case ANY_ORDER: return any_order_loads(lean);
	case IN_ORDER: return in_order_loads(f->key, f->size, lean);
	case IN_ORDER_WIDE: return WIDE_LOADS;
	default: return SHORT_LOADS;
	}
}

static uint64_t tiles_of(const struct cua__filter *f, enum way way, bool lean)
{
	const struct cua__filter_kind kind = {f->key, f->size, loads_of(f, way, lean),
					      WARPS,  lean,    1};

	return cua__filter_tiles(kind, f);
}

/*
 * Enough for any alignment: a caller that asks for the workspace size may not know where the array
 * will begin.
 */
static size_t words_size(const struct cua__filter *f)
{
	if (way_of(f) != IN_ORDER)
		return 0;
	return (size_t)(f->n / tile_size(f->size, loads_of(f, IN_ORDER, is_lean(f))) + 2) *
	       sizeof(uint64_t);
}

static size_t cuda_scratch(struct cua_context *ctx, const struct cua__filter *f)
{
	(void)ctx;
	/* the total number of kept elements, then the words */
	return words_size(f) + (f->ordered && f->partition ? 256 : 0);
}

/* Bytes of the stages and of the numbers of elements. */
static unsigned in_order_shared(const struct cua__filter *f, enum way way, bool lean)
{
	return IN_ORDER_STAGES * tile_size(f->size, loads_of(f, way, lean)) *
	       (staged_size(f->key, f->size) + (lean ? 0 : (unsigned)sizeof(CUA__FILTER_LOCAL)));
}

static enum cua_status launch(struct cua_context *ctx, const struct cua__filter *f)
{
	const bool lean = is_lean(f);
	enum way way = way_of(f);
	enum cua_status status;
	uint64_t blocks, most;
	unsigned shared;
	kernel k;

	if (way == IN_ORDER && lean && f->size > 2 &&
	    WIDE_BLOCKS_PER_PROCESSOR * (in_order_shared(f, IN_ORDER_WIDE, lean) +
					 sizeof(struct cua__filter_shared)) <=
		    ctx->shared_bytes)
		way = IN_ORDER_WIDE;
	blocks = tiles_of(f, way, lean);
	switch (f->key) {
	case CUA__FILTER_FLAG: k = kernel_of<CUA__FILTER_FLAG>(f->size, way, lean); break;
	case CUA__FILTER_INTEGER: k = kernel_of<CUA__FILTER_INTEGER>(f->size, way, lean); break;
	case CUA__FILTER_FLOAT: k = kernel_of<CUA__FILTER_FLOAT>(f->size, way, lean); break;
	default: k = f->size == 4 ? runs_kernel<4>(way) : runs_kernel<8>(way);
	}
	if (way == SHORT)
		return cua__launch_early(ctx, k, (unsigned)blocks, WARPS * 32, 0, *f);
	if (way == ANY_ORDER) {
		most = (uint64_t)ctx->processors * ANY_ORDER_BLOCKS_PER_PROCESSOR;
		return cua__launch(ctx, k, (unsigned)(blocks < most ? blocks : most), WARPS * 32, 0,
				   *f);
	}
	/* one block is the scanning block */
	blocks++;
	most = (uint64_t)ctx->processors *
	       (way == IN_ORDER ? IN_ORDER_BLOCKS_PER_PROCESSOR : WIDE_BLOCKS_PER_PROCESSOR);
	shared = in_order_shared(f, way, lean);
	status = cua__cuda_status(ctx,
				  cudaFuncSetAttribute((const void *)k,
						       cudaFuncAttributeMaxDynamicSharedMemorySize,
						       (int)shared));
	if (status)
		return status;
	return cua__launch(ctx, k, (unsigned)(blocks < most ? blocks : most), WARPS * 32, shared,
			   *f);
}

static enum cua_status cuda_filter(struct cua_context *ctx, const struct cua__filter *checked,
				   void *scratch)
{
	struct cua__filter f = *checked, counting;
	enum cua_status status = CUA_OK;
	size_t words = words_size(&f);

	f.control = (struct cua__filter_control *)((char *)ctx->control + CUA__FILTER_CONTROL);
	if (f.ordered && f.partition) {
		/*
		 * the offset of the rejected elements is the total number of kept elements, so
		 * count these first
		 */
		counting = f;
		counting.ordered = counting.partition = 0;
		counting.values = counting.indexes = NULL;
		counting.count = (uint64_t *)scratch;
		f.total_kept = counting.count;
		scratch = (char *)scratch + 256;
		status = launch(ctx, &counting);
	}
	f.tiles = words ? (uint64_t *)scratch : f.control->short_tiles;
	if (!status && words)
		status = ctx->runtime->set_bytes(ctx, f.tiles, 0, words);
	return status ? status : launch(ctx, &f);
}

/* In the order of the struct's members. */
const struct cua__filter_ops cua__cuda_filter = {cuda_scratch, cuda_filter};
