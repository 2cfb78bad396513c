/* SPDX-License-Identifier: MIT */
/*
 * The map of unique keys, in millions of keys a second: bulk calls and calls by lanes in a kernel,
 * on tables beyond the L2 and on a table in the L2.
 *
 * The toolkit has no hash table, so most rows are compared with ceilings. gpu_bench_map_peers.h adds
 * peers that the compiler finds. CUB's sort and reduction by key is the peer of sums by key. Each case measures its
 * ceiling over as much memory as the table has. The ceiling of operations that write is a
 * compare-and-swap of a random 64-bit word per key. The ceiling of reads is 64 aligned bytes at a
 * random address per key, read by a quad of lanes in turn for each of its lanes. A build needs less
 * than a random access per key and may exceed the ceiling. For keys and values of 8 bytes the
 * chained table, which supports no other size, is the peer, with as many buckets as keys.
 *
 * A key is a bijective mixing function of its index, from 1 on. Lookups use another order than
 * inserts. Skewed keys follow Zipf's law (see bench_keys.h); a kernel of this program counts them.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cuda/std/functional>

#include <cuatomic/chained.h>
#include <cuatomic/hashmap.h>
#include <cuatomic/hashmap_quad.h>

#include "gpu_bench_calls.h"
#include "gpu_bench_map_peers.h"
#include "bench_keys.h"

#define BATCH ((size_t)8192)
#define BATCHES 100
/* If a run takes more than SLOW seconds, only SLOW_RUNS runs are measured. */
#define SLOW 0.1
#define SLOW_RUNS 3
/* Seconds that a skewed call by lanes should take at most. */
#define ENOUGH 0.05
/* Calls of the small table in a run. */
#define IN_A_ROW 20

static struct cua_context *ctx;
static size_t n;       /* number of keys of the case */
static unsigned width; /* bytes of a key, and of a value */
static char *keys, *values, *asked, *absent, *out;
static uint8_t *found;
static unsigned *counts;         /* expected sums of updated keys, by index */
static unsigned long long *sink; /* result of counting kernels */

static void need_ok(enum cua_status status, const char *way)
{
	if (status == CUA_OK)
		return;
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: hashmap: %s, %s: %s\n", table.name, way,
		cua_strerror(status));
	exit(1);
}

static void need_right(bool right, const char *way)
{
	if (right)
		return;
	fflush(stdout);
	fprintf(stderr, "cuatomic bench: hashmap: %s, %s: wrong result\n", table.name, way);
	exit(1);
}

/* Zeroes the counter, calls count(sink) and returns the counter. */
template <typename Count> static unsigned long long counted(Count count)
{
	unsigned long long result;

	need(!cudaMemset(sink, 0, sizeof(*sink)), "counting");
	count(sink);
	need(!cudaMemcpy(&result, sink, sizeof(result), cudaMemcpyDeviceToHost), "counting");
	return result;
}

static unsigned many_blocks(size_t items)
{
	size_t blocks = (items - 1) / THREADS + 1;

	return (unsigned)(blocks < processors * 32 ? blocks : processors * 32);
}

#define EACH(i, n)                                                                                 \
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);                    \
	     i += (size_t)gridDim.x * blockDim.x)

/* ---- keys ---- */

template <typename T>
static __global__ void make_pairs(size_t n, T *keys, T *values, T *asked, T *absent)
{
	EACH(i, n)
	{
		T key = (T)keys_key(sizeof(T), i);

		keys[i] = key;
		values[i] = (T)keys_value(sizeof(T), key);
		asked[i] = (T)keys_key(sizeof(T), keys_turn(i, n));
		absent[i] = (T)keys_key(sizeof(T), n + i);
	}
}

enum skew { UNIFORM, ZIPF, ONE_KEY, SKEWS };
static const char *const skew_names[SKEWS] = {"uniform", "zipf 1.0", "one key"};

/* Keys to update, drawn from `all` indexes, and the operands 1. */
static __global__ void make_skewed(enum skew skew, size_t n, size_t all, uint32_t *keys,
				   uint32_t *ones)
{
	EACH(i, n)
	{
		uint64_t r = keys_mix64(i + 1), which = 0;

		if (skew != ONE_KEY)
			which = skew == ZIPF ? keys_zipf(r, all) : keys_below(r, all);
		keys[i] = (uint32_t)keys_key(4, which);
		ones[i] = 1;
	}
}

static __global__ void count_nonzero(size_t n, const unsigned *counts, unsigned long long *some)
{
	EACH(i, n)
	{
		if (counts[i])
			atomicAdd(some, 1ull);
	}
}

/*
 * Counts the same keys by index. The branch for a single key lets the compiler aggregate the
 * atomics of a warp.
 */
static __global__ void count_skewed(enum skew skew, size_t n, size_t all, unsigned *counts)
{
	EACH(i, n)
	{
		uint64_t r = keys_mix64(i + 1);

		if (skew == ONE_KEY)
			atomicAdd(&counts[0], 1u);
		else
			atomicAdd(&counts[skew == ZIPF ? keys_zipf(r, all) : keys_below(r, all)],
				  1u);
	}
}

/* ---- checks ---- */

template <typename T>
static __global__ void count_found(size_t n, const T *asked, const T *out, const uint8_t *found,
				   unsigned long long *right)
{
	unsigned long long own = 0;

	EACH(i, n)
	own += found[i] == 1 && out[i] == (T)keys_value(sizeof(T), asked[i]);
	if (own)
		atomicAdd(right, own);
}

static __global__ void count_absent(size_t n, const uint8_t *found, unsigned long long *right)
{
	unsigned long long own = 0;

	EACH(i, n)
	own += found[i] == 0;
	if (own)
		atomicAdd(right, own);
}

static __global__ void count_sums(size_t n, const uint32_t *out, const uint8_t *found,
				  const unsigned *counts, unsigned long long *right)
{
	unsigned long long own = 0;

	EACH(i, n)
	own += counts[i] ? found[i] == 1 && out[i] == counts[i] : found[i] == 0;
	if (own)
		atomicAdd(right, own);
}

