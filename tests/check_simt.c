/* SPDX-License-Identifier: MIT */
/*
 * The inline algorithms under the SIMT checker: lanes as coroutines, every shared access a choice of the
 * scheduler. Compiled with the checker's port layer in place of the host's.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuatomic/append.h>
#include <cuatomic/atomic_narrow.h>
#include <cuatomic/atomic_warp.h>
#include <cuatomic/chained.h>
#include <cuatomic/combine.h>
#include <cuatomic/hashmap.h>
#include <cuatomic/lock.h>
#include <cuatomic/reduce.h>

#include "simt/simt.h"

static uint64_t seed_of_run(void)
{
	static uint64_t seed;
	const char *given = getenv("CUA_TEST_SEED");

	if (!seed) {
		seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u;
		printf("simt: CUA_TEST_SEED=%llu\n", (unsigned long long)seed);
		fflush(stdout);
	}
	return seed;
}

static void expect_ok(const struct simt_case *c, const char *how, struct simt_report r)
{
	ck_assert_msg(r.verdict == SIMT_OK, "%s, %s, %u x %u lanes: %s: %s (seed %llu, run %llu)",
		      c->name, how, c->shape.blocks, c->shape.block_lanes,
		      simt_verdict_name(r.verdict), r.message, (unsigned long long)r.seed,
		      (unsigned long long)r.runs);
}

static const struct {
	enum simt_policy policy;
	const char *name;
} policies[] = {
	{SIMT_RANDOM, "random"},
	{SIMT_STARVE_LANE, "a lane starved"},
	{SIMT_STARVE_WARP, "a warp starved"},
	{SIMT_LOCKSTEP, "lockstep"},
};

/* Random and adversarial schedules of one shape. */
static void try_shape(struct simt_case c, unsigned blocks, unsigned block_lanes, unsigned runs)
{
	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
		expect_ok(&c, policies[i].name,
			  simt_random(&c, policies[i].policy, seed_of_run(), runs));
}

/* Every schedule of a small shape with at most so many preemptions. */
static void explore_shape(struct simt_case c, unsigned blocks, unsigned block_lanes, unsigned preemptions)
{
	struct simt_report r;

	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	r = simt_explore(&c, preemptions, 400000);
	expect_ok(&c, "explored", r);
	printf("simt: %s, %u x %u lanes, %u preemptions: %llu schedules%s\n", c.name, blocks, block_lanes,
	       preemptions, (unsigned long long)r.runs, r.exhausted ? ", all" : "");
}

/* A planted bug must be found, and as what it is. */
static void expect_caught(struct simt_case c, unsigned blocks, unsigned block_lanes,
			  enum simt_verdict expected, const char *says)
{
	struct simt_report r = {.verdict = SIMT_OK};

	c.shape.blocks = blocks;
	c.shape.block_lanes = block_lanes;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]) && r.verdict == SIMT_OK; i++)
		r = simt_random(&c, policies[i].policy, 1, 50);
	ck_assert_msg(r.verdict == expected && strstr(r.message, says), "%s: %s: %s, expected %s: ...%s...",
		      c.name, simt_verdict_name(r.verdict), r.message, simt_verdict_name(expected), says);
	/* and the seed replays it */
	{
		char first[sizeof(r.message)];
		struct simt_report again;
		size_t i;

		memcpy(first, r.message, sizeof(first));
		for (i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
			again = simt_random(&c, policies[i].policy, r.seed, 1);
			if (again.verdict == expected && !strcmp(again.message, first))
				break;
		}
		ck_assert_msg(i < sizeof(policies) / sizeof(policies[0]), "%s: seed %llu does not replay",
			      c.name, (unsigned long long)r.seed);
	}
}

/* ---- one counter under a lock, right and with bugs planted ---- */

static struct cua_spinlock lock;
static uint64_t counter;

static void counter_setup(void)
{
	cua_spinlock_init(&lock);
	counter = 0;
}

static const char *counter_check(void)
{
	return counter == (uint64_t)simt_blocks() * simt_block_lanes() ? NULL : "an update was lost";
}

static void increment(void)
{
	CUA_WRITE(counter, CUA_READ(counter) + 1);
}

static void with_lock(void)
{
	CUA_WITH_LOCK(&lock) { increment(); }
}

static void lock_unlock(void)
{
	cua_spinlock_lock(&lock);
	increment();
	cua_spinlock_unlock(&lock);
}

static void lock_for(void)
{
	while (!cua_spinlock_lock_for(&lock, 300))
		cua_port_pause(1);
	increment();
	cua_spinlock_unlock(&lock);
}

static void take(enum cua_order order)
{
	while (cua_port_cas_b32(&lock.word, 0, 1, order, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC))
		cua_port_pause(1);
}

