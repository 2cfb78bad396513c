/* SPDX-License-Identifier: MIT */
/* Scatters on a GPU: the plan, and launches of the kernels of lib/kernels/scatter_kernel.h. */
#include "config.h"

#include "kernels/scatter_global.h"
#include "kernels/scatter_kernel.h"
#include "launch.h"

#define COUNT_THREADS 512u
#define PARTITION_THREADS 512u
#define ACCUMULATE_THREADS 1024u
#define GLOBAL_THREADS 512u
/* The most targets with cells in global memory: few enough for the L2. */
#define GLOBAL_TARGETS (1u << 22)
/* The least records of a pass, and the least that a block helps with. */
#define LEAST_ROOM (1u << 20)
#define LEAST_PART 65536u
/* The least cells of a block, and of a copy. */
#define LEAST_CELLS 512u

namespace
{

__global__ void __launch_bounds__(COUNT_THREADS)
	count_kernel(const __grid_constant__ struct cua__scatter_job j)
{
	CUA__SHARED_ARRAY(uint32_t, memory);

	cua__scatter_count(&j, memory);
}

__global__ void __launch_bounds__(CUA__SCATTER_PLAN_THREADS)
	plan_kernel(const __grid_constant__ struct cua__scatter_job j)
{
	__shared__ struct cua__scatter_plan plan;

	cua__scatter_plan(&j, &plan);
}

template <unsigned INDEX, unsigned VALUE, int ROWS>
__global__ void __launch_bounds__(PARTITION_THREADS, 2)
	partition_kernel(const __grid_constant__ struct cua__scatter_job j, unsigned pass)
{
	CUA__SHARED_ARRAY(uint32_t, memory);
	const struct cua__scatter_stage stage = cua__scatter_stage_at(&j, known(memory));

	cua__scatter_partition(&j, pass, &stage, INDEX, VALUE == 8 ? 8 : j.size, VALUE, ROWS,
			       PARTITION_THREADS);
}

/* Every row is skipped if there are no targets. */
__global__ void skip_kernel(uint64_t *skipped, uint64_t n)
{
	*skipped = n;
}

/* TYPE is NONE for integers and keys, whose type is a variable. */
template <enum cua_type TYPE, enum cua__scatter_cell CELL, enum cua__scatter_path PATH>
__global__ void __launch_bounds__(ACCUMULATE_THREADS, 1)
	accumulate_kernel(const __grid_constant__ struct cua__scatter_job j, unsigned pass)
{
	CUA__SHARED_ARRAY(uint32_t, memory);
	const enum cua_type type = TYPE == CUA_NONE ? j.s.type : TYPE;
	const uint32_t size = TYPE == CUA_NONE ? j.size : cua__element_size(TYPE);
	const uint32_t value = PATH == CUA__SCATTER_ROWS || TYPE == CUA_NONE ? j.value_size
			       : TYPE == CUA_F64                             ? 8
									     : 4;

	cua__scatter_accumulate(&j, pass, (struct cua__scatter_block *)known(memory), size, value,
				PATH, type, CELL);
}

template <enum cua_type TYPE>
__global__ void __launch_bounds__(1024)
	top_kernel(const __grid_constant__ struct cua__scatter_job j)
{
	__shared__ uint32_t top;

	cua__scatter_find_top(&j, &top, TYPE);
}

template <enum cua_type TYPE, enum cua__scatter_cell CELL, int ROWS>
__global__ void __launch_bounds__(GLOBAL_THREADS)
	global_kernel(const __grid_constant__ struct cua__scatter_job j)
{
	__shared__ struct cua__scatter_cache cache;

	cua__scatter_global(&j, &cache, TYPE == CUA_NONE ? j.size : cua__element_size(TYPE), ROWS,
			    TYPE == CUA_NONE ? j.s.type : TYPE, CELL);
}

template <enum cua__scatter_cell CELL>
__global__ void __launch_bounds__(GLOBAL_THREADS)
	store_kernel(const __grid_constant__ struct cua__scatter_job j)
{
	cua__scatter_store_global(&j, CELL);
}

} // namespace

/* ---- the plan ---- */

static enum cua__scatter_cell cell_of(const struct cua__scatter *s)
{
	const int wide = cua__element_size(s->result_type) == 8;