static void poison_found(void)
{
	need(!cudaMemsetAsync(found, 2, n) && !cudaMemsetAsync(out, 0, n * width), "poison");
}

/* Returns whether the first `some` keys were found with their values. */
static bool found_right(const char *wanted, size_t some)
{
	return counted([=](unsigned long long *right) {
		       if (width == 4)
			       count_found<<<many_blocks(some), THREADS>>>(
				       some, (const uint32_t *)wanted, (const uint32_t *)out, found,
				       right);
		       else
			       count_found<<<many_blocks(some), THREADS>>>(
				       some, (const uint64_t *)wanted, (const uint64_t *)out, found,
				       right);
	       }) == some;
}

static bool absent_right(void)
{
	return counted([=](unsigned long long *right) {
		       count_absent<<<many_blocks(n), THREADS>>>(n, found, right);
	       }) == n;
}

/* ---- measurement ---- */

/*
 * Measures calls of `ops` operations. An operation counts as 1000 bytes, so the GB/s of
 * gpu_bench_calls.h are millions of operations a second. check() returns whether the result is
 * right.
 */
template <typename Before, typename Call, typename Check>
static struct figure figure_of(const char *way, size_t ops, Before before, Call call, Check check)
{
	const double moved = (double)ops * 1e3;
	auto verified = [&] { need_right(check(), way); };
	int runs = BENCH_RUNS;

	/* the first call loads the code; the second call gives the duration of a run */
	for (int i = 0; i < 2 && timing != CALL_WAIT; i++) {
		double start;

		before();
		need(!cudaDeviceSynchronize(), way);
		start = now();
		call();
		need(!cudaDeviceSynchronize(), way);
		runs = now() - start > SLOW ? SLOW_RUNS : BENCH_RUNS;
		verified();
	}
	return measure_calls(way, moved, 0, runs, before, call, verified);
}

/* Measures calls and adds their row. */
template <typename Before, typename Call, typename Check>
static void row(enum table_kind kind, const char *way, size_t ops, Before before, Call call,
		Check check)
{
	add_row(kind, way, figure_of(way, ops, before, call, check), (double)ops * 1e3, true);
}

/* Measures calls in a row with before() ahead of each call, which is not timed. */
template <typename Before, typename Call, typename Check>
static void row_between(enum table_kind kind, const char *way, size_t ops, Before before, Call call,
			Check check)
{
	double rates[BENCH_RUNS];
	cudaEvent_t start[IN_A_ROW], end[IN_A_ROW];

	for (int c = 0; c < IN_A_ROW; c++)
		need(!cudaEventCreate(&start[c]) && !cudaEventCreate(&end[c]), "cudaEventCreate");
	for (int i = -1; i < BENCH_RUNS; i++) {
		double sum = 0;

		for (int c = 0; c < IN_A_ROW; c++) {
			before();
			cudaEventRecord(start[c]);
			call();
			cudaEventRecord(end[c]);
		}
		need(!cudaDeviceSynchronize(), way);
		for (int c = 0; c < IN_A_ROW; c++) {
			float ms;

			need(!cudaEventElapsedTime(&ms, start[c], end[c]), way);
			sum += (double)ms;
		}
		if (i >= 0)
			rates[i] = (double)ops * IN_A_ROW / (sum * 1e3);
		need_right(check(), way);
	}
	for (int c = 0; c < IN_A_ROW; c++) {
		cudaEventDestroy(start[c]);
		cudaEventDestroy(end[c]);
	}
	add_row(kind, way, table_figure(rates, BENCH_RUNS), (double)ops * 1e3, true);
}

/* ---- the ceilings ---- */

static char *area; /* as many bytes as the table */
static size_t area_bytes;

static __global__ void swap_random(size_t n, unsigned long long *words, size_t n_words,
				   unsigned long long *swapped)
{
	const size_t step = (size_t)gridDim.x * blockDim.x;
	unsigned long long own = 0;

	for (size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x; first < n;
	     first += step * LOADS) {
		unsigned long long old[LOADS];

#pragma unroll
		for (int l = 0; l < LOADS; l++) {
			size_t i = first + l * step;

			old[l] = 1;
			if (i < n)
				old[l] = atomicCAS(&words[keys_below(keys_mix64(i + 1), n_words)],
						   0ull, i + 1);
		}
#pragma unroll
		for (int l = 0; l < LOADS; l++)
			own += old[l] == 0;
	}
	if (own)
		atomicAdd(swapped, own);
}

static __global__ void count_words(size_t n_words, const unsigned long long *words,
				   unsigned long long *set)
{
	unsigned long long own = 0;

	EACH(i, n_words)
	own += words[i] != 0;
	if (own)
		atomicAdd(set, own);
}

/* Fills lines of 64 bytes, made of 4 words of 16 bytes, with the line's index. */
static __global__ void make_lines(size_t words, uint4 *x)
{
	EACH(i, words)
	{
		unsigned line = (unsigned)(i / 4);

		x[i] = make_uint4(line, line, line, line);
	}
}

/* n must be a multiple of 32. */
static __global__ void __launch_bounds__(THREADS)
	read_lines(size_t n, size_t lines, const uint4 *x, unsigned long long *right)
{
	unsigned long long own = 0;

	EACH(i, n)
	{
		unsigned line = (unsigned)keys_below(keys_mix64(i + 1), lines), turn[4];
		uint4 v[4];

#pragma unroll
		for (int t = 0; t < 4; t++) {
			turn[t] = __shfl_sync(0xffffffffu, line, t, 4);
			v[t] = __ldcg(&x[(size_t)turn[t] * 4 + threadIdx.x % 4]);
		}
#pragma unroll
		for (int t = 0; t < 4; t++)
			own += (v[t].x == turn[t]) & (v[t].y == turn[t]) & (v[t].z == turn[t]) &
			       (v[t].w == turn[t]);
	}
	if (own)
		atomicAdd(right, own);
}

