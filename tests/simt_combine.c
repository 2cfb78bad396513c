/* SPDX-License-Identifier: MIT */
/* Combined sections under a lock. */
#include <string.h>

#include <cuatomic/combine.h>

#include "simt_suites.h"

#define COMBINE_CALLS 2

static int combine_calls; /* of each lane */

struct numbers {
	uint64_t next;  /* the next number to hand out */
	uint64_t twice; /* 2 * next, outside of a section */
};

CUA_DEFINE_COMBINE_FETCH(take_numbers, struct numbers, uint64_t, {
	if (state->twice != 2 * state->next)
		simt_fail("a section saw half of another one");
	argument += 1000 * state->next;
	state->next++;
	state->twice += 2;
});

static struct cua_spinlock number_locks[3];
static struct numbers numbers[3];
static unsigned n_number_locks;
static uint64_t given[COMBINE_CALLS][SIMT_MAX_LANES]; /* lane + 1000 * the number it got */

static void numbers_setup(void)
{
	memset(number_locks, 0, sizeof(number_locks));
	memset(numbers, 0, sizeof(numbers));
	memset(given, 0xff, sizeof(given));
}

static unsigned lock_of_lane(unsigned lane)
{
	return lane * 7 % 5 % n_number_locks;
}

static void numbers_warp(void)
{
	unsigned k = lock_of_lane(simt_lane());

	for (int call = 0; call < combine_calls; call++)
		given[call][simt_lane()] =
			take_numbers_warp(&number_locks[k], &numbers[k], simt_lane(), whole_warp());
}

static void numbers_block(void)
{
	uint64_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	for (int call = 0; call < combine_calls; call++)
		given[call][simt_lane()] =
			take_numbers_block(&number_locks[0], &numbers[0], simt_lane(), scratch);
}

/* All but the last thread of the block have a section. */
static void numbers_some(void)
{
	uint64_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes()), got;
	uint32_t n = simt_block_lanes() - 1;

	for (int call = 0; call < combine_calls; call++) {
		got = take_numbers_block_scope(&number_locks[0], &numbers[0], simt_lane(), n,
					       scratch, CUA_SCOPE_DEVICE);
		if (simt_lane_in_block() < n)
			given[call][simt_lane()] = got;
		else if (got != simt_lane())
			simt_fail("a lane without a section did not get its argument back");
	}
}

/* Each number occurs once. The numbers of a call are consecutive and in lane order. */
static const char *numbers_check(void)
{
	static unsigned char seen[3][COMBINE_CALLS * SIMT_MAX_LANES];
	unsigned n = simt_blocks() * simt_block_lanes(), total = 0;

	memset(seen, 0, sizeof(seen));
	for (int call = 0; call < combine_calls; call++)
		for (unsigned lane = 0; lane < n; lane++) {
			uint64_t number = given[call][lane] / 1000;
			unsigned k = lock_of_lane(lane), before = lane;

			if (given[call][lane] == ~(uint64_t)0)
				continue;
			if (given[call][lane] % 1000 != lane)
				return "a lane got the result of another one";
			if (number >= COMBINE_CALLS * SIMT_MAX_LANES || seen[k][number]++)
				return "a number was given twice";
			total++;
			/* `before`: the previous lane of the same warp with the same lock */
			while (before % simt_block_lanes() % 32 && lock_of_lane(--before) != k)
				;
			if (before != lane && lock_of_lane(before) == k &&
			    given[call][before] / 1000 + 1 != number)
				return "the sections were not in lane order";
		}
	for (unsigned k = 0; k < n_number_locks; k++) {
		for (uint64_t i = 0; i < numbers[k].next; i++)
			if (!seen[k][i])
				return "a number is missing";
		total -= (unsigned)numbers[k].next;
		if (number_locks[k].word)
			return "a lock is still held";
	}
	return total ? "a section was lost" : NULL;
}

/*
 * Plain messages from each lane to its section. A section's messages go to its own lane and to the
 * lanes of later calls.
 */
static uint64_t letters[SIMT_MAX_LANES], replies[SIMT_MAX_LANES];

CUA_DEFINE_COMBINE(answer, uint64_t, uint32_t, {
	CUA_WRITE(replies[argument], CUA_READ(letters[argument]) + 1);
	*state += CUA_READ(replies[*state % SIMT_MAX_LANES]) != 5;
});

static void letters_setup(void)
{
	counter_setup();
	memset(letters, 0, sizeof(letters));
	memset(replies, 0, sizeof(replies));
}