	if (s->op == CUA_SCATTER_MIN || s->op == CUA_SCATTER_MAX)
		return wide ? CUA__CELL_MAX64 : CUA__CELL_MAX32;
	if (cua__is_float(s->type))
		return s->type == CUA_F64 ? CUA__CELL_WINDOWS : CUA__CELL_HALVES;
	return wide || s->op == CUA_SCATTER_MEAN ? CUA__CELL_ADD64 : CUA__CELL_ADD32;
}

static uint32_t log2_up(uint64_t v)
{
	uint32_t log = 0;

	while (log < 63 && ((uint64_t)1 << log) < v)
		log++;
	return log;
}

static uint32_t block_bytes(const struct cua__scatter_job *j)
{
	return (uint32_t)offsetof(struct cua__scatter_block, is_dirty) +
	       4 * (cua__scatter_dirty_words(j->cells) +
		    cua__scatter_cell_words(j->cell) * j->cells);
}

/* Cells of a single region: as few as hold the targets, in copies that lessen conflicts. */
static void plan_single(struct cua__scatter_job *j, uint32_t log_rows, unsigned blocks)
{
	const uint64_t elements = j->s.n / blocks * j->s.width;
	uint32_t targets;

	j->span = log_rows;
	targets = j->columns << log_rows;
	if (targets < LEAST_CELLS)
		targets = LEAST_CELLS;
	/* so that dirty cells have room for digits */
	while (((j->columns << j->span) < targets))
		j->span++;
	/* half of the memory is left to the L1, where loads wait for their data */
	while (j->copies < 16 && targets * j->copies * 2 <= j->cells / 2 &&
	       elements >= (uint64_t)targets * j->copies * 4)
		j->copies *= 2;
	j->cells = targets * j->copies;
}

/* Cells in global memory, if there are too many for a block and few enough for the L2. */
static void plan_global(struct cua__scatter_job *j)
{
	const uint64_t targets = j->s.targets * j->s.width;

	if (targets <= j->cells || targets > GLOBAL_TARGETS || j->s.n * j->s.width < targets / 4)
		return;
	j->planes = 1;
	if (!cua__scatter_is_float(j->cell))
		return;
	/* n integers below 2^plane_bits do not overflow */
	j->plane_bits = 62 - log2_up(j->s.n + 1);
	if (j->plane_bits > 50)
		j->plane_bits = 50;
	j->planes = 2;
	j->low_bits = j->plane_bits < 35 ? j->plane_bits : 35;
	if (j->cell == CUA__CELL_WINDOWS) {
		j->planes = 3;
		j->low_bits = j->plane_bits < 27 ? j->plane_bits : 27;
	}
}

/* Plans a call, without addresses. */
static void plan(const struct cua_context *ctx, const struct cua__scatter *s,
		 struct cua__scatter_job *j)
{
	const unsigned blocks = (unsigned)ctx->processors;
	uint32_t groups, log_rows = log2_up(s->targets), cells_log = 0;

