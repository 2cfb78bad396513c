/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench atomics` on the CPU: operations a second of all threads on one address and on random ones, of the
 * library, of the compiler's __atomic builtins, and under mutexes of POSIX threads. The ceiling is the machine's own
 * 32-bit addition at the same addresses.
 *
 * Operands are such that every operation changes the value, and the result of every run is compared with
 * what it must be.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <cuatomic/atomic.h>

#include "cpu_bench.h"

#define MANY_CELLS ((size_t)1 << 20)
#define MUTEXES 1024
#define PRIME 4294967291u

/* A factor that is not lost in rounding, and of which one that is missing shows. */
#define FACTOR (1 + 0x1p-20)

CUA_DEFINE_ATOMIC(bench_add_mod, u64, (old + operand) % PRIME)

static uint64_t *cells; /* of any type */
static pthread_mutex_t mutexes[MUTEXES];

/* ---- the operand and the cell of one operation ---- */

static uint64_t random_index(const struct bench_worker *w, uint64_t i)
{
	uint64_t z = (uint64_t)w->index << 40 | i;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) & (w->run->cells - 1);
}

/* Grows with i, and no two threads have the same. */
static uint32_t rising(const struct bench_worker *w, uint64_t i)
{
	return (uint32_t)(i * w->run->threads + w->index + 1);
}

/* ---- the ways ---- */

/* The statement has p, the cell, and `index`, its number. */
#define CELL_LOOP(name, T, ...)                                                                    \
	BENCH_LOOP(name, {                                                                         \
		uint64_t index = random_index(w, i);                                               \
		T *p = (T *)cells + index;                                                         \
                                                                                                   \
		__VA_ARGS__;                                                                       \
	})

/* The new value is made from `old`, again if the cell has changed. */
#define LOOP_OF_CAS(T, make)                                                                       \
	do {                                                                                       \
		T old, new_value;                                                                  \
                                                                                                   \
		__atomic_load(p, &old, __ATOMIC_RELAXED);                                          \
		do                                                                                 \
			new_value = (make);                                                        \
		while (!__atomic_compare_exchange(p, &old, &new_value, 0, __ATOMIC_RELAXED,        \
						  __ATOMIC_RELAXED));                              \
	} while (0)

#define UNDER_MUTEX(T, make)                                                                       \
	do {                                                                                       \
		T old;                                                                             \
                                                                                                   \
		pthread_mutex_lock(&mutexes[index % MUTEXES]);                                     \
		old = *p;                                                                          \
		*p = (make);                                                                       \
		pthread_mutex_unlock(&mutexes[index % MUTEXES]);                                   \
	} while (0)

CELL_LOOP(native, uint32_t, __atomic_fetch_add(p, 1, __ATOMIC_RELAXED))
CELL_LOOP(mutex_u32, uint32_t, UNDER_MUTEX(uint32_t, old + 1))
CELL_LOOP(our_u32, uint32_t, cua_atomic_add_u32(p, 1))

CELL_LOOP(loop_f32, float, LOOP_OF_CAS(float, old + 1))
CELL_LOOP(mutex_f32, float, UNDER_MUTEX(float, old + 1))
CELL_LOOP(our_f32, float, cua_atomic_add_f32(p, 1))
CELL_LOOP(our_cas_f32, float, cua_atomic_fetch_add_cas_f32(p, 1))

CELL_LOOP(loop_f64, double, LOOP_OF_CAS(double, old *FACTOR))
CELL_LOOP(mutex_f64, double, UNDER_MUTEX(double, old *FACTOR))
CELL_LOOP(our_f64, double, cua_atomic_fetch_mul_f64(p, FACTOR))

CELL_LOOP(loop_max, uint32_t, uint32_t v = rising(w, i); LOOP_OF_CAS(uint32_t, old < v ? v : old))
CELL_LOOP(mutex_max, uint32_t, uint32_t v = rising(w, i); UNDER_MUTEX(uint32_t, old < v ? v : old))
CELL_LOOP(our_max, uint32_t, cua_atomic_max_u32(p, rising(w, i)))

CELL_LOOP(loop_mod, uint64_t, LOOP_OF_CAS(uint64_t, (old + 4000000007u) % PRIME))
CELL_LOOP(mutex_mod, uint64_t, UNDER_MUTEX(uint64_t, (old + 4000000007u) % PRIME))
CELL_LOOP(our_mod, uint64_t, bench_add_mod(p, 4000000007u))

/* ---- results: a number that is the same for the cells and for the operations done ---- */

static void clear_cells(struct bench_run *r)
{
	memset(cells, 0, r->cells * sizeof(*cells));
}

static void set_to_one(struct bench_run *r)
{
	for (size_t i = 0; i < r->cells; i++)
		((double *)cells)[i] = 1;
}

static uint64_t sum_u32(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->cells; i++)
		sum += ((uint32_t *)cells)[i];
	return sum;
}

static uint64_t sum_f32(const struct bench_run *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->cells; i++)
		sum += (double)((float *)cells)[i];
	return (uint64_t)sum;
}

/* How many factors are in the cells. */
static uint64_t factors(const struct bench_run *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->cells; i++)
		sum += log(((double *)cells)[i]);
	return (uint64_t)(sum / log(FACTOR) + 0.5);
}

static uint64_t largest(const struct bench_run *r)
{
	uint32_t most = 0;

	for (size_t i = 0; i < r->cells; i++)
		most = ((uint32_t *)cells)[i] > most ? ((uint32_t *)cells)[i] : most;
	return most;
}

static uint64_t largest_operand(const struct bench_run *r)
{
	uint32_t most = 0;

	for (unsigned i = 0; i < r->threads; i++) {
		const struct bench_worker *w = &r->workers[i];

		if (w->done && rising(w, w->done - 1) > most)
			most = rising(w, w->done - 1);
	}
	return most;
}

static uint64_t sum_mod(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->cells; i++)
		sum += cells[i];
	return sum % PRIME;
}

static uint64_t total_mod(const struct bench_run *r)
{
	return bench_total(r) % PRIME * (4000000007u % PRIME) % PRIME;
}

/* ---- the cases ---- */

#define BY_SUM_U32 clear_cells, sum_u32, bench_total
#define BY_SUM_F32 clear_cells, sum_f32, bench_total
#define BY_FACTORS set_to_one, factors, bench_total
#define BY_LARGEST clear_cells, largest, largest_operand
#define BY_SUM_MOD clear_cells, sum_mod, total_mod

static const struct atomic_way {
	const char *operation; /* the same for the ways of one case */
	const char *name;
	enum table_kind kind;
	void (*loop)(struct bench_worker *);
	void (*before)(struct bench_run *);
	uint64_t (*result)(const struct bench_run *);
	uint64_t (*expected)(const struct bench_run *);
} atomic_ways[] = {
	{"u32 add", "__atomic_fetch_add", TABLE_PEER, native, BY_SUM_U32},
	{"u32 add", "pthread_mutex", TABLE_PEER, mutex_u32, BY_SUM_U32},
	{"u32 add", "cua_atomic_add_u32", TABLE_OURS, our_u32, BY_SUM_U32},
	{"f32 add", "loop of __atomic_compare_exchange", TABLE_PEER, loop_f32, BY_SUM_F32},
	{"f32 add", "pthread_mutex", TABLE_PEER, mutex_f32, BY_SUM_F32},
	{"f32 add", "cua_atomic_add_f32", TABLE_OURS, our_f32, BY_SUM_F32},
	{"f32 add", "cua_atomic_fetch_add_cas_f32", TABLE_OURS, our_cas_f32, BY_SUM_F32},
	{"f64 mul", "loop of __atomic_compare_exchange", TABLE_PEER, loop_f64, BY_FACTORS},
	{"f64 mul", "pthread_mutex", TABLE_PEER, mutex_f64, BY_FACTORS},
	{"f64 mul", "cua_atomic_fetch_mul_f64", TABLE_OURS, our_f64, BY_FACTORS},
	{"u32 max", "loop of __atomic_compare_exchange", TABLE_PEER, loop_max, BY_LARGEST},
	{"u32 max", "pthread_mutex", TABLE_PEER, mutex_max, BY_LARGEST},
	{"u32 max", "cua_atomic_max_u32", TABLE_OURS, our_max, BY_LARGEST},
	{"user, u64", "loop of __atomic_compare_exchange", TABLE_PEER, loop_mod, BY_SUM_MOD},
	{"user, u64", "pthread_mutex", TABLE_PEER, mutex_mod, BY_SUM_MOD},
	{"user, u64", "CUA_DEFINE_ATOMIC", TABLE_OURS, our_mod, BY_SUM_MOD},
};

static const struct atomic_way atomic_ceiling = {
	"", "ceiling: __atomic_fetch_add of u32", TABLE_CEILING, native, BY_SUM_U32,
};

static void run_way(const struct bench_options *o, struct table *t, size_t n_cells,
		    const struct atomic_way *way)
{
	struct bench_run r = {
		.name = "atomics",
		.way = way->name,
		.seconds = o->quick ? 1e-3 : 20e-3,
		/* up to where counts are exact in a float */
		.cap = ((uint64_t)1 << 24) / o->threads,
		.threads = o->threads,
		.cells = n_cells,
		.before = way->before,
		.loop = way->loop,
		.result = way->result,
		.expected = way->expected,
	};

	bench_row(t, way->kind, &r);
}

static void run_cells(const struct bench_options *o, const char *where, size_t n_cells)
{
	const size_t n = sizeof(atomic_ways) / sizeof(atomic_ways[0]);
	struct table table = {.n = 0};

	for (size_t i = 0; i < n; i++) {
		char name[28];

		if (!table.n) {
			snprintf(name, sizeof(name), "%s: %s", where, atomic_ways[i].operation);
			table_begin(&table, name);
			run_way(o, &table, n_cells, &atomic_ceiling);
		}
		run_way(o, &table, n_cells, &atomic_ways[i]);
		if (i + 1 == n ||
		    strcmp(atomic_ways[i].operation, atomic_ways[i + 1].operation) != 0)
			table_end(&table);
	}
}

void bench_atomics(const struct bench_options *o)
{
	size_t many = o->quick ? 4096 : MANY_CELLS;
	cells = tool_alloc(many * sizeof(*cells));
	for (size_t i = 0; i < MUTEXES; i++)
		pthread_mutex_init(&mutexes[i], NULL);
	printf("all threads on one address, and on %zu random ones (then with %d mutexes)\n", many,
	       MUTEXES);
	table_columns("M/s", "");
	run_cells(o, "one address", 1);
	run_cells(o, o->quick ? "4 Ki addresses" : "1 Mi addresses", many);
	free(cells);
}
