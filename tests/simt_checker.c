/* SPDX-License-Identifier: MIT */
/*
 * The checker must find planted bugs: a counter under a lock, with each bug that the checker is
 * for. It must show the outcomes of small programs that the memory model allows, and no others.
 */
#include <string.h>

#include <cuatomic/spinlock.h>

#include "simt_suites.h"

static void take(enum cua_order order)
{
	while (cua_port_cas_b32(&counter_lock.word, 0, 1, order, CUA_SCOPE_DEVICE,
				CUA_SPACE_GENERIC))
		cua_port_pause(1);
}

static void give(enum cua_order order)
{
	cua_port_store_b32(&counter_lock.word, 0, order, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

/* Another correct way to order a lock. */
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
	CUA_WITH_LOCK_SCOPE (&counter_lock, CUA_SCOPE_BLOCK) {
		increment();
	}
}

static void bug_early_unlock(void)
{
	uint64_t v;

	cua_spinlock_lock(&counter_lock);
	v = CUA_READ(counter);
	cua_spinlock_unlock(&counter_lock);
	CUA_WRITE(counter, v + 1);
}

static void bug_sync_in_spin(void)
{
	int done = 0;

	while (!done) {
		if (cua_spinlock_trylock(&counter_lock)) {
			increment();
			cua_spinlock_unlock(&counter_lock);
			done = 1;
		} else {
			cua_port_sync_warp(0xffffffffu);
		}
	}
}

static void bug_never_unlocked(void)
{
	cua_spinlock_lock(&counter_lock);
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

START_TEST(checker_catches)
{
	expect_caught(counter_case("a missing acquire", bug_no_acquire), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("a missing release", bug_no_release), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("a missing fence", bug_no_fence), 2, 32, SIMT_RACE, "plain");
	expect_caught(counter_case("too narrow a fence", bug_narrow_fence), 2, 32, SIMT_RACE,
		      "plain");
	expect_caught(counter_case("a block-scope lock used across blocks", bug_block_scope), 2, 1,
		      SIMT_RACE, "block scope");
	expect_caught(counter_case("a lock released early", bug_early_unlock), 1, 2, SIMT_RACE,
		      "plain");
	expect_caught(counter_case("a full-mask sync inside a spin", bug_sync_in_spin), 1, 32,
		      SIMT_DEADLOCK, "wait");
	expect_caught(counter_case("a lock never released", bug_never_unlocked), 1, 2,
		      SIMT_LIVELOCK, "no end");
	expect_caught(counter_case("a lost update", bug_lost_update), 1, 32, SIMT_FAILED, "lost");
	expect_caught(counter_case("a barrier in a branch", bug_barrier_in_branch), 1, 64,
		      SIMT_LIVELOCK, "no end");
}
END_TEST

/* Correct programs that resemble a bug. */
START_TEST(checker_accepts)
{
	struct simt_case fences = counter_case("relaxed lock with fences", by_fences);

	explore_shape(fences, 1, 2, 4);
	explore_shape(fences, 3, 1, 3);
	try_shape(fences, 2, 64, 3);
	try_shape(fences, 4, 33, 2);
	/* a block-scope lock is correct within a single block */
	try_shape(counter_case("block scope, one block", bug_block_scope), 1, 96, 3);
}
END_TEST

/* ---- loads of older stores ---- */

/* Each lane is in a block of its own, stores into words, and notes what it loads. */
static uint32_t words[4], noted[4][2];
static uint64_t __attribute__((aligned(16))) pair[2];

static void words_setup(void)
{
	memset(words, 0, sizeof(words));
	memset(noted, 0, sizeof(noted));
	memset(pair, 0, sizeof(pair));
}

static void put(unsigned word, uint32_t value, enum cua_order order)
{
	cua_port_store_b32(&words[word], value, order, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

static uint32_t get(unsigned word, enum cua_order order)
{
	return cua_port_load_b32(&words[word], order, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

static void note(unsigned i, uint32_t value)
{
	noted[simt_lane()][i] = value;
}

/* A message in word 0, announced by word 1. */
static void pass_message(enum cua_order store, enum cua_order load)
{
	if (simt_lane() == 0) {
		put(0, 1, CUA_RELAXED);
		put(1, 1, store);
	} else if (get(1, load) && !get(0, CUA_RELAXED)) {
		simt_fail("an old message");
	}
}

static void message_relaxed(void)
{
	pass_message(CUA_RELAXED, CUA_RELAXED);
}

static void message_no_release(void)
{
	pass_message(CUA_RELAXED, CUA_ACQUIRE);
}

static void message_no_acquire(void)
{
	pass_message(CUA_RELEASE, CUA_RELAXED);
}

static void message_ordered(void)
{
	pass_message(CUA_RELEASE, CUA_ACQUIRE);
}

/* The first of two announcements orders the lane that loads it, whatever the second is. */
static void message_overwritten(void)
{
	if (simt_lane() == 0) {
		put(0, 1, CUA_RELAXED);
		put(1, 1, CUA_RELEASE);
	} else if (simt_lane() == 1) {
		put(1, 2, CUA_RELAXED);
	} else if (get(1, CUA_ACQUIRE) == 1 && !get(0, CUA_RELAXED)) {
		simt_fail("an old message");
	}
}

/* A read-modify-write of the announcement continues its order. */
static void message_continued(void)
{
	if (simt_lane() == 0) {
		put(0, 1, CUA_RELAXED);
		put(1, 1, CUA_RELEASE);
	} else if (simt_lane() == 1) {
		(void)cua_port_fetch_or_b32(&words[1], 2, CUA_RELAXED, CUA_SCOPE_DEVICE,
					    CUA_SPACE_GENERIC);
	} else if (get(1, CUA_ACQUIRE) & 1 && !get(0, CUA_RELAXED)) {
		simt_fail("an old message");
	}
}

/* Each of two lanes stores a word, then loads that of the other. */
static void store_and_load(enum cua_order fence)
{
	const unsigned own = simt_lane();

	put(own, 1, CUA_RELAXED);
	cua_port_fence(fence, CUA_SCOPE_DEVICE);
	note(0, get(1 - own, CUA_RELAXED));
}

static void both_acq_rel(void)
{
	store_and_load(CUA_ACQ_REL);
}

static void both_seq_cst(void)
{
	store_and_load(CUA_SEQ_CST);
}

static const char *both_check(void)
{
	return noted[0][0] || noted[1][0] ? NULL : "both lanes missed a store";
}

/* Lanes 0 and 1 store, lanes 2 and 3 load both words, in different orders. */
static void read_both(enum cua_order load, enum cua_order fence)
{
	const unsigned lane = simt_lane();

	if (lane < 2) {
		put(lane, 1, CUA_RELAXED);
		return;
	}
	note(0, get(lane - 2, load));
	cua_port_fence(fence, CUA_SCOPE_DEVICE);
	note(1, get(3 - lane, CUA_RELAXED));
}

static void orders_acquire(void)
{
	read_both(CUA_ACQUIRE, CUA_ACQ_REL);
}

static void orders_seq_cst(void)
{
	read_both(CUA_RELAXED, CUA_SEQ_CST);
}

static const char *orders_check(void)
{
	return noted[2][0] && !noted[2][1] && noted[3][0] && !noted[3][1]
		       ? "two lanes saw the stores in different orders"
		       : NULL;
}

/* Loads of a word never go back: neither those of a lane, nor those that happen after them. */
static void never_back(void)
{
	uint32_t first;

	if (simt_lane() == 0) {
		for (uint32_t i = 1; i < 4; i++)
			put(0, i, CUA_RELAXED);
	} else if (simt_lane() == 1) {
		first = get(0, CUA_RELAXED);
		put(1, first, CUA_RELEASE);
		if (get(0, CUA_RELAXED) < first)
			simt_fail("a load went back");
	} else {
		first = get(1, CUA_ACQUIRE);
		if (get(0, CUA_RELAXED) < first)
			simt_fail("a load went back behind that of another lane");
	}
}

/* A load of 16 bytes returns a single store, and its halves never go back. */
static void never_torn(void)
{
	if (simt_lane() == 0) {
		for (uint64_t i = 1; i < 4; i++)
			cua_port_store_b128(pair, (cua__uint128)i << 64 | i, CUA_RELAXED,
					    CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
	} else {
		const uint64_t low =
			cua_port_load_b64(pair, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		const cua__uint128 both =
			cua_port_load_b128(pair, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);

		if ((uint64_t)both != (uint64_t)(both >> 64) || (uint64_t)both < low)
			simt_fail("a torn load");
	}
}

/* A word that is stored by halves is loaded by halves: the lane sees the second without the first. */
static void halves(void)
{
	if (simt_lane() == 0) {
		for (unsigned i = 0; i < 2; i++)
			cua_port_store_b64(&pair[i], 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
					   CUA_SPACE_GENERIC);
	} else {
		const cua__uint128 both =
			cua_port_load_b128(pair, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);

		if (both >> 64 && !(uint64_t)both)
			simt_fail("a torn load");
	}
}

static struct simt_case words_case(const char *name, void (*body)(void), const char *(*check)(void))
{
	return (struct simt_case){.name = name, .setup = words_setup, .body = body, .check = check};
}

START_TEST(checker_shows_older_stores)
{
	expect_caught(words_case("a relaxed message", message_relaxed, NULL), 2, 1, SIMT_FAILED,
		      "old message");
	expect_caught(words_case("a message without release", message_no_release, NULL), 2, 1,
		      SIMT_FAILED, "old message");
	expect_caught(words_case("a message without acquire", message_no_acquire, NULL), 2, 1,
		      SIMT_FAILED, "old message");
	expect_caught(words_case("two stores", both_acq_rel, both_check), 2, 1, SIMT_FAILED,
		      "both");
	expect_caught(words_case("halves", halves, NULL), 2, 1, SIMT_FAILED, "torn load");
	expect_caught(words_case("two orders", orders_acquire, orders_check), 4, 1, SIMT_FAILED,
		      "different orders");
}
END_TEST

START_TEST(checker_shows_no_other_stores)
{
	const struct {
		struct simt_case c;
		unsigned lanes;
	} all[] = {
		{words_case("message", message_ordered, NULL), 2},
		{words_case("message, overwritten", message_overwritten, NULL), 3},
		{words_case("message, continued", message_continued, NULL), 3},
		{words_case("two stores, fences", both_seq_cst, both_check), 2},
		{words_case("two orders, fences", orders_seq_cst, orders_check), 4},
		{words_case("never back", never_back, NULL), 3},
		{words_case("never torn", never_torn, NULL), 2},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		explore_shape(all[i].c, all[i].lanes, 1, 4);
		try_shape(all[i].c, all[i].lanes, 1, 1000);
	}
}
END_TEST

TCase *simt_checker_cases(void)
{
	TCase *tc = simt_tcase("checker");

	tcase_add_test(tc, checker_catches);
	tcase_add_test(tc, checker_accepts);
	tcase_add_test(tc, checker_shows_older_stores);
	tcase_add_test(tc, checker_shows_no_other_stores);
	return tc;
}
