/* SPDX-License-Identifier: MIT */
/*
 * A phase-fair reader-writer lock: many readers or a single writer.
 *
 * Readers and writers take turns, so neither starves. A reader waits for at most 1 writer. A writer
 * first waits for the earlier writers. Then it has its turn, and waits for the readers that arrived
 * before its turn. Later readers wait for this writer.
 *
 * Source: Brandenburg and Anderson, "Spin-based reader-writer synchronization for multiprocessor
 * real-time systems", 2010, the ticket algorithm. The phase is a bit that flips with each writer.
 * Here it is a bit of readers_in and not of the ticket, so that write_trylock can give its ticket
 * up.
 *
 * Synchronization of two calls on the same lock, in the read_ or the write_ form. X: the caller
 * must order the calls. -: the calls may run concurrently. Two unlocks may run concurrently because
 * several readers may hold the lock.
 *
 *               init  trylock  lock  lock_for  unlock  locked
 *     init       X       X       X      X        X       X
 *     trylock    X       -       -      -        -       -
 *     lock       X       -       -      -        -       -
 *     lock_for   X       -       -      -        -       -
 *     unlock     X       -       -      -        -       -
 *     locked     X       -       -      -        -       -
 *
 * Scope: the device. The _scope forms accept CUA_SCOPE_BLOCK (a lock in shared memory), _DEVICE or
 *   _SYSTEM. All users of a lock must name a scope that includes all of these users.
 * Memory order: read_unlock and write_unlock release. A reader acquires all that the last writer
 *   released. A writer acquires that, and also all that the earlier readers released. Readers are
 *   not ordered among themselves. A failed call, locked and init guarantee no order.
 * Progress: blocking. lock is fair as above, and waits only for running lanes. A lane may use the
 *   lock in a diverged warp; lock.h states why the warp makes progress. A lane that holds the lock
 *   must not acquire it again, not even to read: it would wait for a writer that may have arrived
 *   in between, and that writer for this lane. A waiting reader is already counted in readers_in
 *   and cannot withdraw, so lock_for does not queue: it retries until the time has passed, and is
 *   not fair. write_trylock may delay other writers for a moment, but never a reader.
 * Argument: writers exclude each other by tickets, as in ticketlock.h. Only the lane whose ticket
 *   is writers_out changes writers_out: with release after a section, and relaxed after a failed
 *   write_trylock. A failed write_trylock has written no data. Its read-modify-write continues the
 *   release sequence of the preceding unlock, so the next writer acquires that unlock when it
 *   acquires writers_out. (No execution depends even on that: a write_trylock with a ticket fails
 *   only if a reader arrived after that unlock, and the next writer acquires that reader's
 *   release.) The writer then flips PRESENT and the phase in readers_in. The same operation returns
 *   the number of readers that arrived earlier. The writer waits until readers_out, which it
 *   acquires, reaches that number. A reader that finds PRESENT set waits until PRESENT or the phase
 *   has changed. The reader cannot miss the change: the next writer flips the phase and counts this
 *   reader, so it waits for the reader before a third writer can flip the phase back. write_unlock
 *   clears PRESENT with release, and a reader acquires readers_in. All changes of readers_in and of
 *   readers_out are read-modify-writes, so an acquire of either word acquires all earlier releases
 *   of it. write_trylock flips both bits by a CAS that fails if a reader has arrived since the
 *   counts were equal. The counts and the tickets wrap around in step. At most 2^30 - 1 readers and
 *   2^32 - 1 writers may hold the lock or wait for it at the same time.
 */
#ifndef CUATOMIC_RWLOCK_H
#define CUATOMIC_RWLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

#define CUA__RWLOCK_PHASE 1u   /* flips with each writer */
#define CUA__RWLOCK_PRESENT 2u /* a writer holds the lock or waits for earlier readers */
#define CUA__RWLOCK_WRITER (CUA__RWLOCK_PRESENT | CUA__RWLOCK_PHASE)
#define CUA__RWLOCK_READER 4u
#define CUA__RWLOCK_AT scope, CUA_SPACE_GENERIC

