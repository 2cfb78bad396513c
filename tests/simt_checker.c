/* SPDX-License-Identifier: MIT */
/*
 * The checker must find planted bugs: a counter under a lock, with each bug that the checker is
 * for.
 */
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

TCase *simt_checker_cases(void)
{
	TCase *tc = simt_tcase("checker");

	tcase_add_test(tc, checker_catches);
	tcase_add_test(tc, checker_accepts);
	return tc;
}
