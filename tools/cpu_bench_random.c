/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench random` on the CPU: loads, stores and atomic operations of all threads at random
 * addresses, in 10^9 operations a second, by the footprint that the threads share.
 *
 * The index of an item is a bijective hash of a counter, so each worker has items of its own and
 * visits all of them in a lap. A store writes the number of the lap, a CAS increments it, and both
 * add 1 to the item. So the sum of all items must equal the number of operations.
 */
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cuatomic/atomic.h>
#include <cuatomic/atomic_b128.h>

#include "cpu_bench.h"

#define MOST_FOOTPRINT ((uint64_t)1 << 30)
#define QUICK_FOOTPRINT ((uint64_t)1 << 20)
/* Operations between two checks of the stop flag. */
#define RANDOM_BATCH 64
#define RANDOM_ROW_SECONDS 0.4
/* Loads find i times this odd number, plus 1, in item i. */
#define VALUE_OF_ITEM 0x9e3779b97f4a7c15u

struct random_place {
	size_t next; /* counter of the next operation */
	uint64_t lap;
	uint64_t sum; /* of loads in the run, and of the indexes */
	uint64_t indexes;
	char padding[32]; /* workers share no cache line */
};

static struct {
	char *items;
	size_t n;                    /* a power of two */
	unsigned shift;              /* half of its bits */
	struct random_place *places; /* of the workers */
	uint64_t before;             /* sum of all items before the run */
} random_job;

/* A bijection of the numbers below n, a power of two. */
static inline size_t random_index_of(size_t counter, size_t n, unsigned shift)
{
	size_t index = (size_t)(counter * 0x9e3779b97f4a7c15u) & (n - 1);

	return index ^ index >> shift;
}

/* The statement operates on the item p of the index; it may use the lap. */
#define RANDOM_LOOP(name, T, ...)                                                                  \
	static void name(struct bench_worker *w)                                                   \
	{                                                                                          \
		struct random_place place = random_job.places[w->index];                           \
		const size_t n = random_job.n;                                                     \
		const unsigned shift = random_job.shift;                                           \
		T *items = (void *)random_job.items;                                               \
		uint64_t done = 0, sum = 0, indexes = 0;                                           \
		size_t first, end;                                                                 \
                                                                                                   \
		bench_share(w, n, &first, &end);                                                   \
		do {                                                                               \
			for (int k = 0; k < RANDOM_BATCH; k++) {                                   \
				const size_t index = random_index_of(place.next, n, shift);        \
				T *p = items + index;                                              \
                                                                                                   \
				__VA_ARGS__;                                                       \
				indexes += index;                                                  \
				if (++place.next == end) {                                         \
					place.next = first;                                        \
					place.lap++;                                               \
				}                                                                  \
			}                                                                          \
			done += RANDOM_BATCH;                                                      \
		} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));                       \
		place.sum = sum;                                                                   \
		place.indexes = indexes;                                                           \
		random_job.places[w->index] = place;                                               \
		w->done = done;                                                                    \
	}

/* A CAS of an item with its lap, which fails if an operation was lost. */
#define RANDOM_CAS(s, T)                                                                           \
	(void)cua_atomic_compare_exchange_##s(p, (T)place.lap, (T)(place.lap + 1));                \
	(void)sum

RANDOM_LOOP(random_load_8, uint64_t, sum += __atomic_load_n(p, __ATOMIC_RELAXED))
RANDOM_LOOP(random_store_8, uint64_t, cua_atomic_store_u64(p, place.lap + 1); (void)sum)
RANDOM_LOOP(random_add_32, uint32_t, cua_atomic_add_u32(p, 1); (void)sum)
RANDOM_LOOP(random_cas_32, uint32_t, RANDOM_CAS(u32, uint32_t))
RANDOM_LOOP(random_cas_64, uint64_t, RANDOM_CAS(u64, uint64_t))
#if defined(CUA_PORT_HAS_B128)
RANDOM_LOOP(random_cas_128, struct cua_u128, {
	const struct cua_u128 lap = {place.lap, ~place.lap}, next = {place.lap + 1, ~place.lap - 1};

	(void)cua_atomic_compare_exchange_u128(p, lap, next);
	(void)sum;
})
#else
#define random_cas_128 NULL
#endif

/* ---- checks ---- */

static uint64_t loads_sum(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->threads; i++)
		sum += random_job.places[i].sum;
	return sum;
}

static uint64_t loads_expected(const struct bench_run *r)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < r->threads; i++)
		sum += random_job.places[i].indexes * VALUE_OF_ITEM + r->workers[i].done;
	return sum;
}

#define DEFINE_RANDOM_SUM(name, T, value)                                                          \
	static uint64_t name(const struct bench_run *r)                                            \
	{                                                                                          \
		const T *items = (const void *)random_job.items;                                   \
		uint64_t sum = 0;                                                                  \
                                                                                                   \
		(void)r;                                                                           \
		for (size_t i = 0; i < random_job.n; i++)                                          \
			sum += (value);                                                            \
		return sum;                                                                        \
	}
DEFINE_RANDOM_SUM(random_sum_4, uint32_t, items[i])
DEFINE_RANDOM_SUM(random_sum_8, uint64_t, items[i])
/* an item whose halves disagree spoils the sum */
DEFINE_RANDOM_SUM(random_sum_16, struct cua_u128,
		  items[i].hi == ~items[i].lo ? items[i].lo : (uint64_t)1 << 40)

/* The operations of all runs of the row. */
static uint64_t operations(const struct bench_run *r)
{
	random_job.before += bench_total(r);
	return random_job.before;
}

/* ---- rows ---- */

static const struct operation {
	const char *name;
	size_t bytes; /* of an item */
	void (*loop)(struct bench_worker *);
	uint64_t (*result)(const struct bench_run *);
	uint64_t (*expected)(const struct bench_run *);
} operation_cases[] = {
	{"load 8 bytes", 8, random_load_8, loads_sum, loads_expected},
	{"store 8 bytes", 8, random_store_8, random_sum_8, operations},
	{"CAS 32 bits", 4, random_cas_32, random_sum_4, operations},
	{"CAS 64 bits", 8, random_cas_64, random_sum_8, operations},
	{"CAS 128 bits", 16, random_cas_128, random_sum_16, operations},
	{"add 32 bits", 4, random_add_32, random_sum_4, operations},
};
#define OPERATIONS (sizeof(operation_cases) / sizeof(operation_cases[0]))

int bench_has_cas_128(void)
{
#if !defined(CUA_PORT_HAS_B128)
	return 0;
#elif defined(__x86_64__)
	unsigned a, b, c, d;

	return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_CMPXCHG16B);
#else
	return 1;
#endif
}

static void fill_items(const struct operation *op)
{
	uint64_t *words = (void *)random_job.items;

	if (op->loop == random_load_8) {
		for (size_t i = 0; i < random_job.n; i++)
			words[i] = i * VALUE_OF_ITEM + 1;
	} else if (op->bytes == 16) {
		for (size_t i = 0; i < random_job.n; i++) {
			words[2 * i] = 0;
			words[2 * i + 1] = ~(uint64_t)0;
		}
	} else {
		memset(random_job.items, 0, random_job.n * op->bytes);
	}
}

/* The ceiling of all cases: loads, the first operation, in a part of the L1. */
#define CEILING_WAY "ceiling: loads in 4 KiB"
#define CEILING_BYTES 4096

static struct figure random_figure(const struct bench_options *o, const struct table *t,
				   const struct operation *op, const char *way, uint64_t bytes)
{
	struct bench_run r = {
		.name = "random",
		.way = way,
		.seconds = o->quick ? 0.2e-3 : 10e-3,
		.threads = o->threads,
		.figure = bench_g,
		.before = bench_nothing,
		.loop = op->loop,
		.result = op->result,
		.expected = op->expected,
	};

	random_job.n = (size_t)(bytes / op->bytes);
	random_job.shift = 1;
	while ((size_t)1 << 2 * random_job.shift < random_job.n)
		random_job.shift++;
	random_job.before = 0;
	fill_items(op);
	for (unsigned i = 0; i < o->threads; i++) {
		const struct bench_worker w = {.run = &r, .index = i};
		size_t end;

		random_job.places[i] = (struct random_place){.lap = 0};
		bench_share(&w, random_job.n, &random_job.places[i].next, &end);
	}
	return bench_measure(t, &r);
}

static void add_random_row(const struct bench_options *o, struct table *t,
			   const struct operation *op, uint64_t bytes)
{
	struct figure f = {.runs = 0};
	char way[24];

	bench_bytes(way, bytes);
	if (op->bytes != 16 || bench_has_cas_128()) {
		if (!table_wants(t->name, way))
			return;
		f = random_figure(o, t, op, way, bytes);
	}
	table_add_note(t, TABLE_OURS, way, f, f.runs ? bench_cache(bytes) : "");
}

size_t bench_footprints(const struct bench_options *o, uint64_t *most)
{
	uint64_t largest = bench_size(o->quick ? QUICK_FOOTPRINT : MOST_FOOTPRINT);
	uint64_t available = tool_available_memory() / 4;
	size_t n = 1;

	largest = largest < available ? largest : available;
	*most = BENCH_LEAST_FOOTPRINT;
	for (; *most * 4 <= largest; n++)
		*most *= 4;
	return n;
}

void bench_random(const struct bench_options *o)
{
	struct figure ceiling = {.runs = 0};
	uint64_t most;
	const size_t footprints = bench_footprints(o, &most);

	bench_env()->row_seconds = RANDOM_ROW_SECONDS;
	random_job.items = bench_array((size_t)most);
	random_job.places = bench_array(o->threads * sizeof(*random_job.places));
	printf("all threads share the footprint; every operation is independent of the others\n");
	bench_plan(OPERATIONS * (1 + footprints));
	table_columns("G/s", "footprint");
	for (size_t i = 0; i < OPERATIONS; i++) {
		const struct operation *op = &operation_cases[i];
		struct table t = {.n = 0};

		table_begin(&t, op->name);
		if (!i)
			ceiling = random_figure(o, &t, op, CEILING_WAY, CEILING_BYTES);
		table_add(&t, TABLE_CEILING, CEILING_WAY, ceiling);
		for (uint64_t bytes = BENCH_LEAST_FOOTPRINT; bytes <= most; bytes *= 4)
			add_random_row(o, &t, op, bytes);
		table_end(&t);
	}
	free(random_job.places);
	free(random_job.items);
}
