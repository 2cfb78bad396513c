/* SPDX-License-Identifier: MIT */
/* Lock stripes, and the atomics built on them. */
#include <cuatomic/stripe.h>

#include "simt_suites.h"

#define STRIPED 6

struct wide {
	uint64_t word[3];
};

static struct cua_stripe stripe_locks[4];
static struct cua_stripes stripes;
static struct wide wide[STRIPED];
static unsigned n_stripes;

CUA_FN struct wide wide_sum(struct wide a, struct wide b)
{
	for (int i = 0; i < 3; i++)
		a.word[i] += b.word[i];
	return a;
}
CUA_DEFINE_ATOMIC_STRIPED(wide_add, struct wide, wide_sum(old, operand))
CUA_DEFINE_ATOMIC_STRIPED_TYPE(wide, struct wide)

static void stripes_setup(void)
{
	memset(wide, 0, sizeof(wide));
	for (unsigned i = 0; i < 4; i++)
		cua_stripe_init(&stripe_locks[i]);
	if (cua_stripes_init(stripe_locks, n_stripes, &stripes))
		simt_fail("the view could not be made");
}

static const char *stripes_check(void)
{
	for (unsigned i = 0; i < n_stripes; i++)
		if (stripe_locks[i].lock.word)
			return "a stripe is held at the end";
	return NULL;
}

static const struct wide one_two_three = {{1, 2, 3}};

/* Each lane moves 1 between two objects, in either order of the two. */
static void stripes_move(void)
{
	struct wide *from = &wide[simt_lane() % STRIPED],
		    *to = &wide[(simt_lane() * 5 + 1) % STRIPED];

	cua_stripes_lock_two(&stripes, from, to);
	CUA_WRITE(from->word[0], CUA_READ(from->word[0]) - 1);
	CUA_WRITE(to->word[0], CUA_READ(to->word[0]) + 1);
	cua_stripes_unlock_two(&stripes, to, from);
}

static const char *moves_check(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < STRIPED; i++)
		sum += wide[i].word[0];
	return sum ? "a move was half done" : stripes_check();
}

/* All operations on a single object. */
static void stripes_ways(void)
{
	struct wide old, next;

	switch (simt_lane() % 5) {
	case 0: old = wide_add(stripes, &wide[0], one_two_three); break;
	case 1:
		CUA_WITH_STRIPE (&stripes, &wide[0]) {
			CUA_WRITE(wide[0], wide_sum(CUA_READ(wide[0]), one_two_three));
			if (simt_lane() % 2)
				break;
		}
		return;
	case 2:
		old = wide_load(stripes, &wide[0]);
		for (;;) {
			next = wide_compare_exchange(stripes, &wide[0], old,
						     wide_sum(old, one_two_three));
			if (!memcmp(&next, &old, sizeof(old)))
				break;
			old = next;
		}
		break;
	case 3:
		while (!cua_stripes_lock_for(&stripes, &wide[0], 300))
			cua_port_pause(1);
		old = CUA_READ(wide[0]);
		CUA_WRITE(wide[0], wide_sum(old, one_two_three));
		cua_stripes_unlock(&stripes, &wide[0]);
		break;
	default:
		while (!cua_stripes_trylock(&stripes, &wide[0]))
			cua_port_pause(1);
		old = CUA_READ(wide[0]);
		CUA_WRITE(wide[0], wide_sum(old, one_two_three));
		cua_stripes_unlock(&stripes, &wide[0]);
	}
	if (old.word[1] != 2 * old.word[0] || old.word[2] != 3 * old.word[0])
		simt_fail("a value was torn");
}

static const char *ways_check(void)
{
	uint64_t n = (uint64_t)simt_blocks() * simt_block_lanes();

	if (wide[0].word[0] != n || wide[0].word[1] != 2 * n || wide[0].word[2] != 3 * n)
		return "an update was lost";
	return stripes_check();
}

/* A striped atomic publishes the earlier writes of its lane. */
static void stripes_message(void)
{
	if (simt_lane() == 0) {
		CUA_WRITE(counter, 7);
		wide_store(stripes, &wide[1], one_two_three);
	} else if (wide_load(stripes, &wide[1]).word[2] == 3 && CUA_READ(counter) != 7) {
		simt_fail("the value came before the message");
	}
}

static void message_setup(void)
{
	stripes_setup();
	counter = 0;
}

/* Planted: taken in the order of the arguments. */
static void bug_two_in_any_order(void)
{
	const struct wide *p = &wide[simt_lane() % 2], *q = &wide[(simt_lane() + 1) % 2];

	cua_spinlock_lock(&stripe_locks[p - wide].lock);
	cua_spinlock_lock(&stripe_locks[q - wide].lock);
	cua_spinlock_unlock(&stripe_locks[q - wide].lock);
	cua_spinlock_unlock(&stripe_locks[p - wide].lock);
}

/* Planted: an access past the stripes. */
static void bug_past_the_stripe(void)
{
	if (simt_lane() == 0)
		CUA_WRITE(wide[0].word[1], 5);
	else
		(void)wide_add(stripes, &wide[0], one_two_three);
}

START_TEST(stripe_cases)
{
	struct simt_case move = {.name = "stripes, two at once",
				 .setup = stripes_setup,
				 .body = stripes_move,
				 .check = moves_check};
	struct simt_case ways = {.name = "stripes, all ways",
				 .setup = stripes_setup,
				 .body = stripes_ways,
				 .check = ways_check};
	struct simt_case message = {.name = "stripes, messages",
				    .setup = message_setup,
				    .body = stripes_message,
				    .check = stripes_check};
	struct simt_case bug = {.setup = stripes_setup, .max_steps = 100000};

	for (n_stripes = 1; n_stripes <= 4; n_stripes++) {
		explore_shape(move, 3, 1, 2);
		explore_shape(ways, 3, 1, 2);
		explore_shape(message, 2, 1, 3);
		try_shape(move, 2, 40, 4);
		try_shape(ways, 3, 33, 4);
		try_shape(message, 2, 20, 5);
	}
	n_stripes = 4;
	bug.name = "two stripes in any order", bug.body = bug_two_in_any_order;
	expect_caught(bug, 2, 8, SIMT_LIVELOCK, "no end");
	bug.name = "an access past the stripes", bug.body = bug_past_the_stripe;
	expect_caught(bug, 1, 4, SIMT_RACE, "plain");
}
END_TEST

TCase *simt_stripe_cases(void)
{
	TCase *tc = simt_tcase("stripe");

	tcase_add_test(tc, stripe_cases);
	return tc;
}
