/* SPDX-License-Identifier: MIT */
/* The atomics on 16-bit floats, on 128 bits and on complex numbers. */
#include <string.h>

#include <cuatomic/atomic_b128.h>
#include <cuatomic/atomic_complex.h>
#include <cuatomic/atomic_half.h>

#include "simt_suites.h"

/* ---- 128 bits: no update is lost, and nothing is torn ---- */

static struct cua_u128 wide_word, wide_other;
static struct cua_complex_f32 wide_f32;
static struct cua_complex_f64 wide_f64;
static uint32_t wide_marks[128];

static void wide_setup(void)
{
	memset(&wide_word, 0, sizeof(wide_word));
	memset(&wide_other, 0, sizeof(wide_other));
	wide_f32.re = wide_f32.im = 0;
	wide_f64.re = wide_f64.im = 0;
	memset(wide_marks, 0, sizeof(wide_marks));
}

static void wide_body(void)
{
	unsigned id = simt_lane();
	struct cua_u128 ones = {UINT64_MAX, UINT64_MAX}, v = {id, id}, old;
	struct cua_complex_f64 one = {1, 1}, seen;

	/* the low half borrows from the high half: old is -k */
	old = cua_atomic_fetch_sub_u128(&wide_word, cua__halves_u128(1));
	if (old.hi != (old.lo ? UINT64_MAX : 0) || 0 - old.lo >= 128)
		simt_fail("an old value that never was");
	if (cua_atomic_fetch_add_u32(&wide_marks[(0 - old.lo) % 128], 1))
		simt_fail("an old value came twice");
	cua_atomic_and_u128(&wide_other, ones);
	if (id % 2) {
		cua_atomic_store_u128(&wide_other, v);
	} else {
		v = cua_atomic_exchange_u128(&wide_other, v);
		if (v.lo != v.hi)
			simt_fail("a torn value");
	}
	seen = cua_atomic_fetch_add_complex_f64(&wide_f64, one);
	if (seen.re != seen.im)
		simt_fail("a torn number");
}

static const char *wide_check(void)
{
	uint64_t n = simt_blocks() * simt_block_lanes();

	if (wide_word.lo != 0 - n || wide_word.hi != UINT64_MAX)
		return "an update was lost";
	return wide_f64.re == (double)n && wide_f64.im == (double)n ? NULL : "a sum is wrong";
}

/*
 * A single compare-exchange succeeds. An acquire that reads a release's value sees its message.
 */
static uint32_t wide_winners;
static uint64_t wide_data;

static void wide_race_setup(void)
{
	wide_setup();
	wide_winners = 0;
	wide_data = 0;
}

static void wide_race(void)
{
	struct cua_u128 none = {0, 0}, mine = {0, simt_lane() + 1};
	struct cua_u128 seen = cua_atomic_compare_exchange_u128(&wide_other, none, mine);

	if (!seen.hi)
		cua_atomic_fetch_add_u32(&wide_winners, 1);
	if (!cua_atomic_load_u128(&wide_other).hi)
		simt_fail("the winner is not seen");
}

static const char *wide_race_check(void)
{
	return wide_winners == 1 ? NULL : "not exactly one has won";
}

static void wide_message_with(enum cua_order release)
{
	struct cua_u128 flag = {0, 1}, none = {0, 0};

	if (simt_lane() == 0) {
		CUA_WRITE(wide_data, 42);
		cua_atomic_add_explicit_u128(&wide_other, flag, release, CUA_SCOPE_DEVICE,
					     CUA_SPACE_GENERIC);
	} else if (cua_atomic_fetch_or_explicit_u128(&wide_other, none, CUA_ACQUIRE,
						     CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC)
			   .hi) {
		if (CUA_READ(wide_data) != 42)
			simt_fail("the message is missing");
	}
}

static void wide_message(void)
{
	wide_message_with(CUA_RELEASE);
}

static void wide_message_relaxed(void)
{
	wide_message_with(CUA_RELAXED);
}

/* ---- 16-bit floats in the word that contains them ---- */

static union {
	uint32_t word;
	struct cua_f16 f[2];
	struct cua_bf16 b[2];
} wide_half;

static void half_setup(void)
{
	wide_half.word = 0;
	wide_setup();
}

/* Small whole numbers: all sums are exact. */
static void half_body(void)
{
	unsigned id = simt_lane();
	struct cua_f16 one = cua_f16_from_f32(1);
	struct cua_bf16 two = cua_bf16_from_f32(2);

	if (id % 2)
		cua_atomic_add_f16(&wide_half.f[0], one);
	else
		cua_atomic_sub_bf16(&wide_half.b[1], two);
	cua_atomic_max_f16(&wide_half.f[0], cua_f16_from_f32(-3));
}

static const char *half_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes();

	return cua_f32_from_f16(wide_half.f[0]) == (float)(n / 2) &&
			       cua_f32_from_bf16(wide_half.b[1]) == -2 * (float)(n - n / 2)
		       ? NULL
		       : "an update was lost, or changed the neighbour";
}

/* ---- combined ---- */

static unsigned wide_pattern;

/* Whether lane id updates the first object. */
static int half_first(unsigned id)
{
	return wide_pattern == 0 || (wide_pattern == 1 ? id % 2 == 0 : id % 7 < 3);
}

