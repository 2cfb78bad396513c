/* SPDX-License-Identifier: MIT */
/* The atomics of warps and blocks that give each thread its own old value. */
#include <string.h>

#include <cuatomic/atomic_warp.h>

#include "simt_suites.h"

/* Neither associative nor commutative. */
CUA_DEFINE_ATOMIC_SERIAL_WARP(step, u32, old * 5 + operand)

static uint32_t cells[2], olds[128];
static uint8_t bytes[4];
static unsigned pattern;

static unsigned cell_of(unsigned id)
{
	return pattern == 0 ? 0 : pattern == 1 ? id % 2 : id / 3 % 2;
}

static void setup(void)
{
	memset(cells, 0, sizeof(cells));
	memset(bytes, 0, sizeof(bytes));
	memset(olds, 0xff, sizeof(olds));
	cells[0] = 7;
}

static void serial(void)
{
	unsigned id = simt_lane();

	olds[id] = step_warp(simt_warp_mask(), &cells[cell_of(id)], id + 1);
}

/* With one warp the lanes of a cell come in their order: the whole is known. */
static const char *serial_check(void)
{
	uint32_t wanted[2] = {7, 0};
	unsigned n = simt_blocks() * simt_block_lanes();

	for (unsigned id = 0; id < n; id++) {
		uint32_t *cell = &wanted[cell_of(id)];

		if (olds[id] != *cell)
			return "a lane got another value than it would have alone";
		*cell = *cell * 5 + id + 1;
	}
	return memcmp(wanted, cells, sizeof(cells)) == 0 ? NULL : "the last value is wrong";
}

/* Of many warps, a counter that wraps: each value comes equally often. */
static void wrapping(void)
{
	unsigned id = simt_lane();

	olds[id] = cua_atomic_fetch_inc_warp_explicit_u32(simt_warp_mask(), &cells[1], 2, CUA_ACQ_REL,
							  CUA_SCOPE_DEVICE);
	(void)cua_atomic_fetch_add_warp_u8(simt_warp_mask(), &bytes[id % 4], 1);
}

static const char *wrapping_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), times[3] = {0, 0, 0}, sum = 0;

	for (unsigned id = 0; id < n; id++) {
		if (olds[id] > 2)
			return "the counter left its range";
		times[olds[id]]++;
	}
	for (unsigned i = 0; i < 3; i++)
		if (times[i] != n / 3 + (i < n % 3))
			return "an update was lost";
	for (unsigned i = 0; i < 4; i++)
		sum += bytes[i];
	return sum == n ? NULL : "a byte lost an update";
}

/* Each thread of a block gets its place; two calls with one scratch, without a barrier between. */
static void in_block(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	unsigned id = simt_lane();
	uint32_t thread = cua_port_thread(), first, old;

	old = cua_atomic_fetch_add_block_u32(&cells[1], thread + 1, s);
	first = cua_atomic_fetch_add_block_u32(&cells[0], 1, s) - thread;
	olds[id] = old;
	if (first != 7 && simt_blocks() == 1)
		simt_fail("the threads are not in order");
	if (simt_blocks() == 1 && old != thread * (thread + 1) / 2)
		simt_fail("a thread got another value than it would have alone");
}

static const char *in_block_check(void)
{
	uint32_t n = simt_block_lanes();

	if (cells[1] != simt_blocks() * (n * (n + 1) / 2) || cells[0] != 7 + simt_blocks() * n)
		return "an update was lost";
	return NULL;
}

START_TEST(serial_atomics)
{
	struct simt_case lanes = {.name = "one lane after the other", .setup = setup, .body = serial,
				  .check = serial_check};
	struct simt_case wrap = {.name = "wrapping counters", .setup = setup, .body = wrapping,
				 .check = wrapping_check};
	struct simt_case block = {.name = "fetch of blocks", .setup = setup, .body = in_block,
				  .check = in_block_check};

	for (pattern = 0; pattern < 3; pattern++) {
		explore_shape(lanes, 1, 3, 2);
		try_shape(lanes, 1, 32, 5);
	}
	explore_shape(wrap, 2, 2, 1);
	try_shape(wrap, 3, 20, 5);
	explore_shape(block, 1, 2, 2);
	try_shape(block, 1, 1, 1);
	try_shape(block, 1, 70, 5);
	try_shape(block, 2, 40, 5);
}
END_TEST

TCase *simt_serial_cases(void)
{
	TCase *tc = simt_tcase("serial");

	tcase_add_test(tc, serial_atomics);
	return tc;
}