struct cua_rwlock {
	uint32_t readers_in;  /* bits 31-2: readers that arrived, bit 1: PRESENT, bit 0: PHASE */
	uint32_t readers_out; /* bits 31-2: readers that left, bits 1-0: zero */
	uint32_t writers_in;  /* the next ticket of a writer to draw */
	uint32_t writers_out; /* the ticket of the writer whose turn it is */
};
CUA_STATIC_ASSERT(sizeof(struct cua_rwlock) == 16, "the lock is ABI");

/* Initializer of a free lock. Zeroed memory is an array of free locks. */
#define CUA_RWLOCK_INIT                                                                            \
	{                                                                                          \
		0, 0, 0, 0                                                                         \
	}

/*
 * Makes the lock free, whatever its content. No other call on the lock may run at the same time.
 */
CUA_FN void cua_rwlock_init(struct cua_rwlock *l)
{
	CUA__LOCK_INIT(rwlock_write, l);
	l->readers_in = 0;
	l->readers_out = 0;
	l->writers_in = 0;
	l->writers_out = 0;
}

/* ---- readers ---- */

/*
 * Acquires the lock to read unless a writer holds it or is next. Never waits. Returns 1 if the lock
 * was acquired, else 0.
 */
CUA_FORCE int cua_rwlock_read_trylock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	uint32_t seen = cua_port_load_b32(&l->readers_in, CUA_RELAXED, CUA__RWLOCK_AT), old;

	while (!(seen & CUA__RWLOCK_PRESENT)) {
		old = cua_port_cas_b32(&l->readers_in, seen, seen + CUA__RWLOCK_READER, CUA_ACQUIRE,
				       CUA__RWLOCK_AT);
		if (old == seen)
			return CUA__LOCK_ACQUIRED(rwlock_read, l, 1);
		seen = old;
	}
	return 0;
}

/*
 * Counts a reader in. Returns PRESENT and PHASE of readers_in, the mark. The reader waits if
 * PRESENT is set in the mark.
 */
CUA_FORCE uint32_t cua__rwlock_read_join(struct cua_rwlock *l, enum cua_scope scope)
{
	return cua_port_fetch_add_u32(&l->readers_in, CUA__RWLOCK_READER, CUA_ACQUIRE,
				      CUA__RWLOCK_AT) &
	       CUA__RWLOCK_WRITER;
}

/* Returns 1 if the writer with this mark has left, else 0. */
CUA_FORCE int cua__rwlock_read_free(const struct cua_rwlock *l, uint32_t mark, enum cua_scope scope)
{
	if ((cua_port_load_b32(&l->readers_in, CUA_RELAXED, CUA__RWLOCK_AT) & CUA__RWLOCK_WRITER) ==
	    mark)
		return 0;
	cua_port_acquire_b32(&l->readers_in, CUA__RWLOCK_AT);
	return 1;
}

/* Acquires the lock to read, and waits for at most 1 writer. */
CUA_FORCE void cua_rwlock_read_lock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	CUA__LOCK_REQUEST(rwlock_read, l, wait);
	uint32_t mark = cua__rwlock_read_join(l, scope);
	uint32_t polls = 0;

	if (!(mark & CUA__RWLOCK_PRESENT)) {
		(void)CUA__LOCK_ACQUIRED(rwlock_read, l, 1);
		return;
	}
	while (!cua__rwlock_read_free(l, mark, scope)) {
		CUA__LOCK_WAITING(rwlock_read, l, wait);
		cua__wait_turn(&polls);
	}
	(void)CUA__LOCK_ACQUIRED(rwlock_read, l, 1);
}

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if the lock was acquired,
 * else 0.
 */
