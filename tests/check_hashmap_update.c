/* SPDX-License-Identifier: MIT */
/*
 * Calls that change values: update, compare-exchange, and the calls that return the old values.
 */
#include "hashmap_pairs.h"

#include <unistd.h>

/*
 * Six elements for each key; half of the keys are absent. All expect the present value, and each
 * has its own new value. A single element of each key succeeds; all other elements return the value
 * that it stored. Then all elements expect an absent value.
 */
static void compare_exchange_all(struct cua_context *ctx, int c, uint32_t portable)
{
	const size_t half = 3000, n = 12 * half;
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = portable};
	struct pair_map m = new_pair_map(ctx, c, half, &o);
	struct pair *pairs = numbered_pairs(2 * half, m.ks, m.vs, 0),
		    *given = test_malloc(n * sizeof(*given)),
		    *wanted = test_malloc(n * sizeof(*wanted));
	char *seen = test_malloc(n * m.vs);
	uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n);
	size_t *winner = test_malloc(half * sizeof(*winner));
	void *k, *e, *d;

	ck_assert_cua(insert_pairs(&m, pairs, half));
	for (size_t i = 0; i < n; i++) {
		given[i] = wanted[i] = pairs[i % (2 * half)];
		wanted[i].value = value_number(2 * half + i, m.vs);
	}
	k = upload_keys(ctx, given, n, m.ks);
	e = upload_values(ctx, given, n, m.vs);
	d = upload_values(ctx, wanted, n, m.vs);
	for (size_t i = 0; i < half; i++)
		winner[i] = n;

	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, n, k, e, d, r));
	test_download(ctx, results, r, n);
	test_download(ctx, seen, e, n * m.vs);
	for (size_t i = 0; i < n; i++) {
		size_t at = i % (2 * half);

		if (at >= half) {
			EXPECT(results[i] == CUA_HASHMAP_ABSENT, "result %zu is %d", i, results[i]);
		} else if (results[i] == CUA_HASHMAP_EXISTS) {
			EXPECT(winner[at] == n, "elements %zu and %zu have won", winner[at], i);
			winner[at] = i;
		} else {
			EXPECT(results[i] == CUA_HASHMAP_DIFFERS, "result %zu is %d", i,
			       results[i]);
		}
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = i % (2 * half);
		int lost = at < half && winner[at] != i;

		EXPECT(at >= half || winner[at] < n, "nobody has won key %zu", at);
		EXPECT(u128_same(load_u128(seen, m.vs, i),
				 lost ? wanted[winner[at]].value : given[i].value),
		       "what element %zu has seen", i);
	}
	for (size_t i = 0; i < half; i++)
		pairs[i].value = wanted[winner[i]].value;
	expect_pairs(&m, pairs, half);

	/* All elements expect the first value, but it is gone. Without results. */
	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, 0, NULL, NULL, NULL, NULL));
	for (size_t i = 0; i < n; i++)
		store_u128(seen, m.vs, i, value_number(2 * half + n + i, m.vs));
	test_free(ctx, e);
	e = test_upload(ctx, seen, n * m.vs);
	ck_assert_cua(cua_hashmap_compare_exchange_n(m.map, n, k, e, d, NULL));
	expect_pairs(&m, pairs, half);

	ck_assert_status(cua_hashmap_compare_exchange_n(NULL, n, k, e, d, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, NULL, e, d, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, k, NULL, d, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, k, e, NULL, r), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, ~(size_t)0, k, e, d, r),
			 CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n - 1, k, (char *)e + 1, d, r),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n - 1, k, e, (char *)e + m.vs, r),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, 1, k, k, d, r), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_compare_exchange_n(m.map, n, k, e, d, e), CUA_ERROR_OVERLAP);

	ck_assert_cua(cua_hashmap_destroy(m.map));
	test_free(ctx, k);
	test_free(ctx, e);
	test_free(ctx, d);
	test_free(ctx, r);
	free(pairs);
	free(given);
	free(wanted);
	free(seen);
	free(results);
	free(winner);
}

