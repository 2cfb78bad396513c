/* SPDX-License-Identifier: MIT */
/*
 * A spinlock of one word: a compare-and-swap, then test-and-test-and-set with bounded, jittered,
 * exponential backoff.
 *
 * Source: the compare-and-swap lock of Sanders and Kandrot, CUDA by Example, appendix A. Waiting by
 * loads alone (test-and-test-and-set) after Rudolph and Segall, 1984. Backoff after Anderson, 1990.
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
 * Progress: blocking, and not fair. A lane may use the lock in a diverged warp; lock.h states why
 *   the warp makes progress. Lanes that hold several locks at once must all acquire them in the
 *   same order. The lock is not recursive.
 * Argument: only the winner of the CAS 0 -> 1 enters. Its acquire reads the 0 that the last
 *   holder's release store wrote, so all earlier critical sections are visible to it. Waiters poll
 *   with relaxed loads, which cost the holder only bandwidth. A strong CAS from 0 fails only if
 *   another CAS succeeded, so whenever the word is 0 some waiter's CAS succeeds.
 */
#ifndef CUATOMIC_SPINLOCK_H
#define CUATOMIC_SPINLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

struct cua_spinlock {
	uint32_t word; /* 0: free, 1: held */
};
CUA_STATIC_ASSERT(sizeof(struct cua_spinlock) == 4, "the lock is ABI");

/* Initializer of a free lock. Zeroed memory is an array of free locks. */
#define CUA_SPINLOCK_INIT                                                                          \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Makes the lock free, whatever its content. No other call on the lock may run at the same time.
 */
CUA_FN void cua_spinlock_init(struct cua_spinlock *l)
{
	CUA__LOCK_INIT(spinlock, l);
	l->word = 0;
}

/* Tries to acquire without a load before the CAS: a free lock then costs a single access. */
CUA_FORCE int cua__spinlock_cas(struct cua_spinlock *l, enum cua_scope scope)
{
	return CUA__LOCK_ACQUIRED(
		spinlock, l,
		cua_port_cas_b32(&l->word, 0, 1, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC) == 0);
}

/*
 * Backoff limit in ns. A pause delays all lanes of a warp. So a lane that begins to wait together
 * with other lanes has half the limit of a lane alone. Both limits are the fastest on an H200.
 */
CUA_FORCE uint32_t cua__spinlock_backoff_limit(void)
{
	uint32_t lanes = cua_port_popc_u32(cua_port_active_mask());

	return lanes == 1 ? 1024 : 512;
}

