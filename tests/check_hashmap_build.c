/* SPDX-License-Identifier: MIT */
/*
 * Bulk builds: build_n, and insert_n with enough pairs that a GPU scatters them by region. The test
 * compares the contents of the map with the pairs.
 */
#include "common.h"

/* A GPU scatters in two passes from 3.7 million slots on, and inserts by regions from 138 MB on. */
#if TEST_CUDA
#define N_OF_TWO_PASSES 3500003
#define N_OF_REGIONS 2500000
#define BUCKETS_OF_REGIONS 2300000
#else
#define N_OF_TWO_PASSES 300007
#define N_OF_REGIONS 200000
#define BUCKETS_OF_REGIONS 100000
#endif

/* Key and value types; a value is the index of its pair. */
struct sizes {
	enum cua_type key, value;
};

static const struct sizes words[] = {
	{CUA_U32, CUA_U32}, {CUA_U32, CUA_NONE}, {CUA_U64, CUA_NONE},  {CUA_U64, CUA_U64},
	{CUA_U32, CUA_U64}, {CUA_U64, CUA_U32},  {CUA_U128, CUA_NONE},
};
static const struct sizes states[] = {{CUA_U128, CUA_U64}, {CUA_U64, CUA_U128}};

enum data {
	DISTINCT,
	EACH_FOUR_TIMES,
	HALF_ARE_ONE,
	SKEWED,     /* key i is as frequent as 1 / i */
	ONE_REGION, /* thousands in a single build region, the rest anywhere */
	RESERVED    /* many reserved keys */
};

struct pairs {
	struct sizes sizes;
	uint64_t n;
	enum data data;
	uint64_t seed;
	char *keys, *values; /* on the host */
	void *backend_keys, *backend_values;
};

static size_t size_of(enum cua_type type)
{
	return type == CUA_NONE ? 0 : type == CUA_U128 ? 16 : cua_type_size(type);
}

/* Numbers below 2^32 have distinct keys. */
static void put_key(const struct pairs *p, uint64_t i, uint64_t number)
{
	const size_t size = size_of(p->sizes.key);
	uint64_t key[2] = {number, 0};

	if (size == 4)
		key[0] = (uint32_t)((uint32_t)number * 2654435761u);
	else if (size == 16)
		key[1] = number * 3;
	memcpy(p->keys + i * size, key, size);
}

static uint64_t number_of(const struct pairs *p, uint64_t i, uint64_t *random)
{
	uint64_t r = test_random(random), bits;

	switch (p->data) {
	case EACH_FOUR_TIMES: return r % (p->n / 4 + 1);
	case HALF_ARE_ONE: return r % 2 ? 5 : i;
	case SKEWED:
		/* a random power of two, then a random number below it */
		for (bits = 1; bits < p->n; bits *= 2)
			if (r >> 60 == 0)
				break;
			else
				r = r * 6364136223846793005u + 1442695040888963407u;
		return test_random(random) % bits;
	case RESERVED: return r % 4 ? i : r >> 8 & 1;
	default: return i;
	}
}

static struct pairs make(struct cua_context *ctx, const struct cua_hashmap *map, struct sizes sizes,
			 uint64_t n, enum data data, uint64_t seed)
{
	struct pairs p = {.sizes = sizes, .n = n, .data = data, .seed = seed};
	const size_t ks = size_of(sizes.key), vs = size_of(sizes.value);
	struct cua_hashmap_view view;
	uint64_t random = seed, candidate = n;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	p.keys = test_malloc(n * ks + 1);
	p.values = test_malloc(n * vs + 1);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t number[2] = {i, 0}, of_key = number_of(&p, i, &random);
		struct cua_u128 key = {0, 0};

		put_key(&p, i, of_key);
		while (data == ONE_REGION && i < n / 64 && i < 6000 && view.n_buckets >= 1024) {
			put_key(&p, i, candidate++);
			memcpy(&key, p.keys + i * ks, ks);
			if (cua_hash_to_index(cua__hashmap_hash(&view, (uint32_t)ks, key),
					      view.n_buckets) /
				    512 ==
			    1)
				break;
		}
		memcpy(p.values + i * vs, number, vs);
	}
	p.backend_keys = test_upload(ctx, p.keys, n * ks + 1);
	p.backend_values = test_upload(ctx, p.values, n * vs + 1);
	return p;
}

