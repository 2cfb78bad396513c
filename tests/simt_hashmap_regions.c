/* SPDX-License-Identifier: MIT */
/*
 * The kernels that build a hash map by regions, in sequence: the same functions as on a GPU, with
 * small build regions.
 */
#define CUA__HASHMAP_REGION_LOG 4u
/* the checker needs words of 4 bytes */
#define CUA__REGIONS_INDEX uint32_t

#include <stdio.h>
#include <string.h>

#include "lib/kernels/hashmap_regions.h"
#include "simt_suites.h"

enum {
	BUILD_REGIONS = 4,
	BUCKETS = BUILD_REGIONS << CUA__HASHMAP_REGION_LOG,
	MOST = 480,
	MOST_BLOCKS = 2,
	TILE = 128,
	REGIONS = BUILD_REGIONS / 2
};

enum data { DISTINCT, FEW_KEYS, HALF_ARE_ONE, ONE_REGION, ONE_HOME, RESERVED };
/* The way the map is filled. */
enum route { TWO_SCATTERS, ONE_SCATTER, INSERT };

static uint32_t ks, vs, lanes; /* lanes: per block */
static enum route way;
static struct cua__regions_pass first, second, inserts;

static char buckets[BUCKETS * CUA__HASHMAP_WORD_BYTES] __attribute__((aligned(64)));
static struct {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	uint64_t reserved[4];
} state __attribute__((aligned(64)));
static unsigned char keys[MOST * 16] __attribute__((aligned(16)));
static unsigned char values[MOST * 16] __attribute__((aligned(16)));
static char words[4 * MOST * 16] __attribute__((aligned(16)));
static char spill[MOST * 16] __attribute__((aligned(16)));
static uint64_t region_filled[REGIONS], build_region_filled[BUILD_REGIONS], spilled, arrived;
static uint64_t distinct;

/* Per block. */
static struct {
	char stage[TILE * 16] __attribute__((aligned(16)));
	char table[CUA__REGIONS_BUILD_BYTES] __attribute__((aligned(16)));
	char list[TILE * 16] __attribute__((aligned(16)));
	uint32_t region_of[TILE], number[TILE], offset[TILE], overflow[CUA__REGIONS_BUCKETS];
	struct cua__regions_shared sh;
} block[MOST_BLOCKS];
static uint32_t list_room;

static uint64_t rng;
static uint64_t next_random(void)
{
	rng = rng * 6364136223846793005u + 1442695040888963407u;
	return rng >> 20;
}

static int wide(void)
{
	return cua__hashmap_is_wide(ks, vs);
}

/* The next key from *candidate on with a home bucket in from..from + n - 1. */
static struct cua_u128 key_of_homes(const struct cua_hashmap_view *view, uint64_t *candidate,
				    uint64_t from, uint64_t n)
{
	struct cua_u128 key = {0, 0};

	do
		key.lo = (*candidate)++;
	while (cua_hash_to_index(cua__hashmap_hash(view, ks, key), BUCKETS) - from >= n);
	return key;
}

/* The value of a pair is its index. */
static void make(enum data data, uint64_t n)
{
	const uint64_t region = (uint64_t)1 << CUA__HASHMAP_REGION_LOG;
	struct cua_hashmap_view view;
	uint64_t candidate = 2;

	memset(&view, 0, sizeof(view));
	view.n_buckets = BUCKETS;
	view.seed = 7;
	distinct = 0;
	for (uint64_t i = 0; i < n; i++) {
		struct cua_u128 key = {0, 0}, value = {i, 0};

		switch (data) {
		case FEW_KEYS: key.lo = 2 + next_random() % (n / 4 + 1); break;
		case HALF_ARE_ONE: key.lo = next_random() % 2 ? 99 : 100 + i; break;
		case ONE_REGION: key = key_of_homes(&view, &candidate, region, region); break;
		/* more keys than the home's overflow word has bits, and many duplicates */
		case ONE_HOME:
			if (i && next_random() % 3 == 0)
				key = cua__hashmap_get(keys, ks, next_random() % i);
			else
				key = key_of_homes(&view, &candidate, region + 3, 1);
			break;
		case RESERVED: key.lo = next_random() % 5; break;
		default: key.lo = 2 + i * 77;
		}
		/* so that the hash depends on both halves */
		if (ks == 16 && data != ONE_REGION && data != ONE_HOME)
			key.hi = key.lo * 3;
		cua__hashmap_set(keys, ks, i, key);
		cua__hashmap_set(values, vs, i, value);
		distinct++;
		for (uint64_t j = 0; j < i; j++)
			if (!memcmp(keys + i * ks, keys + j * ks, ks)) {
				distinct--;
				break;
			}
	}
	memset(&first, 0, sizeof(first));
	first.view.buckets = buckets;
	first.view.counts = state.counts;
	first.view.n_buckets = BUCKETS;
	first.view.seed = view.seed;
	first.view.key_size = ks;
	first.view.value_size = vs;
	first.view.layout = CUA_HASHMAP_WORDS;
	first.keys = keys;
	first.values = values;
	first.n = n;
	first.spill = spill;
	first.spilled = &spilled;
	second = first;
	second.to = buckets;
	second.filled = build_region_filled;
	second.room = CUA__REGIONS_BUILD_BYTES / (wide() ? 16 : 8);
	second.shift = CUA__HASHMAP_REGION_LOG;
	second.regions = BUILD_REGIONS;
	first.to = words;
	first.filled = region_filled;
	first.shift = CUA__HASHMAP_REGION_LOG + 1;
	first.regions = REGIONS;
}