static void expect_reply(void)
{
	if (CUA_READ(replies[simt_lane()]) != 100 + simt_lane() + 1)
		simt_fail("the section's effect is not there");
	CUA_WRITE(letters[simt_lane()], 7);
}

static void letters_warp(void)
{
	CUA_WRITE(letters[simt_lane()], 100 + simt_lane());
	answer_warp(&counter_lock, &counter, simt_lane(), whole_warp());
	expect_reply();
}

static void letters_block(void)
{
	uint32_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	CUA_WRITE(letters[simt_lane()], 100 + simt_lane());
	answer_block(&counter_lock, &counter, simt_lane(), scratch);
	expect_reply();
}

static void letters_in_turn(void)
{
	unsigned first = simt_lane() - simt_lane_in_block(), neighbour = simt_lane_in_block() ^ 1;

	CUA_WRITE(letters[simt_lane()], 100 + simt_lane());
	CUA_WITH_LOCK_WARP (&counter_lock, whole_warp()) {
		increment();
		if (neighbour < simt_block_lanes())
			(void)CUA_READ(letters[first + neighbour]);
		CUA_WRITE(replies[simt_lane()], CUA_READ(letters[simt_lane()]) + 1);
	}
	expect_reply();
}

/* Sections that end early, on several locks in a warp. */
static uint64_t turn_counts[3];

static void turns_setup(void)
{
	numbers_setup();
	memset(turn_counts, 0, sizeof(turn_counts));
}

static void turns(void)
{
	unsigned k = lock_of_lane(simt_lane());

	for (int call = 0; call < combine_calls; call++)
		CUA_WITH_LOCK_WARP (&number_locks[k], whole_warp()) {
			CUA_WRITE(turn_counts[k], CUA_READ(turn_counts[k]) + 1);
			if (simt_lane() % 3 == 0)
				break;
			if (simt_lane() % 3 == 1)
				continue;
			CUA_WRITE(numbers[k].twice, CUA_READ(turn_counts[k]));
		}
}

static const char *turns_check(void)
{
	unsigned n = simt_blocks() * simt_block_lanes();
	uint64_t expected[3] = {0};

	for (unsigned lane = 0; lane < n; lane++)
		expected[lock_of_lane(lane)] += (uint64_t)combine_calls;
	for (unsigned k = 0; k < 3; k++)
		if (turn_counts[k] != expected[k] || number_locks[k].word)
			return "a turn was lost";
	return NULL;
}

/* Every call that acquires the lock, by warps and blocks that run independently. */
CUA_DEFINE_COMBINE(count, uint64_t, uint32_t, *state += argument);

static void all_ways(void)
{
	uint32_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	if (simt_block() == 0)
		count_block(&counter_lock, &counter, 1, scratch);
	else if (simt_lane_in_block() / 32 % 2)
		CUA_WITH_LOCK (&counter_lock) {
			increment();
		}
	else if (simt_block() % 2)
		count_warp(&counter_lock, &counter, 1, whole_warp());
	else
		CUA_WITH_LOCK_WARP (&counter_lock, whole_warp())
			increment();
}

/* A block's lock in its shared memory. */
static void block_scope_ways(void)
{
	struct {
		struct cua_spinlock lock;
		uint64_t count;
		uint32_t scratch[128];
	} *here = simt_shared(sizeof(*here));
	uint32_t n = simt_block_lanes();

	count_warp_scope(&here->lock, &here->count, 1, whole_warp(), CUA_SCOPE_BLOCK);
	count_block_scope(&here->lock, &here->count, 1, n, here->scratch, CUA_SCOPE_BLOCK);
	CUA_WITH_LOCK_WARP_SCOPE (&here->lock, whole_warp(), CUA_SCOPE_BLOCK)
		CUA_WRITE(here->count, CUA_READ(here->count) + 1);
	cua_port_sync_block();
	if (CUA_READ(here->count) != 3 * n)
		simt_fail("a section was lost");
}

/* Planted: turns without a sync_warp between two of them. */
static void bug_turns_unordered(void)
{
	uint32_t mask = whole_warp();

	if (cua_port_lane() == 0)
		cua_spinlock_lock(&counter_lock);
	cua_port_sync_warp(mask);
	for (uint32_t left = mask; left; left &= left - 1) {
		if (cua_port_lane() == cua_port_ffs_u32(left) - 1)
			increment();
		/* converges the lanes without ordering memory */
		(void)cua_port_ballot(mask, 1);
	}
	cua_port_sync_warp(mask);
	if (cua_port_lane() == 0)
		cua_spinlock_unlock(&counter_lock);
}

