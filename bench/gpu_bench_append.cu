/* SPDX-License-Identifier: MIT */
/*
 * Append buffers and filters, in GB/s of the bytes that a call has to move: elements and flags
 * read, plus elements stored. The peers in the same run are CUB, with temporary memory allocated
 * beforehand, and a textbook filter with an atomic operation per element.
 *
 * The ceiling is the faster of two kernels that copy 16 bytes a thread: persistent blocks that loop
 * over the tiles, and a block for each tile. The elements are uniform random numbers. A limit
 * selects a share of them. Counts are stored in device memory. After each run, the program compares
 * the count and two checksums of the stored elements. An ordered output is also compared with the
 * output of CUB, whose checksums are verified.
 */
#include <math.h>

#include <cub/device/device_partition.cuh>
#include <cub/device/device_select.cuh>
#include <cub/version.cuh>

#include <cuatomic.h>

#include "kernels/filter_kernel.h"
#include "gpu_bench_calls.h"

static struct cua_context *ctx;
static uint32_t *x, *out, *reference;
static uint8_t *flags;
static uint64_t *count; /* the count that a call stores */
static unsigned long long
	*sums; /* two checksums and a count; or the number of differing elements */

/* ---- the current case ---- */

static size_t n;
static uint32_t limit;
static uint64_t kept;
static uint64_t expected_sums[2], all_sums[2];
static double bytes;

/*
 * Adds three values to sums[0..2]: the sum, the sum of the mixed values and the number of the
 * elements below limit, or of all elements if limit is UINT32_MAX.
 */
static __global__ void add_up(size_t n, const uint32_t *x, uint32_t limit, unsigned long long *sums)
{
	unsigned long long mine[3] = {0, 0, 0};

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		if (x[i] < limit || limit == UINT32_MAX) {
			mine[0] += x[i];
			mine[1] += mix(x[i]);
			mine[2]++;
		}
	for (int i = 0; i < 3; i++)
		atomicAdd(&sums[i], mine[i]);
}

static __global__ void differences(size_t n, const uint32_t *a, const uint32_t *b,
				   unsigned long long *different)
{
	unsigned long long mine = 0;

	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		mine += a[i] != b[i];
	if (mine)
		atomicAdd(different, mine);
}

static void sums_of(size_t n, const uint32_t *x, uint32_t limit, uint64_t got[3])
{
	need(!cudaMemset(sums, 0, 4 * sizeof(*sums)), "sums");
	add_up<<<processors * 8, THREADS>>>(n, x, limit, sums);
	need(!cudaMemcpy(got, sums, 3 * sizeof(*got), cudaMemcpyDeviceToHost), "sums");
}

static void wrong(const char *way, const char *what)
{
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: append: %s, %s: %s\n", table.name, way, what);
	exit(1);
}

/*
 * The output that a call has to store: selected elements, or a partition, in any order or in input
 * order.
 */
enum shape { KEPT, KEPT_IN_ORDER, PARTITION, PARTITION_IN_ORDER };

static void verify(const char *way, enum shape shape)
{
	const bool partition = shape == PARTITION || shape == PARTITION_IN_ORDER;
	uint64_t got[3], counted = 0;

	need(!cudaMemcpy(&counted, count, sizeof(counted), cudaMemcpyDeviceToHost), way);
	if (counted != kept)
		wrong(way, "the count is wrong");
	sums_of((size_t)kept, out, UINT32_MAX, got);
	if (got[0] != expected_sums[0] || got[1] != expected_sums[1])
		wrong(way, "the elements are wrong");
	if (partition) {
		sums_of(n, out, UINT32_MAX, got);
		if (got[0] != all_sums[0] || got[1] != all_sums[1])
			wrong(way, "the other elements are wrong");
	}
	if (shape == KEPT_IN_ORDER || shape == PARTITION_IN_ORDER) {
		uint64_t different = 1;

		need(!cudaMemset(sums, 0, sizeof(*sums)), "sums");
		differences<<<processors * 8, THREADS>>>(partition ? n : (size_t)kept, out,
							 reference, sums);
		need(!cudaMemcpy(&different, sums, sizeof(different), cudaMemcpyDeviceToHost),
		     "differences");
		if (different)
			wrong(way, "the elements are not in order");
	}
}