static void drop(struct cua_context *ctx, struct pairs *p)
{
	test_free(ctx, p->backend_keys);
	test_free(ctx, p->backend_values);
	free(p->keys);
	free(p->values);
}

static size_t compared;
static int compare(const void *a, const void *b)
{
	return memcmp(a, b, compared);
}

static uint64_t distinct_keys(const struct pairs *p)
{
	const size_t ks = size_of(p->sizes.key);
	char *sorted = test_malloc(p->n * ks + 1);
	uint64_t distinct = 0;

	memcpy(sorted, p->keys, p->n * ks);
	compared = ks;
	qsort(sorted, p->n, ks, compare);
	for (uint64_t i = 0; i < p->n; i++)
		distinct += i == 0 || memcmp(sorted + i * ks, sorted + (i - 1) * ks, ks) != 0;
	free(sorted);
	return distinct;
}

/* Expects that the map holds these pairs and `others` more pairs. */
static void expect_pairs(struct cua_context *ctx, struct cua_hashmap *map, const struct pairs *p,
			 uint64_t others)
{
	const size_t ks = size_of(p->sizes.key), vs = size_of(p->sizes.value);
	char *values = test_malloc(p->n * vs + 1);
	void *backend_values = test_alloc(ctx, p->n * vs + 1);
	uint8_t *backend_found = test_alloc(ctx, p->n + 1), *found = test_malloc(p->n + 1);
	uint64_t size = 0;

	if (vs)
		ck_assert_cua(cua_hashmap_find_n(map, p->n, p->backend_keys, backend_values,
						 backend_found));
	else
		ck_assert_cua(cua_hashmap_contains_n(map, p->n, p->backend_keys, backend_found));
	test_download(ctx, values, backend_values, p->n * vs);
	test_download(ctx, found, backend_found, p->n);
	for (uint64_t i = 0; i < p->n; i++) {
		uint64_t from = i;

		EXPECT(found[i] == 1, "pair %d of %d is lost", (int)i, (int)p->n);
		if (vs) {
			from = 0;
			memcpy(&from, values + i * vs, vs < 8 ? vs : 8);
		}
		EXPECT(from < p->n && !memcmp(p->keys + i * ks, p->keys + from * ks, ks),
		       "pair %d of %d has the value of another key", (int)i, (int)p->n);
	}
	ck_assert_cua(cua_hashmap_size(map, &size));
	ck_assert_uint_eq(size, distinct_keys(p) + others);
	ck_assert_cua(cua_hashmap_status(map));
	free(values);
	free(found);
	test_free(ctx, backend_values);
	test_free(ctx, backend_found);
}

/* Keys of numbers from 2^31 on, which are in no pair, are absent. */
static void expect_absent(struct cua_context *ctx, struct cua_hashmap *map, struct sizes sizes)
{
	struct pairs p = {.sizes = sizes, .n = 20000};
	uint8_t *found = test_malloc(p.n), *backend_found = test_alloc(ctx, p.n);

	p.keys = test_malloc(p.n * size_of(sizes.key));
	for (uint64_t i = 0; i < p.n; i++)
		put_key(&p, i, 0x80000000u + i);
	p.backend_keys = test_upload(ctx, p.keys, p.n * size_of(sizes.key));
	ck_assert_cua(cua_hashmap_contains_n(map, p.n, p.backend_keys, backend_found));
	test_download(ctx, found, backend_found, p.n);
	for (uint64_t i = 0; i < p.n; i++)
		EXPECT(!found[i], "an absent key is found");
	free(p.keys);
	free(found);
	test_free(ctx, p.backend_keys);
	test_free(ctx, backend_found);
}

static struct cua_hashmap *new_map(struct cua_context *ctx, struct sizes sizes, uint64_t capacity)
{
	struct cua_hashmap *map = NULL;

