/* SPDX-License-Identifier: MIT */
/* The multimap. */
#include <string.h>

#include "lib/kernels/multimap_kernel.h"
#include "simt_suites.h"

CUA_DEFINE_MULTIMAP(narrow, uint32_t, uint32_t)
CUA_DEFINE_MULTIMAP(wide, uint64_t, uint64_t)

enum { MOST = 256 };

static uint64_t mm_buckets[16 * CUA__HASHMAP_WORD_BYTES / 8] __attribute__((aligned(128)));
static uint64_t mm_entries[2 * MOST], mm_reusable[MOST];
static struct {
	struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
	uint64_t reserved[4];
} mm_counts;
static struct cua_multimap_pool mm_pool;
static struct cua_multimap_view mm;
static uint64_t mm_inserted, mm_erased, mm_full;

static void mm_size(uint32_t bytes, uint64_t buckets, uint64_t capacity)
{
	struct cua_hashmap_view map = {
		mm_buckets, mm_counts.counts,
		NULL,       buckets,
		0,          bytes,
		bytes,      bytes == 4 ? CUA_HASHMAP_WORDS : CUA_HASHMAP_STATES,
		0,          0,
		0,          0};

	mm.map = map;
	mm.entries = mm_entries;
	mm.reusable = mm_reusable;
	mm.pool = &mm_pool;
	mm.capacity = capacity;
	mm.value_size = bytes;
	mm.layout = CUA_MULTIMAP_LAYOUT;
}

static void mm_setup(void)
{
	memset(mm_buckets, 0, sizeof(mm_buckets));
	memset(&mm_counts, 0, sizeof(mm_counts));
	memset(&mm_pool, 0, sizeof(mm_pool));
	memset(mm_entries, 0xee, sizeof(mm_entries));
	mm_inserted = mm_erased = mm_full = 0;
}

