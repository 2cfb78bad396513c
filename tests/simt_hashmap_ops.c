/* SPDX-License-Identifier: MIT */
/*
 * The kernels of sort, merge, copy, statistics and retrieve: the functions that the GPU runs, with
 * small blocks.
 */
#include <string.h>

#include "lib/kernels/hashmap_kernel.h"
#include "simt_suites.h"

/* ---- sorting, a launch at a time ---- */

enum { MOST = 1500, BLOCKS = 3 };
enum launch { DIFFER, COUNT, SCAN, SCATTER, FINISH };

static struct cua_u128 keys[2][MOST], differ;
static uint32_t values[2][MOST], model[MOST];
static uint64_t counts[(BLOCKS + 1) * CUA__HASHMAP_DIGITS],
	before[(BLOCKS + 1) * CUA__HASHMAP_DIGITS];
static uint64_t n_given;
static struct cua__sort_arrays arrays;
static enum launch launch;
static uint64_t rng;

static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 33;
}

static void sort_setup(void)
{
	if (launch == DIFFER)
		memset(&differ, 0, sizeof(differ));
	memcpy(counts, before, sizeof(counts));
}

static void sort_body(void)
{
	switch (launch) {
	case DIFFER: cua__sort_differ(&arrays, simt_shared(2 * sizeof(uint64_t))); break;
	case COUNT:
		cua__sort_count(&arrays, simt_shared(CUA__HASHMAP_DIGITS * sizeof(uint32_t)));
		break;
	case SCAN:
		cua__sort_scan(&arrays, simt_shared(CUA__HASHMAP_DIGITS * sizeof(uint64_t)));
		break;
	case SCATTER:
		cua__sort_scatter(&arrays, simt_shared(sizeof(struct cua__sort_shared)));
		break;
	case FINISH: cua__sort_finish(&arrays);
	}
}

static const char *sort_check(void)
{
	const uint64_t n = n_given < arrays.max ? n_given : arrays.max;
	uint64_t sum = 0;

	switch (launch) {
	case COUNT:
		for (unsigned i = 0; i < BLOCKS * CUA__HASHMAP_DIGITS; i++)
			sum += counts[i];
		return !cua__hashmap_digit(differ, arrays.pass) || sum == n
			       ? NULL
			       : "the counts are wrong";
	case FINISH:
		for (uint64_t i = 0; i < n; i++)
			if (values[0][i] != model[i])
				return "not sorted, or equal keys have changed places";
		for (uint64_t i = n; i < MOST; i++)
			if (values[0][i] != i)
				return "written behind the end";
		return NULL;
	default: return NULL;
	}
}

/* Random keys that differ in the first `random` bytes; their low bits have `kinds` values. */
static void sort_fill(uint64_t n, uint64_t max, unsigned random, uint64_t kinds)
{
	n_given = n;
	arrays.max = max;
	for (uint32_t i = 0; i < MOST; i++) {
		struct cua_u128 key = {0x1122334455667788u, 0x99aabbccddeeff00u};
		uint64_t r = next_random() % kinds * 0x9e3779b97f4a7c15u;

		memcpy(&key, &r, random < 8 ? random : 8);
		if (random > 8)
			key.hi = (key.hi & ~(uint64_t)255) | (r >> 20 & 255);
		/* arrays of keys of 16 or 4 bytes, with values */
		if (arrays.key_size == 16)
			keys[0][i] = key;
		else
			((uint32_t *)(void *)keys[0])[i] = (uint32_t)key.lo;
		values[0][i] = model[i] = i;
		values[1][i] = 0xffffffff;
	}
	n = n < max ? n : max;
	/* insertion sort is stable */
	for (uint64_t i = 1; i < n; i++) {
		uint32_t m = model[i];
		uint64_t j = i;

		for (; j > 0 &&
		       cua__hashmap_below(cua__hashmap_get(keys[0], arrays.key_size, m),
					  cua__hashmap_get(keys[0], arrays.key_size, model[j - 1]));
		     j--)
			model[j] = model[j - 1];
		model[j] = m;
	}
}

static void sort_launch(enum launch which, unsigned blocks, unsigned lanes)
{
	struct simt_case c = {
		.name = "sort", .setup = sort_setup, .body = sort_body, .check = sort_check};

	launch = which;
	memcpy(before, counts, sizeof(counts));
	try_shape(c, blocks, lanes, 1);
}

