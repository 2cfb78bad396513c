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
	REGIONS = BUILD_REGIONS / 2,
	OWNERS = 2,
	RANKS = 2
};

enum data { DISTINCT, FEW_KEYS, HALF_ARE_ONE, ONE_REGION, ONE_HOME, RESERVED };
/*
 * The way the map is filled. SENT_BUILD and SENT_INSERT begin with a scatter for owners, by the second of two
 * ranks; the first rank has no pairs. All owners have the same map. A build has a single owner, because
 * each owner builds by itself; it has a slice for each region.
 */
enum route { TWO_SCATTERS, ONE_SCATTER, INSERT, SENT_BUILD, SENT_INSERT };

static uint32_t ks, vs, lanes; /* lanes: per block */
static enum route way;
static struct cua__regions_pass first, second, inserts;
static struct cua__shard_late late, late_of_first;

static char buckets[BUCKETS * CUA__HASHMAP_WORD_BYTES] __attribute__((aligned(64)));
static struct {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	uint64_t reserved[4];
} state __attribute__((aligned(64)));
static unsigned char keys[MOST * 16] __attribute__((aligned(16)));
static unsigned char values[MOST * 16] __attribute__((aligned(16)));
static char words[OWNERS * REGIONS * MOST * 16] __attribute__((aligned(16)));
static char words_of_first[16] __attribute__((aligned(16)));
static char spill[MOST * 16] __attribute__((aligned(16)));
static uint64_t region_filled[OWNERS * REGIONS], received[OWNERS * REGIONS * RANKS],
	build_region_filled[BUILD_REGIONS], spilled, arrived;
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

static int is_sent(void)
{
	return way == SENT_BUILD || way == SENT_INSERT;
}

static void set_sources(struct cua__regions_pass *a)
{
	a->from_filled = received;
	a->from_of[0] = words_of_first;
	a->from_of[1] = words;
	a->from_ranks = RANKS;
}

static void send(void)
{
	first.owners = way == SENT_BUILD ? 1 : OWNERS;
	first.per_owner = REGIONS;
	first.regions = first.owners * REGIONS;
	first.owner_seed = 11;
	first.late = &late;
	first.spilled = &late.spilled;
	first.spill = NULL;
	first.spill_room = 0;
	set_sources(&inserts);
	inserts.regions = first.regions * RANKS;
	inserts.at_once = 2 * RANKS;
	/* what is left is inserted by another call */
	inserts.n = second.n = 0;
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
	inserts.from_of[0] = words;
	inserts.from_ranks = 1;
	inserts.from_filled = region_filled;
	inserts.from_room = room;
	inserts.from_tiles = room / TILE + 1;
	inserts.at_once = 2;
	if (way == TWO_SCATTERS || way == SENT_BUILD) {
		second.from_of[0] = words;
		second.from_filled = region_filled;
		second.from_room = room;
		second.from_tiles = room / TILE + 1;
		second.from_ranks = 1;
		second.regions = BUILD_REGIONS / REGIONS;
	}
	if (way == SENT_BUILD)
		set_sources(&second);
	if (is_sent())
		send();
}

static int inserted(void)
{
	return way == INSERT || way == SENT_INSERT;
}

static void setup(void)
{
	/* a build does not read the buckets */
	memset(buckets, inserted() ? 0 : 0xee, sizeof(buckets));
	memset(&state, 0, sizeof(state));
	memset(region_filled, 0, sizeof(region_filled));
	memset(received, 0, sizeof(received));
	memset(&late, 0, sizeof(late));
	memset(build_region_filled, 0, sizeof(build_region_filled));
	memset(block, 0xdd, sizeof(block));
	spilled = arrived = 0;
}

static int is_first(uint64_t i)
{
	for (uint64_t j = 0; j < i; j++)
		if (!memcmp(keys + i * ks, keys + j * ks, ks))
			return 0;
	return 1;
}