/* One lane runs all sections, but nothing orders its reads after the writes of the arguments. */
static void bug_scratch_unordered(void)
{
	uint64_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	CUA_WRITE(scratch[simt_lane_in_block()], 1);
	if (simt_lane_in_block() == 0)
		CUA_WITH_LOCK (&counter_lock)
			for (unsigned i = 0; i < simt_block_lanes(); i++)
				CUA_WRITE(counter, CUA_READ(counter) + CUA_READ(scratch[i]));
	cua_port_sync_block();
}

/*
 * Planted: each lane holds its lock until the whole warp, with lanes of the other lock, converges.
 */
static void bug_groups_meet(void)
{
	unsigned k = simt_lane() % 2;

	cua_spinlock_lock(&number_locks[k]);
	cua_port_sync_warp(whole_warp());
	cua_spinlock_unlock(&number_locks[k]);
}

START_TEST(combine)
{
	struct simt_case warp = {.name = "combine, warp",
				 .setup = numbers_setup,
				 .body = numbers_warp,
				 .check = numbers_check};
	struct simt_case block = {.name = "combine, block",
				  .setup = numbers_setup,
				  .body = numbers_block,
				  .check = numbers_check};
	struct simt_case some = {.name = "combine, some of a block",
				 .setup = numbers_setup,
				 .body = numbers_some,
				 .check = numbers_check};
	struct simt_case in_turn = {.name = "CUA_WITH_LOCK_WARP, several locks",
				    .setup = turns_setup,
				    .body = turns,
				    .check = turns_check};
	struct simt_case letter[] = {
		{.name = "combine, messages in a warp",
		 .setup = letters_setup,
		 .body = letters_warp},
		{.name = "combine, messages in a block",
		 .setup = letters_setup,
		 .body = letters_block},
		{.name = "messages in turn",
		 .setup = letters_setup,
		 .body = letters_in_turn,
		 .check = counter_check},
	};
	struct simt_case in_block = {.name = "combine, block scope", .body = block_scope_ways};
	struct simt_case groups = {
		.name = "groups meet", .setup = numbers_setup, .body = bug_groups_meet};

	for (size_t i = 0; i < sizeof(letter) / sizeof(letter[0]); i++) {
		explore_shape(letter[i], 1, 2, 2);
		explore_shape(letter[i], 2, 1, 3);
		try_shape(letter[i], 2, 40, 3);
	}
	for (n_number_locks = 1; n_number_locks <= 3; n_number_locks++) {
		combine_calls = 1;
		explore_shape(warp, 1, 2, 3);
		explore_shape(warp, 1, 3, 0);
		explore_shape(warp, 2, 1, 3);
		explore_shape(warp, 2, 2, 0);
		explore_shape(in_turn, 1, 3, 1);
		explore_shape(in_turn, 2, 1, 3);
		explore_shape(in_turn, 2, 2, 0);
		combine_calls = 2;
		explore_shape(warp, 1, 2, 1);
		explore_shape(in_turn, 1, 2, 1);
		try_shape(warp, 1, 32, 3);
		try_shape(warp, 3, 45, 2);
		try_shape(in_turn, 1, 32, 3);
		try_shape(in_turn, 3, 45, 2);
	}
	n_number_locks = 1;
	explore_shape(block, 2, 1, 2);
	explore_shape(block, 1, 3, 0);
	explore_shape(block, 2, 2, 0);
	try_shape(block, 3, 50, 2);
	try_shape(some, 3, 34, 2);
	try_shape(counter_case("every way to one lock", all_ways), 4, 64, 3);
	try_shape(counter_case("every way to one lock", all_ways), 7, 5, 5);
	try_shape(in_block, 3, 40, 3);

	expect_caught(counter_case("turns without sync_warp", bug_turns_unordered), 1, 32,
		      SIMT_RACE, "plain");
	expect_caught(counter_case("scratch without barrier", bug_scratch_unordered), 1, 32,
		      SIMT_RACE, "plain");
	groups.max_steps = 100000;
	expect_caught(groups, 1, 32, SIMT_LIVELOCK, "no end");
}
END_TEST

TCase *simt_combine_cases(void)
{
	TCase *tc = simt_tcase("combine");

	tcase_add_test(tc, combine);
	return tc;
}
