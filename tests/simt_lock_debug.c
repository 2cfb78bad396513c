/* SPDX-License-Identifier: MIT */
/* Lock debugging, in a translation unit with CUA_LOCK_DEBUG. */
#define CUA_LOCK_DEBUG 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuatomic/combine.h>
#include <cuatomic/lock.h>

#include "simt_suites.h"

enum { RECORDS = 16, VERDICTS = 8, REPORTS = 64 };

static struct cua_lock_record records[RECORDS];
static struct cua_lock_verdict verdicts[VERDICTS];
static struct cua_hang_report reports[REPORTS];
static struct cua_lock_debug table;

struct locks {
	struct cua_spinlock spin[2];
	struct cua_ticketlock ticket;
	struct cua_rwlock rw;
	struct cua_semaphore semaphore;
};
static struct locks arena[1024];
static struct locks *locks;
static uint64_t sum, awaited, limit_ns;

/* Two spinlocks that hash to the same record, at any load address. */
static struct locks *locks_that_collide(void)
{
	static struct locks *found;

	for (struct locks *p = arena; !found; p++) {
		ck_assert(p < arena + sizeof(arena) / sizeof(arena[0]));
		if (((cua_hash_u64((uintptr_t)&p->spin[0], CUA_LOCK_SPIN) ^
		      cua_hash_u64((uintptr_t)&p->spin[1], CUA_LOCK_SPIN)) &
		     (RECORDS - 1)) == 0)
			found = p;
	}
	return found;
}

static void setup(void)
{
	memset(records, 0, sizeof(records));
	memset(verdicts, 0, sizeof(verdicts));
	memset(reports, 0, sizeof(reports));
	locks = locks_that_collide();
	memset(locks, 0, sizeof(*locks));
	locks->semaphore.count = 2;
	sum = 0;
	cua_lock_debug_init(&table, RECORDS, records, VERDICTS, verdicts, REPORTS, reports,
			    limit_ns);
	/* an attach here would count as an access of a lane */
	cua__lock_debug_unit = (uint64_t)(uintptr_t)&table;
}

static const char *nobody_holds(void)
{
	for (int i = 0; i < RECORDS; i++) {
		if (records[i].state & 3)
			return "a record was left";
	}
	return NULL;
}

static const char *clean(void)
{
	if (table.n_verdicts)
		return "a verdict on right use";
	if (table.n_dropped)
		return "a record was dropped";
	return nobody_holds();
}

/* ---- correct use ---- */

static void right_use(void)
{
	unsigned id = simt_block() * simt_block_lanes() + simt_lane_in_block();
	struct cua_spinlock *mine = &locks->spin[id & 1];

	cua_spinlock_lock(mine);
	cua_spinlock_unlock(mine);
	CUA_WITH_LOCK (&locks->spin[0]) {
		CUA_WITH_LOCK (&locks->spin[1])
			CUA_WRITE(sum, CUA_READ(sum) + 1);
	}
}

static const char *right_use_check(void)
{
	if (sum != (uint64_t)simt_blocks() * simt_block_lanes())
		return "an update was lost";
	return clean();
}

static void mixed_use(void)
{
	unsigned id = simt_block() * simt_block_lanes() + simt_lane_in_block();

	CUA_WITH_TICKETLOCK (&locks->ticket) {
	}
	cua_semaphore_lock(&locks->semaphore);
	if (id % 3)
		CUA_WITH_READ_LOCK (&locks->rw) {
		}
	else
		CUA_WITH_WRITE_LOCK (&locks->rw) {
		}
	cua_semaphore_unlock(&locks->semaphore);
}

/* ---- mistakes, and a lane that reads the log concurrently ---- */