static void half_warp(void)
{
	unsigned id = simt_lane(), first = half_first(id);
	uint32_t mask = simt_warp_mask();
	struct cua_f16 one = cua_f16_from_f32(1), old;
	struct cua_complex_f32 z = {1, -1}, was;

	old = cua_atomic_fetch_add_warp_f16(mask, &wide_half.f[first], one);
	/* all old values of an object are different */
	if (cua_f32_from_f16(old) < 0 || cua_f32_from_f16(old) >= 64)
		simt_fail("an old value that never was");
	if (cua_atomic_fetch_add_u32(&wide_marks[first * 64 + (unsigned)cua_f32_from_f16(old)], 1))
		simt_fail("an old value came twice");
	was = cua_atomic_fetch_add_warp_complex_f32(mask, &wide_f32, z);
	if (was.re != -was.im)
		simt_fail("a torn number");
	cua_atomic_add_warp_complex_f64(mask, &wide_f64, (struct cua_complex_f64){1, 2});
}

static const char *half_warp_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), firsts = 0;

	for (unsigned id = 0; id < n; id++)
		firsts += (unsigned)half_first(id);
	if (cua_f32_from_f16(wide_half.f[1]) != (float)firsts ||
	    cua_f32_from_f16(wide_half.f[0]) != (float)(n - firsts))
		return "a half was lost";
	if (wide_f32.re != (float)n || wide_f32.im != -(float)n)
		return "a number was lost";
	return wide_f64.re == n && wide_f64.im == 2.0 * n ? NULL : "a double number was lost";
}

/* The sum of a warp, or of a block, is rounded once: 2048 and 32 times 1/4 are 2056. */
static void half_once_setup(void)
{
	half_setup();
	wide_half.f[0] = cua_f16_from_f32(2048);
	wide_half.f[1] = cua_f16_from_f32(-1);
}

static void half_once(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	struct cua_f16 quarter = cua_f16_from_f32(0.25f);
	struct cua_complex_f64 z = {0.5, 1};
	struct cua_complex_f32 y = {2, 1};

	if (wide_pattern)
		cua_atomic_add_block_f16(&wide_half.f[0], quarter, s);
	else
		cua_atomic_add_warp_f16(simt_warp_mask(), &wide_half.f[0], quarter);
	cua_atomic_max_block_f16(&wide_half.f[1], cua_f16_from_f32((float)simt_lane_in_block()), s);
	cua_atomic_add_block_complex_f64(&wide_f64, z, s);
	cua_atomic_add_parts_block_complex_f32(&wide_f32, y, s);
}

static const char *half_once_check(void)
{
	unsigned n = simt_block_lanes();

	if (cua_f32_from_f16(wide_half.f[0]) != 2048 + 0.25f * (float)n)
		return "rounded more than once";
	if (cua_f32_from_f16(wide_half.f[1]) != (float)(n - 1))
		return "the maximum is wrong";
	if (wide_f32.re != 2 * (float)n || wide_f32.im != (float)n)
		return "the parts are wrong";
	return wide_f64.re == 0.5 * n && wide_f64.im == n ? NULL : "the sum is wrong";
}

START_TEST(wide_atomics)
{
	struct simt_case add = {
		.name = "128 bits", .setup = wide_setup, .body = wide_body, .check = wide_check};
	struct simt_case race = {.name = "128 bits, one wins",
				 .setup = wide_race_setup,
				 .body = wide_race,
				 .check = wide_race_check};
	struct simt_case message = {
		.name = "128 bits, release", .setup = wide_race_setup, .body = wide_message};
	struct simt_case relaxed = {.name = "128 bits, relaxed",
				    .setup = wide_race_setup,
				    .body = wide_message_relaxed};
	struct simt_case half = {
		.name = "halves", .setup = half_setup, .body = half_body, .check = half_check};
	struct simt_case warp = {.name = "halves in a warp",
				 .setup = half_setup,
				 .body = half_warp,
				 .check = half_warp_check};
	struct simt_case once = {.name = "halves, rounded once",
				 .setup = half_once_setup,
				 .body = half_once,
				 .check = half_once_check};

	explore_shape(add, 2, 1, 2);
	try_shape(add, 2, 40, 10);
	explore_shape(race, 3, 1, 3);
	try_shape(race, 2, 32, 10);
	explore_shape(message, 2, 1, 4);
	explore_shape(message, 1, 3, 3);
	try_shape(message, 2, 10, 20);
	expect_caught(relaxed, 2, 10, SIMT_RACE, "");
	explore_shape(half, 3, 1, 2);
	try_shape(half, 2, 40, 10);
	for (wide_pattern = 0; wide_pattern < 3; wide_pattern++) {
		explore_shape(warp, 1, 2, 2);
		try_shape(warp, 1, 32, 5);
		try_shape(warp, 2, 30, 5);
	}
	for (wide_pattern = 0; wide_pattern < 2; wide_pattern++)
		try_shape(once, 1, 32, 5);
	try_shape(once, 1, 64, 5);
}
END_TEST

TCase *simt_wide_cases(void)
{
	TCase *tc = simt_tcase("wide");

	tcase_add_test(tc, wide_atomics);
	return tc;
}