	memset((void *)j, 0, sizeof(*j));
	j->s = *s;
	j->cell = cell_of(s);
	j->sum_type = s->op == CUA_SCATTER_MEAN ? CUA_F64 : s->result_type;
	j->index_size = (uint32_t)cua_type_size(s->index_type);
	j->size = (uint32_t)cua_type_size(s->type);
	j->result_size = (uint32_t)cua_type_size(s->result_type);
	j->limit = s->targets;
	if (s->index_type == CUA_I32 && j->limit > (uint64_t)1 << 31)
		j->limit = (uint64_t)1 << 31;
	j->rows = s->width > 1;
	j->value_size = j->rows ? (s->n >> 32 ? 8 : 4) : j->size == 8 ? 8 : 4;
	j->digits =
		cua__scatter_is_float(j->cell) ? (uint32_t)cua__scatter_digits(j->sum_type) + 1 : 1;
	j->copies = 1;
	j->columns = 1u << log2_up(s->width);
	if (j->columns > CUA__SCATTER_COLUMNS)
		j->columns = CUA__SCATTER_COLUMNS;
	j->tiles = (s->width + j->columns - 1) / j->columns;
	for (j->cells = LEAST_CELLS; cells_log < 7; cells_log++) {
		struct cua__scatter_job more = *j;

		more.cells *= 2;
		if (block_bytes(&more) > ctx->shared_bytes)
			break;
		j->cells = more.cells;
	}
	j->fan = ctx->shared_bytes < 100 << 10 ? 1024 : CUA__SCATTER_FAN;
	j->tile = PARTITION_THREADS * CUA__SCATTER_SORTS;
	while (cua__scatter_stage_bytes(j) > ctx->shared_bytes / 2 &&
	       j->tile > PARTITION_THREADS * CUA__SCATTER_READS)
		j->tile /= 2;
	while (cua__scatter_stage_bytes(j) > ctx->shared_bytes)
		j->fan /= 2;
	plan_global(j);
	if (((uint64_t)j->columns << log_rows) <= j->cells && log_rows < 32)
		plan_single(j, log_rows, blocks);
	else {
		j->span = log2_up(j->cells / j->columns);
		j->subs = j->rows ? 0 : 1;
		while (((s->targets - 1) >> (j->span + j->subs)) >= CUA__SCATTER_REGIONS)
			j->subs++;
	}
	/* the rows of a pass have numbers of 31 bits */
	while (j->fan > 1 && ((uint64_t)j->fan << (j->span + j->subs)) > (uint64_t)1 << 31)
		j->fan /= 2;
	j->regions = (uint32_t)((s->targets - 1) >> (j->span + j->subs)) + 1;
	j->room = s->n;
	if (!j->rows) {
		/* a little more than half, so that two passes do if the regions are about equal */
		j->room = s->n / 16 * 9 > LEAST_ROOM ? s->n / 16 * 9 : LEAST_ROOM;
		if (j->room > s->n)
			j->room = s->n;
	}
	if (j->room > 0xfffffff0u)
		j->room = 0xfffffff0u;
	if (!j->room)
		j->room = 1;
	/*
	 * a pass ends at the fan, or where the next region does not fit: then it and the next pass
	 * have more than `room` records
	 */
	j->passes = j->regions / j->fan + 1;
	if (s->n > j->room)
		j->passes += 2 * (uint32_t)(s->n / j->room);
	groups = j->tiles << j->subs;
	j->most = UINT64_MAX;
	j->direct_parts = 1;
	if (groups <= CUA__SCATTER_SHARED_MAX) {
		const uint64_t work = s->n * s->width / LEAST_PART + 1;

		/* at most CUA__SCATTER_SHARED_MAX sub-ranges of a pass have more */
		j->most = j->room / CUA__SCATTER_SHARED_MAX * groups + 1;
		if (j->most < LEAST_PART / s->width)
			j->most = LEAST_PART / s->width;
		if (s->n <= j->most && s->n <= j->room)
			j->most = UINT64_MAX;
		j->part = j->room / (2 * blocks) + 1;
		if (j->part < LEAST_PART / s->width)
			j->part = LEAST_PART / s->width;
		j->direct_parts = blocks / groups ? blocks / groups : 1;
		if (j->direct_parts > work)
			j->direct_parts = (uint32_t)work;
	}
	j->shared_cells = j->regions == 1         ? (j->direct_parts > 1 ? groups : 0)
			  : j->most == UINT64_MAX ? 0
						  : CUA__SCATTER_SHARED_MAX;
}

/* ---- the workspace ---- */

/*
 * Sets the addresses in a workspace at `base` and returns its size. *zeros becomes the size of the
 * part that must be zero, which is the first.
 */
static size_t lay(struct cua__scatter_job *j, char *base, size_t *zeros)
{
	const size_t regions = j->regions;
	struct cua__arena a = {base, 0};

	j->state = (struct cua__scatter_state *)cua__arena_next(&a, sizeof(*j->state));
	j->count = (uint64_t *)cua__arena_next(&a, regions * 8);
	j->plane = (uint64_t *)cua__arena_next(&a,
					       (size_t)(j->planes * j->s.targets * j->s.width) * 8);
	*zeros = a.used;
	j->shared = (uint64_t *)cua__arena_next(&a, (size_t)j->shared_cells * 8 *
							    (j->cells / j->copies) * j->digits);
	/* passes clear their own */
	if (j->regions == 1)
		*zeros = a.used;
	if (j->regions > 1) {
		j->pass = (struct cua__scatter_pass *)cua__arena_next(&a,
								      j->passes * sizeof(*j->pass));
		j->before = (uint64_t *)cua__arena_next(&a, (regions + 1) * 8);
		j->items = (uint64_t *)cua__arena_next(&a, (regions + 1) * 8);
		j->shares = (uint32_t *)cua__arena_next(&a, (regions + 1) * 4);
		j->cursor = (uint32_t *)cua__arena_next(&a, regions * 4);
		j->keys = (uint32_t *)cua__arena_next(&a, (size_t)j->room * 4);
		j->values = cua__arena_next(&a, (size_t)j->room * j->value_size);
	}
	return a.used;
}

