/* SPDX-License-Identifier: MIT */
/*
 * The loop that all CUA_WITH_ macros of the locks share.
 *
 * A section is a loop around the user's block. A lock `kind` defines struct cua__<kind>_section,
 * with the lock `l`, the scope and the members of CUA__SECTION_MEMBERS, and the four functions that
 * the loop calls:
 *
 *   struct cua__<kind>_section cua__<kind>_section_begin(lock..., scope)
 *                  joins the queue, if the lock has one
 *   int cua__<kind>_section_try(section)
 *                  polls once; returns 1 if the lane holds the lock, and the block then runs
 *   void cua__<kind>_section_step(section)
 *                  unlocks if the block has run, else ends the poll, possibly by a pause
 *   void cua__<kind>_section_leave(section)
 *                  unlocks if return, goto or an exception has left the block
 *
 * The block and the unlock are inside the loop. So a waiting lane never delays a lane of its warp
 * that holds the lock, even where a diverged warp runs one branch to its end before the other.
 *
 * In the loop, the unlock directly follows the block, and the pause comes after both. A pause
 * delays the whole warp. So waiting lanes reconverge with the holder before they pause; otherwise
 * the warp could pause while a lane of it holds the lock.
 *
 * `break` and `continue` end the inner loop, and step unlocks. `return`, `goto` and a C++ exception
 * end both loops and the lifetime of the section. The section then calls leave: its destructor in
 * C++, its cleanup (an attribute of GNU C) in C. At the regular end of the loop the state is 2, so
 * the compiler removes the call of leave from a block without such a jump. A lane that returns
 * unlocks outside the loop. So the GPU must run this lane while other lanes of its warp wait. The
 * pauses of the waiting lanes ensure this; lock.h has the reason.
 */
#ifndef CUATOMIC_SECTION_H
#define CUATOMIC_SECTION_H

#include <cuatomic/port.h>

/* A wait: its start and its limit in ns. limit is 0 without a limit, and after the report. */
struct cua__lock_wait {
	uint64_t start, limit;
};

/*
 * The hooks of the lock checker (lock_debug.h). Without CUA_LOCK_DEBUG they expand to no code.
 *
 *   REQUEST   a lane begins a blocking request; declares `wait`
 *   SECTION   a lane begins the blocking request of a section; sets `wait` of the section
 *   DELEGATE  a lane lets another lane of its group acquire the lock for it
 *   WAITING   a poll found that the lane must wait on
 *   ACQUIRED  an attempt ended; the value is `taken`, 1 if the lane holds the lock
 *   UNLOCK    a lane is about to unlock
 *   INIT      a lane is about to initialize the lock
 */
#ifdef CUA_LOCK_DEBUG
#include <cuatomic/lock_debug.h>
#else
#define CUA__LOCK_REQUEST(kind, l, wait) ((void)0)
#define CUA__LOCK_SECTION(kind, s) ((void)0)
#define CUA__LOCK_DELEGATE(kind, l) ((void)0)
#define CUA__LOCK_WAITING(kind, l, wait) ((void)0)
#define CUA__LOCK_ACQUIRED(kind, l, taken) (taken)
#define CUA__LOCK_UNLOCK(kind, l) ((void)0)
#define CUA__LOCK_INIT(kind, l) ((void)0)
#endif

/*
 * The wait of a section for its turn. Lanes of a warp that enter a section together are a group:
 * they share the loop. `lanes` are the lanes of the group that have not run the block.
 *
 * A pause has two effects on a diverged warp, both measured on an H200. The GPU switches to other
 * lanes of the warp only when the running lanes pause, so a turn costs as many polls as there are
 * from pause to pause. And a pause releases the lanes that have run the block and wait at the end
 * of the loop. The warp has then diverged, and all later turns of the group cost as much. So every
 * 4th poll pauses, unless lanes of the group have run the block since the last such poll. `lanes`
 * only shrinks, so a lane omits at most 32 pauses. A lane alone pauses at every `alone`-th poll, a
 * multiple of 4.
 */
struct cua__section_turn {
	uint32_t lanes, polls;
};

CUA_FORCE struct cua__section_turn cua__section_turn_begin(void)
{
	struct cua__section_turn t = {0xffffffffu, 0};

	return t;
}

/* Returns 1 if lanes have left the group since the last call. */
CUA_FORCE int cua__section_turn_advanced(struct cua__section_turn *t)
{
	uint32_t lanes = t->lanes & cua_port_active_mask();
	int advanced = lanes != t->lanes;

	t->lanes = lanes;
	return advanced;
}

/* Ends a poll that found that the lane does not have its turn. */
CUA_FORCE void cua__section_turn_wait(struct cua__section_turn *t, uint32_t alone)
{
	if (++t->polls % 4 == 0 && !cua__section_turn_advanced(t) &&
	    (t->lanes & (t->lanes - 1) || t->polls % alone == 0))
		cua_port_pause(32);
	else
		cua_port_pause_lane(t->polls < 64 ? 32 : 64);
}

/* Declares a section before its struct. */
#define CUA__SECTION_DECLARE(kind)                                                                 \
	struct cua__##kind##_section;                                                              \
	CUA_FORCE void cua__##kind##_section_leave(struct cua__##kind##_section *s)

/* CUA__LEAVES in the struct and CUA__LEFT at the variable call leave at the end of its lifetime. */
#ifdef __cplusplus
#define CUA__LEAVES(kind)                                                                          \
	CUA__TARGET __attribute__((always_inline)) inline ~cua__##kind##_section()                 \
	{                                                                                          \
		cua__##kind##_section_leave(this);                                                 \
	}
#define CUA__LEFT(kind)
#else
#define CUA__LEAVES(kind)
#define CUA__LEFT(kind) __attribute__((cleanup(cua__##kind##_section_leave)))
#endif

/* state is 0 while the lane waits, 1 while it holds the lock, and 2 at the end. */
#define CUA__SECTION_MEMBERS(kind)                                                                 \
	int state;                                                                                 \
	struct cua__lock_wait wait; /* with CUA_LOCK_DEBUG */                                      \
	CUA__LEAVES(kind)

/* The names contain the line number, so nested sections do not shadow each other. */
#define CUA__WITH_NAMED(kind, s, once, ...)                                                        \
	for (struct cua__##kind##_section s CUA__LEFT(kind) =                                      \
		     cua__##kind##_section_begin(__VA_ARGS__);                                     \
	     s.state != 2; s.state == 2 ? (void)0 : cua__##kind##_section_step(&s))                \
		for (int once = s.state = cua__##kind##_section_try(&s); once;                     \
		     once = (cua__##kind##_section_step(&s), 0))
#define CUA__WITH_AT(kind, line, ...)                                                              \
	CUA__WITH_NAMED(kind, cua__s_##line, cua__once_##line, __VA_ARGS__)
#define CUA__WITH(kind, line, ...) CUA__WITH_AT(kind, line, __VA_ARGS__)

#endif /* CUATOMIC_SECTION_H */
