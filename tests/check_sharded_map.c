/* SPDX-License-Identifier: MIT */
/*
 * Sharded maps of 1 to 8 ranks: random sequences of calls against a single map, keys of few owners,
 * files, ranks in threads with a transport, errors that all ranks return, and transports that fail.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "group_ranks.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct kind {
	enum cua_type key, value;
} kinds[] = {{CUA_U32, CUA_U32}, {CUA_U64, CUA_U64},   {CUA_U32, CUA_NONE}, {CUA_U128, CUA_U64},
	     {CUA_U64, CUA_U32}, {CUA_U128, CUA_U128}, {CUA_U64, CUA_NONE}};

enum call { BUILD, INSERT, ASSIGN, UPDATE, FIND, CONTAINS, ERASE, CALLS };

/* ---- the calls of all ranks ---- */

/* The keys of a call, of all ranks, in host memory. */
struct work {
	enum call call;
	enum cua_update op;
	int answered;
	size_t n[MOST_RANKS], total;
	char *keys, *values;
};

/* A rank's arrays in memory of its context, and its answers in host memory. */
struct arrays {
	void *keys, *values, *results;
	char *values_out;
	uint8_t *results_out;
};

static enum cua_status make_call(struct cua_sharded_map *map, const struct work *w, const size_t *n,
				 const void *const *keys, void *const *values,
				 uint8_t *const *results)
{
	const void *const *in = (const void *const *)values;

	if (!w->answered && w->call != CONTAINS)
		results = NULL;
	switch (w->call) {
	case BUILD: return cua_sharded_map_build_n(map, n, keys, in, results);
	case INSERT: return cua_sharded_map_insert_n(map, n, keys, in, results);
	case ASSIGN: return cua_sharded_map_assign_n(map, n, keys, in, results);
	case UPDATE: return cua_sharded_map_update_n(map, w->op, n, keys, in, results);
	case FIND: return cua_sharded_map_find_n(map, n, keys, values, results);
	case CONTAINS: return cua_sharded_map_contains_n(map, n, keys, results);
	default: return cua_sharded_map_erase_n(map, n, keys, results);
	}
}

/* ---- the model: a single map of the CPU ---- */

/*
 * The same calls in a single map. Of equal keys in a call any may win, so values are a function of the
 * key and the call.
 */
static void model_call(struct cua_hashmap *model, const struct work *w, char *values_out,
		       uint8_t *results)
{
	switch (w->call) {
	case BUILD:
		ck_assert_cua(cua_hashmap_build_n(model, w->total, w->keys, w->values, results));
		break;
	case INSERT:
		ck_assert_cua(cua_hashmap_insert_n(model, w->total, w->keys, w->values, results));
		break;
	case ASSIGN:
		ck_assert_cua(cua_hashmap_assign_n(model, w->total, w->keys, w->values, results));
		break;
	case UPDATE:
		ck_assert_cua(
			cua_hashmap_update_n(model, w->op, w->total, w->keys, w->values, results));
		break;
	case FIND:
		ck_assert_cua(cua_hashmap_find_n(model, w->total, w->keys, values_out, results));
		break;
	case CONTAINS:
		ck_assert_cua(cua_hashmap_contains_n(model, w->total, w->keys, results));
		break;
	default: ck_assert_cua(cua_hashmap_erase_n(model, w->total, w->keys, results));
	}
}

struct pair {
	unsigned char bytes[32];
};

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct pair));
}

/*
 * Answers are equal. Of several equal keys of a call any may be inserted or erased, so
 * the answers to each key are equal in some order.
 */
static void expect_answers(const struct work *w, size_t ks, const uint8_t *got,
			   const uint8_t *expected)
{
	struct pair *pairs[2];

	if (w->call == FIND || w->call == CONTAINS) {
		ck_assert_mem_eq(got, expected, w->total);
		return;
	}
	for (int k = 0; k < 2; k++) {
		pairs[k] = test_malloc((w->total + 1) * sizeof(**pairs));
		memset(pairs[k], 0, (w->total + 1) * sizeof(**pairs));
		for (size_t i = 0; i < w->total; i++) {
			memcpy(pairs[k][i].bytes, w->keys + i * ks, ks);
			pairs[k][i].bytes[16] = k ? expected[i] : got[i];
		}
		qsort(pairs[k], w->total, sizeof(**pairs), compare);
	}
	ck_assert_mem_eq(pairs[0], pairs[1], w->total * sizeof(**pairs));
	free(pairs[0]);
	free(pairs[1]);
}

/* Random keys below `range` and values for a call. Its lengths are set before. */
static void fill_work(struct work *w, enum call call, uint32_t ranks, const struct kind *kind,
		      unsigned range, uint64_t *seed)
{
	const size_t ks = cua_type_size(kind->key),
		     vs = kind->value ? cua_type_size(kind->value) : 0;
	const uint64_t salt = test_random(seed);

	w->call = call;
	w->op = (enum cua_update)(CUA_UPDATE_ADD + (int)(test_random(seed) % 6));
	w->answered = (int)(test_random(seed) % 2);
	w->total = 0;
	for (uint32_t r = 0; r < ranks; r++)
		w->total += w->n[r];
	w->keys = test_malloc(w->total * ks + 1);
	w->values = test_malloc(w->total * vs + 1);
	for (size_t i = 0; i < w->total; i++) {
		uint64_t key[2] = {test_random(seed) % range, 0}, value[2];

		/* both halves of wide keys differ */
		key[1] = key[0] * 0x9e3779b97f4a7c15u;
		key[0] = ks == 4 ? key[0] * 2654435761u : ks == 8 ? key[1] : key[0];
		value[0] = cua_hash_u64(key[0], salt);
		value[1] = cua_hash_u64(key[1], salt);
		memcpy(w->keys + i * ks, key, ks);
		if (vs)
			memcpy(w->values + i * vs, value, vs);
	}
}

/* The same, of random lengths, up to `most` pairs of each rank. */
static void work_of(struct work *w, enum call call, uint32_t ranks, const struct kind *kind,
		    size_t most, unsigned range, uint64_t *seed)
{
	for (uint32_t r = 0; r < ranks; r++)
		w->n[r] = test_random(seed) % 4 ? test_random(seed) % most : test_random(seed) % 3;
	fill_work(w, call, ranks, kind, range, seed);
}

static void random_work(struct work *w, uint32_t ranks, const struct kind *kind, size_t most,
			unsigned range, uint64_t *seed)
{
	enum call call;

	do
		call = (enum call)(test_random(seed) % CALLS);
	while ((!kind->value && (call == ASSIGN || call == UPDATE || call == FIND)) ||
	       (call == BUILD && test_random(seed) % 4));
	work_of(w, call, ranks, kind, most, range, seed);
}

static void free_work(struct work *w)
{
	free(w->keys);
	free(w->values);
}

/* Uploads a rank's part of the call, from element `at` on. */
static void upload(struct arrays *a, struct cua_context *ctx, const struct work *w, uint32_t rank,
		   size_t at, size_t ks, size_t vs)
{
	const size_t n = w->n[rank];

	a->keys = test_upload(ctx, w->keys + at * ks, n * ks);
	a->values = test_upload(ctx, w->values + at * vs, n * vs);
	a->results_out = test_malloc(n + 1);
	memset(a->results_out, 0xa5, n + 1);
	a->results = test_upload(ctx, a->results_out, n);
	a->values_out = test_malloc(n * vs + 1);
}

