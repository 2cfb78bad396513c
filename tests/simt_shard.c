/* SPDX-License-Identifier: MIT */
/* The kernels of sharded maps: pairs in the order of their owners, for few ranks and for many. */
#define CUA__SHARD_ITEMS 2u
#define CUA__SHARD_FEW 4u

#include <string.h>

#include "lib/kernels/shard_kernel.h"
#include "simt_suites.h"

enum { MOST = 300, MOST_RANKS = 6 };

static struct cua__shard shard;
static struct cua__shard_answers answers;
static struct cua__pack keys[MOST], values[MOST], keys_out[MOST + 1], values_out[MOST + 1];
static uint32_t indexes[MOST + 1], counts[MOST_RANKS], cursors[MOST_RANKS], expected[MOST_RANKS];
static uint8_t results[MOST], results_out[MOST + 1];

/* The owner, without accesses that the checker sees. */
static uint32_t owner_of(uint32_t i)
{
	struct cua_u128 key = {0, 0};

	memcpy(&key, (const char *)keys + (size_t)i * shard.key_size, shard.key_size);
	return cua__owner(key, shard.key_size, shard.seed, shard.ranks);
}

/* Pair i has key i * 3 + 1 and value i + 7, each in all of its words. */
static void make(uint32_t ranks, uint32_t n, uint32_t key_size, uint32_t value_size, int indexed)
{
	shard = (struct cua__shard){
		.seed = 5,
		.ranks = ranks,
		.key_size = key_size,
		.value_size = value_size,
		.n = n,
		.keys = keys,
		.values = value_size ? values : NULL,
		.keys_out = keys_out,
		.values_out = value_size ? values_out : NULL,
		.index = indexed ? indexes : NULL,
		.counts = counts,
		.cursors = cursors,
	};
	memset(expected, 0, sizeof(expected));
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t word = 0; word < key_size / 4; word++)
			((uint32_t *)keys)[i * key_size / 4 + word] = i * 3 + 1;
		for (uint32_t word = 0; word < value_size / 4; word++)
			((uint32_t *)values)[i * value_size / 4 + word] = i + 7;
		expected[owner_of(i)]++;
	}
}

static void count_setup(void)
{
	memset(counts, 0, sizeof(counts));
}

static void count_body(void)
{
	struct cua__shard_shared *sh = simt_shared(sizeof(*sh));

	switch (shard.key_size) {
	case 4: cua__shard_count(&shard, sh, 4); break;
	case 8: cua__shard_count(&shard, sh, 8); break;
	default: cua__shard_count(&shard, sh, 16);
	}
}

static const char *count_check(void)
{
	return memcmp(counts, expected, sizeof(expected)) ? "a count is wrong" : NULL;
}

static void place_setup(void)
{
	uint32_t at = 0;

	for (uint32_t r = 0; r < shard.ranks; r++) {
		cursors[r] = at;
		at += expected[r];
	}
	memset(keys_out, 0xff, sizeof(keys_out));
	memset(values_out, 0xff, sizeof(values_out));
	memset(indexes, 0xff, sizeof(indexes));
}

static void place_body(void)
{
	struct cua__shard_shared *sh = simt_shared(sizeof(*sh));

	switch (shard.key_size) {
	case 4: cua__shard_place(&shard, sh, 4, shard.value_size); break;
	case 8: cua__shard_place(&shard, sh, 8, shard.value_size); break;
	default: cua__shard_place(&shard, sh, 16, shard.value_size);
	}
}

static const char *place_check(void)
{
	const uint32_t ks = shard.key_size / 4, vs = shard.value_size / 4;
	unsigned char seen[MOST] = {0};
	uint32_t at = 0;

	for (uint32_t r = 0; r < shard.ranks; r++)
		for (uint32_t end = at + expected[r]; at < end; at++) {
			const uint32_t i = (((uint32_t *)keys_out)[at * ks] - 1) / 3;

			if (i >= shard.n || seen[i]++)
				return "a key is lost, or there twice";
			if (memcmp((char *)keys_out + (size_t)at * ks * 4,
				   (char *)keys + (size_t)i * ks * 4, ks * 4))
				return "a key has parts of another key";
			if (owner_of(i) != r)
				return "a key is at another owner";
			if (vs && memcmp((char *)values_out + (size_t)at * vs * 4,
					 (char *)values + (size_t)i * vs * 4, vs * 4))
				return "a key has another value";
			if (shard.index && indexes[at] != i)
				return "an index is wrong";
		}
	if (((uint32_t *)keys_out)[at * ks] != ~0u ||
	    (vs && ((uint32_t *)values_out)[at * vs] != ~0u) || indexes[at] != ~0u)
		return "a pair is written past the end";
	return NULL;
}

