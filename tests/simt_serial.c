/* SPDX-License-Identifier: MIT */
/* The atomics of warps and blocks that give each thread its own old value. */
#include <string.h>

#include <cuatomic/atomic_warp.h>

#include "simt_suites.h"

/* An operation that is neither associative nor commutative. */
CUA_DEFINE_ATOMIC_SERIAL_WARP(step, u32, old * 5 + operand)

static uint32_t targets[2], olds[128];
static uint8_t bytes[4];
static unsigned pattern;

static unsigned target_of(unsigned id)
{
	return pattern == 0 ? 0 : pattern == 1 ? id % 2 : id / 3 % 2;
}

static void setup(void)
{
	memset(targets, 0, sizeof(targets));
	memset(bytes, 0, sizeof(bytes));
	memset(olds, 0xff, sizeof(olds));
	targets[0] = 7;
}

static void serial(void)
{
	unsigned id = simt_lane();

	olds[id] = step_warp(simt_warp_mask(), &targets[target_of(id)], id + 1);
}

/* With a single warp the lanes update an element in lane order, so the whole result is known. */
static const char *serial_check(void)
{
	uint32_t wanted[2] = {7, 0};
	unsigned n = simt_blocks() * simt_block_lanes();

	for (unsigned id = 0; id < n; id++) {
		uint32_t *target = &wanted[target_of(id)];

		if (olds[id] != *target)
			return "a lane got another value than it would have alone";
		*target = *target * 5 + id + 1;
	}
	return memcmp(wanted, targets, sizeof(targets)) == 0 ? NULL : "the last value is wrong";
}

/* A wrapping counter of many warps: each value occurs equally often. */
static void wrapping(void)
{
	unsigned id = simt_lane();

	olds[id] = cua_atomic_fetch_inc_warp_explicit_u32(
		simt_warp_mask(), &targets[1], 2, CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
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

/*
 * The same for the header's own operations: quotients, a counter with bounds of each lane, bytes
 * and halves.
 */
static float quotients[2];
static uint16_t halves[2];
static uint64_t counters[2];
static uint32_t nands[2];
static int8_t most[2];
static struct kinds {
	float quotient;
	uint64_t counter;
	uint32_t nand;
	uint16_t half;
	uint8_t byte;
	int8_t most;
} kinds[64];

static void kinds_setup(void)
{
	setup();
	for (int c = 0; c < 2; c++) {
		quotients[c] = 1;
		halves[c] = 3;
		counters[c] = 2;
		nands[c] = 0xff00;
		most[c] = -3;
	}
	memset(kinds, 0, sizeof(kinds));
}

static void kinds_body(void)
{
	unsigned id = simt_lane(), c = target_of(id);
	uint32_t mask = simt_warp_mask();

	kinds[id].quotient = cua_atomic_fetch_div_warp_f32(mask, &quotients[c], (float)(id + 3));
	kinds[id].counter = cua_atomic_fetch_dec_warp_u64(mask, &counters[c], id % 4 + 1);
	kinds[id].nand = cua_atomic_fetch_nand_warp_explicit_u32(
		mask, &nands[c], id * 5, CUA_ACQ_REL, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	kinds[id].half = cua_atomic_fetch_nand_warp_u16(mask, &halves[c], (uint16_t)(id * 9 + 1));
	kinds[id].byte = cua_atomic_fetch_sub_warp_u8(mask, &bytes[c], (uint8_t)(id + 1));
	kinds[id].most = cua_atomic_fetch_max_warp_i8(mask, &most[c], (int8_t)(id % 5 - 2));
}

static const char *kinds_check(void)
{
	struct kinds now[2];
	unsigned n = simt_blocks() * simt_block_lanes();

	memset(now, 0, sizeof(now));
	for (int c = 0; c < 2; c++) {
		now[c].quotient = 1;
		now[c].half = 3;
		now[c].counter = 2;
		now[c].nand = 0xff00;
		now[c].most = -3;
	}
	for (unsigned id = 0; id < n; id++) {
		struct kinds *k = &now[target_of(id)], *got = &kinds[id];
		uint64_t bound = id % 4 + 1;
		int8_t v = (int8_t)(id % 5 - 2);

		if (got->quotient != k->quotient)
			return "a quotient is wrong";
		if (got->counter != k->counter)
			return "a counter is wrong";
		if (got->nand != k->nand || got->half != k->half)
			return "a nand is wrong";
		if (got->byte != k->byte || got->most != k->most)
			return "a byte is wrong";
		k->quotient /= (float)(id + 3);
		k->counter = k->counter == 0 || k->counter > bound ? bound : k->counter - 1;
		k->nand = ~(k->nand & (id * 5));
		k->half = (uint16_t) ~(k->half & (id * 9 + 1));
		k->byte = (uint8_t)(k->byte - (id + 1));
		k->most = k->most > v ? k->most : v;
	}
	for (int c = 0; c < 2; c++)
		if (quotients[c] != now[c].quotient || counters[c] != now[c].counter ||
		    nands[c] != now[c].nand || halves[c] != now[c].half ||
		    bytes[c] != now[c].byte || most[c] != now[c].most)
			return "a last value is wrong";
	return NULL;
}

/*
 * Each thread of a block gets its position. Two calls share a scratch without a barrier between
 * them.
 */
static void in_block(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	unsigned id = simt_lane();
	uint32_t thread = cua_port_thread(), first, old;

	old = cua_atomic_fetch_add_block_u32(&targets[1], thread + 1, s);
	first = cua_atomic_fetch_add_block_u32(&targets[0], 1, s) - thread;
	olds[id] = old;
	if (first != 7 && simt_blocks() == 1)
		simt_fail("the threads are not in order");
	if (simt_blocks() == 1 && old != thread * (thread + 1) / 2)
		simt_fail("a thread got another value than it would have alone");
}

static const char *in_block_check(void)
{
	uint32_t n = simt_block_lanes();

	if (targets[1] != simt_blocks() * (n * (n + 1) / 2) || targets[0] != 7 + simt_blocks() * n)
		return "an update was lost";
	return NULL;
}

START_TEST(serial_atomics)
{
	struct simt_case lanes = {.name = "one lane after the other",
				  .setup = setup,
				  .body = serial,
				  .check = serial_check};
	struct simt_case wrap = {.name = "wrapping counters",
				 .setup = setup,
				 .body = wrapping,
				 .check = wrapping_check};
	struct simt_case every = {.name = "every kind in turn",
				  .setup = kinds_setup,
				  .body = kinds_body,
				  .check = kinds_check};
	struct simt_case block = {.name = "fetch of blocks",
				  .setup = setup,
				  .body = in_block,
				  .check = in_block_check};

	for (pattern = 0; pattern < 3; pattern++) {
		explore_shape(lanes, 1, 3, 2);
		try_shape(lanes, 1, 32, 5);
		try_shape(every, 1, 2, 20);
		try_shape(every, 1, 32, 5);
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
