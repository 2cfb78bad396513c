/* SPDX-License-Identifier: MIT */
/* Reductions in a block, and the finish across blocks. */
#include <string.h>

#include <cuatomic/reduce.h>

#include "simt_suites.h"

static void block_sum(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	uint32_t n = simt_block_lanes(), total;

	for (int again = 0; again < 2; again++) {
		total = cua_block_sum_u32(simt_lane_in_block() + 1, s);
		if (total != n * (n + 1) / 2)
			simt_fail("the block's sum is wrong");
	}
}

START_TEST(block_reduce)
{
	struct simt_case c = {.name = "block sum", .body = block_sum};
	static const unsigned sizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 100, 257};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		try_shape(c, 1, sizes[i], 1);
	explore_shape(c, 1, 3, 1);
}
END_TEST

/* ---- finishing across blocks ---- */

static struct cua_finish finish;
static double partials[16];
static double grid_total;
static unsigned totals;
static enum cua_finish_mode mode;

static void finish_setup(void)
{
	cua_finish_init(&finish);
	for (int i = 0; i < 16; i++)
		partials[i] = -1;
	totals = 0;
	grid_total = 0;
}

static void finish_body(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	uint64_t block = cua_finish_block(mode, &finish, s);
	double total = 0;

	if (cua_finish_sum_f64(mode, &finish, s, partials, block, simt_blocks(),
			       (double)(1u << block), &total)) {
		grid_total = total;
		totals++;
	}
}

static const char *finish_check(void)
{
	static const struct cua_finish zero;

	if (totals != 1)
		return "not exactly one block got the total";
	if (grid_total != (double)((1u << simt_blocks()) - 1))
		return "the total is wrong";
	return memcmp(&finish, &zero, sizeof(zero)) ? "the state is not zero again" : NULL;
}

START_TEST(finishes)
{
	static const char *const names[] = {"", "last block", "atomic", "lock", "ordered lock"};

	for (int m = CUA_FINISH_LAST_BLOCK; m <= CUA_FINISH_ORDERED_LOCK; m++) {
		struct simt_case c = {.name = names[m],
				      .setup = finish_setup,
				      .body = finish_body,
				      .check = finish_check};

		mode = (enum cua_finish_mode)m;
		explore_shape(c, 2, 1, 4);
		explore_shape(c, 3, 1, 3);
		try_shape(c, 8, 1, 20);
		try_shape(c, 4, 33, 5);
		try_shape(c, 3, 64, 5);
	}
}
END_TEST

TCase *simt_reduce_cases(void)
{
	TCase *tc = simt_tcase("reduce");

	tcase_add_test(tc, block_reduce);
	tcase_add_test(tc, finishes);
	return tc;
}