START_TEST(place)
{
	static const struct {
		uint32_t ranks, n, key, value;
		unsigned blocks, lanes;
	} shapes[] = {
		{1, 90, 4, 4, 2, 32},    {2, 200, 4, 8, 2, 64}, {3, 250, 8, 0, 3, 32},
		{4, 131, 16, 16, 1, 64}, {5, 150, 4, 4, 2, 32}, {6, 40, 16, 4, 1, 32},
		{3, 0, 4, 4, 1, 32},     {2, 1, 8, 8, 2, 32},   {3, 300, 4, 4, 2, 32},
	};

	for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++) {
		struct simt_case c = {.name = "count",
				      .setup = count_setup,
				      .body = count_body,
				      .check = count_check};

		make(shapes[k].ranks, shapes[k].n, shapes[k].key, shapes[k].value, k % 2 == 0);
		try_shape(c, shapes[k].blocks, shapes[k].lanes, 5);
		c.name = "place";
		c.setup = place_setup;
		c.body = place_body;
		c.check = place_check;
		try_shape(c, shapes[k].blocks, shapes[k].lanes, 5);
	}
}
END_TEST

/* Keys that differ in a single 32-bit word: each of 4 ranks gets 15 to 35 percent of them. */
START_TEST(owners)
{
	static const uint32_t sizes[] = {4, 8, 16};
	enum { KEYS = 1000 };

	for (size_t k = 0; k < 3; k++)
		for (uint32_t word = 0; word < sizes[k] / 4; word++) {
			uint32_t share[4] = {0};

			for (uint32_t i = 0; i < KEYS; i++) {
				uint32_t words[4] = {0};
				struct cua_u128 key;

				words[word] = i;
				memcpy(&key, words, sizeof(key));
				share[cua__owner(key, sizes[k], 5, 4)]++;
			}
			for (uint32_t r = 0; r < 4; r++)
				ck_assert_msg(share[r] > KEYS * 15 / 100 &&
						      share[r] < KEYS * 35 / 100,
					      "keys of %u bytes that differ in word %u: rank %u "
					      "owns %u of %u",
					      sizes[k], word, r, share[r], KEYS);
		}
}
END_TEST

/* ---- answers ---- */

static void answer_setup(void)
{
	memset(keys_out, 0xff, sizeof(keys_out));
	memset(results_out, 0xee, sizeof(results_out));
}

static void answer_body(void)
{
	const uint64_t lane = cua_port_block() * cua_port_block_size() + cua_port_thread();

	cua__shard_answer(&answers, lane, cua_port_grid_size() * cua_port_block_size(),
			  answers.values_out ? answers.value_size : 0);
}

/* Values of absent keys are as they were. */
static const char *answer_check(void)
{
	const uint32_t vs = answers.value_size / 4;

	for (uint32_t i = 0; i < answers.n; i++) {
		const uint32_t at = indexes[i], got = ((uint32_t *)keys_out)[at * vs];

		if (answers.results_out && results_out[at] != results[i])
			return "a result is wrong";
		if (answers.values_out && got != (results[i] ? i + 7 : ~0u))
			return "a value is wrong";
	}
	return results_out[answers.n] == 0xee ? NULL : "an answer is written past the end";
}

START_TEST(answer)
{
	for (int k = 0; k < 4; k++) {
		struct simt_case c = {.name = "answer",
				      .setup = answer_setup,
				      .body = answer_body,
				      .check = answer_check};

		make(2, 100, 4, k % 2 ? 8 : 4, 1);
		answers = (struct cua__shard_answers){
			.n = 100,
			.value_size = shard.value_size,
			.index = indexes,
			.results = results,
			.values = values,
			.results_out = k < 3 ? results_out : NULL,
			.values_out = k ? keys_out : NULL,
		};
		for (uint32_t i = 0; i < 100; i++) {
			indexes[i] = i * 37 % 100;
			results[i] = i % 3 == 0;
		}
		try_shape(c, 2, 32, 3);
	}
}
END_TEST

TCase *simt_shard_cases(void)
{
	TCase *tc = simt_tcase("shard");

	tcase_add_test(tc, place);
	tcase_add_test(tc, owners);
	tcase_add_test(tc, answer);
	return tc;
}
