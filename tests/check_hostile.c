/* SPDX-License-Identifier: MIT */
/* Keys chosen by an attacker to share a bucket: seeds, the keyed hash, and the bound on probes. */
#include "common.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- the keyed hash ---- */

static uint64_t rotate(uint64_t x, int by)
{
	return x << by | x >> (64 - by);
}

/* SipHash-1-3 of any bytes, as its authors describe it. */
static uint64_t sip_model(const unsigned char *m, size_t n, struct cua_u128 k)
{
	uint64_t a = k.lo ^ 0x736f6d6570736575u, b = k.hi ^ 0x646f72616e646f6du;
	uint64_t c = k.lo ^ 0x6c7967656e657261u, d = k.hi ^ 0x7465646279746573u;

	for (size_t at = 0; at <= n / 8 * 8 + 24; at += 8) {
		uint64_t word = 0;

		if (at <= n / 8 * 8) {
			for (size_t i = 0; i < 8 && at + i < n; i++)
				word |= (uint64_t)m[at + i] << 8 * i;
			if (at == n / 8 * 8)
				word |= (uint64_t)(n & 255) << 56;
		} else if (at == n / 8 * 8 + 8) {
			c ^= 255;
		}
		d ^= word;
		a += b, b = rotate(b, 13), b ^= a, a = rotate(a, 32);
		c += d, d = rotate(d, 16), d ^= c;
		a += d, d = rotate(d, 21), d ^= a;
		c += b, b = rotate(b, 17), b ^= c, c = rotate(c, 32);
		a ^= word;
	}
	return a ^ b ^ c ^ d;
}

START_TEST(keyed_hash)
{
	/* from CPython 3.11: its hash of bytes is SipHash-1-3, under the secret 0 */
	static const struct {
		uint64_t key, hash;
	} known[] = {
		{0, (uint64_t)-4800647303603446203},
		{1, 2206609067086327257u},
		{0x0123456789abcdefu, (uint64_t)-8763437053038408264},
	};
	const struct cua_u128 none = {0, 0}, ascending = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
	uint64_t seed = test_seed("keyed_hash");

	for (size_t i = 0; i < COUNT(known); i++)
		ck_assert_uint_eq(cua_hash_keyed_u64(known[i].key, none), known[i].hash);
	ck_assert_uint_eq(cua_hash_keyed_u128(ascending, none), (uint64_t)-8542738587087157833);
	for (int i = 0; i < 1000; i++) {
		struct cua_u128 key = {test_random(&seed), test_random(&seed)};
		struct cua_u128 secret = {test_random(&seed), test_random(&seed)};
		unsigned char bytes[16];

		for (int b = 0; b < 16; b++)
			bytes[b] = (unsigned char)((b < 8 ? key.lo : key.hi) >> b % 8 * 8);
		ck_assert_uint_eq(cua_hash_keyed_u64(key.lo, secret), sip_model(bytes, 8, secret));
		ck_assert_uint_eq(cua_hash_keyed_u128(key, secret), sip_model(bytes, 16, secret));
	}
}
END_TEST

/* ---- seeds ---- */

static struct cua_hashmap_view view_of(struct cua_context *ctx, const struct cua_hashmap_options *o)
{
	struct cua_hashmap_view view;
	struct cua_hashmap *map;