static void unlocks_free(void)
{
	unsigned id = simt_lane_in_block();

	if (simt_block() == 0) {
		cua_spinlock_unlock(&locks->spin[id & 1]);
		return;
	}
	for (unsigned i = 0; i < simt_block_lanes() && i < VERDICTS; i++) {
		while (!cua_port_load_b64(&verdicts[i].ready, CUA_ACQUIRE, CUA_SCOPE_SYSTEM,
					  CUA_SPACE_GENERIC))
			cua_port_pause(100);
		/* plain accesses: only the release of `ready` orders them */
		if (CUA_READ(verdicts[i].mistake) != CUA_LOCK_UNLOCK_FREE ||
		    CUA_READ(verdicts[i].owner_clock) != 0 ||
		    CUA_READ(verdicts[i].offender.block) != 0)
			simt_fail("not the verdict");
	}
}

static const char *unlocks_free_check(void)
{
	uint64_t seen = 0;

	if (table.n_verdicts != simt_block_lanes())
		return "not a verdict for each";
	for (unsigned i = 0; i < simt_block_lanes() && i < VERDICTS; i++)
		seen |= (uint64_t)1 << verdicts[i].offender.thread;
	if (simt_block_lanes() <= VERDICTS && seen != ((uint64_t)1 << simt_block_lanes()) - 1)
		return "an offender is missing";
	return nobody_holds();
}

static void stranger(void)
{
	unsigned id = simt_lane_in_block();

	if (simt_block() || id > 1)
		return;
	if (id == 0)
		cua_rwlock_write_lock(&locks->rw);
	cua_port_sync_warp(3);
	if (id == 1)
		cua_rwlock_write_unlock(&locks->rw);
}

static const char *stranger_check(void)
{
	if (table.n_verdicts != 1 || verdicts[0].mistake != CUA_LOCK_STRANGER_UNLOCK ||
	    verdicts[0].kind != CUA_LOCK_WRITE || verdicts[0].owner.thread != 0 ||
	    verdicts[0].offender.thread != 1 ||
	    verdicts[0].address != (uint64_t)(uintptr_t)&locks->rw)
		return "not the verdict";
	return nobody_holds();
}

/* The lowest lane holds the lock that its warp then combines. */
CUA_DEFINE_COMBINE(add_up, uint64_t, uint64_t, { *state += argument; });

static void combines_held(void)
{
	if (simt_lane_in_block() == 2)
		cua_spinlock_lock(&locks->spin[0]);
	add_up_warp(&locks->spin[0], &sum, 1, simt_warp_mask());
}

/* ---- a hang: the first lane holds the lock until every other lane has reported ---- */

static void hang(void)
{
	if (simt_block() == 0 && simt_lane_in_block() == 0) {
		cua_spinlock_lock(&locks->spin[0]);
		CUA_WRITE(sum, 1);
		while (cua_port_load_b64(&table.n_reports, CUA_RELAXED, CUA_SCOPE_SYSTEM,
					 CUA_SPACE_GENERIC) < awaited)
			cua_port_pause(500);
		cua_spinlock_unlock(&locks->spin[0]);
		return;
	}
	while (!cua_spinlock_locked(&locks->spin[0]) &&
	       cua_port_load_b64(&table.n_reports, CUA_RELAXED, CUA_SCOPE_SYSTEM,
				 CUA_SPACE_GENERIC) < awaited)
		cua_port_pause(100);
	if (simt_lane_in_block() & 1) {
		CUA_WITH_LOCK (&locks->spin[0])
			CUA_WRITE(sum, CUA_READ(sum) + 1);
	} else {
		cua_spinlock_lock(&locks->spin[0]);
		CUA_WRITE(sum, CUA_READ(sum) + 1);
		cua_spinlock_unlock(&locks->spin[0]);
	}
}

static const char *hang_check(void)
{
	/* a waiter may wait for another waiter as long as for the holder, but reports once */
	if (table.n_reports != awaited || sum != awaited + 1)
		return "not a report for each";
	for (uint64_t i = 0; i < awaited; i++) {
		if (!reports[i].ready || reports[i].kind != CUA_LOCK_SPIN ||
		    reports[i].waited_ns < limit_ns ||
		    (!reports[i].waiter.block && !reports[i].waiter.thread))
			return "not the report";
		for (uint64_t j = 0; j < i; j++) {
			if (reports[i].waiter.block == reports[j].waiter.block &&
			    reports[i].waiter.thread == reports[j].waiter.thread)
				return "two reports of one wait";
		}
	}
	return clean();
}