/* ---- measurement ---- */

template <typename Call>
static void row_of(enum table_kind kind, const char *way, enum shape shape, double moved, Call call)
{
	auto poison = [] {
		need(!cudaMemset(out, 0xff, n * sizeof(*out)) &&
			     !cudaMemset(count, 0xff, sizeof(*count)) && !cudaDeviceSynchronize(),
		     "poison");
	};
	auto check = [&] {
		if (kind != TABLE_CEILING)
			verify(way, shape);
	};

	if (!table_wants(table.name, way))
		return;
	add_row(kind, way, measure_calls(way, moved, 1, BENCH_RUNS, poison, call, check), moved,
		true);
}

template <typename Call>
static void row(enum table_kind kind, const char *way, enum shape shape, Call call)
{
	row_of(kind, way, shape, bytes, call);
}

/* ---- the ceiling ---- */

static __global__ void __launch_bounds__(THREADS) copy_all(size_t words, const uint4 *x, uint4 *out)
{
	const size_t tile = THREADS * LOADS;

	for (size_t first = blockIdx.x * tile; first < words; first += gridDim.x * tile) {
		uint4 v[LOADS];

		if (words - first >= tile) {
#pragma unroll
			for (int l = 0; l < LOADS; l++)
				v[l] = x[first + (size_t)l * THREADS + threadIdx.x];
#pragma unroll
			for (int l = 0; l < LOADS; l++)
				out[first + (size_t)l * THREADS + threadIdx.x] = v[l];
		} else {
			for (size_t i = first + threadIdx.x; i < words; i += THREADS)
				out[i] = x[i];
		}
	}
}

static void ceilings(void)
{
	size_t words = n / 4;

	both_grids(words, [=](unsigned blocks, bool persistent) {
		row_of(TABLE_CEILING,
		       persistent ? "ceiling: copies, persistent blocks"
				  : "ceiling: copies, a block per tile",
		       KEPT, (double)words * 32, [=] {
			       copy_all<<<blocks, THREADS>>>(words, (const uint4 *)x, (uint4 *)out);
		       });
	});
}

/* ---- the elements of a case ---- */

static __global__ void make_elements(size_t n, uint32_t *x)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		x[i] = (uint32_t)(mix(i + 1) >> 32);
}

static __global__ void make_flags(size_t n, const uint32_t *x, uint32_t limit, uint8_t *flags)
{
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += (size_t)gridDim.x * blockDim.x)
		flags[i] = x[i] < limit;
}

/*
 * Begins a case: selects `percent` of the elements; a call reads `extra` more bytes for each
 * element.
 */
static void begin(const char *what, size_t elements, double percent, double extra)
{
	char name[64], text[24];
	uint64_t got[3];

	n = elements;
	limit = (uint32_t)(percent / 100 * 4294967296.0);
	snprintf(name, sizeof(name), "%s %g %%, %s%s", what, percent, size_text(text, n),
		 timing_names[timing]);
	snprintf(table.name, sizeof(table.name), "%.*s", (int)sizeof(table.name) - 1, name);
	table.n = 0;
	make_elements<<<processors * 8, THREADS>>>(n, x);
	make_flags<<<processors * 8, THREADS>>>(n, x, limit, flags);
	sums_of(n, x, limit, got);
	memcpy(expected_sums, got, sizeof(expected_sums));
	kept = got[2];
	sums_of(n, x, UINT32_MAX, got);
	memcpy(all_sums, got, sizeof(all_sums));
	bytes = (double)n * (4 + extra) + (double)kept * 4;
	ceilings();
}

/* ---- peers ---- */