/* Downloads a rank's answers to element `at` of the answers of all ranks. */
static void download(struct arrays *a, struct cua_context *ctx, const struct work *w, uint32_t rank,
		     size_t at, size_t vs, char *values, uint8_t *results)
{
	const size_t n = w->n[rank];

	test_download(ctx, results + at, a->results, n);
	test_download(ctx, values + at * vs, a->values, n * vs);
	free(a->results_out);
	free(a->values_out);
	test_free(ctx, a->keys);
	test_free(ctx, a->values);
	test_free(ctx, a->results);
}

/* ---- contents ---- */

static void add_pairs(struct pair *pairs, size_t n, const char *keys, const char *values, size_t ks,
		      size_t vs)
{
	memset(pairs, 0, n * sizeof(*pairs));
	for (size_t i = 0; i < n; i++) {
		memcpy(pairs[i].bytes, keys + i * ks, ks);
		if (vs)
			memcpy(pairs[i].bytes + 16, values + i * vs, vs);
	}
}

/* All pairs of a map of the model, or of a shard. Returns their number. */
static size_t pairs_of(struct cua_hashmap *table, struct pair *pairs, size_t most, size_t ks,
		       size_t vs)
{
	char *keys = test_malloc(most * ks + 1), *values = test_malloc(most * vs + 1);
	uint64_t n;

	ck_assert_cua(cua_hashmap_copy_to_host(table, most, keys, vs ? values : NULL, &n));
	ck_assert_uint_le(n, most);
	add_pairs(pairs, n, keys, values, ks, vs);
	free(keys);
	free(values);
	return (size_t)n;
}

/* A check for each of millions of keys would take longer than the calls. */
static uint32_t owner_of(const struct cua_sharded_map *map, const void *key)
{
	uint32_t owner = ~0u;

	return cua_sharded_map_owner(map, key, &owner) ? ~0u : owner;
}

/* The shards have the pairs of the model together, each key at its owner. */
static void expect_contents(struct cua_sharded_map **maps, uint32_t n_maps, uint32_t local,
			    struct cua_hashmap *model, const struct kind *kind)
{
	const size_t ks = cua_type_size(kind->key),
		     vs = kind->value ? cua_type_size(kind->value) : 0;
	struct pair *got, *expected;
	size_t n = 0, elsewhere = 0;
	uint64_t keys;

	ck_assert_cua(cua_hashmap_size(model, &keys));
	got = test_malloc((keys + 1) * sizeof(*got));
	expected = test_malloc((keys + 1) * sizeof(*expected));
	ck_assert_uint_eq(pairs_of(model, expected, keys, ks, vs), keys);
	for (uint32_t m = 0; m < n_maps; m++)
		for (uint32_t i = 0; i < local; i++) {
			struct cua_hashmap *table = cua_sharded_map_shard(maps[m], i);
			const size_t more = pairs_of(table, got + n, keys - n, ks, vs);

			for (size_t k = n; k < n + more; k++)
				elsewhere += owner_of(maps[m], got[k].bytes) != m + i;
			n += more;
		}
	ck_assert_uint_eq(n, keys);
	ck_assert_uint_eq(elsewhere, 0);
	qsort(got, n, sizeof(*got), compare);
	qsort(expected, n, sizeof(*expected), compare);
	ck_assert_mem_eq(got, expected, n * sizeof(*got));
	free(got);
	free(expected);
}

/* ---- ranks of a process ---- */

struct ranks {
	uint32_t size;
	struct cua_context *contexts[MOST_RANKS], *cpu;
	struct cua_group *group;
	struct cua_sharded_map *map;
	struct cua_hashmap *model;
	const struct kind *kind;
};

static void open_hashed(struct ranks *g, uint32_t size, const struct kind *kind, uint64_t capacity,
			enum cua_hashmap_hash hash)
{
	struct cua_hashmap_options o = CUA_HASHMAP_OPTIONS_INIT;

	memset(g, 0, sizeof(*g));
	g->size = size;
	g->kind = kind;
	g->cpu = test_context(CUA_BACKEND_CPU);
	for (uint32_t r = 0; r < size; r++)
		g->contexts[r] = rank_context(r);
	ck_assert_cua(cua_group_create_devices(size, g->contexts, &g->group));
	o.hash = hash;
	ck_assert_cua(
		cua_sharded_map_create(g->group, &o, kind->key, kind->value, capacity, &g->map));
	ck_assert_cua(
		cua_hashmap_create(g->cpu, NULL, kind->key, kind->value, capacity + 64, &g->model));
}

static void open_ranks(struct ranks *g, uint32_t size, const struct kind *kind, uint64_t capacity)
{
	open_hashed(g, size, kind, capacity, CUA_HASHMAP_HASH_SEEDED);
}

static void close_ranks(struct ranks *g)
{
	cua_sharded_map_destroy(g->map);
	ck_assert_cua(cua_hashmap_destroy(g->model));
	cua_group_destroy(g->group);
	for (uint32_t r = 0; r < g->size; r++)
		rank_context_destroy(g->contexts[r]);
	cua_context_destroy(g->cpu);
}

/* A call, its answers, and sometimes the contents afterwards. */
static void do_work(struct ranks *g, struct work *w, uint64_t *seed)
{
	const size_t ks = cua_type_size(g->kind->key),
		     vs = g->kind->value ? cua_type_size(g->kind->value) : 0;
	uint8_t *results = test_malloc(w->total + 1), *expected = test_malloc(w->total + 1);
	char *values = test_malloc(w->total * vs + 1), *wanted = test_malloc(w->total * vs + 1);
	struct arrays a[MOST_RANKS];
	const void *keys_at[MOST_RANKS];
	void *values_at[MOST_RANKS];
	uint8_t *results_at[MOST_RANKS];
	uint64_t sizes[2];
	size_t at = 0;

	memcpy(wanted, w->values, w->total * vs);
	for (uint32_t r = 0; r < g->size; r++) {
		upload(&a[r], g->contexts[r], w, r, at, ks, vs);
		keys_at[r] = a[r].keys;
		values_at[r] = a[r].values;
		results_at[r] = a[r].results;
		at += w->n[r];
	}
	ck_assert_cua(make_call(g->map, w, w->n, keys_at, vs ? values_at : NULL, results_at));
	at = 0;
	for (uint32_t r = 0; r < g->size; r++) {
		download(&a[r], g->contexts[r], w, r, at, vs, values, results);
		at += w->n[r];
	}
	model_call(g->model, w, wanted, expected);
	if (w->answered || w->call == CONTAINS)
		expect_answers(w, ks, results, expected);
	ck_assert_mem_eq(values, wanted, w->total * vs);
	ck_assert_cua(cua_sharded_map_status(g->map));
	ck_assert_cua(cua_sharded_map_size(g->map, &sizes[0]));
	ck_assert_cua(cua_hashmap_size(g->model, &sizes[1]));
	ck_assert_uint_eq(sizes[0], sizes[1]);
	if (test_random(seed) % 4 == 0)
		expect_contents(&g->map, 1, g->size, g->model, g->kind);
	free(results);
	free(expected);
	free(values);
	free(wanted);
}

START_TEST(sequences)
{
	uint64_t seed = test_seed("sequences");
	const uint32_t size = sizes[_i / (int)COUNT(kinds)];
	const struct kind *kind = &kinds[_i % (int)COUNT(kinds)];
	const size_t most = test_traced() ? 300 : 5000;
	struct ranks g;

	open_ranks(&g, size, kind, 40000);
	for (int round = 0; round < (test_traced() || SANITIZED ? 4 : test_scale(8, 16, 100));
	     round++) {
		struct work w;

		random_work(&w, size, kind, most, 30000, &seed);
		do_work(&g, &w, &seed);
		free_work(&w);
	}
	expect_contents(&g.map, 1, size, g.model, kind);
	ck_assert_cua(cua_sharded_map_clear(g.map));
	ck_assert_cua(cua_hashmap_clear(g.model));
	expect_contents(&g.map, 1, size, g.model, kind);
	close_ranks(&g);
}
END_TEST