/* The scatter that counts the rows of each target row, for means. */
static struct cua__scatter counting(const struct cua__scatter *s)
{
	struct cua__scatter c = *s;

	c.op = CUA_SCATTER_ADD;
	c.type = CUA_U64;
	c.result_type = CUA_U64;
	c.overwrite = 1;
	c.width = 1;
	c.x = NULL;
	return c;
}

static size_t cuda_scratch(struct cua_context *ctx, const struct cua__scatter *s)
{
	struct cua__scatter_job j;
	size_t bytes, more, zeros;

	if (!s->targets)
		return 0;
	plan(ctx, s, &j);
	bytes = lay(&j, NULL, &zeros);
	if (s->op == CUA_SCATTER_MEAN) {
		const struct cua__scatter c = counting(s);

		plan(ctx, &c, &j);
		more = lay(&j, NULL, &zeros);
		bytes = (bytes > more ? bytes : more) +
			cua__scratch_size((size_t)s->targets * sizeof(uint64_t));
	}
	return bytes;
}

/* ---- launches ---- */

typedef void partition_fn(const struct cua__scatter_job j, unsigned pass);
typedef void accumulate_fn(const struct cua__scatter_job j, unsigned pass);

template <int ROWS> static partition_fn *partition_of(const struct cua__scatter_job *j)
{
	if (j->index_size == 4)
		return j->value_size == 4 ? partition_kernel<4, 4, ROWS>
					  : partition_kernel<4, 8, ROWS>;
	return j->value_size == 4 ? partition_kernel<8, 4, ROWS> : partition_kernel<8, 8, ROWS>;
}

template <enum cua__scatter_path PATH>
static accumulate_fn *kernel_of(const struct cua__scatter_job *j)
{
	switch (j->cell) {
	case CUA__CELL_ADD32: return accumulate_kernel<CUA_NONE, CUA__CELL_ADD32, PATH>;
	case CUA__CELL_ADD64: return accumulate_kernel<CUA_NONE, CUA__CELL_ADD64, PATH>;
	case CUA__CELL_MAX32: return accumulate_kernel<CUA_NONE, CUA__CELL_MAX32, PATH>;
	case CUA__CELL_MAX64: return accumulate_kernel<CUA_NONE, CUA__CELL_MAX64, PATH>;
	case CUA__CELL_WINDOWS: return accumulate_kernel<CUA_F64, CUA__CELL_WINDOWS, PATH>;
	default: break;
	}
	return j->s.type == CUA_F16    ? accumulate_kernel<CUA_F16, CUA__CELL_HALVES, PATH>
	       : j->s.type == CUA_BF16 ? accumulate_kernel<CUA_BF16, CUA__CELL_HALVES, PATH>
				       : accumulate_kernel<CUA_F32, CUA__CELL_HALVES, PATH>;
}

static accumulate_fn *accumulate_of(const struct cua__scatter_job *j)
{
	switch (cua__scatter_path_of(j)) {
	case CUA__SCATTER_ROWS: return kernel_of<CUA__SCATTER_ROWS>(j);
	case CUA__SCATTER_ALL: return kernel_of<CUA__SCATTER_ALL>(j);
	default: return kernel_of<CUA__SCATTER_SOME>(j);
	}
}

template <enum cua_type TYPE, enum cua__scatter_cell CELL>
static enum cua_status run_planes(struct cua_context *ctx, const struct cua__scatter_job *j)
{
	const uint64_t elements = j->s.n * j->s.width;
	enum cua_status status = CUA_OK;

	if (cua__scatter_is_float(CELL))
		status = cua__launch(ctx, top_kernel < TYPE == CUA_NONE ? CUA_F32 : TYPE >, 1, 1024,
				     0, *j);
	if (!status)
		status = cua__launch(
			ctx, j->rows ? global_kernel<TYPE, CELL, 1> : global_kernel<TYPE, CELL, 0>,
			cua__grid(ctx, elements, GLOBAL_THREADS * CUA__SCATTER_GLOBAL_LOADS, 4),
			GLOBAL_THREADS, 0, *j);
	return status ? status
		      : cua__launch(ctx, store_kernel<CELL>,
				    cua__grid(ctx, j->s.targets * j->s.width, GLOBAL_THREADS, 8),
				    GLOBAL_THREADS, 0, *j);
}