START_TEST(sort)
{
	static const uint64_t sizes[] = {0, 1, 31, 129, 500, 1500};

	rng = 5;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int wide = 0; wide < 2; wide++) {
			const unsigned blocks = 1 + (unsigned)(i + (size_t)wide) % BLOCKS,
				       lanes = i % 2 ? 64 : 32;

			memset(&arrays, 0, sizeof(arrays));
			arrays.key_size = wide ? 16 : 4;
			arrays.value_size = 4;
			arrays.blocks = blocks;
			arrays.n = &n_given;
			for (int a = 0; a < 2; a++) {
				arrays.keys[a] = keys[a];
				arrays.values[a] = values[a];
			}
			arrays.differ = &differ;
			arrays.counts = counts;
			memset(counts, 0, sizeof(counts));
			sort_fill(sizes[i], i == 4 ? 400 : MOST, wide ? 9 : 1 + (unsigned)i % 3,
				  i % 2 ? 10 : 100000);
			sort_launch(DIFFER, blocks, lanes);
			for (arrays.pass = 0; arrays.pass < arrays.key_size; arrays.pass++) {
				/* few runs of an empty launch suffice */
				if (arrays.pass > 2 && !cua__hashmap_digit(differ, arrays.pass))
					continue;
				memset(counts, 0, sizeof(counts));
				sort_launch(COUNT, blocks, lanes);
				sort_launch(SCAN, 1, lanes);
				sort_launch(SCATTER, blocks, lanes);
			}
			sort_launch(FINISH, blocks, lanes);
		}
}
END_TEST

/* ---- merge, copy and statistics, by a single block ---- */

enum { LANES = 64, KEYS = 40 };

static char memory[2][4096 + 4 * 128] __attribute__((aligned(256)));
static struct cua_hashmap_view views[2];
static struct cua__hashmap_tally tally;
static uint32_t homes[8], sliced_keys[128];
static uint64_t sliced_values[128], n_sliced;
static int states;

static void whole_setup(void)
{
	memset(memory, 0, sizeof(memory));
	memset(&tally, 0, sizeof(tally));
	memset(homes, 0, sizeof(homes));
	n_sliced = 0;
	for (int m = 0; m < 2; m++) {
		views[m].counts = (void *)memory[m];
		views[m].buckets = memory[m] + 2304;
		views[m].n_buckets = m ? 8 : 4;
		if (!m && !states)
			views[m].n_buckets = 8;
		views[m].seed = (uint64_t)m;
		views[m].key_size = 4;
		views[m].value_size = states ? 8 : 4;
		views[m].layout = states ? CUA_HASHMAP_STATES : CUA_HASHMAP_WORDS;
	}
}

static void whole_body(void)
{
	const uint32_t vs = states ? 8 : 4;
	const struct cua__slice slice = {.slots = cua__hashmap_all_slots(&views[1], 4, vs),
					 .keys_out = sliced_keys,
					 .values_out = sliced_values,
					 .n = &n_sliced};
	uint32_t lane = simt_lane();

	/* the second map shares some keys, with different values */
	if (lane < 26)
		cua_hashmap_insert(&views[0], lane, lane * 3);
	else if (lane < 36)
		cua_hashmap_insert(&views[1], lane - 16, 1000);
	cua_port_sync_block();
	cua__hashmap_move(&views[0], &views[1], 4, vs, CUA_UPDATE_ADD);
	cua_port_sync_block();
	cua__hashmap_retrieve_slice(&views[1], 4, vs, &slice,
				    simt_shared(sizeof(struct cua__slice_shared)));
	cua_port_sync_block();
	cua__hashmap_count_all(&views[1], 4, vs, homes, &tally,
			       (void *)((char *)simt_shared(1024) + 64));
}