START_TEST(compare_exchanged)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int c = 0; c < PAIR_SIZES; c++) {
		uint64_t word[2] = {0, 0};

		if (pair_value_size(c)) {
			compare_exchange_all(ctx, c, 0);
			compare_exchange_all(ctx, c, 1);
		} else {
			struct pair_map m = new_pair_map(ctx, c, 9, NULL);
			void *k = test_upload(ctx, word, sizeof(word));

			ck_assert_status(
				cua_hashmap_compare_exchange_n(m.map, 1, k, NULL, NULL, NULL),
				CUA_ERROR_TYPE);
			ck_assert_cua(cua_hashmap_destroy(m.map));
			test_free(ctx, k);
		}
	}
	cua_context_destroy(ctx);
}
END_TEST

static void expect_same_maps(const struct pair_map *a, const struct pair_map *b)
{
	uint64_t n, m;
	struct pair *p = sorted_contents(a, &n), *q = sorted_contents(b, &m);

	ck_assert_uint_eq(n, m);
	for (uint64_t i = 0; i < n; i++)
		EXPECT(u128_same(p[i].key, q[i].key) && u128_same(p[i].value, q[i].value),
		       "pair %llu of %llu", (unsigned long long)i, (unsigned long long)n);
	free(p);
	free(q);
}

/*
 * update_value_n has the same effect as update_n with an array of equal operands, for all sizes,
 * also if the map grows.
 */
