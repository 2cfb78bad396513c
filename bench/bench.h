/* SPDX-License-Identifier: MIT */
/* What the programs here share: the clock, the median and the peer that all are compared with. */
#ifndef CUATOMIC_BENCH_H
#define CUATOMIC_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include <cuda_runtime.h>

#define RUNS 9

static void need(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "bench: %s failed (%s)\n", what, cudaGetErrorString(cudaGetLastError()));
		exit(1);
	}
}

struct timing {
	float median, least, most; /* microseconds */
	int runs;
};

static inline int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

/*
 * Times `runs` calls after `ignored` ones, at most RUNS. before is run ahead of each call and not
 * counted, after behind each.
 */
template <typename Before, typename Call, typename After>
static struct timing measure_runs(int ignored, int runs, Before before, Call call, After after)
{
	float us[RUNS];
	cudaEvent_t start, end;
	struct timing t;

	need(!cudaEventCreate(&start) && !cudaEventCreate(&end), "cudaEventCreate");
	for (int i = -ignored; i < runs; i++) {
		float ms;

		before();
		cudaEventRecord(start);
		call();
		cudaEventRecord(end);
		need(!cudaEventSynchronize(end) && !cudaEventElapsedTime(&ms, start, end), "a run");
		if (i >= 0)
			us[i] = ms * 1000;
		after();
	}
	cudaEventDestroy(start);
	cudaEventDestroy(end);
	qsort(us, (size_t)runs, sizeof(us[0]), by_size);
	t.median = us[runs / 2];
	t.least = us[0];
	t.most = us[runs - 1];
	t.runs = runs;
	return t;
}

template <typename Before, typename Call> static struct timing measure(Before before, Call call)
{
	return measure_runs(1, RUNS, before, call, [] {});
}

/* The textbook's lock. */

struct textbook_lock {
	int word;
};

__device__ static inline void textbook_acquire(struct textbook_lock *l)
{
	while (atomicCAS(&l->word, 0, 1) != 0)
		;
	__threadfence();
}

__device__ static inline void textbook_release(struct textbook_lock *l)
{
	__threadfence();
	atomicExch(&l->word, 0);
}

#endif /* CUATOMIC_BENCH_H */