/* Several rounds, and a round with keys of the same owner. */
START_TEST(long_calls)
{
	uint64_t seed = test_seed("long_calls");
	const struct kind *kind = &kinds[_i % 2];
	const uint32_t size = _i < 2 ? 3 : 5;
	const size_t most = test_traced() ? 2000 : SANITIZED || TEST_MODEL ? 90000 : 200000;
	struct ranks g;

	open_ranks(&g, size, kind, 300000);
	for (int call = 0; call < CALLS; call++)
		for (int few = 0; few < 2; few++) {
			struct work w;

			work_of(&w, (enum call)call, size, kind, most, few ? 2 : 200000, &seed);
			do_work(&g, &w, &seed);
			free_work(&w);
		}
	expect_contents(&g.map, 1, size, g.model, kind);
	close_ranks(&g);
}
END_TEST

#if TEST_CUDA || !SANITIZED
enum { REPEATS = 1, ONE_OWNER, SHAPES };
/* On a model of GPUs, calls of 128 times fewer pairs are large. */
#if TEST_MODEL
enum { LARGE = 18000, LARGE_BUCKETS = 11000, FEWER_BITS = 7, RESERVED_EVERY = 1009 };
#else
enum { LARGE = 2300000, LARGE_BUCKETS = 1400000, FEWER_BITS = 0, RESERVED_EVERY = 100003 };
#endif

/*
 * n pairs of each rank with keys below 2^bits; of more than 2 ranks, one has no pairs. Some keys are the
 * reserved keys 0 and 1; with REPEATS half of the keys are equal; with ONE_OWNER all others belong to
 * rank 0. A value is a function of the key.
 */
static void large_work(struct work *w, enum call call, int shape, unsigned bits,
		       const struct ranks *g, size_t n, uint64_t *seed)
{
	const size_t ks = cua_type_size(g->kind->key),
		     vs = g->kind->value ? cua_type_size(g->kind->value) : 0;

	memset(w, 0, sizeof(*w));
	w->call = call;
	w->op = (enum cua_update)(CUA_UPDATE_ADD + (int)(test_random(seed) % 6));
	for (uint32_t r = 0; r < g->size; r++) {
		w->n[r] = g->size > 2 && r == 1 ? 0 : n;
		w->total += w->n[r];
	}
	w->keys = test_malloc(w->total * ks);
	w->values = test_malloc(w->total * vs + 1);
	for (size_t i = 0; i < w->total; i++) {
		uint64_t key[2] = {test_random(seed) >> (64 - bits), 0}, value;

		if (i % RESERVED_EVERY == 5)
			key[0] = i % 2;
		else if (shape == REPEATS && i % 2)
			key[0] = 12345;
		while (shape == ONE_OWNER && i % RESERVED_EVERY != 5 && owner_of(g->map, key))
			key[0]++;
		value = cua_hash_u64(key[0], 99);
		memcpy(w->keys + i * ks, key, ks);
		memcpy(w->values + i * vs, &value, vs);
	}
}

static const struct {
	struct kind kind;
	uint64_t slots; /* of a bucket */
	enum cua_hashmap_hash hash;
} large_tables[] = {
	{{CUA_U32, CUA_U32}, 7, CUA_HASHMAP_HASH_SEEDED},
	{{CUA_U64, CUA_U64}, 3, CUA_HASHMAP_HASH_SEEDED},
	{{CUA_U64, CUA_U32}, 3, CUA_HASHMAP_HASH_SEEDED},
	{{CUA_U64, CUA_NONE}, 7, CUA_HASHMAP_HASH_SEEDED},
	{{CUA_U128, CUA_NONE}, 3, CUA_HASHMAP_HASH_SEEDED},
	{{CUA_U32, CUA_NONE}, 14, CUA_HASHMAP_HASH_SEEDED},
	{{CUA_U32, CUA_U32}, 7, CUA_HASHMAP_HASH_KEYED},
};

/* A large call, and finds of its keys, a third of which have a further bit. */
static void large_call(struct ranks *g, enum call call, int shape, unsigned bits, size_t n,
		       uint64_t *seed)
{
	struct work w;

	bits -= FEWER_BITS;
	large_work(&w, call, shape, bits, g, n, seed);
	do_work(g, &w, seed);
	w.call = g->kind->value ? FIND : CONTAINS;
	w.answered = 1;
	for (size_t i = 0; i < w.total; i += 3)
		w.keys[i * cua_type_size(g->kind->key) + bits / 8] ^= (char)(1u << bits % 8);
	do_work(g, &w, seed);
	free_work(&w);
}

#endif

#if !TEST_CUDA && !SANITIZED
/* Finds in tables of several regions. */
START_TEST(large_finds)
{
	static const struct {
		int table, shape;
		uint32_t ranks;
	} cases[] = {{0, 0, 2}, {1, REPEATS, 3}, {6, ONE_OWNER, 2}};
	uint64_t seed = test_seed("large_finds");
	const int table = cases[_i].table;
	struct ranks g;

	if (test_traced())
		return;
	open_hashed(&g, cases[_i].ranks, &large_tables[table].kind,
		    2 * LARGE_BUCKETS * large_tables[table].slots, large_tables[table].hash);
	large_call(&g, INSERT, cases[_i].shape, 24, LARGE, &seed);
	close_ranks(&g);
}
END_TEST
#endif

#if TEST_CUDA
/* Builds with the least bytes that three ranks divide into two parts. */
START_TEST(builds_in_parts)
{
	static const struct {
		int table, shape;
	} cases[] = {{0, 0}, {1, 0}, {1, REPEATS}, {1, ONE_OWNER}};
	uint64_t seed = test_seed("builds_in_parts");
	const int shape = cases[_i].shape;
	const struct kind *kind = &large_tables[cases[_i].table].kind;
	const size_t pair = cua_type_size(kind->key) + cua_type_size(kind->value);
	const size_t n = ((size_t)9 << 23 >> FEWER_BITS) / pair + 1;
	struct ranks g;

	if (test_traced() || test_scale(!TEST_MODEL, 0, 0))
		return;
	open_ranks(&g, 3, kind, (uint64_t)6 * LARGE_BUCKETS * large_tables[cases[_i].table].slots);
	large_call(&g, BUILD, shape, shape == ONE_OWNER ? 21 : 26, n, &seed);
	close_ranks(&g);
}
END_TEST

/* Inserts and builds that read pairs in each other's memory, and finds in tables of several regions. */
START_TEST(large_calls)
{
	uint64_t seed = test_seed("large_calls");
	const int quick = test_scale(1, 0, 0);
	struct ranks g;

	if (test_traced() || (quick && _i > 1))
		return;
	for (uint32_t ranks = 3; ranks <= 5 && _i < 2 && !quick; ranks += 2) {
		open_ranks(&g, ranks, &large_tables[_i].kind,
			   ranks * LARGE_BUCKETS * large_tables[_i].slots);
		large_call(&g, INSERT, 0, 24, LARGE, &seed);
		large_call(&g, BUILD, 0, 26, LARGE, &seed);
		close_ranks(&g);
	}
	for (int shape = 0; shape < SHAPES; shape += 1 + quick) {
		open_hashed(&g, 2, &large_tables[_i].kind,
			    2 * LARGE_BUCKETS * large_tables[_i].slots, large_tables[_i].hash);
		large_call(&g, INSERT, shape, 24, LARGE, &seed);
		large_call(&g, BUILD, shape, 24, LARGE, &seed);
		close_ranks(&g);
	}
	if (large_tables[_i].slots != 3)
		return;
	/* with more pairs than slots, a build is an insert after a clear */
	open_ranks(&g, 2, &large_tables[_i].kind, 2 * LARGE_BUCKETS * 3);
	large_call(&g, INSERT, REPEATS, 21, LARGE, &seed);
	large_call(&g, BUILD, REPEATS, 20, LARGE_BUCKETS * 3 + LARGE_BUCKETS / 5, &seed);
	close_ranks(&g);
}
END_TEST

