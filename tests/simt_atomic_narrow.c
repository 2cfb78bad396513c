/* SPDX-License-Identifier: MIT */
/* Narrow atomics, built on the word that contains them. */
#include <cuatomic/atomic_narrow.h>

#include "simt_suites.h"

/* Four objects in a word, each with another kind of update. */
static union {
	uint32_t word;
	uint8_t byte[4];
	uint16_t half[2];
} narrow;

static void narrow_setup(void)
{
	narrow.word = 0;
}

static void narrow_body(void)
{
	unsigned id = simt_lane();

	switch (id % 3) {
	case 0: cua_atomic_add_u8(&narrow.byte[0], 3); break;
	case 1: cua_atomic_fetch_xor_u8(&narrow.byte[1], (uint8_t)(id + 1)); break;
	default: cua_atomic_sub_i16((int16_t *)&narrow.half[1], 1); break;
	}
}

static const char *narrow_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes();
	uint8_t sum = 0, bits = 0;
	int16_t difference = 0;

	for (unsigned id = 0; id < n; id++) {
		sum = (uint8_t)(sum + (id % 3 == 0 ? 3 : 0));
		bits ^= (uint8_t)(id % 3 == 1 ? id + 1 : 0);
		difference = (int16_t)(difference - (id % 3 == 2));
	}
	return narrow.byte[0] == sum && narrow.byte[1] == bits &&
			       (int16_t)narrow.half[1] == difference
		       ? NULL
		       : "an update was lost, or changed a neighbour";
}

/*
 * A single compare-exchange succeeds although the neighbours change. The store and the load between
 * them are whole.
 */
static uint32_t winners;

static void narrow_race_setup(void)
{
	narrow.word = 0xffffff00;
	winners = 0;
}

static void narrow_race(void)
{
	unsigned id = simt_lane();

	if (cua_atomic_compare_exchange_u8(&narrow.byte[0], 0, (uint8_t)(id + 1)) == 0)
		cua_atomic_fetch_add_u32(&winners, 1);
	cua_atomic_store_u8(&narrow.byte[1], (uint8_t)id);
	if (cua_atomic_load_u16(&narrow.half[1]) != 0xffff)
		simt_fail("a neighbour has changed");
	if (cua_atomic_exchange_u8(&narrow.byte[1], 77) == 0xff)
		simt_fail("the store is not seen");
}

static const char *narrow_race_check(void)
{
	if (winners != 1)
		return "not exactly one has won";
	return narrow.byte[0] && narrow.half[1] == 0xffff ? NULL : "a neighbour has changed";
}

/* A flag of a byte publishes a message while a neighbouring byte is in use. */
static uint64_t narrow_data;

static void narrow_message_setup(void)
{
	narrow.word = 0;
	narrow_data = 0;
}

static void narrow_message(void)
{
	unsigned id = simt_lane();

	cua_atomic_fetch_add_u8(&narrow.byte[3], 1);
	if (id == 0) {
		CUA_WRITE(narrow_data, 42);
		cua_atomic_store_explicit_u8(&narrow.byte[0], 1, CUA_RELEASE, CUA_SCOPE_DEVICE,
					     CUA_SPACE_GENERIC);
	} else if (cua_atomic_compare_exchange_explicit_u8(&narrow.byte[0], id % 2 ? 0 : 1,
							   id % 2 ? 0 : 1, CUA_ACQUIRE,
							   CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC)) {
		if (CUA_READ(narrow_data) != 42)
			simt_fail("the message is missing");
	}
}

START_TEST(narrow_atomics)
{
	struct simt_case add = {.name = "narrow",
				.setup = narrow_setup,
				.body = narrow_body,
				.check = narrow_check};
	struct simt_case race = {.name = "narrow compare_exchange",
				 .setup = narrow_race_setup,
				 .body = narrow_race,
				 .check = narrow_race_check};
	struct simt_case message = {
		.name = "narrow release", .setup = narrow_message_setup, .body = narrow_message};

	explore_shape(add, 3, 1, 3);
	try_shape(add, 2, 40, 10);
	explore_shape(race, 2, 1, 4);
	try_shape(race, 2, 32, 10);
	explore_shape(message, 3, 1, 3);
	try_shape(message, 2, 10, 20);
}
END_TEST

TCase *simt_atomic_narrow_cases(void)
{
	TCase *tc = simt_tcase("atomic_narrow");

	tcase_add_test(tc, narrow_atomics);
	return tc;
}
