/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <pthread.h>
#include <sys/mman.h>

/* Keys and values are uint64_t in the tests; backend arrays have the map's types. */
static const enum cua_type types[2] = {CUA_U32, CUA_U64};

static uint64_t cut(uint64_t v, enum cua_type type)
{
	return type == CUA_U32 ? (uint32_t)v : v;
}

/* A backend array of n elements of a type, from numbers. */
static void *put(struct cua_context *ctx, enum cua_type type, size_t n, const uint64_t *v)
{
	size_t size = cua_type_size(type);
	char *host = test_malloc(n * size);
	void *p;

	for (size_t i = 0; i < n; i++) {
		uint32_t narrow = (uint32_t)v[i];

		memcpy(host + i * size, type == CUA_U32 ? (void *)&narrow : (void *)&v[i], size);
	}
	p = test_upload(ctx, host, n * size);
	free(host);
	return p;
}

static void get(struct cua_context *ctx, enum cua_type type, size_t n, const void *p, uint64_t *v)
{
	size_t size = cua_type_size(type);
	char *host = test_malloc(n * size);

	test_download(ctx, host, p, n * size);
	for (size_t i = 0; i < n; i++) {
		uint32_t narrow = 0;

		if (type == CUA_U32) {
			memcpy(&narrow, host + i * size, size);
			v[i] = narrow;
		} else {
			memcpy(&v[i], host + i * size, size);
		}
	}
	free(host);
}

static struct cua_hashmap *new_map(struct cua_context *ctx, enum cua_type key_type,
				   enum cua_type value_type, uint64_t capacity)
{
	struct cua_hashmap *map = NULL;

	ck_assert_cua(cua_hashmap_create(ctx, NULL, key_type, value_type, capacity, &map));
	return map;
}

static uint64_t size_of(struct cua_hashmap *map)
{
	uint64_t size = 99;

	ck_assert_cua(cua_hashmap_size(map, &size));
	return size;
}

/* Number i of a set of different keys that has every unusual pattern in it. */
static uint64_t key_number(uint64_t i, enum cua_type type)
{
	static const uint64_t unusual[] = {0, ~(uint64_t)0, 1, 0x80000000, 0x7fffffff, 0xfffffffe};

	if (i < sizeof(unusual) / sizeof(unusual[0]))
		return cut(unusual[i], type);
	/* bijective in 32 bits, and away from the unusual ones for the small i of the tests */
	return type == CUA_U32 ? (uint32_t)(i * 2654435761u) : i * 0x9e3779b97f4a7c15u;
}

/* Of the keys above, those that are in cells of their own: they need no slot. */
static uint64_t cells_of(const struct cua_hashmap *map, enum cua_type key_type,
			 enum cua_type value_type)
{
	struct cua_hashmap_view view;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	return key_type != value_type || view.layout != CUA_HASHMAP_WORDS ? 0
	       : key_type == CUA_U32                                      ? 1
									  : 2;
}

/* ---- arguments ---- */

START_TEST(bad_arguments)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	struct cua_hashmap *map = NULL, *kept = (struct cua_hashmap *)&map;
	struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;
	struct cua_hashmap_view view;
	uint64_t number = 5, some[4] = {1, 2, 3, 4};
	uint32_t *keys = test_alloc(ctx, 64);
	uint64_t *values = test_alloc(ctx, 64);
	uint8_t *flags = test_alloc(ctx, 64);
	char *inside;

	options.seed = 1;
	ck_assert_status(cua_hashmap_create(NULL, NULL, CUA_U32, CUA_U64, 9, &kept),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U64, 9, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_I32, CUA_U64, 9, &kept), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_F64, 9, &kept), CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, (enum cua_type)99, CUA_U64, 9, &kept),
			 CUA_ERROR_TYPE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U64, 0, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_create(ctx, NULL, CUA_U32, CUA_U64, ~(uint64_t)0, &kept),
			 CUA_ERROR_SIZE);
	options.struct_size = 1;
	ck_assert_status(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U64, 9, &kept),
			 CUA_ERROR_VALUE);
	options.struct_size = sizeof(options) + 1;
	ck_assert_status(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U64, 9, &kept),
			 CUA_ERROR_VALUE);
	ck_assert_ptr_eq(kept, &map);
	options.struct_size = sizeof(options);
	ck_assert_cua(cua_hashmap_create(ctx, &options, CUA_U32, CUA_U64, 9, &map));

	ck_assert_status(cua_hashmap_get_view(NULL, &view), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_get_view(map, NULL), CUA_ERROR_NULL);
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert(view.layout == CUA_HASHMAP_WORDS || view.layout == CUA_HASHMAP_STATES);
	ck_assert_uint_eq(view.seed, 1);
	inside = view.buckets;
	ck_assert_status(cua_hashmap_capacity(NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_capacity(map, NULL), CUA_ERROR_NULL);
	ck_assert_uint_eq(number, 5);
	ck_assert_cua(cua_hashmap_capacity(map, &number));
	ck_assert_uint_ge(number, 9);
	ck_assert_uint_le(number, 14);
	ck_assert_status(cua_hashmap_clear(NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_status(NULL), CUA_ERROR_NULL);

	ck_assert_cua(cua_copy(ctx, keys, some, 16));
	ck_assert_cua(cua_copy(ctx, values, some, 32));
	ck_assert_cua(cua_hashmap_insert_n(map, 2, keys, values, NULL));
	ck_assert_uint_eq(size_of(map), 2);

	for (int assign = 0; assign < 3; assign++) {
#define WRITE(map, n, keys, values, results)                                                       \
	(assign == 2 ? cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, values, results)         \
	 : assign    ? cua_hashmap_assign_n(map, n, keys, values, results)                         \
		     : cua_hashmap_insert_n(map, n, keys, values, results))
		ck_assert_status(WRITE(NULL, 1, keys, values, flags), CUA_ERROR_NULL);
		ck_assert_status(WRITE(map, 1, NULL, values, flags), CUA_ERROR_NULL);
		ck_assert_status(WRITE(map, 1, keys, NULL, flags), CUA_ERROR_NULL);
		ck_assert_status(WRITE(map, ~(size_t)0, keys, values, flags), CUA_ERROR_SIZE);
		ck_assert_status(WRITE(map, 1, (char *)keys + 2, values, flags),
				 CUA_ERROR_ALIGNMENT);
		ck_assert_status(WRITE(map, 1, keys, (char *)values + 4, flags),
				 CUA_ERROR_ALIGNMENT);
		ck_assert_status(WRITE(map, 4, keys, values, (uint8_t *)keys + 15),
				 CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, keys, values, (uint8_t *)values), CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, inside, values, flags), CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, keys, inside, flags), CUA_ERROR_OVERLAP);
		ck_assert_status(WRITE(map, 4, keys, values, (uint8_t *)inside), CUA_ERROR_OVERLAP);
		ck_assert_cua(WRITE(map, 0, NULL, NULL, NULL));
#undef WRITE
	}
	ck_assert_status(cua_hashmap_update_n(map, (enum cua_update)0, 1, keys, values, flags),
			 CUA_ERROR_VALUE);
	ck_assert_status(cua_hashmap_update_n(map, (enum cua_update)16, 1, keys, values, flags),
			 CUA_ERROR_VALUE);

#define UPDATE(map, op, n, keys, value, results)                                                   \
	cua_hashmap_update_value_n(map, (enum cua_update)(op), n, keys, value, results)
	ck_assert_status(UPDATE(NULL, CUA_UPDATE_ADD, 1, keys, &number, flags), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, NULL, &number, flags), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, keys, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 0, NULL, NULL, NULL), CUA_ERROR_NULL);
	ck_assert_status(UPDATE(map, 0, 1, keys, &number, flags), CUA_ERROR_VALUE);
	ck_assert_status(UPDATE(map, 16, 1, keys, &number, flags), CUA_ERROR_VALUE);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, ~(size_t)0, keys, &number, flags),
			 CUA_ERROR_SIZE);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, keys, (void *)(UINTPTR_MAX - 3), flags),
			 CUA_ERROR_SIZE);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 1, (char *)keys + 1, &number, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 4, keys, &number, (uint8_t *)keys + 15),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 4, inside, &number, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(UPDATE(map, CUA_UPDATE_ADD, 4, keys, &number, (uint8_t *)inside),
			 CUA_ERROR_OVERLAP);
	/* the values of the backend are the host's on the CPU alone */
	ck_assert_status(UPDATE(map, CUA_UPDATE_MIN, 0, keys, values, flags),
			 TEST_BACKEND == CUA_BACKEND_CUDA ? CUA_ERROR_MEMORY_KIND : CUA_OK);
	ck_assert_cua(UPDATE(map, CUA_UPDATE_ADD, 0, NULL, &number, NULL));