static const char *whole_check(void)
{
	uint64_t seen = 0, probes = 0, worst = 0, all = 0;

	if (n_sliced != 26)
		return "the number of pairs is wrong";
	for (uint32_t i = 0; i < 26; i++) {
		uint32_t key = sliced_keys[i];

		if (key >= 26 || (seen >> key & 1))
			return "a key is wrong, or there twice";
		seen |= (uint64_t)1 << key;
		if (cua__hashmap_get(sliced_values, views[1].value_size, i).lo !=
		    key * 3 + (key >= 10 && key < 20 ? 1000 : 0))
			return "a value is wrong";
	}
	for (uint32_t d = 0; d <= CUA__HASHMAP_FAR; d++)
		probes += tally.probes[d];
	for (uint32_t b = 0; b < 8; b++) {
		all += homes[b];
		worst = homes[b] > worst ? homes[b] : worst;
	}
	return probes == 26 && all == 26 && worst == tally.worst && !tally.erased
		       ? NULL
		       : "the tally is wrong";
}

START_TEST(whole)
{
	struct simt_case c = {
		.name = "whole", .setup = whole_setup, .body = whole_body, .check = whole_check};

	for (states = 0; states < 2; states++)
		try_shape(c, 1, LANES, 4);
}
END_TEST

/* ---- the least keys of a map of 16-byte keys, in successive launches ---- */

enum { WIDE_KEYS = 60, WIDE_BUCKETS = 32 };
enum least_launch { LEAST_COUNT, LEAST_PICK, LEAST_GIVE };

static char wide_memory[2304 + WIDE_BUCKETS * CUA__HASHMAP_STATE_BUCKET]
	__attribute__((aligned(256)));
static struct cua_hashmap_view wide_view;
static struct cua__hashmap_least least, least_before;
static struct cua__least_arrays least_arrays;
static struct cua_u128 wide_keys[WIDE_KEYS], least_keys[WIDE_KEYS + 1];
static uint32_t least_values[WIDE_KEYS + 1];
static const struct cua_u128 all_ones = {~(uint64_t)0, ~(uint64_t)0};
static uint64_t n_wide;
static enum least_launch least_launch;

/* Key 0, and keys that share many bytes. The orders of their low and their high halves differ. */
static struct cua_u128 wide_key(uint32_t i)
{
	const struct cua_u128 zero = {0, 0};
	const uint32_t j = i / 2;
	const struct cua_u128 key = {(uint64_t)(j * 37 % 31) << 56 | 0x1234567800u | i % 2,
				     j % 5 ? (uint64_t)(j % 4) << 8 : (uint64_t)0xff << 56};

	return i == 7 ? zero : key;
}

static void wide_setup(void)
{
	memset(wide_memory, 0, sizeof(wide_memory));
	wide_view.counts = (void *)wide_memory;
	wide_view.buckets = wide_memory + 2304;
	wide_view.n_buckets = WIDE_BUCKETS;
	wide_view.key_size = 16;
	wide_view.value_size = 4;
	wide_view.layout = CUA_HASHMAP_STATES;
}

static void wide_body(void)
{
	for (uint32_t i = simt_lane(); i < WIDE_KEYS; i += 32) {
		const struct cua_u128 value = {i, 0};
		struct cua_u128 there;

		(void)cua__hashmap_write(&wide_view, CUA__HASHMAP_KIND(16, 4), CUA__HASHMAP_INSERT,
					 cua__hashmap_hash(&wide_view, 16, wide_key(i)),
					 wide_key(i), value, &there);
	}
}

static void wide_sort(void)
{
	for (uint32_t i = 0; i < WIDE_KEYS; i++) {
		uint32_t j = i;

		for (; j > 0 && cua__hashmap_below(wide_key(i), wide_keys[j - 1]); j--)
			wide_keys[j] = wide_keys[j - 1];
		wide_keys[j] = wide_key(i);
	}
}

static void least_setup(void)
{
	least = least_before;
	memset(least_keys, 0xa5, sizeof(least_keys));
	memset(least_values, 0xa5, sizeof(least_values));
}

static void least_body(void)
{
	struct cua__slice slice = {.slots = cua__hashmap_all_slots(&wide_view, 16, 4),
				   .keys_out = least_keys,
				   .values_out = least_values,
				   .n = &least.given,
				   .last = &least.key,
				   .all = &n_wide,
				   .max = least_arrays.max};

	switch (least_launch) {
	case LEAST_COUNT:
		cua__least_count(&wide_view, 16, 4, &least_arrays,
				 simt_shared(CUA__HASHMAP_DIGITS * sizeof(uint32_t)));
		break;
	case LEAST_PICK:
		cua__least_pick(&least_arrays, simt_shared(CUA__HASHMAP_DIGITS * sizeof(uint64_t)));
		break;
	case LEAST_GIVE:
		cua__hashmap_retrieve_slice(&wide_view, 16, 4, &slice,
					    simt_shared(sizeof(struct cua__slice_shared)));
	}
}

