/* SPDX-License-Identifier: MIT */
/*
 * The loop that all CUA_WITH_ macros of the locks share.
 *
 * A section is a loop around the user's block. begin joins the queue, if the lock has one. try
 * polls once and returns 1 when the lane holds the lock. step unlocks after the block has run, or
 * waits before the next poll.
 *
 * The block and the unlock are inside the loop. So a waiting lane never delays a lane of its warp
 * that holds the lock, even where a diverged warp runs one branch to its end before the other.
 *
 * The unlock directly follows the block, and the wait comes after both. A warp sleeps as a whole.
 * So waiting lanes reconverge with the holder before they sleep; otherwise the warp could sleep
 * while a lane of it holds the lock.
 *
 * A lock `kind` defines struct cua__<kind>_section, with the member `int state` (0: waiting,
 * 1: holding, 2: done), and these functions:
 *
 *   struct cua__<kind>_section cua__<kind>_section_begin(lock..., scope)
 *   int cua__<kind>_section_try(section, lock..., scope)    1 when the lane holds the lock
 *   void cua__<kind>_section_step(section, lock..., scope)
 */
#ifndef CUATOMIC_SECTION_H
#define CUATOMIC_SECTION_H

/*
 * The hooks of the lock checker (lock_debug.h). Without CUA_LOCK_DEBUG they expand to no code.
 *
 *   REQUEST   a lane begins a blocking request; declares `wait`
 *   DELEGATE  a lane lets another lane of its group acquire the lock for it
 *   WAITING   a poll found that the lane must wait on
 *   ACQUIRED  an attempt ended; the value is `taken`, 1 if the lane holds the lock
 *   UNLOCK    a lane is about to unlock
 *   INIT      a lane is about to initialize the lock
 *   SECTION, SECTION_WAITING   REQUEST and WAITING for the loop of a CUA_WITH_ macro
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

/* The names contain the line number, so nested sections do not shadow each other. */
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
