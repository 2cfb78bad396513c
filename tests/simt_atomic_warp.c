/* SPDX-License-Identifier: MIT */
/* Atomics combined in the warp and in the block. */
#include <string.h>

#include <cuatomic/atomic_warp.h>

#include "simt_suites.h"

CUA_DEFINE_ATOMIC_CHANGING_WARP(user_add, u32, old + operand)

static uint32_t targets[4];
static uint32_t seen_marks[512];
static int64_t target_i64;
static uint32_t target_mul;
static float target_f32;
static uint64_t payload[512];
static uint32_t arrivals;

/* The element of `targets` that a lane updates: all the same, in pairs, in turn, some alone. */
static unsigned pattern;
static uint32_t target_of(unsigned id)
{
	static const uint32_t odd[] = {0, 3, 3, 1, 0, 0, 2, 3, 1, 1, 1};

	switch (pattern) {
	case 0: return 0;
	case 1: return id / 2 % 4;
	case 2: return id % 4;
	default: return odd[id % 11];
	}
}

static void warp_atomics_setup(void)
{
	memset(targets, 0, sizeof(targets));
	memset(seen_marks, 0, sizeof(seen_marks));
	memset(payload, 0, sizeof(payload));
	target_i64 = 0;
	target_mul = 1;
	target_f32 = 0;
	arrivals = 0;
}

/*
 * fetch_add of 1 returns each old value of a target exactly once, and a warp's lanes get theirs in
 * lane order.
 */
static void warp_fetch_add(void)
{
	unsigned id = simt_lane(), lane = cua_port_lane();
	uint32_t mask = simt_warp_mask(), c = target_of(id), old, before;
	uint32_t peers = 0;

	old = pattern & 1 ? user_add_warp(mask, &targets[c], 1)
			  : cua_atomic_fetch_add_warp_u32(mask, &targets[c], 1);
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (mask >> i & 1 && target_of(id - lane + i) == c)
			peers |= 1u << i;
	peers &= (1u << lane) - 1;
	before =
		cua_port_shuffle_u32(mask, old, peers ? 31 - (uint32_t)__builtin_clz(peers) : lane);
	if (peers && before + 1 != old)
		simt_fail("the lanes are not in order");
	if (cua_atomic_fetch_add_u32(&seen_marks[c * 128 + old % 128], 1))
		simt_fail("two lanes got one old value");
}

static const char *warp_fetch_check(void)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 4; i++)
		sum += targets[i];
	return sum == simt_blocks() * simt_block_lanes() ? NULL : "an update was lost";
}

/*
 * The forms without result. The mask excludes lanes, and the excluded lanes make calls with a mask
 * of their own.
 */
static void warp_quiet(void)
{
	unsigned id = simt_lane(), lane = cua_port_lane();
	uint32_t all = simt_warp_mask();
	uint32_t mask = all & (lane % 3 == 1 ? 0x92492492u : ~0x92492492u);

	cua_atomic_add_warp_u32(mask, &targets[target_of(id)], 1);
	cua_atomic_sub_warp_i64(mask, &target_i64, (int64_t)id);
	cua_atomic_fetch_mul_warp_u32(mask, &target_mul, 3);
	cua_atomic_max_warp_f32(mask, &target_f32, (float)id);
	/* the next call groups the lanes by address anew */
	cua_atomic_fetch_add_cas_warp_f32(mask, &target_f32, 0);
}

static const char *warp_quiet_check(void)
{
	uint32_t n = simt_blocks() * simt_block_lanes(), product = 1;

	for (uint32_t i = 0; i < n; i++)
		product *= 3;
	if (target_i64 != -(int64_t)n * (n - 1) / 2)
		return "the difference is wrong";
	if (target_mul != product)
		return "the product is wrong";
	if (target_f32 != (float)(n - 1))
		return "the maximum is wrong";
	return warp_fetch_check();
}