static void give(enum cua_order order)
{
	cua_port_store_b32(&lock.word, 0, order, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

static void by_fences(void)
{
	take(CUA_RELAXED);
	cua_port_fence(CUA_ACQUIRE, CUA_SCOPE_DEVICE);
	increment();
	cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);
	give(CUA_RELAXED);
}

static void bug_no_acquire(void)
{
	take(CUA_RELAXED);
	increment();
	give(CUA_RELEASE);
}

static void bug_no_release(void)
{
	take(CUA_ACQUIRE);
	increment();
	give(CUA_RELAXED);
}

static void bug_no_fence(void)
{
	take(CUA_RELAXED);
	increment();
	cua_port_fence(CUA_RELEASE, CUA_SCOPE_DEVICE);
	give(CUA_RELAXED);
}

static void bug_narrow_fence(void)
{
	take(CUA_RELAXED);
	cua_port_fence(CUA_ACQUIRE, CUA_SCOPE_DEVICE);
	increment();
	cua_port_fence(CUA_RELEASE, CUA_SCOPE_BLOCK);
	give(CUA_RELAXED);
}

static void bug_block_scope(void)
{
	CUA_WITH_LOCK_SCOPE(&lock, CUA_SCOPE_BLOCK) { increment(); }
}

static void bug_early_unlock(void)
{
	uint64_t v;

	cua_spinlock_lock(&lock);
	v = CUA_READ(counter);
	cua_spinlock_unlock(&lock);
	CUA_WRITE(counter, v + 1);
}

static void bug_sync_in_spin(void)
{
	int done = 0;

	while (!done) {
		if (cua_spinlock_trylock(&lock)) {
			increment();
			cua_spinlock_unlock(&lock);
			done = 1;
		} else {
			cua_port_sync_warp(0xffffffffu);
		}
	}
}

static void bug_never_unlocked(void)
{
	cua_spinlock_lock(&lock);
	increment();
}

static void bug_lost_update(void)
{
	uint64_t v = cua_port_load_b64(&counter, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);

	cua_port_store_b64(&counter, v + 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

static void bug_barrier_in_branch(void)
{
	if (cua_port_thread() % 2)
		cua_port_sync_block();
	else
		take(CUA_ACQUIRE);
	increment();
}

static struct simt_case counter_case(const char *name, void (*body)(void))
{
	struct simt_case c = {.name = name, .setup = counter_setup, .body = body, .check = counter_check};

	c.max_steps = 300000;
	return c;
}

START_TEST(checker_catches)
{
	expect_caught(counter_case("no acquire", bug_no_acquire), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("no release", bug_no_release), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("no acquire fence", bug_no_fence), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("narrow fence", bug_narrow_fence), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("block scope", bug_block_scope), 2, 1, SIMT_RACE, "block scope");
	expect_caught(counter_case("early unlock", bug_early_unlock), 1, 2, SIMT_RACE, "plain");
	expect_caught(counter_case("sync in a spin", bug_sync_in_spin), 1, 32, SIMT_DEADLOCK, "wait");
	expect_caught(counter_case("never unlocked", bug_never_unlocked), 1, 2, SIMT_LIVELOCK, "no end");
	expect_caught(counter_case("lost update", bug_lost_update), 1, 32, SIMT_FAILED, "lost");
	expect_caught(counter_case("barrier in a branch", bug_barrier_in_branch), 1, 64, SIMT_LIVELOCK,
		      "no end");
}
END_TEST

START_TEST(spinlock)
{
	struct simt_case cases[] = {
		counter_case("CUA_WITH_LOCK", with_lock),
		counter_case("lock, unlock", lock_unlock),
		counter_case("relaxed lock with fences", by_fences),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		explore_shape(cases[i], 1, 2, 4);
		explore_shape(cases[i], 3, 1, 3);
		try_shape(cases[i], 2, 64, 3);
		try_shape(cases[i], 4, 33, 2);
	}
	/* a try with a limit of time, again and again */
	explore_shape(counter_case("lock_for", lock_for), 3, 1, 3);
	try_shape(counter_case("lock_for", lock_for), 2, 40, 3);
	/* a block-scope lock is right inside one block */
	try_shape(counter_case("block scope, one block", bug_block_scope), 1, 96, 3);
}
END_TEST

/* ---- combining ---- */

#define COMBINE_CALLS 2

static int combine_calls; /* of each lane */

struct numbers {
	uint64_t next;  /* the next number to give out */
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

/* The lanes of this lane's warp that exist. */
static uint32_t whole_warp(void)
{
	unsigned rest = simt_block_lanes() - simt_lane_in_block() / 32 * 32;

	return rest < 32 ? ((uint32_t)1 << rest) - 1 : ~(uint32_t)0;
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
		got = take_numbers_block_scope(&number_locks[0], &numbers[0], simt_lane(), n, scratch,
					       CUA_SCOPE_DEVICE);
		if (simt_lane_in_block() < n)
			given[call][simt_lane()] = got;
		else if (got != simt_lane())
			simt_fail("a lane without a section did not get its argument back");
	}
}

/* Each number is there once, and those of one call are in lane order, with none between. */
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
			/* the lane before it in the same warp with the same lock */
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

/* Plain messages of each lane to its section, and of the section to its lane and to those of later calls. */
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
	answer_warp(&lock, &counter, simt_lane(), whole_warp());
	expect_reply();
}

static void letters_block(void)
{
	uint32_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	CUA_WRITE(letters[simt_lane()], 100 + simt_lane());
	answer_block(&lock, &counter, simt_lane(), scratch);
	expect_reply();
}

static void letters_in_turn(void)
{
	unsigned first = simt_lane() - simt_lane_in_block(), neighbour = simt_lane_in_block() ^ 1;

	CUA_WRITE(letters[simt_lane()], 100 + simt_lane());
	CUA_WITH_LOCK_WARP(&lock, whole_warp())
	{
		increment();
		if (neighbour < simt_block_lanes())
			(void)CUA_READ(letters[first + neighbour]);
		CUA_WRITE(replies[simt_lane()], CUA_READ(letters[simt_lane()]) + 1);
	}
	expect_reply();
}

/* Sections left early, on several locks in a warp. */
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
		CUA_WITH_LOCK_WARP(&number_locks[k], whole_warp())
		{
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

/* Every way to take one lock, by warps and blocks that know nothing of each other. */
CUA_DEFINE_COMBINE(count, uint64_t, uint32_t, *state += argument);

static void all_ways(void)
{
	uint32_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	if (simt_block() == 0)
		count_block(&lock, &counter, 1, scratch);
	else if (simt_lane_in_block() / 32 % 2)
		with_lock();
	else if (simt_block() % 2)
		count_warp(&lock, &counter, 1, whole_warp());
	else
		CUA_WITH_LOCK_WARP(&lock, whole_warp())
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
	CUA_WITH_LOCK_WARP_SCOPE(&here->lock, whole_warp(), CUA_SCOPE_BLOCK)
		CUA_WRITE(here->count, CUA_READ(here->count) + 1);
	cua_port_sync_block();
	if (CUA_READ(here->count) != 3 * n)
		simt_fail("a section was lost");
}

/* Turns with no sync_warp between two of them. */
static void bug_turns_unordered(void)
{
	uint32_t mask = whole_warp();

	if (cua_port_lane() == 0)
		cua_spinlock_lock(&lock);
	cua_port_sync_warp(mask);
	for (uint32_t left = mask; left; left &= left - 1) {
		if (cua_port_lane() == cua_port_ffs_u32(left) - 1)
			increment();
		/* a meeting that orders nothing */
		(void)cua_port_ballot(mask, 1);
	}
	cua_port_sync_warp(mask);
	if (cua_port_lane() == 0)
		cua_spinlock_unlock(&lock);
}

/* One lane runs all the sections, and nobody tells it that the arguments have come. */
static void bug_scratch_unordered(void)
{
	uint64_t *scratch = simt_shared(sizeof(*scratch) * simt_block_lanes());

	CUA_WRITE(scratch[simt_lane_in_block()], 1);
	if (simt_lane_in_block() == 0)
		CUA_WITH_LOCK(&lock)
			for (unsigned i = 0; i < simt_block_lanes(); i++)
				CUA_WRITE(counter, CUA_READ(counter) + CUA_READ(scratch[i]));
	cua_port_sync_block();
}

/* Waits for the lock of another lane's with the whole warp. */
static void bug_groups_meet(void)
{
	unsigned k = simt_lane() % 2;

	cua_spinlock_lock(&number_locks[k]);
	cua_port_sync_warp(whole_warp());
	cua_spinlock_unlock(&number_locks[k]);
}

START_TEST(combine)
{
	struct simt_case warp = {.name = "combine, warp", .setup = numbers_setup, .body = numbers_warp,
				 .check = numbers_check};
	struct simt_case block = {.name = "combine, block", .setup = numbers_setup,
				  .body = numbers_block, .check = numbers_check};
	struct simt_case some = {.name = "combine, some of a block", .setup = numbers_setup,
				 .body = numbers_some, .check = numbers_check};
	struct simt_case in_turn = {.name = "CUA_WITH_LOCK_WARP, several locks", .setup = turns_setup,
				    .body = turns, .check = turns_check};
	struct simt_case letter[] = {
		{.name = "combine, messages in a warp", .setup = letters_setup, .body = letters_warp},
		{.name = "combine, messages in a block", .setup = letters_setup, .body = letters_block},
		{.name = "messages in turn", .setup = letters_setup, .body = letters_in_turn,
		 .check = counter_check},
	};
	struct simt_case in_block = {.name = "combine, block scope", .body = block_scope_ways};
	struct simt_case groups = {.name = "groups meet", .setup = numbers_setup,
				   .body = bug_groups_meet};

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

	expect_caught(counter_case("turns without sync_warp", bug_turns_unordered), 1, 32, SIMT_RACE,
		      "plain");
	expect_caught(counter_case("scratch without barrier", bug_scratch_unordered), 1, 32, SIMT_RACE,
		      "plain");
	groups.max_steps = 100000;
	expect_caught(groups, 1, 32, SIMT_LIVELOCK, "no end");
}
END_TEST

/* ---- the other locks ---- */

/* What a lane does, so that every way to take a lock meets every other. */
static enum way { EACH_WAY, BY_SECTION, BY_LOCK, BY_TRYLOCK, BY_LOCK_FOR } way;

static enum way way_of_lane(void)
{
	return way ? way : (enum way)(BY_SECTION + simt_lane() % 4);
}

/* One lock by one lane, whichever way. */
#define TAKE_ONE_WAY(SECTION, lock_call, try_call, for_call, unlock_call, body)                    \
	do {                                                                                       \
		switch (way_of_lane()) {                                                           \
		case BY_SECTION:                                                                   \
			SECTION { body; }                                                          \
			break;                                                                     \
		case BY_LOCK:                                                                      \
			lock_call;                                                                 \
			body;                                                                      \
			unlock_call;                                                               \
			break;                                                                     \
		case BY_TRYLOCK:                                                                   \
			while (!(try_call))                                                        \
				cua_port_pause(1);                                                 \
			body;                                                                      \
			unlock_call;                                                               \
			break;                                                                     \
		default:                                                                           \
			while (!(for_call))                                                        \
				cua_port_pause(1);                                                 \
			body;                                                                      \
			unlock_call;                                                               \
		}                                                                                  \
	} while (0)

/* Every way by itself, then all together. */
static void try_ways(struct simt_case c)
{
	for (int w = EACH_WAY; w <= BY_LOCK_FOR; w++) {
		way = (enum way)w;
		explore_shape(c, 1, 2, 4);
		explore_shape(c, 3, 1, w ? 2 : 3);
		try_shape(c, 1, 32, 3);
		try_shape(c, 3, 34, 2);
	}
	way = EACH_WAY;
}

static struct cua_ticketlock ticketlock;

static void ticket_setup(void)
{
	cua_ticketlock_init(&ticketlock);
	/* the words come round */
	ticketlock.next = ticketlock.owner = UINT32_MAX;
	counter = 0;
}

static const char *ticket_check(void)
{
	return ticketlock.next != ticketlock.owner ? "the lock is still held" : counter_check();
}

static void ticket_body(void)
{
	TAKE_ONE_WAY(CUA_WITH_TICKETLOCK(&ticketlock), cua_ticketlock_lock(&ticketlock),
		     cua_ticketlock_trylock(&ticketlock), cua_ticketlock_lock_for(&ticketlock, 300),
		     cua_ticketlock_unlock(&ticketlock), increment());
}

/* It takes a ticket whenever there is one, whoever holds the lock. */
static void bug_ticket_trylock(void)
{
	uint32_t next;

	do
		next = cua_port_load_b32(&ticketlock.next, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	while (cua_port_cas_b32(&ticketlock.next, next, next + 1, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
				CUA_SPACE_GENERIC) != next);
	increment();
	cua_ticketlock_unlock(&ticketlock);
}

/* Tickets in the order of arrival: a lane that takes one later is served later. */
static uint32_t served[SIMT_MAX_LANES];

static void ticket_order_body(void)
{
	uint32_t ticket = cua_port_fetch_add_u32(&ticketlock.next, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
						 CUA_SPACE_GENERIC) - UINT32_MAX;

	/* not before those whose ticket had been taken */
	CUA_WITH_TICKETLOCK(&ticketlock) {
		if (CUA_READ(counter) < ticket)
			simt_fail("overtook a lane that had come before");
		CUA_WRITE(served[CUA_READ(counter)], simt_lane() + 1);
		increment();
	}
}

START_TEST(ticket)
{
	struct simt_case c = {.name = "ticketlock", .setup = ticket_setup, .body = ticket_body,
			      .check = ticket_check, .max_steps = 20000000};
	struct simt_case order = {.name = "ticketlock, order", .setup = ticket_setup,
				  .body = ticket_order_body, .check = ticket_check,
				  .max_steps = 20000000};
	struct simt_case bug = {.name = "a ticket trylock that skips the owner check",
				.setup = ticket_setup, .body = bug_ticket_trylock, .check = counter_check,
				.max_steps = 300000};

	try_ways(c);
	explore_shape(order, 3, 1, 3);
	try_shape(order, 2, 40, 3);
	expect_caught(bug, 2, 4, SIMT_RACE, "plain");
}
END_TEST

static struct cua_mcslock mcslock;
static struct cua_mcslock_node nodes[SIMT_MAX_LANES];

static void mcs_setup(void)
{
	cua_mcslock_init(&mcslock);
	memset(nodes, 0xee, sizeof(nodes));
	counter = 0;
}

static const char *mcs_check(void)
{
	return mcslock.tail ? "the lock is still held" : counter_check();
}

static void mcs_body(void)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()];

	TAKE_ONE_WAY(CUA_WITH_MCSLOCK(&mcslock, node), cua_mcslock_lock(&mcslock, node),
		     cua_mcslock_trylock(&mcslock, node), cua_mcslock_lock_for(&mcslock, node, 300),
		     cua_mcslock_unlock(&mcslock, node), increment());
}

/* One node for several sections in turn. */
static void mcs_again_body(void)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()];

	for (int i = 0; i < 3; i++)
		CUA_WITH_MCSLOCK(&mcslock, node) {
			if (i == 1)
				increment();
		}
}