/*
 * Updates that combine equal keys first: few keys, frequent keys among many, too many keys of an
 * owner for its room, and keys that are mostly distinct.
 */
START_TEST(large_updates)
{
	static const struct {
		int shape;
		unsigned bits;
	} data[] = {
		{REPEATS, 18}, {REPEATS, 24}, {ONE_OWNER, 22}, {ONE_OWNER, 18}, {ONE_OWNER, 28}};
	uint64_t seed = test_seed("large_updates");
	const int quick = test_scale(1, 0, 0);
	struct ranks g;

	if (test_traced())
		return;
	/* with room for all keys in the shard of one owner */
	for (size_t i = 0; i < COUNT(data) - (quick ? 2 : 0); i++) {
		open_ranks(&g, 2, &large_tables[_i].kind,
			   5 * LARGE_BUCKETS / 2 * large_tables[_i].slots);
		large_call(&g, UPDATE, data[i].shape, data[i].bits, LARGE, &seed);
		close_ranks(&g);
	}
}
END_TEST
#endif

#if !TEST_CUDA && !SANITIZED
/* More ranks than a worker counts by itself. */
START_TEST(hundreds_of_ranks)
{
	enum { RANKS = 300, EACH = 20 };
	static uint64_t keys[RANKS][EACH], values[RANKS][EACH], found[RANKS][EACH];
	struct cua_context *contexts[RANKS];
	const void *keys_at[RANKS], *values_at[RANKS];
	void *found_at[RANKS];
	struct cua_sharded_map *map;
	struct cua_group *group;
	size_t n[RANKS];
	uint64_t size;

	for (uint32_t r = 0; r < RANKS; r++) {
		contexts[r] = test_context(CUA_BACKEND_CPU);
		n[r] = EACH;
		for (uint32_t i = 0; i < EACH; i++) {
			keys[r][i] = (uint64_t)r * EACH + i;
			values[r][i] = ~keys[r][i];
		}
		keys_at[r] = keys[r];
		values_at[r] = values[r];
		found_at[r] = found[r];
	}
	ck_assert_cua(cua_group_create_devices(RANKS, contexts, &group));
	ck_assert_cua(cua_sharded_map_create(group, NULL, CUA_U64, CUA_U64, RANKS * EACH, &map));
	ck_assert_cua(cua_sharded_map_insert_n(map, n, keys_at, values_at, NULL));
	ck_assert_cua(cua_sharded_map_find_n(map, n, keys_at, found_at, NULL));
	ck_assert_mem_eq(found, values, sizeof(values));
	ck_assert_cua(cua_sharded_map_size(map, &size));
	ck_assert_uint_eq(size, RANKS * EACH);
	cua_sharded_map_destroy(map);
	cua_group_destroy(group);
	for (uint32_t r = 0; r < RANKS; r++)
		cua_context_destroy(contexts[r]);
}
END_TEST
#endif

/* More ranks than a few. */
START_TEST(many_ranks)
{
	uint64_t seed = test_seed("many_ranks");
	struct ranks g;

	open_ranks(&g, MOST_RANKS, &kinds[0], 30000);
	for (int round = 0; round < 6; round++) {
		struct work w;

		random_work(&w, MOST_RANKS, &kinds[0], 700, 20000, &seed);
		do_work(&g, &w, &seed);
		free_work(&w);
	}
	close_ranks(&g);
}
END_TEST

/* A shard that is full: the status of all ranks, and as many answers FULL as there were no slots for. */
START_TEST(full)
{
	enum { N = 4000 };
	struct ranks g;
	uint32_t keys[3][N];
	uint8_t results[3][N];
	const void *keys_at[3];
	void *values_at[3];
	uint8_t *results_at[3];
	const size_t n[3] = {N, N, N};
	uint64_t size;
	size_t rejected = 0;

	open_ranks(&g, 3, &kinds[0], 600);
	for (uint32_t r = 0; r < 3; r++) {
		for (uint32_t i = 0; i < N; i++)
			keys[r][i] = r * N + i;
		keys_at[r] = test_upload(g.contexts[r], keys[r], sizeof(keys[r]));
		values_at[r] = test_upload(g.contexts[r], keys[r], sizeof(keys[r]));
		results_at[r] = test_upload(g.contexts[r], keys[r], N);
	}
	ck_assert_cua(cua_sharded_map_insert_n(g.map, n, keys_at, (const void *const *)values_at,
					       results_at));
	ck_assert_status(cua_sharded_map_status(g.map), CUA_ERROR_FULL);
	for (uint32_t r = 0; r < 3; r++) {
		test_download(g.contexts[r], results[r], results_at[r], N);
		for (uint32_t i = 0; i < N; i++)
			rejected += results[r][i] == CUA_HASHMAP_FULL;
	}
	ck_assert_cua(cua_sharded_map_size(g.map, &size));
	ck_assert_uint_eq(size + rejected, 3 * N);
	ck_assert_uint_ge(size, 600);
	ck_assert_cua(cua_sharded_map_clear(g.map));
	ck_assert_cua(cua_sharded_map_status(g.map));
	for (uint32_t r = 0; r < 3; r++) {
		test_free(g.contexts[r], (void *)(uintptr_t)keys_at[r]);
		test_free(g.contexts[r], values_at[r]);
		test_free(g.contexts[r], results_at[r]);
	}
	close_ranks(&g);
}
END_TEST

/* As many random keys as the capacity fit. */
START_TEST(capacity)
{
	uint64_t seed = test_seed("capacity");
	const size_t n = test_traced() ? 2000 : 100000;
	uint64_t *host = test_malloc(n * sizeof(*host)), held;
	const size_t lengths[4] = {n, 0, 0, 0};
	struct ranks g;
	const void *keys_at[4] = {NULL};

	open_ranks(&g, 4, &kinds[6], n);
	for (size_t i = 0; i < n; i++)
		host[i] = test_random(&seed);
	keys_at[0] = test_upload(g.contexts[0], host, n * sizeof(*host));
	ck_assert_cua(cua_sharded_map_insert_n(g.map, lengths, keys_at, NULL, NULL));
	ck_assert_cua(cua_sharded_map_status(g.map));
	ck_assert_cua(cua_sharded_map_size(g.map, &held));
	ck_assert_uint_eq(held, n);
	test_free(g.contexts[0], (void *)(uintptr_t)keys_at[0]);
	free(host);
	close_ranks(&g);
}
END_TEST

/* The keys of a shard have all its buckets as homes, also if a seed is named for everything. */
START_TEST(spread)
{
	uint64_t seed = test_seed("spread");
	const size_t n = 40000, lengths[3] = {n, 0, 0};
	struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
	uint64_t *host = test_malloc(n * sizeof(*host));
	const void *keys_at[3] = {NULL};
	struct ranks g;

	ck_assert_int_eq(setenv("CUATOMIC_HASH_SEED", "77", 1), 0);
	open_ranks(&g, 3, &kinds[6], 2 * n);
	for (size_t i = 0; i < n; i++)
		host[i] = test_random(&seed);
	keys_at[0] = test_upload(g.contexts[0], host, n * sizeof(*host));
	ck_assert_cua(cua_sharded_map_insert_n(g.map, lengths, keys_at, NULL, NULL));
	for (uint32_t r = 0; r < 3; r++) {
		ck_assert_cua(cua_hashmap_get_statistics(cua_sharded_map_shard(g.map, r), &s));
		ck_assert_uint_gt(s.keys, n / 4);
		/* half of the slots are taken: few keys are not in their home bucket */
		ck_assert_uint_ge(s.probes[0], s.keys - s.keys / 8);
	}
	test_free(g.contexts[0], (void *)(uintptr_t)keys_at[0]);
	free(host);
	close_ranks(&g);
}
END_TEST