	ck_assert_cua(cua_hashmap_create(ctx, NULL, sizes.key, sizes.value, capacity, &map));
	return map;
}

static void build(struct cua_context *ctx, struct cua_hashmap *map, const struct pairs *p)
{
	(void)ctx;
	ck_assert_cua(cua_hashmap_build_n(map, p->n, p->backend_keys,
					  p->sizes.value == CUA_NONE ? NULL : p->backend_values,
					  NULL));
}

/*
 * Builds twice over earlier contents. Between the builds, half of the keys are erased and inserted
 * again.
 */
static void try_build(struct cua_context *ctx, struct sizes sizes, uint64_t n, unsigned percent,
		      enum data data)
{
	struct cua_hashmap *map = new_map(ctx, sizes, n * 100 / percent + 1);
	struct pairs p = make(ctx, map, sizes, n, data, test_seed("build"));
	struct pairs others = make(ctx, map, sizes, n / 2, DISTINCT, 1), half = p;

	ck_assert_cua(cua_hashmap_insert_n(map, others.n, others.backend_keys,
					   others.backend_values, NULL));
	build(ctx, map, &p);
	expect_pairs(ctx, map, &p, 0);
	expect_absent(ctx, map, sizes);
	half.n /= 2;
	ck_assert_cua(cua_hashmap_erase_n(map, half.n, half.backend_keys, NULL));
	ck_assert_cua(
		cua_hashmap_insert_n(map, half.n, half.backend_keys, half.backend_values, NULL));
	expect_pairs(ctx, map, &p, 0);
	build(ctx, map, &others);
	expect_pairs(ctx, map, &others, 0);
	drop(ctx, &p);
	drop(ctx, &others);
	ck_assert_cua(cua_hashmap_destroy(map));
}

START_TEST(builds_of_all_sizes)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		try_build(ctx, words[i], 1, 50, DISTINCT);
		try_build(ctx, words[i], 1000, 80, EACH_FOUR_TIMES);
		/* from 2^18 pairs on, a GPU builds by regions */
		if (!test_traced() && !test_quick())
			try_build(ctx, words[i], 300007, 85, i % 2 ? DISTINCT : SKEWED);
	}
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		try_build(ctx, states[i], 5000, 80, EACH_FOUR_TIMES);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(builds_of_all_data)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = test_quick() ? 3000 : 270001;

	for (int data = DISTINCT; data <= RESERVED; data++) {
		try_build(ctx, words[0], n, 80, (enum data)data);
		try_build(ctx, words[3], n, 70, (enum data)data);
	}
	/* build regions with more pairs than slots */
	try_build(ctx, words[0], n, 97, DISTINCT);
	cua_context_destroy(ctx);
}
END_TEST

/* More build regions than the limit of a single scatter, and nearly the limit. */
START_TEST(builds_in_two_passes)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = test_quick() ? 4000 : N_OF_TWO_PASSES;

	try_build(ctx, words[0], n, 85, DISTINCT);
	try_build(ctx, words[3], n / 2, 85, SKEWED);
	try_build(ctx, words[0], n, 85, HALF_ARE_ONE);
	try_build(ctx, words[0], n / 8 * 7, 85, DISTINCT);
	try_build(ctx, words[0], n / 8 * 7, 85, HALF_ARE_ONE);
	try_build(ctx, words[3], n / 3, 85, SKEWED);
	try_build(ctx, words[6], n / 3, 85, HALF_ARE_ONE);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(build_of_nothing_clears)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = new_map(ctx, words[0], 1000);
	struct pairs p = make(ctx, map, words[0], 500, RESERVED, 3);
	uint64_t size = 9;

	build(ctx, map, &p);
	ck_assert_cua(cua_hashmap_build_n(map, 0, NULL, NULL, NULL));
	ck_assert_cua(cua_hashmap_size(map, &size));
	ck_assert_uint_eq(size, 0);
	drop(ctx, &p);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* Each key is INSERTED once, by the pair whose value is stored. */
