/* SPDX-License-Identifier: MIT */
/*
 * What the CUA_WITH_ macros of the locks have in common.
 *
 * A section is a loop around the block: begin joins those who wait, try looks once whether it is this
 * lane's turn, and the step behind it unlocks once the block has run, or waits for the next look. Because the
 * block and the unlock are inside of the loop, a lane that waits holds up no lane of its warp that is being
 * served, even where a diverged warp runs one branch to its end before the other. The unlock comes with the
 * block and the wait after both: a warp sleeps as a whole, so lanes that wait meet the one that is served
 * first, or it would sleep with the lock in its hands.
 *
 * A lock `kind` brings struct cua__<kind>_section with an int state (0: waiting, 1: holding, 2: done) and
 *
 *   struct cua__<kind>_section cua__<kind>_section_begin(lock..., scope)
 *   int cua__<kind>_section_try(section, lock..., scope)    1 when the lane holds the lock
 *   void cua__<kind>_section_step(section, lock..., scope)
 */
#ifndef CUATOMIC_SECTION_H
#define CUATOMIC_SECTION_H

/*
 * Where a lock tells of itself: a blocking request (declares `wait`), one that other lanes of a group make
 * for this one, a look in vain, what a try brought, the moments before an unlock and in init. Without
 * CUA_LOCK_DEBUG all of this is nothing.
 */
#ifdef CUA_LOCK_DEBUG
#include <cuatomic/lock_debug.h>
#else
#define CUA__LOCK_REQUEST(kind, l, wait) ((void)0)
#define CUA__LOCK_DELEGATE(kind, l) ((void)0)
#define CUA__LOCK_WAITING(kind, l, wait) ((void)0)
#define CUA__LOCK_ACQUIRED(kind, l, taken) (taken)
#define CUA__LOCK_UNLOCK(kind, l) ((void)0)
#define CUA__LOCK_INIT(kind, l) ((void)0)
#define CUA__LOCK_SECTION(kind, wait, ...)
#define CUA__LOCK_SECTION_WAITING(kind, wait, ...)
#endif

/* The names bear the line, so that one section in another shadows nothing. */
#define CUA__WITH_NAMED(kind, s, once, ...)                                                        \
	CUA__LOCK_SECTION(kind, s##_wait, __VA_ARGS__)                                             \
	for (struct cua__##kind##_section s = cua__##kind##_section_begin(__VA_ARGS__);            \
	     s.state != 2 CUA__LOCK_SECTION_WAITING(kind, s##_wait, __VA_ARGS__);                  \
	     s.state == 2 ? (void)0 : cua__##kind##_section_step(&s, __VA_ARGS__))                 \
		for (int once = s.state = cua__##kind##_section_try(&s, __VA_ARGS__); once;        \
		     once = (cua__##kind##_section_step(&s, __VA_ARGS__), 0))
#define CUA__WITH_AT(kind, line, ...)                                                              \
	CUA__WITH_NAMED(kind, cua__s_##line, cua__once_##line, __VA_ARGS__)
#define CUA__WITH(kind, line, ...) CUA__WITH_AT(kind, line, __VA_ARGS__)

#endif /* CUATOMIC_SECTION_H */