/* between: clears the words ahead of each of several calls in a row. */
static void swap_ceiling(size_t ops, bool between)
{
	static const char way[] = "ceiling: random 64-bit CAS";
	unsigned long long *words = (unsigned long long *)area;
	const size_t n_words = area_bytes / 8;
	auto before = [=] {
		need(!cudaMemsetAsync(sink, 0, sizeof(*sink)) &&
			     !cudaMemsetAsync(area, 0, area_bytes),
		     way);
		/* the host clock starts after this */
		if (timing == CALL_WAIT)
			need(!cudaDeviceSynchronize(), way);
	};
	auto call = [=] { swap_random<<<processors * 8, THREADS>>>(ops, words, n_words, sink); };
	auto right = [=] {
		unsigned long long swapped;

		need(!cudaMemcpy(&swapped, sink, sizeof(swapped), cudaMemcpyDeviceToHost), way);
		return swapped &&
		       swapped == counted([=](unsigned long long *set) {
			       count_words<<<many_blocks(n_words), THREADS>>>(n_words, words, set);
		       });
	};

	if (between)
		row_between(TABLE_CEILING, way, ops, before, call, right);
	else
		row(TABLE_CEILING, way, ops, before, call, right);
}

static void line_ceiling(void)
{
	const size_t ops = n;

	make_lines<<<many_blocks(area_bytes / 16), THREADS>>>(area_bytes / 16, (uint4 *)area);
	row(
		TABLE_CEILING, "ceiling: random 64-byte reads", ops,
		[] { need(!cudaMemsetAsync(sink, 0, sizeof(*sink)), "ceiling"); },
		[=] {
			read_lines<<<processors * 8, THREADS>>>(ops, area_bytes / 64,
								(const uint4 *)area, sink);
		},
		[=] {
			unsigned long long right;

			need(!cudaMemcpy(&right, sink, sizeof(right), cudaMemcpyDeviceToHost),
			     "ceiling");
			/* a multiple, because a run may have several calls */
			return right && right % (4 * ops) == 0;
		});
}

/* ---- kernels: a lane processes a key ---- */

template <typename T>
static __global__ void insert_lanes(struct cua_hashmap_view view, size_t n, const T *keys,
				    const T *values)
{
	EACH(i, n)
	cua_hashmap_insert(&view, keys[i], values[i]);
}

static __global__ void update_lanes(struct cua_hashmap_view view, size_t n, const uint32_t *keys,
				    const uint32_t *values)
{
	EACH(i, n)
	cua_hashmap_update(&view, keys[i], values[i], CUA_UPDATE_ADD);
}

template <typename T>
static __global__ void find_lanes(struct cua_hashmap_view view, size_t n, const T *asked, T *out,
				  uint8_t *found)
{
	EACH(i, n)
	{
		uint64_t value = 0;

		found[i] = (uint8_t)cua_hashmap_find(&view, asked[i], &value);
		if (found[i])
			out[i] = (T)value;
	}
}

#define ALL_LANES 0xffffffffu