START_TEST(updated_by_one_value)
{
	static const enum cua_update ops[] = {CUA_UPDATE_ADD, CUA_UPDATE_MIN, CUA_UPDATE_MAX,
					      CUA_UPDATE_AND, CUA_UPDATE_OR,  CUA_UPDATE_XOR};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint8_t zero = 0;

	for (int run = 0; run < 4 * PAIR_SIZES; run++) {
		const int grows = run / PAIR_SIZES % 2, portable = run / PAIR_SIZES / 2;
		struct cua_hashmap_options o = CUA_HASHMAP_OPTIONS_INIT;
		const size_t n = test_quick() ? 4000 : 40000, distinct = n / 3;
		struct pair_map a, b;
		struct pair *p;
		uint8_t *r, *results[2];
		void *k, *v;

		o.grow_percent = grows ? 60 : 0;
		o.portable = (uint32_t)portable;
		a = new_pair_map(ctx, run % PAIR_SIZES, grows ? 1 : n, &o);
		b = new_pair_map(ctx, run % PAIR_SIZES, grows ? 1 : n, &o);
		p = numbered_pairs(n, a.ks, a.vs, 0);
		r = test_alloc(ctx, n);
		results[0] = test_malloc(n);
		results[1] = test_malloc(n);
		/* every fourth element has the same key; the rest share each key with a few elements */
		for (size_t i = 0; i < n; i++)
			p[i].key = i % 4 ? p[i % distinct].key : p[7].key;
		k = upload_keys(ctx, p, n, a.ks);
		if (!a.vs) {
			ck_assert_status(
				cua_hashmap_update_value_n(a.map, CUA_UPDATE_ADD, n, k, &zero, r),
				CUA_ERROR_TYPE);
			ck_assert_status(cua_hashmap_update_value_n(a.map, CUA_UPDATE_ADD, 0, NULL,
								    NULL, NULL),
					 CUA_ERROR_TYPE);
		}
		for (int op = 0; a.vs && op < 6; op++) {
			struct cua_u128 value = value_number((uint64_t)op + 40, a.vs);
			uint64_t inserted[2] = {0, 0};
			char operand[17];

			for (size_t i = 0; i < n; i++)
				p[i].value = value;
			v = upload_values(ctx, p, n, a.vs);
			store_u128(operand + 1, a.vs, 0, value);
			ck_assert_cua(cua_hashmap_update_n(a.map, ops[op], n, k, v, r));
			test_download(ctx, results[0], r, n);
			ck_assert_cua(
				cua_hashmap_update_value_n(b.map, ops[op], n, k, operand + 1, r));
			test_download(ctx, results[1], r, n);
			for (size_t i = 0; i < 2 * n; i++) {
				const uint8_t result = results[i / n][i % n];

				inserted[i / n] += result == CUA_HASHMAP_INSERTED;
				EXPECT(result == CUA_HASHMAP_INSERTED ||
					       result == CUA_HASHMAP_EXISTS,
				       "result %zu is %d", i, result);
			}
			ck_assert_uint_eq(inserted[0], inserted[1]);
			ck_assert_uint_eq(inserted[1] != 0, op == 0);
			expect_same_maps(&a, &b);
			test_free(ctx, v);
		}
		free(results[0]);
		free(results[1]);
		free(p);
		test_free(ctx, k);
		test_free(ctx, r);
		ck_assert_cua(cua_hashmap_destroy(a.map));
		ck_assert_cua(cua_hashmap_destroy(b.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/*
 * n elements with random values and random keys of key_number 0 to distinct - 1. Returns the key
 * numbers. Free the result.
 */
static uint32_t *random_elements(uint64_t *seed, const struct pair_map *m, struct pair *p, size_t n,
				 uint64_t distinct)
{
	uint32_t *which = test_malloc(n * sizeof(*which));

	for (size_t i = 0; i < n; i++) {
		which[i] = (uint32_t)(test_random(seed) % distinct);
		p[i].key = key_number(which[i], m->ks);
		p[i].value.lo = test_random(seed);
		p[i].value.hi = test_random(seed);
		truncate_u128(&p[i].value, m->vs);
	}
	return which;
}

/*
 * exchange_n: the values of a key are, in any order, the returned values and the stored value.
 * insert_or_get_n: every element of a key returns the stored value, the value of any of these
 * elements. A rejected element returns nothing.
 */
static void check_given_back(struct cua_context *ctx, int c, int portable, int exchange,
			     int in_place, int half, uint64_t *seed)
{
	enum { DISTINCT = 200 };
	const struct cua_hashmap_options o = {.struct_size = sizeof(o),
					      .portable = (uint32_t)portable};
	const size_t n = test_quick() ? 3001 : 20011;
	struct pair_map m = new_pair_map(ctx, c, half ? DISTINCT / 2 - 40 : DISTINCT, &o);
	struct pair *p = test_malloc(n * sizeof(*p)),
		    *distinct = numbered_pairs(DISTINCT, m.ks, m.vs, 0);
	/* half a map is too small for 100 keys; with 3 keys, each has thousands of elements */
	uint64_t some = half ? DISTINCT : test_random(seed) % 2 ? 3 : DISTINCT;
	uint32_t *which = random_elements(seed, &m, p, n, some);
	struct cua_u128 given[DISTINCT] = {{0, 0}}, back[DISTINCT] = {{0, 0}},
			first[DISTINCT] = {{0, 0}};
	uint32_t inserted[DISTINCT] = {0}, rejected[DISTINCT] = {0}, seen[DISTINCT] = {0}, full = 0;
	void *k = upload_keys(ctx, p, n, m.ks), *v = upload_values(ctx, p, n, m.vs), *there;
	char *out = test_malloc(n * m.vs), *final = test_malloc(n * m.vs);
	uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n), found[DISTINCT];
	void *w;

	memset(out, 0x5c, n * m.vs);
	w = in_place ? v : test_upload(ctx, out, n * m.vs);
	ck_assert_cua(exchange ? cua_hashmap_exchange_n(m.map, n, k, v, w, r)
			       : cua_hashmap_insert_or_get_n(m.map, n, k, v, w, r));
	test_download(ctx, out, w, n * m.vs);
	test_download(ctx, results, r, n);
	there = upload_keys(ctx, distinct, DISTINCT, m.ks);
	if (!in_place)
		test_free(ctx, v);
	test_free(ctx, w);
	w = test_alloc(ctx, n * m.vs);
	ck_assert_cua(cua_hashmap_find_n(m.map, DISTINCT, there, w, r));
	test_download(ctx, final, w, DISTINCT * m.vs);
	test_download(ctx, found, r, DISTINCT);
	for (size_t i = 0; i < n; i++) {
		const uint32_t j = which[i];
		struct cua_u128 got = load_u128(out, m.vs, i), kept = p[i].value;

		if (!in_place)
			memset(&kept, 0x5c, m.vs);
		seen[j]++;
		given[j] = combine_values(given[j], p[i].value, CUA_UPDATE_ADD, m.vs);
		if (results[i] == CUA_HASHMAP_INSERTED) {
			inserted[j]++;
			first[j] = p[i].value;
		} else if (results[i] == CUA_HASHMAP_FULL) {
			rejected[j]++;
		} else {
			ck_assert_uint_eq(results[i], CUA_HASHMAP_EXISTS);
		}
		if (results[i] == CUA_HASHMAP_FULL ||
		    (exchange && results[i] == CUA_HASHMAP_INSERTED))
			EXPECT(u128_same(got, kept), "sizes %d: element %zu has got a value", c, i);
		else if (exchange)
			back[j] = combine_values(back[j], got, CUA_UPDATE_ADD, m.vs);
		else
			EXPECT(u128_same(got, load_u128(final, m.vs, j)),
			       "sizes %d: element %zu has another value", c, i);
	}
	for (uint32_t j = 0; j < DISTINCT; j++) {
		struct cua_u128 last = load_u128(final, m.vs, j);

		full += rejected[j];
		ck_assert_uint_eq(found[j], seen[j] && !rejected[j]);
		ck_assert_uint_eq(inserted[j], found[j]);
		ck_assert(!rejected[j] || rejected[j] == seen[j]);
		if (found[j])
			EXPECT(exchange ? u128_same(combine_values(back[j], last, CUA_UPDATE_ADD,
								   m.vs),
						    given[j])
					: u128_same(last, first[j]),
			       "sizes %d, portable %d, in place %d, key %u: a value is lost or there twice",
			       c, portable, in_place, j);
	}
	ck_assert_int_eq(full != 0, half);
	free(p);
	free(distinct);
	free(which);
	free(out);
	free(final);
	free(results);
	test_free(ctx, k);
	test_free(ctx, there);
	test_free(ctx, w);
	test_free(ctx, r);
	ck_assert_cua(cua_hashmap_destroy(m.map));
}

START_TEST(values_given_back)
{
	uint64_t seed = test_seed("values_given_back");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int run = 0; run < 9 * 16; run++)
		check_given_back(ctx, run / 16, run & 1, run >> 1 & 1, run >> 2 & 1, run >> 3 & 1,
				 &seed);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * update_n with all operations and sizes; half of the maps never erase. 16-byte operands have carries
 * between their halves.
 */
START_TEST(updated)
{
	static const uint64_t distinct[] = {3, 150, 1500};
	static const uint64_t unusual[] = {0, 1, ~(uint64_t)0, (uint64_t)1 << 63, 0xffffffff};
	uint64_t seed = test_seed("updated");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = test_quick() ? 3001 : 20011;

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int run = 0; run < PAIR_SIZES * 2 * 6; run++) {
		const int c = run % PAIR_SIZES, op = CUA_UPDATE_ADD + run / (2 * PAIR_SIZES);
		const uint64_t d = distinct[test_random(&seed) % 3];
		struct cua_hashmap_options o = {.struct_size = sizeof(o),
						.portable = run / PAIR_SIZES % 2,
						.no_erase = run / PAIR_SIZES % 2};
		struct pair_map m = new_pair_map(ctx, c, d, &o);
		struct pair *p = test_malloc(n * sizeof(*p)),
			    *expected = numbered_pairs(d, m.ks, m.vs, 0);
		uint8_t *r = test_alloc(ctx, n), *results = test_malloc(n);
		uint32_t *which, *seen = calloc(d, sizeof(*seen)),
				 *inserted = calloc(d, sizeof(*inserted));
		size_t there = 0;
		void *k, *v;

		ck_assert(seen && inserted);
		which = random_elements(&seed, &m, p, n, d);
		for (size_t i = 0; i < n; i++) {
			struct pair *e = &expected[which[i]];
			struct cua_u128 *value = &p[i].value, bit = {0, 0};

			/* few bits are set, so the results of AND and OR are not trivial */
			if (test_random(&seed) % n < 30 * d)
				*(m.vs == 16 && value->hi & 1 ? &bit.hi : &bit.lo) =
					(uint64_t)1 << value->lo % 64;
			/* halves that carry, and numbers that compare equal in a single half */
			if (value->hi >> 62 == 0)
				value->lo = unusual[value->hi % 5];
			if (value->hi >> 62 == 1)
				value->hi = unusual[value->lo % 5];
			if (op == CUA_UPDATE_AND) {
				value->lo = ~bit.lo;
				value->hi = ~bit.hi;
			} else if (op == CUA_UPDATE_OR) {
				*value = bit;
			}
			truncate_u128(value, m.vs);
			e->value = seen[which[i]]++ ? combine_values(e->value, *value, op, m.vs)
						    : *value;
		}
		k = upload_keys(ctx, p, n, m.ks);
		v = upload_values(ctx, p, n, m.vs);
		ck_assert_status(cua_hashmap_update_n(m.map, (enum cua_update)op, n, k, v, r),
				 m.vs ? CUA_OK : CUA_ERROR_TYPE);
		test_download(ctx, results, r, n);
		for (size_t i = 0; m.vs && i < n; i++) {
			EXPECT(results[i] == CUA_HASHMAP_INSERTED ||
				       results[i] == CUA_HASHMAP_EXISTS,
			       "result %zu is %d", i, results[i]);
			inserted[which[i]] += results[i] == CUA_HASHMAP_INSERTED;
		}
		for (uint64_t j = 0; m.vs && j < d; j++) {
			ck_assert_uint_eq(inserted[j], seen[j] != 0);
			if (seen[j])
				expected[there++] = expected[j];
		}
		if (o.no_erase)
			ck_assert_status(cua_hashmap_erase_n(m.map, n, k, r),
					 CUA_ERROR_UNSUPPORTED);
		expect_pairs(&m, expected, there);
		free(p);
		free(results);
		free(seen);
		free(inserted);
		free(which);
		free(expected);
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, r);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* More pairs than a GPU needs to combine equal keys before it updates the map. */
#define MANY (((size_t)1 << 20) + 77)

/*
 * n pairs of d keys. With `frequent`, every other pair has key 5. With AND and
 * OR, few values change a bit. expected[j] gets the value of key j; *there is the number of keys.
 */
static struct pair *many_pairs(uint64_t *seed, const struct pair_map *m, size_t n, uint64_t d,
			       int frequent, int op, const struct cua_u128 *same,
			       struct pair *expected, size_t *there)
{
	struct pair *p = test_malloc(n * sizeof(*p));
	uint8_t *seen = calloc(d, 1);

	ck_assert(seen);
	for (size_t i = 0; i < n; i++) {
		uint64_t j = frequent && i % 2 ? 5 % d : test_random(seed) % d;
		struct cua_u128 v = {test_random(seed) << 20 | test_random(seed) % (1 << 20), 0};

		if (op == CUA_UPDATE_AND || op == CUA_UPDATE_OR) {
			v.lo = test_random(seed) % n < 20 * d ? (uint64_t)1 << v.lo % 64 : 0;
			v.lo = op == CUA_UPDATE_AND ? ~v.lo : v.lo;
		}
		truncate_u128(&v, m->vs);
		p[i].key = key_number(j, m->ks);
		p[i].value = same ? *same : v;
		expected[j].key = p[i].key;
		expected[j].value =
			seen[j] ? combine_values(expected[j].value, p[i].value, op, m->vs)
				: p[i].value;
		seen[j] = 1;
	}
	*there = 0;
	for (uint64_t j = 0; j < d; j++)
		if (seen[j])
			expected[(*there)++] = expected[j];
	free(seen);
	return p;
}

/* Large update_n without results: few keys to nearly distinct keys, and frequent keys. */
START_TEST(updated_many)
{
	static const uint64_t distinct[] = {1, 900, 60000};
	static const int sizes[] = {0, 1, 3, 4};
	uint64_t seed = test_seed("updated_many");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = test_quick() ? 4001 : MANY;

	ck_assert_cua(cua_context_set_threads(ctx, 4));
	for (int run = 0; run < 24; run++) {
		const int op = CUA_UPDATE_ADD + run % 6;
		const int frequent = (int)(test_random(&seed) % 2);
		const int has_one = test_random(&seed) % 3 == 0;
		const uint64_t d = run / 6 == 3 ? n : distinct[run / 6];
		struct cua_hashmap_options o = {.struct_size = sizeof(o),
						.no_erase = (uint32_t)(test_random(&seed) % 2),
						.max_probes = test_random(&seed) % 8 ? 0 : 128,
						.hash = (uint32_t)(test_random(&seed) % 2)};
		const int c = sizes[test_random(&seed) % 4];
		struct pair_map m = new_pair_map(ctx, c, d + d / 4 + 4000, &o);
		const struct cua_u128 one = value_number((uint64_t)run, m.vs);
		struct pair *expected = test_malloc((d + 1) * sizeof(*expected)), *p;
		char value[16];
		size_t there;
		void *k, *v;

		store_u128(value, m.vs, 0, one);
		p = many_pairs(&seed, &m, n, d, frequent, op, has_one ? &one : NULL, expected,
			       &there);
		k = upload_keys(ctx, p, n, m.ks);
		v = upload_values(ctx, p, n, m.vs);
		ck_assert_cua(
			has_one ? cua_hashmap_update_value_n(m.map, (enum cua_update)op, n, k,
							     value, NULL)
				: cua_hashmap_update_n(m.map, (enum cua_update)op, n, k, v, NULL));
		expect_pairs(&m, expected, there);
		free(p);
		free(expected);
		test_free(ctx, k);
		test_free(ctx, v);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* More pairs than a GPU combines at once. */
START_TEST(updated_in_parts)
{
	enum { D = 1000 };
	const int many = TEST_BACKEND == CUA_BACKEND_CUDA && !test_quick();
	const size_t n = many ? ((size_t)1 << 27) + 1200007 : 100003;
	uint64_t seed = test_seed("updated_in_parts");
	const uint32_t first = (uint32_t)test_random(&seed),
		       step = (uint32_t)test_random(&seed) | 1;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map;
	uint32_t *keys = test_malloc(n * sizeof(*keys)), *values = test_malloc(n * sizeof(*values));
	uint32_t expected[D] = {0}, distinct[D], got[D], *k, *v;
	uint8_t found[D];
	void *f;

	ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U32, D, &map));
	for (size_t i = 0; i < D; i++)
		distinct[i] = first + (uint32_t)i * step;
	for (size_t i = 0; i < n; i++) {
		const uint64_t r = (i ^ seed) * 0x9e3779b97f4a7c15;

		keys[i] = distinct[(r >> 32) % D];
		values[i] = (uint32_t)r;
		expected[(r >> 32) % D] += (uint32_t)r;
	}
	k = test_upload(ctx, keys, n * sizeof(*keys));
	v = test_upload(ctx, values, n * sizeof(*values));
	ck_assert_cua(cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, k, v, NULL));
	ck_assert_cua(cua_hashmap_status(map));
	test_free(ctx, k);
	test_free(ctx, v);
	k = test_upload(ctx, distinct, sizeof(distinct));
	v = test_alloc(ctx, sizeof(got));
	f = test_alloc(ctx, sizeof(found));
	ck_assert_cua(cua_hashmap_find_n(map, D, k, v, f));
	test_download(ctx, got, v, sizeof(got));
	test_download(ctx, found, f, sizeof(found));
	for (size_t i = 0; i < D; i++)
		EXPECT(found[i] && got[i] == expected[i], "key %zu has %u, not %u", i, got[i],
		       expected[i]);
	test_free(ctx, k);
	test_free(ctx, v);
	test_free(ctx, f);
	free(keys);
	free(values);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* The map has room for few of the keys. No operand is lost: it is in the map or was rejected. */
START_TEST(updated_many_in_a_full_map)
{
	const uint64_t d = 30000;
	uint64_t seed = test_seed("updated_many_in_a_full_map");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const size_t n = test_quick() ? 50000 : MANY;

	for (int c = 0; c <= 4; c += 4) {
		const struct cua_hashmap_options o = {.struct_size = sizeof(o), .rejects = n};
		struct pair_map m = new_pair_map(ctx, c, d / 4, &o);
		struct pair *expected = test_malloc(d * sizeof(*expected)), *got, *p;
		uint64_t *sums = calloc(d, sizeof(*sums)), n_there, n_rejected;
		char *keys = test_malloc(n * m.ks), *values = test_malloc(n * m.vs);
		size_t there, at;
		void *k, *v;

		ck_assert(sums);
		p = many_pairs(&seed, &m, n, d, 1, CUA_UPDATE_ADD, NULL, expected, &there);
		qsort(expected, there, sizeof(*expected), by_key);
		k = upload_keys(ctx, p, n, m.ks);
		v = upload_values(ctx, p, n, m.vs);
		ck_assert_cua(cua_hashmap_update_n(m.map, CUA_UPDATE_ADD, n, k, v, NULL));
		ck_assert_status(cua_hashmap_status(m.map), CUA_ERROR_FULL);
		got = sorted_contents(&m, &n_there);
		EXPECT(n_there >= d / 4 && n_there < there, "%llu keys are there",
		       (unsigned long long)n_there);
		ck_assert_cua(cua_hashmap_rejected(m.map, n, k, v, &n_rejected));
		EXPECT(n_rejected >= there - n_there && n_rejected <= n, "%llu pairs are rejected",
		       (unsigned long long)n_rejected);
		test_download(ctx, keys, k, n * m.ks);
		test_download(ctx, values, v, n * m.vs);
		for (uint64_t i = 0; i < n_there + n_rejected; i++) {
			struct pair one = {{0, 0}, {0, 0}};
			const struct pair *found;

			if (i < n_there) {
				one = got[i];
			} else {
				one.key = load_u128(keys, m.ks, i - n_there);
				one.value = load_u128(values, m.vs, i - n_there);
			}
			found = bsearch(&one, expected, there, sizeof(one), by_key);
			EXPECT(found != NULL, "pair %llu is of no key", (unsigned long long)i);
			sums[found - expected] += one.value.lo;
		}
		for (at = 0; at < there; at++) {
			struct cua_u128 sum = {sums[at], 0};

			truncate_u128(&sum, m.vs);
			EXPECT(u128_same(sum, expected[at].value), "the sum of key %zu", at);
		}
		free(p);
		free(got);
		free(sums);
		free(keys);
		free(values);
		free(expected);
		test_free(ctx, k);
		test_free(ctx, v);
		ck_assert_cua(cua_hashmap_destroy(m.map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Special patterns through every call that moves pairs or changes values: all keys, and each of the
 * values. Under a tool, two of the values.
 */
START_TEST(special_pairs)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	char folder[TEST_PATH_BYTES];

	test_enter_folder(folder);
	for (int run = 0; run < 2 * PAIR_SIZES; run++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = run % 2};
		struct pair_map m = new_pair_map(ctx, run / 2, 100, &o),
				to = new_pair_map(ctx, run / 2, 100, &o), l = m;
		struct cua_u128 keys[SPECIAL_PATTERNS], values[SPECIAL_PATTERNS];
		size_t n = special_patterns(m.ks, keys), n_values = special_patterns(m.vs, values);
		const size_t step = test_traced() ? n_values / 2 + 1 : n_values > 8 ? 5 : 1;
		struct pair *p = test_malloc(n * sizeof(*p));
		char *out = test_malloc(n * m.vs + 1);
		void *k, *v, *w = test_alloc(ctx, n * m.vs + 1);

		for (size_t turn = 0; turn < n_values; turn += step) {
			ck_assert_cua(cua_hashmap_clear(m.map));
			ck_assert_cua(cua_hashmap_clear(to.map));
			for (size_t i = 0; i < n; i++) {
				p[i].key = keys[i];
				p[i].value = values[(i + turn) % n_values];
			}
			ck_assert_cua(insert_pairs(&m, p, n));
			expect_pairs(&m, p, n);
			expect_sorted(&m, p, n, n + 1);
			ck_assert_cua(cua_hashmap_resize(m.map, n + turn));
			expect_pairs(&m, p, n);
			ck_assert_cua(cua_hashmap_merge(to.map, m.map, CUA_HASHMAP_KEEP));
			expect_pairs(&to, p, n);
			if (!turn) {
				ck_assert_cua(cua_hashmap_save(m.map, "a"));
				ck_assert_cua(cua_hashmap_load(ctx, NULL, "a", &l.map));
				expect_pairs(&l, p, n);
				ck_assert_cua(cua_hashmap_destroy(l.map));
			}
			k = upload_keys(ctx, p, n, m.ks);
			for (int op = CUA_UPDATE_ADD; m.vs && op <= CUA_UPDATE_XOR; op++) {
				struct pair *q = test_malloc(n * sizeof(*q));

				for (size_t i = 0; i < n; i++) {
					q[i].value = values[(3 * i + turn + (size_t)op) % n_values];
					p[i].value =
						combine_values(p[i].value, q[i].value, op, m.vs);
				}
				v = upload_values(ctx, q, n, m.vs);
				test_free(ctx, k);
				k = upload_keys(ctx, p, n, m.ks);
				ck_assert_cua(cua_hashmap_update_n(to.map, (enum cua_update)op, n,
								   k, v, NULL));
				expect_pairs(&to, p, n);
				test_free(ctx, v);
				free(q);
			}
			test_free(ctx, k);
			k = upload_keys(ctx, p, n, m.ks);
			if (m.vs) {
				struct pair *q = test_malloc(n * sizeof(*q));

				for (size_t i = 0; i < n; i++) {
					q[i].key = p[i].key;
					q[i].value = values[(i + 2 * turn) % n_values];
				}
				v = upload_values(ctx, q, n, m.vs);
				ck_assert_cua(cua_hashmap_exchange_n(to.map, n, k, v, w, NULL));
				test_download(ctx, out, w, n * m.vs);
				for (size_t i = 0; i < n; i++)
					EXPECT(u128_same(load_u128(out, m.vs, i), p[i].value),
					       "value %zu before", i);
				expect_pairs(&to, q, n);
				test_free(ctx, v);
				free(q);
			}
			ck_assert_cua(cua_hashmap_erase_n(to.map, n, k, NULL));
			expect_pairs(&to, p, 0);
			test_free(ctx, k);
		}
		free(p);
		free(out);
		test_free(ctx, w);
		ck_assert_cua(cua_hashmap_destroy(m.map));
		ck_assert_cua(cua_hashmap_destroy(to.map));
	}
	ck_assert_int_eq(unlink("a"), 0);
	test_leave_folder(folder);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_update");
	TCase *tcase = tcase_create("hashmap_update");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, compare_exchanged);
	tcase_add_test(tcase, updated_by_one_value);
	tcase_add_test(tcase, values_given_back);
	tcase_add_test(tcase, updated);
	tcase_add_test(tcase, updated_many);
	tcase_add_test(tcase, updated_in_parts);
	tcase_add_test(tcase, updated_many_in_a_full_map);
	tcase_add_test(tcase, special_pairs);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