START_TEST(build_results)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = test_quick() ? 3000 : 270000;
	struct cua_hashmap *map = new_map(ctx, words[0], n);
	struct pairs p = make(ctx, map, words[0], n, EACH_FOUR_TIMES, test_seed("build_results"));
	uint8_t *results = test_malloc(n), *backend_results = test_alloc(ctx, n);
	uint32_t *values = test_malloc(n * 4), *backend_values = test_alloc(ctx, n * 4);
	uint64_t inserted = 0;

	ck_assert_cua(
		cua_hashmap_build_n(map, n, p.backend_keys, p.backend_values, backend_results));
	expect_pairs(ctx, map, &p, 0);
	ck_assert_cua(cua_hashmap_find_n(map, n, p.backend_keys, backend_values, NULL));
	test_download(ctx, results, backend_results, n);
	test_download(ctx, values, backend_values, n * 4);
	for (uint64_t i = 0; i < n; i++) {
		inserted += results[i] == CUA_HASHMAP_INSERTED;
		EXPECT(results[i] == (values[i] == i ? CUA_HASHMAP_INSERTED : CUA_HASHMAP_EXISTS),
		       "pair %d: result %d, and the value is that of %d", (int)i, results[i],
		       (int)values[i]);
	}
	ck_assert_uint_eq(inserted, distinct_keys(&p));
	free(results);
	free(values);
	test_free(ctx, backend_results);
	test_free(ctx, backend_values);
	drop(ctx, &p);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* With more pairs than slots, the build fills all slots and rejects the rest. */
START_TEST(build_of_too_many)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = new_map(ctx, words[2], 7000);
	struct pairs p;
	uint64_t capacity = 0, size = 0;

	ck_assert_cua(cua_hashmap_capacity(map, &capacity));
	p = make(ctx, map, words[2], capacity + 1000, DISTINCT, 0);
	build(ctx, map, &p);
	ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
	ck_assert_cua(cua_hashmap_size(map, &size));
	/* reserved keys need no slots in the layout of words */
	ck_assert_uint_ge(size, capacity);
	ck_assert_uint_le(size, capacity + 2);
	drop(ctx, &p);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* A table larger than every cache, and as many pairs as buckets. The second insert repeats keys. */
START_TEST(inserts_by_regions)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = test_quick() ? 3000 : N_OF_REGIONS;

	for (size_t i = 0; i < 4; i += 3) {
		const uint64_t capacity =
			test_quick() ? 2 * n : (i == 0 ? 7 : 3) * (uint64_t)BUCKETS_OF_REGIONS;
		const enum data data[] = {DISTINCT, EACH_FOUR_TIMES, SKEWED, HALF_ARE_ONE};

		for (int d = 0; d < 4; d++) {
			struct cua_hashmap *map = new_map(ctx, words[i], capacity);
			struct pairs p = make(ctx, map, words[i], n, data[d],
					      test_seed("inserts_by_regions")),
				     half = p;

			half.n /= 2;
			ck_assert_cua(cua_hashmap_insert_n(map, half.n, half.backend_keys,
							   half.backend_values, NULL));
			expect_pairs(ctx, map, &half, 0);
			ck_assert_cua(cua_hashmap_insert_n(map, n, p.backend_keys, p.backend_values,
							   NULL));
			expect_pairs(ctx, map, &p, 0);
			expect_absent(ctx, map, words[i]);
			drop(ctx, &p);
			ck_assert_cua(cua_hashmap_destroy(map));
		}
	}
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hash map build");
	TCase *tcase = tcase_create("build");

	tcase_set_timeout(tcase, 600);
	tcase_add_test(tcase, builds_of_all_sizes);
	tcase_add_test(tcase, builds_of_all_data);
	tcase_add_test(tcase, builds_in_two_passes);
	tcase_add_test(tcase, build_of_nothing_clears);
	tcase_add_test(tcase, build_results);
	tcase_add_test(tcase, build_of_too_many);
	tcase_add_test(tcase, inserts_by_regions);
	suite_add_tcase(suite, tcase);
	return test_run(suite, TEST_BACKEND);
}
