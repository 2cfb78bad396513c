/* SPDX-License-Identifier: MIT */
/* The ticket lock. */
#include <cuatomic/ticketlock.h>

#include "simt_suites.h"

static struct cua_ticketlock ticketlock;

static void ticket_setup(void)
{
	cua_ticketlock_init(&ticketlock);
	/* the words wrap around */
	ticketlock.next = ticketlock.owner = UINT32_MAX;
	counter = 0;
}

static const char *ticket_check(void)
{
	return ticketlock.next != ticketlock.owner ? "the lock is still held" : counter_check();
}

static void ticket_body(void)
{
	TAKE_ONE_WAY(CUA_WITH_TICKETLOCK (&ticketlock), cua_ticketlock_lock(&ticketlock),
		     cua_ticketlock_trylock(&ticketlock), cua_ticketlock_lock_for(&ticketlock, 300),
		     cua_ticketlock_unlock(&ticketlock), increment());
}

/* Takes a ticket if tickets remain, although the lock may be held. */
static void bug_ticket_trylock(void)
{
	uint32_t next;

	do
		next = cua_port_load_b32(&ticketlock.next, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
					 CUA_SPACE_GENERIC);
	while (cua_port_cas_b32(&ticketlock.next, next, next + 1, CUA_ACQUIRE, CUA_SCOPE_DEVICE,
				CUA_SPACE_GENERIC) != next);
	increment();
	cua_ticketlock_unlock(&ticketlock);
}

/* Tickets are served in the order of arrival: a lane with a later ticket is served later. */
static uint32_t served[SIMT_MAX_LANES];

static void ticket_order_body(void)
{
	uint32_t ticket = cua_port_fetch_add_u32(&ticketlock.next, 0, CUA_RELAXED, CUA_SCOPE_DEVICE,
						 CUA_SPACE_GENERIC) -
			  UINT32_MAX;

	/* not before the lanes with earlier tickets */
	CUA_WITH_TICKETLOCK (&ticketlock) {
		if (CUA_READ(counter) < ticket)
			simt_fail("overtook a lane that had come before");
		CUA_WRITE(served[CUA_READ(counter)], simt_lane() + 1);
		increment();
	}
}

START_TEST(ticket)
{
	struct simt_case c = {.name = "ticketlock",
			      .setup = ticket_setup,
			      .body = ticket_body,
			      .check = ticket_check};
	struct simt_case order = {.name = "ticketlock, order",
				  .setup = ticket_setup,
				  .body = ticket_order_body,
				  .check = ticket_check};
	struct simt_case bug = {.name = "a ticket trylock that skips the owner check",
				.setup = ticket_setup,
				.body = bug_ticket_trylock,
				.check = counter_check,
				.max_steps = 300000};

	try_ways(c);
	explore_shape(order, 3, 1, 3);
	try_shape(order, 2, 40, 3);
	expect_caught(bug, 2, 4, SIMT_RACE, "plain");
}
END_TEST

TCase *simt_ticketlock_cases(void)
{
	TCase *tc = simt_tcase("ticketlock");

	tcase_add_test(tc, ticket);
	return tc;
}
