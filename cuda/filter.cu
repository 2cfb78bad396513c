/* SPDX-License-Identifier: MIT */
/* The filter on a GPU: the kernels of lib/filter_kernel.h and what launches them. */
#include "config.h"

#include "../lib/filter_kernel.h"
#include "launch.h"

#define WARPS 8u
/* With registers enough for all loads of a thread to be in flight. */
#define ANY_ORDER_BLOCKS_PER_PROCESSOR 4
#define IN_ORDER_BLOCKS_PER_PROCESSOR 4
/* A place has the time of two tiles to come. */
#define IN_ORDER_STAGES 3
/* Of a thread. A tile of values alone is twice as large. */
#define SHORT_LOADS 2u

static __host__ __device__ constexpr uint32_t any_order_loads(bool lean)
{
	return lean ? 8 : 4;
}

/* There is room for the stages of as many blocks. */
static __host__ __device__ constexpr uint32_t in_order_loads(uint32_t size, bool lean)
{
	return (lean ? 4 : 2) * (size <= 2 ? 2 : 1);
}

static __host__ __device__ constexpr uint32_t tile_size(uint32_t size, uint32_t loads)
{
	return WARPS * 32 * loads * (size <= 4 ? 4 : 16 / size);
}

namespace {

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

template <enum cua__filter_key KEY, uint32_t SIZE, bool LEAN>
__global__ void __launch_bounds__(WARPS * 32, IN_ORDER_BLOCKS_PER_PROCESSOR)
	in_order_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, in_order_loads(SIZE, LEAN), WARPS, LEAN,
						   IN_ORDER_STAGES};
	constexpr uint32_t TILE = tile_size(SIZE, kind.loads);
	__shared__ struct cua__filter_shared shared;
	extern __shared__ uint4 in_order_stage[];

	cua__filter_in_order(kind, &f, &shared, in_order_stage,
			     (CUA__FILTER_LOCAL *)((char *)in_order_stage + IN_ORDER_STAGES * TILE * SIZE));
}

template <enum cua__filter_key KEY, uint32_t SIZE>
__global__ void __launch_bounds__(WARPS * 32) short_kernel(const __grid_constant__ struct cua__filter f)
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
enum way { ANY_ORDER, IN_ORDER, SHORT };

template <enum cua__filter_key KEY, uint32_t SIZE> kernel kernel_of(enum way way, bool lean)
{
	switch (way) {
	case ANY_ORDER:
		return lean ? (kernel)any_order_kernel<KEY, SIZE, true>
			    : (kernel)any_order_kernel<KEY, SIZE, false>;
	case IN_ORDER:
		return lean ? (kernel)in_order_kernel<KEY, SIZE, true>
			    : (kernel)in_order_kernel<KEY, SIZE, false>;
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

} // namespace

static bool is_lean(const struct cua__filter *f)
{
	return f->values && !f->indexes && !f->partition;
}

/* Wherever the array begins. The others of a partition without order have no place in a short kernel. */
static enum way way_of(const struct cua__filter *f)
{
	const uint64_t most = (uint64_t)CUA__FILTER_SHORT * tile_size(f->size, SHORT_LOADS);

	if (f->n <= most - 3 && (f->ordered || !f->partition))
		return SHORT;
	return f->ordered ? IN_ORDER : ANY_ORDER;
}

static uint64_t tiles_of(const struct cua__filter *f, enum way way, bool lean)
{
	const uint32_t loads = way == SHORT	  ? SHORT_LOADS
			       : way == ANY_ORDER ? any_order_loads(lean)
						  : in_order_loads(f->size, lean);
	const struct cua__filter_kind kind = {f->key, f->size, loads, WARPS, lean, 1};

	return cua__filter_tiles(kind, f);
}

/* As many as any alignment needs. */
static size_t words_size(const struct cua__filter *f)
{
	if (way_of(f) != IN_ORDER)
		return 0;
	return (size_t)(tiles_of(f, IN_ORDER, is_lean(f)) + 1) * sizeof(uint64_t);
}

static size_t cuda_scratch(struct cua_context *ctx, const struct cua__filter *f)
{
	(void)ctx;
	/* the number of all that are kept, then the words */
	return words_size(f) + (f->ordered && f->partition ? 256 : 0);
}

/* Of the stages, and of the numbers of elements. */
static unsigned in_order_shared(const struct cua__filter *f, bool lean)
{
	return IN_ORDER_STAGES * tile_size(f->size, in_order_loads(f->size, lean)) *
	       (f->size + (lean ? 0 : (unsigned)sizeof(CUA__FILTER_LOCAL)));
}

static enum cua_status launch(struct cua_context *ctx, const struct cua__filter *f)
{
	const enum way way = way_of(f);
	const bool lean = is_lean(f);
	uint64_t blocks = tiles_of(f, way, lean), most;
	kernel k = f->key == CUA__FILTER_FLAG	   ? kernel_of<CUA__FILTER_FLAG>(f->size, way, lean)
		   : f->key == CUA__FILTER_INTEGER ? kernel_of<CUA__FILTER_INTEGER>(f->size, way, lean)
						   : kernel_of<CUA__FILTER_FLOAT>(f->size, way, lean);

	enum cua_status status;
	unsigned shared;

	if (way == SHORT)
		return cua__launch_early(ctx, k, (unsigned)blocks, WARPS * 32, 0, *f);
	if (way == ANY_ORDER) {
		most = (uint64_t)ctx->processors * ANY_ORDER_BLOCKS_PER_PROCESSOR;
		return cua__launch(ctx, k, (unsigned)(blocks < most ? blocks : most), WARPS * 32, 0, *f);
	}
	/* one scans */
	blocks++;
	most = (uint64_t)ctx->processors * IN_ORDER_BLOCKS_PER_PROCESSOR;
	shared = in_order_shared(f, lean);
	status = cua__cuda_status(ctx, cudaFuncSetAttribute((const void *)k,
							    cudaFuncAttributeMaxDynamicSharedMemorySize,
							    (int)shared));
	if (status)
		return status;
	return cua__launch(ctx, k, (unsigned)(blocks < most ? blocks : most), WARPS * 32, shared, *f);
}

static enum cua_status cuda_filter(struct cua_context *ctx, const struct cua__filter *checked, void *scratch)
{
	struct cua__filter f = *checked, counting;
	enum cua_status status = CUA_OK;
	size_t words = words_size(&f);

	if (f.ordered && f.partition) {
		/* the others begin where the last one that is kept ends, so that has to be known first */
		counting = f;
		counting.ordered = counting.partition = 0;
		counting.values = counting.indexes = NULL;
		counting.count = (uint64_t *)scratch;
		f.all_kept = counting.count;
		scratch = (char *)scratch + 256;
		status = launch(ctx, &counting);
	}
	f.tiles = words ? (uint64_t *)scratch : f.state->short_tiles;
	if (!status && words)
		status = ctx->backend->runtime->set_bytes(ctx, f.tiles, 0, words);
	return status ? status : launch(ctx, &f);
}

/* In the order of the struct. */
const struct cua__filter_ops cua__cuda_filter = {cuda_scratch, cuda_filter};