CUA_DEFINE_HASHMAP(pairs32, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP(pairs64, uint64_t, uint64_t)
CUA_DEFINE_HASHMAP_QUAD(pairs32, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_QUAD(pairs64, uint64_t, uint64_t)
CUA_DEFINE_HASHMAP_UPDATE(add32, pairs32, old + operand)
CUA_DEFINE_HASHMAP_UPDATE_OP(add_op32, pairs32, CUA_UPDATE_ADD)

static __device__ int typed_insert(const struct cua_hashmap_view *view, uint32_t key,
				   uint32_t value)
{
	return pairs32_insert(view, key, value);
}
static __device__ int typed_insert(const struct cua_hashmap_view *view, uint64_t key,
				   uint64_t value)
{
	return pairs64_insert(view, key, value);
}
static __device__ int typed_find(const struct cua_hashmap_view *view, uint32_t key, uint32_t *value)
{
	return pairs32_find(view, key, value);
}
static __device__ int typed_find(const struct cua_hashmap_view *view, uint64_t key, uint64_t *value)
{
	return pairs64_find(view, key, value);
}
static __device__ int typed_erase(const struct cua_hashmap_view *view, uint32_t key)
{
	return pairs32_erase(view, key);
}
static __device__ int typed_erase(const struct cua_hashmap_view *view, uint64_t key)
{
	return pairs64_erase(view, key);
}
static __device__ int typed_execute(const struct cua_hashmap_view *view,
				    enum cua_hashmap_operation operation, uint32_t key,
				    uint32_t *value)
{
	return pairs32_execute(view, operation, key, value);
}
static __device__ int typed_execute(const struct cua_hashmap_view *view,
				    enum cua_hashmap_operation operation, uint64_t key,
				    uint64_t *value)
{
	return pairs64_execute(view, operation, key, value);
}
static __device__ int quad_insert(const struct cua_hashmap_view *view, int active, uint32_t key,
				  uint32_t value)
{
	return pairs32_insert_quad(view, ALL_LANES, active, key, value);
}
static __device__ int quad_insert(const struct cua_hashmap_view *view, int active, uint64_t key,
				  uint64_t value)
{
	return pairs64_insert_quad(view, ALL_LANES, active, key, value);
}
static __device__ int quad_find(const struct cua_hashmap_view *view, int active, uint32_t key,
				uint32_t *value)
{
	return pairs32_find_quad(view, ALL_LANES, active, key, value);
}
static __device__ int quad_find(const struct cua_hashmap_view *view, int active, uint64_t key,
				uint64_t *value)
{
	return pairs64_find_quad(view, ALL_LANES, active, key, value);
}

template <typename T>
static __global__ void insert_typed(struct cua_hashmap_view view, size_t n, const T *keys,
				    const T *values)
{
	EACH(i, n)
	typed_insert(&view, keys[i], values[i]);
}

template <typename T>
static __global__ void find_typed(struct cua_hashmap_view view, size_t n, const T *asked, T *out,
				  uint8_t *found)
{
	EACH(i, n)
	{
		T value = 0;

		found[i] = (uint8_t)typed_find(&view, asked[i], &value);
		if (found[i])
			out[i] = value;
	}
}

/* Whole warps, for calls of quads. */
#define EACH_WARP(i, n)                                                                            \
	for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; (i & ~(size_t)31) < (n);    \
	     i += (size_t)gridDim.x * blockDim.x)

template <typename T>
static __global__ void insert_quads(struct cua_hashmap_view view, size_t n, const T *keys,
				    const T *values)
{
	EACH_WARP(i, n)
	quad_insert(&view, i < n, i < n ? keys[i] : 0, i < n ? values[i] : 0);
}

template <typename T>
static __global__ void find_quads(struct cua_hashmap_view view, size_t n, const T *asked, T *out,
				  uint8_t *found)
{
	EACH_WARP(i, n)
	{
		T value = 0;
		int there = quad_find(&view, i < n, i < n ? asked[i] : 0, &value);

		if (i < n)
			found[i] = (uint8_t)there;
		if (there)
			out[i] = value;
	}
}

/* Half of the elements of the mix are finds, a quarter each are inserts and erases. */
static __device__ enum cua_hashmap_operation mix_operation(size_t i)
{
	switch (keys_mix64(i + 1) >> 62) {
	case 2: return CUA_HASHMAP_INSERT;
	case 3: return CUA_HASHMAP_ERASE;
	default: return CUA_HASHMAP_FIND;
	}
}

/*
 * The blocks of the mix are small because the warps of a block take different times. The bound, 20
 * blocks a multiprocessor, limits a lane to 48 registers.
 */
#define MIX_THREADS 64
#define MIX_BLOCKS 20

/*
 * Each lane finds keys[i], inserts absent[i] or erases keys[i]. found[i] becomes 1 if the result is
 * right.
 */
template <typename T>
static __global__ void __launch_bounds__(MIX_THREADS, MIX_BLOCKS)
	mix_lanes(struct cua_hashmap_view view, size_t n, const T *keys, const T *absent,
		  uint8_t *found)
{
	EACH(i, n)
	{
		const enum cua_hashmap_operation operation = mix_operation(i);
		T value = 0;

		if (operation == CUA_HASHMAP_FIND)
			found[i] = typed_find(&view, keys[i], &value) &&
				   value == (T)keys_value(sizeof(T), keys[i]);
		else if (operation == CUA_HASHMAP_INSERT)
			found[i] =
				typed_insert(&view, absent[i], absent[i]) == CUA_HASHMAP_INSERTED;
		else
			found[i] = typed_erase(&view, keys[i]) == 1;
	}
}

/* The same, executed by the lanes of a warp together. */
template <typename T>
static __global__ void __launch_bounds__(MIX_THREADS, MIX_BLOCKS)
	mix_executed(struct cua_hashmap_view view, size_t n, const T *keys, const T *absent,
		     uint8_t *found)
{
	EACH(i, n)
	{
		const enum cua_hashmap_operation operation = mix_operation(i);
		const T key = operation == CUA_HASHMAP_INSERT ? absent[i] : keys[i];
		T value = key;
		const int result = typed_execute(&view, operation, key, &value);

		found[i] = operation == CUA_HASHMAP_INSERT
				   ? result == CUA_HASHMAP_INSERTED
				   : result == CUA_HASHMAP_EXISTS &&
					     value == (T)keys_value(sizeof(T), key);
	}
}

static __global__ void count_right(size_t n, const uint8_t *found, unsigned long long *right)
{
	unsigned long long own = 0;

	EACH(i, n)
	own += found[i] == 1;
	atomicAdd(right, own);
}

static __global__ void update_typed(struct cua_hashmap_view view, size_t n, const uint32_t *keys,
				    const uint32_t *values)
{
	EACH(i, n)
	add32(&view, keys[i], values[i]);
}

static __global__ void update_op_typed(struct cua_hashmap_view view, size_t n, const uint32_t *keys,
				       const uint32_t *values)
{
	EACH(i, n)
	add_op32(&view, keys[i], values[i]);
}

static unsigned lane_blocks(size_t items)
{
	return (unsigned)((items - 1) / THREADS + 1);
}

/* Selects the call for the width of the case's keys and values. */
#define OF_WIDTH(call32, call64)                                                                   \
	do {                                                                                       \
		if (width == 4)                                                                    \
			call32;                                                                    \
		else                                                                               \
			call64;                                                                    \
	} while (0)

/* ---- the map ---- */

static struct cua_hashmap *map;
static struct cua_hashmap_view view;
static struct cua_hashmap_options map_options = CUA_HASHMAP_OPTIONS_INIT;

/* Creates a map of this capacity, and as much memory for the ceilings. */
static void open_map(uint64_t capacity)
{
	const enum cua_type type = width == 4 ? CUA_U32 : CUA_U64;
	size_t before, after, all;

	need(!cudaDeviceSynchronize() && !cudaMemGetInfo(&before, &all), "memory");
	need_ok(cua_hashmap_create(ctx, &map_options, type, type, capacity, &map),
		"cua_hashmap_create");
	need_ok(cua_hashmap_get_view(map, &view), "cua_hashmap_get_view");
	need(!cudaDeviceSynchronize() && !cudaMemGetInfo(&after, &all), "memory");
	area_bytes = before - after;
	/* memory that the driver already had reserved does not appear in the difference */
	if (before < after || area_bytes < capacity * 2 * width)
		area_bytes = (size_t)capacity * 2 * width;
	area_bytes = (area_bytes + 4095) / 4096 * 4096;
	need(!cudaMalloc(&area, area_bytes), "memory");
}

static void close_map(void)
{
	cudaFree(area);
	need_ok(cua_hashmap_destroy(map), "cua_hashmap_destroy");
}

static void clear_map(void)
{
	need_ok(cua_hashmap_clear(map), "cua_hashmap_clear");
}

static void insert_some(size_t some)
{
	need_ok(cua_hashmap_insert_n(map, some, keys, values, NULL), "cua_hashmap_insert_n");
}

static void erase_some(size_t some)
{
	need_ok(cua_hashmap_erase_n(map, some, keys, NULL), "cua_hashmap_erase_n");
}

static void find_some(size_t some, const char *wanted)
{
	need_ok(cua_hashmap_find_n(map, some, wanted, out, found), "cua_hashmap_find_n");
}

/* Builds the table from all pairs. */
static void build_all(void)
{
	need_ok(cua_hashmap_build_n(map, n, keys, values, NULL), "cua_hashmap_build_n");
}

static bool has_size(uint64_t wanted)
{
	uint64_t size = ~wanted;

	need_ok(cua_hashmap_size(map, &size), "cua_hashmap_size");
	return size == wanted;
}

/* Returns whether the map contains all pairs and no others. */
static bool has_all(void)
{
	poison_found();
	find_some(n, asked);
	return found_right(asked, n) && has_size(n);
}

/* ---- the cases of a shape ---- */

static const char *shape_name;
static size_t shape_capacity;

static void begin(const char *what)
{
	char name[sizeof(table.name)];

	snprintf(name, sizeof(name), "%s, %s%s", shape_name, what, timing_names[timing]);
	table_begin(&table, name);
}

static void open_shape(const char *name, unsigned size, size_t n_keys, unsigned load)
{
	shape_name = name;
	width = size;
	n = n_keys;
	shape_capacity = (size_t)n * 100 / load;
	OF_WIDTH((make_pairs<<<many_blocks(n), THREADS>>>(n, (uint32_t *)keys, (uint32_t *)values,
							  (uint32_t *)asked, (uint32_t *)absent)),
		 (make_pairs<<<many_blocks(n), THREADS>>>(n, (uint64_t *)keys, (uint64_t *)values,
							  (uint64_t *)asked, (uint64_t *)absent)));
	need(!cudaDeviceSynchronize(), "keys");
	open_map(shape_capacity);
}

/* ---- peers ---- */

enum bulk_call { BULK_INSERT, BULK_HITS, BULK_MISSES };

#ifdef MAP_PEERS
/* A peer's find writes values only, and PEER_ABSENT for absent keys. */
template <typename T>
static __global__ void count_values(size_t n, const T *asked, const T *out, bool hits,
				    unsigned long long *right)
{
	unsigned long long own = 0;

	EACH(i, n)
	own += out[i] == (hits ? (T)keys_value(sizeof(T), asked[i]) : PEER_ABSENT(T));
	if (own)
		atomicAdd(right, own);
}

template <typename T> static void peer_rows_of(enum bulk_call bulk)
{
	const T *const wanted = (const T *)(bulk == BULK_MISSES ? absent : asked);
	T *const values_out = (T *)out;

	each_map_peer<T>(shape_capacity, [=](const char *way, auto &peer) {
		auto insert = [&] { peer.insert(n, (const T *)keys, (const T *)values); };
		auto find = [&] { peer.find(n, wanted, values_out); };
		auto right = [=] {
			return counted([=](unsigned long long *some) {
				       count_values<<<many_blocks(n), THREADS>>>(
					       n, wanted, values_out, bulk != BULK_MISSES, some);
			       }) == n;
		};

		if (bulk == BULK_INSERT) {
			row(
				TABLE_PEER, way, n, [&] { peer.clear(); }, insert,
				[&] {
					poison_found();
					find();
					return right();
				});
		} else {
			peer.clear();
			insert();
			row(TABLE_PEER, way, n, poison_found, find, right);
		}
	});
}
#endif

/* Adds a row for each peer. */
static void peer_rows(enum bulk_call bulk)
{
	(void)bulk;
#ifdef MAP_PEERS
	if (timing == ONE_CALL && map_options.hash == CUA_HASHMAP_HASH_SEEDED)
		OF_WIDTH(peer_rows_of<uint32_t>(bulk), peer_rows_of<uint64_t>(bulk));
#endif
}

static struct cua_chained *chained;

static void clear_chained(void)
{
	need_ok(cua_chained_clear(chained), "cua_chained_clear");
}

static void find_chained(const char *wanted)
{
	need_ok(cua_chained_find_n(chained, n, (const uint64_t *)wanted, (uint64_t *)out, found),
		"cua_chained_find_n");
}

static bool chained_has_all(void)
{
	uint64_t size = 0;

	poison_found();
	find_chained(asked);
	need_ok(cua_chained_size(chained, &size), "cua_chained_size");
	return found_right(asked, n) && size == n;
}

static void chained_inserts(void)
{
	row(
		TABLE_PEER, "cua_chained_insert_n", n, clear_chained,
		[] {
			need_ok(cua_chained_insert_n(chained, n, (const uint64_t *)keys,
						     (const uint64_t *)values),
				"cua_chained_insert_n");
		},
		chained_has_all);
}

static void chained_build(void)
{
	row(
		TABLE_PEER, "cua_chained_build_n", n, clear_chained,
		[] {
			need_ok(cua_chained_build_n(chained, n, (const uint64_t *)keys,
						    (const uint64_t *)values),
				"cua_chained_build_n");
		},
		chained_has_all);
}

template <typename T>
using insert_kernel = void(struct cua_hashmap_view view, size_t n, const T *keys, const T *values);

static void insert_row(const char *way, insert_kernel<uint32_t> *narrow,
		       insert_kernel<uint64_t> *wide)
{
	row(
		TABLE_OURS, way, n, clear_map,
		[=] {
			OF_WIDTH((narrow<<<lane_blocks(n), THREADS>>>(view, n,
								      (const uint32_t *)keys,
								      (const uint32_t *)values)),
				 (wide<<<lane_blocks(n), THREADS>>>(view, n, (const uint64_t *)keys,
								    (const uint64_t *)values)));
		},
		has_all);
}

static void insert_case(void)
{
	begin("insert");
	swap_ceiling(n, false);
	if (chained)
		chained_inserts();
	peer_rows(BULK_INSERT);
	row(
		TABLE_OURS, "cua_hashmap_insert_n", n, clear_map, [] { insert_some(n); }, has_all);
	insert_row("cua_hashmap_insert in a kernel", insert_lanes<uint32_t>,
		   insert_lanes<uint64_t>);
	insert_row("CUA_DEFINE_HASHMAP, insert in a kernel", insert_typed<uint32_t>,
		   insert_typed<uint64_t>);
	insert_row("CUA_DEFINE_HASHMAP_QUAD, insert in a kernel", insert_quads<uint32_t>,
		   insert_quads<uint64_t>);
	table_end(&table);
}

static void build_case(void)
{
	begin("build");
	swap_ceiling(n, false);
	if (chained)
		chained_build();
	row(
		TABLE_OURS, "cua_hashmap_build_n", n, [] {}, build_all, has_all);
	table_end(&table);
}

template <typename T>
using find_kernel = void(struct cua_hashmap_view view, size_t n, const T *asked, T *out,
			 uint8_t *found);

template <typename Right>
static void find_row(const char *way, const char *wanted, Right right,
		     find_kernel<uint32_t> *narrow, find_kernel<uint64_t> *wide)
{
	row(
		TABLE_OURS, way, n, poison_found,
		[=] {
			OF_WIDTH((narrow<<<lane_blocks(n), THREADS>>>(view, n,
								      (const uint32_t *)wanted,
								      (uint32_t *)out, found)),
				 (wide<<<lane_blocks(n), THREADS>>>(view, n,
								    (const uint64_t *)wanted,
								    (uint64_t *)out, found)));
		},
		right);
}

/* The map and the chained table contain all pairs. */
static void find_case(const char *what, bool hits)
{
	const char *wanted = hits ? asked : absent;
	auto right = [=] { return hits ? found_right(asked, n) : absent_right(); };

	begin(what);
	line_ceiling();
	if (chained)
		row(
			TABLE_PEER, "cua_chained_find_n", n, poison_found,
			[=] { find_chained(wanted); }, right);
	peer_rows(hits ? BULK_HITS : BULK_MISSES);
	row(
		TABLE_OURS, "cua_hashmap_find_n", n, poison_found, [=] { find_some(n, wanted); },
		right);
	if (timing == ONE_CALL) {
		find_row("cua_hashmap_find in a kernel", wanted, right, find_lanes<uint32_t>,
			 find_lanes<uint64_t>);
		find_row("CUA_DEFINE_HASHMAP, find in a kernel", wanted, right,
			 find_typed<uint32_t>, find_typed<uint64_t>);
		find_row("CUA_DEFINE_HASHMAP_QUAD, find in a kernel", wanted, right,
			 find_quads<uint32_t>, find_quads<uint64_t>);
	}
	table_end(&table);
}

static void erase_cases(void)
{
	const size_t half = n / 2;

	begin("erase half");
	swap_ceiling(half, false);
	row(
		TABLE_OURS, "cua_hashmap_erase_n", half, [] { insert_some(n); },
		[=] { erase_some(half); }, [=] { return has_size(n - half); });
	table_end(&table);
	begin("insert that half");
	swap_ceiling(half, false);
	row(
		TABLE_OURS, "cua_hashmap_insert_n", half, [=] { erase_some(half); },
		[=] { insert_some(half); }, has_all);
	table_end(&table);
}

template <typename T>
using mix_kernel = void(struct cua_hashmap_view view, size_t n, const T *keys, const T *absent,
			uint8_t *found);

static void mix_row(const char *way, mix_kernel<uint32_t> *narrow, mix_kernel<uint64_t> *wide)
{
	const unsigned blocks = (unsigned)((n - 1) / MIX_THREADS + 1);

	row(
		TABLE_OURS, way, n, build_all,
		[=] {
			OF_WIDTH((narrow<<<blocks, MIX_THREADS>>>(view, n, (const uint32_t *)keys,
								  (const uint32_t *)absent, found)),
				 (wide<<<blocks, MIX_THREADS>>>(view, n, (const uint64_t *)keys,
								(const uint64_t *)absent, found)));
		},
		[] {
			return counted([](unsigned long long *right) {
				       count_right<<<many_blocks(n), THREADS>>>(n, found, right);
			       }) == n;
		});
}

/* Half of the operations find, a quarter insert new keys, a quarter erase. */
static void mix_case(void)
{
	const size_t quarter = n / 4;

	begin("mix");
	swap_ceiling(n, false);
	mix_row("CUA_DEFINE_HASHMAP, mix in a kernel", mix_lanes<uint32_t>, mix_lanes<uint64_t>);
	mix_row("CUA_DEFINE_HASHMAP, execute in a kernel", mix_executed<uint32_t>,
		mix_executed<uint64_t>);
	row(
		TABLE_OURS, "erase_n, insert_n, find_n", 4 * quarter, build_all,
		[=] {
			erase_some(quarter);
			need_ok(cua_hashmap_insert_n(map, quarter, absent, absent, NULL),
				"cua_hashmap_insert_n");
			find_some(2 * quarter, keys + 2 * quarter * width);
		},
		[=] { return has_size(n); });
	table_end(&table);
}

static void large_shape(const char *name, unsigned size, size_t n_keys, unsigned load,
			bool with_chained)
{
	open_shape(name, size, n_keys, load);
	if (with_chained)
		need_ok(cua_chained_create(ctx, NULL, n, n, &chained), "cua_chained_create");
	build_case();
	insert_case();
	find_case("find hits", true);
	find_case("find misses", false);
	cua_chained_destroy(chained);
	chained = NULL;
	erase_cases();
	mix_case();
	close_map();
}

/* The bulk calls of a map with the keyed hash. */
static void keyed_shape(const char *name, unsigned size, size_t n_keys)
{
	map_options.hash = CUA_HASHMAP_HASH_KEYED;
	open_shape(name, size, n_keys, 80);
	build_case();
	insert_case();
	find_case("find hits", true);
	find_case("find misses", false);
	close_map();
	map_options.hash = CUA_HASHMAP_HASH_SEEDED;
}

/* A table in the L2. */
static void small_shape(size_t n_keys)
{
	open_shape("4+4, 1 M, 0.5", 4, n_keys, 50);
	insert_case();
	find_case("find hits", true);
	find_case("find misses", false);
	set_timing(IN_STREAM, IN_A_ROW);
	begin("insert");
	swap_ceiling(n, true);
	row_between(
		TABLE_OURS, "cua_hashmap_insert_n, clears not counted", n, clear_map,
		[] { insert_some(n); }, has_all);
	table_end(&table);
	find_case("hits", true);
	find_case("misses", false);
	set_timing(ONE_CALL, 1);
	close_map();
}

/* ---- updates ---- */

static double uniform_rate[4]; /* for each way of updating */

/* Adds 1 to the values of `ops` keys, starting with a cleared map. */
template <typename Call>
static void update_row(enum skew skew, int which, const char *way, size_t ops, Call call)
{
	struct figure f;
	char share[32];

	need(!cudaMemset(counts, 0, n * sizeof(*counts)), "counts");
	count_skewed<<<many_blocks(ops), THREADS>>>(skew, ops, n, counts);
	f = figure_of(way, ops, clear_map, call, [=] {
		poison_found();
		find_some(n, keys);
		return counted([=](unsigned long long *right) {
			       count_sums<<<many_blocks(n), THREADS>>>(n, (const uint32_t *)out,
								       found, counts, right);
		       }) == n;
	});
	if (skew == UNIFORM)
		uniform_rate[which] = f.median;
	snprintf(share, sizeof(share), ", %.2f of uniform", f.median / uniform_rate[which]);
	add_row_note(TABLE_OURS, way, f, (double)ops * 1e3, share);
}

/*
 * Lanes that update the same key are serialized, and their rate depends on their number. Returns
 * the number of operations that a call(operations) does in about ENOUGH seconds.
 */
template <typename Call> static size_t lane_ops(enum skew skew, Call call)
{
	size_t ops = skew == UNIFORM ? n : 256;

	for (; ops < n; ops *= 4) {
		double start;

		clear_map();
		need(!cudaDeviceSynchronize(), "lanes");
		start = now();
		call(ops);
		need(!cudaDeviceSynchronize(), "lanes");
		if (now() - start > ENOUGH)
			break;
	}
	return ops < n ? ops : n;
}

static void update_cases(size_t n_keys, bool never_erases)
{
	const uint32_t *update = (const uint32_t *)absent, *ones = (const uint32_t *)values;

	map_options.no_erase = never_erases;
	open_shape(never_erases ? "4+4, no erase" : "4+4, 0.8", 4, n_keys, 80);
	for (int s = 0; s < SKEWS; s++) {
		const enum skew skew = (enum skew)s;
		char what[24];
		size_t ops;

		make_skewed<<<many_blocks(n), THREADS>>>(skew, n, n, (uint32_t *)absent,
							 (uint32_t *)values);
		snprintf(what, sizeof(what), "add, %s", skew_names[s]);
		begin(what);
		swap_ceiling(n, false);
		update_row(skew, 0, "cua_hashmap_update_n", n, [=] {
			need_ok(cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, update, ones, NULL),
				"cua_hashmap_update_n");
		});
		auto lanes = [=](size_t ops) {
			update_lanes<<<lane_blocks(ops), THREADS>>>(view, ops, update, ones);
		};
		ops = lane_ops(skew, lanes);
		update_row(skew, 1, "cua_hashmap_update in a kernel", ops, [=] { lanes(ops); });
		auto typed_lanes = [=](size_t some) {
			update_typed<<<lane_blocks(some), THREADS>>>(view, some, update, ones);
		};
		ops = lane_ops(skew, typed_lanes);
		update_row(skew, 2, "CUA_DEFINE_HASHMAP_UPDATE in a kernel", ops,
			   [=] { typed_lanes(ops); });
		auto op_lanes = [=](size_t some) {
			update_op_typed<<<lane_blocks(some), THREADS>>>(view, some, update, ones);
		};
		ops = lane_ops(skew, op_lanes);
		update_row(skew, 3, "CUA_DEFINE_HASHMAP_UPDATE_OP in a kernel", ops,
			   [=] { op_lanes(ops); });
		table_end(&table);
	}
	if (never_erases) {
		close_map();
		map_options.no_erase = 0;
		return;
	}

	/* all lanes find the same key, or insert it */
	begin("one key there");
	swap_ceiling(n, false);
	row(
		TABLE_OURS, "cua_hashmap_insert in a kernel", n, clear_map,
		[=] { insert_lanes<<<lane_blocks(n), THREADS>>>(view, n, update, ones); },
		[] { return has_size(1); });
	row(
		TABLE_OURS, "cua_hashmap_find in a kernel", n, poison_found,
		[=] {
			find_lanes<<<lane_blocks(n), THREADS>>>(view, n, update, (uint32_t *)out,
								found);
		},
		[=] {
			return counted([=](unsigned long long *right) {
				       count_sums<<<many_blocks(n), THREADS>>>(
					       n, (const uint32_t *)out, found, ones, right);
			       }) == n;
		});
	table_end(&table);
	close_map();
}