#undef UPDATE

	ck_assert_status(cua_hashmap_find_n(NULL, 1, keys, values, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_find_n(map, 1, NULL, values, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_find_n(map, 1, keys, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_find_n(map, ~(size_t)0, keys, values, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_find_n(map, 1, (char *)keys + 1, values, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_find_n(map, 1, keys, (char *)values + 4, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_find_n(map, 2, keys, keys, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, values, (uint8_t *)values + 31),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, values, (uint8_t *)keys),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, inside, flags), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_find_n(map, 4, keys, values, (uint8_t *)inside),
			 CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_hashmap_find_n(map, 0, NULL, NULL, NULL));

	ck_assert_status(cua_hashmap_contains_n(NULL, 1, keys, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_contains_n(map, 1, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_contains_n(map, 1, keys, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_contains_n(map, ~(size_t)0, keys, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_contains_n(map, 1, (char *)keys + 1, flags),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_contains_n(map, 1, keys, (uint8_t *)keys + 3),
			 CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_hashmap_contains_n(map, 0, NULL, NULL));

	ck_assert_status(cua_hashmap_erase_n(NULL, 1, keys, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_erase_n(map, 1, NULL, flags), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_erase_n(map, ~(size_t)0, keys, flags), CUA_ERROR_SIZE);
	ck_assert_status(cua_hashmap_erase_n(map, 1, (char *)keys + 1, flags), CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_erase_n(map, 1, keys, (uint8_t *)keys), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_erase_n(map, 1, inside, flags), CUA_ERROR_OVERLAP);
	ck_assert_cua(cua_hashmap_erase_n(map, 0, NULL, NULL));

	number = 5;
	ck_assert_status(cua_hashmap_size(NULL, &number), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_size(map, NULL), CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_size(map, (uint64_t *)(void *)((char *)values + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_size(map, (uint64_t *)(void *)inside), CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_retrieve(NULL, CUA_HASHMAP_ANY, 1, keys, values, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, NULL, values, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, NULL, &number),
			 CUA_ERROR_NULL);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, values, NULL),
			 CUA_ERROR_NULL);
	ck_assert_status(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, ~(uint64_t)0, keys, values, &number),
		CUA_ERROR_SIZE);
	ck_assert_status(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, (char *)keys + 1, values, &number),
		CUA_ERROR_ALIGNMENT);
	ck_assert_status(
		cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, (char *)values + 4, &number),
		CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, keys, values,
					      (uint64_t *)(void *)(flags + 4)),
			 CUA_ERROR_ALIGNMENT);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 2, values, values, &number),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 2, keys, values, values + 1),
			 CUA_ERROR_OVERLAP);
	ck_assert_status(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 1, inside, values, &number),
			 CUA_ERROR_OVERLAP);
	ck_assert_uint_eq(number, 5);

#if TEST_CUDA
	{
		/* ordinary memory, where the device cannot reach it */
		enum cua_status status;
		uint32_t *host = test_malloc(64);

		memset(host, 0, 64);
		status = cua_hashmap_contains_n(map, 1, host, flags);
		ck_assert(status == CUA_ERROR_MEMORY_KIND || status == CUA_OK);
		ck_assert_cua(cua_context_synchronize(ctx));
		free(host);
	}
#endif
	/* nothing of all that has changed the map */
	ck_assert_uint_eq(size_of(map), 2);
	ck_assert_cua(cua_hashmap_status(map));
	number = 0;
	ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 0, NULL, NULL, &number));
	ck_assert_uint_eq(number, 2);

	ck_assert_cua(cua_hashmap_destroy(map));
	ck_assert_cua(cua_hashmap_destroy(NULL));
	test_free(ctx, keys);
	test_free(ctx, values);
	test_free(ctx, flags);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- the hash of byte strings ---- */

static int by_hash(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void expect_distinct(uint64_t *hashes, size_t n)
{
	qsort(hashes, n, sizeof(*hashes), by_hash);
	for (size_t i = 1; i < n; i++)
		EXPECT(hashes[i - 1] != hashes[i], "two strings have the hash %llx",
		       (unsigned long long)hashes[i]);
}

/* Byte i is 37 * i + 11; the hashes are those of a model in exact integers of another language. */
START_TEST(known_hashes)
{
	static const struct {
		size_t n;
		uint64_t seed, hash;
	} known[] = {
		{0, 0x0u, 0x0000000000000000u},   {0, 0x123456789abcdefu, 0x1bda7c1b7519fde3u},
		{1, 0x0u, 0x8fca374c49e06d6bu},   {1, 0x123456789abcdefu, 0x25f61e5bd8ccd225u},
		{2, 0x0u, 0x56198fd0bf2884e6u},   {2, 0x123456789abcdefu, 0x696834f7cadfc88eu},
		{3, 0x0u, 0xed749bba7935a434u},   {3, 0x123456789abcdefu, 0x5313dc8055f9c545u},
		{7, 0x0u, 0xac774dc1f334b4fdu},   {7, 0x123456789abcdefu, 0x6b78d9ec6dc88849u},
		{8, 0x0u, 0x32e7bd8dc63d3ee9u},   {8, 0x123456789abcdefu, 0xac6deefc6b97b7c1u},
		{9, 0x0u, 0xdefa494039e6ff8cu},   {9, 0x123456789abcdefu, 0xd0e6c21229470a77u},
		{15, 0x0u, 0x84b6e381f0d256a4u},  {15, 0x123456789abcdefu, 0x479e45b5e2cdba77u},
		{16, 0x0u, 0x586e2e0f356eeff2u},  {16, 0x123456789abcdefu, 0x4c014d13de3a09b3u},
		{17, 0x0u, 0x898d9264196601b6u},  {17, 0x123456789abcdefu, 0x70a8b0f3610c52a7u},
		{31, 0x0u, 0x2ea68ee209447179u},  {31, 0x123456789abcdefu, 0x90f52d32f3e0c2a4u},
		{64, 0x0u, 0xd8ed8bd2273c4774u},  {64, 0x123456789abcdefu, 0xbf044a49e5fa60d9u},
		{255, 0x0u, 0x3e6a33144226e2ffu}, {255, 0x123456789abcdefu, 0x932d3de67ef070feu},
		{256, 0x0u, 0x00fc1d5776ff2d63u}, {256, 0x123456789abcdefu, 0x117655b05be5607fu},
		{257, 0x0u, 0x8abc3b14bd99f760u}, {257, 0x123456789abcdefu, 0x51901e2ed12f73a8u},
	};
	unsigned char bytes[8 + 257];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		for (size_t at = 0; at < 8; at++) {
			memset(bytes, 0xff, sizeof(bytes));
			for (size_t k = 0; k < known[i].n; k++)
				bytes[at + k] = (unsigned char)(k * 37 + 11);
			EXPECT(cua_hash_bytes(bytes + at, known[i].n, known[i].seed) ==
				       known[i].hash,
			       "%zu bytes at %zu", known[i].n, at);
		}
	ck_assert_uint_eq(cua_hash_bytes(NULL, 0, 5), cua_hash_u64(0, 5));
}
END_TEST

/* Strings of few bytes, of zeros of every length, and pairs that differ in the padding alone. */
START_TEST(distinct_hashes)
{
	static const unsigned char zeros[4096];
	const size_t n = 1 + 256 + 65536 + 4095 + 26 * 26 * 26 * 26;
	uint64_t *hashes = test_malloc(n * sizeof(*hashes));

	for (int seed = 0; seed < 2; seed++) {
		unsigned char s[4];
		size_t at = 0;

		for (unsigned i = 0; i < 65536; i++) {
			s[0] = (unsigned char)i;
			s[1] = (unsigned char)(i >> 8);
			if (i < 256)
				hashes[at++] = cua_hash_bytes(s, 1, (uint64_t)seed);
			hashes[at++] = cua_hash_bytes(s, 2, (uint64_t)seed);
		}
		hashes[at++] = cua_hash_bytes(NULL, 0, (uint64_t)seed);
		for (size_t i = 3; i < 4096; i++)
			hashes[at++] = cua_hash_bytes(zeros, i, (uint64_t)seed);
		for (unsigned i = 0; i < 26 * 26 * 26 * 26; i++) {
			s[0] = (unsigned char)('a' + i % 26);
			s[1] = (unsigned char)('a' + i / 26 % 26);
			s[2] = (unsigned char)('a' + i / 676 % 26);
			s[3] = (unsigned char)('a' + i / 17576);
			hashes[at++] = cua_hash_bytes(s, 4, (uint64_t)seed);
		}
		ck_assert_uint_le(at, n);
		expect_distinct(hashes, at);
	}
	free(hashes);
}
END_TEST

/* Every bit of a string changes every bit of the hash in about half of the strings. */
START_TEST(avalanche)
{
	enum { TRIES = 512 };
	static const size_t lengths[] = {1, 4, 7, 8, 13, 16, 24};
	uint64_t random = 12345;

	for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
		const size_t n = lengths[l];
		unsigned changed[64];
		unsigned char s[24];

		for (size_t bit = 0; bit < 8 * n; bit++) {
			memset(changed, 0, sizeof(changed));
			for (int t = 0; t < TRIES; t++) {
				uint64_t before, after;

				for (size_t i = 0; i < n; i++)
					s[i] = (unsigned char)test_random(&random);
				before = cua_hash_bytes(s, n, (uint64_t)t);
				s[bit / 8] = (unsigned char)(s[bit / 8] ^ 1u << bit % 8);
				after = cua_hash_bytes(s, n, (uint64_t)t);
				for (int k = 0; k < 64; k++)
					changed[k] += (before ^ after) >> k & 1;
			}
			/* 256 are expected, and six times the deviation is 68 */
			for (int k = 0; k < 64; k++)
				EXPECT(changed[k] > 176 && changed[k] < 336,
				       "bit %zu of %zu bytes changes bit %d %u times", bit, n, k,
				       changed[k]);
		}
	}
}
END_TEST

/* ---- against a model ---- */

#define KEYS 1200

struct model {
	struct cua_context *ctx;
	struct cua_hashmap *map;
	enum cua_type key_type, value_type;
	uint64_t slots;
	uint64_t size;
	uint8_t present[KEYS];
	uint64_t value[KEYS];
};

enum { INSERT, ASSIGN, ADD, MIN, MAX, AND, OR, XOR, WRITES };

static enum cua_status write_n(struct cua_hashmap *map, int op, size_t n, const void *keys,
			       const void *values, uint8_t *results)
{
	switch (op) {
	case INSERT: return cua_hashmap_insert_n(map, n, keys, values, results);
	case ASSIGN: return cua_hashmap_assign_n(map, n, keys, values, results);
	case ADD: return cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, values, results);
	case MIN: return cua_hashmap_update_n(map, CUA_UPDATE_MIN, n, keys, values, results);
	case MAX: return cua_hashmap_update_n(map, CUA_UPDATE_MAX, n, keys, values, results);
	case AND: return cua_hashmap_update_n(map, CUA_UPDATE_AND, n, keys, values, results);
	case OR: return cua_hashmap_update_n(map, CUA_UPDATE_OR, n, keys, values, results);
	default: return cua_hashmap_update_n(map, CUA_UPDATE_XOR, n, keys, values, results);
	}
}

