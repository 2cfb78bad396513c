/* SPDX-License-Identifier: MIT */
/* The semaphore. */
#include <cuatomic/semaphore.h>

#include "simt_suites.h"

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
	if (cua_port_fetch_add_u32(&inside, 1, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC) >=
	    bound)
		simt_fail("too many hold the semaphore");
	if (bound == 1)
		increment();
	cua_port_add_u32(&inside, UINT32_MAX, CUA_RELAXED, CUA_SCOPE_DEVICE, CUA_SPACE_GENERIC);
}

static void semaphore_body(void)
{
	TAKE_ONE_WAY(CUA_WITH_SEMAPHORE (&semaphore), cua_semaphore_lock(&semaphore),
		     cua_semaphore_trylock(&semaphore), cua_semaphore_lock_for(&semaphore, 300),
		     cua_semaphore_unlock(&semaphore), semaphore_section());
}

static const char *semaphore_check(void)
{
	if (semaphore.count != bound)
		return "the count is wrong";
	return bound == 1 ? counter_check() : NULL;
}

/* One lane posts the units that the other lanes wait for, with a plain message. */
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
	struct simt_case c = {.name = "semaphore",
			      .setup = semaphore_setup,
			      .body = semaphore_body,
			      .check = semaphore_check};
	struct simt_case signal = {.name = "semaphore, signal",
				   .setup = semaphore_signal_setup,
				   .body = semaphore_signal_body};

	for (bound = 1; bound <= 3; bound++)
		try_ways(c);
	explore_shape(signal, 3, 1, 3);
	try_shape(signal, 2, 33, 3);
}
END_TEST

TCase *simt_semaphore_cases(void)
{
	TCase *tc = simt_tcase("semaphore");

	tcase_add_test(tc, semaphores);
	return tc;
}
