/* SPDX-License-Identifier: MIT */
/* The filter on a GPU: the kernels of lib/kernels/filter_kernel.h and their launches. */
#include "config.h"

#include "kernels/filter_kernel.h"
#include "launch.h"

#define WARPS 8u
/* At this occupancy a thread has enough registers to keep all its loads in flight. */
#define DIRECT_BLOCKS_PER_PROCESSOR 4
#define PARTITION_BLOCKS_PER_PROCESSOR 3
#define IN_ORDER_BLOCKS_PER_PROCESSOR 4
/* An offset may take the time of two tiles to arrive. */
#define IN_ORDER_STAGES 3
/* Larger tiles with fewer blocks are faster if their stages fit. */
#define WIDE_LOADS 8u
#define WIDE_BLOCKS_PER_PROCESSOR 2
#define SHORT_LOADS 2u
#define COUNT_BLOCKS_PER_PROCESSOR 5
/*
 * Counted ranges of a partition in order, if they need no more than CUA__FILTER_RANGE tiles. The
 * last block of the counting pass adds up their counts alone.
 */
#define RANGES 1024u

/* Loads of a thread. A tile that stores only values is twice as large. */

static __host__ __device__ constexpr uint32_t direct_loads(bool lean)
{
	return lean ? 8 : 4;
}

/* The partition of a large tile needs more registers. */
static __host__ __device__ constexpr int direct_blocks(bool lean, bool partition)
{
	return lean && partition ? PARTITION_BLOCKS_PER_PROCESSOR : DIRECT_BLOCKS_PER_PROCESSOR;
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

/* With PARTITION a lean kernel has only the path of partitions; otherwise it has none. */
template <enum cua__filter_key KEY, uint32_t SIZE, bool LEAN, bool PARTITION>
__global__ void __launch_bounds__(WARPS * 32, direct_blocks(LEAN, PARTITION))
	direct_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY,  SIZE, direct_loads(LEAN), WARPS,
						  LEAN, 1,    PARTITION};
	constexpr uint32_t TILE = tile_size(SIZE, kind.loads);
	__shared__ struct cua__filter_shared shared;
	__shared__ __align__(16) unsigned char stage[TILE * SIZE];
	__shared__ CUA__FILTER_LOCAL locals[LEAN ? 1 : TILE];

	if (PARTITION)
		cua__after_predecessor();
	cua__filter_direct(kind, &f, &shared, stage, locals);
}

template <enum cua__filter_key KEY, uint32_t SIZE>
__global__ void __launch_bounds__(WARPS * 32, COUNT_BLOCKS_PER_PROCESSOR)
	count_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, CUA__FILTER_COUNT_LOADS, WARPS, 0,
						  1,   0};
	__shared__ struct cua__filter_counts shared;
	__shared__ CUA__FILTER_LOCAL counts[CUA__FILTER_RANGE * WARPS * 32];

	cua__after_predecessor();
	cua__filter_count(kind, &f, &shared, counts);
}

template <enum cua__filter_key KEY, uint32_t SIZE, bool LEAN, uint32_t LOADS, int BLOCKS>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS)
	in_order_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, LOADS, WARPS, LEAN, IN_ORDER_STAGES,
						  0};
	constexpr uint32_t TILE = tile_size(SIZE, LOADS);
	__shared__ struct cua__filter_shared shared;
	CUA__SHARED_ARRAY(uint4, in_order_stage);

	cua__filter_in_order(
		kind, &f, &shared, in_order_stage,
		(CUA__FILTER_LOCAL *)((char *)in_order_stage +
				      IN_ORDER_STAGES * TILE * staged_size(KEY, SIZE)));
}

template <enum cua__filter_key KEY, uint32_t SIZE>
__global__ void __launch_bounds__(WARPS * 32)
	short_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, SHORT_LOADS, WARPS, 0, 1, 1};
	constexpr uint32_t TILE = tile_size(SIZE, SHORT_LOADS);
	__shared__ struct cua__filter_shared shared;
	__shared__ __align__(16) unsigned char stage[TILE * SIZE];
	__shared__ CUA__FILTER_LOCAL locals[TILE];

	cua__after_predecessor();
	cua__filter_short(kind, &f, &shared, stage, locals);
}

