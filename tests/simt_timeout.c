/* SPDX-License-Identifier: MIT */
/* Timeouts of every lock: lane 0 holds the lock until all other lanes have timed out. */
#include <string.h>

#include <cuatomic/lock.h>

#include "simt_suites.h"

static struct cua_spinlock spinlock;
static struct cua_ticketlock ticketlock;
static struct cua_mcslock mcslock;
static struct cua_mcslock_node nodes[SIMT_MAX_LANES];
static struct cua_rwlock rwlock;
static struct cua_seqlock seqlock;
static struct cua_semaphore semaphore;
static uint32_t timed_out;
static unsigned kind;

static void timeout_setup(void)
{
	cua_spinlock_init(&spinlock);
	cua_ticketlock_init(&ticketlock);
	cua_mcslock_init(&mcslock);
	memset(nodes, 0xee, sizeof(nodes));
	cua_rwlock_init(&rwlock);
	cua_seqlock_init(&seqlock);
	/* the words wrap around */
	ticketlock.next = ticketlock.owner = UINT32_MAX;
	rwlock.readers_in = rwlock.readers_out = UINT32_MAX - 7;
	rwlock.writers_in = rwlock.writers_out = UINT32_MAX;
	seqlock.sequence = UINT32_MAX - 1;
	cua_semaphore_init(&semaphore, 1);
	timed_out = 0;
}

/* Calls the lock under test: 0 trylock, 1 lock_for, 2 unlock. */
static int timeout_call(int what, uint64_t ns)
{
	struct cua_mcslock_node *node = &nodes[simt_lane()];

	switch (kind) {
	case 0:
		return what == 0   ? cua_spinlock_trylock(&spinlock)
		       : what == 1 ? cua_spinlock_lock_for(&spinlock, ns)
				   : (cua_spinlock_unlock(&spinlock), 0);
	case 1:
		return what == 0   ? cua_ticketlock_trylock(&ticketlock)
		       : what == 1 ? cua_ticketlock_lock_for(&ticketlock, ns)
				   : (cua_ticketlock_unlock(&ticketlock), 0);
	case 2:
		return what == 0   ? cua_mcslock_trylock(&mcslock, node)
		       : what == 1 ? cua_mcslock_lock_for(&mcslock, node, ns)
				   : (cua_mcslock_unlock(&mcslock, node), 0);
	case 3:
		return what == 0   ? cua_rwlock_write_trylock(&rwlock)
		       : what == 1 ? cua_rwlock_write_lock_for(&rwlock, ns)
				   : (cua_rwlock_write_unlock(&rwlock), 0);
	case 4: /* a writer excludes readers */
		if (simt_lane() == 0)
			return what == 2 ? (cua_rwlock_write_unlock(&rwlock), 0)
					 : cua_rwlock_write_trylock(&rwlock);
		return what == 2 ? (cua_rwlock_read_unlock(&rwlock), 0)
				 : cua_rwlock_read_lock_for(&rwlock, ns);
	case 5: /* a reader excludes writers */
		if (simt_lane() == 0)
			return what == 2 ? (cua_rwlock_read_unlock(&rwlock), 0)
					 : cua_rwlock_read_trylock(&rwlock);
		return what == 2 ? (cua_rwlock_write_unlock(&rwlock), 0)
				 : cua_rwlock_write_lock_for(&rwlock, ns);
	case 6:
		return what == 0   ? cua_seqlock_trylock(&seqlock)
		       : what == 1 ? cua_seqlock_lock_for(&seqlock, ns)
				   : (cua_seqlock_unlock(&seqlock), 0);
	default:
		return what == 0   ? cua_semaphore_trylock(&semaphore)
		       : what == 1 ? cua_semaphore_lock_for(&semaphore, ns)
				   : (cua_semaphore_unlock(&semaphore), 0);
	}
}

static void timeout_body(void)
{
	uint32_t others = simt_blocks() * simt_block_lanes() - 1;

	if (simt_lane() == 0) {
		if (!timeout_call(0, 0))
			simt_fail("a free lock was not taken");
		/* 1: the lock is held; each lane that has timed out adds 1 */
		cua_port_add_u32(&timed_out, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
		while (cua_port_load_b32(&timed_out, CUA_RELAXED, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC) != others + 1)
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
	if (spinlock.word || ticketlock.next != ticketlock.owner || mcslock.tail ||
	    (rwlock.readers_in & ~CUA__RWLOCK_PHASE) != rwlock.readers_out ||
	    rwlock.writers_in != rwlock.writers_out || seqlock.sequence & 1 || semaphore.count != 1)
		return "a lock is still held";
	return NULL;
}

START_TEST(timeouts)
{
	static const char *const names[] = {"spinlock", "ticketlock", "mcslock",
					    "writers",  "readers",    "a writer and a reader",
					    "seqlock",  "semaphore"};

	for (kind = 0; kind < sizeof(names) / sizeof(names[0]); kind++) {
		struct simt_case c = {.name = names[kind],
				      .setup = timeout_setup,
				      .body = timeout_body,
				      .check = timeout_check};

		try_shape(c, 1, 2, 5);
		try_shape(c, 2, 4, 5);
	}
}
END_TEST

TCase *simt_timeout_cases(void)
{
	TCase *tc = simt_tcase("timeout");

	tcase_add_test(tc, timeouts);
	return tc;
}