struct below {
	uint32_t limit;
	__host__ __device__ bool operator()(uint32_t v) const
	{
		return v < limit;
	}
};

template <typename Call> static void cub_row(const char *way, enum shape shape, Call f)
{
	row(TABLE_PEER, way, shape, cub_call(way, f));
}

static void keep_as_reference(void)
{
	need(!cudaMemcpy(reference, out, n * sizeof(*out), cudaMemcpyDeviceToDevice), "reference");
}

static void cub_select(void)
{
	struct below op = {limit};

	cub_row("cub::DeviceSelect::If", KEPT, [=](void *t, size_t &has) {
		return cub::DeviceSelect::If(t, has, x, out, count, (int)n, op);
	});
	keep_as_reference();
}

/* CUB stores the rejected elements in reverse order, so only their checksums can be compared. */
static void cub_partition(void)
{
	struct below op = {limit};

	cub_row("cub::DevicePartition::If", PARTITION, [=](void *t, size_t &has) {
		return cub::DevicePartition::If(t, has, x, out, count, (int)n, op);
	});
}

static __global__ void textbook_filter(size_t n, const uint32_t *x, uint32_t limit, uint32_t *out,
				       unsigned long long *count)
{
	size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n && x[i] < limit)
		out[atomicAdd(count, 1ull)] = x[i];
}

static void textbook_row(void)
{
	row(TABLE_PEER, "one atomicAdd per element", KEPT, [] {
		cudaMemsetAsync(count, 0, sizeof(*count));
		textbook_filter<<<(unsigned)((n + THREADS - 1) / THREADS), THREADS>>>(
			n, x, limit, out, (unsigned long long *)count);
	});
}

/* ---- ours ---- */

static void need_ok(enum cua_status status, const char *way)
{
	if (status)
		wrong(way, cua_strerror(status));
}

/*
 * The reference of an ordered partition has the rejected elements in input order: the filter
 * selects them by the opposite comparison.
 */
static void partition_reference(void)
{
	struct cua_filter_options options = CUA_FILTER_OPTIONS_INIT;

	options.ordered = 1;
	need_ok(cua_filter_array(ctx, &options, CUA_U32, n, x, CUA_LT, &limit, n, reference, count),
		"reference");
	need_ok(cua_filter_array(ctx, &options, CUA_U32, n, x, CUA_GE, &limit, n - kept,
				 reference + kept, count),
		"reference");
}

static void our_row(const char *way, enum shape shape, bool by_flags)
{
	struct cua_filter_options options = CUA_FILTER_OPTIONS_INIT;

	options.ordered = shape == KEPT_IN_ORDER || shape == PARTITION_IN_ORDER;
	options.partition = shape == PARTITION || shape == PARTITION_IN_ORDER;
	options.flags = by_flags ? flags : NULL;
	row(TABLE_OURS, way, shape, [=] {
		need_ok(cua_filter_array(ctx, &options, CUA_U32, n, x, CUA_LT, &limit, n, out,
					 count),
			way);
	});
}

/* A user's kernel: each thread pushes the selected ones of 16 elements. */
CUA_DEFINE_APPEND_STAGE(numbers, uint32_t, 8192)

static __global__ void __launch_bounds__(THREADS)
	push_kernel(struct cua_append_view view, size_t n, const uint32_t *x, uint32_t limit)
{
	__shared__ struct cua_append_stage_numbers stage;
	const size_t tile = THREADS * LOADS * 4;

	cua_append_stage_init_numbers(&stage);
	for (size_t first = blockIdx.x * tile; first < n; first += gridDim.x * tile) {
		uint4 v[LOADS];

#pragma unroll
		for (int l = 0; l < LOADS; l++)
			v[l] = ((const uint4 *)(x + first))[l * THREADS + threadIdx.x];
		cua_append_stage_make_room_numbers(&view, &stage, tile);
#pragma unroll
		for (int l = 0; l < LOADS; l++) {
			if (v[l].x < limit)
				cua_append_stage_push_numbers(&view, &stage, v[l].x);
			if (v[l].y < limit)
				cua_append_stage_push_numbers(&view, &stage, v[l].y);
			if (v[l].z < limit)
				cua_append_stage_push_numbers(&view, &stage, v[l].z);
			if (v[l].w < limit)
				cua_append_stage_push_numbers(&view, &stage, v[l].w);
		}
	}
	cua_append_stage_flush_numbers(&view, &stage);
}

