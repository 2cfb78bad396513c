/* SPDX-License-Identifier: MIT */
/*
 * A queue lock: those who wait form a list, and each waits on a word of its own.
 *
 * Each taking of the lock needs a node, which belongs to the lock from lock to unlock and to the caller
 * again after it. Nodes are reached by other lanes, so they live in global memory, or, for a lock that
 * only the lanes of one block use, in shared memory; never in a variable of the lane.
 *
 * Source: Mellor-Crummey and Scott, 1991.
 *
 * Synchronization: X means that the caller must order the two calls, - that the lock does it. Two calls
 * with one node must always be ordered.
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
 *   and all users of one lock must name a scope that includes all of them. At system scope a node has the same
 *   address for all of them.
 * Memory order: a successful trylock, lock or lock_for acquires what the last unlock released.
 * Progress: blocking and fair: the lock is granted in the order in which lanes joined the queue, which only
 *   running lanes do. unlock waits for a lane that has joined but not yet linked its node, which takes that
 *   lane two instructions; because the two may be lanes of one warp, this lock is for sm_70 and newer, where
 *   the other lanes run at the latest when one that waits sleeps, as it does now and then. There lock may be
 *   called in a diverged warp, and CUA_WITH_MCSLOCK too. lock_for does not join the queue: it tries until
 *   the time is over, gets the lock only at a moment when nobody holds it or waits, and is not fair.
 * Argument: the exchange on tail orders the lanes; who got 0 enters. Its acquire reads the 0 that the last
 *   holder's CAS stored with release. Who got a node links itself there with release; the holder acquires
 *   the link, so its store to the successor's word comes after the successor's own, and that release store is
 *   what the successor acquires. The exchange releases too: whoever finds a node there finds its empty
 *   link. A holder that sees no link takes itself off the tail by CAS, which fails exactly
 *   if someone has come, whose link it then awaits. After unlock nobody knows the node any more.
 */
#ifndef CUATOMIC_MCSLOCK_H
#define CUATOMIC_MCSLOCK_H

#include <cuatomic/detail/lock_forms.h>
#include <cuatomic/port.h>
#include <cuatomic/detail/section.h>

/* Addresses are kept as numbers, so that the lock is the same for host and device. */
struct cua_mcslock {
	uint64_t tail; /* the node that came last, 0: free */
};
CUA_STATIC_ASSERT(sizeof(struct cua_mcslock) == 8, "the lock is ABI");

/* Needs no initialization. */
struct cua_mcslock_node {
	uint64_t next;    /* the node that came after this one, 0: none yet */
	uint32_t waiting; /* not 0 until the lock is handed to this node */
	uint32_t reserved;
};
CUA_STATIC_ASSERT(sizeof(struct cua_mcslock_node) == 16, "the node is ABI");

/* The value of a free lock; memory of zeros is an array of free locks. */
#define CUA_MCSLOCK_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

/* Makes the lock free. Nobody may be using it. */
CUA_FN void cua_mcslock_init(struct cua_mcslock *l)
{
	CUA__LOCK_INIT(mcslock, l);
	l->tail = 0;
}