static void block_atomics(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	unsigned id = simt_lane();

	cua_atomic_add_block_u32(&targets[0], 1, s);
	cua_atomic_sub_block_i64(&target_i64, (int64_t)id, s);
	cua_atomic_mul_block_u32(&target_mul, 3, s);
	cua_atomic_max_block_f32(&target_f32, (float)id, s);
	user_add_block(&targets[1], 0, s);
}

/*
 * Every lane writes, then arrives by an acquire-release operation. The last lane to arrive reads
 * all messages.
 */
static void warp_message(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), id = simt_lane();

	CUA_WRITE(payload[id], id + 1);
	if (cua_atomic_fetch_add_warp_explicit_u32(simt_warp_mask(), &arrivals, 1, CUA_ACQ_REL,
						   CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) == n - 1)
		for (unsigned i = 0; i < n; i++)
			if (CUA_READ(payload[i]) != i + 1)
				simt_fail("a payload is missing");
}

static void warp_message_relaxed(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), id = simt_lane();

	CUA_WRITE(payload[id], id + 1);
	if (cua_atomic_fetch_add_warp_u32(simt_warp_mask(), &arrivals, 1) == n - 1)
		for (unsigned i = 0; i < n; i++)
			(void)CUA_READ(payload[i]);
}

/* A block's release covers all writes of its threads. */
static void block_message(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	unsigned n = simt_blocks() * simt_block_lanes(), id = simt_lane();

	CUA_WRITE(payload[id], id + 1);
	cua_atomic_add_block_explicit_u32(&arrivals, 1, s, CUA_RELEASE, CUA_SCOPE_DEVICE,
					  CUA_SPACE_GENERIC);
	if (cua_atomic_load_explicit_u32(&arrivals, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC) == n)
		for (unsigned i = 0; i < n; i++)
			if (CUA_READ(payload[i]) != i + 1)
				simt_fail("a payload is missing");
}

START_TEST(warp_atomics)
{
	struct simt_case fetch = {.name = "fetch_add_warp",
				  .setup = warp_atomics_setup,
				  .body = warp_fetch_add,
				  .check = warp_fetch_check};
	struct simt_case quiet = {.name = "quiet warp atomics",
				  .setup = warp_atomics_setup,
				  .body = warp_quiet,
				  .check = warp_quiet_check};
	struct simt_case block = {.name = "block atomics",
				  .setup = warp_atomics_setup,
				  .body = block_atomics,
				  .check = warp_quiet_check};
	struct simt_case message = {
		.name = "warp release", .setup = warp_atomics_setup, .body = warp_message};
	struct simt_case relaxed = {.name = "relaxed warp arrival",
				    .setup = warp_atomics_setup,
				    .body = warp_message_relaxed};
	struct simt_case publish = {
		.name = "block release", .setup = warp_atomics_setup, .body = block_message};

	for (pattern = 0; pattern < 4; pattern++) {
		explore_shape(fetch, 1, 2, 4);
		explore_shape(fetch, 3, 1, 3);
		try_shape(fetch, 1, 32, 5);
		try_shape(fetch, 2, 45, 5);
		try_shape(quiet, 1, 32, 5);
		try_shape(quiet, 2, 45, 5);
	}
	pattern = 0;
	explore_shape(fetch, 1, 3, 1);
	explore_shape(block, 1, 2, 2);
	try_shape(block, 1, 1, 1);
	try_shape(block, 3, 20, 5);
	try_shape(block, 2, 70, 5);
	explore_shape(message, 1, 2, 4);
	explore_shape(message, 2, 1, 4);
	try_shape(message, 2, 40, 10);
	expect_caught(relaxed, 2, 40, SIMT_RACE, "");
	explore_shape(publish, 1, 2, 2);
	explore_shape(publish, 2, 1, 4);
	try_shape(publish, 2, 20, 10);
	try_shape(publish, 2, 40, 10);
}
END_TEST

TCase *simt_atomic_warp_cases(void)
{
	TCase *tc = simt_tcase("atomic_warp");

	tcase_add_test(tc, warp_atomics);
	return tc;
}