/*
 * Sets the room of a region, of the spill list and of a build region's overflow list, and the words
 * of a tile in a region above which duplicates are dropped.
 */
static void shape(uint64_t room, uint64_t spill_room, uint32_t room_of_list, uint32_t repeat_limit)
{
	first.room = room;
	first.spill_room = second.spill_room = spill_room;
	first.repeat_limit = second.repeat_limit = repeat_limit;
	list_room = room_of_list;
	inserts = first;
	inserts.from = words;
	inserts.from_filled = region_filled;
	inserts.from_room = room;
	inserts.from_tiles = room / TILE + 1;
	inserts.at_once = 2;
	if (way == TWO_SCATTERS) {
		second.from = words;
		second.from_filled = region_filled;
		second.from_room = room;
		second.from_tiles = room / TILE + 1;
		second.regions = BUILD_REGIONS / REGIONS;
	}
}

static void setup(void)
{
	/* a build does not read the buckets */
	memset(buckets, way == INSERT ? 0 : 0xee, sizeof(buckets));
	memset(&state, 0, sizeof(state));
	memset(region_filled, 0, sizeof(region_filled));
	memset(build_region_filled, 0, sizeof(build_region_filled));
	memset(block, 0xdd, sizeof(block));
	spilled = arrived = 0;
}

static void check_map(void)
{
	const struct cua_hashmap_view *view = &first.view;
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide() ? 16 : 8;
	uint64_t found = 0;

	for (uint64_t i = 0; i < first.n; i++) {
		const struct cua_u128 key = cua__hashmap_get(keys, ks, i);
		struct cua_u128 value = {0, 0};

		if (!cua__hashmap_word_find(
			    view, CUA__HASHMAP_KIND(ks, vs),
			    cua__hashmap_key_of(cua__hashmap_hash(view, ks, key), key), NULL,
			    CUA_ACQUIRE, &value))
			simt_fail("a pair is lost");
		else if (vs &&
			 (value.lo >= first.n || memcmp(keys + value.lo * ks, keys + i * ks, ks)))
			simt_fail("a key has the value of another one");
	}
	for (uint64_t slot = 0; slot < cua__hashmap_all_slots(view, ks, vs); slot++) {
		struct cua_u128 key, value;

		found += (uint64_t)cua__hashmap_at(view, ks, vs, slot, &key, &value);
	}
	if (found != distinct)
		simt_fail("a key is there twice, or one that nobody brought");
	if (cua__hashmap_count(view) != distinct)
		simt_fail("the counts are wrong");
	for (uint64_t b = 0; b < BUCKETS; b++) {
		const char *bucket = buckets + b * CUA__HASHMAP_WORD_BYTES;
		int empty = 0;

		for (uint32_t i = 0; i < slots; i++) {
			const struct cua_u128 w = cua__hashmap_word_load(bucket + (i + 1) * size,
									 wide(), CUA_RELAXED);

			if (!cua__hashmap_word_empty(w) && empty)
				simt_fail("an EMPTY slot is not among the last");
			empty |= cua__hashmap_word_empty(w);
		}
		if (cua__hashmap_word_head(bucket, wide()).lo & CUA__HASHMAP_LOCKED)
			simt_fail("a bucket is locked");
	}
}

