/* SPDX-License-Identifier: MIT */
/*
 * A counting semaphore: at most so many holders at once.
 *
 * Source: Dijkstra, 1965; waiting on a plain load with backoff as in spinlock.h.
 *
 * Synchronization: X means that the caller must order the two calls, - that the semaphore does it.
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
 * Scope: the device; the _scope forms take CUA_SCOPE_BLOCK (a semaphore in shared memory), _DEVICE or
 *   _SYSTEM, and all users of one semaphore must name a scope that includes all of them.
 * Memory order: a successful trylock, lock or lock_for acquires what every unlock before it released.
 *   Holders of one semaphore of more than 1 run side by side, and nothing orders them.
 * Progress: blocking, and not fair. A lane may call lock in a diverged warp on sm_70 and newer. In every
 *   case CUA_WITH_SEMAPHORE is safe: a lane that fails retries only after the lanes that hold it
 *   have run their section.
 * Argument: the count is lowered only by a CAS from a value above 0, so the holders never outnumber the
 *   initial count. All changes are read-modify-writes, so an acquire that reads one of them takes what all the
 *   releases before it brought.
 */
#ifndef CUATOMIC_SEMAPHORE_H
#define CUATOMIC_SEMAPHORE_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

struct cua_semaphore {
	uint32_t count; /* how many more may hold it */
};
CUA_STATIC_ASSERT(sizeof(struct cua_semaphore) == 4, "the semaphore is ABI");

/* The value of a semaphore that n may hold at once. */
#define CUA_SEMAPHORE_INIT(n)                                                                      \
	{                                                                                          \
		n                                                                                  \
	}

/* Lets `count` hold it at once, 0 to 2^32 - 1. Nobody may be using it. */
CUA_FN void cua_semaphore_init(struct cua_semaphore *s, uint32_t count)
{
	CUA__LOCK_INIT(semaphore, s);
	s->count = count;
}

/* Takes one if there is one, without waiting. Returns 1 if it was taken, else 0. */
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

/* Takes one, waiting as long as there is none. */
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

/* Tries for about ns nanoseconds, once at least. Returns 1 if one was taken, else 0. */
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
 * Gives one back. Another lane than the one that took it may do this, and one that was never taken may be
 * given, which raises the count; it must stay below 2^32.
 */
CUA_FORCE void cua_semaphore_unlock_scope(struct cua_semaphore *s, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(semaphore, s);
	cua_port_add_u32(&s->count, 1, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
}

/* How many are left at this moment; a hint, which orders nothing. */
CUA_FORCE uint32_t cua_semaphore_value_scope(const struct cua_semaphore *s, enum cua_scope scope)
{
	return cua_port_load_b32(&s->count, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
}

/* Whether none is left at this moment; a hint, which orders nothing. */
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
 * Runs the block once while holding one of the semaphore, for every lane that comes here, however the warp
 * has diverged. `break` and `continue` leave the block and unlock; return and goto must not leave it. The
 * arguments are evaluated more than once.
 * CUA_WITH_SEMAPHORE_SCOPE(&semaphore, scope) is the same at another scope.
 */
struct cua__semaphore_section {
	struct cua_backoff backoff;
	int state; /* 0: waiting, 1: holding, 2: done */
};

CUA_FORCE struct cua__semaphore_section cua__semaphore_section_begin(struct cua_semaphore *l,
								     enum cua_scope scope)
{
	struct cua__semaphore_section s;

	(void)l;
	(void)scope;
	cua_backoff_init(&s.backoff);
	s.state = 0;
	return s;
}

CUA_FORCE int cua__semaphore_section_try(struct cua__semaphore_section *s, struct cua_semaphore *l,
					 enum cua_scope scope)
{
	(void)s;
	return cua_semaphore_trylock_scope(l, scope);
}

CUA_FORCE void cua__semaphore_section_step(struct cua__semaphore_section *s,
					   struct cua_semaphore *l, enum cua_scope scope)
{
	if (s->state) {
		cua_semaphore_unlock_scope(l, scope);
		s->state = 2;
	} else {
		cua_backoff_wait(&s->backoff);
	}
}

#define CUA_WITH_SEMAPHORE_SCOPE(s, scope) CUA__WITH(semaphore, __LINE__, (s), (scope))
#define CUA_WITH_SEMAPHORE(s) CUA_WITH_SEMAPHORE_SCOPE (s, CUA_SCOPE_DEVICE)

/* For a warp and for a block, which take one; see lock_forms.h. */
CUA__DEFINE_GROUPS(cua_semaphore, (struct cua_semaphore * s), (s), (void)0)

/*
 * Host: n semaphores that `count` may hold at once, in the memory of the context's backend, and their
 * release; as the arrays of lock_forms.h.
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