CUA_DEFINE_FILTER(below, uint32_t, uint32_t, x < c)

static __global__ void __launch_bounds__(1024)
	predicate_kernel(struct cua_append_view view, size_t n, const uint32_t *x, uint32_t limit)
{
	__shared__ struct cua_append_stage_below stage;

	cua_filter_by_below(&view, n, x, limit, &stage);
}

static __global__ void __launch_bounds__(THREADS)
	push_block_kernel(struct cua_append_view view, size_t n, const uint32_t *x, uint32_t limit)
{
	__shared__ struct cua_block_scratch scratch;
	const size_t tile = THREADS * 16;

	for (size_t first = blockIdx.x * tile; first < n; first += gridDim.x * tile) {
		uint32_t v[16], mine = 0;
		uint64_t offset;

#pragma unroll
		for (int l = 0; l < 16; l++) {
			v[l] = x[first + l * THREADS + threadIdx.x];
			mine += v[l] < limit;
		}
		offset = cua_append_reserve_block(&view, mine, &scratch);
#pragma unroll
		for (int l = 0; l < 16; l++)
			if (v[l] < limit) {
				if (offset < view.capacity)
					((uint32_t *)view.items)[offset] = v[l];
				offset++;
			}
	}
}

/* A view over `out`, with `count` as its cursor. */
static struct cua_append_view view_of_out(void)
{
	struct cua_append_view view = {};

	view.items = out;
	view.cursor = (struct cua_append_cursor *)count;
	view.capacity = n;
	view.item_size = sizeof(*out);
	view.layout = CUA_APPEND_LAYOUT;
	return view;
}

static void push_rows(void)
{
	struct cua_append_view view = view_of_out();

	row(TABLE_OURS, "cua_append_stage_push", KEPT, [=] {
		cudaMemsetAsync(count, 0, sizeof(*count));
		push_kernel<<<processors * 6, THREADS>>>(view, n, x, limit);
	});
	row(TABLE_OURS, "CUA_DEFINE_FILTER", KEPT, [=] {
		cudaMemsetAsync(count, 0, sizeof(*count));
		predicate_kernel<<<processors * 8, THREADS>>>(view, n, x, limit);
	});
	row(TABLE_OURS, "cua_append_reserve_block", KEPT, [=] {
		cudaMemsetAsync(count, 0, sizeof(*count));
		push_block_kernel<<<processors * 6, THREADS>>>(view, n, x, limit);
	});
}

/* ---- candidates ---- */

/*
 * Configurations of the filter's kernels: loads of a thread, threads of a block, blocks of a
 * multiprocessor, and staged tiles.
 */

template <uint32_t CANDIDATE_LOADS, uint32_t WARPS, int BLOCKS, uint32_t STAGES>
static __global__ void __launch_bounds__(WARPS * 32, BLOCKS)
	candidate(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {
		CUA__FILTER_INTEGER, 4, CANDIDATE_LOADS, WARPS, 1, STAGES, 0};
	__shared__ struct cua__filter_shared shared;
	extern __shared__ uint4 stage[];

	if (STAGES > 1)
		cua__filter_in_order(kind, &f, &shared, stage, NULL);
	else
		cua__filter_direct(kind, &f, &shared, stage, NULL);
}

static struct cua__filter candidate_filter(struct cua__filter_control *control, bool ordered)
{
	struct cua__filter f = {};

