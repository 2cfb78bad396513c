/* SPDX-License-Identifier: MIT */
/* What the parts of `cuatomic bench` share: the measuring of loops on threads. */
#ifndef CUATOMIC_BENCH_H
#define CUATOMIC_BENCH_H

#include <pthread.h>

#include "../bench/bench_table.h"
#include "tools.h"

struct bench_options {
	int quick;
	unsigned threads; /* of the cases with all threads */
};

struct bench_worker {
	struct bench_run *run;
	unsigned index;
	uint64_t done; /* operations so far */
	double end;
};

/* One run, or the like of several. */
struct bench_run {
	const char *name; /* of the benchmark */
	const char *way;
	double seconds; /* a run takes about this */
	uint64_t cap;   /* operations of a thread at most */
	unsigned threads;
	int show_shares; /* in the last column, of several threads */
	size_t cells;    /* for the loop and the check, which know what it means */
	void (*before)(struct bench_run *);
	void (*loop)(struct bench_worker *);
	uint64_t (*result)(const struct bench_run *); /* equal to expected if all is right */
	uint64_t (*expected)(const struct bench_run *);

	struct bench_worker *workers;   /* set in a run */
	double least_share, most_share; /* of a thread in the operations, of all runs */
	pthread_barrier_t start;
	int stop;
};

/* A loop of one statement, whose number is i; it is run once at least. */
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

/* How much to add to the result of this way: 0, but in a test program 1 for the one that BENCH_PLANT names. */
#ifdef CUATOMIC_DEMO_PLANT
uint64_t bench_plant(const char *way);
#else
#define bench_plant(way) 0
#endif

/* All operations of the run that has ended. */
uint64_t bench_total(const struct bench_run *r);

/* Runs the loop BENCH_RUNS times and adds the row. A wrong result ends the process. */
void bench_row(struct table *t, enum table_kind kind, struct bench_run *r);

/* Adds the row of the ceiling for reading so many bytes, 64 000 at least. */
void bench_read_ceiling(const struct bench_options *o, struct table *t, const char *name,
			const void *array, size_t bytes);

/* The tables. */
void bench_append(const struct bench_options *o);
void bench_atomics(const struct bench_options *o);
void bench_hashmap(const struct bench_options *o);
void bench_histogram(const struct bench_options *o);
void bench_locks(const struct bench_options *o);
void bench_reduce(const struct bench_options *o);

#endif /* CUATOMIC_BENCH_H */
