/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench atomics` on the CPU: operations a second of all threads, on a single address and
 * on random addresses. The library is compared with the compiler's __atomic builtins and with
 * mutexes of POSIX threads. The ceiling is the processor's 32-bit atomic addition at the same
 * addresses.
 *
 * Every operation changes the value, and the values at the end of a run are compared with the
 * number of operations.
 */
#include <math.h>
#include <pthread.h>
#include <string.h>

#include <cuatomic/atomic.h>

#include "cpu_bench.h"

#define MANY_ITEMS ((size_t)1 << 20)
#define MUTEXES 1024
#define PRIME 4294967291u

/* Far enough from 1 that rounding cannot hide a lost multiplication. */
#define FACTOR (1 + 0x1p-20)

CUA_DEFINE_ATOMIC(bench_add_mod, u64, (old + operand) % PRIME)

static uint64_t *items; /* the objects that the operations update, of any type */
static pthread_mutex_t mutexes[MUTEXES];

/* ---- the operand and the object of an operation ---- */

static uint64_t random_index(const struct bench_worker *w, uint64_t i)
{
	uint64_t z = (uint64_t)w->index << 40 | i;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) & (w->run->items - 1);
}

/* Grows with i, and differs between threads. */
static uint32_t rising(const struct bench_worker *w, uint64_t i)
{
	return (uint32_t)(i * w->run->threads + w->index + 1);
}

/* ---- the rows ---- */

/* The statement may use p, the object's address, and `index`, its index. */
#define ITEM_LOOP(name, T, ...)                                                                    \
	BENCH_LOOP(name, {                                                                         \
		uint64_t index = random_index(w, i);                                               \
		T *p = (T *)items + index;                                                         \
                                                                                                   \
		__VA_ARGS__;                                                                       \
	})

/* Computes the new value from `old`, and retries if the object has changed. */
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

ITEM_LOOP(native, uint32_t, __atomic_fetch_add(p, 1, __ATOMIC_RELAXED))
ITEM_LOOP(mutex_u32, uint32_t, UNDER_MUTEX(uint32_t, old + 1))
ITEM_LOOP(our_u32, uint32_t, cua_atomic_add_u32(p, 1))

ITEM_LOOP(loop_f32, float, LOOP_OF_CAS(float, old + 1))
ITEM_LOOP(mutex_f32, float, UNDER_MUTEX(float, old + 1))
ITEM_LOOP(our_f32, float, cua_atomic_add_f32(p, 1))
ITEM_LOOP(our_cas_f32, float, cua_atomic_fetch_add_cas_f32(p, 1))

ITEM_LOOP(loop_f64, double, LOOP_OF_CAS(double, old *FACTOR))
ITEM_LOOP(mutex_f64, double, UNDER_MUTEX(double, old *FACTOR))
ITEM_LOOP(our_f64, double, cua_atomic_fetch_mul_f64(p, FACTOR))

ITEM_LOOP(loop_max, uint32_t, uint32_t v = rising(w, i); LOOP_OF_CAS(uint32_t, old < v ? v : old))
ITEM_LOOP(mutex_max, uint32_t, uint32_t v = rising(w, i); UNDER_MUTEX(uint32_t, old < v ? v : old))
ITEM_LOOP(our_max, uint32_t, cua_atomic_max_u32(p, rising(w, i)))

ITEM_LOOP(loop_mod, uint64_t, LOOP_OF_CAS(uint64_t, (old + 4000000007u) % PRIME))
ITEM_LOOP(mutex_mod, uint64_t, UNDER_MUTEX(uint64_t, (old + 4000000007u) % PRIME))
ITEM_LOOP(our_mod, uint64_t, bench_add_mod(p, 4000000007u))

/* ---- checks: a number computed from the objects and from the number of operations ---- */

static void clear_items(struct bench_run *r)
{
	memset(items, 0, r->items * sizeof(*items));
}

static void set_to_one(struct bench_run *r)
{
	for (size_t i = 0; i < r->items; i++)
		((double *)items)[i] = 1;
}

static uint64_t sum_u32(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->items; i++)
		sum += ((uint32_t *)items)[i];
	return sum;
}

static uint64_t sum_f32(const struct bench_run *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->items; i++)
		sum += (double)((float *)items)[i];
	return (uint64_t)sum;
}

/* The number of multiplications by FACTOR, from the objects' logarithms. */
static uint64_t factors(const struct bench_run *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->items; i++)
		sum += log(((double *)items)[i]);
	return (uint64_t)(sum / log(FACTOR) + 0.5);
}

static uint64_t largest(const struct bench_run *r)
{
	uint32_t most = 0;

	for (size_t i = 0; i < r->items; i++)
		most = ((uint32_t *)items)[i] > most ? ((uint32_t *)items)[i] : most;
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

	for (size_t i = 0; i < r->items; i++)
		sum += items[i];
	return sum % PRIME;
}

static uint64_t total_mod(const struct bench_run *r)
{
	return bench_total(r) % PRIME * (4000000007u % PRIME) % PRIME;
}

/* ---- the cases ---- */

#define BY_SUM_U32 clear_items, sum_u32, bench_total
#define BY_SUM_F32 clear_items, sum_f32, bench_total
#define BY_FACTORS set_to_one, factors, bench_total
#define BY_LARGEST clear_items, largest, largest_operand
#define BY_SUM_MOD clear_items, sum_mod, total_mod

static const struct atomic_way {
	const char *operation; /* rows of equal operation are a table */
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

static void run_way(const struct bench_options *o, struct table *t, size_t n_items,
		    const struct atomic_way *way)
{
	struct bench_run r = {
		.name = "atomics",
		.way = way->name,
		.seconds = o->quick ? 1e-3 : 20e-3,
		/* a float counts exactly up to 2^24 */
		.cap = ((uint64_t)1 << 24) / o->threads,
		.threads = o->threads,
		.items = n_items,
		.before = way->before,
		.loop = way->loop,
		.result = way->result,
		.expected = way->expected,
	};

	bench_row(t, way->kind, &r);
}

/* Whether this way is the last of its operation. */
static int ends_operation(size_t i)
{
	return i + 1 == sizeof(atomic_ways) / sizeof(atomic_ways[0]) ||
	       strcmp(atomic_ways[i].operation, atomic_ways[i + 1].operation) != 0;
}

/* The rows of a run of all ways: each operation has a ceiling. */
static size_t count_rows(void)
{
	size_t rows = sizeof(atomic_ways) / sizeof(atomic_ways[0]);

	for (size_t i = 0; i < sizeof(atomic_ways) / sizeof(atomic_ways[0]); i++)
		rows += (size_t)ends_operation(i);
	return rows;
}

static void run_items(const struct bench_options *o, const char *where, size_t n_items)
{
	const size_t n = sizeof(atomic_ways) / sizeof(atomic_ways[0]);
	struct table table = {.n = 0};

	for (size_t i = 0; i < n; i++) {
		char name[28];

		if (!i || ends_operation(i - 1)) {
			snprintf(name, sizeof(name), "%s: %s", where, atomic_ways[i].operation);
			table_begin(&table, name);
			run_way(o, &table, n_items, &atomic_ceiling);
		}
		run_way(o, &table, n_items, &atomic_ways[i]);
		if (ends_operation(i))
			table_end(&table);
	}
}

void bench_atomics(const struct bench_options *o)
{
	size_t many = o->quick ? 4096 : MANY_ITEMS;
	items = tool_alloc(many * sizeof(*items));
	for (size_t i = 0; i < MUTEXES; i++)
		pthread_mutex_init(&mutexes[i], NULL);
	printf("all threads on one address, and on %zu random ones (then with %d mutexes)\n", many,
	       MUTEXES);
	bench_plan(2 * count_rows());
	table_columns("M/s", "");
	run_items(o, "one address", 1);
	run_items(o, o->quick ? "4 Ki addresses" : "1 Mi addresses", many);
	free(items);
}