	f.key = CUA__FILTER_INTEGER;
	f.size = 4;
	f.n = n;
	f.x = x;
	f.range = limit - 1;
	f.ordered = ordered;
	f.capacity = n;
	f.values = out;
	f.count = count;
	f.control = control;
	return f;
}

/* Blocks of a candidate that fit a multiprocessor, at most `most`. */
static int candidate_fits(void (*kernel)(struct cua__filter), uint32_t threads, uint32_t shared,
			  int most)
{
	int fits = 0;

	need(!cudaFuncSetAttribute((const void *)kernel,
				   cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared) &&
		     !cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fits, (const void *)kernel,
								    (int)threads, shared),
	     "candidate");
	return fits < most ? fits : most;
}

template <uint32_t CANDIDATE_LOADS, uint32_t WARPS, int BLOCKS, uint32_t STAGES>
static void candidate_row(struct cua__filter_control *control, uint64_t *words)
{
	constexpr uint32_t TILE = WARPS * 32 * CANDIDATE_LOADS * 4;
	constexpr uint32_t STAGE = TILE * 4 * STAGES;
	void (*kernel)(struct cua__filter) = candidate<CANDIDATE_LOADS, WARPS, BLOCKS, STAGES>;
	struct cua__filter f = candidate_filter(control, STAGES > 1);
	size_t tiles = (n + TILE - 1) / TILE;
	const int fits = candidate_fits(kernel, WARPS * 32, STAGE, BLOCKS);
	char way[TABLE_NAME + 1];

	f.tiles = words;
	snprintf(way, sizeof(way), "%s: %2u, %4u, %2d, %u", STAGES > 1 ? "ordered" : "any order",
		 CANDIDATE_LOADS, WARPS * 32, fits, STAGES);
	row(TABLE_OURS, way, STAGES > 1 ? KEPT_IN_ORDER : KEPT, [=] {
		if (STAGES > 1)
			cudaMemsetAsync(words, 0, tiles * sizeof(*words));
		kernel<<<(unsigned)fits * processors, WARPS * 32, STAGE>>>(f);
	});
}

static void candidate_rows(struct cua__filter_control *control, uint64_t *words)
{
	candidate_row<4, 8, 6, 1>(control, words);
	candidate_row<4, 8, 4, 1>(control, words);
	candidate_row<4, 16, 2, 1>(control, words);
	candidate_row<8, 8, 5, 1>(control, words);
	candidate_row<8, 8, 4, 1>(control, words);
	candidate_row<8, 8, 3, 1>(control, words);
	candidate_row<4, 4, 8, 3>(control, words);
	candidate_row<4, 8, 6, 2>(control, words);
	candidate_row<4, 8, 5, 2>(control, words);
	candidate_row<4, 8, 4, 2>(control, words);
	candidate_row<4, 8, 4, 3>(control, words);
	candidate_row<4, 8, 3, 3>(control, words);
	candidate_row<4, 16, 3, 2>(control, words);
	candidate_row<4, 16, 2, 2>(control, words);
	candidate_row<4, 16, 2, 3>(control, words);
	candidate_row<4, 32, 1, 3>(control, words);
	candidate_row<8, 4, 6, 2>(control, words);
	candidate_row<8, 4, 4, 3>(control, words);
	candidate_row<8, 8, 3, 2>(control, words);
	candidate_row<8, 8, 2, 2>(control, words);
	candidate_row<8, 8, 2, 3>(control, words);
	candidate_row<8, 16, 1, 2>(control, words);
	candidate_row<8, 16, 1, 3>(control, words);
}

/*
 * Of a partition: loads, threads and blocks of the kernel that stores. In order also: blocks of the
 * kernel that counts, and the logarithm of the tiles of a range.
 */
template <uint32_t CANDIDATE_LOADS, uint32_t WARPS, int BLOCKS>
static __global__ void __launch_bounds__(WARPS * 32, BLOCKS)
	partition_candidate(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {
		CUA__FILTER_INTEGER, 4, CANDIDATE_LOADS, WARPS, 1, 1, 1};
	__shared__ struct cua__filter_shared shared;
	extern __shared__ uint4 stage[];

	cua__filter_direct(kind, &f, &shared, stage, NULL);
}

