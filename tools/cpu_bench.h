/* SPDX-License-Identifier: MIT */
/*
 * The harness of `cuatomic bench` on the CPU: it runs loops on threads, checks the results and
 * measures the rates.
 */
#ifndef CUATOMIC_CPU_BENCH_H
#define CUATOMIC_CPU_BENCH_H

#include <pthread.h>

#include "../bench/bench_table.h"
#include "tools.h"

struct bench_options {
	int quick;
	unsigned threads; /* of the rows with all threads */
};

struct bench_worker {
	struct bench_run *run;
	unsigned index;
	uint64_t done; /* operations so far */
	double end;
};

/* The settings of a row of a table, and the state of its current run. */
struct bench_run {
	const char *name; /* of the benchmark */
	const char *way;
	double seconds; /* planned duration of a run */
	uint64_t cap;   /* most operations of a thread */
	unsigned threads;
	int show_shares; /* print each thread's share of the operations, if threads > 1 */
	size_t items;    /* each benchmark defines the meaning for its functions below */
	void (*before)(struct bench_run *);
	void (*loop)(struct bench_worker *);
	uint64_t (*result)(const struct bench_run *); /* must equal expected() */
	uint64_t (*expected)(const struct bench_run *);

	struct bench_worker *workers;   /* allocated for the runs */
	double least_share, most_share; /* extremes over threads and runs */
	pthread_barrier_t start;
	int stop;
};

/*
 * Defines a loop over a statement. `i` is the statement's number. The loop makes at least 1
 * iteration.
 */
#define BENCH_LOOP(name, ...)                                                                      \
	static void name(struct bench_worker *w)                                                   \
	{                                                                                          \
		const uint64_t cap = w->run->cap;                                                  \
		uint64_t i = 0;                                                                    \
                                                                                                   \
		for (; i < cap && (!i || !__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));       \
		     i++) {                                                                        \
			__VA_ARGS__;                                                               \
		}                                                                                  \
		w->done = i;                                                                       \
	}

/*
 * In the test build, 1 if the environment variable BENCH_PLANT names this row, so that the check of
 * the result must fail. Otherwise 0.
 */
#ifdef CUATOMIC_DEMO_PLANT
uint64_t bench_plant(const char *way);
#else
#define bench_plant(way) 0
#endif

/* Operations of all threads in the last run. */
uint64_t bench_total(const struct bench_run *r);

/* Adds the rate of a run to the samples of a row. Returns whether another run is needed. */
int bench_more(struct stats *s, double rate);

/* Measures runs and adds the row, if it is wanted. A wrong result ends the process. */
void bench_row(struct table *t, enum table_kind kind, struct bench_run *r);

/* Adds the row of the read ceiling over an array of at least 64 000 bytes. */
void bench_read_ceiling(const struct bench_options *o, struct table *t, const char *name,
			const void *array, size_t bytes);

/* The benchmarks. */
void bench_append(const struct bench_options *o);
void bench_atomics(const struct bench_options *o);
void bench_hashmap(const struct bench_options *o);
void bench_histogram(const struct bench_options *o);
void bench_locks(const struct bench_options *o);
void bench_reduce(const struct bench_options *o);

#endif /* CUATOMIC_CPU_BENCH_H */
