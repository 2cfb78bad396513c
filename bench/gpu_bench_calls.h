/* SPDX-License-Identifier: MIT */
/*
 * Shared by the programs that time whole calls over arrays: the timing of calls, CUB's temporary
 * memory, and the read ceiling.
 */
#ifndef CUATOMIC_BENCH_CALLS_H
#define CUATOMIC_BENCH_CALLS_H

#include <time.h>

#include "gpu_bench.h"

#define THREADS 256
/* 16-byte words of an array that a thread of a ceiling loads at once. */
#define LOADS 4

enum timing {
	ONE_CALL,  /* events around a single call */
	IN_STREAM, /* events around many calls */
	CALL_WAIT  /* host clock; each call is followed by a synchronization */
};
static const char *const timing_names[] = {"", ", stream", ", wait"};

static struct table table;
static unsigned processors;
static bool small; /* arrays shorter by a factor of 1024 */
static enum timing timing;
static int calls; /* in a timed run */

static inline void set_timing(enum timing t, int many)
{
	timing = t;
	calls = small && many > 3 ? 3 : many;
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline const char *size_text(char text[24], size_t n)
{
	if (n % ((size_t)1 << 30) == 0)
		snprintf(text, 24, "%zu Gi", n >> 30);
	else if (n % ((size_t)1 << 20) == 0)
		snprintf(text, 24, "%zu Mi", n >> 20);
	else
		snprintf(text, 24, "%zu Ki", n >> 10);
	return text;
}

/*
 * Times calls like measure_runs; the figure is in GB/s of calls that move `moved` bytes each. With
 * CALL_WAIT, there is a single warm-up run, and `runs` is not used.
 */
template <typename Before, typename Call, typename After>
static struct figure measure_calls(const char *way, double moved, int ignored, int runs,
				   Before before, Call call, After after)
{
	struct stats s;
	double seconds;

	if (timing != CALL_WAIT)
		return measure_runs(
			moved * calls * 1e-3, ignored, runs, before,
			[&] {
				for (int c = 0; c < calls; c++)
					call();
			},
			after);
	stats_begin(&s, bench_stats_plan());
	do {
		double start;

		before();
		start = now();
		for (int c = 0; c < calls; c++) {
			call();
			cudaStreamSynchronize(0);
		}
		seconds = now() - start;
		need(!cudaGetLastError(), way);
		after();
	} while (stats_add(&s, moved * calls / seconds * 1e-9, stats_now()));
	return table_stats(&s);
}

/* Adds a row with a note: the time of a call that moves `moved` bytes, followed by `more`. */
static inline void add_row_note(enum table_kind kind, const char *way, struct figure f,
				double moved, const char *more)
{
	char number[24], note[48] = "";

	if (f.runs)
		snprintf(note, sizeof(note), "%s us%s",
			 table_number(number, moved / (f.median * 1e3)), more);
	table_add_note(&table, kind, way, f, note);
}

/* Adds a row, and marks it if its results were wrong. */
static inline void add_row(enum table_kind kind, const char *way, struct figure f, double moved,
			   bool right)
{
	add_row_note(kind, way, f, moved, right ? "" : ", WRONG");
}

/* ---- CUB's temporary memory ---- */

static void *temporary;
static size_t temporary_bytes;

/*
 * Grows the temporary memory to `wants` bytes. Returns false, without memory, if there is too
 * little.
 */
static inline bool temporary_holds(size_t wants)
{
	if (wants <= temporary_bytes)
		return true;
	cudaFree(temporary);
	temporary = NULL;
	temporary_bytes = 0;
	if (cudaMalloc(&temporary, wants) != cudaSuccess) {
		(void)cudaGetLastError();
		return false;
	}
	temporary_bytes = wants;
	return true;
}

/* Returns a call of CUB, f(temporary, bytes), as a function without arguments. */
template <typename Call> static auto cub_call(const char *way, Call f)
{
	size_t wants = 0;

	need(!f(nullptr, wants), way);
	need(temporary_holds(wants), "memory");
	return [=] {
		size_t has = wants;

		need(!f(temporary, has), way);
	};
}

/* ---- the read ceiling ---- */

/*
 * Reads the tiles of THREADS * LOADS words of each of ARRAYS arrays. A block reads every
 * gridDim.x-th tile.
 */
template <int ARRAYS>
static __global__ void __launch_bounds__(THREADS)
	read_all(size_t words, const uint4 *x, const uint4 *y, unsigned *sink)
{
	const size_t tile = THREADS * LOADS;
	unsigned sum = 0;

	for (size_t first = blockIdx.x * tile; first < words; first += gridDim.x * tile) {
		uint4 v[ARRAYS][LOADS];

		if (words - first >= tile) {
#pragma unroll
			for (int l = 0; l < LOADS; l++) {
				size_t i = first + (size_t)l * THREADS + threadIdx.x;

				v[0][l] = x[i];
				if (ARRAYS == 2)
					v[ARRAYS - 1][l] = y[i];
			}
#pragma unroll
			for (int l = 0; l < LOADS; l++)
#pragma unroll
				for (int a = 0; a < ARRAYS; a++)
					sum += v[a][l].x ^ v[a][l].y ^ v[a][l].z ^ v[a][l].w;
		} else {
			for (size_t i = first + threadIdx.x; i < words; i += THREADS)
				sum += ARRAYS == 2 ? x[i].x ^ x[i].y ^ x[i].z ^ x[i].w ^ y[i].x ^
							     y[i].y ^ y[i].z ^ y[i].w
						   : x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
		}
	}
	/* keeps the compiler from removing the loads */
	if (sum == 0x12345678u)
		*sink = sum;
}

/*
 * Calls row(blocks, persistent) for both launches of a kernel over tiles: persistent blocks that
 * loop over the tiles, and a block for each tile. If both are equal, calls it once.
 */
template <typename Row> static void both_grids(size_t words, Row row)
{
	size_t tiles = (words - 1) / (THREADS * LOADS) + 1;
	size_t persistent = processors * 8 < tiles ? processors * 8 : tiles;

	row((unsigned)persistent, true);
	if (persistent != tiles)
		row((unsigned)tiles, false);
}

#endif /* CUATOMIC_BENCH_CALLS_H */