/* The same where all values are one, from an odd address of the host. */
static enum cua_status write_value_n(struct cua_hashmap *map, int op, size_t n, const void *keys,
				     uint64_t value, enum cua_type type, uint8_t *results)
{
	static const enum cua_update ops[] = {
		[ADD] = CUA_UPDATE_ADD, [MIN] = CUA_UPDATE_MIN, [MAX] = CUA_UPDATE_MAX,
		[AND] = CUA_UPDATE_AND, [OR] = CUA_UPDATE_OR,   [XOR] = CUA_UPDATE_XOR};
	const uint32_t narrow = (uint32_t)value;
	enum cua_status status;
	char bytes[9];

	if (type == CUA_U32)
		memcpy(bytes + 1, &narrow, sizeof(narrow));
	else
		memcpy(bytes + 1, &value, sizeof(value));
	status = cua_hashmap_update_value_n(map, ops[op], n, keys, bytes + 1, results);
	/* read before the call returned */
	memset(bytes, 0x5a, sizeof(bytes));
	return status;
}

static uint64_t write_one(uint64_t old, uint64_t v, int op, enum cua_type type)
{
	switch (op) {
	case INSERT: return old;
	case ASSIGN: return v;
	case ADD: return cut(old + v, type);
	case MIN: return v < old ? v : old;
	case MAX: return v > old ? v : old;
	case AND: return old & v;
	case OR: return old | v;
	default: return old ^ v;
	}
}

/* n different key numbers, in random order. */
static void choose(uint64_t *seed, size_t n, uint64_t *numbers)
{
	static uint64_t all[KEYS];

	for (size_t i = 0; i < KEYS; i++)
		all[i] = i;
	for (size_t i = 0; i < n; i++) {
		size_t j = i + test_random(seed) % (KEYS - i);
		uint64_t t = all[i];

		all[i] = all[j];
		all[j] = t;
		numbers[i] = all[i];
	}
}

static void check_all(struct model *m)
{
	uint64_t keys[KEYS], values[KEYS], n = 0, present = 0, *seen = calloc(KEYS, sizeof(*seen));
	void *k = test_alloc(m->ctx, KEYS * 8), *v = test_alloc(m->ctx, KEYS * 8);

	ck_assert_ptr_nonnull(seen);
	ck_assert_uint_eq(size_of(m->map), m->size);
	ck_assert_cua(cua_hashmap_retrieve(m->map, CUA_HASHMAP_ANY, KEYS, k, v, &n));
	ck_assert_uint_eq(n, m->size);
	get(m->ctx, m->key_type, n, k, keys);
	get(m->ctx, m->value_type, n, v, values);
	for (size_t i = 0; i < n; i++) {
		size_t j;

		for (j = 0; j < KEYS && key_number(j, m->key_type) != keys[i]; j++)
			;
		ck_assert_uint_lt(j, KEYS);
		ck_assert(m->present[j] && !seen[j]);
		ck_assert_uint_eq(m->value[j], values[i]);
		seen[j] = 1;
		present++;
	}
	ck_assert_uint_eq(present, m->size);
	free(seen);
	test_free(m->ctx, k);
	test_free(m->ctx, v);
}

static void random_step(struct model *m, uint64_t *seed)
{
	size_t n = test_random(seed) % 400, op = test_random(seed) % (WRITES + 4);
	uint64_t numbers[400], keys[400], values[400];
	uint8_t flags[400];
	int full = 0, report = test_random(seed) % 4 != 0,
	    one = op >= ADD && op < WRITES && test_random(seed) % 2;
	void *k, *v, *f = test_alloc(m->ctx, 400);

	choose(seed, n, numbers);
	for (size_t i = 0; i < n; i++) {
		keys[i] = key_number(numbers[i], m->key_type);
		values[i] = cut(test_random(seed) >> (test_random(seed) % 64), m->value_type);
		if (test_random(seed) % 16 == 0)
			values[i] = cut(~(uint64_t)0, m->value_type);
		if (one)
			values[i] = values[0];
	}
	k = put(m->ctx, m->key_type, n, keys);
	v = put(m->ctx, m->value_type, n, values);
	if (op < WRITES) {
		if (one)
			ck_assert_cua(write_value_n(m->map, (int)op, n, k, n ? values[0] : 0,
						    m->value_type, f));
		else
			ck_assert_cua(write_n(m->map, (int)op, n, k, v, f));
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++) {
			uint64_t at = numbers[i];

			if (flags[i] == CUA_HASHMAP_EXISTS) {
				ck_assert(m->present[at]);
				m->value[at] =
					write_one(m->value[at], values[i], (int)op, m->value_type);
			} else if (flags[i] == CUA_HASHMAP_INSERTED) {
				ck_assert(!m->present[at]);
				m->present[at] = 1;
				m->value[at] = values[i];
				m->size++;
			} else {
				ck_assert_uint_eq(flags[i], CUA_HASHMAP_FULL);
				ck_assert(!m->present[at]);
				full = 1;
			}
		}
		if (full) {
			ck_assert_uint_ge(m->size, m->slots);
			ck_assert_uint_le(m->size,
					  m->slots + cells_of(m->map, m->key_type, m->value_type));
			ck_assert_status(cua_hashmap_status(m->map), CUA_ERROR_FULL);
		}
	} else if (op == WRITES) {
		ck_assert_cua(cua_hashmap_erase_n(m->map, n, k, f));
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++) {
			ck_assert_uint_eq(flags[i], m->present[numbers[i]]);
			m->size -= flags[i];
			m->present[numbers[i]] = 0;
		}
	} else if (op == WRITES + 1) {
		ck_assert_cua(cua_hashmap_contains_n(m->map, n, k, f));
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(flags[i], m->present[numbers[i]]);
	} else {
		uint64_t got[400];

		ck_assert_cua(cua_hashmap_find_n(m->map, n, k, v, report ? f : NULL));
		get(m->ctx, m->value_type, n, v, got);
		test_download(m->ctx, flags, f, n);
		for (size_t i = 0; i < n; i++) {
			if (report)
				ck_assert_uint_eq(flags[i], m->present[numbers[i]]);
			ck_assert_uint_eq(got[i], m->present[numbers[i]] ? m->value[numbers[i]]
									 : values[i]);
		}
	}
	test_free(m->ctx, k);
	test_free(m->ctx, v);
	test_free(m->ctx, f);
}

START_TEST(random_sequences)
{
	uint64_t seed = test_seed("random_sequences");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	static const uint64_t capacities[] = {7, 300, 2 * KEYS};
	int steps = test_quick() ? 12 : 60;

	for (int t = 0; t < 4; t++)
		for (int c = 0; c < 3; c++) {
			struct model *m = calloc(1, sizeof(*m));
			struct cua_hashmap_options options = CUA_HASHMAP_OPTIONS_INIT;

			ck_assert_ptr_nonnull(m);
			m->ctx = ctx;
			m->key_type = types[t & 1];
			m->value_type = types[t >> 1];
			options.seed = test_random(&seed);
			ck_assert_cua(cua_hashmap_create(ctx, &options, m->key_type, m->value_type,
							 capacities[c], &m->map));
			ck_assert_cua(cua_hashmap_capacity(m->map, &m->slots));
			ck_assert_uint_ge(m->slots, capacities[c]);
			ck_assert_uint_lt(m->slots, 2 * capacities[c] + 7);
			for (int i = 0; i < steps; i++) {
				random_step(m, &seed);
				if (i % 8 == 7)
					check_all(m);
			}
			ck_assert_cua(cua_hashmap_clear(m->map));
			memset(m->present, 0, sizeof(m->present));
			m->size = 0;
			check_all(m);
			ck_assert_cua(cua_hashmap_status(m->map));
			for (int i = 0; i < 3; i++)
				random_step(m, &seed);
			check_all(m);
			ck_assert_cua(cua_hashmap_destroy(m->map));
			free(m);
		}
	cua_context_destroy(ctx);
}
END_TEST

/* ---- equal keys in one call ---- */

