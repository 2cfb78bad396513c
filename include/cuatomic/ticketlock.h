/* SPDX-License-Identifier: MIT */
/*
 * A ticket lock: two words, first come, first served.
 *
 * Source: Reed and Kanodia, 1979 (event counts and sequencers).
 *
 * Synchronization of two calls on the same lock. X: the caller must order the calls. -: the calls
 * may run concurrently.
 *
 *               init  trylock  lock  lock_for  unlock  locked
 *     init       X       X       X      X        X       X
 *     trylock    X       -       -      -        -       -
 *     lock       X       -       -      -        -       -
 *     lock_for   X       -       -      -        -       -
 *     unlock     X       -       -      -        X       -
 *     locked     X       -       -      -        -       -
 *
 * Scope: the device. The _scope forms accept CUA_SCOPE_BLOCK (a lock in shared memory), _DEVICE or
 *   _SYSTEM. All users of a lock must name a scope that includes all of these users.
 * Memory order: unlock releases. A successful trylock, lock or lock_for acquires all that the last
 *   unlock released. A failed call, locked and init guarantee no order.
 * Progress: blocking and fair: lock grants the lock in ticket order. Only running lanes draw
 *   tickets, so no lane waits for a block that has not started. A lane may use the lock in a
 *   diverged warp; lock.h states why the warp makes progress. A ticket cannot be given back, so
 *   lock_for draws none: it retries until the time has passed, succeeds only while no lane holds
 *   the lock or waits for it, and is not fair.
 * Argument: each ticket is drawn once, so at most one lane has owner == its ticket. unlock adds 1
 *   to owner with release, and the lane with that ticket acquires the new value before it enters.
 *   No other lane writes owner in between. trylock acquires owner first. If next still equals that
 *   value when the CAS succeeds, no lane holds the lock or waits for it. owner has not changed
 *   either: only the lane with ticket `owner` changes owner, and no lane had that ticket. The two
 *   words wrap around together: at most 2^32 - 1 lanes may wait. A trylock must not be delayed by
 *   2^32 sections between its load and its CAS.
 */
#ifndef CUATOMIC_TICKETLOCK_H
#define CUATOMIC_TICKETLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

struct cua_ticketlock {
	uint32_t next;  /* the next ticket to draw */
	uint32_t owner; /* the ticket of the holder; equals next if the lock is free */
};
CUA_STATIC_ASSERT(sizeof(struct cua_ticketlock) == 8, "the lock is ABI");

/* Initializer of a free lock. Zeroed memory is an array of free locks. */
#define CUA_TICKETLOCK_INIT                                                                        \
	{                                                                                          \
		0, 0                                                                               \
	}

/*
 * Makes the lock free, whatever its content. No other call on the lock may run at the same time.
 */
CUA_FN void cua_ticketlock_init(struct cua_ticketlock *l)
{
	CUA__LOCK_INIT(ticketlock, l);
	l->next = 0;
	l->owner = 0;
}

/*
 * Acquires the lock if no lane holds it or waits for it, and never waits. Returns 1 if the lock was
 * acquired, else 0.
 */
CUA_FORCE int cua_ticketlock_trylock_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	uint32_t owner = cua_port_load_b32(&l->owner, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);

	/* a failing CAS would take the cache line from the waiters */
	if (cua_port_load_b32(&l->next, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != owner)
		return 0;
	return CUA__LOCK_ACQUIRED(ticketlock, l,
				  cua_port_cas_b32(&l->next, owner, owner + 1, CUA_RELAXED, scope,
						   CUA_SPACE_GENERIC) == owner);
}

/* Draws a ticket and waits until owner reaches it. */
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

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if the lock was acquired,
 * else 0.
 */
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

/* Releases the lock to the next ticket. Only its holder may call this. */
CUA_FORCE void cua_ticketlock_unlock_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(ticketlock, l);
	/* only the holder writes owner; an add without a result does not wait for a load */
	cua_port_add_u32(&l->owner, 1, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
}

/*
 * Returns 1 if a lane holds the lock or waits for it at this moment, else 0. The result is a hint
 * and orders nothing.
 */
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
 * Every lane that reaches the macro runs the block once under the lock, in ticket order. The warp
 * may have diverged. CUA_WITH_LOCK of spinlock.h has the rules for the block and for jumps. The
 * arguments are evaluated once. CUA_WITH_TICKETLOCK_SCOPE(&lock, scope) does the same at another
 * scope.
 */
CUA__SECTION_DECLARE(ticketlock);

struct cua__ticketlock_section {
	struct cua_ticketlock *l;
	enum cua_scope scope;
	uint32_t ticket;
	struct cua__section_turn turn;
	CUA__SECTION_MEMBERS(ticketlock)
};

