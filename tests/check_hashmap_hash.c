/* SPDX-License-Identifier: MIT */
/*
 * The hash functions: known values, and the spread of keys in patterns.
 */
#include "hashmap_words.h"

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

/* Byte i is 37 * i + 11. The hashes were computed by a model in arbitrary-precision integers. */
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

/*
 * All strings of 1 and 2 bytes, 4 letters, zeros of each length. Zeros differ in the padding alone.
 */
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

/* Each bit of a string changes each bit of the hash in about half of the strings. */
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
			/* 256 changes are expected; the bounds are six standard deviations away */
			for (int k = 0; k < 64; k++)
				EXPECT(changed[k] > 176 && changed[k] < 336,
				       "bit %zu of %zu bytes changes bit %d %u times", bit, n, k,
				       changed[k]);
		}
	}
}
END_TEST

/*
 * Key i of a pattern: steps, products, and keys whose halves are equal, complements or neighbours.
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
 * Keys in patterns are spread over homes, and over the low bits of the hash, as evenly as random
 * keys.
 */
START_TEST(hash_patterns)
{
	enum { N = 1 << 16, BINS = 1 << 12 };
	static const uint64_t seeds[] = {0, 1, 0x123456789abcdef1u};
	static uint32_t homes[BINS], lows[BINS];

	for (unsigned c = 0; c < HASH_PATTERNS * sizeof(seeds) / sizeof(seeds[0]); c++) {
		const unsigned pattern = c % HASH_PATTERNS;
		/* the pattern has this many distinct keys */
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
		/* chi squared, with a standard deviation of 90 */
		home = home * (BINS - 1) / (double)n - (double)n - (BINS - 2);
		low = low * BINS / (double)n - (double)n - (BINS - 1);
		ck_assert_msg(home < 8 * 90 && low < 8 * 90,
			      "pattern %u, seed %u: homes %.0f, low bits %.0f", pattern,
			      c / HASH_PATTERNS, home, low);
	}
}
END_TEST

/* Key i of a 16-byte pattern: a counter in one half or both, or halves computed from each other. */
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

/* At load 0.5, more than half of the keys are in their home bucket, and no distance exceeds 19. */
START_TEST(key_patterns_128)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = 20000;
	struct cua_u128 *keys = test_malloc(n * sizeof(*keys));

	for (unsigned pattern = 0; pattern < HASH_PATTERNS_128; pattern++) {
		struct cua_hashmap_statistics s = CUA_HASHMAP_STATISTICS_INIT;
		struct cua_hashmap *map = new_word_map(ctx, CUA_U128, CUA_NONE, 2 * n);
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

/* A weak hash maps the keys of these patterns to few buckets. */
START_TEST(key_patterns)
{
	struct cua_context *ctx = test_context(TEST_BACKEND);
	const uint64_t n = 20000;
	uint64_t *keys = test_malloc(n * 8);

	for (int pattern = 0; pattern < 66 + 2 * 13; pattern++) {
		const int shift = (pattern - 66) / 2;
		struct cua_hashmap *map = new_word_map(ctx, CUA_U64, CUA_U32, 2 * n);
		uint32_t *values = test_malloc(n * 4);

		memset(values, 0, n * 4);
		/* the last patterns have equal or complementary halves */
		for (uint64_t i = 0; i < n; i++)
			keys[i] = pattern < 48   ? i << pattern
				  : pattern < 64 ? i * ((uint64_t)1 << (pattern - 32)) + (i & 1)
				  : pattern < 66 ? i * (2 * n) * (uint64_t)(pattern - 63)
				  : pattern % 2  ? (i << shift) * 0x100000001u
						 : (i << shift) * 0xffffffffu;
		ck_assert_cua(cua_hashmap_insert_n(map, n, keys, values, NULL));
		ck_assert_uint_eq(map_size(map), n);
		ck_assert_uint_lt(longest_probe(map), 32);
		ck_assert_cua(cua_hashmap_destroy(map));
		free(values);
	}
	free(keys);
	cua_context_destroy(ctx);
}
END_TEST

static Suite *make_suite(void)
{
	Suite *suite = suite_create("hashmap_hash");
	TCase *tcase = tcase_create("hashmap_hash");

	tcase_set_timeout(tcase, 240);
	tcase_add_test(tcase, known_hashes);
	tcase_add_test(tcase, distinct_hashes);
	tcase_add_test(tcase, avalanche);
	tcase_add_test(tcase, hash_patterns);
	tcase_add_test(tcase, hash_patterns_128);
	tcase_add_test(tcase, key_patterns_128);
	tcase_add_test(tcase, key_patterns);
	suite_add_tcase(suite, tcase);
	return suite;
}

int main(void)
{
	return test_run(make_suite(), TEST_BACKEND);
}