START_TEST(equal_keys)
{
	uint64_t seed = test_seed("equal_keys");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	size_t n = test_quick() ? 3001 : 100003;
	uint64_t *keys = test_malloc(n * 8), *values = test_malloc(n * 8);
	uint8_t *flags = test_malloc(n);
	static const uint64_t distinct[] = {1, 2, 33, 1000};

	for (int t = 0; t < 4; t++)
		for (int d = 0; d < 4; d++)
			for (int op = 0; op < WRITES; op++) {
				enum cua_type kt = types[t & 1], vt = types[t >> 1];
				struct cua_hashmap *map = new_map(ctx, kt, vt, 1000);
				uint64_t expected[1000] = {0}, inserted[1000] = {0};
				uint64_t number[1000], got[1000];
				uint8_t seen[1000] = {0};
				void *k, *v, *f = test_alloc(ctx, n), *some;

				for (size_t i = 0; i < n; i++) {
					keys[i] = test_random(&seed) % distinct[d];
					values[i] = cut(test_random(&seed), vt);
					if (seen[keys[i]] || op == INSERT || op == ASSIGN)
						expected[keys[i]] = write_one(expected[keys[i]],
									      values[i], op, vt);
					else
						expected[keys[i]] = values[i];
					seen[keys[i]] = 1;
				}
				for (size_t i = 0; i < n; i++)
					keys[i] = key_number(keys[i], kt);
				for (size_t i = 0; i < distinct[d]; i++)
					number[i] = key_number(i, kt);
				k = put(ctx, kt, n, keys);
				v = put(ctx, vt, n, values);
				some = put(ctx, kt, distinct[d], number);
				ck_assert_cua(write_n(map, op, n, k, v, f));
				test_download(ctx, flags, f, n);
				ck_assert_cua(cua_hashmap_find_n(map, distinct[d], some, v, f));
				get(ctx, vt, distinct[d], v, got);
				for (size_t i = 0; i < n; i++)
					for (size_t j = 0; j < distinct[d] && distinct[d] < 50; j++)
						if (keys[i] == number[j]) {
							inserted[j] +=
								flags[i] == CUA_HASHMAP_INSERTED;
							ck_assert_uint_ne(flags[i],
									  CUA_HASHMAP_FULL);
							if (op <= ASSIGN && values[i] == got[j])
								expected[j] = got[j];
						}
				for (size_t j = 0; j < distinct[d]; j++) {
					if (!seen[j] || (op <= ASSIGN && distinct[d] >= 50))
						continue;
					ck_assert_uint_eq(got[j], expected[j]);
					if (distinct[d] < 50)
						ck_assert_uint_eq(inserted[j], 1);
				}
				/* the keys twice: each is erased once */
				ck_assert_cua(cua_hashmap_erase_n(map, n, k, f));
				test_download(ctx, flags, f, n);
				for (size_t i = 0, m = 0; i <= n; i++) {
					if (i == n) {
						for (size_t j = 0; j < distinct[d]; j++)
							m -= seen[j];
						ck_assert_uint_eq(m, 0);
					} else {
						m += flags[i];
					}
				}
				ck_assert_uint_eq(size_of(map), 0);
				test_free(ctx, k);
				test_free(ctx, v);
				test_free(ctx, f);
				test_free(ctx, some);
				ck_assert_cua(cua_hashmap_destroy(map));
			}
	free(keys);
	free(values);
	free(flags);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Batches so large that a block's share is many tiles, with few keys and many, in a map with room
 * for all and in one for half of them. No key is erased, so one that was rejected once stays
 * absent.
 */
START_TEST(large_batches)
{
	enum { MANY = 6000 };
	struct per_key {
		uint64_t items, inserted, full, combined, first, got, others;
	};
	uint64_t seed = test_seed("large_batches");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	/* more than one tile a block on a GPU of 200 multiprocessors */
	size_t n = TEST_BACKEND == CUA_BACKEND_CPU || test_quick() ? 20011 : 600011;
	uint32_t *which = test_malloc(n * sizeof(*which));
	uint64_t *keys = test_malloc(n * 8), *values = test_malloc(n * 8),
		 *got = test_malloc(MANY * 8);
	struct per_key *of = test_malloc(MANY * sizeof(*of));
	uint8_t *flags = test_malloc(n), *found = test_malloc(MANY);
	static const uint64_t distinct[] = {3, 700, 1400, MANY};

	for (int run = 0; run < 4 * WRITES * 2; run++) {
		uint64_t d = distinct[run % 4];
		int op = run / 4 % WRITES, half = run / 4 / WRITES;
		enum cua_type kt = types[(run + op) & 1], vt = types[(run / 2 + half) & 1];
		struct cua_hashmap *map = new_map(ctx, kt, vt, half ? d / 2 : d);
		uint64_t slots = 0, present = 0;
		void *k, *v, *f = test_alloc(ctx, n), *some;

		memset(of, 0, MANY * sizeof(*of));
		for (size_t i = 0; i < n; i++) {
			struct per_key *p;

			which[i] = (uint32_t)(test_random(&seed) % d);
			p = &of[which[i]];
			keys[i] = key_number(which[i], kt);
			values[i] = cut(test_random(&seed), vt);
			p->combined =
				p->items++ ? write_one(p->combined, values[i], op, vt) : values[i];
		}
		k = put(ctx, kt, n, keys);
		v = put(ctx, vt, n, values);
		for (size_t i = 0; i < d; i++)
			got[i] = key_number(i, kt);
		some = put(ctx, kt, d, got);
		ck_assert_cua(write_n(map, op, n, k, v, f));
		test_download(ctx, flags, f, n);
		test_free(ctx, f);
		f = test_alloc(ctx, MANY);
		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		for (int again = 0; again < 2; again++) {
			void *out = test_alloc(ctx, MANY * 8);

			ck_assert_cua(cua_hashmap_find_n(map, d, some, out, f));
			test_download(ctx, found, f, d);
			get(ctx, vt, d, out, got);
			test_free(ctx, out);
			for (size_t i = 0; i < n && !again; i++) {
				struct per_key *p = &of[which[i]];

				p->got = got[which[i]];
				if (flags[i] == CUA_HASHMAP_INSERTED) {
					p->inserted++;
					p->first = values[i];
				} else if (flags[i] == CUA_HASHMAP_FULL) {
					p->full++;
				} else {
					ck_assert_uint_eq(flags[i], CUA_HASHMAP_EXISTS);
					p->others += values[i] == p->got;
				}
			}
			present = 0;
			for (uint64_t i = 0; i < d; i++) {
				const struct per_key *p = &of[i];

				present += found[i];
				if (!again) {
					ck_assert_uint_eq(p->inserted, found[i]);
					ck_assert_uint_eq(p->full, found[i] ? 0 : p->items);
				}
				if (!found[i])
					continue;
				if (op > ASSIGN)
					ck_assert_uint_eq(got[i], p->combined);
				else if (!again && op == INSERT)
					ck_assert_uint_eq(got[i], p->first);
				else if (!again && p->items > 1)
					ck_assert_uint_ne(p->others, 0);
			}
			ck_assert_uint_eq(size_of(map), present);
			if (d > slots + cells_of(map, kt, vt))
				ck_assert(present >= slots &&
					  present <= slots + cells_of(map, kt, vt));
			ck_assert_status(cua_hashmap_status(map),
					 present >= slots && present < d ? CUA_ERROR_FULL : CUA_OK);
			/* once more, without results */
			ck_assert_cua(cua_hashmap_clear(map));
			ck_assert_cua(write_n(map, op, n, k, v, NULL));
		}
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, f);
		test_free(ctx, some);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	free(which);
	free(keys);
	free(values);
	free(got);
	free(of);
	free(flags);
	free(found);
	cua_context_destroy(ctx);
}
END_TEST

/* ---- full, and keys that come and go ---- */

#if !TEST_CUDA
/*
 * The longest probe, in buckets behind the home, that a key of a map of words ever needed (host
 * memory only).
 */
static uint64_t longest_probe(const struct cua_hashmap *map)
{
	struct cua_hashmap_view view;
	uint64_t longest = 0;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_uint_eq(view.layout, CUA_HASHMAP_WORDS);
	for (uint64_t b = 0; b < view.n_buckets; b++) {
		struct cua__hashmap_head head =
			cua__hashmap_word_head(cua__hashmap_word_bucket(&view, b), 0);
		uint64_t far = cua__hashmap_far_of((uint32_t)(head.lo >> 24) & 255);

		if (far > longest)
			longest = far;
	}
	return longest;
}
#endif

START_TEST(full)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t capacity = test_quick() ? 701 : 20003, slots = 0, n, got = 0, rejected = 0;
	uint64_t *keys, *values;
	uint8_t *flags, *again;
	void *k, *v, *f;

	for (int t = 0; t < 4; t++) {
		enum cua_type kt = types[t & 1], vt = types[t >> 1];
		struct cua_hashmap *map = new_map(ctx, kt, vt, capacity);

		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		slots += cells_of(map, kt, vt);
		n = slots + 1000;
		keys = test_malloc(n * 8);
		values = test_malloc(n * 8);
		flags = test_malloc(n);
		again = test_malloc(n);
		for (uint64_t i = 0; i < n; i++) {
			keys[i] = key_number(i, kt);
			values[i] = cut(keys[i] * 3 + 1, vt);
		}
		k = put(ctx, kt, n, keys);
		v = put(ctx, vt, n, values);
		f = test_alloc(ctx, n);
		/* every capacity different keys fit */
		ck_assert_cua(cua_hashmap_insert_n(map, capacity, k, v, f));
		ck_assert_uint_eq(size_of(map), capacity);
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_cua(cua_hashmap_insert_n(map, n, k, v, f));
		test_download(ctx, flags, f, n);
		ck_assert_uint_eq(size_of(map), slots);
		ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
		rejected = 0;
		for (uint64_t i = 0; i < n; i++) {
			rejected += flags[i] == CUA_HASHMAP_FULL;
			if (i < capacity)
				ck_assert_uint_eq(flags[i], CUA_HASHMAP_EXISTS);
		}
		ck_assert_uint_eq(rejected, 1000);
		/* what was taken is there with its value, what was rejected is not */
		ck_assert_cua(cua_hashmap_find_n(map, n, k, v, f));
		test_download(ctx, again, f, n);
		for (uint64_t i = 0; i < n; i++)
			ck_assert_uint_eq(again[i], flags[i] != CUA_HASHMAP_FULL);
		get(ctx, vt, n, v, values);
		for (uint64_t i = 0; i < n; i++)
			ck_assert_uint_eq(values[i], cut(keys[i] * 3 + 1, vt));
		/*
		 * writes of present keys work in a full map, and a slot that gets free is used
		 * again
		 */
		ck_assert_cua(cua_hashmap_assign_n(map, capacity, k, v, f));
		test_download(ctx, again, f, capacity);
		for (uint64_t i = 0; i < capacity; i++)
			ck_assert_uint_eq(again[i], CUA_HASHMAP_EXISTS);
		ck_assert_cua(cua_hashmap_erase_n(map, 1, k, NULL));
		ck_assert_cua(cua_hashmap_insert_n(map, n, k, v, f));
		test_download(ctx, again, f, n);
		got = 0;
		for (uint64_t i = 0; i < n; i++)
			got += again[i] == CUA_HASHMAP_INSERTED;
		ck_assert_uint_eq(got, 1);
		ck_assert_uint_eq(size_of(map), slots);
		/* sticky until clear */
		ck_assert_cua(cua_hashmap_erase_n(map, n, k, NULL));
		ck_assert_uint_eq(size_of(map), 0);
		ck_assert_status(cua_hashmap_status(map), CUA_ERROR_FULL);
		ck_assert_cua(cua_hashmap_clear(map));
		ck_assert_cua(cua_hashmap_status(map));
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, f);
		free(keys);
		free(values);
		free(flags);
		free(again);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	cua_context_destroy(ctx);
}
END_TEST