/* The queue by hand, with the orders of choice. */
static void mcs_by_hand(enum cua_order acquire, enum cua_order release)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()], *other;

#define AT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC
	cua_port_store_b64(&node->next, 0, CUA_RELAXED, AT);
	cua_port_store_b32(&node->waiting, 1, CUA_RELAXED, AT);
	other = (struct cua_mcslock_node *)(uintptr_t)cua_port_exchange_b64(
		&mcslock.tail, (uint64_t)(uintptr_t)node, CUA_ACQ_REL, AT);
	if (other) {
		cua_port_store_b64(&other->next, (uint64_t)(uintptr_t)node, CUA_RELEASE, AT);
		while (cua_port_load_b32(&node->waiting, acquire, AT))
			cua_port_pause(1);
	}
	increment();
	if (cua_port_cas_b64(&mcslock.tail, (uint64_t)(uintptr_t)node, 0, CUA_RELEASE, AT) ==
	    (uint64_t)(uintptr_t)node)
		return;
	while (!cua_port_load_b64(&node->next, CUA_RELAXED, AT))
		cua_port_pause(1);
	other = (struct cua_mcslock_node *)(uintptr_t)cua_port_load_b64(&node->next, CUA_ACQUIRE, AT);
	cua_port_store_b32(&other->waiting, 0, release, AT);
#undef AT
}