static const char *least_check(void)
{
	const uint64_t max = least_arrays.max;
	uint64_t given = 0, sum = 0;

	if (n_wide <= max) {
		for (size_t i = 0; i < sizeof(least_keys); i++)
			given |= ((uint8_t *)least_keys)[i] ^ 0xa5u;
		return given || memcmp(&least, &least_before, sizeof(least))
			       ? "done although there is no need"
			       : NULL;
	}
	for (uint32_t d = 0; d < CUA__HASHMAP_DIGITS; d++)
		sum += least.counts[d];
	if (least_launch == LEAST_COUNT &&
	    ((sum == 0) != (least.done != 0) || (least_arrays.pass == 15 && sum != WIDE_KEYS)))
		return "the counts are wrong";
	if (least_launch == LEAST_PICK && sum)
		return "counts are left";
	if (least_launch == LEAST_PICK && least.done &&
	    (cua__hashmap_below(least.key, wide_keys[max - 1]) ||
	     !cua__hashmap_below(least.key, wide_keys[max])))
		return "the key is not between those that it parts";
	if (least_launch == LEAST_PICK && !least.done &&
	    (!least_arrays.pass ||
	     !cua__hashmap_same_prefix(least.key, wide_keys[max - 1], least_arrays.pass - 1)))
		return "the digits are not those of the key";
	if (least_launch != LEAST_GIVE)
		return NULL;
	if (least.given > max && !memcmp(&least_before.key, &all_ones, sizeof(all_ones)))
		return least_values[max - 1] != 0xa5a5a5a5 && least_values[max] == 0xa5a5a5a5
			       ? NULL
			       : "written behind the room";
	for (uint32_t i = 0; i < max; i++) {
		uint32_t at = 0;

		while (at < max && !cua__hashmap_same(least_keys[i], wide_keys[at]))
			at++;
		if (at == max || (given >> at & 1))
			return "a key is none of the least ones, or there twice";
		if (!cua__hashmap_same(wide_key(least_values[i]), least_keys[i]))
			return "a value is wrong";
		given |= (uint64_t)1 << at;
	}
	return least.given == max && least_values[max] == 0xa5a5a5a5 ? NULL : "more are given";
}

static void least_try(enum least_launch which, unsigned blocks, unsigned lanes)
{
	struct simt_case c = {
		.name = "least", .setup = least_setup, .body = least_body, .check = least_check};

	least_launch = which;
	least_before = least;
	try_shape(c, blocks, lanes, 1);
}

START_TEST(least_of_all)
{
	static const uint64_t sizes[] = {1, 13, 30, WIDE_KEYS - 1, WIDE_KEYS};
	const struct simt_case fill = {.name = "fill", .setup = wide_setup, .body = wide_body};

	try_shape(fill, 1, 32, 1);
	wide_sort();
	n_wide = WIDE_KEYS;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const unsigned blocks = 1 + (unsigned)i % 2, lanes = i % 3 ? 32 : 64;

		memset(&least, 0, sizeof(least));
		memset(&least_arrays, 0, sizeof(least_arrays));
		least_arrays.max = sizes[i];
		least_arrays.all = &n_wide;
		least_arrays.least = &least;
		for (least_arrays.pass = 16; least_arrays.pass-- > 0;) {
			least_try(LEAST_COUNT, blocks, lanes);
			least_try(LEAST_PICK, 1, lanes);
		}
		least_try(LEAST_GIVE, blocks, lanes);
		/* as if another kernel had inserted keys below this key in the meantime */
		least.given = 0;
		least.key = all_ones;
		if (least_arrays.max < n_wide)
			least_try(LEAST_GIVE, blocks, lanes);
	}
}
END_TEST

TCase *simt_hashmap_ops_cases(void)
{
	TCase *tc = simt_tcase("hashmap_ops");

	tcase_add_test(tc, sort);
	tcase_add_test(tc, whole);
	tcase_add_test(tc, least_of_all);
	return tc;
}
