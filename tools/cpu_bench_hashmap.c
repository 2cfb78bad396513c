/* SPDX-License-Identifier: MIT */
/*
 * `cuatomic bench hashmap` on the CPU: the bulk calls of the map of unique keys, in millions of
 * keys a second. The peer is a serial table with linear probing, in which key 0 means "empty". The
 * ceilings are random accesses of all threads, with prefetch, to as much memory as the table has:
 * reads for lookups, additions for operations that write.
 *
 * A run inserts all keys into a cleared table, finds them in another order, and looks up as many
 * absent keys. Then it erases half of the keys and inserts that half again. A last lookup of all
 * keys checks the table and is not timed.
 *
 * If configure found libcuckoo or oneTBB, the program bench-maps runs next: see
 * bench/cpu_bench_maps.cc.
 */
#include <string.h>

#include <cuatomic/hashmap.h>

#include "../bench/bench_keys.h"
#include "cpu_bench.h"

/* Prefetch distance of a ceiling, in lines. */
#define AHEAD 16
/* If the first run takes more than SLOW seconds, only SLOW_RUNS runs are measured. */
#define SLOW 1
#define SLOW_RUNS STATS_LEAST

enum hashmap_op { INSERT, FIND, MISS, ERASE, REINSERT, OPS };

static const char *const hashmap_ops[OPS] = {"insert", "find hits", "find misses", "erase half",
					     "insert that half"};

static const struct hashmap_shape {
	const char *name;
	unsigned size;   /* bytes of a key, and of a value */
	size_t n, quick; /* keys */
	unsigned load;   /* percent of the requested capacity */
} hashmap_shapes[] = {
	{"4+4, 0.8", 4, 26214400, 16384, 80},
	{"8+8, 0.8", 8, 4194304, 16384, 80},
	{"4+4, 0.5", 4, 1048576, 4096, 50},
};

/* ---- the peer ---- */

/* Slots of {key, value}. Key 0 marks a free slot. */
struct plain_table {
	void *slots;
	uint64_t n;
};

CUA_FN uint64_t plain_home32(uint32_t key, uint64_t n)
{
	return key * n >> 32;
}

CUA_FN uint64_t plain_home64(uint64_t key, uint64_t n)
{
	return plain_home32((uint32_t)(key >> 32), n);
}

