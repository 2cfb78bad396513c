/* SPDX-License-Identifier: MIT */
/* The chained table. */
#include <string.h>

#include <cuatomic/chained.h>

#include "simt_suites.h"

static uint64_t heads[2];
static struct cua_spinlock bucket_locks[2];
static struct cua_chained_entry entries[48];
static struct cua_chained_cursor pool;
static struct cua_chained_view chained_view = {heads, bucket_locks, entries, &pool, 2, 48,
					       CUA_CHAINED_LAYOUT, 0};

static void chained_setup(void)
{
	heads[0] = heads[1] = CUA_CHAINED_NONE;
	memset(bucket_locks, 0, sizeof(bucket_locks));
	memset(entries, 0xee, sizeof(entries));
	pool.demand = 0;
}

/* Each lane inserts two values of a key that it shares with others, looking in between. */
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
			if (seen[entries[i].value]++)
				return "a value is there twice";
		}
	return reached == (2 * lanes < 48 ? 2 * lanes : 48) ? NULL : "an entry is lost";
}

START_TEST(chained)
{
	struct simt_case c = {.name = "chained", .setup = chained_setup, .body = chained_body,
			      .check = chained_check};

	explore_shape(c, 2, 1, 3);
	explore_shape(c, 1, 3, 2);
	try_shape(c, 1, 22, 10);
	try_shape(c, 2, 32, 5);
}
END_TEST

TCase *simt_chained_cases(void)
{
	TCase *tc = simt_tcase("chained");

	tcase_add_test(tc, chained);
	return tc;
}
