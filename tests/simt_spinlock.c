/* SPDX-License-Identifier: MIT */
/* The spinlock. */
#include <cuatomic/spinlock.h>

#include "simt_suites.h"

static void with_lock(void)
{
	CUA_WITH_LOCK (&counter_lock) {
		increment();
	}
}

static void lock_unlock(void)
{
	cua_spinlock_lock(&counter_lock);
	increment();
	cua_spinlock_unlock(&counter_lock);
}

static void lock_for(void)
{
	while (!cua_spinlock_lock_for(&counter_lock, 300))
		cua_port_pause(1);
	increment();
	cua_spinlock_unlock(&counter_lock);
}

START_TEST(spinlock)
{
	struct simt_case cases[] = {
		counter_case("CUA_WITH_LOCK", with_lock),
		counter_case("lock, unlock", lock_unlock),
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		explore_shape(cases[i], 1, 2, 4);
		explore_shape(cases[i], 3, 1, 3);
		try_shape(cases[i], 2, 64, 3);
		try_shape(cases[i], 4, 33, 2);
	}
	/* a repeated trylock with a time limit */
	explore_shape(counter_case("lock_for", lock_for), 3, 1, 3);
	try_shape(counter_case("lock_for", lock_for), 2, 40, 3);
}
END_TEST

TCase *simt_spinlock_cases(void)
{
	TCase *tc = simt_tcase("spinlock");

	tcase_add_test(tc, spinlock);
	return tc;
}
