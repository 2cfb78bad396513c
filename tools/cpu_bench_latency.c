/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench latency` on the CPU: the time of an operation of a single thread, in ns.
 *
 *   load by footprint   the address of each load is the value of the previous load
 *   atomics             on an address in the cache of the core
 *   fences              each after a store
 *
 * The nodes of the loads are 128 bytes apart, because processors load pairs of lines. The next node
 * is (MULTIPLIER * node + INCREMENT) modulo the number of nodes. The chain has all nodes, because
 * the increment is odd and the multiplier is 1 modulo 4. The distances of the nodes differ, so no
 * prefetcher follows the chain.
 */
#include <string.h>

#include <cuatomic/atomic.h>
#include <cuatomic/atomic_b128.h>

#include "cpu_bench.h"

#define NODE_BYTES 128
#define MULTIPLIER 0x5851f42d4c957f2du
#define INCREMENT 0x14057b7ef767814fu
/* Operations between two checks of the stop flag. */
#define LATENCY_BATCH 64

struct latency_node {
	struct latency_node *next;
	char padding[NODE_BYTES - sizeof(struct latency_node *)];
};

static struct {
	struct latency_node *nodes;
	size_t n;  /* a power of two */
	size_t at; /* the node where a run ends, and the index where it starts */
	uint64_t runs;
	/* of the atomic operations */
	union {
		uint32_t u32;
		uint64_t u64;
#if defined(CUA_PORT_HAS_B128)
		struct cua_u128 u128;
#endif
	} * object;
	uint64_t last; /* the last value that the loop obtained */
} latency_job;

/* ---- loads ---- */

static void link_nodes(size_t n)
{
	latency_job.n = n;
	for (size_t i = 0; i < n; i++)
		latency_job.nodes[i].next =
			&latency_job.nodes[(size_t)(MULTIPLIER * i + INCREMENT) & (n - 1)];
}

/* The node after so many steps, without memory: (a, c) is the composition of 2^bit steps. */
static size_t node_after(size_t node, uint64_t steps)
{
	uint64_t a = MULTIPLIER, c = INCREMENT, at = node;

	for (; steps; steps >>= 1) {
		if (steps & 1)
			at = a * at + c;
		c = a * c + c;
		a *= a;
	}
	return (size_t)at & (latency_job.n - 1);
}

/* Each run starts at another node. */
static void choose_node(struct bench_run *r)
{
	(void)r;
	latency_job.runs++;
	latency_job.at = (size_t)bench_mixed(latency_job.runs) & (latency_job.n - 1);
}

static void chase(struct bench_worker *w)
{
	const struct latency_node *p = &latency_job.nodes[latency_job.at];
	uint64_t done = 0;

	do {
		for (int k = 0; k < LATENCY_BATCH; k++) {
			p = p->next;
			/* the compiler must not combine two steps */
			__asm__ volatile("" : "+r"(p));
		}
		done += LATENCY_BATCH;
	} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));
	latency_job.last = (uint64_t)(p - latency_job.nodes);
	w->done = done;
}

static uint64_t last_value(const struct bench_run *r)
{
	(void)r;
	return latency_job.last;
}

static uint64_t last_node(const struct bench_run *r)
{
	return node_after(latency_job.at, bench_total(r));
}

/* ---- atomic operations and fences ---- */

/* The statement is an operation; x is a value that it may depend on. */
#define CHAIN_LOOP(name, ...)                                                                      \
	static void name(struct bench_worker *w)                                                   \
	{                                                                                          \
		uint32_t *p = &latency_job.object->u32, x = 0;                                     \
		uint64_t *q = &latency_job.object->u64, y = 0, done = 0;                           \
                                                                                                   \
		do {                                                                               \
			for (int k = 0; k < LATENCY_BATCH; k++) {                                  \
				__VA_ARGS__;                                                       \
				(void)p;                                                           \
				(void)q;                                                           \
				__asm__ volatile("" : "+r"(x), "+r"(y));                           \
			}                                                                          \
			done += LATENCY_BATCH;                                                     \
		} while (!__atomic_load_n(&w->run->stop, __ATOMIC_RELAXED));                       \
		latency_job.last = x + y;                                                          \
		w->done = done;                                                                    \
	}
#define HERE CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC

/* The address of a load depends on the load before it: the value is 0. */
CHAIN_LOOP(chain_load_relaxed, x = cua_atomic_load_explicit_u32(p + x, CUA_RELAXED, HERE))
CHAIN_LOOP(chain_load_acquire, x = cua_atomic_load_explicit_u32(p + x, CUA_ACQUIRE, HERE))
CHAIN_LOOP(chain_store_release, cua_atomic_store_explicit_u32(p, ++x, CUA_RELEASE, HERE))
CHAIN_LOOP(chain_exchange, x = cua_atomic_exchange_explicit_u32(p, x + 1, CUA_ACQ_REL, HERE))
CHAIN_LOOP(chain_add_relaxed, x = cua_atomic_fetch_add_explicit_u32(p, 1, CUA_RELAXED, HERE))
CHAIN_LOOP(chain_add_seq_cst, x = cua_atomic_fetch_add_explicit_u32(p, 1, CUA_SEQ_CST, HERE))
CHAIN_LOOP(chain_cas_32,
	   x = cua_atomic_compare_exchange_explicit_u32(p, x, x + 1, CUA_ACQ_REL, HERE) + 1)
CHAIN_LOOP(chain_cas_64,
	   y = cua_atomic_compare_exchange_explicit_u64(q, y, y + 1, CUA_ACQ_REL, HERE) + 1)
#if defined(CUA_PORT_HAS_B128)
CHAIN_LOOP(chain_cas_128, {
	struct cua_u128 old = {y, y}, next = {y + 1, y + 1};

	y = cua_atomic_compare_exchange_explicit_u128(&latency_job.object->u128, old, next,
						      CUA_ACQ_REL, HERE)
		    .lo +
	    1;
})
#else
#define chain_cas_128 NULL
#endif
CHAIN_LOOP(chain_fence_acq_rel, cua_atomic_store_u32(p, ++x);
	   cua_port_fence(CUA_ACQ_REL, CUA_SCOPE_DEVICE))
CHAIN_LOOP(chain_fence_seq_cst, cua_atomic_store_u32(p, ++x);
	   cua_port_fence(CUA_SEQ_CST, CUA_SCOPE_DEVICE))

static void clear_object(struct bench_run *r)
{
	(void)r;
	memset(latency_job.object, 0, sizeof(*latency_job.object));
}

/* The object counts the operations, in its lowest 32 bits. */
static uint64_t chain_counted(const struct bench_run *r)
{
	(void)r;
	return latency_job.object->u32;
}

static uint64_t total_32(const struct bench_run *r)
{
	return (uint32_t)bench_total(r);
}

/* A load changes nothing. */
static uint64_t object_and_last(const struct bench_run *r)
{
	(void)r;
	return latency_job.object->u32 + latency_job.last;
}

/* Both values of an exchange grow in turn, so their sum counts the operations. */
#define CHAIN_LOADS object_and_last, bench_zero
#define CHAIN_EXCHANGES object_and_last, total_32
#define CHAIN_COUNTED chain_counted, total_32

static const struct chain {
	const char *case_name, *way;
	void (*loop)(struct bench_worker *);
	uint64_t (*result)(const struct bench_run *);
	uint64_t (*expected)(const struct bench_run *);
	int wide; /* needs a CAS of 128 bits */
} chains[] = {
	{"atomics", "ceiling: load, relaxed", chain_load_relaxed, CHAIN_LOADS, 0},
	{"atomics", "load, relaxed", chain_load_relaxed, CHAIN_LOADS, 0},
	{"atomics", "load, acquire", chain_load_acquire, CHAIN_LOADS, 0},
	{"atomics", "store, release", chain_store_release, CHAIN_COUNTED, 0},
	{"atomics", "exchange, acq_rel", chain_exchange, CHAIN_EXCHANGES, 0},
	{"atomics", "add, relaxed", chain_add_relaxed, CHAIN_COUNTED, 0},
	{"atomics", "add, seq_cst", chain_add_seq_cst, CHAIN_COUNTED, 0},
	{"atomics", "CAS 32 bits, acq_rel", chain_cas_32, CHAIN_COUNTED, 0},
	{"atomics", "CAS 64 bits, acq_rel", chain_cas_64, CHAIN_COUNTED, 0},
	{"atomics", "CAS 128 bits, acq_rel", chain_cas_128, CHAIN_COUNTED, 1},
	{"fences", "ceiling: load, relaxed", chain_load_relaxed, CHAIN_LOADS, 0},
	{"fences", "acq_rel", chain_fence_acq_rel, CHAIN_COUNTED, 0},
	{"fences", "seq_cst", chain_fence_seq_cst, CHAIN_COUNTED, 0},
};
#define CHAINS (sizeof(chains) / sizeof(chains[0]))

/* ---- rows ---- */

static void add_load(const struct bench_options *o, struct table *t, enum table_kind kind,
		     const char *way, uint64_t bytes)
{
	struct bench_run r = {
		.name = "latency",
		.way = way,
		.seconds = o->quick ? 1e-3 : 20e-3,
		.threads = 1,
		.note = bench_cache(bytes),
		.figure = bench_ns,
		.before = choose_node,
		.loop = chase,
		.result = last_value,
		.expected = last_node,
	};

	if (table_matches(t->name, way))
		link_nodes((size_t)(bytes / NODE_BYTES));
	bench_row(t, kind, &r);
}

static void add_loads(const struct bench_options *o, uint64_t most)
{
	struct table t = {.n = 0};
	char way[24];

	table_begin(&t, "load by footprint");
	add_load(o, &t, TABLE_CEILING, "ceiling: 4 KiB", 4096);
	for (uint64_t bytes = BENCH_LEAST_FOOTPRINT; bytes <= most; bytes *= 4) {
		bench_bytes(way, bytes);
		add_load(o, &t, TABLE_OURS, way, bytes);
	}
	table_end(&t);
}

static void add_chains(const struct bench_options *o)
{
	struct table t = {.n = 0};

	for (size_t i = 0; i < CHAINS; i++) {
		const struct chain *c = &chains[i];
		const int limits = !strncmp(c->way, "ceiling", strlen("ceiling"));
		struct bench_run r = {
			.name = "latency",
			.way = c->way,
			.seconds = o->quick ? 1e-3 : 10e-3,
			.threads = 1,
			.figure = bench_ns,
			.before = clear_object,
			.loop = c->loop,
			.result = c->result,
			.expected = c->expected,
		};

		if (!i || strcmp(c->case_name, chains[i - 1].case_name) != 0)
			table_begin(&t, c->case_name);
		if (c->wide && !bench_has_cas_128())
			table_add(&t, TABLE_OURS, c->way, (struct figure){.runs = 0});
		else
			bench_row(&t, limits ? TABLE_CEILING : TABLE_OURS, &r);
	}
	table_end(&t);
}

void bench_latency(const struct bench_options *o)
{
	uint64_t most;
	const size_t footprints = bench_footprints(o, &most);

	latency_job.nodes = bench_array((size_t)most);
	latency_job.object = bench_array(sizeof(*latency_job.object));
	printf("one thread; loads: nodes of %d bytes in random order\n", NODE_BYTES);
	bench_plan(1 + footprints + CHAINS);
	table_columns("ns", "footprint");
	add_loads(o, most);
	add_chains(o);
	free(latency_job.object);
	free(latency_job.nodes);
}