/* The loops end because there is always a free slot. */
#define DEFINE_PLAIN_TABLE(bits)                                                                   \
	struct plain_slot##bits {                                                                  \
		uint##bits##_t key, value;                                                         \
	};                                                                                         \
	static struct plain_slot##bits *plain_seek##bits(const struct plain_table *t,              \
							 uint##bits##_t key)                       \
	{                                                                                          \
		struct plain_slot##bits *slots = t->slots;                                         \
		uint64_t i = plain_home##bits(key, t->n);                                          \
                                                                                                   \
		while (slots[i].key != key && slots[i].key != 0)                                   \
			i = i + 1 < t->n ? i + 1 : 0;                                              \
		return &slots[i];                                                                  \
	}                                                                                          \
	static void plain_insert##bits(const struct plain_table *t, size_t n,                      \
				       const uint##bits##_t *keys, const uint##bits##_t *values,   \
				       int add)                                                    \
	{                                                                                          \
		for (size_t i = 0; i < n; i++) {                                                   \
			struct plain_slot##bits *s = plain_seek##bits(t, keys[i]);                 \
                                                                                                   \
			if (s->key == 0) {                                                         \
				s->key = keys[i];                                                  \
				s->value = values[i];                                              \
			} else if (add) {                                                          \
				s->value += values[i];                                             \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
	static void plain_find##bits(const struct plain_table *t, size_t n,                        \
				     const uint##bits##_t *keys, uint##bits##_t *out,              \
				     uint8_t *found)                                               \
	{                                                                                          \
		for (size_t i = 0; i < n; i++) {                                                   \
			const struct plain_slot##bits *s = plain_seek##bits(t, keys[i]);           \
                                                                                                   \
			found[i] = s->key != 0;                                                    \
			if (found[i])                                                              \
				out[i] = s->value;                                                 \
		}                                                                                  \
	}                                                                                          \
	/* Backward-shift deletion: no pair moves before its home. */                              \
	static void plain_erase##bits(const struct plain_table *t, size_t n,                       \
				      const uint##bits##_t *keys)                                  \
	{                                                                                          \
		struct plain_slot##bits *slots = t->slots;                                         \
                                                                                                   \
		for (size_t k = 0; k < n; k++) {                                                   \
			uint64_t hole = (uint64_t)(plain_seek##bits(t, keys[k]) - slots),          \
				 i = hole;                                                         \
                                                                                                   \
			while (slots[hole].key != 0) {                                             \
				uint64_t home;                                                     \
                                                                                                   \
				i = i + 1 < t->n ? i + 1 : 0;                                      \
				home = slots[i].key ? plain_home##bits(slots[i].key, t->n) : i;    \
				if (slots[i].key == 0) {                                           \
					slots[hole].key = 0;                                       \
				} else if ((i + t->n - home) % t->n >= (i + t->n - hole) % t->n) { \
					slots[hole] = slots[i];                                    \
					hole = i;                                                  \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
	}                                                                                          \
	static uint64_t plain_size##bits(const struct plain_table *t)                              \
	{                                                                                          \
		const struct plain_slot##bits *slots = t->slots;                                   \
		uint64_t size = 0;                                                                 \
                                                                                                   \
		for (uint64_t i = 0; i < t->n; i++)                                                \
			size += slots[i].key != 0;                                                 \
		return size;                                                                       \
	}
DEFINE_PLAIN_TABLE(32)
DEFINE_PLAIN_TABLE(64)

/* ---- the ceilings ---- */

static const char write_ceiling[] = "ceiling: random additions, all threads";
static const char read_ceiling[] = "ceiling: random reads, all threads";
static uint64_t *lines; /* lines of 64 bytes; the first word of each is its index */
static uint64_t n_lines;

/* The line of worker w's operation i, random in the worker's share. */
static uint64_t *line_of(const struct bench_worker *w, uint64_t i)
{
	uint64_t first = n_lines * w->index / w->run->threads,
		 end = n_lines * (w->index + 1) / w->run->threads;

	return lines + 8 * (first + keys_below(keys_mix64(i + 1), end - first));
}

static void read_lines(struct bench_worker *w)
{
	uint64_t right = 0, i = 0;

	for (; !(i % 64 == 0 && i && __atomic_load_n(&w->run->stop, __ATOMIC_RELAXED)); i++) {
		const uint64_t *line = line_of(w, i);

		__builtin_prefetch(line_of(w, i + AHEAD));
		right += *line == (uint64_t)(line - lines) / 8;
	}
	w->done = i;
	__atomic_fetch_add(&w->run->items, i - right, __ATOMIC_RELAXED);
}

static void add_to_lines(struct bench_worker *w)
{
	uint64_t i = 0;

	for (; !(i % 64 == 0 && i && __atomic_load_n(&w->run->stop, __ATOMIC_RELAXED)); i++) {
		__builtin_prefetch(line_of(w, i + AHEAD), 1);
		line_of(w, i)[1]++;
	}
	w->done = i;
}

static void clear_lines(struct bench_run *r)
{
	r->items = 0;
	for (uint64_t i = 0; i < n_lines; i++) {
		lines[8 * i] = i;
		lines[8 * i + 1] = 0;
	}
}

/* `items` counts the lines that a worker read with a wrong index. */
static uint64_t lines_read(const struct bench_run *r)
{
	return bench_total(r) - r->items;
}

static uint64_t lines_added(const struct bench_run *r)
{
	uint64_t sum = 0;

	(void)r;
	for (uint64_t i = 0; i < n_lines; i++)
		sum += lines[8 * i + 1];
	return sum;
}

static void add_line_ceiling(const struct bench_options *o, struct table *t, int writes)
{
	struct bench_run r = {
		.name = "hashmap",
		.way = writes ? write_ceiling : read_ceiling,
		.seconds = o->quick ? 1e-3 : 50e-3,
		.threads = o->threads,
		.before = clear_lines,
		.loop = writes ? add_to_lines : read_lines,
		.result = writes ? lines_added : lines_read,
		.expected = bench_total,
	};

	bench_row(t, TABLE_CEILING, &r);
}

/* ---- the operations of a row ---- */

enum hashmap_way { PLAIN, ONE_THREAD, ALL_THREADS, HASHMAP_WAYS };

struct hashmap_run {
	const struct hashmap_shape *shape;
	struct cua_context *ctx;
	struct cua_hashmap *map;
	struct plain_table plain;
	size_t n;
	void *keys, *values, *asked, *absent, *out;
	uint8_t *found;
};

static void hashmap_need(enum cua_status status)
{
	if (status)
		tool_die("bench hashmap: %s", cua_strerror(status));
}

static uint64_t get_number(const void *array, unsigned size, size_t i)
{
	return size == 4 ? ((const uint32_t *)array)[i] : ((const uint64_t *)array)[i];
}

static void set_number(void *array, unsigned size, size_t i, uint64_t v)
{
	if (size == 4)
		((uint32_t *)array)[i] = (uint32_t)v;
	else
		((uint64_t *)array)[i] = v;
}

static void clear_table(const struct hashmap_run *h, enum hashmap_way way)
{
	if (way == PLAIN)
		memset(h->plain.slots, 0, h->plain.n * 2 * h->shape->size);
	else
		hashmap_need(cua_hashmap_clear(h->map));
}

static uint64_t table_size(const struct hashmap_run *h, enum hashmap_way way)
{
	uint64_t size;

	if (way == PLAIN)
		return h->shape->size == 4 ? plain_size32(&h->plain) : plain_size64(&h->plain);
	hashmap_need(cua_hashmap_size(h->map, &size));
	return size;
}

static void add_pairs(const struct hashmap_run *h, enum hashmap_way way, int update, size_t n,
		      const void *keys, const void *values)
{
	if (way == PLAIN && h->shape->size == 4)
		plain_insert32(&h->plain, n, keys, values, update);
	else if (way == PLAIN)
		plain_insert64(&h->plain, n, keys, values, update);
	else if (update)
		hashmap_need(cua_hashmap_update_n(h->map, CUA_UPDATE_ADD, n, keys, values, NULL));
	else
		hashmap_need(cua_hashmap_insert_n(h->map, n, keys, values, NULL));
}

static void find_pairs(const struct hashmap_run *h, enum hashmap_way way, size_t n,
		       const void *keys)
{
	if (way == PLAIN && h->shape->size == 4)
		plain_find32(&h->plain, n, keys, h->out, h->found);
	else if (way == PLAIN)
		plain_find64(&h->plain, n, keys, h->out, h->found);
	else
		hashmap_need(cua_hashmap_find_n(h->map, n, keys, h->out, h->found));
}

static void erase_pairs(const struct hashmap_run *h, enum hashmap_way way, size_t n,
			const void *keys)
{
	if (way == PLAIN && h->shape->size == 4)
		plain_erase32(&h->plain, n, keys);
	else if (way == PLAIN)
		plain_erase64(&h->plain, n, keys);
	else
		hashmap_need(cua_hashmap_erase_n(h->map, n, keys, NULL));
}

/* Counts the keys found with the right value. */
static uint64_t found_right(const struct hashmap_run *h)
{
	const unsigned size = h->shape->size;
	uint64_t right = 0;

	for (size_t i = 0; i < h->n; i++)
		right +=
			h->found[i] == 1 && get_number(h->out, size, i) ==
						    keys_value(size, get_number(h->asked, size, i));
	return right;
}

static void call_op(const struct hashmap_run *h, enum hashmap_way way, enum hashmap_op op)
{
	switch (op) {
	case INSERT: add_pairs(h, way, 0, h->n, h->keys, h->values); break;
	case FIND: find_pairs(h, way, h->n, h->asked); break;
	case MISS: find_pairs(h, way, h->n, h->absent); break;
	case ERASE: erase_pairs(h, way, h->n / 2, h->keys); break;
	default: add_pairs(h, way, 0, h->n / 2, h->keys, h->values); break;
	}
}

/* Returns the checked number of an operation; *wanted is the expected number. */
static uint64_t op_result(const struct hashmap_run *h, enum hashmap_way way, enum hashmap_op op,
			  uint64_t *wanted)
{
	uint64_t result = 0;

	*wanted = h->n;
	switch (op) {
	case FIND: return found_right(h);
	case MISS:
		for (size_t i = 0; i < h->n; i++)
			result += h->found[i] == 0;
		return result;
	case ERASE: *wanted = h->n - h->n / 2; return table_size(h, way);
	case REINSERT:
		if (table_size(h, way) != h->n)
			return table_size(h, way);
		find_pairs(h, way, h->n, h->asked);
		return found_right(h);
	default: return table_size(h, way);
	}
}

static void check_result(const char *name, const char *way, uint64_t got, uint64_t wanted)
{
	char row[sizeof(((struct table *)NULL)->name) + TABLE_NAME + 4];

	snprintf(row, sizeof(row), "%s, %s", name, way);
	got += bench_plant(row);
	if (got != wanted)
		tool_die("bench hashmap: %s: the result is %llu, not %llu", row,
			 (unsigned long long)got, (unsigned long long)wanted);
}

static void op_name(char name[28], const struct hashmap_shape *s, int op)
{
	snprintf(name, 28, "%.14s, %s", s->name, hashmap_ops[op]);
}

/* Whether the filter has a row of this way. */
static int wants_table(const struct hashmap_shape *s, const char *way_name)
{
	char name[28];
	int wants = 0;

	for (int op = 0; op < OPS; op++) {
		op_name(name, s, op);
		wants |= table_matches(name, way_name);
	}
	return wants;
}

/* Calls an operation and checks its result. Returns the seconds of the call. */
static double time_op(const struct hashmap_run *h, enum hashmap_way way, const char *way_name,
		      enum hashmap_op op)
{
	uint64_t got, wanted;
	double start, taken;
	char name[28];

	if (op == FIND || op == MISS) {
		memset(h->found, 2, h->n);
		memset(h->out, 0, h->n * h->shape->size);
	}
	start = tool_now();
	call_op(h, way, op);
	taken = tool_now() - start;
	got = op_result(h, way, op, &wanted);
	op_name(name, h->shape, op);
	check_result(name, way_name, got, wanted);
	return taken;
}

/* Measures all operations of a row, if the filter has one of them. */
static void measure_table(const struct hashmap_run *h, enum hashmap_way way, const char *way_name,
			  struct figure figures[OPS])
{
	const struct stats_plan plan = bench_stats_plan();
	const double first = tool_now();
	double rates[OPS][BENCH_RUNS];
	int runs = BENCH_RUNS;

	if (!wants_table(h->shape, way_name))
		return;
	/* run -1 warms up and is not counted */
	for (int i = -1; i < runs; i++) {
		double whole = 0;

		clear_table(h, way);
		for (int op = 0; op < OPS; op++) {
			const size_t n = op == ERASE || op == REINSERT ? h->n / 2 : h->n;
			const double taken = time_op(h, way, way_name, (enum hashmap_op)op);

			whole += taken;
			if (i >= 0)
				rates[op][i] = (double)n / taken * 1e-6;
		}
		if (i < 0 && whole > SLOW)
			runs = SLOW_RUNS;
		/* the time of a row is that of an operation */
		if (i + 1 >= plan.least && tool_now() - first >= plan.seconds * OPS)
			runs = i + 1;
	}
	for (int op = 0; op < OPS; op++) {
		figures[op] = table_figure(rates[op], runs);
		if (runs < BENCH_RUNS)
			figures[op].reason = STATS_TIME_LIMIT;
	}
}

static const char *const hashmap_ways[HASHMAP_WAYS] = {
	"linear probing, one thread", "cua_hashmap, one thread", "cua_hashmap, all threads"};

static void set_hashmap_threads(const struct bench_options *o, const struct hashmap_run *h,
				enum hashmap_way way)
{
	hashmap_need(cua_context_set_threads(h->ctx, way == ALL_THREADS ? o->threads : 1));
}

/* Allocates the arrays and tables for n keys. */
static void open_run(struct hashmap_run *h)
{
	const unsigned size = h->shape->size;
	uint64_t slots = (uint64_t)h->n * 100 / h->shape->load;
	void **arrays[] = {&h->keys, &h->values, &h->asked, &h->absent, &h->out};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		hashmap_need(cua_alloc(h->ctx, h->n, size, arrays[i]));
	hashmap_need(cua_alloc(h->ctx, h->n, 1, (void **)&h->found));
	for (size_t i = 0; i < h->n; i++) {
		uint64_t key = keys_key(size, i);

		set_number(h->keys, size, i, key);
		set_number(h->values, size, i, keys_value(size, key));
		set_number(h->asked, size, i, keys_key(size, keys_turn(i, h->n)));
		set_number(h->absent, size, i, keys_key(size, h->n + i));
	}
	/* memory of the library has large pages, as its own table does */
	h->plain.n = slots;
	hashmap_need(cua_alloc(h->ctx, slots, 2 * size, &h->plain.slots));
	hashmap_need(cua_hashmap_create(h->ctx, NULL, size == 4 ? CUA_U32 : CUA_U64,
					size == 4 ? CUA_U32 : CUA_U64, slots, &h->map));
	n_lines = slots * 2 * size / 64 + 1024;
	hashmap_need(cua_alloc(h->ctx, n_lines, 64, (void **)&lines));
}

static void close_run(struct hashmap_run *h)
{
	void *arrays[] = {h->keys, h->values, h->asked,       h->absent,
			  h->out,  h->found,  h->plain.slots, lines};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		cua_free(h->ctx, arrays[i]);
	cua_hashmap_destroy(h->map);
}

/* Whether the filter has a row of this shape. */
static int wants_shape(const struct hashmap_shape *s)
{
	int wants = wants_table(s, read_ceiling) || wants_table(s, write_ceiling);

	for (int way = 0; way < HASHMAP_WAYS; way++)
		wants |= wants_table(s, hashmap_ways[way]);
	return wants;
}

static void bench_shape(const struct bench_options *o, struct cua_context *ctx,
			const struct hashmap_shape *s)
{
	struct hashmap_run h = {.shape = s, .ctx = ctx, .n = o->quick ? s->quick : s->n};
	struct figure figures[HASHMAP_WAYS][OPS] = {0};
	const int wants = wants_shape(s);

	if (wants)
		open_run(&h);
	for (int way = 0; way < HASHMAP_WAYS && wants; way++) {
		set_hashmap_threads(o, &h, (enum hashmap_way)way);
		measure_table(&h, (enum hashmap_way)way, hashmap_ways[way], figures[way]);
	}
	for (int op = 0; op < OPS; op++) {
		struct table table = {.n = 0};
		char name[28];

		op_name(name, s, op);
		table_begin(&table, name);
		add_line_ceiling(o, &table, op != FIND && op != MISS);
		for (int way = 0; way < HASHMAP_WAYS; way++)
			table_add(&table, way == PLAIN ? TABLE_PEER : TABLE_OURS, hashmap_ways[way],
				  figures[way][op]);
		table_end(&table);
	}
	if (wants)
		close_run(&h);
}

/* ---- updates ---- */

enum skew { UNIFORM_KEYS, ZIPF_KEYS, ONE_KEY, SKEWS };

static const char *const skew_names[SKEWS] = {"update, uniform", "update, zipf 1.0",
					      "update, one key"};

/* Counts the keys whose value is the expected sum. */
static uint64_t sums_right(const struct hashmap_run *h, enum hashmap_way way,
			   const uint32_t *counts)
{
	uint64_t right = 0;

	find_pairs(h, way, h->n, h->asked);
	for (size_t i = 0; i < h->n; i++) {
		uint32_t wanted = counts[keys_turn(i, h->n)];

		right += h->found[i] == (wanted != 0) &&
			 (!wanted || ((uint32_t *)h->out)[i] == wanted);
	}
	return right;
}

struct updates {
	size_t n;
	const uint32_t *keys, *ones;
	const uint32_t *counts; /* of each possible key */
};

/* Measures a row, if it is wanted. */
static void add_updates(struct table *t, const struct hashmap_run *h, enum hashmap_way way,
			const struct updates *u)
{
	struct stats s;
	double taken;

	if (!table_wants(t->name, hashmap_ways[way]))
		return;
	stats_begin(&s, bench_stats_plan());
	do {
		double start;

		clear_table(h, way);
		start = tool_now();
		add_pairs(h, way, 1, u->n, u->keys, u->ones);
		taken = tool_now() - start;
		check_result(t->name, hashmap_ways[way], sums_right(h, way, u->counts), h->n);
	} while (bench_more(&s, (double)u->n / taken * 1e-6));
	table_add(t, way == PLAIN ? TABLE_PEER : TABLE_OURS, hashmap_ways[way], table_stats(&s));
}

/* Measures additions of 1 to values, into a cleared table, with 4 updates for each possible key. */
static void bench_updates(const struct bench_options *o, struct cua_context *ctx)
{
	static const struct hashmap_shape shape = {"update", 4, 1048576, 4096, 50};
	struct hashmap_run h = {.shape = &shape, .ctx = ctx, .n = o->quick ? shape.quick : shape.n};
	const size_t n = 4 * h.n;
	uint32_t *counts = tool_alloc(h.n * sizeof(*counts));
	uint32_t *keys = NULL, *ones = NULL;

	open_run(&h);
	hashmap_need(cua_alloc(ctx, n, sizeof(*keys), (void **)&keys));
	hashmap_need(cua_alloc(ctx, n, sizeof(*ones), (void **)&ones));
	for (int skew = 0; skew < SKEWS; skew++) {
		const struct updates u = {n, keys, ones, counts};
		struct table table = {.n = 0};

		memset(counts, 0, h.n * sizeof(*counts));
		for (size_t i = 0; i < n; i++) {
			uint64_t r = keys_mix64(i + 1), which = 0;

			if (skew != ONE_KEY)
				which = skew == ZIPF_KEYS ? keys_zipf(r, h.n) : keys_below(r, h.n);
			keys[i] = (uint32_t)keys_key(4, which);
			ones[i] = 1;
			counts[which]++;
		}
		table_begin(&table, skew_names[skew]);
		add_line_ceiling(o, &table, 1);
		for (int way = 0; way < HASHMAP_WAYS; way++) {
			set_hashmap_threads(o, &h, (enum hashmap_way)way);
			add_updates(&table, &h, (enum hashmap_way)way, &u);
		}
		table_end(&table);
	}
	cua_free(ctx, keys);
	cua_free(ctx, ones);
	free(counts);
	close_run(&h);
}

void bench_hashmap(const struct bench_options *o)
{
	struct cua_context *ctx;

	hashmap_need(cua_context_create(CUA_BACKEND_CPU, 0, &ctx));
	printf("bytes of a key + bytes of a value, load:");
	for (size_t i = 0; i < sizeof(hashmap_shapes) / sizeof(hashmap_shapes[0]); i++)
		printf("%s %s: %zu keys", i ? ";" : "", hashmap_shapes[i].name,
		       o->quick ? hashmap_shapes[i].quick : hashmap_shapes[i].n);
	printf("; * fewer runs\n");
	bench_plan((sizeof(hashmap_shapes) / sizeof(hashmap_shapes[0]) * OPS + SKEWS) *
		   (1 + HASHMAP_WAYS));
	table_columns("M/s", "");
	for (size_t i = 0; i < sizeof(hashmap_shapes) / sizeof(hashmap_shapes[0]); i++)
		bench_shape(o, ctx, &hashmap_shapes[i]);
	bench_updates(o, ctx);
	cua_context_destroy(ctx);
}
