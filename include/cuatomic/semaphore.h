/* SPDX-License-Identifier: MIT */
/*
 * A counting semaphore: it limits the number of concurrent holders. Its count is the number of free
 * units. lock acquires a unit, and waits while there is none; unlock adds a unit.
 *
 * A semaphore that begins with count 0 is a signal: one lane waits by lock, another lane signals by
 * unlock.
 *
 * Source: Dijkstra, 1965; waiting by loads alone, with backoff, as in spinlock.h.
 *
 * Synchronization of two calls on the same lock. X: the caller must order the calls. -: the calls
 * may run concurrently.
 *
 *               init  trylock  lock  lock_for  unlock  locked  value
 *     init       X       X       X      X        X       X       X
 *     trylock    X       -       -      -        -       -       -
 *     lock       X       -       -      -        -       -       -
 *     lock_for   X       -       -      -        -       -       -
 *     unlock     X       -       -      -        -       -       -
 *     locked     X       -       -      -        -       -       -
 *     value      X       -       -      -        -       -       -
 *
 * Scope: the device. The _scope forms accept CUA_SCOPE_BLOCK (a semaphore in shared memory),
 *   _DEVICE or _SYSTEM. All users of a semaphore must name a scope that includes all of these
 *   users.
 * Memory order: unlock releases. A successful trylock, lock or lock_for acquires all that every
 *   earlier unlock released. If the initial count is above 1, holders run concurrently and are not
 *   ordered among themselves. A failed call, locked, value and init guarantee no order.
 * Progress: blocking, and not fair. A lane may use the semaphore in a diverged warp; lock.h states
 *   why the warp makes progress. A lane that waits for a signal depends on the signalling lane. If
 *   that lane is in a block that cannot start before the waiter's block ends, both wait for ever.
 * Argument: only a CAS from a value above 0 lowers the count. So the acquired units never outnumber
 *   the initial count plus the units that unlock has added. All changes are read-modify-writes, so
 *   an acquire that reads any of them acquires all earlier releases.
 */
#ifndef CUATOMIC_SEMAPHORE_H
#define CUATOMIC_SEMAPHORE_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

struct cua_semaphore {
	uint32_t count; /* free units: the number of further holders that may enter */
};
CUA_STATIC_ASSERT(sizeof(struct cua_semaphore) == 4, "the semaphore is ABI");

/* Initializer of a semaphore that admits n holders at once. */
#define CUA_SEMAPHORE_INIT(n)                                                                      \
	{                                                                                          \
		n                                                                                  \
	}

/*
 * Sets the count, 0 to 2^32 - 1, whatever the semaphore's content. No other call on the semaphore
 * may run at the same time.
 */
CUA_FN void cua_semaphore_init(struct cua_semaphore *s, uint32_t count)
{
	CUA__LOCK_INIT(semaphore, s);
	s->count = count;
}

/* Acquires a unit if the count is above 0, and never waits. Returns 1 if it did, else 0. */
CUA_FORCE int cua_semaphore_trylock_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	uint32_t seen = cua_port_load_b32(&s->count, CUA_RELAXED, scope, CUA_SPACE_GENERIC), old;

	while (seen) {
		old = cua_port_cas_b32(&s->count, seen, seen - 1, CUA_ACQUIRE, scope,
				       CUA_SPACE_GENERIC);
		if (old == seen)
			return CUA__LOCK_ACQUIRED(semaphore, s, 1);
		seen = old;
	}
	return 0;
}

/* Acquires a unit, and waits while the count is 0. */
CUA_FORCE void cua_semaphore_lock_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	CUA__LOCK_REQUEST(semaphore, s, wait);
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_semaphore_trylock_scope(s, scope)) {
		CUA__LOCK_WAITING(semaphore, s, wait);
		cua_backoff_wait(&backoff);
	}
}

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if a unit was acquired,
 * else 0.
 */