START_TEST(retrieves)
{
	uint64_t seed = test_seed("retrieves"), max[3] = {0}, n[3], size;
	struct work w = {0};
	struct ranks g;
	void *keys[3], *values[3];

	open_ranks(&g, 3, &kinds[1], 5000);
	do {
		free_work(&w);
		random_work(&w, 3, &kinds[1], 1000, 3000, &seed);
	} while (w.call != INSERT);
	do_work(&g, &w, &seed);
	ck_assert_cua(cua_sharded_map_size(g.map, &size));
	ck_assert_cua(cua_sharded_map_retrieve(g.map, CUA_HASHMAP_ANY, max, NULL, NULL, n));
	ck_assert_uint_eq(n[0] + n[1] + n[2], size);
	for (uint32_t r = 0; r < 3; r++) {
		max[r] = n[r];
		keys[r] = test_alloc(g.contexts[r], n[r] * 8);
		values[r] = test_alloc(g.contexts[r], n[r] * 8);
	}
	ck_assert_cua(cua_sharded_map_retrieve(g.map, CUA_HASHMAP_SORTED, max, keys, values, n));
	for (uint32_t r = 0; r < 3; r++) {
		uint64_t *host = test_malloc(n[r] * 8 + 1);

		ck_assert_uint_eq(n[r], max[r]);
		test_download(g.contexts[r], host, keys[r], n[r] * 8);
		for (uint64_t i = 0; i < n[r]; i++) {
			uint32_t owner;

			ck_assert(!i || host[i - 1] < host[i]);
			ck_assert_cua(cua_sharded_map_owner(g.map, &host[i], &owner));
			ck_assert_uint_eq(owner, r);
		}
		free(host);
		test_free(g.contexts[r], keys[r]);
		test_free(g.contexts[r], values[r]);
	}
	free_work(&w);
	close_ranks(&g);
}
END_TEST

/* ---- files ---- */

static char folder[64], file[96];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/sharded-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/map", folder);
}

/* Calls fn for each file of the folder, and returns their number. */
static unsigned each_file(void (*fn)(const char *path))
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	unsigned n = 0;
	char path[512];

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] == '.' && entry->d_name[1 + (entry->d_name[1] == '.')] == 0)
			continue;
		n++;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (fn)
			fn(path);
	}
	closedir(dir);
	return n;
}

static void remove_it(const char *path)
{
	ck_assert_int_eq(unlink(path), 0);
}

static void remove_folder(void)
{
	each_file(remove_it);
	ck_assert_int_eq(rmdir(folder), 0);
}

static char shard_file[512];

static void find_shard(const char *path)
{
	if (strlen(path) > strlen(file) && !strcmp(path + strlen(path) - 2, ".1"))
		snprintf(shard_file, sizeof(shard_file), "%s", path);
}

/* Reads or writes a whole file; returns its length. */
static size_t whole_file(const char *path, char *bytes, size_t n, int writes)
{
	FILE *f = fopen(path, writes ? "wb" : "rb");
	size_t done;

	ck_assert_ptr_nonnull(f);
	done = writes ? fwrite(bytes, 1, n, f) : fread(bytes, 1, n, f);
	ck_assert_int_eq(fclose(f), 0);
	return done;
}

static struct cua_sharded_map *load(struct ranks *g, enum cua_status expected)
{
	struct cua_sharded_map *map = NULL;

	ck_assert_status(cua_sharded_map_load(g->group, NULL, file, &map), expected);
	ck_assert(!map == (expected != CUA_OK));
	return map;
}

/* Saved by some ranks and loaded by other ranks, twice. */
START_TEST(files)
{
	uint64_t seed = test_seed("files");
	const struct kind *kind = &kinds[_i % (int)COUNT(kinds)];
	const uint32_t from = sizes[_i % 6], to = sizes[(_i / 2 + 3) % 6];
	struct cua_sharded_map *loaded;
	struct ranks g, other;

	make_folder();
	open_ranks(&g, from, kind, 9000);
	open_ranks(&other, to, kind, 10);
	for (int round = 0; round < 2; round++) {
		struct work w = {0};

		do {
			free_work(&w);
			random_work(&w, from, kind, round || test_traced() ? 300 : 2000, 6000,
				    &seed);
		} while (w.call != INSERT);
		do_work(&g, &w, &seed);
		free_work(&w);
		ck_assert_cua(cua_sharded_map_save(g.map, file));
		/* the manifest and the shards of this save alone */
		ck_assert_uint_eq(each_file(NULL), 1 + from);
		loaded = load(&other, CUA_OK);
		expect_contents(&loaded, 1, to, g.model, kind);
		cua_sharded_map_destroy(loaded);
	}
	close_ranks(&other);
	close_ranks(&g);
	remove_folder();
}
END_TEST

