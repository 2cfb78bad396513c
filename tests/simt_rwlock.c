/* SPDX-License-Identifier: MIT */
/* The readers-writer lock. */
#include <cuatomic/rwlock.h>

#include "simt_suites.h"

static struct cua_rwlock rwlock;
static uint64_t twin; /* equal to counter outside of writers' sections */
static uint32_t readers_inside;

static void rw_setup(void)
{
	cua_rwlock_init(&rwlock);
	/* the words wrap around */
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

/* Each lane writes once and reads, before or after. */
static void rw_body(void)
{
	for (unsigned i = 0; i < 2; i++) {
		if ((i ^ simt_lane()) & 1)
			TAKE_ONE_WAY(CUA_WITH_READ_LOCK (&rwlock), cua_rwlock_read_lock(&rwlock),
				     cua_rwlock_read_trylock(&rwlock),
				     cua_rwlock_read_lock_for(&rwlock, 300),
				     cua_rwlock_read_unlock(&rwlock), rw_read());
		else
			TAKE_ONE_WAY(CUA_WITH_WRITE_LOCK (&rwlock), cua_rwlock_write_lock(&rwlock),
				     cua_rwlock_write_trylock(&rwlock),
				     cua_rwlock_write_lock_for(&rwlock, 300),
				     cua_rwlock_write_unlock(&rwlock), rw_write());
	}
}

/*
 * Writers acquire and release, by lock and by trylock, while a lane reads twice and must see every
 * writer.
 */
static void rw_phases_body(void)
{
	if (simt_lane() == 0) {
		for (int i = 0; i < 2; i++)
			CUA_WITH_READ_LOCK (&rwlock) {
				rw_read();
			}
	} else {
		if (cua_rwlock_write_trylock(&rwlock))
			cua_rwlock_write_unlock(&rwlock);
		CUA_WITH_WRITE_LOCK (&rwlock) {
			rw_write();
		}
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

/* Readers may hold the lock together: each waits inside for another reader. */
static void rw_together_body(void)
{
	CUA_WITH_READ_LOCK (&rwlock) {
		cua_port_add_u32(&readers_inside, 1, CUA_RELAXED, CUA_SCOPE_DEVICE,
				 CUA_SPACE_GENERIC);
		while (cua_port_load_b32(&readers_inside, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC) < simt_blocks() * simt_block_lanes())
			cua_port_pause(1);
	}
}

/*
 * Planted: a trylock for writing that tests for readers, takes the turn, and does not test again.
 */
static void bug_rw_no_second_look(void)
{
	const uint32_t mark = CUA__RWLOCK_WRITER;

	if (simt_lane() % 2) {
		CUA_WITH_READ_LOCK (&rwlock) {
			rw_read();
		}
		return;
	}
#define AT CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC
	for (;;) {
		uint32_t turn = cua_port_load_b32(&rwlock.writers_out, CUA_ACQUIRE, AT);
		uint32_t in = cua_port_load_b32(&rwlock.readers_in, CUA_RELAXED, AT);

		if ((in & ~CUA__RWLOCK_PHASE) ==
			    cua_port_load_b32(&rwlock.readers_out, CUA_ACQUIRE, AT) &&
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
	struct simt_case c = {
		.name = "rwlock", .setup = rw_setup, .body = rw_body, .check = rw_check};
	struct simt_case together = {
		.name = "rwlock, readers together", .setup = rw_setup, .body = rw_together_body};
	struct simt_case phases = {.name = "rwlock, phases",
				   .setup = rw_setup,
				   .body = rw_phases_body,
				   .check = rw_phases_check};
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

TCase *simt_rwlock_cases(void)
{
	TCase *tc = simt_tcase("rwlock");

	tcase_add_test(tc, rw);
	return tc;
}