CUA_FORCE int cua_rwlock_read_lock_for_scope(struct cua_rwlock *l, uint64_t ns,
					     enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_rwlock_read_trylock_scope(l, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/* Releases the lock. Only a lane that holds it to read may call this. */
CUA_FORCE void cua_rwlock_read_unlock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(rwlock_read, l);
	cua_port_add_u32(&l->readers_out, CUA__RWLOCK_READER, CUA_RELEASE, CUA__RWLOCK_AT);
}

/* ---- writers ---- */

/*
 * Acquires the lock to write if no lane holds it or waits for it. Never waits. Returns 1 if the
 * lock was acquired, else 0.
 */
CUA_FORCE int cua_rwlock_write_trylock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	uint32_t turn = cua_port_load_b32(&l->writers_out, CUA_ACQUIRE, CUA__RWLOCK_AT), in, out;

	if (cua_port_load_b32(&l->writers_in, CUA_RELAXED, CUA__RWLOCK_AT) != turn)
		return 0;
	/* compare the counts before a ticket delays other writers in vain */
	in = cua_port_load_b32(&l->readers_in, CUA_RELAXED, CUA__RWLOCK_AT);
	out = cua_port_load_b32(&l->readers_out, CUA_RELAXED, CUA__RWLOCK_AT);
	if ((in & ~CUA__RWLOCK_PHASE) != out)
		return 0;
	if (cua_port_cas_b32(&l->writers_in, turn, turn + 1, CUA_RELAXED, CUA__RWLOCK_AT) != turn)
		return 0;
	/* this lane has the turn: set the mark only if the counts are still equal */
	out = cua_port_load_b32(&l->readers_out, CUA_ACQUIRE, CUA__RWLOCK_AT);
	in = out | (in & CUA__RWLOCK_PHASE);
	if (cua_port_cas_b32(&l->readers_in, in, in ^ CUA__RWLOCK_WRITER, CUA_RELAXED,
			     CUA__RWLOCK_AT) == in)
		return CUA__LOCK_ACQUIRED(rwlock_write, l, 1);
	/* this lane wrote no data under its ticket, so there is nothing to release */
	cua_port_add_u32(&l->writers_out, 1, CUA_RELAXED, CUA__RWLOCK_AT);
	return 0;
}

/* Flips both bits when a writer has its turn. Returns the value that readers_out must reach. */
CUA_FORCE uint32_t cua__rwlock_write_mark(struct cua_rwlock *l, enum cua_scope scope)
{
	return cua_port_fetch_xor_b32(&l->readers_in, CUA__RWLOCK_WRITER, CUA_RELAXED,
				      CUA__RWLOCK_AT) &
	       ~CUA__RWLOCK_WRITER;
}

/* Acquires the lock to write, and waits for the earlier writers and readers. */
CUA_FORCE void cua_rwlock_write_lock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	CUA__LOCK_REQUEST(rwlock_write, l, wait);
	uint32_t ticket = cua_port_fetch_add_u32(&l->writers_in, 1, CUA_RELAXED, CUA__RWLOCK_AT),
		 arrived;
	uint32_t polls = 0;

	while (cua_port_load_b32(&l->writers_out, CUA_RELAXED, CUA__RWLOCK_AT) != ticket) {
		CUA__LOCK_WAITING(rwlock_write, l, wait);
		cua__wait_turn(&polls);
	}
	cua_port_acquire_b32(&l->writers_out, CUA__RWLOCK_AT);
	arrived = cua__rwlock_write_mark(l, scope);
	while (cua_port_load_b32(&l->readers_out, CUA_RELAXED, CUA__RWLOCK_AT) != arrived) {
		CUA__LOCK_WAITING(rwlock_write, l, wait);
		cua__wait_turn(&polls);
	}
	cua_port_acquire_b32(&l->readers_out, CUA__RWLOCK_AT);
	(void)CUA__LOCK_ACQUIRED(rwlock_write, l, 1);
}

/*
 * Tries at least once, and retries for about ns nanoseconds. Returns 1 if the lock was acquired,
 * else 0.
 */