static void mcs_right(void)
{
	mcs_by_hand(CUA_ACQUIRE, CUA_RELEASE);
}

static void bug_mcs_no_acquire(void)
{
	mcs_by_hand(CUA_RELAXED, CUA_RELEASE);
}

static void bug_mcs_no_release(void)
{
	mcs_by_hand(CUA_ACQUIRE, CUA_RELAXED);
}

START_TEST(mcs)
{
	struct simt_case c = {.name = "mcslock", .setup = mcs_setup, .body = mcs_body, .check = mcs_check,
			      .max_steps = 20000000};
	struct simt_case again = c, bug = c;

	try_ways(c);
	again.name = "mcslock, again";
	again.body = mcs_again_body;
	explore_shape(again, 2, 1, 3);
	try_shape(again, 2, 33, 3);
	bug.name = "mcs by hand";
	bug.body = mcs_right;
	try_shape(bug, 2, 32, 3);
	bug.name = "mcs without acquire";
	bug.body = bug_mcs_no_acquire;
	expect_caught(bug, 2, 32, SIMT_RACE, "plain");
	bug.name = "mcs without release";
	bug.body = bug_mcs_no_release;
	expect_caught(bug, 2, 32, SIMT_RACE, "plain");
}
END_TEST

static struct cua_rwlock rwlock;
static uint64_t twin; /* equal to counter outside of writers' sections */
static uint32_t readers_inside;

static void rw_setup(void)
{
	cua_rwlock_init(&rwlock);
	/* the words come round */
	rwlock.readers_in = rwlock.readers_out = UINT32_MAX - 7;
	rwlock.writers_in = rwlock.writers_out = UINT32_MAX;
	counter = twin = 0;
	readers_inside = 0;
}

static int rw_held(void)
{
	return (rwlock.readers_in & ~CUA__RWLOCK_PHASE) != rwlock.readers_out ||
	       rwlock.writers_in != rwlock.writers_out;
}

static void rw_read(void)
{
	if (CUA_READ(counter) != CUA_READ(twin))
		simt_fail("a reader saw half of a write");
}

static void rw_write(void)
{
	increment();
	CUA_WRITE(twin, CUA_READ(twin) + 1);
}

/* Each lane writes once; it reads before or after. */
static void rw_body(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if ((i ^ simt_lane()) & 1)
			TAKE_ONE_WAY(CUA_WITH_READ_LOCK(&rwlock), cua_rwlock_read_lock(&rwlock),
				     cua_rwlock_read_trylock(&rwlock),
				     cua_rwlock_read_lock_for(&rwlock, 300),
				     cua_rwlock_read_unlock(&rwlock), rw_read());
		else
			TAKE_ONE_WAY(CUA_WITH_WRITE_LOCK(&rwlock), cua_rwlock_write_lock(&rwlock),
				     cua_rwlock_write_trylock(&rwlock),
				     cua_rwlock_write_lock_for(&rwlock, 300),
				     cua_rwlock_write_unlock(&rwlock), rw_write());
	}
}

/* Writers that come and go, by turn and by try, while one lane reads twice: it must see each of them. */
static void rw_phases_body(void)
{
	if (simt_lane() == 0) {
		for (int i = 0; i < 2; i++)
			CUA_WITH_READ_LOCK(&rwlock) { rw_read(); }
	} else {
		if (cua_rwlock_write_trylock(&rwlock))
			cua_rwlock_write_unlock(&rwlock);
		CUA_WITH_WRITE_LOCK(&rwlock) { rw_write(); }
	}
}

static const char *rw_phases_check(void)
{
	if (rw_held())
		return "the lock is still held";
	return counter == simt_blocks() * simt_block_lanes() - 1 ? NULL : "an update was lost";
}

static const char *rw_check(void)
{
	if (rw_held())
		return "the lock is still held";
	return twin != counter ? "the data is torn" : counter_check();
}