CUA_FORCE int cua_semaphore_lock_for_scope(struct cua_semaphore *s, uint64_t ns,
					   enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_semaphore_trylock_scope(s, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/*
 * Releases a unit. Any lane may call this, not only the lane that acquired the unit. A call without
 * a preceding acquisition adds a unit. The count must stay below 2^32.
 */
CUA_FORCE void cua_semaphore_unlock_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(semaphore, s);
	cua_port_add_u32(&s->count, 1, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
}

/* Returns the count at this moment. The result is a hint and orders nothing. */
CUA_FORCE uint32_t cua_semaphore_value_scope(const struct cua_semaphore *s, enum cua_scope scope)
{
	return cua_port_load_b32(&s->count, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
}

/* Returns 1 if the count is 0 at this moment, else 0. The result is a hint and orders nothing. */
CUA_FORCE int cua_semaphore_locked_scope(const struct cua_semaphore *s, enum cua_scope scope)
{
	return cua_semaphore_value_scope(s, scope) == 0;
}

CUA_FN int cua_semaphore_trylock(struct cua_semaphore *s)
{
	return cua_semaphore_trylock_scope(s, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_semaphore_lock(struct cua_semaphore *s)
{
	cua_semaphore_lock_scope(s, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_semaphore_lock_for(struct cua_semaphore *s, uint64_t ns)
{
	return cua_semaphore_lock_for_scope(s, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_semaphore_unlock(struct cua_semaphore *s)
{
	cua_semaphore_unlock_scope(s, CUA_SCOPE_DEVICE);
}

CUA_FN uint32_t cua_semaphore_value(const struct cua_semaphore *s)
{
	return cua_semaphore_value_scope(s, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_semaphore_locked(const struct cua_semaphore *s)
{
	return cua_semaphore_locked_scope(s, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_SEMAPHORE(&semaphore) { section }
 *
 * Every lane that reaches the macro runs the block once while it holds a unit. The warp may have
 * diverged. CUA_WITH_LOCK of spinlock.h has the rules for the block and for jumps; several lanes
 * may run the block at the same time. The arguments are evaluated once.
 * CUA_WITH_SEMAPHORE_SCOPE(&semaphore, scope) does the same at another scope.
 */
CUA__SECTION_DECLARE(semaphore);

struct cua__semaphore_section {
	struct cua_semaphore *l;
	enum cua_scope scope;
	struct cua_backoff backoff;
	CUA__SECTION_MEMBERS(semaphore)
};

CUA_FORCE struct cua__semaphore_section cua__semaphore_section_begin(struct cua_semaphore *l,
								     enum cua_scope scope)
{
	struct cua__semaphore_section s;

	s.l = l;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(semaphore, &s);
	cua_backoff_init(&s.backoff);
	return s;
}

CUA_FORCE int cua__semaphore_section_try(struct cua__semaphore_section *s)
{
	return cua_semaphore_trylock_scope(s->l, s->scope);
}

CUA_FORCE void cua__semaphore_section_step(struct cua__semaphore_section *s)
{
	if (s->state) {
		cua_semaphore_unlock_scope(s->l, s->scope);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(semaphore, s->l, s->wait);
		cua_backoff_wait(&s->backoff);
	}
}

CUA_FORCE void cua__semaphore_section_leave(struct cua__semaphore_section *s)
{
	if (s->state == 1)
		cua__semaphore_section_step(s);
}

#define CUA_WITH_SEMAPHORE_SCOPE(s, scope) CUA__WITH(semaphore, __LINE__, (s), (scope))
#define CUA_WITH_SEMAPHORE(s) CUA_WITH_SEMAPHORE_SCOPE (s, CUA_SCOPE_DEVICE)

/* ---- forms of a single unit for warps and blocks: the contract is in lock_forms.h ---- */

CUA_FORCE int cua_semaphore_trylock_warp_scope(struct cua_semaphore *s, uint32_t mask,
					       enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_semaphore_trylock_scope(s, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_semaphore_lock_warp_scope(struct cua_semaphore *s, uint32_t mask,
					     enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_semaphore_lock_scope(s, scope);
	cua__await_leader_warp(mask);
}

CUA_FORCE int cua_semaphore_lock_for_warp_scope(struct cua_semaphore *s, uint64_t ns, uint32_t mask,
						enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_semaphore_lock_for_scope(s, ns, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_semaphore_unlock_warp_scope(struct cua_semaphore *s, uint32_t mask,
					       enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_semaphore_unlock_scope(s, scope);
}

CUA_FORCE int cua_semaphore_trylock_block_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_semaphore_trylock_scope(s, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_semaphore_lock_block_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_semaphore_lock_scope(s, scope);
	cua__await_leader_block();
}

CUA_FORCE int cua_semaphore_lock_for_block_scope(struct cua_semaphore *s, uint64_t ns,
						 enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_semaphore_lock_for_scope(s, ns, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_semaphore_unlock_block_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_semaphore_unlock_scope(s, scope);
}

CUA_FN int cua_semaphore_trylock_warp(struct cua_semaphore *s, uint32_t mask)
{
	return cua_semaphore_trylock_warp_scope(s, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_semaphore_lock_warp(struct cua_semaphore *s, uint32_t mask)
{
	cua_semaphore_lock_warp_scope(s, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_semaphore_lock_for_warp(struct cua_semaphore *s, uint64_t ns, uint32_t mask)
{
	return cua_semaphore_lock_for_warp_scope(s, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_semaphore_unlock_warp(struct cua_semaphore *s, uint32_t mask)
{
	cua_semaphore_unlock_warp_scope(s, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_semaphore_trylock_block(struct cua_semaphore *s)
{
	return cua_semaphore_trylock_block_scope(s, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_semaphore_lock_block(struct cua_semaphore *s)
{
	cua_semaphore_lock_block_scope(s, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_semaphore_lock_for_block(struct cua_semaphore *s, uint64_t ns)
{
	return cua_semaphore_lock_for_block_scope(s, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_semaphore_unlock_block(struct cua_semaphore *s)
{
	cua_semaphore_unlock_block_scope(s, CUA_SCOPE_DEVICE);
}

/* ---- arrays for the host ---- */

/*
 * Host: creates and destroys an array of n semaphores with `count` units each, in the memory of the
 * context's backend. See the arrays of lock_forms.h for errors and use.
 */
CUA__HOST_FN enum cua_status cua_semaphore_array_create(struct cua_context *ctx, size_t n,
							uint32_t count,
							struct cua_semaphore **semaphores)
{
	enum cua_status status;
	void *p = NULL;

	if (!semaphores)
		return CUA_ERROR_NULL;
	status = cua_alloc_zero(ctx, n, sizeof(**semaphores), &p);
	if (status)
		return status;
	status = cua_fill(ctx, p, n, sizeof(count), &count);
	if (!status)
		status = cua_context_synchronize(ctx);
	if (status)
		cua_free(ctx, p);
	else
		*semaphores = (struct cua_semaphore *)p;
	return status;
}

CUA__HOST_FN enum cua_status cua_semaphore_array_destroy(struct cua_context *ctx,
							 struct cua_semaphore *semaphores)
{
	return cua_free(ctx, semaphores);
}

#endif /* CUATOMIC_SEMAPHORE_H */