/* ---- many pairs of few keys ---- */

/* Sorts the pairs of absent and values by key, and sums the values of each key: `n` keys. */
static void cub_sum(size_t pairs, void *memory, size_t &bytes)
{
	const uint32_t *drawn = (const uint32_t *)absent, *ones = (const uint32_t *)values;
	uint32_t *sorted = (uint32_t *)asked, *operands = (uint32_t *)out;
	size_t for_sort = bytes, for_sums = bytes;

	need(!cub::DeviceRadixSort::SortPairs(memory, for_sort, drawn, sorted, ones, operands,
					      (int)pairs) &&
		     !cub::DeviceReduce::ReduceByKey(memory, for_sums, sorted, sorted + pairs,
						     operands, operands + pairs, sink,
						     cuda::std::plus<>{}, (int)pairs),
	     "cub");
	if (!memory)
		bytes = for_sort > for_sums ? for_sort : for_sums;
}

/* Sums by key, and inserts of repeated keys: `pairs` drawn from n_keys. */
static void repeat_cases(size_t pairs, size_t n_keys)
{
	const uint32_t *drawn = (const uint32_t *)absent, *ones = (const uint32_t *)values;
	size_t bytes = 0;
	void *memory;

	open_shape("4+4, 0.8, repeats", 4, n_keys, 80);
	cub_sum(pairs, NULL, bytes);
	need(!cudaMalloc(&memory, bytes), "cub");
	for (int s = UNIFORM; s <= ZIPF; s++) {
		const enum skew skew = (enum skew)s;
		unsigned long long drawn_keys;
		char what[24];

		make_skewed<<<many_blocks(pairs), THREADS>>>(skew, pairs, n, (uint32_t *)absent,
							     (uint32_t *)values);
		need(!cudaMemset(counts, 0, n * sizeof(*counts)), "counts");
		count_skewed<<<many_blocks(pairs), THREADS>>>(skew, pairs, n, counts);
		drawn_keys = counted([=](unsigned long long *some) {
			count_nonzero<<<many_blocks(n), THREADS>>>(n, counts, some);
		});
		snprintf(what, sizeof(what), "sum, %s", skew_names[s]);
		begin(what);
		swap_ceiling(pairs, false);
		row(
			TABLE_PEER, "cub sort and ReduceByKey", pairs, [] {},
			[=] {
				size_t has = bytes;

				cub_sum(pairs, memory, has);
			},
			[=] {
				unsigned long long runs;

				need(!cudaMemcpy(&runs, sink, sizeof(runs), cudaMemcpyDeviceToHost),
				     "cub");
				return runs == drawn_keys;
			});
		update_row(skew, 0, "cua_hashmap_update_n", pairs, [=] {
			need_ok(cua_hashmap_update_n(map, CUA_UPDATE_ADD, pairs, drawn, ones, NULL),
				"cua_hashmap_update_n");
		});
		table_end(&table);
		snprintf(what, sizeof(what), "insert, %s", skew_names[s]);
		begin(what);
		swap_ceiling(pairs, false);
		row(
			TABLE_OURS, "cua_hashmap_insert_n", pairs, clear_map,
			[=] {
				need_ok(cua_hashmap_insert_n(map, pairs, drawn, ones, NULL),
					"cua_hashmap_insert_n");
			},
			[=] { return has_size(drawn_keys); });
		table_end(&table);
	}
	cudaFree(memory);
	close_map();
}