/* Readers may be inside together: each waits there for the other. */
static void rw_together_body(void)
{
	CUA_WITH_READ_LOCK(&rwlock) {
		cua_port_add_u32(&readers_inside, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		while (cua_port_load_b32(&readers_inside, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC) < simt_blocks() * simt_block_lanes())
			cua_port_pause(1);
	}
}

/* A try to write that looks at the readers, takes the turn, and does not look again. */
static void bug_rw_no_second_look(void)
{
	const uint32_t mark = CUA__RWLOCK_WRITER;

	if (simt_lane() % 2) {
		CUA_WITH_READ_LOCK(&rwlock) { rw_read(); }
		return;
	}
#define AT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC
	for (;;) {
		uint32_t turn = cua_port_load_b32(&rwlock.writers_out, CUA_ACQUIRE, AT);
		uint32_t in = cua_port_load_b32(&rwlock.readers_in, CUA_RELAXED, AT);

		if ((in & ~CUA__RWLOCK_PHASE) == cua_port_load_b32(&rwlock.readers_out, CUA_ACQUIRE, AT) &&
		    cua_port_cas_b32(&rwlock.writers_in, turn, turn + 1, CUA_RELAXED, AT) == turn)
			break;
		cua_port_pause(1);
	}
	(void)cua_port_fetch_xor_b32(&rwlock.readers_in, mark, CUA_RELAXED, AT);
#undef AT
	rw_write();
	cua_rwlock_write_unlock(&rwlock);
}

START_TEST(rw)
{
	struct simt_case c = {.name = "rwlock", .setup = rw_setup, .body = rw_body, .check = rw_check,
			      .max_steps = 20000000};
	struct simt_case together = {.name = "rwlock, readers together", .setup = rw_setup,
				     .body = rw_together_body,
				  .max_steps = 20000000};
	struct simt_case phases = {.name = "rwlock, phases", .setup = rw_setup, .body = rw_phases_body,
				   .check = rw_phases_check,
				  .max_steps = 20000000};
	struct simt_case bug = c;

	try_ways(c);
	explore_shape(together, 1, 2, 3);
	try_shape(together, 2, 40, 3);
	explore_shape(phases, 3, 1, 3);
	try_shape(phases, 2, 5, 50);
	try_shape(phases, 2, 40, 3);
	bug.name = "a try to write that does not look again";
	bug.body = bug_rw_no_second_look;
	bug.check = NULL;
	bug.max_steps = 300000;
	expect_caught(bug, 2, 8, SIMT_RACE, "plain");
}
END_TEST

static struct cua_seqlock seqlock;
static uint32_t pair[2]; /* equal outside of writers' sections */
static uint32_t plain_inside;

static void seq_setup(void)
{
	cua_seqlock_init(&seqlock);
	/* past 32 bits */
	seqlock.sequence = UINT32_MAX - 1;
	pair[0] = pair[1] = 0;
	plain_inside = 0;
}

static void seq_write(void)
{
	uint32_t v = cua_seqlock_load_b32(&pair[0]) + 1;

	/* writers exclude each other */
	CUA_WRITE(plain_inside, CUA_READ(plain_inside) + 1);
	cua_seqlock_store_b32(&pair[0], v);
	cua_seqlock_store_b32(&pair[1], v);
}

static void seq_body(void)
{
	uint32_t snapshot[2], first, second;
	uint64_t begun;

	for (unsigned i = 0; i < 2; i++) {
		if ((i ^ simt_lane()) & 1) {
			TAKE_ONE_WAY(CUA_WITH_SEQLOCK(&seqlock), cua_seqlock_lock(&seqlock),
				     cua_seqlock_trylock(&seqlock), cua_seqlock_lock_for(&seqlock, 300),
				     cua_seqlock_unlock(&seqlock), seq_write());
			continue;
		}
		cua_seqlock_read(&seqlock, pair, 2, snapshot);
		if (snapshot[0] != snapshot[1])
			simt_fail("a snapshot is torn");
		do {
			begun = cua_seqlock_read_begin(&seqlock);
			first = cua_seqlock_load_b32(&pair[0]);
			second = cua_seqlock_load_b32(&pair[1]);
		} while (cua_seqlock_read_retry(&seqlock, begun));
		if (first != second || first < snapshot[0])
			simt_fail("a snapshot is torn or older than the one before");
	}
}

static const char *seq_check(void)
{
	uint32_t n = simt_blocks() * simt_block_lanes();

	if (seqlock.sequence & 1)
		return "the lock is still held";
	return pair[0] == n && pair[1] == n && plain_inside == n ? NULL : "an update was lost";
}

static void bug_seq_no_second_look(void)
{
	uint32_t first, second;

	if (simt_lane() % 2) {
		CUA_WITH_SEQLOCK(&seqlock) { seq_write(); }
		return;
	}
	(void)cua_seqlock_read_begin(&seqlock);
	first = cua_seqlock_load_b32(&pair[0]);
	second = cua_seqlock_load_b32(&pair[1]);
	if (first != second)
		simt_fail("a snapshot is torn");
}

START_TEST(seq)
{
	struct simt_case c = {.name = "seqlock", .setup = seq_setup, .body = seq_body, .check = seq_check,
			      .max_steps = 20000000};
	struct simt_case bug = {.name = "a seqlock reader without the second look", .setup = seq_setup,
				.body = bug_seq_no_second_look};

	try_ways(c);
	expect_caught(bug, 2, 8, SIMT_FAILED, "torn");
}
END_TEST

static struct cua_semaphore semaphore;
static uint32_t bound, inside;

static void semaphore_setup(void)
{
	cua_semaphore_init(&semaphore, bound);
	inside = 0;
	counter = 0;
}

static void semaphore_section(void)
{
	if (cua_port_fetch_add_u32(&inside, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) >= bound)
		simt_fail("too many hold the semaphore");
	if (bound == 1)
		increment();
	cua_port_add_u32(&inside, UINT32_MAX, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

static void semaphore_body(void)
{
	TAKE_ONE_WAY(CUA_WITH_SEMAPHORE(&semaphore), cua_semaphore_lock(&semaphore),
		     cua_semaphore_trylock(&semaphore), cua_semaphore_lock_for(&semaphore, 300),
		     cua_semaphore_unlock(&semaphore), semaphore_section());
}

static const char *semaphore_check(void)
{
	if (semaphore.count != bound)
		return "the count is wrong";
	return bound == 1 ? counter_check() : NULL;
}

/* One lane gives what the others wait for, with a plain message. */
static void semaphore_signal_setup(void)
{
	cua_semaphore_init(&semaphore, 0);
	counter = 0;
}

static void semaphore_signal_body(void)
{
	if (simt_lane() == 0) {
		CUA_WRITE(counter, 7);
		for (unsigned i = 1; i < simt_blocks() * simt_block_lanes(); i++)
			cua_semaphore_unlock(&semaphore);
		return;
	}
	cua_semaphore_lock(&semaphore);
	if (CUA_READ(counter) != 7)
		simt_fail("the signal came before the message");
}

START_TEST(semaphores)
{
	struct simt_case c = {.name = "semaphore", .setup = semaphore_setup, .body = semaphore_body,
			      .check = semaphore_check, .max_steps = 20000000};
	struct simt_case signal = {.name = "semaphore, signal", .setup = semaphore_signal_setup,
				   .body = semaphore_signal_body, .max_steps = 20000000};

	for (bound = 1; bound <= 3; bound++)
		try_ways(c);
	explore_shape(signal, 3, 1, 3);
	try_shape(signal, 2, 33, 3);
}
END_TEST

/* ---- timeouts: lane 0 holds the lock until the others have run out of time ---- */

static uint32_t timed_out;
static unsigned kind;

static void timeout_setup(void)
{
	mcs_setup();
	ticket_setup();
	rw_setup();
	seq_setup();
	cua_spinlock_init(&lock);
	cua_semaphore_init(&semaphore, 1);
	timed_out = 0;
}

/* The lock of this kind: 0 trylock, 1 lock_for, 2 unlock. */
static int timeout_call(int what, uint64_t ns)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()];

	switch (kind) {
	case 0:
		return what == 0 ? cua_spinlock_trylock(&lock) :
		       what == 1 ? cua_spinlock_lock_for(&lock, ns) : (cua_spinlock_unlock(&lock), 0);
	case 1:
		return what == 0 ? cua_ticketlock_trylock(&ticketlock) :
		       what == 1 ? cua_ticketlock_lock_for(&ticketlock, ns) :
				   (cua_ticketlock_unlock(&ticketlock), 0);
	case 2:
		return what == 0 ? cua_mcslock_trylock(&mcslock, node) :
		       what == 1 ? cua_mcslock_lock_for(&mcslock, node, ns) :
				   (cua_mcslock_unlock(&mcslock, node), 0);
	case 3:
		return what == 0 ? cua_rwlock_write_trylock(&rwlock) :
		       what == 1 ? cua_rwlock_write_lock_for(&rwlock, ns) :
				   (cua_rwlock_write_unlock(&rwlock), 0);
	case 4: /* a writer keeps out readers */
		if (simt_lane() == 0)
			return what == 2 ? (cua_rwlock_write_unlock(&rwlock), 0) :
					   cua_rwlock_write_trylock(&rwlock);
		return what == 2 ? (cua_rwlock_read_unlock(&rwlock), 0) :
				   cua_rwlock_read_lock_for(&rwlock, ns);
	case 5: /* a reader keeps out writers */
		if (simt_lane() == 0)
			return what == 2 ? (cua_rwlock_read_unlock(&rwlock), 0) :
					   cua_rwlock_read_trylock(&rwlock);
		return what == 2 ? (cua_rwlock_write_unlock(&rwlock), 0) :
				   cua_rwlock_write_lock_for(&rwlock, ns);
	case 6:
		return what == 0 ? cua_seqlock_trylock(&seqlock) :
		       what == 1 ? cua_seqlock_lock_for(&seqlock, ns) : (cua_seqlock_unlock(&seqlock), 0);
	default:
		return what == 0 ? cua_semaphore_trylock(&semaphore) :
		       what == 1 ? cua_semaphore_lock_for(&semaphore, ns) :
				   (cua_semaphore_unlock(&semaphore), 0);
	}
}

static void timeout_body(void)
{
	uint32_t others = simt_blocks() * simt_block_lanes() - 1;

	if (simt_lane() == 0) {
		if (!timeout_call(0, 0))
			simt_fail("a free lock was not taken");
		/* 1: it is held; then one more a lane that has given up */
		cua_port_add_u32(&timed_out, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		while (cua_port_load_b32(&timed_out, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) !=
		       others + 1)
			cua_port_pause(1);
		timeout_call(2, 0);
		return;
	}
	while (!cua_port_load_b32(&timed_out, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC))
		cua_port_pause(1);
	if (timeout_call(1, 0) || timeout_call(1, 500))
		simt_fail("a held lock was taken");
	cua_port_add_u32(&timed_out, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	if (!timeout_call(1, UINT64_MAX))
		simt_fail("no time was left");
	timeout_call(2, 0);
}

static const char *timeout_check(void)
{
	if (lock.word || ticketlock.next != ticketlock.owner || mcslock.tail || rw_held() ||
	    seqlock.sequence & 1 || semaphore.count != 1)
		return "a lock is still held";
	return NULL;
}

START_TEST(timeouts)
{
	static const char *const names[] = {"spinlock", "ticketlock", "mcslock", "writers", "readers",
					    "a writer and a reader", "seqlock", "semaphore"};

	for (kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++) {
		struct simt_case c = {.name = names[kind], .setup = timeout_setup, .body = timeout_body,
				      .check = timeout_check, .max_steps = 20000000};

		try_shape(c, 1, 2, 5);
		try_shape(c, 2, 4, 5);
	}
}
END_TEST

/* ---- append ---- */

static struct cua_append_cursor cursor;
static uint32_t items[64];
static struct cua_append_view append_view = {items, &cursor, 40, sizeof(items[0]), CUA_APPEND_LAYOUT, 0};

static void append_setup(void)
{
	cursor.demand = 0;
	memset(items, 0xff, sizeof(items));
}

static void append_lanes(void)
{
	uint32_t v = simt_lane();
	uint32_t mask = 0;

	/* half of the lanes alone, the others as a warp of odd lanes */
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

START_TEST(append)
{
	struct simt_case c = {.name = "append", .setup = append_setup, .body = append_lanes,
			      .check = append_check};

	explore_shape(c, 1, 3, 3);
	try_shape(c, 1, 32, 5);
	try_shape(c, 2, 48, 5);
}
END_TEST

/* ---- reductions ---- */

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

/* ---- atomics combined in the warp and in the block ---- */

CUA_DEFINE_ATOMIC_WARP(user_add, u32, old + operand)

static uint32_t cells[4];
static uint32_t seen_marks[512];
static int64_t cell_i64;
static uint32_t cell_mul;
static float cell_f32;
static uint64_t payload[512];
static uint32_t arrivals;

/* Which cell a lane takes: all one, in pairs, in turn, some alone. */
static unsigned pattern;
static uint32_t cell_of(unsigned id)
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
	memset(cells, 0, sizeof(cells));
	memset(seen_marks, 0, sizeof(seen_marks));
	memset(payload, 0, sizeof(payload));
	cell_i64 = 0;
	cell_mul = 1;
	cell_f32 = 0;
	arrivals = 0;
}

/* fetch_add of 1 gives every old value of a cell exactly once, and a warp's lanes theirs in order. */
static void warp_fetch_add(void)
{
	unsigned id = simt_lane(), lane = cua_port_lane();
	uint32_t mask = simt_warp_mask(), c = cell_of(id), old, before;
	uint32_t peers = 0;

	old = pattern & 1 ? user_add_warp(mask, &cells[c], 1)
			  : cua_atomic_fetch_add_warp_u32(mask, &cells[c], 1);
	for (unsigned i = 0; i < SIMT_WARP_LANES; i++)
		if (mask >> i & 1 && cell_of(id - lane + i) == c)
			peers |= 1u << i;
	peers &= (1u << lane) - 1;
	before = cua_port_shuffle_u32(mask, old, peers ? 31 - (uint32_t)__builtin_clz(peers) : lane);
	if (peers && before + 1 != old)
		simt_fail("the lanes are not in order");
	if (cua_atomic_fetch_add_u32(&seen_marks[c * 128 + old % 128], 1))
		simt_fail("two lanes got one old value");
}

static const char *warp_fetch_check(void)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 4; i++)
		sum += cells[i];
	return sum == simt_blocks() * simt_block_lanes() ? NULL : "an update was lost";
}

/* The forms without result, with a mask that leaves lanes out, which do something else. */
static void warp_quiet(void)
{
	unsigned id = simt_lane(), lane = cua_port_lane();
	uint32_t all = simt_warp_mask();
	uint32_t mask = all & (lane % 3 == 1 ? 0x92492492u : ~0x92492492u);

	cua_atomic_add_warp_u32(mask, &cells[cell_of(id)], 1);
	cua_atomic_sub_warp_i64(mask, &cell_i64, (int64_t)id);
	cua_atomic_fetch_mul_warp_u32(mask, &cell_mul, 3);
	cua_atomic_max_warp_f32(mask, &cell_f32, (float)id);
	/* and the lanes of one address may still be others next time */
	cua_atomic_fetch_add_cas_warp_f32(mask, &cell_f32, 0);
}

static const char *warp_quiet_check(void)
{
	uint32_t n = simt_blocks() * simt_block_lanes(), product = 1;

	for (uint32_t i = 0; i < n; i++)
		product *= 3;
	if (cell_i64 != -(int64_t)n * (n - 1) / 2)
		return "the difference is wrong";
	if (cell_mul != product)
		return "the product is wrong";
	if (cell_f32 != (float)(n - 1))
		return "the maximum is wrong";
	return warp_fetch_check();
}

static void block_atomics(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	unsigned id = simt_lane();

	cua_atomic_add_block_u32(&cells[0], 1, s);
	cua_atomic_sub_block_i64(&cell_i64, (int64_t)id, s);
	cua_atomic_mul_block_u32(&cell_mul, 3, s);
	cua_atomic_max_block_f32(&cell_f32, (float)id, s);
	user_add_block(&cells[1], 0, s);
}

/* Everyone writes, arrives by one releasing and acquiring operation; who comes last reads it all. */
static void warp_message(void)
{
	unsigned n = simt_blocks() * simt_block_lanes(), id = simt_lane();

	CUA_WRITE(payload[id], id + 1);
	if (cua_atomic_fetch_add_warp_explicit_u32(simt_warp_mask(), &arrivals, 1, CUA_ACQ_REL,
						   CUA_SCOPE_DEVICE) == n - 1)
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

/* A block's release covers what all its threads have written. */
static void block_message(void)
{
	struct cua_block_scratch *s = simt_shared(sizeof(*s));
	unsigned n = simt_blocks() * simt_block_lanes(), id = simt_lane();

	CUA_WRITE(payload[id], id + 1);
	cua_atomic_add_block_explicit_u32(&arrivals, 1, s, CUA_RELEASE, CUA_SCOPE_DEVICE);
	if (cua_atomic_load_explicit_u32(&arrivals, CUA_ACQUIRE, CUA_SCOPE_DEVICE) == n)
		for (unsigned i = 0; i < n; i++)
			if (CUA_READ(payload[i]) != i + 1)
				simt_fail("a payload is missing");
}

START_TEST(warp_atomics)
{
	struct simt_case fetch = {.name = "fetch_add_warp", .setup = warp_atomics_setup,
				  .body = warp_fetch_add, .check = warp_fetch_check};
	struct simt_case quiet = {.name = "quiet warp atomics", .setup = warp_atomics_setup,
				  .body = warp_quiet, .check = warp_quiet_check};
	struct simt_case block = {.name = "block atomics", .setup = warp_atomics_setup,
				  .body = block_atomics, .check = warp_quiet_check};
	struct simt_case message = {.name = "warp release", .setup = warp_atomics_setup,
				    .body = warp_message};
	struct simt_case relaxed = {.name = "relaxed warp arrival", .setup = warp_atomics_setup,
				    .body = warp_message_relaxed};
	struct simt_case publish = {.name = "block release", .setup = warp_atomics_setup,
				    .body = block_message};

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

/* ---- narrow types, made of the word that contains them ---- */

/* Four objects of one word, and each with another kind of change. */
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
	return narrow.byte[0] == sum && narrow.byte[1] == bits && (int16_t)narrow.half[1] == difference
		       ? NULL
		       : "an update was lost, or changed a neighbour";
}

/* One wins, whatever happens to the neighbours; and the store and the load between them are whole. */
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

/* A flag of one byte hands on what was written; a neighbour is in use at the same time. */
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
		cua_atomic_store_explicit_u8(&narrow.byte[0], 1, CUA_RELEASE, CUA_SCOPE_DEVICE);
	} else if (cua_atomic_compare_exchange_explicit_u8(&narrow.byte[0], id % 2 ? 0 : 1, id % 2 ? 0 : 1,
							   CUA_ACQUIRE, CUA_SCOPE_DEVICE)) {
		if (CUA_READ(narrow_data) != 42)
			simt_fail("the message is missing");
	}
}