/* Shards that are missing or of another save, changed manifests, and paths that are wrong. */
START_TEST(bad_files)
{
	enum { MOST = 1 << 16 };
	struct cua_hashmap_options o = CUA_HASHMAP_OPTIONS_INIT;
	uint64_t seed = test_seed("bad_files");
	char *bytes = test_malloc(MOST), *manifest = test_malloc(MOST);
	struct cua_sharded_map *map = NULL;
	struct work w = {0};
	struct ranks g;
	size_t n, shard;

	make_folder();
	open_ranks(&g, 3, &kinds[0], 3000);
	do {
		free_work(&w);
		random_work(&w, 3, &kinds[0], 500, 6000, &seed);
	} while (w.call != INSERT || !w.total);
	ck_assert_status(cua_sharded_map_save(NULL, file), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_save(g.map, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_load(NULL, NULL, file, &map), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_load(g.group, NULL, NULL, &map), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_load(g.group, NULL, file, NULL), CUA_ERROR_NULL);
	errno = 0;
	load(&g, CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_status(cua_sharded_map_load(g.group, NULL, folder, &map), CUA_ERROR_SYSTEM);
	ck_assert_status(cua_sharded_map_save(g.map, "/nonexistent/map"), CUA_ERROR_SYSTEM);
	/* a save without its manifest leaves nothing */
	ck_assert_int_eq(mkdir(file, 0700), 0);
	ck_assert_status(cua_sharded_map_save(g.map, file), CUA_ERROR_SYSTEM);
	ck_assert_uint_eq(each_file(NULL), 1);
	ck_assert_int_eq(rmdir(file), 0);

	ck_assert_cua(cua_sharded_map_save(g.map, file));
	each_file(find_shard);
	shard = whole_file(shard_file, bytes, MOST, 0);
	do_work(&g, &w, &seed);
	ck_assert_cua(cua_sharded_map_save(g.map, file));
	cua_sharded_map_destroy(load(&g, CUA_OK));
	o.max_bytes = 1000;
	ck_assert_status(cua_sharded_map_load(g.group, &o, file, &map), CUA_ERROR_SIZE);
	/* every bit of the manifest */
	n = whole_file(file, manifest, MOST, 0);
	ck_assert_uint_eq(n, 88 + 3 * 16);
	for (size_t i = 0; i < n; i += test_traced() ? 7 : 1) {
		const char bit = (char)(1 << test_random(&seed) % 8);

		manifest[i] ^= bit;
		whole_file(file, manifest, n, 1);
		load(&g, CUA_ERROR_CORRUPT);
		manifest[i] ^= bit;
	}
	whole_file(file, manifest, n - 1, 1);
	load(&g, CUA_ERROR_CORRUPT);
	whole_file(file, manifest, 3, 1);
	load(&g, CUA_ERROR_CORRUPT);
	whole_file(file, manifest, n, 1);
	cua_sharded_map_destroy(load(&g, CUA_OK));
	/* the shard of another save, and none */
	each_file(find_shard);
	whole_file(shard_file, bytes, shard, 1);
	load(&g, CUA_ERROR_CORRUPT);
	ck_assert_int_eq(unlink(shard_file), 0);
	errno = 0;
	load(&g, CUA_ERROR_SYSTEM);
	ck_assert_int_eq(errno, ENOENT);
	free_work(&w);
	close_ranks(&g);
	remove_folder();
	free(bytes);
	free(manifest);
}
END_TEST

START_TEST(arguments)
{
	struct cua_hashmap_options o = CUA_HASHMAP_OPTIONS_INIT;
	const void *keys[2], *bad[2], *const nothing[2] = {NULL, NULL};
	uint32_t host[64] = {0}, owner = 9;
	struct cua_sharded_map *map = NULL;
	const size_t n[2] = {64, 64}, none[2] = {0, 0}, huge[2] = {SIZE_MAX / 2, 0};
	void *values[2];
	uint8_t *results[2];
	uint64_t size = 7;
	struct ranks g;
	size_t bytes;

	open_ranks(&g, 2, &kinds[0], 1000);
	ck_assert_status(cua_sharded_map_create(NULL, NULL, CUA_U32, CUA_U32, 9, &map),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_create(g.group, NULL, CUA_U32, CUA_U32, 9, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_create(g.group, NULL, CUA_U16, CUA_U32, 9, &map),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_sharded_map_create(g.group, NULL, CUA_U32, CUA_U32, 0, &map),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_sharded_map_create(g.group, NULL, CUA_U32, CUA_U32, UINT64_MAX, &map),
			 CUA_ERROR_SIZE);
	o.own_hash = 1;
	ck_assert_status(cua_sharded_map_create(g.group, &o, CUA_U32, CUA_U32, 9, &map),
			 CUA_ERROR_UNSUPPORTED);
	o.own_hash = 0;
	o.struct_size--;
	ck_assert_status(cua_sharded_map_create(g.group, &o, CUA_U32, CUA_U32, 9, &map),
			 CUA_ERROR_VALUE);
	o.struct_size++;
	o.max_bytes = 10;
	ck_assert_status(cua_sharded_map_create(g.group, &o, CUA_U32, CUA_U32, 9, &map),
			 CUA_ERROR_SIZE);
	ck_assert_ptr_null(map);
	cua_sharded_map_destroy(NULL);
	ck_assert_ptr_null(cua_sharded_map_shard(NULL, 0));
	ck_assert_ptr_null(cua_sharded_map_shard(g.map, 2));
	ck_assert_status(cua_sharded_map_workspace(NULL, 1, &bytes), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_workspace(g.map, 1, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_workspace(g.map, SIZE_MAX, &bytes), CUA_ERROR_SIZE);
	ck_assert_cua(cua_sharded_map_workspace(g.map, 0, &bytes));
	/* more elements never need less; finds have parts of 2^28 keys */
	for (size_t n_keys = 1; n_keys < (size_t)1 << 30;
	     n_keys += n_keys < (1u << 26) - 1 ? n_keys + 1 : 1u << 26)
		for (size_t more = 0; more < 3; more++) {
			const size_t before = bytes;

			ck_assert_cua(cua_sharded_map_workspace(g.map, n_keys + more, &bytes));
			ck_assert_uint_ge(bytes, before);
		}
	ck_assert_status(cua_sharded_map_owner(NULL, host, &owner), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_owner(g.map, NULL, &owner), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_owner(g.map, host, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_size(NULL, &size), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_size(g.map, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_clear(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_status(NULL), CUA_ERROR_NULL);
	for (uint32_t r = 0; r < 2; r++) {
		keys[r] = test_upload(g.contexts[r], host, sizeof(host));
		values[r] = test_upload(g.contexts[r], host, sizeof(host));
		results[r] = test_upload(g.contexts[r], host, sizeof(host));
	}
#define IN ((const void *const *)values)
	ck_assert_status(cua_sharded_map_insert_n(NULL, n, keys, IN, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_insert_n(g.map, NULL, keys, IN, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_insert_n(g.map, n, NULL, IN, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_insert_n(g.map, n, keys, NULL, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_find_n(g.map, n, keys, NULL, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_contains_n(g.map, n, keys, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_sharded_map_update_n(g.map, (enum cua_update)9, n, keys, IN, NULL),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_sharded_map_insert_n(g.map, huge, keys, IN, NULL), CUA_ERROR_SIZE);
	for (uint32_t r = 0; r < 2; r++) {
		memcpy(bad, keys, sizeof(bad));
		bad[r] = NULL;
		ck_assert_status(cua_sharded_map_insert_n(g.map, n, bad, IN, NULL), CUA_ERROR_NULL);
		bad[r] = (const char *)keys[r] + 1;
		ck_assert_status(cua_sharded_map_insert_n(g.map, n, bad, IN, NULL),
				 CUA_ERROR_ALIGNMENT);
		bad[r] = values[r];
		ck_assert_status(cua_sharded_map_find_n(g.map, n, bad, values, NULL),
				 CUA_ERROR_OVERLAP);
		bad[r] = results[r];
		ck_assert_status(cua_sharded_map_insert_n(g.map, n, bad, IN, results),
				 CUA_ERROR_OVERLAP);
	}
	ck_assert_cua(cua_sharded_map_size(g.map, &size));
	ck_assert_uint_eq(size, 0);
	ck_assert_cua(cua_sharded_map_insert_n(g.map, none, nothing, nothing, NULL));
	for (uint32_t r = 0; r < 2; r++) {
		test_free(g.contexts[r], (void *)(uintptr_t)keys[r]);
		test_free(g.contexts[r], values[r]);
		test_free(g.contexts[r], results[r]);
	}
	close_ranks(&g);
	/* a set, and a map that never erases */
	open_ranks(&g, 2, &kinds[2], 1000);
	ck_assert_status(cua_sharded_map_assign_n(g.map, none, nothing, nothing, NULL),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_sharded_map_find_n(g.map, none, nothing, (void *const *)nothing, NULL),
			 CUA_ERROR_TYPE);
	o = (struct cua_hashmap_options)CUA_HASHMAP_OPTIONS_INIT;
	o.no_erase = 1;
	ck_assert_cua(cua_sharded_map_create(g.group, &o, CUA_U32, CUA_U32, 9, &map));
	ck_assert_status(cua_sharded_map_erase_n(map, none, nothing, NULL), CUA_ERROR_UNSUPPORTED);
	cua_sharded_map_destroy(map);
	close_ranks(&g);
}
END_TEST

/* ---- a rank in each thread ---- */

struct crowd {
	struct thread_hub *hub;
	uint32_t size;
	uint64_t capacity;
	struct cua_context *contexts[MOST_RANKS], *cpu;
	struct cua_group *groups[MOST_RANKS];
	struct cua_sharded_map *maps[MOST_RANKS];
	struct cua_hashmap *model;
	const struct kind *kind;
	struct work work, other; /* `other` is the call of rank `odd` */
	int odd;
	struct arrays arrays[MOST_RANKS];
	enum cua_status status[MOST_RANKS];
	uint64_t held[MOST_RANKS];
};

static void create_alone(void *arg, uint32_t rank)
{
	struct crowd *c = arg;

	c->status[rank] = cua_sharded_map_create(c->groups[rank], NULL,
						 (int)rank == c->odd ? CUA_U128 : c->kind->key,
						 c->kind->value, c->capacity, &c->maps[rank]);
}

static struct crowd *crowd_open(uint32_t size, const struct kind *kind, uint64_t capacity)
{
	struct crowd *c = test_malloc(sizeof(*c));

	memset(c, 0, sizeof(*c));
	c->capacity = capacity;
	c->hub = thread_hub_create(size);
	c->size = size;
	c->kind = kind;
	c->cpu = test_context(CUA_BACKEND_CPU);
	c->odd = -1;
	for (uint32_t r = 0; r < size; r++) {
		const struct cua_transport t = thread_transport(c->hub, r);

		/* on a GPU, every third rank is on the CPU */
		c->contexts[r] = r % 3 == 2 ? test_context(CUA_BACKEND_CPU) : rank_context(r);
		ck_assert_cua(cua_group_create(c->contexts[r], &t, &c->groups[r]));
	}
	thread_ranks(size, create_alone, c);
	for (uint32_t r = 0; r < size; r++)
		ck_assert_cua(c->status[r]);
	ck_assert_cua(
		cua_hashmap_create(c->cpu, NULL, kind->key, kind->value, capacity + 64, &c->model));
	return c;
}

static void crowd_close(struct crowd *c)
{
	for (uint32_t r = 0; r < c->size; r++) {
		cua_sharded_map_destroy(c->maps[r]);
		cua_group_destroy(c->groups[r]);
		rank_context_destroy(c->contexts[r]);
	}
	ck_assert_cua(cua_hashmap_destroy(c->model));
	cua_context_destroy(c->cpu);
	thread_hub_destroy(c->hub);
	free(c);
}

static void call_alone(void *arg, uint32_t rank)
{
	struct crowd *c = arg;
	const struct work *w = (int)rank == c->odd ? &c->other : &c->work;
	struct arrays *a = &c->arrays[rank];
	const void *keys = a->keys;
	uint8_t *results = a->results;

	c->status[rank] = make_call(c->maps[rank], w, &c->work.n[rank], &keys,
				    c->kind->value ? &a->values : NULL, &results);
}

static void size_alone(void *arg, uint32_t rank)
{
	struct crowd *c = arg;

	c->status[rank] = cua_sharded_map_size(c->maps[rank], &c->held[rank]);
}

/* Makes a random call on all ranks; values and results receive the answers. */
static void crowd_call(struct crowd *c, char *values, uint8_t *results)
{
	const size_t ks = cua_type_size(c->kind->key),
		     vs = c->kind->value ? cua_type_size(c->kind->value) : 0;
	size_t at = 0;

	for (uint32_t r = 0; r < c->size; r++) {
		upload(&c->arrays[r], c->contexts[r], &c->work, r, at, ks, vs);
		at += c->work.n[r];
	}
	thread_ranks(c->size, call_alone, c);
	at = 0;
	for (uint32_t r = 0; r < c->size; r++) {
		download(&c->arrays[r], c->contexts[r], &c->work, r, at, vs, values, results);
		at += c->work.n[r];
	}
}

/* Makes the call on all ranks and in the model, and compares the answers. Frees the work. */
static void crowd_work(struct crowd *c)
{
	const size_t ks = cua_type_size(c->kind->key),
		     vs = c->kind->value ? cua_type_size(c->kind->value) : 0;
	uint8_t *results = test_malloc(c->work.total + 1),
		*expected = test_malloc(c->work.total + 1);
	char *values = test_malloc(c->work.total * vs + 1),
	     *wanted = test_malloc(c->work.total * vs + 1);

	memcpy(wanted, c->work.values, c->work.total * vs);
	crowd_call(c, values, results);
	for (uint32_t r = 0; r < c->size; r++)
		ck_assert_cua(c->status[r]);
	model_call(c->model, &c->work, wanted, expected);
	if (c->work.answered || c->work.call == CONTAINS)
		expect_answers(&c->work, ks, results, expected);
	ck_assert_mem_eq(values, wanted, c->work.total * vs);
	free(values);
	free(wanted);
	free(results);
	free(expected);
	free_work(&c->work);
}

START_TEST(threads)
{
	uint64_t seed = test_seed("threads");
	const struct kind *kind = &kinds[_i % (int)COUNT(kinds)];
	const uint32_t size = sizes[1 + _i % 5];
	struct crowd *c = crowd_open(size, kind, 40000);

	for (int round = 0; round < (test_traced() || SANITIZED ? 6 : test_scale(10, 20, 80));
	     round++) {
		/* now and then a piece with keys of a single owner, in several exchanges */
		random_work(&c->work, size, kind, round % 8 == 7 && !test_traced() ? 90000 : 3000,
			    round % 8 == 7 ? 1 : 30000, &seed);
		crowd_work(c);
	}
	expect_contents(c->maps, size, 1, c->model, kind);
	thread_ranks(size, size_alone, c);
	for (uint32_t r = 0; r < size; r++) {
		uint64_t keys;

		ck_assert_cua(c->status[r]);
		ck_assert_cua(cua_hashmap_size(c->model, &keys));
		ck_assert_uint_eq(c->held[r], keys);
	}
	crowd_close(c);
}
END_TEST

#if TEST_CUDA
enum { MOST_UPDATES = 1600000 };
#else
enum { MOST_UPDATES = 70000 };
#endif

/* Updates long enough that ranks combine equal keys first, with few keys and with many. */
START_TEST(long_updates)
{
	uint64_t seed = test_seed("long_updates");
	const struct kind *kind = &kinds[_i];
	struct crowd *c;

	if (!kind->value || test_traced())
		return;
	c = crowd_open(3, kind, 40000);
	for (int round = 0; round < 4; round++) {
		/* a GPU combines from 2^20 pairs on */
		work_of(&c->work, UPDATE, 3, kind, round ? MOST_UPDATES : 70000,
			round % 2 ? 30000 : 300, &seed);
		c->work.answered = 0;
		crowd_work(c);
	}
	expect_contents(c->maps, 3, 1, c->model, kind);
	crowd_close(c);
}
END_TEST

#if TEST_CUDA
/*
 * Combined pairs in several rounds, in which the tables combine again: their workspaces must not overlap
 * the combined pairs.
 */
START_TEST(updates_in_rounds)
{
	uint64_t seed = test_seed("updates_in_rounds");
	const int quick = test_scale(1, 0, 0);
	struct crowd *c;

	if (test_traced() || (quick && _i))
		return;
	/* pieces of 1.2 million pairs: enough for a table to combine, and fewer than the keys */
	c = crowd_open(2, &kinds[_i], 9600000 >> FEWER_BITS);
	c->work.n[0] = c->work.n[1] = 6000000 >> FEWER_BITS;
	fill_work(&c->work, UPDATE, 2, &kinds[_i], 3000000 >> FEWER_BITS, &seed);
	c->work.answered = 0;
	crowd_work(c);
	expect_contents(c->maps, 2, 1, c->model, &kinds[_i]);
	crowd_close(c);
}
END_TEST
#endif

/* Ranks that make different calls, and a rank without keys: all return the same error. */
START_TEST(errors_of_threads)
{
	struct crowd *c = crowd_open(4, &kinds[0], 40000);
	uint64_t seed = test_seed("errors_of_threads");
	char *values = test_malloc(4 * 3000 * 4 + 1);
	uint8_t *results = test_malloc(4 * 3000 + 1);
	struct cua_sharded_map *kept[4];

	for (int odd = 0; odd < 4; odd++)
		for (int what = 0; what < 3; what++) {
			do {
				free_work(&c->work);
				random_work(&c->work, 4, &kinds[0], 3000, 9999, &seed);
			} while (c->work.call != UPDATE);
			c->other = c->work;
			c->odd = odd;
			if (what == 0)
				c->other.call = INSERT;
			if (what == 1)
				c->other.answered = !c->work.answered;
			if (what == 2)
				c->other.op = (enum cua_update)77;
			crowd_call(c, values, results);
			for (uint32_t r = 0; r < 4; r++)
				ck_assert_status(c->status[r], CUA_ERROR_VALUE);
			thread_ranks(4, size_alone, c);
			for (uint32_t r = 0; r < 4; r++)
				ck_assert_uint_eq(c->held[r], 0);
		}
	memcpy(kept, c->maps, sizeof(kept));
	thread_ranks(4, create_alone, c);
	for (uint32_t r = 0; r < 4; r++) {
		ck_assert_status(c->status[r], CUA_ERROR_VALUE);
		ck_assert_ptr_eq(c->maps[r], kept[r]);
	}
	free_work(&c->work);
	free(values);
	free(results);
	crowd_close(c);
}
END_TEST

/* One rank makes another kind of call: all return VALUE, nothing is changed, and no rank waits for ever. */
static void mixed_alone(void *arg, uint32_t rank)
{
	struct crowd *c = arg;
	const int call = (int)rank == c->odd ? c->other.answered : c->work.answered;
	struct cua_sharded_map *map = c->maps[rank];
	struct cua_context *ctx = c->contexts[rank];
	uint64_t numbers[2] = {1, 1}, *x = test_upload(ctx, numbers, sizeof(numbers)), size,
		 max = 0;
	const size_t n = 1, none = 0;
	const void *in = x;
	void *out = x + 1;

	switch (call) {
	case 0: c->status[rank] = cua_sharded_map_size(map, &size); break;
	case 1: c->status[rank] = cua_sharded_map_clear(map); break;
	case 2: c->status[rank] = cua_sharded_map_status(map); break;
	case 3:
		c->status[rank] =
			cua_sharded_map_retrieve(map, CUA_HASHMAP_ANY, &max, NULL, NULL, &size);
		break;
	case 4: c->status[rank] = cua_group_sum(c->groups[rank], CUA_U64, 1, &out); break;
	case 5:
		c->status[rank] = cua_group_reduce(c->groups[rank], NULL, CUA_REDUCE_SUM, CUA_U64,
						   &n, &in, NULL, &out);
		break;
	default: c->status[rank] = cua_sharded_map_erase_n(map, &none, &in, NULL);
	}
	test_free(ctx, x);
}

START_TEST(mixed_calls)
{
	struct crowd *c = crowd_open(3, &kinds[0], 40000);
	uint64_t seed = test_seed("mixed_calls");
	char *values = test_malloc(3 * 3000 * 4 + 1);
	uint8_t *results = test_malloc(3 * 3000 + 1);

	do {
		free_work(&c->work);
		random_work(&c->work, 3, &kinds[0], 3000, 9999, &seed);
	} while (c->work.call != INSERT || !c->work.total);
	crowd_call(c, values, results);
	thread_ranks(3, size_alone, c);
	for (int call = 0; call < 7; call++)
		for (int other = 0; other < 7; other++) {
			const uint64_t held = c->held[0];

			if (other == call)
				continue;
			c->work.answered = call;
			c->other.answered = other;
			c->odd = (call + other) % 3;
			thread_ranks(3, mixed_alone, c);
			for (uint32_t r = 0; r < 3; r++)
				ck_assert_status(c->status[r], CUA_ERROR_VALUE);
			thread_ranks(3, size_alone, c);
			for (uint32_t r = 0; r < 3; r++)
				ck_assert_uint_eq(c->held[r], held);
		}
	free_work(&c->work);
	free(values);
	free(results);
	crowd_close(c);
}
END_TEST

/* Each function of the transport fails once: no rank hangs, and the maps stay broken. */
START_TEST(failing_transports)
{
	uint64_t seed = test_seed("failing_transports");
	char *values = test_malloc(3 * 3000 * 4 + 1);
	uint8_t *results = test_malloc(3 * 3000 + 1);
	unsigned before = 0, calls = 1;

	for (unsigned call = 0; call <= calls; call++) {
		struct crowd *c = crowd_open(3, &kinds[0], 40000);

		do {
			free_work(&c->work);
			random_work(&c->work, 3, &kinds[0], 3000, 9999, &seed);
		} while (c->work.call != (_i ? FIND : INSERT) || !c->work.total);
		c->work.answered = 1;
		if (!call)
			before = thread_transport_calls(c->hub, 0);
		else
			thread_transport_fail(c->hub, call % 3, before + call - 1);
		crowd_call(c, values, results);
		if (!call)
			calls = thread_transport_calls(c->hub, 0) - before;
		for (uint32_t r = 0; r < 3; r++)
			ck_assert_status(c->status[r], call ? CUA_ERROR_SYSTEM : CUA_OK);
		crowd_call(c, values, results);
		for (uint32_t r = 0; r < 3; r++) {
			ck_assert_status(c->status[r], call ? CUA_ERROR_SYSTEM : CUA_OK);
			ck_assert_uint_eq(thread_transport_aborts(c->hub, r), call != 0);
		}
		/* the function that failed was the last call */
		if (call)
			ck_assert_uint_eq(thread_transport_calls(c->hub, call % 3), before + call);
		free_work(&c->work);
		crowd_close(c);
	}
	ck_assert_uint_ge(calls, 5);
	free(values);
	free(results);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sharded_map");
	TCase *tc = tcase_create("sharded_map");
	const int n_kinds = (int)COUNT(kinds);

	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, sequences, 0, (int)COUNT(sizes) * n_kinds);
	tcase_add_loop_test(tc, long_calls, 0, 4);
	tcase_add_test(tc, many_ranks);
#if TEST_CUDA
	tcase_add_loop_test(tc, large_calls, 0, (int)COUNT(large_tables));
	/* the tables with values */
	tcase_add_loop_test(tc, large_updates, 0, 3);
#endif
#if !TEST_CUDA && !SANITIZED
	tcase_add_loop_test(tc, large_finds, 0, 3);
	tcase_add_test(tc, hundreds_of_ranks);
#endif
	tcase_add_test(tc, full);
	tcase_add_test(tc, capacity);
	tcase_add_test(tc, spread);
	tcase_add_test(tc, retrieves);
	tcase_add_loop_test(tc, files, 0, n_kinds);
	tcase_add_test(tc, bad_files);
	tcase_add_test(tc, arguments);
	tcase_add_loop_test(tc, threads, 0, n_kinds);
	tcase_add_loop_test(tc, long_updates, 0, n_kinds);
	tcase_add_test(tc, errors_of_threads);
	tcase_add_test(tc, mixed_calls);
	tcase_add_loop_test(tc, failing_transports, 0, 2);
	suite_add_tcase(suite, tc);
#if TEST_CUDA
	tc = tcase_create("parts");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, builds_in_parts, 0, 4);
	suite_add_tcase(suite, tc);
	tc = tcase_create("rounds");
	tcase_set_timeout(tc, 300);
	tcase_add_loop_test(tc, updates_in_rounds, 0, 2);
	suite_add_tcase(suite, tc);
#endif
	return test_run(suite, TEST_BACKEND);
}
