/* SPDX-License-Identifier: MIT */
/* The append buffer. */
#include <string.h>

#include <cuatomic/append.h>

#include "simt_suites.h"

static struct cua_append_cursor cursor;
static uint32_t items[64];
static struct cua_append_view append_view = {
	items, &cursor, 40, sizeof(items[0]), CUA_APPEND_LAYOUT, 0};

static void append_setup(void)
{
	cursor.demand = 0;
	memset(items, 0xff, sizeof(items));
}

static void append_lanes(void)
{
	uint32_t v = simt_lane();
	uint32_t mask = 0;

	/* even lanes append alone, the warp of odd lanes appends together */
	if (v % 2 == 0) {
		cua_append_push_u32(&append_view, v);
		return;
	}
	for (unsigned i = 1; i < 32 && i - v % 32 + v < simt_blocks() * simt_block_lanes(); i += 2)
		if (cua_port_thread() - cua_port_lane() + i < cua_port_block_size())
			mask |= 1u << i;
	cua_append_push_warp_u32(&append_view, mask, v % 4 == 1, v);
}

static const char *append_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), expected = 0, stored = 0;
	unsigned char seen[SIMT_MAX_LANES] = {0};

	for (unsigned v = 0; v < n; v++)
		expected += v % 2 == 0 || v % 4 == 1;
	if (cursor.demand != expected)
		return "the demand is wrong";
	for (unsigned i = 0; i < 64; i++) {
		uint32_t v = items[i];

		if (i >= 40 || i >= expected) {
			if (v != 0xffffffffu)
				return "something was stored past the end";
			continue;
		}
		if (v >= n || (v % 2 && v % 4 != 1) || seen[v]++)
			return "an item is wrong or there twice";
		stored++;
	}
	return stored == (expected < 40 ? expected : 40) ? NULL : "an item is missing";
}

/*
 * The same items through a stage that is too small and by a block's reservation. Even lanes and
 * some odd lanes have items.
 */
CUA_DEFINE_APPEND_STAGE(few, uint32_t, 20u)

static int staged_keeps(uint32_t v)
{
	return v % 2 == 0 || v % 4 == 1;
}

static void append_staged(void)
{
	struct cua_append_stage_few *stage = simt_shared(sizeof(*stage));
	uint32_t v = simt_lane();

	cua_append_stage_init_few(stage);
	if (v % 2 == 0)
		cua_append_stage_push_few(&append_view, stage, v);
	cua_append_stage_make_room_few(&append_view, stage, 10);
	if (v % 4 == 1)
		cua_append_stage_push_few(&append_view, stage, v);
	cua_append_stage_flush_few(&append_view, stage);
}

static void append_reserved(void)
{
	struct cua_block_scratch *scratch = simt_shared(sizeof(*scratch));
	uint32_t v = simt_lane();
	uint64_t offset =
		cua_append_reserve_block(&append_view, (uint64_t)staged_keeps(v), scratch);
	uint32_t *item = cua_append_at(&append_view, offset);

	if (staged_keeps(v) && item)
		CUA_WRITE(*item, v);
}

START_TEST(append)
{
	struct simt_case c = {.name = "append",
			      .setup = append_setup,
			      .body = append_lanes,
			      .check = append_check};

	explore_shape(c, 1, 3, 3);
	try_shape(c, 1, 32, 5);
	try_shape(c, 2, 48, 5);
}
END_TEST

START_TEST(append_by_block)
{
	struct simt_case c = {
		.name = "append by a block", .setup = append_setup, .check = append_check};

	c.body = append_staged;
	explore_shape(c, 1, 3, 2);
	explore_shape(c, 2, 2, 1);
	try_shape(c, 1, 32, 20);
	try_shape(c, 2, 48, 20);
	c.body = append_reserved;
	explore_shape(c, 2, 2, 1);
	try_shape(c, 1, 33, 20);
	try_shape(c, 2, 48, 20);
}
END_TEST

TCase *simt_append_cases(void)
{
	TCase *tc = simt_tcase("append");

	tcase_add_test(tc, append);
	tcase_add_test(tc, append_by_block);
	return tc;
}