static void mm_add(uint64_t *n, uint64_t more)
{
	cua_port_add_u64(n, more, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

/* Collects the values of a list after a run. Returns their number, or -1. */
static int mm_list(uint64_t head, unsigned char seen[], uint64_t most)
{
	const uint32_t *narrow = (const uint32_t *)mm_entries;
	int n = 0;

	while (head) {
		uint64_t value =
			mm.value_size == 4 ? narrow[2 * head - 2] : mm_entries[2 * head - 2];

		if (head > mm.capacity || n++ > MOST || value >= most || seen[value]++)
			return -1;
		head = mm.value_size == 4 ? narrow[2 * head - 1] : mm_entries[2 * head - 1];
	}
	return n;
}

/* The number of pairs, from the counters. */
static uint64_t mm_pairs(void)
{
	return (mm_pool.taken < mm.capacity ? mm_pool.taken : mm.capacity) - mm_pool.dropped;
}

/* All lists of a map of 64-bit words hold exactly the values that were inserted and not erased. */
static const char *mm_check(void)
{
	unsigned char seen[4 * SIMT_MAX_LANES] = {0};
	uint64_t n = 0;

	for (uint64_t slot = 0; slot < mm.map.n_buckets * 7; slot++) {
		uint64_t word = mm_buckets[slot / 7 * 8 + 1 + slot % 7];
		int more = (uint32_t)word ? mm_list(word >> 32, seen, sizeof(seen)) : 0;

		if (more < 0)
			return "a list is broken, or a value is there twice";
		n += (uint64_t)more;
	}
	if (n != mm_inserted - mm_erased)
		return "values were lost";
	return mm_pairs() == n ? NULL : "the size is wrong";
}

/* ---- keys shared by lanes; value = lane * 4 + a growing number ---- */

#define KEY_OF(value) ((value) / 4 % 2 + 1)

/* A walk finds only values of its key, and each lane's values newest first. */
#define DEFINE_MIXED(name, T)                                                                      \
	static uint64_t name##_look(T key)                                                         \
	{                                                                                          \
		uint64_t n = 0;                                                                    \
		T last[8];                                                                         \
                                                                                                   \
		for (uint64_t at = name##_first(&mm, key); at; at = name##_next(&mm, at)) {        \
			T value = name##_value(&mm, at);                                           \
                                                                                                   \
			if (KEY_OF(value) != key)                                                  \
				simt_fail("a value of another key");                               \
			for (uint64_t i = n < 8 ? n : 8; i-- > 0;)                                 \
				if (last[i] / 4 == value / 4 && last[i] <= value)                  \
					simt_fail("a lane's older value comes first");             \
			last[n++ % 8] = value;                                                     \
			if (n > MOST)                                                              \
				simt_fail("a list has no end");                                    \
		}                                                                                  \
		return n;                                                                          \
	}                                                                                          \
	static void name##_mixed(void)                                                             \
	{                                                                                          \
		T value = (T)simt_lane() * 4, key = KEY_OF(value);                                 \
                                                                                                   \
		for (int i = 0; i < 2; i++) {                                                      \
			if (name##_insert(&mm, key, value + (T)i) != CUA_MULTIMAP_INSERTED)        \
				simt_fail("an insert found no room");                              \
			mm_add(&mm_inserted, 1);                                                   \
			name##_look(key);                                                          \
		}                                                                                  \
		if (simt_lane() % 3 == 0) {                                                        \
			mm_add(&mm_erased, name##_erase(&mm, key));                                \
			if (name##_insert(&mm, key, value + 2) != CUA_MULTIMAP_INSERTED)           \
				simt_fail("an insert found no room");                              \
			mm_add(&mm_inserted, 1);                                                   \
		}                                                                                  \
		name##_look(3 - key);                                                              \
	}
DEFINE_MIXED(narrow, uint32_t)
DEFINE_MIXED(wide, uint64_t)

static const char *wide_check(void)
{
	return mm_pairs() == mm_inserted - mm_erased ? NULL : "the size is wrong";
}

/*
 * The same by whole warps: every fifth lane has nothing to insert. No lane erases, so each lane
 * finds all its inserted values.
 */
static void mm_warp(void)
{
	uint32_t key = simt_lane() % 3 + 1, value = simt_lane() * 4, at;
	int wants = simt_lane() % 5 != 4, result, there = 0;

	result = narrow_insert_warp(&mm, whole_warp(), wants, key, value);
	if (result == CUA_MULTIMAP_INSERTED) {
		mm_add(&mm_inserted, 1);
		for (at = (uint32_t)narrow_first(&mm, key); at;
		     at = (uint32_t)narrow_next(&mm, at)) {
			if (narrow_value(&mm, at) / 4 % 3 + 1 != key)
				simt_fail("a value of another key");
			there += narrow_value(&mm, at) == value;
		}
	} else if (result != (wants ? CUA_MULTIMAP_FULL : 0)) {
		simt_fail("an insert of a warp has another result");
	} else if (wants) {
		mm_add(&mm_full, 1);
	}
	if (there != (result == CUA_MULTIMAP_INSERTED))
		simt_fail("a lane does not find its value once");
}

static const char *mm_warp_check(void)
{
	uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes(), wanted = 0;

	for (uint64_t i = 0; i < lanes; i++)
		wanted += i % 5 != 4;
	if (mm_inserted != (wanted < mm.capacity ? wanted : mm.capacity) ||
	    mm_inserted + mm_full != wanted || mm_pool.rejected != mm_full)
		return "not as many were inserted as there is room for";
	return mm_check();
}

/* ---- a list is of a single moment ---- */

/* Lane 0 inserts 0, 1, 2, erases, and inserts 3, 4. Other lanes read, or insert other keys. */
static void mm_moments(void)
{
	uint32_t values[8], n;

	if (simt_lane() == 0) {
		for (uint32_t i = 0; i < 5; i++) {
			if (i == 3) {
				uint64_t removed = narrow_erase(&mm, 9);

				if (removed != 3)
					simt_fail("erase did not remove what is there");
				mm_add(&mm_erased, removed);
			}
			narrow_insert(&mm, 9, i);
			mm_add(&mm_inserted, 1);
		}
		return;
	}
	n = (uint32_t)narrow_retrieve(&mm, 9, 8, values);
	if (n > 3)
		simt_fail("values of before the erase and after");
	for (uint32_t i = 0; i < n; i++)
		if (values[i] != (values[0] < 3 ? 0u : 3u) + n - 1 - i)
			simt_fail("not the values of one moment");
	if (simt_lane() % 2) {
		narrow_insert(&mm, 20 + simt_lane(), 100 + simt_lane());
		mm_add(&mm_inserted, 1);
	}
}

/* ---- full ---- */

/* Six keys in the only bucket, and as many entries as the lanes can need: room for one new key. */
static void mm_spares_setup(void)
{
	uint32_t *narrow = (uint32_t *)mm_entries;

	mm_setup();
	for (uint32_t i = 0; i < 6; i++) {
		mm_buckets[1 + i] = (100 + i) | (uint64_t)(i + 1) << 32;
		narrow[2 * i] = 1000 + i;
		narrow[2 * i + 1] = 0;
	}
	mm_counts.counts[0].inserted = 6;
	mm_pool.taken = 6;
	mm_inserted = 6;
	mm.capacity = 7 + 2 * (uint64_t)simt_blocks() * simt_block_lanes();
}

static void mm_spares(void)
{
	uint32_t key = 200 + simt_lane();

	for (uint32_t i = 0; i < 2; i++) {
		int result = i && narrow_contains(&mm, key)
				     ? 0
				     : narrow_insert(&mm, key, simt_lane() * 4);

		if (result == CUA_MULTIMAP_INSERTED)
			mm_add(&mm_inserted, 1);
		else if (result == CUA_MULTIMAP_FULL)
			mm_add(&mm_full, 1);
	}
	/* an entry that was given back is used again */
	if (narrow_insert(&mm, 100, simt_lane() * 4 + 1) != CUA_MULTIMAP_INSERTED)
		simt_fail("an entry is lost");
	mm_add(&mm_inserted, 1);
}

static const char *mm_spares_check(void)
{
	uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes();

	if (mm_inserted != 7 + lanes || mm_full != 2 * (lanes - 1) || mm_pool.rejected)
		return "not exactly one new key was inserted";
	return mm_check();
}

/* Three spares for three lanes; lane 1 takes a spare twice. */
static void mm_recycled_setup(void)
{
	uint32_t *narrow = (uint32_t *)mm_entries;

	mm_setup();
	for (uint32_t i = 7; i < 10; i++)
		narrow[2 * i + 1] = (uint32_t)1 << 31 | (i < 9 ? i + 2 : 0);
	mm_pool.dropped = 3;
	mm_pool.spare = 8;
}

/* No two lanes hold the same spare at a time. */
static uint64_t mm_take(void)
{
	uint64_t cursor = cua__multimap_pop_spare(&mm, 4);

	if (cursor < 8 || cursor > 10)
		simt_fail("a spare is lost");
	cua__multimap_set_value(&mm, 4, cursor, simt_lane());
	if (cua__multimap_value(&mm, 4, cursor) != simt_lane())
		simt_fail("two have one spare");
	return cursor;
}

static void mm_recycled(void)
{
	if (simt_lane() == 1)
		cua__multimap_push_spare(&mm, 4, mm_take());
	mm_take();
}

static const char *mm_recycled_check(void)
{
	const uint32_t low = (uint32_t)mm_pool.spare;

	return low || mm_pool.dropped ? "a spare is there twice" : NULL;
}

START_TEST(multimap)
{
	struct simt_case mixed = {.name = "multimap, mixed",
				  .setup = mm_setup,
				  .body = narrow_mixed,
				  .check = mm_check};
	struct simt_case states = {.name = "multimap, states",
				   .setup = mm_setup,
				   .body = wide_mixed,
				   .check = wide_check};
	struct simt_case warps = {.name = "multimap, warps",
				  .setup = mm_setup,
				  .body = mm_warp,
				  .check = mm_warp_check};
	struct simt_case moments = {.name = "multimap, moments",
				    .setup = mm_setup,
				    .body = mm_moments,
				    .check = mm_check};
	struct simt_case spares = {.name = "multimap, spares",
				   .setup = mm_spares_setup,
				   .body = mm_spares,
				   .check = mm_spares_check};
	struct simt_case recycled = {.name = "multimap, recycled",
				     .setup = mm_recycled_setup,
				     .body = mm_recycled,
				     .check = mm_recycled_check};

	mm_size(4, 1, MOST);
	explore_shape(mixed, 2, 1, 2);
	explore_shape(moments, 2, 1, 2);
	explore_shape(spares, 2, 1, 2);
	explore_shape(recycled, 3, 1, 3);
	try_shape(moments, 1, 4, 50);
	try_shape(moments, 3, 2, 50);
	try_shape(spares, 1, 5, 50);
	try_shape(spares, 2, 10, 10);
	for (uint64_t buckets = 1; buckets <= 2; buckets++) {
		mm_size(4, buckets, MOST);
		try_shape(mixed, 1, 16, 20);
		try_shape(mixed, 3, 9, 20);
		try_shape(warps, 2, 40, 10);
		mm_size(4, buckets, 25);
		try_shape(warps, 2, 32, 10);
		mm_size(8, buckets, MOST);
		try_shape(states, 2, 5, 20);
	}
	simt_together = 1;
	mm_size(4, 1, MOST);
	try_shape(moments, 2, 4, 50);
	try_shape(mixed, 1, 16, 10);
	try_shape(spares, 1, 8, 20);
	simt_together = 0;
}
END_TEST

/* ---- the kernels of the bulk calls, in sequence ---- */

enum { BULK = 150, BULK_KEYS = 70 };

static uint32_t bulk_keys[BULK], bulk_values[BULK], bulk_asked[BULK_KEYS], bulk_out[BULK],
	bulk_all[2][BULK];
static uint8_t bulk_results[BULK];
static uint64_t bulk_offsets[BULK_KEYS + 1], bulk_total, bulk_n, bulk_sums[8], bulk_max,
	bulk_arrived;

static void bulk_setup(void)
{
	mm_setup();
	for (uint32_t i = 0; i < BULK; i++) {
		bulk_keys[i] = i * i % BULK_KEYS;
		bulk_values[i] = i;
		bulk_out[i] = 9999;
	}
	for (uint32_t i = 0; i < BULK_KEYS; i++)
		bulk_asked[i] = BULK_KEYS - i;
	bulk_total = bulk_n = bulk_arrived = 0;
}

static void bulk_body(void)
{
	const struct cua__multimap_call inserts = {
		.n = BULK, .keys = bulk_keys, .values = bulk_values, .results = bulk_results};
	const struct cua__multimap_call retrieves = {.n = BULK_KEYS,
						     .keys = bulk_asked,
						     .out = bulk_offsets,
						     .max = bulk_max,
						     .values_out = bulk_out,
						     .total = &bulk_total,
						     .sums = bulk_sums};
	const struct cua__multimap_call all = {.max = BULK - 9,
					       .keys_out = bulk_all[0],
					       .values_out = bulk_all[1],
					       .total = &bulk_n};
	uint64_t *warps = simt_shared(64);

	cua__multimap_insert_kernel(&mm, &inserts, 4);
	simt_next_kernel(&bulk_arrived);
	cua__multimap_sums_kernel(&mm, &retrieves, 4, warps);
	simt_next_kernel(&bulk_arrived);
	if (simt_block() == 0)
		cua__multimap_scan_kernel(&retrieves, simt_blocks(), warps);
	simt_next_kernel(&bulk_arrived);
	cua__multimap_values_kernel(&mm, &retrieves, 4, warps);
	cua__multimap_all_kernel(&mm, &all, 4);
	simt_next_kernel(&bulk_arrived);
	/* every second key is erased and inserted again */
	for (uint32_t key = simt_lane() * 2; key < BULK_KEYS;
	     key += 2 * simt_blocks() * simt_block_lanes())
		mm_add(&mm_erased, narrow_erase(&mm, key));
	simt_next_kernel(&bulk_arrived);
	cua__multimap_reclaim_kernel(&mm);
	simt_next_kernel(&bulk_arrived);
	if (simt_lane() == 0)
		cua__multimap_reclaimed(&mm);
	simt_next_kernel(&bulk_arrived);
	for (uint32_t i = simt_lane(); i < BULK; i += simt_blocks() * simt_block_lanes())
		if (bulk_keys[i] % 2 == 0 &&
		    narrow_insert(&mm, bulk_keys[i], bulk_values[i]) != CUA_MULTIMAP_INSERTED)
			simt_fail("a reclaimed entry is lost");
}

static const char *bulk_check(void)
{
	unsigned char seen[BULK] = {0}, listed[BULK] = {0};
	uint64_t at = 0, even = 0;

	for (uint32_t k = 0; k < BULK_KEYS; k++) {
		if (bulk_offsets[k] != (at < bulk_max ? at : bulk_max))
			return "an offset is wrong";
		for (uint32_t i = 0; i < BULK; i++) {
			if (bulk_keys[i] != bulk_asked[k])
				continue;
			if (at < bulk_max &&
			    (bulk_out[at] >= BULK || bulk_keys[bulk_out[at]] != bulk_asked[k] ||
			     seen[bulk_out[at]]++))
				return "a value is wrong";
			at++;
		}
	}
	if (bulk_total != at || bulk_offsets[BULK_KEYS] != (at < bulk_max ? at : bulk_max))
		return "the total is wrong";
	for (at = bulk_max; at < BULK; at++)
		if (bulk_out[at] != 9999)
			return "a value is beyond the end";
	for (uint32_t i = 0; i < BULK - 9; i++) {
		if (bulk_all[1][i] >= BULK || bulk_keys[bulk_all[1][i]] != bulk_all[0][i] ||
		    listed[bulk_all[1][i]]++)
			return "of all pairs one is wrong";
	}
	for (uint32_t i = 0; i < BULK; i++) {
		even += bulk_keys[i] % 2 == 0;
		if (bulk_results[i] != CUA_MULTIMAP_INSERTED)
			return "an insert found no room";
	}
	/* all erased entries are in use again */
	if (bulk_n != BULK || mm_erased != even || mm_pool.reusable != even ||
	    mm_pool.taken != even || mm_pool.fresh != BULK || mm_pool.dropped)
		return "reclaim has lost count";
	return NULL;
}

START_TEST(bulk)
{
	struct simt_case c = {.name = "multimap, bulk",
			      .setup = bulk_setup,
			      .body = bulk_body,
			      .check = bulk_check};

	mm_size(4, 16, BULK);
	for (bulk_max = 0; bulk_max <= BULK; bulk_max += 50) {
		try_shape(c, 2, 64, 1);
		try_shape(c, 3, 32, 1);
		try_shape(c, 1, 64, 1);
	}
}
END_TEST

TCase *simt_multimap_cases(void)
{
	TCase *tc = simt_tcase("multimap");

	tcase_add_test(tc, multimap);
	tcase_add_test(tc, bulk);
	return tc;
}
