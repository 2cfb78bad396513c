/* SPDX-License-Identifier: MIT */
/* The chained table, and the GPU's kernel functions of its bulk inserts, in small blocks. */
#define CUA__CHAINED_LOADS 2u

#include <string.h>

#include "lib/kernels/chained_kernel.h"
#include "simt_suites.h"

static uint64_t heads[2];
static struct cua_spinlock bucket_locks[2];
static struct cua_chained_entry entries[48];
static struct cua_chained_cursor pool;
static struct cua_chained_view chained_view = {heads, bucket_locks,       entries, &pool, 2,
					       48,    CUA_CHAINED_LAYOUT, 0,       0};

static void chained_setup(void)
{
	heads[0] = heads[1] = CUA_CHAINED_NONE;
	memset(bucket_locks, 0, sizeof(bucket_locks));
	memset(entries, 0xee, sizeof(entries));
	pool.demand = 0;
}

/*
 * Each lane inserts two values of a key that it shares with other lanes, and searches in
 * between.
 */
static void chained_body(void)
{
	uint64_t key = simt_lane() % 3, value;

	cua_chained_insert(&chained_view, key, simt_lane() * 2);
	if (cua_chained_find(&chained_view, key, &value) && (value / 2) % 3 != key)
		simt_fail("a found value belongs to another key");
	cua_chained_insert(&chained_view, key, simt_lane() * 2 + 1);
	for (uint64_t i = cua_chained_first(&chained_view, key); i != CUA_CHAINED_NONE;
	     i = cua_chained_next(&chained_view, i))
		if ((cua_chained_value(&chained_view, i) / 2) % 3 != key)
			simt_fail("a value in the chain belongs to another key");
}

/*
 * The same without locks: every fourth lane pushes its second value alone, the remaining lanes push
 * together.
 */
static void push_body(void)
{
	uint64_t key = simt_lane() % 3, mine = simt_lane() * 2, value;
	int alone = simt_lane() % 4 == 1, stored = cua_chained_push(&chained_view, key, mine),
	    second;

	if (cua_chained_find(&chained_view, key, &value) ? (value / 2) % 3 != key : stored)
		simt_fail("a found value belongs to another key, or none was found");
	second = cua_chained_push_warp(&chained_view, whole_warp(), !alone, key, mine + 1);
	if (second && alone)
		simt_fail("a pair is said to be stored that nobody pushed");
	if (alone)
		second = cua_chained_push(&chained_view, key, mine + 1);
	for (uint64_t i = cua_chained_first(&chained_view, key); i != CUA_CHAINED_NONE;
	     i = cua_chained_next(&chained_view, i)) {
		value = cua_chained_value(&chained_view, i);
		if ((value / 2) % 3 != key)
			simt_fail("a value in the chain belongs to another key");
		stored -= value == mine;
		second -= value == mine + 1;
	}
	if (stored || second)
		simt_fail("a lane does not find what it has pushed");
}

static const char *chained_check(void)
{
	uint64_t lanes = (uint64_t)simt_blocks() * simt_block_lanes(), reached = 0;
	unsigned char seen[2 * SIMT_MAX_LANES] = {0};

	if (pool.demand != 2 * lanes)
		return "the demand is wrong";
	for (int b = 0; b < 2; b++)
		for (uint64_t i = heads[b]; i != CUA_CHAINED_NONE; i = entries[i].next) {
			if (i >= 48 || reached++ > 48)
				return "a link is broken";
			if (cua_chained_bucket(&chained_view, entries[i].key) != (uint64_t)b)
				return "an entry is in the chain of another bucket";
			if (seen[entries[i].value]++)
				return "a value is there twice";
		}
	return reached == (2 * lanes < 48 ? 2 * lanes : 48) ? NULL : "an entry is lost";
}

START_TEST(chained)
{
	struct simt_case c = {.name = "chained",
			      .setup = chained_setup,
			      .body = chained_body,
			      .check = chained_check};

	explore_shape(c, 2, 1, 3);
	explore_shape(c, 1, 3, 2);
	try_shape(c, 1, 22, 10);
	try_shape(c, 2, 32, 5);
}
END_TEST

START_TEST(push)
{
	struct simt_case c = {
		.name = "push", .setup = chained_setup, .body = push_body, .check = chained_check};

	explore_shape(c, 2, 1, 3);
	explore_shape(c, 1, 3, 1);
	try_shape(c, 1, 22, 10);
	try_shape(c, 3, 7, 10);
	try_shape(c, 2, 32, 5);
}
END_TEST

/* ---- bulk inserts ---- */

enum { BULK_MOST = 400, BULK_BUCKETS = 70 };

static uint64_t bulk_heads[BULK_BUCKETS], bulk_keys[BULK_MOST], bulk_values[BULK_MOST];
static struct cua_spinlock bulk_locks[BULK_BUCKETS];
static struct cua_chained_entry bulk_entries[BULK_MOST];
static struct cua_chained_cursor bulk_pool;
static struct cua__chained_bulk bulk;
static enum cua__chained_way bulk_way;
static uint64_t bulk_distinct, bulk_alone;

