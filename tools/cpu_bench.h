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
	int show_shares;  /* print each thread's share of the operations, if threads > 1 */
	const char *note; /* for the last column, or NULL */
	/* converts M operations/s to the unit of the table; NULL: M/s */
	double (*figure)(double rate);
	size_t items; /* each benchmark defines the meaning for its functions below */
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

/* For `before` of a run that needs no preparation. */
void bench_nothing(struct bench_run *r);

/* For `expected` of a run whose result is the number of errors. */
uint64_t bench_zero(const struct bench_run *r);

/* Adds the rate of a run to the samples of a row. Returns whether another run is needed. */
int bench_more(struct stats *s, double rate);

/* Measures the runs of a row. A wrong result ends the process. */
struct figure bench_measure(const struct table *t, struct bench_run *r);

/* Measures runs and adds the row, if it is wanted. */
void bench_row(struct table *t, enum table_kind kind, struct bench_run *r);

/* ---- figures of runs ---- */

/* GB/s, if an operation is a byte. */
double bench_gb(double rate);
/* G/s. */
double bench_g(double rate);
/* The time of an operation, in ns and in us. */
double bench_ns(double rate);
double bench_us(double rate);

/* ---- memory ---- */

/* An array that starts at a huge page, where the system has them. free() frees it. */
void *bench_array(size_t bytes);

/* The cache that holds so many bytes, for a note: "in the L2"; "" if the caches are unknown. */
const char *bench_cache(uint64_t bytes);

/* The footprints of random accesses: 16 KiB times powers of 4. Returns the number. */
#define BENCH_LEAST_FOOTPRINT ((uint64_t)16 << 10)
size_t bench_footprints(const struct bench_options *o, uint64_t *most);

/* Whether this processor has a compare-and-swap of 128 bits. */
int bench_has_cas_128(void);

/* A hash of z. */
uint64_t bench_mixed(uint64_t z);

/* Elements i of n that belong to a worker: at least 1, so shares overlap if n < threads. */
void bench_share(const struct bench_worker *w, size_t n, size_t *first, size_t *end);

/* ---- ceilings ---- */

#define BENCH_READ_CEILING "ceiling: vector loads, all threads"

/* Measures reads of an array of at least 64 000 bytes. */
struct figure bench_read_figure(const struct bench_options *o, const struct table *t,
				const char *name, const void *array, size_t bytes);

/* Adds the row of these reads. */
void bench_read_ceiling(const struct bench_options *o, struct table *t, const char *name,
			const void *array, size_t bytes);

/* A ceiling that is measured once, for the first row that is wanted. */
struct bench_ceiling {
	/* reads `from` if `to` is NULL, stores to `to` if `from` is NULL, or copies */
	void *to;
	const void *from;
	size_t bytes; /* at least 64 000; the arrays are 64-byte aligned, and `to` is cleared */
	int measured;
	struct figure figure;
};

/* Adds the row of the ceiling. */
void bench_vector_ceiling(const struct bench_options *o, struct table *t, const char *name,
			  struct bench_ceiling *c);

/* ---- the benchmarks ---- */

void bench_append(const struct bench_options *o);
void bench_atomics(const struct bench_options *o);
void bench_copy(const struct bench_options *o);
void bench_fill(const struct bench_options *o);
void bench_hashmap(const struct bench_options *o);
void bench_histogram(const struct bench_options *o);
void bench_latency(const struct bench_options *o);
void bench_launch(const struct bench_options *o);
void bench_locks(const struct bench_options *o);
void bench_random(const struct bench_options *o);
void bench_read(const struct bench_options *o);
void bench_reduce(const struct bench_options *o);
void bench_write(const struct bench_options *o);

#endif /* CUATOMIC_CPU_BENCH_H */