/* ---- small batches ---- */

/* Successive batches of new keys, inserted into a map whose memory has been used. */
static void batch_cases(size_t batches)
{
	static const struct {
		enum timing timing;
		const char *name;
	} ways[] = {{ONE_CALL, "batch"}, {IN_STREAM, "batch"}, {CALL_WAIT, "batch"}};

	open_shape("8 Ki", 4, BATCH * batches, 20);
	for (auto &w : ways) {
		size_t at = 0;

		set_timing(w.timing, w.timing == ONE_CALL ? 1 : (int)batches);
		begin(w.name);
		swap_ceiling(BATCH, false);
		row(
			TABLE_OURS, "cua_hashmap_insert_n", BATCH,
			[&] {
				at = 0;
				clear_map();
				/* the host clock starts after this */
				need(!cudaDeviceSynchronize(), "cua_hashmap_clear");
			},
			[&] {
				need_ok(cua_hashmap_insert_n(map, BATCH, keys + at * width,
							     values + at * width, NULL),
					"cua_hashmap_insert_n");
				at += BATCH;
			},
			[&] {
				poison_found();
				find_some(at, keys);
				return found_right(keys, at) && has_size(at);
			});
		insert_some(n);
		row(
			TABLE_OURS, "cua_hashmap_find_n", BATCH,
			[&] {
				at = 0;
				poison_found();
				need(!cudaDeviceSynchronize(), "poison");
			},
			[&] {
				need_ok(cua_hashmap_find_n(map, BATCH, asked + at * width,
							   out + at * width, found + at),
					"cua_hashmap_find_n");
				at += BATCH;
			},
			[&] { return found_right(asked, at); });
		table_end(&table);
	}
	set_timing(ONE_CALL, 1);
	close_map();
}

