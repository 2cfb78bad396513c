/* SPDX-License-Identifier: MIT */
/*
 * A sequence lock: writers exclude each other. Readers write nothing; they check a sequence number
 * and retry.
 *
 * It protects a few words that are read far more often than written. A reader may read while a
 * writer writes, so all accesses to the data are relaxed atomics, cua_seqlock_load_ and
 * cua_seqlock_store_. The reader must not use the values until read_retry has returned 0.
 *
 *     do {
 *             begun = cua_seqlock_read_begin(&lock);
 *             x = cua_seqlock_load_b64(&data.x);
 *             y = cua_seqlock_load_b64(&data.y);
 *     } while (cua_seqlock_read_retry(&lock, begun));
 *
 * Source: Hemminger's seqlock of Linux 2.5, 2002; the orders after Boehm, "Can seqlocks get along
 * with programming language memory models?", 2012.
 *
 * Synchronization of two calls on the same lock. X: the caller must order the calls. -: the calls
 * may run concurrently. Writers call trylock, lock, lock_for and unlock. "read" stands for
 * read_begin, read_retry and read.
 *
 *               init  trylock  lock  lock_for  unlock  locked  read
 *     init       X       X       X      X        X       X      X
 *     trylock    X       -       -      -        -       -      -
 *     lock       X       -       -      -        -       -      -
 *     lock_for   X       -       -      -        -       -      -
 *     unlock     X       -       -      -        X       -      -
 *     locked     X       -       -      -        -       -      -
 *     read       X       -       -      -        -       -      -
 *
 * Scope: the device. The _scope forms accept CUA_SCOPE_BLOCK (lock and data in shared memory),
 *   _DEVICE or _SYSTEM. All users of a lock must name a scope that includes all of these users.
 * Memory order: unlock releases. A successful trylock, lock or lock_for acquires all that the last
 *   unlock released, and so does a read_begin whose read_retry returns 0. A failed call, locked and
 *   init guarantee no order.
 * Progress: writers block each other and are not fair. A reader never delays a writer. A reader
 *   waits while a writer writes, and starves if writers leave no gap. A lane may use the lock, also
 *   to read, in a diverged warp; lock.h states why the warp makes progress.
 * Argument: a writer makes the sequence odd by a CAS, so there is a single writer at a time. A
 *   release store makes it even again. read_begin acquires an even sequence. Suppose that the
 *   reader then reads a word that a later writer stored. The writer's release fence precedes that
 *   store, and the reader's acquire fence follows that load. The fences order the odd sequence
 *   before the reader's second load of the sequence, so that load returns a different value and the
 *   reader retries. The sequence has 64 bits and does not wrap around.
 */
#ifndef CUATOMIC_SEQLOCK_H
#define CUATOMIC_SEQLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

struct cua_seqlock {
	uint64_t sequence; /* odd while a writer writes */
};
CUA_STATIC_ASSERT(sizeof(struct cua_seqlock) == 8, "the lock is ABI");

/* Initializer of a free lock. Zeroed memory is an array of free locks. */
#define CUA_SEQLOCK_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Makes the lock free, whatever its content. No other call on the lock may run at the same time.
 */
CUA_FN void cua_seqlock_init(struct cua_seqlock *l)
{
	CUA__LOCK_INIT(seqlock, l);
	l->sequence = 0;
}

/* ---- writers ---- */

/*
 * Acquires the lock to write if no other writer holds it, and never waits. Returns 1 if the lock
 * was acquired, else 0.
 */
CUA_FORCE int cua_seqlock_trylock_scope(struct cua_seqlock *l, enum cua_scope scope)
{
	uint64_t seen = cua_port_load_b64(&l->sequence, CUA_RELAXED, scope, CUA_SPACE_GENERIC);

	if (seen & 1)
		return 0;
	if (cua_port_cas_b64(&l->sequence, seen, seen + 1, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC) !=
	    seen)
		return 0;
	/* a reader that sees a store after this fence also sees the odd sequence */
	cua_port_fence(CUA_RELEASE, scope);
	return CUA__LOCK_ACQUIRED(seqlock, l, 1);
}

