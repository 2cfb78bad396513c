/* SPDX-License-Identifier: MIT */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "common.h"

#include <pthread.h>
#include <sys/mman.h>

CUA_DEFINE_MULTIMAP(words, uint32_t, uint32_t)

static struct cua_multimap *new_multimap(struct cua_context *ctx,
					 const struct cua_multimap_options *options,
					 enum cua_type key, enum cua_type value, uint64_t keys,
					 uint64_t entries)
{
	struct cua_multimap *mm = NULL;

	ck_assert_cua(cua_multimap_create(ctx, options, key, value, keys, entries, &mm));
	return mm;
}

static void expect_sizes(struct cua_multimap *mm, uint64_t pairs, uint64_t keys)
{
	uint64_t size = 99, n = 99;

	ck_assert_cua(cua_multimap_size(mm, &size));
	ck_assert_cua(cua_multimap_keys(mm, &n));
	ck_assert_uint_eq(size, pairs);
	ck_assert_uint_eq(n, keys);
}

/* ---- arguments ---- */

START_TEST(bad_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_multimap *mm = NULL, *kept = (struct cua_multimap *)&mm;
	struct cua_multimap_options options = CUA_MULTIMAP_OPTIONS_INIT;
	struct cua_multimap_view view;
	uint64_t number = 5, some[4] = {1, 2, 3, 4}, *inside, *in_map;
	uint64_t *a = test_upload(ctx, some, 32), *b = test_upload(ctx, some, 32),
		 *o = test_alloc(ctx, 64);
	uint8_t *flags = test_alloc(ctx, 32);
	const size_t huge = ~(size_t)0;

	ck_assert_status(cua_multimap_create(NULL, NULL, CUA_U64, CUA_U64, 1, 1, &kept),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, 1, 1, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U128, CUA_U64, 1, 1, &kept),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U64, CUA_NONE, 1, 1, &kept),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, 0, 1, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, 1, 0, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, huge, 1, &kept),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, 1, huge, &kept),
			 CUA_ERROR_SIZE);
	ck_assert_status(
		cua_multimap_create(ctx, NULL, CUA_U64, CUA_U64, 1, (uint64_t)1 << 40, &kept),
		CUA_ERROR_SIZE);
	options.link_size = 4;
	ck_assert_status(cua_multimap_create(ctx, &options, CUA_U64, CUA_U64, 1, 1, &kept),
			 CUA_ERROR_VALUE);
	options.link_size = 0;
	options.portable = 2;
	ck_assert_status(cua_multimap_create(ctx, &options, CUA_U64, CUA_U64, 1, 1, &kept),
			 CUA_ERROR_VALUE);
	options.portable = 0;
	options.struct_size++;
	ck_assert_status(cua_multimap_create(ctx, &options, CUA_U64, CUA_U64, 1, 1, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_ptr_eq(kept, &mm);
	mm = new_multimap(ctx, NULL, CUA_U64, CUA_U64, 10, 10);

	ck_assert_status(cua_multimap_get_view(NULL, &view), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_get_view(mm, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_multimap_get_view(mm, &view));
	ck_assert_uint_eq(view.layout, CUA_MULTIMAP_LAYOUT);
	ck_assert_uint_eq(view.capacity, 10);
	inside = view.entries;
	in_map = view.map.buckets;
	ck_assert_status(cua_multimap_clear(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_reclaim(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_status(NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_multimap_insert_n(mm, 4, a, b, NULL));

	ck_assert_status(cua_multimap_insert_n(NULL, 1, a, b, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_insert_n(mm, 1, NULL, b, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_insert_n(mm, 1, a, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_insert_n(mm, huge, a, b, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_multimap_insert_n(mm, 1, (char *)a + 4, b, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_multimap_insert_n(mm, 1, a, (char *)b + 4, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_multimap_insert_n(mm, 1, inside, b, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_insert_n(mm, 1, a, in_map, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_insert_n(mm, 4, a, b, (uint8_t *)b + 31), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_insert_n(mm, 1, a, b, (uint8_t *)view.reusable),
			 CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_multimap_insert_n(mm, 0, NULL, NULL, NULL));

	for (int i = 0; i < 2; i++) {
		enum cua_status (*fn)(struct cua_multimap *, size_t, const void *, uint64_t *) =
			i ? cua_multimap_erase_n : cua_multimap_count_n;

		ck_assert_status(fn(NULL, 1, a, o), CUA_ERROR_NULL);
		ck_assert_status(fn(mm, 1, NULL, o), CUA_ERROR_NULL);
		ck_assert_status(fn(mm, huge, a, o), CUA_ERROR_SIZE);
		ck_assert_status(fn(mm, 1, (char *)a + 4, o), CUA_ERROR_ALIGNMENT);
		ck_assert_status(fn(mm, 1, a, (void *)((char *)o + 4)), CUA_ERROR_ALIGNMENT);
		ck_assert_status(fn(mm, 4, a, a + 3), CUA_ERROR_OVERLAP);
		ck_assert_status(fn(mm, 1, a, inside), CUA_ERROR_OVERLAP);
		ck_assert_status(fn(mm, 1, in_map, o), CUA_ERROR_OVERLAP);
		ck_assert_cua(fn(mm, 0, NULL, NULL));
	}
	ck_assert_status(cua_multimap_count_n(mm, 1, a, NULL), CUA_ERROR_NULL);

	ck_assert_status(cua_multimap_retrieve_n(NULL, 1, a, 4, o, b, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, NULL, 4, o, b, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, NULL, b, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, b, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve_n(mm, 0, NULL, 0, NULL, NULL, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve_n(mm, huge, a, 4, o, b, &number), CUA_ERROR_SIZE);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, huge, o, b, &number), CUA_ERROR_SIZE);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, (void *)((char *)o + 4), b, &number),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, b, (void *)((char *)o + 36)),
			 CUA_ERROR_ALIGNMENT);
	/* the overlap is with offset n of the n + 1 offsets */
	ck_assert_status(cua_multimap_retrieve_n(mm, 2, a, 4, b - 0, b + 2, &number),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, a, &number), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, b, o + 1), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, inside, &number),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_retrieve_n(mm, 1, a, 4, o, b, inside), CUA_ERROR_OVERLAP);

	ck_assert_status(cua_multimap_retrieve(NULL, 4, o, b, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve(mm, 4, NULL, b, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve(mm, 4, o, NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve(mm, 4, o, b, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_multimap_retrieve(mm, huge, o, b, &number), CUA_ERROR_SIZE);
	ck_assert_status(cua_multimap_retrieve(mm, 4, o, o + 3, &number), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_retrieve(mm, 4, o, b, o), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_multimap_retrieve(mm, 1, inside, b, &number), CUA_ERROR_OVERLAP);

	for (int i = 0; i < 2; i++) {
		enum cua_status (*fn)(struct cua_multimap *, uint64_t *) =
			i ? cua_multimap_size : cua_multimap_keys;

		ck_assert_status(fn(NULL, &number), CUA_ERROR_NULL);
		ck_assert_status(fn(mm, NULL), CUA_ERROR_NULL);
		ck_assert_status(fn(mm, (void *)((char *)a + 4)), CUA_ERROR_ALIGNMENT);
		ck_assert_status(fn(mm, in_map), CUA_ERROR_OVERLAP);
	}
	/* none of these calls has changed the multimap */
	ck_assert_uint_eq(number, 5);
	expect_sizes(mm, 4, 4);
	ck_assert_cua(cua_multimap_status(mm));
	ck_assert_cua(cua_multimap_destroy(mm));
	ck_assert_cua(cua_multimap_destroy(NULL));
	test_free(ctx, a);
	test_free(ctx, b);
	test_free(ctx, o);
	test_free(ctx, flags);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- against a model: pair i is (key_bits(number), value_bits(i)) ---- */

static uint64_t key_bits(uint64_t number)
{
	static const uint64_t unusual[] = {0, ~(uint64_t)0, 1,
					   (uint64_t)1 << 63 | (uint64_t)1 << 31};

	return number < 4 ? unusual[number] : number * 0x9e3779b97f4a7c15u;
}

static uint64_t value_bits(uint64_t i)
{
	return i | i << 32;
}

static void put(void *array, uint32_t size, uint64_t i, uint64_t bits)
{
	if (size == 4)
		((uint32_t *)array)[i] = (uint32_t)bits;
	else
		((uint64_t *)array)[i] = bits;
}

struct model {
	struct cua_context *ctx;
	struct cua_multimap *mm;
	uint32_t ks, vs;
	uint64_t keys, entries;  /* number of different keys; capacity */
	uint64_t n;              /* pairs ever inserted */
	uint64_t *number, *call; /* of each pair: its key, and the call that inserted it */
	uint8_t *alive;
	uint64_t *count; /* of each key */
	uint64_t live, used, calls;
};

/* Checks a value of this key. Returns its number. */
static uint64_t check_value(const struct model *m, const void *values, uint64_t at, uint64_t number,
			    uint8_t *seen)
{
	uint64_t bits =
		m->vs == 4 ? ((const uint32_t *)values)[at] : ((const uint64_t *)values)[at];
	uint64_t i = (uint32_t)bits;

	EXPECT(m->vs == 4 || bits == value_bits(i), "half a value");
	EXPECT(i < m->n && m->alive[i], "a value that was never inserted, or was erased");
	EXPECT(m->number[i] == number, "a value of another key");
	EXPECT(!seen[i]++, "a value is there twice");
	return i;
}

/* Asks for all keys, for an absent key, and for some keys twice. */
static void check_keys(struct model *m, uint64_t *seed)
{
	const uint64_t asked = m->keys + 1 + test_random(seed) % 700;
	uint64_t *number = test_malloc(asked * 8), *counts = test_malloc(asked * 8 + 8);
	void *keys = test_malloc(asked * m->ks), *k, *c = test_alloc(m->ctx, asked * 8 + 8);
	uint64_t wanted = 0, total = 0, max, *where = test_alloc(m->ctx, 8);
	uint8_t *seen = test_malloc(m->n + 1);
	void *v, *values;

	for (uint64_t i = 0; i < asked; i++) {
		number[i] = i <= m->keys ? i : test_random(seed) % m->keys;
		put(keys, m->ks, i, key_bits(number[i]));
		wanted += m->count[number[i]];
	}
	k = test_upload(m->ctx, keys, asked * m->ks);
	ck_assert_cua(cua_multimap_count_n(m->mm, asked, k, c));
	test_download(m->ctx, counts, c, asked * 8);
	for (uint64_t i = 0; i < asked; i++)
		EXPECT(counts[i] == m->count[number[i]], "a count is wrong");
	ck_assert_cua(cua_multimap_retrieve_n(m->mm, asked, k, 0, c, NULL, &total));
	ck_assert_uint_eq(total, wanted);
	v = test_alloc(m->ctx, wanted * m->vs + 16);
	values = test_malloc(wanted * m->vs + 16);
	for (int part = 0; part < 3; part++) {
		max = part == 0   ? wanted + 1
		      : part == 1 ? wanted
				  : test_random(seed) % (wanted + 1);
		ck_assert_cua(
			cua_fill(m->ctx, v, wanted * m->vs / 4 + 2, 4, &(uint32_t){0xabcdabcd}));
		ck_assert_cua(
			cua_multimap_retrieve_n(m->mm, asked, k, max, c, v, part ? &total : where));
		if (!part)
			test_download(m->ctx, &total, where, 8);
		ck_assert_uint_eq(total, wanted);
		test_download(m->ctx, counts, c, asked * 8 + 8);
		test_download(m->ctx, values, v, wanted * m->vs + 8);
		total = 0;
		for (uint64_t i = 0; i < asked; i++) {
			uint64_t before = ~(uint64_t)0;

			EXPECT(counts[i] == (total < max ? total : max), "an offset is wrong");
			total += m->count[number[i]];
			EXPECT(counts[i + 1] == (total < max ? total : max), "an offset is wrong");
			memset(seen, 0, m->n);
			for (uint64_t at = counts[i]; at < counts[i + 1]; at++) {
				uint64_t call =
					m->call[check_value(m, values, at, number[i], seen)];

				EXPECT(call <= before, "an older value comes first");
				before = call;
			}
		}
		/* nothing is written past the end */
		for (uint64_t at = (max < wanted ? max : wanted) * m->vs / 4;
		     at < wanted * m->vs / 4 + 2; at++)
			EXPECT(((uint32_t *)values)[at] == 0xabcdabcd, "a value beyond the end");
	}
	test_free(m->ctx, k);
	test_free(m->ctx, c);
	test_free(m->ctx, v);
	test_free(m->ctx, where);
	free(number);
	free(counts);
	free(keys);
	free(seen);
	free(values);
}

static void check_all(struct model *m, uint64_t *seed)
{
	uint64_t max = test_random(seed) % 2 ? m->live : test_random(seed) % (m->live + 1), n = 0;
	void *k = test_alloc(m->ctx, m->live * m->ks + 8),
	     *v = test_alloc(m->ctx, m->live * m->vs + 8);
	void *keys = test_malloc(m->live * m->ks + 8), *values = test_malloc(m->live * m->vs + 8);
	uint8_t *seen = calloc(m->n + 1, 1);
	uint64_t distinct = 0;

	ck_assert_ptr_nonnull(seen);
	for (uint64_t i = 0; i < m->keys; i++)
		distinct += m->count[i] != 0;
	expect_sizes(m->mm, m->live, distinct);
	ck_assert_cua(cua_multimap_status(m->mm));
	ck_assert_cua(cua_multimap_retrieve(m->mm, max, max ? k : NULL, max ? v : NULL, &n));
	ck_assert_uint_eq(n, m->live);
	test_download(m->ctx, keys, k, max * m->ks);
	test_download(m->ctx, values, v, max * m->vs);
	for (uint64_t i = 0; i < max; i++) {
		uint64_t number = m->number[*(uint32_t *)((char *)values + i * m->vs) % m->n],
			 bits = 0;

		check_value(m, values, i, number, seen);
		memcpy(&bits, (char *)keys + i * m->ks, m->ks);
		EXPECT(bits == (m->ks == 4 ? (uint32_t)key_bits(number) : key_bits(number)),
		       "a pair has another key");
	}
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	free(keys);
	free(values);
	free(seen);
}

static void insert_some(struct model *m, uint64_t *seed, uint64_t some)
{
	void *keys = test_malloc(some * m->ks), *values = test_malloc(some * m->vs), *k, *v;
	uint8_t *results = test_malloc(some), *r = test_alloc(m->ctx, some);

	for (uint64_t j = 0; j < some; j++) {
		uint64_t i = m->n + j;

		/* half of them have keys from a small set */
		m->number[i] =
			test_random(seed) % (test_random(seed) % 2 ? m->keys : m->keys / 50 + 1);
		m->call[i] = m->calls;
		m->alive[i] = 1;
		m->count[m->number[i]]++;
		put(keys, m->ks, j, key_bits(m->number[i]));
		put(values, m->vs, j, value_bits(i));
	}
	k = test_upload(m->ctx, keys, some * m->ks);
	v = test_upload(m->ctx, values, some * m->vs);
	ck_assert_cua(cua_multimap_insert_n(m->mm, some, k, v, m->calls % 2 ? r : NULL));
	if (m->calls % 2) {
		test_download(m->ctx, results, r, some);
		for (uint64_t j = 0; j < some; j++)
			EXPECT(results[j] == CUA_MULTIMAP_INSERTED, "an insert found no room");
	}
	m->calls++;
	m->n += some;
	m->live += some;
	m->used += some;
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	test_free(m->ctx, r);
	free(keys);
	free(values);
	free(results);
}

/* Of several elements with the same key, a single element erases all pairs. */
static void erase_some(struct model *m, uint64_t *seed, uint64_t some)
{
	uint64_t *number = test_malloc(some * 8), *removed = test_malloc(some * 8);
	uint64_t *sum = calloc(m->keys + 1, 8), *r = test_alloc(m->ctx, some * 8);
	void *keys = test_malloc(some * m->ks), *k;
	int wanted = test_random(seed) % 4 != 0;

	ck_assert_ptr_nonnull(sum);
	for (uint64_t j = 0; j < some; j++) {
		number[j] = test_random(seed) % (m->keys + 1);
		put(keys, m->ks, j, key_bits(number[j]));
	}
	k = test_upload(m->ctx, keys, some * m->ks);
	ck_assert_cua(cua_multimap_erase_n(m->mm, some, k, wanted ? r : NULL));
	test_download(m->ctx, removed, r, some * 8);
	for (uint64_t j = 0; j < some && wanted; j++) {
		EXPECT(!removed[j] || removed[j] == m->count[number[j]],
		       "not all of a key was removed");
		sum[number[j]] += removed[j];
	}
	for (uint64_t j = 0; j < some; j++) {
		uint64_t i = number[j];

		EXPECT(!wanted || sum[i] == m->count[i] || !m->count[i],
		       "a key was removed twice, or not");
		m->live -= m->count[i];
		m->count[i] = 0;
	}
	for (uint64_t i = 0; i < m->n; i++)
		m->alive[i] = m->alive[i] && m->count[m->number[i]];
	test_free(m->ctx, k);
	test_free(m->ctx, r);
	free(number);
	free(removed);
	free(sum);
	free(keys);
}

static void against_model(struct cua_context *ctx, uint64_t *seed,
			  const struct cua_multimap_options *options, uint32_t ks, uint32_t vs,
			  uint64_t keys, uint64_t entries, int steps)
{
	struct model m = {.ctx = ctx, .ks = ks, .vs = vs, .keys = keys, .entries = entries};
	const uint64_t most = entries * (uint64_t)steps + 1;

	m.mm = new_multimap(ctx, options, ks == 4 ? CUA_U32 : CUA_U64, vs == 4 ? CUA_U32 : CUA_U64,
			    keys, entries);
	m.number = test_malloc(most * 8);
	m.call = test_malloc(most * 8);
	m.alive = test_malloc(most);
	m.count = calloc(keys + 1, 8);
	ck_assert_ptr_nonnull(m.count);
	check_keys(&m, seed);
	for (int step = 0; step < steps; step++) {
		uint64_t left;

		if (test_random(seed) % 3 == 0) {
			ck_assert_cua(cua_multimap_reclaim(m.mm));
			m.used = m.live;
		}
		left = entries - m.used;
		if (left)
			insert_some(&m, seed,
				    test_random(seed) % 3 ? 1 + test_random(seed) % left : left);
		if (step % 3 == 1)
			check_keys(&m, seed);
		if (test_random(seed) % 3)
			erase_some(&m, seed, 1 + test_random(seed) % keys);
		if (step % 3 == 2 && m.n)
			check_all(&m, seed);
		if (test_random(seed) % 9 == 0) {
			ck_assert_cua(cua_multimap_clear(m.mm));
			memset(m.alive, 0, m.n);
			memset(m.count, 0, keys * 8);
			m.live = m.used = 0;
		}
	}
	check_keys(&m, seed);
	ck_assert_cua(cua_multimap_destroy(m.mm));
	free(m.number);
	free(m.call);
	free(m.alive);
	free(m.count);
}

START_TEST(model)
{
	uint64_t seed = test_seed("model");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int i = 0; i < 16; i++) {
		struct cua_multimap_options options = CUA_MULTIMAP_OPTIONS_INIT;
		uint32_t ks = i & 1 ? 4 : 8, vs = i & 2 ? 4 : 8;
		int big = !test_quick() && (i & 8);

		options.seed = test_random(&seed) % 2 ? 0 : test_random(&seed);
		options.link_size = i & 4 ? 8 : 0;
		options.portable = i & 8 ? 1 : 0;
		against_model(ctx, &seed, options.seed ? &options : NULL, ks, vs, 1, 1, 5);
		against_model(ctx, &seed, &options, ks, vs, 5, 40, 12);
		against_model(ctx, &seed, &options, ks, vs, 300, 2000, test_traced() ? 4 : 12);
		if (big)
			against_model(ctx, &seed, &options, ks, vs, 20000, 50000, 6);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- full ---- */

/*
 * Either the pool has room for `entries` of n pairs with the same key, or the map is full after
 * some of n keys.
 */
START_TEST(full)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum { N = 3000 };
	static const uint64_t entries[] = {1, 31, 1000, 2999};
	uint64_t keys[N], counts[N], stored, slots = 0, size = 0;
	uint8_t results[N], *r = test_alloc(ctx, N);
	uint64_t *k, *v, *c = test_alloc(ctx, N * 8);

	for (size_t i = 0; i < N; i++)
		keys[i] = 7;
	v = test_upload(ctx, keys, N * 8);
	for (size_t i = 0; i < N; i++)
		keys[i] = key_bits(i);
	k = test_upload(ctx, keys, N * 8);
	for (int i = 0; i < 8; i++) {
		struct cua_multimap *mm =
			new_multimap(ctx, NULL, CUA_U64, CUA_U64, N, entries[i % 4]);

		ck_assert_cua(cua_multimap_insert_n(mm, N, i < 4 ? k : v, v, r));
		test_download(ctx, results, r, N);
		stored = 0;
		for (size_t j = 0; j < N; j++) {
			stored += results[j] == CUA_MULTIMAP_INSERTED;
			EXPECT(results[j] == CUA_MULTIMAP_INSERTED ||
				       results[j] == CUA_MULTIMAP_FULL,
			       "result");
		}
		ck_assert_uint_eq(stored, entries[i % 4]);
		ck_assert_status(cua_multimap_status(mm), CUA_ERROR_FULL);
		expect_sizes(mm, stored, i < 4 ? stored : 1);
		ck_assert_cua(cua_multimap_count_n(mm, N, k, c));
		test_download(ctx, counts, c, N * 8);
		for (size_t j = 0; j < N && i < 4; j++)
			EXPECT(counts[j] == (results[j] == CUA_MULTIMAP_INSERTED),
			       "a count of a full pool");
		/* erased entries are reusable after the next reclaim; the status is sticky */
		ck_assert_cua(cua_multimap_erase_n(mm, N, i < 4 ? k : v, NULL));
		expect_sizes(mm, 0, 0);
		ck_assert_cua(cua_multimap_insert_n(mm, 1, k, v, r));
		test_download(ctx, results, r, 1);
		ck_assert_int_eq(results[0], CUA_MULTIMAP_FULL);
		ck_assert_cua(cua_multimap_reclaim(mm));
		ck_assert_cua(cua_multimap_insert_n(mm, entries[i % 4], i < 4 ? k : v, v, NULL));
		expect_sizes(mm, stored, i < 4 ? stored : 1);
		ck_assert_status(cua_multimap_status(mm), CUA_ERROR_FULL);
		ck_assert_cua(cua_multimap_clear(mm));
		ck_assert_cua(cua_multimap_status(mm));
		expect_sizes(mm, 0, 0);
		ck_assert_cua(cua_multimap_insert_n(mm, entries[i % 4], k, v, NULL));
		ck_assert_cua(cua_multimap_status(mm));
		ck_assert_cua(cua_multimap_destroy(mm));
	}
	/* the map is full: entries are returned, and serve existing keys */
	for (int i = 0; i < 4; i++) {
		struct cua_multimap_options options = {.struct_size = sizeof(options),
						       .portable = i & 1};
		struct cua_multimap *mm = new_multimap(ctx, &options, CUA_U64, CUA_U64, 50, N);

		ck_assert_cua(cua_multimap_insert_n(mm, N - 100, k, v, r));
		ck_assert_status(cua_multimap_status(mm), CUA_ERROR_FULL);
		ck_assert_cua(cua_multimap_keys(mm, &slots));
		ck_assert_uint_ge(slots, 50);
		ck_assert_uint_lt(slots, 500);
		expect_sizes(mm, slots, slots);
		test_download(ctx, results, r, N - 100);
		for (size_t j = 0; j < N - 100; j++)
			if (results[j] == CUA_MULTIMAP_INSERTED)
				keys[N - 1] = keys[j];
		for (size_t j = 0; j < N; j++)
			counts[j] = keys[N - 1];
		ck_assert_cua(cua_copy(ctx, c, counts, N * 8));
		if (i & 2)
			ck_assert_cua(cua_multimap_reclaim(mm));
		ck_assert_cua(cua_multimap_insert_n(mm, N - slots, c, v, r));
		test_download(ctx, results, r, N - slots);
		for (size_t j = 0; j < N - slots; j++)
			EXPECT(results[j] == CUA_MULTIMAP_INSERTED,
			       "an entry that was given back is lost");
		ck_assert_cua(cua_multimap_insert_n(mm, 1, c, v, r));
		test_download(ctx, results, r, 1);
		ck_assert_int_eq(results[0], CUA_MULTIMAP_FULL);
		ck_assert_cua(cua_multimap_size(mm, &size));
		ck_assert_uint_eq(size, N);
		ck_assert_cua(cua_multimap_destroy(mm));
	}
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, c);
	test_free(ctx, r);
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA
/* ---- the functions that the macro defines, by a single thread ---- */

#define PATTERNS 5

#define DEFINE_LANES(name, K, V)                                                                   \
	CUA_DEFINE_MULTIMAP(name, K, V)                                                            \
	/* With a view of another multimap: nothing is found, and inserts are refused. */          \
	static int name##_refuses(const struct cua_multimap_view *view)                            \
	{                                                                                          \
		V values[2] = {7, 7};                                                              \
		K key = 7;                                                                         \
                                                                                                   \
		return name##_insert(view, 1, 2) == CUA_MULTIMAP_UNSUPPORTED &&                    \
		       name##_insert_warp(view, 1, 1, 1, 2) == CUA_MULTIMAP_UNSUPPORTED &&         \
		       name##_insert_warp(view, 1, 0, 1, 2) == 0 && name##_first(view, 1) == 0 &&  \
		       name##_count(view, 1) == 0 && name##_contains(view, 1) == 0 &&              \
		       name##_retrieve(view, 1, 2, values) == 0 && name##_erase(view, 1) == 0 &&   \
		       name##_slots(view) == 0 && name##_at(view, 0, &key) == 0 &&                 \
		       values[0] == 7 && key == 7;                                                 \
	}                                                                                          \
	static int name##_stays_off(const struct cua_multimap_view *view, uint64_t cursor)         \
	{                                                                                          \
		return name##_next(view, cursor) == 0 && name##_value(view, cursor) == 0;          \
	}                                                                                          \
	/* All patterns as keys and as values, by lanes and by the host's call. */                 \
	static void name##_patterns(struct cua_context *ctx, uint32_t link_size)                   \
	{                                                                                          \
		struct cua_multimap_options options = {.struct_size = sizeof(options),             \
						       .link_size = link_size};                    \
		struct cua_multimap *mm = new_multimap(                                            \
			ctx, &options, sizeof(K) == 4 ? CUA_U32 : CUA_U64,                         \
			sizeof(V) == 4 ? CUA_U32 : CUA_U64, PATTERNS, PATTERNS * PATTERNS);        \
		struct cua_multimap_view view;                                                     \
		K *keys = test_alloc(ctx, PATTERNS * PATTERNS * sizeof(K)), key;                   \
		V *values = test_alloc(ctx, PATTERNS * PATTERNS * sizeof(V)), some[PATTERNS + 1];  \
		unsigned char seen[PATTERNS * PATTERNS] = {0};                                     \
		uint64_t n = 0, cursor, met = 0;                                                   \
                                                                                                   \
		ck_assert_cua(cua_multimap_get_view(mm, &view));                                   \
		for (int v = 0; v < PATTERNS; v++)                                                 \
			for (int k = 0; k < PATTERNS; k++)                                         \
				EXPECT(name##_insert(&view, (K)key_bits(k), (V)key_bits(v)) ==     \
					       CUA_MULTIMAP_INSERTED,                              \
				       "an insert found no room");                                 \
		for (int k = 0; k < PATTERNS; k++)                                                 \
			for (uint64_t max = 0; max <= PATTERNS; max++) {                           \
				memset(some, 0xa5, sizeof(some));                                  \
				EXPECT(name##_retrieve(&view, (K)key_bits(k), max, some) ==        \
					       PATTERNS,                                           \
				       "a retrieve returns another number");                       \
				for (uint64_t v = 0; v < max; v++)                                 \
					EXPECT(some[v] == (V)key_bits(PATTERNS - 1 - v),           \
					       "not newest first");                                \
				EXPECT(some[max] == (V)0xa5a5a5a5a5a5a5a5u,                        \
				       "a value beyond the end");                                  \
			}                                                                          \
		EXPECT(name##_retrieve(&view, (K)0x77, 1, some) == 0, "an absent key was found");  \
		for (uint64_t i = 0; i < name##_slots(&view); i++) {                               \
			cursor = name##_at(&view, i, &key);                                        \
			EXPECT(!cursor || (cursor == name##_first(&view, key) && ++met),           \
			       "a key in a wrong slot");                                           \
		}                                                                                  \
		EXPECT(met == PATTERNS, "not each key has one slot");                              \
		for (uint64_t max = 0; max <= PATTERNS * PATTERNS; max += 6) {                     \
			memset(keys, 0xa5, PATTERNS *PATTERNS * sizeof(K));                        \
			memset(values, 0xa5, PATTERNS *PATTERNS * sizeof(V));                      \
			memset(seen, 0, sizeof(seen));                                             \
			ck_assert_cua(cua_multimap_retrieve(mm, max, keys, values, &n));           \
			ck_assert_uint_eq(n, PATTERNS *PATTERNS);                                  \
			for (uint64_t i = 0; i < max; i++) {                                       \
				int k = 0, v = 0;                                                  \
                                                                                                   \
				while (k < PATTERNS && keys[i] != (K)key_bits(k))                  \
					k++;                                                       \
				while (v < PATTERNS && values[i] != (V)key_bits(v))                \
					v++;                                                       \
				EXPECT(k < PATTERNS && v < PATTERNS && !seen[k * PATTERNS + v]++,  \
				       "a pair that is not there, or is twice");                   \
			}                                                                          \
			for (uint64_t i = max; i < PATTERNS * PATTERNS; i++)                       \
				EXPECT(keys[i] == (K)0xa5a5a5a5a5a5a5a5u &&                        \
					       values[i] == (V)0xa5a5a5a5a5a5a5a5u,                \
				       "a pair beyond the end");                                   \
		}                                                                                  \
		for (int k = 0; k < PATTERNS; k++)                                                 \
			EXPECT(name##_erase(&view, (K)key_bits(k)) == PATTERNS,                    \
			       "a key did not go as a whole");                                     \
		expect_sizes(mm, 0, 0);                                                            \
		test_free(ctx, keys);                                                              \
		test_free(ctx, values);                                                            \
		ck_assert_cua(cua_multimap_destroy(mm));                                           \
	}                                                                                          \
	/* `room` entries from number `first` on, in the test's own memory, touched only there. */ \
	static int name##_far(struct cua_context *ctx, uint32_t link_size, uint64_t first,         \
			      uint64_t room)                                                       \
	{                                                                                          \
		struct cua_multimap_pool pool;                                                     \
		struct cua_multimap_view view;                                                     \
		struct cua_hashmap *map = NULL;                                                    \
		uint64_t n = 0, keys = 0, at = 0, last = 0;                                        \
		const K key = (K)key_bits(3);                                                      \
		const size_t size = sizeof(V) + link_size == 8 ? 8 : 16,                           \
			     bytes = (first + room) * size;                                        \
		V there;                                                                           \
		char *p;                                                                           \
                                                                                                   \
		memset(&view, 0, sizeof(view));                                                    \
		memset(&pool, 0, sizeof(pool));                                                    \
		pool.taken = first;                                                                \
		view.pool = &pool;                                                                 \
		view.capacity = first + room;                                                      \
		view.value_size = sizeof(V);                                                       \
		view.layout = CUA_MULTIMAP_LAYOUT;                                                 \
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,                                      \
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);                      \
		if (p == (char *)MAP_FAILED)                                                       \
			return 0;                                                                  \
		view.entries = p;                                                                  \
		ck_assert_cua(cua_hashmap_create(ctx, NULL, sizeof(K) == 4 ? CUA_U32 : CUA_U64,    \
						 link_size == 4 ? CUA_U32 : CUA_U64, 1, &map));    \
		ck_assert_cua(cua_hashmap_get_view(map, &view.map));                               \
		ck_assert_int_eq(name##_insert(&view, key, (V)key_bits(3)),                        \
				 CUA_MULTIMAP_INSERTED);                                           \
		ck_assert_uint_eq(name##_first(&view, key), first + 1);                            \
		for (n = 1; n < room / 2; n++)                                                     \
			ck_assert_int_eq(name##_insert_warp(&view, 1, 1, key, (V)n),               \
					 CUA_MULTIMAP_INSERTED);                                   \
		/* the list has the entries in order, down to the first */                         \
		for (at = name##_first(&view, key); at; at = name##_next(&view, at)) {             \
			ck_assert_uint_eq(at, first + n--);                                        \
			memcpy(&there, p + (at - 1) * size, sizeof(there));                        \
			ck_assert_uint_eq(there, n ? (V)n : (V)key_bits(3));                       \
			ck_assert_uint_eq(name##_value(&view, at), there);                         \
		}                                                                                  \
		ck_assert_uint_eq(n, 0);                                                           \
		ck_assert_uint_eq(name##_count(&view, key), room / 2);                             \
		ck_assert_uint_eq(name##_erase(&view, key), room / 2);                             \
		ck_assert_uint_eq(pool.dropped, room / 2);                                         \
		ck_assert_uint_eq(name##_count(&view, key), 0);                                    \
		/* the map fills before the pool: an entry is returned, and is used at the end */  \
		for (n = 0;                                                                        \
		     name##_insert(&view, (K)key_bits(4 + n), (V)n) == CUA_MULTIMAP_INSERTED; n++) \
			ck_assert_uint_lt(n, room / 2);                                            \
		keys = n;                                                                          \
		ck_assert_uint_ne(pool.spare, 0);                                                  \
		ck_assert_uint_eq(pool.rejected, 0);                                               \
		for (; name##_insert(&view, (K)key_bits(4), (V)n) == CUA_MULTIMAP_INSERTED; n++)   \
			last = name##_first(&view, (K)key_bits(4));                                \
		ck_assert_uint_eq(n, room - room / 2);                                             \
		ck_assert_uint_eq(pool.rejected, 1);                                               \
		ck_assert_uint_eq(last, first + room / 2 + keys + 1);                              \
		ck_assert_uint_eq(name##_value(&view, last), (V)(n - 1));                          \
		ck_assert_uint_eq(name##_next(&view, last), first + room);                         \
		ck_assert_uint_eq(name##_erase(&view, (K)key_bits(4)), n - keys + 1);              \
		ck_assert_cua(cua_hashmap_destroy(map));                                           \
		munmap(p, bytes);                                                                  \
		return 1;                                                                          \
	}

DEFINE_LANES(lanes_44, uint32_t, uint32_t)
DEFINE_LANES(lanes_48, uint32_t, uint64_t)
DEFINE_LANES(lanes_84, uint64_t, uint32_t)
DEFINE_LANES(lanes_88, uint64_t, uint64_t)

START_TEST(lanes_patterns)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (uint32_t link_size = 0; link_size <= 8; link_size += 8) {
		lanes_44_patterns(ctx, link_size);
		lanes_48_patterns(ctx, link_size);
		lanes_84_patterns(ctx, link_size);
		lanes_88_patterns(ctx, link_size);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Functions of other sizes, and a view of another layout: nothing changes. */
START_TEST(lanes_of_others)
{
	static int (*const refuses[4])(const struct cua_multimap_view *view) = {
		lanes_44_refuses, lanes_48_refuses, lanes_84_refuses, lanes_88_refuses};
	static int (*const stays_off[4])(const struct cua_multimap_view *view, uint64_t cursor) = {
		lanes_44_stays_off, lanes_48_stays_off, lanes_84_stays_off, lanes_88_stays_off};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	enum { ENTRIES = 16 };

	for (int i = 0; i < 8; i++) {
		struct cua_multimap_options options = {.struct_size = sizeof(options),
						       .link_size = i & 4 ? 8 : 0};
		struct cua_multimap *mm = new_multimap(ctx, &options, i & 2 ? CUA_U64 : CUA_U32,
						       i & 1 ? CUA_U64 : CUA_U32, 10, ENTRIES);
		const uint64_t keys[2] = {1, 1},
			       pairs[2] = {0xfefefefefefefefeu, 0xfefefefefefefefeu};
		const uint32_t narrow[4] = {1, 1};
		size_t bytes = ENTRIES * (i & 5 ? 16 : 8);
		void *k = test_upload(ctx, i & 2 ? (const void *)keys : narrow, 16),
		     *v = test_upload(ctx, pairs, 16);
		char *entries = test_malloc(bytes);
		struct cua_multimap_view view, other;
		struct cua_multimap_pool pool;

		ck_assert_cua(cua_multimap_get_view(mm, &view));
		memset(view.entries, 0xa5, bytes);
		ck_assert_cua(cua_multimap_insert_n(mm, 2, k, v, NULL));
		memcpy(entries, view.entries, bytes);
		pool = *view.pool;
		for (int f = 0; f < 4; f++) {
			for (int o = 0; o < 4; o++) {
				other = view;
				other.layout += o == 1 ? 1 : o == 2 ? ~0u : 0;
				other.map.layout += o == 3 ? 2 : 0;
				ck_assert_int_eq(refuses[f](&other), f != (i & 3) || o);
				ck_assert_int_eq(stays_off[f](&other, 2),
						 ((f ^ i) & 1) || o == 1 || o == 2);
				if (f != (i & 3) || o)
					ck_assert_mem_eq(&pool, view.pool, sizeof(pool));
				/* only the matching functions have inserted, searched and erased */
				ck_assert_cua(cua_multimap_clear(mm));
				ck_assert_cua(cua_multimap_insert_n(mm, 2, k, v, NULL));
				ck_assert_mem_eq(&pool, view.pool, sizeof(pool));
				if (f != (i & 3) || o)
					ck_assert_mem_eq(entries, view.entries, bytes);
				memcpy(view.entries, entries, bytes);
			}
		}
		expect_sizes(mm, 2, 1);
		test_free(ctx, k);
		test_free(ctx, v);
		free(entries);
		ck_assert_cua(cua_multimap_destroy(mm));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Entries whose numbers have 31 bits and more, and the last entries of 4-byte links. */
START_TEST(lanes_far)
{
	const uint64_t most_of_4 = ((uint64_t)1 << 31) - 2, room = 200;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int done = 0;

	done += lanes_44_far(ctx, 4, most_of_4 - room, room);
	done += lanes_48_far(ctx, 4, most_of_4 - room, room);
	done += lanes_84_far(ctx, 4, most_of_4 - room, room);
	done += lanes_88_far(ctx, 4, most_of_4 - room, room);
	for (int bits = 31; bits <= 32; bits++) {
		const uint64_t first = ((uint64_t)1 << bits) - room / 4;

		done += lanes_44_far(ctx, 8, first, room);
		done += lanes_48_far(ctx, 8, first, room);
		done += lanes_84_far(ctx, 8, first, room);
		done += lanes_88_far(ctx, 8, first, room);
	}
	if (done < 12)
		printf("lanes_far: %d of 12 skipped, too few addresses\n", 12 - done);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- host threads through the inline functions ---- */

#define THREADS 4
#define KEYS 3

struct thread {
	pthread_t id;
	struct cua_multimap_view view;
	uint32_t number, rounds;
	uint64_t inserted, erased, wrong;
};

/* Inserts number << 24 | i with growing i; sometimes searches and erases. */
static void *mix_main(void *arg)
{
	struct thread *t = arg;

	for (uint32_t i = 0; i < t->rounds; i++) {
		uint32_t key = i % KEYS, last[THREADS];

		t->wrong +=
			words_insert(&t->view, key, t->number << 24 | i) != CUA_MULTIMAP_INSERTED;
		t->inserted++;
		if (i % 16 == t->number) {
			for (int j = 0; j < THREADS; j++)
				last[j] = t->rounds;
			for (uint64_t at = words_first(&t->view, key); at;
			     at = words_next(&t->view, at)) {
				uint32_t value = words_value(&t->view, at), who = value >> 24;

				t->wrong += who >= THREADS || (value & 0xffffff) % KEYS != key ||
					    (value & 0xffffff) >= last[who % THREADS];
				last[who % THREADS] = value & 0xffffff;
			}
		}
		if (i % 61 == 60)
			t->erased += words_erase(&t->view, (i / 61) % KEYS);
	}
	return NULL;
}

START_TEST(threads_mix)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint32_t rounds = test_quick() ? 3000 : 30000;
	struct cua_multimap *mm =
		new_multimap(ctx, NULL, CUA_U32, CUA_U32, KEYS, (uint64_t)rounds * THREADS);

	for (int again = 0; again < 2; again++) {
		struct thread threads[THREADS];
		uint64_t inserted = 0, erased = 0, size = 0, all = 0;

		memset(threads, 0, sizeof(threads));
		for (uint32_t i = 0; i < THREADS; i++) {
			ck_assert_cua(cua_multimap_get_view(mm, &threads[i].view));
			threads[i].number = i;
			threads[i].rounds = rounds;
			ck_assert_int_eq(
				pthread_create(&threads[i].id, NULL, mix_main, &threads[i]), 0);
		}
		for (int i = 0; i < THREADS; i++)
			ck_assert_int_eq(pthread_join(threads[i].id, NULL), 0);
		for (int i = 0; i < THREADS; i++) {
			ck_assert_uint_eq(threads[i].wrong, 0);
			inserted += threads[i].inserted;
			erased += threads[i].erased;
		}
		for (uint32_t key = 0; key < KEYS; key++)
			all += words_count(&threads[0].view, key);
		ck_assert_uint_eq(all, inserted - erased);
		ck_assert_cua(cua_multimap_size(mm, &size));
		ck_assert_uint_eq(size, all);
		ck_assert_cua(cua_multimap_status(mm));
		/* all pairs are erased, and their entries are used once more */
		for (uint32_t key = 0; key < KEYS; key++)
			all -= words_erase(&threads[0].view, key);
		ck_assert_uint_eq(all, 0);
		ck_assert_cua(cua_multimap_reclaim(mm));
	}
	ck_assert_cua(cua_multimap_destroy(mm));
	cua_context_destroy(ctx);
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("multimap");
	TCase *tcase = tcase_create("multimap");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, bad_arguments);
	tcase_add_test(tcase, model);
	tcase_add_test(tcase, full);
#if !TEST_CUDA
	tcase_add_test(tcase, lanes_patterns);
	tcase_add_test(tcase, lanes_of_others);
	tcase_add_test(tcase, lanes_far);
	tcase_add_test(tcase, threads_mix);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