/* ---- running ---- */

static uint64_t seed_of_run(void)
{
	const char *given = getenv("CUA_TEST_SEED");
	static uint64_t seed;

	if (!seed) {
		seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u;
		printf("simt, lock_debug: CUA_TEST_SEED=%llu\n", (unsigned long long)seed);
		fflush(stdout);
	}
	return seed;
}

static void expect(enum simt_verdict expected, struct simt_case c, unsigned blocks, unsigned lanes,
		   unsigned runs)
{
	static const enum simt_policy policies[] = {SIMT_RANDOM, SIMT_STARVE_LANE, SIMT_STARVE_WARP,
						    SIMT_LOCKSTEP};

	c.shape.blocks = blocks;
	c.shape.block_lanes = lanes;
	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		struct simt_report r = simt_random(&c, policies[i], seed_of_run(), runs);

		ck_assert_msg(r.verdict == expected, "%s, %u x %u lanes: %s: %s (seed %llu)",
			      c.name, blocks, lanes, simt_verdict_name(r.verdict), r.message,
			      (unsigned long long)r.seed);
	}
}

START_TEST(recording)
{
	struct simt_case right = {.name = "right use",
				  .setup = setup,
				  .body = right_use,
				  .check = right_use_check,
				  .max_steps = 20000000};
	struct simt_case mixed = {.name = "mixed use",
				  .setup = setup,
				  .body = mixed_use,
				  .check = clean,
				  .max_steps = 20000000};
	struct simt_report r;

	expect(SIMT_OK, right, 1, 4, 30);
	expect(SIMT_OK, right, 2, 20, 3);
	expect(SIMT_OK, mixed, 2, 2, 50);
	expect(SIMT_OK, mixed, 1, 6, 20);
	right.shape.blocks = 2;
	right.shape.block_lanes = 1;
	r = simt_explore(&right, 2, 100000);
	ck_assert_msg(r.verdict == SIMT_OK, "%s: %s", simt_verdict_name(r.verdict), r.message);
}
END_TEST

START_TEST(mistakes)
{
	struct simt_case freed = {.name = "unlock free",
				  .setup = setup,
				  .body = unlocks_free,
				  .check = unlocks_free_check,
				  .max_steps = 20000000};
	struct simt_case strange = {.name = "stranger",
				    .setup = setup,
				    .body = stranger,
				    .check = stranger_check,
				    .max_steps = 20000000};
	struct simt_case combined = {.name = "combined",
				     .setup = setup,
				     .body = combines_held,
				     .check = clean,
				     .max_steps = 20000};

	expect(SIMT_OK, freed, 2, 1, 20);
	expect(SIMT_OK, freed, 2, 8, 20);
	expect(SIMT_OK, freed, 2, 12, 5);
	expect(SIMT_OK, strange, 1, 2, 50);
	/* the log names the mistake */
	expect(SIMT_LIVELOCK, combined, 1, 4, 1);
	ck_assert_uint_eq(table.n_verdicts, 1);
	ck_assert_int_eq((int)verdicts[0].mistake, CUA_LOCK_SELF_RELOCK);
	ck_assert_uint_eq(verdicts[0].owner.thread, 2);
	ck_assert_uint_eq(verdicts[0].offender.thread, 2);
}
END_TEST

START_TEST(hangs)
{
	struct simt_case c = {.name = "hang",
			      .setup = setup,
			      .body = hang,
			      .check = hang_check,
			      .max_steps = 20000000};

	limit_ns = 2000;
	awaited = 1;
	expect(SIMT_OK, c, 2, 1, 20);
	awaited = 5;
	expect(SIMT_OK, c, 1, 6, 20);
	awaited = 39;
	expect(SIMT_OK, c, 2, 20, 3);
	limit_ns = 0;
}
END_TEST

TCase *simt_lock_debug_cases(void)
{
	TCase *tc = simt_tcase("lock_debug");

	tcase_add_test(tc, recording);
	tcase_add_test(tc, mistakes);
	tcase_add_test(tc, hangs);
	return tc;
}
