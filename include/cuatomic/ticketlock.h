/* SPDX-License-Identifier: MIT */
/*
 * A ticket lock: two words, first come, first served.
 *
 * Source: Reed and Kanodia, 1979 (event counts and sequencers).
 *
 * Synchronization: X means that the caller must order the two calls, - that the lock does it.
 *
 *               init  trylock  lock  lock_for  unlock  locked
 *     init       X       X       X      X        X       X
 *     trylock    X       -       -      -        -       -
 *     lock       X       -       -      -        -       -
 *     lock_for   X       -       -      -        -       -
 *     unlock     X       -       -      -        X       -
 *     locked     X       -       -      -        -       -
 *
 * Scope: the device; the _scope forms take CUA_SCOPE_BLOCK (a lock in shared memory), _DEVICE or _SYSTEM,
 *   and all users of one lock must name a scope that includes all of them.
 * Memory order: a successful trylock, lock or lock_for acquires what the last unlock released.
 * Progress: blocking and fair: lock is granted in the order of the tickets. A ticket is taken by a lane that
 *   runs, so nobody waits for a block that has not started. A lane may call lock in a diverged warp on sm_70
 *   and newer, where the other lanes run at the latest when it sleeps, as it does now and then;
 *   CUA_WITH_TICKETLOCK does not even need that. A ticket once taken has to be served, so lock_for takes
 *   none: it tries until the time is over, gets the lock only at a moment when nobody waits, and is not fair.
 * Argument: a ticket is given out once, so one lane at a time has owner == its ticket. unlock moves owner on by
 *   1 with release, and the lane with that ticket has acquired the new value when it enters; nobody else
 *   writes owner in between. trylock acquires owner first: if next still equals it when the CAS
 *   succeeds, nobody holds the lock or waits, and owner is still the same, because only the holder
 *   of ticket `owner` moves it on and there was none. The words wrap around together; at most 2^32 - 1
 *   lanes may wait, and a trylock must not sleep through 2^32 sections.
 */
#ifndef CUATOMIC_TICKETLOCK_H
#define CUATOMIC_TICKETLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

struct cua_ticketlock {
	uint32_t next;  /* the next ticket */
	uint32_t owner; /* the ticket that holds the lock, or will next */
};
CUA_STATIC_ASSERT(sizeof(struct cua_ticketlock) == 8, "the lock is ABI");

/* The value of a free lock; memory of zeros is an array of free locks. */
#define CUA_TICKETLOCK_INIT                                                                        \
	{                                                                                          \
		0, 0                                                                               \
	}

/* Makes the lock free. Nobody may be using it. */
CUA_FN void cua_ticketlock_init(struct cua_ticketlock *l)
{
	CUA__LOCK_INIT(ticketlock, l);
	l->next = 0;
	l->owner = 0;
}

/* Takes the lock if nobody holds it or waits for it. Returns 1 if it was taken, else 0. */
CUA_FORCE int cua_ticketlock_trylock_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	uint32_t owner = cua_port_load_b32(&l->owner, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);

	/* a failing CAS would take the line from those who wait */
	if (cua_port_load_b32(&l->next, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != owner)
		return 0;
	return CUA__LOCK_ACQUIRED(ticketlock, l,
				  cua_port_cas_b32(&l->next, owner, owner + 1, CUA_RELAXED, scope,
						   CUA_SPACE_GENERIC) == owner);
}