CUA_FORCE int cua_rwlock_write_lock_for_scope(struct cua_rwlock *l, uint64_t ns,
					      enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_rwlock_write_trylock_scope(l, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/* Releases the lock, first to the waiting readers. Only the writer that holds it may call this. */
CUA_FORCE void cua_rwlock_write_unlock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(rwlock_write, l);
	cua_port_and_b32(&l->readers_in, ~CUA__RWLOCK_PRESENT, CUA_RELEASE, CUA__RWLOCK_AT);
	cua_port_add_u32(&l->writers_out, 1, CUA_RELEASE, CUA__RWLOCK_AT);
}

/*
 * Returns 1 if a reader or writer holds the lock, or waits for it, at this moment, else 0. A writer
 * counts from the moment at which it sets PRESENT. The result is a hint and orders nothing.
 */
CUA_FORCE int cua_rwlock_locked_scope(const struct cua_rwlock *l, enum cua_scope scope)
{
	uint32_t out = cua_port_load_b32(&l->readers_out, CUA_RELAXED, CUA__RWLOCK_AT);

	return (cua_port_load_b32(&l->readers_in, CUA_RELAXED, CUA__RWLOCK_AT) &
		~CUA__RWLOCK_PHASE) != out;
}

CUA_FN int cua_rwlock_read_trylock(struct cua_rwlock *l)
{
	return cua_rwlock_read_trylock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_read_lock(struct cua_rwlock *l)
{
	cua_rwlock_read_lock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_read_lock_for(struct cua_rwlock *l, uint64_t ns)
{
	return cua_rwlock_read_lock_for_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_read_unlock(struct cua_rwlock *l)
{
	cua_rwlock_read_unlock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_write_trylock(struct cua_rwlock *l)
{
	return cua_rwlock_write_trylock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_write_lock(struct cua_rwlock *l)
{
	cua_rwlock_write_lock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_write_lock_for(struct cua_rwlock *l, uint64_t ns)
{
	return cua_rwlock_write_lock_for_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_write_unlock(struct cua_rwlock *l)
{
	cua_rwlock_write_unlock_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_locked(const struct cua_rwlock *l)
{
	return cua_rwlock_locked_scope(l, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_READ_LOCK(&lock) { section that may run concurrently with other readers }
 * CUA_WITH_WRITE_LOCK(&lock) { critical section }
 *
 * Every lane that reaches the macro runs the block once under the lock. The warp may have diverged.
 * CUA_WITH_LOCK of spinlock.h has the rules for the block and for jumps; blocks of readers may run
 * at the same time. The arguments are evaluated once.
 * CUA_WITH_READ_LOCK_SCOPE(&lock, scope) and CUA_WITH_WRITE_LOCK_SCOPE(&lock, scope) do the same at
 * another scope.
 */
CUA__SECTION_DECLARE(rwlock_read);

struct cua__rwlock_read_section {
	struct cua_rwlock *l;
	enum cua_scope scope;
	struct cua__section_turn turn;
	uint32_t mark;
	CUA__SECTION_MEMBERS(rwlock_read)
};

CUA_FORCE struct cua__rwlock_read_section cua__rwlock_read_section_begin(struct cua_rwlock *l,
									 enum cua_scope scope)
{
	struct cua__rwlock_read_section s;

	s.l = l;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(rwlock_read, &s);
	s.turn = cua__section_turn_begin();
	s.mark = cua__rwlock_read_join(l, scope);
	return s;
}

CUA_FORCE int cua__rwlock_read_section_try(struct cua__rwlock_read_section *s)
{
	return CUA__LOCK_ACQUIRED(rwlock_read, s->l,
				  !(s->mark & CUA__RWLOCK_PRESENT) ||
					  cua__rwlock_read_free(s->l, s->mark, s->scope));
}

CUA_FORCE void cua__rwlock_read_section_step(struct cua__rwlock_read_section *s)
{
	if (s->state) {
		cua_rwlock_read_unlock_scope(s->l, s->scope);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(rwlock_read, s->l, s->wait);
		cua__section_turn_wait(&s->turn, 16);
	}
}

CUA_FORCE void cua__rwlock_read_section_leave(struct cua__rwlock_read_section *s)
{
	if (s->state == 1)
		cua__rwlock_read_section_step(s);
}

CUA__SECTION_DECLARE(rwlock_write);

struct cua__rwlock_write_section {
	struct cua_rwlock *l;
	enum cua_scope scope;
	struct cua__section_turn turn;
	uint32_t awaited; /* the awaited value of writers_out, then of readers_out */
	int marked;
	CUA__SECTION_MEMBERS(rwlock_write)
};

CUA_FORCE struct cua__rwlock_write_section cua__rwlock_write_section_begin(struct cua_rwlock *l,
									   enum cua_scope scope)
{
	struct cua__rwlock_write_section s;

	s.l = l;
	s.scope = scope;
	s.state = 0;
	CUA__LOCK_SECTION(rwlock_write, &s);
	s.turn = cua__section_turn_begin();
	s.awaited = cua_port_fetch_add_u32(&l->writers_in, 1, CUA_RELAXED, CUA__RWLOCK_AT);
	s.marked = 0;
	return s;
}

CUA_FORCE int cua__rwlock_write_section_try(struct cua__rwlock_write_section *s)
{
	enum cua_scope scope = s->scope;

	if (!s->marked) {
		if (cua_port_load_b32(&s->l->writers_out, CUA_RELAXED, CUA__RWLOCK_AT) !=
		    s->awaited)
			return 0;
		cua_port_acquire_b32(&s->l->writers_out, CUA__RWLOCK_AT);
		s->awaited = cua__rwlock_write_mark(s->l, s->scope);
		s->marked = 1;
	}
	if (cua_port_load_b32(&s->l->readers_out, CUA_RELAXED, CUA__RWLOCK_AT) != s->awaited)
		return 0;
	cua_port_acquire_b32(&s->l->readers_out, CUA__RWLOCK_AT);
	return CUA__LOCK_ACQUIRED(rwlock_write, s->l, 1);
}

CUA_FORCE void cua__rwlock_write_section_step(struct cua__rwlock_write_section *s)
{
	if (s->state) {
		cua_rwlock_write_unlock_scope(s->l, s->scope);
		s->state = 2;
	} else {
		CUA__LOCK_WAITING(rwlock_write, s->l, s->wait);
		cua__section_turn_wait(&s->turn, 16);
	}
}

CUA_FORCE void cua__rwlock_write_section_leave(struct cua__rwlock_write_section *s)
{
	if (s->state == 1)
		cua__rwlock_write_section_step(s);
}

#define CUA_WITH_READ_LOCK_SCOPE(l, scope) CUA__WITH(rwlock_read, __LINE__, (l), (scope))
#define CUA_WITH_READ_LOCK(l) CUA_WITH_READ_LOCK_SCOPE (l, CUA_SCOPE_DEVICE)
#define CUA_WITH_WRITE_LOCK_SCOPE(l, scope) CUA__WITH(rwlock_write, __LINE__, (l), (scope))
#define CUA_WITH_WRITE_LOCK(l) CUA_WITH_WRITE_LOCK_SCOPE (l, CUA_SCOPE_DEVICE)

/* ---- readers' forms for warps and blocks: the contract is in lock_forms.h ---- */

CUA_FORCE int cua_rwlock_read_trylock_warp_scope(struct cua_rwlock *l, uint32_t mask,
						 enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_rwlock_read_trylock_scope(l, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_rwlock_read_lock_warp_scope(struct cua_rwlock *l, uint32_t mask,
					       enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_rwlock_read_lock_scope(l, scope);
	cua__await_leader_warp(mask);
}

CUA_FORCE int cua_rwlock_read_lock_for_warp_scope(struct cua_rwlock *l, uint64_t ns, uint32_t mask,
						  enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_rwlock_read_lock_for_scope(l, ns, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_rwlock_read_unlock_warp_scope(struct cua_rwlock *l, uint32_t mask,
						 enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_rwlock_read_unlock_scope(l, scope);
}

CUA_FORCE int cua_rwlock_read_trylock_block_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_rwlock_read_trylock_scope(l, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_rwlock_read_lock_block_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_rwlock_read_lock_scope(l, scope);
	cua__await_leader_block();
}

CUA_FORCE int cua_rwlock_read_lock_for_block_scope(struct cua_rwlock *l, uint64_t ns,
						   enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_rwlock_read_lock_for_scope(l, ns, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_rwlock_read_unlock_block_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_rwlock_read_unlock_scope(l, scope);
}

CUA_FN int cua_rwlock_read_trylock_warp(struct cua_rwlock *l, uint32_t mask)
{
	return cua_rwlock_read_trylock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_read_lock_warp(struct cua_rwlock *l, uint32_t mask)
{
	cua_rwlock_read_lock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_read_lock_for_warp(struct cua_rwlock *l, uint64_t ns, uint32_t mask)
{
	return cua_rwlock_read_lock_for_warp_scope(l, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_read_unlock_warp(struct cua_rwlock *l, uint32_t mask)
{
	cua_rwlock_read_unlock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_read_trylock_block(struct cua_rwlock *l)
{
	return cua_rwlock_read_trylock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_read_lock_block(struct cua_rwlock *l)
{
	cua_rwlock_read_lock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_read_lock_for_block(struct cua_rwlock *l, uint64_t ns)
{
	return cua_rwlock_read_lock_for_block_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_read_unlock_block(struct cua_rwlock *l)
{
	cua_rwlock_read_unlock_block_scope(l, CUA_SCOPE_DEVICE);
}

/* ---- writers' forms for warps and blocks: the contract is in lock_forms.h ---- */

CUA_FORCE int cua_rwlock_write_trylock_warp_scope(struct cua_rwlock *l, uint32_t mask,
						  enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_rwlock_write_trylock_scope(l, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_rwlock_write_lock_warp_scope(struct cua_rwlock *l, uint32_t mask,
						enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_rwlock_write_lock_scope(l, scope);
	cua__await_leader_warp(mask);
}

CUA_FORCE int cua_rwlock_write_lock_for_warp_scope(struct cua_rwlock *l, uint64_t ns, uint32_t mask,
						   enum cua_scope scope)
{
	int taken = cua__converge_warp(mask) && cua_rwlock_write_lock_for_scope(l, ns, scope);

	return cua__any_warp(taken, mask);
}

CUA_FORCE void cua_rwlock_write_unlock_warp_scope(struct cua_rwlock *l, uint32_t mask,
						  enum cua_scope scope)
{
	if (cua__converge_warp(mask))
		cua_rwlock_write_unlock_scope(l, scope);
}

CUA_FORCE int cua_rwlock_write_trylock_block_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_rwlock_write_trylock_scope(l, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_rwlock_write_lock_block_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_rwlock_write_lock_scope(l, scope);
	cua__await_leader_block();
}

CUA_FORCE int cua_rwlock_write_lock_for_block_scope(struct cua_rwlock *l, uint64_t ns,
						    enum cua_scope scope)
{
	int taken = cua__converge_block() && cua_rwlock_write_lock_for_scope(l, ns, scope);

	return cua__any_block(taken);
}

CUA_FORCE void cua_rwlock_write_unlock_block_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	if (cua__converge_block())
		cua_rwlock_write_unlock_scope(l, scope);
}

CUA_FN int cua_rwlock_write_trylock_warp(struct cua_rwlock *l, uint32_t mask)
{
	return cua_rwlock_write_trylock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_write_lock_warp(struct cua_rwlock *l, uint32_t mask)
{
	cua_rwlock_write_lock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_write_lock_for_warp(struct cua_rwlock *l, uint64_t ns, uint32_t mask)
{
	return cua_rwlock_write_lock_for_warp_scope(l, ns, mask, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_write_unlock_warp(struct cua_rwlock *l, uint32_t mask)
{
	cua_rwlock_write_unlock_warp_scope(l, mask, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_write_trylock_block(struct cua_rwlock *l)
{
	return cua_rwlock_write_trylock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_write_lock_block(struct cua_rwlock *l)
{
	cua_rwlock_write_lock_block_scope(l, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_rwlock_write_lock_for_block(struct cua_rwlock *l, uint64_t ns)
{
	return cua_rwlock_write_lock_for_block_scope(l, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_rwlock_write_unlock_block(struct cua_rwlock *l)
{
	cua_rwlock_write_unlock_block_scope(l, CUA_SCOPE_DEVICE);
}

/* ---- arrays of locks for the host: the contract is in lock_forms.h ---- */

CUA__HOST_FN enum cua_status cua_rwlock_array_create(struct cua_context *ctx, size_t n,
						     struct cua_rwlock **locks)
{
	return cua__lock_array_create(ctx, n, sizeof(**locks), locks);
}

CUA__HOST_FN enum cua_status cua_rwlock_array_destroy(struct cua_context *ctx,
						      struct cua_rwlock *locks)
{
	return cua_free(ctx, locks);
}

#endif /* CUATOMIC_RWLOCK_H */