/* Runs a call with cells in global memory. */
static enum cua_status run_global(struct cua_context *ctx, const struct cua__scatter_job *j)
{
	switch (j->cell) {
	case CUA__CELL_ADD32: return run_planes<CUA_NONE, CUA__CELL_ADD32>(ctx, j);
	case CUA__CELL_ADD64: return run_planes<CUA_NONE, CUA__CELL_ADD64>(ctx, j);
	case CUA__CELL_MAX32: return run_planes<CUA_NONE, CUA__CELL_MAX32>(ctx, j);
	case CUA__CELL_MAX64: return run_planes<CUA_NONE, CUA__CELL_MAX64>(ctx, j);
	case CUA__CELL_WINDOWS: return run_planes<CUA_F64, CUA__CELL_WINDOWS>(ctx, j);
	default: break;
	}
	return j->s.type == CUA_F16    ? run_planes<CUA_F16, CUA__CELL_HALVES>(ctx, j)
	       : j->s.type == CUA_BF16 ? run_planes<CUA_BF16, CUA__CELL_HALVES>(ctx, j)
				       : run_planes<CUA_F32, CUA__CELL_HALVES>(ctx, j);
}

static enum cua_status run_passes(struct cua_context *ctx, const struct cua__scatter_job *j,
				  accumulate_fn *accumulate)
{
	const unsigned blocks = (unsigned)ctx->processors;
	const uint64_t tile = PARTITION_THREADS * CUA__SCATTER_READS;
	partition_fn *partition = j->rows ? partition_of<1>(j) : partition_of<0>(j);
	enum cua_status status = cua__permit_shared(ctx, (const void *)partition);

	if (!status)
		status = cua__permit_shared(ctx, (const void *)count_kernel);
	if (!status)
		status =
			cua__launch(ctx, count_kernel, cua__grid(ctx, j->s.n, COUNT_THREADS * 4, 4),
				    COUNT_THREADS, j->regions * 4, *j);
	if (!status)
		status = cua__launch(ctx, plan_kernel, 1, CUA__SCATTER_PLAN_THREADS, 0, *j);
	for (unsigned p = 0; p < j->passes && !status; p++) {
		if (j->s.n)
			status = cua__launch(ctx, partition, cua__grid(ctx, j->s.n, tile, 2),
					     PARTITION_THREADS, cua__scatter_stage_bytes(j), *j, p);
		if (!status)
			status = cua__launch(ctx, accumulate, blocks, ACCUMULATE_THREADS,
					     block_bytes(j), *j, p);
	}
	return status;
}

/* Runs a planned call. */
static enum cua_status run_job(struct cua_context *ctx, struct cua__scatter_job *j, char *scratch)
{
	accumulate_fn *accumulate = accumulate_of(j);
	enum cua_status status = cua__permit_shared(ctx, (const void *)accumulate);
	const uint32_t items = j->direct_parts * (j->tiles << j->subs);
	size_t zeros;

	lay(j, scratch, &zeros);
	if (!status)
		status = ctx->runtime->set_bytes(ctx, scratch, 0, zeros);
	if (!status && j->planes)
		status = run_global(ctx, j);
	/* integers and keys always fit */
	if (status || (j->planes && !cua__scatter_is_float(j->cell)))
		return status;
	if (j->regions > 1)
		return run_passes(ctx, j, accumulate);
	return cua__launch(ctx, accumulate,
			   items < (unsigned)ctx->processors ? items : (unsigned)ctx->processors,
			   ACCUMULATE_THREADS, block_bytes(j), *j, 0);
}

static enum cua_status cuda_run(struct cua_context *ctx, const struct cua__scatter *s)
{
	struct cua__scatter_job j;
	enum cua_status status;
	char *scratch = (char *)s->scratch;
	uint64_t *counts = NULL;

	if (!s->targets)
		return s->skipped ? cua__launch(ctx, skip_kernel, 1, 1, 0, s->skipped, s->n)
				  : CUA_OK;
	if (s->op == CUA_SCATTER_MEAN) {
		struct cua__scatter c = counting(s);

		counts = (uint64_t *)scratch;
		scratch += cua__scratch_size((size_t)s->targets * sizeof(uint64_t));
		c.out = counts;
		c.skipped = NULL;
		plan(ctx, &c, &j);
		status = run_job(ctx, &j, scratch);
		if (status)
			return status;
	}
	plan(ctx, s, &j);
	if (s->op == CUA_SCATTER_MEAN)
		j.counts = counts;
	return run_job(ctx, &j, scratch);
}

/* In the order of the struct's members. */
const struct cua__scatter_ops cua__cuda_scatter = {cuda_scratch, cuda_run};
