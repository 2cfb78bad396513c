/* SPDX-License-Identifier: MIT */
/*
 * A phase-fair reader-writer lock: many readers or one writer.
 *
 * Readers and writers take turns, so that neither starves: a reader waits for at most one writer, a writer
 * for the writers before it and for one phase of readers in front of each.
 *
 * Source: Brandenburg and Anderson, "Spin-based reader-writer synchronization for multiprocessor real-time
 * systems", 2010, the ticket algorithm; the phase is kept in the word instead of taken from the ticket, so that
 * a writer's try can give its ticket back.
 *
 * Synchronization: X means that the caller must order the two calls, - that the lock does it. read_ and
 * write_ forms alike.
 *
 *               init  trylock  lock  lock_for  unlock  locked
 *     init       X       X       X      X        X       X
 *     trylock    X       -       -      -        -       -
 *     lock       X       -       -      -        -       -
 *     lock_for   X       -       -      -        -       -
 *     unlock     X       -       -      -        -       -
 *     locked     X       -       -      -        -       -
 *
 * Scope: the device; the _scope forms take CUA_SCOPE_BLOCK (a lock in shared memory), _DEVICE or _SYSTEM,
 *   and all users of one lock must name a scope that includes all of them.
 * Memory order: whoever takes the lock to read acquires what the last writer released; whoever takes it to
 *   write acquires also what all readers before released. Readers are not ordered among themselves.
 * Progress: blocking. lock is fair as above, and only lanes that run are waited for. A lane may call it in a
 *   diverged warp on sm_70 and newer, as in ticketlock.h; CUA_WITH_READ_LOCK and CUA_WITH_WRITE_LOCK do
 *   not even need that. A lane that holds the lock must not take it again, not even to read: a writer may
 *   have come in between. A reader that waits is counted already, so lock_for does not wait in turn: it tries until
 *   the time is over, and is not fair. A try to write may hold up other writers for a moment, but no reader.
 * Argument: writers exclude each other by tickets, as in ticketlock.h; every change of writers_out is made
 *   by the lane whose turn it is: with release after a section, and relaxed by a try that failed. Such a try has
 *   written no data, and its read-modify-write continues the release sequence of the unlock before it, so the next
 *   writer, which acquires writers_out, takes what that unlock released. (No execution depends on even that: a try
 *   fails in its turn only if a reader came after that unlock, and the next writer acquires what the reader
 *   released.) The writer in turn marks readers_in, and what it reads there is how many readers came before: it waits
 *   for readers_out, acquired, to reach that number. A reader that finds the mark waits until the mark or its
 *   phase has changed. It cannot miss that: the next writer
 *   flips the phase, and counts this reader, so it waits for it before a third can flip it back. All changes
 *   of readers_in and of readers_out are read-modify-writes, so whoever acquires one takes what the
 *   releases before it brought. A try to write marks by a CAS that fails if a reader has come since the
 *   counts were equal. Readers and tickets wrap around in step; at most 2^30 - 1 readers and 2^32 - 1 writers
 *   may be there at once.
 */
#ifndef CUATOMIC_RWLOCK_H
#define CUATOMIC_RWLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

#define CUA__RWLOCK_PHASE 1u   /* flips with each writer */
#define CUA__RWLOCK_PRESENT 2u /* a writer has the lock or waits for the readers before it */
#define CUA__RWLOCK_WRITER (CUA__RWLOCK_PRESENT | CUA__RWLOCK_PHASE)
#define CUA__RWLOCK_READER 4u
#define CUA__RWLOCK_AT scope, CUA_SPACE_GENERIC

struct cua_rwlock {
	uint32_t readers_in;  /* readers that came, times 4, and the writer's mark */
	uint32_t readers_out; /* readers that left, times 4 */
	uint32_t writers_in;  /* the next writer's ticket */
	uint32_t writers_out; /* the ticket of the writer in turn */
};
CUA_STATIC_ASSERT(sizeof(struct cua_rwlock) == 16, "the lock is ABI");

/* The value of a free lock; memory of zeros is an array of free locks. */
#define CUA_RWLOCK_INIT                                                                            \
	{                                                                                          \
		0, 0, 0, 0                                                                         \
	}

/* Makes the lock free. Nobody may be using it. */
CUA_FN void cua_rwlock_init(struct cua_rwlock *l)
{
	CUA__LOCK_INIT(rwlock_write, l);
	l->readers_in = 0;
	l->readers_out = 0;
	l->writers_in = 0;
	l->writers_out = 0;
}

/* ---- readers ---- */