/* Ever new keys at a load of one half: the map neither fills nor do its probes grow. */
START_TEST(churn)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t batch = 1000;
	int rounds = test_quick() ? 20 : 400;
	struct cua_hashmap *map = new_map(ctx, CUA_U64, CUA_U64, 10 * batch);
	uint64_t *keys = test_malloc(batch * 8);
	uint8_t *flags = test_malloc(batch);
	uint64_t *old[5] = {NULL};
	uint8_t *f = test_alloc(ctx, batch);

	for (int round = 0; round < rounds; round++) {
		uint64_t **k = &old[round % 5];

		if (*k) {
			ck_assert_cua(cua_hashmap_erase_n(map, batch, *k, f));
			test_download(ctx, flags, f, batch);
			for (uint64_t i = 0; i < batch; i++)
				ck_assert_uint_eq(flags[i], 1);
			test_free(ctx, *k);
		}
		for (uint64_t i = 0; i < batch; i++)
			keys[i] = (uint64_t)round * batch + i;
		*k = put(ctx, CUA_U64, batch, keys);
		ck_assert_cua(cua_hashmap_insert_n(map, batch, *k, *k, f));
		test_download(ctx, flags, f, batch);
		for (uint64_t i = 0; i < batch; i++)
			ck_assert_uint_eq(flags[i], CUA_HASHMAP_INSERTED);
	}
	ck_assert_uint_eq(size_of(map), 5 * batch);
	ck_assert_cua(cua_hashmap_status(map));
#if !TEST_CUDA
	ck_assert_uint_lt(longest_probe(map), 32);
#endif
	for (int i = 0; i < 5; i++)
		test_free(ctx, old[i]);
	test_free(ctx, f);
	free(keys);
	free(flags);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- results in backend memory, odd offsets, many sizes ---- */

START_TEST(sizes_and_places)
{
	static const size_t sizes[] = {1, 2, 31, 33, 255, 257, 1023, 1025, 4099};
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t numbers[4100], *result = test_alloc(ctx, 16), host = 0;
	uint8_t flags[4100];
	void *k, *v, *k2, *v2;
	uint8_t *f = test_alloc(ctx, 4100);

	for (size_t i = 0; i < 4100; i++)
		numbers[i] = key_number(i, CUA_U64);
	for (int t = 0; t < 4; t++) {
		enum cua_type kt = types[t & 1], vt = types[t >> 1];
		size_t ks = cua_type_size(kt), vs = cua_type_size(vt);

		for (size_t i = 0; i < 4100; i++)
			numbers[i] = key_number(i, kt);
		k = put(ctx, kt, 4100, numbers);
		v = put(ctx, vt, 4100, numbers);
		k2 = test_alloc(ctx, 4100 * 8);
		v2 = test_alloc(ctx, 4100 * 8);
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
			size_t n = sizes[s];
			struct cua_hashmap *map = new_map(ctx, kt, vt, n);
			uint64_t got[4100], read = 0;

			/* arrays that begin at their second element */
			ck_assert_cua(cua_hashmap_insert_n(map, n, (char *)k + ks, (char *)v + vs,
							   f + 1));
			ck_assert_cua(cua_hashmap_size(map, result));
			test_download(ctx, &host, result, 8);
			ck_assert_uint_eq(host, n);
			ck_assert_cua(
				cua_hashmap_find_n(map, n, (char *)k + ks, (char *)v2 + vs, f + 1));
			get(ctx, vt, n, (char *)v2 + vs, got);
			test_download(ctx, flags, f + 1, n);
			for (size_t i = 0; i < n; i++) {
				ck_assert_uint_eq(flags[i], 1);
				ck_assert_uint_eq(got[i], cut(numbers[i + 1], vt));
			}
			/* fewer places than pairs, and more */
			ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, n / 2,
							   n / 2 ? k2 : NULL, n / 2 ? v2 : NULL,
							   result + 1));
			test_download(ctx, &host, result + 1, 8);
			ck_assert_uint_eq(host, n);
			ck_assert_cua(
				cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, 4100, k2, v2, &read));
			ck_assert_uint_eq(read, n);
			ck_assert_cua(cua_hashmap_contains_n(map, n, k2, f));
			test_download(ctx, flags, f, n);
			for (size_t i = 0; i < n; i++)
				ck_assert_uint_eq(flags[i], 1);
			ck_assert_cua(cua_hashmap_destroy(map));
		}
		test_free(ctx, k);
		test_free(ctx, v);
		test_free(ctx, k2);
		test_free(ctx, v2);
	}
	test_free(ctx, result);
	test_free(ctx, f);
	cua_context_destroy(ctx);
}
END_TEST

/* More than 2^31 elements in one call, all of one key. */
START_TEST(many)
{
	const size_t n = ((size_t)1 << 31) + 7;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t free_bytes = 0, total_bytes = 0;
	struct cua_hashmap *map;
	uint32_t seven = 7, one = 1, value = 0;
	uint32_t *keys, *values, *out;

	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total_bytes));
	if (test_quick() || TEST_BACKEND == CUA_BACKEND_CPU || free_bytes < 8 * n + 8 * (n / 4)) {
		printf("many: skipped\n");
		cua_context_destroy(ctx);
		return;
	}
	keys = test_alloc(ctx, 4 * n);
	values = test_alloc(ctx, 4 * n);
	out = test_alloc(ctx, 4);
	ck_assert_cua(cua_fill(ctx, keys, n, 4, &seven));
	ck_assert_cua(cua_fill(ctx, values, n, 4, &one));
	map = new_map(ctx, CUA_U32, CUA_U32, 100);
	ck_assert_cua(cua_hashmap_update_n(map, CUA_UPDATE_ADD, n, keys, values, NULL));
	ck_assert_cua(cua_hashmap_find_n(map, 1, keys, out, NULL));
	test_download(ctx, &value, out, 4);
	ck_assert_uint_eq(value, (uint32_t)n);
	ck_assert_uint_eq(size_of(map), 1);
	ck_assert_cua(cua_hashmap_destroy(map));
	test_free(ctx, keys);
	test_free(ctx, values);
	test_free(ctx, out);
	cua_context_destroy(ctx);
}
END_TEST

/*
 * More than 2^32 keys, in less and in more than 64 GiB, where there is memory for them: size,
 * places, hits, misses, erase.
 */
#define LARGE_LOG 32
#define LARGE_PART_LOG 27

START_TEST(large)
{
	const size_t part = (size_t)1 << LARGE_PART_LOG, n = ((size_t)1 << LARGE_LOG) + part;
	const enum cua_type value_type = _i ? CUA_U64 : CUA_NONE;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	uint64_t free_bytes = 0, total_bytes = 0, capacity;
	uint64_t *keys, *values, *host, *host_values;
	struct cua_hashmap *map;
	uint8_t *found, *host_found;

	ck_assert_cua(cua_memory_info(ctx, &free_bytes, &total_bytes));
	/* 64 bytes hold 7 keys or 3 pairs; a ninth of the slots stays free */
	if (test_quick() || test_traced() ||
	    free_bytes / 64 < (n + n / 8) / (_i ? 3 : 7) + 5 * part / 8) {
		printf("large, %d: skipped\n", _i);
		cua_context_destroy(ctx);
		return;
	}
	map = new_map(ctx, CUA_U64, value_type, n + n / 8);
	ck_assert_cua(cua_hashmap_capacity(map, &capacity));
	ck_assert_uint_ge(capacity, n + n / 8);
	keys = test_alloc(ctx, 8 * part);
	values = test_alloc(ctx, 8 * part);
	found = test_alloc(ctx, part);
	host = test_malloc(8 * part);
	host_values = test_malloc(8 * part);
	host_found = test_malloc(part);
	/*
	 * pass 0 inserts, 1 looks at some, 2 erases some, 3 looks at those again; the part behind
	 * the last is of absent keys
	 */
	for (int pass = 0; pass < 4; pass++) {
		for (size_t p = 0; p <= n / part; p++) {
			const int there = p < n / part && (pass < 3 || p % 16 != 0);
			const int looks = pass == 1 || pass == 3;

			if (pass == 0 ? p == n / part : p % 16 != 0 && p + 2 < n / part)
				continue;
			for (size_t i = 0; i < part; i++) {
				host[i] = key_number(p * part + i, CUA_U64);
				host_values[i] = ~host[i];
			}
			ck_assert_cua(cua_copy(ctx, keys, host, 8 * part));
			ck_assert_cua(cua_copy(ctx, values, host_values, 8 * part));
			if (pass == 0)
				ck_assert_cua(cua_hashmap_insert_n(map, part, keys,
								   _i ? values : NULL, found));
			else if (pass == 2 && p % 16 == 0)
				ck_assert_cua(cua_hashmap_erase_n(map, part, keys, found));
			else if (_i)
				ck_assert_cua(cua_hashmap_find_n(map, part, keys, values, found));
			else
				ck_assert_cua(cua_hashmap_contains_n(map, part, keys, found));
			test_download(ctx, host_found, found, part);
			for (size_t i = 0; i < part; i++)
				if (host_found[i] != (pass == 0 ? CUA_HASHMAP_INSERTED : there))
					ck_abort_msg("pass %d, key %zu: %u", pass, p * part + i,
						     host_found[i]);
			if (!_i || !looks || !there)
				continue;
			test_download(ctx, host_values, values, 8 * part);
			for (size_t i = 0; i < part; i++)
				if (host_values[i] != ~host[i])
					ck_abort_msg("pass %d, value of key %zu", pass,
						     p * part + i);
		}
		ck_assert_uint_eq(size_of(map), pass < 2 ? n : n - (n / part + 15) / 16 * part);
	}
	ck_assert_cua(cua_hashmap_destroy(map));
	test_free(ctx, keys);
	test_free(ctx, values);
	test_free(ctx, found);
	free(host);
	free(host_values);
	free(host_found);
	cua_context_destroy(ctx);
}
END_TEST