/* Takes the lock if nobody holds it or waits for it. Returns 1 if it was taken, else 0. */
CUA_FORCE int cua_mcslock_trylock_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					enum cua_scope scope)
{
	if (cua_port_load_b64(&l->tail, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != 0)
		return 0;
	cua_port_store_b64(&node->next, 0, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	return CUA__LOCK_ACQUIRED(mcslock, l,
				  cua_port_cas_b64(&l->tail, 0, (uint64_t)(uintptr_t)node,
						   CUA_ACQ_REL, scope, CUA_SPACE_GENERIC) == 0);
}

/* Joins the queue. Returns 1 if it was empty, and the lock is taken with that. */
CUA_FORCE int cua__mcslock_join(struct cua_mcslock *l, struct cua_mcslock_node *node,
				enum cua_scope scope)
{
	struct cua_mcslock_node *predecessor;

	cua_port_store_b64(&node->next, 0, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	predecessor = (struct cua_mcslock_node *)(uintptr_t)cua_port_exchange_b64(
		&l->tail, (uint64_t)(uintptr_t)node, CUA_ACQ_REL, scope, CUA_SPACE_GENERIC);
	if (!predecessor)
		return 1;
	cua_port_store_b32(&node->waiting, 1, CUA_RELAXED, scope, CUA_SPACE_GENERIC);
	cua_port_store_b64(&predecessor->next, (uint64_t)(uintptr_t)node, CUA_RELEASE, scope,
			   CUA_SPACE_GENERIC);
	return 0;
}

/* Whether the lock has been handed to a node in the queue. */
CUA_FORCE int cua__mcslock_handed(const struct cua_mcslock_node *node, enum cua_scope scope)
{
	if (cua_port_load_b32(&node->waiting, CUA_RELAXED, scope, CUA_SPACE_GENERIC))
		return 0;
	cua_port_acquire_b32(&node->waiting, scope, CUA_SPACE_GENERIC);
	return 1;
}

/* Takes the lock, waiting for its turn in the queue. */
CUA_FORCE void cua_mcslock_lock_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
				      enum cua_scope scope)
{
	CUA__LOCK_REQUEST(mcslock, l, wait);
	uint32_t polls = 0;

	if (cua__mcslock_join(l, node, scope)) {
		(void)CUA__LOCK_ACQUIRED(mcslock, l, 1);
		return;
	}
	while (!cua__mcslock_handed(node, scope)) {
		CUA__LOCK_WAITING(mcslock, l, wait);
		cua__wait_turn(&polls);
	}
	(void)CUA__LOCK_ACQUIRED(mcslock, l, 1);
}

/* Tries for about ns nanoseconds, once at least. Returns 1 if the lock was taken, else 0. */
CUA_FORCE int cua_mcslock_lock_for_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					 uint64_t ns, enum cua_scope scope)
{
	uint64_t start = cua_port_clock_ns();
	struct cua_backoff backoff;

	cua_backoff_init(&backoff);
	while (!cua_mcslock_trylock_scope(l, node, scope)) {
		if (cua_port_clock_ns() - start >= ns)
			return 0;
		cua_backoff_wait(&backoff);
	}
	return 1;
}

/* Hands the lock to the next in the queue. Only its holder may call this, with the node it took it by. */
CUA_FORCE void cua_mcslock_unlock_scope(struct cua_mcslock *l, struct cua_mcslock_node *node,
					enum cua_scope scope)
{
	CUA__LOCK_UNLOCK(mcslock, l);
	uint64_t next = cua_port_load_b64(&node->next, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
	uint32_t polls = 0;

	if (!next) {
		if (cua_port_cas_b64(&l->tail, (uint64_t)(uintptr_t)node, 0, CUA_RELEASE, scope,
				     CUA_SPACE_GENERIC) == (uint64_t)(uintptr_t)node)
			return;
		/* someone has come and is about to say so */
		while (!cua_port_load_b64(&node->next, CUA_RELAXED, scope, CUA_SPACE_GENERIC))
			cua__wait_turn(&polls);
		next = cua_port_load_b64(&node->next, CUA_ACQUIRE, scope, CUA_SPACE_GENERIC);
	}
	cua_port_store_b32(&((struct cua_mcslock_node *)(uintptr_t)next)->waiting, 0, CUA_RELEASE,
			   scope, CUA_SPACE_GENERIC);
}

/* Whether someone holds the lock at this moment; a hint, which orders nothing. */
CUA_FORCE int cua_mcslock_locked_scope(const struct cua_mcslock *l, enum cua_scope scope)
{
	return cua_port_load_b64(&l->tail, CUA_RELAXED, scope, CUA_SPACE_GENERIC) != 0;
}

CUA_FN int cua_mcslock_trylock(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	return cua_mcslock_trylock_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_lock(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	cua_mcslock_lock_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_lock_for(struct cua_mcslock *l, struct cua_mcslock_node *node, uint64_t ns)
{
	return cua_mcslock_lock_for_scope(l, node, ns, CUA_SCOPE_DEVICE);
}

CUA_FN void cua_mcslock_unlock(struct cua_mcslock *l, struct cua_mcslock_node *node)
{
	cua_mcslock_unlock_scope(l, node, CUA_SCOPE_DEVICE);
}

CUA_FN int cua_mcslock_locked(const struct cua_mcslock *l)
{
	return cua_mcslock_locked_scope(l, CUA_SCOPE_DEVICE);
}

/*
 * CUA_WITH_MCSLOCK(&lock, &node) { critical section }
 *
 * Runs the block once under the lock, in the order of the queue, for every lane that comes here, each with
 * a node of its own. `break` and `continue` leave the block and unlock; return and goto must not leave
 * it. The arguments are evaluated more than once.
 * CUA_WITH_MCSLOCK_SCOPE(&lock, &node, scope) is the same at another scope.
 */
struct cua__mcslock_section {
	uint32_t polls;
	int first; /* the queue was empty */
	int state; /* 0: waiting, 1: holding, 2: done */
};

CUA_FORCE struct cua__mcslock_section cua__mcslock_section_begin(struct cua_mcslock *l,
								 struct cua_mcslock_node *node,
								 enum cua_scope scope)
{
	struct cua__mcslock_section s;

	s.polls = 0;
	s.first = cua__mcslock_join(l, node, scope);
	s.state = 0;
	return s;
}

CUA_FORCE int cua__mcslock_section_try(struct cua__mcslock_section *s, struct cua_mcslock *l,
				       struct cua_mcslock_node *node, enum cua_scope scope)
{
	(void)l;
	return CUA__LOCK_ACQUIRED(mcslock, l, s->first || cua__mcslock_handed(node, scope));
}

CUA_FORCE void cua__mcslock_section_step(struct cua__mcslock_section *s, struct cua_mcslock *l,
					 struct cua_mcslock_node *node, enum cua_scope scope)
{
	if (s->state) {
		cua_mcslock_unlock_scope(l, node, scope);
		s->state = 2;
	} else {
		cua__wait_turn(&s->polls);
	}
}

#define CUA_WITH_MCSLOCK_SCOPE(l, node, scope) CUA__WITH(mcslock, __LINE__, (l), (node), (scope))
#define CUA_WITH_MCSLOCK(l, node) CUA_WITH_MCSLOCK_SCOPE (l, node, CUA_SCOPE_DEVICE)

/* For a warp and for a block, and arrays; see lock_forms.h. */
CUA__DEFINE_GROUPS(cua_mcslock, (struct cua_mcslock * l, struct cua_mcslock_node *node), (l, node),
		   (void)0)
CUA__DEFINE_LOCK_ARRAY(cua_mcslock, struct cua_mcslock)

#endif /* CUATOMIC_MCSLOCK_H */