template <uint32_t WARPS, int BLOCKS>
static __global__ void __launch_bounds__(WARPS * 32, BLOCKS)
	count_candidate(const __grid_constant__ struct cua__filter f)
{
	constexpr struct cua__filter_kind kind = {
		CUA__FILTER_INTEGER, 4, CUA__FILTER_COUNT_LOADS, WARPS, 0, 1, 0};
	__shared__ struct cua__filter_counts shared;
	__shared__ CUA__FILTER_LOCAL counts[CUA__FILTER_RANGE * WARPS * 32];

	cua__filter_count(kind, &f, &shared, counts);
}

/* With COUNT_BLOCKS of 0: without order. */
template <uint32_t CANDIDATE_LOADS, uint32_t WARPS, int BLOCKS, int COUNT_BLOCKS>
static void partition_row(struct cua__filter_control *control, uint64_t *words, uint32_t shift)
{
	constexpr uint32_t TILE = WARPS * 32 * CANDIDATE_LOADS * 4;
	constexpr uint32_t COUNT_TILE = WARPS * 32 * CUA__FILTER_COUNT_LOADS * 4;
	constexpr bool ORDERED = COUNT_BLOCKS != 0;
	constexpr int COUNTERS = ORDERED ? COUNT_BLOCKS : 1;
	void (*kernel)(struct cua__filter) = partition_candidate<CANDIDATE_LOADS, WARPS, BLOCKS>;
	void (*count_kernel)(struct cua__filter) = count_candidate<WARPS, COUNTERS>;
	const size_t counted = (n + COUNT_TILE - 1) / COUNT_TILE;
	struct cua__filter f = candidate_filter(control, ORDERED);
	const int fits = candidate_fits(kernel, WARPS * 32, TILE * 4, BLOCKS);
	char way[TABLE_NAME + 1];

	f.partition = 1;
	f.range_shift = shift;
	f.total_kept = words;
	f.range_kept = words + 1;
	f.tile_kept = (uint32_t *)(words + 1 + cua__filter_ranges(&f, counted));
	if (ORDERED)
		snprintf(way, sizeof(way), "ordered: %2u, %4u, %2d; %2d, %u", CANDIDATE_LOADS,
			 WARPS * 32, fits, COUNT_BLOCKS, shift);
	else
		snprintf(way, sizeof(way), "any order: %2u, %4u, %2d", CANDIDATE_LOADS, WARPS * 32,
			 fits);
	row(TABLE_OURS, way, ORDERED ? PARTITION_IN_ORDER : PARTITION, [=] {
		if (ORDERED)
			count_kernel<<<(unsigned)cua__filter_ranges(&f, counted), WARPS * 32>>>(f);
		kernel<<<(unsigned)fits * processors, WARPS * 32, TILE * 4>>>(f);
	});
}

static void partition_candidates(struct cua__filter_control *control, uint64_t *words)
{
	partition_row<4, 8, 6, 0>(control, words, 0);
	partition_row<4, 8, 5, 0>(control, words, 0);
	partition_row<8, 8, 4, 0>(control, words, 0);
	partition_row<8, 8, 3, 0>(control, words, 0);
	partition_row<8, 8, 2, 0>(control, words, 0);
	partition_row<8, 16, 2, 0>(control, words, 0);
	partition_row<8, 8, 4, 6>(control, words, 4);
	partition_row<8, 8, 3, 6>(control, words, 4);
	partition_row<8, 8, 2, 6>(control, words, 4);
	partition_row<8, 8, 3, 8>(control, words, 4);
	partition_row<8, 8, 3, 4>(control, words, 4);
	partition_row<8, 8, 3, 6>(control, words, 3);
	partition_row<8, 16, 2, 3>(control, words, 4);
}