#if !TEST_CUDA
/* ---- what the macros define ---- */

/* Names of the user's, as the macros might have them, in an expression; values that are structs. */
static uint32_t next = 1000, before = 100, with = 10;
struct two {
	uint32_t a, b;
};

static struct two add_two(struct two x, struct two y)
{
	x.a += y.a;
	x.b += y.b;
	return x;
}

static int equal_text(const char *a, const char *b)
{
	return a == b || ((uintptr_t)a > 1 && (uintptr_t)b > 1 && !strcmp(a, b));
}

static uint64_t hash_text(const char *text, uint64_t seed)
{
	uint64_t h = seed;

	if ((uintptr_t)text <= 1)
		return (uintptr_t)text;
	for (; *text; text++)
		h = cua_hash_u64(h ^ (unsigned char)*text, seed);
	return h;
}

CUA_DEFINE_HASHMAP(macro_u32, uint32_t, uint32_t)
CUA_DEFINE_HASHMAP_UPDATE(macro_named, macro_u32, old + operand + next + before + with)
CUA_DEFINE_HASHMAP(macro_two, uint32_t, struct two)
CUA_DEFINE_HASHMAP_UPDATE(macro_two_add, macro_two, add_two(old, operand))
CUA_DEFINE_HASHMAP_WITH(macro_text, const char *, uint64_t, hash_text, equal_text)
CUA_DEFINE_HASHSET(macro_set, uint64_t)