START_TEST(narrow_atomics)
{
	struct simt_case add = {.name = "narrow", .setup = narrow_setup, .body = narrow_body,
				.check = narrow_check};
	struct simt_case race = {.name = "narrow compare_exchange", .setup = narrow_race_setup,
				 .body = narrow_race, .check = narrow_race_check};
	struct simt_case message = {.name = "narrow release", .setup = narrow_message_setup,
				    .body = narrow_message};

	explore_shape(add, 3, 1, 3);
	try_shape(add, 2, 40, 10);
	explore_shape(race, 2, 1, 4);
	try_shape(race, 2, 32, 10);
	explore_shape(message, 3, 1, 3);
	try_shape(message, 2, 10, 20);
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

	if (cua_finish_sum_f64(mode, &finish, s, partials, block, simt_blocks(), (double)(1u << block),
			       &total)) {
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
		struct simt_case c = {.name = names[m], .setup = finish_setup, .body = finish_body,
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

/* ---- chained table ---- */

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

/* ---- hash map ---- */

static uint64_t buckets[2 * CUA_HASHMAP_BUCKET_BYTES / 8];
static struct cua_hashmap_counts counts[CUA_HASHMAP_STRIPES];
static struct cua_hashmap_view map_view = {buckets, counts, 1, 0, 8, 8, CUA_HASHMAP_LAYOUT, 0};
static uint64_t won, lost;

static void map_setup(void)
{
	memset(buckets, 0, sizeof(buckets));
	memset(counts, 0, sizeof(counts));
	won = lost = 0;
}

/* Of the first bucket. */
static void map_set_reach(uint32_t reach)
{
	memcpy((char *)buckets + offsetof(struct cua_hashmap_head, reach), &reach, sizeof(reach));
}

/* Values say whose key they are: value = key * 1000 + anything below 1000. */
static void map_mixed(void)
{
	uint64_t key = simt_lane() % 2, value;

	cua_hashmap_insert(&map_view, key, key * 1000 + simt_lane());
	if (cua_hashmap_find(&map_view, key, &value) && value / 1000 != key)
		simt_fail("find gave another key's value");
	if (simt_lane() % 3 == 0)
		cua_hashmap_erase(&map_view, key);
	else
		cua_hashmap_assign(&map_view, key, key * 1000 + 500);
	if (cua_hashmap_find(&map_view, 1 - key, &value) && value / 1000 != 1 - key)
		simt_fail("find gave another key's value");
}

static uint64_t map_size(void)
{
	uint64_t size = 0;

	for (unsigned i = 0; i < CUA_HASHMAP_STRIPES; i++)
		size += counts[i].inserted - counts[i].erased;
	return size;
}

/* Counts the slots in use from the documented layout; fails on a busy one or a key there twice. */
static const char *map_slots(uint64_t *used)
{
	uint64_t keys[10];
	unsigned n = 0;

	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < 5; i++) {
			const char *slot = (const char *)buckets + b * CUA_HASHMAP_BUCKET_BYTES + 8 + i * 24;
			uint32_t state;
			uint64_t key;

			memcpy(&state, slot, sizeof(state));
			memcpy(&key, slot + 8, sizeof(key));
			if ((state & 3) == 1)
				return "a slot is busy for ever";
			if ((state & 3) == 0)
				continue;
			for (unsigned k = 0; k < n; k++)
				if (keys[k] == key)
					return "a key is there twice";
			keys[n++] = key;
		}
	*used = n;
	return NULL;
}

static const char *map_check(void)
{
	uint64_t used = 0;
	const char *wrong = map_slots(&used);

	if (wrong)
		return wrong;
	return used == map_size() ? NULL : "the size is wrong";
}

/* Adds 1 to one key: the sum must be exact. */
static void map_add(void)
{
	cua_hashmap_update(&map_view, 7, 1, CUA_UPDATE_ADD);
}

static const char *map_add_check(void)
{
	const char *wrong = map_check();
	uint64_t sum = 0;

	if (wrong)
		return wrong;
	for (unsigned b = 0; b < map_view.n_buckets; b++)
		for (unsigned i = 0; i < 5; i++) {
			const char *slot = (const char *)buckets + b * CUA_HASHMAP_BUCKET_BYTES + 8 + i * 24;
			uint32_t state;

			memcpy(&state, slot, sizeof(state));
			if ((state & 3) == 2)
				memcpy(&sum, slot + 16, sizeof(sum));
		}
	return sum == (uint64_t)simt_blocks() * simt_block_lanes() ? NULL : "an update was lost";
}

/* Five slots, of which four are taken: exactly one lane gets the last one. */
static void map_last_slot_setup(void)
{
	map_setup();
	for (unsigned i = 0; i < 4; i++) {
		char *slot = (char *)buckets + 8 + i * 24;
		uint32_t state = 4 | 2;
		uint64_t key = 100 + i;

		memcpy(slot, &state, sizeof(state));
		memcpy(slot + 8, &key, sizeof(key));
	}
	map_set_reach(~(uint32_t)0);
	counts[0].inserted = 4;
}

static void map_last_slot(void)
{
	int result = cua_hashmap_insert(&map_view, simt_lane(), 1);

	cua_port_add_u64(result == CUA_HASHMAP_INSERTED ? &won : &lost, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
			 CUA_SPACE_GLOBAL);
	if (result == CUA_HASHMAP_EXISTS)
		simt_fail("a key exists that nobody inserted");
}

static const char *map_last_slot_check(void)
{
	const char *wrong = map_check();

	if (wrong)
		return wrong;
	return won == 1 && won + lost == (uint64_t)simt_blocks() * simt_block_lanes()
		       ? NULL
		       : "not exactly one lane got the last slot";
}

/*
 * One key that comes and goes in one slot with another key in between, and lanes that watch it. The word
 * `phase` says what the writer has finished: 0 there, 1 erasing, 2 gone, 3 inserting, 4 there.
 */
static uint64_t hot, cold;
static uint32_t phase;

static uint32_t phase_now(void)
{
	return cua_port_load_b32(&phase, CUA_ACQUIRE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void phase_set(uint32_t value)
{
	cua_port_store_b32(&phase, value, CUA_RELEASE, CUA_SCOPE_DEVICE, CUA_SPACE_GLOBAL);
}

static void map_history_setup(void)
{
	map_setup();
	phase = 0;
	hot = 1;
	for (cold = 2; cua__hashmap_home(&map_view, cold).slot != cua__hashmap_home(&map_view, hot).slot;
	     cold++)
		;
	memcpy(cua__hashmap_slot(&map_view, cua__hashmap_home(&map_view, hot)),
	       &(struct {
		       uint32_t state, pad;
		       uint64_t key, value;
	       }){4 | 2, 0, hot, hot * 1000},
	       24);
	map_set_reach(1);
	counts[0].inserted = 1;
}

static void map_history(void)
{
	uint32_t before, after;
	uint64_t value = 0;
	int there;

	if (simt_lane() == 0) {
		phase_set(1);
		if (!cua_hashmap_erase(&map_view, hot))
			simt_fail("erase did not find the key");
		phase_set(2);
		cua_hashmap_insert(&map_view, cold, cold * 1000);
		cua_hashmap_erase(&map_view, cold);
		phase_set(3);
		if (cua_hashmap_insert(&map_view, hot, hot * 1000 + 1) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		phase_set(4);
		return;
	}
	before = phase_now();
	there = cua_hashmap_find(&map_view, hot, &value);
	after = phase_now();
	if (there && value / 1000 != hot)
		simt_fail("find gave another key's value");
	if (there && before >= 2 && value % 1000 != 1)
		simt_fail("find gave a value from before the erase");
	if (before == 2 && after == 2 && there)
		simt_fail("find found an absent key");
	if (((before == 0 && after == 0) || before == 4) && !there)
		simt_fail("find did not find a present key");
}

/* Keys of which each has one writer, which knows what it must see. */
static void map_own(void)
{
	uint64_t key = 100 + simt_lane(), value = 0;

	for (int again = 0; again < 2; again++) {
		if (cua_hashmap_insert(&map_view, key, key * 1000) != CUA_HASHMAP_INSERTED)
			simt_fail("insert of an absent key did not insert it");
		if (!cua_hashmap_find(&map_view, key, &value) || value != key * 1000)
			simt_fail("find did not find the lane's own key");
		if (cua_hashmap_update(&map_view, key, 5, CUA_UPDATE_ADD) != CUA_HASHMAP_EXISTS ||
		    !cua_hashmap_find(&map_view, key, &value) || value != key * 1000 + 5)
			simt_fail("the update of the lane's own key is not there");
		if (!cua_hashmap_erase(&map_view, key) || cua_hashmap_find(&map_view, key, &value))
			simt_fail("erase did not remove the lane's own key");
	}
}

/* A plain message, and a value or a key that says it is there. */
static uint64_t message[2];

static void map_message_setup(void)
{
	map_history_setup();
	message[0] = message[1] = 0;
}

static void map_message(void)
{
	uint64_t value;

	if (simt_lane() == 0) {
		CUA_WRITE(message[0], 1);
		cua_hashmap_assign(&map_view, hot, hot * 1000 + 1);
		CUA_WRITE(message[1], 1);
		cua_hashmap_insert(&map_view, cold, 1);
		return;
	}
	if (cua_hashmap_find(&map_view, hot, &value) && value % 1000 == 1 && CUA_READ(message[0]) != 1)
		simt_fail("the value came before the message");
	if (cua_hashmap_contains(&map_view, cold) && CUA_READ(message[1]) != 1)
		simt_fail("the key came before the message");
}

START_TEST(hashmap)
{
	struct simt_case history = {.name = "map, history", .setup = map_history_setup,
				    .body = map_history, .check = map_check};
	struct simt_case own = {.name = "map, own keys", .setup = map_setup, .body = map_own,
				.check = map_check};
	struct simt_case messages = {.name = "map, messages", .setup = map_message_setup,
				     .body = map_message, .check = map_check};

	struct simt_case mixed = {.name = "map, mixed", .setup = map_setup, .body = map_mixed,
				  .check = map_check};
	struct simt_case add = {.name = "map, add", .setup = map_setup, .body = map_add,
				.check = map_add_check};
	struct simt_case last = {.name = "map, last slot", .setup = map_last_slot_setup,
				 .body = map_last_slot, .check = map_last_slot_check};

	explore_shape(mixed, 2, 1, 2);
	explore_shape(add, 3, 1, 2);
	explore_shape(last, 2, 1, 3);
	explore_shape(history, 2, 1, 3);
	explore_shape(own, 2, 1, 1);
	explore_shape(messages, 2, 1, 2);
	try_shape(history, 1, 8, 50);
	try_shape(history, 3, 3, 50);
	try_shape(own, 1, 5, 20);
	try_shape(messages, 2, 20, 5);
	for (map_view.n_buckets = 1; map_view.n_buckets <= 2; map_view.n_buckets++) {
		try_shape(mixed, 1, 32, 10);
		try_shape(mixed, 3, 20, 10);
		try_shape(add, 2, 40, 5);
	}
	map_view.n_buckets = 1;
	try_shape(last, 2, 16, 10);
}
END_TEST

int main(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("skipped: the sanitizers do not follow coroutines\n");
	return 77;
#else
	Suite *suite = suite_create("simt");
	TCase *tc = tcase_create("simt");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, checker_catches);
	tcase_add_test(tc, spinlock);
	tcase_add_test(tc, timeouts);
	tcase_add_test(tc, append);
	tcase_add_test(tc, block_reduce);
	tcase_add_test(tc, warp_atomics);
	tcase_add_test(tc, narrow_atomics);
	tcase_add_test(tc, finishes);
	suite_add_tcase(suite, tc);
	/* cases of their own, for check_simt_planted.sh */
	tc = tcase_create("ticketlock");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, ticket);
	suite_add_tcase(suite, tc);
	tc = tcase_create("mcslock");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, mcs);
	suite_add_tcase(suite, tc);
	tc = tcase_create("rwlock");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, rw);
	suite_add_tcase(suite, tc);
	tc = tcase_create("seqlock");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, seq);
	suite_add_tcase(suite, tc);
	tc = tcase_create("semaphore");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, semaphores);
	suite_add_tcase(suite, tc);
	tc = tcase_create("chained");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, chained);
	suite_add_tcase(suite, tc);
	tc = tcase_create("combine");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, combine);
	suite_add_tcase(suite, tc);
	tc = tcase_create("hashmap");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, hashmap);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
#endif
}