/* Acquires the lock if it is free, and never waits. Returns 1 if the lock was acquired, else 0. */
CUA_FORCE int cua_spinlock_trylock_scope(struct cua_spinlock *l, enum cua_scope scope)
{
	/* a failing CAS would take the cache line from the holder */
	if (cua_port_load_b32(&l->word, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != 0)
		return 0;
	return cua__spinlock_cas(l, scope);
}

/* Acquires the lock, and waits while another lane holds it. */
CUA_FORCE void cua_spinlock_lock_scope(struct cua_spinlock *l, enum cua_scope scope)
{
	CUA__LOCK_REQUEST(spinlock, l, wait);
	struct cua_backoff backoff;
	uint32_t limit = cua__spinlock_backoff_limit();

	if (cua__spinlock_cas(l, scope))
		return;
	cua_backoff_init(&backoff);
	do {
		CUA__LOCK_WAITING(spinlock, l, wait);
		cua__backoff_wait_upto(&backoff, limit);
	} while (!cua_spinlock_trylock_scope(l, scope));
}

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if the lock was acquired,
 * else 0.
 */
CUA_FORCE int cua_spinlock_lock_for_scope(struct cua_spinlock *l, uint64_t ns, enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	uint32_t limit = cua__spinlock_backoff_limit();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_spinlock_trylock_scope(l, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua__backoff_wait_upto(&backoff, limit);
	}
	return 1;
}

/* Releases the lock. Only its holder may call this. */
CUA_FORCE void cua_spinlock_unlock_scope(struct cua_spinlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(spinlock, l);
	cua_port_store_b32(&l->word, 0, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
}

/* Returns 1 if the lock is held at this moment, else 0. The result is a hint and orders nothing. */
CUA_FORCE int cua_spinlock_locked_scope(const struct cua_spinlock *l, enum cua_scope scope)
{
	return cua_port_load_b32(&l->word, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != 0;
}

CUA_FN int cua_spinlock_trylock(struct cua_spinlock *l)
{
	return cua_spinlock_trylock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_spinlock_lock(struct cua_spinlock *l)
{
	cua_spinlock_lock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_spinlock_lock_for(struct cua_spinlock *l, uint64_t ns)
{
	return cua_spinlock_lock_for_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_spinlock_unlock(struct cua_spinlock *l)
{
	cua_spinlock_unlock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_spinlock_locked(const struct cua_spinlock *l)
{
	return cua_spinlock_locked_scope(l, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_LOCK(&lock) { critical section }
 *
 * Every lane that reaches the macro runs the block once under the lock. Lanes with
 * the same lock run it one after another. The warp may have diverged.
 *
 * `break`, `continue`, `return`, a `goto` out of the block and a C++ exception leave the block and
 * unlock. `break` and `continue` end the block, not a loop around the macro. The value of `return`
 * is computed before the unlock. longjmp() leaves the lock held, and the end of the thread may do
 * so. No jump may enter the block.
 *
 * Other lanes may wait for the lock while a lane runs the block. So the block must not wait for
 * them: no barrier, and no warp operation that other lanes must join. Blocks of different locks may
 * nest. The arguments are evaluated once. CUA_WITH_LOCK_SCOPE(&lock, scope) does the same at
 * another scope.
 */
CUA__SECTION_DECLARE(spinlock);

struct cua__spinlock_section {
	struct cua_spinlock *l;
	enum cua_scope scope;
	struct cua_backoff backoff;
	uint32_t limit;
	uint32_t polls;
	struct cua__section_turn turn;
	int lost;
	CUA__SECTION_MEMBERS(spinlock)
};

CUA_FORCE struct cua__spinlock_section cua__spinlock_section_begin(struct cua_spinlock *l,
								   enum cua_scope scope)
{
	struct cua__spinlock_section s;

	s.l = l;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(spinlock, &s);
	cua_backoff_init(&s.backoff);
	/* in a block, polls delay the holder little */
	s.limit = scope == CUA_SCOPE_BLOCK ? 32 : cua__spinlock_backoff_limit();
	s.polls = 0;
	s.turn = cua__section_turn_begin();
	s.lost = 0;
	return s;
}

CUA_FORCE int cua__spinlock_section_try(struct cua__spinlock_section *s)
{
	uint32_t lane = cua_port_lane(), active;

	if (!s->polls++)
		return cua__spinlock_cas(s->l, s->scope);
	if (cua_spinlock_locked_scope(s->l, s->scope))
		return 0;
	/*
	 * A CAS that failed on a free lock is a sign of contention. From then on, of the active
	 * lanes that see a free lock, the lowest does the CAS. A higher lane does its CAS in 1 of
	 * 16 polls, because it may want a different lock. The mask is a hint: no lane waits for
	 * another lane.
	 */
	active = cua_port_active_mask();
	if (s->lost && active & (((uint32_t)1 << lane) - 1) && (s->polls ^ lane) & 15)
		return 0;
	s->lost = !cua__spinlock_cas(s->l, s->scope);
	return !s->lost;
}

CUA_FORCE void cua__spinlock_section_step(struct cua__spinlock_section *s)
{
	if (s->state) {
		cua_spinlock_unlock_scope(s->l, s->scope);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(spinlock, s->l, s->wait);
		/* a lane of the group has just unlocked, so the lock is probably free */
		if (!cua__section_turn_advanced(&s->turn))
			cua__backoff_wait_upto(&s->backoff, s->limit);
	}
}

CUA_FORCE void cua__spinlock_section_leave(struct cua__spinlock_section *s)
{
	if (s->state == 1)
		cua__spinlock_section_step(s);
}

#define CUA_WITH_LOCK_SCOPE(l, scope) CUA__WITH(spinlock, __LINE__, (l), (scope))
#define CUA_WITH_LOCK(l) CUA_WITH_LOCK_SCOPE (l, CUA_SCOPE_DEVICE)

/* ---- forms for warps and blocks: the contract is in lock_forms.h ---- */

CUA_FORCE int cua_spinlock_trylock_warp_scope(struct cua_spinlock *l, uint32_t mask,
					      enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_spinlock_trylock_scope(l, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_spinlock_lock_warp_scope(struct cua_spinlock *l, uint32_t mask,
					    enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_spinlock_lock_scope(l, scope);
	cua__await_leader_warp(mask);
}

CUA_FORCE int cua_spinlock_lock_for_warp_scope(struct cua_spinlock *l, uint64_t ns, uint32_t mask,
					       enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_spinlock_lock_for_scope(l, ns, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_spinlock_unlock_warp_scope(struct cua_spinlock *l, uint32_t mask,
					      enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_spinlock_unlock_scope(l, scope);
}

CUA_FORCE int cua_spinlock_trylock_block_scope(struct cua_spinlock *l, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_spinlock_trylock_scope(l, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_spinlock_lock_block_scope(struct cua_spinlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_spinlock_lock_scope(l, scope);
	cua__await_leader_block();
}

CUA_FORCE int cua_spinlock_lock_for_block_scope(struct cua_spinlock *l, uint64_t ns,
						enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_spinlock_lock_for_scope(l, ns, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_spinlock_unlock_block_scope(struct cua_spinlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_spinlock_unlock_scope(l, scope);
}

CUA_FN int cua_spinlock_trylock_warp(struct cua_spinlock *l, uint32_t mask)
{
	return cua_spinlock_trylock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_spinlock_lock_warp(struct cua_spinlock *l, uint32_t mask)
{
	cua_spinlock_lock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_spinlock_lock_for_warp(struct cua_spinlock *l, uint64_t ns, uint32_t mask)
{
	return cua_spinlock_lock_for_warp_scope(l, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_spinlock_unlock_warp(struct cua_spinlock *l, uint32_t mask)
{
	cua_spinlock_unlock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_spinlock_trylock_block(struct cua_spinlock *l)
{
	return cua_spinlock_trylock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_spinlock_lock_block(struct cua_spinlock *l)
{
	cua_spinlock_lock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_spinlock_lock_for_block(struct cua_spinlock *l, uint64_t ns)
{
	return cua_spinlock_lock_for_block_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_spinlock_unlock_block(struct cua_spinlock *l)
{
	cua_spinlock_unlock_block_scope(l, CUA_SCOPE_DEVICE);
}

/* ---- arrays of locks for the host: the contract is in lock_forms.h ---- */

CUA__HOST_FN enum cua_status cua_spinlock_array_create(struct cua_context *ctx, size_t n,
						       struct cua_spinlock **locks)
{
	return cua__lock_array_create(ctx, n, sizeof(**locks), locks);
}

CUA__HOST_FN enum cua_status cua_spinlock_array_destroy(struct cua_context *ctx,
							struct cua_spinlock *locks)
{
	return cua_free(ctx, locks);
}

#endif /* CUATOMIC_SPINLOCK_H */