	ck_assert_cua(cua_hashmap_create(ctx, o, CUA_U64, CUA_U64, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_cua(cua_hashmap_destroy(map));
	return view;
}

static uint64_t chained_seed(struct cua_context *ctx, const struct cua_chained_options *o,
			     struct cua_context *other)
{
	struct cua_chained_view view, of_copy;
	struct cua_chained *table, *copy;

	ck_assert_cua(cua_chained_create(ctx, o, 10, 10, &table));
	ck_assert_cua(cua_chained_get_view(table, &view));
	ck_assert_cua(cua_chained_copy(table, other, &copy));
	ck_assert_cua(cua_chained_get_view(copy, &of_copy));
	ck_assert_uint_eq(of_copy.seed, view.seed);
	ck_assert_cua(cua_chained_destroy(copy));
	ck_assert_cua(cua_chained_destroy(table));
	return view.seed;
}

static struct cua_hashmap_view multimap_seed(struct cua_context *ctx,
					     const struct cua_multimap_options *o)
{
	struct cua_multimap_view view;
	struct cua_multimap *mm;

	ck_assert_cua(cua_multimap_create(ctx, o, CUA_U64, CUA_U64, 10, 10, &mm));
	ck_assert_cua(cua_multimap_get_view(mm, &view));
	ck_assert_cua(cua_multimap_destroy(mm));
	return view.map;
}

START_TEST(seeds)
{
	struct cua_context *ctx = test_context(TEST_BACKEND), *host = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap_options o = {.struct_size = sizeof(o)};
	struct cua_chained_options of_chained = CUA_CHAINED_OPTIONS_INIT;
	struct cua_multimap_options of_multimap = {.struct_size = sizeof(of_multimap)};
	struct cua_hashmap_view a, b;

	/* random seeds: two are equal once in 2^64 times */
	ck_assert_int_eq(unsetenv("CUATOMIC_HASH_SEED"), 0);
	a = view_of(ctx, NULL);
	b = view_of(ctx, &o);
	ck_assert_uint_ne(a.seed, b.seed);
	ck_assert_uint_ne(a.seed, 0);
	ck_assert_uint_eq(a.seed_high, 0);
	ck_assert_uint_ne(chained_seed(ctx, NULL, host), chained_seed(ctx, &of_chained, host));
	ck_assert_uint_ne(multimap_seed(ctx, NULL).seed, multimap_seed(ctx, &of_multimap).seed);
	/* the seeded hash has no upper half of a seed */
	o.seed_high = 5;
	a = view_of(ctx, &o);
	ck_assert_uint_ne(a.seed, 0);
	ck_assert_uint_ne(a.seed, view_of(ctx, &o).seed);
	ck_assert_uint_eq(a.seed_high, 0);
	o.seed_high = 0;
	o.hash = of_multimap.hash = CUA_HASHMAP_HASH_KEYED;
	a = view_of(ctx, &o);
	b = view_of(ctx, &o);
	ck_assert_uint_eq(a.hash, CUA_HASHMAP_HASH_KEYED);
	ck_assert_uint_ne(a.seed, b.seed);
	ck_assert_uint_ne(a.seed_high, b.seed_high);
	b = multimap_seed(ctx, &of_multimap);
	ck_assert_uint_eq(b.hash, CUA_HASHMAP_HASH_KEYED);
	ck_assert_uint_ne(b.seed_high, 0);

	/* from the environment: a number other than 0; any other text is ignored */
	ck_assert_int_eq(setenv("CUATOMIC_HASH_SEED", "0x123", 1), 0);
	o.hash = CUA_HASHMAP_HASH_SEEDED;
	ck_assert_uint_eq(view_of(ctx, &o).seed, 0x123);
	ck_assert_uint_eq(chained_seed(ctx, NULL, host), 0x123);
	ck_assert_int_eq(setenv("CUATOMIC_HASH_SEED", "12x", 1), 0);
	ck_assert_uint_ne(view_of(ctx, &o).seed, 12);
	ck_assert_int_eq(setenv("CUATOMIC_HASH_SEED", "7", 1), 0);

	/* from the caller */
	o.seed = of_chained.seed = CUA_HASH_SEED_FIXED;
	ck_assert_uint_eq(view_of(ctx, &o).seed, CUA_HASH_SEED_FIXED);
	ck_assert_uint_eq(chained_seed(ctx, &of_chained, host), CUA_HASH_SEED_FIXED);
	o.hash = CUA_HASHMAP_HASH_KEYED;
	o.seed = 0;
	o.seed_high = 5;
	a = view_of(ctx, &o);
	ck_assert_uint_eq(a.seed, 0);
	ck_assert_uint_eq(a.seed_high, 5);
	cua_context_destroy(host);
	cua_context_destroy(ctx);
}
END_TEST

START_TEST(bad_options)
{
	static const struct {
		uint32_t own_hash, hash, max_probes;
		enum cua_status status;
	} rows[] = {
		{0, CUA_HASHMAP_HASH_KEYED, 0, CUA_OK},
		{0, 2, 0, CUA_ERROR_VALUE},
		{1, CUA_HASHMAP_HASH_KEYED, 0, CUA_ERROR_VALUE},
		{1, 0, 32, CUA_OK},
		{0, 0, 31, CUA_ERROR_VALUE},
		{0, 0, 1, CUA_ERROR_VALUE},
		{0, 0, 128, CUA_OK},
		{0, 0, 129, CUA_ERROR_VALUE},
	};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_multimap_options of_multimap = {.struct_size = sizeof(of_multimap), .hash = 2};
	struct cua_chained_options of_chained = {.struct_size = sizeof(of_chained) + 8};
	const struct cua_hashmap_options of_map = {.struct_size = sizeof(of_map), .no_erase = 2};
	struct cua_hashmap *kept = NULL;
	struct cua_multimap *mm = NULL;
	struct cua_chained *table = NULL;

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct cua_hashmap_options o = {.struct_size = sizeof(o),
						.own_hash = rows[i].own_hash,
						.hash = rows[i].hash,
						.max_probes = rows[i].max_probes};
		struct cua_hashmap *map = NULL;

		ck_assert_status(cua_hashmap_create(ctx, &o, CUA_U64, CUA_U64, 10, &map),
				 rows[i].status);
		ck_assert(!map == (rows[i].status != CUA_OK));
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	ck_assert_status(cua_multimap_create(ctx, &of_multimap, CUA_U64, CUA_U64, 10, 10, &mm),
			 CUA_ERROR_VALUE);
	of_multimap.hash = 0;
	of_multimap.reserved = 1;
	ck_assert_status(cua_multimap_create(ctx, &of_multimap, CUA_U64, CUA_U64, 10, 10, &mm),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_create(ctx, &of_map, CUA_U64, CUA_U64, 10, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_ptr_null(kept);
	ck_assert_status(cua_chained_create(ctx, &of_chained, 10, 10, &table), CUA_ERROR_VALUE);
	ck_assert(!mm && !table);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- keys that share a home ---- */

static const struct kind {
	enum cua_type key, value;
	uint32_t ks, vs;
	uint32_t portable;
} kinds[] = {
	{CUA_U32, CUA_U32, 4, 4, 0},   {CUA_U64, CUA_NONE, 8, 0, 0},
	{CUA_U64, CUA_U64, 8, 8, 0},   {CUA_U64, CUA_U64, 8, 8, 1},
	{CUA_U128, CUA_U64, 16, 8, 0}, {CUA_U128, CUA_U128, 16, 16, 0},
	{CUA_U32, CUA_U128, 4, 16, 0},
};

/*
 * Key number i. 4-byte keys have few hashes, so crafted keys share only the hash bits that the test
 * needs.
 */
static struct cua_u128 key_number(const struct kind *k, uint64_t i)
{
	struct cua_u128 key = {i + 2, k->ks == 16 ? i * 3 + 1 : 0};

	return key;
}

/*
 * n keys whose hashes under a known seed begin with the same `top` bits and have the same bits 4 to
 * 9. In a word map with up to 2^top buckets and regions of up to 2^6, all keys have the same probe
 * sequence.
 */
static void craft(const struct kind *k, uint64_t seed, unsigned top, size_t n, char *keys)
{
	for (uint64_t i = 0, have = 0; have < n; i++) {
		const struct cua_u128 key = key_number(k, i);
		const uint64_t hash =
			k->ks == 16 ? cua_hash_u128(key, seed) : cua_hash_u64(key.lo, seed);

		if (hash >> (64 - top) || (hash >> 4 & 63))
			continue;
		memcpy(keys + have * k->ks, &key, k->ks);
		have++;
	}
}

struct crowd {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	const struct kind *k;
	size_t n;
	void *keys, *values, *found, *results;
	uint8_t *got; /* of n results, on the host */
};

static struct crowd crowd_make(struct cua_context *ctx, const struct kind *k,
			       const struct cua_hashmap_options *o, uint64_t capacity, size_t n,
			       unsigned top)
{
	struct crowd c = {.ctx = ctx, .k = k, .n = n};
	char *keys = test_malloc(n * k->ks);
	struct cua_hashmap_options own = *o;

	own.portable = k->portable;
	ck_assert_cua(cua_hashmap_create(ctx, &own, k->key, k->value, capacity, &c.map));
	craft(k, CUA_HASH_SEED_FIXED, top, n, keys);
	c.keys = test_upload(ctx, keys, n * k->ks);
	c.values = test_alloc(ctx, n * (k->vs ? k->vs : 1));
	c.found = test_alloc(ctx, n * (k->vs ? k->vs : 1));
	c.results = test_alloc(ctx, n);
	c.got = test_malloc(n);
	free(keys);
	return c;
}

static void crowd_free(struct crowd *c)
{
	ck_assert_cua(cua_hashmap_destroy(c->map));
	test_free(c->ctx, c->keys);
	test_free(c->ctx, c->values);
	test_free(c->ctx, c->found);
	test_free(c->ctx, c->results);
	free(c->got);
}

static size_t count_of(const struct crowd *c, uint8_t what)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += c->got[i] == what;
	return n;
}

static size_t inserted(struct crowd *c)
{
	ck_assert_cua(cua_hashmap_insert_n(c->map, c->n, c->keys, c->values, c->results));
	test_download(c->ctx, c->got, c->results, c->n);
	return count_of(c, CUA_HASHMAP_INSERTED);
}

/* The inserted keys are found, and no other key. */
static void expect_found(struct crowd *c)
{
	uint8_t *there = test_malloc(c->n);
	uint64_t size = 0;

	ck_assert_cua(cua_hashmap_contains_n(c->map, c->n, c->keys, c->results));
	test_download(c->ctx, there, c->results, c->n);
	for (size_t i = 0; i < c->n; i++)
		ck_assert_int_eq(there[i], c->got[i] == CUA_HASHMAP_INSERTED ||
						   c->got[i] == CUA_HASHMAP_EXISTS);
	ck_assert_cua(cua_hashmap_size(c->map, &size));
	ck_assert_uint_eq(size,
			  count_of(c, CUA_HASHMAP_INSERTED) + count_of(c, CUA_HASHMAP_EXISTS));
	free(there);
}

#define CROWD 300

static uint64_t worst_bucket(struct crowd *c)
{
	struct cua_hashmap_statistics s = {.struct_size = sizeof(s)};

	ck_assert_cua(cua_hashmap_get_statistics(c->map, &s));
	return s.worst_bucket;
}

/* An attacker with the seed can crowd a bucket. Without the seed or the secret no attacker can. */
START_TEST(crafted)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .seed = CUA_HASH_SEED_FIXED};
	struct crowd c = crowd_make(ctx, &kinds[_i], &o, 4 * CROWD, CROWD, 5);

	ck_assert_uint_eq(inserted(&c), CROWD);
	/* all keys have their homes in the same 32nd of the buckets */
	ck_assert_uint_ge(worst_bucket(&c), CROWD / 16);
	expect_found(&c);
	crowd_free(&c);

	for (int hidden = 0; hidden < 3; hidden++) {
		const uint64_t shared = hidden ? CUA_HASH_SEED_FIXED : 0;

		/*
		 * a random seed; then secrets: half of the secret is known, or only the hash
		 * function is unknown
		 */
		o.seed = shared;
		o.seed_high = hidden == 1 ? 77 : 0;
		o.hash = hidden ? CUA_HASHMAP_HASH_KEYED : CUA_HASHMAP_HASH_SEEDED;
		c = crowd_make(ctx, &kinds[_i], &o, 4 * CROWD, CROWD, 5);
		ck_assert_uint_eq(inserted(&c), CROWD);
		/*
		 * 300 random keys in 64 buckets or more are 4.7 a bucket; 19 or more have a
		 * probability of 10^-5
		 */
		ck_assert_uint_lt(worst_bucket(&c), 24);
		expect_found(&c);
		crowd_free(&c);
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Slots a bucket. */
static size_t slots_of(struct cua_context *ctx, const struct kind *k)
{
	struct cua_hashmap_options o = {.struct_size = sizeof(o), .portable = k->portable};
	struct cua_hashmap *map;
	uint64_t slots;

	ck_assert_cua(cua_hashmap_create(ctx, &o, k->key, k->value, 1, &map));
	ck_assert_cua(cua_hashmap_capacity(map, &slots));
	ck_assert_cua(cua_hashmap_destroy(map));
	return (size_t)slots;
}

/* Slots that the crafted keys can use in a map with max_probes. */
static size_t least_slots(const struct crowd *c, size_t *most)
{
	struct cua_hashmap_view view;
	const size_t slots = slots_of(c->ctx, c->k);

	ck_assert_cua(cua_hashmap_get_view(c->map, &view));
	ck_assert_uint_eq(view.n_buckets, 64);
	/* with slot states, probes begin at any slot of the home bucket */
	*most = (view.layout == CUA_HASHMAP_WORDS ? 32 : 33) * slots;
	return 32 * slots;
}

START_TEST(bounded)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {.struct_size = sizeof(o),
					.seed = CUA_HASH_SEED_FIXED,
					.max_probes = 32,
					.rejects = 5};
	const struct kind *k = &kinds[_i];
	struct crowd c = crowd_make(ctx, k, &o, 64 * slots_of(ctx, k), CROWD, 6);
	size_t most, least = least_slots(&c, &most), n;
	uint64_t rejected = 0;
	void *pairs;

	n = inserted(&c);
	ck_assert_uint_ge(n, least);
	ck_assert_uint_le(n, most);
	ck_assert_uint_eq(count_of(&c, CUA_HASHMAP_FULL), CROWD - n);
	ck_assert_uint_lt(n, CROWD);
	ck_assert_status(cua_hashmap_status(c.map), CUA_ERROR_FULL);
	expect_found(&c);
	pairs = test_alloc(ctx, 5 * 32);
	ck_assert_cua(cua_hashmap_rejected(c.map, 5, pairs, k->vs ? (char *)pairs + 5 * 16 : NULL,
					   &rejected));
	ck_assert_uint_eq(rejected, CROWD - n);
	test_free(ctx, pairs);

	/* again: exactly the keys in the map have the result EXISTS */
	ck_assert_uint_eq(inserted(&c), 0);
	ck_assert_uint_eq(count_of(&c, CUA_HASHMAP_EXISTS), n);
	expect_found(&c);
	if (k->vs) {
		ck_assert_cua(cua_hashmap_update_n(c.map, CUA_UPDATE_ADD, c.n, c.keys, c.values,
						   c.results));
		test_download(ctx, c.got, c.results, c.n);
		ck_assert_uint_eq(count_of(&c, CUA_HASHMAP_EXISTS), n);
		ck_assert_uint_eq(count_of(&c, CUA_HASHMAP_FULL), CROWD - n);
	}

	/* an erased slot is reused; keys that were rejected may get it */
	ck_assert_cua(cua_hashmap_erase_n(c.map, c.n / 2, c.keys, NULL));
	ck_assert_uint_gt(inserted(&c), 0);
	expect_found(&c);

	/* a build has the same bound */
	ck_assert_cua(cua_hashmap_clear(c.map));
	ck_assert_cua(cua_hashmap_build_n(c.map, c.n, c.keys, c.values, c.results));
	test_download(ctx, c.got, c.results, c.n);
	n = count_of(&c, CUA_HASHMAP_INSERTED);
	ck_assert_uint_ge(n, least);
	ck_assert_uint_le(n, most);
	expect_found(&c);
	crowd_free(&c);
	cua_context_destroy(ctx);
}
END_TEST

/* A resize of a map that spreads the keys to a size that crowds them fails and changes nothing. */
START_TEST(bounded_resize)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {
		.struct_size = sizeof(o), .seed = CUA_HASH_SEED_FIXED, .max_probes = 32};
	struct crowd c = crowd_make(ctx, &kinds[0], &o, 4096 * 7, CROWD, 6);
	struct cua_hashmap_view before, after;

	ck_assert_uint_eq(inserted(&c), CROWD);
	ck_assert_cua(cua_hashmap_get_view(c.map, &before));
	ck_assert_status(cua_hashmap_resize(c.map, 64 * 7), CUA_ERROR_SIZE);
	ck_assert_cua(cua_hashmap_get_view(c.map, &after));
	ck_assert_mem_eq(&before, &after, sizeof(before));
	expect_found(&c);
	ck_assert_cua(cua_hashmap_status(c.map));
	ck_assert_cua(cua_hashmap_resize(c.map, 8192 * 7));
	expect_found(&c);
	crowd_free(&c);
	cua_context_destroy(ctx);
}
END_TEST

#define CRAFTED 6000
/*
 * Crafted keys among many: each key in the map is within the bound, also after a GPU's bulk build.
 */
START_TEST(bounded_build)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap_options o = {
		.struct_size = sizeof(o), .seed = CUA_HASH_SEED_FIXED, .max_probes = 32};
	const size_t others = test_quick() ? 100000 : 2000000, n = others + CRAFTED;
	const struct kind *k = &kinds[_i ? 2 : 0];
	uint64_t seed = test_seed("bounded_build"), size = 0, crafted_there, crowded_out;
	struct cua_hashmap_view view;
	char *keys = test_malloc(n * k->ks);
	uint8_t *got = test_malloc(n);
	struct cua_hashmap *map;
	void *on_device, *values, *results;

	ck_assert_cua(cua_hashmap_create(ctx, &o, k->key, k->value, n + n / 4, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	/* homes in the first 2^-11 of the buckets, and probe steps of 1 modulo 16 */
	for (size_t i = 0, have = 0; have < CRAFTED; i++) {
		const uint64_t key = i + 2, hash = cua_hash_u64(key, CUA_HASH_SEED_FIXED);

		if (hash >> 53 || (hash >> 4 & 15))
			continue;
		memcpy(keys + have * k->ks, &key, k->ks);
		have++;
	}
	for (size_t i = CRAFTED; i < n; i++) {
		uint64_t key = test_random(&seed) | (uint64_t)1 << 31;

		memcpy(keys + i * k->ks, &key, k->ks);
	}
	on_device = test_upload(ctx, keys, n * k->ks);
	values = test_alloc(ctx, n * k->vs);
	results = test_alloc(ctx, n);
	for (int builds = 0; builds < 2; builds++) {
		ck_assert_cua(cua_hashmap_clear(map));
		ck_assert_cua(builds ? cua_hashmap_build_n(map, n, on_device, values, NULL)
				     : cua_hashmap_insert_n(map, n, on_device, values, results));
		ck_assert_cua(cua_hashmap_size(map, &size));
		ck_assert_uint_gt(size, others - others / 5);
		ck_assert_cua(cua_hashmap_contains_n(map, n, on_device, results));
		test_download(ctx, got, results, n);
		crafted_there = 0;
		crowded_out = 0;
		for (size_t i = 0; i < n; i++) {
			crowded_out += i >= CRAFTED && !got[i];
			crafted_there += i < CRAFTED && got[i];
		}
		/* the crafted keys fill a region and crowd out other keys there */
		ck_assert_uint_lt(crowded_out, test_quick() ? 20000 : 10000);
		ck_assert_uint_gt(crafted_there, 0);
		ck_assert_uint_lt(crafted_there, CRAFTED);
		ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
#if !TEST_CUDA
		{
			const struct kind kind = *k;
			struct cua_u128 key, value;

			for (uint64_t p = 0; p < cua__hashmap_all_slots(&view, kind.ks, kind.vs);
			     p++) {
				uint64_t hash, home, d = 0;

				if (p / cua__hashmap_word_slots(kind.ks, kind.vs) >=
					    view.n_buckets ||
				    !cua__hashmap_at(&view, kind.ks, kind.vs, p, &key, &value))
					continue;
				hash = cua_hash_u64(key.lo, view.seed);
				home = cua_hash_to_index(hash, view.n_buckets);
				while (d < 32 &&
				       cua__hashmap_word_probe(&view, home, hash, d) !=
					       p / cua__hashmap_word_slots(kind.ks, kind.vs))
					d++;
				EXPECT(d < 32, "key %llu is too far", (unsigned long long)key.lo);
			}
		}
#endif
	}
	ck_assert_cua(cua_hashmap_destroy(map));
	test_free(ctx, on_device);
	test_free(ctx, values);
	test_free(ctx, results);
	free(keys);
	free(got);
	cua_context_destroy(ctx);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("hostile");
	TCase *tc = tcase_create("hostile");

	tcase_set_timeout(tc, 600);
	tcase_add_test(tc, keyed_hash);
	tcase_add_test(tc, seeds);
	tcase_add_test(tc, bad_options);
	tcase_add_loop_test(tc, crafted, 0, COUNT(kinds));
	tcase_add_loop_test(tc, bounded, 0, COUNT(kinds));
	tcase_add_test(tc, bounded_resize);
	tcase_add_loop_test(tc, bounded_build, 0, 2);
	suite_add_tcase(suite, tc);
	return test_run(suite, TEST_BACKEND);
}
