/* SPDX-License-Identifier: MIT */
/* The filter on a GPU: the kernels of lib/filter_kernel.h and what launches them. */
#include "config.h"

#include "../lib/filter_kernel.h"
#include "launch.h"

#define WARPS 8u
/* Of values alone; with indexes or a partition a tile is half as large. */
#define LEAN_LOADS 8u
#define LOADS 4u
/* With registers enough for all loads of a thread to be in flight. */
#define BLOCKS_PER_PROCESSOR 4

/* Words of tiles that have room in the control memory, where the last block zeroes them. */
#define CONTROL_TILES ((CUA__CONTROL_BYTES - CUA__FILTER_CONTROL - sizeof(struct cua__filter_state)) / 8)

namespace {

template <enum cua__filter_key KEY, uint32_t SIZE, bool LEAN, bool ORDERED>
__global__ void __launch_bounds__(WARPS * 32, BLOCKS_PER_PROCESSOR)
	filter_kernel(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {KEY, SIZE, LEAN ? LEAN_LOADS : LOADS, WARPS, LEAN, ORDERED};
	constexpr uint32_t TILE = WARPS * 32 * kind.loads * (SIZE <= 4 ? 4 : 16 / SIZE);
	__shared__ struct cua__filter_shared shared;
	__shared__ __align__(16) unsigned char stage[TILE * SIZE];
	__shared__ CUA__FILTER_LOCAL locals[LEAN ? 1 : TILE];

	cua__filter_block(kind, &f, &shared, stage, locals);
}

typedef void (*kernel)(struct cua__filter);

template <enum cua__filter_key KEY, uint32_t SIZE> kernel kernel_of(const struct cua__filter *f, bool lean)
{
	if (!lean)
		return (kernel)filter_kernel<KEY, SIZE, false, false>;
	return f->ordered ? (kernel)filter_kernel<KEY, SIZE, true, true>
			  : (kernel)filter_kernel<KEY, SIZE, true, false>;
}

template <enum cua__filter_key KEY> kernel kernel_of(const struct cua__filter *f, bool lean)
{
	switch (f->size) {
	case 1: return KEY == CUA__FILTER_FLOAT ? NULL : kernel_of<KEY, 1>(f, lean);
	case 2: return kernel_of<KEY, 2>(f, lean);
	case 4: return kernel_of<KEY, 4>(f, lean);
	case 8: return kernel_of<KEY, 8>(f, lean);
	default: return KEY != CUA__FILTER_FLAG ? NULL : kernel_of<CUA__FILTER_FLAG, 16>(f, lean);
	}
}

} // namespace

static bool is_lean(const struct cua__filter *f)
{
	return f->values && !f->indexes && !f->partition;
}

static uint64_t tiles_of(const struct cua__filter *f, bool lean)
{
	const struct cua__filter_kind kind = {f->key, f->size, lean ? LEAN_LOADS : LOADS, WARPS, 0, 0};

	return cua__filter_tiles(kind, f);
}

/* As many as any alignment needs, and with or without indexes. */
static size_t words_size(const struct cua__filter *f)
{
	uint64_t tiles = tiles_of(f, false) + 1;

	return f->ordered && tiles > CONTROL_TILES ? (size_t)tiles * sizeof(uint64_t) : 0;
}

static size_t cuda_scratch(struct cua_context *ctx, const struct cua__filter *f)
{
	(void)ctx;
	/* the number of all that are kept, then the words */
	return words_size(f) + (f->ordered && f->partition ? 256 : 0);
}

static enum cua_status launch(struct cua_context *ctx, const struct cua__filter *f)
{
	const bool lean = is_lean(f);
	uint64_t blocks = tiles_of(f, lean), most = (uint64_t)ctx->processors * BLOCKS_PER_PROCESSOR;
	kernel k = f->key == CUA__FILTER_FLAG	   ? kernel_of<CUA__FILTER_FLAG>(f, lean)
		   : f->key == CUA__FILTER_INTEGER ? kernel_of<CUA__FILTER_INTEGER>(f, lean)
						   : kernel_of<CUA__FILTER_FLOAT>(f, lean);

	return cua__launch(ctx, k, (unsigned)(blocks < most ? blocks : most), WARPS * 32, 0, *f);
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
	f.tiles_stay = !words;
	f.tiles = words ? (uint64_t *)scratch : (uint64_t *)(void *)(f.state + 1);
	if (!status && words)
		status = ctx->backend->runtime->set_bytes(ctx, f.tiles, 0, words);
	return status ? status : launch(ctx, &f);
}

/* In the order of the struct. */
const struct cua__filter_ops cua__cuda_filter = {cuda_scratch, cuda_filter};