/* Takes the lock to read unless a writer has it or comes next. Returns 1 if it was taken, else 0. */
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

/* Counts a reader in. Returns the mark it has to wait for, without PRESENT if there is none. */
CUA_FORCE uint32_t cua__rwlock_read_join(struct cua_rwlock *l, enum cua_scope scope)
{
	return cua_port_fetch_add_u32(&l->readers_in, CUA__RWLOCK_READER, CUA_ACQUIRE,
				      CUA__RWLOCK_AT) &
	       CUA__RWLOCK_WRITER;
}

/* Whether the writer with this mark has left. */
CUA_FORCE int cua__rwlock_read_free(const struct cua_rwlock *l, uint32_t mark, enum cua_scope scope)
{
	if ((cua_port_load_b32(&l->readers_in, CUA_RELAXED, CUA__RWLOCK_AT) & CUA__RWLOCK_WRITER) ==
	    mark)
		return 0;
	cua_port_acquire_b32(&l->readers_in, CUA__RWLOCK_AT);
	return 1;
}

/* Takes the lock to read, waiting for at most one writer. */
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

/* Tries for about ns nanoseconds, once at least. Returns 1 if the lock was taken, else 0. */
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

/* Gives the lock back. Only one who holds it to read may call this. */
CUA_FORCE void cua_rwlock_read_unlock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(rwlock_read, l);
	cua_port_add_u32(&l->readers_out, CUA__RWLOCK_READER, CUA_RELEASE, CUA__RWLOCK_AT);
}

/* ---- writers ---- */

/* Takes the lock to write if nobody holds it or waits for it. Returns 1 if it was taken, else 0. */
CUA_FORCE int cua_rwlock_write_trylock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	uint32_t turn = cua_port_load_b32(&l->writers_out, CUA_ACQUIRE, CUA__RWLOCK_AT), in, out;

	if (cua_port_load_b32(&l->writers_in, CUA_RELAXED, CUA__RWLOCK_AT) != turn)
		return 0;
	/* before other writers are held up for nothing */
	in = cua_port_load_b32(&l->readers_in, CUA_RELAXED, CUA__RWLOCK_AT);
	out = cua_port_load_b32(&l->readers_out, CUA_RELAXED, CUA__RWLOCK_AT);
	if ((in & ~CUA__RWLOCK_PHASE) != out)
		return 0;
	if (cua_port_cas_b32(&l->writers_in, turn, turn + 1, CUA_RELAXED, CUA__RWLOCK_AT) != turn)
		return 0;
	/* the turn is ours: now the counts again, and the mark only if they are still equal */
	out = cua_port_load_b32(&l->readers_out, CUA_ACQUIRE, CUA__RWLOCK_AT);
	in = out | (in & CUA__RWLOCK_PHASE);
	if (cua_port_cas_b32(&l->readers_in, in, in ^ CUA__RWLOCK_WRITER, CUA_RELAXED,
			     CUA__RWLOCK_AT) == in)
		return CUA__LOCK_ACQUIRED(rwlock_write, l, 1);
	/* the turn was not used: there is nothing to release */
	cua_port_add_u32(&l->writers_out, 1, CUA_RELAXED, CUA__RWLOCK_AT);
	return 0;
}

/* Marks the lock for the writer in turn. Returns what readers_out has to reach. */
CUA_FORCE uint32_t cua__rwlock_write_mark(struct cua_rwlock *l, enum cua_scope scope)
{
	return cua_port_fetch_xor_b32(&l->readers_in, CUA__RWLOCK_WRITER, CUA_RELAXED,
				      CUA__RWLOCK_AT) &
	       ~CUA__RWLOCK_WRITER;
}

/* Takes the lock to write, waiting for the writers and the readers before. */
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

/* Tries for about ns nanoseconds, once at least. Returns 1 if the lock was taken, else 0. */
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

/* Gives the lock back, first to the readers that wait. Only the writer that holds it may call this. */
CUA_FORCE void cua_rwlock_write_unlock_scope(struct cua_rwlock *l, enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(rwlock_write, l);
	cua_port_and_b32(&l->readers_in, ~CUA__RWLOCK_PRESENT, CUA_RELEASE, CUA__RWLOCK_AT);
	cua_port_add_u32(&l->writers_out, 1, CUA_RELEASE, CUA__RWLOCK_AT);
}