static void check_map(void)
{
	const struct cua_hashmap_view *view = &first.view;
	const uint32_t slots = cua__hashmap_word_slots(ks, vs), size = wide() ? 16 : 8;
	uint64_t found = 0, lost = 0;

	for (uint64_t i = 0; i < first.n; i++) {
		const struct cua_u128 key = cua__hashmap_get(keys, ks, i);
		struct cua_u128 value = {0, 0};

		if (!cua__hashmap_word_find(
			    view, CUA__HASHMAP_KIND(ks, vs),
			    cua__hashmap_key_of(cua__hashmap_hash(view, ks, key), key), NULL,
			    CUA_ACQUIRE, &value))
			lost += (uint64_t)is_first(i);
		else if (vs &&
			 (value.lo >= first.n || memcmp(keys + value.lo * ks, keys + i * ks, ks)))
			simt_fail("a key has the value of another one");
	}
	for (uint64_t slot = 0; slot < cua__hashmap_all_slots(view, ks, vs); slot++) {
		struct cua_u128 key, value;

		found += (uint64_t)cua__hashmap_at(view, ks, vs, slot, &key, &value);
	}
	/* a lost key had no room at its owner, or in the spill list */
	if (lost > late.spilled + (is_sent() && spilled > second.spill_room ? spilled : 0))
		simt_fail("a pair is lost");
	if (found + lost != distinct)
		simt_fail("a key is there twice, or one that nobody brought");
	if (cua__hashmap_count(view) != found)
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

/* The second scatter of the words of `regions` regions, and the build of their build regions. */
static void rescatter_and_build(const struct cua__regions_pass *a, uint64_t regions)
{
	const struct cua__regions_kind rescatter = {ks, vs, lanes, TILE / lanes, 1, 0, 0, 0};
	const struct cua__regions_kind build = {
		ks, vs, lanes, CUA__REGIONS_BUILD_BYTES / (wide() ? 16 : 8) / lanes, 0, 0, 0, 0};
	const uint64_t blocks = simt_blocks(), b = simt_block();
	uint64_t i;

	for (i = b; way != ONE_SCATTER && i < regions * a->from_ranks * a->from_tiles;
	     i += blocks) {
		cua__regions_scatter(rescatter, a, i, &block[b].sh, block[b].stage,
				     block[b].region_of, block[b].number, block[b].offset);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	for (i = b; i < BUILD_REGIONS / REGIONS * regions; i += blocks) {
		const struct cua__regions_room room = {block[b].table, block[b].number,
						       block[b].overflow, block[b].list, list_room};

		cua__regions_build(build, a, a->first_region + i, &block[b].sh, room);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
}

static void build_slices(void)
{
	for (uint32_t slice = 0; slice < REGIONS; slice++) {
		struct cua__regions_pass a = second;

		a.first_region = slice * a.regions;
		a.from_filled += slice * RANKS;
		a.from_of[1] = words + slice * a.from_room * (wide() ? 16 : 8);
		rescatter_and_build(&a, 1);
	}
}

/* All owners have the same map. */
static void insert_aside(const struct cua__regions_kind one)
{
	struct cua__regions_pass a = first;

	a.from_of[0] = first.owners > 1 ? &late_of_first : &late;
	a.from_of[1] = &late;
	for (a.rank = 0; a.rank < first.owners; a.rank++)
		cua__regions_insert_aside(one, &a);
}

static void body(void)
{
	struct cua__regions_kind scatter = {ks, vs, lanes, TILE / lanes, 0, 0, 0, is_sent()};
	struct cua__regions_kind insert = {ks, vs, lanes, TILE / lanes, 0, 0, 0, 0};
	struct cua__regions_kind one = {ks, vs, lanes, 1, 0, 0, 0, 0};
	const uint64_t blocks = simt_blocks(), b = simt_block();
	const struct cua__regions_pass *start = way == ONE_SCATTER ? &second : &first;
	uint64_t i;

	for (i = b; i * TILE < first.n; i += blocks) {
		cua__regions_scatter(scatter, start, i, &block[b].sh, block[b].stage,
				     block[b].region_of, block[b].number, block[b].offset);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	for (i = simt_lane(); is_sent() && i < first.regions; i += lanes)
		if (b == 0)
			received[i * RANKS + 1] = region_filled[i];
	simt_next_kernel(&arrived);
	if (way == SENT_BUILD)
		build_slices();
	else if (!inserted())
		rescatter_and_build(&second, REGIONS);
	for (i = b; inserted() && i < inserts.regions * inserts.from_tiles; i += blocks) {
		cua__regions_insert_tile(insert, &inserts, i, block[b].list);
		cua_port_sync_block();
	}
	simt_next_kernel(&arrived);
	cua__regions_insert_spilled(one, inserted() ? &inserts : &second);
	simt_next_kernel(&arrived);
	if (is_sent() && b == 0)
		insert_aside(one);
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
	for (way = TWO_SCATTERS; way <= SENT_INSERT; way++) {
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