/* Acquires the lock to write, and waits while another writer holds it. */
CUA_FORCE void cua_seqlock_lock_scope(struct cua_seqlock *l, enum cua_scope scope)
{
	CUA__LOCK_REQUEST(seqlock, l, wait);
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_seqlock_trylock_scope(l, scope)) {
		CUA__LOCK_WAITING(seqlock, l, wait);
		cua_backoff_wait(&backoff);
	}
}

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if the lock was acquired,
 * else 0.
 */
CUA_FORCE int cua_seqlock_lock_for_scope(struct cua_seqlock *l, uint64_t ns, enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_seqlock_trylock_scope(l, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/* Releases the lock. Only the writer that holds it may call this. */
CUA_FORCE void cua_seqlock_unlock_scope(struct cua_seqlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(seqlock, l);
	/* only the holder writes the sequence */
	uint64_t odd = cua_port_load_b64(&l->sequence, CUA_RELAXED, scope, CUA_SPACE_GENERIC);

	cua_port_store_b64(&l->sequence, odd + 1, CUA_RELEASE, scope, CUA_SPACE_GENERIC);
}

/*
 * Returns 1 if a writer holds the lock at this moment, else 0. The result is a hint and orders
 * nothing.
 */
CUA_FORCE int cua_seqlock_locked_scope(const struct cua_seqlock *l, enum cua_scope scope)
{
	return (int)(cua_port_load_b64(&l->sequence, CUA_RELAXED, scope, CUA_SPACE_GENERIC) & 1);
}

/* ---- readers ---- */

/* Waits until no writer writes. Returns the even sequence, the argument `begun` of read_retry. */
CUA_FORCE uint64_t cua_seqlock_read_begin_scope(const struct cua_seqlock *l, enum cua_scope scope)
{
	uint64_t seen = cua_port_load_b64(&l->sequence, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
	struct cua_backoff backoff;

	if (!(seen & 1))
		return seen;
	CUA__LOCK_REQUEST(seqlock, l, wait);
	cua_backoff_init(&backoff);
	do {
		do {
			CUA__LOCK_WAITING(seqlock, l, wait);
			cua__backoff_wait_upto(&backoff, 256);
		} while (cua_port_load_b64(&l->sequence, CUA_RELAXED, scope, CUA_SPACE_GENERIC) &
			 1);
		seen = cua_port_load_b64(&l->sequence, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
	} while (seen & 1);
	return seen;
}

/* Returns 1 if a writer has written since read_begin, and the data must be read again, else 0. */
CUA_FORCE int cua_seqlock_read_retry_scope(const struct cua_seqlock *l, uint64_t begun,
					   enum cua_scope scope)
{
	cua_port_fence(CUA_ACQUIRE, scope);
	return cua_port_load_b64(&l->sequence, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != begun;
}

/*
 * ---- the data: accesses to a single word, by readers and by the writer that holds the lock ----
 *
 * p must be aligned to the size of the word. The accesses are relaxed. The lock orders them for
 * writers, and read_begin with read_retry for readers.
 */

CUA_FORCE uint32_t cua_seqlock_load_b32_scope(const void *p, enum cua_scope scope)
{
	return cua_port_load_b32(p, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
}

CUA_FORCE uint64_t cua_seqlock_load_b64_scope(const void *p, enum cua_scope scope)
{
	return cua_port_load_b64(p, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
}

CUA_FORCE void cua_seqlock_store_b32_scope(void *p, uint32_t v, enum cua_scope scope)
{
	cua_port_store_b32(p, v, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
}

CUA_FORCE void cua_seqlock_store_b64_scope(void *p, uint64_t v, enum cua_scope scope)
{
	cua_port_store_b64(p, v, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
}

/* Copies a consistent snapshot of n words to out, memory that only the caller uses. */
CUA_FORCE void cua_seqlock_read_scope(const struct cua_seqlock *l, const uint32_t *data, size_t n,
				      enum cua_scope scope, uint32_t *out)
{
	uint64_t begun;

	do {
		begun = cua_seqlock_read_begin_scope(l, scope);
		for (size_t i = 0; i < n; i++)
			out[i] = cua_seqlock_load_b32_scope(&data[i], scope);
	} while (cua_seqlock_read_retry_scope(l, begun, scope));
}

CUA_FN int cua_seqlock_trylock(struct cua_seqlock *l)
{
	return cua_seqlock_trylock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_lock(struct cua_seqlock *l)
{
	cua_seqlock_lock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_seqlock_lock_for(struct cua_seqlock *l, uint64_t ns)
{
	return cua_seqlock_lock_for_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_unlock(struct cua_seqlock *l)
{
	cua_seqlock_unlock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_seqlock_locked(const struct cua_seqlock *l)
{
	return cua_seqlock_locked_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN uint64_t cua_seqlock_read_begin(const struct cua_seqlock *l)
{
	return cua_seqlock_read_begin_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_seqlock_read_retry(const struct cua_seqlock *l, uint64_t begun)
{
	return cua_seqlock_read_retry_scope(l, begun, CUA_SCOPE_DEVICE);
}

CUA_FN uint32_t cua_seqlock_load_b32(const void *p)
{
	return cua_seqlock_load_b32_scope(p, CUA_SCOPE_DEVICE);
}

CUA_FN uint64_t cua_seqlock_load_b64(const void *p)
{
	return cua_seqlock_load_b64_scope(p, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_store_b32(void *p, uint32_t v)
{
	cua_seqlock_store_b32_scope(p, v, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_store_b64(void *p, uint64_t v)
{
	cua_seqlock_store_b64_scope(p, v, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_read(const struct cua_seqlock *l, const uint32_t *data, size_t n,
			     uint32_t *out)
{
	cua_seqlock_read_scope(l, data, n, CUA_SCOPE_DEVICE, out);
}

/*
 * CUA_WITH_SEQLOCK(&lock) { stores to the data }
 *
 * Every lane that reaches the macro runs the block once as the only writer. The warp may have
 * diverged. CUA_WITH_LOCK of spinlock.h has the rules for the block and for jumps. The arguments
 * are evaluated once. CUA_WITH_SEQLOCK_SCOPE(&lock, scope) does the same at another scope.
 */
CUA__SECTION_DECLARE(seqlock);

struct cua__seqlock_section {
	struct cua_seqlock *l;
	enum cua_scope scope;
	struct cua_backoff backoff;
	CUA__SECTION_MEMBERS(seqlock)
};

CUA_FORCE struct cua__seqlock_section cua__seqlock_section_begin(struct cua_seqlock *l,
								 enum cua_scope scope)
{
	struct cua__seqlock_section s;

	s.l = l;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(seqlock, &s);
	cua_backoff_init(&s.backoff);
	return s;
}

CUA_FORCE int cua__seqlock_section_try(struct cua__seqlock_section *s)
{
	return cua_seqlock_trylock_scope(s->l, s->scope);
}

CUA_FORCE void cua__seqlock_section_step(struct cua__seqlock_section *s)
{
	if (s->state) {
		cua_seqlock_unlock_scope(s->l, s->scope);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(seqlock, s->l, s->wait);
		cua_backoff_wait(&s->backoff);
	}
}

CUA_FORCE void cua__seqlock_section_leave(struct cua__seqlock_section *s)
{
	if (s->state == 1)
		cua__seqlock_section_step(s);
}

#define CUA_WITH_SEQLOCK_SCOPE(l, scope) CUA__WITH(seqlock, __LINE__, (l), (scope))
#define CUA_WITH_SEQLOCK(l) CUA_WITH_SEQLOCK_SCOPE (l, CUA_SCOPE_DEVICE)

/* ---- writers' forms for warps and blocks: the contract is in lock_forms.h ---- */

/*
 * Each lane of a team that holds the lock stores after a release fence of its own, as the argument
 * above requires of a writer. Returns `taken`.
 */
CUA_FORCE int cua__seqlock_entered(int taken, enum cua_scope scope)
{
	if (taken)
		cua_port_fence(CUA_RELEASE, scope);
	return taken;
}

CUA_FORCE int cua_seqlock_trylock_warp_scope(struct cua_seqlock *l, uint32_t mask,
					     enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_seqlock_trylock_scope(l, scope);

	return cua__seqlock_entered(cua__any_warp(taken, mask), scope);
}

CUA_FORCE void cua_seqlock_lock_warp_scope(struct cua_seqlock *l, uint32_t mask,
					   enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_seqlock_lock_scope(l, scope);
	cua__await_leader_warp(mask);
	(void)cua__seqlock_entered(1, scope);
}

CUA_FORCE int cua_seqlock_lock_for_warp_scope(struct cua_seqlock *l, uint64_t ns, uint32_t mask,
					      enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_seqlock_lock_for_scope(l, ns, scope);

	return cua__seqlock_entered(cua__any_warp(taken, mask), scope);
}

CUA_FORCE void cua_seqlock_unlock_warp_scope(struct cua_seqlock *l, uint32_t mask,
					     enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_seqlock_unlock_scope(l, scope);
}

CUA_FORCE int cua_seqlock_trylock_block_scope(struct cua_seqlock *l, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_seqlock_trylock_scope(l, scope);

	return cua__seqlock_entered(cua__any_block(taken), scope);
}

CUA_FORCE void cua_seqlock_lock_block_scope(struct cua_seqlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_seqlock_lock_scope(l, scope);
	cua__await_leader_block();
	(void)cua__seqlock_entered(1, scope);
}

CUA_FORCE int cua_seqlock_lock_for_block_scope(struct cua_seqlock *l, uint64_t ns,
					       enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_seqlock_lock_for_scope(l, ns, scope);

	return cua__seqlock_entered(cua__any_block(taken), scope);
}

CUA_FORCE void cua_seqlock_unlock_block_scope(struct cua_seqlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_seqlock_unlock_scope(l, scope);
}

CUA_FN int cua_seqlock_trylock_warp(struct cua_seqlock *l, uint32_t mask)
{
	return cua_seqlock_trylock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_lock_warp(struct cua_seqlock *l, uint32_t mask)
{
	cua_seqlock_lock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_seqlock_lock_for_warp(struct cua_seqlock *l, uint64_t ns, uint32_t mask)
{
	return cua_seqlock_lock_for_warp_scope(l, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_unlock_warp(struct cua_seqlock *l, uint32_t mask)
{
	cua_seqlock_unlock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_seqlock_trylock_block(struct cua_seqlock *l)
{
	return cua_seqlock_trylock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_lock_block(struct cua_seqlock *l)
{
	cua_seqlock_lock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_seqlock_lock_for_block(struct cua_seqlock *l, uint64_t ns)
{
	return cua_seqlock_lock_for_block_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_seqlock_unlock_block(struct cua_seqlock *l)
{
	cua_seqlock_unlock_block_scope(l, CUA_SCOPE_DEVICE);
}

/* ---- arrays of locks for the host: the contract is in lock_forms.h ---- */

CUA__HOST_FN enum cua_status cua_seqlock_array_create(struct cua_context *ctx, size_t n,
						      struct cua_seqlock **locks)
{
	return cua__lock_array_create(ctx, n, sizeof(**locks), locks);
}

CUA__HOST_FN enum cua_status cua_seqlock_array_destroy(struct cua_context *ctx,
						       struct cua_seqlock *locks)
{
	return cua_free(ctx, locks);
}

#endif /* CUATOMIC_SEQLOCK_H */