static void candidates(size_t elements)
{
	static const double shares[] = {1, 10, 50, 90};
	struct cua__filter_control *control;
	uint64_t *words;

	need(!cudaMalloc(&control, sizeof(*control)) && !cudaMemset(control, 0, sizeof(*control)) &&
		     !cudaMalloc(&words, (elements / 1024 + 1) * sizeof(*words)),
	     "memory");
	for (double share : shares) {
		begin("candidates", elements, share, 0);
		cub_select();
		candidate_rows(control, words);
		table_end(&table);
	}
	begin("partition candidates", elements, 50, 0);
	bytes = (double)n * 8;
	cub_partition();
	partition_reference();
	partition_candidates(control, words);
	table_end(&table);
	cudaFree(control);
	cudaFree(words);
}

/* ---- the cases ---- */

static void select_case(size_t elements, double share)
{
	begin("filter", elements, share, 0);
	cub_select();
	our_row("cua_filter_array", KEPT, false);
	our_row("cua_filter_array, ordered", KEPT_IN_ORDER, false);
	table_end(&table);
}

static void flagged_case(size_t elements, double share)
{
	begin("by flags", elements, share, 1);
	cub_row("cub::DeviceSelect::Flagged", KEPT, [=](void *t, size_t &has) {
		return cub::DeviceSelect::Flagged(t, has, x, flags, out, count, (int)n);
	});
	keep_as_reference();
	our_row("cua_filter_array", KEPT, true);
	our_row("cua_filter_array, ordered", KEPT_IN_ORDER, true);
	table_end(&table);
}

static void partition_case(size_t elements, double share)
{
	begin("partition", elements, share, 0);
	bytes = (double)n * 8;
	cub_partition();
	our_row("cua_filter_array, partition", PARTITION, false);
	partition_reference();
	our_row("cua_filter_array, partition, ordered", PARTITION_IN_ORDER, false);
	table_end(&table);
}

static void push_case(size_t elements, double share)
{
	begin("push", elements, share, 0);
	textbook_row();
	push_rows();
	table_end(&table);
}

int main(int argc, char **argv)
{
	const size_t Ki = 1 << 10, Mi = 1 << 20;
	struct options o = parse_options(argc, argv, "append", true);
	cudaDeviceProp device = print_head("append");
	const size_t many = o.quick ? 512 * Ki : 512 * Mi;
	static const double shares[] = {1, 10, 50, 90};

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	printf("CUB %d.%d.%d; elements of u32 in device memory; the L2 has %d MiB\n",
	       CUB_VERSION / 100000, CUB_VERSION / 100 % 1000, CUB_VERSION % 100,
	       device.l2CacheSize >> 20);
	need(!cudaMalloc(&x, many * sizeof(*x)) && !cudaMalloc(&out, many * sizeof(*out)) &&
		     !cudaMalloc(&reference, many * sizeof(*reference)) &&
		     !cudaMalloc(&flags, many) && !cudaMalloc(&count, sizeof(*count)) &&
		     !cudaMalloc(&sums, 4 * sizeof(*sums)) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK,
	     "context and memory");
	printf("wait: host time of a call and its synchronization, mean of 100; stream: mean of 200 calls in a "
	       "row; others: a single call\n");
	table_columns("GB/s", "a call");
	set_timing(ONE_CALL, 1);
	if (o.candidates) {
		candidates(many);
	} else {
		for (double share : shares)
			select_case(many, share);
		flagged_case(many, 50);
		partition_case(many, 50);
		for (double share : shares)
			push_case(many / 2, share);
		for (int wait = 0; wait < 2; wait++) {
			set_timing(wait ? CALL_WAIT : IN_STREAM, wait ? 100 : 200);
			select_case(64 * Ki, 50);
		}
	}
	cua_context_destroy(ctx);
	cudaFree(x);
	cudaFree(out);
	cudaFree(reference);
	cudaFree(flags);
	cudaFree(count);
	cudaFree(sums);
	cudaFree(temporary);
	return 0;
}