/* The cases that the summary lacks. */
static void other_cases(size_t large, size_t little, size_t batches)
{
	large_shape("4+4, 0.8", 4, large, 80, false);
	large_shape("4+4, 0.9", 4, large, 90, false);
	large_shape("8+8, 0.5", 8, large, 50, false);
	large_shape("8+8, 0.8", 8, large, 80, true);
	keyed_shape("4+4, keyed", 4, large);
	keyed_shape("8+8, keyed", 8, large);
	update_cases(large, false);
	update_cases(large, true);
	repeat_cases(large, large / 10);
	small_shape(little);
	batch_cases(batches);
}

int main(int argc, char **argv)
{
	struct options o = parse_options(argc, argv, "hashmap", false);
	cudaDeviceProp device = print_head("hashmap");
	const size_t large = o.quick ? (size_t)1 << 16 : 100000000,
		     little = o.quick ? 1 << 12 : 1000000;
	const size_t batches = o.quick ? 3 : BATCHES;
	size_t most = large > BATCH * batches ? large : BATCH * batches;

	small = o.quick;
	processors = (unsigned)device.multiProcessorCount;
	need(!cudaMalloc(&keys, most * 8) && !cudaMalloc(&values, most * 8) &&
		     !cudaMalloc(&asked, most * 8) && !cudaMalloc(&absent, most * 8) &&
		     !cudaMalloc(&out, most * 8) && !cudaMalloc(&found, most) &&
		     !cudaMalloc(&counts, most * sizeof(*counts)) &&
		     !cudaMalloc(&sink, sizeof(*sink)) &&
		     cua_context_create(CUA_BACKEND_CUDA, 0, &ctx) == CUA_OK,
	     "context and memory");
	printf("%zu distinct keys (1 M: %zu) of 4 or 8 bytes with values of the same size, at a load of the capacity; all in "
	       "device memory; the L2 has %d MiB\n",
	       large, little, device.l2CacheSize >> 20);
	printf("stream: mean of %d calls in a row, of %zu batches; wait: host time of a call and its synchronization, "
	       "mean of %zu; others: a single call; * fewer runs\n",
	       IN_A_ROW, batches, batches);

	table_columns("M/s", "a call");
	set_timing(ONE_CALL, 1);
	large_shape("4+4, 0.5", 4, large, 50, false);
	if (!bench_env()->summarized)
		other_cases(large, little, batches);

	cua_context_destroy(ctx);
	cudaFree(keys);
	cudaFree(values);
	cudaFree(asked);
	cudaFree(absent);
	cudaFree(out);
	cudaFree(found);
	cudaFree(counts);
	cudaFree(sink);
	return 0;
}