static void body(void)
{
	struct cua__regions_kind scatter = {ks, vs, lanes, TILE / lanes, 0, 0, 0},
				 rescatter = {ks, vs, lanes, TILE / lanes, 1, 0, 0};
	struct cua__regions_kind build = {
		ks, vs, lanes, CUA__REGIONS_BUILD_BYTES / (wide() ? 16 : 8) / lanes, 0, 0, 0};
	struct cua__regions_kind one = {ks, vs, lanes, 1, 0, 0, 0};
	const uint64_t blocks = simt_blocks(), b = simt_block();
	const struct cua__regions_pass *start = way == ONE_SCATTER ? &second : &first;
	uint64_t i;

	for (i = b; i * TILE < first.n; i += blocks) {
		cua__regions_scatter(scatter, start, i, &block[b].sh, block[b].stage,
				     block[b].region_of, block[b].number, block[b].offset);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	for (i = b; way == TWO_SCATTERS && i < REGIONS * second.from_tiles; i += blocks) {
		cua__regions_scatter(rescatter, &second, i, &block[b].sh, block[b].stage,
				     block[b].region_of, block[b].number, block[b].offset);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	for (i = b; way != INSERT && i < BUILD_REGIONS; i += blocks) {
		const struct cua__regions_room room = {block[b].table, block[b].number,
						       block[b].overflow, block[b].list, list_room};

		cua__regions_build(build, &second, i, &block[b].sh, room);
		cua_port_sync_block();
	}
	for (i = b; way == INSERT && i < REGIONS * inserts.from_tiles; i += blocks) {
		cua__regions_insert_tile(rescatter, &inserts, i, block[b].list);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	cua__regions_insert_spilled(one, way == INSERT ? &inserts : &second);
	simt_next_kernel(&arrived);
	if (simt_lane() == 0)
		check_map();
}

static const char *nothing(void)
{
	return NULL;
}

static const struct {
	uint32_t ks, vs;
} sizes[] = {{4, 4}, {4, 0}, {8, 0}, {8, 8}, {8, 4}, {16, 0}};

static void try_data(enum data data, unsigned of_8, uint64_t room, uint64_t spill_room,
		     uint32_t room_of_list, uint32_t repeat_limit)
{
	const struct simt_case c = {.name = "regions",
				    .setup = setup,
				    .body = body,
				    .check = nothing,
				    .max_steps = 20000000};
	uint64_t n = (uint64_t)BUCKETS * cua__hashmap_word_slots(ks, vs) * of_8 / 8;

	make(data, n);
	shape(room ? room : n, spill_room, room_of_list, repeat_limit);
	try_shape(c, 1 + of_8 % 2, lanes, 1);
}

START_TEST(hashmap_regions)
{
	const uint32_t repeat_limit = 60;

	ks = sizes[_i].ks;
	vs = sizes[_i].vs;
	rng = simt_seed();
	for (way = TWO_SCATTERS; way <= INSERT; way++) {
		lanes = 32;
		try_data(DISTINCT, 7, 0, 100, 16, repeat_limit);
		/*
		 * no room in the overflow list, and regions that spill: within the list, and more,
		 * so that all pairs are inserted again
		 */
		try_data(DISTINCT, 6, 64, MOST, 0, TILE);
		try_data(DISTINCT, 5, 64, 5, 16, TILE);
		try_data(FEW_KEYS, 8, 0, 100, 2, 2);
		try_data(HALF_ARE_ONE, 7, 100, 100, 16, repeat_limit);
		try_data(HALF_ARE_ONE, 6, 100, 100, 16, TILE);
		try_data(ONE_REGION, 3, 0, MOST, 16, TILE);
		try_data(ONE_HOME, 2, 0, MOST, 16, TILE);
		try_data(RESERVED, 2, 0, 20, 16, TILE);
		/* warps share the deferred words */
		lanes = 64;
		try_data(ONE_HOME, 2, 0, MOST, 0, TILE);
	}
}
END_TEST

TCase *simt_hashmap_regions_cases(void)
{
	TCase *tc = simt_tcase("hashmap_regions");

	tcase_add_loop_test(tc, hashmap_regions, 0, sizeof(sizes) / sizeof(sizes[0]));
	return tc;
}