/* Takes a ticket and waits for its turn. */
CUA_FORCE void cua_ticketlock_lock_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	CUA__LOCK_REQUEST(ticketlock, l, wait);
	uint32_t ticket =
		cua_port_fetch_add_u32(&l->next, 1, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	uint32_t polls = 0;

	while (cua_port_load_b32(&l->owner, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != ticket) {
		CUA__LOCK_WAITING(ticketlock, l, wait);
		cua__wait_turn(&polls);
	}
	cua_port_acquire_b32(&l->owner, scope, CUA_SPACE_GENERIC);
	(void)CUA__LOCK_ACQUIRED(ticketlock, l, 1);
}

/* Tries for about ns nanoseconds, once at least. Returns 1 if the lock was taken, else 0. */
CUA_FORCE int cua_ticketlock_lock_for_scope(struct cua_ticketlock *l, uint64_t ns,
					    enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_ticketlock_trylock_scope(l, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/* Hands the lock to the next ticket. Only its holder may call this. */
CUA_FORCE void cua_ticketlock_unlock_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(ticketlock, l);
	/* only the holder writes owner, but a sum without result need not wait for the word */
	cua_port_add_u32(&l->owner, 1, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
}

/* Whether someone holds the lock or waits for it at this moment; a hint, which orders nothing. */
CUA_FORCE int cua_ticketlock_locked_scope(const struct cua_ticketlock *l, enum cua_scope scope)
{
	uint32_t owner = cua_port_load_b32(&l->owner, CUA_RELAXED, scope, CUA_SPACE_GENERIC);

	return cua_port_load_b32(&l->next, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != owner;
}

CUA_FN int cua_ticketlock_trylock(struct cua_ticketlock *l)
{
	return cua_ticketlock_trylock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_ticketlock_lock(struct cua_ticketlock *l)
{
	cua_ticketlock_lock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_ticketlock_lock_for(struct cua_ticketlock *l, uint64_t ns)
{
	return cua_ticketlock_lock_for_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_ticketlock_unlock(struct cua_ticketlock *l)
{
	cua_ticketlock_unlock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_ticketlock_locked(const struct cua_ticketlock *l)
{
	return cua_ticketlock_locked_scope(l, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_TICKETLOCK(&lock) { critical section }
 *
 * Runs the block once under the lock, in the order of the tickets, for every lane that comes here,
 * however the warp has diverged. `break` and `continue` leave the block and unlock; return and goto must
 * not leave it. The arguments are evaluated more than once.
 * CUA_WITH_TICKETLOCK_SCOPE(&lock, scope) is the same at another scope.
 */
struct cua__ticketlock_section {
	uint32_t ticket;
	uint32_t polls;
	int state; /* 0: waiting, 1: holding, 2: done */
};

CUA_FORCE struct cua__ticketlock_section cua__ticketlock_section_begin(struct cua_ticketlock *l,
								       enum cua_scope scope)
{
	struct cua__ticketlock_section s;

	s.polls = 0;
	s.ticket = cua_port_fetch_add_u32(&l->next, 1, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	s.state = 0;
	return s;
}

CUA_FORCE int cua__ticketlock_section_try(struct cua__ticketlock_section *s,
					  struct cua_ticketlock *l, enum cua_scope scope)
{
	if (cua_port_load_b32(&l->owner, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != s->ticket)
		return 0;
	cua_port_acquire_b32(&l->owner, scope, CUA_SPACE_GENERIC);
	return CUA__LOCK_ACQUIRED(ticketlock, l, 1);
}

CUA_FORCE void cua__ticketlock_section_step(struct cua__ticketlock_section *s,
					    struct cua_ticketlock *l, enum cua_scope scope)
{
	if (s->state) {
		CUA__LOCK_UNLOCK(ticketlock, l);
		cua_port_store_b32(&l->owner, s->ticket + 1, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
		s->state = 2;
	} else {
		cua__wait_turn(&s->polls);
	}
}

#define CUA_WITH_TICKETLOCK_SCOPE(l, scope) CUA__WITH(ticketlock, __LINE__, (l), (scope))
#define CUA_WITH_TICKETLOCK(l) CUA_WITH_TICKETLOCK_SCOPE (l, CUA_SCOPE_DEVICE)

/* For a warp and for a block, and arrays; see lock_forms.h. */
CUA__DEFINE_GROUPS(cua_ticketlock, (struct cua_ticketlock * l), (l), (void)0)
CUA__DEFINE_LOCK_ARRAY(cua_ticketlock, struct cua_ticketlock)

#endif /* CUATOMIC_TICKETLOCK_H */