/* Whether anyone holds the lock or waits for it at this moment; a hint, which orders nothing. */
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
 * CUA_WITH_READ_LOCK(&lock) { what may run beside other readers }
 * CUA_WITH_WRITE_LOCK(&lock) { critical section }
 *
 * Run the block once under the lock, for every lane that comes here, however the warp has diverged. `break`
 * and `continue` leave the block and unlock; return and goto must not leave it. The arguments are
 * evaluated more than once.
 * CUA_WITH_READ_LOCK_SCOPE(&lock, scope) and CUA_WITH_WRITE_LOCK_SCOPE(&lock, scope) are the same at another
 * scope.
 */
struct cua__rwlock_read_section {
	uint32_t polls;
	uint32_t mark;
	int state; /* 0: waiting, 1: holding, 2: done */
};

CUA_FORCE struct cua__rwlock_read_section cua__rwlock_read_section_begin(struct cua_rwlock *l,
									 enum cua_scope scope)
{
	struct cua__rwlock_read_section s;

	s.polls = 0;
	s.mark = cua__rwlock_read_join(l, scope);
	s.state = 0;
	return s;
}

CUA_FORCE int cua__rwlock_read_section_try(struct cua__rwlock_read_section *s, struct cua_rwlock *l,
					   enum cua_scope scope)
{
	return CUA__LOCK_ACQUIRED(rwlock_read, l,
				  !(s->mark & CUA__RWLOCK_PRESENT) ||
					  cua__rwlock_read_free(l, s->mark, scope));
}

CUA_FORCE void cua__rwlock_read_section_step(struct cua__rwlock_read_section *s,
					     struct cua_rwlock *l, enum cua_scope scope)
{
	if (s->state) {
		cua_rwlock_read_unlock_scope(l, scope);
		s->state = 2;
	} else {
		cua__wait_turn(&s->polls);
	}
}

struct cua__rwlock_write_section {
	uint32_t polls;
	uint32_t awaited; /* of writers_out, then of readers_out */
	int marked;
	int state; /* 0: waiting, 1: holding, 2: done */
};

CUA_FORCE struct cua__rwlock_write_section cua__rwlock_write_section_begin(struct cua_rwlock *l,
									   enum cua_scope scope)
{
	struct cua__rwlock_write_section s;

	s.polls = 0;
	s.awaited = cua_port_fetch_add_u32(&l->writers_in, 1, CUA_RELAXED, CUA__RWLOCK_AT);
	s.marked = 0;
	s.state = 0;
	return s;
}

CUA_FORCE int cua__rwlock_write_section_try(struct cua__rwlock_write_section *s,
					    struct cua_rwlock *l, enum cua_scope scope)
{
	if (!s->marked) {
		if (cua_port_load_b32(&l->writers_out, CUA_RELAXED, CUA__RWLOCK_AT) != s->awaited)
			return 0;
		cua_port_acquire_b32(&l->writers_out, CUA__RWLOCK_AT);
		s->awaited = cua__rwlock_write_mark(l, scope);
		s->marked = 1;
	}
	if (cua_port_load_b32(&l->readers_out, CUA_RELAXED, CUA__RWLOCK_AT) != s->awaited)
		return 0;
	cua_port_acquire_b32(&l->readers_out, CUA__RWLOCK_AT);
	return CUA__LOCK_ACQUIRED(rwlock_write, l, 1);
}

CUA_FORCE void cua__rwlock_write_section_step(struct cua__rwlock_write_section *s,
					      struct cua_rwlock *l, enum cua_scope scope)
{
	if (s->state) {
		cua_rwlock_write_unlock_scope(l, scope);
		s->state = 2;
	} else {
		cua__wait_turn(&s->polls);
	}
}

#define CUA_WITH_READ_LOCK_SCOPE(l, scope) CUA__WITH(rwlock_read, __LINE__, (l), (scope))
#define CUA_WITH_READ_LOCK(l) CUA_WITH_READ_LOCK_SCOPE (l, CUA_SCOPE_DEVICE)
#define CUA_WITH_WRITE_LOCK_SCOPE(l, scope) CUA__WITH(rwlock_write, __LINE__, (l), (scope))
#define CUA_WITH_WRITE_LOCK(l) CUA_WITH_WRITE_LOCK_SCOPE (l, CUA_SCOPE_DEVICE)

/* For a warp and for a block, and arrays; see lock_forms.h. */
CUA__DEFINE_GROUPS(cua_rwlock_read, (struct cua_rwlock * l), (l), (void)0)
CUA__DEFINE_GROUPS(cua_rwlock_write, (struct cua_rwlock * l), (l), (void)0)
CUA__DEFINE_LOCK_ARRAY(cua_rwlock, struct cua_rwlock)

#endif /* CUATOMIC_RWLOCK_H */