CUA_FORCE struct cua__ticketlock_section cua__ticketlock_section_begin(struct cua_ticketlock *l,
								       enum cua_scope scope)
{
	struct cua__ticketlock_section s;

	s.l = l;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(ticketlock, &s);
	s.turn = cua__section_turn_begin();
	s.ticket = cua_port_fetch_add_u32(&l->next, 1, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	return s;
}

CUA_FORCE int cua__ticketlock_section_try(struct cua__ticketlock_section *s)
{
	if (cua_port_load_b32(&s->l->owner, CUA_RELAXED, s->scope, CUA_SPACE_GENERIC) != s->ticket)
		return 0;
	cua_port_acquire_b32(&s->l->owner, s->scope, CUA_SPACE_GENERIC);
	return CUA__LOCK_ACQUIRED(ticketlock, s->l, 1);
}

CUA_FORCE void cua__ticketlock_section_step(struct cua__ticketlock_section *s)
{
	if (s->state) {
		CUA__LOCK_UNLOCK(ticketlock, s->l);
		cua_port_store_b32(&s->l->owner, s->ticket + 1, CUA_RELEASE, s->scope,
				   CUA_SPACE_GENERIC);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(ticketlock, s->l, s->wait);
		cua__section_turn_wait(&s->turn, 16);
	}
}

CUA_FORCE void cua__ticketlock_section_leave(struct cua__ticketlock_section *s)
{
	if (s->state == 1)
		cua__ticketlock_section_step(s);
}

#define CUA_WITH_TICKETLOCK_SCOPE(l, scope) CUA__WITH(ticketlock, __LINE__, (l), (scope))
#define CUA_WITH_TICKETLOCK(l) CUA_WITH_TICKETLOCK_SCOPE (l, CUA_SCOPE_DEVICE)

/* ---- forms for warps and blocks: the contract is in lock_forms.h ---- */

CUA_FORCE int cua_ticketlock_trylock_warp_scope(struct cua_ticketlock *l, uint32_t mask,
						enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_ticketlock_trylock_scope(l, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_ticketlock_lock_warp_scope(struct cua_ticketlock *l, uint32_t mask,
					      enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_ticketlock_lock_scope(l, scope);
	cua__await_leader_warp(mask);
}

CUA_FORCE int cua_ticketlock_lock_for_warp_scope(struct cua_ticketlock *l, uint64_t ns,
						 uint32_t mask, enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_ticketlock_lock_for_scope(l, ns, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_ticketlock_unlock_warp_scope(struct cua_ticketlock *l, uint32_t mask,
						enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_ticketlock_unlock_scope(l, scope);
}

CUA_FORCE int cua_ticketlock_trylock_block_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_ticketlock_trylock_scope(l, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_ticketlock_lock_block_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_ticketlock_lock_scope(l, scope);
	cua__await_leader_block();
}

CUA_FORCE int cua_ticketlock_lock_for_block_scope(struct cua_ticketlock *l, uint64_t ns,
						  enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_ticketlock_lock_for_scope(l, ns, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_ticketlock_unlock_block_scope(struct cua_ticketlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_ticketlock_unlock_scope(l, scope);
}

CUA_FN int cua_ticketlock_trylock_warp(struct cua_ticketlock *l, uint32_t mask)
{
	return cua_ticketlock_trylock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_ticketlock_lock_warp(struct cua_ticketlock *l, uint32_t mask)
{
	cua_ticketlock_lock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_ticketlock_lock_for_warp(struct cua_ticketlock *l, uint64_t ns, uint32_t mask)
{
	return cua_ticketlock_lock_for_warp_scope(l, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_ticketlock_unlock_warp(struct cua_ticketlock *l, uint32_t mask)
{
	cua_ticketlock_unlock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_ticketlock_trylock_block(struct cua_ticketlock *l)
{
	return cua_ticketlock_trylock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_ticketlock_lock_block(struct cua_ticketlock *l)
{
	cua_ticketlock_lock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_ticketlock_lock_for_block(struct cua_ticketlock *l, uint64_t ns)
{
	return cua_ticketlock_lock_for_block_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_ticketlock_unlock_block(struct cua_ticketlock *l)
{
	cua_ticketlock_unlock_block_scope(l, CUA_SCOPE_DEVICE);
}

/* ---- arrays of locks for the host: the contract is in lock_forms.h ---- */

CUA__HOST_FN enum cua_status cua_ticketlock_array_create(struct cua_context *ctx, size_t n,
							 struct cua_ticketlock **locks)
{
	return cua__lock_array_create(ctx, n, sizeof(**locks), locks);
}

CUA__HOST_FN enum cua_status cua_ticketlock_array_destroy(struct cua_context *ctx,
							  struct cua_ticketlock *locks)
{
	return cua_free(ctx, locks);
}

#endif /* CUATOMIC_TICKETLOCK_H */