START_TEST(macros)
{
	struct cua_hashmap_options own = {.struct_size = sizeof(own), .own_hash = 1};
	struct cua_context *ctx = test_context(CUA_BACKEND_CPU);
	struct cua_hashmap *map = new_map(ctx, CUA_U32, CUA_U32, 10);
	struct cua_hashmap_view view, other;
	struct two two = {1, 2};
	char text[] = "abc", same_text[] = "abc";
	uint32_t value = 0;
	uint64_t wide = 0, key = 0;

	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(macro_named(&view, 1, 1), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_named(&view, 1, 1), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(macro_u32_find(&view, 1, &value), 1);
	ck_assert_uint_eq(value, 1112);
	/* of other sizes or of a layout of the future: nothing is touched */
	ck_assert_int_eq(macro_two_insert(&view, 1, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_assign(&view, 1, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_add(&view, 1, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_compare_exchange(&view, 1, &two, two), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_two_find(&view, 1, &two) | macro_two_contains(&view, 1) |
				 macro_two_erase(&view, 1),
			 0);
	ck_assert_int_eq(macro_set_insert(&view, 1), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_set_contains(&view, 1) | macro_set_erase(&view, 1) |
				 macro_set_at(&view, 0, &key),
			 0);
	ck_assert_uint_eq(macro_set_places(&view), 0);
	other = view;
	other.layout = 4;
	ck_assert_int_eq(macro_u32_insert(&other, 2, 2), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(macro_u32_contains(&other, 1), 0);
	for (other.layout = 0; other.layout < 6; other.layout++) {
		if (other.layout == CUA_HASHMAP_WORDS || other.layout == CUA_HASHMAP_STATES)
			continue;
		ck_assert_int_eq(cua_hashmap_insert(&other, 2, 2), CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_assign(&other, 1, 2), CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_update(&other, 1, 2, CUA_UPDATE_ADD),
				 CUA_HASHMAP_UNSUPPORTED);
		ck_assert_int_eq(cua_hashmap_find(&other, 1, &wide) |
					 cua_hashmap_contains(&other, 1) |
					 cua_hashmap_erase(&other, 1),
				 0);
		ck_assert_uint_eq(wide, 0);
	}
	ck_assert_int_eq(cua_hashmap_find(&view, 1, &wide), 1);
	ck_assert_uint_eq(wide, 1112);
	ck_assert_uint_eq(size_of(map), 1);
	ck_assert_cua(cua_hashmap_destroy(map));

	map = new_map(ctx, CUA_U32, CUA_U64, 10);
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(macro_two_add(&view, 1, two), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_two_add(&view, 1, two), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(macro_two_find(&view, 1, &two), 1);
	ck_assert(two.a == 2 && two.b == 4);
	ck_assert_cua(cua_hashmap_destroy(map));

	ck_assert_cua(cua_hashmap_create(ctx, &own, CUA_U64, CUA_U64, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(macro_text_insert(&view, text, 5), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(macro_text_insert(&view, same_text, 6), CUA_HASHMAP_EXISTS);
	ck_assert_int_eq(macro_text_find(&view, same_text, &wide), 1);
	ck_assert_uint_eq(wide, 5);
	ck_assert_int_eq(macro_text_find(&view, "", &wide), 0);
	ck_assert_cua(cua_hashmap_destroy(map));

	map = NULL;
	ck_assert_cua(cua_hashmap_create(ctx, NULL, CUA_U128, CUA_NONE, 10, &map));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	ck_assert_int_eq(cua_hashmap_insert(&view, 1, 1), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(cua_hashmap_assign(&view, 1, 1), CUA_HASHMAP_UNSUPPORTED);
	ck_assert_int_eq(cua_hashmap_contains(&view, 1) | cua_hashmap_erase(&view, 1), 0);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/* ---- more buckets than 32 bits number ---- */

CUA_DEFINE_HASHMAP(vast_words, uint32_t, uint32_t)
CUA_DEFINE_HASHSET(vast_set, uint64_t)
CUA_DEFINE_HASHMAP(vast_longs, uint64_t, uint64_t)

/*
 * Zeros that take no memory until they are written; NULL where there are no addresses for so many.
 */
static void *vast_memory(uint64_t bytes)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	/* which have memory of their own for each address */
	(void)bytes;
	return NULL;
#else
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
#ifdef MADV_NOHUGEPAGE
	/* a bucket shall cost a small page */
	(void)madvise(p, bytes, MADV_NOHUGEPAGE);
#endif
	return p;
#endif
}

static int vast_call(const struct cua_hashmap_view *view, int call, uint64_t key)
{
	const int words = view->key_size == 4, set = !view->value_size;
	uint32_t narrow = 0;
	uint64_t value = 0;

	switch (call) {
	case 0:
		return words ? vast_words_insert(view, (uint32_t)key, ~(uint32_t)key)
		       : set ? vast_set_insert(view, key)
			     : vast_longs_insert(view, key, ~key);
	case 1:
		return words ? vast_words_find(view, (uint32_t)key, &narrow) &&
				       narrow == ~(uint32_t)key
		       : set ? vast_set_contains(view, key)
			     : vast_longs_find(view, key, &value) && value == ~key;
	case 2:
		return words ? vast_words_erase(view, (uint32_t)key)
		       : set ? vast_set_erase(view, key)
			     : vast_longs_erase(view, key);
	default:
		return words ? vast_words_contains(view, (uint32_t)key)
		       : set ? vast_set_contains(view, key)
			     : vast_longs_contains(view, key);
	}
}

/*
 * Views of hundreds of gigabytes of which few pages are touched: homes, places and probes past 2^31
 * and 2^32.
 */
START_TEST(vast)
{
	static const struct {
		uint32_t ks, vs, layout;
		uint64_t n_buckets;
	} shapes[] = {
		{4, 4, CUA_HASHMAP_WORDS, ((uint64_t)1 << 32) - 512},
		{8, 0, CUA_HASHMAP_WORDS, ((uint64_t)1 << 32) - 512},
		{8, 8, CUA_HASHMAP_STATES, ((uint64_t)1 << 33) + 3},
	};
	const uint64_t size = shapes[_i].layout == CUA_HASHMAP_WORDS ? 64 : 128;
	const uint64_t n = test_quick() ? 2000 : 20000, bytes = shapes[_i].n_buckets * size;
	struct cua_hashmap_view view = {.n_buckets = shapes[_i].n_buckets,
					.key_size = shapes[_i].ks,
					.value_size = shapes[_i].vs,
					.layout = shapes[_i].layout};
	uint64_t far = 0;

	view.buckets = vast_memory(bytes);
	if (!view.buckets) {
		printf("vast, %d: skipped\n", _i);
		return;
	}
	view.counts = test_malloc(CUA_HASHMAP_STRIPES * sizeof(*view.counts) + 32);
	memset(view.counts, 0, CUA_HASHMAP_STRIPES * sizeof(*view.counts) + 32);
	for (int call = 0; call < 4; call++)
		/* without those that have cells */
		for (uint64_t i = 6; i < n; i++) {
			const uint64_t key = key_number(i, view.key_size == 4 ? CUA_U32 : CUA_U64);
			const uint64_t home =
				cua_hash_to_index(cua_hash_u64(key, 0), view.n_buckets);
			const char *bucket = (const char *)view.buckets + home * size;
			uint64_t at = 0;

			EXPECT(vast_call(&view, call, key) == (call < 3),
			       "shape %d, call %d, key %llu", _i, call, (unsigned long long)i);
			/* so few keys are all at home, and that is where it is */
			while (call < 2 && at < size && memcmp(bucket + at, &key, view.key_size))
				at += 4;
			EXPECT(at < size, "shape %d, key %llu is in another bucket", _i,
			       (unsigned long long)i);
			far += home >> 31 != 0;
		}
	ck_assert_uint_gt(far, n / 2);
	free(view.counts);
	ck_assert_int_eq(munmap(view.buckets, bytes), 0);
}
END_TEST

/* ---- host threads through the inline functions ---- */

#define THREADS 4
#define HOT 12

struct thread {
	pthread_t id;
	struct cua_hashmap_view view;
	uint64_t seed, number;
	int rounds;
	/* what it did to each key, and what it saw that cannot be */
	int64_t inserted[HOT], erased[HOT], full;
	uint64_t wrong;
};

static void run_threads(struct thread *t, const struct cua_hashmap *map, int rounds, uint64_t *seed,
			void *(*main)(void *))
{
	memset(t, 0, THREADS * sizeof(*t));
	for (int i = 0; i < THREADS; i++) {
		ck_assert_cua(cua_hashmap_get_view(map, &t[i].view));
		t[i].seed = test_random(seed);
		t[i].number = (uint64_t)i;
		t[i].rounds = rounds;
		ck_assert_int_eq(pthread_create(&t[i].id, NULL, main, &t[i]), 0);
	}
	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_join(t[i].id, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		ck_assert_uint_eq(t[i].wrong, 0);
}

/* A value tells its key in the high half, so that a find can tell whose value it got. */
static uint64_t value_of(const struct thread *t, uint64_t key, uint64_t low)
{
	return t->view.value_size == 8 ? key << 32 | (low & 0xffff) : key << 16 | (low & 0xff);
}

static uint64_t key_of(const struct thread *t, uint64_t value)
{
	return value >> (t->view.value_size == 8 ? 32 : 16);
}

static void *mix_main(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++) {
		uint64_t r = test_random(&t->seed), value = 0;
		uint64_t key = (r >> 32) % HOT;
		int result = 0;

		switch (r % 8) {
		case 0:
		case 1: result = cua_hashmap_insert(&t->view, key, value_of(t, key, r >> 8)); break;
		case 2: result = cua_hashmap_assign(&t->view, key, value_of(t, key, r >> 8)); break;
		case 3:
			result = cua_hashmap_update(&t->view, key, value_of(t, key, r >> 8),
						    r & 256 ? CUA_UPDATE_MIN : CUA_UPDATE_MAX);
			break;
		case 4: t->erased[key] += cua_hashmap_erase(&t->view, key); break;
		default:
			if (cua_hashmap_find(&t->view, key, &value) && key_of(t, value) != key)
				t->wrong++;
		}
		t->inserted[key] += result == CUA_HASHMAP_INSERTED;
		t->full += result == CUA_HASHMAP_FULL;
	}
	return NULL;
}

START_TEST(threads_mix)
{
	uint64_t seed = test_seed("threads_mix");
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int rounds = test_quick() ? 5000 : 60000;

	/* 7 or 5 slots: less than the keys, so that the map is often full; and room for all */
	for (int t = 0; t < 4; t++)
		for (int small = 0; small < 2; small++) {
			struct cua_hashmap *map =
				new_map(ctx, types[t & 1], types[t >> 1], small ? 5 : 3 * HOT);
			struct thread threads[THREADS];
			uint64_t read = 0, keys[HOT], size = 0;
			void *k = test_alloc(ctx, HOT * 8), *v = test_alloc(ctx, HOT * 8);
			int64_t full = 0, present[HOT] = {0};

			run_threads(threads, map, rounds, &seed, mix_main);
			for (int i = 0; i < THREADS; i++)
				full += threads[i].full;
			ck_assert(small || !full);
			ck_assert_status(cua_hashmap_status(map), full ? CUA_ERROR_FULL : CUA_OK);
			ck_assert_cua(cua_hashmap_retrieve(map, CUA_HASHMAP_ANY, HOT, k, v, &read));
			get(ctx, types[t & 1], read, k, keys);
			for (uint64_t i = 0; i < read; i++) {
				ck_assert_uint_lt(keys[i], HOT);
				present[keys[i]]++;
			}
			for (int key = 0; key < HOT; key++) {
				int64_t balance = 0;

				for (int i = 0; i < THREADS; i++)
					balance +=
						threads[i].inserted[key] - threads[i].erased[key];
				ck_assert_int_eq(balance, present[key]);
				ck_assert(balance == 0 || balance == 1);
				size += (uint64_t)balance;
			}
			ck_assert_uint_eq(size_of(map), size);
			test_free(ctx, k);
			test_free(ctx, v);
			ck_assert_cua(cua_hashmap_destroy(map));
		}
	cua_context_destroy(ctx);
}
END_TEST

static void *sum_main(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++)
		t->inserted[i % 3] += cua_hashmap_update(&t->view, (uint64_t)(i % 3), 1,
							 CUA_UPDATE_ADD) == CUA_HASHMAP_INSERTED;
	return NULL;
}

/* No addition is lost, the first one neither. */
START_TEST(threads_sum)
{
	uint64_t seed = 1;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int rounds = test_quick() ? 3000 : 90000;

	for (int t = 0; t < 4; t++) {
		struct cua_hashmap *map = new_map(ctx, types[t & 1], types[t >> 1], 10);
		struct thread threads[THREADS];
		uint64_t value = 0;

		run_threads(threads, map, rounds, &seed, sum_main);
		for (uint64_t key = 0; key < 3; key++) {
			int64_t inserted = 0;

			for (int i = 0; i < THREADS; i++)
				inserted += threads[i].inserted[key];
			ck_assert_int_eq(inserted, 1);
			ck_assert_int_eq(cua_hashmap_find(&threads[0].view, key, &value), 1);
			ck_assert_uint_eq(value, (uint64_t)(THREADS * rounds / 3));
		}
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	cua_context_destroy(ctx);
}
END_TEST

static void *own_main(void *arg)
{
	struct thread *t = arg;

	/* it has two keys, and at most one of them in the map */
	for (int i = 0; i < t->rounds; i++) {
		uint64_t low = test_random(&t->seed), value = 0;
		uint64_t key = t->number + (i & 1 ? THREADS : 0),
			 other = (low >> 32) % (2 * THREADS);

		t->wrong += cua_hashmap_insert(&t->view, key, value_of(t, key, low)) !=
			    CUA_HASHMAP_INSERTED;
		t->wrong +=
			!cua_hashmap_find(&t->view, key, &value) || value != value_of(t, key, low);
		t->wrong += cua_hashmap_insert(&t->view, key, 0) != CUA_HASHMAP_EXISTS;
		t->wrong += cua_hashmap_assign(&t->view, key, value_of(t, key, low + 1)) !=
			    CUA_HASHMAP_EXISTS;
		t->wrong += !cua_hashmap_find(&t->view, key, &value) ||
			    value != value_of(t, key, low + 1);
		/* keys of others may be there, but with their own values */
		t->wrong += cua_hashmap_find(&t->view, other, &value) && key_of(t, value) != other;
		t->wrong += !cua_hashmap_erase(&t->view, key);
		t->wrong += cua_hashmap_contains(&t->view, key);
		t->wrong += cua_hashmap_erase(&t->view, key);
	}
	return NULL;
}

/* At most as many keys as slots at any moment, so that FULL would be wrong. */
START_TEST(threads_own_keys)
{
	uint64_t seed = test_seed("threads_own_keys");
	struct cua_context *ctx = test_context(TEST_BACKEND);

	for (int t = 0; t < 4; t++) {
		/* few buckets; all slots but one a thread hold keys that stay */
		struct cua_hashmap *map = new_map(ctx, types[t & 1], types[t >> 1], THREADS);
		struct thread threads[THREADS];
		struct cua_hashmap_view view;
		uint64_t slots = 0;

		ck_assert_cua(cua_hashmap_capacity(map, &slots));
		ck_assert_cua(cua_hashmap_get_view(map, &view));
		for (uint64_t i = 0; i < slots - THREADS; i++)
			ck_assert_int_eq(cua_hashmap_insert(&view, 100 + i, 0),
					 CUA_HASHMAP_INSERTED);
		run_threads(threads, map, test_quick() ? 2000 : 20000, &seed, own_main);
		ck_assert_cua(cua_hashmap_status(map));
		ck_assert_uint_eq(size_of(map), slots - THREADS);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	cua_context_destroy(ctx);
}
END_TEST

static pthread_barrier_t barrier;

static void *last_slot_main(void *arg)
{
	struct thread *t = arg;

	for (int i = 0; i < t->rounds; i++) {
		int result;

		pthread_barrier_wait(&barrier);
		result = cua_hashmap_insert(&t->view, 1000 + t->number, t->number);
		t->full += result == CUA_HASHMAP_FULL;
		pthread_barrier_wait(&barrier);
		if (result == CUA_HASHMAP_INSERTED) {
			t->inserted[0]++;
			if (!cua_hashmap_erase(&t->view, 1000 + t->number))
				t->wrong++;
		} else if (result != CUA_HASHMAP_FULL) {
			t->wrong++;
		}
	}
	return NULL;
}

/* One free slot and many threads: each time exactly one gets it. */
START_TEST(threads_last_slot)
{
	uint64_t seed = 2;
	struct cua_context *ctx = test_context(TEST_BACKEND);
	int rounds = test_quick() ? 200 : 3000;
	struct cua_hashmap *map = new_map(ctx, CUA_U64, CUA_U32, 100);
	struct thread threads[THREADS];
	struct cua_hashmap_view view;
	uint64_t slots = 0;
	int64_t won = 0, full_count = 0;

	ck_assert_cua(cua_hashmap_capacity(map, &slots));
	ck_assert_cua(cua_hashmap_get_view(map, &view));
	for (uint64_t i = 0; i < slots - 1; i++)
		ck_assert_int_eq(cua_hashmap_insert(&view, i, 0), CUA_HASHMAP_INSERTED);
	ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
	run_threads(threads, map, rounds, &seed, last_slot_main);
	pthread_barrier_destroy(&barrier);
	for (int i = 0; i < THREADS; i++) {
		won += threads[i].inserted[0];
		full_count += threads[i].full;
	}
	ck_assert_int_eq(won, rounds);
	ck_assert_int_eq(full_count, (int64_t)rounds * (THREADS - 1));
	ck_assert_uint_eq(size_of(map), slots - 1);
	ck_assert_cua(cua_hashmap_destroy(map));
	cua_context_destroy(ctx);
}
END_TEST

/*
 * Key i of a pattern: steps, products, and halves that are the same, each other's complement, or
 * neighbours.
 */
enum { HASH_PATTERNS = 64 + 16 + 3 * 16 };
static uint64_t pattern_key(unsigned pattern, uint64_t i)
{
	const uint64_t low = i << (pattern - 80) / 3 % 16;

	if (pattern < 64)
		return i << pattern;
	if (pattern < 80)
		return i * (0x9e3779b97f4a7c15u << (pattern - 64) * 2);
	if (pattern % 3 == 0)
		return low << 32 | low;
	return pattern % 3 == 1 ? ~low << 32 | low : (low + 1) << 32 | low;
}

/*
 * Keys in patterns are spread over homes, and over the bits that say where else they may be, like
 * random ones.
 */
START_TEST(hash_patterns)
{
	enum { N = 1 << 16, BINS = 1 << 12 };
	static const uint64_t seeds[] = {0, 1, 0x123456789abcdef1u};
	static uint32_t homes[BINS], lows[BINS];

	for (unsigned c = 0; c < HASH_PATTERNS * sizeof(seeds) / sizeof(seeds[0]); c++) {
		const unsigned pattern = c % HASH_PATTERNS;
		/* so many are different */
		const uint64_t n = pattern < 64 && pattern > 48 ? (uint64_t)1 << (64 - pattern) : N;
		double home = 0, low = 0;

		if (n < BINS)
			continue;
		memset(homes, 0, sizeof(homes));
		memset(lows, 0, sizeof(lows));
		for (uint64_t i = 0; i < n; i++) {
			const uint64_t hash =
				cua_hash_u64(pattern_key(pattern, i), seeds[c / HASH_PATTERNS]);

			homes[cua_hash_to_index(hash, BINS - 1)]++;
			lows[hash % BINS]++;
		}
		for (unsigned b = 0; b < BINS; b++) {
			home += (double)homes[b] * homes[b];
			low += (double)lows[b] * lows[b];
		}
		/* chi squared, whose standard deviation is 90 */
		home = home * (BINS - 1) / (double)n - (double)n - (BINS - 2);
		low = low * BINS / (double)n - (double)n - (BINS - 1);
		ck_assert_msg(home < 8 * 90 && low < 8 * 90,
			      "pattern %u, seed %u: homes %.0f, low bits %.0f", pattern,
			      c / HASH_PATTERNS, home, low);
	}
}
END_TEST

/*
 * Key i of a pattern of 16 bytes: counted in one half or both, and halves that make each other up.
 */
enum { KINDS_128 = 13, HASH_PATTERNS_128 = KINDS_128 * 12 };
static struct cua_u128 pattern_key_128(unsigned pattern, uint64_t i)
{
	const unsigned shift = pattern / KINDS_128 * 4;
	const uint64_t x = i << shift;
	struct cua_u128 key = {x, x};

	switch (pattern % KINDS_128) {
	case 0: break;
	case 1: key.hi = 0; break;
	case 2: key.lo = 0; break;
	case 3: key.hi = ~x; break;
	case 4: key.hi = 0 - x; break;
	case 5: key.lo = x * 0x9e3779b97f4a7c15u; break;
	case 6:
		key.lo = (i & 255) << shift;
		key.hi = (i >> 8) << shift;
		break;
	case 7: key.lo = x << 32 | x; break;
	case 8: key.hi = x >> 1; break;
	case 9:
		key.hi = x << 32 | x;
		key.lo = ~key.hi;
		break;
	case 10: key.hi = x + 1; break;
	case 11: key.hi = x ^ 0x123456789abcdefu; break;
	default: key.lo = 0x7070707000000000u + x; key.hi = 0x7070707070707070u;
	}
	return key;
}

START_TEST(hash_patterns_128)
{
	enum { N = 1 << 16, BINS = 1 << 12 };
	static const uint64_t seeds[] = {0, 1, ~(uint64_t)0, 0x123456789abcdef1u};
	static uint32_t homes[BINS], lows[BINS];

	for (unsigned c = 0; c < HASH_PATTERNS_128 * (test_quick() ? 2u : 4u); c++) {
		const unsigned pattern = c % HASH_PATTERNS_128;
		double home = 0, low = 0;

		memset(homes, 0, sizeof(homes));
		memset(lows, 0, sizeof(lows));
		for (uint64_t i = 0; i < N; i++) {
			const uint64_t hash = cua_hash_u128(pattern_key_128(pattern, i),
							    seeds[c / HASH_PATTERNS_128]);

			homes[cua_hash_to_index(hash, BINS - 1)]++;
			lows[hash % BINS]++;
		}
		for (unsigned b = 0; b < BINS; b++) {
			home += (double)homes[b] * homes[b];
			low += (double)lows[b] * lows[b];
		}
		home = home * (BINS - 1) / N - N - (BINS - 2);
		low = low * BINS / N - N - (BINS - 1);
		ck_assert_msg(home < 8 * 90 && low < 8 * 90,
			      "pattern %u, seed %u: homes %.0f, low bits %.0f", pattern,
			      c / HASH_PATTERNS_128, home, low);
	}
}
END_TEST

/* In a map half full of them nearly all keys are at home, and none is far. */
START_TEST(key_patterns_128)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = 20000;
	struct cua_u128 *keys = test_malloc(n * sizeof(*keys));

	for (unsigned pattern = 0; pattern < HASH_PATTERNS_128; pattern++) {
		struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
		struct cua_hashmap *map = new_map(ctx, CUA_U128, CUA_NONE, 2 * n);
		uint64_t far = 0;

		for (uint64_t i = 0; i < n; i++)
			keys[i] = pattern_key_128(pattern, i);
		ck_assert_cua(cua_hashmap_insert_n(map, n, keys, NULL, NULL));
		ck_assert_cua(cua_hashmap_get_statistics(map, &s));
		for (int d = 20; d < CUA_HASHMAP_PROBES; d++)
			far += s.probes[d];
		ck_assert_uint_eq(s.keys, n);
		ck_assert_msg(!far && s.probes[0] > n / 2 && s.worst_bucket < 24,
			      "pattern %u: %llu keys at home, %llu far, %llu of one home", pattern,
			      (unsigned long long)s.probes[0], (unsigned long long)far,
			      (unsigned long long)s.worst_bucket);
		ck_assert_cua(cua_hashmap_destroy(map));
	}
	free(keys);
	cua_context_destroy(ctx);
}
END_TEST

/* Keys in patterns that a weak hash piles up. */
START_TEST(key_patterns)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = 20000;
	uint64_t *keys = test_malloc(n * 8);

	for (int pattern = 0; pattern < 66 + 2 * 13; pattern++) {
		const int shift = (pattern - 66) / 2;
		struct cua_hashmap *map = new_map(ctx, CUA_U64, CUA_U32, 2 * n);
		uint32_t *values = test_malloc(n * 4);

		memset(values, 0, n * 4);
		/* the last have halves that are the same, or each other's complement */
		for (uint64_t i = 0; i < n; i++)
			keys[i] = pattern < 48   ? i << pattern
				  : pattern < 64 ? i * ((uint64_t)1 << (pattern - 32)) + (i & 1)
				  : pattern < 66 ? i * (2 * n) * (uint64_t)(pattern - 63)
				  : pattern % 2  ? (i << shift) * 0x100000001u
						 : (i << shift) * 0xffffffffu;
		ck_assert_cua(cua_hashmap_insert_n(map, n, keys, values, NULL));
		ck_assert_uint_eq(size_of(map), n);
		ck_assert_uint_lt(longest_probe(map), 32);
		ck_assert_cua(cua_hashmap_destroy(map));
		free(values);
	}
	free(keys);
	cua_context_destroy(ctx);
}
END_TEST
#endif

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap");
	TCase *tcase = tcase_create("hashmap");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, bad_arguments);
	tcase_add_test(tcase, known_hashes);
	tcase_add_test(tcase, distinct_hashes);
	tcase_add_test(tcase, avalanche);
	tcase_add_test(tcase, random_sequences);
	tcase_add_test(tcase, equal_keys);
	tcase_add_test(tcase, large_batches);
	tcase_add_test(tcase, full);
	tcase_add_test(tcase, churn);
	tcase_add_test(tcase, sizes_and_places);
	tcase_add_test(tcase, many);
	tcase_add_loop_test(tcase, large, 0, 2);
#if !TEST_CUDA
	tcase_add_test(tcase, macros);
	tcase_add_loop_test(tcase, vast, 0, 3);
	tcase_add_test(tcase, threads_mix);
	tcase_add_test(tcase, threads_sum);
	tcase_add_test(tcase, threads_own_keys);
	tcase_add_test(tcase, threads_last_slot);
	tcase_add_test(tcase, hash_patterns);
	tcase_add_test(tcase, hash_patterns_128);
	tcase_add_test(tcase, key_patterns_128);
	tcase_add_test(tcase, key_patterns);
#endif
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