static void bulk_setup(void)
{
	memset(bulk_heads, 0xff, sizeof(bulk_heads));
	memset(bulk_locks, 0, sizeof(bulk_locks));
	memset(bulk_entries, 0xee, sizeof(bulk_entries));
	bulk_pool.demand = 0;
	for (uint64_t i = 0; i < bulk.n + bulk_alone; i++) {
		bulk_keys[i] = i * i % bulk_distinct;
		bulk_values[i] = i;
	}
}

/*
 * After inserts, a block that has finished searches while other blocks still insert. Bulk builds
 * run beside lanes that build and push single pairs.
 */
static void bulk_body(void)
{
	if (bulk_way != CUA__CHAINED_INSERT) {
		for (uint64_t i = simt_lane(); i < bulk_alone;
		     i += simt_blocks() * simt_block_lanes()) {
			if (i % 3)
				cua_chained_build(&bulk.view, bulk_keys[bulk.n + i], bulk.n + i);
			else
				cua_chained_push(&bulk.view, bulk_keys[bulk.n + i], bulk.n + i);
		}
	}
	cua__chained_bulk_add(
		&bulk, bulk_way,
		simt_shared(cua__chained_bulk_bytes((uint32_t)simt_block_lanes(), bulk.slots)));
	if (bulk_way != CUA__CHAINED_INSERT)
		return;
	for (uint64_t key = simt_lane() % 7; key < bulk_distinct; key += 7)
		for (uint64_t i = cua_chained_first(&bulk.view, key); i != CUA_CHAINED_NONE;
		     i = cua_chained_next(&bulk.view, i)) {
			uint64_t value = cua_chained_value(&bulk.view, i);

			if (value >= bulk.n || bulk_keys[value] != key)
				simt_fail("a value in the chain belongs to another key");
		}
}

static const char *bulk_check(void)
{
	uint64_t n = bulk.n + bulk_alone, reached = 0;
	uint64_t stored = n < bulk.view.capacity ? n : bulk.view.capacity;
	unsigned char seen[BULK_MOST] = {0};

	if (bulk_pool.demand != n)
		return "the demand is wrong";
	for (uint64_t b = 0; b < bulk.view.n_buckets; b++)
		for (uint64_t i = bulk_heads[b]; i != CUA_CHAINED_NONE; i = bulk_entries[i].next) {
			if (i >= stored || reached++ > stored)
				return "a link is broken";
			if (cua_chained_bucket(&bulk.view, bulk_entries[i].key) != b)
				return "an entry is in the chain of another bucket";
			if (bulk_entries[i].value >= n ||
			    bulk_keys[bulk_entries[i].value] != bulk_entries[i].key)
				return "a value has another key";
			if (seen[bulk_entries[i].value]++)
				return "a value is there twice";
		}
	return reached == stored ? NULL : "an entry is lost";
}

static void try_bulk(enum cua__chained_way way, uint64_t n, uint64_t distinct, uint64_t buckets,
		     uint32_t slots, uint64_t capacity, unsigned blocks, unsigned lanes,
		     unsigned runs)
{
	static const char *const names[] = {"insert", "gather", "build"};
	struct simt_case c = {
		.name = names[way], .setup = bulk_setup, .body = bulk_body, .check = bulk_check};
	struct cua_chained_view view = {bulk_heads,         bulk_locks, bulk_entries,
					&bulk_pool,         buckets,    capacity,
					CUA_CHAINED_LAYOUT, 0,          0};

	bulk_way = way;
	bulk_distinct = distinct;
	bulk_alone = way == CUA__CHAINED_INSERT ? 0 : n / 4;
	bulk.view = view;
	bulk.n = n;
	bulk.keys = bulk_keys;
	bulk.values = bulk_values;
	bulk.slots = slots;
	try_shape(c, blocks, lanes, runs);
}

START_TEST(bulk_inserts)
{
	for (int way = CUA__CHAINED_INSERT; way <= CUA__CHAINED_GATHER; way++) {
		try_bulk(way, 300, 40, 3, 3, BULK_MOST, 2, 64, 3);
		try_bulk(way, 130, 90, 70, 70, 101, 3, 32, 5);
	}
	try_bulk(CUA__CHAINED_BUILD, 300, 40, 70, 0, BULK_MOST, 2, 64, 3);
	try_bulk(CUA__CHAINED_BUILD, 200, 90, 3, 0, 170, 3, 32, 5);
	try_bulk(CUA__CHAINED_BUILD, 200, 1, 70, 0, BULK_MOST, 2, 32, 5);
}
END_TEST

TCase *simt_chained_cases(void)
{
	TCase *tc = simt_tcase("chained");

	tcase_add_test(tc, chained);
	tcase_add_test(tc, push);
	tcase_add_test(tc, bulk_inserts);
	return tc;
}
