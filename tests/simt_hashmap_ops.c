/* SPDX-License-Identifier: MIT */
/* The kernels for a hash map as a whole: the very functions that the GPU runs, with small blocks. */
#include <string.h>

#include "lib/hashmap_kernel.h"
#include "simt_suites.h"

/* ---- sorting, a launch at a time ---- */

enum { MOST = 1500, BLOCKS = 3 };
enum launch { DIFFER, COUNT, SCAN, SCATTER, FINISH };

static struct cua_u128 keys[2][MOST], differ;
static uint32_t values[2][MOST], model[MOST];
static uint64_t counts[(BLOCKS + 1) * CUA__HASHMAP_DIGITS], before[(BLOCKS + 1) * CUA__HASHMAP_DIGITS];
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
	case COUNT: cua__sort_count(&arrays, simt_shared(CUA__HASHMAP_DIGITS * sizeof(uint32_t))); break;
	case SCAN: cua__sort_scan(&arrays, simt_shared(CUA__HASHMAP_DIGITS * sizeof(uint64_t))); break;
	case SCATTER: cua__sort_scatter(&arrays, simt_shared(sizeof(struct cua__sort_shared))); break;
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
		return !cua__hashmap_digit(differ, arrays.pass) || sum == n ? NULL : "the counts are wrong";
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

/* Keys of which the first `random` bytes differ, taken by their low bits from `kinds` kinds. */
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
		/* arrays of the sizes: keys of 16 bytes or 4 */
		if (arrays.key_size == 16)
			keys[0][i] = key;
		else
			((uint32_t *)(void *)keys[0])[i] = (uint32_t)key.lo;
		values[0][i] = model[i] = i;
		values[1][i] = 0xffffffff;
	}
	n = n < max ? n : max;
	/* by insertion, which is stable */
	for (uint64_t i = 1; i < n; i++) {
		uint32_t m = model[i];
		uint64_t j = i;

		for (; j > 0 && cua__hashmap_below(cua__hashmap_get(keys[0], arrays.key_size, m),
						   cua__hashmap_get(keys[0], arrays.key_size, model[j - 1]));
		     j--)
			model[j] = model[j - 1];
		model[j] = m;
	}
}

static void sort_launch(enum launch which, unsigned blocks, unsigned lanes)
{
	struct simt_case c = {.name = "sort", .setup = sort_setup, .body = sort_body, .check = sort_check};

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
			const unsigned blocks = 1 + (unsigned)(i + (size_t)wide) % BLOCKS, lanes = i % 2 ? 64 : 32;

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
			sort_fill(sizes[i], i == 4 ? 400 : MOST, wide ? 9 : 1 + (unsigned)i % 3, i % 2 ? 10 : 100000);
			sort_launch(DIFFER, blocks, lanes);
			for (arrays.pass = 0; arrays.pass < arrays.key_size; arrays.pass++) {
				/* a launch for nothing is tried a few times only */
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

/* ---- a map moved, read and told of, by one block ---- */

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
	uint32_t lane = simt_lane();

	/* the second map has some of the keys, with a value of its own */
	if (lane < 26)
		cua_hashmap_insert(&views[0], lane, lane * 3);
	else if (lane < 36)
		cua_hashmap_insert(&views[1], lane - 16, 1000);
	cua_port_sync_block();
	cua__hashmap_move(&views[0], &views[1], 4, vs, CUA_UPDATE_ADD);
	cua_port_sync_block();
	cua__hashmap_give_slice(&views[1], 4, vs, 0, cua__hashmap_places(&views[1], 4, vs), sliced_keys,
				sliced_values, &n_sliced, simt_shared(sizeof(struct cua__slice_shared)));
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
	return probes == 26 && all == 26 && worst == tally.worst && !tally.erased ? NULL : "the tally is wrong";
}

START_TEST(whole)
{
	struct simt_case c = {.name = "whole", .setup = whole_setup, .body = whole_body, .check = whole_check};

	for (states = 0; states < 2; states++)
		try_shape(c, 1, LANES, 4);
}
END_TEST

TCase *simt_hashmap_ops_cases(void)
{
	TCase *tc = simt_tcase("hashmap_ops");

	tcase_add_test(tc, sort);
	tcase_add_test(tc, whole);
	return tc;
}