typedef void (*kernel)(struct cua__filter);
enum way { DIRECT, COUNT, IN_ORDER, IN_ORDER_WIDE, SHORT };

/* The output of a kernel: only values (lean) or also indexes; a partition or only kept elements. */
struct output {
	bool lean, partition;
};

template <enum cua__filter_key KEY, uint32_t SIZE> kernel kernel_of(enum way way, struct output o)
{
	switch (way) {
	case DIRECT:
		return !o.lean       ? (kernel)direct_kernel<KEY, SIZE, false, true>
		       : o.partition ? (kernel)direct_kernel<KEY, SIZE, true, true>
				     : (kernel)direct_kernel<KEY, SIZE, true, false>;
	case COUNT: return (kernel)count_kernel<KEY, SIZE>;
	case IN_ORDER:
		return o.lean ? (kernel)in_order_kernel<KEY, SIZE, true,
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

template <enum cua__filter_key KEY> kernel kernel_of(uint32_t size, enum way way, struct output o)
{
	switch (size) {
	case 1: return KEY == CUA__FILTER_FLOAT ? NULL : kernel_of<KEY, 1>(way, o);
	case 2: return kernel_of<KEY, 2>(way, o);
	case 4: return kernel_of<KEY, 4>(way, o);
	case 8: return kernel_of<KEY, 8>(way, o);
	default: return KEY != CUA__FILTER_FLAG ? NULL : kernel_of<CUA__FILTER_FLAG, 16>(way, o);
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

static struct output output_of(const struct cua__filter *f)
{
	const struct output o = {f->values && !f->indexes, f->partition != 0};

	return o;
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
	return f->ordered && !f->partition ? IN_ORDER : DIRECT;
}

static uint32_t loads_of(const struct cua__filter *f, enum way way)
{
	const bool lean = output_of(f).lean;

	switch (way) {
	case DIRECT: return direct_loads(lean);
	case COUNT: return CUA__FILTER_COUNT_LOADS;
	case IN_ORDER: return in_order_loads(f->key, f->size, lean);
	case IN_ORDER_WIDE: return WIDE_LOADS;
	default: return SHORT_LOADS;
	}
}

static uint64_t tiles_of(const struct cua__filter *f, enum way way)
{
	const struct cua__filter_kind kind = {f->key, f->size, loads_of(f, way), WARPS, 0, 1, 0};

	return cua__filter_tiles(kind, f);
}

/*
 * Enough for any alignment: a caller that asks for the workspace size may not know where the array
 * will begin.
 */
static size_t most_tiles(const struct cua__filter *f, enum way way)
{
	return (size_t)(f->n / tile_size(f->size, loads_of(f, way)) + 2);
}

static uint32_t range_shift(const struct cua__filter *f)
{
	const size_t tiles = most_tiles(f, COUNT);
	uint32_t shift = 0;

	while (2u << shift <= CUA__FILTER_RANGE && tiles >> shift > RANGES)
		shift++;
	return shift;
}

/* Bytes of the words of a kernel in order. */
static size_t words_size(const struct cua__filter *f)
{
	return way_of(f) == IN_ORDER ? most_tiles(f, IN_ORDER) * sizeof(uint64_t) : 0;
}

/* Bytes of the total number of kept elements, and of the numbers of each range. */
#define TOTAL_BYTES 256
static size_t ranges_size(const struct cua__filter *f)
{
	return ((most_tiles(f, COUNT) >> range_shift(f)) + 1) * sizeof(uint64_t);
}

static size_t cuda_scratch(struct cua_context *ctx, const struct cua__filter *f)
{
	(void)ctx;
	if (!f->ordered || !f->partition)
		return words_size(f);
	return TOTAL_BYTES +
	       (way_of(f) == SHORT ? 0
				   : ranges_size(f) + most_tiles(f, COUNT) * sizeof(*f->tile_kept));
}

/* Bytes of the stages and of the numbers of elements. */
static unsigned in_order_shared(const struct cua__filter *f, enum way way)
{
	return IN_ORDER_STAGES * tile_size(f->size, loads_of(f, way)) *
	       (staged_size(f->key, f->size) +
		(output_of(f).lean ? 0 : (unsigned)sizeof(CUA__FILTER_LOCAL)));
}

static enum cua_status launch(struct cua_context *ctx, const struct cua__filter *f, enum way way)
{
	const struct output o = output_of(f);
	enum cua_status status;
	uint64_t blocks, most;
	unsigned shared;
	kernel k;

	if (way == IN_ORDER && o.lean && f->size > 2 &&
	    WIDE_BLOCKS_PER_PROCESSOR * (in_order_shared(f, IN_ORDER_WIDE) +
					 sizeof(struct cua__filter_shared)) <=
		    ctx->shared_bytes)
		way = IN_ORDER_WIDE;
	blocks = tiles_of(f, way);
	switch (f->key) {
	case CUA__FILTER_FLAG: k = kernel_of<CUA__FILTER_FLAG>(f->size, way, o); break;
	case CUA__FILTER_INTEGER: k = kernel_of<CUA__FILTER_INTEGER>(f->size, way, o); break;
	case CUA__FILTER_FLOAT: k = kernel_of<CUA__FILTER_FLOAT>(f->size, way, o); break;
	default: k = f->size == 4 ? runs_kernel<4>(way) : runs_kernel<8>(way);
	}
	if (way == SHORT)
		return cua__launch_early(ctx, k, (unsigned)blocks, WARPS * 32, 0, *f);
	if (way == COUNT)
		return cua__launch_early(ctx, k, (unsigned)cua__filter_ranges(f, blocks),
					 WARPS * 32, 0, *f);
	if (way == DIRECT) {
		most = (uint64_t)ctx->processors * (unsigned)direct_blocks(o.lean, o.partition);
		blocks = blocks < most ? blocks : most;
		return o.partition ? cua__launch_early(ctx, k, (unsigned)blocks, WARPS * 32, 0, *f)
				   : cua__launch(ctx, k, (unsigned)blocks, WARPS * 32, 0, *f);
	}
	/* one block is the scanning block */
	blocks++;
	most = (uint64_t)ctx->processors *
	       (way == IN_ORDER ? IN_ORDER_BLOCKS_PER_PROCESSOR : WIDE_BLOCKS_PER_PROCESSOR);
	shared = in_order_shared(f, way);
	status = cua__cuda_status(ctx,
				  cudaFuncSetAttribute((const void *)k,
						       cudaFuncAttributeMaxDynamicSharedMemorySize,
						       (int)shared));
	if (status)
		return status;
	return cua__launch(ctx, k, (unsigned)(blocks < most ? blocks : most), WARPS * 32, shared,
			   *f);
}

/* The pass before the partition in order that `f` describes. */
static enum cua_status launch_count(struct cua_context *ctx, struct cua__filter *f, void *scratch)
{
	struct cua__filter counting;

	f->total_kept = (uint64_t *)scratch;
	if (way_of(f) != SHORT) {
		f->range_shift = range_shift(f);
		f->range_kept = (uint64_t *)((char *)scratch + TOTAL_BYTES);
		f->tile_kept = (uint32_t *)((char *)f->range_kept + ranges_size(f));
	}
	counting = *f;
	counting.values = counting.indexes = NULL;
	if (way_of(f) != SHORT)
		return launch(ctx, &counting, COUNT);
	counting.ordered = counting.partition = 0;
	counting.count = f->total_kept;
	return launch(ctx, &counting, SHORT);
}

static enum cua_status cuda_filter(struct cua_context *ctx, const struct cua__filter *checked,
				   void *scratch)
{
	struct cua__filter f = *checked;
	enum cua_status status = CUA_OK;
	const size_t words = words_size(&f);

	f.control = (struct cua__filter_control *)((char *)ctx->control + CUA__FILTER_CONTROL);
	f.tiles = words ? (uint64_t *)scratch : f.control->short_tiles;
	if (words)
		status = ctx->runtime->set_bytes(ctx, f.tiles, 0, words);
	else if (f.ordered && f.partition)
		status = launch_count(ctx, &f, scratch);
	return status ? status : launch(ctx, &f, way_of(&f));
}

/* In the order of the struct's members. */
const struct cua__filter_ops cua__cuda_filter = {cuda_scratch, cuda_filter};
